"""COPY: rows between a client's stream (or a server file) and a table, in text, CSV and binary.

    FROM   chunks ──copy_rows────> rows ──> intents
                  ──copy_beside──> a process ──> parts, past a size
                  ──copy_bulk────> Arrow batches ──> parts, where that cannot be
    TO     query ──batches──> encoder ──> one CopyData per row, with back-pressure
           change ──> rows of RETURNING, once all is staged ──> the same

A load that stays small is staged like an INSERT. One that passes BULK_ROWS continues as a bulk load: what was
gathered and all that follows is read by column and written as parts by reference, in bounded memory, by a process
beside the server if it can.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.base.pieces import FEW_BYTES, cut
from engine.base.rows import ReadyRows, RowBatch, RowStream
from engine.base.server_files import Roots, ServerFile, file_error, found, shrunk
from engine.base.stored_objects import beside, open_bytes
from engine.changes.bulk import copy_files
from engine.changes.bulk.copy_out_files import LocalFolder, new_directory, write_here
from engine.changes.bulk.copy_out_objects import new_folder, write_object
from engine.changes.bulk.export_task import ExportTask, Folder, adopt
from engine.changes.bulk.find_key import locate, locate_among
from engine.changes.bulk.read_split import make_decoder
from engine.changes.bulk.rejected import tell_rejects, told
from engine.changes.bulk.splits import whole
from engine.changes.bulk.write_rows import Sheet, encoders, header_of, long_row_encoder
from engine.changes.constraints import effects
from engine.changes.constraints.setwise import check_bulk
from engine.changes.triggers.firing import Firing, firing_of
from engine.changes.triggers.rows import begin, insert_each, take_turns
from engine.changes.writes.copy_beside import Tape, load_beside, pool_for
from engine.changes.writes.copy_bulk import BulkLoad
from engine.changes.writes.copy_rows import LoadSpec, RowLoader
from engine.changes.writes.partitioned import copy_routed
from engine.changes.writes.returning import make_env
from engine.changes.writes.shape import TableShape
from engine.changes.writes.with_changes import run_inner
from engine.executors.server import executing
from engine.feeds.subscriptions.subscribe import only_outside_transaction, open_source, stream
from engine.plans.query import check_populated, choose_route, collect, compiled_query, context, run_query
from engine.session.catalog.foreign import no_reader
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, RowReader
from engine.session.progress import CopyProgress
from engine.statements.output import encoded
from pgwire.backend import Responder
from pgwire.codecs.copy import CopyOptions, copy_context, with_context
from pgwire.codecs.copy.encoding import Transcoder
from pgwire.codecs.copy.lines import CopyDecoder
from pgwire.codecs.copy.writing import copy_trailer
from pgwire.codecs.errors import DataError
from pgwire.codecs.sizes import measure_of
from pgwire.codecs.text.encodings import at_hand, encoding
from pgwire.errors import BackendError
from planner.base.errors import SqlError, not_supported
from planner.bind.stored import table_query
from planner.evaluate import Env
from planner.query import QueryExpr
from planner.statements import Copy
from txn.base.errors import DuplicateKey
from txn.base.types import Row, ShardId
from txn.persist.blobs.object_url import is_object_url

if TYPE_CHECKING:
    from engine.session.session import Session

BULK_ROWS = 20_000
MOST_ROWS = 1 << 62  # where a deferred key forbids loading in bulk, all rows are staged
COPY_DATA = ord("d")
FILE_CHUNK_BYTES = 1 << 20
TRANSCODED_BYTES = 16 << 10  # put into UTF8 at once: a millisecond or two for an encoding of several bytes


async def run_copy(session: Session, plan: Plan, statement: Copy, params: tuple[Any, ...]) -> Outcome:
    """Run COPY FROM or COPY TO."""
    table = 0 if statement.table is None or statement.query is not None else statement.table
    session.copying = CopyProgress(
        "COPY FROM" if statement.is_from else "COPY TO",
        table,
        "PIPE" if statement.filename is None else "FILE",
    )
    telling: asyncio.Task[None] | None = None
    interval_ms = session.settings.integer("copy_progress_interval")
    if statement.filename is not None and interval_ms:
        telling = asyncio.create_task(_tell(session, session.copying, statement.filename, interval_ms))
    try:
        return await _run(session, plan, statement, params)
    finally:
        session.copying = None
        if telling is not None:
            telling.cancel()


async def _tell(session: Session, progress: CopyProgress, name: str, interval_ms: int) -> None:
    """Say from time to time how far a COPY is."""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        session.notice(progress.notice(f'"{name}"'))


async def _run(session: Session, plan: Plan, statement: Copy, params: tuple[Any, ...]) -> Outcome:
    if statement.subscribe is not None:
        only_outside_transaction(session)
        session.connection.interrupts.goes_on()
        source = await open_source(session, plan, statement.subscribe, params)
        return await _send(session, statement, stream(source, statement.subscribe))
    if statement.wrong is not None:
        raise statement.wrong.copy()
    options = statement.options["codec"]
    if not isinstance(options, CopyOptions):
        raise AssertionError(f"the codec of a COPY is bound as {type(options).__name__}")
    if options.encoding is not None and not at_hand(options.encoding):
        await asyncio.to_thread(encoding, options.encoding)
    session.block.ensure_txn().next_statement()
    if statement.is_from:
        return await _copy_from(session, plan, statement, params)
    return await _copy_to(session, plan, statement, params)


def _freeze_fault(session: Session, statement: Copy) -> SqlError | None:
    """Return why COPY FREEZE is refused: in PostgreSQL others could see the rows too early. It has no effect here.

    25000 (open cursors), 55000 (the table is neither new nor just truncated).
    """
    if not statement.options.get("freeze"):
        return None
    block = session.block
    if session.cursors is not None and session.cursors.any:
        return SqlError("25000", "cannot perform COPY FREEZE because of prior transaction activity")
    if block.new_storage.is_of(statement.table, len(block.savepoints)):
        return None
    return SqlError(
        "55000",
        "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction",
    )


# --- FROM ---------------------------------------------------------------------------------------


async def _in_utf8(
    chunks: AsyncIterator[bytes], name: str, where: Callable[[], str | None]
) -> AsyncIterator[bytes]:
    """Yield what ``chunks`` hold in encoding ``name``. DataError 22021 and 22P05 come behind the rows before them."""
    transcoder = Transcoder(encoding(name))
    async for chunk in chunks:
        for at in range(0, len(chunk), TRANSCODED_BYTES):
            if text := transcoder.feed(chunk[at : at + TRANSCODED_BYTES]):
                yield text
            if transcoder.fault is not None:
                raise with_context(transcoder.fault, where() or "")
            await asyncio.sleep(0)
    if text := transcoder.finish():
        yield text
    if transcoder.fault is not None:
        raise with_context(transcoder.fault, where() or "")


async def _chunks(
    statement: Copy,
    options: CopyOptions,
    out: Responder,
    progress: CopyProgress,
    file: ServerFile | None,
    where: Callable[[], str | None],
    fault: SqlError | None,
) -> AsyncIterator[bytes]:
    """Yield what the client or a file holds; ``where``: the CONTEXT of an error that the client causes.

    ``fault`` is raised where PostgreSQL does, behind CopyInResponse: a client that sends a script goes on with data.
    """
    if file is None:
        binary = int(options.format == "binary")
        try:
            async for chunk in out.copy_in(binary, [binary] * len(statement.attnums)):
                if fault is not None:
                    raise fault
                progress.bytes += len(chunk)
                yield chunk
        except BackendError as error:
            raise BackendError(replace(error.report, where=where())) from None
        if fault is not None:
            raise fault
        return
    try:
        far = not isinstance(file.path, str)
        with await beside(far, open_bytes, file.path) as handle:
            progress.bytes_total = file.size
            while chunk := await beside(far, handle.read, FILE_CHUNK_BYTES):
                progress.bytes += len(chunk)
                yield chunk
            if progress.bytes < file.size:
                raise shrunk(file.name, file.size, progress.bytes)
    except OSError as error:
        raise file_error(error, file.name, "reading") from None


def _next_line(table: str, decoder: CopyDecoder) -> str | None:
    """Return where a load is that waits for more: in the line that would come next; nowhere within a binary header."""
    line = decoder.next_line
    return None if line is None else copy_context(table, line)


async def _copy_from(session: Session, plan: Plan, statement: Copy, params: tuple[Any, ...]) -> Outcome:
    shard = ShardId(statement.table)
    relation = session.catalog.relation_by_oid(statement.table)
    await session.view.start_write(plan, [shard] if relation is None or relation.stored else [])
    session.view.use(plan)
    relation = session.catalog.relation_by_oid(statement.table)
    if relation is None:
        raise RuntimeError("the COPY target is gone")
    reach = effects.Reach(session, relation, "insert", frozenset())
    await effects.prepare(session, relation, reach)
    ctx = context(session, plan, params)
    progress = session.copying
    if progress is None:
        raise AssertionError("a COPY runs that reports no progress")
    spec = LoadSpec.of(session, statement, relation)
    file = None
    fault = no_reader(session.catalog, relation) if relation.server else _freeze_fault(session, statement)
    if statement.filename is not None:
        if fault is not None:
            raise fault
        files = await beside(
            is_object_url(statement.filename), found, statement.filename, session.db.server_files
        )
        if relation.kind == "p" and (len(files) > 1 or spec.options.format == "parquet"):
            raise not_supported("COPY of several files or of Parquet into a partitioned table")
        if relation.kind != "p" and copy_files.on_spark(session, spec, files):
            return Command(f"COPY {await copy_files.load_on_spark(session, spec, ctx, progress, files)}")
        if len(files) > 1 or spec.options.format == "parquet":
            return Command(f"COPY {await copy_files.load_here(session, spec, ctx, progress, files)}")
        file = files[0]
    routed = relation.kind == "p"
    bulk = not routed and relation.stored and effects.may_bulk_load(session, relation)
    firing = None if relation.server else firing_of(session, relation, "INSERT")
    if routed and firing is not None:
        firing = firing.statements_only()
    await begin(session, firing)
    loader = RowLoader(spec, make_env(ctx), progress, keep=told(spec.options))
    if routed or (firing is not None and firing.before_row):
        loader.finishes, loader.texts = False, []
    decoder = make_decoder(spec)
    where = functools.partial(_next_line, relation.name, decoder)
    chunks = _chunks(statement, loader.options, session.out, progress, file, where, fault)
    tape = Tape(chunks, pool_for(session, spec) if bulk else None)
    utf8 = tape if spec.encoding == "UTF8" else _in_utf8(tape, spec.encoding, where)
    load = BulkLoad(loader, decoder, utf8)
    lines: list[int] = []
    loader.lines = lines
    first = await load.first_rows(*((BULK_ROWS, FEW_BYTES) if bulk else (MOST_ROWS, MOST_ROWS)))
    loader.lines = None
    txn = session.block.ensure_txn()
    staged = load.ended or not bulk
    try:
        if not staged:
            worker = await tape.take()
            if worker is not None:
                first.clear()
                total, loader.rejects = await load_beside(session, spec, ctx, progress, tape, worker)
            else:
                total = await txn.bulk_insert(shard, progress.batches(load.batches(first)))
            await check_bulk(session, relation)
        elif routed:
            total = await copy_routed(
                session, relation, spec.attnums, first, loader.env, firing, (lines, loader.texts or ())
            )
        elif firing is not None and firing.before_row:
            shape = TableShape.of(relation, session).showing(spec.attnums)
            places = zip(lines, loader.texts or (), strict=True)
            total = len(first)
            first = await _insert_each(session, firing, shape, first, places, loader.env)
            await effects.inserted(session, relation, first, firing)
            if not firing.instead:  # which PostgreSQL counts whatever they return
                total = len(first)
        else:
            if first:
                await settle(txn.insert(shard, first))
            if first or firing is not None:
                await effects.inserted(session, relation, first, firing)
            total = len(first)
    except DuplicateKey as error:
        if staged:
            await locate_among(session, relation, error, first, lines)
        elif file is not None:
            await locate(session, spec, ctx.params, error, [(whole(0, "", file.path, file.size),)])
        raise
    tell_rejects(session, spec.options, loader.rejects)
    return Command(f"COPY {total}")


async def _insert_each(
    session: Session,
    firing: Firing,
    shape: TableShape,
    rows: Sequence[Row],
    places: Iterable[tuple[int, str | None]],
    env: Env,
) -> list[Row]:
    """Insert rows that triggers look at before; errors name the line and its text. Returns the rows as they
    are stored.
    """
    stored: list[Row] = []
    for count, (row, (line, text)) in enumerate(zip(rows, places, strict=True), 1):
        await take_turns(count)
        try:
            stored += [made for _id, made in await insert_each(session, firing, shape, [row], env)]
        except DataError as error:
            with_context(error, copy_context(shape.relation.name, line, None, text))
            raise
    return stored


# --- TO -----------------------------------------------------------------------------------------


async def _copy_to(session: Session, plan: Plan, statement: Copy, params: tuple[Any, ...]) -> Outcome:
    if statement.change is not None:
        changed = await run_inner(session, plan, statement.change, params)
        return await _send(session, statement, changed.result)
    query = statement.query
    if query is None:
        relation = session.catalog.relation_by_oid(statement.table)
        if relation is None:
            raise RuntimeError("the COPY source is gone")
        query = table_query(relation, statement.attnums)
    ctx = context(session, plan, params)
    if statement.filename is not None and not plan.locking:
        count = await _by_executors(session, plan, statement, query, ctx)
        if count is not None:
            return Command(f"COPY {count}")
    result = await run_query(session, plan, "copy", query, ctx)
    if plan.locking:  # nothing is sent before all rows are locked: until then the statement can run again
        result = ReadyRows(query.columns, await collect(session, result))
    session.view.use(plan)
    return await _send(session, statement, result)


async def _by_executors(
    session: Session, plan: Plan, statement: Copy, query: QueryExpr, ctx: ExecContext
) -> int | None:
    """Have Spark's executors write the files if the query runs there; None: the server writes."""
    if statement.filename is None:
        raise AssertionError("executors write a COPY that names no file")
    if statement.wrong is not None:
        raise statement.wrong.copy()
    options = statement.options["codec"]
    if not isinstance(options, CopyOptions):
        raise AssertionError(f"the codec of a COPY is bound as {type(options).__name__}")
    compiled = compiled_query(plan, "copy", query)
    check_populated(session, compiled)
    route, executable = choose_route(session, compiled, ctx.params)
    spark = executing(session.db).spark
    sheet = Sheet.of(query.columns, options, session.codec_settings)
    if route.executor != "spark" or spark is None or not sheet.portable:
        return None
    if not spark.may_export(executable, ctx):
        return None
    progress = session.copying
    if progress is None:
        raise AssertionError("a COPY runs that reports no progress")
    async with _folder_of_executors(statement.filename, session.db.server_files) as folder:
        answers = await spark.export(
            executable, ctx, lambda schema, wanted: ExportTask(folder, sheet, schema, wanted)
        )
        far = is_object_url(statement.filename)
        progress.tuples, progress.bytes = await beside(far, adopt, folder, sheet, answers)
    session.view.use(plan)
    return progress.tuples


