"""One split of a Parquet file -> Arrow batches of a table.

    columns of the file, by name ──same form, or widened──> columns of the table
                                 └──anything else──> texts ──> as the rows of a text file (``RowLoader``)

Strings are read as COPY reads fields: any type has a text form. Other types go only to columns that
PostgreSQL would assign them to without loss of kind (an integer to a numeric column, not to a date); what a
value is, its text says. Lines in errors are rows of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.base.server_files import file_error
from engine.base.stored_objects import open_parquet, says_store
from engine.catalog.physical import shard_column
from engine.changes.bulk.splits import Split
from engine.changes.writes.copy_bulk import BatchMaker, row_batches
from engine.changes.writes.copy_conditions import Conditions
from engine.changes.writes.copy_rows import RowLoader
from pgwire.codecs.copy.columns import column_reader
from pgwire.codecs.copy.lines import CopyRows
from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import DEFAULT
from planner.base.errors import SqlError
from planner.catalog import ColumnDef
from planner.facts import BYTEA, DATE, JSON, JSONB, TIME, TIMESTAMP, TIMESTAMPTZ, UUID, facts
from txn.base.types import ShardColumn
from txn.values.columns import arrow_type

BATCH_ROWS: Final = 16_384
_NUMBERS: Final = frozenset(("float32", "float64", "decimal", "numeric"))
_INTEGERS: Final = frozenset(("int16", "int32", "int64"))


class ParquetRows:
    """Reads splits of Parquet files for one load."""

    def __init__(self, loader: RowLoader, split: Split, batch_rows: int = BATCH_ROWS) -> None:
        """Prepare for one split; ``batches`` reads it."""
        self._batch_rows = batch_rows
        self._loader = loader
        self._split = split
        columns = [shard_column(c) for c in loader.relation.stored_columns]
        self._columns = columns
        self._maker = BatchMaker(loader, columns)
        self._by_attnum = {column.attnum: column for column in columns}
        self._by_row = loader.by_row and not Conditions.serves(loader.spec)

    def batches(self) -> Iterator[Any]:
        """Yield the split's rows.

        Raises:
            SqlError: 42703 for a column that is missing or one too many, 42804 for one of a type that does
            not go there,
                22P04 for a damaged file, 58P01 and others for one that cannot be read.
            DataError: of the first bad row.
        """
        split = self._split
        try:
            with pq.ParquetFile(open_parquet(split.path), pre_buffer=not isinstance(split.path, str)) as file:
                names = self._checked(file.schema_arrow)
                line = split.line
                for batch in file.iter_batches(
                    self._batch_rows,
                    row_groups=list(range(split.start, split.end)),
                    columns=names,
                    use_threads=False,
                ):
                    yield from self._table_batches(batch.select(names), line)
                    line += batch.num_rows
        except pa.ArrowException as error:
            raise SqlError(
                "22P04", f'file "{split.name}" is damaged', detail=str(error).strip().splitlines()[0]
            ) from None
        except OSError as error:
            if error.errno is None and not says_store(split.path, error):
                raise SqlError(
                    "22P04", f'file "{split.name}" is damaged', detail=str(error).strip()
                ) from None
            raise file_error(error, split.name, "reading") from None

    def _checked(self, schema: Any) -> list[str]:
        """Return the names of the copied columns, once it is known that the file has them in types that fit."""
        relation, name = self._loader.relation, self._split.name
        wanted = [column.name for column in self._loader.targets]
        for column in self._loader.targets:
            places = schema.get_all_field_indices(column.name)
            if len(places) != 1:
                what = "no column" if not places else "several columns named"
                raise SqlError("42703", f'file "{name}" has {what} "{column.name}"')
            type_ = schema.field(places[0]).type
            if not fits(type_, self._by_attnum[column.attnum], column):
                raise SqlError(
                    "42804",
                    f'column "{column.name}" of file "{name}" has type {type_}, which does not go to a column of '
                    f"type {facts().types[column.type.oid].name}",
                )
        if len(wanted) == len(relation.live):
            for found in schema.names:
                if found not in wanted:
                    raise SqlError(
                        "42703",
                        f'column "{found}" of file "{name}" is not a column of relation "{relation.name}"',
                        hint="With a list of columns, COPY takes these and leaves the others alone.",
                    )
        return wanted

    def _table_batches(self, batch: Any, line: int) -> Iterator[Any]:
        made = None if self._by_row else self._by_column(batch)
        watch = self._loader.watch
        if made is not None and (watch is None or not watch.in_batch(made)):
            yield made
            return
        numbers = range(line + 1, line + 1 + batch.num_rows)
        texts = [
            texts_of(array, target.type.oid)
            for target, array in zip(self._loader.targets, batch.columns, strict=True)
        ]
        rows: list[list[Any]] = (
            [list(row) for row in zip(*texts, strict=True)] if texts else [[]] * len(numbers)
        )
        yield from row_batches(self._columns, self._loader.rows(CopyRows(rows, numbers)))

    def _by_column(self, batch: Any) -> Any:
        """Return a batch of the table, None if the careful path has to look."""
        read = self._converted(batch)
        if read is None:
            return None
        rows = batch.num_rows
        if not self._maker.early:
            for _ in self._maker.add_defaults(rows, read):
                pass
            return self._maker.batch(rows, read)
        kept = self._maker.finish(rows, read)
        made = None if kept is None else self._maker.batch(*kept)
        if kept is not None and made is not None:
            self._maker.leave_out(rows - kept[0])
        return made

    def _converted(self, batch: Any) -> dict[str, Any] | None:
        """Return the columns in the table's form, None if there is one with values that need a closer look."""
        read: dict[str, Any] = {}
        for target, array in zip(self._loader.targets, batch.columns, strict=True):
            if pa.types.is_null(array.type):
                continue
            made = converted(array, self._by_attnum[target.attnum], target, self._loader)
            if made is None:
                return None
            read[f"c{target.attnum}"] = made
        return read


