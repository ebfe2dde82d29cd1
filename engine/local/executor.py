"""The local executor: DuckDB over the parts and hot rows of one snapshot.

    prepare   Query tree -> SQL with placeholder tables, split at them once
    run       snapshots -> relations in place of the placeholders -> cursor -> stream of Arrow batches

DuckDB works in a pool of threads (it releases the GIL). A result is pulled: the next batch is computed while the
client reads the one before, never more. Closing the stream, or cancelling the statement, interrupts the query.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from engine.arrow import rows_of
from engine.eager import settle
from engine.executor import ExecContext
from engine.filters import TableFilters
from engine.local.errors import to_sql_error
from engine.local.instance import open_instance
from engine.local.relations import Sources, relation_sql
from engine.rows import RowBatch, RowStream
from engine.slices import SLICE_ROWS
from planner import facts as f
from planner.catalog import Catalog
from planner.errors import SqlError, not_supported
from planner.evaluate import Env, Layout, RowFunction, Shared, compile_map
from planner.lower.common import Column, LoweredQuery, lower_query
from planner.lower.duckdb import DuckDialect, Slot, numeric_shape
from planner.lower.value import Fixed, kind_of
from planner.query import Param, QueryExpr
from planner.walk import walk
from txn.types import ShardId, Snapshot

BATCH_ROWS = 16_384
CANCEL_POLL_S = 0.02
MAX_TEXTS = 16  # SQL texts kept per plan, one for each combination of numeric parameters' forms
_TOKENS = re.compile(r"'(?:[^']|'')*'|\b(hf_rel_\d+)\b")


@dataclass(frozen=True, slots=True)
class LocalText:
    """One SQL text of a plan: literal pieces with the placeholder tables between them."""

    lowered: LoweredQuery
    pieces: tuple[str, ...]
    names: tuple[str, ...]
    slots: tuple[Slot, ...]
    schema: Any
    finish: RowFunction | None


@dataclass(slots=True)
class LocalPlan:
    """A compiled query; ``numerics``: numbers of its numeric parameters."""

    query: QueryExpr
    numerics: tuple[int, ...]
    filters: TableFilters
    texts: dict[tuple[Fixed | None, ...], LocalText] = field(default_factory=dict)

    def text(self, params: tuple[Any, ...]) -> LocalText:
        """Return the SQL for these parameters."""
        shapes = tuple(numeric_shape(params[number - 1]) for number in self.numerics)
        found = self.texts.get(shapes)
        if found is None:
            known = {n: s for n, s in zip(self.numerics, shapes, strict=True) if s is not None}
            found = compile_text(self.query, known)
            if len(self.texts) >= MAX_TEXTS:
                self.texts.clear()
            self.texts[shapes] = found
        return found


def compile_text(query: QueryExpr, shapes: Mapping[int, Fixed]) -> LocalText:
    """Lower a query and split its text at the placeholder tables.

    Raises:
        SqlError: 0A000.
    """
    dialect = DuckDialect(shapes)
    lowered = lower_query(query, dialect)
    pieces, names, start = [], [], 0
    for match in _TOKENS.finditer(lowered.text):
        if match.group(1):
            pieces.append(lowered.text[start : match.start()])
            names.append(match.group(1))
            start = match.end()
    pieces.append(lowered.text[start:])
    return LocalText(
        lowered,
        tuple(pieces),
        tuple(names),
        tuple(dialect.slots.values()),
        _schema(lowered.columns),
        finish_function(lowered),
    )


def finish_function(lowered: LoweredQuery) -> RowFunction | None:
    """Return what turns the engine's rows into the result's, or None if they are the same.

    Raises:
        SqlError: 0A000 where Python cannot compute it either, or would have to wait.
    """
    if lowered.finish is None:
        return None
    layout = Layout(columns={(0, i + 1): i for i in range(len(lowered.columns))})
    made = compile_map(lowered.finish.exprs, layout)
    if made.may_suspend:
        raise not_supported("pg_sleep in this executor")
    return made


def _schema(columns: tuple[Column, ...]) -> list[Any]:
    """Return the Arrow types results must have where DuckDB's differ from the physical ones; None = as it is."""
    wanted: list[Any] = []
    for column in columns:
        match kind_of(column.type.oid):
            case "uuid":
                wanted.append(pa.binary(16))
            case "timestamptz":
                wanted.append(pa.timestamp("us", "UTC"))
            case _:
                wanted.append(None)
    return wanted


