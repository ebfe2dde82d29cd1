"""inet and cidr (manual 9.12), macaddr and macaddr8, pg_lsn, xid8: functions and operators.

Values of all of them order and compare as they stand (``pgwire.codecs.network``), on every executor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from pgwire.codecs import macaddr
from pgwire.codecs.network import Address, host_text, pack, show_cidr, show_inet, unpack
from planner.base.errors import SqlError
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.values.compare import register_comparisons

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


# --- addresses --------------------------------------------------------------------------------------


def _changed(value: bytes, number: int, bits: int | None = None) -> bytes:
    address = unpack(value)
    return pack(Address(address.version, number, address.bits if bits is None else bits))


def _all_ones(address: Address) -> int:
    return (1 << address.width) - 1


def network(value: bytes) -> bytes:
    """Return the network of an address."""
    address = unpack(value)
    return _changed(value, address.number & address.mask)


def broadcast(value: bytes) -> bytes:
    """Return the last address of a network."""
    address = unpack(value)
    return _changed(value, address.number | (_all_ones(address) & ~address.mask))


def netmask(value: bytes) -> bytes:
    """Return the network's mask as an address."""
    address = unpack(value)
    return _changed(value, address.mask, address.width)


def hostmask(value: bytes) -> bytes:
    """Return what the network's mask leaves to hosts."""
    address = unpack(value)
    return _changed(value, _all_ones(address) & ~address.mask, address.width)


def set_masklen(value: bytes, bits: int, *, cidr: bool = False) -> bytes:
    """Return an address with another prefix length, -1 for a host's; 22023."""
    address = unpack(value)
    wanted = address.width if bits == -1 else bits
    if not 0 <= wanted <= address.width:
        raise SqlError("22023", f"invalid mask length: {bits}")
    changed = Address(address.version, address.number, wanted)
    return pack(changed._replace(number=changed.number & changed.mask) if cidr else changed)


