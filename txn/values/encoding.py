"""Bytes of log entries and registers: MessagePack with a format byte in front.

    log entry   03 | length, checksums, length | [epoch, upper, [shard, ...]] | body
         body   [epoch, [[ts, write set or blob name], ...], [swap, ...]]
    log entry   04 | the same, with a body of four: [..., [transaction, ...]], those that are told (``records.Batch``)
    write set   [txn, 0, [[shard, [[row id, replaced, [value, ...]], ...], parts ...], ...], schema]
    blob        03 | write set | checksum                          (large write sets, C18)

Format 2 differs only in that no write set of it has ended rows (``records.EndedRows``); it is read as well.

The head of an entry says which shards are in doubt when its body is damaged; either half can be read alone.

Values of the value domain are self-describing, so that no schema is needed to read the log:

    None bool int float str bytes    MessagePack's own
    Decimal                          extension 1: its text, which keeps scale, NaN and infinities
    tuple (arrays, intervals ...)    extension 2: a MessagePack array, encoded by the same rules
    BoundedArray                     extension 3: a MessagePack array of the lower bounds and the items, encoded so
    bytes of a row type's value      extension 4 where an array with lower bounds is inside (``row_keeps_bounds``), so that a server
                                     that knows none refuses it by that number
    Decimal                          extension 5 of more than 38 digits, and NaN: a server that has no exact form (``txn.values.exact``) for
                                     them refuses it so

A write set is encoded when it is submitted, before its timestamp is known, so that a value that cannot be
encoded fails that transaction alone and a batch is put together without touching rows again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable, Iterator, Sequence
from decimal import Decimal
from struct import Struct
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext

from txn.base.errors import DamagedEntry, DamagedFile, UnknownFormat
from txn.base.huge_values import SHARED_BYTES, bytes_of, is_huge, utf8_pieces
from txn.base.records import Batch, PartSwap, RowOp, SchemaChange, ShardWrites, WriteSet
from txn.base.slices import Slice
from txn.base.types import (
    BoundedArray,
    Row,
    ShardId,
    ShardSpec,
    Timestamp,
    TxnId,
    bounded,
    row_keeps_bounds,
)
from txn.values.exact import MAX_DIGITS, fits, is_long

FORMAT = 1
FORMAT_BYTE = bytes([FORMAT])
ENTRY_FORMAT = 3  # of log entries and of write sets in blobs
ENTRY_FORMAT_BYTE = bytes([ENTRY_FORMAT])
TOLD_FORMAT = 4  # of log entries with told transactions
TOLD_FORMAT_BYTE = bytes([TOLD_FORMAT])
_CRC = Struct("<I")
_SIZES = Struct("<IIII")  # length and checksum of the head, checksum of the body, and the length again
SEED = crc32(ENTRY_FORMAT_BYTE)  # of checksums: a format byte that flipped is told from another format's
_TOLD_SEED = crc32(TOLD_FORMAT_BYTE)
_SEEDS = {
    b"\x02": crc32(b"\x02"),
    ENTRY_FORMAT_BYTE: SEED,
    TOLD_FORMAT_BYTE: _TOLD_SEED,
}  # of the formats that are read
_EXT_DECIMAL = 1
_EXT_TUPLE = 2
_EXT_BOUNDED = 3
_EXT_BOUNDED_ROW = 4
_EXT_EXACT = 5
CHUNK_OPS = 2000  # operations encoded in one go: about a millisecond, if rows are short
CHUNK_VALUES = 20_000  # values of rows that are
SHORT_SCHEMA = 200  # changes and columns of schemas that are
FEW_OPS = 4  # are not weighed
PIECE_BYTES = 1 << 20  # of a write set that is encoded slowly, about
LONG_ARRAY = 2048  # items of an array that is encoded in pieces: of numerics a millisecond or two
LONG_NUMBER_COST = 8  # bytes of text that are encoded as quickly as a byte of a number of many digits
ARRAY_STEP = 256  # items encoded between two looks at the clock
_NO_TS = Timestamp(0)
Piece = bytes | memoryview


class _EntryOut(msgspec.Struct, frozen=True, array_like=True):
    """A batch as written: write sets are ready-made bytes, their timestamps stand beside them."""

    epoch: int
    writes: tuple[tuple[Timestamp, Raw], ...]
    swaps: tuple[PartSwap, ...]


class _ToldEntryOut(msgspec.Struct, frozen=True, array_like=True):
    """The same with told transactions."""

    epoch: int
    writes: tuple[tuple[Timestamp, Raw], ...]
    swaps: tuple[PartSwap, ...]
    told: tuple[TxnId, ...]


class _EntryIn(msgspec.Struct, frozen=True, array_like=True):
    """A batch as read."""

    epoch: int
    writes: tuple[tuple[Timestamp, WriteSet | str], ...]
    swaps: tuple[PartSwap, ...]
    told: tuple[TxnId, ...] = ()


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """What is needed of an entry whose body is damaged."""

    epoch: int
    upper: Timestamp | None
    shards: tuple[ShardId, ...]


def _ext_hook(code: int, data: memoryview) -> Any:
    if code in (_EXT_DECIMAL, _EXT_EXACT):
        return Decimal(str(data, "ascii"))
    if code == _EXT_TUPLE:
        return _tuple_decoder.decode(data)
    if code == _EXT_BOUNDED:
        lows, items = _tuple_decoder.decode(data)
        return bounded(items, lows)
    if code == _EXT_BOUNDED_ROW:
        return bytes(data)
    raise UnknownFormat(f"a stored value has the unknown extension type {code}")


_encoder = msgspec.msgpack.Encoder()
_tuple_decoder = msgspec.msgpack.Decoder(tuple[Any, ...], ext_hook=_ext_hook)
_write_set_decoder = msgspec.msgpack.Decoder(WriteSet, ext_hook=_ext_hook)
_entry_decoder = msgspec.msgpack.Decoder(_EntryIn, ext_hook=_ext_hook)
_head_decoder = msgspec.msgpack.Decoder(_Head)
_encode = _encoder.encode
_replace = msgspec.structs.replace


def disk_value(value: Any) -> Any:
    """Return what MessagePack is given for a value of the value domain."""
    kind = type(value)
    if kind is Decimal:
        text = str(value)
        plain = len(text) <= MAX_DIGITS and text != "NaN" and "+" not in text
        return Ext(_EXT_DECIMAL if plain or _is_plain_number(value) else _EXT_EXACT, text.encode("ascii"))
    if kind is tuple:
        return Ext(_EXT_TUPLE, _encode([disk_value(v) for v in value]))
    if kind is BoundedArray:
        return Ext(_EXT_BOUNDED, _encode([disk_value(value.lows), disk_value(tuple(value))]))
    if kind is bytes and row_keeps_bounds(value):
        return Ext(_EXT_BOUNDED_ROW, value)
    return value


def _is_plain_number(value: Decimal) -> bool:
    """Tell whether each column of numbers that may have it has it in its plain form; whose it is is not known here."""
    return fits("decimal", value) and fits("numeric", value)


_ARRAYS = frozenset((tuple, BoundedArray))
_SPECIAL = _ARRAYS | {Decimal}
_LOOKED_AT = _SPECIAL | {bytes}
_WEIGHED = _ARRAYS | {str, bytes}
_MEASURED = _WEIGHED | {Decimal}


def _same_on_disk(values: Row) -> bool:
    """Tell whether MessagePack is given a row's values, some of which are ``_LOOKED_AT``, as they are."""
    return _SPECIAL.isdisjoint(map(type, values)) and not any(
        type(v) is bytes and row_keeps_bounds(v) for v in values
    )


