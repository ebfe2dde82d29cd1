"""Polymorphic arguments: anyelement, anyarray, anycompatible and their kin (manual 38.2.5).

A call matches when one concrete type fits every polymorphic position:

    array_append(anycompatiblearray, anycompatible)  with  integer[], numeric
        anycompatible = the common type of integer and numeric = numeric
        so the arguments become numeric[], numeric and the result is numeric[]

``consistent`` only asks (for choosing among candidates); ``enforce`` answers with the concrete types or
raises 42804 in PostgreSQL's words. Both are pure functions of type oids; unknown literals (oid 705) fit
anywhere and take the type the others decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import SqlError
from planner.facts import (
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYCOMPATIBLENONARRAY,
    ANYCOMPATIBLERANGE,
    ANYELEMENT,
    ANYENUM,
    ANYNONARRAY,
    ANYRANGE,
    TEXT,
    UNKNOWN,
    facts,
)
from planner.typefacts import array_of, element_of, format_type, range_subtype

ANYMULTIRANGE, ANYCOMPATIBLEMULTIRANGE = 4537, 4538

_SIMPLE = frozenset((ANYELEMENT, ANYNONARRAY, ANYENUM))
_COMPATIBLE = frozenset(
    (
        ANYCOMPATIBLE,
        ANYCOMPATIBLENONARRAY,
        ANYCOMPATIBLEARRAY,
        ANYCOMPATIBLERANGE,
        ANYCOMPATIBLEMULTIRANGE,
    )
)
POLYMORPHIC = _SIMPLE | _COMPATIBLE | {ANYARRAY, ANYRANGE, ANYMULTIRANGE}


def consistent(actual: Sequence[int], declared: Sequence[int]) -> bool:
    """Tell whether ``actual`` argument types fit the polymorphic ones among ``declared``."""
    try:
        _solve(actual, declared, probing=True)
    except SqlError:
        return False
    return True


def enforce(actual: Sequence[int], declared: Sequence[int], result: int) -> tuple[tuple[int, ...], int]:
    """Return (types to coerce the arguments to, concrete result type).

    Positions that already have a concrete type of the anyelement family keep the declared pseudo-type's
    actual type. Raises SqlError 42804 when the arguments do not agree, 42704 when an array type is missing.
    """
    if not any(t in POLYMORPHIC for t in declared) and result not in POLYMORPHIC:
        return tuple(declared), result
    element, array, compatible, range_type = _solve(actual, declared, probing=False)
    types: list[int] = []
    for have, want in zip(actual, declared, strict=True):
        if want in _SIMPLE:
            types.append(element if have == UNKNOWN else have)
        elif want == ANYARRAY:
            types.append((array or _array_of(element)) if have == UNKNOWN else have)
        elif want in (ANYRANGE, ANYMULTIRANGE):
            types.append(range_type if have == UNKNOWN else have)
        elif want in (ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY):
            types.append(compatible)
        elif want == ANYCOMPATIBLEARRAY:
            types.append(_array_of(compatible))
        elif want in _COMPATIBLE:
            types.append(have)
        else:
            types.append(want)
    return tuple(types), _result(result, element, array, compatible, range_type)


def _result(result: int, element: int, array: int, compatible: int, range_type: int) -> int:
    if result in _SIMPLE:
        return element
    if result == ANYARRAY:
        return array or _array_of(element)
    if result in (ANYRANGE, ANYMULTIRANGE):
        return range_type
    if result in (ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY):
        return compatible
    if result == ANYCOMPATIBLEARRAY:
        return _array_of(compatible)
    return result


def _array_of(oid: int) -> int:
    array = array_of(oid)
    if not array:
        raise SqlError("42704", f"could not find array type for data type {format_type(oid)}")
    return array


def _alike(current: int, actual: int, family: str) -> int:
    if current and current != actual:
        raise SqlError(
            "42804",
            f'arguments declared "{family}" are not all alike',
            detail=f"{format_type(current)} versus {format_type(actual)}",
        )
    return actual


def _solve(actual: Sequence[int], declared: Sequence[int], *, probing: bool) -> tuple[int, int, int, int]:
    """Find (anyelement, anyarray, anycompatible, anyrange) types; 0 where nothing decides them."""
    element = array = range_type = 0
    simple_seen = unknown_seen = False
    common: list[int] = []
    for have, want in zip(actual, declared, strict=True):
        if want not in POLYMORPHIC:
            continue
        if want not in _COMPATIBLE:
            simple_seen = True
        if have == UNKNOWN:
            unknown_seen = True
            continue
        if want in _SIMPLE:
            element = _alike(element, have, "anyelement")
        elif want == ANYARRAY:
            array = _alike(array, have, "anyarray")
        elif want == ANYRANGE:
            range_type = _alike(range_type, have, "anyrange")
        elif want == ANYCOMPATIBLEARRAY:
            part = element_of(have)
            if not part:
                raise SqlError(
                    "42804",
                    f"argument declared anycompatiblearray is not an array but type {format_type(have)}",
                )
            common.append(part)
        elif want == ANYCOMPATIBLERANGE:
            subtype = range_subtype(have)
            if not subtype:
                raise SqlError(
                    "42804",
                    f"argument declared anycompatiblerange is not a range type but type {format_type(have)}",
                )
            common.append(subtype)
        elif want in (ANYMULTIRANGE, ANYCOMPATIBLEMULTIRANGE):
            raise SqlError(
                "42804",
                f"argument declared anymultirange is not a multirange type but type {format_type(have)}",
            )
        else:
            common.append(have)
    element = _element(element, array, range_type)
    if not element and simple_seen and not probing:
        raise SqlError("42804", "could not determine polymorphic type because input has type unknown")
    if element:
        if ANYNONARRAY in declared and element_of(element):
            raise SqlError("42804", f"type matched to anynonarray is an array type: {format_type(element)}")
        fact = facts().types.get(element)
        if ANYENUM in declared and (fact is None or fact.kind != "e"):
            raise SqlError("42804", f"type matched to anyenum is not an enum type: {format_type(element)}")
    compatible = 0
    if any(t in _COMPATIBLE for t in declared):
        compatible = _common_of(common) if common else (0 if probing and not unknown_seen else TEXT)
        if ANYCOMPATIBLENONARRAY in declared and element_of(compatible):
            raise SqlError(
                "42804",
                f"type matched to anycompatiblenonarray is an array type: {format_type(compatible)}",
            )
    return element, array, compatible, range_type


def _element(element: int, array: int, range_type: int) -> int:
    if array:
        part = element_of(array)
        if not part:
            raise SqlError(
                "42804", f"argument declared anyarray is not an array but type {format_type(array)}"
            )
        if element and element != part:
            raise SqlError(
                "42804",
                "argument declared anyarray is not consistent with argument declared anyelement",
                detail=f"{format_type(array)} versus {format_type(element)}",
            )
        element = part
    if range_type:
        part = range_subtype(range_type)
        if not part:
            raise SqlError(
                "42804", f"argument declared anyrange is not a range type but type {format_type(range_type)}"
            )
        if element and element != part:
            raise SqlError(
                "42804",
                "argument declared anyrange is not consistent with argument declared anyelement",
                detail=f"{format_type(range_type)} versus {format_type(element)}",
            )
        element = part
    return element


def _common_of(types: Sequence[int]) -> int:
    # imported here: casts needs this module for can_coerce
    from planner.casts import CastContext, can_coerce, common_type

    oid = common_type(tuple(types))
    if not oid:
        raise SqlError(
            "42804",
            f"argument types {format_type(types[0])} and "
            f"{format_type(next((t for t in types if t != types[0]), types[0]))} cannot be matched",
        )
    for have in types:
        if not can_coerce(have, oid, CastContext.IMPLICIT):
            raise SqlError(
                "42804", f"argument types {format_type(have)} and {format_type(oid)} cannot be matched"
            )
    return oid
