"""Rows to the wire: field descriptions and encoders, cached with the plan.

    output columns, formats asked for ──encoder_of──> Encoder ──batch by batch──> bytes of DataRows ──> Responder

Tuples are encoded by the types' codecs, Arrow batches by columns (``pgwire.codecs.columnar``), large ones in a
thread, so that nobody else waits for them.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any

from engine.connection.portal import RowReader
from engine.connection.rows import RowBatch, RowTuple
from engine.connection.session import Session
from engine.reads.plans import Plan
from pgwire.backend import FieldDescription, Responder
from pgwire.codecs.columnar import batch_encoder
from pgwire.codecs.encodings import UTF8, encoding
from pgwire.codecs.registry import binary_decoder, text_decoder, type_size
from pgwire.codecs.rows import row_encoder
from pgwire.codecs.settings import CodecSettings
from planner.builtins.reg import NAMED, named_input, named_output
from planner.errors import SqlError
from planner.facts import INT2, INT4, INT8, TEXT
from planner.query import OutputColumn
from planner.types import SqlType

MAX_ENCODERS = 8  # kept per plan
THREAD_ROWS = 1000  # Arrow batches from here on are encoded in a thread: they would hold up the loop


class Encoder:
    """Encodes batches of one result shape in one set of formats.

    Columns of reg* types and arrays of them (oids that print as names, by the session's catalog and search path)
    become texts first.
    """

    __slots__ = ("_columnar", "_named", "_shape", "rows", "shareable")

    def __init__(self, oids: tuple[int, ...], formats: tuple[int, ...], session: Session) -> None:
        """Prepare for ``oids`` in ``formats`` under the session's settings."""
        settings = session.output_settings
        named = [(i, oid) for i, oid in enumerate(oids) if oid in NAMED and not formats[i]]
        self._named: Callable[[Any], Sequence[RowTuple]] | None = (
            None  # rows of an Arrow batch whose oids print as names
        )
        if named:
            columns = tuple(OutputColumn(name="", type=SqlType(oid)) for oid in oids)
            self._named = functools.partial(session.db.arrow_rows, columns=columns)
            oids = tuple(TEXT if (i, oid) in named else oid for i, oid in enumerate(oids))
        self.rows: Callable[[Sequence[RowTuple]], tuple[bytearray, int]] = row_encoder(
            oids, formats, settings
        )
        self.shareable = not named
        if named:
            self.rows = _naming(self.rows, named, session)
        self._columnar: Callable[[Any], tuple[bytes, int]] | None = None
        self._shape = (oids, formats, settings)

    def batch(self, batch: RowBatch) -> tuple[Any, int]:
        """Return framed DataRow messages of a batch and their number."""
        if batch.rows is not None:
            return self.rows(batch.rows)
        if self._named is not None:
            return self.rows(self._named(batch.arrow))
        if self._columnar is None:
            self._columnar = batch_encoder(*self._shape)
        return self._columnar(batch.arrow)


def _naming(
    encode: Callable[[Sequence[RowTuple]], tuple[bytearray, int]],
    named: list[tuple[int, int]],
    session: Session,
) -> Callable[[Sequence[RowTuple]], tuple[bytearray, int]]:
    def rows(batch: Sequence[RowTuple]) -> tuple[bytearray, int]:
        out = []
        for row in batch:
            cells = list(row)
            for i, oid in named:
                if cells[i] is not None:
                    cells[i] = named_output(session, oid, cells[i])
            out.append(tuple(cells))
        return encode(out)

    return rows


def expand_formats(formats: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Return one format code per column (manual 55.2.3: none = all text, one = all the same)."""
    if not formats:
        return (0,) * width
    if len(formats) == 1:
        return formats * width
    return formats


def field_descriptions(
    columns: tuple[OutputColumn, ...], formats: tuple[int, ...], plan: Plan | None = None
) -> tuple[FieldDescription, ...]:
    """Return what RowDescription says of ``columns``; kept in ``plan`` when they are its own."""
    own = plan is not None and plan.columns is columns
    if own and plan is not None:
        kept: tuple[FieldDescription, ...] | None = plan.fields.get(formats)
        if kept is not None:
            return kept
    each = expand_formats(formats, len(columns))
    described = tuple(
        FieldDescription(
            name=column.name,
            type_oid=column.type.oid,
            type_size=type_size(column.type.oid),
            typmod=column.type.typmod,
            table_oid=column.table_oid,
            attnum=column.attnum,
            format=format_,
        )
        for column, format_ in zip(columns, each, strict=True)
    )
    if own and plan is not None:
        plan.fields[formats] = described
    return described


_SAFE_DIGITS = {INT2: 4, INT4: 9, INT8: 18}  # so many digits are always in range


def param_decoder(
    oid: int, format_: int, settings: CodecSettings, session: Session | None = None
) -> Callable[[bytes], Any]:
    """Return the function from a parameter's bytes to its value. ``session`` finds what reg* types name.

    It raises 22P02 and its kin, 22021 and 22P05 for bytes that are no text of the client's encoding; an unknown format is 22023.
    """
    if format_ == 1:
        return binary_decoder(oid, settings)
    if format_ != 0:
        raise SqlError("22023", f"unsupported format code: {format_}")
    if oid in NAMED and session is not None:
        read: Callable[[str], Any] = functools.partial(named_input, session, oid)
    else:
        read = text_decoder(oid, settings)

    digits = _SAFE_DIGITS.get(oid, 0)

    def decode(data: bytes) -> Any:
        if len(data) <= digits and data.isdigit():
            return int(data)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = UTF8.decode(data)
        if "\0" in text:
            raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
        return read(text)

    def decode_foreign(data: bytes) -> Any:
        return read(to_text(data))

    if settings.encoding == "UTF8":
        return decode
    to_text = encoding(settings.encoding).decode
    return decode_foreign


def encoder_of(
    plan: Plan, columns: tuple[OutputColumn, ...], formats: tuple[int, ...], session: Session
) -> Encoder:
    """Return the encoder of a plan's result, kept with the plan per formats and settings.

    One that prints names through the session's search path is made anew: plans are shared by sessions.
    """
    settings = session.output_settings
    key = (formats, settings) if columns is plan.columns else (columns, formats, settings)
    encoder: Encoder | None = plan.encoders.get(key)
    if encoder is None:
        oids = tuple(column.type.oid for column in columns)
        encoder = Encoder(oids, expand_formats(formats, len(oids)), session)
        if encoder.shareable:
            if len(plan.encoders) >= MAX_ENCODERS:
                plan.encoders.clear()
            plan.encoders[key] = encoder
    return encoder


async def encoded(encode: Callable[[RowBatch], tuple[Any, int]], batch: RowBatch) -> tuple[Any, int]:
    """Return ``encode(batch)``, computed in a thread if the batch is large and Arrow's."""
    if batch.arrow is None or len(batch) < THREAD_ROWS:
        return encode(batch)
    return await asyncio.get_running_loop().run_in_executor(None, encode, batch)


async def send_rows(reader: RowReader, encode: Encoder, out: Responder, limit: int) -> int:
    """Send up to ``limit`` rows (0: all), waiting for the client where it is slow; returns their number."""
    sent = 0
    async for batch in reader.take(limit):
        data, count = await encoded(encode.batch, batch)
        out.data_rows(data, count)
        sent += count
        await out.drain()
    return sent
