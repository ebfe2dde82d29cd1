"""Long chains of UNION ALL over single tables become trees that are as flat as they can be, and mean the same."""

from __future__ import annotations

from dataclasses import replace

from planner.facts import INT4
from planner.query import Const, OutputColumn, QueryExpr, RangeRef, RelationRange, Select, SetOp, Target, Var
from planner.rules.arms import IN_A_ROW, balanced
from planner.types import SqlType

COLUMNS = (OutputColumn(name="a", type=SqlType(INT4)),)


def part(number: int, level: int = 0) -> Select:
    return Select(
        columns=COLUMNS,
        targets=(Target(expr=Var(type=SqlType(INT4), range=0, attnum=1, name="a", level=level), name="a"),),
        ranges=(
            RelationRange(alias="p", columns=(), oid=number, schema="public", name="p", used=frozenset({1})),
        ),
        from_=(RangeRef(range=0),),
    )


def chain(parts: list[Select]) -> QueryExpr:
    made: QueryExpr = parts[0]
    for one in parts[1:]:
        made = SetOp(columns=COLUMNS, op="union", all=True, left=made, right=one)
    return made


def depth(query: QueryExpr) -> int:
    most, stack = 0, [(query, 1)]
    while stack:
        node, level = stack.pop()
        most = max(most, level)
        if isinstance(node, SetOp):
            stack += [(node.left, level + 1), (node.right, level + 1)]
    return most


def leaves(query: QueryExpr) -> list[QueryExpr]:
    if isinstance(query, SetOp):
        return [*leaves(query.left), *leaves(query.right)]
    return [query]


def test_thousands_of_parts_are_a_few_levels_in_their_order() -> None:
    parts = [part(n) for n in range(5000)]
    made = balanced(chain(parts))
    assert depth(made) == 14
    assert leaves(made) == parts


def test_short_chains_stay() -> None:
    made = chain([part(n) for n in range(IN_A_ROW)])
    assert balanced(made) == made


def test_what_names_something_around_it_stays_at_its_level() -> None:
    made = chain([part(n, level=2 if n == 7 else 0) for n in range(40)])
    assert balanced(made) == made


def test_a_limit_and_other_set_operations_stay_where_they_are() -> None:
    limited = replace(chain([part(n) for n in range(40)]), limit=Const(type=SqlType(INT4), value=3))
    made = balanced(SetOp(columns=COLUMNS, op="union", all=True, left=limited, right=part(99)))
    assert isinstance(made, SetOp)
    assert isinstance(made.left, SetOp)
    assert (made.left.limit, made.left.right, made.right) == (limited.limit, part(39), part(99))
    assert leaves(made) == [*leaves(limited), part(99)]
    once = replace(chain([part(n) for n in range(40)]), all=False)
    assert isinstance(once, SetOp)
    made = balanced(once)
    assert isinstance(made, SetOp)
    assert (made.all, made.right) == (False, part(39))
