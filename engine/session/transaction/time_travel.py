"""Which timestamp a transaction reads at: AS OF SYSTEM TIME, consistency levels, min_read_ts, imported snapshots.

    AS OF SYSTEM TIME expression ──(evaluated per execution)──> timestamp ─┐ consistency, max_staleness,
    min_read_ts, what the session saw ─────────┴─> txn.transaction.selection.choose ──> Selection Selection
    ──(reach: wait for the clock and for commits under way)──> transaction at that timestamp, and its catalog

The usual transaction, ``consistency = strict`` without a demand, does not come here: it reads at the newest commit.

``engine.session.transaction.moments`` says what the value may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.storage.stored import CATALOG_SHARD
from engine.session.plans.plan import Plan, Replan
from engine.session.transaction.block_state import BLOCK
from engine.session.transaction.moments import moment
from engine.session.transaction.timelines import gone, unknown
from pgwire.codecs.errors import DataError
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.evaluate import Env, Shared, compile_expr
from planner.facts import DATE, INT2, INT4, INT8, INTERVAL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, UNKNOWN
from planner.functions.time.values import date_to_instant, instant, session_zone
from planner.parse import parse
from planner.parse.as_of import AsOf
from planner.query import Select
from planner.query.walk import ranges_of
from planner.statements import StatementClass
from txn.api import Transaction
from txn.base.errors import ReadBelowSince
from txn.base.time import moment_text, timestamp_ms
from txn.base.types import ShardId, Timestamp
from txn.transaction.selection import Bound, Readable, Request, Selection, choose

if TYPE_CHECKING:
    from engine.session.session import Session

_PARAMETER = re.compile(r"\$(\d+)")
_TEXTS = frozenset((TEXT, UNKNOWN, 1043, 1042, 19))

_NUMBERS = frozenset((INT2, INT4, INT8, NUMERIC))
MIN_SKEW_MS = 1000  # what a clock is off by within a transaction is no step of it


class AsOfValue:
    """The compiled expression of one clause.

    ``params``: the types of ``$1 ...`` as far as the expression needs them; with some, nothing is known before it runs.
    """

    __slots__ = ("_function", "_plan", "_type", "params", "span")

    def __init__(
        self,
        session: Session,
        clause: AsOf,
        param_oids: tuple[int, ...] = (),
        *,
        variable_params: bool = False,
    ) -> None:
        """Bind the expression; parameters as in ``Planning.bind``.

        SqlError 0A000 unless it is constant; 42804 for a type that is no time; 42P02.
        """
        self.span = clause.span
        try:
            parsed = parse(f"SELECT {clause.text}\n")
            bound = bind_statement(
                parsed[0].statement,
                clause.text,
                session.catalog,
                session.search_path,
                settings=session.bind_settings,
                database=session.database,
                param_types=_numbered(clause.text, param_oids) if variable_params or param_oids else (),
                variable_params=variable_params,
                security=session.row_security,
            )
        except SqlError as error:
            raise _at(error, clause) from None
        except DataError as error:
            raise _at(SqlError(error.sqlstate, error.message, detail=error.detail), clause) from None
        query = getattr(bound.statement, "query", None)
        if (
            len(parsed) != 1 or not isinstance(query, Select) or len(query.targets) != 1 or bound.volatile
            or bound.class_ is not StatementClass.READ_ONLY or bound.reads or next(iter(ranges_of(query)), None)
        ):  # fmt: skip
            raise _at(SqlError("0A000", "AS OF SYSTEM TIME takes a constant expression only"), clause)
        self._plan = Plan(bound, session.catalog)
        self.params = bound.params
        self._type = query.columns[0].type.oid
        if self._type not in _TEXTS | _NUMBERS | {TIMESTAMPTZ, TIMESTAMP, DATE, INTERVAL}:
            raise _at(SqlError("42804", "AS OF SYSTEM TIME takes a time, an interval or an integer"), clause)
        try:
            self._function = compile_expr(query.targets[0].expr)
        except SqlError as error:
            raise _at(error, clause) from None

    def with_types(self, param_oids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the types of the whole statement's parameters, those of this expression filled in."""
        length = max(len(param_oids), len(self.params))
        declared = param_oids + (0,) * (length - len(param_oids))
        own = self.params + (0,) * (length - len(self.params))
        return tuple([a or b for a, b in zip(declared, own, strict=True)])

    def timestamp(
        self, session: Session, params: tuple[Any, ...] = (), timeline: str | None = None
    ) -> Timestamp:
        """Return its value now, in a timeline; ``params``: the statement's.

        SqlError 22023, 22007, 22008 for one that is no timestamp; 42704 for a timeline that is gone.
        """
        if session.block.txn is None and session.block.state is not BLOCK:
            session.transaction_time_us = session.statement_time_us or session.db.clock_us()
        try:
            params = params[: len(self.params)]
            stable = self._plan.stable_values(session, params)
            value = self._function((), Env(params + stable, session, shared=Shared()))
            return timestamp_of(value, self._type, session, timeline=timeline)
        except SqlError as error:
            if error.span is None:
                error.span = self.span
            raise
        except DataError as error:
            raise SqlError(error.sqlstate, error.message, span=self.span) from None


