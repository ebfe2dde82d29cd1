"""Keys that two rows of parts share, found over whole columns of their sidecars, in bounded memory.

    sidecars   [1 3 5 | 9 12]  [2 4 | 8 10 12]     sorted, mapped
                      ▼ cut at the same keys
    windows     1 3 5 2 4        9 12 8 10 12      at most WINDOW_KEYS: joined, sorted if need be, neighbours compared

    long keys 5f3a… 77c0…  where they lie, mapped       no window: one digest of each in memory

Equal keys are in the same window, so one window at a time suffices. Parts whose ranges of keys do not meet,
as a load that was divided by ranges writes them, join in order already. Works for every kind of key: their
bytes are equal when the values are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.huge_values import views_of
from txn.base.types import Key, ShardIndex
from txn.persist.parts.sidecar import SortedKeys

WINDOW_KEYS: Final = 4 << 20
"""Keys compared at a time: about 100 MB of integers while they are sorted."""
WINDOW_BYTES: Final = 48 << 20
"""Of the keys compared at a time, about, where they are long: they are there twice while they are sorted."""
LONG_BYTES: Final = 16 << 10
"""Keys of so many bytes on average are compared by digests, which are made where the keys lie."""

_PIECE: Final = 1 << 20
_HEAD: Final = 1 << 10


def first_duplicate(
    runs: Sequence[Run],
    definition: ShardIndex,
    window_keys: int = WINDOW_KEYS,
    stopped: Callable[[], bool] = lambda: False,
) -> Key | None:
    """Return the lowest key of an index that two rows have, or None. Runs in a thread.

    Keys that several rows may have do not count (``ShardIndex.exempt``). ``stopped()`` is asked now and then
    and ends the search.
    """
    total = sum(len(run.sorted.keys) for run in runs)
    if total and sum(run.sorted.keys.nbytes for run in runs) // total >= LONG_BYTES:
        return _first_long(runs, definition, stopped)
    ordered = sorted(runs, key=Run.first)
    for window in _windows(ordered, window_keys):
        if stopped():
            return None
        for key in _repeated(window):
            values = ordered[0].sorted.decode(key)
            if not definition.exempt(values):
                return values
    # NULLs of integers are not among the keys
    if not definition.exempt((None,)) and sum(run.nulls() for run in ordered) > 1:
        return (None,)
    return None


def _first_long(runs: Sequence[Run], definition: ShardIndex, stopped: Callable[[], bool]) -> Key | None:
    """As ``first_duplicate``, of keys that are long: none of them is copied but those that are there twice."""
    seen: set[bytes] = set()
    lowest: memoryview | None = None
    repeated: Key | None = None
    for run in runs:
        for key in run.each():
            if stopped():
                return None
            digest = _digest(key, stopped)
            if digest is None:
                return None
            if digest not in seen:
                seen.add(digest)
            elif lowest is None or _before(key, lowest):
                values = run.sorted.decode(key)
                if not definition.exempt(values):
                    lowest, repeated = key, values
        run.sorted.forget()
    return repeated


def _digest(key: memoryview, stopped: Callable[[], bool]) -> bytes | None:
    """Return a digest of a key; None if it is not wanted any more."""
    made = sha256()
    for at in range(0, len(key), _PIECE):
        if stopped():
            return None
        made.update(key[at : at + _PIECE])  # without the interpreter
    return made.digest()


def _before(one: memoryview, other: memoryview) -> bool:
    """Tell whether a key comes before another; a piece of each is copied at a time."""
    for at in range(0, min(len(one), len(other)), _PIECE):
        a, b = bytes(one[at : at + _PIECE]), bytes(other[at : at + _PIECE])
        if a != b:
            return a < b
    return len(one) < len(other)


def ranges_meet(one: SortedKeys, other: SortedKeys) -> bool:
    """Return whether the ranges of two parts' keys have anything in common; NULLs of integers count as such."""
    if not len(one.keys) or not len(other.keys):
        return False
    return _low_enough(one.keys, other.keys) and _low_enough(other.keys, one.keys)


def _low_enough(keys: Any, others: Any) -> bool:
    """Tell whether the first one of some keys is not above the last one of others: Arrow compares them where
    they lie, and an item (``keys[0]``) would be a copy.
    """
    return bool(pc.less_equal(keys.slice(0, 1), others.slice(len(others) - 1, 1))[0].as_py())


