"""Checksums of what is stored: CRC-32, which finds every burst of up to 32 flipped bits.

    register, ends blob     02 | crc | content         manifests, the timestamp bound, reserved numbers, the lease
    register                03 | crc | content         manifests with told transactions (``persist.parts.manifest``)
    write set in a blob     02 | content | crc
    log entry               02 | length of head | crc of head | crc of body | head | body     (txn.values.encoding)
    sidecar                 content | crc per 64 kB | crc of those | their number
    part                    Parquet's own crc per page; its footer's and the whole file's are in the .sys sidecar

Sidecars are mapped, not read: a block is checked when it is first touched. Pages are checked whenever they are
decoded here; before DuckDB or Spark read a part by themselves, the whole file is checked, once per process.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final
from zlib import crc32

import msgspec

from txn.base.errors import DamagedFile, UnknownFormat
from txn.persist.trouble import exactly, opened

FORMAT: Final = 2
FORMAT_BYTE: Final = bytes([FORMAT])
WRITERS_FORMAT_BYTE: Final = b"\x03"
"""Of manifests with told transactions."""
SEED: Final = crc32(FORMAT_BYTE)
"""Checksums begin with the format byte: one that flipped is told from another format's."""
BLOCK_BYTES: Final = 1 << 16
_OLD_FORMAT_BYTE: Final = b"\x01"
_OLD_NUMBER_BYTES: Final = 10
_NUMBER: Final = struct.Struct("<Q")
_CRC: Final = struct.Struct("<I")
_TRAILER: Final = struct.Struct("<II")  # crc of the table, number of blocks
_READ_BYTES: Final = 1 << 20


def seal(content: bytes, format_byte: bytes = b"") -> bytes:
    """Return ``content`` with format byte (by default the lowest) and checksum in front."""
    written = format_byte or FORMAT_BYTE
    return written + _CRC.pack(crc32(content, crc32(written))) + content


def sealed_parts(*parts: memoryview) -> Iterator[bytes]:
    """Yield b"" between steps of some milliseconds, and at last what ``seal`` gives for the bytes of
    ``parts`` together, which are copied once.
    """
    crc = SEED
    for part in parts:
        crc = crc32(part, crc)
        yield b""
    yield b"".join((FORMAT_BYTE, _CRC.pack(crc), *parts))


def unseal(name: str, data: bytes, also: bytes = b"") -> memoryview:
    """Return the content of sealed bytes. ``name`` says whose they are, for errors; ``also``: another format byte
    that they may have.

    Raises UnknownFormat (another format byte), DamagedFile.
    """
    content = memoryview(data)[5:]
    if len(data) >= 5:
        crc = _CRC.unpack_from(data, 1)[0]
        if crc == crc32(content, SEED) or (also and crc == crc32(content, crc32(also))):
            return content
    if not data or data[:1] not in (FORMAT_BYTE, also):
        known = also or FORMAT_BYTE
        raise UnknownFormat(f"{name} has format {data[:1].hex() or 'none'}; this server knows {known.hex()}")
    raise DamagedFile(name, "its checksum is not that of its content")


def seal_number(number: int) -> bytes:
    """Return a number (0 .. 2**63 - 1) sealed: 13 bytes."""
    return seal(_NUMBER.pack(number))


def unseal_number(name: str, data: bytes) -> int:
    """Return a sealed number. Raises as ``unseal``.

    Numbers had no checksum in format 1, but a MessagePack integer. That is shorter: a sealed one whose format byte has
    flipped is not taken for it.
    """
    if data[:1] == _OLD_FORMAT_BYTE and len(data) <= _OLD_NUMBER_BYTES:
        try:
            return msgspec.msgpack.decode(memoryview(data)[1:], type=int)
        except msgspec.MsgspecError as error:
            raise DamagedFile(name, f"it is no number: {error}") from error
    content = unseal(name, data)
    if len(content) != _NUMBER.size:
        raise DamagedFile(name, f"it has {len(content)} bytes")
    return int(_NUMBER.unpack(content)[0])


def write_blocks(file: BinaryIO, buffers: Iterable[Any]) -> None:
    """Write buffers one after the other, and the checksums of their blocks behind."""
    table = array("I")
    crc = filled = 0
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        file.write(view)
        at = 0
        while at < len(view):
            piece = view[at : at + BLOCK_BYTES - filled]
            crc = crc32(piece, crc)
            at += len(piece)
            filled += len(piece)
            if filled == BLOCK_BYTES:
                table.append(crc)
                crc = filled = 0
    if filled:
        table.append(crc)
    file.write(table.tobytes())
    file.write(_TRAILER.pack(crc32(table.tobytes()), len(table)))


