"""Sidecars: small memory-mapped files beside a part that answer "where" without reading the part.

    <part>.sys     by position: row id and begin; by row id: positions; by begin: ids of told transactions
    <part>.x<id>   one per index: sorted keys -> positions

    key sidecar   | header 64 | types | keys ............ | positions (unless 0, 1, 2 ...) |
                   integers:   keys   int64[k], k rows with a key; the other positions are those of NULLs
                               (rows: here and below entries, of which an inverted index has any number for a row)
                   bytes:      keys   offsets u64[n + 1], then after the positions the heap of txn.values.keycodec keys

All numbers are little-endian, sections begin at multiples of 8. A lookup is a binary search in the mapping: a
microsecond for integers, five for bytes; nothing is kept on the heap. Files never change; behind the sections
are checksums of blocks (``persist.checksum``). A key sidecar's blocks are checked when a search first touches
them, and a few more with every search, until all are; searches take some microseconds longer until then.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from txn.base.errors import DamagedFile, UnknownFormat
from txn.base.types import BoundedArray, Key, KeyRange, PhysicalType
from txn.base.writers import Writers
from txn.persist import mapping
from txn.persist.checksum import Blocks
from txn.persist.trouble import opened
from txn.values.columns import int64_view
from txn.values.keycodec import KeyCodec

_MAGIC: Final = b"HFSIDECR"
_FORMAT: Final = 2
_WRITERS_FORMAT: Final = 3
_HEADER: Final = struct.Struct("<8sIIQQIIqqII")
# magic format kind rows keys flags types_len base begin; of the part: crc of the file, of its footer
_INTS, _BYTES, _SYSTEM = 1, 2, 3
LONG_BYTES: Final = 16 << 20
"""Of a sidecar that is read whole: what has been read of a longer one is let go of."""
LONG_VALUE: Final = 16 << 10
"""Characters, bytes or elements of a key's value from which on it is compared piece by piece."""
_SIZED: Final = frozenset((str, bytes, tuple, BoundedArray))
LONG_KEY: Final = 1 << 20
"""Bytes of a key from which on what a look-up has read of others is let go of: they may be as long."""
_IDENTITY = 1  # positions are 0, 1, 2 ...
_DENSE = 2  # row ids are base, base + 1 ...
_ASCENDING = 4  # row ids rise with the position
_ONE_BEGIN = 8  # all rows begin at the same timestamp
_WRITERS = 16  # the last sections are timestamps of told transactions and their ids; ``keys`` counts them

_SLICE_BYTES: Final = 16 << 20
CHECK_BLOCKS: Final = 8  # checked beyond what a search needs: about 0.4 ms

Buffers = list[Any]


def _pad(size: int) -> bytes:
    return b"\0" * (-size % 8)


def _raw(column: Any, width: int) -> Any:
    """Return the value buffer of a null-free fixed-width array."""
    buffer = column.buffers()[1]
    if buffer is None:
        return b""
    return buffer[column.offset * width : (column.offset + len(column)) * width]


def _header(
    kind: int, rows: int, keys: int, flags: int, types: bytes = b"", base: int = 0, begin: int = 0,
    crcs: tuple[int, int] = (0, 0),
) -> Buffers:  # fmt: skip
    version = _WRITERS_FORMAT if kind == _SYSTEM and flags & _WRITERS else _FORMAT
    head = _HEADER.pack(_MAGIC, version, kind, rows, keys, flags, len(types), base, begin, *crcs)
    return [head, types, _pad(len(types))]


def _is_sorted(column: Any) -> bool:
    if len(column) < 2:
        return True
    return bool(pc.all(pc.less_equal(column.slice(0, len(column) - 1), column.slice(1))).as_py())


def _is_strictly_sorted(column: Any) -> bool:
    return bool(pc.all(pc.less(column.slice(0, len(column) - 1), column.slice(1))).as_py())


def _positions(order: Any) -> Buffers:
    data = _raw(order.cast(pa.uint32()), 4)
    return [data, _pad(len(data))]


