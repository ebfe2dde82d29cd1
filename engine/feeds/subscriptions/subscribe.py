"""SUBSCRIBE: a query's result, then how it changes, commit by commit, for as long as the client reads (N6).

    store.subscribe ──> events ──┬─ one table, filtered and projected: row by row           TableSource
                                 └─ any other query: asked again at each commit's timestamp  QuerySource
                          │                 that touches its tables; the difference of both results
                          ▼
       rows (timestamp, [progressed], diff, columns) ──> Query, portal, FETCH, COPY

Rows of one timestamp belong to one commit, follow each other, and are consolidated: what a commit takes away and
gives back does not show, diff counts equal rows, what goes comes before what comes. (A commit of more than
``txn.upkeep.changes.PIECE_ROWS`` rows is consolidated piece by piece.) A progress row says that everything at or below
its timestamp has been sent: ``AS OF`` it ``WITH (snapshot = false)`` goes on from there.

Whoever reads pulls: a slow client makes the subscription wait, not grow. Nothing is locked, and the session has no
transaction for it. Reading is cut off nowhere by a cancel: what was found is there for the next FETCH (L40).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.base.executor import ExecContext
from engine.base.rows import RowBatch, RowStream, RowTuple, Source
from engine.executors.expressions import has_sublink
from engine.feeds.subscriptions.rights import Permit
from engine.plans.query import CompiledQuery, check_populated, collect, execute
from engine.session.named_subscriptions import Reading, readable
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Rows
from engine.session.transaction.block_state import BLOCK
from engine.session.transaction.time_travel import timestamp_of
from engine.session.transaction.timelines import gone
from planner.base.errors import SqlError, not_supported
from planner.catalog import TextSearchDef
from planner.evaluate import Env, Layout, Shared, compile_expr, compile_filter, compile_row
from planner.facts import (
    BOOL,
    BPCHAR,
    BYTEA,
    DATE,
    INT2,
    INT4,
    INT8,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
)  # fmt: skip
from planner.functions import searches
from planner.indexing.comparisons import conjuncts_of
from planner.query import Expr, FuncExpr, QueryExpr, RangeRef, RelationRange, Select, Var
from planner.query.walk import walk
from planner.statements import DeclareSubscribe, Subscribe
from txn.base.errors import SubscriptionEnded
from txn.base.types import ShardId, Timestamp
from txn.upkeep.subscribe import Changes, Progress, Subscription

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.session import Session

MAX_RESULT_ROWS: Final = 1_000_000
"""Rows of a query that is asked again at each commit: its last result is kept in memory."""

# Types whose Python values are equal exactly where they print alike.
_PLAIN: Final = frozenset(
    (BOOL, INT2, INT4, INT8, OID, TEXT, VARCHAR, BPCHAR, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ, UUID)
)


class Net:
    """Adds up rows; equal ones are those that print alike."""

    __slots__ = ("_columns", "counts")

    def __init__(self, columns: Sequence[Any]) -> None:
        """``columns``: of the query."""
        self._columns = [i for i, c in enumerate(columns) if c.type.oid not in _PLAIN]
        self.counts: dict[Any, list[Any]] = {}

    def add(self, row: RowTuple, diff: int) -> None:
        """Add ``diff`` rows like ``row``."""
        key: Any = row
        if self._columns:
            cells: list[Any] = list(row)
            for i in self._columns:
                cells[i] = repr(cells[i])
            key = tuple(cells)
        entry = self.counts.get(key)
        if entry is None:
            self.counts[key] = [diff, row]
        else:
            entry[0] += diff

    def minus(self, other: Net) -> list[tuple[int, RowTuple]]:
        """Return how this differs from ``other``, what is gone first."""
        found = [
            (count - before[0] if (before := other.counts.get(key)) is not None else count, row)
            for key, (count, row) in self.counts.items()
        ]
        found += [(-count, row) for key, (count, row) in other.counts.items() if key not in self.counts]
        return sorted([f for f in found if f[0]], key=lambda f: f[0] > 0)

    def result(self) -> list[tuple[int, RowTuple]]:
        """Return what it came to, what is gone first."""
        return sorted([(n, row) for n, row in self.counts.values() if n], key=lambda f: f[0] > 0)


class _Framed:
    """Puts timestamp and diff before rows, and writes progress rows where they are wanted."""

    __slots__ = ("_nulls", "progress")

    def __init__(self, statement: Subscribe) -> None:
        self.progress = statement.progress
        self._nulls = (None,) * (len(statement.query.columns) + 1)

    def rows(self, ts: Timestamp, net: list[tuple[int, RowTuple]]) -> list[RowTuple]:
        """Return the rows of a commit."""
        if self.progress:
            return [(ts, False, diff, *row) for diff, row in net]
        return [(ts, diff, *row) for diff, row in net]

    def mark(self, ts: Timestamp) -> list[RowTuple]:
        """Return the row that says how far it is."""
        return [(ts, True, *self._nulls)] if self.progress else []


class _Searched:
    """The text search objects at the start of a subscription whose query looks some up: rows that come and go
    are made by the same.
    """

    __slots__ = ("_found",)

    def __init__(self, session: Session, statement: Subscribe, start: Timestamp) -> None:
        """Raises SqlError 55000 where they were others at ``start`` than they are.

        A query that is asked again at each commit is compared with its last result, so it may go on.
        """
        self._found: Sequence[TextSearchDef] | None = None
        if goes_by_row(statement.query) and any(searches(node) for node in walk(statement.query)):
            self._found = session.space.at(start).text_search()
            self.check(session)

    def check(self, session: Session) -> None:
        """Raise SqlError 55000 once they are others."""
        if self._found is not None and self._found != session.space.catalog.text_search():
            raise SqlError(
                "55000", "text search configurations or dictionaries have changed: the subscription ends"
            )


class _Types:
    """The enums and composite types of a subscription's columns: once one is dropped nobody can say what its
    values are called, even of rows that came before.

    Values of domains and ranges print as what these are over.
    """

    __slots__ = ("_names", "_session")

    def __init__(self, session: Session, statement: Subscribe) -> None:
        """Note how they are called."""
        self._session = session
        self._names: dict[int, str] = {}
        for column in statement.query.columns:
            found = _printed_by(session.catalog, column.type.oid)
            if found is not None:
                self._names[found[0]] = found[1]

    def check(self) -> None:
        """Raise SqlError 55000 once one of them is gone."""
        for oid, name in self._names.items():
            if _printed_by(self._session.space.catalog, oid) is None:
                raise SqlError("55000", f'type "{name}" was dropped: the subscription ends')


def _printed_by(catalog: CatalogSnapshot, oid: int) -> tuple[int, str] | None:
    """Return oid and name of the user's type that printing values of a type takes; None where it takes none,
    or the type is gone.
    """
    found = catalog.type_by_oid(oid)
    if found is None:
        rows = catalog.row_type_relation(oid)
        return None if rows is None else (oid, rows[0].name)
    if found.kind in "dr":
        return _printed_by(catalog, found.base)
    return None if found.kind == "b" else (oid, found.name)


async def _poll(
    permit: Permit,
    types: _Types,
    subscription: Subscription,
    statement: Subscribe,
    timeout_s: float | None,
) -> Changes | Progress | None:
    """Return the next event; a table that is dropped is called by the name under which it was subscribed.

    Raises SqlError 42501 and others once the user may not read it any more (``Permit``), 55000 once a type is
    gone (``_Types``).
    """
    try:
        event = await subscription.poll(timeout_s)
        permit.check()
        if isinstance(event, Changes):
            types.check()
        return event
    except SubscriptionEnded as error:
        name = next(
            (r.name for r in walk(statement.query) if isinstance(r, RelationRange) and r.oid == error.shard),
            str(error.shard),
        )
        what = "was dropped" if error.dropped else "changed its columns"
        raise SqlError(
            "42P01" if error.dropped else "55000",
            f'table "{name}" {what}: the subscription ends',
            detail=f"Everything below timestamp {error.ts} has been sent.",
        ) from None


class TableSource:
    """One table's changes, each row filtered and projected by itself."""

    def __init__(
        self,
        session: Session,
        subscription: Subscription,
        statement: Subscribe,
        keep: Callable[[Any, Any], Any] | None,
        project: Callable[[Any, Any], Any],
        env: Env,
        searched: _Searched,
        permit: Permit,
    ) -> None:
        """``keep``: the WHERE clause over stored rows, by list; ``project``: the targets, by row."""
        self._session = session
        self._subscription = subscription
        self._statement = statement
        self._columns = statement.query.columns
        self._framed = _Framed(statement)
        self._keep = keep
        self._project = project
        self._env = env
        self._searched = searched
        self._permit = permit
        self._types = _Types(session, statement)

    async def poll(self, timeout_s: float | None) -> list[RowTuple] | None:
        """See Source."""
        event = await _poll(self._permit, self._types, self._subscription, self._statement, timeout_s)
        if event is None:
            return None
        self._searched.check(self._session)
        if isinstance(event, Progress):
            return self._framed.mark(event.ts)
        net = Net(self._columns)
        keep, project, env = self._keep, self._project, self._env
        for change in event.rows:
            if keep is None or keep((change.row,), env):
                net.add(tuple(project(change.row, env)), change.diff)
        return self._framed.rows(event.ts, net.result())

    def close(self) -> None:
        """See Source."""
        self._subscription.close()


