r"""Composite types: values as bytes that order as the types do, and their text and binary forms.

    value    = key | attributes | length of those, four bytes
    key      what is compared (``pgwire.codecs.users.composite_keys``)
    attributes   ``pgwire.codecs.users.packed``: one value for each attribute by its number, dropped ones included, nil for NULL. Where an
                 array has lower bounds other than 1, here or in an attribute's attribute, the header is that
                 of a long array (``pgwire.bounded.ROW_MARK``)

    (1,"a b",)      (1,"{""x,y"",z}","(2,""q"")")

A value may have fewer attributes than its type, which was given more since: those are NULL. Attributes that
were dropped stay where they are, and nobody sees them. Which attributes a type has comes with the settings
(``UserTypes.row``). Under ``STORED`` a value prints as its bytes in hexadecimal, so that a stored text
outlasts such changes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pgwire.bounded import ROW_MARK, keeps_bounds
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.system import RecordValue
from pgwire.codecs.text.quoted import Ends, Unended, read_quoted
from pgwire.codecs.users.composite_keys import row_key
from pgwire.codecs.users.packed import pack_values, unpack_values
from pgwire.codecs.users.ranges import comparable
from pgwire.long.values import bare

__all__ = ["Attribute", "RowShape", "comparable", "pack_row", "parse_fields", "record_of", "unpack_row"]

_ENDS: Final = Ends(",)")
_SPACES: Final = " \t\n\v\f\r"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that has not been dropped: its place among the values, its type, and the type under that
    if it is a domain.

    ``typmod``: that of ``plain``.
    """

    slot: int
    name: str
    oid: int
    plain: int
    typmod: int = -1


@dataclass(frozen=True, slots=True)
class RowShape:
    """The attributes of a composite type as one catalog has it; ``width``: how many it has had, dropped ones
    included.
    """

    name: str
    attributes: tuple[Attribute, ...]
    width: int
    types: tuple[int, ...] = field(init=False)
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Derive what is asked for every value."""
        object.__setattr__(self, "types", tuple(a.plain for a in self.attributes))
        object.__setattr__(self, "names", tuple(a.name for a in self.attributes))


# -- values ----------------------------------------------------------------------------------------------


def pack_row(values: Sequence[Any], slots: Sequence[int], types: Sequence[int], width: int) -> bytes:
    """Return the value of a row: ``values`` with their places, their types (no domains), and the number of places."""
    placed: list[Any] = [None] * width
    for slot, value in zip(slots, values, strict=True):
        placed[slot] = value
    tail = pack_values(placed)
    if any(map(keeps_bounds, values)):
        tail = ROW_MARK + width.to_bytes(2, "big") + tail[1 if width < 16 else 3 :]
    return row_key(values, types) + tail + len(tail).to_bytes(4, "big")


def unpack_row(value: bytes) -> list[Any]:
    """Return the values of a row by place; those that it is too short for are not there."""
    size = int.from_bytes(value[-4:], "big")
    return unpack_values(value[-4 - size : -4])


def record_of(
    value: bytes,
    slots: Sequence[int],
    types: tuple[int, ...],
    names: tuple[str, ...],
    typmods: tuple[int, ...] = (),
) -> RecordValue:
    """Return a row as an anonymous record."""
    placed = unpack_row(value)
    count = len(placed)
    values = [placed[slot] if slot < count else None for slot in slots]
    return RecordValue(values, types, names, typmods)


def values_of(value: bytes, shape: RowShape) -> list[Any]:
    """Return the values of a row's attributes, dropped ones left out."""
    placed = unpack_row(value)
    count = len(placed)
    return [placed[a.slot] if a.slot < count else None for a in shape.attributes]


def pack(values: Sequence[Any], shape: RowShape) -> bytes:
    """Return the value of a row of ``shape``: one value for each attribute."""
    return pack_row(values, [a.slot for a in shape.attributes], shape.types, shape.width)


# -- text ------------------------------------------------------------------------------------------------


def parse_fields(text: str, count: int) -> Iterator[str | None]:
    """Yield the texts of a record's ``count`` fields, None for NULL.

    Each is read before the next is looked for, as in PostgreSQL: that of the first bad one is the error.

    Raises:
        DataError: 22P02 "malformed record literal", also where there are not ``count`` fields.
    """
    end = len(text)
    at, last = bare(text, 0, end, _SPACES)
    if text[at : at + 1] != "(":
        raise _malformed(text, "Missing left parenthesis.")
    at += 1
    for index in range(count):
        if index:
            if text[at : at + 1] != ",":
                raise _malformed(text, "Too few columns.")
            at += 1
        if at < end and text[at] in _ENDS.marks:
            yield None
        else:
            try:
                found, at = read_quoted(text, at, _ENDS)
            except Unended:
                raise _malformed(text, "Unexpected end of input.") from None
            yield found
    if text[at : at + 1] != ")":
        raise _malformed(text, "Too many columns.")
    if at + 1 < last:
        raise _malformed(text, "Junk after right parenthesis.")


def _malformed(text: str, detail: str) -> DataError:
    return DataError("22P02", quoting("malformed record literal: ", text), detail=detail)


# -- binary ----------------------------------------------------------------------------------------------


def receive(
    data: bytes, shape: RowShape, read: Callable[[int, bytes | None], Any], name: Callable[[int], str]
) -> bytes:
    """Read the binary form; ``read`` reads the attribute at a place of ``shape`` (None: NULL), ``name`` names
    types in messages.

    Raises:
        DataError: 42804 for other columns than the type has, 22P03 for what is too short.
    """
    if len(data) < 4:
        raise _short()
    (count,) = struct.unpack_from(">i", data)
    if count != len(shape.attributes):
        raise DataError("42804", f"wrong number of columns: {count}, expected {len(shape.attributes)}")
    at = 4
    values: list[Any] = []
    for number, attribute in enumerate(shape.attributes, 1):
        if len(data) < at + 8:
            raise _short()
        oid, size = struct.unpack_from(">Ii", data, at)
        at += 8
        if oid != attribute.oid:
            raise DataError(
                "42804",
                f"binary data has type {oid} ({name(oid)}) instead of expected {attribute.oid} ({name(attribute.oid)}) "
                f"in record column {number}",
            )
        if size < -1 or size > len(data) - at:
            raise _short()
        values.append(read(number - 1, None if size == -1 else data[at : at + size]))
        at += max(size, 0)
    return pack(values, shape)


def _short() -> DataError:
    return DataError("22P03", "insufficient data left in message")
