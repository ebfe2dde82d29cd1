"""Values of settings: text in, canonical text out, as SHOW prints it; errors are PostgreSQL's (22023)."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from engine.base.settings import lists
from engine.base.settings.defs import SettingDef
from engine.base.settings.numbers import real_number, whole_number
from pgwire.codecs.invalid import quoting
from pgwire.codecs.text.encodings import canonical, convertible
from pgwire.codecs.time.zone import find_zone, names
from planner.base.errors import SqlError, not_supported
from planner.base.quoting import quote_ident
from planner.catalog import TextSearchDef
from planner.facts import REGCONFIG
from planner.parse.long_names import cut
from planner.textsearch.names import find_named

_END_OF_OFFSETS_S = 168 * 3600  # time zones may be a week from UTC, less an hour

LONGEST: Final = 1 << 16
"""Characters of a value that is read; one that is kept as it is may be as long as it likes."""

_ON_OFF: Final = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
"""What settings that take on and off among others take for them."""


def invalid(name: str, value: str, hint: str | None = None, detail: str | None = None) -> SqlError:
    """Return 22023 as PostgreSQL words it."""
    return SqlError(
        "22023", quoting(f'invalid value for parameter "{name}": ', value), hint=hint, detail=detail
    )


def _boolean(spelled: str, value: str) -> str:
    """Return on or off for what begins one of PostgreSQL's words and no other. Raises SqlError 22023."""
    folded = value.lower() if len(value) <= LONGEST else ""
    if folded:
        if any(word.startswith(folded) for word in ("true", "yes")) or folded in ("on", "1"):
            return "on"
        if any(word.startswith(folded) for word in ("false", "no")) or folded in ("of", "off", "0"):
            return "off"
    raise SqlError("22023", f'parameter "{spelled}" requires a Boolean value')


def _choice(setting: SettingDef, spelled: str, value: str) -> str:
    """Return which of its values an enum setting is to have. Raises SqlError 22023."""
    folded = found = value.lower() if len(value) <= LONGEST else ""
    if "on" in setting.choices and "off" in setting.choices:
        found = _ON_OFF.get(folded, folded)
    if setting.name.endswith("_min_messages") and folded == "debug":
        found = "debug2"
    elif setting.name == "client_min_messages" and folded == "info":
        return folded
    elif setting.name == "wal_compression" and found == "on":
        found = "pglz"
    if found in setting.choices:
        return found
    raise invalid(spelled, value, f"Available values: {', '.join(setting.choices)}.")


def _offset_east(text: str) -> int | None:
    """Return the seconds east of UTC that ``-3.5`` or ``INTERVAL '-03:30'`` means; None for another text.

    A text like ``+05:30`` is no number but a POSIX zone, which counts west.
    """
    interval = re.fullmatch(r"interval\s*'([-+]?)(\d{1,3})(?::(\d{2}))?(?::(\d{2}))?(?:\.\d+)?'", text, re.I)
    if interval is not None:
        sign, hours, minutes, seconds = interval.groups()
        size = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        return -size if sign == "-" else size
    if re.fullmatch(r"[-+]?0x[0-9a-f]{1,16}", text, re.I) is not None:
        return int(text, 16) * 3600
    if re.fullmatch(r"[-+]?(inf(inity)?|nan)", text, re.I) is not None:
        return _END_OF_OFFSETS_S
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
    known = names().get(value.lower())
    if known is not None:
        ZoneInfo(known)
        return known
    if value.lower() in ("local", "default"):
        return "Etc/UTC"
    offset = _offset_east(value)
    if offset is not None:
        if abs(offset) >= _END_OF_OFFSETS_S:
            raise invalid("TimeZone", value, detail="UTC timezone offset is out of range.")
        return _posix(offset)
    if value[:8].lower() == "interval":
        unit = re.search(r"\b(mon|year|day)", value, re.I)
        detail = None
        if unit is not None:
            what = "days" if unit[1].lower() == "day" else "months"
            detail = f"Cannot specify {what} in time zone interval."
        raise invalid("TimeZone", value, detail=detail)
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


_LOCALE: Final = re.compile(r"(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?|[a-z]{3,})(\.[\w-]+)?(@\w+)?|", re.ASCII)
"""What may be the name of a locale of some system; ``english`` and the like are aliases."""
_ABBREVIATIONS: Final = frozenset(("Default", "Australia", "India"))
"""PostgreSQL's sets."""
_MOST_STACK_KB: Final = 7680
"""What PostgreSQL takes where the system gives a process 8 MB of stack."""

