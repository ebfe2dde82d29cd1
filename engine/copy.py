"""COPY: rows between a client's stream (or a server file) and a table, in text, CSV and binary.

    FROM   chunks ──decoder──> field texts ──by column──> values ──> checks ──> intents, or parts past a size
    TO     query ──batches──> encoder ──> one CopyData per row, with back-pressure

A load that stays small is staged like an INSERT. One that passes BULK_ROWS continues as a bulk load: what was
gathered and all that follows is written as parts by reference, in bounded memory (DESIGN section 7).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from engine.catalog.physical import shard_column
from engine.dml import TableShape, make_env, table_layout
from engine.eager import settle
from engine.plans import Plan
from engine.portal import Command, Outcome, RowReader
from engine.query import context, run_query
from pgwire.backend import Responder
from pgwire.codecs.copy import CopyOptions, copy_context, with_context
from pgwire.codecs.copy_in import CopyRows, copy_decoder
from pgwire.codecs.copy_out import copy_batch_encoder, copy_header, copy_row_encoder, copy_trailer
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import binary_decoder, text_decoder
from pgwire.codecs.typmod import typmod_function
from planner.catalog import RelationDef
from planner.errors import SqlError
from planner.evaluate import Env, compile_expr, compile_predicate
from planner.query import OutputColumn, RangeColumn, RangeRef, RelationRange, Select, Target, Var
from planner.statements import Copy
from txn.columns import column_arrays, column_fields
from txn.types import Row, ShardId

if TYPE_CHECKING:
    from engine.backend import Connection
    from engine.session import Session

BULK_ROWS = 20_000
BATCH_ROWS = 10_000
FILE_CHUNK_BYTES = 1 << 20


async def run_copy(
    conn: Connection, plan: Plan, statement: Copy, params: tuple[Any, ...], out: Responder
) -> Outcome:
    """Run COPY FROM or COPY TO."""
    if statement.filename is not None and not conn.session.is_superuser:
        raise SqlError(
            "42501",
            "permission denied to COPY " + ("from" if statement.is_from else "to") + " a file",
            hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
        )
    conn.session.ensure_txn().next_statement()
    if statement.is_from:
        return await _copy_from(conn.session, plan, statement, params, out)
    return await _copy_to(conn.session, plan, statement, params, out)


# --- FROM ---------------------------------------------------------------------------------------


class _Loader:
    """Turns decoded fields into table rows of one table."""

    def __init__(
        self, session: Session, plan: Plan, statement: Copy, relation: RelationDef, env: Env
    ) -> None:
        self.relation = relation
        self.shape = TableShape(relation, session)
        self.env = env
        self.by_attnum = {c.attnum: c for c in relation.columns}
        self.targets = [self.by_attnum[attnum] for attnum in statement.attnums]
        options = statement.options["codec"]
        assert isinstance(options, CopyOptions)
        self.options = options
        self.binary = options.format == "binary"
        make = binary_decoder if self.binary else text_decoder
        settings = session.codec_settings
        self.decoders = [make(c.type.oid, settings) for c in self.targets]
        self.coercions = [typmod_function(c.type.oid, c.type.typmod) for c in self.targets]
        self.defaults = [(attnum - 1, compile_expr(expr)) for attnum, expr in statement.defaults]
        self.where = None
        if statement.where is not None:
            self.where = compile_predicate([statement.where], table_layout(relation))

    def rows(self, decoded: CopyRows) -> list[Row]:
        """Return table rows for decoded ones, column by column; errors name line and column."""
        if not decoded.rows:
            return []
        count = len(decoded.rows)
        columns: list[Sequence[Any]] = [(None,) * count] * self.shape.width
        fields = zip(*decoded.rows, strict=True)
        for target, decode, coerce, texts in zip(
            self.targets, self.decoders, self.coercions, fields, strict=True
        ):
            try:
                values = [None if text is None else decode(text) for text in texts]
                if coerce is not None:
                    values = [None if v is None else coerce(v) for v in values]
            except DataError:
                raise self._locate(target.name, decode, coerce, texts, decoded.lines) from None
            columns[target.attnum - 1] = values
        for position, make in self.defaults:
            columns[position] = [make((), self.env) for _ in range(count)]
        rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * count
        if self.where is not None:
            rows = [row for row in rows if self.where((*row, self.relation.oid), self.env)]
        try:
            self.shape.check(rows, self.env)
        except SqlError as error:
            raise self._locate_row(error, rows, decoded) from None
        return rows

    def _locate(
        self, column: str, decode: Any, coerce: Any, texts: Sequence[Any], lines: Sequence[int]
    ) -> DataError:
        """Find the row whose field does not read, and return its error with CONTEXT."""
        for text, line in zip(texts, lines, strict=True):
            try:
                value = None if text is None else decode(text)
                if value is not None and coerce is not None:
                    coerce(value)
            except DataError as error:
                return with_context(
                    error,
                    copy_context(
                        self.relation.name,
                        line,
                        column,
                        None if self.binary else text,
                        binary=self.binary,
                    ),
                )
        raise RuntimeError(f"a field of column {column} failed to read, then read")

    def _locate_row(self, error: SqlError, rows: Sequence[Row], decoded: CopyRows) -> DataError:
        if self.where is not None or self.binary:
            return error
        for row, fields, line in zip(rows, decoded.rows, decoded.lines, strict=True):
            try:
                self.shape.check([row], self.env)
            except SqlError as first:
                null = self.options.effective_null
                text = self.options.effective_delimiter.join(
                    null if field is None else str(field) for field in fields
                )
                return with_context(first, copy_context(self.relation.name, line, None, text))
        return error


async def _chunks(statement: Copy, options: CopyOptions, out: Responder) -> AsyncIterator[bytes]:
    if statement.filename is None:
        binary = int(options.format == "binary")
        async for chunk in out.copy_in(binary, [binary] * len(statement.attnums)):
            yield chunk
        return
    try:
        handle = await asyncio.to_thread(open, statement.filename, "rb")
    except OSError as error:
        raise _file_error(error, statement.filename, "reading") from None
    with handle:
        while chunk := await asyncio.to_thread(handle.read, FILE_CHUNK_BYTES):
            yield chunk


def _file_error(error: OSError, name: str, what: str) -> SqlError:
    sqlstate = {"FileNotFoundError": "58P01", "PermissionError": "42501"}.get(type(error).__name__, "58030")
    return SqlError(
        sqlstate,
        f'could not open file "{name}" for {what}: {error.strerror}',
        hint="COPY "
        + ("FROM" if what == "reading" else "TO")
        + " instructs the PostgreSQL server process to "
        + ("read" if what == "reading" else "write")
        + " a file. You may want a client-side facility such as psql's \\copy.",
    )


async def _copy_from(
    session: Session, plan: Plan, statement: Copy, params: tuple[Any, ...], out: Responder
) -> Outcome:
    shard = ShardId(statement.table)
    await session.start_write(plan, [shard])
    session.use(plan)
    relation = session.catalog.relation_by_oid(statement.table)
    if relation is None:
        raise RuntimeError("the COPY target is gone")
    ctx = context(session, plan, params)
    loader = _Loader(session, plan, statement, relation, make_env(ctx))
    decoder = copy_decoder(loader.options, relation.name, [c.name for c in loader.targets])
    batches = _loaded(loader, decoder, _chunks(statement, loader.options, out))
    first: list[Row] = []
    async for rows in batches:
        first.extend(rows)
        if len(first) > BULK_ROWS:
            break
    txn = session.ensure_txn()
    if len(first) <= BULK_ROWS:
        if first:
            await settle(txn.insert(shard, first))
        return Command(f"COPY {len(first)}")
    total = await txn.bulk_insert(shard, _record_batches(relation, first, batches))
    return Command(f"COPY {total}")


async def _loaded(loader: _Loader, decoder: Any, chunks: AsyncIterator[bytes]) -> AsyncIterator[list[Row]]:
    """Yield table rows as they arrive."""
    async for chunk in chunks:
        rows = loader.rows(decoder.feed(chunk))
        if rows:
            yield rows
    rows = loader.rows(decoder.finish())
    if rows:
        yield rows


async def _record_batches(
    relation: RelationDef, first: list[Row], rest: AsyncIterator[list[Row]]
) -> AsyncIterator[Any]:
    """Yield Arrow batches of BATCH_ROWS rows: those gathered first, then the rest."""
    columns = [shard_column(c) for c in relation.live]
    schema = pa.schema([field for column in columns for field in column_fields(column)])

    def batch(rows: Sequence[Row]) -> Any:
        arrays: list[Any] = []
        for column in columns:
            arrays += column_arrays([row[column.attnum - 1] for row in rows], column)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    pending = first
    async for rows in rest:
        pending.extend(rows)
        while len(pending) >= BATCH_ROWS:
            head, pending = pending[:BATCH_ROWS], pending[BATCH_ROWS:]
            yield batch(head)
            await asyncio.sleep(0)
    for start in range(0, len(pending), BATCH_ROWS):
        yield batch(pending[start : start + BATCH_ROWS])
        await asyncio.sleep(0)


# --- TO -----------------------------------------------------------------------------------------


def table_query(relation: RelationDef, attnums: Sequence[int]) -> Select:
    """Return ``SELECT columns FROM relation``."""
    by_attnum = {c.attnum: c for c in relation.columns}
    chosen = [by_attnum[attnum] for attnum in attnums]
    return Select(
        columns=tuple(OutputColumn(name=c.name, type=c.type) for c in chosen),
        targets=tuple(
            Target(expr=Var(type=c.type, range=0, attnum=c.attnum, name=c.name), name=c.name) for c in chosen
        ),
        ranges=(
            RelationRange(
                alias=relation.name,
                columns=tuple(RangeColumn(name=c.name, type=c.type, attnum=c.attnum) for c in relation.live),
                oid=relation.oid,
                schema=relation.schema,
                name=relation.name,
                virtual=relation.virtual,
                used=frozenset(attnums),
            ),
        ),
        from_=(RangeRef(range=0),),
    )


async def _copy_to(
    session: Session, plan: Plan, statement: Copy, params: tuple[Any, ...], out: Responder
) -> Outcome:
    options = statement.options["codec"]
    assert isinstance(options, CopyOptions)
    query = statement.query
    if query is None:
        relation = session.catalog.relation_by_oid(statement.table)
        if relation is None:
            raise RuntimeError("the COPY source is gone")
        query = table_query(relation, statement.attnums)
    ctx = context(session, plan, params)
    result = await run_query(session, plan, "copy", query, ctx)
    session.use(plan)
    columns = query.columns
    oids = tuple(c.type.oid for c in columns)
    to_client = statement.filename is None
    settings = session.codec_settings
    rows_encoder = copy_row_encoder(oids, options, settings, framed=to_client)
    batch_encoder = copy_batch_encoder(oids, options, settings, framed=to_client)
    reader = RowReader(result)
    header, trailer = copy_header(options, [c.name for c in columns]), copy_trailer(options)
    count = 0

    async def pieces() -> AsyncIterator[tuple[Any, int]]:
        async for batch in reader.take(0):
            yield rows_encoder(batch.rows) if batch.rows is not None else batch_encoder(batch.arrow)

    try:
        if not to_client:
            assert statement.filename is not None
            count = await _write_file(statement.filename, header, pieces(), trailer)
            return Command(f"COPY {count}")
        binary = int(options.format == "binary")
        out.copy_out(binary, [binary] * len(columns))
        if header and not binary:
            out.copy_data(header)
            header = b""
        async for data, rows in pieces():
            out.copy_rows(_with_header(header, data) if header else data)
            header = b""
            count += rows
            await out.drain()
        if trailer:
            out.copy_data(header + trailer)
        out.copy_done()
    finally:
        reader.close()
    return Command(f"COPY {count}")


def _with_header(header: bytes, framed: Any) -> bytes:
    """Put the binary header into the first row's message, where PostgreSQL sends it and drivers look for it."""
    data = bytes(framed)
    length = int.from_bytes(data[1:5], "big") + len(header)
    return data[:1] + length.to_bytes(4, "big") + header + data[5:]


async def _write_file(
    name: str, header: bytes, pieces: AsyncIterator[tuple[Any, int]], trailer: bytes
) -> int:
    if not os.path.isabs(name):
        raise SqlError("42602", "relative path not allowed for COPY to file")
    try:
        handle = await asyncio.to_thread(open, name, "wb")
    except OSError as error:
        raise _file_error(error, name, "writing") from None
    count = 0
    with handle:
        handle.write(header)
        async for data, rows in pieces:
            await asyncio.to_thread(handle.write, data)
            count += rows
        handle.write(trailer)
    return count
