"""CREATE, ALTER and DROP STATISTICS: extended statistics, which are kept with their table (``RelationDef.statistics``).

    schema s  <──n── statistics s.x ──a──> columns of table t ──n──> functions, types in expressions

Nothing is planned by their definition, so a change of it gives the table no new version, and waits for nobody
who writes rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.definitions.dropping.drop import table_of
from engine.definitions.named_places import refuse_temporary_move, target_schema
from engine.definitions.table.statistics_parts import drop_statistics_of, statistics_of, store_statistics
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.statistics import definition
from planner.catalog.statistics import MAX_TARGET

if TYPE_CHECKING:
    from engine.session.session import Session

Params = tuple[Any, ...]


async def create_statistics(
    session: Session, plan: Plan, statement: st.CreateStatistics, params: Params
) -> Outcome:
    """CREATE STATISTICS. Raises SqlError 42710, and as ``definition``."""
    table = table_of(session, statement.table)
    persistence = "t" if statement.schema == "pg_temp" else "p"
    _, schema_oid = await target_schema(session, statement.schema, persistence)
    if session.catalog.statistics_named(schema_oid, statement.name) is not None:
        message = f'statistics object "{statement.name}" already exists'
        if not statement.if_not_exists:
            raise SqlError("42710", message)
        session.notice(f"{message}, skipping", sqlstate="42710")
        return Command(plan.bound.tag)
    made = replace(
        definition(statement),
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid,
        owner=session.role_oid,
    )
    await session.view.change([replace(table, statistics=(*table.statistics, made))])
    return Command(plan.bound.tag)


async def alter_statistics(
    session: Session, plan: Plan, statement: st.AlterStatistics, params: Params
) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO, SET STATISTICS. Raises SqlError 42710, 3F000, 0A000, 42704."""
    table, found = statistics_of(session, statement.object)
    if statement.target is not None:
        if statement.target > MAX_TARGET:
            session.notice(
                f"lowering statistics target to {MAX_TARGET}", severity="WARNING", sqlstate="22023"
            )
        await store_statistics(session, table, replace(found, target=min(statement.target, MAX_TARGET)))
        return Command(plan.bound.tag)
    if statement.owner is not None:
        await store_statistics(session, table, replace(found, owner=named_role(session, statement.owner).oid))
        return Command(plan.bound.tag)
    schema_oid = found.schema_oid
    if statement.schema is not None:
        schema = session.catalog.schema(statement.schema)
        if statement.schema != "pg_temp" and schema is None:
            raise SqlError("3F000", f'schema "{statement.schema}" does not exist')
        if schema is not None and schema.oid == schema_oid:
            return Command(plan.bound.tag)
        refuse_temporary_move(statement.schema)
        _, schema_oid = await target_schema(session, statement.schema, "p")
    name = statement.name or found.name
    if session.catalog.statistics_named(schema_oid, name) is not None:
        holder = session.catalog.schema_by_oid(schema_oid)
        shown = "" if holder is None else holder.name
        raise SqlError("42710", f'statistics object "{name}" already exists in schema "{shown}"')
    await store_statistics(session, table, replace(found, name=name, schema_oid=schema_oid))
    return Command(plan.bound.tag)


async def drop_statistics(
    session: Session, plan: Plan, statement: st.DropStatistics, params: Params
) -> Outcome:
    """DROP STATISTICS."""
    for notice in statement.missing:
        session.notice(notice)
    for oid, _ in statement.objects:
        await drop_statistics_of(session, statistics_of(session, oid)[0], [oid])
    return Command(plan.bound.tag)
