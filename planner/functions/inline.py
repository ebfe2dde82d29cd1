"""Operators that generated code spells out instead of calling.

A template sees operands that are not NULL as ``{0}``, ``{1}`` and a free local name as ``{t}``. Each does the same
as the registered Python form of that function; a test compares them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from planner.base.errors import SqlError
from planner.base.large import concatenated
from planner.facts import facts

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

# Families whose values Python compares as PostgreSQL does (bytewise strings: code points order like UTF-8).
_SAME = {
    "int2": ("int2", "int2"), "int4": ("int4", "int4"), "int8": ("int8", "int8"),
    "int24": ("int2", "int4"), "int42": ("int4", "int2"), "int28": ("int2", "int8"),
    "int82": ("int8", "int2"), "int48": ("int4", "int8"), "int84": ("int8", "int4"),
    "oid": ("oid", "oid"), "bool": ("bool", "bool"), "char": ("char", "char"), "name": ("name", "name"),
    "text_": ("text", "text"), "bytea": ("bytea", "bytea"), "date_": ("date", "date"),
    "time_": ("time", "time"), "timestamp_": ("timestamp", "timestamp"),
    "timestamptz_": ("timestamptz", "timestamptz"), "uuid_": ("uuid", "uuid"),
}  # fmt: skip

_RANGES = {
    2: ("-32768", "32767", "smallint"),
    4: ("-2147483648", "2147483647", "integer"),
    8: ("-9223372036854775808", "9223372036854775807", "bigint"),
}


def smallint_out_of_range() -> NoReturn:
    """Raise 22003."""
    raise SqlError("22003", "smallint out of range")


def integer_out_of_range() -> NoReturn:
    """Raise 22003."""
    raise SqlError("22003", "integer out of range")


def bigint_out_of_range() -> NoReturn:
    """Raise 22003."""
    raise SqlError("22003", "bigint out of range")


# Names that every generated namespace holds.
HELPERS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (smallint_out_of_range, integer_out_of_range, bigint_out_of_range, concatenated)
}


@functools.cache
def inline_templates() -> Mapping[int, str]:
    """Return the templates by pg_proc oid. All are of strict functions."""
    by_signature = facts().proc_by_signature
    out: dict[int, str] = {}
    for prefix, (left, right) in _SAME.items():
        for suffix, operator in _COMPARE.items():
            name = f"{prefix}{suffix}"
            if prefix == "text_" and suffix in ("eq", "ne"):
                name = f"text{suffix}"
            oid = by_signature.get(f"{name}({left},{right})")
            if oid is not None:
                out[oid] = f"{{0}} {operator} {{1}}"
    for suffix, operator in _COMPARE.items():
        for left, right in (("name", "text"), ("text", "name")):
            oid = by_signature.get(f"{left}{suffix}{right}({left},{right})")
            if oid is not None:
                out[oid] = f"{{0}} {operator} {{1}}"
    widths = {"int2": 2, "int4": 4, "int8": 8}
    for left, a in widths.items():
        for right, b in widths.items():
            stem = left if a == b else f"int{a}{b}"
            low, high, label = _RANGES[max(a, b)]
            for suffix, operator in (("pl", "+"), ("mi", "-"), ("mul", "*")):
                oid = by_signature.get(f"{stem}{suffix}({left},{right})")
                if oid is not None:
                    out[oid] = (
                        f"{{t}} if {low} <= ({{t}} := {{0}} {operator} {{1}}) <= {high}"
                        f" else {label}_out_of_range()"
                    )
    out[by_signature["textcat(text,text)"]] = "concatenated({0}, {1})"
    return out


@functools.cache
def _spelt(template: str) -> frozenset[int]:
    procs = facts().procs
    return frozenset(oid for oid, t in inline_templates().items() if t == template and oid in procs)


def simple_equality(proc: int) -> bool:
    """Tell whether ``proc`` is an equality that Python's ``==`` and ``hash`` agree with."""
    return proc in _spelt("{0} == {1}")


def simple_inequality(proc: int) -> bool:
    """Tell whether ``proc`` is the negation of such an equality."""
    return proc in _spelt("{0} != {1}")
