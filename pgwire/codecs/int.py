"""Integers: int2, int4, int8, and the unsigned oid family; values ``int``."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax, out_of_range
from pgwire.long.values import cut, stripped

_SYNTAX = re.compile(r"[ \t\n\r\f\v]*([+-]?[0-9]+)[ \t\n\r\f\v]*", re.ASCII)
_PREFIX = re.compile(r"[ \t\n\r\f\v]*([+-]?[0-9]+)", re.ASCII)
_STRTOUL = re.compile(r"[ \t\n\r\f\v]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))", re.ASCII)
_ULLONG_MAX = (1 << 64) - 1


_BLANKS = " \t\n\r\f\v"
_LONG = 1000
"""Characters from which on a text is cut to what decides: regular expressions are one call of C."""
_DECIDE = 64  # digits of a number that no type has, whatever follows them


def _deciding(text: str) -> str:
    """Return a short text that reads as a long one does, or begins with what is wrong with it. Gives way."""
    body = stripped(text, _BLANKS, True, True)
    sign = body[:1] if body[:1] in ("+", "-") else ""
    digits = cut(body, len(sign))
    rest = stripped(digits, "0", True, False)
    zero = "0" if len(rest) < len(digits) else ""
    return f"{sign}{zero}{rest[:_DECIDE]}"


def _reader(low: int, high: int, type_name: str) -> Callable[[str], int]:
    safe = len(str(high))  # fewer digits than that are always in range

    def parse(text: str) -> int:
        if len(text) < safe and text.isascii() and text.isdigit():
            return int(text)
        body = text if len(text) <= _LONG else _deciding(text)
        match = _SYNTAX.fullmatch(body)
        if match is None:
            # Too many digits are noticed before what follows them.
            start = _PREFIX.match(body)
            if start is not None and not low <= int(start[1][:40]) <= high:
                raise out_of_range(text, type_name)
            raise invalid_syntax(type_name, text)
        digits = match[1]
        if len(digits) > 40:
            digits = re.sub(r"(?<![0-9])0+(?=[0-9])", "", digits)
            if len(digits) > 40:
                raise out_of_range(text, type_name)
        value = int(digits)
        if low <= value <= high:
            return value
        raise out_of_range(text, type_name)

    parse.__doc__ = f"Read a decimal {type_name} with optional sign and blanks around; 22P02, 22003."
    return parse


parse_int2 = _reader(-(2**15), 2**15 - 1, "smallint")
parse_int4 = _reader(-(2**31), 2**31 - 1, "integer")
parse_int8 = _reader(-(2**63), 2**63 - 1, "bigint")


def _strtoull(text: str) -> int:
    """Return the unsigned 64-bit number that a text begins with, as C's strtoull: 0 without one, the largest
    for larger.
    """
    match = _STRTOUL.match(text if len(text) <= _LONG else _deciding(text))
    if match is None:
        return 0
    sign, hexadecimal, octal, decimal = match.groups()
    digits = hexadecimal or octal or decimal
    base = 16 if hexadecimal else 8 if octal else 10
    value = int(digits, base) if len(digits) <= 64 else 1 << 64
    if value >> 64:
        return _ULLONG_MAX
    return -value & _ULLONG_MAX if sign == "-" else value


def parse_xid(text: str) -> int:
    """Read a transaction or command number, the lower 32 bits of it (octal with 0, hexadecimal with 0x); 0
    without digits.
    """
    return _strtoull(text) & 0xFFFFFFFF


def parse_xid8(text: str) -> int:
    """Read a transaction number of 64 bits as ``parse_xid`` does; the value is 2**63 less, so that it fits
    and orders.
    """
    return xid8_value(_strtoull(text))


def xid8_value(number: int) -> int:
    """Return the value that stands for an unsigned number as xid8."""
    return number - (1 << 63)


def show_xid8(value: int) -> str:
    """Print the number that a value stands for."""
    return str(value + (1 << 63))


def recv_xid8(data: bytes) -> int:
    """Read 8 big-endian bytes; 22P03 or 08P01 for another length."""
    return xid8_value(recv_uint64(data))


def send_xid8(value: int) -> bytes:
    """Return 8 big-endian bytes."""
    return send_uint64(value + (1 << 63))


def parse_oid(text: str) -> int:
    """Read an oid: decimal, unsigned 32 bits; a negative one wraps around. 22P02, 22003."""
    match = _SYNTAX.fullmatch(text if len(text) <= _LONG else _deciding(text))
    if match is None:
        raise invalid_syntax("oid", text)
    digits = match[1]
    value = int(digits) if len(digits) <= 40 else 2**40
    if not -(2**31) <= value < 2**32:
        raise out_of_range(text, "oid")
    return value % 2**32


def _binary(fmt: str) -> tuple[Callable[[bytes], int], Callable[[int], bytes]]:
    packer = struct.Struct(fmt)
    size, unpack = packer.size, packer.unpack

    def recv(data: bytes) -> int:
        if len(data) != size:
            raise DataError(*wrong_length(data, size))
        return int(unpack(data)[0])

    recv.__doc__ = f"Read {size} big-endian bytes; 22P03 or 08P01 for another length."
    return recv, packer.pack


recv_int2, send_int2 = _binary(">h")
recv_int4, send_int4 = _binary(">i")
recv_int8, send_int8 = _binary(">q")
recv_oid, send_oid = _binary(">I")
recv_uint64, send_uint64 = _binary(">Q")

show: Callable[[int], str] = str
