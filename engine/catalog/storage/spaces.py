"""The catalogs of a server's databases: each its own objects, all of them the shared ones.

    catalog shard                          spaces
    ("database", 5)  ("role", 10) ...  ──> in every catalog                        shared
    ("relation", 16384)                ──> postgres (oid 5)                        its own
    ("relation@16500", 16501)          ──> the database with oid 16500             its own

There is one store, one log and one oracle; a database is a set of names. So its transactions read and commit
as all others do, DDL that concerns several databases (DROP ROLE, CREATE DATABASE) is one transaction, and
what was read at a timestamp is one moment of all of them. Oids are unique across databases, but for built-in
ones and schema public.

A change of shared objects is one of every catalog; a catalog that a commit does not touch stays the same object, so
plans and cached rows of other databases outlive DDL.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.base.losses import Losses
from engine.catalog import type_owners
from engine.catalog.history import CatalogHistory
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.fences import NO_FENCES, Fence, fence_of_item, fence_of_row, fence_off, log_fences
from engine.catalog.storage.store import Unreadable, is_shared, split_key
from engine.catalog.storage.stored import Stored, StoredKey
from engine.catalog.user_types import note_columns
from pgwire.codecs.users.types import forget_space, set_latest
from planner.base.quoting import quote_identifier
from planner.catalog import DatabaseDef
from txn.base.types import Timestamp

log = logging.getLogger("holdfast")
_Changes = Mapping[StoredKey, Stored | None]


@dataclass(slots=True)
class Counters:
    """What pg_stat_database counts of one database since the server started."""

    commits: int = 0
    rollbacks: int = 0
    sessions: int = 0


class Space:
    """What one database has for itself: its catalog, what that was, and counters. ``oid``: the database's."""

    __slots__ = ("catalog", "counters", "history", "losses", "oid")

    def __init__(self, catalog: CatalogSnapshot, history: CatalogHistory) -> None:
        """Begin with ``catalog``."""
        self.oid = catalog.database
        self.catalog = catalog
        self.history = history
        self.counters = Counters()
        self.losses = Losses()

    def at(self, ts: Timestamp) -> CatalogSnapshot:
        """Return the catalog as of ``ts``. Raises ReadBelowSince where it is not known any more."""
        return self.history.at(ts, self.catalog)


