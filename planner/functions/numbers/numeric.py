"""numeric: exact decimals whose display scale is PostgreSQL's.

A value is a Decimal whose exponent is minus the display scale. Addition keeps the larger scale, multiplication
adds them, division and the transcendental functions choose a result scale that gives at least 16 significant
digits, counted in PostgreSQL's base-10000 digits; ``div_scale`` and ``ln_weight`` restate those rules.

    1 / 3.0    quotient's weight -1, so scale 16 + 4 = 20:   0.33333333333333333333

Promises: results are correctly rounded (half away from zero) at that scale; there is no negative zero; a value
past 131072 digits before the point is 22003. NaN equals NaN and is above everything, as in ORDER BY.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Context,
    Decimal,
)
from typing import Final, cast

from pgwire.codecs.typmod import apply_typmod
from pgwire.give_way import give_way, outside
from planner.base.errors import SqlError
from planner.facts import NUMERIC
from planner.functions.numbers.integer import check2, check4, check8, division_by_zero
from planner.functions.registry import REGISTRY

# Wide enough for every exact result; libmpdec allocates what a value needs, not this.
EXACT = Context(prec=300_000, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, clamp=0, traps=[])
MIN_SIGNIFICANT = 16
MAX_SCALE = 1000
MAX_RESULT_SCALE = 2000
MAX_SHOWN_SCALE = 16383
MAX_WEIGHT = 131071

ZERO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)
NAN, INF, NEG_INF = Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")
_UNIT = [Decimal(1).scaleb(-i) for i in range(101)]
LOG10_E = 0.434294481903252
LARGE: Final = (
    6_000  # bytes of operands, 12,000 digits, that division and its kin take a millisecond or two for
)
MANY_DIGITS: Final = 400  # of logarithms and powers of e, which take much longer
MANY_FACTORS: Final = 4_000
FEW_BYTES: Final = 600
"""Of a number with which sums and products take microseconds."""
LARGE_FACTORS: Final = 30_000
"""Bytes of operands whose product takes some milliseconds."""
MANY_PLACES: Final = 20_000
"""Places before the point, of two factors together."""


def _bytes_of(*values: Decimal) -> int:
    """Return how large numbers are: about two digits a byte."""
    return sum(value.__sizeof__() for value in values)


def exponent_of(x: Decimal) -> int | str:
    """Return ``x.as_tuple().exponent``, which of very many digits makes an integer each."""
    if x.adjusted() >= MANY_DIGITS:
        x = EXACT.multiply(x, ZERO)
    return x.as_tuple().exponent


def scale_of(x: Decimal) -> int:
    """Return the display scale (0 for NaN and infinities)."""
    exponent = exponent_of(x)
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _unit(scale: int) -> Decimal:
    return _UNIT[scale] if 0 <= scale <= 100 else Decimal((0, (1,), -scale))


def checked(x: Decimal) -> Decimal:
    """Refuse what is too large (22003) and mend negative zero and positive exponents."""
    if not x:
        return x.copy_abs()
    if x.is_finite():
        if x.adjusted() > MAX_WEIGHT:
            raise overflow()
        if x.adjusted() >= 1000:
            give_way()  # to compute it took milliseconds
        if x.same_quantum(ONE):
            return x
        if cast("int", exponent_of(x)) > 0:
            return EXACT.quantize(x, ONE)
    return x


def overflow() -> SqlError:
    """Return 22003."""
    return SqlError("22003", "value overflows numeric format")


def rounded(x: Decimal, scale: int, mode: str = ROUND_HALF_UP) -> Decimal:
    """Return ``x`` at display scale ``max(scale, 0)``, rounded at ``scale`` (which may be negative)."""
    if not x.is_finite():
        return x
    if scale >= 0:
        r = x.quantize(_unit(scale), mode, EXACT)
    else:
        r = x.quantize(_unit(scale), mode, EXACT).quantize(ONE, mode, EXACT)
    return r if r else r.copy_abs()


def add(a: Decimal, b: Decimal) -> Decimal:
    """Return a + b; scale is the larger one."""
    r = EXACT.add(a, b)
    return r if r and r.adjusted() < 1000 else checked(r)


def sub(a: Decimal, b: Decimal) -> Decimal:
    """Return a - b."""
    r = EXACT.subtract(a, b)
    return r if r and r.adjusted() < 1000 else checked(r)


def mul(a: Decimal, b: Decimal) -> Decimal:
    """Return a * b; scales add up."""
    if (places := a.adjusted() + b.adjusted()) > MANY_PLACES:
        if places > MAX_WEIGHT:  # of what is finite
            raise overflow()
        return checked(product(a, b))
    r = EXACT.multiply(a, b)
    if r and r.adjusted() < 1000:
        return r if scale_of(r) <= MAX_SHOWN_SCALE else rounded(r, MAX_SHOWN_SCALE)
    return checked(r)


_FIRST: Final = Context(prec=16, rounding=ROUND_DOWN, Emin=MIN_EMIN, Emax=MAX_EMAX, clamp=0, traps=[])


def first_digits(x: Decimal) -> tuple[int, ...]:
    """Return the first digits of ``x``: all, or 16."""
    return _FIRST.plus(x).as_tuple().digits


@outside(LARGE_FACTORS, weigh=_bytes_of)
def product(a: Decimal, b: Decimal) -> Decimal:
    """Return a * b with all its digits."""
    return EXACT.multiply(a, b)


def leading(x: Decimal) -> tuple[int, int]:
    """Return (weight, first digit) in base 10000; (0, 0) for zero."""
    if not x:
        return 0, 0
    digits = first_digits(x)
    adjusted = x.adjusted()
    weight = adjusted // 4
    count = adjusted - 4 * weight + 1
    first = 0
    for i in range(count):
        first = first * 10 + (digits[i] if i < len(digits) else 0)
    return weight, first


def div_scale(a: Decimal, b: Decimal) -> int:
    """Return the scale of a / b (select_div_scale)."""
    weight_a, first_a = leading(a)
    weight_b, first_b = leading(b)
    weight = weight_a - weight_b - (first_a <= first_b)
    scale = max(MIN_SIGNIFICANT - weight * 4, scale_of(a), scale_of(b), 0)
    return min(scale, MAX_SCALE)


def divided(a: Decimal, b: Decimal, scale: int) -> Decimal:
    """Return a / b for finite b != 0, rounded half away from zero at ``scale``."""
    found = _quotient(a.copy_abs().scaleb(scale, EXACT), b.copy_abs()).scaleb(-scale, EXACT)
    return found if a.is_signed() == b.is_signed() or not found else found.copy_negate()


@outside(LARGE, weigh=_bytes_of)
def _quotient(top: Decimal, bottom: Decimal) -> Decimal:
    """Return the whole number nearest to top / bottom, both positive, half of one away from zero."""
    quotient = EXACT.divide_int(top, bottom)
    rest = EXACT.remainder(top, bottom)
    return EXACT.add(quotient, ONE) if EXACT.add(rest, rest) >= bottom else quotient


def div(a: Decimal, b: Decimal) -> Decimal:
    """Return a / b."""
    if a.is_nan() or b.is_nan():
        return NAN
    if b.is_infinite():
        return NAN if a.is_infinite() else ZERO
    if not b:
        raise division_by_zero()
    if a.is_infinite():
        return a if b > 0 else -a
    return checked(divided(a, b, div_scale(a, b)))


def div_trunc(a: Decimal, b: Decimal) -> Decimal:
    """SQL's ``div``: the quotient truncated to a whole number."""
    if a.is_nan() or b.is_nan():
        return NAN
    if b.is_infinite():
        return NAN if a.is_infinite() else ZERO
    if not b:
        raise division_by_zero()
    if a.is_infinite():
        return a if b > 0 else -a
    r = _divide_int(a, b)
    return checked(r.quantize(ONE, ROUND_DOWN, EXACT) if r.is_finite() else r)


