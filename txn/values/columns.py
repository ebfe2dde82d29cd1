"""Columns of values: the physical types of ``txn.base.types`` as Arrow, both ways, whole columns or one value.

    rows (tuples of the value domain)  --rows_to_table-->  pyarrow.Table  --table_rows-->  rows
                                                               |
                                          c1, c2, c4 ...  per live column
                                          c2_dims         beside a list column: sizes of its dimensions where
                                                          there are several (the elements are flat), else null;
                                                          0, sizes, lower bounds where these are not all 1
                                          s_row_id, s_begin

``numeric`` is a struct of ``u`` (unscaled, decimal128(38, 0)) and ``s`` (scale >= 0). Special values have
``u`` 0 and a negative ``s``: -1 NaN, -2 -Infinity, -3 Infinity. Of what does not fit (more than 38 digits,
NaN in a ``decimal``) columns of rows have the *exact form* (``txn.values.exact``); a single array is refused.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from decimal import Context, Decimal
from itertools import chain, islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.base import huge_values
from txn.base.huge_values import LONG_LIST, has_huge, is_huge, runs_of, shared, shared_slowly
from txn.base.slices import Slice, at_once
from txn.base.types import (
    ROW_MARK,
    BoundedArray,
    PhysicalType,
    Row,
    ShardColumn,
    ShardSpec,
    bounded,
    row_keeps_bounds,
)
from txn.values.arrow import ArrowTable
from txn.values.exact import (
    MAX_DIGITS,
    alike,
    concatenated,
    exact_array,
    exact_values,
    fits,
    is_exact,
    is_long,
    pieces_of,
    table_of,
)

CELLS_AT_ONCE: Final = 32 << 10
"""Cells that become rows in one call of C, which no other thread interrupts."""
AT_ONCE: Final = 8192
"""Values of a column that are made between two yields."""
SLOW_AT_ONCE: Final = 1024
"""Likewise of kinds that take a microsecond each, and more."""
PARTS: Final = 64
"""Times so many values between two turns of the loop, at most."""
CHUNK_COLUMNS: Final = 1000
"""Columns of a table that are made in one turn of the loop, at most."""

JOINED_BYTES: Final = 1 << 16
"""Tables whose rows are larger, on average, are joined without being copied."""

SCALE_NAN, SCALE_NEG_INF, SCALE_POS_INF = -1, -2, -3
_EXACT = Context(prec=120)
_SPECIALS = {
    SCALE_NAN: Decimal("NaN"),
    SCALE_NEG_INF: Decimal("-Infinity"),
    SCALE_POS_INF: Decimal("Infinity"),
}
_NUMERIC = pa.struct([pa.field("u", pa.decimal128(38, 0)), pa.field("s", pa.int32())])
_TIMETZ = pa.struct([pa.field("t", pa.int64()), pa.field("z", pa.int32())])
_INTERVAL = pa.struct([pa.field("m", pa.int32()), pa.field("d", pa.int32()), pa.field("u", pa.int64())])
_SIMPLE: dict[str, Any] = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "numeric": _NUMERIC,
    "text": pa.string(),
    "bytes": pa.binary(),
    "tailed": pa.binary(),
    "uuid": pa.binary(16),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timetz": _TIMETZ,
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "interval": _INTERVAL,
}
_VIA_INT64 = frozenset(("time", "timestamp", "timestamptz"))
_SLOW = frozenset(("decimal", "numeric", "interval", "timetz", "list"))
_LONG = frozenset(("text", "bytes", "tailed"))
_NUMBERS = frozenset(("decimal", "numeric"))
_DIMS = pa.list_(pa.int32())


NO_TAIL = bytes(4)


def without_tail(value: bytes) -> bytes:
    """Return what of a ``tailed`` value is compared."""
    return value[: -4 - int.from_bytes(value[-4:], "big")]


def at_once_of(type_: PhysicalType) -> int:
    """Return how many values of a type are converted in one call."""
    return SLOW_AT_ONCE if type_.kind in _SLOW else AT_ONCE


def arrow_type(type_: PhysicalType) -> Any:
    """Return the pyarrow type of a physical type."""
    if type_.kind == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.kind == "list":
        if type_.element is None:
            raise ValueError("a list type needs an element type")
        return pa.list_(pa.field("element", arrow_type(type_.element)))
    return _SIMPLE[type_.kind]


def column_fields(column: ShardColumn) -> list[Any]:
    """Return the pyarrow fields that hold a column."""
    fields = [pa.field(f"c{column.attnum}", arrow_type(column.type))]
    if column.type.kind == "list":
        fields.append(pa.field(f"c{column.attnum}_dims", _DIMS))
    return fields


def table_schema(columns: Iterable[ShardColumn]) -> Any:
    """Return the pyarrow schema of rows: the live columns, then s_row_id and s_begin."""
    fields = [f for c in columns if not c.dropped for f in column_fields(c)]
    fields += [pa.field("s_row_id", pa.int64()), pa.field("s_begin", pa.int64())]
    return pa.schema(fields)


# -- columns that engines computed ------------------------------------------------------------------


def as_stored(column: Any, wanted: Any) -> Any:
    """Return an engine's column in the Arrow type that parts have, or None if that takes more than another view of it.

    uuids may come as binary, times as microseconds, numerics of one scale as decimals.
    """
    found = column.type
    if found.equals(wanted):
        return column
    if not is_near(found, wanted):
        return None
    if wanted.equals(_NUMERIC) and pa.types.is_decimal128(found):
        return _of_one_scale(column)
    if pa.types.is_struct(wanted):
        return pa.StructArray.from_arrays(
            [column.field(i).cast(f.type) for i, f in enumerate(wanted)],
            fields=list(wanted),
            mask=column.is_null(),
        )
    return column.cast(wanted)


def is_near(found: Any, wanted: Any) -> bool:
    """Return whether ``as_stored`` takes columns of the Arrow type ``found`` for ``wanted``."""
    if found.equals(wanted):
        return True
    if pa.types.is_fixed_size_binary(wanted):
        return bool(pa.types.is_binary(found))
    if pa.types.is_time64(wanted):
        return bool(found == pa.int64())
    if pa.types.is_struct(wanted):
        if pa.types.is_struct(found):
            return [(f.name, f.type) for f in found] == [(f.name, f.type) for f in wanted]
        return bool(wanted.equals(_NUMERIC) and pa.types.is_decimal128(found) and found.scale >= 0)
    if pa.types.is_decimal128(wanted):
        return bool(
            pa.types.is_decimal128(found)
            and found.scale == wanted.scale
            and found.precision <= wanted.precision
        )
    return False


def _of_one_scale(column: Any) -> Any:
    """Return decimals of one scale as ``numeric``: the same 128-bit numbers, read as unscaled ones."""
    column = one_chunk(column)
    null = column.is_null()
    unscaled = pa.Array.from_buffers(
        pa.decimal128(MAX_DIGITS, 0), len(column), column.buffers(), offset=column.offset
    )
    scales = pc.if_else(null, pa.scalar(None, pa.int32()), pa.scalar(column.type.scale, pa.int32()))
    return pa.StructArray.from_arrays([unscaled, scales], fields=list(_NUMERIC), mask=null)


# -- lists of several dimensions -------------------------------------------------------------------


def _is_nested(value: Any, element: PhysicalType) -> bool:
    """Return whether an item of a list value is itself a dimension (elements may be tuples too)."""
    if type(value) is not tuple:
        return False
    if element.kind in ("interval", "timetz"):
        return not value or type(value[0]) is not int
    return True


def flatten_list(value: tuple[Any, ...], element: PhysicalType) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return (sizes of the dimensions, elements in row-major order); an empty array has no dimension."""
    if not value:
        return (), ()
    dims = [len(value)]
    while _is_nested(value[0], element):
        for inner in value[1:]:
            if not _is_nested(inner, element) or len(inner) != len(value[0]):
                raise ValueError("a multidimensional array must be rectangular")
        dims.append(len(value[0]))
        value = tuple([v for inner in value for v in inner])
    return tuple(dims), value


