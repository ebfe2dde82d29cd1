"""numeric: exact decimals; value ``Decimal`` whose exponent is minus PostgreSQL's display scale.

The binary form is a number in base 10000: how many digits, the weight of the first one (its power of 10000),
sign or special, display scale, digits. 12345.670 is

    ndigits 3 · weight 1 · sign 0 · dscale 3 · digits 0001 2345 6700
"""

from __future__ import annotations

import re
import struct
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, Overflow
from typing import Final

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax
from pgwire.give_way import outside, paced
from pgwire.long.values import LONG

# Every Decimal here fits: 131072 digits before and 16383 after the point.
CONTEXT = Context(
    prec=150_000, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999, traps=[InvalidOperation, Overflow]
)
MAX_WHOLE_DIGITS = 131072
MAX_SCALE = 16383

NAN, INFINITY, NEGATIVE_INFINITY = Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")
_SPACE = " \t\n\r\f\v"
_SYNTAX = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_SPECIAL = {
    "nan": NAN, "inf": INFINITY, "+inf": INFINITY, "-inf": NEGATIVE_INFINITY,
    "infinity": INFINITY, "+infinity": INFINITY, "-infinity": NEGATIVE_INFINITY,
}  # fmt: skip
_LONGEST = max(map(len, _SPECIAL))
_HEADER = struct.Struct(">hhHH")
_NEGATIVE, _NAN, _PINF, _NINF = 0x4000, 0xC000, 0xD000, 0xF000


def overflow() -> DataError:
    """Return the error for a number with too many digits."""
    return DataError("22003", "value overflows numeric format")


_MANY: Final = 1000
"""Groups of four digits that are put together as digits."""


def from_parts(negative: bool, unscaled: int, scale: int) -> Decimal:
    """Build ``unscaled / 10**scale`` with that display scale; zero is never negative."""
    value = Decimal(unscaled).scaleb(-scale, CONTEXT)
    return value.copy_negate() if negative and unscaled else value  # a minus would round


def parse(text: str, *, here: bool = False) -> Decimal:
    """Read a numeric (``here``: a long one, too); the scale is the number of fraction digits left after
    applying the exponent.

    Raises:
        DataError: 22P02 bad syntax, 22003 too large.
    """
    if len(text) > LONG and not here:
        return _parse_long(text)
    body = text.strip(_SPACE)
    match = _SYNTAX.fullmatch(body)
    if match is None or not (match[2] or match[3]):
        special = _SPECIAL.get(body.lower()) if len(body) <= _LONGEST else None
        if special is None:
            raise invalid_syntax("numeric", text)
        return special
    sign, whole, fraction, exponent = match.groups()
    if exponent is None:
        if len(whole) > MAX_WHOLE_DIGITS and len(whole.lstrip("0")) > MAX_WHOLE_DIGITS:
            raise overflow()
        if len(fraction or "") > MAX_SCALE:
            raise overflow()
        value = Decimal(body)
        return value if value else abs(value)
    power = int(exponent) if len(exponent) < 12 else 10**9 * (-1 if exponent[0] == "-" else 1)
    if abs(power) >= 2**30:
        raise overflow()
    digits = (whole + (fraction or "")).lstrip("0")
    scale = len(fraction or "") - power
    if scale > MAX_SCALE or (digits and len(digits) - scale > MAX_WHOLE_DIGITS):
        raise overflow()
    if not digits:
        return Decimal((0, (0,), -max(scale, 0)))
    if scale < 0:
        digits, scale = digits + "0" * -scale, 0
    value = Decimal(f"{digits}E{-scale}")
    return value.copy_negate() if sign == "-" else value


@outside(LONG)
def _parse_long(text: str) -> Decimal:
    return parse(text, here=True)


def show(value: Decimal) -> str:
    """Print all digits, never an exponent."""
    text = str(value)
    if "E" in text:
        return format(value, "f")
    return text


def round_to(value: Decimal, scale: int) -> Decimal:
    """Round half away from zero to ``scale`` digits after the point (negative: before); keeps NaN, infinities.

    The result's display scale is ``max(scale, 0)``.
    """
    if not value.is_finite():
        return value
    result = value.quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, CONTEXT)
    if scale < 0:
        result = result.quantize(Decimal(1), ROUND_DOWN, CONTEXT)
    return result if result else abs(result)


def recv(data: bytes) -> Decimal:
    """Read the base-10000 form; 22P03 for bad signs, scales or digits."""
    if len(data) < 8:
        raise DataError("08P01", "insufficient data left in message")
    count, weight, sign, scale = _HEADER.unpack_from(data)
    if sign not in (0, _NEGATIVE, _NAN, _PINF, _NINF):
        raise DataError("22P03", 'invalid sign in external "numeric" value')
    if scale & ~0x3FFF:
        raise DataError("22P03", 'invalid scale in external "numeric" value')
    if count < 0 or len(data) < 8 + 2 * count:
        raise DataError("08P01", "insufficient data left in message")
    if len(data) > 8 + 2 * count:
        raise DataError("22P03", "incorrect binary data format")
    if sign == _NAN:
        return NAN
    if sign == _PINF:
        return INFINITY
    if sign == _NINF:
        return NEGATIVE_INFINITY
    digits = struct.unpack_from(f">{count}h", data, 8)
    if any(not 0 <= digit <= 9999 for digit in digits):
        raise DataError("22P03", 'invalid digit in external "numeric" value')
    if count >= _MANY:
        return _joined(digits, weight, sign == _NEGATIVE, scale)
    unscaled = int("".join([f"{digit:04d}" for digit in digits]) or "0")
    # The digits end at power 10000**(weight - count + 1); digits past dscale are dropped.
    power = 4 * (weight - count + 1) + scale
    if power >= 0:
        unscaled *= 10**power
    else:
        unscaled //= 10**-power
    return from_parts(sign == _NEGATIVE, unscaled, scale)


def _joined(digits: tuple[int, ...], weight: int, negative: bool, scale: int) -> Decimal:
    """Return what many digits mean: as decimal digits throughout, since thousands of them take long to become
    an integer.
    """
    text = "".join([f"{digit:04d}" for digit in paced(digits, 1024)])
    value = Decimal(text).scaleb(4 * (weight - len(digits) + 1), CONTEXT)
    value = value.quantize(Decimal((0, (1,), -scale)), ROUND_DOWN, CONTEXT)
    return value.copy_negate() if negative and value else value


def send(value: Decimal) -> bytes:
    """Return the base-10000 form."""
    sign = value.is_signed()
    if not value.is_finite():
        special = _NAN if value.is_nan() else (_NINF if sign else _PINF)
        return _HEADER.pack(0, 0, special, 0 if special == _NAN else 32)
    before, _, after = show(value).lstrip("-").partition(".")
    scale = len(after)
    before = before.rjust((len(before) + 3) // 4 * 4, "0")
    after = after.ljust((len(after) + 3) // 4 * 4, "0")
    text = before + after
    groups = [int(text[i : i + 4]) for i in paced(range(0, len(text), 4), 4096)]
    weight = len(before) // 4 - 1
    start = 0
    while start < len(groups) and not groups[start]:
        start += 1
    groups, weight = groups[start:], weight - start
    while groups and not groups[-1]:
        groups.pop()
    if not groups:
        weight, sign = 0, False
    return struct.pack(f">hhHH{len(groups)}h", len(groups), weight, _NEGATIVE if sign else 0, scale, *groups)
