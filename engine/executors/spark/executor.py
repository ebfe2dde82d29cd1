"""The Spark executor: PySpark over the parts and hot rows of one snapshot (docs/internals/spark.md).

    prepare   Query tree -> SQL with placeholder tables; with parameters, once per set of values
    run       snapshots -> views in place of the placeholders -> Spark job -> stream of Arrow batches

Spark is driven from a few threads (``running.py``). Closing the stream, or cancelling the statement, cancels
the jobs by their tag.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from engine.base.eager import settle
from engine.base.executor import ExecContext
from engine.base.explain.texts import Texts
from engine.base.explain.tree import PlanNode
from engine.base.rows import RowStream
from engine.executors.engine_query import finish_function, forget
from engine.executors.filters import TableFilters
from engine.executors.logical_plan import custom_scan
from engine.executors.spark.files import SparkFiles
from engine.executors.spark.overflow import Operations
from engine.executors.spark.part_bounds import Bounds, Conditions, conditions_of
from engine.executors.spark.part_worker import Written
from engine.executors.spark.part_writer import OtherForm, Rows
from engine.executors.spark.relations import Inputs, plan_relations
from engine.executors.spark.running import CANCEL_POLL_S, Running
from engine.executors.spark.runtime import OFF, SMALL_ROWS, Live, SparkRuntime
from engine.executors.spark.slots import START, Client, client_of
from engine.executors.spark.statistics import is_wanted
from engine.executors.spark.tasks import SparkTasks, translated
from engine.executors.statistics.keeper import Statistics
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.catalog import Catalog
from planner.evaluate import RowFunction
from planner.lower.kit.dialect import Labels, labels_of
from planner.lower.kit.spark import SparkDialect
from planner.lower.kit.value import element_of, kind_of
from planner.lower.query.lowering import Column, LoweredQuery, lower_query
from planner.query import Cte, FunctionRange, Param, QueryExpr
from planner.query.walk import walk
from txn.base.types import ShardId, Snapshot
from txn.persist.parts.job import PartJob

MAX_PLAIN: Final = 1000
"""Queries that are planned without statistics because the JVM ended while they ran."""
MAX_TEXTS = 16  # SQL texts kept per plan, one for each set of parameter values
_TOKENS = re.compile(r"'(?:[^'\\]|\\.)*'|\b(hf_rel_\d+)\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SparkText:
    """One SQL text of a plan with its placeholder tables."""

    lowered: LoweredQuery
    wanted: tuple[Any, ...]
    finish: RowFunction | None
    makes_rows: bool  # by a function or a recursion: the tables do not tell how many
    integers: Operations

    def with_tables(self, tables: dict[str, str]) -> str:
        """Return the SQL with the placeholders replaced."""
        return _with_tables(self.lowered.text, tables)

    def integers_with_tables(self, tables: dict[str, str]) -> Operations:
        """Return the integer operations with the placeholders replaced."""
        return lambda: ((_with_tables(text, tables), kind) for text, kind in self.integers())


def _with_tables(text: str, tables: dict[str, str]) -> str:
    return _TOKENS.sub(lambda m: tables[m.group(1)] if m.group(1) else m.group(0), text)


@dataclass(slots=True)
class SparkPlan:
    """A compiled query. ``open``: its text depends on the parameters' values."""

    query: QueryExpr
    open: bool
    filters: TableFilters
    conditions: Mapping[int, Conditions]
    labels: Labels
    texts: dict[tuple[Any, ...], SparkText] = field(default_factory=dict)

    def text(self, params: tuple[Any, ...]) -> SparkText:
        """Return the SQL for these parameters. Raises SqlError 0A000."""
        key = tuple((type(p), p) for p in params) if self.open else ()
        found = self.texts.get(key)
        if found is None:
            found = compile_text(self.query, params, self.labels)
            if len(self.texts) >= MAX_TEXTS:
                self.texts.clear()
            self.texts[key] = found
        return found


