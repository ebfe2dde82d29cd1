"""The Spark executor: PySpark over the parts and hot rows of one snapshot (docs/spark.md).

    prepare   Query tree -> SQL with placeholder tables; with parameters, once per set of values
    run       snapshots -> views in place of the placeholders -> Spark job -> stream of Arrow batches

Spark is driven from a few threads. A result is pulled: the next batch is fetched while the client reads the one
before. Closing the stream, or cancelling the statement, cancels the jobs by their tag.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.connection.rows import RowStream
from engine.eager import settle
from engine.executor import ExecContext
from engine.reads.engine_query import EngineQuery, finish_function, forget
from engine.reads.filters import TableFilters
from engine.spark.errors import lost, to_sql_error
from engine.spark.part_worker import Target
from engine.spark.part_writer import OtherForm, write_frame
from engine.spark.relations import Inputs, plan_relation
from engine.spark.runtime import OFF, Live, SparkRuntime
from engine.spark.stream import BatchStream
from engine.spark.tasks import SparkTasks, cancel_jobs
from planner.catalog import Catalog
from planner.errors import SqlError
from planner.evaluate import RowFunction
from planner.lower.common import Column, LoweredQuery, lower_query
from planner.lower.spark import SparkDialect
from planner.lower.value import element_of, kind_of
from planner.query import Cte, FunctionRange, Param, QueryExpr
from planner.walk import walk
from txn.errors import TxnError
from txn.persist.part_job import PartJob, WrittenPart
from txn.types import ShardId, Snapshot

CANCEL_POLL_S = 0.05
END_S = 5.0  # a JVM that was killed gives its memory back before it counts as ended
SMALL_ROWS = 10_000  # a query over no more, in all its tables together, runs interpreted
MAX_TEXTS = 16  # SQL texts kept per plan, one for each set of parameter values
_TOKENS = re.compile(r"'(?:[^'\\]|\\.)*'|\b(hf_rel_\d+)\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SparkText:
    """One SQL text of a plan with its placeholder tables."""

    lowered: LoweredQuery
    wanted: tuple[Any, ...]
    finish: RowFunction | None
    makes_rows: bool  # by a function or a recursion: the tables do not tell how many

    def with_tables(self, tables: dict[str, str]) -> str:
        """Return the SQL with the placeholders replaced."""
        return _TOKENS.sub(lambda m: tables[m.group(1)] if m.group(1) else m.group(0), self.lowered.text)


@dataclass(slots=True)
class SparkPlan:
    """A compiled query. ``open``: its text depends on the parameters' values."""

    query: QueryExpr
    open: bool
    filters: TableFilters
    texts: dict[tuple[Any, ...], SparkText] = field(default_factory=dict)

    def text(self, params: tuple[Any, ...]) -> SparkText:
        """Return the SQL for these parameters. Raises SqlError 0A000."""
        key = tuple((type(p), p) for p in params) if self.open else ()
        found = self.texts.get(key)
        if found is None:
            found = compile_text(self.query, params)
            if len(self.texts) >= MAX_TEXTS:
                self.texts.clear()
            self.texts[key] = found
        return found


def compile_text(query: QueryExpr, params: tuple[Any, ...] | None) -> SparkText:
    """Lower a query for parameter values (None: any).

    Raises:
        SqlError: 0A000.
    """
    lowered = lower_query(query, SparkDialect(), params)
    makes_rows = any(
        isinstance(node, FunctionRange) or (isinstance(node, Cte) and node.recursive) for node in walk(query)
    )
    return SparkText(lowered, _wanted(lowered.columns), finish_function(lowered), makes_rows)


def _wanted(columns: tuple[Column, ...]) -> tuple[Any, ...]:
    """Return the Arrow types results must have where Spark's differ from the physical ones; None = as it is."""
    special = {"uuid": pa.binary(16), "time": pa.time64("us")}
    wanted: list[Any] = []
    for column in columns:
        kind = kind_of(column.type.oid)
        if kind == "list":
            element = special.get(kind_of(element_of(column.type.oid)))
            wanted.append(None if element is None else pa.list_(element))
        else:
            wanted.append(special.get(kind))
    return tuple(wanted)


