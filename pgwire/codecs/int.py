"""Integers: int2, int4, int8, and the unsigned oid family; values ``int``."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError

_SYNTAX = re.compile(r"[ \t\n\r\f\v]*([+-]?[0-9]+)[ \t\n\r\f\v]*", re.ASCII)
_PREFIX = re.compile(r"[ \t\n\r\f\v]*([+-]?[0-9]+)", re.ASCII)
_STRTOUL = re.compile(r"[ \t\n\r\f\v]*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)[ \t\n\r\f\v]*", re.ASCII)


def _reader(low: int, high: int, type_name: str) -> Callable[[str], int]:
    safe = len(str(high))  # fewer digits than that are always in range

    def parse(text: str) -> int:
        if len(text) < safe and text.isascii() and text.isdigit():
            return int(text)
        match = _SYNTAX.fullmatch(text)
        if match is None:
            # Too many digits are noticed before what follows them.
            start = _PREFIX.match(text)
            if start is not None and not low <= int(start[1][:40]) <= high:
                raise DataError("22003", f'value "{text}" is out of range for type {type_name}')
            raise DataError("22P02", f'invalid input syntax for type {type_name}: "{text}"')
        digits = match[1]
        if len(digits) > 40:
            digits = re.sub(r"(?<![0-9])0+(?=[0-9])", "", digits)
            if len(digits) > 40:
                raise DataError("22003", f'value "{text}" is out of range for type {type_name}')
        value = int(digits)
        if low <= value <= high:
            return value
        raise DataError("22003", f'value "{text}" is out of range for type {type_name}')

    parse.__doc__ = f"Read a decimal {type_name} with optional sign and blanks around; 22P02, 22003."
    return parse


parse_int2 = _reader(-(2**15), 2**15 - 1, "smallint")
parse_int4 = _reader(-(2**31), 2**31 - 1, "integer")
parse_int8 = _reader(-(2**63), 2**63 - 1, "bigint")


def _unsigned_reader(bits: int, type_name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        match = _STRTOUL.fullmatch(text)
        if match is None:
            raise DataError("22P02", f'invalid input syntax for type {type_name}: "{text}"')
        sign, digits = match.groups()
        if digits[:2] in ("0x", "0X"):
            value = int(digits, 16)
        elif digits[0] == "0":
            value = int(digits, 8)
        elif len(digits) > 40:
            value = 1 << bits
        else:
            value = int(digits)
        # A negative oid wraps, as strtoul has it, but only as far as a signed number of that size goes.
        if value >> bits or (sign == "-" and value > 1 << (bits - 1)):
            raise DataError("22003", f'value "{text}" is out of range for type {type_name}')
        return -value % (1 << bits) if sign == "-" else value

    parse.__doc__ = (
        f"Read an unsigned {bits}-bit {type_name} (octal with 0, hexadecimal with 0x); 22P02, 22003."
    )
    return parse


parse_xid = _unsigned_reader(32, "xid")
parse_cid = _unsigned_reader(32, "cid")
parse_xid8 = _unsigned_reader(64, "xid8")


def parse_oid(text: str) -> int:
    """Read an oid: decimal, unsigned 32 bits; a negative one wraps around. 22P02, 22003."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise DataError("22P02", f'invalid input syntax for type oid: "{text}"')
    digits = match[1]
    value = int(digits) if len(digits) <= 40 else 2**40
    if not -(2**31) <= value < 2**32:
        raise DataError("22003", f'value "{text}" is out of range for type oid')
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
recv_xid8, send_xid8 = _binary(">Q")

show: Callable[[int], str] = str
