"""tid, int2vector, oidvector, record and void.

A record value is a tuple; its columns' types are not in it. Whoever builds an anonymous record that may reach
a client makes it a ``RecordValue``, which remembers them; printing a plain tuple is refused, because a number
in it may be a date.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax
from pgwire.codecs.text import int_of
from pgwire.give_way import give_way, outside, paced
from pgwire.long.values import joined, joined_bytes, joined_up, replaced, run_end
from pgwire.release import mind_long

_TID: Final = re.compile(r"[^(),]*[(,](?:[ \t-\r]*([+-]?[0-9]+))?,(?:[ \t-\r]*([+-]?[0-9]+))?\)")
_TID_WIRE: Final = struct.Struct(">IH")
_NEEDS_QUOTES: Final = re.compile(r'[(),"\\\s]|\A\Z')
_UNQUOTED: Final = re.compile(r'[^(),"\\\s]*')
SHORT: Final = 1 << 16
"""Characters of a text of which each operation is one call of C, some microseconds."""
_STRETCH: Final = 1 << 13
"""Characters of a list of numbers that are split at once."""
_LONG: Final = 1 << 16
"""Characters of a text up to which it is read here."""


@outside(_LONG)
def parse_tid(text: str) -> int:
    """Read ``(block,offset)``, and what PostgreSQL reads as that. 22P02.

    What stands before and behind the parentheses is passed over, a missing number is 0, and numbers are those
    of strtoul: below 2**64, with a sign counted from 2**64 on down. A block is the lower half of one, with
    the sign extended or without.
    """
    match = _TID.match(text)
    if match is None:
        raise invalid_syntax("tid", text)
    block, offset = _unsigned_long(match[1]), _unsigned_long(match[2])
    if block is None or 2**32 <= block < 2**64 - 2**31 or offset is None or offset >= 2**16:
        raise invalid_syntax("tid", text)
    return (block % 2**32) << 16 | offset


def _unsigned_long(digits: str | None) -> int | None:
    """Return what C's strtoul makes of digits, 0 of none; None past its range."""
    value = 0 if digits is None else int_of(digits)
    return value % 2**64 if -(2**64) < value < 2**64 else None


def show_tid(value: int) -> str:
    """Print ``(block,offset)``."""
    return f"({value >> 16},{value & 0xFFFF})"


def recv_tid(data: bytes) -> int:
    """Read block (4 bytes) and offset (2 bytes)."""
    if len(data) != 6:
        raise DataError(*wrong_length(data, 6))
    block, offset = _TID_WIRE.unpack(data)
    return int(block) << 16 | int(offset)


def send_tid(value: int) -> bytes:
    """Return block and offset."""
    return _TID_WIRE.pack(value >> 16, value & 0xFFFF)


def vector_reader(element: Callable[[str], int]) -> Callable[[str], tuple[int, ...]]:
    """Return the reader of ``1 2 3`` (int2vector, oidvector)."""

    def parse(text: str) -> tuple[int, ...]:
        items: list[int] = []
        at, step = 0, _STRETCH
        while at < len(text):
            stretch = text[at : at + step]
            parts = stretch.split()
            at += len(stretch)
            if at < len(text) and not stretch[-1].isspace():  # the last one goes on behind it
                at -= len(parts.pop())
            step = _STRETCH if parts or stretch.isspace() else 2 * step
            items += map(element, parts)
            give_way()
        return mind_long(tuple(items))

    return parse


def show_vector(value: tuple[int, ...]) -> str:
    """Print elements separated by blanks."""
    return joined_up([str(item) for item in paced(value, 1024)], " ")


class RecordValue(tuple[Any, ...]):
    """A record that knows the type oids (and, where there are some, the names and type modifiers) of its columns."""

    types: tuple[int, ...]
    names: tuple[str, ...]
    typmods: tuple[int, ...]

    def __new__(
        cls,
        values: Iterable[Any],
        types: tuple[int, ...],
        names: tuple[str, ...] = (),
        typmods: tuple[int, ...] = (),
    ) -> RecordValue:
        """Make a record of ``values``, one per type; without names the columns are f1, f2 ..., without
        ``typmods`` they have none.
        """
        record = super().__new__(cls, values)
        record.types = types
        record.names = names
        record.typmods = typmods
        return record


def record_types(value: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the column types of a record; 0A000 if it does not know them."""
    if isinstance(value, RecordValue):
        return value.types
    raise DataError("0A000", "output of a record whose column types are unknown is not supported")


def quote_field(text: str) -> str:
    """Quote one column of a record's text if it needs to be."""
    if len(text) <= SHORT:
        if _NEEDS_QUOTES.search(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
        return text
    if run_end(_UNQUOTED, text, 0) == len(text):
        return text
    return joined(('"', replaced(replaced(text, "\\", "\\\\"), '"', '""'), '"'))


def shown_record(fields: list[str]) -> str:
    """Return the text of a record of those of its columns, ``quote_field`` each."""
    return joined(("(", joined_up(fields, ","), ")"))


def send_record(types: tuple[int, ...], fields: list[bytes | None]) -> bytes:
    """Return the binary form: number of columns; type, length and bytes of each."""
    parts = [struct.pack(">i", len(types))]
    for oid, data in zip(types, fields, strict=True):
        if data is None:
            parts.append(struct.pack(">Ii", oid, -1))
        else:
            parts.append(struct.pack(">Ii", oid, len(data)))
            parts.append(data)
    return joined_bytes(parts)


def parse_void(text: str) -> str:
    """Anything is void."""
    return ""


def show_void(value: str) -> str:
    """Void prints as nothing."""
    return ""


def recv_void(data: bytes) -> str:
    """Anything is void."""
    return ""


def send_void(value: str) -> bytes:
    """Void is no bytes."""
    return b""
