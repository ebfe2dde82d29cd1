"""inet, cidr and pg_lsn: types that catalog relations show (pg_stat_activity, replication views).

    inet    ``str`` as PostgreSQL prints it: ``127.0.0.1``, ``10.0.0.0/8``, ``::1``
    pg_lsn  ``str``: ``0/16B3748``

Tables cannot have columns of these types; values come from the server itself or from literals.
"""

from __future__ import annotations

import ipaddress
import re
import struct

from pgwire.codecs.errors import DataError

_FAMILY = {4: 2, 6: 3}  # PGSQL_AF_INET, PGSQL_AF_INET6
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def parse_inet(text: str) -> str:
    """Read an address with or without a prefix length; 22P02."""
    try:
        value = ipaddress.ip_interface(text.strip())
    except ValueError:
        raise DataError("22P02", f'invalid input syntax for type inet: "{text}"') from None
    return str(value.ip) if value.network.prefixlen == value.max_prefixlen else str(value)


def parse_cidr(text: str) -> str:
    """Read a network, whose host bits are zero; 22P02."""
    try:
        value = ipaddress.ip_interface(text.strip())
    except ValueError:
        raise DataError("22P02", f'invalid input syntax for type cidr: "{text}"') from None
    if value.ip != value.network.network_address:
        raise DataError(
            "22P02", f'invalid cidr value: "{text}"', detail="Value has bits set to right of mask."
        )
    return str(value.network)


def show(value: str) -> str:
    """Return the text itself."""
    return value


def _send(value: str, is_cidr: int) -> bytes:
    interface = ipaddress.ip_interface(value)
    packed = interface.ip.packed
    return bytes((_FAMILY[interface.version], interface.network.prefixlen, is_cidr, len(packed))) + packed


def send_inet(value: str) -> bytes:
    """Return family, prefix length, 0, address length and address."""
    return _send(value, 0)


def send_cidr(value: str) -> bytes:
    """As ``send_inet``, with 1 for cidr."""
    return _send(value, 1)


def _recv(data: bytes) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    if len(data) < 4 or data[0] not in _FAMILY.values() or len(data) != 4 + data[3] or data[3] not in (4, 16):
        raise DataError("22P03", "invalid address family in external network value")
    address = ipaddress.ip_address(bytes(data[4:]))
    if data[1] > address.max_prefixlen:
        raise DataError("22P03", "invalid bits in external network value")
    return ipaddress.ip_interface(f"{address}/{data[1]}")


def recv_inet(data: bytes) -> str:
    """Read the binary form; 22P03."""
    return parse_inet(str(_recv(data)))


def recv_cidr(data: bytes) -> str:
    """Read the binary form; 22P03."""
    return parse_cidr(str(_recv(data)))


def parse_lsn(text: str) -> str:
    """Read a log position; 22P02."""
    match = _LSN.fullmatch(text)
    if match is None:
        raise DataError("22P02", f'invalid input syntax for type pg_lsn: "{text}"')
    return f"{int(match.group(1), 16):X}/{int(match.group(2), 16):X}"


def send_lsn(value: str) -> bytes:
    """Return eight bytes."""
    high, _, low = value.partition("/")
    return struct.pack(">II", int(high, 16), int(low, 16))


def recv_lsn(data: bytes) -> str:
    """Read eight bytes; 22P03."""
    if len(data) != 8:
        raise DataError("22P03", "incorrect binary data format")
    high, low = struct.unpack(">II", data)
    return f"{high:X}/{low:X}"
