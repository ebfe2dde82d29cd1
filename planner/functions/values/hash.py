"""PostgreSQL's hash functions: hashtext and its kin, as advisory locks and partitioning by clients use them (hashfn.c).

    key ──Bob Jenkins' lookup3, seeded with its length and (extended) a 64-bit seed──> 32 bits, or 64 (…extended)

The values are those of a little-endian PostgreSQL 15. Types that are no plain number or text, and functions
by type: ``hash_values``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pgwire.codecs.time.datetime import send_date, send_timestamp
from pgwire.give_way import give_way
from pgwire.long.values import encoded, stripped
from planner.functions.registry import REGISTRY

Halves: TypeAlias = tuple[int, int]
"""The high and the low 32 bits of a hash."""
Compute: TypeAlias = Callable[[Any, int], Halves]
"""The hash of a value under a seed, 0 .. 2**64 - 1; under 0 the low half is what the function without a seed gives."""

python = REGISTRY.python
_MASK: Final = 0xFFFFFFFF
_SEED: Final = 0x9E3779B9 + 3923095


def _rotated(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for by in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK) ^ _rotated(c, by)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _final(a: int, b: int, c: int) -> tuple[int, int, int]:
    c = ((c ^ b) - _rotated(b, 14)) & _MASK
    a = ((a ^ c) - _rotated(c, 11)) & _MASK
    b = ((b ^ a) - _rotated(a, 25)) & _MASK
    c = ((c ^ b) - _rotated(b, 16)) & _MASK
    a = ((a ^ c) - _rotated(c, 4)) & _MASK
    b = ((b ^ a) - _rotated(a, 14)) & _MASK
    c = ((c ^ b) - _rotated(b, 24)) & _MASK
    return a, b, c


def _begin(length: int, seed: int) -> tuple[int, int, int]:
    a = b = c = (_SEED + length) & _MASK
    if seed:
        a, b, c = _mix((a + (seed >> 32)) & _MASK, (b + seed) & _MASK, c)
    return a, b, c


def hash_bytes(data: bytes, seed: int = 0) -> Halves:
    """Return the high and the low 32 bits of the hash of ``data``; ``seed`` 0: as of the functions without one."""
    a, b, c = _begin(len(data), seed)
    at = 0
    while len(data) - at >= 12:
        if at and not at % _PACE:
            give_way()
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = _mix((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
        at += 12
    rest = data[at:]
    # the lowest byte of c is kept for the length
    padded = rest[:8].ljust(8, b"\0") + b"\0" + rest[8:].ljust(3, b"\0")
    x, y, z = struct.unpack("<III", padded)
    _, b, c = _final((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
    return b, c


def hash_uint32(value: int, seed: int = 0) -> Halves:
    """Return the high and the low 32 bits of the hash of a 32-bit number."""
    a, b, c = _begin(4, seed)
    _, b, c = _final((a + value) & _MASK, b, c)
    return b, c


def signed(value: int, bits: int) -> int:
    """Return the signed number of so many bits that an unsigned one is."""
    return value - (1 << bits) if value >> (bits - 1) else value


def folded_int8(value: int) -> int:
    """Return what of a bigint is hashed: equal to the integer's hash where it is one."""
    low, high = value & _MASK, (value >> 32) & _MASK
    return low ^ (high if value >= 0 else ~high & _MASK)


def moment_of(value: int) -> int:
    """Return the number that PostgreSQL has for a timestamp, and sends: microseconds since 2000, the ends for
    infinities.
    """
    return int.from_bytes(send_timestamp(value), "big", signed=True)


def day_of(value: int) -> int:
    """The same for a date: days since 2000."""
    return int.from_bytes(send_date(value), "big", signed=True)


def _float(value: float) -> bytes:
    if value == 0:
        return b""
    return struct.pack("<d", float("nan") if value != value else value)


def _hash_float(value: float, seed: int = 0) -> Halves:
    data = _float(value)
    if not data:
        return seed >> 32, seed & _MASK
    return hash_bytes(data, seed)


_PACE: Final = 12 * 256  # bytes between two looks at the clock; keys of rows are shorter

_NUMBERS: Final[dict[str, Callable[[Any], int]]] = {
    "hashint2(int2)": lambda v: v & _MASK, "hashint4(int4)": lambda v: v & _MASK, "hashint8(int8)": folded_int8,
    "timestamp_hash(timestamp)": lambda v: folded_int8(moment_of(v)), "time_hash(time)": folded_int8,
    "hashoid(oid)": lambda v: v, "hashchar(char)": lambda v: signed((v.encode() or b"\0")[0], 8) & _MASK,
}  # fmt: skip
_BYTES: Final[dict[str, Callable[[Any], bytes]]] = {
    "hashtext(text)": encoded, "hashname(name)": str.encode, "uuid_hash(uuid)": bytes,
    "hashbpchar(bpchar)": lambda v: encoded(stripped(v, " ", False, True)),
    "hashoidvector(oidvector)": lambda v: struct.pack(f"<{len(v)}I", *v),
}  # fmt: skip


def pair(signature: str) -> tuple[str, str]:
    """Return the signatures of a function without and with a seed."""
    name, _, types = signature.rstrip(")").partition("(")
    extended = f"{name}_extended" if "_" in name else f"{name}extended"
    return signature, f"{extended}({types},int8)"


COMPUTED: Final[dict[str, Compute]] = {}
"""By the signature of the function without a seed."""


def add(signature: str, compute: Compute) -> None:
    """Register a hash function, without a seed and with one. ``signature``: that of the one without."""
    COMPUTED[signature] = compute
    plain, seeded = pair(signature)
    python(plain, lambda value: signed(compute(value, 0)[1], 32))

    def extended(value: Any, seed: int) -> int:
        high, low = compute(value, seed & (2**64 - 1))
        return signed(high << 32 | low, 64)

    python(seeded, extended)


def of_number(part: Callable[[Any], int]) -> Compute:
    """Return the hash by the 32-bit number that ``part`` makes of a value."""
    return lambda value, seed: hash_uint32(part(value), seed)


def of_bytes(part: Callable[[Any], bytes]) -> Compute:
    """Return the hash by the bytes that ``part`` makes of a value."""
    return lambda value, seed: hash_bytes(part(value), seed)


def _register() -> None:
    for signature, number in _NUMBERS.items():
        add(signature, of_number(number))
    for signature, data in _BYTES.items():
        add(signature, of_bytes(data))
    add("hashfloat8(float8)", _hash_float)
    add("hashfloat4(float4)", _hash_float)


_register()
