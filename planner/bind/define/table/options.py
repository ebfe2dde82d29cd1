"""Storage and tuning options that are accepted without effect, and how option values read (promise P4).

``STORAGE_OPTIONS`` is the closed table the docs show: options of PostgreSQL that only tune its own storage.
Their values are checked (22023 otherwise) and kept as written, for pg_class.reloptions. Whatever is not
listed is PostgreSQL's error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from planner import ast
from planner.base.errors import Span, SqlError, not_supported

TIMELINE = "timeline"  # of a table: no tuning, and the one option with an effect
_BOOLEAN = "boolean"
# name -> "boolean", (lowest, highest), or the allowed words
Rule = str | tuple[float, float] | frozenset[str]

_AUTOVACUUM: dict[str, Rule] = {
    "autovacuum_enabled": _BOOLEAN,
    "autovacuum_vacuum_threshold": (0, 2147483647),
    "autovacuum_vacuum_insert_threshold": (-1, 2147483647),
    "autovacuum_analyze_threshold": (0, 2147483647),
    "autovacuum_vacuum_cost_limit": (1, 10000),
    "autovacuum_vacuum_cost_delay": (0, 100),
    "autovacuum_vacuum_scale_factor": (0, 100),
    "autovacuum_vacuum_insert_scale_factor": (0, 100),
    "autovacuum_analyze_scale_factor": (0, 100),
    "autovacuum_freeze_min_age": (0, 1000000000),
    "autovacuum_freeze_max_age": (100000, 2000000000),
    "autovacuum_freeze_table_age": (0, 2000000000),
    "autovacuum_multixact_freeze_min_age": (0, 1000000000),
    "autovacuum_multixact_freeze_max_age": (10000, 2000000000),
    "autovacuum_multixact_freeze_table_age": (0, 2000000000),
    "log_autovacuum_min_duration": (-1, 2147483647),
    "vacuum_index_cleanup": frozenset(("auto", "on", "off", "true", "false", "yes", "no", "1", "0")),
    "vacuum_truncate": _BOOLEAN,
}

STORAGE_OPTIONS: dict[str, dict[str, Rule]] = {
    "table": {
        "fillfactor": (10, 100),
        "toast_tuple_target": (128, 8160),
        "parallel_workers": (0, 1024),
        "user_catalog_table": _BOOLEAN,
        **_AUTOVACUUM,
    },
    "toast": {k: v for k, v in _AUTOVACUUM.items() if "analyze" not in k},
    "btree": {"fillfactor": (10, 100), "deduplicate_items": _BOOLEAN},
    "hash": {"fillfactor": (10, 100)},
    "gist": {"fillfactor": (10, 100), "buffering": frozenset(("on", "off", "auto"))},
    "spgist": {"fillfactor": (10, 100)},
    "gin": {"fastupdate": _BOOLEAN, "gin_pending_list_limit": (64, 2147483647)},
    "brin": {"pages_per_range": (1, 131072), "autosummarize": _BOOLEAN},
    "bloom": {"length": (1, 4096), **{f"col{number}": (1, 4095) for number in range(1, 33)}},
    # security_invoker has its effect (``engine.definitions.needs.privileges``)
    "view": {"security_barrier": _BOOLEAN, "security_invoker": _BOOLEAN},
}


def option_text(option: ast.Option) -> str | None:
    """Return an option's value as text, None where none was written."""
    value = option.value
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ast.NumberText):
        return value.text
    if isinstance(value, ast.TypeName):
        return ".".join(value.names)
    if isinstance(value, tuple):
        return ".".join(value)
    if isinstance(value, ast.Constant):
        return str(value.value)
    return str(value)


def boolean_option(option: ast.Option) -> bool:
    """Read an option as PostgreSQL's defGetBoolean: absent is true; 42601 for anything else."""
    text = option_text(option)
    if text is None:
        return True
    lowered = text.lower()
    if lowered in ("true", "on", "1"):
        return True
    if lowered in ("false", "off", "0"):
        return False
    raise SqlError("42601", f"{option.name} requires a Boolean value", span=None)


def _storage_boolean(text: str) -> bool:
    lowered = text.lower()
    if not lowered:
        return False
    words = ("true", "yes", "on", "1", "false", "no", "off", "0")
    return any(word.startswith(lowered) for word in words) and lowered != "o"


def is_on(options: Mapping[str, str], name: str) -> bool:
    """Tell whether a boolean option, which is kept as it was written (``T``, ``ye``, ``ON``), is set and true."""
    text = options.get(name, "").lower()
    return bool(text) and any(word.startswith(text) for word in ("true", "yes", "on", "1"))