@asynccontextmanager
async def _folder_of_executors(name: str, roots: Roots) -> AsyncIterator[Folder]:
    if is_object_url(name):
        async with new_folder(name, roots) as folder:
            yield folder
    else:
        async with new_directory(name, roots) as path:
            yield LocalFolder(path)


async def _send(session: Session, statement: Copy, result: ReadyRows | RowStream) -> Outcome:
    """Send a result to the client or to a file."""
    if statement.wrong is not None:
        raise statement.wrong.copy()
    options = statement.options["codec"]
    if not isinstance(options, CopyOptions):
        raise AssertionError(f"the codec of a COPY is bound as {type(options).__name__}")
    columns = result.columns
    progress = session.copying
    if progress is None:
        raise AssertionError("a COPY runs that reports no progress")
    reader = RowReader(result)
    sheet = Sheet.of(columns, options, session.codec_settings)
    if statement.filename is not None:
        try:
            roots = session.db.server_files
            write = write_object if is_object_url(statement.filename) else write_here
            count = await write(statement.filename, roots, sheet, reader, progress, session)
        finally:
            reader.close()
        return Command(f"COPY {count}")
    rows_encoder, batch_encoder = encoders(sheet, session, framed=True)
    long_encoder, measure = long_row_encoder(sheet, session), measure_of(sheet.oids)
    header, trailer = header_of(sheet), copy_trailer(options)
    count = 0

    def encode(batch: RowBatch) -> tuple[Any, int]:
        return rows_encoder(batch.rows) if batch.rows is not None else batch_encoder(batch.arrow)

    def long_row(part: RowBatch) -> Iterator[bytes | memoryview]:
        rows = session.db.arrow_rows(part.arrow, columns) if part.rows is None else part.rows
        return long_encoder(rows[0])

    out = session.out
    try:
        binary = int(options.format == "binary")
        out.copy_out(binary, [binary] * len(columns))
        if header and not binary:
            out.copy_data(header)
            header = b""
        if reader.live:
            await out.drain()  # it may be long before the first row comes
        async for batch in reader.take(0):
            for part, long in cut(batch, measure):
                if long:
                    if header:  # a message of its own: the manual says that they need not be rows
                        out.copy_data(header)
                    await out.long_message(COPY_DATA, long_row(part))
                else:
                    data, _ = await encoded(encode, part)
                    progress.bytes += len(data)
                    out.copy_rows(_with_header(header, data) if header else data)
                header = b""
                progress.tuples += len(part)
                count += len(part)
                await out.drain()
            del batch, part  # before the next ones are made
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
