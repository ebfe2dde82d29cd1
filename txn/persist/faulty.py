"""Delegates that misbehave from a seed: fail, delay, or do the work and report a timeout.

They keep the interface's contract, which is the point: after ``Indeterminate`` anything may have happened,
after any other error nothing has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

from txn.base.errors import OutOfSpace
from txn.base.time import Rng
from txn.persist.location import Blob, BlobGrant, Consensus, Indeterminate, Pulse, Versioned

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """Probabilities per operation, each in [0, 1]; their sum is at most 1."""

    fail: float = 0.0  # nothing is done, Indeterminate is reported
    timeout: float = 0.0  # it is done, Indeterminate is reported
    full: float = 0.0  # nothing is done, OutOfSpace is reported (writes only)
    max_delay_steps: int = 0  # loop iterations waited before, uniform in [0, this]


class _Faulty:
    def __init__(self, rng: Rng, rates: FaultRates) -> None:
        self._rng = rng
        self.rates = rates  # may be replaced while running

    async def _run(self, work: Callable[[], Awaitable[T]], *, writes: bool) -> T:
        rates = self.rates
        if rates.max_delay_steps:
            for _ in range(self._rng.randrange(rates.max_delay_steps + 1)):
                await asyncio.sleep(0)
        draw = self._rng.random()
        if draw < rates.fail:
            raise Indeterminate("injected: failed without effect")
        if draw < rates.fail + rates.timeout:
            await work()
            raise Indeterminate("injected: done, but reported as a timeout")
        if writes and draw < rates.fail + rates.timeout + rates.full:
            raise OutOfSpace("injected: no space left on device")
        return await work()


class FaultyConsensus(_Faulty):
    """A Consensus that fails at the given rates. An unconditional ``acquire_epoch`` and ``close`` never do."""

    def __init__(self, inner: Consensus, rng: Rng, rates: FaultRates) -> None:
        """``rng`` decides; the same seed and calls give the same faults."""
        super().__init__(rng, rates)
        self.inner = inner
        self.name = inner.name

    async def pulse(self) -> Pulse:
        """See Consensus."""
        return await self._run(self.inner.pulse, writes=False)

    async def acquire_epoch(self, at: Pulse | None = None) -> int | None:
        """See Consensus."""
        if at is None:
            return await self.inner.acquire_epoch()
        return await self._run(lambda: self.inner.acquire_epoch(at), writes=False)

    async def head(self, key: str) -> Versioned | None:
        """See Consensus."""
        return await self._run(lambda: self.inner.head(key), writes=False)

    async def keys(self, prefix: str) -> list[str]:
        """See Consensus."""
        return await self._run(lambda: self.inner.keys(prefix), writes=False)

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        """See Consensus."""
        return await self._run(
            lambda: self.inner.compare_and_set(key, expected, data, epoch=epoch), writes=True
        )

    async def append(self, epoch: int, seq: int, payload: bytes) -> None:
        """See Consensus."""
        await self._run(lambda: self.inner.append(epoch, seq, payload), writes=True)

    async def log_bounds(self) -> tuple[int, int]:
        """See Consensus."""
        return await self._run(self.inner.log_bounds, writes=False)

    async def read_log(self, start: int, max_bytes: int = 8 << 20) -> list[tuple[int, bytes]]:
        """See Consensus."""
        return await self._run(lambda: self.inner.read_log(start, max_bytes), writes=False)

    async def truncate(self, before: int, *, epoch: int) -> None:
        """See Consensus."""
        await self._run(lambda: self.inner.truncate(before, epoch=epoch), writes=True)

    async def close(self) -> None:
        """See Consensus."""
        await self.inner.close()


class FaultyBlob(_Faulty):
    """A Blob that fails at the given rates."""

    def __init__(self, inner: Blob, rng: Rng, rates: FaultRates) -> None:
        """``rng`` decides; the same seed and calls give the same faults."""
        super().__init__(rng, rates)
        self.inner = inner
        self.remote = inner.remote

    async def put(self, name: str, data: bytes) -> None:
        """See Blob."""
        await self._run(lambda: self.inner.put(name, data), writes=True)

    async def publish(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """See Blob."""
        return await self._run(lambda: self.inner.publish(name, write), writes=True)

    async def get(self, name: str) -> bytes | None:
        """See Blob."""
        return await self._run(lambda: self.inner.get(name), writes=False)

    async def list(self, prefix: str) -> list[str]:
        """See Blob."""
        return await self._run(lambda: self.inner.list(prefix), writes=False)

    async def delete(self, name: str) -> None:
        """See Blob."""
        await self._run(lambda: self.inner.delete(name), writes=True)

    def local_path(self, name: str) -> str:
        """See Blob."""
        return self.inner.local_path(name)

    async def grant(self, job: str) -> BlobGrant:
        """See Blob."""
        return await self._run(lambda: self.inner.grant(job), writes=False)

    async def revoke(self, job: str) -> None:
        """See Blob."""
        await self._run(lambda: self.inner.revoke(job), writes=False)

    async def hold(self, name: str) -> object:
        """See Blob."""
        return await self.inner.hold(name)

    def source(self, name: str) -> Any:
        """See Blob."""
        return self.inner.source(name)

    def renew(self, name: str) -> object | None:
        """See Blob."""
        return self.inner.renew(name)

    async def keep(self, part: str) -> None:
        """See Blob."""
        await self.inner.keep(part)
