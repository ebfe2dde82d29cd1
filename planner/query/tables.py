"""Tables as ranges of queries."""

from __future__ import annotations

from planner.catalog import RelationDef
from planner.query.blocks import RangeColumn, RelationRange


def table_range(relation: RelationDef, alias: str = "") -> RelationRange:
    """Return the range of a table with all its live columns."""
    return RelationRange(
        alias=alias or relation.name,
        columns=tuple(RangeColumn(name=c.name, type=c.declared, attnum=c.attnum) for c in relation.live),
        oid=relation.oid,
        schema=relation.schema,
        name=relation.name,
        virtual=relation.virtual,
    )
