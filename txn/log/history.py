"""What a shard was at each timestamp: its schema and its generation (D77, L33).

    since   40         70           90
      v1 ────┤ ALTER v2 ┤ TRUNCATE v2 ┤ DROP
      gen 0    gen 0      gen 1         -

A reader at ``ts`` uses the newest entry at or below ``ts``. Entries go when the low watermark has passed the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from txn.base.types import IndexId, ShardIndex, ShardSpec
from txn.mvcc.generation import Generation

if TYPE_CHECKING:
    from txn.log.timeline import Domain


class Entry(NamedTuple):
    """From ``begin`` on. ``generation`` and ``spec`` are None after a DROP."""

    begin: int
    generation: Generation | None
    spec: ShardSpec | None


class ShardHistory:
    """The entries of one shard, oldest first; there is at least one.

    ``registered``: timestamp of the commit that made the shard, a lower bound on all that touch it (C23).
    ``domain``: the timeline that all its timestamps are of. ``latest``: the newest entry (its generation is
    None after a DROP).
    """

    __slots__ = ("domain", "entries", "latest", "registered")

    def __init__(
        self,
        begin: int,
        generation: Generation,
        spec: ShardSpec,
        domain: Domain,
        registered: int | None = None,
    ) -> None:
        """``registered`` None: it is made at ``begin``."""
        self.domain = domain
        self.latest = Entry(begin, generation, spec)
        self.entries = [self.latest]
        self.registered = begin if registered is None else registered

    def at(self, ts: int) -> Entry | None:
        """Return the entry a reader at ``ts`` uses; None when the shard did not exist yet or any more."""
        for entry in reversed(self.entries):
            if entry.begin <= ts:
                return entry if entry.generation is not None else None
        return None

    def change(self, begin: int, generation: Generation | None, spec: ShardSpec | None) -> None:
        """Add an entry. ``begin`` is above all others."""
        self.latest = Entry(begin, generation, spec)
        self.entries.append(self.latest)

    def changes(self) -> Iterator[tuple[int, int]]:
        """Yield when each entry but the first began, and about how many bytes hot versions of the generation
        take that ended with it.
        """
        for before, entry in pairwise(self.entries):
            ended = before.generation
            yield entry.begin, 0 if ended is None or ended is entry.generation else ended.hot_bytes()

    def generations(self) -> list[Generation]:
        """Return the distinct generations, oldest first."""
        out: list[Generation] = []
        for entry in self.entries:
            if entry.generation is not None and entry.generation not in out:
                out.append(entry.generation)
        return out

    def indexes_in_use(self) -> dict[IndexId, ShardIndex]:
        """Return the indexes of the latest generation that some schema of it still has, the latest schema's first."""
        generation = self.latest.generation
        found: dict[IndexId, ShardIndex] = {}
        for entry in reversed(self.entries):
            if entry.generation is generation and entry.spec is not None:
                for index in entry.spec.indexes:
                    found.setdefault(index.index, index)
        return found

    def prune(self, watermark: int) -> list[Generation]:
        """Forget entries nobody at or above ``watermark`` uses; returns the generations that left."""
        before = self.generations()
        while len(self.entries) > 1 and self.entries[1].begin <= watermark:
            del self.entries[0]
        left = self.generations()
        return [g for g in before if g not in left]
