"""Bytes of log entries and registers: MessagePack with a format byte in front.

    log entry   01 | [epoch, [[ts, write set or blob name], ...], [swap, ...]]
    write set   [txn, 0, [[shard, [[row id, replaced, [value, ...]], ...], parts ...], ...], schema]
    blob        01 | write set                                     (large write sets, C18)

Values of the value domain are self-describing, so that no schema is needed to read the log:

    None bool int float str bytes    MessagePack's own
    Decimal                          extension 1: its text, which keeps scale, NaN and infinities
    tuple (arrays, intervals ...)    extension 2: a MessagePack array, encoded by the same rules

A write set is encoded when it is submitted, before its timestamp is known, so that a value that cannot be
encoded fails that transaction alone and a batch is put together without touching rows again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext

from txn.errors import UnknownFormat
from txn.records import Batch, PartSwap, RowOp, SchemaChange, ShardWrites, WriteSet
from txn.types import Row, ShardSpec, Timestamp

FORMAT = 1
FORMAT_BYTE = bytes([FORMAT])
_EXT_DECIMAL = 1
_EXT_TUPLE = 2
CHUNK_OPS = 2000  # operations encoded in one go: about a millisecond
_NO_TS = Timestamp(0)


class _EntryOut(msgspec.Struct, frozen=True, array_like=True):
    """A batch as written: write sets are ready-made bytes, their timestamps stand beside them."""

    epoch: int
    writes: tuple[tuple[Timestamp, Raw], ...]
    swaps: tuple[PartSwap, ...]


class _EntryIn(msgspec.Struct, frozen=True, array_like=True):
    """A batch as read."""

    epoch: int
    writes: tuple[tuple[Timestamp, WriteSet | str], ...]
    swaps: tuple[PartSwap, ...]


def _ext_hook(code: int, data: memoryview) -> Any:
    if code == _EXT_DECIMAL:
        return Decimal(str(data, "ascii"))
    if code == _EXT_TUPLE:
        return _tuple_decoder.decode(data)
    raise UnknownFormat(f"a stored value has the unknown extension type {code}")


_encoder = msgspec.msgpack.Encoder()
_tuple_decoder = msgspec.msgpack.Decoder(tuple[Any, ...], ext_hook=_ext_hook)
_write_set_decoder = msgspec.msgpack.Decoder(WriteSet, ext_hook=_ext_hook)
_entry_decoder = msgspec.msgpack.Decoder(_EntryIn, ext_hook=_ext_hook)
_encode = _encoder.encode
_replace = msgspec.structs.replace


def disk_value(value: Any) -> Any:
    """Return what MessagePack is given for a value of the value domain."""
    kind = type(value)
    if kind is Decimal:
        return Ext(_EXT_DECIMAL, str(value).encode("ascii"))
    if kind is tuple:
        return Ext(_EXT_TUPLE, _encode([disk_value(v) for v in value]))
    return value


_SPECIAL = frozenset((Decimal, tuple))


def disk_row(row: Row) -> Row:
    """Return ``row`` itself if MessagePack reads it back unchanged, else a copy with extensions."""
    if _SPECIAL.isdisjoint(map(type, row)):
        return row
    return tuple([disk_value(v) for v in row])


def _disk_op(op: RowOp) -> RowOp:
    values = op.values
    if values is None or _SPECIAL.isdisjoint(map(type, values)):
        return op
    return RowOp(op.row_id, op.replaced, tuple([disk_value(v) for v in values]))


def _disk_spec(spec: ShardSpec) -> ShardSpec:
    columns = tuple(dataclasses.replace(c, missing_value=disk_value(c.missing_value)) for c in spec.columns)
    return dataclasses.replace(spec, columns=columns)


def _disk_writes(writes: ShardWrites, ops: tuple[RowOp, ...]) -> ShardWrites:
    # Paths are where the data directory lies today: readers ask the blob store.
    parts = tuple([dataclasses.replace(p, path="") for p in writes.parts]) if writes.parts else ()
    return _replace(writes, ops=ops, parts=parts)


def _disk_schema(change: SchemaChange) -> SchemaChange:
    return change if change.spec is None else _replace(change, spec=_disk_spec(change.spec))


def encode_write_set(writes: WriteSet) -> bytes:
    """Encode a write set, its timestamp aside. Raises TypeError for a value outside the value domain."""
    disk = WriteSet(
        txn=writes.txn,
        ts=_NO_TS,
        shards=tuple([_disk_writes(w, tuple([_disk_op(op) for op in w.ops])) for w in writes.shards]),
        schema=tuple([_disk_schema(c) for c in writes.schema]) if writes.schema else (),
    )
    return _encode(disk)


def encode_write_set_slowly(writes: WriteSet) -> Iterator[bytes]:
    """Yield the same bytes piece by piece, with at most a millisecond or two of work between two pieces.

    For large write sets: the caller lets the event loop run in between.
    """
    yield bytes((0x94,)) + _encode(writes.txn) + _encode(0) + _array_head(len(writes.shards))
    for shard in writes.shards:
        # The struct's fields, the operations among them chunk by chunk.
        fields = _encode(_disk_writes(shard, ()))
        head = fields[:1] + _encode(shard.shard)
        yield head + _array_head(len(shard.ops))
        for at in range(0, len(shard.ops), CHUNK_OPS):
            yield b"".join([_encode(_disk_op(op)) for op in shard.ops[at : at + CHUNK_OPS]])
        yield fields[len(head) + 1 :]  # without the head and the empty operations
    yield _encode(tuple([_disk_schema(c) for c in writes.schema]))


def _array_head(count: int) -> bytes:
    """Return MessagePack's header of an array of ``count`` items."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")


