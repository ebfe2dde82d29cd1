"""Values of settings: text in, canonical text out, as SHOW prints it; errors are PostgreSQL's (22023)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from engine.connection.setting_defs import SettingDef
from pgwire.codecs.encodings import canonical, convertible
from pgwire.codecs.zone import find_zone
from planner.builtins.reg import quote_ident
from planner.catalog import TextSearchDef
from planner.errors import SqlError, not_supported
from planner.facts import REGCONFIG
from planner.long_names import cut
from planner.textsearch.names import find_named

_END_OF_OFFSETS_S = 168 * 3600  # time zones may be a week from UTC, less an hour

_BOOLS = {"on": "on", "true": "on", "yes": "on", "1": "on", "off": "off", "false": "off", "no": "off",
          "0": "off", "t": "on", "f": "off", "y": "on", "n": "off", "tr": "on", "tru": "on", "ye": "on",
          "fa": "off", "fal": "off", "fals": "off", "of": "off"}  # fmt: skip

_MEMORY = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_TIME = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def invalid(name: str, value: str, hint: str | None = None, detail: str | None = None) -> SqlError:
    """Return 22023 as PostgreSQL words it."""
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint, detail=detail)


def _number_with_unit(setting: SettingDef, text: str) -> Decimal:
    """Parse a number with an optional unit into the setting's base unit."""
    match = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None:
        raise invalid(setting.name, text)
    try:
        number = Decimal(match.group(1))
    except InvalidOperation:
        raise invalid(setting.name, text) from None
    unit = match.group(2)
    if not unit:
        return number
    base = re.fullmatch(r"(\d*)(\w+)", setting.unit) if setting.unit else None
    table = _MEMORY if base and base.group(2) in _MEMORY else _TIME if base else {}
    if base is None or unit not in table:
        units = '"B", "kB", "MB", "GB", and "TB"' if table is _MEMORY else (
            '"us", "ms", "s", "min", "h", and "d"')  # fmt: skip
        hint = f"Valid units for this parameter are {units}." if base else None
        raise invalid(setting.name, text, hint)
    factor = Decimal(int(base.group(1) or 1) * table[base.group(2)])
    return number * table[unit] / factor


def show_with_unit(setting: SettingDef, value: Decimal) -> str:
    """Print a number in the largest unit of which it is a multiple, as SHOW does; if there is none, in the smallest."""
    base = re.fullmatch(r"(\d*)(\w+)", setting.unit)
    if base is None or value <= 0:
        return str(value)
    table = _MEMORY if base.group(2) in _MEMORY else _TIME
    total = value * int(base.group(1) or 1) * table[base.group(2)]
    unit = ""
    for unit, size in sorted(table.items(), key=lambda item: -item[1]):
        if total % size == 0:
            return f"{total // size:f}{unit}"
    return f"{float(total):g}{unit}"


def _range_error(setting: SettingDef, shown: str) -> SqlError:
    unit = f" {setting.unit}" if setting.unit else ""
    return SqlError(
        "22023",
        f'{shown}{unit} is outside the valid range for parameter "{setting.name}" '
        f"({setting.minimum} .. {setting.maximum})",
    )


def _date_style(value: str, current: str) -> str:
    style, order = current.split(", ")
    for word in value.replace(",", " ").split():
        upper = word.upper()
        if upper in ("ISO", "SQL", "POSTGRES", "GERMAN"):
            style = {"POSTGRES": "Postgres", "GERMAN": "German"}.get(upper, upper)
            if upper == "GERMAN":
                order = "DMY"
        elif upper in ("MDY", "US", "NONEURO", "NONEUROPEAN"):
            order = "MDY"
        elif upper in ("DMY", "EURO", "EUROPEAN"):
            order = "DMY"
        elif upper == "YMD":
            order = "YMD"
        elif upper == "DEFAULT":
            style, order = "ISO", "MDY"
        else:
            raise SqlError(
                "22023", f'invalid value for parameter "DateStyle": "{value}"',
                detail=f'Unrecognized key word: "{word.lower()}".',
            )  # fmt: skip
    return f"{style}, {order}"


@cache
def _zone_names() -> Mapping[str, str]:
    from zoneinfo import available_timezones

    return {name.lower(): name for name in available_timezones()}


def _offset_east(text: str) -> int | None:
    """Return the seconds east of UTC that ``-3.5`` or ``INTERVAL '-03:30'`` means; None for another text.

    A text like ``+05:30`` is no number but a POSIX zone, which counts west.
    """
    interval = re.fullmatch(
        r"interval\s*'?([-+]?)(\d{1,3})(?::(\d{2}))?(?::(\d{2}))?(?:\.\d+)?'?", text, re.I
    )
    if interval is not None:
        sign, hours, minutes, seconds = interval.groups()
        size = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        return -size if sign == "-" else size
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?", text, re.I) is None:
        return None
    return int(min(max(Decimal(text) * 3600, Decimal(-_END_OF_OFFSETS_S)), Decimal(_END_OF_OFFSETS_S)))


def _posix(east_s: int) -> str:
    """Return the POSIX specification that PostgreSQL shows for a constant offset: ``<+05:30>-05:30``."""
    minutes, seconds = divmod(abs(east_s), 60)
    hours, minutes = divmod(minutes, 60)
    body = f"{hours:02d}"
    if minutes or seconds:
        body += f":{minutes:02d}"
    if seconds:
        body += f":{seconds:02d}"
    return f"<-{body}>+{body}" if east_s < 0 else f"<+{body}>-{body}"


_IN_2000_US: Final = 946_684_800_000_000


