"""CALL and DO, and EXECUTE of a prepared statement: what has others run."""

from __future__ import annotations

from typing import Any

from engine.base.rows import ReadyRows
from engine.changes.writes.returning import make_env
from engine.definitions.named_places import exists_already
from engine.definitions.needs.privileges import check as check_privileges
from engine.executors.index.state import value_of
from engine.plans.query import context
from engine.programs.plpgsql.routine import run_do
from engine.programs.routines.of_session import routines_of
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Rows
from engine.session.session import Session
from planner import statements as st
from planner.evaluate import compile_row


async def call(session: Session, plan: Plan, statement: st.Call, params: tuple[Any, ...]) -> Outcome:
    """CALL."""
    atomic = not session.system.routines.may_end
    ctx = context(session, plan, params)
    if plan.dml is None:
        plan.dml = compile_row(statement.call.args)
    args = await value_of(plan.dml, (), make_env(ctx))
    columns, rows = await routines_of(session).rows(statement.call, args, atomic=atomic)
    _done(session, plan)
    if not statement.call.outputs:
        return Command("CALL")
    row = rows[0] if rows else (None,) * len(columns)
    return Rows(statement.call.outputs, ReadyRows(statement.call.outputs, [row]), tag="CALL", final_tag=True)


async def do(session: Session, plan: Plan, statement: st.Do, params: tuple[Any, ...]) -> Outcome:
    """DO."""
    routines = session.system.routines
    alone, atomic = not routines.stack, not routines.may_end
    await run_do(session, statement.source, statement.source_at, alone=alone, atomic=atomic)
    _done(session, plan)
    return Command("DO")


def _done(session: Session, plan: Plan) -> None:
    """A procedure has run: what it did not end itself is part of the transaction."""
    if session.block.txn is None:
        session.block.endings = 0
    session.view.use(plan)


async def execute(
    session: Session, plan: Plan, statement: st.ExecutePrepared, params: tuple[Any, ...]
) -> Outcome:
    """EXECUTE. Raises SqlError 26000, 42P07 for the table of CREATE TABLE AS, and what the statement raises."""
    if plan.bound.functions:  # which its arguments call
        check_privileges(session, plan)
    made = statement.into
    if made is not None:
        schema = session.temp_schema if statement.schema == "pg_temp" else statement.schema
        if exists_already(session, schema, made.relation.name, made.if_not_exists):
            return Command(plan.bound.tag)
    inner, values = session.connection.prepared.to_execute(plan, statement, params)
    return await session.db.ports.run_statement(session, inner, values)
