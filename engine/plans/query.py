"""Running a query: choose the route, compile once per route, start it on the transaction's snapshot.

    Plan ──compiled_query──> CompiledQuery ──choose_route──> (route, what its executor made of it) ──execute──> Result
             one per query              │ a refusal (0A000) is remembered, and the route chosen again without it
             of the plan                └ compile_for: at most once per executor, kept with the plan

A query by key takes shorter ways to the same result: ``read_by_key`` without a dispatch, ``read_point``
without a transaction. ``collect`` runs one to its end for those who need all rows at once (INSERT ... SELECT,
constraints, functions).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.base.executor import READS, EngineLimit, ExecContext, Executor, Result
from engine.base.rows import ReadyRows, RowStream
from engine.base.settings.defs import MAX_BYTES, definitions
from engine.base.slices import SLICE_ROWS
from engine.executors.filters import TableFilters
from engine.executors.index.sources import PLAIN
from engine.executors.server import executing
from engine.session.plans.permission import permitted
from engine.session.plans.plan import Plan
from engine.session.portal import Rows
from engine.session.transaction.block_state import IDLE
from engine.session.transaction.races import is_contended
from pgwire.codecs.errors import DataError
from pgwire.give_way import openly
from planner.base.errors import SqlError, not_supported
from planner.evaluate import Env, Shared
from planner.evaluate.short import is_short
from planner.facts import INT4, INT8, facts
from planner.query import (
    Const,
    FuncExpr,
    FunctionRange,
    OutputColumn,
    Param,
    QueryExpr,
    RelationRange,
    Select,
    SetOp,
    SqlCall,
    StepRange,
    Values,
)
from planner.query.walk import ranges_of
from planner.rules.arms import spread
from planner.rules.route import BY_KEY, Route, RouteFacts, choose
from planner.rules.unread import without_unread
from planner.statements import QueryStatement
from planner.statements.classify import is_volatile
from txn.api import Transaction
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.executors.index.executor import IndexPlan, PointPlan
    from engine.session.session import Session

log = logging.getLogger("holdfast")

MAX_ROUTE_ATTEMPTS = 4

# Errors in values (cardinality of a sub-select, data exceptions), and up to how many rows in all tables of a
# query the row executor tells whether they are the statement's.
VALUE_ERRORS = ("21", "22")
SECOND_OPINION_ROWS = 100_000


class CompiledQuery:
    """A query with what each executor made of it; lives in its Plan."""

    __slots__ = (
        "_filters",
        "catalog",
        "compiled",
        "query",
        "refused",
        "series",
        "steps",
        "tables",
        "virtual",
    )

    def __init__(self, query: QueryExpr, catalog: CatalogSnapshot | None = None) -> None:
        """Collect what the query reads. ``catalog``: what it was bound against, where that is not what the
        session sees: it reads in the past.
        """
        self.catalog = catalog
        self.query = query = without_unread(query)
        self._filters: TableFilters | None = None
        self.compiled: dict[str, Any] = {}
        self.refused: dict[str, SqlError] = {}
        all_ranges = ranges_of(query)
        ranges = [r for r in all_ranges if isinstance(r, RelationRange)]
        self.virtual = any(r.virtual for r in ranges)
        self.steps = any(isinstance(r, StepRange) for r in all_ranges)
        self.tables = [ShardId(oid) for r in ranges if not r.virtual for oid in r.tables]
        self.series = [s for r in all_ranges if (s := _series_of(r)) is not None]

    def filters(self, session: Session) -> TableFilters:
        """Return what it asks of each table alone."""
        if self._filters is None:
            self._filters = TableFilters(self.query, self.catalog or session.catalog)
        return self._filters

    def series_rows(self, params: tuple[Any, ...]) -> int:
        """Return how many rows its integer series in FROM have, as far as that is known before it runs."""
        total = 0
        for args in self.series:
            known = [_known(arg, params) for arg in args]
            if all(isinstance(v, int) for v in known) and (len(known) < 3 or known[2]):
                total += max((known[1] - known[0]) // (known[2] if len(known) == 3 else 1) + 1, 0)
        return total


def _series_of(item: Any) -> tuple[Any, ...] | None:
    """Return the arguments of a range that is generate_series of integers, else None."""
    if not isinstance(item, FunctionRange) or len(item.functions) != 1:
        return None
    call = item.functions[0]
    if (
        not isinstance(call, FuncExpr)
        or isinstance(call, SqlCall)
        or not call.returns_set
        or call.type.oid not in (INT4, INT8)
    ):
        return None
    return call.args if facts().procs[call.proc].name == "generate_series" else None


def _known(arg: Any, params: tuple[Any, ...]) -> Any:
    """Return the value of a constant or parameter, else None."""
    if isinstance(arg, Const):
        return arg.value
    return params[arg.number - 1] if isinstance(arg, Param) and arg.number <= len(params) else None


def compiled_query(plan: Plan, slot: str, query: QueryExpr) -> CompiledQuery:
    """Return the compiled form of ``query``, kept in ``plan`` under ``slot``."""
    found: CompiledQuery | None = plan.compiled.get(slot)
    if found is None:
        found = plan.compiled[slot] = openly(CompiledQuery, query)
    return found


def compile_for(session: Session, query: CompiledQuery, name: str) -> Any:
    """Return the executor's plan, or raise its refusal (0A000), both remembered."""
    plan = query.compiled.get(name)
    if plan is not None:
        return plan
    refusal = query.refused.get(name)
    if refusal is not None:
        raise refusal.copy()
    tree = query.query if name == "index" else openly(spread, query.query, guarded=name == "local")
    try:
        plan = openly(session.db.executors[name].prepare, tree, query.catalog or session.catalog)
    except SqlError as error:
        if error.sqlstate == "0A000":
            query.refused[name] = error.copy()
        raise
    query.compiled[name] = plan
    session.cancelled.check()  # it may have taken long
    return plan


