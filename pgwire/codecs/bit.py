"""bit and varbit; values ``str`` of ``0`` and ``1``. Lengths are applied in ``typmod.py``."""

from __future__ import annotations

import struct
from typing import Final

from pgwire.codecs.errors import DataError
from pgwire.give_way import paced
from pgwire.long.values import byte_pieces, cut, joined, joined_bytes, joined_up, pieces

_PIECE = 1 << 16
"""Bits that are converted in one call: whole bytes."""


def parse(text: str) -> str:
    """Read binary digits, optionally after ``B``, or hexadecimal ones after ``X``; 22P02 names a bad digit."""
    kind, digits = text[:1], text
    if kind in ("b", "B", "x", "X"):
        digits = text[1:]
    if kind in ("x", "X"):
        for char in paced(digits, 4096):
            if char not in "0123456789abcdefABCDEF":
                raise DataError("22P02", f'"{char}" is not a valid hexadecimal digit')
        return joined_up([f"{int(char, 16):04b}" for char in paced(digits, 1024)])
    for char in paced(digits, 4096):
        if char not in "01":
            raise DataError("22P02", f'"{char}" is not a valid binary digit')
    return digits


def show(value: str) -> str:
    """Return the digits."""
    return value


_MOST_BITS: Final = 2**31 - 8


def recv(data: bytes) -> str:
    """Read the number of bits (int32) and the bits, padded to whole bytes; 22P03."""
    if len(data) < 4:
        raise DataError("08P01", "insufficient data left in message")
    (length,) = struct.unpack_from(">i", data)
    if not 0 <= length <= _MOST_BITS:
        raise DataError("22P03", "invalid length in external bit string")
    size = (length + 7) // 8
    if len(data) != 4 + size:
        raise DataError("08P01" if len(data) < 4 + size else "22P03", "insufficient data left in message")
    digits = [
        f"{int.from_bytes(piece, 'big'):0{8 * len(piece)}b}"
        for piece in byte_pieces(bytes(data[4:]), _PIECE // 8)
    ]
    return cut(joined(digits), 0, length)


def send(value: str) -> bytes:
    """Return bit count and padded bits."""
    parts = [struct.pack(">i", len(value))]
    for piece in pieces(value, _PIECE):
        size = (len(piece) + 7) // 8
        if size:
            parts.append(int(piece.ljust(size * 8, "0"), 2).to_bytes(size, "big"))
    return joined_bytes(parts)
