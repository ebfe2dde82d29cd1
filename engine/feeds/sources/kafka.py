"""KAFKA sources: the messages of a topic, partition by partition, each once.

    partition 0   ... 17 18 19 │ 20 21 22 │ 23 ...        offsets of the source, a row for each partition: the next offset, 20
    partition 1   ...    4   5 │ 6        │               a batch: 20 to 23 and 6 to 7, read by Spark's connector
                         stored ┘    latest ┘

Which messages a batch has is fixed before they are read: from the stored offsets to others that are there,
shared out among the partitions. The brokers are told nothing (no consumer group), so there is nothing to
acknowledge, and what was read again after a crash are the same messages. A partition that comes later is read
from its beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa

from engine.base.slices import SLICE_ROWS
from engine.feeds.sources import offsets as stored
from engine.feeds.sources.changes import TableChanges, primary_key
from engine.feeds.sources.kafka_rows import Message, MessageReader
from engine.feeds.sources.options import Options
from engine.feeds.sources.reader import Batch, Place, Progress, Temporary
from engine.session.source_status import Lag
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.catalog import RelationDef, SourceDef

_MAY_PASS: Final = ("08001", "58000", "57P03")  # the brokers, the JVM


class Offset(msgspec.Struct, frozen=True):
    """The offset of a partition's next message; ``rows``: how many were here."""

    offset: int
    rows: int


class Topic(Protocol):
    """What a reader asks of a topic (``engine.executors.spark.kafka``)."""

    async def offsets(self) -> dict[int, tuple[int, int]]:
        """Return, for each partition, the offset of its first message and that behind its last."""

    async def read(self, ranges: Mapping[int, tuple[int, int]]) -> Any:
        """Return messages as a pyarrow.Table: partition, offset, timestamp, key, value; in no particular order."""

    async def close(self) -> None:
        """Give up what is open."""