def compile_ahead(plan: Plan, executor: Executor, catalog: CatalogSnapshot) -> None:
    """Compile the query of a long statement for the row executor; for a thread, as it may take seconds.

    What the executor refuses is remembered. Raises what else compiling raises.
    """
    statement = plan.bound.statement
    slot = "query" if isinstance(statement, QueryStatement) else "source"
    query = getattr(statement, slot, None)
    if not isinstance(query, Select | SetOp | Values):
        return
    compiled = CompiledQuery(query)
    try:
        compiled.compiled["index"] = executor.prepare(compiled.query, catalog)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        compiled.refused["index"] = error.copy()
    plan.compiled[slot] = compiled


def check_populated(session: Session, query: CompiledQuery) -> None:
    """Raise SqlError 55000 if the query reads a materialized view that has no data yet."""
    catalog = query.catalog or session.catalog
    for shard in query.tables:
        relation = catalog.relation_by_oid(shard)
        if relation is not None and not relation.populated:
            raise SqlError(
                "55000",
                f'materialized view "{relation.name}" has not been populated',
                hint="Use the REFRESH MATERIALIZED VIEW command.",
            )


def prepare_source(session: Session, query: CompiledQuery) -> None:
    """Compile for the row executor ahead of locking, so that it is known whether keys serve the query."""
    try:
        compile_for(session, query, "index")
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise


_BY_KEY = Route("index", BY_KEY)
_UNBOUNDED: Final = {"spark": "temp_file_limit does not bound what it spills"}