class QuerySource:
    """Any query: its whole result at each timestamp at which one of its tables changed, compared with the last."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        statement: Subscribe,
        params: tuple[Any, ...],
        start: Timestamp,
        permit: Permit,
    ) -> None:
        """``start``: the timestamp of the first result. ``self.subscription`` comes afterwards, if there are tables."""
        self.subscription: Subscription | None = None
        self._session = session
        self._plan = plan
        self._timeline = plan.timeline or None
        self._statement = statement
        self._params = params
        self._start = start
        self._permit = permit
        self._types = _Types(session, statement)
        self._framed = _Framed(statement)
        self._compiled: CompiledQuery | None = None
        self._last: Net | None = None
        self._event: Changes | Progress | None = None
        self._asking: asyncio.Task[Net] | None = None

    async def poll(self, timeout_s: float | None) -> list[RowTuple] | None:
        """See Source."""
        if self._last is None:
            first = await self._result(self._start)
            self._last = first
            return self._framed.rows(self._start, first.result()) if self._statement.snapshot else []
        if self.subscription is None:
            raise StopAsyncIteration
        if self._event is None:
            self._event = await _poll(
                self._permit, self._types, self.subscription, self._statement, timeout_s
            )
        event = self._event
        if event is None:
            return None
        if isinstance(event, Progress):
            self._event = None
            return self._framed.mark(event.ts)
        result = await self._result(event.ts)
        self._permit.check()  # it may have taken a while
        net, self._last, self._event = result.minus(self._last), result, None
        return self._framed.rows(event.ts, net)

    async def _result(self, ts: Timestamp) -> Net:
        """Return the query's result at ``ts``; a cancel does not stop it, the next call gets it."""
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask(ts))
        try:
            result = await asyncio.shield(self._asking)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._asking = None
            raise
        self._asking = None
        return result

    async def _ask(self, ts: Timestamp) -> Net:
        session = self._session
        catalog = session.space.at(ts)
        compiled = self._compiled
        if compiled is None or compiled.catalog is not catalog:  # indexes may have come or gone
            compiled = self._compiled = CompiledQuery(self._statement.query, catalog)
        try:
            txn = session.db.store.begin(read_only=True, at=ts, session=session.pid, timeline=self._timeline)
        except KeyError as error:
            raise gone(str(error.args[0])) from None
        try:
            ctx = ExecContext(
                txn=txn, session=session, virtual=session.db.virtual, params=self._params, cancelled=_NEVER
            )
            net = Net(self._statement.query.columns)
            rows = await collect(session, await execute(session, compiled, ctx))
            if len(rows) > MAX_RESULT_ROWS:
                raise SqlError(
                    "54000",
                    f"the result of a subscribed query has more than {MAX_RESULT_ROWS} rows",
                    hint="Queries that only filter and project one table have no such limit.",
                )
            for row in rows:
                net.add(tuple(row), 1)
            return net
        finally:
            txn.rollback()

    def close(self) -> None:
        """See Source."""
        if self.subscription is not None:
            self.subscription.close()
        if self._asking is not None:
            self._asking.cancel()


