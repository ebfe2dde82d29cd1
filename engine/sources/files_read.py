"""One file of a FILES source to rows of its table: CSV and JSON lines as COPY reads them, Parquet by columns.

    bytes ──thread──> pieces ──decoder──> fields, lines ──> rows of at most SLICE_ROWS, between two turns of the loop
    Parquet ──thread──> Arrow batches ──columns by name──> rows

The first ``skip`` rows are passed over: they were committed before. Errors name file, line (row, of Parquet) and column.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.catalog.physical import physical_type
from engine.sources.options import Options
from engine.sources.rows import RowReader, located, shown
from engine.writes.storable import refusal
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy_in import CopyDecoder, CopyRows, copy_decoder
from pgwire.codecs.copy_json import JsonDecoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.typmod import typmod_function
from planner.catalog import ColumnDef, RelationDef
from planner.facts import facts
from planner.typefacts import format_type
from txn.columns import arrow_type, one_chunk, to_python
from txn.types import Row

CHUNK_BYTES: Final = 64 << 10
SLICE_ROWS: Final = 2000

Rows = AsyncGenerator[list[Row]]


def csv_options(options: Options) -> CopyOptions:
    """Return what the options of a CSV source amount to. Raises DataError 42601, 0A000, 22023 as COPY does."""
    made = CopyOptions(
        format="csv",
        header="match" if options.bool("header") else False,
        delimiter=options.text("delimiter"),
        null=options.text("null"),
        quote=options.text("quote"),
        escape=options.text("escape"),
    )
    made.check("from")
    return made


def read_file(path: Path, relation: RelationDef, options: Options, skip: int) -> Rows:
    """Yield the rows of a file behind the first ``skip``. Raises DataError with its place; OSError."""
    if options.need("format") == "parquet":
        return _parquet(path, relation, skip)
    return _lines(path, relation, options, skip)


async def _lines(path: Path, relation: RelationDef, options: Options, skip: int) -> Rows:
    reader = RowReader(relation, [c.attnum for c in relation.live])
    decoder = _decoder(relation, options)
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while True:
            data = await asyncio.to_thread(file.read, CHUNK_BYTES)
            try:
                decoded = decoder.feed(data) if data else decoder.finish()
            except DataError as error:
                raise _placed(error, path, relation) from None
            skipped = min(skip, len(decoded.rows))
            skip -= skipped
            for start in range(skipped, len(decoded.rows), SLICE_ROWS):
                yield _rows(reader, decoded, start, path)
                await asyncio.sleep(0)
            if not data:
                return
    finally:
        await asyncio.to_thread(file.close)


def _decoder(relation: RelationDef, options: Options) -> CopyDecoder:
    names = [c.name for c in relation.live]
    if options.need("format") == "csv":
        return copy_decoder(csv_options(options), relation.name, names)
    types = facts().types
    arrays = frozenset(
        i for i, c in enumerate(relation.live) if c.type.oid in types and types[c.type.oid].category == "A"
    )
    return JsonDecoder(CopyOptions(), relation.name, names, arrays)


def _placed(error: DataError, path: Path, relation: RelationDef) -> DataError:
    """Say ``file "/in/a.csv", line 3`` where COPY says ``COPY t, line 3``."""
    said = f"COPY {relation.name}, "
    place = f'file "{path}"'
    where = error.where or ""
    error.where = f"{place}, {where[len(said) :]}" if where.startswith(said) else f"{place}\n{where}".rstrip()
    return error


def _rows(reader: RowReader, decoded: CopyRows, start: int, path: Path) -> list[Row]:
    lines = decoded.lines

    def where(index: int, column: str | None, text: str | None) -> str:
        place = f'file "{path}", line {lines[start + index]}'
        return place if column is None else f'{place}, column {column}: "{shown(text or "")}"'

    return reader.rows(decoded.rows[start : start + SLICE_ROWS], where)


# --- Parquet --------------------------------------------------------------------------------------


async def _parquet(path: Path, relation: RelationDef, skip: int) -> Rows:
    """Columns are found by their names, in any order; each of the table's has to be there, and no other."""
    try:
        file = await asyncio.to_thread(pq.ParquetFile, path)
    except pa.ArrowInvalid as error:
        raise DataError("22P04", "not a Parquet file", detail=f"{error}.", where=f'file "{path}"') from None
    try:
        makers = _makers(file.schema_arrow, relation, path)
        batches = file.iter_batches(batch_size=SLICE_ROWS)
        checker = RowReader(relation, ())
        done = 0
        while True:
            batch = await asyncio.to_thread(_next, batches, path)
            if batch is None:
                return
            first = max(skip - done, 0)
            done += batch.num_rows
            if first >= batch.num_rows:
                continue
            rows = _parquet_rows(batch.slice(first), makers, checker, done - batch.num_rows + first, path)
            yield rows
            await asyncio.sleep(0)
    finally:
        await asyncio.to_thread(file.close)