def nested(elements: Sequence[Any], dims: Sequence[int]) -> tuple[Any, ...]:
    """Return flat elements nested by the sizes of their dimensions."""
    level: Sequence[Any] = elements
    for size in reversed(dims[1:]):
        level = [tuple(level[i : i + size]) for i in range(0, len(level), size)]
    return tuple(level)


def _flattened(
    value: tuple[Any, ...], element: PhysicalType
) -> Generator[None, None, tuple[tuple[int, ...], Sequence[Any]]]:
    """As ``flatten_list``, some elements between two yields where a value of several dimensions has many;
    ValueError as there.
    """
    if not value or not _is_nested(value[0], element) or len(value) * len(value[0]) <= AT_ONCE:
        return flatten_list(value, element)
    inner_sizes, _ = yield from _flattened(value[0], element)
    flat: list[Any] = []
    yielded = 0
    for inner in value:
        if not _is_nested(inner, element) or len(inner) != len(value[0]):
            raise ValueError("a multidimensional array must be rectangular")
        sizes, items = yield from _flattened(inner, element)
        if sizes != inner_sizes:
            raise ValueError("a multidimensional array must be rectangular")
        flat += items
        if len(flat) - yielded > AT_ONCE:
            yielded = len(flat)
            yield
    return (len(value), *inner_sizes), flat