def _disk_op(op: RowOp) -> RowOp:
    values = op.values
    if values is None or _LOOKED_AT.isdisjoint(map(type, values)) or _same_on_disk(values):
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


def _items(value: Any) -> int:
    """Return about how many items an array has, in all dimensions."""
    count = len(value)
    while count and value[0].__class__ is tuple:
        value = value[0]
        count *= len(value)
    return count


def _is_long(value: Any) -> bool:
    """Tell whether a value is an array that is encoded in pieces."""
    return value.__class__ in _ARRAYS and _items(value) > LONG_ARRAY


def encode_write_set(writes: WriteSet) -> bytes:
    """Encode a write set, its timestamp aside. Raises TypeError for a value outside the value domain."""
    return _encode(writes) if _is_plain(writes) else _encode_mapped(writes)


def encode_at_once(writes: WriteSet) -> bytes | None:
    """As ``encode_write_set``; None, with nothing done, where an array takes long: ``encode_write_set_slowly``."""
    if _is_plain(writes):
        return _encode(writes)
    for shard in writes.shards:
        for op in shard.ops:
            for value in op.values or ():
                if value.__class__ in _ARRAYS and _items(value) > LONG_ARRAY:
                    return None
    return _encode_mapped(writes)


def _encode_mapped(writes: WriteSet) -> bytes:
    disk = WriteSet(
        txn=writes.txn,
        ts=_NO_TS,
        shards=tuple([_disk_writes(w, tuple([_disk_op(op) for op in w.ops])) for w in writes.shards]),
        schema=tuple([_disk_schema(c) for c in writes.schema]) if writes.schema else (),
    )
    return _encode(disk)


