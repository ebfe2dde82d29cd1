r"""COPY FROM: the fields of one line of many megabytes, cut from the pieces that it came in.

    \\x00112233…4455 | abc\tde        the line, held as what the client sent
    Digits(pieces)   | "abc<tab>de"   a bytea is read from its pieces, and never one text; what is no long bytea is

The digits of a bytea are twice as long as its value, and each copy of them counts where the value is an
eighth of ``memory``. What has any oddity (an end marker, a carriage return, a quote within a field, too few
or too many fields …) is left to the format's own way, which knows what to say of it: None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pgwire.codecs.bytea import HEX_DIGITS, Digits, Packed, Piece, unpacked
from pgwire.codecs.text import decode
from pgwire.give_way import give_way
from pgwire.long import values as long

LINE_BYTES: Final = long.LONG
"""Shorter lines are read as one text."""
FIELD_BYTES: Final = long.PIECE
"""And so are shorter fields."""
MANY: Final = 1 << 14
"""Escapes or quotes of one line that are looked at one by one."""


class RawField:
    """A field as it came.

    Attributes:
        pieces: its bytes.
        size: how many.
        marks: how many escapes or quotes are in it.
    """

    __slots__ = ("marks", "pieces", "size")

    def __init__(self) -> None:
        """It begins."""
        self.pieces: list[Piece] = []
        self.size = 0
        self.marks = 0

    def add(self, piece: Piece) -> None:
        """It goes on."""
        if len(piece):
            self.pieces.append(piece)
            self.size += len(piece)

    def is_same(self, data: bytes) -> bool:
        """Tell whether it is ``data``."""
        return self.size == len(data) and b"".join(map(unpacked, self.pieces)) == data

    def text(self) -> str:
        """Return it as a text. DataError 22021."""
        return decode(long.joined_bytes([unpacked(piece) for piece in self.pieces]))

    def digits(self, before: bytes, behind: bytes = b"") -> Digits | None:
        r"""Return the digits between ``before``, which ends in ``\x``, and ``behind``; None where it is no
        long bytea in hexadecimal.
        """
        if self.size < max(FIELD_BYTES, len(before) + len(behind)):
            return None
        pieces = self.pieces.copy()
        first = unpacked(pieces[0])
        while len(first) < len(before):
            first += unpacked(pieces.pop(1))
        last = first if len(pieces) == 1 else unpacked(pieces[-1])
        if not first.startswith(before) or not last.endswith(behind):
            return None
        if len(pieces) == 1:
            pieces = [first[len(before) : len(first) - len(behind)]]
        else:
            pieces[0] = first[len(before) :]
            if behind:
                pieces[-1] = last[: len(last) - len(behind)]
        for piece in pieces:
            if not isinstance(piece, Packed) and piece.translate(None, HEX_DIGITS):
                return None
            give_way()
        return Digits([piece for piece in pieces if len(piece)])


def escaped_fields(pieces: Sequence[Piece], delimiter: bytes, width: int) -> list[RawField] | None:
    """Cut a line in which a backslash escapes what follows it."""
    special = re.compile(rb"\\(.)?|" + re.escape(delimiter), re.DOTALL)
    found = [RawField()]
    marks = 0
    escaping = False  # the piece before ends in a backslash
    for piece in pieces:
        give_way()
        if isinstance(piece, Packed):
            if not escaping:  # no delimiter is a hexadecimal digit
                found[-1].add(piece)
                continue
            piece = piece.digits()
        if b"\r" in piece or b"\n" in piece:  # of which a first line may have some
            return None
        start = at = 0
        if escaping and piece:
            if piece.startswith(b"."):
                return None
            at, escaping = 1, False
        while (match := special.search(piece, at)) is not None:
            at = match.end()
            if match[0] == delimiter:
                found[-1].add(piece[start : match.start()])
                found.append(RawField())
                start = at
            else:
                marks += 1
                found[-1].marks += 1
                escaping = match[1] is None
            if len(found) > width or marks > MANY or match[1] == b".":
                return None
        found[-1].add(piece[start:])
    return None if escaping or len(found) != width else found


def quoted_fields(
    pieces: Sequence[Piece], delimiter: bytes, quote: bytes, width: int
) -> list[RawField] | None:
    """Cut a line in which delimiters between quotes are data."""
    special = re.compile(b"[" + re.escape(delimiter + quote) + b"]")
    found = [RawField()]
    marks = 0
    inside = False
    plain = special.search(HEX_DIGITS) is None
    for piece in pieces:
        give_way()
        if isinstance(piece, Packed):
            if plain:
                found[-1].add(piece)
                continue
            piece = piece.digits()
        if b"\r" in piece or b"\n" in piece:
            return None
        start = at = 0
        while (match := special.search(piece, at)) is not None:
            at = match.end()
            if match[0] == quote:
                marks += 1
                found[-1].marks += 1
                inside = not inside
            elif not inside:
                found[-1].add(piece[start : match.start()])
                found.append(RawField())
                start = at
            if len(found) > width or marks > MANY:
                return None
        found[-1].add(piece[start:])
    return None if inside or len(found) != width else found