def _companion(value: tuple[Any, ...], sizes: tuple[int, ...]) -> list[int] | None:
    """Return what ``c<attnum>_dims`` has beside a list."""
    if type(value) is BoundedArray:
        return [0, *sizes, *value.lows]
    return list(sizes) if len(sizes) > 1 else None


def _shape(elements: Sequence[Any], dims: Sequence[int]) -> tuple[Any, ...]:
    """Return flat elements as ``dims``, the companion, says."""
    if dims[0]:
        return nested(elements, dims)
    count = len(dims) // 2
    return bounded(nested(elements, dims[1 : 1 + count]), tuple(dims[1 + count :]))


def has_bounds(dims: Any) -> bool:
    """Return whether any list beside this companion (a column) has lower bounds other than 1."""
    return dims.null_count < len(dims) and bool(
        pc.any(pc.equal(pc.list_element(dims.drop_null(), 0), 0)).as_py()
    )


def has_bounded_rows(column: Any, type_: PhysicalType) -> bool:
    """Return whether any value of a row type in a column has an array with lower bounds other than 1 in it."""
    if type_.kind == "list" and type_.element is not None:
        return has_bounded_rows(pc.list_flatten(column), type_.element)
    if type_.kind != "tailed":
        return False
    likely = column.filter(pc.match_substring(column, ROW_MARK))
    return any(row_keeps_bounds(value.as_py()) for value in likely)


# A key orders by elements, number of dimensions, sizes, bounds. But one last size fits the number of
# elements, so that one next to it says no more than on which side of 1 the bounds are that follow; keys of
# all other lists have no bounds in them.