class _Never:
    """Stands for the flag that long loops poll: a cancel stops who waits for the result, not the result."""

    def is_set(self) -> bool:
        return False


_NEVER: Final = _Never()


class SourceRows:
    """A source as an asynchronous iterator of batches; ``anext`` may be cancelled without losing rows."""

    def __init__(self, source: Source) -> None:
        """Read ``source``."""
        self._source = source

    def __aiter__(self) -> SourceRows:
        """Return itself."""
        return self

    async def __anext__(self) -> RowBatch:
        """Return the next rows, at least one."""
        while True:
            rows = await self._source.poll(None)
            if rows:
                return RowBatch(rows=rows)


# --- opening --------------------------------------------------------------------------------------


async def open_source(session: Session, plan: Plan, statement: Subscribe, params: tuple[Any, ...]) -> Source:
    """Start a subscription.

    Raises SqlError 22023 for timestamps in the future, 42P01 where a table did not exist then, 55000 for a
    materialized view without data; ReadBelowSince.
    """
    store = session.db.store
    if session.block.txn is None:
        session.transaction_time_us = session.statement_time_us
    given = params
    if plan.bound.stable:
        params = params + plan.stable_values(session, params)
    env = Env(params, session, shared=Shared())
    timeline = plan.timeline or None
    named = None if statement.subscription is None else readable(session, statement.subscription)
    if named is not None:
        as_of: Timestamp | None = Timestamp(named.record.position)
        statement = replace(statement, snapshot=named.record.snapshot)
    else:
        as_of = await _as_of(session, statement.as_of, env, timeline)
    until = statement.up_to
    up_to = None if until is None else moment_of(session, until, "UP TO", env, timeline)
    start = store.read_ts(timeline) if as_of is None else as_of
    if up_to is not None and up_to <= start:
        raise SqlError(
            "22023", f"UP TO {up_to} is not above AS OF {start}", hint="UP TO itself is not included."
        )
    simple = _one_table(statement.query)
    permit = Permit(session, plan, statement, given)
    source = QuerySource(session, plan, statement, params, start, permit)
    relations = [r for r in walk(statement.query) if isinstance(r, RelationRange)]
    shards = [ShardId(r.oid) for r in relations]
    if not shards:
        if plan.bound.calls:
            raise not_supported("SUBSCRIBE of a query that reads by what its functions run alone")
        return source
    check_populated(session, CompiledQuery(statement.query, session.space.at(start)))
    if as_of is not None:
        _check_columns(session, relations, start)

    searched = _Searched(session, statement, start)

    def opened(found: Source) -> Source:
        return found if named is None else Reading(found, named, session.pid)

    try:
        subscription: Subscription = store.subscribe(
            list(dict.fromkeys(shards)),
            start,
            up_to,
            snapshot=statement.snapshot and simple is not None,
            rows=simple is not None,
            session=session.pid,
        )
    except KeyError as error:
        relation = session.catalog.relation_by_oid(int(error.args[0]))
        name = str(error.args[0]) if relation is None else relation.name
        raise SqlError("42P01", f'relation "{name}" does not exist as of timestamp {start}') from None
    if simple is None:
        source.subscription = subscription
        return opened(source)
    select, item = simple
    layout = Layout(columns={(_range_of(select), c.attnum): c.attnum - 1 for c in item.columns})
    asked = conjuncts_of(select.where)
    keep = compile_filter(asked, layout) if asked else None
    project = compile_row([t.expr for t in select.targets], layout)
    return opened(TableSource(session, subscription, statement, keep, project, env, searched, permit))


