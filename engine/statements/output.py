"""Rows to the wire: field descriptions and encoders, cached with the plan.

    output columns, formats asked for ──encoder_of──> Encoder ──batch by batch──> bytes of DataRows ──> Responder

Tuples are encoded by the types' codecs, Arrow batches by columns (``pgwire.codecs.columnar``), large ones in a
thread, so that nobody else waits for them. A batch of many bytes is cut before (``pieces``), and a row of very many is
sent in pieces (``pgwire.codecs.long_rows``): the client is waited for after each.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.base.pieces import PART_ROWS, cut, cut_rows
from engine.base.rows import RowBatch, RowTuple
from engine.base.slices import pause
from engine.session.plans.plan import Plan
from engine.session.portal import RowReader
from engine.session.session import Session
from pgwire.backend import FieldDescription, Fields, Responder
from pgwire.codecs import bytea
from pgwire.codecs.columnar import batch_encoder
from pgwire.codecs.long_rows import LongRow, long_data_row
from pgwire.codecs.registry import binary_decoder, text_decoder, type_size
from pgwire.codecs.rows import LongRows, row_encoder
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.sizes import measure_of
from pgwire.codecs.text.encodings import UTF8, encoding
from pgwire.give_way import PACE, between, openly
from pgwire.long.values import LONG
from pgwire.oids import BYTEA
from planner.base.errors import SqlError
from planner.facts import INT2, INT4, INT8, TEXT
from planner.functions.system.reg_output import named_output
from planner.functions.values.acl_items import ACL_TYPES, acl_input
from planner.functions.values.reg import NAMED, named_input
from planner.query import OutputColumn
from planner.types import SqlType

MAX_ENCODERS = 8  # kept per plan
DATA_ROW = ord("D")
THREAD_ROWS = 1000  # Arrow batches from here on are encoded in a thread: they would hold up the loop


class Encoder:
    """Encodes batches of one result shape in one set of formats.

    Columns of reg* types and arrays of them (oids that print as names, by the session's catalog and search path)
    become texts first.
    """

    __slots__ = (
        "_columnar",
        "_long",
        "_name",
        "_named",
        "_shape",
        "_to_rows",
        "measure",
        "rows",
        "shareable",
    )

    def __init__(self, oids: tuple[int, ...], formats: tuple[int, ...], session: Session) -> None:
        """Prepare for ``oids`` in ``formats`` under the session's settings."""
        settings = session.output_settings
        named = [(i, oid) for i, oid in enumerate(oids) if oid in NAMED and not formats[i]]
        columns = tuple(OutputColumn(name="", type=SqlType(oid)) for oid in oids)
        self._to_rows: Callable[[Any], list[RowTuple]] = functools.partial(
            session.db.arrow_rows, columns=columns
        )
        self._named = bool(named)
        if named:
            names = {i for i, _ in named}
            oids = tuple(TEXT if i in names else oid for i, oid in enumerate(oids))
        self.rows: Callable[[Sequence[RowTuple]], tuple[bytearray, int]] = row_encoder(
            oids, formats, settings
        )
        self.measure = measure_of(oids)
        self.shareable = not named
        self._name: Callable[[Sequence[RowTuple]], list[RowTuple]] | None = None
        if named:
            self._name = functools.partial(_with_names, named=named, session=session)
            self.rows = _naming(self.rows, self._name)
        self._columnar: Callable[[Any], tuple[bytes, int]] | None = None
        self._long: LongRow | None = None
        self._shape = (oids, formats, settings)

    def long(self, batch: RowBatch) -> Iterator[bytes | memoryview]:
        """Return the pieces of the DataRow of a batch of one row."""
        if batch.rows is not None:
            rows = batch.rows if self._name is None else self._name(batch.rows)
        else:
            rows = self._to_rows(batch.arrow)
            rows = rows if self._name is None else self._name(rows)
        if self._long is None:
            self._long = long_data_row(*self._shape)
        return self._long(rows[0])

    def batch(self, batch: RowBatch) -> tuple[Any, int]:
        """Return framed DataRow messages of a batch and their number."""
        if batch.rows is not None:
            return self.rows(batch.rows)
        if self._named:
            return self.rows(self._to_rows(batch.arrow))
        if self._columnar is None:
            self._columnar = batch_encoder(*self._shape)
        return self._columnar(batch.arrow)


def _naming(
    encode: Callable[[Sequence[RowTuple]], tuple[bytearray, int]],
    name: Callable[[Sequence[RowTuple]], list[RowTuple]],
) -> Callable[[Sequence[RowTuple]], tuple[bytearray, int]]:
    return lambda rows: encode(name(rows))


def _with_names(rows: Sequence[RowTuple], named: list[tuple[int, int]], session: Session) -> list[RowTuple]:
    out: list[RowTuple] = []
    for row in rows:
        cells = list(row)
        for i, oid in named:
            if cells[i] is not None:
                cells[i] = named_output(session, oid, cells[i])
        out.append(tuple(cells))
    return out


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
    described = Fields(
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
        if len(plan.fields) >= MAX_ENCODERS:  # clients choose formats column by column
            plan.fields.clear()
        plan.fields[formats] = described
    return described


_SAFE_DIGITS = {INT2: 4, INT4: 9, INT8: 18}  # so many digits are always in range


def param_decoder(
    oid: int, format_: int, settings: CodecSettings, session: Session | None = None
) -> Callable[[bytes], Any]:
    """Return the function from a parameter's bytes to its value. ``session`` finds what reg* types name.

    It raises 22P02 and its kin, 22021 and 22P05 for bytes that are no text of the client's encoding; an
    unknown format is 22023.
    """
    if format_ == 1:
        return binary_decoder(oid, settings)
    if format_ != 0:
        raise SqlError("22023", f"unsupported format code: {format_}")
    if oid in NAMED and session is not None:
        read: Callable[[str], Any] = functools.partial(named_input, session, oid)
    elif oid in ACL_TYPES and session is not None:
        read = functools.partial(acl_input, session, oid)
    else:
        read = text_decoder(oid, settings)

    digits = _SAFE_DIGITS.get(oid, 0)

    def decode(data: bytes) -> Any:
        if len(data) <= digits and data.isdigit():
            return int(data)
        if len(data) > LONG:
            return read(UTF8.decode(data))
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = UTF8.decode(data)
        if "\0" in text:
            raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
        return read(text)

    def decode_foreign(data: bytes) -> Any:
        return read(to_text(data))

    def decode_bytes(data: bytes) -> Any:
        value = bytea.of_digits(data) if len(data) > LONG else None
        return decode(data) if value is None else value

    if settings.encoding == "UTF8":
        return decode_bytes if oid == BYTEA else decode
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
        encoder = openly(Encoder, oids, expand_formats(formats, len(oids)), session)
        if encoder.shareable:
            if len(plan.encoders) >= MAX_ENCODERS:
                plan.encoders.clear()
            plan.encoders[key] = encoder
    return encoder


async def encoded(encode: Callable[[RowBatch], tuple[Any, int]], batch: RowBatch) -> tuple[Any, int]:
    """Return ``encode(batch)``, computed in a thread if the batch is large and Arrow's."""
    if batch.arrow is None or len(batch) < THREAD_ROWS:
        return openly(encode, batch)
    return await asyncio.get_running_loop().run_in_executor(None, encode, batch)


async def send_rows(reader: RowReader, encode: Encoder, out: Responder, limit: int) -> int:
    """Send up to ``limit`` rows (0: all), waiting for the client where it is slow; returns their number."""
    sent = 0
    async for batch in reader.take(limit):
        sent += await send_batch(batch, encode, out)
        del batch  # before the next one is made
    return sent


async def send_batch(batch: RowBatch, encode: Encoder, out: Responder) -> int:
    """Send the rows of a batch, waiting for the client where it is slow; returns their number."""
    for part, long in cut(batch, encode.measure):
        between()  # how large it is takes milliseconds to learn where there are a thousand columns
        if long:
            await out.long_message(DATA_ROW, openly(encode.long, part))
        else:
            data, count = await encoded(encode.batch, part)
            out.data_rows(data, count)
        await out.drain()
        pause()
    return len(batch)


async def check_rows(rows: Sequence[RowTuple], encode: Encoder, session: Session) -> None:
    """See that rows can be sent whose statement is about to commit. Raises what keeps a long one from being:
    it prints, and is counted, as when it is sent.
    """
    for part, long in cut_rows(rows, encode.measure):
        if long:
            for piece in openly(encode.long, RowBatch(rows=part)):
                if piece:
                    break  # what comes behind the length was made once
                await session.cancelled.turn()


async def send_ready(rows: Sequence[RowTuple], encode: Encoder, out: Responder, plan: Plan) -> None:
    """Send rows of ``plan`` that are all there: at once unless they are many or long."""
    if len(rows) > PART_ROWS:
        await send_batch(RowBatch(rows=rows), encode, out)
        return
    try:
        data, count = encode.rows(rows) if plan.short and len(rows) <= PACE else openly(encode.rows, rows)
    except LongRows:
        await send_batch(RowBatch(rows=rows), encode, out)
    else:
        out.data_rows(data, count)
