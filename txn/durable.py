"""The durable half of ``txn`` behind one class: log, oracle, parts, manifests.  (Signatures; bodies follow.)"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from txn.persist.manifest import Manifest
from txn.records import Batch, PartSwap, WriteSet
from txn.time import Clock, IdGen, Rng
from txn.types import IndexId, Key, KeyRange, PartRef, Row, RowId, ShardId, ShardSpec, Timestamp

Validate = Callable[[], Exception | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Where the data lies. ``path`` None: everything in memory (tests)."""

    path: Path | None
    cache_bytes: int = 64 << 20


class OracleLike(Protocol):
    """txn.oracle.TimestampOracle."""

    def read_ts(self) -> Timestamp:
        """Latest commit that is durable and applied. No side effect."""

    def peek_write_ts(self) -> Timestamp:
        """A timestamp at or below what write_ts would return. No side effect."""

    # write_ts and apply_write are the committer's.


class CommitterLike(Protocol):
    """txn.group_commit.Committer. All methods are called on the loop."""

    applier: Callable[[Batch, int], None]
    """Set before the first submit: apply(batch, log seq) in memory; timestamps are filled in. Runs on the
    loop, then oracle.apply_write, then ``after_apply(batch)``, all in one tick; the futures resolve after."""
    after_apply: Callable[[Batch], None] | None
    applied_seq: int
    """Log seq of the last batch applied. Read it in the tick in which a flush captures its cut."""

    def submit(self, writes: WriteSet, validate: Validate | None = None) -> asyncio.Future[Timestamp]:
        """Queue a transaction. ``validate`` runs on the loop when its batch is formed (every earlier batch is
        applied by then), in queue order; what it returns is raised from the future and the member leaves.

        The future raises OutOfSpace (this batch only), Fenced, CommitUnknown (server must stop: further submits
        raise it too). Bulk parts whose ``max_begin`` is 0 get the commit timestamp as min_begin = max_begin.
        Cancelling the future does not take the transaction back.
        """

    def submit_swap(self, swap: PartSwap, validate: Validate | None = None) -> asyncio.Future[int]:
        """Queue a change of parts; the applier gets it in order with commits. Resolves to the log seq."""


class PartLike(Protocol):
    """txn.persist.part.Part: an open part; shared, immutable. Positions are 0 .. ref.rows - 1."""

    ref: PartRef

    # Synchronous, memory-mapped, about a microsecond each:
    def row_id(self, position: int) -> RowId:
        """Row id of a position."""

    def begin(self, position: int) -> Timestamp:
        """Begin timestamp of a position."""

    def positions(self, row_id: RowId) -> Sequence[int]:
        """Positions of a row's versions in this part (normally 0 or 1), any order."""

    def lookup(self, index: IndexId, key: Key) -> Sequence[int]:
        """Positions whose index key equals ``key`` (full key, no NULLs)."""

    def range(
        self, index: IndexId, key_range: KeyRange, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, int]]:
        """Yield (memcomparable key, position) in key order; the keys merge with txn.keycodec of hot rows."""

    # Rows (decoded row groups are cached under a byte budget):
    def row(self, position: int, spec: ShardSpec) -> Row | Awaitable[Row]:
        """The row padded to ``spec``; at once if its row group is cached."""

    def rows(self, positions: Sequence[int], spec: ShardSpec) -> list[Row] | Awaitable[list[Row]]:
        """As row(), for several (any order; result in the same order)."""

    def scan(self, spec: ShardSpec) -> AsyncIterator[tuple[int, list[Row]]]:
        """Yield (first position, rows) by chunks of a row group, decoded in a thread; not cached."""

    def read_arrow(self, attnums: Sequence[int] | None = None) -> Awaitable[Any]:
        """The whole part as a pyarrow.Table with c<attnum>, s_row_id, s_begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPressure:
    """Why the log cannot be trimmed: its size, and shards in the order in which their entries hold it."""

    bytes: int
    entries: int
    laggards: tuple[ShardId, ...]


class DurableLog:
    """See the docstrings; ``open`` acquires leadership (epoch + 1; older leaders are fenced)."""

    epoch: int
    oracle: OracleLike
    committer: CommitterLike
    manifests: Mapping[ShardId, Manifest]

    @classmethod
    async def open(cls, config: StorageConfig, clock: Clock, rng: Rng, ids: IdGen) -> DurableLog:
        """Raises DataDirectoryInUse, UnknownFormat."""
        raise NotImplementedError

    def replay(self) -> AsyncIterator[tuple[int, Batch]]:
        """Yield (seq, batch) in order, without what the manifests cover and without swaps. Once, before the
        first submit; afterwards set committer.applier and call ``start``.
        """
        raise NotImplementedError

    def start(self) -> None:
        """Begin to accept submits."""
        raise NotImplementedError

    async def write_part(
        self, shard: ShardId, spec: ShardSpec, rows: Any, *, sort: bool = True, job: str | None = None
    ) -> PartRef:
        """Write a part and its sidecars, durably. ``rows``: pyarrow.Table with c<attnum>, s_row_id, s_begin
        (s_begin 0 throughout: bulk load, the timestamp comes at commit); txn.columns builds it from tuples.
        ``sort``: by primary key where there is one, else by row id.
        """
        raise NotImplementedError

    def open_part(self, ref: PartRef) -> Awaitable[PartLike]:
        """Open (map sidecars, read the footer) in a thread; the same object for the same name while it lives."""
        raise NotImplementedError

    async def build_sidecar(self, ref: PartRef, spec: ShardSpec, index: IndexId) -> None:
        """Add the sidecar of a new index to an existing part, durably. Idempotent."""
        raise NotImplementedError

    async def checkpoint(self, manifest: Manifest) -> None:
        """Make ``manifest`` the shard's durable state (compare-and-set under the epoch), then trim the log as
        far as all shards allow. ``manifest.flushed_through`` = committer.applied_seq read in the tick in which
        the hot rows were captured; everything up to it must be in ``parts``/``ends``. Parts that left may be
        discarded when this returns.
        """
        raise NotImplementedError

    async def discard(self, parts: Iterable[str]) -> None:
        """Delete parts (by name) and their sidecars; nothing durable may name them any more (checked)."""
        raise NotImplementedError

    def pressure(self) -> LogPressure:
        """Cheap; for the flush policy."""
        raise NotImplementedError

    async def close(self) -> None:
        """Finish queued commits, lower the oracle's bound, release the data directory. Idempotent."""
        raise NotImplementedError
