"""Statements of a block that scan without locks (U4): how one that lost a race runs again, and when it locks instead.

    the block's first statement     runs again with its transaction
    a later one, while it runs      is undone, and runs again within the transaction   (a row it waited for has changed)
    answered already                the block fails with 40001 at its next statement or COMMIT

A connection whose blocks have failed so ``MAX_LOST_BLOCKS`` times, and none committed since, locks the tables that its
blocks' UPDATE, DELETE and INSERT … SELECT scan, and those that their SELECTs read otherwise than by key, until a block of it
that writes commits. Whoever wants to change these waits for it meanwhile, and the queue for locks is fair: so it gets through.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.constraints.timing import Mark
from engine.transaction.block_state import BLOCK
from txn.errors import WriteConflict

if TYPE_CHECKING:
    from engine.connection.session import Session
    from engine.reads.plans import Plan

MAX_LOST_BLOCKS: Final = 3


class StatementPoint(NamedTuple):
    """Where a statement of a running transaction began: of the transaction, and of its deferred checks."""

    handle: int
    timing: Mark


def may_race(session: Session) -> bool:
    """Tell whether a statement of a block may leave the tables it scans unlocked."""
    return session.block.state is BLOCK and session.block.lost_blocks < MAX_LOST_BLOCKS


def must_lock(session: Session, plan: Plan) -> bool:
    """Tell whether a SELECT of a block is to lock the tables it reads, as the block would only lose again."""
    block = session.block
    return (
        block.lost_blocks >= MAX_LOST_BLOCKS
        and block.state is BLOCK
        and bool(plan.tables)
        and plan.quick is None
        and not block.ensure_txn().read_only
    )


def note_loss(session: Session, error: BaseException) -> None:
    """A transaction fails with ``error``: count blocks of which something they had read was changed."""
    if session.block.state is BLOCK and isinstance(error, WriteConflict):
        session.block.lost_blocks += 1


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
