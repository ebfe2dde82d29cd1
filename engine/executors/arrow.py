"""Arrow columns of results to values, and rows to Arrow for bulk writes: a thin layer over ``txn.values.columns``.

Executors hand out batches in the physical form of ``txn.base.types``; a result column's SQL type decides which physical
type that is (``engine.catalog.physical``), numeric columns excepted: an engine may answer decimal128 of any
scale where the SQL type has no typmod, so there the Arrow type itself decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.catalog.physical import physical_type
from pgwire.give_way import give_way, paced
from pgwire.long.arrays import tupled_part
from pgwire.release import release
from planner.types import SqlType
from txn.base.types import PhysicalType
from txn.values.columns import at_once_of, to_python


def result_physical_type(arrow: Any, type_: SqlType) -> PhysicalType:
    """Return the physical type of a result column, from its SQL type and what the engine answered."""
    if pa.types.is_decimal(arrow):
        return PhysicalType(kind="decimal", precision=arrow.precision, scale=arrow.scale)
    if (pa.types.is_list(arrow) or pa.types.is_large_list(arrow)) and pa.types.is_decimal(arrow.value_type):
        element = PhysicalType(
            kind="decimal", precision=arrow.value_type.precision, scale=arrow.value_type.scale
        )
        return PhysicalType(kind="list", element=element)
    return physical_type(SqlType(type_.oid, -1))


def rows_of(batch: Any, types: Sequence[SqlType]) -> list[tuple[Any, ...]]:
    """Return an Arrow batch (one column per type) as tuples in the value domain."""
    if not types:
        return [()] * int(batch.num_rows)
    columns = []
    for number, type_ in enumerate(types):
        give_way()
        column = batch.column(number)
        columns.append(_values(column, result_physical_type(column.type, type_)))
    return list(zip(*columns, strict=True))


def _values(column: Any, type_: PhysicalType) -> list[Any]:
    """Return a column's values; those of lists, one of which may have millions of elements, piece by piece."""
    if type_.kind != "list" or type_.element is None or len(column.values) <= at_once_of(type_.element):
        return to_python(column, type_)
    elements: list[Any] = []
    flat = column.flatten()  # without those of NULLs
    piece = at_once_of(type_.element)
    for start in range(0, len(flat), piece):
        elements += to_python(flat.slice(start, piece), type_.element)
        give_way()
    lists: list[Any] = []
    at = 0
    for length in paced(pc.list_value_length(column).to_pylist()):
        if length is None:
            lists.append(None)
        else:
            lists.append(tupled_part(elements, at, at + length))
            at += length
    release(elements)
    return lists
