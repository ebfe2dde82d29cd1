"""UPDATE and DELETE: rows that a query finds, changed one after another or by columns.

    source query ──> row id, old values, new values ──> locks, checks, triggers ──> intents ──> RETURNING
        │                                                        └ few rows
        ├ one key finds them (``engine.changes.writes.by_key``): from its locks to its key at once
        └ more than ``BULK_ROWS``: by columns (``engine.changes.bulk.changes``), or on Spark

What the source's columns are is said in ``planner.query.Update``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.base.executor import CHANGES, CHANGES_NO_KEY, READS, ExecContext, Result
from engine.base.row_ids import RowIds
from engine.base.rows import ReadyRows, RowStream
from engine.base.slices import in_slices
from engine.changes.bulk.changes import (
    BULK_ROWS,
    BulkChanges,
    delete_found,
    delete_referenced,
    update_on_spark,
)
from engine.changes.constraints import effects
from engine.changes.constraints.setwise import check_changed, checked_whole, released_whole
from engine.changes.triggers.firing import firing_of
from engine.changes.triggers.rows import begin, delete_each, refuse_changed, update_each
from engine.changes.writes.by_key import change_alone, change_by_key
from engine.changes.writes.dml import changed_by, made_openly, outcome, tables_to_lock, target_of
from engine.changes.writes.in_turn import computed_in_turn, each_row, in_turn
from engine.changes.writes.many import Gathered, Pieces, change_many, few_or_more
from engine.changes.writes.partitioned_changes import delete_routed, update_routed
from engine.changes.writes.returning import make_env, returning_of
from engine.changes.writes.row_checks import RowChecks
from engine.changes.writes.shape import OF_ROWS, TableShape
from engine.changes.writes.spilling import Spilling
from engine.executors.index.executor import IndexPlan
from engine.plans.query import CompiledQuery, collect, compiled_query, context, prepare_source, run_query
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.codecs.errors import DataError
from pgwire.give_way import openly, paced
from pgwire.release import let_go
from planner.evaluate import Env
from planner.evaluate.short import is_short
from planner.query import Delete, Update
from txn.base.types import Row, RowId

if TYPE_CHECKING:
    from engine.session.session import Session


class ChangePlan:
    """The compiled parts of an UPDATE or DELETE over the source layout of ``planner.query.Update``."""

    __slots__ = (
        "assigned", "assigned_attnums", "by_key", "checks", "deletes", "effects", "extra_from", "firing", "for_update", "in_turn", "keys_kept", "new",
        "none", "old", "one", "plain", "reach", "returning", "shape", "short", "source", "statement", "values_from", "verb",
    )  # fmt: skip

    def __init__(self, session: Session, statement: Update | Delete) -> None:
        """Compile against the session's catalog."""
        relation = target_of(session, statement.table)
        self.statement = statement
        self.deletes = isinstance(statement, Delete)
        self.verb = "DELETE" if self.deletes else "UPDATE"
        self.none, self.one = Command(f"{self.verb} 0"), Command(f"{self.verb} 1")
        self.shape = TableShape.of(relation, session, stores=not self.deletes)
        self.returning = returning_of(session, relation, statement.returning, statement.columns)
        checks = statement.row_checks if isinstance(statement, Update) else ()
        self.checks = RowChecks(session, relation, checks)
        live = relation.live
        slots: list[int | None] = [None] * self.shape.width
        for position, column in enumerate(live):
            slots[column.attnum - 1] = 1 + position
        self.values_from = 1 + len(live)
        assigned = statement.assigned if isinstance(statement, Update) else ()
        if isinstance(statement, Update):
            changed, self.firing = changed_by(session, relation, assigned)
        else:
            changed, self.firing = frozenset(), firing_of(session, relation, "DELETE")
        each = self.firing is not None and self.firing.before_row
        self.shape.assigning(changed if each else assigned)
        self.keys_kept = not any(changed.intersection(index.kept) for index in relation.indexes)
        self.assigned = [(attnum - 1, self.values_from + i) for i, attnum in enumerate(assigned)]
        keys = {attnum for index in relation.indexes if index.unique for attnum in index.kept}
        keeps = isinstance(statement, Update) and keys.isdisjoint(changed)
        self.for_update = CHANGES_NO_KEY if keeps else CHANGES
        self.extra_from = self.values_from + len(assigned)
        new = list(slots)
        for position, source_position in self.assigned:
            new[position] = source_position
        self.old = _picker(slots)
        self.new = _picker(new)
        self.reach = effects.Reach(session, relation, "delete" if self.deletes else "update", changed)
        self.effects = bool(self.reach or self.firing) or relation.checks_late
        # Nothing needs the rows themselves: not the old ones, nor, but for NOT NULL and CHECK, the new ones.
        self.plain = not (self.effects or statement.returning or self.checks or self.checks.views)
        self.assigned_attnums = changed
        # the row executor's plan of a statement whose rows one key finds, once it has run: then nothing is
        # left to decide
        self.by_key: IndexPlan | None = None
        self.short = False  # then: what it computes for a row surely takes no time worth naming
        self.source = statement.source
        if self.plain and self.deletes:
            source = statement.source
            self.source = replace(source, targets=source.targets[:1], columns=source.columns[:1])
        each = self.firing is not None and self.firing.before_row
        self.in_turn = not each and bool(self.shape.shards) and computed_in_turn(statement)
        if self.in_turn:
            self.source = in_turn(self.source)

    def may_be_bulk(self, session: Session) -> bool:
        """Whether rows of an UPDATE may be written as parts, as far as the statement goes: all else that its
        rows cause is checked for the whole table behind it.
        """
        if self.plain:
            return True
        asks = self.statement.returning or self.checks or self.checks.views
        if asks or self.firing is not None or self.shape.relation.checks_late:
            return False
        return checked_whole(session, self.shape.relation, self.assigned_attnums)

    def releases_whole(self, session: Session) -> bool:
        """As ``may_be_bulk``, of a DELETE: all that it causes is that no row may refer to one that is gone."""
        asks = self.statement.returning or self.checks or self.checks.views or self.firing is not None
        return not asks and released_whole(session, self.shape.relation)

    def note_key(self, plan: Plan, query: CompiledQuery) -> None:
        """Remember that one key finds the rows, if nothing else is looked at and nothing follows from what
        becomes of them.
        """
        known: IndexPlan | None = query.compiled.get("index")
        point = None if known is None else known.point
        by_key = known is not None and point is not None and known.is_small and not query.virtual
        alone = not (self.effects or self.checks or self.checks.views or plan.locking)
        if by_key and alone and len(self.source.ranges) == 1 and query.tables:
            self.by_key = known
            found = self.source if point is not None and point.short else None
            plan.short = self.short = self.shape.short and is_short(self.statement, but=found)
            plan.leaves_little = plan.short and self.shape.bounded
            if plan.short and self.returning is None and plan.retryable:
                plan.at_once = change_alone

    def changed(self, rows: Sequence[Row], env: Env) -> list[tuple[RowId, Row]]:
        """Return what an UPDATE makes of source rows, checked."""
        build, shape = self.new, self.shape
        made = shape.made([build(row) for row in rows], env)
        return [(RowId(row[0]), new) for row, new in zip(rows, made, strict=True)]

    async def old_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return the table's rows that source rows have, as they were."""
        return await in_slices(rows, lambda some: [self.old(row) for row in some])

    async def all_changed(self, session: Session, rows: Sequence[Row], env: Env) -> list[tuple[RowId, Row]]:
        """As ``changed``, of many rows, row-level security included; the first row that has an error decides
        which it is.
        """
        try:
            if not (self.checks or self.checks.views):
                return await in_slices(rows, lambda some: self.changed(some, env))
            built = await in_slices(rows, lambda some: [self.new(row) for row in some])
            made = await self.checks.made("update", self.shape, built, env)
            await self.checks.stored(self.shape, made, env)
            return [(RowId(row[0]), new) for row, new in zip(rows, made, strict=True)]
        except DataError as error:
            if error.sqlstate.startswith(OF_ROWS):
                await self._until_it_fails(session, rows, env)
            raise

    async def _until_it_fails(self, session: Session, rows: Sequence[Row], env: Env) -> None:
        """Update row by row where what is asked of one of them fails: an earlier one may break a key, and
        then that is told.
        """
        txn = session.block.ensure_txn()
        for row in rows:
            [made] = await self.checks.made("update", self.shape, [openly(self.new, row)], env)
            await settle(txn.update(self.shape.shard, [(RowId(row[0]), made)]))
            await self.checks.stored(self.shape, [made], env)


