"""Consensus and Blob in memory, deterministic, with crashes: for simulation and tests.

What survives is a ``Disk`` value; a store is a process's handle to it::

    disk = MemoryDisk()
    consensus, blob = MemoryConsensus(disk), MemoryBlob(disk)
    ...                       await blob.put(...)  <-- between start and return the bytes are *unsynced*
    disk.crash()              unsynced bytes are lost, every old handle is dead
    consensus = MemoryConsensus(disk)     the next process

Every operation suspends before and after it takes effect, so that a simulated scheduler can interleave others
(or a crash) at each step. ``local_path`` gives real files in a temporary directory, since Parquet readers and
memory maps want some; they are copies, not the truth.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO

from txn.base.errors import Fenced, OutOfSpace
from txn.persist.location import Indeterminate, Pulse, SequenceConflict, Versioned
from txn.persist.scratch import Scratch


class MemoryDisk:
    """What outlives a process: registers, log, epoch, blobs. ``generation`` counts crashes."""

    def __init__(self) -> None:
        """An empty disk."""
        self.epoch = 0
        self.registers: dict[str, Versioned] = {}
        self.register_seq = 0
        self.log: dict[int, bytes] = {}
        self.log_first = 1
        self.log_next = 1
        self.blobs: dict[str, bytes] = {}
        self.generation = 0
        self.steps = 0
        self.crash_at_step: int | None = None  # crash when so many steps of storage have been taken
        self.capacity: int | None = None  # bytes; None: unlimited

    def used(self) -> int:
        """Return the bytes that blobs, log and registers hold."""
        return (
            sum(map(len, self.blobs.values()))
            + sum(map(len, self.log.values()))
            + sum(len(r.data) for r in self.registers.values())
        )

    def reserve(self, size: int) -> None:
        """Raise OutOfSpace if ``size`` more bytes exceed the capacity."""
        if self.capacity is not None and (used := self.used()) + size > self.capacity:
            full = OutOfSpace("no space left on the simulated device")
            full.needed, full.free = size, max(self.capacity - used, 0)
            raise full

    def crash(self) -> None:
        """Kill every open handle; whatever had not returned is lost (or was done: both are possible)."""
        self.generation += 1


class _Handle:
    """A process's connection to a disk; dead after a crash."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self._generation = disk.generation
        self._closed = False

    def _alive(self) -> None:
        disk = self.disk
        disk.steps += 1
        if disk.steps == disk.crash_at_step:
            disk.crash()
        if self._closed or self._generation != disk.generation:
            raise Indeterminate("the process that held this store has crashed or closed it")

    async def _step(self) -> None:
        """Let others run; then this process must still be alive."""
        self._alive()
        await asyncio.sleep(0)
        self._alive()


class MemoryConsensus(_Handle):
    """Consensus over a ``MemoryDisk``."""

    name = "memory"

    def _check_epoch(self, epoch: int) -> None:
        if epoch != self.disk.epoch:
            raise Fenced(f"epoch {epoch} has been superseded by {self.disk.epoch}")

    async def pulse(self) -> Pulse:
        """See Consensus."""
        await self._step()
        return Pulse(self.disk.epoch, self.disk.register_seq)

    async def acquire_epoch(self, at: Pulse | None = None) -> int | None:
        """See Consensus."""
        await self._step()
        if at is not None and at != Pulse(self.disk.epoch, self.disk.register_seq):
            return None
        self.disk.epoch += 1
        raised = self.disk.epoch
        await self._step()
        return raised

    async def head(self, key: str) -> Versioned | None:
        """See Consensus."""
        await self._step()
        return self.disk.registers.get(key)

    async def keys(self, prefix: str) -> list[str]:
        """See Consensus."""
        await self._step()
        return sorted(k for k in self.disk.registers if k.startswith(prefix))

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        """See Consensus."""
        await self._step()
        self._check_epoch(epoch)
        current = self.disk.registers.get(key)
        if (None if current is None else current.seq) != expected:
            return None
        if data is None:
            self.disk.register_seq += 1
            self.disk.registers.pop(key, None)
            result = 0
        else:
            self.disk.reserve(len(data))
            self.disk.register_seq += 1
            result = self.disk.register_seq
            self.disk.registers[key] = Versioned(result, data)
        await self._step()
        return result

    async def append(self, epoch: int, seq: int, payload: bytes) -> None:
        """See Consensus."""
        await self._step()
        self._check_epoch(epoch)
        if seq != self.disk.log_next:
            raise SequenceConflict(seq, self.disk.log_next)
        self.disk.reserve(len(payload))
        self.disk.log[seq] = payload
        self.disk.log_next = seq + 1
        await self._step()

    async def log_bounds(self) -> tuple[int, int]:
        """See Consensus."""
        await self._step()
        return self.disk.log_first, self.disk.log_next

    async def read_log(self, start: int, max_bytes: int = 8 << 20) -> list[tuple[int, bytes]]:
        """See Consensus."""
        await self._step()
        entries: list[tuple[int, bytes]] = []
        size = 0
        for seq in range(max(start, self.disk.log_first), self.disk.log_next):
            entries.append((seq, self.disk.log[seq]))
            size += len(self.disk.log[seq])
            if size >= max_bytes:
                break
        return entries

    async def truncate(self, before: int, *, epoch: int) -> None:
        """See Consensus."""
        await self._step()
        self._check_epoch(epoch)
        for seq in range(self.disk.log_first, min(before, self.disk.log_next)):
            del self.disk.log[seq]
        self.disk.log_first = max(self.disk.log_first, min(before, self.disk.log_next))

    async def close(self) -> None:
        """See Consensus."""
        self._closed = True


