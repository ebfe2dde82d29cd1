"""A query as a statement, and its begin where its rows are fetched one after the other."""

from __future__ import annotations

from functools import partial
from typing import Any

from engine.base.executor import Result, RowsChanged
from engine.base.limits import MAX_RERUNS, rows_keep_changing
from engine.base.rows import ReadyRows, RowStream, Wanted
from engine.plans.later import begun_later
from engine.plans.query import collect, context, run_locking, run_query
from engine.plans.verify import run_twice
from engine.session.plans.plan import Plan
from engine.session.portal import Outcome, Rows
from engine.session.session import Session
from planner import statements as st
from txn.api import Transaction


async def query(
    session: Session, plan: Plan, statement: st.QueryStatement, params: tuple[Any, ...]
) -> Outcome:
    """Run a query. Raises what executors raise."""
    result: ReadyRows | RowStream
    if statement.fetched:
        session.view.use(plan)
        result = begun_later(
            statement.query.columns,
            partial(begun, session, plan, statement, params, session.block.ensure_txn()),
        )
        return Rows(plan.columns or statement.query.columns, result)
    ctx = context(session, plan, params)
    if session.derived.verifies:
        result = await run_twice(session, plan, statement.query, ctx)
    else:
        if statement.query.in_turn == "asked":
            ctx.wanted = Wanted()
        result = await run_query(session, plan, "query", statement.query, ctx)
    if (plan.locking or plan.bound.calls) and statement.query.in_turn != "asked":
        # all rows are locked, and all functions called, before the first one is sent: until then the
        # statement can run again
        result = ReadyRows(statement.query.columns, await collect(session, result))
    session.view.use(plan)
    # what the client was told of them: executors know no arrays of domains
    return Rows(plan.columns or statement.query.columns, result)


async def begun(
    session: Session,
    plan: Plan,
    statement: st.QueryStatement | st.DeclareCursor,
    params: tuple[Any, ...],
    txn: Transaction,
    wanted: Wanted,
) -> Result:
    """Begin the query of a cursor or loop, whose first row is asked for; where it locks rows all of them are
    locked then.

    ``txn``: in which it was opened; a block that reads several timelines may be in another by now.
    """
    reruns = 0
    while True:
        ctx = context(session, plan, params)
        ctx.txn, ctx.wanted = txn, wanted
        try:
            if not plan.locking:
                return await run_query(session, plan, "query", statement.query, ctx)
            result = await run_locking(session, plan, statement.query, ctx)
            return ReadyRows(statement.query.columns, await collect(session, result))
        except RowsChanged:
            reruns += 1
            if reruns > MAX_RERUNS:
                raise rows_keep_changing() from None
