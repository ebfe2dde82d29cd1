"""A partitioned table's partitions side by side: one part for many of them, or a part for each.

    SELECT a FROM p1 [p1, p2, p3, p4]       gathered: what is said once holds for all tables of ``RelationRange.leaves``
    (p1 + p2) + (p3 + p4)                   spread: + is UNION ALL, of one table each

A statement is planned gathered, so that it costs what it says and not what its table has partitions. The
engines are told of every table. The tree is then as flat as it can be: whoever walks over a chain of a
thousand goes a thousand levels deep, which meets the limit of the stack (54001), and what copies sub-trees on
its way (sqlglot's printing) takes time that grows with the square. The order of the parts stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.query import Leaf, OutputColumn, QueryExpr, RelationRange, Select, SetOp, Var
from planner.query.rewrite import replace_children


def side_by_side(columns: tuple[OutputColumn, ...], parts: Sequence[QueryExpr]) -> QueryExpr:
    """Return UNION ALL of one or more parts that name nothing around them, so that they may stand at any level."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = side_by_side(columns, parts[:half]), side_by_side(columns, parts[half:])
    return SetOp(columns=columns, op="union", all=True, left=left, right=right)


def gathered(arm: Select) -> RelationRange | None:
    """Return the range of a part that stands for many tables, None for any other query."""
    if len(arm.ranges) != 1:
        return None
    item = arm.ranges[0]
    return item if isinstance(item, RelationRange) and item.leaves else None


def of_tables(arm: Select, tables: Sequence[Leaf]) -> Select:
    """Return a part for one or more tables, of which the first stands in its range."""
    item = arm.ranges[0]
    if not isinstance(item, RelationRange):
        raise AssertionError(f"the first range is {type(item).__name__}, not a relation")
    first = tables[0]
    guard = item.guard
    if guard is not None:
        own = guard.ranges[0]
        if not isinstance(own, RelationRange):
            raise AssertionError(f"a guard asks {type(own).__name__}, not a relation")
        own = replace(own, alias=first.name, oid=first.oid, schema=first.schema, name=first.name)
        guard = replace(guard, ranges=(own, *guard.ranges[1:]))
    made = replace(
        item,
        alias=first.name,
        oid=first.oid,
        schema=first.schema,
        name=first.name,
        guard=guard,
        leaves=tuple(tables) if len(tables) > 1 else (),
    )
    return replace(arm, ranges=(made,))


def spread(tree: Any, *, guarded: bool = False) -> Any:
    """Return a tree in which every table has a part of its own, or every ``guarded`` one only; the same one
    where it has already.
    """
    if isinstance(tree, Var):
        return tree
    if isinstance(tree, Select):
        item = gathered(tree)
        if item is not None and (item.guard is not None or not guarded):
            return side_by_side(tree.columns, [of_tables(tree, (leaf,)) for leaf in item.leaves])
    return replace_children(tree, partial(spread, guarded=guarded))
