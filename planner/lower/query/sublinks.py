"""Sub-selects as expressions: EXISTS, scalar, IN, op ANY, op ALL, row comparisons.

``x = ANY (q)`` with one plain column is the engine's IN. Everything else is written with EXISTS:

    truth   EXISTS (SELECT 1 FROM q WHERE test)
    value   CASE WHEN EXISTS (... WHERE test) THEN TRUE WHEN EXISTS (... WHERE test IS NULL) THEN NULL ELSE FALSE END
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner import facts as f
from planner import query as q
from planner.base.errors import not_supported
from planner.lower.kit import build as b
from planner.lower.kit import numeric
from planner.lower.kit.build import Node
from planner.lower.kit.correlations import is_equality
from planner.lower.kit.value import Val
from planner.query.walk import walk
from planner.types import SqlType
from planner.types.facts import element_of

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext

BOOL = SqlType(f.BOOL)


def lower_sublink(lw: LoweringContext, expr: q.SubLink, *, truth: bool = False) -> Val:
    """Return the value of a sub-select.

    Args:
        lw: the lowering.
        expr: the sub-select.
        truth: only TRUE matters (a WHERE condition), so FALSE may stand for NULL.
    """
    match expr.kind:
        case q.SubLinkKind.EXISTS:
            return Val(b.exists(lw.query(expr.query).node), BOOL)
        case q.SubLinkKind.SCALAR:
            return _scalar(lw, expr)
        case q.SubLinkKind.ANY:
            return Val(_any(lw, expr, truth), BOOL)
        case q.SubLinkKind.ALL:
            return Val(_all(lw, expr), BOOL)
        case q.SubLinkKind.ARRAY:
            return _array(lw, expr)
        case _:
            raise not_supported("a row compared with a sub-select in this executor", span=expr.span)


def _scalar(lw: LoweringContext, expr: q.SubLink) -> Val:
    result, depends = lw.correlated(expr.query)
    column = result.columns[0]
    node = b.scalar(result.node, one_row=_one_row(expr.query), correlated=depends)
    return Val(node, expr.type, column.num, padded=column.padded)


def _one_row(query: q.QueryExpr) -> bool:
    """Return whether a query certainly yields exactly one row: an aggregate of everything."""
    return (
        isinstance(query, q.Select)
        and query.grouped
        and not (query.group or query.grouping_sets)
        and query.having is None
        and query.limit is None
        and query.offset is None
        and not any(isinstance(n, q.FuncExpr) and n.returns_set for n in walk(query))
    )


def _array(lw: LoweringContext, expr: q.SubLink) -> Val:
    if lw.d.name != "duckdb":
        raise not_supported("ARRAY(SELECT ...) in this executor", span=expr.span)
    if element_of(expr.query.columns[0].type.oid):
        raise not_supported("an array of arrays in this executor", span=expr.span)
    result = lw.query(expr.query)
    column = result.columns[0]
    label = lw.d.fresh("r")
    value = Val(b.col(label, column.name), column.type, column.num)
    node = value.node if column.num is None else numeric.to_floating(lw.d, value)
    inner = b.select([b.fn("array_agg", node)], source=b.derived(result.node, label))
    empty = b.cast(b.array(), lw.d.engine_type(expr.type))
    return Val(b.fn("coalesce", b.scalar(inner), empty), expr.type)


def _tests(lw: LoweringContext, expr: q.SubLink, label: str, columns: list[Val]) -> Node:
    """Return the comparison of ``lefts`` with a row of the sub-select."""
    from planner.lower.query import expr as expressions  # in which sub-selects stand

    rights: list[Val] = []
    for position, column in enumerate(columns):
        if position < len(expr.casts):
            with lw.placeholder_row(columns):
                rights.append(expressions.lower(lw, expr.casts[position]))
        else:
            rights.append(column)
    lefts = [expressions.lower(lw, left) for left in expr.lefts]
    pairs = list(zip(lefts, rights, strict=True))
    if expr.row_kind:
        return expressions.row_comparison(lw.d, expr.row_kind[0], expr.row_kind.endswith("="), pairs)
    terms = [
        expressions.call(lw, proc, [left, right], BOOL).node
        for proc, (left, right) in zip(expr.procs, pairs, strict=True)
    ]
    return b.or_(*terms) if expr.join_or else b.and_(*terms)


def _any(lw: LoweringContext, expr: q.SubLink, truth: bool) -> Node:
    from planner.lower.query import expr as expressions  # in which sub-selects stand

    result = lw.query(expr.query)
    label = lw.d.fresh("r")
    columns = result.values(label)
    # Spark's IN answers FALSE for NULL where it is not itself a condition.
    if is_equality(expr) and (truth or lw.d.name == "duckdb"):
        with lw.placeholder_row(columns):
            right = expressions.lower(lw, expr.casts[0]) if expr.casts else columns[0]
        left_key, right_key = expressions.equality_keys(lw.d, expressions.lower(lw, expr.lefts[0]), right)
        if right_key is columns[0].node:
            return b.in_query(left_key, result.node)
        return b.in_query(left_key, b.select([right_key], source=b.derived(result.node, label)))
    test = _tests(lw, expr, label, columns)
    source = b.derived(result.node, label)
    found = b.exists(b.select([b.integer(1)], source=source, where=test))
    if truth:
        return found
    unknown = b.exists(b.select([b.integer(1)], source=source, where=b.is_null(test)))
    return b.case(
        [(found, b.boolean(True)), (unknown, b.cast(b.null(), lw.d.types["bool"]))], b.boolean(False)
    )


def _all(lw: LoweringContext, expr: q.SubLink) -> Node:
    result = lw.query(expr.query)
    label = lw.d.fresh("r")
    test = _tests(lw, expr, label, result.values(label))
    source = b.derived(result.node, label)
    refuted = b.exists(b.select([b.integer(1)], source=source, where=b.not_(test)))
    unknown = b.exists(b.select([b.integer(1)], source=source, where=b.is_null(test)))
    return b.case(
        [(refuted, b.boolean(False)), (unknown, b.cast(b.null(), lw.d.types["bool"]))], b.boolean(True)
    )
