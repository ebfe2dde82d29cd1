"""DECLARE CURSOR, FETCH, MOVE and CLOSE, and which columns results have: those of FETCH are of what it names."""

from __future__ import annotations

from functools import partial
from typing import Any

from engine.base.rows import ReadyRows, RowStream
from engine.plans.later import begun_later
from engine.plans.query import choose_route, compiled_query
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Rows
from engine.session.session import Session
from engine.session.transaction.block_state import IMPLICIT
from engine.statements.begin import start_locking
from engine.statements.query import begun
from planner import statements as st
from planner.base.errors import SqlError
from planner.query import OutputColumn


def result_columns(session: Session, plan: Plan) -> tuple[OutputColumn, ...] | None:
    """Return the columns a plan's result has; FETCH and EXECUTE take them from what they name."""
    statement = plan.bound.statement
    if isinstance(statement, st.Fetch):
        return None if statement.move else _fetched_columns(session, statement.cursor)
    if isinstance(statement, st.ExecutePrepared) and statement.into is None:
        prepared = session.connection.prepared.find(statement.name)
        if prepared is None or prepared.plan is None:
            return None
        return result_columns(session, prepared.plan)
    return plan.columns


def _fetched_columns(session: Session, name: str) -> tuple[OutputColumn, ...] | None:
    """Return the columns of a cursor or portal, which may itself be a FETCH; that there is none is for
    Execute to say.
    """
    seen: set[str] = set()
    while (portal := session.connection.portals.get(name)) is not None:
        plan = portal.plan
        if plan is None or name in seen:
            return None
        if not isinstance(plan.bound.statement, st.Fetch):
            return result_columns(session, plan)
        seen.add(name)
        name = plan.bound.statement.cursor
    cursor = session.connection.cursors.find(name)
    return None if cursor is None else cursor.columns


async def declare(
    session: Session, plan: Plan, statement: st.DeclareCursor, params: tuple[Any, ...]
) -> Outcome:
    """DECLARE CURSOR: its query begins, and locks rows, when the first one is fetched. Raises SqlError 25P01
    outside a block, 42P03.
    """
    if session.block.is_alone and not statement.hold:
        raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    if plan.fails is not None:
        raise plan.fails.copy()
    session.block.ensure_txn().next_statement()
    if plan.locking:
        await start_locking(session, plan)
        choose_route(
            session, compiled_query(plan, "query", statement.query), params
        )  # an executor that cannot lock says so here
    result = begun_later(
        statement.query.columns,
        partial(begun, session, plan, statement, params, session.block.ensure_txn()),
    )
    session.view.use(plan)
    session.connection.cursors.declare(statement, Rows(statement.query.columns, result, plan=plan))
    if statement.hold and session.block.state is IMPLICIT:
        await session.connection.cursors.materialise_held()
    return Command("DECLARE CURSOR")


async def fetch(session: Session, plan: Plan, statement: st.Fetch, params: tuple[Any, ...]) -> Outcome:
    """FETCH and MOVE. Raises SqlError 34000, 55000."""
    cursor = await session.connection.cursor_of(statement.cursor)
    many = session.connection.cursors.stream(cursor, statement)
    if many is not None:
        if statement.move:
            return Command(f"MOVE {sum([len(batch) async for batch in many])}")
        return Rows(cursor.columns, RowStream(cursor.columns, many), tag="FETCH", binary=cursor.binary)
    rows = await session.connection.cursors.fetch(cursor, statement)
    if statement.move:
        return Command(f"MOVE {len(rows)}")
    return Rows(cursor.columns, ReadyRows(cursor.columns, rows), tag="FETCH", binary=cursor.binary)


async def close(session: Session, plan: Plan, statement: st.CloseCursor, params: tuple[Any, ...]) -> Outcome:
    """CLOSE. Raises SqlError 34000."""
    session.connection.cursors.close(statement.name)
    return Command("CLOSE CURSOR ALL" if statement.name is None else "CLOSE CURSOR")
