"""What a gist or spgist index keeps of a geometric value: from where to where it reaches on the x axis, as a
range of millionths.

    box '(3,4),(1,2)'       ->  int8range(999996, 3000005)         1 to 3, and EPSILON on both sides
    point '(NaN,1)'         ->  (,)                                beyond the limits, or no number: it may be anywhere

Two shapes of which one contains the other, or that overlap, or are the same, have ranges that overlap,
infinities and NaN aside. So an index of these ranges (``txn.values.intervals``) finds candidates for such
conditions; the condition is tested again on each. The expression is made of PostgreSQL's own functions, and
kept as any expression of an index is (``planner.bind.define.table.index``).
"""

from __future__ import annotations

from typing import Any, Final

from pgwire.codecs.domain import BOX, CIRCLE, POINT, POLYGON
from planner.bind.expression.expr import bind_kept
from planner.bind.stored import stored_context, table_scope, without_spans
from planner.catalog import Catalog, ColumnDef, IndexDef, RelationDef
from planner.conversion.casts import resolve_unknown
from planner.parse import parse_expression
from planner.query import Expr, Var
from planner.query.rewrite import replace_children
from planner.types import SqlType
from planner.types.domains import base_oid, plain_type

LIMIT: Final = "1e9"
"""What reaches farther, on either axis, is kept without bounds. Below, a double tells millionths apart."""
MARGIN: Final = 4
"""So many millionths are added on both sides: more than EPSILON."""

_ENDS: Final = {
    POINT: ("v[0]", "v[0]"),
    BOX: ("(v[1])[0]", "(v[0])[0]"),
    POLYGON: ("((pg_catalog.box(v))[1])[0]", "((pg_catalog.box(v))[0])[0]"),
    CIRCLE: (
        "(pg_catalog.center(v))[0] - pg_catalog.radius(v)",
        "(pg_catalog.center(v))[0] + pg_catalog.radius(v)",
    ),
}
_NUMBERS: Final = {
    POINT: ("v[0]", "v[1]"),
    BOX: ("(v[0])[0]", "(v[0])[1]", "(v[1])[0]", "(v[1])[1]"),
    POLYGON: tuple(f"((pg_catalog.box(v))[{corner}])[{axis}]" for corner in (0, 1) for axis in (0, 1)),
    CIRCLE: ("(pg_catalog.center(v))[0]", "(pg_catalog.center(v))[1]"),
}
_TEMPLATE: Final = (
    "CASE WHEN v IS NULL THEN NULL WHEN {within} THEN pg_catalog.int8range("
    "pg_catalog.floor(({low}) * 1e6)::pg_catalog.int8 - {margin}, "
    "pg_catalog.ceil(({high}) * 1e6)::pg_catalog.int8 + {margin}, '[]') "
    "ELSE '(,)'::pg_catalog.int8range END"
)
_made: dict[int, Expr] = {}


def has_extents(type_oid: int) -> bool:
    """Tell whether an index of extents can be over a type: point, box, polygon, circle."""
    return base_oid(type_oid) in _ENDS


def keeps_extents(index: IndexDef, type_oid: int) -> bool:
    """Tell whether an index keeps the extents of a key of a type."""
    return index.method in ("gist", "spgist") and not index.constraint_oid and has_extents(type_oid)


def extent(value: Expr, catalog: Catalog) -> Expr:
    """Return the expression of the range that a geometric expression's value reaches over; NULL for NULL."""
    oid = plain_type(value.type).oid
    found = _made.get(oid)
    if found is None:
        found = _made[oid] = _bound(oid, catalog)
    made: Expr = _with_value(found, value)
    return made


def _bound(oid: int, catalog: Catalog) -> Expr:
    low, high = _ENDS[oid]
    within = " AND ".join(f"{number} BETWEEN -{LIMIT} AND {LIMIT}" for number in _NUMBERS[oid])
    if oid == CIRCLE:
        within += f" AND pg_catalog.radius(v) BETWEEN 0 AND {LIMIT}"
    sql = _TEMPLATE.format(within=within, low=low, high=high, margin=MARGIN)
    column = ColumnDef(attnum=1, name="v", type=SqlType(oid))
    table = RelationDef(oid=0, schema_oid=0, schema="", name="", kind="r", columns=(column,))
    context = stored_context(catalog, sql)
    expr: Expr = without_spans(bind_kept(table_scope(context, table), parse_expression(sql), "INDEX"))
    return resolve_unknown(expr, context.env)


def _with_value(expr: Any, value: Expr) -> Any:
    if isinstance(expr, Var):
        return value
    return replace_children(expr, lambda child: _with_value(child, value))
