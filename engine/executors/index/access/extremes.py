"""max(c) and min(c) answered from one end of an index, as PostgreSQL does.

    SELECT max(b), min(id) FROM t WHERE a = $1       indexes (a, b) and (id)
      SELECT (SELECT b  FROM t WHERE a = $1 AND b >= <least value> ORDER BY b DESC LIMIT 1),
             (SELECT id FROM t WHERE a = $1 ORDER BY id LIMIT 1)

Only where every aggregate of the query is of this kind and has an index that gives its rows in order and
serves all conditions: then each sub-select reads one row. The bound keeps NULLs out, which descending reads
meet first; a column that may be NULL and whose type has no least value stays with the aggregate (of min, the
first row is NULL only if all are).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from engine.executors.expressions import has_sublink, is_volatile
from engine.executors.index.access.ordered import ordered_access
from pgwire.codecs.registry import text_input
from planner.catalog import Catalog
from planner.facts import BOOL, DATE, INT2, INT4, INT8, TEXT, TIMESTAMP, TIMESTAMPTZ, facts
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    Aggregate,
    BoolExpr,
    Const,
    Expr,
    OpExpr,
    OutputColumn,
    RangeRef,
    RelationRange,
    Select,
    SortKey,
    SubLink,
    SubLinkKind,
    Target,
    Var,
)
from planner.query.exprs import aggregate_name, free_levels
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.types import SqlType

_LEAST: Final = {
    INT2: "-32768", INT4: "-2147483648", INT8: "-9223372036854775808", TEXT: "", DATE: "-infinity",
    TIMESTAMP: "-infinity", TIMESTAMPTZ: "-infinity",
}  # fmt: skip
_ONE: Final = Const(type=SqlType(INT8), value=1)


def from_index_ends(query: Select, catalog: Catalog) -> Select | None:
    """Return the query with sub-selects for its aggregates, or None where not all of them can be answered so."""
    if not query.grouped or query.group or query.grouping_sets is not None or query.having is not None:
        return None
    if query.windows or query.distinct or query.order or len(query.ranges) != 1:
        return None
    item = query.ranges[0]
    if (
        query.from_ != (RangeRef(range=0),)
        or not isinstance(item, RelationRange)
        or item.virtual
        or item.guard is not None
        or item.sample is not None
    ):
        return None
    where = query.where
    if where is not None and (has_sublink(where) or is_volatile(where) or set(free_levels(where)[0]) - {0}):
        return None
    relation = catalog.relation_by_oid(item.oid)
    if relation is None or any(isinstance(n, SubLink) for t in query.targets for n in walk(t.expr)):
        return None
    not_null = frozenset(column.attnum for column in relation.columns if column.not_null)
    made: dict[Aggregate, SubLink] = {}
    for node in (n for t in query.targets for n in walk(t.expr)):
        if not isinstance(node, Aggregate) or node in made:
            continue
        link = _end_of_index(node, query, catalog, not_null)
        if link is None:
            return None
        made[node] = link
    targets = tuple(replace(target, expr=_put(made, target.expr)) for target in query.targets)
    return replace(query, targets=targets, ranges=(), from_=(), where=None, grouped=False)


def _put(made: Mapping[Aggregate, SubLink], node: object) -> Any:
    """Return a node with what was made for each aggregate in its place."""
    return made[node] if isinstance(node, Aggregate) else replace_children(node, partial(_put, made))


def _end_of_index(
    call: Aggregate, query: Select, catalog: Catalog, not_null: frozenset[int]
) -> SubLink | None:
    name = aggregate_name(call)
    plain = not (
        call.own is not None
        or call.star
        or call.order
        or call.direct
        or call.filter is not None
        or call.level
    )
    if name not in ("max", "min") or not plain or len(call.args) != 1:
        return None
    arg = call.args[0]
    if not isinstance(arg, Var) or arg.level or arg.attnum <= 0 or arg.type.oid != call.type.oid:
        return None
    where = query.where
    descending = name == "max"
    if descending and arg.attnum not in not_null:
        bound = _not_below_all(arg)
        if bound is None:
            return None
        where = bound if where is None else BoolExpr(type=SqlType(BOOL), kind="and", args=(where, bound))
    inner = Select(
        columns=(OutputColumn(name=name, type=call.type),),
        targets=(Target(expr=arg, name=name),),
        ranges=query.ranges,
        from_=query.from_,
        where=where,
        order=(SortKey(target=0, descending=descending, nulls_first=descending),),
        limit=_ONE,
    )
    if ordered_access(inner, catalog, conjuncts_of(where)) is None:
        return None
    return SubLink(type=call.type, kind=SubLinkKind.SCALAR, query=inner, span=call.span)


def _not_below_all(column: Var) -> Expr | None:
    """Return a condition that all values of a column meet and NULL does not."""
    oid = column.type.oid
    least = _LEAST.get(oid)
    operator = next((op for op in facts().operators_by_name[">="] if (op.left, op.right) == (oid, oid)), None)
    if least is None or operator is None:
        return None
    value = Const(type=SqlType(oid), value=text_input(oid, least))
    return OpExpr(type=SqlType(BOOL), op=operator.oid, proc=operator.proc, args=(column, value))