_WORDS: Final = frozenset(("timezone", "client_encoding", "min_read_ts", "timezone_abbreviations")) | {
    f"lc_{category}" for category in ("messages", "monetary", "numeric", "time")
}
"""Settings whose values are all short."""
_READ: Final = frozenset((
    "datestyle", "default_text_search_config", "search_path", "temp_tablespaces", "default_tablespace",
    "default_table_access_method", "wal_consistency_checking", "backtrace_functions", "plpgsql.extra_errors",
    "plpgsql.extra_warnings",
))  # fmt: skip
"""Those of names, and of lists of names."""

_ONLY_DEFAULT: Final = {
    "plpgsql.print_strict_params": "off",
    "plpgsql.variable_conflict": "error",
}
"""Settings of PL/pgSQL whose other values would change what is computed; functions say them for themselves
(``#variable_conflict``)."""


def _text(setting: SettingDef, value: str, current: str, default: str, find: FindConfiguration) -> str:
    """Return the canonical text of a setting that is neither a number nor one of a few words. Raises SqlError
    22023 and others.
    """
    name = setting.name.lower()
    if len(value) > LONGEST:
        if name in _WORDS:
            raise invalid(setting.name, value)
        if name in _READ:
            raise not_supported(f"a value of {setting.name} of more than {LONGEST} characters")
    match name:
        case "datestyle":
            return lists.date_style(value, current, default)
        case "timezone":
            return _time_zone(value)
        case "client_encoding":
            return _encoding(value)
        case "default_text_search_config":
            return _text_search(value, find)
        case "search_path":
            return lists.search_path(value)
        case "temp_tablespaces":
            return lists.tablespaces(value)
        case "default_tablespace":
            return lists.tablespace(value)
        case "default_table_access_method":
            return lists.access_method(value)
        case "wal_consistency_checking":
            return lists.resource_managers(value)
        case "backtrace_functions":
            return lists.functions_of_c(value)
        case "plpgsql.extra_errors" | "plpgsql.extra_warnings":
            return lists.extra_checks(setting.name, value)
        case "min_read_ts":
            if not re.fullmatch(r"\d{1,19}", value.strip()) or int(value) >= 2**63:
                raise invalid(
                    setting.name, value, "It is a hybrid timestamp, as SHOW holdfast.commit_ts prints it."
                )
            return value.strip()
        case "lc_messages" | "lc_monetary" | "lc_numeric" | "lc_time":
            if _LOCALE.fullmatch(value) is None:
                raise invalid(setting.name, value)
        case "timezone_abbreviations":
            if not value:
                raise SqlError("22023", 'could not read time zone file "": Is a directory')
            if value not in _ABBREVIATIONS:
                raise invalid(setting.name, value)
        case "application_name":
            return "".join([ch if " " <= ch <= "~" else "?" * len(ch.encode()) for ch in cut(value)])
    return value


def normalise(
    setting: SettingDef,
    value: str,
    current: str,
    find: FindConfiguration = own_configuration,
    *,
    default: str = "",
    spelled: str = "",
) -> str:
    """Return the canonical text of ``value``; 22023 with PostgreSQL's wording when it is not valid.

    ``current`` is what holds, ``default`` what RESET returns to (else the built-in value), ``spelled`` how
    whoever sets it writes the name.
    """
    spelled = spelled or setting.name
    if len(value) > LONGEST and setting.kind in ("integer", "real"):
        raise invalid(spelled, value)
    match setting.kind:
        case "bool":
            canonical = _boolean(spelled, value)
        case "enum":
            canonical = _choice(setting, spelled, value)
        case "integer":
            canonical = whole_number(setting, spelled, value)
            if setting.name == "max_stack_depth" and int(canonical) > _MOST_STACK_KB:
                raise SqlError(
                    "22023", f'invalid value for parameter "{spelled}": {canonical}',
                    detail=f'"max_stack_depth" must not exceed {_MOST_STACK_KB}kB.',
                    hint="Increase the platform's stack depth limit via \"ulimit -s\" or local equivalent.",
                )  # fmt: skip
        case "real":
            canonical = real_number(setting, spelled, value)
        case _:
            canonical = _text(setting, value, current, default or setting.default, find)
    if canonical != _ONLY_DEFAULT.get(setting.name, canonical):
        raise not_supported(f"{setting.name} = {value}")
    return canonical