class Run:
    """The sorted keys of one part, without those of rows that do not count."""

    def __init__(self, keys: SortedKeys, ended: Any = None, replaced: Sequence[int] = ()) -> None:
        """``ended`` (an Arrow int64 array, or None) and ``replaced``: positions that do not count."""
        self.sorted = keys
        self._dead = ended
        if replaced:
            extra = pa.array(replaced, pa.int64())
            self._dead = extra if ended is None else pa.concat_arrays([ended, extra])

    def first(self) -> tuple[bool, Any]:
        """Return what to order runs by; of a key of bytes its beginning, by which most are told apart."""
        keys = self.sorted.keys
        if not len(keys):
            return (True, 0)
        if self.sorted.is_int:
            return (False, keys[0].as_py())
        return (False, bytes((next(views_of(keys.slice(0, 1))) or b"")[:_HEAD]))

    def live(self, start: int, stop: int) -> Any:
        """Return the keys of slots ``start .. stop - 1`` that count."""
        keys = self.sorted.keys.slice(start, stop - start)
        if self._dead is None:
            return keys
        return keys.filter(pc.invert(pc.is_in(self._positions(start, stop), value_set=self._dead)))

    def each(self) -> Iterator[memoryview]:
        """Yield the keys that count, in order, as views of where they lie; for keys of bytes."""
        dead = frozenset(() if self._dead is None else self._dead.to_pylist())
        for key, position in zip(views_of(self.sorted.keys), self.sorted.positions, strict=True):
            place = position if isinstance(position, int) else position.as_py()
            if key is not None and place not in dead:
                yield key

    def nulls(self) -> int:
        """Return how many rows that count have no key (of integers)."""
        start, stop = len(self.sorted.keys), len(self.sorted.positions)
        if self._dead is None:
            return stop - start
        dead = pc.is_in(self._positions(start, stop), value_set=self._dead)
        return stop - start - (pc.sum(dead).as_py() or 0)

    def _positions(self, start: int, stop: int) -> Any:
        positions = self.sorted.positions
        if isinstance(positions, range):
            return pa.array(positions[start:stop], pa.int64())
        return positions.slice(start, stop - start).cast(pa.int64())


def _windows(runs: Sequence[Run], limit: int) -> Iterator[Any]:
    """Yield the keys of one range of keys after another, sorted; about ``limit`` each at most, and ``WINDOW_BYTES``."""
    total = sum(len(run.sorted.keys) for run in runs)
    if not total:
        return
    average = sum(run.sorted.keys.nbytes for run in runs) // total
    limit = min(limit, WINDOW_BYTES // max(average, 1))
    cuts = None
    if total > limit:
        # Every step-th key of each run: between two of all samples together lie at most step keys of each run.
        step = max(limit // (2 * len(runs)), 1)
        samples = [run.sorted.keys.take(_every(step, len(run.sorted.keys))) for run in runs]
        whole = pa.concat_arrays(samples)
        whole = whole.take(pc.array_sort_indices(whole))
        cuts = whole.take(_every(len(runs), len(whole))).unique()
    before = [0] * len(runs)
    for number in range(0 if cuts is None else len(cuts)):
        ends = [_below(run.sorted.keys, cuts, number) for run in runs]
        yield _joined([run.live(a, b) for run, a, b in zip(runs, before, ends, strict=True) if b > a])
        before = ends
    ends = [len(run.sorted.keys) for run in runs]
    yield _joined([run.live(a, b) for run, a, b in zip(runs, before, ends, strict=True) if b > a])


def _below(keys: Any, cuts: Any, number: int) -> int:
    """Return how many keys lie below a cut."""
    return int(pc.search_sorted(keys, cuts.slice(number, 1), side="left")[0].as_py())


def _every(step: int, count: int) -> Any:
    return pa.array(range(0, count, step), pa.int64())


def _joined(pieces: list[Any]) -> Any:
    if not pieces:
        return None
    keys = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    if len(pieces) > 1 and not _rises(keys):
        keys = keys.take(pc.array_sort_indices(keys))
    return keys


def _rises(keys: Any) -> bool:
    if len(keys) < 2:
        return True
    return bool(pc.all(pc.less_equal(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py())


def _repeated(keys: Any) -> Iterator[Any]:
    """Yield the keys that occur more than once in a sorted array, in order."""
    if keys is None or len(keys) < 2:
        return
    following = keys.slice(1)
    same = pc.equal(keys.slice(0, len(keys) - 1), following)
    if pc.any(same).as_py():
        found = following.filter(same)
        yield from found.to_pylist() if pa.types.is_integer(found.type) else views_of(found)
