r"""bytea: ``\x`` hexadecimal or escape format; value ``bytes``."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

from pgwire.codecs.errors import DataError
from pgwire.give_way import give_way, paced
from pgwire.long import values as long

_UNESCAPE = re.compile(r"\\(\\|[0-3][0-7][0-7])")
_SPACE = " \t\n\r"


PIECE = 1 << 18
"""Digits or bytes that are converted in one call: an even number."""


HEX_DIGITS: Final = b"0123456789abcdefABCDEF"
_LOWER_DIGITS: Final = b"0123456789abcdef"
_SHOWN: Final = 128


class Packed:
    """A piece of a text that is nothing but pairs of lower-case hexadecimal digits, kept as what they mean:
    half as long.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        """``data``: what the digits mean."""
        self.data = data

    def __len__(self) -> int:
        """Return how many digits there are."""
        return 2 * len(self.data)

    def digits(self) -> bytes:
        """Return them."""
        return binascii.hexlify(self.data)


Piece: TypeAlias = bytes | Packed
"""A piece of a text in UTF-8."""


def packed(piece: bytes) -> Piece:
    """Return a piece of a text packed, if it can be."""
    if len(piece) % 2 or piece.translate(None, _LOWER_DIGITS):
        return piece
    return Packed(binascii.unhexlify(piece))


def unpacked(piece: Piece) -> bytes:
    """Return a piece as it came."""
    return piece.digits() if isinstance(piece, Packed) else piece


class Digits:
    r"""The hexadecimal digits of a long bytea, behind ``\x``: pieces that are never put together, as they are
    twice as long as what they mean.
    """

    __slots__ = ("_pieces",)

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """``pieces``: of ``HEX_DIGITS`` alone, none empty."""
        self._pieces = pieces

    @property
    def beginning(self) -> str:
        """As much of the text as errors show."""
        return "\\x" + b"".join(map(unpacked, self._pieces[:_SHOWN]))[:_SHOWN].decode("ascii")

    def value(self) -> bytes:
        """Return what they mean; 22023 for an odd number of them."""
        total = sum(map(len, self._pieces))
        if total % 2:
            raise DataError("22023", "invalid hexadecimal data: odd number of digits")
        return long.filled_bytes(total // 2, self._bytes())

    def _bytes(self) -> Iterator[bytes]:
        left = b""  # the first of two digits, of which the second is in the next piece
        for piece in self._pieces:
            if isinstance(piece, Packed) and not left:
                yield piece.data
                continue
            for some in long.byte_pieces(unpacked(piece), PIECE):
                digits = left + some if left else some
                even = len(digits) & ~1
                left = digits[even:]
                yield binascii.unhexlify(digits[:even] if left else digits)


def parse(text: str | Digits) -> bytes:
    """Read either format; 22P02 on syntax errors, with the wording of each format."""
    if isinstance(text, Digits):
        return text.value()
    if text.startswith("\\x"):
        return parse_hex(long.cut(text, 2))
    if long.find(text, "\\") < 0:
        return long.encoded(text)
    out = bytearray()
    at = 0
    while (slash := text.find("\\", at)) >= 0:
        out += text[at:slash].encode("utf-8")
        give_way()
        match = _UNESCAPE.match(text, slash)
        if match is None:
            raise DataError("22P02", "invalid input syntax for type bytea")
        out.append(0x5C if match[1] == "\\" else int(match[1], 8))
        at = match.end()
    out += text[at:].encode("utf-8")
    return long.joined_bytes((out,))


def of_digits(data: bytes) -> bytes | None:
    """Return what the bytes of a text mean that is hexadecimal digits alone, without making a text of them;
    None for any other.
    """
    if not data.startswith(b"\\x") or len(data) % 2:
        return None
    digits = memoryview(data)[2:]
    try:
        return long.filled_bytes(
            len(digits) // 2,
            (binascii.unhexlify(digits[at : at + PIECE]) for at in paced(range(0, len(digits), PIECE), 1)),
        )
    except ValueError:
        return None


def parse_hex(digits: str) -> bytes:
    """Read hexadecimal digits with white space between pairs; 22023 on bad digits or an odd number of them."""
    try:
        if len(digits) <= PIECE:
            return binascii.unhexlify(digits)
        return long.filled_bytes(
            len(digits) // 2,
            (binascii.unhexlify(digits[at : at + PIECE]) for at in paced(range(0, len(digits), PIECE), 1)),
        )
    except ValueError:
        pass
    out = bytearray()
    at, end = 0, len(digits)
    looked = 0
    while at < end:
        if at - looked >= 1024:
            looked = at
            give_way()
        if digits[at] in _SPACE:
            at += 1
            continue
        value = _nibble(digits[at])
        at += 1
        if at >= end:
            raise DataError("22023", "invalid hexadecimal data: odd number of digits")
        out.append(value << 4 | _nibble(digits[at]))
        at += 1
    return bytes(out)


def _nibble(char: str) -> int:
    if char in "0123456789abcdefABCDEF":
        return int(char, 16)
    raise DataError("22023", f'invalid hexadecimal digit: "{char}"')


def show_hex(value: bytes) -> str:
    r"""Print ``\x`` and lower-case hexadecimal digits."""
    pieces = (value[at : at + PIECE].hex() for at in paced(range(0, len(value), PIECE), 1))
    return long.filled(2 + 2 * len(value), "", chain(("\\x",), pieces))


_ESCAPED = {
    byte: "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"
    for byte in range(256)
}


def show_escape(value: bytes) -> str:
    """Print the escape format: printable ASCII as it is, other bytes as octal."""
    return long.joined_up([_ESCAPED[byte] for byte in paced(value, 1024)])


def copy(value: bytes) -> bytes:
    """Binary form, both ways: the bytes themselves."""
    return bytes(value)
