"""One statement, run until it has an outcome: bound again when the catalog moved, run again when it lost a race.

    Replan                                      its plan no longer fits the catalog           bind again
    RowsChanged                                 rows to be locked have changed since read     run again, locks kept
    WriteConflict, Deadlock, SchemaChanged      its transaction lost                          run again, as far as possible

How much can be run again depends on what the transaction holds besides
(``engine.session.transaction.races``); a client sees 40001 or 40P01 only where the answer to an earlier
statement may have become wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from engine.base.executor import RowsChanged
from engine.base.limits import (
    AUTOCOMMIT_RETRIES,
    MAX_REPLANS,
    MAX_RERUNS,
    definitions_keep_changing,
    rows_keep_changing,
)
from engine.base.rows import ReadyRows
from engine.definitions.table.unbuilt import leave_behind
from engine.plans.planning import CachedText
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome, Prepared, Rows
from engine.session.transaction.alone import refuse_in_block
from engine.session.transaction.block_state import IDLE
from engine.session.transaction.races import may_race, note_loss, note_rerun, statement_point, undo_statement
from engine.statements import run
from engine.statements.output import check_rows, encoder_of
from pgwire.backend import Responder
from planner.parse import Parsed
from planner.statements import StatementClass
from txn.base.errors import Deadlock, SchemaChanged, WriteConflict

if TYPE_CHECKING:
    from engine.plans.planning import Planning

OPTIMISTIC_TRIES = 3  # then a statement's scans lock their tables (U4)
RETRY_PAUSE_S = 0.02
"""Before the second try, on average; it doubles with each try up to ``LONGEST_RETRY_PAUSE_S``."""
LONGEST_RETRY_PAUSE_S = 0.3
_WAITING_POLICIES = ("detect", "timeout")  # who runs again waits in the queue, so it need not wait before


async def run_with_retries(
    planning: Planning,
    plan: Plan,
    params: tuple[Any, ...],
    out: Responder,
    source: Prepared | Parsed | CachedText,
    *,
    whole: bool,
    formats: tuple[int, ...] = (),
    begun: Awaitable[Outcome] | None = None,
    alone: bool = False,
) -> tuple[Outcome, Plan]:
    """Run a plan; bind again when the catalog moved; retry serialization failures and deadlocks.

    A retry is possible only while not a byte was sent for the statement (docs/internals/transactions.md; N8,
    Q13): with its transaction, where that holds nothing else (a statement by itself, the first one of a
    block), else within it, where nothing but the statement's own scans was overtaken. Under policies that
    refuse to wait it comes after a pause, twice as long each time. ``whole``: nothing else will join the
    statement, so that one whose scans were not locked may commit here, where a lost race can still be run
    again. ``formats``: of the rows that are answered, since none of them may turn out behind the commit to be
    more than can be sent. ``begun``: its first try (``at_once``), and whether it began its transaction,
    ``alone``.
    """
    session = planning.session
    block = session.block
    session.running = plan
    if begun is None:
        statements = session.db.statements
        if statements.taken > statements.limit and not session.account.taken and not plan.control:
            await statements.room()
        alone = block.txn is None and block.state is IDLE
        if not plan.retryable:
            refuse_in_block(session, plan)
    again_from_start = alone or (begun is None and block.is_untouched)
    by_itself = alone and whole
    # A commit before the answer is written would be too early where the client's encoding may lack a character of it.
    committed_here = by_itself and (plan.columns is None or session.output_settings.encoding == "UTF8")
    hopeful = plan.retryable and (committed_here or may_race(session))
    noting = begun is None and plan.retryable and not again_from_start
    undo = statement_point(session) if noting else None
    retries = replans = reruns = 0
    try:
        while True:
            block.optimistic = hopeful and retries < OPTIMISTIC_TRIES
            try:
                if begun is None:
                    outcome = await run.run(session, plan, params)
                else:
                    first, begun = begun, None
                    outcome = await first
                    out.rests = session.db.lease is not None
                if (
                    out.rests and not session.db.leading()
                ):  # it has waited: a cancel ends this, but not what is kept back (pgwire)
                    await session.db.wait_leading()
                # also one whose own scans locked their tables: what its functions read is watched
                if committed_here and plan.retryable and block.watching and _is_complete(outcome):
                    if isinstance(outcome, Rows) and isinstance(outcome.result, ReadyRows):
                        await check_rows(
                            outcome.result.rows, encoder_of(plan, outcome.columns, formats, session), session
                        )
                    await block.commit()
                txn = block.txn
                if not by_itself and txn is not None and txn.writing:
                    if plan.leaves_little and block.own_rows.may_wait:
                        return outcome, plan
                    counting = block.own_rows.count(txn)
                    if counting is not None:
                        await counting
                return outcome, plan
            except Replan:
                replans += 1
                if replans > MAX_REPLANS:
                    raise definitions_keep_changing() from None
                plan, again = planning.plan_again(source)
                params = params if again is None else again
            except RowsChanged:
                reruns += 1
                made_something = plan.bound.class_ is StatementClass.DDL  # CREATE TABLE AS
                if reruns > MAX_RERUNS or made_something:
                    raise rows_keep_changing() from None
            except (WriteConflict, Deadlock, SchemaChanged) as error:
                if retries >= AUTOCOMMIT_RETRIES or not plan.retryable or block.endings:
                    note_loss(session, error)
                    raise
                if not again_from_start:
                    if (
                        not isinstance(error, WriteConflict)
                        or undo is None
                        or not await undo_statement(session, undo)
                    ):
                        note_loss(session, error)
                        raise
                    retries += 1
                    note_rerun(session, error)
                    continue
                if session.db.config.deadlock_policy not in _WAITING_POLICIES:
                    pause = min(RETRY_PAUSE_S * 2**retries, LONGEST_RETRY_PAUSE_S)
                    await asyncio.sleep(pause * (0.5 + session.db.random()))
                retries += 1
                note_rerun(session, error)
                if alone:
                    block.restart()
                else:
                    block.restart_block()
                if not plan.fresh(session.catalog):
                    plan, again = planning.plan_again(source)
                    params = params if again is None else again
    except BaseException:
        if session.ahead.left:
            block.restart_block()  # it has locked what is left behind now
            await leave_behind(session)
        raise


def _is_complete(outcome: Outcome) -> bool:
    """Tell whether all that a statement answers is there, so that its transaction may end."""
    return isinstance(outcome, Command) or isinstance(outcome.result, ReadyRows)
