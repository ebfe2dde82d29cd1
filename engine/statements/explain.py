"""EXPLAIN: statement class, timestamp, route and reason, and what the route executes (N3).

    statement ──> its parts (WITH items that change data, then itself) ──> per part: route, guess, the
    executor's own plan

With ANALYZE the statement runs, through the same functions as without EXPLAIN, and what it returns is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.base.explain.estimated_cost import Estimate, Estimator, RowsOf, estimate, width_of
from engine.base.explain.formats import Shown, as_object, document, text_lines
from engine.base.explain.texts import Texts
from engine.base.explain.tree import Measured, PlanNode
from engine.base.loop.threads import beside
from engine.base.rows import ReadyRows
from engine.base.settings.defs import MAX_BYTES, definitions
from engine.changes.bulk.spark_load import may_load, returns_few
from engine.changes.constraints.effects import may_bulk_load
from engine.changes.writes.dml import InsertPlan
from engine.changes.writes.insert_bulk import BulkSource
from engine.changes.writes.update_delete import ChangePlan
from engine.changes.writes.with_changes import plans_of
from engine.definitions.needs.privileges import check as check_privileges
from engine.feeds.subscriptions.subscribe import goes_by_row
from engine.plans.planning import LONG_TEXT
from engine.plans.query import CompiledQuery, choose_route, collect, compile_ahead, compiled_query
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Rows
from engine.session.transaction import time_travel
from pgwire.give_way import openly
from planner import query as q
from planner import statements as st
from planner.base.errors import not_supported
from planner.base.quoting import quote_identifier
from planner.query import OutputColumn, QueryExpr
from planner.rules.route import Route
from planner.types import SqlType

if TYPE_CHECKING:
    from engine.session.session import Session

_TEXT, _JSON = 25, 114
_CHOOSING = ("executor", MAX_BYTES, "consistency", "search_path")
"""Settings that decide how a statement is planned, which SETTINGS shows where they are not what they are by default."""


def _parts(session: Session, plan: Plan) -> list[tuple[str, Plan]]:
    """Return a statement's parts, its WITH items that change data under titles, and itself at last."""
    statement = plan.bound.statement
    if not isinstance(statement, st.WithChanges):
        return [("", plan)]
    titles = [step.name for step in statement.steps]
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
        serves = BulkSource.serves(insert) and not BulkSource.computes(insert)
        serves = serves and not plan.locking and may_bulk_load(session, relation)
        return serves and may_load(query, relation, statement.attnums)
    if isinstance(statement, q.Update):
        change = ChangePlan(session, statement)
        return change.plain and not change.shape.by_row and not plan.locking
    return isinstance(statement, st.CreateTable) and not returns_few(query)


def _shown(value: Any) -> str:
    """Return a fact as the text format prints it; fractions are milliseconds."""
    if isinstance(value, dict):
        return ", ".join(f"{name} = '{setting}'" for name, setting in value.items())
    return f"{value:.3f} ms" if isinstance(value, float) else str(value)


def _sizes(session: Session, parts: Sequence[_Part]) -> dict[int, int]:
    """Return how many rows the tables have that a statement reads, by oid."""
    txn, catalog = session.block.ensure_txn(), session.catalog
    read = {shard for part in parts if part.compiled is not None for shard in part.compiled.tables}
    found = [(shard, catalog.relation_by_oid(shard)) for shard in read]
    return {
        int(shard): txn.stats(shard).rows
        for shard, relation in found
        if relation is not None and relation.stored
    }


def _estimated(session: Session, plan: Plan, query: QueryExpr, rows_of: RowsOf) -> Estimate:
    """Return the guess for a statement; one that changes rows returns none, as in PostgreSQL."""
    found = estimate(query, session.catalog.relation_by_oid, rows_of)
    if not isinstance(plan.bound.statement, q.Insert | q.Update | q.Delete | q.Merge):
        return found
    columns = plan.bound.columns
    if columns is None:
        return Estimate(rows=0, width=0, cost=found.cost)
    return Estimate(rows=found.rows, width=width_of(columns), cost=found.cost)


