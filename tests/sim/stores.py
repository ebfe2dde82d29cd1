"""The outside of a simulated coordinator: consensus, blobs and clock with faults in virtual time.

    fail      nothing is done; a timeout is reported
    done      it is done; a timeout is reported
    late      a timeout is reported; it is done afterwards, even if the process has died meanwhile
    full      no space left
    slow      it takes a second or more

A late write is over before the next write of the same handle starts: that is what a connection promises whose
statements run one after another. The next *process* gets no such promise, only the epoch.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, replace
from typing import TypeVar

from tests.sim.loop import SimLoop
from txn.base.errors import OutOfSpace
from txn.persist.faulty import FaultRates, FaultyBlob, FaultyConsensus
from txn.persist.location import Indeterminate
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk

T = TypeVar("T")
U = TypeVar("U")
START_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Probabilities per operation of storage."""

    fail: float = 0.0
    done: float = 0.0
    late: float = 0.0
    full: float = 0.0
    slow: float = 0.0
    latency_s: float = 0.0004  # mean of what an operation takes


CALM = Weather()


class Outside:
    """What all coordinators of a run share: the disk, the weather, wall time."""

    def __init__(self, loop: SimLoop, rng: random.Random) -> None:
        self.loop = loop
        self.rng = rng
        self.disk = MemoryDisk()
        self.weather = CALM
        self.wall_offset_ms = START_MS

    def set_weather(self, **changes: float) -> None:
        """Change some probabilities."""
        self.weather = replace(self.weather, **changes)

    async def do(
        self, pending: list[asyncio.Task[object]], work: Callable[[], Awaitable[T]], writes: bool
    ) -> T:
        """Run one operation of storage under the weather of the moment."""
        rng, weather = self.rng, self.weather
        while writes and pending:
            late = pending[0]
            await asyncio.wait([late])
            if pending and pending[0] is late:
                pending.pop(0)
        seconds = rng.expovariate(1 / weather.latency_s)
        draw = rng.random()
        if draw < weather.slow:
            seconds += rng.uniform(0.1, 2.0)
        await asyncio.sleep(seconds)
        draw = rng.random()
        if draw < weather.fail:
            raise Indeterminate("simulated: failed without effect")
        draw -= weather.fail
        if draw < weather.done:
            await work()
            raise Indeterminate("simulated: done, but reported as a timeout")
        draw -= weather.done
        if writes and draw < weather.late:
            wait = rng.expovariate(10)
            pending.append(self.loop.create_task(_later(wait, work), context=Context()))
            raise Indeterminate("simulated: reported as a timeout before it was done")
        if writes and draw - weather.late < weather.full:
            raise OutOfSpace("simulated: no space left on device")
        return await work()


class SimClock:
    """One process's clocks: the shared wall, and a monotonic one that begins anywhere and runs a little fast."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._rate = 1 + outside.rng.random() * 0.015
        self._start = outside.rng.random() * 1e6

    def now_ms(self) -> int:
        """Wall time; it may be set in either direction."""
        return int(self._outside.loop.time() * 1000) + self._outside.wall_offset_ms

    def monotonic(self) -> float:
        """Seconds."""
        return self._start + self._outside.loop.time() * self._rate

    def boottime(self) -> float:
        """Seconds; a process that stands still does not stop them."""
        return self.monotonic()


async def _later(seconds: float, work: Callable[[], Awaitable[object]]) -> Exception | None:
    """Do a write whose caller has given up; nobody hears of a refusal."""
    await asyncio.sleep(seconds)
    try:
        await work()
    except Exception as refused:
        return refused
    return None


class SimConsensus(FaultyConsensus):
    """A process's connection to the shared consensus."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(MemoryConsensus(outside.disk), outside.rng, FaultRates())  # type: ignore[arg-type]
        self._outside = outside
        self._pending: list[asyncio.Task[object]] = []

    async def _run(self, work: Callable[[], Awaitable[U]], *, writes: bool) -> U:
        return await self._outside.do(self._pending, work, writes)


class SimBlob(FaultyBlob):
    """A process's way to the shared blobs."""

    def __init__(self, outside: Outside) -> None:
        self.files = MemoryBlob(outside.disk)
        super().__init__(self.files, outside.rng, FaultRates())  # type: ignore[arg-type]
        self._outside = outside
        self._pending: list[asyncio.Task[object]] = []

    async def _run(self, work: Callable[[], Awaitable[U]], *, writes: bool) -> U:
        return await self._outside.do(self._pending, work, writes)

    def forget(self) -> None:
        """Remove the local copies."""
        self.files.remove_copies()