class LocalExecutor:
    """Runs queries on DuckDB. Use from the event loop; ``close`` when the server stops."""

    name = "local"

    def __init__(
        self,
        *,
        blob_dir: Path,
        spill: Path | None = None,
        memory_bytes: int = 2**30,
        threads: int = 2,
        queries: int = 4,
    ) -> None:
        """Note the settings; the instance opens with the first query.

        Args:
            blob_dir: the folder below which parts lie.
            spill: the folder for spilled data; None: one inside ``blob_dir``.
            memory_bytes: DuckDB's memory limit.
            threads: DuckDB's worker threads.
            queries: how many queries compute at a time; more wait.
        """
        self._blob_dir = blob_dir
        self._spill = spill
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._pool = ThreadPoolExecutor(max(queries, 1), thread_name_prefix="duckdb")
        self._instance: Any = None

    # -- the executor interface ----------------------------------------------------------------------

    def prepare(self, query: QueryExpr, catalog: Catalog) -> LocalPlan:
        """Lower the query.

        Raises:
            SqlError: 0A000 naming what DuckDB cannot run.
        """
        numerics = {n.number for n in walk(query) if isinstance(n, Param) and n.type.oid == f.NUMERIC}
        plan = LocalPlan(query, tuple(sorted(numerics)), TableFilters(query, catalog))
        plan.texts[(None,) * len(numerics)] = compile_text(query, {})
        return plan

    def explain(self, plan: LocalPlan) -> list[str]:
        """Return the SQL sent to DuckDB, with placeholder tables."""
        text = next(iter(plan.texts.values()))
        return [text.lowered.text]

    async def run(self, plan: LocalPlan, ctx: ExecContext) -> RowStream:
        """Start the query and return when its first batch is there.

        Raises:
            SqlError: whatever the query raises before its first batch.
        """
        text = plan.text(ctx.params)
        snapshots: dict[int, Snapshot] = {}
        for use in text.lowered.relations:
            if use.oid not in snapshots:
                shard = ShardId(use.oid)
                wanted = plan.filters.predicate(shard, ctx)
                snapshots[use.oid] = await settle(ctx.txn.snapshot(shard, predicate=wanted))
        sources = Sources()
        relations = {
            use.placeholder: relation_sql(use, snapshots[use.oid], sources) for use in text.lowered.relations
        }
        sql = "".join(
            piece + (relations[text.names[i]] if i < len(text.names) else "")
            for i, piece in enumerate(text.pieces)
        )
        values = {slot.name: _bound(slot, ctx.params) for slot in text.slots}
        query = _Running(self, text, ctx)
        # The snapshots stay referenced by the running query: what they name stays readable.
        query.keep = snapshots
        first = await query.start(sql, values, sources)
        return RowStream(plan.query.columns, query.batches(first), query.close)

    async def close(self) -> None:
        """Stop: running queries are interrupted, the pool drains."""
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.interrupt()
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)
        if instance is not None:
            instance.close()

    # -- threads -------------------------------------------------------------------------------------

    def cursor(self) -> Any:
        """Return a new connection to the instance; called in a pool thread or on the loop."""
        if self._instance is None:
            self._instance = open_instance(
                self._blob_dir,
                memory_bytes=self._memory_bytes,
                threads=self._threads,
                spill=self._spill,
            )
        return self._instance.cursor()

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads queries compute in."""
        return self._pool


def _bound(slot: Slot, params: tuple[Any, ...]) -> object:
    value = params[slot.number - 1]
    return None if value is None else slot.convert(value)


class _Running:
    """One query in flight. All DuckDB work is done in pool threads, one call at a time."""

    def __init__(self, owner: LocalExecutor, text: LocalText, ctx: ExecContext) -> None:
        self._owner = owner
        self._text = text
        self._cancelled = ctx.cancelled
        self._env = Env(ctx.params, ctx.session, shared=Shared())
        self._cursor: Any = None
        self._reader: Any = None
        self._closed = False
        self._busy = False
        self.keep: Any = None

    async def start(self, sql: str, values: dict[str, object], sources: Sources) -> Any:
        """Begin executing; return the first batch, or None for an empty result."""
        self._cursor = self._owner.cursor()
        return await self._in_thread(self._begin, sql, values, sources)

    def _begin(self, sql: str, values: dict[str, object], sources: Sources) -> Any:
        for name, table in sources.tables.items():
            self._cursor.register(name, table)
        relation = self._cursor.sql(sql, params=values) if values else self._cursor.sql(sql)
        self._reader = relation.to_arrow_reader(BATCH_ROWS)
        return self._next()

    def _next(self) -> Any:
        while True:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return None
            if batch.num_rows:
                return self._shaped(batch)

    def _shaped(self, batch: Any) -> Any:
        """Bring columns to their physical types where DuckDB has another for the same bytes."""
        if not any(wanted is not None for wanted in self._text.schema):
            return batch
        columns = [
            column if wanted is None else column.cast(wanted)
            for column, wanted in zip(batch.columns, self._text.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _result(self, batch: Any) -> RowBatch:
        """Return what the client gets of an engine batch."""
        finish = self._text.finish
        if finish is None:
            return RowBatch(arrow=batch)
        rows = rows_of(batch, [c.type for c in self._text.lowered.columns])
        return RowBatch(rows=finish(rows, self._env))

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        """Run ``work`` in the pool; interrupt it when the statement is cancelled or this task is."""
        loop = asyncio.get_running_loop()
        self._busy = True
        future = loop.run_in_executor(self._owner.pool, work, *args)
        try:
            while True:
                done, _ = await asyncio.wait({future}, timeout=CANCEL_POLL_S)
                if done:
                    return future.result()
                if self._cancelled is not None and self._cancelled.is_set():
                    self._cursor.interrupt()
        except duckdb.Error as error:
            self._busy = False
            self.close()
            raise to_sql_error(error) from error
        except (OSError, pa.ArrowException) as error:
            # Errors met while streaming arrive through Arrow's reader with DuckDB's text.
            self._busy = False
            self.close()
            raise to_sql_error(_streamed(str(error))) from error
        except asyncio.CancelledError:
            self._closed = True
            self._cursor.interrupt()
            future.add_done_callback(self._finish_late)
            raise
        finally:
            self._busy = False
            if self._closed and future.done():
                self._release()

    def _finish_late(self, future: Any) -> None:
        """A cancelled step has ended in its thread: what it raised is not wanted any more."""
        if not future.cancelled():
            future.exception()
        self._release()

    async def batches(self, first: Any) -> AsyncIterator[RowBatch]:
        """Yield the batches; the next one is computed while the consumer handles the last."""
        batch = first
        try:
            while batch is not None:
                if self._closed:
                    return
                upcoming = asyncio.ensure_future(self._in_thread(self._next))
                try:
                    if self._text.finish is None or len(batch) <= SLICE_ROWS:
                        yield self._result(batch)
                    else:
                        for start in range(0, len(batch), SLICE_ROWS):
                            yield self._result(batch.slice(start, SLICE_ROWS))
                            await asyncio.sleep(0)
                except BaseException:
                    upcoming.add_done_callback(_forget)
                    upcoming.cancel()
                    raise
                batch = await upcoming
        finally:
            self.close()

    def close(self) -> None:
        """Interrupt and release; idempotent, callable at any time from the loop."""
        if self._closed:
            return
        self._closed = True
        if self._cursor is None:
            return
        if self._busy:
            self._cursor.interrupt()
        else:
            self._release()

    def _release(self) -> None:
        cursor, self._cursor, self._reader, self.keep = self._cursor, None, None, None
        if cursor is not None:
            cursor.close()


def _forget(task: Any) -> None:
    """Take note of a task's outcome that nobody asks for any more."""
    if not task.cancelled():
        task.exception()


def _streamed(text: str) -> Any:
    """Return the DuckDB error that a message from the Arrow reader stands for."""
    if "INTERRUPT" in text or "Interrupted" in text:
        return duckdb.InterruptException(text)
    if "Out of Range Error" in text:
        return duckdb.OutOfRangeException(text)
    if "Conversion Error" in text:
        return duckdb.ConversionException(text)
    if "Out of Memory Error" in text:
        return duckdb.OutOfMemoryException(text)
    return duckdb.InvalidInputException(text)


__all__ = ["LocalExecutor", "LocalPlan", "SqlError"]
