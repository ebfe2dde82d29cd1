"""What one durable append carries: the seam between the durable half and the memory half of ``txn``.

The memory half (mvcc, locks, coordinator) makes a ``WriteSet`` per committing transaction; the committer
(group_commit) gives each its timestamp and appends a ``Batch``; after the append the same values are applied
to memory (``mvcc`` apply), and at restart they come back from the log in order (recovery).

    Batch(epoch 7)
      WriteSet ts=100  shard 16384: [(row 5, replaces 40, (1, 'x')), (row 9, new, (2, 'y'))]
      WriteSet ts=101  shard 16390: [(row 2, replaces 88, deleted)]  + Register(shard 16400)

Everything is idempotent by (timestamp, row id): applying a record twice is harmless (C27).
"""

from __future__ import annotations

from dataclasses import dataclass

from txn.types import PartRef, Row, RowId, ShardId, ShardSpec, Timestamp, TxnId


@dataclass(slots=True, frozen=True)
class RowOp:
    """One row's change. ``replaced`` is the begin of the version it ends (0: none); values None: delete.

    Names (row_id, replaced begin), never a position (DESIGN section 5).
    """

    row_id: RowId
    replaced: Timestamp
    values: Row | None


@dataclass(slots=True, frozen=True, kw_only=True)
class ShardWrites:
    """Changes of one shard: row operations, and parts written before the append (bulk load)."""

    shard: ShardId
    ops: tuple[RowOp, ...] = ()
    parts: tuple[PartRef, ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class SchemaChange:
    """Register (new or changed spec), forget, or truncate (new generation, before ``ShardWrites``)."""

    shard: ShardId
    spec: ShardSpec | None = None  # register / alter
    forget: bool = False
    truncate: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class WriteSet:
    """All of one transaction. ``ts`` is 0 until the committer assigns it. Schema changes come first."""

    txn: TxnId
    ts: Timestamp
    shards: tuple[ShardWrites, ...]
    schema: tuple[SchemaChange, ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class PartSwap:
    """Flush or compaction of one shard: parts leave and enter the manifest; no visible change.

    ``flushed``: (row id, begin) of hot versions that now live in ``added`` (empty for a compaction).
    ``ends``: (row id, begin, end) of versions in ``added`` that are already superseded.
    """

    shard: ShardId
    removed: tuple[str, ...]
    added: tuple[PartRef, ...]
    ends: tuple[tuple[RowId, Timestamp, Timestamp], ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class Batch:
    """One durable append, refused unless ``epoch`` is the current one (A38, L10)."""

    epoch: int
    writes: tuple[WriteSet, ...] = ()
    swaps: tuple[PartSwap, ...] = ()
