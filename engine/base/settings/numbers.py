"""Numbers as values of settings: ``'1.5h'`` to base units, base units to what SHOW prints, errors in
PostgreSQL's words.

    setting               unit    text     value   SHOW
    work_mem              kB      '1.5MB'   1536   1536kB
    deadlock_timeout      ms      '1500us'     2   2ms
    backend_flush_after   8kB     '010'        8   64kB      octal, as C reads it

A number that is said in a larger unit is first rounded to a whole number of the next smaller one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.base.settings.defs import SettingDef
from planner.base.errors import SqlError

_MEMORY: Final = (("TB", 1024**4), ("GB", 1024**3), ("MB", 1024**2), ("kB", 1024), ("B", 1))
_TIME: Final = (
    ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1),
)  # fmt: skip

_SPACE: Final = " \t\n\v\f\r"
_WHOLE: Final = re.compile(rf"[{_SPACE}]*([-+]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_REAL: Final = re.compile(
    rf"[{_SPACE}]*([-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan))", re.I
)
_LONG: Final = 2**63
_MOST_DIGITS: Final = 400
"""Digits of an integer that is converted; a longer one is out of every range."""


class _Units(NamedTuple):
    table: Sequence[tuple[str, int]]
    base: int
    """What one of the setting counts, in the smallest of the table."""


def _units(setting: SettingDef) -> _Units | None:
    found = re.fullmatch(r"(\d*)(\w+)", setting.unit)
    if found is None:
        return None
    table = _MEMORY if found[2] in dict(_MEMORY) else _TIME
    return _Units(table, int(found[1] or 1) * dict(table)[found[2]])


def _invalid(spelled: str, text: str, hint: str | None = None) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{spelled}": "{text}"', hint=hint)


def _to_base(units: _Units, value: float, unit: str) -> float | None:
    """Return ``value`` of ``unit`` in what the setting counts; None for an unknown unit."""
    for at, (name, size) in enumerate(units.table):
        if name != unit:
            continue
        if at + 1 == len(units.table):
            return value * size / units.base
        smaller = units.table[at + 1][1]
        if not math.isfinite(value):
            return value
        return round(value * size / smaller) * smaller / units.base
    return None


def _with_unit(setting: SettingDef, spelled: str, text: str, value: float, rest: str) -> float:
    rest = rest.strip(_SPACE)
    if not rest:
        return value
    units = _units(setting)
    if units is None:
        raise _invalid(spelled, text)
    converted = _to_base(units, value, rest)
    if converted is None:
        names = [f'"{name}"' for name, _ in reversed(units.table)]
        hint = f"Valid units for this parameter are {', '.join(names[:-1])}, and {names[-1]}."
        raise _invalid(spelled, text, hint)
    return converted


def _real(spelled: str, text: str) -> tuple[float, str]:
    """Read the number that ``text`` begins with as C's strtod does; returns the rest, too."""
    found = _REAL.match(text)
    if found is None:
        raise _invalid(spelled, text)
    digits = found[1]
    value = float(int(digits, 16)) if "x" in digits.lower() else float(digits)
    if math.isnan(value) or (math.isinf(value) and "n" not in digits.lower()):
        raise _invalid(spelled, text)
    return value, text[found.end() :]


def _whole(spelled: str, text: str) -> tuple[float, str]:
    """Read the number that ``text`` begins with: in C's bases, as a real one where it has a fraction or is
    too large.
    """
    found = _WHOLE.match(text)
    if found is not None and text[found.end() : found.end() + 1] not in (".", "e", "E"):
        digits = found[2]
        if len(digits) <= _MOST_DIGITS:
            base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
            value = int(digits, base)
            if value < _LONG:
                return (-value if found[1] == "-" else value), text[found.end() :]
    elif found is None and not text.lstrip(_SPACE).startswith((".", "+.", "-.")):
        raise _invalid(spelled, text)
    return _real(spelled, text)


def _shown(value: float) -> str:
    """Print a real number as C's %g does."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:g}"


def _outside(setting: SettingDef, spelled: str, shown: str, ends: Sequence[str]) -> SqlError:
    unit = f" {setting.unit}" if setting.unit else ""
    return SqlError(
        "22023",
        f'{shown}{unit} is outside the valid range for parameter "{spelled}" ({ends[0]} .. {ends[1]})',
    )


def whole_number(setting: SettingDef, spelled: str, text: str) -> str:
    """Return the canonical text of an integer setting's value, in its base unit. Raises SqlError 22023.

    ``spelled`` is the setting's name as errors give it.
    """
    value, rest = _whole(spelled, text)
    value = _with_unit(setting, spelled, text, value, rest)
    limit = 2**31 if abs(int(setting.maximum or 0)) < 2**31 else _LONG
    if not -limit <= value < limit:
        raise _invalid(spelled, text, "Value exceeds integer range.")
    whole = round(value)
    if setting.minimum and not int(setting.minimum) <= whole <= int(setting.maximum):
        raise _outside(setting, spelled, str(whole), (setting.minimum, setting.maximum))
    return str(whole)


def real_number(setting: SettingDef, spelled: str, text: str) -> str:
    """Return the canonical text of a real setting's value, in its base unit. Raises SqlError 22023."""
    value, rest = _real(spelled, text)
    value = _with_unit(setting, spelled, text, value, rest)
    if setting.minimum and not float(setting.minimum) <= value <= float(setting.maximum):
        ends = [_shown(float(end)) for end in (setting.minimum, setting.maximum)]
        raise _outside(setting, spelled, _shown(value), ends)
    return f"{value:g}"


def show_with_unit(setting: SettingDef, text: str) -> str:
    """Print a canonical number in the largest unit of which it is a multiple, as SHOW does; if there is none,
    in the smallest.
    """
    units = _units(setting)
    if units is None:
        return text
    if setting.kind == "integer":
        whole = int(text)
        if whole <= 0:
            return text
        total = whole * units.base
        for name, size in units.table:
            if size <= units.base or total % size == 0:
                return f"{total // size}{name}"
    value = float(text)
    if value <= 0:
        return text
    for name, size in units.table[:-1]:
        shown = value * units.base / size
        if shown > 0 and abs(round(shown) / shown - 1) <= 1e-8:
            return f"{shown:g}{name}"
    name, size = units.table[-1]
    return f"{value * units.base / size:g}{name}"