class Spaces:
    """All of a server's, by oid."""

    def __init__(self, next_version: Callable[[], int]) -> None:
        """There are none before ``load``."""
        self._next_version = next_version
        self._all: dict[int, Space] = {}
        self.lost = ""
        """Why there may be objects that are not known; nothing is written then, and superusers alone get in."""

    def load(
        self,
        stored: Mapping[StoredKey, Stored],
        unread: Mapping[StoredKey, Unreadable],
        floor: Timestamp,
        lost: str = "",
        stale: Callable[[Stored], str] = lambda _item: "",
    ) -> None:
        """Take what the catalog shard holds; ``floor``: earlier catalogs are not known but for ``replay``.

        ``lost``: why there may be more, "" if there is not; ``stale``: why an object is not to be believed,
        "" if it is.

        What cannot be read, and what depends on that, is fenced off, and logged (``engine.catalog.storage.fences``).
        """
        shared: dict[StoredKey, Stored] = {}
        own: dict[int, dict[StoredKey, Stored]] = {}
        for key, item in stored.items():
            database, local = split_key(key)
            (own.setdefault(database, {}) if database else shared)[local] = item
        fences: dict[int, list[Fence]] = {}
        for key, (body, error) in unread.items():
            try:
                database, local = split_key(key)
            except ValueError:
                database, local = 0, key
            fence = fence_of_row(local, body, error)
            if fence is None:
                log.error("a row of the catalog is passed over, %s: %s", key, error.reason)
            else:
                fences.setdefault(database, []).append(fence)
        self.lost = lost
        for database, items in own.items():
            for item in items.values():
                if reason := stale(item):
                    fences.setdefault(database, []).append(fence_of_item(item, reason))
        common = fences.get(0, [])
        every = [
            item for item in (*shared.values(), *(f.object for f in common)) if isinstance(item, DatabaseDef)
        ]
        for item in every:
            items = {**shared, **own.get(item.oid, {})}
            found, around = fence_off(items, [*common, *fences.get(item.oid, ())])
            self._open(item.oid, found, floor, around)
            log_fences(item.name, [fence for key, fence in around.items() if not is_shared(key[0])])
        if self._all:
            log_fences("", [f for key, f in self.any.catalog.fences.items() if is_shared(key[0])])

    def _open(
        self,
        oid: int,
        items: Mapping[StoredKey, Stored],
        floor: Timestamp,
        fences: Mapping[StoredKey, Fence] = NO_FENCES,
    ) -> None:
        catalog = CatalogSnapshot(items, self._next_version(), database=oid, fences=fences)
        catalog.lost = self.lost
        set_latest(catalog.codec_types)
        self._all[oid] = Space(catalog, CatalogHistory(floor, self._next_version))

    def forget_before(self, ts: Timestamp) -> None:
        """What the catalogs were before ``ts`` cannot be read."""
        for space in self:
            space.history.forget_before(ts)

    def replay(self, ts: Timestamp, undo: _Changes) -> None:
        """Note a commit that was made before this start: what takes it back, by the keys of the catalog shard."""
        own: dict[int, dict[StoredKey, Stored | None]] = {}
        for key, item in undo.items():
            database, local = split_key(key)
            own.setdefault(database, {})[local] = item
        shared = own.pop(0, {})
        for oid, space in self._all.items():
            changes = {**shared, **own.get(oid, {})}
            if changes:
                space.history.replay(ts, changes)
                for item in changes.values():
                    type_owners.own(item)

    def __getitem__(self, oid: int) -> Space:
        """Return one. Raises KeyError."""
        return self._all[oid]

    def __iter__(self) -> Iterator[Space]:
        """Yield all, oldest first."""
        return iter(tuple(self._all.values()))

    @property
    def any(self) -> Space:
        """One of them, for what is the same in all."""
        return next(iter(self._all.values()))

    def of_item(self, key: StoredKey) -> Space | None:
        """Return the one that an object of one database is in: a relation or a source, by its key."""
        return next((space for space in self._all.values() if key in space.catalog.items), None)

    def publish(
        self, space: Space, after: CatalogSnapshot, changes: _Changes, ts: Timestamp, since: Timestamp
    ) -> None:
        """``after`` is the catalog of a database from ``ts`` on, ``changes`` what its transaction did.

        Changes of shared objects become part of all catalogs, a database that is gone has none any more.
        """
        _publish(space, after, changes, ts, since)
        shared = {key: item for key, item in changes.items() if is_shared(key[0])}
        if not shared:
            return
        for other in self:
            if other is not space:
                _publish(other, other.catalog.overlaid(shared, self._next_version()), shared, ts, since)
        for key, item in shared.items():
            if key[0] == "database" and item is None:
                self._all.pop(key[1], None)
                forget_space(key[1])

    def adopt(self, oid: int, own: Iterable[tuple[StoredKey, Stored]], ts: Timestamp) -> None:
        """A database has been created at ``ts`` with ``own`` objects; the shared ones are published already."""
        known = self.any.catalog
        shared = {key: item for key, item in known.items.items() if is_shared(key[0])}
        fences = {key: fence for key, fence in known.fences.items() if is_shared(key[0])}
        self._open(oid, {**shared, **dict(own)}, ts, fences)


def _publish(
    space: Space, after: CatalogSnapshot, changes: _Changes, ts: Timestamp, since: Timestamp
) -> None:
    space.history.record(ts, space.catalog, after, changes, since)
    space.catalog = after
    set_latest(after.codec_types)
    for item in changes.values():
        note_columns(item, committed=True)


def objects_in(catalog: CatalogSnapshot, database: int, count: int) -> str:
    """Return how a message calls objects of another database, which it does not name."""
    found = catalog.database_by_oid(database)
    name = str(database) if found is None else quote_identifier(found.name)
    return f"{count} object{'' if count == 1 else 's'} in database {name}"
