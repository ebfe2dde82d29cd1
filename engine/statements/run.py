"""A planned statement, run: one line for each thing that is asked of all of them; the rest is in the row of its class.

    past, leader ──> rights ──> begin ──> handler     (``engine.session.spec``, ``engine.statements.registry``)

``run`` answers an ``Outcome``; it commits nothing (but COMMIT) and sends nothing (but COPY data and notices).
"""

from __future__ import annotations

from typing import Any

from engine.definitions.needs.privileges import check as check_privileges
from engine.plans.planning import IN_FAILED_BLOCK
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Outcome
from engine.session.session import Session
from engine.session.transaction import time_travel
from engine.session.transaction.block_state import FAILED
from engine.statements.registry import SPECS
from planner.base.errors import SqlError
from planner.statements import DeclareCursor


async def run(session: Session, plan: Plan, params: tuple[Any, ...]) -> Outcome:
    """Run a planned statement in the session's transaction.

    Raises SqlError and txn's errors; Replan when the catalog moved under the plan.
    """
    statement = plan.bound.statement
    spec = SPECS[type(statement)]
    if session.block.state is FAILED and not spec.when_failed:
        raise SqlError("25P02", IN_FAILED_BLOCK)
    if plan.fails is not None and not isinstance(statement, DeclareCursor):
        raise plan.fails.copy()
    if spec.stands_for_another:
        return await spec.handler(session, plan, statement, params)
    as_of: time_travel.AsOfValue | None = None if spec.reads_elsewhere else plan.as_of
    if (as_of is not None or session.derived.chooses) and spec.rests:
        if session.block.txn is None:
            await time_travel.start(session, plan, as_of, params)
            if not plan.fresh(session.catalog):
                raise Replan
        elif as_of is not None:
            time_travel.check_same(session, as_of, params)
    if plan.in_transaction:
        session.block.ensure_txn().next_statement()
        session.block.renew_limits()
    if session.db.lease is not None:
        rests = spec.rests and not session.block.lags(plan)
        if not session.within:
            session.out.rests = rests
        if rests and not session.db.leading():
            await session.db.wait_leading()
    check_privileges(session, plan)
    if plan.enters:
        session.block.enter(plan.enters, plan.tables)
    waiting = spec.begin(session, plan, statement, params)
    if waiting is not None:
        await waiting
    outcome = await spec.handler(session, plan, statement, params)
    if spec.defines:
        session.ahead.close()
    return outcome
