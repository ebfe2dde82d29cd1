"""real and double precision: IEEE arithmetic with PostgreSQL's overflow, underflow and domain errors.

A result that became infinite from finite operands is 22003 (overflow), one that became zero although it
should not be is 22003 (underflow). NaN equals itself and is greater than every other number. real values are
rounded to single precision after every operation.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal

from planner.base.errors import SqlError
from planner.base.floats import INF, NAN, _overflow, _underflow, add, div, mul, sub
from planner.functions.registry import REGISTRY

_pack_f = struct.Struct("<f")


def single(value: float) -> float:
    """Round to single precision; what is too large becomes infinite."""
    try:
        return float(_pack_f.unpack(_pack_f.pack(value))[0])
    except OverflowError:
        return math.copysign(INF, value)


def _single_result(a: float, b: float, r: float) -> float:
    out = single(r)
    if out in (INF, -INF) and not (math.isinf(a) or math.isinf(b)):
        _overflow()
    return out


def add4(a: float, b: float) -> float:
    """Return a + b in single precision."""
    return _single_result(a, b, a + b)


def sub4(a: float, b: float) -> float:
    """Return a - b in single precision."""
    return _single_result(a, b, a - b)


def mul4(a: float, b: float) -> float:
    """Return a * b in single precision."""
    r = _single_result(a, b, a * b)
    if r == 0.0 and a != 0.0 and b != 0.0:
        _underflow()
    return r


def div4(a: float, b: float) -> float:
    """Return a / b in single precision."""
    if b == 0.0 and a == a:
        raise SqlError("22012", "division by zero")
    if b == 0.0:
        return NAN
    r = single(a / b)
    if r in (INF, -INF) and not math.isinf(a):
        _overflow()
    if r == 0.0 and a != 0.0 and not math.isinf(b):
        _underflow()
    return r


def eq(a: float, b: float) -> bool:
    """Equality with NaN = NaN."""
    return a == b or (a != a and b != b)


def lt(a: float, b: float) -> bool:
    """Order with NaN above everything."""
    return a < b or (b != b and a == a)


def le(a: float, b: float) -> bool:
    """``not b < a``."""
    return a <= b or b != b


def compare(a: float, b: float) -> int:
    """Return -1, 0, 1."""
    return -1 if lt(a, b) else 0 if eq(a, b) else 1


def _range_error() -> SqlError:
    return SqlError("22003", "input is out of range")


def _guard(function: Callable[[float], float]) -> Callable[[float], float]:
    """Make a math function follow PostgreSQL: NaN passes, a domain error is 22003, overflow 22003."""

    def apply(x: float) -> float:
        if x != x:
            return x
        try:
            r = function(x)
        except ValueError:
            raise _range_error() from None
        except OverflowError:
            _overflow()
        return r

    return apply


def round_half_even(x: float) -> float:
    """dround: to the nearest integer, ties to even."""
    if math.isinf(x) or x != x or abs(x) >= 2**53:
        return x
    return math.copysign(float(round(x)), x)


def truncate(x: float) -> float:
    """Dtrunc."""
    if math.isinf(x) or x != x:
        return x
    return math.copysign(float(math.trunc(x)), x)


def ceiling(x: float) -> float:
    """Return the smallest whole number that is not less."""
    if math.isinf(x) or x != x:
        return x
    return math.copysign(float(math.ceil(x)), x)


def floor(x: float) -> float:
    """Return the largest whole number that is not greater."""
    if math.isinf(x) or x != x:
        return x
    return math.copysign(float(math.floor(x)), x)


def sign(x: float) -> float:
    """Return -1, 0, 1 (0 for NaN as PostgreSQL does)."""
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0


def sqrt(x: float) -> float:
    """Square root; 2201F for a negative argument."""
    if x < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    return math.sqrt(x)


def cbrt(x: float) -> float:
    """Cube root."""
    if x == 0 or x != x or math.isinf(x):
        return x
    return math.cbrt(x)


def exp(x: float) -> float:
    """E to the x."""
    if x != x:
        return x
    if math.isinf(x):
        return x if x > 0 else 0.0
    try:
        r = math.exp(x)
    except OverflowError:
        _overflow()
    if r == 0.0:
        _underflow()
    return r


def _log(function: Callable[[float], float]) -> Callable[[float], float]:
    def apply(x: float) -> float:
        if x == 0.0:
            raise SqlError("2201E", "cannot take logarithm of zero")
        if x < 0:
            raise SqlError("2201E", "cannot take logarithm of a negative number")
        if x != x or math.isinf(x):
            return x
        return function(x)

    return apply


ln = _log(math.log)
log10 = _log(math.log10)


def power(a: float, b: float) -> float:
    """A to the b: POSIX pow() with PostgreSQL's errors."""
    if a != a:
        return 1.0 if b == 0.0 else a
    if b != b:
        return 1.0 if a == 1.0 else b
    if a == 0.0 and b < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    if a < 0 and not math.isinf(b) and math.floor(b) != b:
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result")
    try:
        r = math.pow(a, b)
    except OverflowError:
        _overflow()
    except ValueError:
        raise _range_error() from None
    if math.isinf(r) and not (math.isinf(a) or math.isinf(b)):
        _overflow()
    if r == 0.0 and a != 0.0 and not (math.isinf(a) or math.isinf(b)):
        _underflow()
    return r


