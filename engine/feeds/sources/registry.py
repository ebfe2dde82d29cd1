"""All sources of a server: which run is what the catalog says, from its start and after every commit that
changes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from engine.catalog.storage.spaces import Space
from engine.feeds.sources.files import FilesReader
from engine.feeds.sources.kafka import KafkaReader
from engine.feeds.sources.kafka_topic import topic_of
from engine.feeds.sources.postgres import PostgresReader
from engine.feeds.sources.rate import RateReader
from engine.feeds.sources.reader import Reader
from engine.feeds.sources.runner import Runner, missing
from engine.session.source_status import Status
from planner.catalog import RelationDef, SourceDef

if TYPE_CHECKING:
    from engine.feeds.sources.feeding import FeedingServer


def _table(db: FeedingServer, oid: int) -> RelationDef:
    space = db.spaces.of_item(("relation", oid, 0))
    relation = None if space is None else space.catalog.relation_by_oid(oid)
    if relation is None:
        raise missing(oid)
    return relation


def _rate(db: FeedingServer, source: SourceDef) -> Reader:
    return RateReader(source, _table(db, source.tables[0]), db.clock_us)


def _postgres(db: FeedingServer, source: SourceDef) -> Reader:
    return PostgresReader(source, [_table(db, oid) for oid in source.tables])


def _files(db: FeedingServer, source: SourceDef) -> Reader:
    return FilesReader(source, _table(db, source.tables[0]), db.server_files, db.spark)


def _kafka(db: FeedingServer, source: SourceDef) -> Reader:
    return KafkaReader(source, _table(db, source.tables[0]), topic_of(db, source.options))


_READERS: dict[str, Callable[[FeedingServer, SourceDef], Reader]] = {
    "rate": _rate, "files": _files, "postgres": _postgres, "kafka": _kafka,
}  # fmt: skip


class Sources:
    """The running sources, and what holdfast_sources tells of all of them."""

    def __init__(self, db: FeedingServer) -> None:
        """Nothing runs before ``start``."""
        self._db = db
        self._runners: dict[int, Runner] = {}
        self._statuses: dict[int, Status] = {}
        self._started = False
        self._changing: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()

    def start(self) -> None:
        """Run what the catalog says. Called once, by a server that leads."""
        self._started = True
        self.follow()

    def follow(self, again: int | None = None) -> None:
        """The catalog may have changed: make what runs agree, soon. ``again``: a source to be run anew if it
        stopped.
        """
        if not self._started:
            return
        task = asyncio.get_running_loop().create_task(self._follow(again))
        self._changing.add(task)
        task.add_done_callback(self._changing.discard)

    async def _follow(self, again: int | None) -> None:
        async with self._order:
            of = {s.oid: space for space in self._db.spaces for s in space.catalog.sources.values()}
            wanted = {s.oid: s for space in self._db.spaces for s in space.catalog.sources.values()}
            for oid, runner in list(self._runners.items()):
                source = wanted.get(oid)
                stopped = self._statuses[oid].state == "stopped"
                if source != runner.source or runner.halted or (oid == again and stopped):
                    await runner.stop()
                    del self._runners[oid]
                    if source is None:
                        self._statuses.pop(oid, None)
            for oid, source in wanted.items():
                status = self._statuses.setdefault(oid, Status())
                if source.paused:
                    status.state = "paused"
                elif oid not in self._runners and self._started:
                    status.state = "starting"
                    self._runners[oid] = Runner(self._db, of[oid], source, status, _READERS[source.kind])

    def status(self, source: SourceDef) -> Status:
        """Return what there is to tell of a source."""
        found = self._statuses.get(source.oid)
        return Status(state="paused" if source.paused else "starting") if found is None else found

    def within(self, space: Space) -> Iterator[tuple[SourceDef, Status]]:
        """Yield the sources of a database by name, each with its status."""
        for _name, source in sorted(space.catalog.sources.items()):
            yield source, self.status(source)

    async def halt(self, oid: int) -> None:
        """End a source's task; the next ``follow`` begins it again if the catalog still has it."""
        async with self._order:
            runner = self._runners.pop(oid, None)
            if runner is not None:
                await runner.stop()

    async def close(self) -> None:
        """End all tasks."""
        self._started = False
        if self._changing:
            await asyncio.wait(set(self._changing))
        await asyncio.gather(*(runner.stop() for runner in self._runners.values()))
        self._runners.clear()
