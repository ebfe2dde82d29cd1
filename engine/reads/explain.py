"""EXPLAIN: statement class, timestamp, route and reason, and what the route executes (N3).

    statement ──> its parts (WITH items that change data, then itself) ──> per part: route, cost, the executor's own plan

With ANALYZE the statement runs, through the same functions as without EXPLAIN, and what it returns is thrown away. How the
lines become text, JSON, XML or YAML is in ``explain_formats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import run as runner
from engine.bulk.spark_load import may_load, returns_few
from engine.connection.portal import Command, Outcome, Rows
from engine.connection.rows import ReadyRows
from engine.constraints.effects import may_bulk_load
from engine.ddl.privileges import check as check_privileges
from engine.reads.estimate import ROW_COST, Estimate, estimate, width_of
from engine.reads.explain_formats import cost_text, document, plan_tree
from engine.reads.plans import Plan
from engine.reads.query import choose_route, collect, compiled_query
from engine.subscriptions.subscribe import goes_by_row
from engine.transaction import time_travel
from engine.writes.dml import InsertPlan
from engine.writes.insert_bulk import BulkSource
from engine.writes.update_delete import ChangePlan
from engine.writes.with_changes import plans_of
from pgwire.backend import Responder
from planner import query as q
from planner import statements as st
from planner.errors import SqlError, not_supported
from planner.query import OutputColumn, QueryExpr
from planner.statements import StatementClass
from planner.types import SqlType
from txn.types import ShardId

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.connection.session import Session

_ON = ("on", "true", "1", "")
_TEXT, _JSON = 25, 114
_IGNORED = frozenset(("verbose", "costs", "buffers", "wal", "timing", "summary", "settings", "timestamp"))


def _parts(session: Session, plan: Plan) -> list[tuple[str, Plan]]:
    """Return a statement's parts, its WITH items that change data under titles, and itself at last."""
    statement = plan.bound.statement
    if not isinstance(statement, st.WithChanges):
        return [("", plan)]
    titles = [f"With {step.name}" for step in statement.steps]
    return list(zip((*titles, ""), plans_of(session, plan, statement), strict=True))


def _source(statement: Any) -> tuple[str, QueryExpr] | None:
    """Return (plan slot, query) of what a statement reads."""
    match statement:
        case st.QueryStatement() | st.DeclareCursor() | st.Subscribe():
            return "query", statement.query
        case q.Update() | q.Delete() | q.Merge():
            return "source", statement.source
        case q.Insert() if statement.source is not None:
            return "source", statement.source
        case st.CreateTable() | st.CreateMaterializedView() | st.RefreshMaterializedView():
            return None if statement.query is None else ("query", statement.query)
    return None


def _loads(session: Session, plan: Plan, statement: Any, query: QueryExpr) -> bool:
    """Return whether a statement's rows, selected on Spark, become parts there."""
    if isinstance(statement, q.Insert):
        insert = InsertPlan(session, statement)
        relation = insert.shape.relation
        serves = BulkSource.serves(insert) and not plan.locking and may_bulk_load(session, relation)
        return serves and may_load(query, relation, statement.attnums)
    if isinstance(statement, q.Update):
        change = ChangePlan(session, statement)
        return change.plain and not change.shape.by_row and not plan.locking
    return isinstance(statement, st.CreateTable) and not returns_few(query)


def _shown(value: Any) -> str:
    """Return a fact as the text format prints it; fractions are milliseconds."""
    return f"{value:.3f} ms" if isinstance(value, float) else str(value)


def _what(statement: Any) -> str:
    """Return what the whole statement is called."""
    kinds: tuple[type, ...] = (q.Insert, q.Update, q.Delete, q.Merge)
    body = statement.body if isinstance(statement, st.WithChanges) else statement
    return type(body).__name__ if isinstance(body, kinds) else "Query"