def sinh(x: float) -> float:
    """Hyperbolic sine: overflow gives an infinity, as in PostgreSQL."""
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(INF, x)


def cosh(x: float) -> float:
    """Hyperbolic cosine."""
    try:
        return math.cosh(x)
    except OverflowError:
        return INF


def _trig(function: Callable[[float], float]) -> Callable[[float], float]:
    def apply(x: float) -> float:
        if x != x:
            return x
        if math.isinf(x):
            raise _range_error()
        return function(x)

    return apply


def _cot(x: float) -> float:
    tangent = math.tan(x)
    return math.copysign(INF, x) if tangent == 0.0 else 1.0 / tangent


# Degree functions: exact at the angles a reader expects.
_SIN_30 = math.sin(math.radians(30.0))
_ONE_MINUS_COS_60 = 1.0 - math.cos(math.radians(60.0))
_ASIN_05 = math.asin(0.5)
_ACOS_05 = math.acos(0.5)
_ATAN_1 = math.atan(1.0)


def _sin_quadrant(x: float) -> float:
    if x <= 30.0:
        return math.sin(math.radians(x)) / _SIN_30 / 2.0
    return _cos_first(90.0 - x)


def _cos_first(x: float) -> float:
    return 1.0 - (1.0 - math.cos(math.radians(x))) / _ONE_MINUS_COS_60 / 2.0


def _cos_quadrant(x: float) -> float:
    if x <= 60.0:
        return _cos_first(x)
    return math.sin(math.radians(90.0 - x)) / _SIN_30 / 2.0


def sind(x: float) -> float:
    """Sine of degrees."""
    x = math.fmod(x, 360.0)
    s = 1.0
    if x < 0.0:
        x, s = -x, -s
    if x > 180.0:
        x, s = 360.0 - x, -s
    if x > 90.0:
        x = 180.0 - x
    return s * _sin_quadrant(x)


def cosd(x: float) -> float:
    """Cosine of degrees."""
    x = abs(math.fmod(x, 360.0))
    s = 1.0
    if x > 180.0:
        x = 360.0 - x
    if x > 90.0:
        x, s = 180.0 - x, -s
    return s * _cos_quadrant(x)


_TAN_45 = _sin_quadrant(45.0) / _cos_quadrant(45.0)
_COT_45 = _cos_quadrant(45.0) / _sin_quadrant(45.0)


def tand(x: float) -> float:
    """Tangent of degrees."""
    x = math.fmod(x, 360.0)
    s = 1.0
    if x < 0.0:
        x, s = -x, -s
    if x > 180.0:
        x, s = 360.0 - x, -s
    if x > 90.0:
        x, s = 180.0 - x, -s
    cosine = _cos_quadrant(x)
    r = s * ((_sin_quadrant(x) / cosine if cosine else INF) / _TAN_45)
    return 0.0 if r == 0.0 else r


def cotd(x: float) -> float:
    """Cotangent of degrees."""
    x = math.fmod(x, 360.0)
    s = 1.0
    if x < 0.0:
        x, s = -x, -s
    if x > 180.0:
        x, s = 360.0 - x, -s
    if x > 90.0:
        x, s = 180.0 - x, -s
    sine = _sin_quadrant(x)
    r = s * ((_cos_quadrant(x) / sine if sine else math.copysign(INF, sine)) / _COT_45)
    return 0.0 if r == 0.0 else r


def _asind_first(x: float) -> float:
    if x <= 0.5:
        return (math.asin(x) / _ASIN_05) * 30.0
    return 90.0 - (math.acos(x) / _ACOS_05) * 60.0


def _acosd_first(x: float) -> float:
    if x <= 0.5:
        return 90.0 - (math.asin(x) / _ASIN_05) * 30.0
    return (math.acos(x) / _ACOS_05) * 60.0


def asind(x: float) -> float:
    """Inverse sine in degrees."""
    if x < -1.0 or x > 1.0:
        raise _range_error()
    return _asind_first(x) if x >= 0 else -_asind_first(-x)


def acosd(x: float) -> float:
    """Inverse cosine in degrees."""
    if x < -1.0 or x > 1.0:
        raise _range_error()
    return _acosd_first(x) if x >= 0 else 90.0 + _asind_first(-x)


def atand(x: float) -> float:
    """Inverse tangent in degrees."""
    return (math.atan(x) / _ATAN_1) * 45.0


def atan2d(y: float, x: float) -> float:
    """Inverse tangent of y/x in degrees."""
    return (math.atan2(y, x) / _ATAN_1) * 45.0


def to_int(low: int, high: int, label: str) -> Callable[[float], int]:
    """Return the cast to an integer type: ties to even, 22003 outside."""

    def cast(x: float) -> int:
        if x != x or math.isinf(x):
            raise SqlError("22003", f"{label} out of range")
        r = round(x)
        if not low <= r <= high:
            raise SqlError("22003", f"{label} out of range")
        return r

    return cast


