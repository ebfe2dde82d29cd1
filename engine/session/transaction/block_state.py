"""The transaction block of one connection: a literal transition table, and what each state allows.

            BEGIN            error                COMMIT/ROLLBACK
    IDLE ──────────> BLOCK ─────────> FAILED ──────────────────────> IDLE
      │ statement                       ^  │ ROLLBACK TO
      v               error             │  v
   IMPLICIT ── (Query end / Sync) ──> IDLE  BLOCK

IMPLICIT is the transaction that a simple Query message, or everything up to Sync, is
(docs/internals/transactions.md). BEGIN inside it makes it a regular block; COMMIT inside a multi-statement
Query ends it and the next statement starts a new one, as PostgreSQL does (manual 55.2.2.1).
"""

from __future__ import annotations

import enum
from typing import Final

from pgwire.backend import TransactionStatus


class BlockState(enum.IntEnum):
    """Where a connection stands; an IntEnum because hashing one costs a tenth of hashing an Enum."""

    IDLE = 0
    IMPLICIT = 1
    BLOCK = 2
    FAILED = 3


# What statements ask for: a global is looked up in a tenth of the time that a member of an Enum takes.
IDLE: Final = BlockState.IDLE
IMPLICIT: Final = BlockState.IMPLICIT
BLOCK: Final = BlockState.BLOCK
FAILED: Final = BlockState.FAILED


class BlockEvent(enum.IntEnum):
    """What can happen to a block."""

    STATEMENT = 0  # a statement that needs a transaction starts
    BEGIN = 1
    ERROR = 2
    END = 3  # COMMIT or ROLLBACK took effect, or the implicit transaction ended
    ROLLBACK_TO = 4


STATEMENT: Final = BlockEvent.STATEMENT
END: Final = BlockEvent.END

_TABLE: dict[tuple[BlockState, BlockEvent], BlockState] = {
    (BlockState.IDLE, BlockEvent.STATEMENT): BlockState.IMPLICIT,
    (BlockState.IDLE, BlockEvent.BEGIN): BlockState.BLOCK,
    (BlockState.IDLE, BlockEvent.ERROR): BlockState.IDLE,
    (BlockState.IDLE, BlockEvent.END): BlockState.IDLE,
    (BlockState.IMPLICIT, BlockEvent.STATEMENT): BlockState.IMPLICIT,
    (BlockState.IMPLICIT, BlockEvent.BEGIN): BlockState.BLOCK,
    (BlockState.IMPLICIT, BlockEvent.ERROR): BlockState.IDLE,
    (BlockState.IMPLICIT, BlockEvent.END): BlockState.IDLE,
    (BlockState.BLOCK, BlockEvent.STATEMENT): BlockState.BLOCK,
    (BlockState.BLOCK, BlockEvent.BEGIN): BlockState.BLOCK,
    (BlockState.BLOCK, BlockEvent.ERROR): BlockState.FAILED,
    (BlockState.BLOCK, BlockEvent.END): BlockState.IDLE,
    (BlockState.BLOCK, BlockEvent.ROLLBACK_TO): BlockState.BLOCK,
    (BlockState.FAILED, BlockEvent.ERROR): BlockState.FAILED,
    (BlockState.FAILED, BlockEvent.END): BlockState.IDLE,
    (BlockState.FAILED, BlockEvent.ROLLBACK_TO): BlockState.BLOCK,
}

_STATUS: dict[BlockState, TransactionStatus] = {
    BlockState.IDLE: "I",
    BlockState.IMPLICIT: "I",
    BlockState.BLOCK: "T",
    BlockState.FAILED: "E",
}


def next_state(state: BlockState, event: BlockEvent) -> BlockState:
    """Return the state after ``event``; KeyError means the caller let an illegal statement through."""
    return _TABLE[state, event]


def status_byte(state: BlockState) -> TransactionStatus:
    """Return the byte ReadyForQuery shows for a state."""
    return _STATUS[state]