def _is_plain(writes: WriteSet) -> bool:
    """Tell whether a write set is the same on disk, as most small ones are: rows of plain values."""
    if writes.schema or writes.ts != _NO_TS:
        return False
    for shard in writes.shards:
        if shard.parts:
            return False
        for op in shard.ops:
            values = op.values
            if values is None or _LOOKED_AT.isdisjoint(map(type, values)):
                continue
            if not _same_on_disk(values):
                return False
    return True


def is_short(writes: WriteSet) -> bool:
    """Tell whether a write set is encoded in one go."""
    if (
        writes.schema
        and sum([1 + len(c.spec.columns) if c.spec else 1 for c in writes.schema]) > SHORT_SCHEMA
    ):
        return False
    ops = values = size = 0
    for shard in writes.shards:
        ops += len(shard.ops)
        if ops > CHUNK_OPS:
            return False
        rows = [op.values for op in shard.ops if op.values]
        values += sum(map(len, rows))
        if values > CHUNK_VALUES:
            return False
        weighed: list[Any] = [v for row in rows for v in row if v.__class__ in _MEASURED]
        numbers = [v for v in weighed if v.__class__ is Decimal]
        if numbers:
            size += sum([LONG_NUMBER_COST * v.__sizeof__() for v in numbers if is_long(v)])
            weighed = [v for v in weighed if v.__class__ is not Decimal]
        arrays = [v for v in weighed if v.__class__ in _ARRAYS]
        values += sum(map(_items, arrays))
        if values > CHUNK_VALUES:
            return False
        size += sum(map(len, weighed))
    return size <= PIECE_BYTES


def encode_write_set_slowly(writes: WriteSet) -> Iterator[Piece]:
    """Yield the same bytes piece by piece, with at most a millisecond or two of work between two pieces.

    For large write sets: the caller lets the event loop run in between. Huge values are pieces by themselves,
    and not copied.
    """
    yield bytes((0x94,)) + _encode(writes.txn) + _encode(0) + _array_head(len(writes.shards))
    for shard in writes.shards:
        # The struct's fields, the operations among them chunk by chunk.
        fields = _encode(_disk_writes(shard, ()))
        head = fields[:1] + _encode(shard.shard)
        yield head + _array_head(len(shard.ops))
        yield from _in_pieces(piece for op in shard.ops for piece in _op_pieces(op))
        yield fields[len(head) + 1 :]  # without the head and the empty operations
    yield _array_head(len(writes.schema))
    yield from _in_pieces(_encode(_disk_schema(change)) for change in writes.schema)


def _op_pieces(op: RowOp) -> Iterator[Piece | None]:
    """Yield what an operation is encoded to, and None between steps of a millisecond that give nothing yet."""
    values = op.values
    for value in values or ():
        if value.__class__ in _WEIGHED and (len(value) >= SHARED_BYTES or _is_long(value)):
            break  # ``is_huge``, without a call for each value of a large commit
    else:
        yield _encode(_disk_op(op))
        return
    yield _array_head(3) + _encode(op.row_id) + _encode(op.replaced) + _array_head(len(values or ()))
    for value in values or ():
        if _is_long(value):
            yield from (yield from _array_pieces(value))
            continue
        if not is_huge(value) or disk_value(value) is not value:
            yield _encode(disk_value(value))
            continue
        if type(value) is str and not value.isascii():
            size = 0
            for piece in utf8_pieces(value):
                size += len(piece)
                yield None
            yield b"\xdb" + size.to_bytes(4, "big")
            yield from utf8_pieces(value)
            continue
        content = memoryview(bytes_of(value))
        yield (b"\xdb" if type(value) is str else b"\xc6") + len(content).to_bytes(4, "big")
        yield content


