"""Helpers that generated expressions call: arrays, rows, quantified comparisons, GREATEST and LEAST."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

from pgwire.bounded import BoundedArray, alike, plain
from pgwire.codecs.array import around, array_shape, dimensions, nest
from pgwire.codecs.system import RecordValue
from pgwire.give_way import paced
from pgwire.long.arrays import cut as cut_items
from pgwire.long.arrays import holds, tupled
from planner.base.arrays import flat
from planner.base.errors import SqlError
from planner.evaluate.env import Env, Row, RowFunction


class _Absent:
    """An absent slice bound."""


ABSENT = _Absent()


def map_array(element: RowFunction, array: tuple[Any, ...], e: Env, leaf: bool = False) -> tuple[Any, ...]:
    """Apply an element cast, keeping the dimensions and their bounds."""
    if leaf:
        items = nest([element((x,), e) for x in paced(flat(array, True))], dimensions(array, True))
    else:
        items = tupled(
            [map_array(element, x, e) if type(x) is tuple else element((x,), e) for x in paced(array)]
        )
    return alike(items, array)


def nested_array(parts: tuple[Any, ...], leaf: bool = False) -> tuple[Any, ...] | None:
    """Build ARRAY[array, ...]: sub-arrays must have equal dimensions and bounds (2202E)."""
    present = [p for p in parts if p]
    if not present:
        return ()
    if len(present) != len(parts) or len({array_shape(p, leaf) for p in present}) != 1:
        raise SqlError(
            "2202E", "multidimensional arrays must have array expressions with matching dimensions"
        )
    return around(parts)


def record_maker(
    types: tuple[int, ...], names: tuple[str, ...], typmods: tuple[int, ...] = ()
) -> Callable[[Row], RecordValue]:
    """Return the function from values to a record with these column types, names and type modifiers."""

    def make(values: Row) -> RecordValue:
        return RecordValue(values, types, names, typmods)

    return make


def row_null(value: Any) -> bool:
    """``row IS NULL``: every field is."""
    return value is None or all(x is None for x in value)


def row_not_null(value: Any) -> bool:
    """``row IS NOT NULL``: every field is not."""
    return value is not None and all(x is not None for x in value)


def any_equal(scalar: Any, array: tuple[Any, ...] | None, leaf: bool = False) -> bool | None:
    """``scalar = ANY (array)`` for values that Python compares as SQL does."""
    if array is None:
        return None
    if leaf:
        array = flat(array, True)
    elif array and type(array[0]) is tuple:
        array = flat(array)
    if scalar is None:
        return None if array else False
    if holds(array, scalar):
        return True
    return None if holds(array, None) else False


def any_array(
    function: Callable[[Any, Any, Env], Any],
    scalar: Any,
    array: tuple[Any, ...] | None,
    e: Env,
    leaf: bool = False,
) -> bool | None:
    """``scalar op ANY (array)``."""
    if array is None:
        return None
    result: bool | None = False
    for item in paced(flat(array, leaf), 16):
        got = function(scalar, item, e)
        if got is True:
            return True
        if got is None:
            result = None
    return result


def all_array(
    function: Callable[[Any, Any, Env], Any],
    scalar: Any,
    array: tuple[Any, ...] | None,
    e: Env,
    leaf: bool = False,
) -> bool | None:
    """``scalar op ALL (array)``."""
    if array is None:
        return None
    result: bool | None = True
    for item in paced(flat(array, leaf), 16):
        got = function(scalar, item, e)
        if got is False:
            return False
        if got is None:
            result = None
    return result


def greatest(less: Callable[[Any, Any, Env], bool], values: tuple[Any, ...], e: Env) -> Any:
    """GREATEST: the largest value that is not NULL."""
    best = None
    for value in values:
        if value is not None and (best is None or less(best, value, e)):
            best = value
    return best


def least(less: Callable[[Any, Any, Env], bool], values: tuple[Any, ...], e: Env) -> Any:
    """LEAST: the smallest value that is not NULL."""
    best = None
    for value in values:
        if value is not None and (best is None or less(value, best, e)):
            best = value
    return best


def leaf_item(array: Any, indexes: tuple[tuple[Any, Any], ...], base: int) -> Any:
    """``array_item`` where elements are tuples themselves."""
    if not array or len(indexes) != len(dimensions(array, True)):
        return None
    return _item(array, indexes, array.lows if type(array) is BoundedArray else (base,) * len(indexes))


def _item(array: Any, indexes: tuple[tuple[Any, Any], ...], lows: tuple[int, ...]) -> Any:
    for low, (_, index) in zip(lows, indexes, strict=True):
        if index is None or not low <= index < low + len(array):
            return None
        array = array[index - low]
    return array


def array_item(array: Any, indexes: tuple[tuple[Any, Any], ...], base: int) -> Any:
    """Return one element; NULL out of bounds, for too few subscripts, or for a NULL subscript.

    A name is an array of "char", as its bytes are.
    """
    if type(array) is str:
        array = tuple(array)
    if type(array) is BoundedArray:
        return _item(array, indexes, array.lows) if len(array.lows) == len(indexes) else None
    for _, index in indexes:
        if array is None or index is None or type(array) is not tuple:
            return None
        index -= base
        if not 0 <= index < len(array):
            return None
        array = array[index]
    return None if type(array) is tuple else array


def array_slice(array: Any, indexes: tuple[tuple[Any, Any], ...], base: int, leaf: bool = False) -> Any:
    """Return a slice; a plain subscript n among slices means 1:n. Bounds are cut to the array's."""
    if array is None:
        return None
    lows = array.lows if type(array) is BoundedArray else ()
    cut: list[tuple[int, int]] = []
    for (low, high), first in zip(indexes, chain(lows, repeat(base)), strict=False):
        if low is None or high is None:
            return None
        start = first if low is ABSENT else low
        cut.append((max(start - first, 0), (1 << 31) if high is ABSENT else high - first + 1))
    if leaf and len(indexes) > len(dimensions(array, True)):
        return ()
    return plain(_slice(array, cut))


def _slice(array: Any, cut: list[tuple[int, int]]) -> Any:
    if not cut:
        return array
    if array and type(array[0]) is not tuple and len(cut) > 1:
        return ()
    low, high = cut[0]
    part = cut_items(array, low, max(high, low))
    if len(cut) > 1:
        part = tuple([_slice(x, cut[1:]) for x in paced(part)])
        if any(x == () for x in paced(part)):
            return ()
    return part