class SparkExecutor:
    """Runs queries on Spark. Use from the event loop; ``close`` when the server stops."""

    name = "spark"

    def __init__(
        self,
        *,
        master: str,
        mode: str,
        data_dir: Path,
        heap_bytes: int = 2**30,
        queries: int = 4,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        """Note the settings; see ``SparkRuntime``."""
        self.runtime = SparkRuntime(
            master=master, mode=mode, data_dir=data_dir, heap_bytes=heap_bytes, queries=queries, conf=conf
        )
        self._numbers = itertools.count(1)

    @property
    def ready(self) -> bool:
        """Whether the router may choose Spark by itself."""
        return self.runtime.ready

    def start_background(self) -> None:
        """Begin to start the JVM if so configured; returns at once."""
        self.runtime.start_background()

    # -- the executor interface ----------------------------------------------------------------------

    def prepare(self, query: QueryExpr, catalog: Catalog) -> SparkPlan:
        """Lower the query.

        Raises:
            SqlError: 0A000 naming what Spark cannot run, or that it is switched off.
        """
        if self.runtime.off:
            raise SqlError("0A000", OFF)
        parametric = any(isinstance(node, Param) for node in walk(query))
        plan = SparkPlan(query, parametric, TableFilters(query, catalog))
        text = compile_text(query, None)
        if not plan.open:
            plan.texts[()] = text
        return plan

    def explain(self, plan: SparkPlan) -> list[str]:
        """Return the SQL sent to Spark, with placeholder tables."""
        text = next(iter(plan.texts.values()), None) or compile_text(plan.query, None)
        return [text.lowered.text]

    async def run(self, plan: SparkPlan, ctx: ExecContext) -> RowStream:
        """Start the query and return when its first batch is there.

        Raises:
            SqlError: whatever the query raises before its first batch; 58000 if Spark cannot start or its JVM ended.
        """
        query, sql = await self._open(plan, ctx)
        first = await query.start(sql)
        return RowStream(plan.query.columns, query.batches(first), query.close)

    async def write_parts(
        self, plan: SparkPlan, ctx: ExecContext, job: PartJob, targets: Sequence[Target], key: Sequence[str]
    ) -> list[WrittenPart]:
        """Run the query and have its rows written as parts; see ``part_writer.write_frame``.

        Raises:
            OtherForm: the rows have to go through values; nothing was written.
            NullInColumn, OutOfSpace: see ``part_job.write_parts``.
            SqlError: whatever the query raises; 58000 as for ``run``.
        """
        if plan.text(ctx.params).finish is not None:
            raise OtherForm("a part of the select list is computed by the server")
        query, sql = await self._open(plan, ctx)
        return await query.write(sql, job, targets, key)

    async def _open(self, plan: SparkPlan, ctx: ExecContext) -> tuple[_Running, str]:
        """Return a query that is ready to start, and its SQL."""
        text = plan.text(ctx.params)
        snapshots: dict[int, Snapshot] = {}
        for use in text.lowered.relations:
            if use.oid not in snapshots:
                shard = ShardId(use.oid)
                wanted = plan.filters.predicate(shard, ctx)
                snapshots[use.oid] = await settle(ctx.txn.snapshot(shard, predicate=wanted))
        live = await self._live(ctx)
        tag = f"hf_{next(self._numbers)}"
        inputs = Inputs(tag, self.runtime.spool_dir)
        tables = {
            use.placeholder: plan_relation(use, snapshots[use.oid], inputs) for use in text.lowered.relations
        }
        few = sum(snapshots[use.oid].rows for use in text.lowered.relations) <= SMALL_ROWS
        session = live.small if few and not text.makes_rows else live.session
        query = _Running(self.runtime, live, session, tag, text, inputs, ctx)
        # The snapshots stay referenced by the running query: what they name stays readable.
        query.keep = snapshots
        return query, text.with_tables(tables)

    async def tasks(self, ctx: ExecContext) -> SparkTasks:
        """Return what runs Python functions for one statement, starting Spark if need be.

        Raises:
            SqlError: 0A000 if Spark is switched off, 58000 if it cannot start, 57014.
        """
        live = await self._live(ctx)
        loop = asyncio.get_running_loop()
        cores = await loop.run_in_executor(self.runtime.control, lambda: live.context.defaultParallelism)
        return SparkTasks(self.runtime, live, f"hf_{next(self._numbers)}", int(cores))

    async def _live(self, ctx: ExecContext) -> Live:
        """Return the session; a statement that is cancelled while it starts does not wait on."""
        if self.runtime.ready:
            return await self.runtime.live()
        waiting = asyncio.ensure_future(self.runtime.live())
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=CANCEL_POLL_S)
                if done:
                    return waiting.result()
                if ctx.cancelled is not None and ctx.cancelled.is_set():
                    raise SqlError("57014", "canceling statement due to user request")
        except BaseException:
            waiting.add_done_callback(forget)
            waiting.cancel()
            raise

    async def close(self) -> None:
        """Stop: the JVM ends, and with it what runs."""
        await self.runtime.close()