def moment_of(session: Session, expr: Expr, clause: str, env: Env, timeline: str | None) -> Timestamp:
    """Return the timestamp that the moment of a clause is, in a timeline. SqlError 22004, 22007, 22023."""
    value = compile_expr(expr)((), env)
    return timestamp_of(value, expr.type.oid, session, clause, session.db.clock_us(), timeline)


async def _as_of(session: Session, expr: Expr | None, env: Env, timeline: str | None) -> Timestamp | None:
    if expr is None:
        return None
    ts = moment_of(session, expr, "AS OF", env, timeline)
    store = session.db.store
    if ts > max(store.present(timeline), store.read_ts(timeline)):
        raise SqlError(
            "22023",
            f"AS OF {ts} is in the future",
            hint=f"The latest readable timestamp is {store.read_ts(timeline)}.",
        )
    await store.reach(ts, timeline)
    return ts


def _check_columns(session: Session, relations: Sequence[RelationRange], ts: Timestamp) -> None:
    """Refuse to read at a timestamp at which a table had not yet the columns that the query was bound to (55000)."""
    then = session.space.at(ts)
    for item in relations:
        table = then.relation_by_oid(item.oid)
        if table is None:
            continue  # opening says that it did not exist
        types = {column.attnum: column.type.oid for column in table.live}
        if any(types.get(column.attnum) != column.type.oid for column in item.columns):
            raise SqlError(
                "55000",
                f'table "{item.name}" had other columns at timestamp {ts}',
                hint="A named subscription goes on with the columns of its position.",
            )