def build_key_sidecar(
    codec: KeyCodec, columns: Sequence[Any], dims: Sequence[Any], places: Any = None
) -> Buffers:
    """Return a key sidecar's contents for an index over ``columns`` (pyarrow arrays in part order).

    ``places``: the position in the part (uint32) of each entry, where these are not the part's rows one by
    one: of an inverted index, which has any number of entries for a row. Runs in a thread; takes about 0.2 us
    a row for integers, 0.5 us for texts.
    """
    types = msgspec.msgpack.encode(codec.types)
    rows = len(columns[0])
    if codec.is_int:
        values = int64_view(columns[0])
        keys = rows - values.null_count
        if places is None and not values.null_count and _is_sorted(values):
            return [*_header(_INTS, rows, keys, _IDENTITY, types), _raw(values, 8)]
        order = pc.array_sort_indices(values, null_placement="at_end")
        ordered = values.take(order).slice(0, keys)
        order = order if places is None else places.take(order)
        return [*_header(_INTS, rows, keys, 0, types), _raw(ordered, 8), *_positions(order)]
    encoded = codec.encode_arrow(columns, dims)
    flags, positions = _IDENTITY, []
    if places is not None or not _is_sorted(encoded):
        order = pc.array_sort_indices(encoded)
        encoded = encoded.take(order)
        flags, positions = 0, _positions(order if places is None else places.take(order))
    if encoded.offset:
        encoded = pa.concat_arrays([encoded, encoded.slice(0, 0)])
    _, offsets, heap = encoded.buffers()
    offsets = offsets[: (rows + 1) * 8] if rows else b"\0" * 8
    return [*_header(_BYTES, rows, rows, flags, types), offsets, *positions, heap or b""]


def build_system_sidecar(
    row_ids: Any, begins: Any, crcs: tuple[int, int] = (0, 0), writers: tuple[Any, Any] | None = None
) -> Buffers:
    """Return the system sidecar's contents from the int64 arrays in part order (at least one row).

    ``crcs``: of the part's file, and of its footer (0: not known). ``writers``: timestamps, rising, and ids of told
    transactions (``txn.base.writers``) as int64 arrays, None for none.
    """
    rows = len(row_ids)
    first = row_ids[0].as_py()
    flags = 0
    body: Buffers = []
    if _is_sorted(row_ids):
        flags |= _ASCENDING
        if row_ids[rows - 1].as_py() - first == rows - 1 and _is_strictly_sorted(row_ids):
            flags |= _DENSE
    if not flags & _DENSE:
        body.append(_raw(row_ids, 8))
    bounds: Any = pc.min_max(begins).as_py()
    if bounds["min"] == bounds["max"]:
        flags |= _ONE_BEGIN
    else:
        body.append(_raw(begins, 8))
    if not flags & _ASCENDING:
        order = pc.array_sort_indices(row_ids)
        body += [_raw(row_ids.take(order), 8), *_positions(order)]
    keys = rows
    if writers is not None:
        keys = len(writers[0])
        flags |= _WRITERS
        body += [_raw(column, 8) for column in writers]
    return [*_header(_SYSTEM, rows, keys, flags, b"", first, bounds["min"], crcs), *body]


class _Mapped:
    """A mapped sidecar: checks header and length, hands out typed sections."""

    def __init__(self, path: str, kinds: tuple[int, ...]) -> None:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEADER.size:
                raise DamagedFile(path, f"it has {size} bytes")
            self._mapping = mapping.Mapping(file.fileno(), size)
        self.blocks = Blocks(path, self._mapping.view)
        self._data = self.blocks.content
        self.blocks.check(0, _HEADER.size)
        (
            magic,
            version,
            self.kind,
            self.rows,
            self.keys,
            self.flags,
            types_len,
            self.base,
            self.begin,
            *crcs,
        ) = _HEADER.unpack_from(self._data)
        self.file_crc, self.footer_crc = crcs
        if magic == _MAGIC and version not in (_FORMAT, _WRITERS_FORMAT):
            raise UnknownFormat(
                f"{path} is a sidecar of format {version}; this server knows {_WRITERS_FORMAT}"
            )
        if magic != _MAGIC or self.kind not in kinds:
            raise DamagedFile(path, f"it is a sidecar of format {version}, kind {self.kind}")
        self._path = path
        self._at = _HEADER.size
        self.blocks.check(0, _HEADER.size + types_len)
        self.types_bytes = bytes(self.bytes_section(types_len))
        self._at += -types_len % 8

    def forget_pages(self) -> None:
        """Let go of what has been read: it comes back from the page cache when it is needed."""
        for _ in self.forget_slices():
            pass

    def forget_slices(self) -> Iterator[None]:
        """Do that in slices of about a millisecond; between two yields anybody may read."""
        for start in range(0, len(self._mapping), _SLICE_BYTES):
            self._mapping.forget(start, min(_SLICE_BYTES, len(self._mapping) - start))
            yield

    @property
    def at(self) -> int:
        """Where the next section begins."""
        return self._at

    def bytes_section(self, size: int) -> memoryview:
        """Return the next ``size`` bytes. UnknownFormat if the file is shorter."""
        if self._at + size > len(self._data):
            raise DamagedFile(self._path, "it is cut short")
        section = self._data[self._at : self._at + size]
        self._at += size
        return section

    def int64s(self, count: int) -> memoryview:
        """Return the next section as int64[count]."""
        return self.bytes_section(count * 8).cast("q")

    def positions(self) -> memoryview | range:
        """Return the positions section: u32[rows], or 0, 1, 2 ..."""
        if self.flags & _IDENTITY:
            return range(self.rows)
        section = self.bytes_section(self.rows * 4).cast("I")
        self._at += -self.rows * 4 % 8
        return section

    def rest(self) -> memoryview:
        """Return what remains."""
        return self._data[self._at :]


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """A key sidecar as arrays.

    ``keys``: in order, int64 (NULLs left out: they are the rows behind) or large_binary of ``codec``.
    ``positions``: a uint32 array, or range(rows) for 0, 1, 2 ...; those of NULLs behind the others.
    ``forget``: lets go of what has been read of them, which comes back from the page cache when it is needed.
    """

    keys: Any
    positions: Any
    codec: KeyCodec
    is_int: bool
    forget: Callable[[], None]

    def decode(self, key: Any) -> Key:
        """Return an item of ``keys`` as a key; of bytes, which may be megabytes, as a view of where they lie."""
        return (key,) if self.is_int else self.codec.decode_long(key)


