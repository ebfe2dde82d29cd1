"""What shows that an SQLite log file does not hold what was written to it. Only reads; nothing is repaired.

    pages, b-trees          PRAGMA quick_check
    meta, registers         a checksum per row, over name and value (formats from 2 on), and the sum of the registers'
    log entries             their own checksums (``txn.values.encoding``); here: the first is the one that ``meta`` says
    the write-ahead file    SQLite checks each frame, and takes the first that is wrong for the end of what was written

The last is right for a transaction that was never finished, and loses what was acknowledged if a byte has flipped. Each
commit is synced before the next one is written::

    frames    1 .. 7  | 8 9 | 10 11 | 12 13 |      12 and 13 are there, so 10 and 11 were synced: 10 is damaged,
    valid     x x x x | x x | -  x  |  x  x |      not unfinished. Were they not there, nobody could tell.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Final
from zlib import crc32

from txn.base.errors import DamagedFile, UnknownFormat
from txn.persist.checksum import WRITERS_FORMAT_BYTE, unseal
from txn.persist.trouble import exactly, opened

_WAL_HEADER: Final = struct.Struct(
    ">8I"
)  # magic, version, page size, checkpoint number, 2 salts, 2 checksums
_FRAME_HEADER: Final = struct.Struct(">6I")  # page, pages after commit (0: no commit), 2 salts, 2 checksums
_MAGIC: Final = 0x377F0682  # the last bit: in which order the checksums take bytes
_MX_FRAME: Final = struct.Struct("=16xI")  # in the header of the shared-memory file
META: Final = ("epoch", "log_first", "register_seq", "registers")
"""The rows of ``meta``. ``registers``: the sum of the checksums in ``register``, so that none can vanish."""
_SUM: Final = 0xFFFFFFFF


def meta_crc(name: str, value: int) -> int:
    """Return the checksum of a row of ``meta``."""
    return crc32(f"{name}={value}".encode())


def register_crc(name: str, seq: int, data: bytes) -> int:
    """Return the checksum of a row of ``register``."""
    return crc32(data, crc32(f"{name}={seq}=".encode()))


def summed(total: int, removed: int, added: int) -> int:
    """Return the sum of the registers' checksums after one was replaced (0: there was none, or is none)."""
    return (total - removed + added) & _SUM


def check_rows(db: Any, path: str) -> None:
    """Check structure and rows of an open log file of today's format. Raises DamagedFile.

    A register whose content is damaged, and shows it by its own checksum, is left to its reader: it concerns less.
    """
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise DamagedFile(path, f"SQLite finds: {' '.join(str(verdict).split())}")
    meta = dict[str, int]()
    for name, value, crc in db.execute("SELECT name, value, crc FROM meta"):
        if crc != meta_crc(name, value):
            raise DamagedFile(path, f"the checksum of {name!r} in table meta is wrong")
        meta[name] = value
    if missing := [name for name in META if name not in meta]:
        raise DamagedFile(path, f"table meta has no {missing[0]!r}")
    total = 0
    for name, seq, data, crc in db.execute("SELECT name, seq, data, crc FROM register"):
        total = summed(total, 0, crc)
        if crc != register_crc(name, seq, data) and not _tells(data):
            raise DamagedFile(path, f"the checksum of register {name!r} is wrong")
    if total != meta["registers"]:
        raise DamagedFile(path, "a register is missing, or one too many is there")
    (first,) = db.execute("SELECT min(seq) FROM log").fetchone()
    if first is not None and first != meta["log_first"]:
        raise DamagedFile(path, f"the log begins at {first}, not at {meta['log_first']}")


def _tells(data: bytes) -> bool:
    """Return whether a register's content shows that it is damaged."""
    try:
        unseal("", data, WRITERS_FORMAT_BYTE)
    except (DamagedFile, UnknownFormat):
        return True
    return False


def valid_frames(path: str) -> int:
    """Return how many frames of the write-ahead file of ``path`` SQLite takes for valid. Raises OSError,
    struct.error.
    """
    with opened(path + "-shm") as file:
        (valid,) = _MX_FRAME.unpack(file.read(_MX_FRAME.size))
    return int(valid)


def frames_end(path: str, page_size: int) -> int:
    """Return where the valid frames end, in bytes from the beginning of the write-ahead file. Raises OSError."""
    valid = valid_frames(path)
    return _WAL_HEADER.size + valid * (_FRAME_HEADER.size + page_size) if valid else 0


def check_wal(path: str) -> None:
    """Check that SQLite has accepted all of the write-ahead file of ``path`` that was ever synced. Raises DamagedFile.

    A connection to ``path`` has read, so that the shared-memory file says how many frames are valid.
    """
    wal = path + "-wal"
    try:
        size = os.path.getsize(wal)
        valid = valid_frames(path)
    except (FileNotFoundError, struct.error):
        return
    if size < _WAL_HEADER.size + _FRAME_HEADER.size:
        return
    with opened(wal) as file:
        header = exactly(file, _WAL_HEADER.size)
        magic, _version, page_size, _number, *salts, sum_1, sum_2 = _WAL_HEADER.unpack(header)
        if magic & ~1 != _MAGIC or _checksum(header[:24], magic & 1) != (sum_1, sum_2):
            raise DamagedFile(wal, "the checksum of its header is wrong")
        frame_size = _FRAME_HEADER.size + page_size
        ended = False
        for number in range(valid, (size - _WAL_HEADER.size) // frame_size):
            file.seek(_WAL_HEADER.size + number * frame_size)
            _page, commit, *frame_salts, _1, _2 = _FRAME_HEADER.unpack(exactly(file, _FRAME_HEADER.size))
            if frame_salts != salts:
                continue  # of an earlier use of the file, or damaged itself
            if ended:
                raise DamagedFile(
                    wal, f"the checksum of frame {valid + 1} or one of the next is wrong, but commits follow"
                )
            ended = commit != 0


def _checksum(data: bytes, big_endian: int) -> tuple[int, int]:
    """Return SQLite's checksum (sqlite.org/fileformat2.html, 4.2) of a multiple of 8 bytes."""
    one = two = 0
    words = struct.unpack(f"{'>' if big_endian else '<'}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