def _numbered(text: str, param_oids: tuple[int, ...]) -> tuple[int, ...]:
    """Return the types of the parameters up to the highest in ``text``: as declared, open, or for others text."""
    numbers = {int(n) for n in _PARAMETER.findall(text)}
    declared = dict(enumerate(param_oids, 1))
    return tuple(
        [declared.get(n, 0) or (0 if n in numbers else TEXT) for n in range(1, max(numbers, default=0) + 1)]
    )


def _at(error: SqlError, clause: AsOf) -> SqlError:
    error.span = clause.span
    return error


def timestamp_of(
    value: Any,
    oid: int,
    session: Session,
    clause: str = "AS OF SYSTEM TIME",
    now_us: int | None = None,
    timeline: str | None = None,
) -> Timestamp:
    """Convert a value of one of the types that ``clause`` takes; of the value domain. SqlError 22004, 22023.

    Intervals count from ``now_us`` (None: the transaction's time), or from where timestamps stand if that is later.
    """
    if value is not None and oid == TIMESTAMP:
        value, oid = instant(value, session_zone(session)), TIMESTAMPTZ
    elif value is not None and oid == DATE:
        value, oid = date_to_instant(value, session_zone(session)), TIMESTAMPTZ
    store = session.db.store
    if timeline is not None and not store.has_timeline(timeline):
        raise unknown(timeline)
    skew_ms = store.skew_ms(timeline)
    settings, least_skew_ms = session.codec_settings, 1
    if now_us is None:
        now_us, least_skew_ms = session.transaction_time_us, MIN_SKEW_MS
    if skew_ms < least_skew_ms:
        return moment(value, oid, clause, now_us, settings)
    # The clock was set back, or a restart began above what was handed out before: timestamps wait for it, and '-5s'
    # is five seconds before where they stand (not before the clock and its lag, which are read at two moments).
    present: Timestamp = store.present(timeline)
    found = moment(value, oid, clause, timestamp_ms(present) * 1000, settings)
    exact = oid in _NUMBERS or (oid in _TEXTS and value.strip().isdigit())
    if not exact and 0 <= timestamp_ms(present) - timestamp_ms(found) <= 1:
        return Timestamp(present - 1)  # all of their last millisecond is now
    return found


# --- choosing -------------------------------------------------------------------------------------


def since_bounds(session: Session, oids: Iterable[int]) -> tuple[Bound, ...]:
    """Return why what is read cannot be read earlier: one bound per stored table, or the catalog's."""
    store = session.db.store
    kept = session.settings.show("history_retention")
    bounds = []
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is not None and relation.stored:
            name = f"{relation.schema}.{relation.name}"
            bounds.append(
                Bound(store.since_of(ShardId(oid)), f"since of table {name} (history_retention = {kept})")
            )
    floor = session.space.history.floor
    since = store.since_of(ShardId(CATALOG_SHARD))
    why = f"history_retention = {kept}" if since > floor else "history begins there"
    catalog = Bound(max(since, floor), f"since of the catalog ({why})")
    return (*bounds, catalog)


def readable(
    session: Session, oids: Iterable[int], read_ts: Timestamp | None = None, timeline: str | None = None
) -> Readable:
    """Return what there is to read for a statement that reads the relations ``oids``, in a timeline."""
    store, lease = session.db.store, session.db.lease
    behind_ms = 0 if lease is None or lease.valid() else max(1, round(-lease.remaining_s() * 1000))
    return Readable(
        since=since_bounds(session, oids),
        read_ts=store.read_ts(timeline) if read_ts is None else read_ts,
        present=store.present(timeline),
        behind_ms=behind_ms,
    )


