"""Rows of a result -> the bytes of a file, in every format of COPY TO. Pure but for the file that is written.

    text, csv, binary   PostgreSQL's (``pgwire.codecs.copy.writing``)
    json                one object a line, each value as row_to_json makes it
    parquet             columns under their names, in Arrow's types where these say the same; else as text

A ``Sheet`` is all that writing takes, as values: it can be sent to another process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pgwire.codecs import domain
from pgwire.codecs.columnar import text_column, values_of
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.writing import (
    CopyEncoder,
    copy_batch_encoder,
    copy_header,
    copy_long_row,
    copy_row_encoder,
    copy_trailer,
)
from pgwire.codecs.errors import DataError
from pgwire.codecs.long_rows import LongRow, byte_pieces, framed_parts
from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text.encodings import encoding
from pgwire.codecs.typmod import numeric_limits
from planner.base.errors import SqlError
from planner.functions.json.values import quote, to_json
from planner.functions.session import EvalSession
from planner.functions.system.reg_output import named_output
from planner.functions.values.reg import NAMED
from planner.query import OutputColumn

PARQUET_GROUP_ROWS: Final = 1 << 17
MAX_DIGITS: Final = 38

_NATIVE: Final[dict[int, tuple[Any, Any]]] = {
    domain.BOOL: (pa.bool_(), pa.bool_()),
    domain.INT2: (pa.int16(), pa.int16()),
    domain.INT4: (pa.int32(), pa.int32()),
    domain.INT8: (pa.int64(), pa.int64()),
    domain.FLOAT4: (pa.float32(), pa.float32()),
    domain.FLOAT8: (pa.float64(), pa.float64()),
    domain.BYTEA: (pa.binary(), pa.binary()),
    domain.DATE: (pa.int32(), pa.date32()),
    domain.TIME: (pa.int64(), pa.time64("us")),
    domain.TIMESTAMP: (pa.int64(), pa.timestamp("us")),
    domain.TIMESTAMPTZ: (pa.int64(), pa.timestamp("us", tz="UTC")),
}
"""Types that Parquet files have as such: the Arrow type of their values, and the one that is written."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a file is made of: the names and types of its columns, and how they are written."""

    names: tuple[str, ...]
    oids: tuple[int, ...]
    typmods: tuple[int, ...]
    options: CopyOptions
    settings: CodecSettings

    @classmethod
    def of(cls, columns: Sequence[OutputColumn], options: CopyOptions, settings: CodecSettings) -> Sheet:
        """Return that of a result.

        Raises SqlError 42701 for a Parquet file with two columns of one name.
        """
        names = tuple(c.name for c in columns)
        if options.format == "parquet":
            for name in names:
                if names.count(name) > 1:
                    raise SqlError("42701", f'column name "{name}" occurs more than once')
        oids, typmods = tuple(c.type.oid for c in columns), tuple(c.type.typmod for c in columns)
        settings = replace(settings, encoding=options.text_encoding(settings.encoding))
        return cls(names, oids, typmods, options, settings)

    @property
    def portable(self) -> bool:
        """Whether values print without a session's catalog."""
        return NAMED.isdisjoint(self.oids)

    @property
    def suffix(self) -> str:
        """What names of files end with."""
        return {"text": ".txt", "binary": ".bin"}.get(self.options.format, "." + self.options.format)


class _Settings:
    """The session as ``to_json`` sees it: its settings."""

    def __init__(self, settings: CodecSettings) -> None:
        self.codec_settings = settings


def json_encoder(sheet: Sheet, session: EvalSession | None = None, *, framed: bool = False) -> CopyEncoder:
    """Return the function from rows of values to (lines of JSON, their number).

    ``session``: for types that print with the catalog. ``framed``: each line as a CopyData message.
    """
    keys = [quote(name) + ":" for name in sheet.names]
    knows = cast(EvalSession, session if session is not None else _Settings(sheet.settings))
    oids = sheet.oids

    to = encoding(sheet.settings.encoding).encode

    def line(row: tuple[Any, ...]) -> bytes:
        cells = [key + to_json(value, oid, knows) for key, value, oid in zip(keys, row, oids, strict=True)]
        return to("{" + ",".join(cells) + "}\n")

    def encode(rows: Sequence[tuple[Any, ...]]) -> tuple[bytes, int]:
        lines = [line(row) for row in rows]
        if framed:
            lines = [b"d" + (len(data) + 4).to_bytes(4, "big") + data for data in lines]
        return b"".join(lines), len(lines)

    return encode