def choose_route(
    session: Session, query: CompiledQuery, params: tuple[Any, ...] = (), txn: Transaction | None = None
) -> tuple[Route, Any]:
    """Choose a route and return it with the executor's plan. Raises 0A000 when none can run the query.

    ``txn``: the transaction that tells how large tables are; default: the session's.
    """
    pinned = session.derived.executor
    limited = session.derived.temp_limited
    if limited and pinned == "spark" and query.tables:
        raise not_supported("temp_file_limit in this executor")
    known = query.compiled.get("index")
    sure = known is not None and known.is_small and not known.candidates
    if sure and query.tables and not query.virtual and pinned == "auto" and "index" not in query.refused:
        return _BY_KEY, known  # nothing that is gathered below would change it
    series_rows = query.series_rows(params) if query.series else 0
    if txn is None:
        txn = session.block.ensure_txn()
    for _ in range(MAX_ROUTE_ATTEMPTS):
        by_key, pairs, tables, partitions = False, True, len(query.tables), 0
        left_out: AbstractSet[int] = frozenset()
        if pinned == "auto" and "index" not in query.refused:
            try:
                index_plan = compile_for(session, query, "index")
                left_out = index_plan.left_out(params)
                if index_plan.partitioned:
                    tables, partitions = index_plan.tables, index_plan.partitions
                    pairs = index_plan.pairs
                by_key = index_plan.is_small and not any(c.scans(params, txn) for c in index_plan.candidates)
                # which stops behind the rows that are asked for: functions that may do something are called
                # for no other
                by_key = by_key or (index_plan.in_turn == "asked" and is_volatile(query.query))
            except SqlError as error:
                if error.sqlstate != "0A000":
                    raise
        rows = size = 0
        if pinned == "auto" and not by_key and not query.virtual:
            for shard in query.tables:
                if shard in left_out:
                    continue
                stats = txn.stats(shard)
                rows += stats.rows
                size += stats.bytes
        route = choose(
            RouteFacts(
                pinned=pinned,
                uses_virtual=query.virtual,
                uses_steps=query.steps,
                tables=tables,
                partitions=partitions,
                pairs=pairs,
                by_key=by_key,
                rows=rows,
                series_rows=series_rows,
                bytes=size,
                local_max_bytes=session.derived.local_max_bytes,
                local_max_origin=threshold_origin(session),
                spark_available=session.db.spark_available,
                refusals={name: error.message for name, error in query.refused.items()}
                | (_UNBOUNDED if limited else {}),
            )
        )
        already_refused = route.executor in query.refused
        try:
            return route, compile_for(session, query, route.executor)
        except SqlError as error:
            if error.sqlstate != "0A000" or already_refused:
                raise
            if pinned not in ("auto",) and (query.tables or route.executor == "spark"):
                raise
    raise RuntimeError("routing did not settle")


def threshold_origin(session: Session) -> str:
    """Return where the session's ``local_executor_max_bytes`` comes from, as EXPLAIN prints it."""
    value, calibration = session.derived.local_max_bytes, executing(session.db).calibration
    if calibration is not None and value == calibration.local_executor_max_bytes:
        return calibration.origin
    return "the default" if str(value) == definitions()[MAX_BYTES].default else "set"


def context(session: Session, plan: Plan, params: tuple[Any, ...], *, for_update: int = READS) -> ExecContext:
    """Return what an execution needs: the transaction, parameters and the statement's stable values."""
    stable = plan.bound.stable
    if stable:
        params = params + plan.stable_values(session, params)
    return ExecContext(
        txn=session.block.txn or session.block.ensure_txn(),
        session=session,
        virtual=session.db.virtual,
        params=params,
        for_update=for_update,
        cancelled=session.cancelled,
        steps=session.transitions if session.parts is None else session.parts.rows,
        spark_start_ms=session.derived.spark_start_ms,
    )