def _next(batches: Any, path: Path) -> Any:
    try:
        return next(batches, None)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            "22P04", "the Parquet file is damaged", detail=f"{error}.", where=f'file "{path}"'
        ) from None


def _makers(
    schema: Any, relation: RelationDef, path: Path
) -> list[tuple[ColumnDef, Callable[[Any], list[Any]]]]:
    where = f'file "{path}"'
    names = set(schema.names)
    wanted = {c.name for c in relation.live}
    if len(names) < len(schema.names):
        raise DataError("42701", "a column is in the file more than once", where=where)
    for name in sorted(names - wanted):
        raise DataError("22P04", f'column "{name}" of the file is no column of the table', where=where)
    makers = []
    for column in relation.live:
        if column.name not in names:
            raise DataError("22P04", f'the file has no column "{column.name}"', where=where)
        made = _maker(schema.field(column.name).type, column)
        if made is None:
            raise DataError(
                "42804",
                f'column "{column.name}" is of type {format_type(column.type.oid)} but is '
                f"{schema.field(column.name).type} in the file",
                where=where,
            )
        makers.append((column, made))
    return makers


def _maker(arrow: Any, column: ColumnDef) -> Callable[[Any], list[Any]] | None:
    """Return the function from an Arrow column of the file to values, None where the types do not go together."""
    types = pa.types
    if types.is_dictionary(arrow):
        arrow = arrow.value_type
    if types.is_string(arrow) or types.is_large_string(arrow):
        [read] = RowReader(_only(column), (1,)).readers
        return lambda cells: [None if v is None else read(v) for v in cells.cast(pa.string()).to_pylist()]
    physical = physical_type(column.type)
    kind = physical.kind
    number = types.is_integer(arrow) or types.is_decimal(arrow)
    fits = {
        "bool": types.is_boolean(arrow),
        "int16": types.is_integer(arrow), "int32": types.is_integer(arrow), "int64": types.is_integer(arrow),
        "float32": types.is_floating(arrow), "float64": types.is_floating(arrow) or types.is_integer(arrow),
        "decimal": number, "numeric": number, "date": types.is_date(arrow),
        "bytes": types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow),
        "timestamp": types.is_timestamp(arrow) and arrow.tz is None,
        "timestamptz": types.is_timestamp(arrow) and arrow.tz is not None,
    }.get(kind, False)  # fmt: skip
    if not fits:
        return None
    coerce = typmod_function(column.type.oid, column.type.typmod)
    refuse = refusal(column)

    def make(cells: Any) -> list[Any]:
        if kind == "numeric":
            values = [None if v is None else Decimal(v) for v in cells.to_pylist()]
        else:
            values = to_python(one_chunk(cells.cast(arrow_type(physical), safe=True)), physical)
        if coerce is not None:
            values = [None if v is None else coerce(v) for v in values]
        if refuse is not None:
            for value in values:
                refuse(value)
        return values

    return make


def _only(column: ColumnDef) -> RelationDef:
    """Return a relation of one column, for its reader."""
    alone = ColumnDef(attnum=1, name=column.name, type=column.type)
    return RelationDef(oid=0, schema_oid=0, schema="", name="", kind="r", columns=(alone,))


def _parquet_rows(
    batch: Any,
    makers: Sequence[tuple[ColumnDef, Callable[[Any], list[Any]]]],
    checker: RowReader,
    first: int,
    path: Path,
) -> list[Row]:
    columns: list[Sequence[Any]] = [(None,) * batch.num_rows] * checker.width
    for column, make in makers:
        try:
            columns[column.attnum - 1] = make(batch.column(batch.schema.get_field_index(column.name)))
        except (DataError, pa.ArrowInvalid) as error:
            raise _first_wrong(error, batch, column, make, first, path) from None
    rows: list[Row] = list(zip(*columns, strict=True))
    checker.check(rows, lambda index, *_: f'file "{path}", row {first + index + 1}')
    return rows


def _first_wrong(
    error: Exception, batch: Any, column: ColumnDef, make: Callable[[Any], Any], first: int, path: Path
) -> DataError:
    """Find the row whose value does not fit, and return its error."""
    cells = batch.column(batch.schema.get_field_index(column.name))
    for index in range(batch.num_rows):
        try:
            make(cells.slice(index, 1))
        except (DataError, pa.ArrowInvalid) as found:
            value = shown(str(cells[index].as_py()))
            where = f'file "{path}", row {first + index + 1}, column {column.name}: "{value}"'
            if isinstance(found, DataError):
                return located(found, where)
            return DataError(
                "22003", f"value is out of range for type {format_type(column.type.oid)}", where=where
            )
    raise error