def abbreviated(value: bytes) -> str:
    """Return a network without the octets that are 0 and not of its prefix."""
    address = unpack(value)
    if address.version == 6:
        return _abbreviated6(value, address)
    octets = host_text(address).split(".")
    kept = max((address.bits + 7) // 8, 1)
    return f"{'.'.join(octets[:kept])}/{address.bits}"


def _abbreviated6(value: bytes, address: Address) -> str:
    """Return an IPv6 network by the groups of its prefix, at least two, the longest run of zeros as ``::``."""
    count = 8 if address.bits > 112 else max((address.bits + 15) // 16, 2)
    if address.bits == 0 or address.number >> 32 in (0, 0xFFFF):
        return show_cidr(value)
    groups = [address.number >> (112 - 16 * i) & 0xFFFF for i in range(count)]
    start = length = 0
    for i in range(count):
        run = next((n for n in range(count - i) if groups[i + n]), count - i)
        if run > length:
            start, length = i, run
    shown = [f"{group:x}" for group in groups]
    if not length:
        return f"{':'.join(shown)}/{address.bits}"
    return f"{':'.join(shown[:start])}::{':'.join(shown[start + length :])}/{address.bits}"


def _sizes(a: bytes, b: bytes, what: str) -> tuple[Address, Address]:
    x, y = unpack(a), unpack(b)
    if x.version != y.version:
        raise SqlError("22023", f"cannot {what} inet values of different sizes")
    return x, y


def _bitwise(combine: Callable[[int, int], int], word: str) -> Callable[[bytes, bytes], bytes]:
    def function(a: bytes, b: bytes) -> bytes:
        x, y = _sizes(a, b, word)
        return pack(Address(x.version, combine(x.number, y.number), max(x.bits, y.bits)))

    return function


def inet_not(value: bytes) -> bytes:
    """SQL's ``~``."""
    address = unpack(value)
    return _changed(value, address.number ^ _all_ones(address))


def inet_plus(value: bytes, distance: int) -> bytes:
    """Return the address ``distance`` further; 22003."""
    address = unpack(value)
    number = address.number + distance
    if not 0 <= number <= _all_ones(address):
        raise SqlError("22003", "result is out of range")
    return _changed(value, number)


def inet_distance(a: bytes, b: bytes) -> int:
    """Return how far one address is behind another; 22003."""
    x, y = unpack(a), unpack(b)
    if x.version != y.version:
        raise SqlError("22023", "cannot subtract inet values of different sizes")
    distance = x.number - y.number
    if not -(2**63) <= distance < 2**63:
        raise SqlError("22003", "result is out of range")
    return distance


def _within(a: bytes, b: bytes, *, strict: bool) -> bool:
    """Whether the network of ``a`` is in that of ``b``."""
    x, y = unpack(a), unpack(b)
    longer = x.bits > y.bits if strict else x.bits >= y.bits
    return x.version == y.version and longer and not (x.number ^ y.number) & y.mask


def _overlap(a: bytes, b: bytes) -> bool:
    x, y = unpack(a), unpack(b)
    return x.version == y.version and not (x.number ^ y.number) & min(x.mask, y.mask)


def inet_merge(a: bytes, b: bytes) -> bytes:
    """Return the smallest network that has both; 22023."""
    x, y = unpack(a), unpack(b)
    if x.version != y.version:
        raise SqlError("22023", "cannot merge addresses from different families")
    bits = min(x.bits, y.bits, x.width - (x.number ^ y.number).bit_length())
    merged = Address(x.version, x.number, bits)
    return pack(merged._replace(number=merged.number & merged.mask))


def _cidr_of(value: bytes) -> bytes:
    return network(value)


def _register_addresses() -> None:
    python = REGISTRY.python
    python("network(inet)", network)
    python("broadcast(inet)", broadcast)
    python("netmask(inet)", netmask)
    python("hostmask(inet)", hostmask)
    python("masklen(inet)", lambda v: unpack(v).bits)
    python("family(inet)", lambda v: unpack(v).version)
    python("host(inet)", lambda v: host_text(unpack(v)))
    python("text(inet)", show_cidr)
    python("abbrev(inet)", show_inet)
    python("abbrev(cidr)", abbreviated)
    python("cidr(inet)", _cidr_of)
    python("set_masklen(inet,int4)", set_masklen)
    python("set_masklen(cidr,int4)", lambda v, bits: set_masklen(v, bits, cidr=True))
    python("inetnot(inet)", inet_not)
    python("inetand(inet,inet)", _bitwise(operator.and_, "AND"))
    python("inetor(inet,inet)", _bitwise(operator.or_, "OR"))
    python("inetpl(inet,int8)", inet_plus)
    python("int8pl_inet(int8,inet)", lambda n, v: inet_plus(v, n))
    python("inetmi_int8(inet,int8)", lambda v, n: inet_plus(v, -n))
    python("inetmi(inet,inet)", inet_distance)
    python("network_sub(inet,inet)", lambda a, b: _within(a, b, strict=True))
    python("network_subeq(inet,inet)", lambda a, b: _within(a, b, strict=False))
    python("network_sup(inet,inet)", lambda a, b: _within(b, a, strict=True))
    python("network_supeq(inet,inet)", lambda a, b: _within(b, a, strict=False))
    python("network_overlap(inet,inet)", _overlap)
    python("inet_merge(inet,inet)", inet_merge)
    python("inet_same_family(inet,inet)", lambda a, b: a[0] == b[0])


# --- macaddr, pg_lsn ----------------------------------------------------------------------------------


def _octets(combine: Callable[[int, int], int]) -> Callable[[bytes, bytes], bytes]:
    return lambda a, b: bytes(map(combine, a, b))


def narrow(value: bytes) -> bytes:
    """Return eight octets as six; 22003."""
    if value[3:5] != b"\xff\xfe":
        raise SqlError(
            "22003",
            "macaddr8 data out of range to convert to macaddr",
            hint="Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example "
            "xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )
    return value[:3] + value[5:]


def _position(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _position_of(number: Decimal) -> bytes:
    """Return the log position with a number, rounded."""
    if not number.is_finite():
        raise SqlError("0A000", f"cannot convert {'NaN' if number.is_nan() else 'infinity'} to pg_lsn")
    position = number.to_integral_value(ROUND_HALF_UP)
    if not 0 <= position < 2**64:  # before it is an int, which takes long of many digits
        raise SqlError("22023", "pg_lsn out of range")
    return int(position).to_bytes(8, "big")


def _moved(value: bytes, distance: Decimal, sign: int) -> bytes:
    if distance.is_nan():
        raise SqlError("0A000", f"cannot {'add NaN to' if sign > 0 else 'subtract NaN from'} pg_lsn")
    return _position_of(Decimal(_position(value)) + sign * distance)


def _register_others() -> None:
    python = REGISTRY.python
    for name in ("macaddr", "macaddr8"):
        python(f"{name}_not({name})", lambda v: bytes(x ^ 0xFF for x in v))
        python(f"{name}_and({name},{name})", _octets(operator.and_))
        python(f"{name}_or({name},{name})", _octets(operator.or_))
        python(f"trunc({name})", lambda v: v[:3] + bytes(len(v) - 3))
    python("macaddr8(macaddr)", macaddr.widen)
    python("macaddr(macaddr8)", narrow)
    python("macaddr8_set7bit(macaddr8)", lambda v: bytes((v[0] | 2,)) + v[1:])
    for signature in ("pg_lsn_mi(pg_lsn,pg_lsn)", "pg_wal_lsn_diff(pg_lsn,pg_lsn)"):
        python(signature, lambda a, b: Decimal(_position(a) - _position(b)))
    python("xid(xid8)", lambda v: v & 0xFFFFFFFF)
    python("pg_lsn(numeric)", _position_of)
    python("pg_lsn_pli(pg_lsn,numeric)", lambda v, n: _moved(v, n, 1))
    python("numeric_pl_pg_lsn(numeric,pg_lsn)", lambda n, v: _moved(v, n, 1))
    python("pg_lsn_mii(pg_lsn,numeric)", lambda v, n: _moved(v, n, -1))


def _register_order() -> None:
    for name, stem, cmp in (
        ("inet", "network_", "network_cmp"), ("macaddr", "macaddr_", "macaddr_cmp"),
        ("macaddr8", "macaddr8_", "macaddr8_cmp"), ("pg_lsn", "pg_lsn_", "pg_lsn_cmp"),
        ("money", "cash_", "cash_cmp"), ("xid8", "xid8", "xid8cmp"),
    ):  # fmt: skip
        register_comparisons(_TESTS, f"{stem}%s", name, name, cmp)
    for stem, name in (("network_", "inet"), ("pg_lsn_", "pg_lsn"), ("cash", "money"), ("xid8_", "xid8")):
        for word, choose in (("larger", max), ("smaller", min)):
            if f"{stem}{word}({name},{name})" in facts().proc_by_signature:
                REGISTRY.python(f"{stem}{word}({name},{name})", choose)


_register_addresses()
_register_others()
_register_order()