def _timeline(option: ast.Option) -> str:
    """Return the name of the timeline that a table is to be in; whether there is one is seen when it is made."""
    text = option_text(option)
    if not text:
        raise SqlError("22023", "timeline requires the name of a timeline", span=option.span)
    return text


def full_name(option: ast.Option) -> str:
    """Return what an option is called among those of its relation: with its namespace."""
    return f"{option.namespace}.{option.name}" if option.namespace else option.name


def check_storage_options(options: Iterable[ast.Option], kind: str) -> dict[str, str]:
    """Check WITH (...) of a table, index or view; returns the values as written, for pg_class.reloptions.

    ``kind``: of STORAGE_OPTIONS, or "partitioned" for a table that has no storage of its own.

    Raises SqlError 22023: ``unrecognized parameter "x"``, a bad value, a parameter named twice.
    """
    result: dict[str, str] = {}
    for option in options:
        namespace = option.namespace
        if namespace not in ("", "toast"):
            raise SqlError("22023", f'unrecognized parameter namespace "{namespace}"')
        rules = STORAGE_OPTIONS.get("toast" if namespace else kind, {})
        if kind == "table" and option.name == "oids" and not namespace:
            if option.value is None or boolean_option(option):
                raise not_supported("tables declared WITH OIDS")
            continue
        if kind == "table" and option.name == TIMELINE and not namespace:
            if TIMELINE in result:
                raise SqlError("22023", f'parameter "{TIMELINE}" specified more than once')
            result[TIMELINE] = _timeline(option)
            continue
        if option.name not in rules:
            raise SqlError("22023", f'unrecognized parameter "{option.name}"')
        full = full_name(option)
        if full in result:
            raise SqlError("22023", f'parameter "{option.name}" specified more than once')
        text = option_text(option)
        result[full] = _checked(option.name, "true" if text is None else text, rules[option.name])
    return result


def check_number(name: str, text: str, bounds: tuple[float, float], *, real: bool) -> None:
    """Refuse what is no number, or out of bounds: 22023."""
    low, high = bounds
    try:
        number = float(text) if real else _whole(text)
    except ValueError:
        word = "floating point" if real else "integer"
        raise SqlError("22023", f'invalid value for {word} option "{name}": {text}') from None
    if not low <= number <= high:
        shown = (f"{low:.6f}", f"{high:.6f}") if real else (f"{low:.0f}", f"{high:.0f}")
        raise SqlError(
            "22023",
            f'value {text} out of bounds for option "{name}"',
            detail=f'Valid values are between "{shown[0]}" and "{shown[1]}".',
        )


_WHOLE: Final = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|0([0-7]*)|([1-9][0-9]*))\s*")


_FRACTION: Final = re.compile(r"\s*[+-]?[0-9]*[.eE]")
"""How a number begins that is read as one with a fraction."""


def _whole(text: str) -> int:
    """Read a whole number as PostgreSQL reads those of options: hexadecimal, octal, with a fraction that is
    rounded. Raises ValueError.
    """
    found = _WHOLE.fullmatch(text)
    if found is None:
        given = float(text) if _FRACTION.match(text) else math.nan
        number = round(given) if math.isfinite(given) else 1 << 31
    else:
        sign, sixteen, eight, ten = found.groups()
        number = int(sixteen, 16) if sixteen else int(eight or "0", 8) if ten is None else int(ten)
        number = -number if sign == "-" else number
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(text)
    return number


def _checked(name: str, text: str, rule: Rule) -> str:
    if isinstance(rule, tuple):
        check_number(name, text, rule, real=name.endswith(("_scale_factor", "_delay")))
    elif isinstance(rule, frozenset):
        if text.lower() not in rule:
            raise SqlError(
                "22023",
                f'invalid value for enum option "{name}": {text}',
                detail='Valid values are "on", "off", and "auto".',
            )
    elif not _storage_boolean(text):
        raise SqlError("22023", f'invalid value for boolean option "{name}": {text}')
    return text


def check_words(options: Sequence[ast.Option], command: str, known: Iterable[str]) -> dict[str, ast.Option]:
    """Return the options of EXPLAIN, VACUUM ... by name; 42601 for unknown ones, the last of equals wins."""
    allowed = set(known)
    found: dict[str, ast.Option] = {}
    for option in options:
        if option.name not in allowed:
            raise SqlError("42601", f'unrecognized {command} option "{option.name}"', span=option.span)
        found[option.name] = option
    return found


def redundant(span: Span | None) -> SqlError:
    """Return the 42601 error for an option given twice."""
    return SqlError("42601", "conflicting or redundant options", span=span)
