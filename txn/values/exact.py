"""Values that a column's Arrow type has no place for, kept as text beside those that it has.

    plain form    c3  decimal128(10, 2)                        1.50          NULL   2.00
    exact form    c3  struct<v: decimal128(10, 2), x: string>  {1.50, NULL}  NULL   {NULL, 'NaN'}
    of a list     c4  list<struct<v: ..., x: string>>          the elements are, one by one

Such are NaN in ``decimal`` and numbers of more than 38 digits in ``numeric``. A table in memory, or a part,
has a column in its exact form only where a value needs it; its name is the same, so whoever reads it looks at
its type. NULL is NULL of the whole struct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.values.arrow import ArrowTable

MAX_DIGITS: Final = 38
"""What an Arrow decimal of 128 bits has."""
_PLAIN, _TEXT = "v", "x"
_SHORT_BYTES: Final = Decimal().__sizeof__()
_VALUE_BYTES: Final = 104
_LONG_COST: Final = 4
"""A byte of a long number takes so many times what one of a short one does: its digits are written out."""


def is_exact(type_: Any) -> bool:
    """Tell whether an Arrow type is an exact form, of a column that is no list."""
    return bool(
        pa.types.is_struct(type_) and type_.num_fields == 2 and [f.name for f in type_] == [_PLAIN, _TEXT]
    )


def has_exact(type_: Any) -> bool:
    """Tell whether an Arrow type is an exact form, of a list as well."""
    return is_exact(type_.value_type) if pa.types.is_list(type_) else is_exact(type_)


def exact_columns(schema: Any) -> frozenset[int]:
    """Return the attnums of the columns that a table of ``txn.values.columns.table_schema`` has in their exact form."""
    return frozenset([int(field.name[1:]) for field in schema if has_exact(field.type)])


def plain_type(type_: Any) -> Any:
    """Return the Arrow type that a form is of."""
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(plain_type(type_.value_type)))
    return type_.field(0).type if is_exact(type_) else type_


def _exact_type(plain: Any) -> Any:
    return pa.struct([pa.field(_PLAIN, plain), pa.field(_TEXT, pa.string())])


def fits(kind: str, value: Decimal) -> bool:
    """Tell whether the Arrow type of a ``decimal`` or ``numeric`` column holds a value that its declaration allows."""
    if kind == "decimal":
        return value.is_finite()
    if not value.is_finite():
        return True  # they have scales of their own (``txn.values.columns``)
    if not is_long(value):
        _, digits, exponent = value.as_tuple()
        return len(digits) + max(int(exponent), 0) <= MAX_DIGITS
    return (
        value.adjusted() < MAX_DIGITS and len(format(value, "f").replace(".", "").lstrip("-0")) <= MAX_DIGITS
    )


def is_long(value: Decimal) -> bool:
    """Tell whether a number may have more than 76 digits: ``as_tuple`` of many takes milliseconds, their text
    little.
    """
    return value.__sizeof__() > _SHORT_BYTES


def pieces_of(values: Sequence[Decimal | None], at_once: int) -> Iterator[slice]:
    """Yield slices of so many short numbers, or of as much of long ones as is the same work."""
    most = at_once * _VALUE_BYTES
    start = size = 0
    for at, value in enumerate(values):
        if value is None or not is_long(value):
            size += _VALUE_BYTES
        else:
            size += _LONG_COST * value.__sizeof__()
        if size >= most:
            yield slice(start, at + 1)
            start, size = at + 1, 0
    if start < len(values):
        yield slice(start, len(values))


def exact_array(kind: str, values: Sequence[Decimal | None], make: Callable[[list[Any]], Any]) -> Any:
    """Return values in their exact form; ``make``: what makes an array of those that fit, and NULLs."""
    texts = [None if value is None or fits(kind, value) else format(value, "f") for value in values]
    plain = make([value if text is None else None for value, text in zip(values, texts, strict=True)])
    type_ = _exact_type(plain.type)
    nulls = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays([plain, pa.array(texts, pa.string())], fields=list(type_), mask=nulls)


def exact_values(column: Any, read: Callable[[Any], list[Any]]) -> list[Any]:
    """Return the values of an array in its exact form; ``read``: what reads those that fit."""
    texts = pc.struct_field(column, [1]).to_pylist()
    return [
        value if text is None else Decimal(text)
        for value, text in zip(read(pc.struct_field(column, [0])), texts, strict=True)
    ]


# -- columns of both forms together ---------------------------------------------------------------------


def _widened(array: Any, type_: Any) -> Any:
    """Return an array (or chunks) of either form in the exact form ``type_``."""
    if array.type.equals(type_):
        return array
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([_widened(chunk, type_) for chunk in array.chunks], type_)
    if pa.types.is_list(type_):
        return _of_items(array, _widened(array.flatten(), type_.value_type), type_)
    texts = pa.nulls(len(array), pa.string())
    return pa.StructArray.from_arrays([array, texts], fields=list(type_), mask=array.is_null())


def _of_items(lists: Any, items: Any, type_: Any) -> Any:
    """Return an array of lists like ``lists`` whose elements, those of NULLs left out, are ``items``."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    valid = pa.concat_arrays([lists.is_valid(), pa.array([True])])
    offsets = pc.if_else(valid, starts, pa.scalar(None, pa.int32()))
    return pa.ListArray.from_arrays(offsets, items, type=type_)


