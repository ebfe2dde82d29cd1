"""Enums: comparison by rank, and the functions that name the labels of a type (manual 9.10)."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import Any, Final

from pgwire.give_way import paced
from planner.base.errors import SqlError
from planner.catalog import TypeDef
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.hash import hash_uint32, signed

Types = tuple[int, ...]


def _enum(session: EvalSession, types: Types) -> TypeDef:
    """Return the enum that is the first argument's type."""
    made = session.catalog.type_by_oid(types[0])
    if made is None:
        raise SqlError("42704", f"type with OID {types[0]} does not exist")
    return made


_rank: Final = attrgetter("rank")


def _between(
    session: EvalSession, types: Types, low: int | None = None, high: int | None = None
) -> tuple[int, ...]:
    """Return the ranks of its labels from ``low`` to ``high``, in order. Raises DataError 55P04 where one was
    added by the running transaction.
    """
    labels = _enum(session, types).labels
    start = 0 if low is None else bisect_left(labels, low, key=_rank)
    stop = len(labels) if high is None else bisect_right(labels, high, key=_rank)
    return _usable(session, types, [label.rank for label in paced(labels[start:stop])])


def _usable(session: EvalSession, types: Types, ranks: list[int]) -> tuple[int, ...]:
    known = session.codec_settings.types
    labels = None if known is None else known.enums.get(types[0])
    if labels is not None and labels.unsafe:
        for rank in paced(ranks):
            labels.check(labels.label_of(rank) or "")
    return tuple(ranks)


def _end(index: int) -> Any:
    def end(session: EvalSession, _value: int | None, *, types: Types) -> int:
        made = _enum(session, types)
        if not made.labels:
            raise SqlError("55000", f"enum {made.name} contains no values")
        return _usable(session, types, [made.labels[index].rank])[0]

    return end


def enum_range(session: EvalSession, low: int | None, high: int | None, *, types: Types) -> tuple[int, ...]:
    """Return the values from ``low`` to ``high``, NULL for no bound."""
    return _between(session, types, low, high)


def enum_range_all(session: EvalSession, _value: int | None, *, types: Types) -> tuple[int, ...]:
    """Return all values of the type."""
    return _between(session, types)


def _label_oid(session: EvalSession, types: Types, rank: int) -> int:
    """Return what a value is hashed by: the oid of its label."""
    labels = _enum(session, types).labels
    return labels[bisect_left(labels, rank, key=_rank)].oid


def hash_enum(session: EvalSession, value: int, *, types: Types) -> int:
    """SQL's ``hashenum``."""
    return signed(hash_uint32(_label_oid(session, types, value))[1], 32)


def hash_enum_extended(session: EvalSession, value: int, seed: int, *, types: Types) -> int:
    """SQL's ``hashenumextended``."""
    high, low = hash_uint32(_label_oid(session, types, value), seed & (1 << 64) - 1)
    return signed(high << 32 | low, 64)


def _register() -> None:
    python, pair = REGISTRY.python, "(anyenum,anyenum)"
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        python(f"enum_{name}{pair}", getattr(operator, name))
    python(f"enum_cmp{pair}", lambda a, b: (a > b) - (a < b))
    python(f"enum_larger{pair}", max)
    python(f"enum_smaller{pair}", min)
    options: dict[str, Any] = {"needs_session": True, "needs_types": True}
    python("hashenum(anyenum)", hash_enum, **options)
    python("hashenumextended(anyenum,int8)", hash_enum_extended, **options)
    python("enum_first(anyenum)", _end(0), **options)
    python("enum_last(anyenum)", _end(-1), **options)
    python(f"enum_range{pair}", enum_range, **options)
    python("enum_range(anyenum)", enum_range_all, **options)


_register()
