"""The two durable stores everything rests on, as interfaces: Consensus (small, ordered) and Blob (large).

    Consensus   registers   key -> (seq, bytes), changed by compare-and-set only
                log         1, 2, 3 ... appended at the next sequence number, trimmed from the front
                epoch       leadership number; every append and every compare-and-set carries and checks it (L10)
    Blob        name -> bytes, written once, atomically, durable before ``put``/``publish`` return

Every implementation passes ``tests/conformance`` and is named there. Outcomes are three, not two:

    returns                it is durable
    OutOfSpace, Fenced,    it did not happen
    SequenceConflict
    Indeterminate          nobody knows; an append is repeated with the *same* sequence number and payload and
                           then either succeeds or meets itself (``txn.wal.txns``)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, TypeVar

from txn.base.errors import StorageError, TroubleKind, TxnError

T = TypeVar("T")


class SequenceConflict(TxnError):
    """An append named a sequence number that is not the next one; nothing was written."""

    def __init__(self, wanted: int, next_seq: int) -> None:
        """``next_seq`` is what the next append has to name."""
        super().__init__(f"append at {wanted}, but the log's next sequence number is {next_seq}")
        self.wanted, self.next_seq = wanted, next_seq


class Indeterminate(StorageError):
    """The operation may or may not have happened, or may yet happen (I/O error, timeout)."""


class StoreUnavailable(Indeterminate):
    """An object store refused, or did not answer. ``store``: its name; ``kind``: what it is short of (58030,
    53000, 53100).
    """

    def __init__(self, store: str, message: str, kind: TroubleKind = "io") -> None:
        """``message``: what could not be done, and the store's words."""
        super().__init__(message)
        self.store, self.kind = store, kind

    def __reduce__(self) -> tuple[Any, ...]:
        """Come whole through a process."""
        return type(self), (self.store, str(self), self.kind)


@dataclass(frozen=True, slots=True)
class Pulse:
    """A sign of life of whoever leads: it differs after every change of the epoch or of any register.

    ``epoch`` 0: nobody has ever led. ``changes`` may also grow where a change was attempted in vain.
    """

    epoch: int
    changes: int


@dataclass(frozen=True, slots=True)
class Versioned:
    """A register's value and its sequence number (>= 1, grows with every change)."""

    seq: int
    data: bytes


class Consensus(Protocol):
    """Linearizable registers and one append log. Used from the event loop."""

    name: str
    """What it is in, for errors: a path, or a URL without its password."""

    async def pulse(self) -> Pulse:
        """Return the present pulse. Raises Indeterminate."""

    async def acquire_epoch(self, at: Pulse | None = None) -> int | None:
        """Increment the epoch durably and return it (A38, A40). From then on lower epochs are refused.

        ``at``: only if the pulse is still that one, decided in the same atomic step; else nothing happens and
        the answer is None (it is never None without ``at``).

        Raises:
            Indeterminate: it may have been incremented; nobody uses the epoch that was lost, call again.
        """

    async def head(self, key: str) -> Versioned | None:
        """Return a register's value, None if it was never set or was deleted."""

    async def keys(self, prefix: str) -> list[str]:
        """Return the names of the existing registers that start with ``prefix``, sorted."""

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        """Set a register whose sequence number is ``expected`` (None: it does not exist); return the new one.

        ``data`` None deletes it (and returns 0). Returns None if ``expected`` is not current: nothing happened.

        Raises:
            Fenced: ``epoch`` is not the current one.
            OutOfSpace: nothing happened.
            Indeterminate: read ``head`` to find out.
        """

    def append(self, epoch: int, seq: int, payload: bytes) -> Awaitable[None]:
        """Append ``payload`` at ``seq``, which must be the next sequence number; durable on return.

        Raises:
            Fenced: ``epoch`` is not the current one; nothing happened.
            SequenceConflict: ``seq`` is not the next; nothing happened.
            OutOfSpace: nothing happened; later appends succeed when there is space again.
            Indeterminate: unknown; repeat with the same arguments, or read ``seq`` back.
        """

    async def log_bounds(self) -> tuple[int, int]:
        """Return (first, next): entries ``first .. next - 1`` exist. An empty new log is (1, 1)."""

    async def read_log(self, start: int, max_bytes: int = 8 << 20) -> list[tuple[int, bytes]]:
        """Return entries from ``start`` on in order, at least one if there is one, up to about ``max_bytes``."""

    async def truncate(self, before: int, *, epoch: int) -> None:
        """Forget entries below ``before`` (at most the log's next). Idempotent; Fenced as for append."""

    async def close(self) -> None:
        """Release files and threads. Idempotent. Operations afterwards raise Indeterminate."""


