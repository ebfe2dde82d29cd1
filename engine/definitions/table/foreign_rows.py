"""Rows of foreign tables: only the handler of a wrapper could get or change them, and no wrapper has one, so
statements that touch them say so.

SELECT * FROM ft                55000: foreign-data wrapper "w" has no handler       asked while it is planned, ahead of rights
SELECT * FROM v   (over ft)     the same, and so of a partition that is not pruned, of EXPLAIN and DECLARE CURSOR
CREATE VIEW v AS SELECT ...     nobody reads anything
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from engine.catalog.state import CatalogSnapshot
from engine.session.catalog.foreign import no_reader
from engine.session.plans.plan import Plan
from engine.session.transaction.block_state import BLOCK
from pgwire.give_way import paced_iter
from planner import statements as st
from planner.catalog import RelationDef
from planner.partitions.bounds import descendants
from planner.query import RelationRange
from planner.query.walk import walk
from planner.statements.classify import Runs, relations_written, row_of

if TYPE_CHECKING:
    from engine.session.session import Session


def refuse_foreign_rows(session: Session, plan: Plan) -> None:
    """Raise SqlError 55000 for a statement that reads or changes rows of a foreign table. COPY FROM says so
    when it has begun.
    """
    catalog = session.catalog
    statement: Any = plan.bound.statement
    if isinstance(statement, st.Truncate):
        below = [table for oid in statement.tables for table in _with_partitions(catalog, oid)]
        _refuse(catalog, (table.oid for table in below))
    elif isinstance(statement, st.Maintenance):
        if statement.what == "analyze":  # VACUUM passes by
            _refuse(catalog, statement.relations)
    elif any(_is_foreign(catalog, oid) for oid, _version in plan.bound.versions):
        if isinstance(statement, st.Explain):
            statement = statement.body.statement
        if (
            isinstance(statement, st.DeclareCursor)
            and not statement.hold
            and session.block.state is not BLOCK
        ):
            return  # which is told first
        _refuse(catalog, _touched(session, statement))


def _is_foreign(catalog: CatalogSnapshot, oid: int) -> bool:
    relation = catalog.relation_by_oid(oid)
    return relation is not None and relation.kind == "f"


def _refuse(catalog: CatalogSnapshot, oids: Iterable[int]) -> None:
    for oid in oids:
        relation = catalog.relation_by_oid(oid)
        if relation is not None and relation.kind == "f":
            raise no_reader(catalog, relation)


def _with_partitions(catalog: CatalogSnapshot, oid: int) -> list[RelationDef]:
    table = catalog.relation_by_oid(oid)
    return [] if table is None else [table, *descendants(table, catalog)]


def _is_there(session: Session, statement: st.CreateTable | st.CreateMaterializedView) -> bool:
    schema = session.temp_schema if statement.schema == "pg_temp" else statement.schema
    return session.catalog.relation(schema, statement.name) is not None


def _touched(session: Session, statement: Any) -> Iterator[int]:
    """Yield the oids of tables whose rows a statement reads or changes when it runs."""
    if isinstance(statement, st.Copy) and statement.is_from:
        return
    yield from relations_written(statement)
    runs = row_of(statement).runs
    if runs is Runs.QUERY:
        if statement.query is None or not getattr(statement, "with_data", True):
            return
        if not isinstance(statement, st.RefreshMaterializedView) and _is_there(session, statement):
            return  # which is told first
        statement = statement.query
    elif runs is Runs.NOTHING:
        return
    for node in paced_iter(walk(statement)):
        if isinstance(node, RelationRange) and not node.virtual:
            yield from node.tables