@outside(LARGE, weigh=_bytes_of)
def _divide_int(a: Decimal, b: Decimal) -> Decimal:
    return EXACT.divide_int(a, b)


@outside(LARGE, weigh=_bytes_of)
def _remainder(a: Decimal, b: Decimal) -> Decimal:
    return EXACT.remainder(a, b)


def mod(a: Decimal, b: Decimal) -> Decimal:
    """Return the remainder with the sign of a."""
    if a.is_nan() or b.is_nan():
        return NAN
    if not b:
        raise division_by_zero()
    if a.is_infinite():
        return NAN
    if b.is_infinite():
        return a
    scale = max(scale_of(a), scale_of(b))
    return rounded(_remainder(a, b), scale)


def neg(a: Decimal) -> Decimal:
    """Return -a (NaN stays, zero has no sign)."""
    return -a if a.is_infinite() else a.copy_negate() if a and not a.is_nan() else a


def sign(a: Decimal) -> Decimal:
    """Return -1, 0, 1."""
    if a.is_nan():
        return NAN
    return Decimal((a > 0) - (a < 0))


def round_to(a: Decimal, scale: int) -> Decimal:
    """SQL's ``round``."""
    return checked(rounded(a, max(min(scale, MAX_SHOWN_SCALE), -MAX_WEIGHT - 2)))


