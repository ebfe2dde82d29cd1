"""RATE sources: so many rows per second, numbered from 0, for tests and measurements.

    CREATE SOURCE ticks FROM RATE (rows_per_second = 100)       ticks (value bigint PRIMARY KEY, at timestamptz)

The clock runs from when the reader was opened: a pause or a restart makes a gap in time, never one in the numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from engine.base.slices import SLICE_ROWS
from engine.feeds.sources import offsets as stored
from engine.feeds.sources.changes import TableChanges
from engine.feeds.sources.options import Options
from engine.feeds.sources.reader import Batch, Place, Progress
from engine.session.source_status import Lag
from planner.catalog import RelationDef, SourceDef

PARTITION: Final = "0"
COLUMNS: Final = "value bigint PRIMARY KEY, at timestamp with time zone NOT NULL"


class Offset(msgspec.Struct, frozen=True):
    """The next number."""

    value: int


class RateReader:
    """See ``engine.feeds.sources.reader.Reader``."""

    def __init__(self, source: SourceDef, relation: RelationDef, clock_us: Callable[[], int]) -> None:
        """``clock_us``: microseconds since 1970."""
        options = Options("rate", source.options)
        self.progress = Progress(lag=Lag(amount=0, unit="rows"))
        self._oid = relation.oid
        self._rate = options.int("rows_per_second")
        self._total = options.int("rows")
        self._most = options.int("max_batch_rows")
        self._clock_us = clock_us
        self._next = self._first = 0
        self._began_us = 0

    async def open(self, offsets: Mapping[str, bytes]) -> Mapping[str, Place]:
        """See Reader."""
        body = offsets.get(PARTITION)
        self._first = self._next = 0 if body is None else stored.decode(body, Offset).value
        self._began_us = self._clock_us()
        self.progress.done = bool(self._total) and self._next >= self._total
        return {} if body is None else {PARTITION: Place(position=f"value {self._next}", rows=self._next)}

    async def poll(self) -> Batch | None:
        """See Reader."""
        elapsed_us = max(self._clock_us() - self._began_us, 0)
        due = self._first + elapsed_us * self._rate // 1_000_000
        if self._total:
            due = min(due, self._total)
        count = min(due - self._next, self._most)
        self.progress.lag.amount = max(due - self._next, 0)
        if count <= 0:
            return None
        changes = TableChanges(oid=self._oid)
        step = 1_000_000 / self._rate
        after = self._next + count
        for start in range(self._next, after, SLICE_ROWS):
            stop = min(start + SLICE_ROWS, after)
            changes.append((n, self._began_us + round((n - self._first) * step)) for n in range(start, stop))
            await asyncio.sleep(0)
        return Batch(
            changes={self._oid: changes},
            offsets={PARTITION: stored.encode(Offset(after))},
            rows={PARTITION: count},
            positions={PARTITION: f"value {after}"},
        )

    async def acknowledge(self, batch: Batch) -> None:
        """See Reader: nobody is waiting."""
        self._next += batch.rows[PARTITION]
        self.progress.lag.amount = max((self.progress.lag.amount or 0) - batch.rows[PARTITION], 0)
        self.progress.done = bool(self._total) and self._next >= self._total

    async def close(self) -> None:
        """See Reader."""
