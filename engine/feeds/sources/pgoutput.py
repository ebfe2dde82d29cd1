"""PostgreSQL's logical replication messages (plugin pgoutput, protocol version 1), decoded: pure, bytes to values.

    Begin  Relation t(id, v)  Insert t (1, a)  Update t (1, b)  Delete t (1)  Truncate t  Commit

Manual 15, 55.5 "Logical Replication Message Formats". Integers are big-endian, strings end with a zero byte; a tuple is

    Int16 columns, then for each   n  null   u  an unchanged TOASTed value, not sent   t Int32 length, text
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from engine.feeds.sources.changes import UNCHANGED
from pgwire.codecs.errors import DataError

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")

Cells: TypeAlias = tuple[object, ...]
"""Texts, None for NULL, ``UNCHANGED`` for what was not sent."""


class MalformedMessage(DataError):
    """Bytes that are no message of the protocol: SQLSTATE 08P01."""

    def __init__(self, what: str) -> None:
        """``what`` is wrong."""
        super().__init__("08P01", f"malformed logical replication message: {what}")


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins. ``final_lsn``: of its commit; ``at_us``: microseconds since 2000."""

    final_lsn: int
    at_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """It ends. ``end_lsn``: behind its commit record, which is what a subscriber confirms."""

    lsn: int
    end_lsn: int
    at_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation; ``key``: part of its replica identity."""

    name: str
    type_oid: int
    typmod: int
    key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """What later messages call ``oid``. ``identity``: d(efault), n(othing), f(ull), i(ndex)."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row."""

    relation: int
    new: Cells


@dataclass(frozen=True, slots=True)
class Update:
    """A changed row. ``old``: of kind K the old key, of kind O the old row; None where the key is as it was."""

    relation: int
    kind: Literal["", "K", "O"]
    old: Cells | None
    new: Cells


@dataclass(frozen=True, slots=True)
class Delete:
    """A row that is gone: its key (K), or all of it (O)."""

    relation: int
    kind: Literal["K", "O"]
    old: Cells


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that were emptied."""

    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """A message that changes nothing here: an origin, a type's name, a message of an application."""

    kind: str


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other


def decode(data: bytes) -> Message:
    """Decode one message. Raises MalformedMessage for anything else."""
    try:
        message, end = _decode(data)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedMessage(f"message {data[:1]!r} of {len(data)} bytes: {error}") from None
    if end != len(data):
        raise MalformedMessage(f"message {data[:1]!r} of {len(data)} bytes ends at {end}")
    return message


def _decode(data: bytes) -> tuple[Message, int]:
    kind = chr(data[0])
    match kind:
        case "B":
            lsn, at_us, xid = _BEGIN.unpack_from(data, 1)
            return Begin(lsn, at_us, xid), 1 + _BEGIN.size
        case "C":
            _flags, lsn, end_lsn, at_us = _COMMIT.unpack_from(data, 1)
            return Commit(lsn, end_lsn, at_us), 1 + _COMMIT.size
        case "R":
            return _relation(data)
        case "I":
            [oid] = _UINT32.unpack_from(data, 1)
            if data[5:6] != b"N":
                raise ValueError("a row is expected")
            new, end = _tuple(data, 6)
            return Insert(oid, new), end
        case "U":
            return _update(data)
        case "D":
            [oid] = _UINT32.unpack_from(data, 1)
            which = chr(data[5])
            if which not in ("K", "O"):
                raise ValueError("an old key or row is expected")
            old, end = _tuple(data, 6)
            return Delete(oid, "K" if which == "K" else "O", old), end
        case "T":
            [count] = _UINT32.unpack_from(data, 1)
            found = struct.unpack_from(f">{count}I", data, 6)
            return Truncate(tuple(found)), 6 + 4 * count
        case "O" | "Y" | "M":
            return Other(kind), len(data)
        case _:
            raise ValueError("an unknown kind of message")


def _update(data: bytes) -> tuple[Update, int]:
    [oid] = _UINT32.unpack_from(data, 1)
    kind: Literal["", "K", "O"] = ""
    old = None
    at = 5
    if data[at] in b"KO":
        kind = "K" if data[at] == ord("K") else "O"
        old, at = _tuple(data, at + 1)
    if data[at : at + 1] != b"N":
        raise ValueError("a new row is expected")
    new, end = _tuple(data, at + 1)
    return Update(oid, kind, old, new), end


def _relation(data: bytes) -> tuple[Relation, int]:
    [oid] = _UINT32.unpack_from(data, 1)
    schema, at = _string(data, 5)
    name, at = _string(data, at)
    identity = chr(data[at])
    [count] = _INT16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _string(data, at + 1)
        [type_oid] = _UINT32.unpack_from(data, at)
        [typmod] = _INT32.unpack_from(data, at + 4)
        at += 8
        columns.append(RelationColumn(column, type_oid, typmod, bool(flags & 1)))
    return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns)), at


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode("utf-8"), end + 1


def _tuple(data: bytes, at: int) -> tuple[Cells, int]:
    [count] = _INT16.unpack_from(data, at)
    at += 2
    cells: list[object] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == ord("t"):
            [length] = _INT32.unpack_from(data, at)
            at += 4
            text = data[at : at + length]
            if length < 0 or len(text) < length:
                raise ValueError("a value is cut off")
            cells.append(text.decode("utf-8"))
            at += length
        elif kind == ord("n"):
            cells.append(None)
        elif kind == ord("u"):
            cells.append(UNCHANGED)
        else:
            raise ValueError("an unknown kind of value")
    return tuple(cells), at


def lsn_of(text: str) -> int:
    """Return the number of a log sequence number, as in 0/16B3748. ValueError."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    """Return a log sequence number as PostgreSQL prints it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
