"""A part as the memory half sees it: an open file, the ends of its rows, and what each reader sees of it.

A part's row is a version like any other: it begins at its ``s_begin`` and ends when its end is noted here
(memory, manifest, log); unlike a hot version it is found by sidecar and never moves.

Ends grow in number with updates and deletes until a compaction writes the part anew. Few are kept in a dict; once
a sixteenth of the rows has ended, 8 bytes a row in an array are less than that, and stay so.

A *history part* holds only versions that have ended: what a flush found superseded, but still readable by somebody.
It lives as long as that, is named by a manifest only for durable holds (else nothing before a manifest is readable
after a restart), and never changes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.records import EndedRows
from txn.base.slices import at_once
from txn.base.types import IndexId, Key, KeyRange, PartRef, RowId
from txn.base.writers import Writers
from txn.values.columns import int64_values

if TYPE_CHECKING:
    from txn.persist.parts.part import Part

_ARRAY_SHARE: Final = 16
_ARRAY_ROWS: Final = 1024  # smaller parts keep a dict
_SPARSE: Final = 64
"""Rows of a part for each position from which on positions are sorted."""
_SLICE_ROWS: Final = 1 << 17
"""Rows that end between two turns of the event loop, a multiple of eight."""
_MOVED: Final = 10_000
"""Ends that are moved to the array between two turns."""
AT_ONCE: Final = 16_384
"""Positions that are sorted on the event loop: about a millisecond."""


class PartState:
    """An open part of one generation, with the ends known so far.

    Ends arrive in timestamp order; ``_positions``/``_timestamps`` keep that order, so what a reader at ``ts``
    does not see is a prefix. ``committed`` False: a bulk load's part before its commit.
    """

    __slots__ = ("_end_of", "_ends", "_positions", "_sorted", "_timestamps", "file", "ref")

    _end_of: Callable[[int], int | None]
    _ends: dict[int, int] | array[int]
    _sorted: tuple[int, Any] | None
    """The positions of the first so many ends, sorted."""

    def __init__(self, file: Part, ref: PartRef, ends: Iterable[tuple[int, int]] = ()) -> None:
        """``ends``: (position, end timestamp) pairs in any order."""
        self.file = file
        self.ref = ref
        self._ends = {}
        self._end_of = self._ends.get
        self._positions: array[int] = array("q")
        self._timestamps: array[int] = array("q")
        self._sorted = None
        for position, ts in sorted(ends, key=lambda e: e[1]):
            self.end(position, ts)

    def lookup(self, index: IndexId, key: Key) -> Sequence[int]:
        """Return the positions under a full key; here NULL equals NULL."""
        if None in key:
            return [position for _key, position in self.file.range(index, KeyRange(prefix=key))]
        return self.file.lookup(index, key)

    def entries_between(
        self, index: IndexId, wanted: KeyRange, *, reverse: bool = False
    ) -> Iterator[tuple[Key, int]]:
        """Yield (key, position) within a range, ended rows included; none for a prefix with NULL."""
        if None in wanted.prefix:
            return iter(())
        return self.file.entries(index, wanted, reverse=reverse)

    @property
    def writers(self) -> Writers | None:
        """The told transactions that made rows of it; None: none of them, or it was loaded."""
        return self.file.writers

    def begin(self, position: int) -> int:
        """Begin timestamp of a row."""
        ref = self.ref
        if ref.min_begin == ref.max_begin:
            return ref.min_begin
        return self.file.begin(position)

    def end(self, position: int, ts: int) -> None:
        """Note a row's end. Idempotent; the first end counts (C27)."""
        if self._end_of(position):
            return
        ends = self._ends
        ends[position] = ts
        self._positions.append(position)
        self._timestamps.append(ts)
        if type(ends) is dict and len(ends) * _ARRAY_SHARE > self.ref.rows and self.ref.rows > _ARRAY_ROWS:
            self._ends = dense = self._dense()
            self._end_of = dense.__getitem__

    def _dense(self) -> array[int]:
        """Return the end of every row, 0 for none."""
        return at_once(self._dense_slowly())

    def _dense_slowly(self) -> Generator[None, None, array[int]]:
        ends = self._ends
        if not isinstance(ends, dict):
            return ends
        dense = array("q")
        for start in range(0, self.ref.rows, _SLICE_ROWS):
            dense.frombytes(bytes(8 * min(_SLICE_ROWS, self.ref.rows - start)))
            yield
        for number, (at, end) in enumerate(ends.items()):
            dense[at] = end
            if not number % _MOVED:
                yield
        return dense

    def end_rows(self, mask: Any, ts: int) -> bool:
        """As ``end_rows_slowly``, in one go."""
        return at_once(self.end_rows_slowly(mask, ts))

    def end_rows_slowly(self, mask: Any, ts: int) -> Generator[None, None, bool]:
        """Note that the rows of an Arrow boolean array over all positions end at ``ts``, about a
        millisecond's work between two yields.

        Idempotent; ``ts`` is at or above all ends so far, and no others come meanwhile. Returns False, and
        nothing is noted, where one had ended before. Readers are not to know of ``ts`` before it is done.
        """
        if self.last_end < ts and mask.true_count > _ARRAY_ROWS:
            return (yield from self._end_many(mask, ts))
        positions = int64_values(pc.indices_nonzero(mask).cast(pa.int64()))
        if self.last_end >= ts:  # replayed over a manifest that has some of them (C27)
            for position in positions:
                self.end(position, ts)
            return True
        if any(map(self._end_of, positions)):
            return False
        for position in positions:
            self.end(position, ts)
        return True

    def _end_many(self, mask: Any, ts: int) -> Generator[None, None, bool]:
        dense = yield from self._dense_slowly()
        view = memoryview(dense)
        none, end = pa.scalar(0, pa.int64()), pa.scalar(ts, pa.int64())
        slices = [(start, mask.slice(start, _SLICE_ROWS)) for start in range(0, len(dense), _SLICE_ROWS)]
        for start, ending in slices:
            now = _shown(view[start : start + len(ending)])
            if pc.any(pc.not_equal(now.filter(ending), none)).as_py():
                return False
            yield
        for start, ending in slices:
            part = view[start : start + len(ending)]
            part[:] = memoryview(int64_values(pc.if_else(ending, end, _shown(part))))
            positions = pc.add(pc.indices_nonzero(ending).cast(pa.int64()), start)
            self._positions += int64_values(positions)
            self._timestamps += array("q", [ts]) * len(positions)
            yield
        self._ends = dense
        self._end_of = dense.__getitem__
        return True

    def end_of(self, position: int) -> int:
        """Return when a row ended, 0 if it has not."""
        return self._end_of(position) or 0

    def ends_between(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the ``start``-th to the ``stop``-th (position, end) pair, in order of their timestamps."""
        positions, timestamps = self._positions, self._timestamps
        for i in range(start, stop):
            yield positions[i], timestamps[i]

    def capture_ends(self, ts: int) -> tuple[array[int], array[int]]:
        """Return the positions that ended at or before ``ts`` and their ends: arrays of their own, parallel."""
        count = bisect_right(self._timestamps, ts)
        return self._positions[:count], self._timestamps[:count]

    def visible(self, position: int, ts: int) -> bool:
        """Tell whether a reader at ``ts`` sees the row."""
        end = self._end_of(position)
        if end and end <= ts:
            return False
        return ts >= self.ref.max_begin or self.begin(position) <= ts

    def find(self, row_id: RowId, ts: int) -> int | None:
        """Return the position of the row's version that a reader at ``ts`` sees, or None."""
        for position in self.file.positions(row_id):
            if self.visible(position, ts):
                return position
        return None

    def needs_begins(self, ts: int) -> bool:
        """Tell whether ``hidden`` needs the begins for a reader at ``ts``."""
        return ts < self.ref.max_begin

    def ended_before(self, ts: int) -> Any:
        """Return the positions that ended at or before ``ts`` as an Arrow array, or None."""
        count = bisect_right(self._timestamps, ts)
        return _int64(self._positions[:count]) if count else None

    def ended_between(self, lo: int, hi: int) -> Sequence[int]:
        """Return the positions that ended above ``lo`` and at or before ``hi``, in that order."""
        return self._positions[bisect_right(self._timestamps, lo) : bisect_right(self._timestamps, hi)]

    @property
    def ended(self) -> int:
        """How many rows have ended."""
        return len(self._positions)

    def count_ended(self, ts: int) -> int:
        """Return how many rows ended at or before ``ts``: what a compaction may leave out."""
        return bisect_right(self._timestamps, ts)

    @property
    def last_end(self) -> int:
        """The newest end, 0 if there is none."""
        return self._timestamps[-1] if self._timestamps else 0

    def hidden(self, ts: int, extra: Sequence[int] = (), begins: Any = None) -> Any:
        """Return the sorted Arrow int64 array of positions a reader at ``ts`` does not see, or None.

        ``extra``: positions the reader's own intents replace. ``begins``: the part's ``s_begin`` column,
        needed when ``ts`` is below ``ref.max_begin`` (``needs_begins``). Takes milliseconds per 100,000 ends:
        ``hiding`` tells where a thread is to do it.
        """
        return self.hiding(ts, extra, begins)()

    def hiding(self, ts: int, extra: Sequence[int] = (), begins: Any = None) -> Hiding:
        """Return what ``hidden`` computes, of the ends that there are now."""
        return Hiding(self, bisect_right(self._timestamps, ts), ts, extra, begins)


class Hiding:
    """The positions of a part that a reader does not see, to be computed: in any thread, whatever ends meanwhile.

    few ends      their positions, sorted                       kept for the next reader, who has some more
    many          a bit for each row of the part, by its end    linear in the rows
    """

    __slots__ = ("_begins", "_count", "_ends", "_extra", "_known", "_part", "_ts", "large")

    def __init__(self, part: PartState, count: int, ts: int, extra: Sequence[int], begins: Any) -> None:
        """``count``: how many of the part's ends, in their order, are at or before ``ts``."""
        known = part._sorted
        self._part = part
        self._known = None if known is None or known[0] > count else known
        self._count = count
        self._ts = ts
        self._extra = extra
        self._begins = begins if ts < part.ref.max_begin else None
        self._ends = part._ends if type(part._ends) is array else None
        done = 0 if self._known is None else self._known[0]
        others = len(extra) + (part.ref.rows if self._begins is not None else 0)
        self.large = count - done + others + (done if others or done < count else 0) > AT_ONCE
        """Whether it takes milliseconds."""

    def __call__(self) -> Any:
        """Return what ``PartState.hidden`` does."""
        count, part, known = self._count, self._part, self._known
        ended = None
        if known is not None and known[0] == count:
            ended = known[1]
        elif count:
            ended = self._by_row() if self.large else self._few()
            if part._sorted is None or part._sorted[0] < count:
                part._sorted = (count, ended)
        pieces = [] if ended is None else [ended]
        if self._begins is not None:
            later = pc.greater(self._begins, pa.scalar(self._ts, pa.int64()))
            pieces.append(pc.indices_nonzero(later).cast(pa.int64()))
        if self._extra:
            pieces.append(pa.array(sorted(self._extra), pa.int64()))
        if not pieces:
            return None
        if len(pieces) == 1:
            return pieces[0] if len(pieces[0]) else None
        return sorted_positions(pieces, part.ref.rows)

    def _few(self) -> Any:
        """Return the positions of all ends: those that are known, and some that have come since."""
        done, pieces = (0, []) if self._known is None else (self._known[0], [self._known[1]])
        pieces.append(_int64(self._part._positions[done : self._count]))
        return sorted_positions(pieces, self._part.ref.rows)

    def _by_row(self) -> Any:
        if self._ends is None:
            return self._few()
        ends = pa.Array.from_buffers(pa.int64(), len(self._ends), [None, pa.py_buffer(self._ends)])
        there = pc.greater(ends, pa.scalar(0, pa.int64()))
        there = pc.and_(there, pc.less_equal(ends, pa.scalar(self._ts, pa.int64())))
        return pc.indices_nonzero(there).cast(pa.int64())


def mask_of(record: EndedRows, rows: int) -> Any:
    """Return the Arrow boolean array of ended rows over a part of ``rows`` rows."""
    bits = pa.decompress(record.rows, (rows + 7) // 8, "zstd")
    return pa.Array.from_buffers(pa.bool_(), rows, [None, bits])


def _shown(values: memoryview) -> Any:
    """Return some of an array as Arrow's, which sees what it becomes."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _int64(values: array[int]) -> Any:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values.tobytes())])


def sorted_positions(pieces: list[Any], rows: int) -> Any:
    """Concatenate and sort positions of a part of ``rows`` rows, without duplicates (a row may be ended and
    begun after ``ts``).
    """
    whole = pa.concat_arrays(pieces)
    if len(whole) > AT_ONCE and len(whole) > rows // _SPARSE:  # a look at every row is less than to sort them
        marks = pc.scatter(pa.repeat(pa.scalar(True), len(whole)), whole, max_index=rows - 1)
        return pc.indices_nonzero(pc.fill_null(marks, False)).cast(pa.int64())
    if len(pieces) > 1:
        whole = whole.unique()
    return whole.take(pc.array_sort_indices(whole)) if len(whole) > 1 else whole
