"""Arrays: functions and operators (Python forms).

An array is a nested tuple, ``()`` when empty; one with other lower bounds than 1 is a ``BoundedArray``. The
functions are polymorphic, so most take ``types``: how elements compare and whether a tuple is an element or a
dimension depends on the element type. int2vector and oidvector count as arrays whose subscripts begin at 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, cast

from pgwire.bounded import bounded, lower_bounds, plain
from pgwire.codecs.array import MAX_INT, check_bounds, check_size, dimensions, flatten, nest, show_bounds
from pgwire.codecs.domain import ARRAY_ELEMENT, INT2, INT2VECTOR, OID, OIDVECTOR, TUPLE_TYPES
from pgwire.give_way import paced
from pgwire.long import arrays as long_arrays
from pgwire.long import values as long
from pgwire.long.arrays import gathered
from pgwire.long.sets import distinct
from planner.base.errors import SqlError
from planner.base.large import ITEM_BYTES, LARGE_BYTES, chained, foresee, joined
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.text.strings import fields
from planner.functions.values.casts import to_text
from planner.functions.values.compare import hash_key, sort_key
from planner.functions.values.record_keys import equated, has_records, ordered
from planner.types.facts import element_of

python = REGISTRY.python
Array = tuple[Any, ...]
Types = tuple[int, ...]

_ABSENT: Any = object()
_VECTORS = {INT2VECTOR: INT2, OIDVECTOR: OID}


def element_type(array_oid: int) -> int:
    """Return the element type of an array type."""
    return ARRAY_ELEMENT.get(array_oid) or _VECTORS.get(array_oid) or element_of(array_oid)


def shape(value: Array, array_oid: int) -> tuple[int, ...]:
    """Return the length of each dimension; ``()`` when empty."""
    return dimensions(value, element_type(array_oid) in TUPLE_TYPES)


def lows_of(value: Array, array_oid: int) -> tuple[int, ...]:
    """Return the lower bound of each dimension."""
    count = len(shape(value, array_oid))
    return (0,) * count if array_oid in _VECTORS else lower_bounds(value, count)


def flat(value: Array, array_oid: int) -> list[Any]:
    """Return all elements in order."""
    return flatten(value, len(shape(value, array_oid)) or 1)


def _equality(array_oid: int) -> Callable[[Any], Any]:
    """Return the key by which elements are equal; NULL has one of its own. 42883 where their type has no equality."""
    equated(element_type(array_oid))
    key = hash_key(element_type(array_oid))
    if key is None:
        return lambda value: value
    return lambda value: None if value is None else key(value)


# -- shape ---------------------------------------------------------------------------------------


def _length(value: Array, dimension: int, *, types: Types) -> int | None:
    lengths = shape(value, types[0])
    return lengths[dimension - 1] if 1 <= dimension <= len(lengths) else None


def _lower(value: Array, dimension: int, *, types: Types) -> int | None:
    lows = lows_of(value, types[0])
    return lows[dimension - 1] if 1 <= dimension <= len(lows) else None


def _upper(value: Array, dimension: int, *, types: Types) -> int | None:
    length, low = _length(value, dimension, types=types), _lower(value, dimension, types=types)
    return None if length is None or low is None else low + length - 1


def _dims(value: Array, *, types: Types) -> str | None:
    return show_bounds(lows_of(value, types[0]), shape(value, types[0])) or None


def _ndims(value: Array, *, types: Types) -> int | None:
    return len(shape(value, types[0])) or None


def _cardinality(value: Array, *, types: Types) -> int:
    return len(flat(value, types[0]))


def _subscripts(value: Array, dimension: int, reverse: bool = False, *, types: Types) -> Iterator[int]:
    length, low = _length(value, dimension, types=types), _lower(value, dimension, types=types)
    if length is None or low is None:
        return iter(())
    numbers = range(low, low + length)
    return iter(reversed(numbers) if reverse else numbers)


# -- building ------------------------------------------------------------------------------------


def _one_dimension(value: Array, oid: int) -> None:
    if len(shape(value, oid)) > 1:
        raise SqlError("22000", "argument must be empty or one-dimensional array")


def array_append(value: Array | None, item: Any, *, types: Types) -> Array:
    """Return the array with ``item`` behind it; a NULL array counts as empty."""
    if value is None:
        return (item,)
    _one_dimension(value, types[0])
    (low,) = lows_of(value, types[0]) or (1,)
    if low + len(value) > MAX_INT:
        raise SqlError("22003", "integer out of range")
    check_bounds((len(value) + 1,), (low,))
    return bounded(chained((value, (item,))), (low,))


def array_prepend(item: Any, value: Array | None, *, types: Types) -> Array:
    """Return the array with ``item`` before it."""
    if value is None:
        return (item,)
    _one_dimension(value, types[1])
    (low,) = lows_of(value, types[1]) or (1,)
    if low == -MAX_INT - 1:
        raise SqlError("22003", "integer out of range")
    check_bounds((len(value) + 1,), (low - 1,))
    return bounded(chained(((item,), value)), (low,))  # it begins where it did


def array_cat(left: Array | None, right: Array | None, *, types: Types) -> Array | None:
    """Concatenate: arrays of one shape, or an array and one element of its outer dimension; 2202E.

    It begins where the first does, or the one with more dimensions.
    """
    left, right = _as_array(left, types[0]), _as_array(right, types[1])
    if left is None or right is None:
        return right if left is None else left
    a, b = shape(left, types[0]), shape(right, types[1])
    if not a or not b:
        return left if a else right
    low_a, low_b = lower_bounds(left, len(a)), lower_bounds(right, len(b))
    lows = low_a if len(a) >= len(b) else low_b
    left, right = plain(left), plain(right)
    parts: tuple[Array, ...] = ()
    detail = "Arrays with differing element dimensions are not compatible for concatenation."
    if len(a) == len(b):
        fits, parts = (a[1:], low_a[1:]) == (b[1:], low_b[1:]), (left, right)
        detail = "Arrays with differing element dimensions are not compatible for concatenation."
    elif len(a) == len(b) + 1:
        fits, parts = (a[1:], low_a[1:]) == (b, low_b), (left, (right,))
        detail = "Arrays with differing dimensions are not compatible for concatenation."
    elif len(b) == len(a) + 1:
        fits, parts = (b[1:], low_b[1:]) == (a, low_a), ((left,), right)
        detail = "Arrays with differing dimensions are not compatible for concatenation."
    else:
        fits = False
        detail = f"Arrays of {len(a)} and {len(b)} dimensions are not compatible for concatenation."
    if not fits:
        raise SqlError("2202E", "cannot concatenate incompatible arrays", detail=detail)
    made = chained(parts)
    lengths = (len(made), *(a if len(a) >= len(b) else b)[1:])
    check_size(lengths)
    check_bounds(lengths, lows)
    return bounded(made, lows)


def _as_array(value: Array | None, oid: int) -> Array | None:
    """Return a vector as the array it is: it begins at 0."""
    return value if value is None or oid not in _VECTORS else bounded(value, (0,))


def array_fill(value: Any, lengths: Array | None, bounds: Any = _ABSENT) -> Array:
    """Return an array of ``lengths`` full of ``value``, which begins at ``bounds``."""
    if lengths is None or bounds is None:
        raise SqlError("22004", "dimension array or low bound array cannot be null")
    lengths = plain(lengths)
    bounds = long_arrays.repeated(1, len(lengths)) if bounds is _ABSENT else plain(bounds)
    if any(isinstance(part[0], tuple) for part in (lengths, bounds) if part):
        raise SqlError(
            "2202E", "wrong number of array subscripts", detail="Dimension array must be one dimensional."
        )
    if long_arrays.holds(lengths, None) or long_arrays.holds(bounds, None):
        raise SqlError("22004", "dimension values cannot be null")
    if len(lengths) > 6:
        raise SqlError("54000", f"number of dimensions ({len(lengths)}) exceeds the maximum allowed (6)")
    if len(bounds) != len(lengths):
        raise SqlError(
            "2202E",
            "wrong number of array subscripts",
            detail="Low bound array has different size than dimensions array.",
        )
    if any(n < 0 for n in lengths):
        raise SqlError("54000", "array size exceeds the maximum allowed (134217727)")
    check_size(lengths)
    check_bounds(lengths, bounds)
    if not lengths or 0 in lengths:
        return ()
    foresee(8 * sum(lengths))
    result: Any = value
    for length in reversed(lengths):
        result = long_arrays.repeated(result, length)
    return bounded(cast("Array", result), bounds)


def trim_array(value: Array, count: int) -> Array:
    """Drop the last ``count`` elements of the outer dimension; 2202E."""
    if not 0 <= count <= len(value):
        raise SqlError("2202E", f"number of elements to trim must be between 0 and {len(value)}")
    return plain(long_arrays.cut(value, 0, len(value) - count))


# -- searching -----------------------------------------------------------------------------------


def _searchable(value: Array, oid: int, what: str) -> None:
    if len(shape(value, oid)) > 1:
        raise SqlError("0A000", f"{what} elements {'in' if what == 'searching for' else 'from'} "
                       "multidimensional arrays is not supported")  # fmt: skip


def _is_null(item: Any) -> bool:
    return item is None


def _same(wanted: Any, oid: int) -> Callable[[Any], bool]:
    """Return the test for being the element ``wanted`` (NULL is NULL)."""
    key = _equality(oid)
    if wanted is None:
        return _is_null
    target = key(wanted)
    return lambda item: item is not None and key(item) == target


def array_position(value: Array | None, wanted: Any, start: Any = _ABSENT, *, types: Types) -> int | None:
    """Return the first subscript (from ``start`` on) of ``wanted``, or NULL; 0A000 for several dimensions."""
    if value is None:
        return None
    _searchable(value, types[0], "searching for")
    if start is None:
        raise SqlError("22004", "initial position must not be null")
    if not value:
        return None
    (low,) = lows_of(value, types[0]) or (1,)
    matches = _is_null if wanted is None else _same(wanted, types[0])
    for number, item in enumerate(paced(value), low):
        if (start is _ABSENT or number >= start) and matches(item):
            return number
    return None


def array_positions(value: Array | None, wanted: Any, *, types: Types) -> Array | None:
    """Return all subscripts of ``wanted``."""
    if value is None:
        return None
    _searchable(value, types[0], "searching for")
    if not value:
        return ()
    matches = _same(wanted, types[0])
    (low,) = lows_of(value, types[0]) or (1,)
    return long_arrays.tupled(gathered(n for n, item in enumerate(paced(value), low) if matches(item)))


def array_remove(value: Array | None, wanted: Any, *, types: Types) -> Array | None:
    """Return the array without the elements equal to ``wanted``."""
    if value is None:
        return None
    _searchable(value, types[0], "removing")
    if not value:
        return ()
    matches = _same(wanted, types[0])
    left = long_arrays.tupled(gathered(item for item in paced(value) if not matches(item)))
    return bounded(left, lows_of(value, types[0]))


def array_replace(value: Array | None, wanted: Any, by: Any, *, types: Types) -> Array | None:
    """Return the array with elements equal to ``wanted`` replaced, at any depth."""
    if not value:
        return value
    matches = _same(wanted, types[0])
    lengths = shape(value, types[0])
    made = nest(gathered(by if matches(item) else item for item in paced(flat(value, types[0]))), lengths)
    return bounded(made, lows_of(value, types[0]))


def _among(record: Any, array: Array, array_oid: int) -> bool:
    """Whether a record is one of an array's, each compared with it: those of other types raise 42804."""
    if record is None:
        return False
    key = _equality(array_oid)
    wanted = key(record)
    return any(item is not None and key(item) == wanted for item in paced(flat(array, array_oid)))