def compile_text(query: QueryExpr, params: tuple[Any, ...] | None, labels: Labels | None = None) -> SparkText:
    """Lower a query for parameter values (None: any).

    Raises:
        SqlError: 0A000.
    """
    lowered = lower_query(query, _dialect(labels), params)
    makes_rows = any(
        isinstance(node, FunctionRange) or (isinstance(node, Cte) and node.recursive) for node in walk(query)
    )
    integers = partial(_integers, query, params, labels)
    return SparkText(lowered, _wanted(lowered.columns), finish_function(lowered), makes_rows, integers)


def _dialect(labels: Labels | None, *, notes_integers: bool = False) -> SparkDialect:
    dialect = SparkDialect(notes_integers=notes_integers)
    if labels is not None:
        dialect.labels = labels
    return dialect


def _integers(
    query: QueryExpr, params: tuple[Any, ...] | None, labels: Labels | None
) -> list[tuple[str, str]]:
    """Lower a query again, as it was, for its integer operations."""
    dialect = _dialect(labels, notes_integers=True)
    lower_query(query, dialect, params)
    return dialect.integers()


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
        files: SparkFiles | None = None,
        nice: int = 0,
        statistics: Statistics | None = None,
    ) -> None:
        """Note the settings; see ``SparkRuntime``. ``statistics``: what is known of tables; None: nothing."""
        self.runtime = SparkRuntime(
            master=master,
            mode=mode,
            data_dir=data_dir,
            heap_bytes=heap_bytes,
            queries=queries,
            conf=conf,
            files=files,
            nice=nice,
        )
        self._numbers = itertools.count(1)
        self._bounds = Bounds()
        self._plain: OrderedDict[str, None] = OrderedDict()
        self._statistics = statistics if is_wanted(conf or {}) else None

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
        if self.runtime.refused is not None:
            raise SqlError("0A000", self.runtime.refused.message, hint=self.runtime.refused.hint)
        parametric = any(isinstance(node, Param) for node in walk(query))
        plan = SparkPlan(
            query, parametric, TableFilters(query, catalog), conditions_of(query), labels_of(catalog)
        )
        text = compile_text(query, None, plan.labels)
        if not plan.open:
            plan.texts[()] = text
        return plan

    def explain(self, plan: SparkPlan, texts: Texts) -> PlanNode:
        """See ``Executor``: what Spark is asked for, and with VERBOSE the SQL sent to it, with placeholder tables."""
        text = next(iter(plan.texts.values()), None) or compile_text(plan.query, None, plan.labels)
        return custom_scan("Spark", plan.query, text.lowered.text, texts)

    def measure(self, plan: SparkPlan) -> None:
        """See ``Executor``: Spark's nodes are its own."""

    async def run(self, plan: SparkPlan, ctx: ExecContext) -> RowStream:
        """Start the query and return when its first batch is there.

        Raises:
            SqlError: whatever the query raises before its first batch; 58000 if Spark cannot start or its JVM ended.
        """
        query, sql = await self._open(plan, ctx)
        first = await query.start(sql)
        return RowStream(plan.query.columns, query.batches(first), query.close)

    async def write_parts(self, plan: SparkPlan, ctx: ExecContext, job: PartJob, rows: Rows) -> Written:
        """Run the query and have its rows written as parts; see ``part_writer.write_frame``.

        Raises:
            OtherForm: the rows have to go through values; nothing was written.
            NullInColumn, OutOfSpace: see ``part_job.write_parts``.
            SqlError: whatever the query raises; 58000 as for ``run``.
        """
        if plan.text(ctx.params).finish is not None:
            raise OtherForm("a part of the select list is computed by the server")
        query, sql = await self._open(plan, ctx)
        return await query.write(sql, job, rows)

    def may_export(self, plan: SparkPlan, ctx: ExecContext) -> bool:
        """Return whether executors see the rows as the client is to see them: no column is computed by the server."""
        return plan.text(ctx.params).finish is None

    async def export(
        self, plan: SparkPlan, ctx: ExecContext, make: Callable[[Any, Sequence[Any]], Callable[..., Any]]
    ) -> list[Any]:
        """Run the query and hand its rows to a Python function of the executors; return what these answer, in order.

        ``make``: given the schema of the batches, and per column the type it must have where Spark's differs, returns
        the function, which is called with a partition's number and its batches as bytes.

        Raises SqlError as ``run``; the query is one that ``may_export``.
        """
        query, sql = await self._open(plan, ctx)
        return await query.export(sql, lambda schema: make(schema, plan.text(ctx.params).wanted))

    async def _open(self, plan: SparkPlan, ctx: ExecContext) -> tuple[Running, str]:
        """Return a query that is ready to start, and its SQL."""
        text = plan.text(ctx.params)
        snapshots: dict[int, Snapshot] = {}
        for use in text.lowered.relations:
            if use.oid not in snapshots:
                shard = ShardId(use.oid)
                wanted = openly(plan.filters.predicate, shard, ctx)
                snapshots[use.oid] = await settle(ctx.txn.snapshot(shard, predicate=wanted))
        rows = [snapshots[use.oid].rows for use in text.lowered.relations]
        statistics = None
        if self._statistics is not None and sum(rows) > SMALL_ROWS and text.lowered.text not in self._plain:
            statistics = self._statistics
            for snapshot in snapshots.values():
                statistics.wanted(snapshot)
        live = await self._live(ctx)
        tag = f"hf_{next(self._numbers)}"
        inputs = Inputs(
            tag, self.runtime.tables_dir, located=self.runtime.files.located,
            bounds=self._bounds, conditions=plan.conditions, params=ctx.params, statistics=statistics,
        )  # fmt: skip
        tables = plan_relations(text.lowered.relations, snapshots, inputs)
        query = Running(self.runtime, live, rows, tag, text, inputs, ctx, text.integers_with_tables(tables))
        # The snapshots stay referenced by the running query: what they name stays readable.
        query.keep = snapshots
        if statistics is not None:
            query.on_lost = partial(self._plan_plainly, text.lowered.text)
        return query, text.with_tables(tables)

    def _plan_plainly(self, text: str) -> None:
        """The JVM has ended while a query ran: it may have broadcast what was estimated too low, which sizes
        of files would not say.
        """
        self._plain[text] = None
        if len(self._plain) > MAX_PLAIN:
            self._plain.popitem(last=False)

    async def tasks(self, ctx: ExecContext) -> SparkTasks:
        """Return what runs Python functions for one statement, starting Spark if need be.

        Raises:
            SqlError: 0A000 if Spark is switched off, 58000 if it cannot start, 57014.
        """
        return await self._tasks(await self._live(ctx), client_of(ctx.session))

    async def own_tasks(self, client: int) -> SparkTasks:
        """As ``tasks``, for work that is no session's; it waits for a start as long as that takes.

        ``client``: the ``id`` of whatever does it, which no session has. Raises SqlError 0A000, 58000 as ``tasks``.
        """
        return await self._tasks(await self.runtime.live(), Client(client))

    async def _tasks(self, live: Live, client: Client) -> SparkTasks:
        loop = asyncio.get_running_loop()
        try:
            cores = await loop.run_in_executor(self.runtime.control, lambda: live.context.defaultParallelism)
        except Exception as error:  # the JVM may end at any moment
            raise translated(self.runtime, live, error) from error
        return SparkTasks(self.runtime, live, f"hf_{next(self._numbers)}", int(cores), client)

    async def _live(self, ctx: ExecContext) -> Live:
        """Return the session; a statement that is cancelled while it starts does not wait on."""
        if self.runtime.ready:
            return await self.runtime.live()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + ctx.spark_start_ms / 1000 if ctx.spark_start_ms else math.inf
        waiting = asyncio.ensure_future(self.runtime.live())
        self.runtime.waits.enter(id(ctx.session), START)
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=CANCEL_POLL_S)
                if done:
                    return waiting.result()
                if ctx.cancelled is not None and ctx.cancelled.is_set():
                    raise SqlError("57014", "canceling statement due to user request")
                now = loop.time()
                if now + self.runtime.restarts.wait_s(now) >= until_s:
                    raise SqlError(
                        "57P03",
                        "the Spark executor is starting up",
                        hint="spark_start_timeout says how long a statement waits for it.",
                    )
        except BaseException:
            waiting.add_done_callback(forget)
            waiting.cancel()
            raise
        finally:
            self.runtime.waits.leave(id(ctx.session), START)

    async def close(self) -> None:
        """Stop: the JVM ends, and with it what runs."""
        await self.runtime.close()