def fits(type_: Any, column: ShardColumn, definition: ColumnDef) -> bool:
    """Return whether values of an Arrow type go to a column at all."""
    t, kind = pa.types, column.type.kind
    if t.is_dictionary(type_):
        type_ = type_.value_type
    if t.is_null(type_) or _is_string(type_):
        return True
    if t.is_integer(type_):
        return kind in _INTEGERS or kind in _NUMBERS
    if t.is_floating(type_) or t.is_decimal(type_):
        return kind in _NUMBERS
    if t.is_boolean(type_):
        return kind == "bool"
    if t.is_date(type_):
        return kind == "date"
    if t.is_timestamp(type_):
        return kind == ("timestamp" if type_.tz is None else "timestamptz")
    if t.is_time(type_):
        return kind == "time"
    if t.is_fixed_size_binary(type_):
        return definition.type.oid == BYTEA or (kind == "uuid" and type_.byte_width == 16)
    if t.is_binary(type_) or t.is_large_binary(type_):
        return definition.type.oid == BYTEA
    if t.is_list(type_) or t.is_large_list(type_) or t.is_fixed_size_list(type_):
        return kind == "list" or definition.type.oid in (JSON, JSONB)
    nested: bool = t.is_struct(type_) or t.is_map(type_)
    return nested and definition.type.oid in (JSON, JSONB)


def _is_string(type_: Any) -> bool:
    found: bool = (
        pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    )
    return found


def converted(array: Any, column: ShardColumn, definition: ColumnDef, loader: RowLoader) -> Any:
    """Return a column's values in the table's form where that is the same for all, else None."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = column.type.kind
    if _is_string(array.type):
        reader = column_reader(definition.type.oid, definition.type.typmod, loader.settings)
        return None if reader is None else reader(array.cast(pa.string()))
    if kind in ("list", "numeric", "text"):
        return None
    wanted = arrow_type(column.type)
    if definition.type.typmod >= 0 and kind in ("time", "timestamp", "timestamptz"):
        return None  # rounded to fewer digits
    try:
        made = array if array.type == wanted else pc.cast(array, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if kind == "float32" and array.type != wanted and not _same_infinities(array, made):
        return None
    return made


def _same_infinities(before: Any, after: Any) -> bool:
    """Return whether nothing became infinite, or zero, that was not."""
    for test in (pc.is_inf, lambda values: pc.equal(values, pa.scalar(0, values.type))):
        if not test(before.cast(pa.float64())).equals(test(after)):
            return False
    return True


# -- texts ---------------------------------------------------------------------------------------------


def texts_of(array: Any, wanted: int) -> list[str | None]:
    """Return values as the type ``wanted`` reads them."""
    t = pa.types
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    numbers: Any = None
    if t.is_timestamp(array.type):
        # finer digits than microseconds are cut off
        numbers = array.cast(pa.timestamp("us", tz=array.type.tz), safe=False).view(pa.int64())
        oid = TIMESTAMP if array.type.tz is None else TIMESTAMPTZ
    elif t.is_date(array.type):
        numbers, oid = array.cast(pa.date32()).view(pa.int32()), DATE
    elif t.is_time(array.type):
        numbers, oid = array.cast(pa.time64("us"), safe=False).view(pa.int64()), TIME
    if numbers is not None:
        return [None if value is None else text_output(oid, value, DEFAULT) for value in numbers.to_pylist()]
    show = _show
    if wanted in (JSON, JSONB) and t.is_nested(array.type):
        show = _json
    elif wanted == UUID and t.is_fixed_size_binary(array.type):
        show = _hex
    return [None if value is None else show(value) for value in array.to_pylist()]


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, date | time):
        return value.isoformat()
    return repr(value)


def _hex(value: bytes) -> str:
    return value.hex()


def _list(values: Sequence[Any]) -> str:
    items = []
    for value in values:
        if value is None:
            items.append("NULL")
        elif isinstance(value, list):
            items.append(_list(value))
        else:
            items.append('"' + _show(value).replace("\\", "\\\\").replace('"', '\\"') + '"')
    return "{" + ",".join(items) + "}"


def _json(value: Any) -> str:
    return json.dumps(value, default=_show, ensure_ascii=False)