def to_float4(x: float) -> float:
    """SQL's ``float4``: overflow and underflow are errors."""
    r = single(x)
    if math.isinf(r) and not math.isinf(x):
        _overflow()
    if r == 0.0 and x != 0.0:
        _underflow()
    return r


def numeric_to_float8(x: Decimal) -> float:
    """SQL's ``float8``."""
    if x.is_nan():
        return NAN
    r = float(x)
    if (math.isinf(r) and not x.is_infinite()) or (r == 0.0 and x):
        raise SqlError("22003", f'"{x:f}" is out of range for type double precision')
    return r or 0.0  # numeric has no -0


def numeric_to_float4(x: Decimal) -> float:
    """SQL's ``float4``."""
    if x.is_nan():
        return NAN
    r = single(float(x))
    if (math.isinf(r) and not x.is_infinite()) or (r == 0.0 and x):
        raise SqlError("22003", f'"{x:f}" is out of range for type real')
    return r or 0.0


def in_range(value: float, base: float, offset: float, sub_: bool, less: bool) -> bool:
    """in_range for floats: NaNs are equal to each other and above all."""
    if offset != offset or offset < 0:
        raise SqlError("22013", "invalid preceding or following size in window function")
    if value != value:
        return True if base != base else not less
    if base != base:
        return less
    if math.isinf(offset) and math.isinf(base) and (base > 0 if sub_ else base < 0):
        return True
    bound = base - offset if sub_ else base + offset
    return value <= bound if less else value >= bound


def _register() -> None:
    python = REGISTRY.python
    for name, wide, narrow in (("pl", add, add4), ("mi", sub, sub4), ("mul", mul, mul4), ("div", div, div4)):
        python(f"float8{name}(float8,float8)", wide)
        python(f"float48{name}(float4,float8)", wide)
        python(f"float84{name}(float8,float4)", wide)
        python(f"float4{name}(float4,float4)", narrow)
    for t in ("float4", "float8"):
        python(f"{t}um({t})", lambda x: -x)
        python(f"{t}up({t})", lambda x: x)
        python(f"{t}abs({t})", abs)
        python(f"abs({t})", abs)
        python(f"{t}larger({t},{t})", lambda a, b: a if lt(b, a) else b)
        python(f"{t}smaller({t},{t})", lambda a, b: a if lt(a, b) else b)
        python(f"int2({t})", to_int(-(1 << 15), (1 << 15) - 1, "smallint"))
        python(f"int4({t})", to_int(-(1 << 31), (1 << 31) - 1, "integer"))
        python(f"int8({t})", to_int(-(1 << 63), (1 << 63) - 1, "bigint"))
        python(f"in_range({t},{t},float8,bool,bool)", in_range)
        python(f"float8({'float4' if t == 'float8' else 'int2'})", float)
    for t in ("int4", "int8"):
        python(f"float8({t})", float)
    for t in ("int2", "int4", "int8"):
        python(f"float4({t})", lambda x: single(float(x)))
    python("float4(float8)", to_float4)
    python("float8(numeric)", numeric_to_float8)
    python("float4(numeric)", numeric_to_float4)
    for names, function in (
        (("dround", "round"), round_half_even),
        (("dtrunc", "trunc"), truncate),
        (("ceil", "ceiling"), ceiling),
        (("floor",), floor),
        (("sign",), sign),
        (("dsqrt", "sqrt"), sqrt),
        (("dcbrt", "cbrt"), cbrt),
        (("dexp", "exp"), exp),
        (("dlog1", "ln"), ln),
        (("dlog10", "log10", "log"), log10),
        (("degrees",), lambda x: _finite(x, math.degrees(x))),
        (("radians",), math.radians),
        (("sin",), _trig(math.sin)), (("cos",), _trig(math.cos)), (("tan",), _trig(math.tan)),
        (("cot",), _trig(_cot)),
        (("asin",), _guard(math.asin)), (("acos",), _guard(math.acos)), (("atan",), math.atan),
        (("sinh",), sinh), (("cosh",), cosh), (("tanh",), math.tanh),
        (("asinh",), math.asinh), (("acosh",), _guard(math.acosh)), (("atanh",), _atanh),
        (("sind",), _trig(sind)), (("cosd",), _trig(cosd)), (("tand",), _trig(tand)), (("cotd",), _trig(cotd)),
        (("asind",), asind), (("acosd",), acosd), (("atand",), atand),
    ):  # fmt: skip
        for name in names:
            python(f"{name}(float8)", function)
    python("atan2(float8,float8)", math.atan2)
    python("atan2d(float8,float8)", atan2d)
    for name in ("dpow", "pow", "power"):
        python(f"{name}(float8,float8)", power)
    python("pi()", lambda: math.pi)


def _finite(x: float, r: float) -> float:
    if math.isinf(r) and not math.isinf(x):
        _overflow()
    return r


def _atanh(x: float) -> float:
    if x in (1.0, -1.0):
        return math.copysign(INF, x)
    return _guard(math.atanh)(x)


_register()
