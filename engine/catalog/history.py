"""What the catalog was at earlier timestamps, as far back as reads go.

    changes   40 ──────── 70 ──────── 90          undo at 70: {key: the object before, None if there was none}
    at(75)  = the current items, with the undo of 90 applied

A change of the catalog keeps only what it replaced, so that history costs what it changed. Snapshots of the
past are made when somebody reads there; a few are kept. What they keep is weighed behind them
(``engine.catalog.history_size``), and has a bound in memory together with what tables were
(``txn.log.history_limit``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final

from engine.catalog.history_size import AT_ONCE, kept_bytes
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import Stored, StoredKey
from planner.catalog import RelationDef
from txn.base.errors import ReadBelowSince
from txn.base.slices import Slice
from txn.base.types import Timestamp

KEPT_SNAPSHOTS = 4
TOGETHER: Final = 64 << 10
"""Bytes of changes that count as one, so that there are few to look at."""
FORGOTTEN: Final = 256
"""Changes that are forgotten at once, at most: what they kept is freed then."""

_Undo = Mapping[StoredKey, Stored | None]


class CatalogHistory:
    """The changes of one database's catalog since ``floor``, by commit timestamp.

    ``kept``: about how many bytes changes keep, by the timestamp of the last of them, oldest first.
    ``sequences``: what sequences were that nobody can read as they were then; who lets go of what they have
    takes them from here.
    """

    def __init__(self, floor: Timestamp, next_version: Callable[[], int]) -> None:
        """``floor``: earlier catalogs are not known. ``next_version`` names snapshots."""
        self.floor = floor
        self._next_version = next_version
        self._begins: list[int] = []
        self._undos: list[_Undo] = []
        self._unweighed: deque[tuple[int, _Undo, Mapping[StoredKey, Stored]]] = deque()
        """Each change with what there is after it."""
        self.kept: deque[tuple[int, int]] = deque()
        self.sequences: list[RelationDef] = []
        self._made: OrderedDict[int, CatalogSnapshot] = OrderedDict()

    def record(
        self,
        ts: Timestamp,
        before: CatalogSnapshot,
        after: CatalogSnapshot,
        changed: Iterable[StoredKey],
        since: Timestamp,
    ) -> None:
        """Note that ``after`` is the catalog from ``ts`` on; nobody reads below ``since`` any more.

        ``changed``: all keys in which it may differ from ``before``.
        """
        old, new = before.items, after.items
        undo: dict[StoredKey, Stored | None] = {}
        for key in changed:  # in the turn of the commit, for each of thousands of tables: once
            was = old.get(key)
            if was is not new.get(key):
                undo[key] = was
        if undo:
            self._begins.append(ts)
            self._undos.append(undo)
            self._unweighed.append((ts, undo, new))
        self.forget(since)

    def weighing(self) -> Generator[None, None, None]:
        """Weigh what has been recorded since the last time, in slices; ``kept`` has it then."""
        pause = Slice(AT_ONCE)
        while self._unweighed:
            ts, undo, items = self._unweighed.popleft()
            size = 0
            for key, before in undo.items():
                size += yield from kept_bytes(before, items.get(key), pause)
                if pause.over():
                    yield
            if self.kept and self.kept[-1][1] < TOGETHER:
                size += self.kept.pop()[1]
            self.kept.append((ts, size))

    def forget(self, since: Timestamp) -> bool:
        """Nobody reads below ``since`` any more: forget some of what was there; tell whether that was all."""
        while self.kept and self.kept[0][0] <= since:
            self.kept.popleft()
        every = bisect_right(self._begins, since)
        past = min(every, FORGOTTEN)
        for begin, undo in zip(self._begins[:past], self._undos[:past], strict=True):
            self._made.pop(begin, None)
            self.sequences += sequences_of(undo.values())
        del self._begins[:past], self._undos[:past]
        return past == every

    def replay(self, ts: Timestamp, undo: _Undo) -> None:
        """Note a change that was made before this start; later ones come later. ``undo`` as in the module's picture."""
        self._begins.append(ts)
        self._undos.append(undo)
        self._unweighed.append((ts, undo, {}))

    def changed_since(self, ts: Timestamp) -> dict[StoredKey, Stored | None]:
        """Return all keys in which the catalog as of ``ts`` may differ from the current one, and what each
        was before it last changed.
        """
        undos = self._undos[bisect_right(self._begins, ts) :]
        return {key: item for undo in undos for key, item in undo.items()}

    def last(self, key: StoredKey) -> Stored | None:
        """Return what an object was that is not there any more, just before it went; None where that is not known."""
        return next((undo[key] for undo in reversed(self._undos) if key in undo), None)

    def forget_before(self, ts: Timestamp) -> None:
        """What the catalog was before ``ts`` cannot be read."""
        self.floor = max(self.floor, ts)

    def at(self, ts: Timestamp, current: CatalogSnapshot) -> CatalogSnapshot:
        """Return the catalog as of ``ts``; ``current`` itself where nothing has changed since.

        Raises ReadBelowSince when ``ts`` is below ``floor``.
        """
        if ts < self.floor:
            raise ReadBelowSince(ts, self.floor, "since of the catalog (history begins there)")
        position = bisect_right(self._begins, ts)
        if position == len(self._begins):
            return current
        key = self._begins[position]
        made = self._made.get(key)
        if made is None or not current.guarded_functions <= made.guarded_functions:
            changes: dict[StoredKey, Stored | None] = {}
            for undo in reversed(self._undos[position:]):
                changes.update(undo)
            made = self._made[key] = current.apart(changes, self._next_version())
            if len(self._made) > KEPT_SNAPSHOTS:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return made


def sequences_of(items: Iterable[Stored | None]) -> list[RelationDef]:
    """Return the sequences among objects."""
    return [item for item in items if isinstance(item, RelationDef) and item.sequence is not None]


def generation_of(sequence: RelationDef) -> int:
    """Return which counter a sequence counts with."""
    if sequence.sequence is None:
        raise AssertionError(f"relation {sequence.name} is no sequence")
    return sequence.sequence.generation
