"""Rows as Arrow batches of the columns of their table, for what is written as parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pyarrow as pa

from engine.base.pieces import cut_rows
from engine.base.slices import given_way
from engine.catalog.physical import shard_column
from pgwire.codecs.sizes import Measure, measure_of
from pgwire.give_way import give_way, openly
from planner.catalog import RelationDef
from txn.base.types import Row, ShardColumn
from txn.values.columns import column_arrays_slowly, column_fields
from txn.values.exact import batch_of


async def batches_of(relation: RelationDef, rows: Sequence[Row]) -> AsyncIterator[Any]:
    """Yield rows as Arrow batches of the table's live columns."""
    columns = [shard_column(column) for column in relation.stored_columns]
    schema = pa.schema([field for column in columns for field in column_fields(column)])
    for some, _long in cut_rows(rows, row_measure(relation)):
        arrays = openly(_arrays, columns, some)
        del some
        yield batch_of(arrays, schema)
        del arrays
        await asyncio.sleep(0)


def _arrays(columns: Sequence[ShardColumn], rows: Sequence[Row]) -> list[Any]:
    made: list[Any] = []
    for column in columns:
        made += given_way(column_arrays_slowly([row[column.attnum - 1] for row in rows], column))
        give_way()
    return made


def row_measure(relation: RelationDef) -> Measure | None:
    """Return what measures a table's rows; None where none of them can be large."""
    return measure_of([column.type.oid for column in relation.columns])