def request(session: Session, plan: Plan, as_of: AsOfValue | None, params: tuple[Any, ...] = ()) -> Request:
    """Return what the session's settings and the statement ask for; who writes reads the newest (L7)."""
    derived = session.derived
    weak = plan.only_reads or isinstance(plan.bound.statement, st.Explain | st.DeclareCursor)
    return Request(
        level=derived.consistency if weak else "strict",
        staleness_ms=derived.max_staleness_ms,
        observed=session.block.observed_ts,
        as_of=None if as_of is None else as_of.timestamp(session, params, plan.enters or None),
        min_read_ts=derived.min_read_ts,
    )


async def start(session: Session, plan: Plan, as_of: AsOfValue | None, params: tuple[Any, ...] = ()) -> None:
    """Start the session's transaction at the timestamp that is asked for.

    Raises ReadBelowSince, ReadInFuture, and what waiting for a timestamp may raise.
    """
    timeline = plan.enters or None
    waited = False
    while True:
        if timeline is not None and as_of is None and not session.db.store.has_timeline(timeline):
            raise Replan  # it was dropped, and its tables, while it waited
        asked = request(session, plan, as_of, params)
        found = choose(asked, readable(session, plan.bound.reads, timeline=timeline))
        if found.lead and not session.db.leading():
            await session.db.wait_leading()
            continue
        if timeline is None and as_of is not None:
            await session.db.store.reach_everywhere(found.ts)
        elif timeline is None and found.wait:
            await session.db.store.reach_everywhere(found.ts)
            waited = True
            continue  # what can be read now, in all timelines in this turn
        elif found.wait:
            await session.db.store.reach(found.ts, timeline)
        try:
            found = replace(found, wait=found.wait or waited)
            session.block.start_at(found, historic=as_of is not None, timeline=timeline)
        except ReadBelowSince:
            if as_of is None:
                continue  # since moved on during the wait
            raise
        except KeyError:
            continue  # the timeline went during the wait
        return


def catalog_at(session: Session, as_of: AsOfValue) -> Any:
    """Return the catalog that a clause makes visible to the session, before any transaction has begun.

    Raises ReadBelowSince, ReadInFuture.
    """
    asked = Request(as_of=as_of.timestamp(session))
    found = choose(asked, readable(session, ()))
    return session.past(found.ts)


async def read_past(session: Session, as_of: AsOfValue, timeline: str) -> Transaction:
    """Begin a transaction of its own that reads at a clause's timestamp of a timeline; roll it back in the end.

    For a statement that writes now what was read then (CREATE TABLE AS). Raises ReadBelowSince, ReadInFuture.
    """
    store = session.db.store
    asked = Request(as_of=as_of.timestamp(session, timeline=timeline))
    found = choose(asked, readable(session, (), timeline=timeline))
    if found.wait:
        await store.reach(found.ts, timeline)
    try:
        txn: Transaction = store.begin(read_only=True, at=found.ts, session=session.pid, timeline=timeline)
    except KeyError:
        raise gone(timeline) from None
    return txn


def check_same(session: Session, as_of: AsOfValue, params: tuple[Any, ...] = ()) -> None:
    """Within a transaction the clause may only say again what it reads at. SqlError 25001."""
    txn = session.block.txn
    if txn is not None and as_of.timestamp(session, params, txn.timeline_name) != txn.read_ts:
        raise SqlError(
            "25001",
            "AS OF SYSTEM TIME differs from the timestamp that this transaction reads at",
            hint="BEGIN AS OF SYSTEM TIME, or SET TRANSACTION AS OF SYSTEM TIME before any query, sets that.",
            span=as_of.span,
        )


def describe(session: Session, plan: Plan, selection: Selection | None) -> list[str]:
    """Return the lines of EXPLAIN (TIMESTAMP): the timestamp, every bound with its reason, what is read (L5, N3)."""
    txn = session.block.ensure_txn()
    if selection is None:
        selection = choose(
            Request(), readable(session, plan.bound.reads, txn.read_ts, session.block.timeline_name)
        )
    lower = {bound.reason: bound for bound in (*since_bounds(session, plan.bound.reads), *selection.lower)}
    selection = replace(selection, lower=tuple(lower.values()))
    lines = [
        f"Timestamp: {selection.ts} ({moment_text(selection.ts)})",
        f"Timeline: {session.block.timeline_name or 'any (nothing that it reads is in one)'}",
        f"Consistency: {session.derived.consistency}",
    ]
    lines.append(f"Waited: {'for the clock or a commit' if selection.wait else 'no'}")
    lines += ["Bounds (* decided):", *selection.explain()[1:]]
    return lines