def _picker(slots: list[int | None]) -> Callable[[Row], Row]:
    """Return a function that builds a table row from source positions (None: a dropped column)."""
    if not slots or any(slot is None for slot in slots):
        return lambda row: tuple(None if slot is None else row[slot] for slot in slots)
    if len(slots) == 1:
        only = slots[0]
        if only is None:
            raise AssertionError("the only column is taken from no slot")
        return lambda row: (row[only],)
    pick = itemgetter(*slots)
    return lambda row: pick(row)


def _is_routed(session: Session, statement: Update | Delete) -> bool:
    """Tell whether the rows of a statement may lie in several tables."""
    return bool(statement.leaves) or target_of(session, statement.table).kind == "p"


def _change_plan(session: Session, plan: Plan, statement: Update | Delete) -> ChangePlan:
    """Return the compiled parts of a statement, which its plan keeps."""
    if plan.dml is None:
        plan.dml = made_openly(session, plan, lambda: ChangePlan(session, statement))
    change: ChangePlan = plan.dml
    return change


def _known(session: Session, change: ChangePlan) -> bool:
    """Tell whether it is known that one key finds the rows, and the session leaves the choice."""
    return change.by_key is not None and session.derived.executor == "auto" and session.parts is None


async def _start(
    session: Session, plan: Plan, change: ChangePlan, params: tuple[Any, ...]
) -> tuple[CompiledQuery, ExecContext]:
    """Take the statement's locks; return its source."""
    query = compiled_query(plan, "source", change.source)
    prepare_source(session, query)
    ctx = context(session, plan, params, for_update=change.for_update if change.shape.shards else READS)
    await session.view.start_write(plan, change.shape.shards, tables_to_lock(session, plan, "source"))
    if change.effects:
        await effects.prepare(session, change.shape.relation, change.reach)
    session.view.use(plan)
    return query, ctx


