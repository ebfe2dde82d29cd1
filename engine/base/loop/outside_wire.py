"""What crosses between the server and the processes that run long calls of C for it: plain values, in pieces.

    server ──► head (name, how many values, each plain or so many pieces) ──► pieces of long values …
    server ◄── head (done or failed, one value)                           ◄── pieces …

    frame      four bytes of length, then so many bytes
    head       marshal of tuples of None, bool, int, float, str, bytes; Decimal as (..., digits),
                BoundedArray as (..., bounds, items)
    pieces     a text or bytes longer than ``PIECE``: its slices, a text's in UTF-8 (surrogates included)

A slice is made, sent and read by itself, so that 60 MB hold nobody up. marshal, unlike pickle, makes nothing
but values.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from pgwire.bounded import BoundedArray, bounded
from pgwire.long.values import joined, joined_bytes

PIECE: Final = 256 << 10
FRAME: Final = struct.Struct("=I")
_HOW: Final = "surrogatepass"

PLAIN, TEXT, BYTES = 0, 1, 2


def pack(tag: object, values: Sequence[Any]) -> tuple[bytes, Iterator[bytes]]:
    """Return the head of a message, and the pieces that follow it, made one by one."""
    shown: list[tuple[int, Any]] = []
    long: list[str | bytes] = []
    for value in values:
        if type(value) in (str, bytes) and len(value) > PIECE:
            shown.append((TEXT if type(value) is str else BYTES, -(-len(value) // PIECE)))
            long.append(value)
        else:
            shown.append((PLAIN, _flat(value)))
    made: Any = (tag, tuple(shown))
    return marshal.dumps(made), _pieces(long)


def _pieces(values: Sequence[str | bytes]) -> Iterator[bytes]:
    for value in values:
        for start in range(0, len(value), PIECE):
            part = value[start : start + PIECE]
            yield part.encode("utf-8", _HOW) if isinstance(part, str) else part


class Unpacking:
    """The values of a message that comes piece by piece.

    Attributes:
        tag: what the message is.
        left: how many pieces are to come.
        bytes: about how many they have together.
    """

    def __init__(self, head: bytes) -> None:
        """Read its head."""
        self.tag: Any
        self.tag, shown = marshal.loads(head)
        self._values: list[Any] = []
        self._whole: list[int] = []  # places of values that came in pieces
        self._coming: list[tuple[int, int, list[Any]]] = []  # place, pieces, those that are there
        for place, (kind, value) in enumerate(shown):
            self._values.append(_unflat(value) if kind == PLAIN else None)
            if kind != PLAIN:
                self._coming.append((place, value, [] if kind == BYTES else [""]))
        self._coming.reverse()
        self.left = sum(pieces for _, pieces, _ in self._coming)
        self.bytes = self.left * PIECE

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        place, pieces, held = self._coming[-1]
        text = bool(held) and isinstance(held[0], str)
        held.append(piece.decode("utf-8", _HOW) if text else piece)
        self.left -= 1
        if len(held) == pieces + text:
            self._values[place] = held
            self._whole.append(place)
            self._coming.pop()

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, once no piece is to come; long ones are put together here, giving way."""
        if self.left:
            raise AssertionError("pieces of the values are still to come")
        while self._whole:
            place = self._whole.pop()
            held = self._values[place]
            self._values[place] = joined(held) if held and isinstance(held[0], str) else joined_bytes(held)
        return tuple(self._values)


def _flat(value: Any) -> Any:
    kind = type(value)
    if kind is Decimal:
        return (..., str(value))
    if kind is tuple or kind is list:
        return kind(map(_flat, value))
    if kind is BoundedArray:
        return (..., value.lows, _flat(tuple(value)))
    return value


def _unflat(value: Any) -> Any:
    kind = type(value)
    if kind is tuple and value and value[0] is ...:
        return Decimal(value[1]) if len(value) == 2 else bounded(_unflat(value[2]), value[1])
    if kind is tuple or kind is list:
        return kind(map(_unflat, value))
    return value
