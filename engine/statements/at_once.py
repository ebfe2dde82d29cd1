"""What a plan can do on the spot: a read by key, or a change of one row that is a transaction by itself.

    plan.at_once ──> Outcome                what it answers; of a change the commit is left
                 ──> Awaitable[Outcome]     the same, which has to wait for something first
                 ──> None                   nothing has begun: the dispatch by class has to (``engine.statements.run``)

Plans get to know theirs when they first run (``engine.plans.query``, ``engine.changes.writes``), as nothing is left to
decide then. What is awaited is awaited by ``engine.statements.retry``, which alone knows what to do about a lost race.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NoReturn

from engine.session.portal import Outcome
from engine.session.transaction.races import LOST

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan
    from engine.session.session import Session


def at_once(session: Session, plan: Plan, params: tuple[Any, ...]) -> Outcome | Awaitable[Outcome] | None:
    """Run a plan as far as it goes without a coroutine; None: it has not begun.

    Only while the server knows that it leads: the dispatch waits for that. Raises SqlError and what else is not a lost
    race; that is raised by the awaitable.
    """
    run = plan.at_once
    if run is None or not session.derived.short_ways or not session.db.leading():
        return None
    if not plan.only_reads and (session.block.txn is not None or session.db.turns.preempting):
        return None
    try:
        begun: Outcome | Awaitable[Outcome] | None = run(session, plan, params)
        return begun
    except LOST as error:
        return _lost(error)


async def _lost(error: Exception) -> NoReturn:
    """Raise ``error``, one of ``LOST``, when it is awaited."""
    try:
        raise error
    finally:
        del error  # else it and this frame would keep each other