def _time_zone(value: str) -> str:
    text = value.strip()
    known = _zone_names().get(text.lower())
    if known is not None:
        ZoneInfo(known)
        return known
    if text.lower() in ("local", "default"):
        return "Etc/UTC"
    offset = _offset_east(text)
    if offset is not None:
        if abs(offset) >= _END_OF_OFFSETS_S:
            raise invalid("TimeZone", value, detail="UTC timezone offset is out of range.")
        return _posix(offset)
    found = find_zone(value)
    if found is not None:
        if found.offset_at(_IN_2000_US) % 60:
            raise SqlError(
                "22023",
                f'time zone "{value}" appears to use leap seconds',
                detail="PostgreSQL does not support leap seconds.",
            )
        return value.upper()
    raise invalid("TimeZone", value)


def _encoding(value: str) -> str:
    """Return the canonical name. 22023 for an unknown one, 0A000 for MULE_INTERNAL, as in PostgreSQL."""
    found = canonical(value)
    if found is None:
        raise invalid("client_encoding", value)
    if not convertible(found):
        raise SqlError(
            "0A000", f'invalid value for parameter "client_encoding": "{value}"',
            detail=f"Conversion between {found} and UTF8 is not supported.",
        )  # fmt: skip
    return found


FindConfiguration: TypeAlias = Callable[[str], TextSearchDef | None]
"""Returns the text search configuration that a name means. Raises SqlError 42602, 42601, 3F000, 0A000."""


def own_configuration(name: str) -> TextSearchDef | None:
    """Return the text search configuration of PostgreSQL's own that a name means."""
    return find_named(REGCONFIG, name, None, ("pg_catalog",), "")


def _text_search(value: str, find: FindConfiguration) -> str:
    """Return the configuration's name with its schema. 22023 for none, and what ``find`` raises."""
    found = find(value)
    if found is None:
        raise invalid("default_text_search_config", value)
    return f"{quote_ident(found.schema)}.{quote_ident(found.name)}"


_ONLY_DEFAULT: Final = {
    "plpgsql.print_strict_params": ("off", "false", "no", "0"),
    "plpgsql.variable_conflict": ("error",),
}
"""Settings of PL/pgSQL whose other values would change what is computed; functions say them for themselves (``#variable_conflict``)."""

EXTRA_CHECKS: Final = ("shadowed_variables", "too_many_rows", "strict_multi_assignment")


def _extra_checks(setting: SettingDef, value: str) -> str:
    """Check what PL/pgSQL is to warn of, or to refuse: one word, or a list of them."""
    words = [word.strip().strip('"').lower() for word in value.split(",")]
    if words in (["none"], ["all"], [""]):
        return value
    for word in words:
        if word in ("none", "all"):
            raise invalid(
                setting.name, value, detail=f'Key word "{word}" cannot be combined with other key words.'
            )
        if word not in EXTRA_CHECKS:
            raise invalid(setting.name, value, detail=f'Unrecognized key word: "{word}".')
    return value


def normalise(
    setting: SettingDef, value: str, current: str, find: FindConfiguration = own_configuration
) -> str:
    """Return the canonical text of ``value``; 22023 with PostgreSQL's wording when it is not valid."""
    name = setting.name.lower()
    if name == "datestyle":
        return _date_style(value, current)
    if name == "timezone":
        return _time_zone(value)
    if name == "client_encoding":
        return _encoding(value)
    if name == "default_text_search_config":
        return _text_search(value, find)
    if name in _ONLY_DEFAULT and value.strip().lower() not in _ONLY_DEFAULT[name]:
        raise not_supported(f"{setting.name} = {value}")
    if setting.kind == "bool":
        folded = value.strip().lower()
        if folded not in _BOOLS:
            raise SqlError("22023", f'parameter "{setting.name}" requires a Boolean value')
        return _BOOLS[folded]
    if setting.kind == "enum":
        folded = value.strip().lower()
        if folded in setting.choices:
            return folded
        extra = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
        if extra.get(folded) in setting.choices:
            return extra[folded]
        hidden = "debug" if name.endswith("min_messages") and folded == "debug" else ""
        if hidden:
            return "debug2"
        raise invalid(setting.name, value, f"Available values: {', '.join(setting.choices)}.")
    if setting.kind == "integer":
        if re.fullmatch(r"\s*0[xX][0-9a-fA-F]+\s*", value):
            value = str(min(int(value, 16), 2**63))
        number = _number_with_unit(setting, value)
        if abs(number) >= (2**31 if abs(int(setting.maximum or 0)) < 2**31 else 2**63):
            raise invalid(setting.name, value, "Value exceeds integer range.")
        whole = int(number.to_integral_value())
        if setting.minimum and not int(setting.minimum) <= whole <= int(setting.maximum):
            raise _range_error(setting, str(whole))
        return str(whole)
    if setting.kind == "real":
        real = _number_with_unit(setting, value)
        if setting.minimum and not Decimal(setting.minimum) <= real <= Decimal(setting.maximum):
            raise _range_error(setting, format(real.normalize(), "f"))
        return f"{float(real):g}"
    if name == "min_read_ts":
        if not re.fullmatch(r"\d{1,19}", value.strip()) or int(value) >= 2**63:
            raise invalid(
                setting.name, value, "It is a hybrid timestamp, as SHOW holdfast.commit_ts prints it."
            )
        return value.strip()
    if name in ("plpgsql.extra_errors", "plpgsql.extra_warnings"):
        return _extra_checks(setting, value)
    if name == "application_name":
        return "".join([ch if " " <= ch <= "~" else "?" * len(ch.encode()) for ch in cut(value)])
    return value