def encoders(
    sheet: Sheet, session: EvalSession | None = None, *, framed: bool = False
) -> tuple[CopyEncoder, Callable[[Any], tuple[Any, int]]]:
    """Return what encodes rows, and what encodes Arrow batches, in any format but Parquet."""
    if sheet.options.format in ("text", "csv") and session is not None and not sheet.portable:
        return _naming_encoders(sheet, session, framed=framed)
    if sheet.options.format != "json":
        rows = copy_row_encoder(sheet.oids, sheet.options, sheet.settings, framed=framed)
        return rows, copy_batch_encoder(sheet.oids, sheet.options, sheet.settings, framed=framed)
    encode = json_encoder(sheet, session, framed=framed)

    def encode_batch(batch: Any) -> tuple[Any, int]:
        columns = [values_of(column) for column in batch.columns]
        return encode(list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows)

    return encode, encode_batch


def long_row_encoder(sheet: Sheet, session: EvalSession | None = None) -> LongRow:
    """Return what encodes one long row, in pieces of a CopyData message, in any format but Parquet."""
    if sheet.options.format == "json":
        encode = json_encoder(sheet, session)
        return lambda row: framed_parts(b"d", [partial(byte_pieces, encode([row])[0])])
    if sheet.options.format == "binary" or session is None or sheet.portable:
        return copy_long_row(sheet.oids, sheet.options, sheet.settings)
    oids = tuple(domain.TEXT if oid in NAMED else oid for oid in sheet.oids)
    long_row = copy_long_row(oids, sheet.options, sheet.settings)
    return lambda row: long_row(_with_names(row, sheet, session))


def _with_names(row: tuple[Any, ...], sheet: Sheet, session: EvalSession) -> tuple[Any, ...]:
    """Return a row whose oids of objects are their names."""
    return tuple(
        named_output(session, oid, value) if oid in NAMED and value is not None else value
        for oid, value in zip(sheet.oids, row, strict=True)
    )


def _naming_encoders(
    sheet: Sheet, session: EvalSession, *, framed: bool
) -> tuple[CopyEncoder, Callable[[Any], tuple[Any, int]]]:
    """As ``encoders``, where values of some columns print as names of objects in the catalog."""
    oids = tuple(domain.TEXT if oid in NAMED else oid for oid in sheet.oids)
    encode = copy_row_encoder(oids, sheet.options, sheet.settings, framed=framed)

    def encode_rows(rows: Sequence[tuple[Any, ...]]) -> tuple[bytes, int]:
        return encode([_with_names(row, sheet, session) for row in rows])

    def encode_batch(batch: Any) -> tuple[Any, int]:
        columns = [values_of(column) for column in batch.columns]
        return encode_rows(list(zip(*columns, strict=True)))

    return encode_rows, encode_batch


def header_of(sheet: Sheet) -> bytes:
    """Return what precedes the rows."""
    return (
        b""
        if sheet.options.format in ("json", "parquet")
        else copy_header(sheet.options, sheet.names, sheet.settings)
    )


# -- Parquet -------------------------------------------------------------------------------------------


def parquet_schema(sheet: Sheet) -> Any:
    """Return the columns of a Parquet file: it depends on nothing but the types of the result."""
    fields = []
    for name, oid, typmod in zip(sheet.names, sheet.oids, sheet.typmods, strict=True):
        fields.append(pa.field(name, _parquet_type(oid, typmod)))
    return pa.schema(fields)


def _parquet_type(oid: int, typmod: int) -> Any:
    if oid == domain.NUMERIC and typmod >= 0:
        precision, scale = numeric_limits(typmod)
        if 0 <= scale <= precision <= MAX_DIGITS:
            return pa.decimal128(precision, scale)
    native = _NATIVE.get(oid)
    return pa.string() if native is None else native[1]


