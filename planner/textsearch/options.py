"""Options of text search dictionaries: ``stopwords = 'french', accept = 'false'``, kept as names and literals.

The literals are what pg_ts_dict.dictinitoption shows, as pg_dump repeats them in CREATE TEXT SEARCH DICTIONARY.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.base.errors import SqlError
from planner.base.quoting import quote_ident

_TRUTHS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def literal_of(value: str | int) -> str:
    """Return the literal of an option's value."""
    if isinstance(value, int):
        return str(value)
    prefix = "E" if "\\" in value else ""
    return prefix + "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def option_value(literal: str) -> str:
    """Return what a literal means."""
    if literal.startswith("E'"):
        return literal[2:-1].replace("''", "'").replace("\\\\", "\\")
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def shown_options(options: Sequence[tuple[str, str]]) -> str | None:
    """Return pg_ts_dict.dictinitoption."""
    return ", ".join(f"{quote_ident(name)} = {literal}" for name, literal in options) or None


def unique_options(
    options: Sequence[tuple[str, str]], known: Mapping[str, str], unknown: str
) -> dict[str, str]:
    """Return options by name. Raises SqlError 22023 for one said twice (``known``: how it is written) or
    ``unknown``.
    """
    found: dict[str, str] = {}
    for name, literal in options:
        if name not in known:
            raise SqlError("22023", "unrecognized " + unknown.format(name))
        if name in found:
            raise SqlError("22023", f"multiple {known[name]} parameters")
        found[name] = literal
    return found


def truth(name: str, literal: str) -> bool:
    """Return an option's truth value. Raises SqlError 42601."""
    value = _TRUTHS.get(option_value(literal).lower())
    if value is None:
        raise SqlError("42601", f"{name} requires a Boolean value")
    return value
