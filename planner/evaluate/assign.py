"""What ``array[3] = x`` and ``array[2:3] = y`` make of an array, in UPDATE ... SET (manual 8.15.4).

    {1,2,3}  [5] = 9          {1,2,3,NULL,9}        one dimension grows; what is skipped is NULL
    NULL     [1] = 9          {9}
    {1,2,3}  [2:] = {7,8,8}   {1,7,8}               a slice takes as many elements as it has room for
    {1,2,3}  [-1] = 9         [-1:3]={9,NULL,1,2,3} so it does below its beginning
    NULL     [5] = 9          [5:5]={9}

Every function returns a new array and raises what PostgreSQL raises: 22004 for a NULL subscript, 2202E for
subscripts that do not fit, 54000 for an array that would be too large.
"""

from __future__ import annotations

from itertools import chain, product, repeat
from math import prod
from typing import Any, Final

from pgwire.bounded import bounded, lower_bounds, plain
from pgwire.codecs.array import MAX_ELEMENTS, check_bounds, check_size, dimensions, flatten, nest
from pgwire.long.arrays import cut, repeated
from planner.base.errors import SqlError
from planner.base.large import chained
from planner.evaluate.runtime import ABSENT

MAX_GROWN: Final = 10_000_000
"""Elements an array may grow to by an assignment beyond its end."""

Array = tuple[Any, ...]


def assign_item(array: Array | None, subscripts: tuple[Any, ...], value: Any, leaf: bool) -> Array:
    """Return ``array`` with one element replaced; ``leaf``: elements are tuples themselves."""
    lengths = dimensions(array, leaf) if array else ()
    if not lengths:
        check_bounds((1,) * len(subscripts), subscripts)
        return bounded(nest([value], (1,) * len(subscripts)), subscripts)
    if array is None:
        raise AssertionError("an item is put into no array")
    if len(lengths) != len(subscripts):
        raise SqlError("2202E", "wrong number of array subscripts")
    lows = lower_bounds(array, len(lengths))
    if len(lengths) == 1:
        [at], [low] = subscripts, lows
        before, behind = max(low - at, 0), max(at - low - len(array), 0)
        first = min(low, at)
        length = max(low + len(array), at + 1) - first
        _check_size((length,))
        check_bounds((length,), (first,))
        kept = () if before else cut(array, 0, at - low)
        gap = repeated(None, max(before - 1, 0))
        rest = plain(array) if before else cut(array, at - low + 1)
        return bounded(chained((kept, repeated(None, behind), (value,), gap, rest)), (first,))
    path = [at - low for at, low in zip(subscripts, lows, strict=True)]
    if not all(0 <= at < length for at, length in zip(path, lengths, strict=True)):
        raise SqlError("2202E", "array subscript out of range")
    return bounded(_replaced(array, path, value), lows)


def _replaced(array: Array, path: list[int], value: Any) -> Array:
    first, rest = path[0], path[1:]
    inner = _replaced(array[first], rest, value) if rest else value
    return chained((cut(array, 0, first), (inner,), cut(array, first + 1)))


def assign_slice(
    array: Array | None, bounds: tuple[tuple[Any, Any], ...], value: Array | None, leaf: bool
) -> Array:
    """Return ``array`` with a slice replaced; bounds that were left out are ABSENT."""
    if value is None:
        return array or ()
    source = flatten(value, len(dimensions(value, leaf))) if value else []
    lengths = dimensions(array, leaf) if array else ()
    if not lengths:
        return _sliced_into_nothing(bounds, source)
    if array is None:
        raise AssertionError("a slice is put into no array")
    if len(lengths) < len(bounds):
        raise SqlError("2202E", "wrong number of array subscripts")
    lows = lower_bounds(array, len(lengths))
    wanted: list[tuple[int, int]] = []
    given = chain(bounds, repeat((ABSENT, ABSENT)))
    for pair, low, length in zip(given, lows, lengths, strict=False):
        first = low if pair[0] is ABSENT else pair[0]
        last = low + length - 1 if pair[1] is ABSENT else pair[1]
        if first > last:
            raise SqlError("2202E", "upper bound cannot be less than lower bound")
        if len(lengths) > 1 and not (low <= first and last < low + length):
            raise SqlError("2202E", "array subscript out of range")
        wanted.append((first, last + 1))
    if len(lengths) == 1:
        return _sliced(array, lows[0], wanted[0], source)
    spots = list(
        product(*(range(start - low, end - low) for (start, end), low in zip(wanted, lows, strict=True)))
    )
    _check_source(source, len(spots))
    cells = flatten(array, len(lengths))
    for spot, item in zip(spots, source, strict=False):
        at = 0
        for index, length in zip(spot, lengths, strict=True):
            at = at * length + index
        cells[at] = item
    return bounded(nest(cells, lengths), lows)


def _sliced_into_nothing(bounds: tuple[tuple[Any, Any], ...], source: list[Any]) -> Array:
    """Return an array that is the slice alone, of as many dimensions as it has."""
    if any(bound is ABSENT for pair in bounds for bound in pair):
        raise SqlError(
            "2202E",
            "array slice subscript must provide both boundaries",
            detail="When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
        )
    lengths = tuple([high - low + 1 for low, high in bounds])
    lows = tuple([low for low, _ in bounds])
    _check_size(lengths)
    _check_source(source, prod(lengths))
    check_bounds(lengths, lows)
    return bounded(nest(source[: prod(lengths)], lengths), lows)


def _sliced(array: Array, low: int, wanted: tuple[int, int], source: list[Any]) -> Array:
    """Return an array of one dimension with the elements from one subscript to before another replaced; it may grow."""
    start, end = wanted
    first = min(low, start)
    length = max(low + len(array), end) - first
    _check_size((length,))
    check_bounds((length,), (first,))
    _check_source(source, end - start)
    behind = low + len(array)
    made = chained(
        (
            cut(array, 0, max(start - low, 0)),
            repeated(None, max(start - behind, 0)),
            source[: end - start],
            repeated(None, max(low - end, 0)),
            cut(array, min(max(end - low, 0), len(array))),
        )
    )
    return bounded(made, (first,))


def subscripts_given(subscripts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return subscripts, of which none may be NULL: SqlError 22004."""
    if any(subscript is None for subscript in subscripts):
        raise SqlError("22004", "array subscript in assignment must not be null")
    return subscripts


def bounds_given(bounds: tuple[tuple[Any, Any], ...]) -> tuple[tuple[Any, Any], ...]:
    """Return bounds of slices, of which none may be NULL: SqlError 22004."""
    for pair in bounds:
        subscripts_given(pair)
    return bounds


def _check_source(source: list[Any], count: int) -> None:
    if len(source) < count:
        raise SqlError("2202E", "source array too small")


def _check_size(lengths: tuple[int, ...]) -> None:
    if any(length < 0 for length in lengths):
        raise SqlError("54000", f"array size exceeds the maximum allowed ({MAX_ELEMENTS})")
    check_size(lengths)
    if prod(lengths) > MAX_GROWN:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({MAX_GROWN})")