class Blocks:
    """A mapping that ``write_blocks`` wrote, checked block by block as it is used.

    ``content`` is the mapping without the checksums. ``unchecked``: how many blocks nobody has looked at yet.
    """

    __slots__ = ("_checked", "_path", "_table", "content", "noted", "unchecked")

    def __init__(self, path: str, data: memoryview) -> None:
        """Raises DamagedFile when the file is cut short or its checksums are damaged themselves."""
        self._path = path
        try:
            crc, count = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
            end = len(data) - _TRAILER.size - 4 * count
            table = data[end : len(data) - _TRAILER.size]
        except struct.error:
            raise DamagedFile(path, f"it has {len(data)} bytes") from None
        if end <= 0 or -(-end // BLOCK_BYTES) != count or crc32(table) != crc:
            raise DamagedFile(path, "it is cut short, or its checksums are damaged")
        self.content = data[:end]
        self._table = array("I", table.tobytes())
        self._checked = bytearray(count)
        self.unchecked = count
        self.noted: Callable[[DamagedFile], Exception] | None = None
        """Told of damage when it is found; returns what to raise."""

    def check(self, start: int, stop: int) -> None:
        """Check the blocks that hold bytes ``start .. stop - 1``. Raises DamagedFile."""
        checked = self._checked
        for block in range(start // BLOCK_BYTES, (stop - 1) // BLOCK_BYTES + 1):
            if not checked[block]:
                first = block * BLOCK_BYTES
                if crc32(self.content[first : first + BLOCK_BYTES]) != self._table[block]:
                    damage = DamagedFile(
                        self._path, f"the checksum of bytes {first} to {first + BLOCK_BYTES} is wrong"
                    )
                    raise damage if self.noted is None else self.noted(damage)
                checked[block] = 1
                self.unchecked -= 1

    def check_more(self, count: int) -> None:
        """Check up to ``count`` blocks that nobody has looked at yet. Raises DamagedFile."""
        at = 0
        for _ in range(min(count, self.unchecked)):
            at = self._checked.find(0, at)
            if at < 0:
                self.unchecked = 0
                return
            self.check(at * BLOCK_BYTES, at * BLOCK_BYTES + 1)


class Tee:
    """A file to write to that keeps the checksum of everything, and the last few writes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.crc = 0
        self._last: deque[bytes] = deque(maxlen=4)
        self.closed = False

    def write(self, data: Any) -> int:
        """Write, and take note."""
        self.crc = crc32(data, self.crc)
        self._last.append(bytes(data) if len(data) <= _READ_BYTES else b"")
        return self._file.write(data)

    def tell(self) -> int:
        """See io."""
        return self._file.tell()

    def flush(self) -> None:
        """Nothing: whoever owns the file syncs it."""

    def close(self) -> None:
        """Nothing: the file stays open."""

    def footer_crc(self) -> int:
        """Return the checksum of a Parquet footer written last, 0 if it cannot be told."""
        return _footer_crc(b"".join(self._last))


def _footer_crc(tail: bytes) -> int:
    if tail[-4:] != b"PAR1":
        return 0
    length = _CRC.unpack_from(tail, len(tail) - 8)[0] + 8
    return crc32(tail[-length:]) if length <= len(tail) else 0


def check_footer(name: str, file: BinaryIO, size: int, crc: int) -> None:
    """Check length and footer of a Parquet file. ``crc`` 0: there is none to compare.

    ``name`` is for errors. Raises DamagedFile, and what reading raises.
    """
    actual = file.seek(0, 2)
    if actual != size:
        raise DamagedFile(name, f"it has {actual} bytes, not {size}")
    file.seek(-8, 2)
    tail = exactly(file, 8)
    length = _CRC.unpack_from(tail)[0] + 8
    if tail[-4:] != b"PAR1" or length > actual:
        raise DamagedFile(name, "it does not end as a Parquet file does")
    if crc:
        file.seek(-length, 2)
        if crc32(exactly(file, length)) != crc:
            raise DamagedFile(name, "the checksum of its footer is wrong")


def check_file(path: str, crc: int) -> None:
    """Check a whole file, in pieces; in a thread. Raises DamagedFile, OSError."""
    found = 0
    with opened(path) as file:
        left = os.fstat(file.fileno()).st_size
        while left:
            piece = exactly(file, min(left, _READ_BYTES))
            found = crc32(piece, found)
            left -= len(piece)
    if found != crc:
        raise DamagedFile(path, "the checksum of the file is wrong")
