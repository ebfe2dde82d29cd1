"""What ``array[3] = x`` and ``array[2:3] = y`` make of an array, in UPDATE ... SET (manual 8.15.4).

    {1,2,3}  [5] = 9          {1,2,3,NULL,9}        one dimension grows; what is skipped is NULL
    NULL     [1] = 9          {9}
    {1,2,3}  [2:] = {7,8,8}   {1,7,8}               a slice takes as many elements as it has room for
    {1,2,3}  [0] = 9          0A000                 lower bounds are 1

Every function returns a new array and raises what PostgreSQL raises: 22004 for a NULL subscript, 2202E for subscripts that
do not fit, 54000 for an array that would be too large.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

from pgwire.codecs.array import MAX_DIMENSIONS, dimensions, flatten, nest
from pgwire.long_arrays import cut, repeated
from planner.builtins.large import chained
from planner.errors import SqlError, not_supported
from planner.evaluate_runtime import ABSENT

MAX_GROWN: Final = 10_000_000
"""Elements an array may grow to by an assignment beyond its end."""

Array = tuple[Any, ...]


def assign_item(array: Array | None, subscripts: tuple[Any, ...], value: Any, leaf: bool) -> Array:
    """Return ``array`` with one element replaced; ``leaf``: elements are tuples themselves."""
    _check_nulls(subscripts)
    lengths = dimensions(array, leaf) if array else ()
    if not lengths:
        _check_starts(subscripts)
        return nest([value], subscripts)
    assert array is not None
    if len(lengths) != len(subscripts):
        raise SqlError("2202E", "wrong number of array subscripts")
    if len(lengths) == 1:
        [at] = subscripts
        _check_low(subscripts)
        _check_size(subscripts)
        return chained(
            (cut(array, 0, at - 1), repeated(None, max(at - 1 - len(array), 0)), (value,), cut(array, at))
        )
    if not all(1 <= at <= length for at, length in zip(subscripts, lengths, strict=True)):
        raise SqlError("2202E", "array subscript out of range")
    return _replaced(array, [at - 1 for at in subscripts], value)


def _replaced(array: Array, path: list[int], value: Any) -> Array:
    first, rest = path[0], path[1:]
    inner = _replaced(array[first], rest, value) if rest else value
    return chained((cut(array, 0, first), (inner,), cut(array, first + 1)))


def assign_slice(
    array: Array | None, bounds: tuple[tuple[Any, Any], ...], value: Array | None, leaf: bool
) -> Array:
    """Return ``array`` with a slice replaced; bounds that were left out are ABSENT."""
    _check_nulls([bound for pair in bounds for bound in pair])
    if value is None:
        return array or ()
    lengths = dimensions(array, leaf) if array else ()
    grown = list(lengths)
    if not lengths:
        if any(bound is ABSENT for pair in bounds for bound in pair):
            raise SqlError(
                "2202E",
                "array slice subscript must provide both boundaries",
                detail="When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
            )
        if any(high < low for low, high in bounds):
            return ()
        _check_starts([low for low, _ in bounds])
        grown = [high for _, high in bounds]
    if len(grown) < len(bounds) or len(bounds) > MAX_DIMENSIONS:
        raise SqlError("2202E", "wrong number of array subscripts")
    wanted: list[tuple[int, int]] = []
    for number, length in enumerate(grown):
        pair: tuple[Any, Any] = bounds[number] if number < len(bounds) else (ABSENT, ABSENT)
        low = 1 if pair[0] is ABSENT else pair[0]
        high = length if pair[1] is ABSENT else pair[1]
        _check_order(low, high)
        if len(grown) > 1 and lengths and not (low >= 1 and high <= length):
            raise SqlError("2202E", "array subscript out of range")
        _check_low([low])
        wanted.append((low - 1, high))
        grown[number] = max(length, high)
    _check_size(grown)
    source = flatten(value, len(dimensions(value, leaf))) if value else []
    spots = list(itertools.product(*(range(low, high) for low, high in wanted)))
    if len(source) < len(spots):
        raise SqlError("2202E", "source array too small")
    cells = flatten(array, len(lengths)) if array else []
    cells += [None] * (_product(grown) - len(cells))
    for spot, item in zip(spots, source, strict=False):
        at = 0
        for index, length in zip(spot, grown, strict=True):
            at = at * length + index
        cells[at] = item
    return nest(cells, tuple(grown))


def _check_nulls(subscripts: Any) -> None:
    if any(subscript is None for subscript in subscripts):
        raise SqlError("22004", "array subscript in assignment must not be null")


def _check_order(low: int, high: int) -> None:
    if low > high:
        raise SqlError("2202E", "upper bound cannot be less than lower bound")


def _check_low(subscripts: Any) -> None:
    if any(low < 1 for low in subscripts):
        raise not_supported("an array whose lower bound is not 1")


def _check_starts(lows: Any) -> None:
    """An array that was empty begins where it is assigned to."""
    if any(low != 1 for low in lows):
        raise not_supported("an array whose lower bound is not 1")


def _check_size(lengths: Any) -> None:
    if _product(lengths) > MAX_GROWN:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({MAX_GROWN})")


def _product(lengths: Any) -> int:
    total = 1
    for length in lengths:
        total *= length
    return total