async def _source_rows(
    session: Session, plan: Plan, change: ChangePlan, result: Result
) -> tuple[Sequence[Row], Pieces | None]:
    """Return the source's rows if they are few, a target row that joins several source rows once; else pieces
    of all of them.

    Rows that the source locks are all found before the first one is changed: it may have to be run again.
    """
    if plan.locking and not isinstance(result, ReadyRows):
        return _counting(session, change, await collect(session, result)), None
    rows, pieces = await few_or_more(session, result)
    return _counting(session, change, rows), pieces


def _counting(session: Session, change: ChangePlan, rows: Sequence[Row]) -> Sequence[Row]:
    if not change.shape.shards:
        return rows  # of a view: each is told to its triggers
    if len(rows) > 1 and len(change.source.ranges) > 1:
        rows = openly(_first_of_each, rows)
    if session.parts is not None:
        rows = openly(session.parts.first_to_change, change.shape.shard, rows)
    return rows


def _first_of_each(rows: Sequence[Row]) -> list[Row]:
    first: dict[int, Row] = {}
    for row in paced(rows):
        first.setdefault(row[0], row)
    return list(first.values())


async def _update_by_columns(
    session: Session, change: ChangePlan, result: RowStream, env: Env
) -> int | Sequence[Row] | Pieces:
    """Change many rows by columns and return how many there were; return the rows, few or in pieces, where
    they are to be changed one by one.
    """
    bulk: BulkChanges | None = BulkChanges(session, change, result, env)
    if bulk is None:
        raise AssertionError("the changes by columns were given up before they began")
    try:
        few = await bulk.few(BULK_ROWS)
        if few is not None:
            return few
        txn = session.block.ensure_txn()
        count = await txn.bulk_replace(change.shape.shard, bulk.changes(), change.assigned_attnums)
        if count is None:
            pieces, bulk = bulk.pieces(), None
            return pieces
        bulk.raise_refused()
        await check_changed(session, change.shape.relation, change.assigned_attnums)
        return count
    finally:
        if bulk is not None:
            bulk.close()


async def _change_in_turn(session: Session, change: ChangePlan, result: Result, env: Env) -> Outcome:
    """Change row by row, each as it is computed, with its RETURNING; a target row that joins several source
    rows counts once.
    """
    firing, shape = change.firing, change.shape
    if firing is not None:
        await begin(session, firing)
    txn = session.block.ensure_txn()
    gathered = Gathered(session, returns=change.returning is not None, follows=change.effects)
    seen = RowIds()
    spilling = Spilling(session)
    async for row in each_row(session, result):
        row_id = RowId(row[0])
        if not seen.add(row_id):
            continue
        refuse_changed(session, shape, [row_id], "deleted" if change.deletes else "updated")
        old = made = change.old(row)
        if change.deletes:
            await settle(txn.delete(shape.shard, [row_id]))
        else:
            [(_, made)] = changed = await change.all_changed(session, [row], env)
            await settle(txn.update(shape.shard, changed, keys_kept=change.keys_kept))
        gathered.count += 1
        if change.effects:
            openly(gathered.old.append, old)
            openly(gathered.new.append, made)
        if gathered.returned is not None:
            if change.returning is None:
                raise AssertionError("rows were gathered for a RETURNING that is not there")
            some = await change.returning.rows([(row_id, made, row[change.extra_from :])], env)
            openly(gathered.returned.extend, some)
        if spilling.due:
            await spilling.spill()
    if change.effects and change.deletes:
        await effects.deleted(session, shape.relation, gathered.old, firing)
    elif change.effects:
        await effects.updated(session, shape.relation, gathered.old, gathered.new, firing)
    return outcome(change.verb, gathered.count, change.returning, gathered.returned)