def _contains(value: Array, part: Array, *, types: Types) -> bool:
    """Whether every element of ``part`` is in ``value``; a NULL never is."""
    if has_records(types[0]):
        return all(_among(item, value, types[0]) for item in paced(flat(part, types[1])))
    key = _equality(types[0])
    have = distinct(key(item) for item in paced(flat(value, types[0])) if item is not None)
    return all(item is not None and key(item) in have for item in paced(flat(part, types[1])))


def _overlaps(a: Array, b: Array, *, types: Types) -> bool:
    if has_records(types[0]):
        return any(_among(item, b, types[1]) for item in paced(flat(a, types[0])))
    key = _equality(types[0])
    have = distinct(key(item) for item in paced(flat(a, types[0])) if item is not None)
    return any(item is not None and key(item) in have for item in paced(flat(b, types[1])))


# -- comparison ----------------------------------------------------------------------------------


def _in_one_shape(a: Array, b: Array, types: Types) -> bool:
    """Return whether two arrays have the same dimensions and bounds."""
    return shape(a, types[0]) == shape(b, types[1]) and lows_of(a, types[0]) == lows_of(b, types[1])


def _compare(test: Callable[[Any, Any], Any], known: Callable[[int], None] = ordered) -> Callable[..., Any]:
    """Return a comparison of arrays; ``known`` raises 42883 for elements of a type that has none, be there
    elements or not.
    """

    def function(a: Array, b: Array, *, types: Types) -> Any:
        if known is ordered or _in_one_shape(a, b, types):  # others are unlike whatever is in them
            known(element_type(types[0]))
        key = sort_key(types[0])
        return test(a, b) if key is None else test(key(a), key(b))

    return function


