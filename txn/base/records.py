"""What one durable append carries: the seam between the durable half and the memory half of ``txn``.

The memory half (mvcc, locks, coordinator) makes a ``WriteSet`` per committing transaction; the committer
(group_commit) gives each its timestamp and appends a ``Batch``; after the append the same values are applied
to memory (``mvcc`` apply), and at restart they come back from the log in order (recovery).

    Batch(epoch 7)
      WriteSet ts=100  shard 16384: [(row 5, replaces 40, (1, 'x')), (row 9, new, (2, 'y'))]
      WriteSet ts=101  shard 16390: [(row 2, replaces 88, deleted)]  + Register(shard 16400)

Everything is idempotent by (timestamp, row id): applying a record twice is harmless (C27).

These are ``msgspec.Struct`` values, which encode and decode without Python code per field (``txn.values.encoding``).
They are immutable; a changed copy is ``msgspec.structs.replace(x, ts=5)``.
"""

from __future__ import annotations

import msgspec

from txn.base.types import PartRef, Row, RowId, ShardId, ShardSpec, Timestamp, TxnId


class RowOp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row's change. ``replaced`` is the begin of the version it ends (0: none); values None: delete.

    Names (row_id, replaced begin), not a position: that may change before a restart (docs/internals/storage.md).
    """

    row_id: RowId
    replaced: Timestamp
    values: Row | None


class EndedRows(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Rows of one part that end: many at once, named by their positions.

    ``rows``: one bit per row of the part, least significant first, zstd-compressed. The part is one that a
    manifest or an earlier entry of the log names, so that replaying meets it under this name
    (``txn.transaction.bulk_ends``).
    """

    part: str
    rows: bytes


class ShardWrites(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Changes of one shard: row operations, and parts written before the append (bulk load).

    ``ended`` are ended first. Rows of ``parts`` begin at the write set's timestamp, whatever their
    ``s_begin`` column holds (it was written before the timestamp was known): see ``PartRef.min_begin``.
    """

    shard: ShardId
    ops: tuple[RowOp, ...] = ()
    parts: tuple[PartRef, ...] = ()
    next_row_id: int = 0
    """With ``parts``: all their row ids are below it."""
    ended: tuple[EndedRows, ...] = ()


class SchemaChange(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Register (new or changed spec), forget, or truncate (new generation, before ``ShardWrites``)."""

    shard: ShardId
    spec: ShardSpec | None = None  # register / alter
    forget: bool = False
    truncate: bool = False


class WriteSet(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """All of one transaction. ``ts`` is 0 until the committer assigns it. Schema changes come first."""

    txn: TxnId
    ts: Timestamp
    shards: tuple[ShardWrites, ...]
    schema: tuple[SchemaChange, ...] = ()


class PartSwap(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Flush or compaction of one shard: parts leave and enter the manifest; no visible change.

    It passes through the committer's queue, so that memory changes over in one tick between two commits.
    Recovery ignores it: the shard's manifest, written afterwards, is what counts (docs/internals/storage.md).
    ``ends``: (row id, begin, end) of versions in ``added`` that are already superseded.
    """

    shard: ShardId
    removed: tuple[str, ...]
    added: tuple[PartRef, ...]
    ends: tuple[tuple[RowId, Timestamp, Timestamp], ...] = ()


class Batch(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One durable append, refused unless ``epoch`` is the current one (A38, L10)."""

    epoch: int
    writes: tuple[WriteSet, ...] = ()
    swaps: tuple[PartSwap, ...] = ()
    bytes: int = 0
    """What its row operations take encoded, in the entry and in blobs; not stored."""
    told: tuple[TxnId, ...] = ()
    """Transactions whose ids their rows show (``txn.base.writers``)."""
