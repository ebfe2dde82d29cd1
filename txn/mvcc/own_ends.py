"""A part some of whose rows a transaction has ended in bulk, as that transaction sees it
(``txn.transaction.bulk_ends``).

    PartState   rows 0 1 2 3 4 5 6 7     ends so far:  3
    OwnEnds          0 . 2 . . 5 6 7     and ended here, not yet committed:  1 4     one bit per row

It stands in for the part wherever the transaction looks (``View.parts``): nobody else sees these ends. The table is
locked X and its generation pinned, so the part below stays as it is until the transaction has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.records import EndedRows
from txn.base.types import RowId
from txn.mvcc.parts import AT_ONCE, Hiding, PartState, sorted_positions

_BEFORE_ALL: Final = 1  # what the transaction has ended it does not see at any timestamp


class Ended(NamedTuple):
    """What a statement has ended of one part.

    ``mask``: an Arrow boolean array over its positions, without offset; ``rows``: how many; ``record``: what is logged.
    """

    mask: Any
    rows: int
    record: EndedRows


class OwnEnds(PartState):
    """See the module. Not for upkeep: nothing is noted in it."""

    __slots__ = ("_base", "_bits", "_mask")

    def __init__(self, base: PartState, mask: Any) -> None:
        """``mask``: an Arrow boolean array over the positions of ``base``: what has ended. No offset, no NULLs."""
        self.file = base.file
        self.ref = base.ref
        self._base = base
        self._mask = mask
        self._bits = memoryview(mask.buffers()[1])
        # The very arrays that grow with ``base``.
        self._positions = base._positions
        self._timestamps = base._timestamps

    def _ended_here(self, position: int) -> int:
        return self._bits[position >> 3] >> (position & 7) & 1

    def end(self, position: int, ts: int) -> None:
        """Refuse: ends are noted in the part itself."""
        raise AssertionError(f"row {position} of {self.ref.name} is ended in a transaction's view of it")

    def end_of(self, position: int) -> int:
        """Return when a row ended, 0 if it has not."""
        return _BEFORE_ALL if self._ended_here(position) else self._base.end_of(position)

    def visible(self, position: int, ts: int) -> bool:
        """Tell whether the transaction sees the row at ``ts``."""
        return not self._ended_here(position) and self._base.visible(position, ts)

    def find(self, row_id: RowId, ts: int) -> int | None:
        """Return the position of the row's version that the transaction sees at ``ts``, or None."""
        position = self._base.find(row_id, ts)
        return None if position is None or self._ended_here(position) else position

    @property
    def ended(self) -> int:
        """How many rows have ended."""
        return self._base.ended + int(self._mask.true_count)

    def hiding(self, ts: int, extra: Sequence[int] = (), begins: Any = None) -> OwnHiding:
        """Return what computes the positions that the transaction does not see at ``ts``."""
        return OwnHiding(self._base.hiding(ts, extra, begins), self._mask)


class OwnHiding(Hiding):
    """``Hiding``, and what the transaction has ended itself."""

    __slots__ = ("_base", "_mask")

    def __init__(self, base: Hiding, mask: Any) -> None:
        """``mask``: an Arrow boolean array over all positions."""
        self._base = base
        self._mask = mask
        self.large = base.large or len(mask) > AT_ONCE

    def __call__(self) -> Any:
        """Return the sorted Arrow int64 array of positions."""
        mine = pc.indices_nonzero(self._mask).cast(pa.int64())
        others = self._base()
        return mine if others is None else sorted_positions([others, mine], len(self._mask))
