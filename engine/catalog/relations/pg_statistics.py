"""pg_statistic and pg_stats: what ANALYZE, or the server by itself, has counted in tables' columns
(``engine.executors.statistics``).

A column whose type has changed since has no row. Of most common values, histograms and correlations nothing
is known: they are NULL, and all of pg_statistic's slots are empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.physical import physical_type
from engine.catalog.relations.sources import RowDict, relation
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.base.statistics_records import ColumnRecord
    from engine.catalog.reading import Reading


def _columns(session: Reading) -> Iterator[tuple[RelationDef, ColumnDef, ColumnRecord]]:
    statistics = session.figures
    records = {} if statistics is None else statistics.records
    for oid in sorted(records):
        item = session.catalog.relation_by_oid(oid)
        for column in item.live if item is not None else ():
            found = records[oid].columns.get(column.attnum)
            if found is not None and item is not None and found.kind == physical_type(column.type).kind:
                yield item, column, found


@relation("pg_statistic", "session")
def pg_statistic(session: Reading) -> Iterator[RowDict]:
    """Yield pg_statistic."""
    for item, column, found in _columns(session):
        yield {
            "starelid": item.oid, "staattnum": column.attnum, "stanullfrac": found.null_share, "stawidth": found.width,
            "stadistinct": found.distinct,
        }  # fmt: skip


@relation("pg_stats", "session")
def pg_stats(session: Reading) -> Iterator[RowDict]:
    """Yield pg_stats: of columns that the user may read, in all rows."""
    rights = Rights(session.rights_catalog, session.role)
    for item, column, found in _columns(session):
        if (
            rights.column(item, column.attnum, "r")
            and not session.withholds(item, column.attnum)
            and not session.row_security_counts(item)
        ):
            yield {
                "schemaname": item.schema, "tablename": item.name, "attname": column.name, "inherited": False,
                "null_frac": found.null_share, "avg_width": found.width, "n_distinct": found.distinct,
            }  # fmt: skip