class _HeapKeys(Sequence[bytes]):
    """The keys of a bytes sidecar as a sequence that ``bisect`` can search."""

    __slots__ = ("_count", "_heap", "_offsets")

    def __init__(self, offsets: Any, heap: Any) -> None:
        self._offsets, self._heap, self._count = offsets, heap, len(offsets) - 1

    def sections(self) -> tuple[Any, Any]:
        """Return offsets and heap."""
        return self._offsets, self._heap

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: Any) -> Any:
        offsets = self._offsets
        return bytes(self._heap[offsets[i] : offsets[i + 1]])


class _Heads(Sequence[bytes]):
    """As much of each key as tells it from another: of keys of megabytes little is copied."""

    __slots__ = ("_heap", "_keys", "_offsets", "_size")

    def __init__(self, keys: _HeapKeys, size: int) -> None:
        self._keys, self._size = keys, size
        self._offsets, self._heap = keys.sections()

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, i: Any) -> Any:
        start, end = self._offsets[i], self._offsets[i + 1]
        return bytes(self._heap[start : min(end, start + self._size)])


class _Checked(Sequence[Any]):
    """A section whose blocks are checked before an item is looked at."""

    __slots__ = ("_blocks", "_items", "_start", "_width")

    def __init__(self, items: memoryview, blocks: Blocks, start: int, width: int) -> None:
        self._items, self._blocks, self._start, self._width = items, blocks, start, width

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):  # of a heap of bytes
            self._blocks.check(self._start + i.start, self._start + max(i.stop, i.start + 1))
        else:
            at = self._start + i * self._width
            self._blocks.check(at, at + self._width)
        return self._items[i]