_CHANGES: tuple[tuple[type, str], ...] = (
    (q.Insert, "Insert"),
    (q.Update, "Update"),
    (q.Delete, "Delete"),
    (q.Merge, "Merge"),
)


def _changing(session: Session, statement: Any, below: PlanNode | None, texts: Texts) -> PlanNode:
    """Return a plan under the node of the change that is made of its rows; a query's plan stays as it is."""
    operation = next((word for kind, word in _CHANGES if isinstance(statement, kind)), None)
    if operation is None:
        return below or PlanNode("Result", "Result")
    relation = session.catalog.relation_by_oid(statement.table)
    facts: dict[str, Any] = {"Operation": operation}
    name = "" if relation is None else relation.name
    if relation is not None:
        facts["Relation Name"] = name
        if texts.verbose:
            facts["Schema"] = relation.schema
            name = f"{quote_identifier(relation.schema)}.{quote_identifier(name)}"
        facts["Alias"] = relation.name
    made = PlanNode(
        "ModifyTable", f"{operation} on {name if texts.verbose else quote_identifier(name)}", facts
    )
    if isinstance(statement, q.Insert) and statement.on_conflict is not None:
        made.details["Conflict Resolution"] = (
            "UPDATE" if statement.on_conflict.action == "update" else "NOTHING"
        )
    made.add(below or PlanNode("Result", "Result"), "Outer")
    return made


@dataclass(slots=True)
class _Part:
    """A part of the statement: its title, if it is a WITH item, and what was chosen for it."""

    title: str
    plan: Plan
    query: QueryExpr | None = None
    compiled: CompiledQuery | None = None
    route: Route | None = None
    executable: Any = None


def _choose(session: Session, inner: Plan, params: tuple[Any, ...], *, measure: bool) -> list[_Part]:
    """Return the parts of a statement with their routes."""
    parts = []
    for title, own in _parts(session, inner):
        part = _Part(title, own)
        source = _source(own.bound.statement)
        if source is not None:
            slot, part.query = source
            part.compiled = compiled_query(own, slot, part.query)
            part.route, part.executable = choose_route(session, part.compiled, params)
            if measure:
                session.db.executors[part.route.executor].measure(part.executable)
        parts.append(part)
    return parts


def _tree(session: Session, parts: list[_Part], texts: Texts, facts: dict[str, Any]) -> PlanNode:
    """Return the plan of a statement, and note in ``facts`` what is chosen for it as a whole."""
    items: list[PlanNode] = []
    root = PlanNode("Result", "Result")
    for part in parts:
        statement = part.plan.bound.statement
        below: PlanNode | None = None
        if part.query is not None and part.route is not None:
            texts.looks_at(part.query, part.plan.bound.stable, len(part.plan.bound.params))
            below = session.db.executors[part.route.executor].explain(part.executable, texts)
            if below.actual is not None and not below.actual.loops:
                below.unmeasured()  # it has run, by a way of its own: one row of VALUES, a change by key
        root = _changing(session, statement, below, texts)
        if part.route is None:
            continue
        if part.title:
            root.details["Route"] = f"{part.route.executor}, {part.route.reason}"
            root.role, root.name = "InitPlan", f"CTE {part.title}"
            items.append(root)
            continue
        facts["Route"], facts["Reason"] = part.route.executor, part.route.reason
        if (
            part.route.executor == "spark"
            and part.query is not None
            and _loads(session, part.plan, statement, part.query)
        ):
            facts["Rows"] = "written as parts by Spark's executors"
        if texts.estimator is not None and part.query is not None:
            guess = _estimated(session, part.plan, part.query, texts.estimator.rows_of)
            root.rows, root.width, root.cost = guess.rows, guess.width, guess.cost
    root.inputs = [*items, *root.inputs]
    return root


async def _run(session: Session, inner: Plan, params: tuple[Any, ...], facts: dict[str, Any]) -> Measured:
    """Run the statement, throw away what it returns, and return what was measured of the whole."""
    measured = Measured(loops=1)
    started = session.clock_time_us()
    result = await session.db.ports.run_statement(session, inner, params)
    if isinstance(result, Rows):
        measured.rows = len(await collect(session, result.result))
    elif isinstance(result, Command):
        facts["Result"] = result.tag
    measured.total_s = measured.first_s = (session.clock_time_us() - started) / 1_000_000
    return measured