def decode_write_set(data: bytes, ts: Timestamp) -> WriteSet:
    """Decode a write set that lies in a blob of its own (after the format byte). Raises UnknownFormat."""
    if data[:1] != FORMAT_BYTE:
        raise UnknownFormat(f"write set has format {data[:1].hex() or 'none'}; this server knows {FORMAT}")
    try:
        found = _write_set_decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise UnknownFormat(f"write set cannot be read: {error}") from error
    return _stamped(found, ts)


def encode_entry(
    epoch: int, writes: list[tuple[Timestamp, bytes | str]], swaps: tuple[PartSwap, ...] = ()
) -> bytes:
    """Encode a log entry from timestamps and write sets: as ``encode_write_set`` made them, or blob names."""
    disk_swaps = tuple(
        _replace(s, added=tuple(dataclasses.replace(p, path="") for p in s.added)) for s in swaps
    )
    raw = tuple([(ts, Raw(data if type(data) is bytes else _encode(data))) for ts, data in writes])
    return FORMAT_BYTE + _encode(_EntryOut(epoch, raw, disk_swaps))


def encode_batch(batch: Batch) -> bytes:
    """Encode a whole batch whose timestamps are set, inline."""
    return encode_entry(batch.epoch, [(w.ts, encode_write_set(w)) for w in batch.writes], batch.swaps)


@dataclasses.dataclass(frozen=True, slots=True)
class LogEntry:
    """A decoded entry: write sets, or the names of the blobs that hold them with their timestamps."""

    epoch: int
    writes: tuple[WriteSet | tuple[Timestamp, str], ...]
    swaps: tuple[PartSwap, ...]

    @property
    def upper(self) -> Timestamp | None:
        """The highest timestamp in the entry, None if it has no transaction."""
        if not self.writes:
            return None
        last = self.writes[-1]
        return last[0] if isinstance(last, tuple) else last.ts


def decode_entry(data: bytes) -> LogEntry:
    """Decode a log entry. Part paths are empty: the caller asks the blob store (``wal.read``).

    Raises:
        UnknownFormat: the entry was written by a newer server, or is damaged.
    """
    if data[:1] != FORMAT_BYTE:
        raise UnknownFormat(f"log entry has format {data[:1].hex() or 'none'}; this server knows {FORMAT}")
    try:
        entry = _entry_decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise UnknownFormat(f"log entry cannot be read: {error}") from error
    writes = tuple([(ts, w) if type(w) is str else _stamped(w, ts) for ts, w in entry.writes])
    return LogEntry(entry.epoch, writes, entry.swaps)


def decode_batch(data: bytes) -> Batch:
    """Decode a log entry all of whose write sets are inline. Raises UnknownFormat."""
    entry = decode_entry(data)
    writes: list[WriteSet] = []
    for w in entry.writes:
        if isinstance(w, tuple):
            raise UnknownFormat(f"write set is in blob {w[1]}")
        writes.append(w)
    return Batch(epoch=entry.epoch, writes=tuple(writes), swaps=entry.swaps)


def _stamped(writes: Any, ts: Timestamp) -> WriteSet:
    return stamp_parts(WriteSet(txn=writes.txn, ts=ts, shards=writes.shards, schema=writes.schema))


def stamp_parts(writes: WriteSet) -> WriteSet:
    """Give bulk-loaded parts the write set's timestamp: they were written before it was known."""
    for shard in writes.shards:
        if shard.parts:
            break
    else:
        return writes
    ts = writes.ts
    shards = tuple(
        _replace(
            s,
            parts=tuple(
                p if p.max_begin else dataclasses.replace(p, min_begin=ts, max_begin=ts) for p in s.parts
            ),
        )
        for s in writes.shards
    )
    return _replace(writes, shards=shards)


def encode_spec(spec: ShardSpec) -> bytes:
    """Encode a schema (manifests, part footers)."""
    return FORMAT_BYTE + _encode(_disk_spec(spec))


_spec_decoder = msgspec.msgpack.Decoder(ShardSpec, ext_hook=_ext_hook)


def decode_spec(data: bytes) -> ShardSpec:
    """Decode a schema. Raises UnknownFormat."""
    if data[:1] != FORMAT_BYTE:
        raise UnknownFormat(f"schema has format {data[:1].hex() or 'none'}; this server knows {FORMAT}")
    try:
        return _spec_decoder.decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise UnknownFormat(f"schema cannot be read: {error}") from error
