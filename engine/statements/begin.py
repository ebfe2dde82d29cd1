"""What is done behind the rights and before a statement's handler: its locks, and how its transaction goes on.

    begin_query        FOR UPDATE and functions that write lock; where a block writes, what is read stays as planned
    begin_copy         as a query, but for COPY of what changes rows
    begin_routine      CALL, DO: what they call may write
    begin_reading      DECLARE, EXPLAIN: tables stay as they were planned for
    begin_definition   indexes are built ahead, the catalog is locked, rights are asked again under its locks
    by_handler         its handler takes what locks it needs

What returns None has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any

from engine.changes.writes.dml import tables_to_lock
from engine.definitions.needs.privileges import check as check_privileges
from engine.definitions.table.index_ahead import build_ahead
from engine.plans.query import compiled_query, context, prepare_source
from engine.session.plans.plan import Plan
from engine.session.session import Session
from engine.session.transaction.races import to_lock
from engine.statements.lock_table import waiting
from pgwire.give_way import openly
from planner import statements as st
from planner.base.errors import SqlError
from txn.base.types import ShardId

Params = tuple[Any, ...]


def begin_query(
    session: Session, plan: Plan, statement: st.QueryStatement, _params: Params
) -> Awaitable[None] | None:
    """Begin a query."""
    if plan.locking:
        return start_locking(session, plan)
    if plan.bound.changes:
        return _start_changing(session, plan, statement)
    if tables := to_lock(session, plan):
        return session.view.start_write(plan, tables, tables)
    return session.view.start_read(plan) if plan.tables else None


def begin_copy(session: Session, plan: Plan, statement: st.Copy, _params: Params) -> Awaitable[None] | None:
    """Begin COPY; of what changes rows that takes the locks itself."""
    if statement.change is not None:
        return None
    if plan.locking:
        return start_locking(session, plan)
    return session.view.start_read(plan) if plan.tables else None


def begin_routine(
    session: Session, plan: Plan, statement: st.Call | st.Do, _params: Params
) -> Awaitable[None] | None:
    """Begin CALL or DO."""
    return _start_changing(session, plan, statement) if plan.bound.changes else None


def begin_reading(
    session: Session, plan: Plan, _statement: st.Statement, _params: Params
) -> Awaitable[None] | None:
    """Begin what holds a query: its tables stay as they were planned for."""
    return session.view.start_read(plan) if plan.tables else None


async def begin_definition(session: Session, plan: Plan, _statement: st.Statement, params: Params) -> None:
    """Begin a definition: it locks what it is about in the catalog, under which plan and rights are checked again.

    Raises SqlError 25006 in a READ ONLY transaction, and what building of indexes raises; Replan.
    """
    await build_ahead(session, plan, partial(context, session, plan, params))
    await session.view.start_ddl(plan)
    openly(check_privileges, session, plan)


def by_handler(_session: Session, _plan: Plan, _statement: st.Statement, _params: Params) -> None:
    """Begin what takes its locks itself, where its handler has found out which, or needs none."""
    return


async def start_locking(session: Session, plan: Plan) -> None:
    """Make the transaction a writing one: FOR UPDATE and its kin read, and lock, the latest state.

    Raises 25006 in a READ ONLY transaction.
    """
    txn = session.block.ensure_txn()
    if txn.read_only and not session.view.may_write(txn, plan.tables):
        raise SqlError("25006", f"cannot execute {plan.locking} in a read-only transaction")
    with waiting(session, not plan.nowait):
        await session.view.start_write(plan, plan.tables if txn.read_only else ())


async def _start_changing(
    session: Session, plan: Plan, statement: st.QueryStatement | st.Call | st.Do
) -> None:
    """Make the transaction a writing one where functions may write: what the statement reads is the latest state.

    In a READ ONLY transaction the first statement that writes is refused.
    """
    if session.block.ensure_txn().read_only:
        await session.view.start_read(plan)
        return
    scans: list[ShardId] = []
    if isinstance(statement, st.QueryStatement) and plan.bound.reads:
        prepare_source(session, compiled_query(plan, "query", statement.query))
        scans = tables_to_lock(session, plan, "query")
    await session.view.start_write(plan, (), scans)