def goes_by_row(query: QueryExpr) -> bool:
    """Tell whether each changed row is filtered and projected by itself; else the query is asked again (EXPLAIN)."""
    return _one_table(query) is not None


def _range_of(select: Select) -> int:
    item = select.from_[0]
    if not isinstance(item, RangeRef):
        raise AssertionError(f"a subscription reads {type(item).__name__}, not a range")
    return item.range


def _one_table(query: QueryExpr) -> tuple[Select, RelationRange] | None:
    """Return a query's parts if each of its rows comes of one row of one table, and of nothing else."""
    if (
        not isinstance(query, Select)
        or len(query.from_) != 1
        or not isinstance(query.from_[0], RangeRef)
        or query.grouped
        or query.distinct
        or query.having is not None
        or query.windows
        or query.limit is not None
        or query.offset is not None
        or query.order
        or query.ctes
    ):
        return None
    item = query.ranges[query.from_[0].range]
    if not isinstance(item, RelationRange) or len(query.ranges) != 1:
        return None
    exprs = [t.expr for t in query.targets] + ([] if query.where is None else [query.where])
    for expr in exprs:
        if has_sublink(expr):
            return None
        for node in walk(expr):
            if isinstance(node, Var) and node.attnum <= 0:
                return None
            if isinstance(node, FuncExpr) and node.returns_set:
                return None
    return query, item


def stream(source: Source, statement: Subscribe) -> RowStream:
    """Return a source as a result that executors could have produced."""
    return RowStream(columns=statement.columns, batches=SourceRows(source), close=source.close, live=True)


def only_outside_transaction(session: Session) -> None:
    """Raise 25001 in a transaction: what it reads is of one moment, which a subscription leaves behind."""
    if session.block.txn is not None:
        raise SqlError(
            "25001",
            "SUBSCRIBE cannot run in a transaction that has begun",
            hint="DECLARE a cursor FOR it, or run it outside the transaction.",
        )


async def run_subscribe(
    session: Session, plan: Plan, statement: Subscribe, params: tuple[Any, ...]
) -> Outcome:
    """SUBSCRIBE as a statement or a portal. statement_timeout does not count: it is meant to go on."""
    only_outside_transaction(session)
    session.connection.interrupts.goes_on()
    source = await open_source(session, plan, statement, params)
    return Rows(statement.columns, stream(source, statement), tag="SUBSCRIBE")


async def declare(
    session: Session, plan: Plan, statement: DeclareSubscribe, params: tuple[Any, ...]
) -> Outcome:
    """DECLARE ... CURSOR FOR SUBSCRIBE, in a transaction block."""
    session.connection.cursors.check_new(statement.name)
    if session.block.state is not BLOCK:
        raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    source = await open_source(session, plan, statement.subscribe, params)
    session.connection.cursors.declare_live(
        statement, source, Rows(statement.subscribe.columns, stream(source, statement.subscribe))
    )
    return Command("DECLARE CURSOR")