async def run_update(session: Session, plan: Plan, statement: Update, params: tuple[Any, ...]) -> Outcome:
    """Run an UPDATE."""
    if _is_routed(session, statement):
        return await update_routed(session, plan, statement, params)
    change = _change_plan(session, plan, statement)
    if _known(session, change):
        return await change_by_key(session, plan, change, params)
    query, ctx = await _start(session, plan, change, params)
    change.note_key(plan, query)
    whole = not plan.locking and session.parts is None and not change.in_turn
    if whole and change.plain and not (change.shape.checks or change.shape.demands):
        count = await update_on_spark(session, change, query, ctx)
        if count is not None:
            return outcome("UPDATE", count, None, None)
    result = await run_query(session, plan, "source", change.source, ctx)
    env = make_env(ctx)
    if change.in_turn and session.parts is None:
        return await _change_in_turn(session, change, result, env)
    whole = whole and len(change.source.ranges) == 1
    if isinstance(result, RowStream) and whole and change.may_be_bulk(session):
        found = await _update_by_columns(session, change, result, env)
        if isinstance(found, int):
            return outcome("UPDATE", found, None, None)
        rows, pieces = (found, None) if isinstance(found, Sequence) else ((), found)
    else:
        rows, pieces = await _source_rows(session, plan, change, result)
    if pieces is not None:
        async with aclosing(pieces):
            return await change_many(session, change, pieces, env)
    firing = change.firing
    if firing is not None:
        await begin(session, firing)
        refuse_changed(session, change.shape, [RowId(row[0]) for row in rows], "updated")
    if firing is not None and firing.before_row:
        wanted = ((RowId(row[0]), change.old(row), change.new(row)) for row in rows)
        done = await update_each(session, firing, change.shape, wanted, env, checks=change.checks)
        changes = [(RowId(rows[one.at][0]), one.new) for one in done]
        rows = [rows[one.at] for one in done]
    else:
        changes = await change.all_changed(session, rows, env)
        if changes:
            txn = session.block.ensure_txn()
            await settle(txn.update(change.shape.shard, changes, keys_kept=change.keys_kept))
    returned = None
    if change.returning is not None:
        extra = change.extra_from
        stored = ((row_id, new, source[extra:]) for (row_id, new), source in zip(changes, rows, strict=True))
        returned = await change.returning.rows(stored, env)
    if change.effects:
        old = await change.old_rows(rows)
        new = await in_slices(changes, lambda some: [new for _, new in some])
        await effects.updated(session, change.shape.relation, old, new, firing)
        let_go(old, new)
    let_go(rows, changes)
    return outcome("UPDATE", len(changes), change.returning, returned)


async def run_delete(session: Session, plan: Plan, statement: Delete, params: tuple[Any, ...]) -> Outcome:
    """Run a DELETE."""
    if _is_routed(session, statement):
        return await delete_routed(session, plan, statement, params)
    change = _change_plan(session, plan, statement)
    if _known(session, change):
        return await change_by_key(session, plan, change, params)
    query, ctx = await _start(session, plan, change, params)
    change.note_key(plan, query)
    result = await run_query(session, plan, "source", change.source, ctx)
    if change.in_turn and session.parts is None:
        return await _change_in_turn(session, change, result, make_env(ctx))
    if change.plain and isinstance(result, RowStream) and session.parts is None:
        return outcome("DELETE", await delete_found(session, change, result), None, None)
    if isinstance(result, RowStream) and session.parts is None and change.releases_whole(session):
        done = await delete_referenced(session, change, result)
        if isinstance(done, int):
            return outcome("DELETE", done, None, None)
        again = done is None
        result = (
            await run_query(session, plan, "source", change.source, ctx)
            if again
            else ReadyRows(result.columns, done or [])
        )
    rows, pieces = await _source_rows(session, plan, change, result)
    if pieces is not None:
        async with aclosing(pieces):
            return await change_many(session, change, pieces, make_env(ctx))
    firing = change.firing
    row_ids = await in_slices(rows, lambda some: [RowId(row[0]) for row in some])
    if firing is not None:
        await begin(session, firing)
        refuse_changed(session, change.shape, row_ids, "deleted")
    if firing is not None and firing.before_row:
        wanted = ((row_id, change.old(row)) for row_id, row in zip(row_ids, rows, strict=True))
        rows = [rows[one.at] for one in await delete_each(session, firing, change.shape, wanted)]
    elif rows:
        await settle(session.block.ensure_txn().delete(change.shape.shard, row_ids))
    returned = None
    if change.returning is not None:
        extra = change.extra_from
        stored = ((RowId(row[0]), change.old(row), row[extra:]) for row in rows)
        returned = await change.returning.rows(stored, make_env(ctx))
    if change.effects:
        await effects.deleted(session, change.shape.relation, await change.old_rows(rows), firing)
    let_go(rows, row_ids)
    return outcome("DELETE", len(rows), change.returning, returned)
