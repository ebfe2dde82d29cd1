"""Character types: text, varchar, bpchar, name, "char", unknown, cstring; values ``str``.

Text and binary form are the same bytes (UTF-8). Lengths declared by a typmod are applied in ``typmod.py``.
"""

from __future__ import annotations

from pgwire.codecs.errors import DataError
from pgwire.long import values as long

NAME_BYTES = 63
BEYOND = 10**40
"""What ``int_of`` reads a number as that is beyond every bound there is."""


def int_of(digits: str) -> int:
    """Read digits, behind a sign or not, of which there may be any number: ``BEYOND`` for more than forty,
    whose value nobody asks for.

    Python refuses to read more than some thousand (ValueError), and takes the square of their number in time for fewer.
    """
    if len(digits) <= 40:
        return int(digits)
    negative = digits[0] == "-"
    digits = digits.lstrip("+-").lstrip("0")
    found = BEYOND if len(digits) > 40 else int(digits or "0")
    return -found if negative else found


def parse_text(text: str) -> str:
    """Return the text; 22021 if it holds a NUL character."""
    if long.find(text, "\x00") >= 0:
        raise DataError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


def decode(data: bytes) -> str:
    """Decode UTF-8 as PostgreSQL verifies it; 22021 names the offending bytes."""
    try:
        text = long.decoded(data if isinstance(data, bytes) else bytes(data))
    except UnicodeDecodeError as error:
        raise _bad_bytes(bytes(data), error.start) from None
    if long.find(text, "\x00") >= 0:
        raise _bad_bytes(bytes(data), bytes(data).index(0))
    return text


def _bad_bytes(data: bytes, start: int) -> DataError:
    first = data[start]
    length = 1 if first < 0xC2 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 1
    shown = " ".join(f"0x{byte:02x}" for byte in data[start : start + length])
    return DataError("22021", f'invalid byte sequence for encoding "UTF8": {shown}')


def show_text(value: str) -> str:
    """Return the text itself."""
    return value


def send_text(value: str) -> bytes:
    """Return UTF-8."""
    return long.encoded(value)


def clip_bytes(text: str, limit: int) -> str:
    """Return the longest prefix of whole characters that fits ``limit`` bytes."""
    if len(text) * 4 <= limit:
        return text
    data = long.encoded(text[: limit + 1])
    return text if len(data) <= limit else data[:limit].decode("utf-8", "ignore")


def parse_name(text: str) -> str:
    """Return the text cut to 63 bytes, as type name stores it."""
    return clip_bytes(parse_text(text), NAME_BYTES)


def recv_name(data: bytes) -> str:
    """Read a name; 42622 if it is longer than 63 bytes."""
    text = decode(data)
    if len(data) > NAME_BYTES:
        raise DataError("42622", "identifier too long", detail="Identifier must be less than 64 characters.")
    return text


def parse_char(text: str) -> str:
    r"""Read a "char": one byte, its first; ``\ooo`` is an octal byte above 127; empty stays empty."""
    text = parse_text(text)
    if len(text) == 4 and text[0] == "\\" and all(c in "01234567" for c in text[1:]):
        code = int(text[1:], 8) & 0xFF
        return _char(code)
    if not text:
        return ""
    return _char(text[0].encode("utf-8")[0])


def _char(code: int) -> str:
    if code == 0:
        return ""
    return chr(code) if code < 128 else f"\\{code:03o}"


def recv_char(data: bytes) -> str:
    """Read one byte."""
    if len(data) != 1:
        raise DataError("22P03" if data else "08P01", "incorrect binary data format")
    return _char(data[0])


def send_char(value: str) -> bytes:
    """Return one byte."""
    if not value:
        return b"\x00"
    return bytes([int(value[1:], 8)]) if len(value) == 4 else value.encode("utf-8")[:1]
