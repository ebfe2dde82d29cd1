"""Settings that are lists of names: how they are split, and which names there are.

    search_path            a, "B c"        names of schemas, which need not exist
    DateStyle              ISO, DMY        key words, each of which may come in quotes
    temp_tablespaces       pg_default      tablespaces, which must exist
    plpgsql.extra_errors   too_many_rows   key words, or all or none alone

A name ends at a comma or a blank unless it is in double quotes; without them it folds to lower case. After its
blanks comes a comma or the end: ``a b`` is malformed, 22023.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgwire.give_way import paced_iter
from planner.base.errors import SqlError, not_supported
from planner.parse.long_names import cut

_BLANKS: Final = " \t\n\r\f\v"
_ENDS: Final = frozenset(_BLANKS + ",")

TABLESPACES: Final = ("pg_default", "pg_global")

EXTRA_CHECKS: Final = ("shadowed_variables", "too_many_rows", "strict_multi_assignment")

_RESOURCE_MANAGERS: Final = frozenset((
    "heap2", "heap", "btree", "hash", "gin", "gist", "sequence", "spgist", "brin", "generic", "logicalmsg", "all",
))  # fmt: skip
"""Those of PostgreSQL's log whose pages can be compared."""


class MalformedList(Exception):
    """A list that does not split into names."""


def split_identifiers(text: str) -> Iterator[str]:
    """Yield the names of a comma-separated list; unquoted ones fold to lower case, long ones are cut. Gives way.

    Raises MalformedList.
    """
    return paced_iter(_split(text))


def _skip(text: str, position: int, end: int) -> int:
    while position < end and text[position] in _BLANKS:
        position += 1
    return position


def _split(text: str) -> Iterator[str]:
    end = len(text)
    position = _skip(text, 0, end)
    if position >= end:
        return
    while True:
        if text[position : position + 1] == '"':
            close = position + 1
            parts = []
            while True:
                quote = text.find('"', close)
                if quote < 0:
                    raise MalformedList
                parts.append(text[close:quote])
                position = quote + 1
                if text[position : position + 1] != '"':
                    break
                parts.append('"')
                close = quote + 2
            yield cut("".join(parts))
        else:
            begin = position
            while position < end and text[position] not in _ENDS:
                position += 1
            if position == begin:
                raise MalformedList
            yield cut(text[begin:position].lower())
        position = _skip(text, position, end)
        if position >= end:
            return
        if text[position] != ",":
            raise MalformedList
        position = _skip(text, position + 1, end)


def _invalid(name: str, value: str, detail: str) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', detail=detail)


def _words(name: str, value: str) -> list[str]:
    try:
        return list(split_identifiers(value))
    except MalformedList:
        raise _invalid(name, value, "List syntax is invalid.") from None


def search_path(value: str) -> str:
    """Check that a value is a list of names. Raises SqlError 22023."""
    _words("search_path", value)
    return value


_STYLES: Final = {"ISO": "ISO", "SQL": "SQL", "GERMAN": "German"}


def date_style(value: str, current: str, default: str) -> str:
    """Return ``ISO, MDY`` or so: what a list of styles and orders makes of what holds; DEFAULT stands for ``default``.

    Raises SqlError 22023.
    """
    style, order = current.split(", ")
    styles: set[str] = set()
    orders: set[str] = set()
    for word in _words("DateStyle", value):
        upper = word.upper()
        if upper in _STYLES or upper.startswith("POSTGRES"):
            style = _STYLES.get(upper, "Postgres")
            styles.add(style)
            if style == "German" and not orders:
                order = "DMY"
        elif upper in ("MDY", "US") or upper.startswith("NONEURO"):
            order = "MDY"
            orders.add(order)
        elif upper == "DMY" or upper.startswith("EURO"):
            order = "DMY"
            orders.add(order)
        elif upper == "YMD":
            order = "YMD"
            orders.add(order)
        elif upper == "DEFAULT":
            usual, usually = default.split(", ")
            style = style if styles else usual
            order = order if orders else usually
        else:
            raise _invalid("DateStyle", value, f'Unrecognized key word: "{word}".')
    if len(styles) > 1 or len(orders) > 1:
        raise _invalid("DateStyle", value, 'Conflicting "datestyle" specifications.')
    return f"{style}, {order}"


def resource_managers(value: str) -> str:
    """Check what of PostgreSQL's log is to be compared. Raises SqlError 22023."""
    for word in _words("wal_consistency_checking", value):
        if word not in _RESOURCE_MANAGERS:
            raise _invalid("wal_consistency_checking", value, f'Unrecognized key word: "{word}".')
    return value


def tablespaces(value: str) -> str:
    """Check where temporary objects are to be. Raises SqlError 22023, 42704."""
    for word in _words("temp_tablespaces", value):
        if word and word not in TABLESPACES:
            raise SqlError("42704", f'tablespace "{word}" does not exist')
    return value


def tablespace(value: str) -> str:
    """Check where tables are to be: all are in one tablespace. Raises SqlError 22023, 0A000."""
    if value and value not in TABLESPACES:
        raise _invalid("default_tablespace", value, f'Tablespace "{value}" does not exist.')
    if value == "pg_global":
        raise not_supported("default_tablespace = pg_global")
    return value


def access_method(value: str) -> str:
    """Check which access method tables have: there is one. Raises SqlError 22023, 55000."""
    name = "default_table_access_method"
    if not value:
        raise _invalid(name, value, f"{name} cannot be empty.")
    if value in ("btree", "hash", "gin", "gist", "spgist", "brin"):
        raise SqlError("55000", f'access method "{value}" is not of type TABLE')
    if value != "heap":
        raise _invalid(name, value, f'Table access method "{value}" does not exist.')
    return value


def functions_of_c(value: str) -> str:
    """Check the names of functions whose errors are to show where they come from. Raises SqlError 22023."""
    for ch in value:
        if not (ch.isascii() and (ch.isalnum() or ch in "_, \n\t")):
            raise _invalid("backtrace_functions", value, "invalid character")
    return value


def extra_checks(name: str, value: str) -> str:
    """Check what PL/pgSQL is to warn of, or to refuse. Raises SqlError 22023."""
    if value.lower() in ("all", "none", ""):
        return value
    for word in _words(name, value):
        if word in ("none", "all"):
            raise _invalid(name, value, f'Key word "{word}" cannot be combined with other key words.')
        if word not in EXTRA_CHECKS:
            raise _invalid(name, value, f'Unrecognized key word: "{word}".')
    return value