class KafkaReader:
    """See ``engine.feeds.sources.reader.Reader``."""

    def __init__(self, source: SourceDef, relation: RelationDef, topic: Topic) -> None:
        """``topic``: the one that the source names."""
        options = Options("kafka", source.options)
        self.progress = Progress(lag=Lag(unit="messages"))
        self._oid = relation.oid
        self._topic = topic
        self._name = options.need("topic")
        self._most = options.int("max_batch_rows")
        self._latest = options.need("start") == "latest"
        index = primary_key(relation)
        keys: tuple[str, ...] = ()
        if options.need("envelope") == "upsert" and index is not None:
            keys = tuple(relation.column(attnum).name for attnum in index.attnums)
        self._upsert = bool(keys)
        self._messages = MessageReader(relation, options, keys)
        self._next: dict[int, Offset] = {}
        self._error: DataError | None = None  # of the message behind the last batch

    async def open(self, offsets: Mapping[str, bytes]) -> Mapping[str, Place]:
        """See Reader."""
        self._next = {int(p): stored.decode(body, Offset) for p, body in offsets.items()}
        return {str(p): Place(position=_shown(at), rows=at.rows) for p, at in self._next.items()}

    async def poll(self) -> Batch | None:
        """See Reader. The first batch has no rows: it says where each partition begins."""
        if self._error is not None:
            raise self._error
        try:
            there = await self._topic.offsets()
        except SqlError as error:
            raise _kind(error) from error
        begun = {p: self._first(span) for p, span in there.items() if p not in self._next}
        if begun:
            return self._batch({}, begun, {})
        self._check(there)
        waiting = {p: there[p][1] - at.offset for p, at in self._next.items()}
        self.progress.lag.amount = sum(waiting.values())
        taken = shares(waiting, self._most)
        if not taken:
            return None
        ranges = {
            p: (self._next[p].offset, self._next[p].offset + count) for p, count in sorted(taken.items())
        }
        try:
            found = await self._topic.read(ranges)
        except SqlError as error:
            raise _kind(error) from error
        return await self._decoded(_by_partition(found, ranges), ranges)

    async def acknowledge(self, batch: Batch) -> None:
        """See Reader: nobody is told."""
        for partition, body in batch.offsets.items():
            if body is None:
                raise AssertionError("a partition of the batch has no offset")
            self._next[int(partition)] = stored.decode(body, Offset)
        self.progress.lag.amount = max((self.progress.lag.amount or 0) - sum(batch.rows.values()), 0)

    async def close(self) -> None:
        """See Reader."""
        await self._topic.close()

    def _first(self, span: tuple[int, int]) -> Offset:
        """Return where a partition begins that was not known: one that came after the first batch has only
        what is new.
        """
        return Offset(span[1] if self._latest and not self._next else span[0], 0)

    def _check(self, there: Mapping[int, tuple[int, int]]) -> None:
        """Raise SqlError 55000 if messages that were not read yet are gone."""
        for partition, at in self._next.items():
            span = there.get(partition)
            if span is not None and span[0] <= at.offset <= span[1]:
                continue
            has = "is not there any more" if span is None else f"has {span[0]} to {span[1]}"
            raise SqlError(
                "55000",
                f'topic "{self._name}" is not as it was left: messages are lost',
                detail=f"This source has read partition {partition} up to offset {at.offset}; the partition {has}.",
                hint="Drop the source and create it again.",
            )

    async def _decoded(
        self, messages: Mapping[int, list[Message]], ranges: Mapping[int, tuple[int, int]]
    ) -> Batch:
        """Return the rows of messages; what is before one that does not read comes before its error."""
        changes = TableChanges(oid=self._oid)
        offsets: dict[int, Offset] = {}
        rows: dict[int, int] = {}
        for partition, (_start, stop) in ranges.items():
            found = messages.get(partition, [])
            good = 0
            for start in range(0, len(found), SLICE_ROWS):
                piece = found[start : start + SLICE_ROWS]
                good += self._put(changes, piece)
                await asyncio.sleep(0)
                if good < start + len(piece):
                    stop = found[good].offset
                    break
            offsets[partition] = Offset(stop, self._next[partition].rows + good)
            rows[partition] = good
        if self._error is not None and offsets == {p: self._next[p] for p in offsets}:
            raise self._error
        return self._batch({self._oid: changes}, offsets, rows)

    def _put(self, changes: TableChanges, messages: Sequence[Message]) -> int:
        """Add messages; return how many could be read, noting the error of the next."""
        try:
            made = self._messages.rows(messages)
        except DataError:
            made = []
            for message in messages:
                try:
                    made += self._messages.rows([message])
                except DataError as error:
                    self._error = self._error or error
                    break
        if self._upsert:
            for row, gone in made:
                key = self._messages.key_of(row)
                if gone:
                    changes.delete(key)
                else:
                    changes.put(key, row)
        else:
            changes.append(row for row, _gone in made)
        return len(made)

    def _batch(
        self, changes: Mapping[int, TableChanges], offsets: Mapping[int, Offset], rows: Mapping[int, int]
    ) -> Batch:
        return Batch(
            changes=changes,
            offsets={str(p): stored.encode(at) for p, at in offsets.items()},
            rows={str(p): rows.get(p, 0) for p in offsets},
            positions={str(p): _shown(at) for p, at in offsets.items()},
            context=f'topic "{self._name}", '
            + ", ".join(f"partition {p} to {_shown(at)}" for p, at in sorted(offsets.items())),
        )


def shares(waiting: Mapping[int, int], most: int) -> dict[int, int]:
    """Share out about ``most`` messages among partitions: none gets more than it has, and none nothing that
    has some.
    """
    taken: dict[int, int] = {}
    left = most
    order = sorted((count, partition) for partition, count in waiting.items() if count > 0)
    for number, (count, partition) in enumerate(order):
        taken[partition] = min(count, max(left // (len(order) - number), 1))
        left = max(left - taken[partition], 0)
    return taken


def _by_partition(found: Any, ranges: Mapping[int, tuple[int, int]]) -> dict[int, list[Message]]:
    """Return messages in the order of their offsets. Raises Temporary for what is not of the ranges, or twice."""
    table = found.sort_by([("partition", "ascending"), ("offset", "ascending")])
    times = table.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    names = ("partition", "offset", "key", "value")
    partitions, offsets, keys, values = (table.column(name).to_pylist() for name in names)
    messages: dict[int, list[Message]] = {}
    for partition, offset, time_us, key, value in zip(partitions, offsets, times, keys, values, strict=True):
        start, stop = ranges.get(partition, (0, 0))
        before = messages.setdefault(partition, [])
        if not start <= offset < stop or (before and before[-1].offset == offset):
            raise Temporary(
                f"XX000: Spark returned offset {offset} of partition {partition}, which was not asked for"
            )
        before.append(Message(partition, offset, time_us, key, value))
    return messages


def _kind(error: SqlError) -> Exception:
    """Return an error as what may pass, where it may."""
    if error.sqlstate not in _MAY_PASS:
        return error
    detail = f"\nDETAIL: {error.detail}" if error.detail else ""
    return Temporary(f"{error.sqlstate}: {error.message}{detail}")


def _shown(at: Offset) -> str:
    return f"offset {at.offset}"