def _choose(larger: bool) -> Callable[..., Array]:
    def function(a: Array, b: Array, *, types: Types) -> Array:
        ordered(element_type(types[0]))
        key = sort_key(types[0])
        x, y = (a, b) if key is None else (key(a), key(b))
        return a if (x > y if larger else x < y) else b

    return function


# -- text ----------------------------------------------------------------------------------------


def array_to_string(
    session: EvalSession, value: Any, delimiter: Any, null: str | None = None, *, types: Types
) -> str | None:
    """Join the elements' texts; NULLs are left out, or shown as ``null``."""
    if value is None or delimiter is None:
        return None
    oid = element_type(types[0])
    shown = gathered(
        null if item is None else to_text(oid, item, session)
        for item in paced(flat(value, types[0]))
        if item is not None or null is not None
    )
    return joined(shown, str(delimiter))


def string_to_array(text: str | None, delimiter: str | None, null: str | None = None) -> Array | None:
    """Split a text; a NULL delimiter gives characters, an empty one the whole text."""
    if text is None:
        return None
    if not text:
        return ()
    if len(text) >= LARGE_BYTES and delimiter != "":
        foresee(len(text) + ITEM_BYTES * (len(text) if delimiter is None else long.count(text, delimiter)))
    return long_arrays.tupled(fields(text, delimiter, null))