class MemoryBlob(_Handle):
    """Blob over a ``MemoryDisk``."""

    remote = False

    def __init__(self, disk: MemoryDisk) -> None:
        """Copies for ``local_path`` live in a temporary directory as long as this object."""
        super().__init__(disk)
        self._scratch = Scratch("blob")
        self._folder = self._scratch.path
        self._grants: set[str] = set()

    def remove_copies(self) -> None:
        """Remove the folder of copies now; nothing may be read after that. Idempotent."""
        self._scratch.remove()

    async def put(self, name: str, data: bytes) -> None:
        """See Blob."""
        await self._step()
        if name in self.disk.blobs:
            raise FileExistsError(name)
        self.disk.reserve(len(data))
        await self._step()  # a crash here loses the bytes: they were not synced
        self._check_grant()
        self.disk.blobs[name] = data
        await self._step()

    async def publish(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """See Blob."""
        sink = io.BytesIO()
        write(sink)
        data = sink.getvalue()
        await self.put(name, data)
        return len(data)

    async def get(self, name: str) -> bytes | None:
        """See Blob."""
        await self._step()
        return self.disk.blobs.get(name)

    async def list(self, prefix: str) -> list[str]:
        """See Blob."""
        await self._step()
        return sorted(n for n in self.disk.blobs if n.startswith(prefix))

    async def delete(self, name: str) -> None:
        """See Blob."""
        await self._step()
        self.disk.blobs.pop(name, None)
        path = self.local_path(name)
        if os.path.exists(path):
            os.unlink(path)

    def local_path(self, name: str) -> str:
        """See Blob. Copies the blob there if it exists."""
        path = os.path.join(self._folder, name)
        data = self.disk.blobs.get(name)
        if data is not None and not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        return path

    async def hold(self, name: str) -> object:
        """See Blob."""
        return None

    def source(self, name: str) -> Any:
        """See Blob."""
        return self.local_path(name)

    def renew(self, name: str) -> object | None:
        """See Blob: there is nothing else to read."""
        return None

    async def keep(self, part: str) -> None:
        """See Blob: ``local_path`` copies."""

    async def grant(self, job: str) -> MemoryGrant:
        """See Blob. It serves within this process only."""
        await self._step()
        self._grants.add(job)
        return MemoryGrant(self, job)

    async def revoke(self, job: str) -> None:
        """See Blob."""
        await self._step()
        self._grants.discard(job)

    def granted(self, job: str) -> bool:
        """Return whether a grant holds."""
        return job in self._grants

    def _check_grant(self) -> None:
        """Raise Indeterminate if the blobs were lent, and are no more; in the step that takes effect."""


class MemoryGrant:
    """See BlobGrant."""

    def __init__(self, blob: MemoryBlob, job: str) -> None:
        self._blob, self._job = blob, job

    def open(self, worker: str) -> MemoryBlob:
        """See BlobGrant."""
        return _LentMemoryBlob(self._blob, self._job)


class _LentMemoryBlob(MemoryBlob):
    """Blobs of the same disk, as long as a grant holds."""

    def __init__(self, lender: MemoryBlob, job: str) -> None:
        super().__init__(lender.disk)
        self._lender, self._job = lender, job

    def _check_grant(self) -> None:
        if not self._lender.granted(self._job):
            raise Indeterminate("the grant has ended")

    def local_path(self, name: str) -> str:
        """See Blob."""
        return self._lender.local_path(name)
