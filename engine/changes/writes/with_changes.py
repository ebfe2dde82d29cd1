"""WITH items that change data: the parts of a statement, run one after the other on one snapshot.

    WITH d AS (DELETE ... RETURNING ...), u AS (UPDATE ...) INSERT INTO log SELECT ... FROM d
      1  steps that the body reads, and what these read    d     rows kept for who reads them
      2  the body                                                its result is the statement's
      3  steps that nobody has read, the last one first    u
      4  foreign keys and deferred keys of all that was changed

The order of 2 and 3 is PostgreSQL's. No part sees what another one changes, because a statement never sees
its own changes; all locks of tables are taken before the first part, so that none finds another definition
than it was planned for.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.executor import Result, RowsChanged
from engine.base.rows import ReadyRows
from engine.changes.constraints.effects import follow
from engine.changes.writes.dml import run_insert, tables_to_lock
from engine.changes.writes.many import few_or_more
from engine.changes.writes.merge import run_merge
from engine.changes.writes.spooled import Gathering, gathered
from engine.changes.writes.update_delete import run_delete, run_update
from engine.plans.query import compiled_query, context, prepare_source, run_query
from engine.session.plans.plan import Plan
from engine.session.portal import Outcome, Rows
from engine.session.statement_parts import Parts
from planner import query as q
from planner import statements as st
from planner.statements.classify import classify, returned_rows
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

Part = st.QueryStatement | q.Insert | q.Update | q.Delete | q.Merge


def source_of(part: Part) -> tuple[str, q.QueryExpr] | None:
    """Return (plan slot, query) of what a part reads, None for INSERT ... DEFAULT VALUES."""
    if isinstance(part, st.QueryStatement):
        return "query", part.query
    return None if part.source is None else ("source", part.source)


async def run_inner(
    session: Session,
    plan: Plan,
    change: q.Insert | q.Update | q.Delete | st.WithChanges,
    params: tuple[Any, ...],
) -> Rows:
    """Run a change with RETURNING that is part of another statement, ``plan``'s, and return its rows. Raises
    what it raises.
    """
    if plan.dml is None:
        body = change.body if isinstance(change, st.WithChanges) else change
        name = "SELECT" if isinstance(body, st.QueryStatement) else type(body).__name__.upper()
        plan.dml = _plan_of(session, plan, change, name)
    own: Plan = plan.dml
    if isinstance(change, st.WithChanges):
        outcome = await run_with_changes(session, own, change, params)
    else:
        outcome = await _run(session, own, change, params)
    if not isinstance(outcome, Rows):
        raise AssertionError(f"a statement that returns rows ended as {type(outcome).__name__}")
    return outcome


def plans_of(session: Session, plan: Plan, statement: st.WithChanges) -> Sequence[Plan]:
    """Return a plan for each part, the body's last; kept with the statement's own."""
    if plan.dml is None:
        session.view.insist(plan)
        plan.dml = [_plan_of(session, plan, part) for part in statement.parts]
    plans: Sequence[Plan] = plan.dml
    return plans


def _plan_of(session: Session, plan: Plan, part: Part | st.WithChanges, tag: str = "") -> Plan:
    bound = replace(
        plan.bound,
        statement=part,
        class_=classify(part),
        columns=returned_rows(part),
        tag=tag or plan.bound.tag,
    )
    return Plan(bound, session.catalog, session.search_path)


async def run_with_changes(
    session: Session, plan: Plan, statement: st.WithChanges, params: tuple[Any, ...]
) -> Outcome:
    """Run all parts. Raises what they raise; then everything they did is undone with the statement."""
    plans = plans_of(session, plan, statement)
    await _lock(session, plan, plans, statement)
    parts = session.parts = Parts(session.transitions)
    txn = session.block.ensure_txn()
    mark = txn.savepoint()
    before, after = in_order(statement)
    try:
        for number in before:
            parts.rows[number] = await _rows_of(
                session, plans[number], statement.steps[number].statement, params
            )
        outcome = await _run(session, plans[-1], statement.body, params)
        for number in after:
            parts.rows[number] = await _rows_of(
                session, plans[number], statement.steps[number].statement, params
            )
    except RowsChanged:
        undoing = txn.rollback_to(mark)  # it is going to run again, and its locks are kept
        if undoing is not None:
            await undoing
        raise
    finally:
        session.parts = None
    await follow(session, parts.changes)
    parts.let_go()
    return outcome


def in_order(statement: st.WithChanges) -> tuple[list[int], list[int]]:
    """Return the steps that run before the body, and those that run after it; a query that nobody reads does
    not run.
    """
    before = sorted(_closed(statement, statement.needs))
    after: list[int] = []
    for number, step in reversed(list(enumerate(statement.steps))):
        if isinstance(step.statement, st.QueryStatement):
            continue
        done = {*before, *after}
        after += sorted(_closed(statement, frozenset((number,))) - done)
    return before, after


def _closed(statement: st.WithChanges, numbers: frozenset[int]) -> set[int]:
    found: set[int] = set()
    todo = list(numbers)
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo.extend(statement.steps[number].needs)
    return found


async def _lock(session: Session, plan: Plan, plans: Sequence[Plan], statement: st.WithChanges) -> None:
    """Lock the tables of all parts before the first one runs. Raises Replan where the plan no longer fits."""
    scans: dict[ShardId, None] = {}
    for part, own in zip(statement.parts, plans, strict=True):
        source = source_of(part)
        if source is not None and own.bound.reads:
            prepare_source(session, compiled_query(own, *source))
            scans.update(dict.fromkeys(tables_to_lock(session, own, source[0])))
    writes = [ShardId(oid) for oid in sorted(plan.bound.writes)]
    await session.view.start_write(plan, writes, list(scans))


async def _rows_of(
    session: Session, plan: Plan, part: Part, params: tuple[Any, ...]
) -> Sequence[tuple[Any, ...]]:
    """Run a step to its end and return its rows, all of which are there."""
    outcome = await _run(session, plan, part, params)
    return outcome.result.rows if isinstance(outcome, Rows) and isinstance(outcome.result, ReadyRows) else ()


async def _run(session: Session, plan: Plan, part: Part, params: tuple[Any, ...]) -> Outcome:
    match part:
        case q.Insert():
            return await run_insert(session, plan, part, params)
        case q.Update():
            return await run_update(session, plan, part, params)
        case q.Delete():
            return await run_delete(session, plan, part, params)
        case q.Merge():
            return await run_merge(session, plan, part, params)
    result = await run_query(session, plan, "query", part.query, context(session, plan, params))
    columns = part.query.columns
    return Rows(columns, ReadyRows(columns, await _gathered(session, result)))


async def _gathered(session: Session, result: Result) -> Sequence[tuple[Any, ...]]:
    """Return all rows of a query: many of them are in a file."""
    few, pieces = await few_or_more(session, result)
    if pieces is None:
        return few
    rows: Gathering = []
    async with aclosing(pieces):
        async for some in pieces:
            rows = gathered(session, rows, some, "the rows of a WITH item")
    return rows
