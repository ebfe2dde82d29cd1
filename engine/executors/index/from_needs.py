"""What planning FROM reads off the query: the ranges below an item, the columns that anybody needs,
conditions that hash joins can use.

Pure questions about the tree; ``engine.executors.index.from_plan`` asks them and decides.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import replace

from engine.catalog.relations.sources import keyed_columns
from engine.executors.expressions import has_sublink, is_volatile, ranges_used, returns_set
from planner.conversion.row_parts import can_equate
from planner.facts import FLOAT4, FLOAT8, INT2, INT4, INT8, NAME, OID, REGPROC, TEXT, VARCHAR, facts
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    BoolExpr,
    Const,
    DecomposeRow,
    Expr,
    FromItem,
    OpExpr,
    QueryBase,
    QueryExpr,
    RangeColumn,
    RangeRef,
    Select,
    Var,
)
from planner.query.walk import children, placed

_VARS = frozenset((Var,))
_FAMILIES = (frozenset((INT2, INT4, INT8)), frozenset((FLOAT4, FLOAT8)), frozenset((TEXT, VARCHAR, NAME)))


def needed_columns(query: Select) -> dict[int, set[int]]:
    """Return the attnums used of each range, in the query itself and in sub-selects below it."""
    out: dict[int, set[int]] = {i: set() for i in range(len(query.ranges))}
    for var, depth in placed(query, _VARS):
        if var.level == depth and var.range >= 0:
            out[var.range].add(var.attnum)
    return out


def ranges_of(item: FromItem) -> set[int]:
    """Return the ranges below a FROM item."""
    if isinstance(item, RangeRef):
        return {item.range}
    return ranges_of(item.left) | ranges_of(item.right)


def hash_keys(conjunct: Expr, left: AbstractSet[int], right: AbstractSet[int]) -> tuple[Expr, Expr] | None:
    """Return (left key, right key) if ``conjunct`` equates the two sides by a hashable equality."""
    if not isinstance(conjunct, OpExpr) or len(conjunct.args) != 2:
        return None
    operator = facts().operators.get(conjunct.op)
    if operator is None or not operator.can_hash or operator.name != "=":
        return None
    a, b = conjunct.args
    if a.type.oid != b.type.oid and not any(a.type.oid in f and b.type.oid in f for f in _FAMILIES):
        return None
    if is_volatile(conjunct) or not _all_equated(a) or not _all_equated(b):
        return None
    used_a, used_b = ranges_used(a), ranges_used(b)
    if not used_a or not used_b:
        return None
    if used_a <= left and used_b <= right:
        return a, b
    if used_b <= left and used_a <= right:
        return b, a
    return None


def _all_equated(key: Expr) -> bool:
    """Tell whether values of a key can be compared whatever is in them; where PostgreSQL finds that they
    cannot, it hashes and sorts none.
    """
    whole = key.arg if isinstance(key, DecomposeRow) else key
    return can_equate(whole.type.oid)


_WIDE = ("namespace", "owner", "_schema", "_catalog", "schemaname")


def catalog_rank(oid: int, column: RangeColumn) -> int:
    """Return how many rows of a catalog relation a value of a column is likely to mean; the lowest: few."""
    is_oid, is_name = column.type.oid in (OID, REGPROC), column.type.oid in (TEXT, NAME, VARCHAR)
    if column.attnum in keyed_columns(oid) or column.name == "oid":
        return 0 if is_oid else 1
    if not (is_oid or is_name):
        return 5
    return 4 if column.name.endswith(_WIDE) else 2 if is_oid else 3


def implied_by_or(conjunct: Expr, number: int) -> Expr | None:
    """Return what an OR over several ranges says about the rows of range ``number`` alone, None for nothing.

    (t.kind = 'r' AND n.name <> 'x') OR (t.kind = 'v' AND n.name <> 'y') leaves rows of t with one of the two kinds.
    """
    if not isinstance(conjunct, BoolExpr) or conjunct.kind != "or" or ranges_used(conjunct) == {number}:
        return None
    arms: list[Expr] = []
    for arm in conjunct.args:
        if isinstance(arm, Const) and arm.value is not True:
            continue
        own = [
            c
            for c in conjuncts_of(arm)
            if ranges_used(c) == {number} and not is_volatile(c) and not has_sublink(c)
        ]
        if not own:
            return None
        arms.append(own[0] if len(own) == 1 else BoolExpr(type=conjunct.type, kind="and", args=tuple(own)))
    if not arms:
        return None
    return arms[0] if len(arms) == 1 else BoolExpr(type=conjunct.type, kind="or", args=tuple(arms))


def columns_named(node: object, number: int, depth: int = 0) -> set[int]:
    """Return the columns of a range that an expression names, be it from within its sub-selects."""
    if isinstance(node, Var):
        return {node.attnum} if node.level == depth and node.range == number else set()
    inside = depth + isinstance(node, QueryBase)
    return {attnum for child in children(node) for attnum in columns_named(child, number, inside)}


def without_unused(query: QueryExpr, needed: Collection[int]) -> QueryExpr:
    """Return a sub-select of FROM whose columns that nobody reads compute no sub-selects, as in PostgreSQL.

    ``needed``: attnums of its columns, 0 for all.
    """
    if not isinstance(query, Select) or query.distinct or 0 in needed:
        return query
    keys = {key.target for key in query.order}
    targets = tuple(
        replace(target, expr=Const(type=target.expr.type, value=None))
        if position + 1 not in needed
        and not target.junk
        and position not in keys
        and has_sublink(target.expr)
        and not is_volatile(target.expr)
        and not returns_set(target.expr)
        else target
        for position, target in enumerate(query.targets)
    )
    return replace(query, targets=targets)
