"""float4 and float8: the shortest text that reads back as the same value; values ``float``.

PostgreSQL and Python agree on the digits of a float8 except in two places. PostgreSQL turns to exponents at
1e15 (Python at 1e16), and it never prints a decimal that lies exactly on the border between two floats, since
a reader might round it the other way: 1e23 prints as 9.999999999999999e+22.

float4 values are Python floats already rounded to single precision (``round_float4``).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from fractions import Fraction

from pgwire.codecs.bool import wrong_length
from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax, quoting
from pgwire.give_way import outside
from pgwire.long.values import LONG

_SPACE = " \t\n\r\f\v"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?", re.ASCII)
_SPECIAL = {
    "nan": math.nan, "+nan": math.nan, "-nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
    "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
}  # fmt: skip
_LONGEST = max(map(len, _SPECIAL))
_F4 = struct.Struct(">f")
_F8 = struct.Struct(">d")
FLOAT4_MAX = _F4.unpack(b"\x7f\x7f\xff\xff")[0]


def round_float4(value: float) -> float:
    """Return ``value`` rounded to single precision; infinite if it is too large."""
    try:
        return float(_F4.unpack(_F4.pack(value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def parse_float8(text: str, *, here: bool = False) -> float:
    """Read a float8 as strtod does, blanks around allowed; 22P02, 22003 when out of range. ``here``: a long
    one, too.
    """
    if len(text) > LONG and not here:
        return _long_float8(text)
    body = text.strip(_SPACE)
    if _DECIMAL.fullmatch(body):
        value = float(body)
        if math.isinf(value) or (value == 0.0 and _has_digit(body)):
            raise DataError("22003", f'"{body}" is out of range for type double precision')
        return value
    return _parse_rare(text, body, "double precision")


def parse_float4(text: str, *, here: bool = False) -> float:
    """Read a float4, correctly rounded once from the decimal text; 22P02, 22003 when out of range. ``here``:
    a long one, too.
    """
    if len(text) > LONG and not here:
        return _long_float4(text)
    body = text.strip(_SPACE)
    if not _DECIMAL.fullmatch(body):
        return round_float4(_parse_rare(text, body, "real"))
    value = _rounded_once(body)
    if math.isinf(value) or (value == 0.0 and _has_digit(body)):
        raise DataError("22003", quoting("", text, " is out of range for type real"))
    return value


def _rounded_once(decimal: str) -> float:
    """Return the float4 nearest to a decimal; infinite if it is too large."""
    wide = float(decimal)
    value = round_float4(wide)
    if value != wide and not math.isinf(wide):
        # Rounding twice goes wrong only if the float8 lies exactly half way between two float4.
        bits = struct.unpack(">Q", _F8.pack(wide))[0]
        if bits & 0x1FFFFFFF == 0x10000000:
            exact = Fraction(decimal)
            if exact != wide:
                return round_float4(math.nextafter(wide, math.inf if exact > wide else -math.inf))
    return value


@outside(LONG)
def _long_float8(text: str) -> float:
    return parse_float8(text, here=True)


@outside(LONG)
def _long_float4(text: str) -> float:
    return parse_float4(text, here=True)


def _has_digit(body: str) -> bool:
    """Whether the mantissa is not zero, so that a result of zero means underflow."""
    return any(c in "123456789" for c in re.split("[eE]", body)[0])


def _parse_rare(text: str, body: str, type_name: str) -> float:
    special = _SPECIAL.get(body.lower()) if len(body) <= _LONGEST else None
    if special is not None:
        return special
    if _HEX.fullmatch(body):
        try:
            return float.fromhex(body)
        except OverflowError:
            raise DataError("22003", quoting("", text, f" is out of range for type {type_name}")) from None
    raise invalid_syntax(type_name, text)


def show_float8(value: float) -> str:
    """Print the shortest decimal that identifies the float8 (extra_float_digits above 0)."""
    text = repr(value)
    if text[-2:] == ".0":
        if 1e15 > value > -1e15:
            return text[:-2]
    elif 1e15 > value > -1e15:
        return text
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "Infinity" if value > 0 else "-Infinity"
    if abs(value) < 1e40:
        text = _avoid_border(value, text, 17, math.nextafter)
    return _exponential(text)


def _avoid_border(value: float, text: str, digits: int, neighbour: Callable[[float, float], float]) -> str:
    """Return ``text`` unless it is exactly half way to a neighbour; then the shortest that is not."""
    exact = Fraction(value)
    low, high = neighbour(value, -math.inf), neighbour(value, math.inf)
    # beyond the largest value the gap goes on as it was below
    below = exact - ((exact - Fraction(low)) if not math.isinf(low) else (Fraction(high) - exact)) / 2
    above = exact + ((Fraction(high) - exact) if not math.isinf(high) else (exact - Fraction(low))) / 2
    if below < Fraction(text) < above:
        return text
    for precision in range(1, digits + 1):
        text = f"{value:.{precision - 1}e}"
        if below < Fraction(text) < above:
            break
    return text


def _exponential(text: str) -> str:
    """Rewrite a decimal of large magnitude as ``d.ddde+XX``."""
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    power = int(exponent or 0) + len(whole) - 1
    stripped = digits.lstrip("0")
    power -= len(digits) - len(stripped)
    digits = stripped.rstrip("0") or "0"
    point = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _next_float4(value: float, towards: float) -> float:
    bits = struct.unpack(">i", _F4.pack(value))[0]
    if value == 0.0:
        return math.copysign(2.0**-149, towards)
    step = 1 if (value > 0) == (towards > value) else -1
    return float(_F4.unpack(struct.pack(">i", bits + step))[0])


def show_float4(value: float) -> str:
    """Print the shortest decimal that identifies the float4 (extra_float_digits above 0)."""
    if -1e6 < value < 1e6 and value and value == (whole := int(value)):
        return str(whole)
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0.0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    magnitude = abs(value)
    text = ""
    for precision in range(1, 10):
        text = f"{value:.{precision - 1}e}"
        if _rounded_once(text) == value:
            break
    if math.frexp(value)[0] in (0.5, -0.5) or magnitude > 2**23:
        text = _shorter_at_power_of_two(value, _avoid_border(value, text, 9, _next_float4))
    if -4 <= int(text.partition("e")[2]) < 6:
        return _plain(text)
    return _exponential(text)


def _shorter_at_power_of_two(value: float, text: str) -> str:
    """At a power of two the gap above is wider than below: look for a shorter decimal there."""
    mantissa, _, exponent = text.partition("e")
    digits = mantissa.lstrip("-").replace(".", "")
    if len(digits) < 2:
        return text
    scale = Fraction(10) ** (int(exponent) - (len(digits) - 2))
    sign = -1 if value < 0 else 1
    exact = Fraction(value)
    following = _next_float4(value, sign * math.inf)
    if math.isinf(following):
        return text
    above = (Fraction(following) + exact) / 2
    candidate = (int(digits[:-1]) + 1) * scale * sign
    if (exact < candidate < above) or (exact > candidate > above):
        return f"{'-' if sign < 0 else ''}{float(abs(candidate)):.{len(digits) - 2}e}"
    return text


def _plain(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    digits = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
    power = int(exponent)
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if len(digits) <= power + 1:
        return sign + digits + "0" * (power + 1 - len(digits))
    return f"{sign}{digits[: power + 1]}.{digits[power + 1 :]}"


def show_digits(value: float, digits: int) -> str:
    """Print with ``digits`` significant digits as C's %g does (extra_float_digits of 0 or less)."""
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{max(digits, 1)}g}"


def float8_printer(extra_float_digits: int) -> Callable[[float], str]:
    """Return the function that prints a float8 under a setting."""
    if extra_float_digits > 0:
        return show_float8
    return lambda value: show_digits(value, 15 + extra_float_digits)


def recv_float8(data: bytes) -> float:
    """Read eight bytes, IEEE 754 big-endian."""
    if len(data) != 8:
        raise DataError(*wrong_length(data, 8))
    return float(_F8.unpack(data)[0])


def recv_float4(data: bytes) -> float:
    """Read four bytes, IEEE 754 big-endian."""
    if len(data) != 4:
        raise DataError(*wrong_length(data, 4))
    return float(_F4.unpack(data)[0])


send_float8: Callable[[float], bytes] = _F8.pack
send_float4: Callable[[float], bytes] = _F4.pack