def alike(arrays: Sequence[Any]) -> Sequence[Any]:
    """Return arrays of one column, each of either form, in one: the exact form where any has it."""
    wide = next((array.type for array in arrays if has_exact(array.type)), None)
    return arrays if wide is None else [_widened(array, wide) for array in arrays]


def concatenated(tables: Sequence[Any]) -> Any:
    """Return tables as one whose schemas differ in nothing but the forms of columns."""
    first = tables[0].schema
    if all(table.schema.equals(first) for table in tables[1:]):
        return pa.concat_tables(tables)
    wide = first
    for table in tables[1:]:
        wide = schema_of(table.columns, wide, widest=True)
    return pa.concat_tables([_in_form(table, wide) for table in tables])


def _in_form(table: ArrowTable, schema: Any) -> Any:
    columns = [
        _widened(table.column(field.name), field.type) if has_exact(field.type) else table.column(field.name)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def schema_of(arrays: Iterable[Any], schema: Any, *, widest: bool = False) -> Any:
    """Return the schema with the forms that the arrays have; ``widest``: but where the schema has the exact
    one already.

    Raises ValueError for an array of another type.
    """
    for at, (array, field) in enumerate(zip(arrays, schema, strict=True)):
        if array.type.equals(field.type) or (widest and array.type.equals(plain_type(field.type))):
            continue
        if not plain_type(array.type).equals(plain_type(field.type)):
            raise ValueError(f"column {field.name} is of {array.type}, not {field.type}")
        schema = schema.set(at, field.with_type(array.type))
    return schema


def batch_of(arrays: Sequence[Any], schema: Any) -> Any:
    """Return a record batch of the columns of ``schema``, in the forms that the arrays have."""
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(arrays, schema))


def table_of(arrays: Sequence[Any], schema: Any) -> Any:
    """Return a table of the columns of ``schema``, in the forms that the arrays have."""
    return pa.Table.from_arrays(arrays, schema=schema_of(arrays, schema))


def settled(table: ArrowTable) -> Any:
    """Return a table with columns in the exact form only where one of its values needs that. Runs in a thread."""
    for at, field in enumerate(table.schema):
        if not has_exact(field.type):
            continue
        column = table.column(at)
        items = pc.list_flatten(column) if pa.types.is_list(field.type) else column
        if pc.struct_field(items, [1]).null_count < len(items):
            continue
        plain = plain_type(field.type)
        chunks = [_narrowed(chunk, plain) for chunk in column.chunks]
        table = table.set_column(at, field.with_type(plain), pa.chunked_array(chunks, plain))
    return table


def _narrowed(array: Any, type_: Any) -> Any:
    if pa.types.is_list(type_):
        return _of_items(array, pc.struct_field(array.flatten(), [0]), type_)
    return pc.struct_field(array, [0])
