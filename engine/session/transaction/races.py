"""Statements of a block that scan without locks (U4): how one that lost a race runs again, and when it locks instead.

    the block's first statement     runs again with its transaction
    a later one, while it runs      is undone, and runs again within the transaction   (a row it waited for has changed)
    answered already                the block fails with 40001 at its next statement or COMMIT

A connection whose blocks have failed so ``MAX_LOST_BLOCKS`` times, or in deadlocks through what was only
read, and none committed since, locks the tables that its blocks' UPDATE, DELETE and INSERT … SELECT scan,
those that their SELECTs read otherwise than by key, and those by which it has lost, for ``PATIENT_BLOCKS``
blocks that write and commit. Whoever wants to change these waits for it meanwhile, the queue for locks is
fair, and of a deadlock others give up: so it gets through. SELECTs lock as if the table was to be changed:
two such blocks that read it and then write to it queue, where each would wait for the other to give up its
shared lock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.base.executor import RowsChanged
from engine.session.plans.plan import Replan
from engine.session.transaction.block_state import BLOCK
from engine.session.transaction.timing import Mark
from txn.base.errors import Cause, Deadlock, SchemaChanged, WriteConflict
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan
    from engine.session.session import Session
    from engine.session.transaction.block import Block

LOST: Final = (Replan, RowsChanged, WriteConflict, Deadlock, SchemaChanged)
"""After which a statement may run again (``engine.statements.retry``, the only place that does so)."""
MAX_LOST_BLOCKS: Final = 3
PATIENT_BLOCKS: Final = 8
"""What made blocks lose is mostly still so after one that got through: at once back to racing, its connection
would lose again."""
_BY_READING: Final = frozenset((Cause.DEADLOCK_READS, Cause.DEADLOCK_RANGES, Cause.DEADLOCK_TABLES))


class StatementPoint(NamedTuple):
    """Where a statement of a running transaction began: of the transaction, and of its deferred checks."""

    handle: int
    timing: Mark


def may_race(session: Session) -> bool:
    """Tell whether a statement of a block may leave the tables it scans unlocked."""
    return session.block.state is BLOCK and session.block.lost_blocks < MAX_LOST_BLOCKS


def to_lock(session: Session, plan: Plan) -> Sequence[ShardId]:
    """Return the tables that a SELECT of a block is to lock, as the block would only lose again: of one that
    reads by key those it has lost by.
    """
    block = session.block
    if block.lost_blocks < MAX_LOST_BLOCKS or block.state is not BLOCK or not plan.tables:
        return ()
    tables = plan.tables if plan.quick is None else [t for t in plan.tables if t in block.lost_tables]
    return () if not tables or block.ensure_txn().read_only else tables


def is_contended(session: Session, plan: Plan) -> bool:
    """Tell whether ``to_lock`` may have something to say of a SELECT that reads by key."""
    block = session.block
    return block.lost_blocks >= MAX_LOST_BLOCKS and not block.lost_tables.isdisjoint(plan.tables)


def note_loss(session: Session, error: BaseException) -> None:
    """A transaction fails with ``error``: count blocks of which something they had read was changed, or about to be."""
    if session.block.state is BLOCK and (
        isinstance(error, WriteConflict) or (isinstance(error, Deadlock) and error.cause in _BY_READING)
    ):
        block = session.block
        lost = block.lost_blocks + 1
        block.lost_blocks = lost if lost < MAX_LOST_BLOCKS else MAX_LOST_BLOCKS + PATIENT_BLOCKS - 1
        if isinstance(error, WriteConflict):
            block.lost_tables.add(error.shard)
        else:
            block.lost_tables.update(wait.target.shard for wait in error.waits)


def note_gain(block: Block) -> None:
    """A block that wrote has committed after some were lost."""
    if block.lost_blocks > MAX_LOST_BLOCKS:
        block.lost_blocks -= 1
    else:
        block.lost_blocks = 0
        block.lost_tables.clear()


def note_rerun(session: Session, error: BaseException) -> None:
    """A statement is run again by the server because of ``error``."""
    session.space.losses.note(error, session.clock_time_us(), retried=True)


def statement_point(session: Session) -> StatementPoint | None:
    """Return where ``undo_statement`` goes back to, None before there is a transaction."""
    txn = session.block.txn
    return None if txn is None else StatementPoint(txn.begin_statement(), session.timing.mark())


async def undo_statement(session: Session, point: StatementPoint) -> bool:
    """Undo the running statement, which lost a race, for it to run again; False if its transaction must end.

    Raises WriteConflict if an earlier statement of the transaction has lost one, too.
    """
    txn = session.block.txn
    try:
        if txn is None:
            return False
        undone = txn.undo_statement(point.handle)
        if not (await undone if isinstance(undone, Awaitable) else undone):
            return False
    except WriteConflict as error:
        note_loss(session, error)
        raise
    session.timing.go_back(point.timing)
    return True
