"""The local executor: DuckDB over the parts and hot rows of one snapshot.

    prepare   Query tree -> SQL with placeholder tables, split at them once
    run       snapshots -> relations in place of the placeholders -> cursor -> stream of Arrow batches

DuckDB works in a pool of threads (it releases the GIL). A result is pulled: the next batch is computed while the
client reads the one before, never more. Closing the stream, or cancelling the statement, interrupts the query.

What a query may open is taken from the process's descriptors before it runs, and given back when its cursor
is closed; where there are not enough it is another executor's, or 53000.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from engine.base.eager import settle
from engine.base.executor import EngineLimit, ExecContext
from engine.base.explain.texts import Texts
from engine.base.explain.tree import PlanNode
from engine.base.loop.descriptors import Descriptors
from engine.base.loop.threads import stand_back
from engine.base.memory import VALUES
from engine.base.rows import RowStream
from engine.base.temp_files import TempFiles
from engine.executors.engine_query import EngineQuery, finish_function
from engine.executors.filters import TableFilters
from engine.executors.local.callouts import Callouts
from engine.executors.local.closings import Closings
from engine.executors.local.errors import missing_part, to_sql_error
from engine.executors.local.instance import MemoryLimit, open_instance, opened_at_most, spill_folder
from engine.executors.local.own import OwnInstance, folder_of, remove_left, spills_too_much
from engine.executors.local.relations import Sources, relation_sql
from engine.executors.logical_plan import custom_scan
from pgwire.give_way import openly
from planner import facts as f
from planner.base.errors import SqlError, not_supported
from planner.catalog import Catalog
from planner.evaluate import RowFunction
from planner.lower.kit.dialect import Labels, labels_of
from planner.lower.kit.duckdb import DuckDialect, Slot, numeric_shape
from planner.lower.kit.value import Fixed, kind_of
from planner.lower.query.callouts import PREFIX
from planner.lower.query.lowering import Column, LoweredQuery, lower_query
from planner.query import Param, QueryExpr
from planner.query.walk import walk
from planner.rules.arms import spread
from txn.base.types import ShardId, Snapshot
from txn.persist import trouble
from txn.persist.trouble import TRIES, number_in, said

log = logging.getLogger("holdfast")

BATCH_ROWS = 16_384
VECTOR_ROWS = 2048  # DuckDB computes so many at a time
BATCH_BYTES = 4 << 20
OF_ANY_SIZE = frozenset(("text", "bytes", "tailed", "list"))  # kinds of values
CANCEL_POLL_S = 0.02
MAX_TEXTS = 16  # SQL texts kept per plan, one for each combination of numeric parameters' forms
_TOKENS = re.compile(rf"'(?:[^']|'')*'|\b(hf_rel_\d+|{PREFIX}\d+)\b|\$(\w+)")


@dataclass(frozen=True, slots=True)
class LocalText:
    """One SQL text of a plan: literal pieces with the placeholder tables and functions between them."""

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
    labels: Labels
    texts: dict[tuple[Fixed | None, ...], LocalText] = field(default_factory=dict)

    def text(self, params: tuple[Any, ...]) -> LocalText:
        """Return the SQL for these parameters."""
        shapes = tuple(numeric_shape(params[number - 1]) for number in self.numerics)
        found = self.texts.get(shapes)
        if found is None:
            known = {n: s for n, s in zip(self.numerics, shapes, strict=True) if s is not None}
            found = compile_text(self.query, known, self.labels)
            if len(self.texts) >= MAX_TEXTS:
                self.texts.clear()
            self.texts[shapes] = found
        return found


def compile_text(query: QueryExpr, shapes: Mapping[int, Fixed], labels: Labels) -> LocalText:
    """Lower a query and split its text at the placeholder tables.

    Raises:
        SqlError: 0A000.
    """
    dialect = DuckDialect(shapes)
    dialect.labels = labels
    lowered = lower_query(query, dialect)
    pieces, names, used, start = [], [], set(), 0
    for match in _TOKENS.finditer(lowered.text):
        if match.group(1):
            pieces.append(lowered.text[start : match.start()])
            names.append(match.group(1))
            start = match.end()
        elif match.group(2):
            used.add(match.group(2))
    pieces.append(lowered.text[start:])
    return LocalText(
        lowered,
        tuple(pieces),
        tuple(names),
        # what was tried in vain leaves some behind, and DuckDB takes no values that it does not ask for
        tuple(slot for name, slot in dialect.slots.items() if name in used),
        _schema(lowered.columns),
        finish_function(lowered),
    )


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
        values_bytes: int = 0,
        threads: int = 2,
        queries: int = 4,
        descriptors: Descriptors | None = None,
    ) -> None:
        """Note the settings; the instance opens with the first query.

        Args:
            blob_dir: the folder below which parts lie.
            spill: the folder for spilled data; None: one inside ``blob_dir``.
            memory_bytes: DuckDB's memory limit.
            values_bytes: the limit may be raised to that for values of which ``VALUES`` do not fit.
            threads: DuckDB's worker threads.
            queries: how many queries compute at a time; more wait.
            descriptors: those of the process; None: there are no connections beside it.
        """
        self._blob_dir = blob_dir
        self._spill = spill
        self._memory_bytes = memory_bytes
        self.memory = MemoryLimit(memory_bytes, values_bytes)
        self._threads = max(threads, 1)
        self.descriptors = descriptors or Descriptors(0)
        self._pool = ThreadPoolExecutor(max(queries, 1), thread_name_prefix="duckdb", initializer=stand_back)
        self._instance: Any = None
        self._opening = threading.Lock()
        self.closings = Closings()
        self._numbers = itertools.count(1)
        self._swept = False  # of what instances of queries have left

    # -- the executor interface ----------------------------------------------------------------------

    def prepare(self, query: QueryExpr, catalog: Catalog) -> LocalPlan:
        """Lower the query.

        Raises:
            SqlError: 0A000 naming what DuckDB cannot run.
        """
        numerics = {n.number for n in walk(query) if isinstance(n, Param) and n.type.oid == f.NUMERIC}
        plan = LocalPlan(query, tuple(sorted(numerics)), TableFilters(query, catalog), labels_of(catalog))
        plan.texts[(None,) * len(numerics)] = compile_text(query, {}, plan.labels)
        return plan

    def explain(self, plan: LocalPlan, texts: Texts) -> PlanNode:
        """See ``Executor``: what DuckDB is asked for, and with VERBOSE the SQL sent to it, with placeholder tables."""
        text = next(iter(plan.texts.values()))
        return custom_scan("DuckDB", spread(plan.query), text.lowered.text, texts)

    def measure(self, plan: LocalPlan) -> None:
        """See ``Executor``: DuckDB's nodes are its own."""

    async def run(self, plan: LocalPlan, ctx: ExecContext) -> RowStream:
        """Start the query and return when its first batch is there; again where DuckDB meets trouble that may
        pass before it.

        Raises:
            SqlError: whatever the query raises before its first batch.
        """
        text = openly(plan.text, ctx.params)
        if text.lowered.dialect.draws and ctx.session.seeded:
            raise not_supported("random() after setseed() in this executor")
        snapshots: dict[int, Snapshot] = {}
        for oid in dict.fromkeys(oid for use in text.lowered.relations for oid in use.tables):
            shard = ShardId(oid)
            wanted = openly(plan.filters.predicate, shard, ctx)
            snapshots[oid] = await settle(ctx.txn.snapshot(shard, predicate=wanted))
        sources = Sources()
        relations = {
            use.placeholder: openly(relation_sql, use, [snapshots[oid] for oid in use.tables], sources)
            for use in text.lowered.relations
        }
        values = {slot.name: _bound(slot, ctx.params) for slot in text.slots}
        tries = 1 if text.lowered.callouts else TRIES  # what DuckDB has called may not be called again
        while True:
            query = _Running(self, text, ctx)
            names = {**relations, **query.callouts.names}
            sql = "".join(
                piece + (names[text.names[i]] if i < len(text.names) else "")
                for i, piece in enumerate(text.pieces)
            )
            # The snapshots stay referenced by the running query: what they name stays readable.
            query.keep = snapshots
            query.opens = opened_at_most(sources.scans, self._threads)
            query.row_bytes = sum(snapshot.row_bytes for snapshot in snapshots.values())
            tries -= 1
            try:
                first = await query.start(sql, values, sources)
                break
            except SqlError:
                if not query.may_pass or not tries:
                    raise
            await asyncio.sleep(trouble.PAUSE_S * 2 ** (TRIES - tries - 1))
        return RowStream(plan.query.columns, query.batches(first), query.close)

    async def close(self) -> None:
        """Stop: running queries are interrupted, the pool drains."""
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.interrupt()
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)
        self.closings.finish()
        if instance is not None:
            instance.close()

    # -- threads -------------------------------------------------------------------------------------

    def cursor(self) -> Any:
        """Return a new connection to the instance; called in any thread."""
        with self._opening:
            if self._instance is None:
                if not self._swept:
                    remove_left(spill_folder(self._blob_dir, self._spill))
                    self._swept = True
                self._instance = open_instance(
                    self._blob_dir,
                    memory_bytes=self._memory_bytes,
                    threads=self._threads,
                    spill=self._spill,
                )
            return self._instance.cursor()

    def own_instance(self, files: TempFiles) -> OwnInstance:
        """Return an instance for one query, which spills no more than ``files`` have left; called in any thread.

        Raises:
            EngineLimit: 53200.
        """
        lent = self.memory.lend(self.cursor())
        if lent is None:
            raise EngineLimit(
                "53200", "the local executor has no memory for another query with temp_file_limit"
            )
        folder = folder_of(spill_folder(self._blob_dir, self._spill), next(self._numbers))
        try:
            return OwnInstance(self._blob_dir, folder, self._threads, self.memory, lent, files)
        except BaseException:
            self.memory.returning(lent)
            self.memory.give_back(self.cursor(), lent)
            raise

    def end(self, own: OwnInstance) -> None:
        """Close a query's own instance, in a thread where a loop runs: what it has spilled is freed within the call."""

        def close() -> None:
            with self._opening:
                shared = None if self._instance is None else self._instance.cursor()
            own.close(shared)

        self.memory.returning(own.lent)
        loop = asyncio._get_running_loop()
        if loop is None:
            close()
        else:
            loop.run_in_executor(None, close)

    @property
    def is_open(self) -> bool:
        """Whether there is an instance: opening one takes some ten milliseconds."""
        return self._instance is not None

    def give_up_instance(self) -> None:
        """Let the next query open another instance: this one answers nothing more. Queries on it end by themselves."""
        with self._opening:
            self._instance = None

    def made_spill_again(self) -> bool:
        """Make the folder for spilled data where somebody has removed it (DuckDB makes it once); tell whether
        that was so.
        """
        folder = spill_folder(self._blob_dir, self._spill)
        if not self.is_open or folder.is_dir():
            return False
        try:
            folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            log.warning("could not make %s again: %s", folder, error.strerror)
            return False
        return True

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads queries compute in."""
        return self._pool


def _bound(slot: Slot, params: tuple[Any, ...]) -> object:
    value = params[slot.number - 1]
    return None if value is None else slot.convert(value)


class _Running(EngineQuery):
    """One query in flight: a cursor of its own, and the reader of its result."""

    poll_s = CANCEL_POLL_S
    runs_ahead = False

    def __init__(self, owner: LocalExecutor, text: LocalText, ctx: ExecContext) -> None:
        super().__init__(owner.pool, ctx, text.lowered, text.schema, text.finish)
        self._owner = owner
        self._wide = any(kind_of(column.type.oid) in OF_ANY_SIZE for column in text.lowered.columns)
        self._cursor: Any = None
        self._reader: Any = None
        self._files = ctx.temp
        self._own: OwnInstance | None = None  # where what it spills is bounded
        self._raised = 0  # to what it has had DuckDB's memory limit raised
        self.may_pass = False
        """Whether what it has met may be over when it is run again."""
        self.opens = self._taken = 0
        """Descriptors that it may open at most, and those it has taken for that."""
        self.row_bytes = 0
        """What a row of all tables together takes, on average."""
        self.callouts = Callouts(text.lowered.callouts, self._env, self.ended)

    async def start(self, sql: str, values: dict[str, object], sources: Sources) -> Any:
        """Begin executing; return the first batch, or None for an empty result.

        Raises:
            EngineLimit: 53000 where it may open more files than can be had; 53200 where there is no memory
            for an instance of its own.
        """
        descriptors = self._owner.descriptors
        if not await descriptors.take(self.opens):
            taken = f", {descriptors.taken} of them taken" if self.opens <= descriptors.limit else ""
            raise EngineLimit(
                "53000",
                f"the local executor may open {self.opens} files at once for this query, and there are "
                f"{descriptors.limit} file descriptors for such{taken}",
            )
        self._taken = self.opens
        try:
            if self._files is not None:
                await self._in_thread(self._open_own, self._files)
            else:
                self._cursor = (
                    self._owner.cursor() if self._owner.is_open else await self._in_thread(self._owner.cursor)
                )
            return await self._in_thread(self._begin, sql, values, sources)
        except BaseException:
            self.close()
            raise

    def _open_own(self, files: TempFiles) -> None:
        self._own = self._owner.own_instance(files)
        self._cursor = self._own.cursor()

    def _begin(self, sql: str, values: dict[str, object], sources: Sources) -> Any:
        for name, table in sources.tables.items():
            self._cursor.register(name, table)
        self.callouts.register(self._cursor)
        wanted = VALUES * self.row_bytes
        if self._files is None and self._owner.memory.raise_to(self._cursor, wanted):
            self._raised = wanted
        relation = self._cursor.sql(sql, params=values) if values else self._cursor.sql(sql)
        # Values of any size come a vector at a time, or a few rows: DuckDB puts a batch together, whatever it takes.
        fitting = max(BATCH_BYTES // max(self.row_bytes, 1), 1)
        self._reader = relation.to_arrow_reader(min(VECTOR_ROWS, fitting) if self._wide else BATCH_ROWS)
        return self._next()

    def _next(self) -> Any:
        gathered: list[Any] = []
        rows = size = 0
        if self._own is not None:
            self._own.bound()
        while rows < BATCH_ROWS and size < BATCH_BYTES:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                break
            if batch.num_rows:
                gathered.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
                if not self._wide:
                    break
        if not gathered:
            return None
        return self._shaped(gathered[0] if len(gathered) == 1 else pa.concat_batches(gathered))

    def _interrupt(self) -> None:
        if self._cursor is not None:
            self._cursor.interrupt()

    def _translated(self, error: Exception, interrupted: bool) -> Exception:
        own = self.callouts.error_of(error)
        if own is not None:
            return own
        if isinstance(error, OSError | pa.ArrowException):
            # Errors met while streaming arrive through Arrow's reader with DuckDB's text.
            error = _streamed(str(error))
        if (
            isinstance(error, duckdb.FatalException | duckdb.InternalException) and self._files is None
        ):  # either may leave an instance that fails for all
            self._owner.give_up_instance()
        missing = missing_part(error)
        if missing is not None:
            return missing
        if self._files is not None and spills_too_much(error):
            return self._files.exceeded()
        number = number_in(str(error)) if isinstance(error, duckdb.IOException) else None
        self.may_pass = number is not None and (
            said(number).passing or (number == errno.ENOENT and self._owner.made_spill_again())
        )
        return to_sql_error(error) if isinstance(error, duckdb.Error) else error

    def _release(self) -> None:
        if self._cursor is None and not self._taken:
            self.keep = None
            return
        held = [self._reader, self.keep]
        cursor, self._cursor, self._reader, self.keep = self._cursor, None, None, None
        taken, self._taken = self._taken, 0
        raised, self._raised = self._raised, 0
        own, self._own = self._own, None

        def close() -> None:
            held.clear()
            if cursor is not None:
                self.callouts.remove(cursor)
                if raised:
                    self._owner.memory.lower(cursor, raised)
                cursor.close()
            if own is not None:
                self._owner.end(own)
            if taken:
                self._owner.descriptors.give(taken)

        self._owner.closings.add(close)


_STREAMED: Final = (
    ("INTERRUPT", duckdb.InterruptException),
    ("Interrupted", duckdb.InterruptException),
    ("Out of Range Error", duckdb.OutOfRangeException),
    ("Conversion Error", duckdb.ConversionException),
    ("Out of Memory Error", duckdb.OutOfMemoryException),
    ("IO Error", duckdb.IOException),
    ("INTERNAL Error", duckdb.InternalException),
    ("FATAL Error", duckdb.FatalException),
)
"""DuckDB's errors that ``to_sql_error`` tells apart, by the words with which the Arrow reader passes them on."""


def _streamed(text: str) -> Any:
    """Return the DuckDB error that a message from the Arrow reader stands for."""
    found = next((kind for words, kind in _STREAMED if words in text), duckdb.InvalidInputException)
    return found(text)
