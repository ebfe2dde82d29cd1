"""Polymorphic arguments: anyelement, anyarray, anycompatible and their kin (manual 38.2.5).

A call matches when one concrete type fits every polymorphic position:

    array_append(anycompatiblearray, anycompatible)  with  integer[], numeric
        anycompatible = the common type of integer and numeric = numeric
        so the arguments become numeric[], numeric and the result is numeric[]

``consistent`` only asks (for choosing among candidates); ``enforce`` answers with the concrete types or
raises 42804 in PostgreSQL's words. Whether values can be converted (``can_coerce``) and which type several
have in common (``common_type``) stand here as well: each of the three asks the others, for a common type is
one that all can become, and what a polymorphic target takes follows from one. All are functions of type
oids; unknown literals (oid 705) fit anywhere and take the type the others decide.

A value may be of a polymorphic type itself: pg_stats has columns of type anyarray, and NULL can be cast to
all but anyenum. An anyarray fits alone, where nobody needs to know its elements; what is declared a range
wants a range.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.base.errors import SqlError
from planner.conversion.composite import is_row_of, note_typed
from planner.conversion.pathways import CastContext, find_pathway
from planner.facts import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYCOMPATIBLEMULTIRANGE,
    ANYCOMPATIBLENONARRAY,
    ANYCOMPATIBLERANGE,
    ANYELEMENT,
    ANYENUM,
    ANYMULTIRANGE,
    ANYNONARRAY,
    ANYRANGE,
    INTERNAL,
    TEXT,
    UNKNOWN,
    facts,
)
from planner.types.domains import base_oid, no_array_type
from planner.types.facts import (
    array_of,
    category,
    element_of,
    format_type,
    is_preferred,
    multirange_of,
    range_of,
    range_subtype,
)

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
_BY_COMMON_TYPE = frozenset((ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY, ANYCOMPATIBLEARRAY))
_RANGE_NAMES = frozenset((ANYRANGE, ANYMULTIRANGE, ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE))
_OF_STRUCTURE = frozenset((ANYARRAY, ANYCOMPATIBLEARRAY)) | _RANGE_NAMES
"""What looks into the type: under a domain."""
_LOOK_INSIDE = _SIMPLE | {ANYRANGE, ANYMULTIRANGE}
"""Results that follow from what an array holds."""
POLYMORPHIC = _SIMPLE | _COMPATIBLE | {ANYARRAY, ANYRANGE, ANYMULTIRANGE}
_TELLING = (
    (ANYELEMENT, ANYARRAY, ANYNONARRAY, ANYENUM, ANYRANGE, ANYMULTIRANGE),
    (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE),
)


def takes_unknown(declared: int) -> bool:
    """Tell whether a literal of no type stays one where a polymorphic type is declared; arrays, enums and
    ranges would have to read it.
    """
    return declared in (ANYELEMENT, ANYNONARRAY, ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY)


def needed_inputs(result: int) -> tuple[int, ...]:
    """Return the types of which a function needs an input to have a polymorphic result; () for any other type."""
    if result in _RANGE_NAMES:  # many ranges have the same element: only a range tells which one
        return (ANYRANGE, ANYMULTIRANGE) if result in _TELLING[0] else _TELLING[1][-2:]
    return next((family for family in _TELLING if result in family), ())


def consistent(actual: Sequence[int], declared: Sequence[int]) -> bool:
    """Tell whether ``actual`` argument types fit the polymorphic ones among ``declared``."""
    try:
        _solve(actual, declared, 0, probing=True)
    except SqlError:
        return False
    return True


def enforce(actual: Sequence[int], declared: Sequence[int], result: int) -> tuple[tuple[int, ...], int]:
    """Return (types to coerce the arguments to, concrete result type).

    Positions that already have a concrete type of the anyelement family keep the declared pseudo-type's
    actual type. Raises SqlError 42804 when the arguments do not agree, 42704 when an array type is missing.
    """
    if not any(t in POLYMORPHIC for t in declared):  # a result that is polymorphic stays so: range_in()
        return tuple(declared), result
    found = _solve(actual, declared, result, probing=False)
    types = [
        found.type_for(want)
        if have == UNKNOWN or want in _BY_COMMON_TYPE
        else (base_oid(have) if want in _OF_STRUCTURE else have)
        if want in POLYMORPHIC
        else want
        for have, want in zip(actual, declared, strict=True)
    ]
    return tuple(types), found.type_for(result)


@dataclass(frozen=True, slots=True)
class _Solution:
    """The types that the polymorphic names stand for; 0 where nothing decides them."""

    element: int
    array: int
    range: int
    compatible: int
    compatible_range: int

    def type_for(self, declared: int) -> int:
        """Return the type that a declared one stands for; 42704, 42804 where there is none."""
        if declared in _SIMPLE:
            return self.element
        if declared == ANYARRAY:
            return self.array or _array_of(self.element)
        if declared in (ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY):
            return self.compatible
        if declared == ANYCOMPATIBLEARRAY:
            return _array_of(self.compatible)
        if declared in _RANGE_NAMES:
            found = self.range if declared in (ANYRANGE, ANYMULTIRANGE) else self.compatible_range
            if not found:
                raise SqlError(
                    "42804",
                    f"could not determine polymorphic type {format_type(declared)} because input has type unknown",
                )
            return found if declared in (ANYRANGE, ANYCOMPATIBLERANGE) else multirange_of(found)
        return declared


def _array_of(oid: int) -> int:
    array = array_of(oid)
    if not array:
        raise no_array_type(oid)
    return array


def _alike(current: int, actual: int, family: str) -> int:
    if current and current != actual:
        raise SqlError(
            "42804",
            f'arguments declared "{family}" are not all alike',
            detail=f"{format_type(current)} versus {format_type(actual)}",
        )
    return actual


def _ranged(have: int, want: int) -> int:
    """Return the range type that an argument declared as a range or a multirange brings; 42804."""
    multi = want in (ANYMULTIRANGE, ANYCOMPATIBLEMULTIRANGE)
    found = range_of(have) if multi else have if range_subtype(have) else 0
    if not found:
        word = "multirange" if multi else "range"
        raise SqlError(
            "42804",
            f"argument declared {format_type(want)} is not a {word} type but type {format_type(have)}",
        )
    return found


def _one_range(ranges: dict[int, int], single: int, multi: int) -> int:
    """Return the range type that arguments declared ``single`` and ``multi`` agree on, 0 without any."""
    range_type, multirange = ranges.get(single, 0), ranges.get(multi, 0)
    if not multirange:
        return _ranged(range_type, single) if range_type else 0
    found = _ranged(multirange, multi)
    if range_type and range_type != found:
        raise SqlError(
            "42804",
            f"argument declared {format_type(multi)} is not consistent with argument declared {format_type(single)}",
            detail=f"{format_type(multirange)} versus {format_type(range_type)}",
        )
    return found


def _solve(actual: Sequence[int], declared: Sequence[int], result: int, *, probing: bool) -> _Solution:
    """Find what the polymorphic names stand for in a call that gives ``result``."""
    element = array = simple = 0
    ranges: dict[int, int] = {}
    unknown_seen = False
    common: list[int] = []
    for have, want in zip(actual, declared, strict=True):
        if want not in POLYMORPHIC:
            continue
        if want not in _COMPATIBLE:
            simple += 1
        if have == UNKNOWN:
            unknown_seen = True
            continue
        if want in _OF_STRUCTURE:
            have = base_oid(have)
        if want in _SIMPLE:
            element = _alike(element, have, "anyelement")
        elif want == ANYARRAY:
            array = _alike(array, have, "anyarray")
        elif want in _RANGE_NAMES:
            ranges[want] = _alike(ranges.get(want, 0), have, format_type(want))
        elif want == ANYCOMPATIBLEARRAY:
            part = element_of(have)
            if not part:
                raise SqlError(
                    "42804",
                    f"argument declared anycompatiblearray is not an array but type {format_type(have)}",
                )
            common.append(part)
        else:
            common.append(have)
    range_type = _one_range(ranges, ANYRANGE, ANYMULTIRANGE)
    compatible_range = _one_range(ranges, ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE)
    if compatible_range:
        common.append(range_subtype(compatible_range))
    if array == ANYARRAY and not probing and (simple > 1 or result in _LOOK_INSIDE):
        raise SqlError("42804", 'cannot determine element type of "anyarray" argument')
    element = _element(element, array, range_type)
    if not element and simple and not probing:
        raise SqlError("42804", "could not determine polymorphic type because input has type unknown")
    if ANYNONARRAY in declared and element_of(base_oid(element)):
        raise SqlError("42804", f"type matched to anynonarray is an array type: {format_type(element)}")
    if ANYENUM in declared:  # a literal alone is of no enum, nor is a domain over one
        fact = facts().types.get(element)
        if fact is None or fact.kind != "e":
            raise SqlError("42804", f"type matched to anyenum is not an enum type: {format_type(element)}")
    compatible = 0
    if any(t in _COMPATIBLE for t in declared):
        compatible = _common_of(common) if common else (0 if probing and not unknown_seen else TEXT)
        if ANYCOMPATIBLENONARRAY in declared and element_of(base_oid(compatible)):
            raise SqlError(
                "42804",
                f"type matched to anycompatiblenonarray is an array type: {format_type(compatible)}",
            )
        if compatible_range and compatible != range_subtype(compatible_range):
            raise SqlError(
                "42804",
                f"anycompatiblerange type {format_type(compatible_range)} does not match anycompatible type"
                f" {format_type(compatible)}",
            )
    return _Solution(element, array, range_type, compatible, compatible_range)


def _element(element: int, array: int, range_type: int) -> int:
    if array == ANYARRAY:
        element = element or ANYELEMENT
    elif array:
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
        if element and element != part:
            raise SqlError(
                "42804",
                "argument declared anyrange is not consistent with argument declared anyelement",
                detail=f"{format_type(range_type)} versus {format_type(element)}",
            )
        element = part
    return element


def _common_of(types: Sequence[int]) -> int:
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


@functools.lru_cache(maxsize=16384)
def common_type(types: tuple[int, ...]) -> int:
    """Return the type that ``types`` resolve to (UNION, CASE, VALUES ...), or 0 across categories."""
    return common_or_offender(types)[0]


def common_or_offender(types: Iterable[int]) -> tuple[int, int]:
    """Return (type, index of the offending entry or -1)."""
    types = list(types)
    if types and types[0] != UNKNOWN and types.count(types[0]) == len(types):
        return types[0], -1  # a domain stays one only where all are of it
    chosen = UNKNOWN
    for index, oid in enumerate(map(base_oid, types)):
        if oid in (UNKNOWN, chosen):
            continue
        if chosen == UNKNOWN:
            chosen = oid
        elif category(oid) != category(chosen):
            return 0, index
        elif (
            not is_preferred(chosen)
            and can_coerce(chosen, oid, CastContext.IMPLICIT)
            and not can_coerce(oid, chosen, CastContext.IMPLICIT)
        ):
            chosen = oid
    return (TEXT if chosen == UNKNOWN else chosen), -1


@functools.lru_cache(maxsize=65536)
def can_coerce(source: int, target: int, context: CastContext) -> bool:
    """Tell whether one value can be coerced; polymorphic targets are judged alone."""
    return can_coerce_all((source,), (target,), context)


@functools.lru_cache(maxsize=65536)
def can_coerce_all(sources: tuple[int, ...], targets: tuple[int, ...], context: CastContext) -> bool:
    """Tell whether each source can become its target, polymorphic targets consistently."""
    generic = False
    for source, target in zip(sources, targets, strict=True):
        if source == target or target == ANY:
            continue
        if target in POLYMORPHIC:
            generic = True
        elif (source == UNKNOWN and target != INTERNAL) or is_row_of(source, target):
            continue
        elif find_pathway(source, target, context) is None:
            return False
    return not generic or consistent(sources, targets)


def register_typed(row: int, of: int) -> None:
    """Make known that the rows of a table, whose type is ``row``, are those of the composite type ``of``.

    For ever, like all that is known of types: rows of a table that is of it no more are compared column by
    column when they are cast.
    """
    if note_typed(row, of):
        for judged in (can_coerce, can_coerce_all):
            judged.cache_clear()
