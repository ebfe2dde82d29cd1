"""smallint, integer and bigint: arithmetic with overflow checks, bits, number theory, in_range.

Python integers do not overflow, ``//`` floors where SQL truncates: both are ours to mend here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from planner.base.errors import SqlError
from planner.functions.inline import bigint_out_of_range, integer_out_of_range, smallint_out_of_range
from planner.functions.registry import REGISTRY

_LIMITS = {2: 1 << 15, 4: 1 << 31, 8: 1 << 63}
_RAISE = {2: smallint_out_of_range, 4: integer_out_of_range, 8: bigint_out_of_range}
_TYPES = {2: "int2", 4: "int4", 8: "int8"}

IntOp = Callable[[int, int], int]


def checker(width: int) -> Callable[[int], int]:
    """Return the function that lets an integer of ``width`` bytes pass and raises 22003 otherwise."""
    low, high, refuse = -_LIMITS[width], _LIMITS[width] - 1, _RAISE[width]

    def check(value: int) -> int:
        if low <= value <= high:
            return value
        return refuse()

    return check


check2, check4, check8 = checker(2), checker(4), checker(8)
_CHECK = {2: check2, 4: check4, 8: check8}


def division_by_zero() -> SqlError:
    """Return 22012."""
    return SqlError("22012", "division by zero")


def truncated_divide(a: int, b: int) -> int:
    """Divide, truncating towards zero; 22012 for b = 0."""
    if b == 0:
        raise division_by_zero()
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def truncated_modulo(a: int, b: int) -> int:
    """Return the remainder with the sign of ``a``; 22012 for b = 0."""
    if b == 0:
        raise division_by_zero()
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _checked(width: int, operation: IntOp) -> IntOp:
    check = _CHECK[width]

    def apply(a: int, b: int) -> int:
        return check(operation(a, b))

    return apply


def signed(value: int, width: int) -> int:
    """Return the low ``width`` bytes of ``value`` as a signed number (C's conversion)."""
    limit = _LIMITS[width]
    return (value + limit) % (2 * limit) - limit


def _shift_left(width: int) -> IntOp:
    # The machine takes the count modulo the register: 32 bits for int2 and int4, 64 for int8.
    mask = 63 if width == 8 else 31
    return lambda a, b: signed(a << (b & mask), width)


def _shift_right(width: int) -> IntOp:
    mask = 63 if width == 8 else 31
    return lambda a, b: a >> (b & mask)


def _in_range(width: int) -> Callable[[int, int, int, bool, bool], bool]:
    """SQL's ``in_range``: ``value <= base -+ offset`` and its kin."""

    def test(value: int, base: int, offset: int, sub: bool, less: bool) -> bool:
        if offset < 0:
            raise SqlError("22013", "invalid preceding or following size in window function")
        bound = base - offset if sub else base + offset
        return value <= bound if less else value >= bound

    return test


def _lcm(width: int) -> IntOp:
    check = _CHECK[width]
    return lambda a, b: check(math.lcm(a, b))


def _gcd(width: int) -> IntOp:
    check = _CHECK[width]
    return lambda a, b: check(math.gcd(a, b))


def width_bucket(operand: int | float, low: int | float, high: int | float, count: int) -> int:
    """width_bucket for float8 (numeric has its own, exact)."""
    if count <= 0:
        raise SqlError("2201G", "count must be greater than zero")
    if operand != operand or low != low or high != high:
        raise SqlError("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise SqlError("2201G", "lower and upper bounds must be finite")
    if low == high:
        raise SqlError("2201G", "lower bound cannot equal upper bound")
    if low < high:
        if operand < low:
            return 0
        if operand >= high:
            return check4(count + 1)
        bucket = int(count * ((operand - low) / (high - low)))
    else:
        if operand > low:
            return 0
        if operand <= high:
            return check4(count + 1)
        bucket = int(count * ((low - operand) / (low - high)))
    return min(bucket, count - 1) + 1


def _register() -> None:
    python = REGISTRY.python
    widths = (2, 4, 8)
    for a in widths:
        for b in widths:
            left, right, width = _TYPES[a], _TYPES[b], max(a, b)
            stem = left if a == b else f"int{a}{b}"
            arguments = f"({left},{right})"
            python(f"{stem}pl{arguments}", _checked(width, lambda x, y: x + y))
            python(f"{stem}mi{arguments}", _checked(width, lambda x, y: x - y))
            python(f"{stem}mul{arguments}", _checked(width, lambda x, y: x * y))
            python(f"{stem}div{arguments}", _checked(width, truncated_divide))
    for w in widths:
        t = _TYPES[w]
        check = _CHECK[w]
        python(f"{t}mod({t},{t})", truncated_modulo)
        python(f"mod({t},{t})", truncated_modulo)
        python(f"{t}um({t})", lambda x, check=check: check(-x))
        python(f"{t}up({t})", lambda x: x)
        python(f"{t}abs({t})", lambda x, check=check: check(abs(x)))
        python(f"abs({t})", lambda x, check=check: check(abs(x)))
        python(f"{t}and({t},{t})", lambda x, y: x & y)
        python(f"{t}or({t},{t})", lambda x, y: x | y)
        python(f"{t}xor({t},{t})", lambda x, y: x ^ y)
        python(f"{t}not({t})", lambda x: ~x)
        python(f"{t}shl({t},int4)", _shift_left(w))
        python(f"{t}shr({t},int4)", _shift_right(w))
        python(f"{t}larger({t},{t})", max)
        python(f"{t}smaller({t},{t})", min)
        for target in widths:
            if target != w:
                python(f"{_TYPES[target]}({t})", _CHECK[target])
    for value_type, offset_type in (
        ("int2", "int2"), ("int2", "int4"), ("int2", "int8"),
        ("int4", "int2"), ("int4", "int4"), ("int4", "int8"), ("int8", "int8"),
    ):  # fmt: skip
        python(f"in_range({value_type},{value_type},{offset_type},bool,bool)", _in_range(8))
    for w in (4, 8):
        t = _TYPES[w]
        python(f"gcd({t},{t})", _gcd(w))
        python(f"lcm({t},{t})", _lcm(w))
        python(f"to_hex({t})", lambda x, w=w: f"{x % (1 << (8 * w)):x}")
    python("width_bucket(float8,float8,float8,int4)", width_bucket)
    python("int4inc(int4)", lambda x: check4(x + 1))
    python("int8inc(int8)", lambda x: check8(x + 1))
    python("int8dec(int8)", lambda x: check8(x - 1))
    python("oid(int8)", _oid_of_int8)
    python("int8(oid)", lambda x: x)
    python("oidlarger(oid,oid)", max)
    python("oidsmaller(oid,oid)", min)


def _oid_of_int8(value: int) -> int:
    if not 0 <= value < 1 << 32:
        raise SqlError("22003", "OID out of range")
    return value


_register()
