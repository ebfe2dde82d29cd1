"""What the catalog was at earlier timestamps, as far back as reads go.

    changes   40 ──────── 70 ──────── 90          undo at 70: {key: the object before, None if there was none}
    at(75)  = the current items, with the undo of 90 applied

A change of the catalog keeps only what it replaced, so that history costs what it changed. Snapshots of the past are
made when somebody reads there; a few are kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from engine.catalog.state import CatalogSnapshot
from engine.catalog.stored import Stored, StoredKey
from planner.catalog import RelationDef
from txn.errors import ReadBelowSince
from txn.types import Timestamp

KEPT_SNAPSHOTS = 4

_Undo = Mapping[StoredKey, Stored | None]


class CatalogHistory:
    """The changes of one database's catalog since ``floor``, by commit timestamp.

    ``sequences``: what sequences were that nobody can read as they were then; who lets go of what they have takes them from here.
    """

    def __init__(self, floor: Timestamp, next_version: Callable[[], int]) -> None:
        """``floor``: earlier catalogs are not known. ``next_version`` names snapshots."""
        self.floor = floor
        self._next_version = next_version
        self._begins: list[int] = []
        self._undos: list[_Undo] = []
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
        undo: dict[StoredKey, Stored | None] = {
            key: old.get(key) for key in changed if old.get(key) is not new.get(key)
        }
        if undo:
            self._begins.append(ts)
            self._undos.append(undo)
        self.forget(since)

    def forget(self, since: Timestamp) -> None:
        """Nobody reads below ``since`` any more."""
        past = bisect_right(self._begins, since)
        for begin, undo in zip(self._begins[:past], self._undos, strict=False):
            self._made.pop(begin, None)
            self.sequences += [
                item for item in undo.values() if isinstance(item, RelationDef) and item.sequence
            ]
        del self._begins[:past], self._undos[:past]

    def replay(self, ts: Timestamp, undo: _Undo) -> None:
        """Note a change that was made before this start; later ones come later. ``undo`` as in the module's picture."""
        self._begins.append(ts)
        self._undos.append(undo)

    def changed_since(self, ts: Timestamp) -> dict[StoredKey, Stored | None]:
        """Return all keys in which the catalog as of ``ts`` may differ from the current one, and what each was before it last changed."""
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
        if made is None:
            changes: dict[StoredKey, Stored | None] = {}
            for undo in reversed(self._undos[position:]):
                changes.update(undo)
            made = self._made[key] = current.apart(changes, self._next_version())
            if len(self._made) > KEPT_SNAPSHOTS:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return made
