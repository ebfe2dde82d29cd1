"""What a transaction has written row by row and not yet committed, in bytes: its session keeps it
(``engine.base.accounts.Held``).

    BEGIN   INSERT   SAVEPOINT a   UPDATE   ROLLBACK TO a   INSERT    COMMIT
              +1 kB                 +1 kB       -1 kB        +1 kB     all goes: to the hot rows, which have a share of their own

Counted once a statement has ended that others of its transaction may follow (those that leave a small row,
``FEW`` at a time); until then what it gathers is its own share. A transaction of one statement is not counted
here at all, nor are parts, which are files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly

if TYPE_CHECKING:
    from engine.base.accounts import Held
    from txn.api import Transaction
    from txn.base.types import Row

ROW_BYTES: Final = 400
"""Of a row beside its values: its intent, its locks, its places in the journal and in tables of rows."""
FEW: Final = 16
"""Statements that leave a small row at most are counted so many at a time."""
STEP_BYTES: Final = 16 << 10
"""The session is told of so many more: a few rows are not worth asking what is left."""
SLICE_ROWS: Final = 2000
"""Counted between two turns of the loop."""

Written: TypeAlias = tuple[int, int]
"""How far a transaction was counted (a handle as of a savepoint), and the bytes until then."""


class OwnRows:
    """The count of the running transaction.

    Attributes:
        written: what was counted so far.
    """

    __slots__ = ("_few", "_held", "_told", "written")

    def __init__(self, held: Held) -> None:
        """Nothing is written."""
        self._held = held
        self._few = 0  # statements since the last count
        self._told = 0  # bytes that the session keeps for them, as far as it knows
        self.written: Written = (0, 0)

    @property
    def may_wait(self) -> bool:
        """Tell whether what one more statement has left, a small row, need not be counted yet."""
        self._few += 1
        return self._few < FEW

    def count(self, txn: Transaction) -> Awaitable[None] | None:
        """Count what was written since the last time. Many rows in slices: then it has to be awaited.

        Raises SqlError 53200 where the session keeps too much by now.
        """
        self._few = 0
        place, size = self.written
        now, rows = txn.written_since(place, SLICE_ROWS)
        size += openly(_bytes_of, rows)
        self.written = (now, size)
        if size - self._told >= STEP_BYTES:
            self._tell(size)
        return self._count_slowly(txn) if now - place == SLICE_ROWS else None

    def _tell(self, size: int) -> None:
        self._held.hold("rows", size)
        self._told = size

    async def _count_slowly(self, txn: Transaction) -> None:
        more = SLICE_ROWS
        while more == SLICE_ROWS:
            await asyncio.sleep(0)
            txn.savepoint()  # raises why it has ended, if it has meanwhile
            place, size = self.written
            now, rows = txn.written_since(place, SLICE_ROWS)
            size += openly(_bytes_of, rows)
            self.written = (now, size)
            self._tell(size)
            more = now - place

    def go_back(self, written: Written) -> None:
        """What was written since has been undone."""
        self.written = written
        if self._told:
            self._tell(written[1])

    def clear(self) -> None:
        """The transaction has ended, or nothing is left of it."""
        if self.written[0]:
            self.go_back((0, 0))


def _bytes_of(rows: Sequence[Row | None]) -> int:
    return sum([ROW_BYTES if row is None else ROW_BYTES + row_bytes(row) for row in rows])