class _Running(EngineQuery):
    """One query in flight: its job tag, its spooled inputs, and the stream of its result."""

    poll_s = CANCEL_POLL_S
    runs_ahead = True

    def __init__(
        self,
        runtime: SparkRuntime,
        live: Live,
        session: Any,
        tag: str,
        text: SparkText,
        inputs: Inputs,
        ctx: ExecContext,
    ) -> None:
        super().__init__(runtime.pool, ctx, text.lowered, text.wanted, text.finish)
        self._runtime = runtime
        self._live = live
        self._session = session
        self._tag = tag
        self._inputs = inputs
        self._stream: BatchStream | None = None
        self._interrupted = False
        self._whole = False  # the result was read to its end

    async def start(self, sql: str) -> Any:
        """Begin executing; return the first batch, or None for an empty result."""
        return await self._in_thread(self._begin, sql)

    async def write(
        self, sql: str, job: PartJob, targets: Sequence[Target], key: Sequence[str]
    ) -> list[WrittenPart]:
        """Execute, the rows becoming parts."""
        found: list[WrittenPart] = await self._in_thread(self._write, sql, job, targets, key)
        self._whole = True
        self.close()
        return found

    def _write(self, sql: str, job: PartJob, targets: Sequence[Target], key: Sequence[str]) -> Any:
        context = self._live.context
        context.addJobTag(self._tag)
        try:
            return write_frame(context, *self._analysed(sql), job, targets, key)
        finally:
            context.clearJobTags()

    def _begin(self, sql: str) -> Any:
        context = self._live.context
        context.addJobTag(self._tag)
        try:
            self._stream = BatchStream(context, *self._analysed(sql))
            return self._next()
        finally:
            context.clearJobTags()

    def _analysed(self, sql: str) -> tuple[Any, Any]:
        """Return the query as a Java Dataset, and its columns as Arrow has them."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        session = self._session
        self._inputs.register(session)
        try:
            frame = session._jsparkSession.sql(sql)
        finally:
            self._inputs.drop_views(session)
        schema = to_arrow_schema(
            StructType.fromJson(json.loads(frame.schema().json())),
            error_on_duplicated_field_names_in_struct=False,
            timezone="UTC",
            prefers_large_types=False,
        )
        return frame, schema

    def _next(self) -> Any:
        assert self._stream is not None
        batch = self._stream.next()
        self._whole = batch is None
        return None if batch is None else self._shaped(batch)

    def _call(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run ``work``; where the connection broke, wait until the JVM is seen to be gone."""
        try:
            return work(*args)
        except Exception as error:
            if lost(error) and not self._interrupted:
                self._live.gateway.ends(END_S)
            raise

    def _translated(self, error: Exception, interrupted: bool) -> Exception:
        if isinstance(error, OtherForm | TxnError):
            return error
        if interrupted:
            return SqlError("57014", "canceling statement due to user request")
        if not self._live.gateway.alive or lost(error):
            if self._runtime.ready and self._live.gateway.alive:
                return to_sql_error(error)
            self._runtime.lost(self._live)
            return SqlError(
                "58000", "the Spark JVM ended while the query ran; it starts again with the next one"
            )
        return to_sql_error(error)

    def _interrupt(self) -> None:
        """Cancel the query's jobs and wake a thread that waits for a batch."""
        self._interrupted = True
        with contextlib.suppress(RuntimeError):  # the control thread is gone: the server stops
            self._runtime.control.submit(cancel_jobs, self._live, self._tag)
        if self._stream is not None:
            self._stream.shut()

    def _release(self) -> None:
        stream, self._stream, self.keep = self._stream, None, None
        if stream is not None:
            stream.close()
        if not self._whole:
            self._runtime.given_up(self._live, self._tag)
        self._inputs.discard()