def _estimated(session: Session, plan: Plan, query: QueryExpr) -> Estimate:
    """Return the guess for a statement; one that changes rows returns none, as in PostgreSQL."""
    txn, catalog = session.block.ensure_txn(), session.catalog

    def rows_of(oid: int) -> int:
        relation = catalog.relation_by_oid(oid)
        return txn.stats(ShardId(oid)).rows if relation is not None and relation.stored else 0

    found = estimate(query, catalog.relation_by_oid, rows_of)
    changes = plan.bound.class_ is not StatementClass.READ_ONLY and not isinstance(
        plan.bound.statement, st.QueryStatement | st.DeclareCursor | st.Subscribe
    )
    if not changes:
        return found
    columns = plan.bound.columns
    if columns is None:
        return Estimate(rows=0, width=0, cost=found.cost)
    return Estimate(rows=found.rows, width=width_of(columns), cost=found.cost)


async def run_explain(
    conn: Connection, plan: Plan, statement: st.Explain, params: tuple[Any, ...], out: Responder
) -> Outcome:
    """Run EXPLAIN [ANALYZE]; options that tune PostgreSQL's own output are accepted (docs/sql.md)."""
    session = conn.session
    options = statement.options
    for name in options:
        if name not in _IGNORED and name not in ("analyze", "format"):
            raise SqlError("42601", f'unrecognized EXPLAIN option "{name}"')
    format_ = options.get("format", "text").lower()
    txn = session.block.ensure_txn()
    txn.next_statement()
    body = statement.body
    inner = Plan(body, session.catalog)
    if isinstance(body.statement, st.ExecutePrepared):
        inner, params = conn.prepared.to_execute(inner, body.statement, params)
        if inner.as_of is not None:
            raise not_supported("EXPLAIN EXECUTE of a statement AS OF SYSTEM TIME")
        check_privileges(session, inner)
        body = inner.bound
        if inner.enters:
            session.block.enter(inner.enters, inner.tables)
    facts: dict[str, Any] = {"Statement Class": body.class_.value, "Read Timestamp": int(txn.read_ts)}
    lines: list[str] = []
    text_before: list[str] = []
    if options.get("timestamp", "off") in _ON:
        bounds = time_travel.describe(session, plan, session.block.selection)
        if format_ != "text":
            facts["Timestamp"] = bounds
        else:
            text_before = bounds
    if isinstance(body.statement, st.Subscribe):
        facts["Changes"] = "row by row" if goes_by_row(body.statement.query) else "asked again at each commit"
    costs = options.get("costs", "on") in _ON
    what, guess = _what(body.statement), Estimate(rows=0, width=0, cost=ROW_COST)
    nested = True
    for title, own in _parts(session, inner):
        source = _source(own.bound.statement)
        if source is None:
            lines += [f"{title}: no query"] if title else []
            continue
        slot, query = source
        route, executable = choose_route(session, compiled_query(own, slot, query), params)
        shown = session.db.executors[route.executor].explain(executable)
        if costs:
            guess = _estimated(session, own, query)
        if title:
            lines += [f"{title}: {route.executor}, {route.reason}", *(f"  {line}" for line in shown)]
            continue
        nested = route.executor == "index"
        facts["Route"] = route.executor
        facts["Reason"] = route.reason
        if route.executor == "spark" and _loads(session, own, own.bound.statement, query):
            facts["Rows"] = "written as parts by Spark's executors"
        lines += shown
    if options.get("analyze", "off") in _ON:
        started = session.clock_time_us()
        result = await runner.run(conn, inner, params, out)
        if isinstance(result, Rows):
            facts["Actual Rows"] = len(await collect(session, result.result))
        elif isinstance(result, Command):
            facts["Result"] = result.tag
        facts["Execution Time"] = (session.clock_time_us() - started) / 1000  # milliseconds
    if format_ != "text":
        tree = plan_tree(lines, what, guess if costs else None, nested=nested)
        answer = document(format_, tree, facts)
        columns = (OutputColumn(name="QUERY PLAN", type=SqlType(_JSON if format_ == "json" else _TEXT)),)
        return Rows(columns, ReadyRows(columns, [(answer,)]), tag="EXPLAIN", final_tag=True)
    columns = (OutputColumn(name="QUERY PLAN", type=SqlType(_TEXT)),)
    text = [*text_before, *([cost_text(what, guess)] if costs else [])]
    text += [*(f"{name}: {_shown(value)}" for name, value in facts.items())]
    text += ["Plan:", *(f"  {line}" for line in lines)] if lines else []
    return Rows(columns, ReadyRows(columns, [(line,) for line in text]), tag="EXPLAIN", final_tag=True)
