"""pg_statistic_ext, what extended statistics depend on, and what ANALYZE has found by them
(``engine.executors.statistics.extended``).

What was found holds as long as what they are over has the types that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.base.statistics_records import ExtendedRecord
from engine.catalog.referred import with_statistics
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.pg_functions import objects_named
from engine.catalog.relations.sources import RowDict, by_oid, of_each, relation
from engine.catalog.storage.stored import PG_CLASS_OID, PG_NAMESPACE_OID, PG_STATISTIC_EXT_OID
from planner.bind.define.statistics import stored_expressions
from planner.catalog import RelationDef
from planner.catalog.mcv_lists import encoded
from planner.catalog.rights import Rights
from planner.catalog.statistics import StatisticsDef
from planner.information.statistics import shown_expressions
from planner.query import Var
from planner.query.walk import walk

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


@of_each("pg_statistic_ext", keys={"stxrelid": by_oid})
def pg_statistic_ext(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_statistic_ext of a table."""
    for one in item.statistics:
        yield {
            "oid": one.oid, "stxrelid": item.oid, "stxname": one.name, "stxnamespace": one.schema_oid, "stxowner": one.owner,
            "stxstattarget": one.target, "stxkeys": tuple(item.number(attnum) for attnum in one.attnums),
            "stxkind": tuple(one.kinds), "stxexprs": ", ".join(one.expressions) or None,
        }  # fmt: skip


@of_each("pg_depend", keys={"refobjid": with_statistics})
def pg_depend(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_depend: statistics on their schema and columns, and on what their expressions name."""
    for one in item.statistics:
        yield depends(PG_STATISTIC_EXT_OID, one.oid, PG_NAMESPACE_OID, one.schema_oid)
        columns = list(one.attnums)
        named: set[int] = set()
        for expr in stored_expressions(one, item, session.catalog):
            named |= {node.attnum for node in walk(expr) if isinstance(node, Var)}
        for attnum in (*columns, *sorted(named)):
            yield depends(
                PG_STATISTIC_EXT_OID, one.oid, PG_CLASS_OID, item.oid, "a", ref_sub=item.number(attnum)
            )
        if not columns:
            yield depends(PG_STATISTIC_EXT_OID, one.oid, PG_CLASS_OID, item.oid, "a")
        for of, oid in objects_named(session, " ".join(one.expressions)):
            yield depends(PG_STATISTIC_EXT_OID, one.oid, of, oid)


def _found(session: Reading, table: RelationDef, one: StatisticsDef) -> ExtendedRecord | None:
    """Return what ANALYZE has found by a statistics object; None where that is nothing, or of other types."""
    statistics = session.figures
    found = None if statistics is None else statistics.extended.get(one.oid)
    columns = tuple(table.column(attnum).declared.oid for attnum in one.attnums)
    return found if found is not None and found.types[: len(columns)] == columns else None


@relation("pg_statistic_ext_data", "session")
def pg_statistic_ext_data(session: Reading) -> Iterator[RowDict]:
    """Yield pg_statistic_ext_data; figures of single expressions are in pg_stats_ext_exprs alone."""
    for table, one in session.catalog.statistics().values():
        found = _found(session, table, one)
        if found is not None:
            yield {
                "stxoid": one.oid, "stxdinherit": found.inherited, "stxdndistinct": found.ndistinct,
                "stxddependencies": found.dependencies, "stxdmcv": _list_of(found),
            }  # fmt: skip


def _list_of(found: ExtendedRecord) -> str | None:
    if found.mcv is None:
        return None
    return encoded((item.values, item.frequency, item.base_frequency) for item in found.mcv)


def _names(session: Reading, table: RelationDef, one: StatisticsDef) -> RowDict:
    schema = session.catalog.schema_by_oid(one.schema_oid)
    owner = session.catalog.role_by_oid(one.owner)
    return {
        "schemaname": table.schema, "tablename": table.name,
        "statistics_schemaname": None if schema is None else schema.name, "statistics_name": one.name,
        "statistics_owner": None if owner is None else owner.name,
    }  # fmt: skip


@relation("pg_stats_ext", "session")
def pg_stats_ext(session: Reading) -> Iterator[RowDict]:
    """Yield pg_stats_ext: of statistics on tables that are one's own."""
    rights = Rights(session.rights_catalog, session.role)
    for table, one in session.catalog.statistics().values():
        found = _found(session, table, one)
        if found is None or not rights.owns(table.owner) or session.row_security_counts(table):
            continue
        items = found.mcv
        shown: RowDict = {} if items is None else {
            "most_common_vals": tuple(item.values for item in items),
            "most_common_val_nulls": tuple(tuple(value is None for value in item.values) for item in items),
            "most_common_freqs": tuple(item.frequency for item in items),
            "most_common_base_freqs": tuple(item.base_frequency for item in items),
        }  # fmt: skip
        yield {
            **_names(session, table, one), "attnames": tuple(table.column(attnum).name for attnum in one.attnums) or None,
            "exprs": tuple(shown_expressions(session, table, one)) or None, "kinds": tuple(one.kinds),
            "inherited": found.inherited, "n_distinct": found.ndistinct, "dependencies": found.dependencies, **shown,
        }  # fmt: skip


@relation("pg_stats_ext_exprs", "session")
def pg_stats_ext_exprs(session: Reading) -> Iterator[RowDict]:
    """Yield pg_stats_ext_exprs: the expressions of statistics on tables that are one's own; NULLs for what is
    not counted.
    """
    rights = Rights(session.rights_catalog, session.role)
    for table, one in session.catalog.statistics().values():
        if not rights.owns(table.owner) or session.row_security_counts(table):
            continue
        found = _found(session, table, one)
        figures = () if found is None or found.expressions is None else found.expressions
        inherited: RowDict = {} if found is None else {"inherited": found.inherited}
        for place, expr in enumerate(shown_expressions(session, table, one)):
            counted: RowDict = {}
            if place < len(figures):
                own = figures[place]
                counted = {"null_frac": own.null_share, "avg_width": own.width, "n_distinct": own.distinct}
            yield {**_names(session, table, one), "expr": expr, **inherited, **counted}