def parquet_batch(sheet: Sheet, schema: Any, batch: Any) -> Any:
    """Return an Arrow batch of a result as it is written. Raises DataError 22003 for NaN in numeric(p, s)."""
    arrays = []
    for oid, field, column in zip(sheet.oids, schema, batch.columns, strict=True):
        try:
            if oid == domain.NUMERIC and pa.types.is_struct(column.type):
                arrays.append(_from_values(sheet, oid, field, values_of(column)))
            elif pa.types.is_string(field.type):
                arrays.append(text_column(column, oid, sheet.settings).cast(pa.string()))
            else:
                arrays.append(column.cast(field.type))
        except pa.ArrowInvalid:
            raise _not_held(field) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def parquet_rows(sheet: Sheet, schema: Any, rows: Sequence[tuple[Any, ...]]) -> Any:
    """Return rows of values as they are written. Raises DataError 22003 for NaN in numeric(p, s)."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(sheet.oids)
    arrays = [
        _from_values(sheet, oid, field, values)
        for oid, field, values in zip(sheet.oids, schema, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _from_values(sheet: Sheet, oid: int, field: Any, values: Sequence[Any]) -> Any:
    if pa.types.is_string(field.type):
        texts = [None if v is None else text_output(oid, v, sheet.settings) for v in values]
        return pa.array(texts, pa.string())
    try:
        if pa.types.is_decimal(field.type):
            return pa.array(values, field.type)
        held, written = _NATIVE[oid]
        array = pa.array(values, held)
        return array if held == written else array.view(written)
    except pa.ArrowInvalid:
        raise _not_held(field) from None


def _not_held(field: Any) -> DataError:
    """Return the error for a value that the type of a file's column does not have, which depends on no value."""
    detail = hint = None
    if pa.types.is_decimal(field.type):
        detail = f"Parquet's decimal({field.type.precision},{field.type.scale}) has no NaN."
        hint = "Cast the column to numeric without a precision, which is written as text."
    return DataError(
        "22003", f'a value of column "{field.name}" does not go to a Parquet file', detail=detail, hint=hint
    )


# -- files ---------------------------------------------------------------------------------------------


class Sink:
    """One file being written: give it batches, then ``close`` it. Blocks."""

    def __init__(self, file: BinaryIO, sheet: Sheet, session: EvalSession | None = None) -> None:
        """Write to ``file``, which stays open. ``session``: for types that print with the catalog."""
        self._file = file
        self._sheet = sheet
        self._parquet: Any = None
        self.rows = 0
        if sheet.options.format == "parquet":
            self._schema = parquet_schema(sheet)
            sink: Any = pa.PythonFile(_Unclosed(file), mode="w")
            self._parquet = pq.ParquetWriter(sink, self._schema, compression="zstd")
            return
        self._rows, self._batches = encoders(sheet, session)
        file.write(header_of(sheet))

    def write(self, rows: Sequence[tuple[Any, ...]] | None, batch: Any) -> None:
        """Add rows of values, or (``rows`` None) an Arrow batch. Raises DataError for values that do not print."""
        if self._parquet is not None:
            made = parquet_batch(self._sheet, self._schema, batch) if rows is None else parquet_rows(
                self._sheet, self._schema, rows
            )  # fmt: skip
            self._parquet.write_batch(made, row_group_size=PARQUET_GROUP_ROWS)
            self.rows += made.num_rows
            return
        data, count = self._batches(batch) if rows is None else self._rows(rows)
        self._file.write(data)
        self.rows += count

    def close(self) -> None:
        """Write what ends the file."""
        if self._parquet is not None:
            self._parquet.close()
        else:
            self._file.write(copy_trailer(self._sheet.options))


class _Unclosed:
    """A file that Arrow may close as it likes."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        return

    def close(self) -> None:
        return


def write_file(path: str, sheet: Sheet, batches: Iterable[Any]) -> tuple[int, int]:
    """Write a new file of Arrow batches, durably; return how many rows and bytes it has. FileExistsError."""
    with open(path, "xb", buffering=1 << 20) as file:
        sink = Sink(file, sheet)
        for batch in batches:
            sink.write(None, batch)
        sink.close()
        file.flush()
        os.fsync(file.fileno())
        return sink.rows, file.tell()
