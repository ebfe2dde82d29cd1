"""Which column of a table or view a column of a range names, for what hangs on columns (pg_depend, DROP
COLUMN, information_schema).

FROM t                         t's column
FROM v                         the view's own, not what it reads
FROM f(), unnest(g()) q(a, b)  where these give rows of table t: t's column, since DROP COLUMN would take it from them
"""

from __future__ import annotations

from typing import Any, Final

from planner.catalog import Catalog
from planner.facts import RECORD
from planner.query import Expr, FunctionRange, RelationRange, SqlCall, SubqueryRange
from planner.types.domains import base_oid

NONE: Final = (0, 0)


def column_named(item: Any, attnum: int, catalog: Catalog) -> tuple[int, int]:
    """Return the oid of the table or view and the attribute number there; zeros for a column of anything
    else, and for whole rows.
    """
    if attnum <= 0:
        return NONE
    if isinstance(item, RelationRange):
        return item.oid, attnum
    if isinstance(item, SubqueryRange):
        return NONE if item.view is None else (item.view[0], attnum)
    return _of_function(item, attnum - 1, catalog) if isinstance(item, FunctionRange) else NONE


def _of_function(item: FunctionRange, place: int, catalog: Catalog) -> tuple[int, int]:
    for function, width in zip(item.functions, item.widths, strict=True):
        if place < width:
            row = catalog.row_type(base_oid(given_type(function, catalog)))
            return (row.relation, row.columns[row.slots[place]].attnum) if row and row.relation else NONE
        place -= width
    return NONE  # the ordinality


def given_type(function: Expr, catalog: Catalog) -> int:
    """Return the oid of the type of what a function gives, also where a call of one's own says no more than record."""
    oid = function.type.oid
    if oid == RECORD and isinstance(function, SqlCall):
        made = catalog.function_by_oid(function.proc)
        oid = oid if made is None or made.outputs else made.result
    return oid