def _array_pieces(value: Any) -> Generator[None, None, list[bytes]]:
    """Return the pieces that a long array is encoded to, a millisecond's work between two yields; nested
    arrays are taken apart where they are long, too.
    """
    if type(value) is BoundedArray:
        items = yield from _array_pieces(tuple(value))
        return _extension(_EXT_BOUNDED, [b"\x92" + _encode(disk_value(value.lows)), *items])
    pieces = [_array_head(len(value))]
    pause = Slice(LONG_ARRAY // ARRAY_STEP, look=1)
    nested = bool(value) and type(value[0]) is tuple
    step = max(ARRAY_STEP // max(_items(value[0]), 1), 1) if nested else ARRAY_STEP
    for at in range(0, len(value), step):
        part = value[at : at + step]
        if nested and _is_long(part[0]):
            pieces += yield from _array_pieces(part[0])
        else:
            pieces.append(b"".join([_encode(disk_value(item)) for item in part]))
        if pause.over():
            yield
    return _extension(_EXT_TUPLE, pieces)


def _extension(code: int, pieces: list[bytes]) -> list[bytes]:
    """Return pieces as those of one MessagePack extension."""
    size = sum(map(len, pieces))
    head = b"\xc8" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xc9" + size.to_bytes(4, "big")
    return [head + bytes((code,)), *pieces]


def _in_pieces(encoded: Iterable[Piece | None]) -> Iterator[Piece]:
    """Join what is encoded to pieces of a slice's work, or of ``PIECE_BYTES``; what has so much by itself is
    one. None ends a slice.
    """
    pause, size = Slice(CHUNK_OPS), 0
    piece: list[Piece] = []
    for one in encoded:
        if one is None:
            yield b"".join(piece)
            piece, size = [], 0
            continue
        if len(one) >= PIECE_BYTES and piece:
            yield b"".join(piece)
            piece, size = [], 0
        piece.append(one)
        size += len(one)
        if pause.over() or size >= PIECE_BYTES:
            yield b"".join(piece) if len(piece) > 1 else one
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


def _array_head(count: int) -> bytes:
    """Return MessagePack's header of an array of ``count`` items."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")


def blob_pieces(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield what a blob holds for the encoded write set of which ``pieces`` are the pieces."""
    yield ENTRY_FORMAT_BYTE
    crc = SEED
    for piece in pieces:
        crc = crc32(piece, crc)
        yield piece
    yield _CRC.pack(crc)


def decode_write_set(data: bytes, ts: Timestamp, name: str = "write set") -> WriteSet:
    """Decode a write set that lies in a blob of its own, ``name``. Raises UnknownFormat, DamagedFile."""
    content = memoryview(data)[1:-4]
    if len(data) < 5 or _CRC.unpack_from(data, len(data) - 4)[0] != crc32(content, _seed(data)):
        _expect_format(data, name)
        raise DamagedFile(name, "its checksum is not that of its content")
    try:
        found = _write_set_decoder.decode(content)
    except (msgspec.MsgspecError, UnknownFormat) as error:
        raise UnknownFormat(f"{name} cannot be read: {error}") from error
    return _stamped(found, ts)


def encode_entry(
    epoch: int, writes: Sequence[tuple[Timestamp, bytes | str]], swaps: tuple[PartSwap, ...] = (),
    shards: Iterable[ShardId] = (), upper: Timestamp = _NO_TS, told: tuple[TxnId, ...] = (),
) -> bytes:  # fmt: skip
    """Encode a log entry from timestamps and write sets: as ``encode_write_set`` made them, or blob names.

    ``shards``: all that the write sets write to. ``upper``: the highest timestamp of any timeline in this entry and
    before it, if that is not the last one's here. ``told``: those of the transactions that are.
    """
    disk_swaps = (
        tuple([_replace(s, added=tuple(dataclasses.replace(p, path="") for p in s.added)) for s in swaps])
        if swaps
        else ()
    )
    raw = tuple([(ts, Raw(data if type(data) is bytes else _encode(data))) for ts, data in writes])
    if told:
        return _told_entry(_ToldEntryOut(epoch, raw, disk_swaps, told), shards, upper)
    body = _encode(_EntryOut(epoch, raw, disk_swaps))
    head = _encode(_Head(epoch, max(writes[-1][0], upper) if writes else None, tuple(shards)))
    sizes = _SIZES.pack(len(head), crc32(head, SEED), crc32(body, SEED), len(head))
    return ENTRY_FORMAT_BYTE + sizes + head + body


def _told_entry(entry: _ToldEntryOut, shards: Iterable[ShardId], upper: Timestamp) -> bytes:
    """The same in the format of entries with told transactions; the others are written without this call."""
    last = entry.writes[-1][0] if entry.writes else None
    body = _encode(entry)
    head = _encode(_Head(entry.epoch, None if last is None else max(last, upper), tuple(shards)))
    sizes = _SIZES.pack(len(head), crc32(head, _TOLD_SEED), crc32(body, _TOLD_SEED), len(head))
    return TOLD_FORMAT_BYTE + sizes + head + body


def encode_batch(batch: Batch) -> bytes:
    """Encode a whole batch whose timestamps are set, inline."""
    writes = [(w.ts, encode_write_set(w)) for w in batch.writes]
    return encode_entry(batch.epoch, writes, batch.swaps, shards_of(batch), told=batch.told)


@dataclasses.dataclass(frozen=True, slots=True)
class LogEntry:
    """A decoded entry: write sets, or the names of the blobs that hold them with their timestamps."""

    epoch: int
    writes: tuple[WriteSet | tuple[Timestamp, str], ...]
    swaps: tuple[PartSwap, ...]
    shards: tuple[ShardId, ...] | None = None
    """All that the write sets write to, None if the head is damaged."""
    upper: Timestamp | None = None
    """The highest timestamp of any timeline up to this entry, None if it has no transaction."""
    told: tuple[TxnId, ...] = ()


def decode_entry(data: bytes, name: str = "log entry") -> LogEntry:
    """Decode a log entry. Part paths are empty: the caller asks the blob store (``wal.read``).

    Raises:
        UnknownFormat: the entry was written by a newer server.
        DamagedEntry: it does not hold what was written.
    """
    body, head = _checked_body(data, name)
    try:
        entry = _entry_decoder.decode(body)
    except (msgspec.MsgspecError, UnknownFormat) as error:
        raise UnknownFormat(f"{name} cannot be read: {error}") from error
    writes = tuple([(ts, w) if type(w) is str else _stamped(w, ts) for ts, w in entry.writes])
    upper = max((ts for ts, _writes in entry.writes), default=None)
    if head is None:
        return LogEntry(entry.epoch, writes, entry.swaps, None, upper, entry.told)
    return LogEntry(entry.epoch, writes, entry.swaps, head.shards, head.upper, entry.told)


def _checked_body(data: bytes, name: str) -> tuple[memoryview, _Head | None]:
    """Return the body and the head, None if that is damaged. Raises DamagedEntry."""
    start = 1 + _SIZES.size
    if len(data) < start:
        _expect_format(data, name)
        raise DamagedEntry(name, f"it has {len(data)} bytes", None, None)
    one, head_crc, body_crc, other = _SIZES.unpack_from(data, 1)
    view = memoryview(data)
    head = None
    seed = _seed(data)
    for length in {one, other}:
        body = view[start + length :]
        if head is None and crc32(view[start : start + length], seed) == head_crc:
            head = _head_decoder.decode(view[start : start + length])
        if crc32(body, seed) == body_crc:
            return body, head
    _expect_format(data, name)
    what = "its checksum is not that of its content"
    if head is None:
        raise DamagedEntry(name, what, None, None)
    raise DamagedEntry(name, what, head.shards, head.upper)


def _seed(data: bytes) -> int:
    """Return what checksums of bytes in this format begin with."""
    return _SEEDS.get(data[:1], SEED)


def _expect_format(data: bytes, name: str) -> None:
    """Raise UnknownFormat for the format byte of another server's."""
    if data[:1] not in _SEEDS:
        raise UnknownFormat(f"{name} has format {data[:1].hex() or 'none'}; this server knows {TOLD_FORMAT}")


def shards_of(batch: Batch) -> set[ShardId]:
    """Return the shards whose durable state the batch changes (part swaps change none)."""
    return {s for writes in batch.writes for s in written_shards(writes)}


def written_shards(writes: WriteSet) -> list[ShardId]:
    """Return the shards whose durable state a write set changes."""
    shards = [w.shard for w in writes.shards]
    if writes.schema:
        shards += [change.shard for change in writes.schema]
    return shards


def decode_batch(data: bytes) -> Batch:
    """Decode a log entry all of whose write sets are inline. Raises UnknownFormat."""
    entry = decode_entry(data)
    writes: list[WriteSet] = []
    for w in entry.writes:
        if isinstance(w, tuple):
            raise UnknownFormat(f"write set is in blob {w[1]}")
        writes.append(w)
    return Batch(epoch=entry.epoch, writes=tuple(writes), swaps=entry.swaps, told=entry.told)


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


def decode_spec(data: bytes, name: str = "schema") -> ShardSpec:
    """Decode a schema, that of ``name``. Raises UnknownFormat."""
    if data[:1] != FORMAT_BYTE:
        raise UnknownFormat(f"{name} has format {data[:1].hex() or 'none'}; this server knows {FORMAT}")
    try:
        return _spec_decoder.decode(memoryview(data)[1:])
    except (msgspec.MsgspecError, UnknownFormat) as error:
        raise UnknownFormat(f"{name} cannot be read: {error}") from error
