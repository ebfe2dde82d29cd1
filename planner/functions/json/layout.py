"""Where the parts of a jsonb lie in PostgreSQL's binary form: ids of keyvalue() are such offsets (jsonb_util.c).

container: header 4 · an entry of 4 for each element, key and member · then their data; containers and numbers
begin at a multiple of 4
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_DIGITS = 4  # of base 10000


def _aligned(at: int) -> int:
    return at + -at % 4


def _numeric_size(value: Decimal | int) -> int:
    """Return the bytes of a numeric with its header (numeric.c: short form where weight and scale are small)."""
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise AssertionError("JSON has no NaN and no infinity")
    scale = max(-exponent, 0)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole, fraction = (text[:-scale], text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.lstrip("0")
    whole = whole.rjust(len(whole) + -len(whole) % _DIGITS, "0")
    fraction = fraction.ljust(len(fraction) + -len(fraction) % _DIGITS, "0")
    groups = [(whole + fraction)[i : i + _DIGITS] for i in range(0, len(whole + fraction), _DIGITS)]
    weight = len(whole) // _DIGITS - 1
    while groups and groups[0] == "0000":
        del groups[0]
        weight -= 1
    while groups and groups[-1] == "0000":
        groups.pop()
    short = scale <= 63 and -64 <= weight <= 63
    return 4 + (2 if short else 4) + 2 * len(groups)


def _place(value: Any, at: int, wanted: Any) -> tuple[int, int | None]:
    """Return the end of a value that is written at ``at``, and where ``wanted`` lies in it."""
    if isinstance(value, (dict, list)):
        start = at = _aligned(at)
        if value is wanted:
            return at, start
        at += 4 + 4 * len(value) * (2 if isinstance(value, dict) else 1)
        if isinstance(value, dict):
            at += sum(len(key.encode()) for key in value)
        for child in value.values() if isinstance(value, dict) else value:
            at, found = _place(child, at, wanted)
            if found is not None:
                return at, found
        return at, None
    if isinstance(value, str):
        return at + len(value.encode()), None
    if value is None or isinstance(value, bool):
        return at, None
    return _aligned(at) + _numeric_size(value), None


def offset_of(base: Any, wanted: Any) -> int:
    """Return where a container lies in ``base``; 0 where it is not part of it."""
    return _place(base, 0, wanted)[1] or 0
