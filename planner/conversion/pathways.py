"""Ways from one type to another (pg_cast, and what holds for kinds of types): which there is, in which context.

    int4 -> numeric      function   proc = numeric(int4)
    text -> varchar      relabel    binary coercible
    int4[] -> text[]     array      element by element
    record -> t          row        field by field

The order of tests is PostgreSQL's. Whether a value can be converted, polymorphic types included, is in
``planner.conversion.polymorphic``; what the conversion is in a tree, in ``planner.conversion.casts``.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Literal

from planner.conversion.composite import is_composite
from planner.facts import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLENONARRAY,
    ANYELEMENT,
    ANYENUM,
    ANYMULTIRANGE,
    ANYNONARRAY,
    ANYRANGE,
    INT2VECTOR,
    OIDVECTOR,
    RECORD,
    facts,
)
from planner.types.domains import base_oid
from planner.types.facts import STRING, category, element_of, type_kind


class CastContext(enum.IntEnum):
    """How willingly a value is converted; a larger context allows all that a smaller one does."""

    IMPLICIT = 0
    ASSIGNMENT = 1
    EXPLICIT = 2


_ALLOWED_FROM = {"i": CastContext.IMPLICIT, "a": CastContext.ASSIGNMENT, "e": CastContext.EXPLICIT}


PathKind = Literal["relabel", "function", "io", "array", "row"]


@dataclass(frozen=True, slots=True)
class Pathway:
    """How a cast is done: ``proc`` is the pg_proc oid of kind "function", else 0."""

    kind: PathKind
    proc: int = 0


_RELABEL, _IO, _ARRAY, _ROW = Pathway("relabel"), Pathway("io"), Pathway("array"), Pathway("row")


@functools.lru_cache(maxsize=65536)
def find_pathway(source: int, target: int, context: CastContext) -> Pathway | None:
    """Return the way from ``source`` to ``target`` that ``context`` allows, or None."""
    source, target = base_oid(source), base_oid(target)
    if source == target:
        return _RELABEL
    if (source == RECORD and is_composite(target)) or (target == RECORD and is_composite(source)):
        return _ROW
    cast = facts().casts.get((source, target))
    if cast is not None:
        if context < _ALLOWED_FROM[cast.context]:
            return None
        if cast.method == "f":
            return Pathway("function", cast.func)
        return _RELABEL if cast.method == "b" else _IO
    if target not in (OIDVECTOR, INT2VECTOR):
        source_element, target_element = element_of(source), element_of(target)
        both = source_element and target_element
        found = find_pathway(source_element, target_element, context) if both else None
        # records are made rows of a type one by one, where each has its columns to be seen
        if found is not None and not (found is _ROW and base_oid(source_element) == RECORD):
            return _ARRAY
    if context >= CastContext.ASSIGNMENT and category(target) == STRING:
        return _IO
    if context >= CastContext.EXPLICIT and category(source) == STRING:
        return _IO
    return None


_BY_KIND = {ANYENUM: "e", ANYRANGE: "r", ANYMULTIRANGE: "m"}


def is_binary_coercible(source: int, target: int) -> bool:
    """Tell whether a ``source`` value is a ``target`` value as it stands."""
    if source == target or target in (ANY, ANYELEMENT, ANYCOMPATIBLE):
        return True
    source = base_oid(source)
    if source == target:
        return True
    if target == ANYARRAY:
        return element_of(source) != 0
    if target in (ANYNONARRAY, ANYCOMPATIBLENONARRAY):
        return element_of(source) == 0
    if target == RECORD:
        return is_composite(source)
    if target in _BY_KIND:
        return type_kind(source) == _BY_KIND[target]
    cast = facts().casts.get((source, target))
    return cast is not None and cast.method == "b" and cast.context == "i"