def read_by_key(session: Session, plan: Plan, params: tuple[Any, ...]) -> Rows | Awaitable[Rows] | None:
    """Run a query that keys serve (``Plan.at_once``).

    None where the dispatch has to: one by which its block could lose a race might run again there.
    """
    block = session.block
    if block.txn is None:
        if block.state is not IDLE:
            return None
    elif block.watching:
        return None
    else:
        block.renew_limits()
    if not plan.fresh(session.view.catalog) or not permitted(session, plan):
        return None
    if not session.view.is_current(plan) or is_contended(session, plan):
        return None
    if plan.enters:
        block.enter(plan.enters, plan.tables)
    block.ensure_txn().next_statement()
    result = session.db.executors["index"].run(plan.quick, context(session, plan, params))
    session.view.use(plan)
    if plan.columns is None:
        raise AssertionError("a plan that returns rows has no columns")
    return Rows(plan.columns, result) if type(result) is ReadyRows else _read(plan.columns, result)


async def _read(columns: tuple[OutputColumn, ...], result: Result | Awaitable[Result]) -> Rows:
    return Rows(columns, await settle(result))


def read_point(session: Session, plan: Plan, params: tuple[Any, ...]) -> Sequence[Any] | None:
    """Run a point read, or a query that reads nothing, which is a transaction by itself, without making one;
    None: the general path must.

    The row is looked up, filtered and projected within this turn of the loop, at the timestamp a transaction that
    begins now would read at; so there is nothing that a hold, a read set or an end could protect.
    """
    if not session.derived.short_ways or not plan.fresh(session.view.catalog) or not permitted(session, plan):
        return None
    point: PointPlan = plan.point
    source = point.source
    env = Env(params, session, shared=Shared())
    session.block.wrote = False
    if source is None:
        return point.finish([()], env)
    key = source.key((), env)
    if None in key:
        return ()
    row = session.db.store.read_now(source.shard, source.index, key)
    return None if row is None else point.finish(source.extract((row,)), env)


def _point_of(plan: Plan, executable: IndexPlan) -> PointPlan | None:
    """Return what ``read_point`` needs if ``plan`` qualifies: one key, no effect, nothing kept per transaction."""
    point = executable.point
    if point is None or not plan.only_reads or plan.bound.stable:
        return None
    source = point.source
    if source is None:
        return point
    if source.tells_xmin:  # which a transaction has to tell
        return None
    return point if source.simple and source.reading is PLAIN and not plan.locking else None


def _reads_nothing(session: Session, plan: Plan, query: CompiledQuery, executable: Any) -> bool:
    """Tell whether a query computes one row from nothing, whatever the parameters: nothing is left to decide either."""
    return (
        plan.only_reads
        and session.derived.executor == "auto"
        and not (query.tables or query.virtual or query.series or query.steps)
        and executable.point is not None
        and executable.point.source is None
    )


async def run_query(
    session: Session,
    plan: Plan,
    slot: str,
    query: QueryExpr,
    ctx: ExecContext,
) -> Result:
    """Start a query on the route of choice."""
    compiled = compiled_query(plan, slot, query)
    check_populated(session, compiled)
    route, executable = choose_route(session, compiled, ctx.params)
    decided = route.reason == BY_KEY or (
        route.executor == "index" and _reads_nothing(session, plan, compiled, executable)
    )
    if slot == "query" and decided and plan.quick_serves:
        plan.quick, plan.at_once = executable, read_by_key
        point, stable = executable.point, plan.bound.stable
        short = is_short(plan.bound.statement) if point is None else point.short
        plan.short = short and (not stable or is_short(*stable))
        plan.point = _point_of(plan, executable) if plan.short else None
    return await _run_on(session, compiled, ctx, route, executable)


async def run_locking(session: Session, plan: Plan, query: QueryExpr, ctx: ExecContext) -> Result:
    """Start a query that locks rows: on the row executor, whatever the session has been pinned to since it
    was opened.
    """
    compiled = compiled_query(plan, "query", query)
    check_populated(session, compiled)
    return await _run_on(session, compiled, ctx, _BY_KEY, compile_for(session, compiled, "index"))


async def execute(session: Session, query: CompiledQuery, ctx: ExecContext) -> Result:
    """Start a query in the transaction of ``ctx``, which need not be the session's."""
    check_populated(session, query)
    route, executable = choose_route(session, query, ctx.params, ctx.txn)
    return await _run_on(session, query, ctx, route, executable)


