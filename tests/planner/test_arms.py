"""Partitions side by side: one part that stands for many tables, and a part for each."""

from __future__ import annotations

from dataclasses import replace

from planner.facts import INT4
from planner.query import (
    Const,
    Leaf,
    OutputColumn,
    QueryExpr,
    RangeRef,
    RelationRange,
    Select,
    SetOp,
    SubqueryRange,
    Target,
    Var,
)
from planner.query.walk import walk
from planner.rules.arms import gathered, of_tables, side_by_side, spread
from planner.types import SqlType

COLUMNS = (OutputColumn(name="a", type=SqlType(INT4)),)
TABLES = [Leaf(n, "public", f"p{n}") for n in range(1, 5001)]


def part(guard: Select | None = None) -> Select:
    return Select(
        columns=COLUMNS,
        targets=(Target(expr=Var(type=SqlType(INT4), range=0, attnum=1, name="a"), name="a"),),
        ranges=(
            RelationRange(
                alias="p", columns=(), oid=1, schema="public", name="p", used=frozenset({1}), guard=guard
            ),
        ),
        from_=(RangeRef(range=0),),
    )


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


def test_thousands_of_tables_are_one_part_and_spread_a_few_levels_in_their_order() -> None:
    one = of_tables(part(), TABLES)
    item = gathered(one)
    assert item is not None
    assert item.tables == tuple(leaf.oid for leaf in TABLES)
    assert sum(1 for _ in walk(one)) == sum(1 for _ in walk(part()))
    made = spread(one)
    assert depth(made) == 14
    assert leaves(made) == [of_tables(part(), [leaf]) for leaf in TABLES]


def test_one_table_stays_one_and_has_its_own_name() -> None:
    made = of_tables(part(), TABLES[6:7])
    assert gathered(made) is None
    assert spread(made) is made
    [item] = made.ranges
    assert isinstance(item, RelationRange)
    assert (item.oid, item.name, item.alias, item.tables) == (7, "p7", "p7", (7,))


def test_every_table_is_guarded_as_itself() -> None:
    guarded = of_tables(part(guard=part()), TABLES[:3])
    guards = [arm.ranges[0].guard for arm in leaves(spread(guarded)) if isinstance(arm, Select)]
    assert [guard.ranges[0].oid for guard in guards] == [1, 2, 3]


def test_parts_are_spread_wherever_they_stand_and_all_else_stays() -> None:
    inside = side_by_side(COLUMNS, [of_tables(part(), TABLES[:2]), of_tables(part(), TABLES[2:3])])
    limited = replace(inside, limit=Const(type=SqlType(INT4), value=3))
    around = replace(part(), ranges=(SubqueryRange(alias="x", columns=(), query=limited, parent=9),))
    [item] = spread(around).ranges
    assert isinstance(item, SubqueryRange)
    assert (item.parent, item.query.limit) == (9, limited.limit)
    assert leaves(item.query) == [of_tables(part(), [leaf]) for leaf in TABLES[:3]]
