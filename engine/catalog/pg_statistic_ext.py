"""pg_statistic_ext, what extended statistics depend on, and pg_stats_ext_exprs.

Nothing is counted by them, so pg_statistic_ext_data and pg_stats_ext have no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.dependency_rows import depends
from engine.catalog.pg_functions import objects_named
from engine.catalog.referred import with_statistics
from engine.catalog.stored import PG_CLASS_OID, PG_NAMESPACE_OID, PG_STATISTIC_EXT_OID
from engine.catalog.virtual import RowDict, by_oid, of_each, relation
from planner.bind.statistics import stored_expressions
from planner.builtins.system_statistics import shown_expressions
from planner.catalog import RelationDef
from planner.query import Var
from planner.rights import Rights
from planner.walk import walk

if TYPE_CHECKING:
    from engine.connection.session import Session


@of_each("pg_statistic_ext", keys={"stxrelid": by_oid})
def pg_statistic_ext(session: Session, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_statistic_ext of a table."""
    for one in item.statistics:
        yield {
            "oid": one.oid, "stxrelid": item.oid, "stxname": one.name, "stxnamespace": one.schema_oid, "stxowner": one.owner,
            "stxstattarget": one.target, "stxkeys": tuple(item.number(attnum) for attnum in one.attnums),
            "stxkind": tuple(one.kinds), "stxexprs": ", ".join(one.expressions) or None,
        }  # fmt: skip


@of_each("pg_depend", keys={"refobjid": with_statistics})
def pg_depend(session: Session, item: RelationDef) -> Iterator[RowDict]:
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


@relation("pg_stats_ext_exprs", "session")
def pg_stats_ext_exprs(session: Session) -> Iterator[RowDict]:
    """Yield pg_stats_ext_exprs: the expressions of statistics on tables that are one's own; nothing is counted of them."""
    rights = Rights(session.rights_catalog, session.role)
    for table, one in session.catalog.statistics().values():
        schema = session.catalog.schema_by_oid(one.schema_oid)
        owner = session.catalog.role_by_oid(one.owner)
        if not rights.owns(table.owner) or session.row_security_counts(table):
            continue
        for expr in shown_expressions(session, table, one):
            yield {
                "schemaname": table.schema, "tablename": table.name,
                "statistics_schemaname": None if schema is None else schema.name, "statistics_name": one.name,
                "statistics_owner": None if owner is None else owner.name, "expr": expr,
            }  # fmt: skip