def _register() -> None:
    typed: dict[str, Any] = {"needs_types": True}
    functions: dict[str, Callable[..., Any]] = {
        "array_length(anyarray,int4)": _length, "array_lower(anyarray,int4)": _lower,
        "array_upper(anyarray,int4)": _upper, "array_dims(anyarray)": _dims, "array_ndims(anyarray)": _ndims,
        "cardinality(anyarray)": _cardinality, "generate_subscripts(anyarray,int4)": _subscripts,
        "generate_subscripts(anyarray,int4,bool)": _subscripts,
        "array_append(anycompatiblearray,anycompatible)": array_append,
        "array_prepend(anycompatible,anycompatiblearray)": array_prepend,
        "array_cat(anycompatiblearray,anycompatiblearray)": array_cat,
        "array_position(anycompatiblearray,anycompatible)": array_position,
        "array_position(anycompatiblearray,anycompatible,int4)": array_position,
        "array_positions(anycompatiblearray,anycompatible)": array_positions,
        "array_remove(anycompatiblearray,anycompatible)": array_remove,
        "array_replace(anycompatiblearray,anycompatible,anycompatible)": array_replace,
        "arraycontains(anyarray,anyarray)": _contains,
        "arraycontained(anyarray,anyarray)": lambda a, b, *, types: _contains(b, a, types=types[::-1]),
        "arrayoverlap(anyarray,anyarray)": _overlaps,
        "btarraycmp(anyarray,anyarray)": _compare(lambda a, b: (a > b) - (a < b)),
        "array_larger(anyarray,anyarray)": _choose(True), "array_smaller(anyarray,anyarray)": _choose(False),
        "unnest(anyarray)": lambda value, *, types: flat(value, types[0]),
    }  # fmt: skip
    for signature, function in functions.items():
        python(signature, function, **typed)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        known = equated if name in ("eq", "ne") else ordered
        python(f"array_{name}(anyarray,anyarray)", _compare(getattr(operator, name), known), **typed)
    python("array_fill(anyelement,_int4)", array_fill)
    python("array_fill(anyelement,_int4,_int4)", array_fill)
    python("trim_array(anyarray,int4)", trim_array)
    for signature in ("array_to_string(anyarray,text)", "array_to_string(anyarray,text,text)"):
        python(signature, array_to_string, needs_session=True, **typed)
    python("string_to_array(text,text)", string_to_array)
    python("string_to_array(text,text,text)", string_to_array)


_register()