class KeySidecar:
    """An open key sidecar. All methods are synchronous and take microseconds. They raise DamagedFile."""

    def __init__(self, path: str, noted: Callable[[DamagedFile], Exception] | None = None) -> None:
        """Map the file. ``noted`` is told of damage found later, and returns what to raise. Raises
        FileNotFoundError, UnknownFormat, DamagedFile.
        """
        mapped = _Mapped(path, (_INTS, _BYTES))
        self.forget_slices = mapped.forget_slices
        self._blocks = blocks = mapped.blocks
        blocks.noted = noted
        self._codec = KeyCodec(msgspec.msgpack.decode(mapped.types_bytes, type=list[PhysicalType]))
        self._is_int = mapped.kind == _INTS
        self._rows = mapped.rows
        self._count = mapped.keys
        self._keys: Any
        self._positions: Any
        at = mapped.at
        if self._is_int:
            rest: Any = b""
            keys = mapped.int64s(mapped.keys)
            places = mapped.at
            positions = mapped.positions()
            self._plain: tuple[Any, Any] = keys, positions
            self._keys = _Checked(keys, blocks, at, 8)
        else:
            offsets = mapped.int64s(mapped.rows + 1)
            places = mapped.at
            positions = mapped.positions()
            heap = mapped.at
            rest = mapped.rest()
            self._plain = _HeapKeys(offsets, rest), positions
            self._keys = _HeapKeys(_Checked(offsets, blocks, at, 8), _Checked(rest, blocks, heap, 1))
        self._positions = (
            positions if isinstance(positions, range) else _Checked(positions, blocks, places, 4)
        )
        self._long = not self._is_int and len(rest) > max(self._rows, 1) * LONG_VALUE
        """Whether keys are long, on average."""
        self._checked = False

    def _check_more(self) -> None:
        """Check some blocks more; once all are, look at the mapping itself from now on."""
        self._blocks.check_more(CHECK_BLOCKS)
        if not self._blocks.unchecked:
            self._keys, self._positions = self._plain
            self._checked = True

    def lookup(self, key: Key) -> list[int]:
        """Return the positions of rows whose key equals ``key`` (full, no NULLs)."""
        if not self._checked:
            self._check_more()
        if self._is_int:
            return self._found(key[0])
        for value in key:
            if value.__class__ in _SIZED and len(value) > LONG_VALUE:
                return self._found_long(key)
        return self._found(self._codec.encode(key))

    def _found_long(self, key: Key) -> list[int]:
        """As ``lookup``, of a key that may be megabytes: neither it nor those beside it are ever copied."""
        low, high, equal = 0, self._count, -1
        read = 0
        while low < high:
            middle = (low + high) // 2
            order, size = self._compare(middle, key)
            read += size
            if order < 0:
                low = middle + 1
            else:
                high = middle
                if order == 0:
                    equal = middle
        found: list[int] = []
        while low < self._count and (low == equal or self._compare(low, key)[0] == 0):
            found.append(self._positions[low])
            low += 1
        if read > LONG_KEY:
            self._forget()
        return found

    def _compare(self, slot: int, key: Key) -> tuple[int, int]:
        """Return whether the key of a slot comes before (-1) another, behind it (1), or is equal (0), and how
        many bytes were read.
        """
        offsets, heap = self._keys.sections()
        start, end = offsets[slot], offsets[slot + 1]
        at = start
        for piece in self._codec.pieces(key):
            ours = bytes(heap[at : min(at + len(piece), end)]) if at < end else b""
            at += len(ours)
            if ours != piece:
                return (-1 if ours < piece else 1), at - start
        return int(at < end), at - start

    def _found(self, wanted: Any) -> list[int]:
        keys, count = self._keys, self._count
        if self._long:
            keys = _Heads(keys, len(wanted) + 1)
        at = bisect_left(keys, wanted, 0, count)
        found: list[int] = []
        while at < count and keys[at] == wanted:
            found.append(self._positions[at])
            at += 1
        return found

    def count(self, wanted: KeyRange) -> int:
        """Return how many entries lie in a range; here NULL equals NULL."""
        low, high = self._span(wanted)
        return high - low

    def _span(self, wanted: KeyRange) -> tuple[int, int]:
        """Return the half-open range of sorted slots, NULLs included, that the range selects."""
        if not self._checked:
            self._check_more()
        keys, count = self._keys, self._count
        if not self._is_int:
            start, stop = self._codec.bounds(wanted)
            if self._long:
                low = bisect_left(_Heads(keys, len(start) + 1), start, 0, count)
                return low, bisect_left(_Heads(keys, len(stop) + 1), stop, low, count)
            low = bisect_left(keys, start, 0, count)
            return low, bisect_left(keys, stop, low, count)
        if wanted.prefix:
            value = wanted.prefix[0]
            if value is None:
                return count, self._rows
            return bisect_left(keys, value, 0, count), bisect_right(keys, value, 0, count)
        low, high = 0, self._rows
        if wanted.has_lower or wanted.has_upper:
            high = count
        if wanted.has_lower:
            if wanted.lower is None:
                return 0, 0
            find = bisect_left if wanted.lower_inclusive else bisect_right
            low = find(keys, wanted.lower, 0, count)
        if wanted.has_upper:
            if wanted.upper is None:
                return 0, 0
            find = bisect_right if wanted.upper_inclusive else bisect_left
            high = find(keys, wanted.upper, 0, count)
        return low, max(low, high)

    def arrays(self) -> SortedKeys:
        """Return all keys and their positions as Arrow arrays over the mapping. Checks all blocks: in a
        thread. Of long ones no more than some stays in memory.
        """
        self.check_all()
        if len(self._blocks.content) > LONG_BYTES:
            self._forget()
        keys, positions = self._plain
        if not isinstance(positions, range):
            positions = pa.Array.from_buffers(pa.uint32(), self._rows, [None, pa.py_buffer(positions)])
        if self._is_int:
            found = pa.Array.from_buffers(pa.int64(), self._count, [None, pa.py_buffer(keys)])
        else:
            found = pa.Array.from_buffers(
                pa.large_binary(), self._rows, [None, *map(pa.py_buffer, keys.sections())]
            )
        return SortedKeys(found, positions, self._codec, self._is_int, self._forget)

    def _forget(self) -> None:
        for _ in self.forget_slices():
            pass

    def check_all(self) -> None:
        """Check all blocks; in a thread. Raises DamagedFile."""
        self._blocks.check_more(self._blocks.unchecked)

    def _key_at(self, slot: int) -> bytes:
        if self._is_int:
            return self._codec.encode((self._keys[slot] if slot < self._count else None,))
        key: bytes = self._keys[slot]
        return key

    def range(self, wanted: KeyRange, *, reverse: bool = False) -> Iterator[tuple[bytes, int]]:
        """Yield (memcomparable key, position) in key order; equal keys in order of position."""
        low, high = self._span(wanted)
        slots = range(high - 1, low - 1, -1) if reverse else range(low, high)
        for slot in slots:
            yield self._key_at(slot), self._positions[slot]

    def _values_at(self, slot: int) -> Key:
        if self._is_int:
            return (self._keys[slot] if slot < self._count else None,)
        return self._codec.decode(self._keys[slot])

    def entries(self, wanted: KeyRange, *, reverse: bool = False) -> Iterator[tuple[Key, int]]:
        """Yield (key, position) in key order; the key as ``KeyCodec.decode`` gives it."""
        low, high = self._span(wanted)
        slots = range(high - 1, low - 1, -1) if reverse else range(low, high)
        for slot in slots:
            yield self._values_at(slot), self._positions[slot]

    def after(self, wanted: KeyRange) -> Key | None:
        """Return the first key beyond a range, None if there is none."""
        slot = self._span(wanted)[1]
        return self._values_at(slot) if slot < self._rows else None

    def ceiling(self, key: Key) -> Key | None:
        """Return the first key at or above a full one (NULLs allowed), None if there is none."""
        slot = self._span(KeyRange(prefix=key))[0]
        return self._values_at(slot) if slot < self._rows else None


