"""One query on Spark, from its SQL to its last batch.

    producer task   [slot] analyse, run the stages before the last ── small ──> all batches, here
                                                                  └─ large ──> window, window, ... of files
                    between two windows the slot is given up: to whom waits for one, or until the client has read
    consumer        batches in order, as they come; what it asks of the JVM is nothing

So a job runs only in a slot, a slot is held only while jobs run, and reading a result that is complete needs no JVM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.base.troubles import TROUBLES
from engine.executors.engine_query import EngineQuery, forget
from engine.executors.spark.errors import lost, to_sql_error
from engine.executors.spark.overflow import type_of
from engine.executors.spark.part_writer import OtherForm, Rows, write_frame
from engine.executors.spark.runtime import CODEGEN, INTERPRETED
from engine.executors.spark.slots import JOB, POOL_PROPERTY, client_of
from engine.executors.spark.spool import (  # fmt: skip
    AHEAD_BYTES,
    DIRECT_BYTES,
    Spool,
    estimated_bytes,
    free_broadcasts,
    measured_bytes,
)
from engine.executors.spark.stream import BatchStream, Collected
from engine.executors.spark.tasks import cancel_jobs
from engine.executors.spark.workers import prepare_workers
from planner.base.errors import SqlError
from txn.base.errors import TxnError
from txn.persist.trouble import number_of, said

if TYPE_CHECKING:
    from engine.base.executor import ExecContext
    from engine.executors.spark.executor import SparkText
    from engine.executors.spark.overflow import Operations
    from engine.executors.spark.part_worker import Written
    from engine.executors.spark.relations import Inputs
    from engine.executors.spark.runtime import Live, SparkRuntime
    from txn.persist.parts.job import PartJob

log = logging.getLogger("holdfast.spark")
CANCEL_POLL_S = 0.05
LOOK_S: Final = 0.02
"""How often a consumer looks for the next file."""
FEW_ROWS: Final = 10_000
"""A query is not asked how large its result will be where all rows of its tables, each with each, are no more."""
END_S = 5.0  # a JVM that was killed gives its memory back before it counts as ended
_NOT_YET: Final = object()


class Running(EngineQuery):
    """One query in flight: its job tag, its inputs, and what it has answered so far."""

    poll_s = CANCEL_POLL_S
    runs_ahead = True

    def __init__(
        self,
        runtime: SparkRuntime,
        live: Live,
        rows: Sequence[int],
        tag: str,
        text: SparkText,
        inputs: Inputs,
        ctx: ExecContext,
        integers: Operations,
    ) -> None:
        """Note what to run; ``start`` begins. ``rows``: of each table it reads; ``tag``: all its jobs get it."""
        super().__init__(runtime.pool, ctx, text.lowered, text.wanted, text.finish)
        self._runtime = runtime
        self._live = live
        self._rows = sum(rows)
        self._most_rows = math.prod(count + 1 for count in rows)
        self._tag = tag
        self._inputs = inputs
        self._makes_rows = text.makes_rows
        self._integers = integers
        self._sql = ""  # as Spark was given it
        self._client = client_of(ctx.session)
        self._producer: asyncio.Task[None] | None = None
        self._in_job = False  # the producer waits for a job, not for a slot or the client
        self._position = 0  # the partition the client reads
        self._read = asyncio.Event()  # it has come to another
        self._failure: BaseException | None = None
        self._stream: BatchStream | None = None
        self._collected: Collected | None = None
        self._spool: Spool | None = None
        self._frame: Any = None  # as long as jobs of it may run
        self._file: Iterator[Any] | None = None
        self._interrupted = False
        self._produced = False  # no job is left to run
        self.on_lost: Callable[[], None] | None = None
        """Called where the JVM has ended while the query ran."""

    # -- the consumer --------------------------------------------------------------------------------

    async def start(self, sql: str) -> Any:
        """Begin executing; return the first batch, or None for an empty result."""
        self._producer = asyncio.get_running_loop().create_task(self._produce(sql))
        self._producer.add_done_callback(forget)
        try:
            return await self._fetch()
        except BaseException:
            self.close()
            raise

    async def write(self, sql: str, job: PartJob, rows: Rows) -> Written:
        """Execute, the rows becoming parts of a table; see ``part_writer.write_frame``."""
        found: Written = await self._one_job(self._write_parts, sql, job, rows)
        return found

    async def export(self, sql: str, make: Callable[[Any], Callable[..., Any]]) -> list[Any]:
        """Execute, the rows going to a function of the executors; see ``SparkExecutor.export``."""
        found: list[Any] = await self._one_job(self._export, sql, make)
        return found

    async def _one_job(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run all of the query as one piece of work, in a thread."""
        pool = ""
        self._runtime.waits.enter(self._client.session, JOB)
        try:
            pool = await self._runtime.enter(self._client)
            found = await self._in_thread(self._tagged, pool, work, *args, pool=self._runtime.jobs)
            self._produced = True
            return found
        finally:
            self._runtime.waits.leave(self._client.session, JOB)
            if pool:
                self._runtime.leave(self._client)
            self.close()

    async def _fetch(self) -> Any:
        producer = self._producer
        if producer is None:
            raise AssertionError("rows are fetched before anything produces them")
        self._runtime.waits.enter(self._client.session, JOB)
        try:
            while True:
                if self._collected is not None or self._spool is not None:
                    batch = await self._in_thread(self._next)
                    if self._spool is not None and self._spool.position != self._position:
                        self._position = self._spool.position
                        self._read.set()
                    if batch is not _NOT_YET:
                        return batch
                if self._failure is not None:
                    self.close()
                    raise self._failure
                if self._closed:
                    raise SqlError("57014", "canceling statement due to user request")
                if self._cancelled is not None and self._cancelled.is_set():
                    self.close()
                    raise SqlError("57014", "canceling statement due to user request")
                if producer.cancelled():  # by the end of the server
                    raise SqlError("57P01", "terminating connection due to administrator command")
                if producer.done():
                    await asyncio.sleep(0)  # what it made last is seen in the next turn
                else:
                    await asyncio.wait({producer}, timeout=LOOK_S)
        finally:
            self._runtime.waits.leave(self._client.session, JOB)

    def _next(self) -> Any:
        if self._collected is not None:
            batch = self._collected.next()
            return None if batch is None else self._shaped(batch)
        if self._spool is None:
            raise AssertionError("rows are read on before there is a spool")
        while True:
            if self._file is not None:
                for batch in self._file:
                    if batch.num_rows:
                        return self._shaped(batch)
                self._file = None
            path = self._spool.next_file()
            if path is not None:
                self._file = self._spool.read(path)
            elif self._spool.at_end:
                return None
            else:
                return _NOT_YET

    # -- the producer --------------------------------------------------------------------------------

    async def _produce(self, sql: str) -> None:
        """Run the query's jobs; what goes wrong is kept for the consumer."""
        try:
            await self._jobs(sql)
        except asyncio.CancelledError:
            if not self._closed:
                raise
        except Exception as error:
            self._failure = error

    async def _jobs(self, sql: str) -> None:
        pool = await self._runtime.enter(self._client)
        try:
            await self._job(pool, self._begin, sql)
            while self._spool is not None and not self._spool.complete and not self._closed:
                full = await self._job(pool, self._spool.unread_bytes) >= AHEAD_BYTES // 2
                if full or self._runtime.slots.wanted(self._client):
                    self._runtime.leave(self._client)
                    pool = ""
                    await self._until_read()
                    pool = await self._runtime.enter(self._client)
                await self._job(pool, self._write)
        finally:
            if pool:
                self._runtime.leave(self._client)
            self._free()
        self._produced = True
        if not self._closed:  # the JVM has read what there is to read
            self.keep = None
            self._discard(self._inputs)

    async def _job(self, pool: str, work: Callable[..., Any], *args: Any) -> Any:
        """Run ``work`` in a thread whose jobs carry the query's tag."""
        self._in_job = True
        try:
            return await self._in_thread(
                self._tagged, pool, work, *args, pool=self._runtime.jobs, watched=False
            )
        finally:
            self._in_job = False

    async def _until_read(self) -> None:
        """Wait until little enough lies there unread."""
        spool = self._spool
        if spool is None:
            raise AssertionError("rows are waited for before there is a spool")
        while not self._closed:
            self._read.clear()
            if await self._in_thread(spool.unread_bytes, watched=False) < AHEAD_BYTES // 2:
                return
            await self._read.wait()

    def _tagged(self, pool: str, work: Callable[..., Any], *args: Any) -> Any:
        if self._closed:  # an interrupt that came before there was a job to cancel
            raise SqlError("57014", "canceling statement due to user request")
        context = self._live.context
        context.addJobTag(self._tag)
        context.setLocalProperty(POOL_PROPERTY, pool)
        # Tasks of a result that is streamed do not see the session's properties: they would compile their projections.
        interpreted = self._session() is self._live.small
        if interpreted:
            context.setLocalProperty(CODEGEN, INTERPRETED)
        try:
            return work(*args)
        finally:
            if interpreted:
                context.setLocalProperty(CODEGEN, None)
            context.setLocalProperty(POOL_PROPERTY, None)
            context.clearJobTags()

    def _session(self) -> Any:
        return self._live.session_for(self._rows, makes_rows=self._makes_rows)

    def _write_parts(self, sql: str, job: PartJob, rows: Rows) -> Written:
        frame, schema, _ = self._analysed(sql)
        return write_frame(self._live.context, frame, schema, job, rows)

    def _export(self, sql: str, make: Callable[[Any], Callable[..., Any]]) -> list[Any]:
        from pyspark.core.rdd import RDD
        from pyspark.serializers import NoOpSerializer

        context = self._live.context
        prepare_workers(context)
        frame, schema, _ = self._analysed(sql)
        batches = RDD(frame.toArrowBatchRdd().toJavaRDD(), context, NoOpSerializer())
        return list(batches.mapPartitionsWithIndex(make(schema)).collect())

    def _analysed(self, sql: str) -> tuple[Any, Any, str]:
        """Return the query as a Java Dataset, its columns as Arrow has them, and as Spark describes them."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        session = self._session()
        self._inputs.register(session, self._live.hidden_views(session), self._live.table_views(session))
        self._sql = self._inputs.named(sql)
        frame = session._jsparkSession.sql(self._sql)
        described = frame.schema().json()
        schema = to_arrow_schema(
            StructType.fromJson(json.loads(described)),
            error_on_duplicated_field_names_in_struct=False,
            timezone="UTC",
            prefers_large_types=False,
        )
        return frame, schema, described

    def _begin(self, sql: str) -> None:
        context = self._live.context
        frame, schema, described = self._analysed(sql)
        self._frame = frame
        folder = self._runtime.spool_dir / self._tag
        rdd = self._large(frame)
        if rdd is not None:
            self._spool = Spool(context._jvm, frame.sparkSession(), rdd, described, schema, folder)
            return
        self._stream = BatchStream(context, frame, schema)
        self._collected = Collected(self._stream, schema, folder.with_suffix(".arrow"))

    def _large(self, frame: Any) -> Any:
        """Return the result as RDD of Spark's rows, its earlier stages done, or None if it is small."""
        if not self._makes_rows and (self._most_rows <= FEW_ROWS or estimated_bytes(frame) <= DIRECT_BYTES):
            return None
        rdd = frame.queryExecution().toRdd()
        measured = measured_bytes(self._live.context._jvm, frame)
        return None if measured is not None and measured <= DIRECT_BYTES else rdd

    def _write(self) -> None:
        if self._spool is None:
            raise AssertionError("there is no spool to write to")
        self._spool.write(int(self._live.context.defaultParallelism))

    def _free(self) -> None:
        """Have broadcast tables freed, in a thread; nothing depends on it."""
        frame, self._frame = self._frame, None
        if frame is not None and self._live.gateway.alive:
            with contextlib.suppress(RuntimeError):  # no thread any more: the server stops
                self._runtime.control.submit(_freed, self._live, frame)

    # -- the end -------------------------------------------------------------------------------------

    def _stop(self) -> None:
        super()._stop()
        if self._producer is not None and not self._in_job:
            self._producer.cancel()

    def _call(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run ``work``; where the connection broke, wait until the JVM is seen to be gone."""
        try:
            return work(*args)
        except Exception as error:
            if lost(error) and not self._interrupted:
                self._live.gateway.ends(END_S)
            raise

    def _translated(self, error: Exception, interrupted: bool) -> Exception:
        if isinstance(error, SqlError | OtherForm | TxnError):
            return error
        if interrupted:
            return SqlError("57014", "canceling statement due to user request")
        if isinstance(error, OSError) and not lost(error):
            return SqlError(
                TROUBLES[said(number_of(error)).kind],
                f"could not use a temporary file of Spark: {error.strerror or error}",
            )
        if not self._live.gateway.alive or lost(error):
            if self._runtime.ready and self._live.gateway.alive:
                return to_sql_error(error, self._overflowed)
            self._runtime.lost(self._live)
            if self.on_lost is not None:
                self.on_lost()
            return SqlError(
                "58000", "the Spark JVM ended while the query ran", hint="It starts again by itself: retry."
            )
        return to_sql_error(error, self._overflowed)

    def _overflowed(self, text: str) -> str | None:
        """Return the type of the operation that Spark's error points at."""
        named = self._inputs.named
        return type_of(text, self._sql, lambda: ((named(sql), kind) for sql, kind in self._integers()))

    def _interrupt(self) -> None:
        """Cancel the query's jobs and wake a thread that waits for a batch."""
        self._interrupted = True
        if self._produced:
            return
        with contextlib.suppress(RuntimeError):  # the control thread is gone: the server stops
            self._runtime.control.submit(cancel_jobs, self._live, self._tag)
        if self._stream is not None:
            self._stream.shut()

    def _release(self) -> None:
        stream, self._stream, self.keep, self._file = self._stream, None, None, None
        if stream is not None:
            stream.close()
        if not self._produced:
            self._runtime.given_up(self._live, self._tag)
        left = (self._inputs, self._spool, self._collected)
        self._spool = self._collected = None
        for each in left:
            if each is not None:
                self._discard(each)

    def _discard(self, what: Inputs | Spool | Collected) -> None:
        """Give back in a thread what the query had: files are deleted, and another query may hold a lock
        while it talks with the JVM.
        """
        with contextlib.suppress(RuntimeError):  # no thread any more: the next start empties the folder
            self._pool.submit(what.discard)


def _freed(live: Live, frame: Any) -> None:
    try:
        free_broadcasts(live.context._jvm, frame)
    except Exception as error:  # the JVM has ended, or the query's stages were cancelled half way
        log.debug("broadcast tables are left to the collector", exc_info=error)