class Blob(Protocol):
    """Immutable named byte strings. Names match ``[0-9a-z._/-]+`` and are never reused.

    Bytes are read in four ways: ``get`` (small blobs), ``local_path`` after ``keep`` (sidecars) or while ``hold``
    (files that engines open by their path), ``source`` (pieces of Parquet files). Where blobs are local files, the last
    three are all the same file.
    """

    remote: bool
    """Whether blobs have to be brought here before they are read by their path."""

    async def put(self, name: str, data: bytes) -> None:
        """Write a blob; durable on return. FileExistsError if it exists; OutOfSpace: nothing is left behind."""

    async def publish(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """As ``put``, the bytes coming from ``write(file)``, which runs in a thread. Returns the size."""

    async def get(self, name: str) -> bytes | None:
        """Return a blob, None if it does not exist."""

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""

    async def delete(self, name: str) -> None:
        """Delete a blob. Idempotent."""

    def local_path(self, name: str) -> str:
        """Return the path under which the blob is read; stable, whether or not it is there."""

    async def hold(self, name: str) -> object:
        """Bring a blob to ``local_path``; it stays there while what is returned is referenced.

        Raises FileNotFoundError, StoreUnavailable, OutOfSpace, DamagedFile; nothing where blobs are not remote.
        """

    def source(self, name: str) -> Any:
        """Return what pyarrow reads pieces of the blob from: a path, or an open file. Blocks, in a thread.

        Raises FileNotFoundError (or opening the path does), StoreUnavailable.
        """

    def renew(self, name: str) -> object | None:
        """Fetch anew the copy of a blob that is damaged, or came damaged in pieces; None where blobs are not
        remote. Blocks, in a thread.

        What is returned keeps it as ``hold`` does. ``source`` reads the copy from then on. Raises as
        ``hold``: DamagedFile where the blob itself is, as far as its checksum tells.
        """

    async def keep(self, part: str) -> None:
        """Bring the sidecars of a part to their ``local_path`` for good. Raises as ``hold``."""

    async def grant(self, job: str) -> BlobGrant:
        """Let processes elsewhere write blobs until ``revoke(job)``. ``job``: a name not used before."""

    async def revoke(self, job: str) -> None:
        """End a grant: whatever is still at work, no blob comes into being under it any more. Idempotent."""


class BlobGrant(Protocol):
    """Leave to write blobs from another process. Can be pickled."""

    def open(self, worker: str) -> Blob:
        """Return the blobs as ``worker`` writes them: a name (``[0-9a-z-]+``) that nobody else has under this grant."""


class Offload(Protocol):
    """Runs work that would hold up the event loop: in a thread, or at once where runs must repeat."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run ``work`` and return its result; exceptions come through."""


async def in_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in the loop's default thread pool."""
    return await asyncio.to_thread(work)


async def inline(work: Callable[[], T]) -> T:
    """Run ``work`` on the loop, between two suspension points: for simulation and small tests."""
    await asyncio.sleep(0)
    result = work()
    await asyncio.sleep(0)
    return result


def register_name(key: str, consensus: Consensus) -> str:
    """Return how errors name a register."""
    return f"register {key} in {consensus.name}"


def strictly_next(entries: Sequence[tuple[int, bytes]], start: int) -> bool:
    """Return whether ``entries`` are start, start + 1, ... (a paired check of readers)."""
    return all(seq == start + i for i, (seq, _) in enumerate(entries))