class SystemSidecar:
    """Row ids and begins of a part, both ways. ``file_crc``, ``footer_crc``: checksums of the part (0: not known).

    ``writers``: the told transactions among those that made its rows, None where there are none.
    """

    def __init__(self, path: str) -> None:
        """Map the file and check all of it (in a thread): applying commits relies on it.

        Raises FileNotFoundError, UnknownFormat, DamagedFile.
        """
        mapped = _Mapped(path, (_SYSTEM,))
        mapped.blocks.check_more(mapped.blocks.unchecked)
        mapped.forget_pages()
        self.forget_slices = mapped.forget_slices
        self.file_crc, self.footer_crc = mapped.file_crc, mapped.footer_crc
        flags = mapped.flags
        self.rows = rows = mapped.rows
        self._ids: memoryview | range = (
            range(mapped.base, mapped.base + rows) if flags & _DENSE else mapped.int64s(rows)
        )
        self.one_begin: int | None = mapped.begin if flags & _ONE_BEGIN else None
        self._begins: memoryview | None = None if flags & _ONE_BEGIN else mapped.int64s(rows)
        self._dense = bool(flags & _DENSE)
        self._base = mapped.base
        if flags & _ASCENDING:
            self._sorted: memoryview | range = self._ids
            self._positions: memoryview | range = range(rows)
        else:
            self._sorted = mapped.int64s(rows)
            self._positions = mapped.positions()
        self.writers: Writers | None = None
        if flags & _WRITERS:
            self.writers = Writers(mapped.int64s(mapped.keys), mapped.int64s(mapped.keys))

    def row_id(self, position: int) -> int:
        """Return the row id at a position; IndexError outside."""
        return self._ids[position]

    def begin(self, position: int) -> int:
        """Return the stored begin at a position (0: a bulk load's, known by the part's reference)."""
        return self._begins[position] if self._begins is not None else self.one_begin or 0

    def row_ids(self) -> Any:
        """Return the row ids by position as an Arrow int64 array: the file itself where they are not consecutive."""
        ids = self._ids
        if isinstance(ids, range):
            ones = pa.repeat(pa.scalar(1, pa.int64()), self.rows)
            return pc.cumulative_sum(ones, start=pa.scalar(self._base - 1, pa.int64()))
        return pa.Array.from_buffers(pa.int64(), self.rows, [None, pa.py_buffer(ids)])

    def positions(self, row_id: int) -> list[int]:
        """Return the positions of a row's versions."""
        if self._dense:
            at = row_id - self._base
            return [at] if 0 <= at < self.rows else []
        ids = self._sorted
        at = bisect_left(ids, row_id)
        found: list[int] = []
        while at < self.rows and ids[at] == row_id:
            found.append(self._positions[at])
            at += 1
        return found