def key_dims(value: tuple[Any, ...], sizes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and bounds as keys have them."""
    if type(value) is not BoundedArray:
        return sizes, ()
    lows = value.lows
    return (*sizes[:-1], sizes[-1] + (1 if lows > (1,) * len(lows) else -1)), lows


def bound_by_key(dims: Sequence[int], count: int) -> int:
    """Return by how much the last size in a key of ``count`` elements is off; 0: it has no bounds."""
    return dims[-1] - count // math.prod(dims[:-1]) if dims else 0


# -- Python to Arrow -------------------------------------------------------------------------------


def _numeric_struct(values: Sequence[Decimal | None]) -> Any:
    unscaled: list[Decimal | None] = []
    scales: list[int | None] = []
    for value in values:
        if value is None:
            unscaled.append(None)
            scales.append(None)
            continue
        if is_long(value) and not fits("numeric", value):
            raise OverflowError(f"numeric value of more than {MAX_DIGITS} digits")
        sign, digits, exponent = value.as_tuple()
        if isinstance(exponent, int):
            if exponent > 0:
                digits += (0,) * exponent
                exponent = 0
            if len(digits) > MAX_DIGITS:
                raise OverflowError(f"numeric value of {len(digits)} digits; at most {MAX_DIGITS} are stored")
            unscaled.append(Decimal((sign, digits, 0)))
            scales.append(-exponent)
        else:
            unscaled.append(Decimal(0))
            scales.append(SCALE_NAN if exponent != "F" else SCALE_NEG_INF if sign else SCALE_POS_INF)
    return pa.StructArray.from_arrays(
        [pa.array(unscaled, pa.decimal128(38, 0)), pa.array(scales, pa.int32())],
        fields=list(_NUMERIC),
        mask=_mask(values),
    )


def _mask(values: Sequence[Any]) -> Any:
    return pa.array([v is None for v in values], pa.bool_())


def _struct(values: Sequence[tuple[Any, ...] | None], type_: Any) -> Any:
    children = [
        pa.array([0 if v is None else v[i] for v in values], field.type) for i, field in enumerate(type_)
    ]
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=_mask(values))


def to_arrow(values: Sequence[Any], type_: PhysicalType) -> Any:
    """Return a pyarrow array of values of one column; lists of several dimensions come out flat.

    Raises:
        OverflowError: a numeric of more than 38 digits.
        pyarrow.ArrowInvalid: a value that the type does not hold (a NaN in a ``decimal``).
    """
    kind = type_.kind
    if kind in _VIA_INT64:
        return pa.array(values, pa.int64()).view(_SIMPLE[kind])
    if kind == "date":
        return pa.array(values, pa.int32()).view(pa.date32())
    if kind == "numeric":
        return _numeric_struct(values)
    if kind == "interval" or kind == "timetz":
        return _struct(values, _SIMPLE[kind])
    if kind == "list":
        return at_once(_list_arrays_slowly(values, type_, exact=False))[0]
    if len(values) == 1 and is_huge(values[0]):
        return shared(values[0], arrow_type(type_))
    return pa.array(values, arrow_type(type_))


def _in_form(values: Sequence[Any], type_: PhysicalType) -> Any:
    """As ``to_arrow`` of numbers, in the exact form where they need it."""
    try:
        return to_arrow(values, type_)
    except (OverflowError, pa.ArrowInvalid):
        if all(value is None or fits(type_.kind, value) for value in values):
            raise
        return exact_array(type_.kind, values, lambda fitting: to_arrow(fitting, type_))


def _list_arrays_slowly(
    values: Sequence[Any], type_: PhysicalType, *, exact: bool = True
) -> Generator[None, None, tuple[Any, Any]]:
    element = type_.element
    if element is None:
        raise ValueError("a list type needs an element type")
    offsets: list[int | None] = []
    flat: Any = []
    dims: list[list[int] | None] = []
    for value in values:
        if value is None:
            offsets.append(None)
            dims.append(None)
            continue
        sizes, elements = yield from _flattened(value, element)
        offsets.append(len(flat))
        dims.append(_companion(value, sizes))
        if len(values) == 1:
            flat = elements
        elif len(elements) <= AT_ONCE:
            flat += elements
        else:
            for start in range(0, len(elements), AT_ONCE):
                flat += elements[start : start + AT_ONCE]
                yield
    offsets.append(len(flat))
    items = yield from _to_arrow_slowly(flat, element, exact=exact)
    made = pa.list_(pa.field("element", items.type))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=made)
    return lists, pa.array(dims, _DIMS)


def column_arrays(values: Sequence[Any], column: ShardColumn) -> list[Any]:
    """Return the arrays of ``column_fields(column)`` for the column's values (see ``to_arrow``), in whichever
    form they need.
    """
    return at_once(column_arrays_slowly(values, column))


def column_arrays_slowly(values: Sequence[Any], column: ShardColumn) -> Generator[None, None, list[Any]]:
    """Do what ``column_arrays`` does, some values between two yields."""
    if column.type.kind == "list":
        return list((yield from _list_arrays_slowly(values, column.type)))
    return [(yield from _to_arrow_slowly(values, column.type))]


def _to_arrow_slowly(
    values: Sequence[Any], type_: PhysicalType, *, exact: bool = True
) -> Generator[None, None, Any]:
    """Do what ``to_arrow`` does, some values between two yields: a list may have very many elements.

    ``exact``: in the exact form where the values need it.
    """
    if len(values) == 1 and type(values[0]) is str and is_huge(values[0]) and type_.kind == "text":
        return (yield from shared_slowly(values[0], arrow_type(type_)))
    make = _in_form if exact and type_.kind in _NUMBERS else to_arrow
    step = at_once_of(type_)
    if type_.kind == "numeric":
        pieces = list(pieces_of(values, step))
    else:
        pieces = [slice(start, start + step) for start in range(0, len(values), step)]
    if len(pieces) <= 1:
        return make(values, type_)
    made = []
    pause = Slice(PARTS, look=1)
    for piece in pieces:
        made.append(make(values[piece], type_))
        if pause.over():
            yield
    return pa.concat_arrays(alike(made))


def rows_to_table(spec: ShardSpec, rows: Sequence[Row], row_ids: Sequence[int], begins: Sequence[int]) -> Any:
    """Return a pyarrow.Table of ``table_schema(spec.columns)``; short rows get missing values."""
    return at_once(rows_to_table_slowly(spec, rows, row_ids, begins))


def rows_to_table_slowly(
    spec: ShardSpec, rows: Sequence[Row], row_ids: Sequence[int], begins: Sequence[int]
) -> Generator[None, None, Any]:
    """Do what ``rows_to_table`` does, some columns between two yields: each value takes about 0.1 us."""
    whole = yield from _run_to_table(spec, rows, row_ids, begins, divide=len(rows) > 1)
    if whole is not None:
        return whole
    tables = []
    for start, stop in runs_of(rows):
        tables.append(
            (yield from _run_to_table(spec, rows[start:stop], row_ids[start:stop], begins[start:stop]))
        )
    return concatenated(tables)


def _run_to_table(
    spec: ShardSpec,
    rows: Sequence[Row],
    row_ids: Sequence[int],
    begins: Sequence[int],
    *,
    divide: bool = False,
) -> Generator[None, None, Any]:
    """Return rows as a table; with ``divide`` None where one has a huge value."""
    arrays: list[Any] = []
    pause = Slice(CHUNK_COLUMNS, look=1)
    for column in spec.columns:
        if pause.over():
            yield
        if column.dropped:
            continue
        at = column.attnum - 1
        missing = column.missing_value
        values = [row[at] if at < len(row) else missing for row in rows]
        if divide and column.type.kind in _LONG and has_huge(values):
            return None
        arrays += yield from column_arrays_slowly(values, column)
    arrays.append(int64_array(row_ids))
    arrays.append(int64_array(begins))
    return table_of(arrays, table_schema(spec.columns))


def int64_array(values: Sequence[int]) -> Any:
    """Return a pyarrow int64 array; without a copy per value if ``values`` is an ``array('q')``."""
    if isinstance(values, array):
        return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values.tobytes())])
    return pa.array(values, pa.int64())


# -- Arrow to Python -------------------------------------------------------------------------------


def int64_view(column: Any) -> Any:
    """Return an integer, date, time or timestamp array as int64."""
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        return column.view(pa.int64())
    return column if column.type == pa.int64() else column.cast(pa.int64())


def int64_values(column: Any) -> array[int]:
    """Return an Arrow int64 array without NULLs as Python's."""
    values = array("q")
    if len(column):
        values.frombytes(column.buffers()[1][column.offset * 8 : (column.offset + len(column)) * 8])
    return values


def swap_big_endian(column: Any) -> Any:
    """Return a null-free int64 array as fixed_size_binary(8), most significant byte first."""
    numbers = int64_values(column)
    numbers.byteswap()
    return pa.Array.from_buffers(pa.binary(8), len(column), [None, pa.py_buffer(numbers)])


def _scaled(unscaled: Decimal, scale: int) -> Decimal:
    if scale > 0:
        return _EXACT.scaleb(unscaled, -scale)
    return unscaled if scale == 0 else _SPECIALS[scale]


def to_python(column: Any, type_: PhysicalType, dims: Any = None) -> list[Any]:
    """Return the values of a pyarrow array (not chunked); ``dims`` is a list column's companion."""
    kind = type_.kind
    if kind in _NUMBERS and is_exact(column.type):
        return exact_values(column, lambda fitting: to_python(fitting, type_))
    if kind in _VIA_INT64:
        return list(column.view(pa.int64()).to_pylist())
    if kind == "date":
        return list(column.view(pa.int32()).to_pylist())
    if kind == "numeric":
        unscaled, scales = (pc.struct_field(column, [i]).to_pylist() for i in (0, 1))
        return [None if s is None else _scaled(u, s) for u, s in zip(unscaled, scales, strict=True)]
    if kind == "interval" or kind == "timetz":
        fields = [pc.struct_field(column, [i]).to_pylist() for i in range(len(column.type))]
        return [None if v[0] is None else v for v in zip(*fields, strict=True)]
    if kind == "list":
        return _lists_to_python(column, type_, dims)
    if kind in _LONG and column.nbytes >= max(huge_values.SHARED_BYTES, len(column) << 10):
        huge_values.met = True
    return list(column.to_pylist())


def _lists_to_python(column: Any, type_: PhysicalType, dims: Any) -> list[Any]:
    element = type_.element
    if element is None:
        raise ValueError("a list type needs an element type")
    starts = column.offsets.to_pylist()
    base = starts[0] if starts else 0
    end = starts[-1] if starts else 0
    items: list[Any] = []
    step = at_once_of(element)
    for at in range(base, end, step):  # a thread holds the interpreter for one such call
        items += to_python(column.values.slice(at, min(step, end - at)), element)
    shapes = [None] * len(column) if dims is None else dims.to_pylist()
    valid = column.is_valid().to_pylist()
    out: list[Any] = []
    for i, ok in enumerate(valid):
        if not ok:
            out.append(None)
            continue
        start, stop = starts[i] - base, starts[i + 1] - base
        flat = items[start:stop] if stop - start < LONG_LIST else _tuple_of(items, start, stop)
        shape = shapes[i]
        out.append(tuple(flat) if shape is None else _shape(flat, shape))
    return out


def _tuple_of(items: list[Any], start: int, stop: int) -> tuple[Any, ...]:
    """Return ``tuple(items[start:stop])``, made of pieces: a thread lets others have the interpreter between
    two of them.
    """
    steps = range(start, stop, AT_ONCE)
    return tuple(chain.from_iterable(items[at : min(at + AT_ONCE, stop)] for at in steps))


def has_long(column: Any) -> bool:
    """Tell whether a pyarrow list array has a value of so many elements that it is made in a thread."""
    return len(column.values) > LONG_LIST and (pc.max(pc.list_value_length(column)).as_py() or 0) > LONG_LIST


def joined(tables: Sequence[Any]) -> Any:
    """Return tables of one schema as one: in one chunk each column, unless the rows are so large that a copy counts."""
    whole = concatenated(tables)
    return whole if whole.nbytes > whole.num_rows * JOINED_BYTES else whole.combine_chunks()


def one_chunk(column: Any) -> Any:
    """Return a chunked array (or array) as one array."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


class RowPlan:
    """How rows of a table with the columns ``present`` become rows of ``spec`` (padding, dropped columns)."""

    __slots__ = ("attnums", "constants", "spec", "types", "width")

    def __init__(self, spec: ShardSpec, present: Iterable[int]) -> None:
        """``attnums``: the columns to read, ascending; ``constants``: the tuple with the rest filled in."""
        have = set(present)
        self.spec = spec
        self.width = max((c.attnum for c in spec.columns), default=0)
        constants: list[Any] = [None] * self.width
        live: list[ShardColumn] = []
        for column in spec.columns:
            if column.dropped:
                continue
            if column.attnum in have:
                live.append(column)
            else:
                constants[column.attnum - 1] = column.missing_value
        self.attnums = tuple(c.attnum for c in live)
        self.types = tuple(c.type for c in live)
        self.constants = tuple(constants)


def table_rows(table: ArrowTable, plan: RowPlan) -> list[Row]:
    """Return a pyarrow.Table's rows as tuples of the plan's schema. Holds the GIL: chunk it."""
    count = table.num_rows
    names = set(table.column_names)
    columns: list[Iterable[Any]] = []
    by_attnum = dict(zip(plan.attnums, plan.types, strict=True))
    for i, constant in enumerate(plan.constants):
        type_ = by_attnum.get(i + 1)
        if type_ is None:
            columns.append([constant] * count)
            continue
        dims = None
        if type_.kind == "list" and f"c{i + 1}_dims" in names:
            dims = one_chunk(table.column(f"c{i + 1}_dims"))
        columns.append(to_python(one_chunk(table.column(f"c{i + 1}")), type_, dims))
    if not columns:
        return [()] * count
    rows: list[Row] = []
    some, rest = max(CELLS_AT_ONCE // len(columns), 1), zip(*columns, strict=True)
    while part := list(islice(rest, some)):
        rows += part
    return rows


Getter = Callable[[int], Any]


def value_getter(column: Any, type_: PhysicalType, dims: Any = None) -> Getter:
    """Return a function that reads one value of a pyarrow array, for point reads (0.1 to 0.3 us)."""
    kind = type_.kind
    if column.null_count == len(column):
        return _none  # such a column may come without buffers
    if kind in ("int16", "int32", "int64", "float32", "float64", "date") or kind in _VIA_INT64:
        return _nulls(column, _primitive_getter(column, kind))
    if kind in ("text", "bytes", "tailed"):
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            return _nulls(column, _varlen_getter(column, kind == "text"))
    elif kind == "uuid":
        return _nulls(column, _fixed_getter(column, 16))
    elif kind == "decimal" and not is_exact(column.type):
        return _nulls(column, _decimal_getter(column, type_.scale))

    def generic(i: int) -> Any:
        return to_python(column.slice(i, 1), type_, None if dims is None else dims.slice(i, 1))[0]

    return generic


def _none(_: int) -> None:
    return None


_CODES: dict[str, Any] = {
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float32": "f",
    "float64": "d",
    "date": "i",
}


def _primitive_getter(column: Any, kind: str) -> Getter:
    view = memoryview(column.buffers()[1]).cast(_CODES.get(kind, "q"))
    get: Getter = view[column.offset : column.offset + len(column)].__getitem__
    return get


def _varlen_getter(column: Any, is_text: bool) -> Getter:
    _, offset_buffer, data_buffer = column.buffers()
    offsets = memoryview(offset_buffer).cast("i")[column.offset :]
    data = memoryview(data_buffer if data_buffer is not None else b"")
    if is_text:
        return lambda i: str(data[offsets[i] : offsets[i + 1]], "utf-8")
    return lambda i: bytes(data[offsets[i] : offsets[i + 1]])


def _fixed_getter(column: Any, size: int) -> Getter:
    data = memoryview(column.buffers()[1])[column.offset * size :]
    return lambda i: bytes(data[i * size : i * size + size])


def _decimal_getter(column: Any, scale: int) -> Getter:
    data = memoryview(column.buffers()[1])[column.offset * 16 :]
    from_bytes = int.from_bytes

    def get(i: int) -> Decimal:
        return _EXACT.scaleb(Decimal(from_bytes(data[i * 16 : i * 16 + 16], "little", signed=True)), -scale)

    return get


def _nulls(column: Any, get: Getter) -> Getter:
    if not column.null_count:
        return get
    bits = memoryview(column.buffers()[0])
    offset = column.offset

    def checked(i: int) -> Any:
        at = offset + i
        return get(i) if bits[at >> 3] >> (at & 7) & 1 else None

    return checked
