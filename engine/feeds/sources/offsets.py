"""How far a source has got: rows of a shard of its own, written by the transactions that write its tables (U12).

    partition    offset (msgpack)
    -----------  ---------------------------------------------
    0            value 1200                                    RATE
    a.csv        size, time, rows 4000, done                   FILES: one for each file
    slot         lsn 0/16B3748                                 POSTGRES

The shard has the source's oid and its timeline, and goes with it. No table shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from engine.base.eager import settle
from planner.catalog import SourceDef
from txn.api import Store, Transaction
from txn.base.errors import UnknownFormat
from txn.base.types import IndexId, PhysicalType, ShardColumn, ShardId, ShardIndex, ShardSpec

T = TypeVar("T")

FORMAT: Final = 1
INDEX: Final = IndexId(1)

Offsets = Mapping[str, bytes]
"""Encoded offsets by partition."""


class OffsetsMoved(Exception):
    """The stored offsets are not what a batch was read from: somebody else has gone on since."""


def spec_of(source: SourceDef) -> ShardSpec:
    """Return the shard for the offsets of a source."""
    return ShardSpec(
        shard=ShardId(source.oid),
        version=1,
        columns=(
            ShardColumn(attnum=1, type=PhysicalType(kind="text")),
            ShardColumn(attnum=2, type=PhysicalType(kind="bytes")),
        ),
        indexes=(ShardIndex(index=INDEX, attnums=(1,), unique=True, primary=True),),
        timeline=source.timeline,
    )


def encode(offset: msgspec.Struct) -> bytes:
    """Return an offset as it is stored."""
    return bytes([FORMAT]) + msgspec.msgpack.encode(offset)


def decode(body: bytes, kind: type[T]) -> T:
    """Read a stored offset; UnknownFormat for a newer format."""
    if body[:1] != bytes([FORMAT]):
        found = body[:1].hex() or "none"
        raise UnknownFormat(f"offset of a source has format {found}; this server knows {FORMAT:02x}")
    return msgspec.msgpack.decode(body[1:], type=kind)


async def read(store: Store, source: SourceDef) -> dict[str, bytes]:
    """Return all offsets of a source as of its latest commit."""
    txn = store.begin(read_only=True, timeline=source.timeline)
    found: dict[str, bytes] = {}
    try:
        async for chunk in txn.scan(ShardId(source.oid)):
            for row in chunk:
                found[row.values[0]] = row.values[1]
    finally:
        txn.rollback()
    return found


async def move(
    txn: Transaction, source: SourceDef, before: Offsets, after: Mapping[str, bytes | None]
) -> None:
    """Stage new offsets (None: the partition is forgotten).

    ``before`` is what the batch was read from. Raises OffsetsMoved if that is not what is stored: whatever
    made that so, a batch is never applied twice.
    """
    shard = ShardId(source.oid)
    rows = await settle(txn.lookup(shard, INDEX, [(partition,) for partition in after], for_update=True))
    stored = {row.values[0]: row for row in rows}
    inserts, updates, deletes = [], [], []
    for partition, body in after.items():
        row = stored.get(partition)
        if (None if row is None else row.values[1]) != before.get(partition):
            raise OffsetsMoved(partition)
        if body is None:
            if row is not None:
                deletes.append(row.row_id)
        elif row is None:
            inserts.append((partition, body))
        else:
            updates.append((row.row_id, (partition, body)))
    if inserts:
        await settle(txn.insert(shard, inserts))
    if updates:
        await settle(txn.update(shard, updates))
    if deletes:
        await settle(txn.delete(shard, deletes))