async def run_explain(
    session: Session, plan: Plan, statement: st.Explain, params: tuple[Any, ...]
) -> Outcome:
    """Run EXPLAIN [ANALYZE]. Buffers and WAL are PostgreSQL's own: their counters are zero
    (docs/reference/sql/explain.md).
    """
    options = {
        name: value if name == "format" else value == "on" for name, value in statement.options.items()
    }
    format_, analyze = options.get("format", "text"), bool(options.get("analyze"))
    txn = session.block.ensure_txn()
    txn.next_statement()
    body = statement.body
    inner = openly(Plan, body, session.catalog)
    if inner.fails is not None:
        raise inner.fails.copy()
    if isinstance(body.statement, st.ExecutePrepared):
        check_privileges(session, inner)
        prepared, params = session.connection.prepared.to_execute(inner, body.statement, params)
        if prepared.as_of is not None:
            raise not_supported("EXPLAIN EXECUTE of a statement AS OF SYSTEM TIME")
        check_privileges(session, prepared)
        body = prepared.bound
        if prepared.enters:
            session.block.enter(prepared.enters, prepared.tables)
        inner = Plan(body, session.catalog) if analyze else prepared  # what is measured is nobody else's
    facts: dict[str, Any] = {"Statement Class": body.class_.value, "Read Timestamp": int(txn.read_ts)}
    text_before: list[str] = []
    if options.get("timestamp"):
        bounds = time_travel.describe(session, plan, session.block.selection)
        if format_ != "text":
            facts["Timestamp"] = bounds
        else:
            text_before = bounds
    if isinstance(body.statement, st.Subscribe):
        facts["Changes"] = "row by row" if goes_by_row(body.statement.query) else "asked again at each commit"
    costs = bool(options.get("costs", True))
    started = session.clock_time_us()
    long = len(body.text) > LONG_TEXT  # others go on
    if long:
        for _, own in _parts(session, inner):
            await beside(compile_ahead, own, session.db.executors["index"], session.catalog)
    parts = _choose(session, inner, params, measure=analyze)
    planned = (session.clock_time_us() - started) / 1000
    whole = await _run(session, inner, params, facts) if analyze else None
    sizes = _sizes(session, parts)
    estimator = Estimator(session.catalog.relation_by_oid, lambda oid: sizes.get(oid, 0)) if costs else None
    texts = Texts(session, estimator, verbose=bool(options.get("verbose")))
    if long:
        tree = await beside(_tree, session, parts, texts, facts)
    else:
        tree = openly(_tree, session, parts, texts, facts)
    if whole is not None and (tree.actual is None or not tree.actual.loops):
        tree.actual = whole
    if options.get("settings"):
        facts["Settings"] = {
            name: value for name in _CHOOSING if (value := session.settings.get(name)) != definitions()[name].default
        }  # fmt: skip
    if options.get("summary", analyze):
        facts["Planning Time"] = planned
        if whole is not None:
            facts["Execution Time"] = whole.total_s * 1000
    shown = Shown(
        costs=costs, timing=bool(options.get("timing", True)), buffers=bool(options.get("buffers")),
        wal=bool(options.get("wal")),
    )  # fmt: skip
    if format_ != "text":
        answer = document(str(format_), as_object(tree, shown), facts)
        columns = (OutputColumn(name="QUERY PLAN", type=SqlType(_JSON if format_ == "json" else _TEXT)),)
        return Rows(columns, ReadyRows(columns, [(answer,)]), tag="EXPLAIN", final_tag=True)
    columns = (OutputColumn(name="QUERY PLAN", type=SqlType(_TEXT)),)
    text = [
        *text_before,
        *text_lines(tree, shown),
        *(f"{name}: {_shown(value)}" for name, value in facts.items()),
    ]
    return Rows(columns, ReadyRows(columns, [(line,) for line in text]), tag="EXPLAIN", final_tag=True)