def bound_files(session: Session, ctx: ExecContext, executor: str) -> None:
    """Have what an engine spills count with the session's temporary files, if these have a limit."""
    if executor != "index" and session.derived.temp_limited:
        ctx.temp = session.temp


async def _run_on(
    session: Session, query: CompiledQuery, ctx: ExecContext, route: Route, executable: Any
) -> Result:
    """Start a query on a route, or on another one where the engine gives up before its first rows are there.

    An engine may learn only at run time that it cannot (a stored array of several dimensions, NaN in
    arithmetic). A pinned one says so. An error in a value may come of the order in which an engine tests
    conditions: see ``_in_order``.
    """
    bound_files(session, ctx, route.executor)
    try:
        return await settle(session.db.executors[route.executor].run(executable, ctx))
    except DataError as error:
        limit = error if isinstance(error, EngineLimit) else None
        if limit is None and error.sqlstate.startswith(VALUE_ERRORS) and route.executor != "index":
            return await _in_order(session, query, ctx, error)
        if not isinstance(error, SqlError):
            raise
        gives_up = error.sqlstate == "0A000" or limit is not None
        if not gives_up or route.executor == "index" or session.derived.executor != "auto":
            raise
        tried = route.executor
        query.refused[tried] = error.copy()
        try:
            route, executable = choose_route(session, query, ctx.params, ctx.txn)
        except SqlError:
            if limit is None:
                raise
            raise limit from None
        finally:
            if limit is not None and not limit.lasting:  # other values may be within the engine's types
                del query.refused[tried]
        if limit is not None and limit.lasting:
            log.warning("%s; the query runs on the %s executor instead", limit.message, route.executor)
        return await settle(session.db.executors[route.executor].run(executable, ctx))


async def _in_order(session: Session, query: CompiledQuery, ctx: ExecContext, error: DataError) -> Result:
    """Start a query on the row executor that met ``error`` in a value on another one; raise it where that cannot be.

    DuckDB and Spark move conditions and sort them by what they cost. So ``JOIN v ON v.field = 2 … WHERE
    v.value::int > 5`` meets values of other fields, which PostgreSQL, and the row executor, have left out by
    then.
    """
    small = sum(ctx.txn.stats(shard).rows for shard in query.tables) <= SECOND_OPINION_ROWS
    if not small or session.derived.executor != "auto" or "index" in query.refused:
        raise error
    try:
        return await settle(session.db.executors["index"].run(compile_for(session, query, "index"), ctx))
    except SqlError as other:
        if other.sqlstate == "0A000":
            raise error from None
        raise


async def collect(
    session: Session, result: ReadyRows | RowStream, *, max_rows: int | None = None, enough: int | None = None
) -> list[tuple[Any, ...]]:
    """Return all rows of a result as tuples (DML sources, CREATE TABLE AS, cursors WITH HOLD).

    ``enough``: where so many are there the query ends; there may be more of them, from one batch.

    Raises:
        SqlError: 54000 past ``max_rows``; whatever the query raises.
    """
    if isinstance(result, ReadyRows):
        return list(result.rows)
    rows: list[tuple[Any, ...]] = []
    if result.wanted is not None and enough is not None:
        result.wanted.rows = enough
    try:
        async for batch in result.batches:
            if max_rows is not None and len(rows) + len(batch) > max_rows:
                raise SqlError("54000", f"the result has more than {max_rows} rows")
            if batch.rows is not None:
                rows.extend(batch.rows)
            else:
                for start in range(0, len(batch), SLICE_ROWS):
                    piece = batch.arrow.slice(start, SLICE_ROWS)
                    rows.extend(openly(session.db.arrow_rows, piece, result.columns))
                    if len(rows) > SLICE_ROWS:
                        await asyncio.sleep(0)
            if enough is not None and len(rows) >= enough:
                break
    finally:
        result.close()
    return rows
