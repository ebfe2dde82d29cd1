"""inet, cidr and pg_lsn.

An address is ``bytes`` that order, compare and hash as PostgreSQL's values do, on every executor:

    family (4, 6) | the network: the address with its host bits 0 | prefix length | the address
    10.1.2.3/8  ->  04  0a000000  08  0a010203

A log position is its eight bytes, most significant first.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from typing import Final, NamedTuple

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax, quoting
from pgwire.give_way import outside

_LONG: Final = 1 << 14
"""Characters of a text up to which it is read here."""

_FAMILY = {4: 2, 6: 3}  # PGSQL_AF_INET, PGSQL_AF_INET6
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_OCTETS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}", re.ASCII)
_PREFIX = re.compile(r"[0-9]{1,3}", re.ASCII)


class Address(NamedTuple):
    """An address: ``version`` 4 or 6, its number, and the length of the network's prefix."""

    version: int
    number: int
    bits: int

    @property
    def width(self) -> int:
        """Return the bits of an address of this version."""
        return 32 if self.version == 4 else 128

    @property
    def mask(self) -> int:
        """Return the network's mask as a number."""
        return (1 << self.width) - (1 << (self.width - self.bits))


def pack(address: Address) -> bytes:
    """Return the value that stands for an address."""
    size = address.width // 8
    network = (address.number & address.mask).to_bytes(size, "big")
    return bytes((address.version,)) + network + bytes((address.bits,)) + address.number.to_bytes(size, "big")


def unpack(value: bytes) -> Address:
    """Return the address that a value stands for."""
    size = 4 if value[0] == 4 else 16
    return Address(value[0], int.from_bytes(value[2 + size :], "big"), value[1 + size])


def _class_of(first: int) -> int:
    """Return the prefix length that a network's first octet implies."""
    return 32 if first >= 240 else 8 if first >= 224 else 24 if first >= 192 else 16 if first >= 128 else 8


def _read(text: str, *, cidr: bool) -> Address | None:
    body, slash, prefix = text.partition("/")
    if slash and _PREFIX.fullmatch(prefix) is None:
        return None
    if ":" in body:
        if "%" in body:
            return None
        try:
            number = int(ipaddress.IPv6Address(body))
        except ValueError:
            return None
        bits = int(prefix) if slash else 128
        return Address(6, number, bits) if bits <= 128 else None
    if _OCTETS.fullmatch(body) is None:
        return None
    octets = [int(part) for part in body.split(".")]
    if max(octets) > 255:
        return None
    if slash:
        bits = int(prefix)
    elif cidr:
        bits = max(_class_of(octets[0]), 8 * len(octets))
        if bits == 8 and octets[0] == 224:
            bits = 4
    elif len(octets) == 4:
        bits = 32
    else:
        return None
    if bits > 32 or (not cidr and bits // 8 > len(octets)):
        return None
    return Address(4, int.from_bytes(bytes(octets + [0] * (4 - len(octets))), "big"), bits)


@outside(_LONG)
def parse_inet(text: str) -> bytes:
    """Read an address with or without a prefix length; 22P02."""
    found = _read(text, cidr=False)
    if found is None:
        raise invalid_syntax("inet", text)
    return pack(found)


def address_of(host: str) -> bytes:
    """Return the value for the host of a socket's address, whose scope is left out."""
    return parse_inet(host.partition("%")[0])


@outside(_LONG)
def parse_cidr(text: str) -> bytes:
    """Read a network, whose host bits are zero; 22P02."""
    found = _read(text, cidr=True)
    if found is None:
        raise invalid_syntax("cidr", text)
    if found.number & ~found.mask:
        raise DataError(
            "22P02", quoting("invalid cidr value: ", text), detail="Value has bits set to right of mask."
        )
    return pack(found)


def host_text(address: Address) -> str:
    """Return an address without its prefix length."""
    if address.version == 4:
        return str(ipaddress.IPv4Address(address.number))
    low = ipaddress.IPv4Address(address.number & 0xFFFFFFFF)
    high = address.number >> 32
    if high == 0xFFFF:
        return f"::ffff:{low}"
    if high == 0 and address.number > 0xFFFF:
        return f"::{low}"
    return str(ipaddress.IPv6Address(address.number))


def show_inet(value: bytes) -> str:
    """Print an address; the prefix length of a host is left out."""
    address = unpack(value)
    text = host_text(address)
    return text if address.bits == address.width else f"{text}/{address.bits}"


def show_cidr(value: bytes) -> str:
    """Print a network, always with its prefix length."""
    address = unpack(value)
    return f"{host_text(address)}/{address.bits}"


def _send(value: bytes, is_cidr: int) -> bytes:
    address = unpack(value)
    size = address.width // 8
    head = bytes((_FAMILY[address.version], address.bits, is_cidr, size))
    return head + address.number.to_bytes(size, "big")


def send_inet(value: bytes) -> bytes:
    """Return family, prefix length, 0, address length and address."""
    return _send(value, 0)


def send_cidr(value: bytes) -> bytes:
    """As ``send_inet``, with 1 for cidr."""
    return _send(value, 1)


def _recv(data: bytes, what: str) -> Address:
    if len(data) < 4:
        raise DataError("08P01", "no data left in message")
    if data[0] not in _FAMILY.values():
        raise DataError("22P03", f'invalid address family in external "{what}" value')
    version = 4 if data[0] == 2 else 6
    width = 32 if version == 4 else 128
    if data[1] > width:
        raise DataError("22P03", f'invalid bits in external "{what}" value')
    if data[3] != width // 8:
        raise DataError("22P03", f'invalid length in external "{what}" value')
    if len(data) != 4 + data[3]:
        raise DataError(*wrong_length(data, 4 + data[3]))
    return Address(version, int.from_bytes(data[4:], "big"), data[1])


def recv_inet(data: bytes) -> bytes:
    """Read the binary form; 22P03, 08P01."""
    return pack(_recv(data, "inet"))


def recv_cidr(data: bytes) -> bytes:
    """Read the binary form; 22P03, 08P01."""
    address = _recv(data, "cidr")
    if address.number & ~address.mask:
        raise DataError(
            "22P03", 'invalid external "cidr" value', detail="Value has bits set to right of mask."
        )
    return pack(address)


def parse_lsn(text: str) -> bytes:
    """Read a log position; 22P02."""
    match = _LSN.fullmatch(text)
    if match is None:
        raise invalid_syntax("pg_lsn", text)
    return struct.pack(">II", int(match.group(1), 16), int(match.group(2), 16))


def show_lsn(value: bytes) -> str:
    """Print both halves in hexadecimal."""
    high, low = struct.unpack(">II", value)
    return f"{high:X}/{low:X}"


def send_lsn(value: bytes) -> bytes:
    """Return eight bytes."""
    return value


def recv_lsn(data: bytes) -> bytes:
    """Read eight bytes; 22P03 or 08P01 for another length."""
    if len(data) != 8:
        raise DataError(*wrong_length(data, 8))
    return bytes(data)