def trunc_to(a: Decimal, scale: int) -> Decimal:
    """SQL's ``trunc``."""
    return rounded(a, max(min(scale, MAX_SHOWN_SCALE), -MAX_WEIGHT - 1), ROUND_DOWN)


def ceil(a: Decimal) -> Decimal:
    """Return the smallest whole number that is not less."""
    return rounded(a, 0, ROUND_CEILING)


def floor(a: Decimal) -> Decimal:
    """Return the largest whole number that is not greater."""
    return rounded(a, 0, ROUND_FLOOR)


# --- roots, logarithms, powers ------------------------------------------------------------------


def _clamp(scale: int, *values: Decimal) -> int:
    return min(max(scale, 0, *(scale_of(v) for v in values)), MAX_SCALE)


def _context(digits: int) -> Context:
    return Context(
        prec=max(digits, 8), rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, clamp=0, traps=[]
    )


def sqrt_at(x: Decimal, scale: int) -> Decimal:
    """Return the square root of a finite x >= 0, rounded half away from zero at ``scale``."""
    return _sqrt(x, scale)


@outside(LARGE, weigh=lambda x, scale: _bytes_of(x))
def _sqrt(x: Decimal, scale: int) -> Decimal:
    if not x:
        return ZERO.scaleb(-scale)
    unit = _unit(scale)
    found = _context(max(x.adjusted() // 2, 0) + scale + 8).sqrt(x).quantize(unit, ROUND_DOWN, EXACT)
    while EXACT.multiply(found, found) > x:  # it was rounded up
        found = EXACT.subtract(found, unit)
    half = EXACT.add(found, EXACT.multiply(unit, Decimal("0.5")))
    return EXACT.add(found, unit) if EXACT.multiply(half, half) <= x else found


def sqrt(x: Decimal) -> Decimal:
    """Square root; 2201F for a negative argument."""
    if x.is_nan():
        return NAN
    if x < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    if x.is_infinite():
        return x
    weight, _ = leading(x)
    result_weight = weight * 4 // 2 + 1 if weight >= 0 else 1 - (1 - weight * 4) // 2
    return sqrt_at(x, _clamp(MIN_SIGNIFICANT - result_weight, x))


def ln_weight(x: Decimal) -> int:
    """Estimate the decimal weight of ln(x) (estimate_ln_dweight)."""
    if x <= 0:
        return 0
    if Decimal("0.9") <= x <= Decimal("1.1"):
        difference = EXACT.subtract(x, ONE)
        return difference.adjusted() if difference else 0
    weight, first = leading(x)
    shift = weight * 4
    digits = first
    exact = first_digits(x)
    if len(exact) > x.adjusted() - 4 * weight + 1:
        _, both = weight, 0
        count = x.adjusted() - 4 * weight + 5
        for i in range(count):
            both = both * 10 + (exact[i] if i < len(exact) else 0)
        digits, shift = both, shift - 4
    value = abs(math.log(digits) + shift * 2.302585092994046)
    return int(math.log10(value)) if value else 0


def _ln_error(x: Decimal) -> None:
    if x < 0:
        raise SqlError("2201E", "cannot take logarithm of a negative number")
    if not x:
        raise SqlError("2201E", "cannot take logarithm of zero")


@outside(MANY_DIGITS, weigh=lambda x, digits: digits)
def _ln(x: Decimal, digits: int) -> Decimal:
    """Return ln(x) with so many digits of its own, not just of x: near 1 it is as small as x is near."""
    near = EXACT.subtract(x, ONE)
    if not near or near.adjusted() >= -4:
        return _context(digits + 12).ln(_context(digits + 40).plus(x))
    # the context's ln takes as long as x has digits, however few are asked for: near - near²/2 + near³/3 ...
    context = _context(digits + 20)
    total = power = near = context.plus(near)
    number = 1
    while power.adjusted() > total.adjusted() - digits - 16:
        number += 1
        power = context.multiply(power, near.copy_negate())
        total = context.add(total, context.divide(power, Decimal(number)))
    return total


def ln(x: Decimal) -> Decimal:
    """Natural logarithm; 2201E for x <= 0."""
    if x.is_nan():
        return NAN
    _ln_error(x)
    if x.is_infinite():
        return x
    scale = _clamp(MIN_SIGNIFICANT - ln_weight(x), x)
    return rounded(_ln(x, scale + max(ln_weight(x), 0)), scale)


def log(base: Decimal, x: Decimal) -> Decimal:
    """Logarithm of x to ``base``."""
    if base.is_nan() or x.is_nan():
        return NAN
    _ln_error(base)
    _ln_error(x)
    if base.is_infinite():
        return NAN if x.is_infinite() else ZERO
    if x.is_infinite():
        return INF  # to a base below 1, too, as in PostgreSQL
    weight = ln_weight(x) - ln_weight(base)
    scale = _clamp(MIN_SIGNIFICANT - weight, base, x)
    digits = scale + abs(weight) + 20
    bottom = _ln(base, digits)
    if not bottom:
        raise division_by_zero()
    return rounded(_context(digits + 12).divide(_ln(x, digits), bottom), scale)


def log10(x: Decimal) -> Decimal:
    """Logarithm to base 10."""
    return log(Decimal(10), x)


def exp(x: Decimal) -> Decimal:
    """E to the x."""
    if x.is_nan():
        return NAN
    if x.is_infinite():
        return x if x > 0 else ZERO
    weight = float(x) * LOG10_E
    weight = max(min(weight, MAX_RESULT_SCALE), -MAX_RESULT_SCALE)
    return _exp_at(x, _clamp(MIN_SIGNIFICANT - int(weight), x))


def _exp_at(x: Decimal, scale: int) -> Decimal:
    value = float(x)
    if abs(value) >= MAX_RESULT_SCALE * 3:
        if value > 0:
            raise overflow()
        return ZERO.scaleb(-scale)
    digits = scale + max(int(value * LOG10_E), 0) + 12
    return rounded(_exp(x, digits), scale)


@outside(MANY_DIGITS, weigh=lambda x, digits: digits)
def _exp(x: Decimal, digits: int) -> Decimal:
    return _context(digits).exp(_context(digits + 20).plus(x))


def power(a: Decimal, b: Decimal) -> Decimal:
    """A to the b."""
    if a.is_nan() or b.is_nan():
        if a.is_nan() and not b.is_nan() and not b:
            return ONE
        return ONE if not a.is_nan() and a == 1 else NAN
    if not a and b < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    whole = b.is_infinite() or b == b.to_integral_value(ROUND_DOWN)
    if a < 0 and not whole:
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result")
    if a.is_infinite() or b.is_infinite():
        return _power_infinite(a, b)
    if whole and -(1 << 31) <= b < 1 << 31:
        return _power_int(a, int(b))
    if not a:
        return ZERO.scaleb(-MIN_SIGNIFICANT)
    negative = a < 0 and _is_odd(b)
    a = a.copy_abs()  # all its digits
    estimate = float(_context(24).multiply(_ln(a, 24), b))
    if abs(estimate) > MAX_RESULT_SCALE * 3.01:
        if estimate > 0:
            raise overflow()
        return ZERO.scaleb(-MAX_SCALE)
    estimate *= LOG10_E
    scale = _clamp(MIN_SIGNIFICANT - int(estimate), a, b)
    digits = max(scale + int(estimate), 0) + 30
    r = _exp_at(_context(digits + 12).multiply(_ln(a, digits), b), scale)
    return neg(r) if negative else r


def _power_infinite(a: Decimal, b: Decimal) -> Decimal:
    if a == 1 or not b:
        return ONE
    if not a:
        return ZERO
    if b.is_infinite():
        if a == -1:
            return ONE
        grows = (a.copy_abs() > 1) == (b > 0)
        return INF if grows else ZERO
    if b < 0:
        return ZERO
    return NEG_INF if a < 0 and _is_odd(b) else INF


def _is_odd(x: Decimal) -> bool:
    return EXACT.remainder(x.copy_abs(), TWO) == 1


def _power_int(a: Decimal, n: int) -> Decimal:
    scale = _clamp(MIN_SIGNIFICANT, a)
    if n == 0:
        return rounded(ONE, scale)
    if not a:
        return ZERO.scaleb(-scale)
    weight = n * (abs(a).adjusted() + math.log10(float(abs(a).scaleb(-abs(a).adjusted(), EXACT))))
    if weight > MAX_WEIGHT + 5:
        raise overflow()
    if weight + 1 < -scale - 1:
        return ZERO.scaleb(-scale)
    digits = max(scale + int(weight), 0) + 12 + len(str(abs(n)))
    return checked(_power(a, n, scale, digits))


@outside(LARGE, weigh=lambda a, n, scale, digits: digits)
def _power(a: Decimal, n: int, scale: int, digits: int) -> Decimal:
    context = _context(digits)
    if abs(n) * len(a.as_tuple().digits) < 4000:
        context = EXACT
    r = context.power(a, abs(n))
    if n < 0:
        return divided(ONE, r, scale) if context is EXACT else rounded(context.divide(ONE, r), scale)
    return rounded(r, scale)


# --- the rest -----------------------------------------------------------------------------------


def gcd(a: Decimal, b: Decimal) -> Decimal:
    """Greatest common divisor."""
    if not (a.is_finite() and b.is_finite()):
        return NAN
    return _gcd(a, b)


@outside(LARGE, weigh=_bytes_of)
def _gcd(a: Decimal, b: Decimal) -> Decimal:
    scale = max(scale_of(a), scale_of(b))
    r = math.gcd(int(a.scaleb(scale, EXACT)), int(b.scaleb(scale, EXACT)))
    return Decimal(r).scaleb(-scale, EXACT)


def lcm(a: Decimal, b: Decimal) -> Decimal:
    """Least common multiple."""
    if not (a.is_finite() and b.is_finite()):
        return NAN
    return checked(_lcm(a, b))


@outside(LARGE, weigh=_bytes_of)
def _lcm(a: Decimal, b: Decimal) -> Decimal:
    scale = max(scale_of(a), scale_of(b))
    r = math.lcm(int(a.scaleb(scale, EXACT)), int(b.scaleb(scale, EXACT)))
    return Decimal(r).scaleb(-scale, EXACT)


def min_scale(a: Decimal) -> int | None:
    """Return the least scale that keeps the value; NULL for NaN and infinities."""
    return scale_of(trim_scale(a)) if a.is_finite() else None


def trim_scale(a: Decimal) -> Decimal:
    """Drop trailing zeros after the point."""
    if not a.is_finite():
        return a
    if not a:
        return ZERO
    r = a.normalize(EXACT)
    return r if cast("int", exponent_of(r)) <= 0 else r.quantize(ONE, ROUND_DOWN, EXACT)


def factorial(n: int) -> Decimal:
    """n!; 22003 for a negative or too large n."""
    if n < 0:
        raise SqlError("22003", "factorial of a negative number is undefined")
    if n > 32177:
        raise overflow()
    return _factorial(n)


@outside(MANY_FACTORS, weigh=lambda n: n)
def _factorial(n: int) -> Decimal:
    return Decimal(math.factorial(n))


def width_bucket(operand: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """width_bucket on exact numbers."""
    if count <= 0:
        raise SqlError("2201G", "count must be greater than zero")
    if operand.is_nan() or low.is_nan() or high.is_nan():
        raise SqlError("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if low.is_infinite() or high.is_infinite():
        raise SqlError("2201G", "lower and upper bounds must be finite")
    if low == high:
        raise SqlError("2201G", "lower bound cannot equal upper bound")
    rising = low < high
    if operand < low if rising else operand > low:
        return 0
    if operand >= high if rising else operand <= high:
        return check4(count + 1)
    position = EXACT.multiply(EXACT.subtract(operand, low), Decimal(count))
    return int(_divide_int(position, EXACT.subtract(high, low))) + 1


MOST_DIGITS: Final = 20
"""Of a number that some integer type may hold."""


def to_int(check: Callable[[int], int], label: str) -> Callable[[Decimal], int]:
    """Return the cast to an integer type: rounds half away from zero."""

    def cast_(x: Decimal) -> int:
        if not x.is_finite():
            what = "NaN" if x.is_nan() else "infinity"
            raise SqlError("0A000", f"cannot convert {what} to {label}")
        if x.adjusted() > MOST_DIGITS:
            check(10**MOST_DIGITS)  # which raises; to read all digits may take long
        return check(int(x.to_integral_value(ROUND_HALF_UP, EXACT)))

    return cast_


def of_float(digits: int) -> Callable[[float], Decimal]:
    """Return the cast from float8 (15 significant digits) or float4 (6)."""

    def cast_(x: float) -> Decimal:
        return checked(Decimal(f"{x:.{digits}g}"))

    return cast_


def in_range(value: Decimal, base: Decimal, offset: Decimal, sub_: bool, less: bool) -> bool:
    """in_range for numeric."""
    if offset.is_nan() or offset < 0:
        raise SqlError("22013", "invalid preceding or following size in window function")
    if value.is_nan():
        return True if base.is_nan() else not less
    if base.is_nan():
        return less
    if offset.is_infinite() and base.is_infinite() and (base > 0 if sub_ else base < 0):
        return True
    bound = EXACT.subtract(base, offset) if sub_ else EXACT.add(base, offset)
    return value <= bound if less else value >= bound


def larger(a: Decimal, b: Decimal) -> Decimal:
    """Return the larger one (NaN is largest)."""
    if a.is_nan() or b.is_nan():
        return NAN
    return a if a > b else b


def smaller(a: Decimal, b: Decimal) -> Decimal:
    """Return the smaller one."""
    if a.is_nan() or b.is_nan():
        return b if a.is_nan() else a
    return a if a < b else b


def with_typmod(x: Decimal, typmod: int) -> Decimal:
    """SQL's ``numeric``: 22003 when the precision is passed."""
    return cast("Decimal", apply_typmod(NUMERIC, x, typmod))


def _register() -> None:
    python = REGISTRY.python
    for name, function in (
        ("numeric_add", add), ("numeric_sub", sub), ("numeric_mul", mul), ("numeric_div", div),
        ("numeric_mod", mod), ("mod", mod), ("div", div_trunc), ("numeric_div_trunc", div_trunc),
        ("numeric_power", power), ("pow", power), ("power", power), ("log", log), ("numeric_log", log),
        ("gcd", gcd), ("lcm", lcm), ("numeric_larger", larger), ("numeric_smaller", smaller),
    ):  # fmt: skip
        python(f"{name}(numeric,numeric)", function)
    for single_name, single in (
        ("numeric_uminus", neg), ("numeric_uplus", lambda x: x), ("numeric_abs", abs_), ("abs", abs_),
        ("sign", sign), ("ceil", ceil), ("ceiling", ceil), ("floor", floor),
        ("round", lambda x: rounded(x, 0)), ("trunc", lambda x: rounded(x, 0, ROUND_DOWN)),
        ("sqrt", sqrt), ("numeric_sqrt", sqrt), ("ln", ln), ("numeric_ln", ln), ("log", log10), ("log10", log10),
        ("exp", exp), ("numeric_exp", exp), ("trim_scale", trim_scale), ("numeric_inc", lambda x: add(x, ONE)),
    ):  # fmt: skip
        python(f"{single_name}(numeric)", single)
    python("numeric(numeric,int4)", with_typmod)
    python("round(numeric,int4)", round_to)
    python("trunc(numeric,int4)", trunc_to)
    python("scale(numeric)", lambda x: scale_of(x) if x.is_finite() else None)
    python("min_scale(numeric)", min_scale)
    python("factorial(int8)", factorial)
    python("width_bucket(numeric,numeric,numeric,int4)", width_bucket)
    python("in_range(numeric,numeric,numeric,bool,bool)", in_range)
    for t in ("int2", "int4", "int8"):
        python(f"numeric({t})", Decimal)
    python("numeric(float8)", of_float(15))
    python("numeric(float4)", of_float(6))
    python("int2(numeric)", to_int(check2, "smallint"))
    python("int4(numeric)", to_int(check4, "integer"))
    python("int8(numeric)", to_int(check8, "bigint"))


def abs_(x: Decimal) -> Decimal:
    """Return the absolute value."""
    return x.copy_abs()


_register()
