r"""bytea: ``\x`` hexadecimal or escape format; value ``bytes``."""

from __future__ import annotations

import binascii
import re
from itertools import chain

from pgwire import long_values as long
from pgwire.codecs.errors import DataError
from pgwire.give_way import give_way, paced

_UNESCAPE = re.compile(r"\\(\\|[0-3][0-7][0-7])")
_SPACE = " \t\n\r"


PIECE = 1 << 18
"""Digits or bytes that are converted in one call: an even number."""


def parse(text: str) -> bytes:
    """Read either format; 22P02 on syntax errors, with the wording of each format."""
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


def parse_hex(digits: str) -> bytes:
    """Read hexadecimal digits with white space between pairs; 22023 on bad digits or an odd number of them."""
    try:
        return long.joined_bytes(
            [binascii.unhexlify(digits[at : at + PIECE]) for at in paced(range(0, len(digits), PIECE), 1)]
        )
    except ValueError:
        pass
    out = bytearray()
    at, end = 0, len(digits)
    while at < end:
        if digits[at] in _SPACE:
            at += 1
            continue
        value = _nibble(digits[at])
        at += 1
        if at >= end:
            raise DataError("22023", "invalid hexadecimal data: odd number of digits")
        out.append(value << 4 | _nibble(digits[at]))
        at += 1
        if not at % 1024:
            give_way()
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
    return long.joined([_ESCAPED[byte] for byte in paced(value, 1024)])


def copy(value: bytes) -> bytes:
    """Binary form, both ways: the bytes themselves."""
    return bytes(value)
