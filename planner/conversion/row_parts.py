"""Whose values cannot be compared though their operator is there: rows with columns that have none at any
depth, and arrays of such.

    pt (a int, p point)          record_eq(pt, pt)     two values meet p once a is equal in both: 42883, point
    nest (n int, q pt)           record_eq(nest, nest) column q, whatever is in it: 42883, pt
    pt[]                         array_eq(pt[], pt[])  42883, pt, be there elements or not

PostgreSQL asks its cache of types when it comes to a column or an element; ``can_equate``, ``can_order`` and
``can_hash`` answer as that does. Like all of a type's structure columns are known by the type's oid for the
whole process: those that it had when it was met first until a commit says otherwise, so that what a
transaction changes and takes back is nothing to others. Of most rows no column is kept: all of theirs have
operators.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from planner.conversion.order import find_equality, find_hash, find_less
from planner.types.domains import base_oid
from planner.types.facts import FIRST_USER_OID, element_of, type_kind

_parts: dict[int, tuple[int, ...]] = {}
"""Composite types: those of their columns' types that may lack an operator."""
_EQUATE, _ORDER, _HASH = 0, 1, 2
_FIND = (find_equality, find_less, find_hash)
_answers: tuple[dict[int, bool], ...] = ({}, {}, {})


def note_row(oid: int, types: Iterable[int], *, committed: bool) -> None:
    """Say of which types a composite type's columns are. ``committed``: in place of what is known."""
    if not committed and oid in _parts:
        return
    kept = tuple([one for one in types if (_built_in(one) if one < FIRST_USER_OID else _may_lack(one))])
    if _parts.get(oid, ()) != kept:
        for answers in _answers:
            answers.clear()
    _parts[oid] = kept


def forget_row(oid: int) -> None:
    """Take back what is known of a type."""
    _parts.pop(oid, None)
    for answers in _answers:
        answers.pop(oid, None)


def can_equate(oid: int) -> bool:
    """Tell whether two values of a type can be asked whether they are equal, whatever is in them."""
    return _can(_EQUATE, oid)


def can_order(oid: int) -> bool:
    """Tell whether it can be asked which of two values of a type is less, whatever is in them."""
    return _can(_ORDER, oid)


def can_hash(oid: int) -> bool:
    """Tell whether all values of a type have a hash."""
    return _can(_HASH, oid)


def _can(kind: int, oid: int) -> bool:
    known = _answers[kind].get(oid)
    if known is None:
        known = _all_can(kind, oid)
        if len(_answers[kind]) < _MOST_ANSWERS:
            _answers[kind][oid] = known
    return known


_MOST_ANSWERS = 4096


def _all_can(kind: int, oid: int) -> bool:
    left, seen = [oid], set[int]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        if _FIND[kind](one) is None:
            return False
        base = base_oid(one)
        left += _parts.get(base_oid(element_of(base) or base), ())
    return True


@functools.lru_cache(maxsize=1024)
def _built_in(oid: int) -> bool:
    """As ``_may_lack`` for a type whose answer never changes."""
    return _may_lack(oid)


def _may_lack(oid: int) -> bool:
    base = base_oid(oid)
    return type_kind(base_oid(element_of(base) or base)) == "c" or any(find(oid) is None for find in _FIND)
