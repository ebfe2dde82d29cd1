"""INSERT, and what statements that change rows have in common: from bound statement to staged row changes.

    source query ──rows──> defaults, NOT NULL, CHECK ──> txn.insert/update/delete ──> RETURNING

A statement reads all its input before its first write, so it never sees its own changes; users' volatile
functions that it calls do (``in_turn``). The compiled parts (defaults, checks, RETURNING) live in the Plan;
per row there are only calls of compiled code. Row tuples are indexed by ``attnum - 1``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from engine.base.eager import settle
from engine.base.executor import Result
from engine.base.row_ids import RowIds
from engine.base.rows import ReadyRows
from engine.base.slices import in_slices, pause
from engine.catalog.tids import tid_of
from engine.changes.bulk.changes import BULK_ROWS
from engine.changes.bulk.spark_load import load_on_spark
from engine.changes.constraints import effects
from engine.changes.constraints.exclusion import Exclusion, compiled
from engine.changes.constraints.setwise import check_bulk
from engine.changes.constraints.standing import Standing, excluded
from engine.changes.triggers.firing import Firing, Operation, firing_of, updated_columns
from engine.changes.triggers.rows import begin, insert_each, made_before, refuse_changed, take_turns
from engine.changes.writes.in_turn import computed_in_turn, each_row, in_turn
from engine.changes.writes.insert_bulk import BulkSource
from engine.changes.writes.one_row import insert_alone
from engine.changes.writes.returning import Returning, make_env, own_number, returning_of
from engine.changes.writes.row_checks import RowChecks
from engine.changes.writes.shape import OF_ROWS, TableShape, row_record, table_layout
from engine.changes.writes.spilling import Spilling
from engine.changes.writes.spooled import SpooledRows
from engine.executors.index.plan import Planning
from engine.executors.index.state import value_of
from engine.plans.query import collect, compiled_query, context, prepare_source, run_query
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome, Rows
from engine.session.transaction.block_state import BLOCK
from pgwire.codecs.errors import DataError
from pgwire.give_way import openly
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.bind.change.arbiters import decided
from planner.catalog import RelationDef
from planner.evaluate import Env, RowFunction, compile_expr, compile_predicate, compile_row
from planner.evaluate.short import is_short
from planner.query import XMIN, Insert, OnConflict, QueryExpr, SubLink, Values, Var
from planner.query.walk import walk
from txn.api import Transaction
from txn.base.types import IndexId, Row, RowId, ShardId, StoredRow
from txn.base.writers import NUMBER_MASK

if TYPE_CHECKING:
    from engine.session.session import Session

T = TypeVar("T")


def target_of(session: Session, oid: int) -> RelationDef:
    """Return the table that a plan writes. Raises Replan where it was dropped since, before the statement has
    written anything.
    """
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        raise Replan
    return relation


def leaf_of(session: Session, oid: int) -> RelationDef:
    """Return a partition that a running statement writes; its parent is locked, so that it is there."""
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        raise RuntimeError(f"partition {oid} is gone, though its table is locked")
    return relation


def made_openly(session: Session, plan: Plan, make: Callable[[], T]) -> T:
    """Return what a statement's writes are compiled to; others run in between. Raises Replan where the plan
    does not fit, by then.
    """
    session.view.insist(plan)
    made = openly(make)
    session.view.insist(plan)
    return made


def tables_to_lock(session: Session, plan: Plan, source_key: str) -> list[ShardId]:
    """Return the tables that the statement has to lock because its source scans them.

    None of a statement that may run again with its transaction. In a block those of which any change would
    matter: to wait for one another costs less there than to fail (docs/decisions/0006).
    """
    scans = _scanned(plan, source_key)
    if not scans or not session.block.optimistic:
        return scans
    if session.block.state is not BLOCK:
        return []
    filters = plan.compiled[source_key].filters(session)
    return [shard for shard in scans if not filters.narrows(shard)]


def _scanned(plan: Plan, source_key: str) -> list[ShardId]:
    """Return the tables that the source reads by scan rather than by key."""
    compiled = plan.compiled.get(source_key)
    if compiled is None:
        return []
    index_plan = compiled.compiled.get("index")
    if index_plan is not None and index_plan.is_small:
        return []
    if (
        index_plan is not None and plan.locking
    ):  # no other executor locks rows, so this is how tables are reached
        return [
            ShardId(a.table)
            for a in index_plan.access
            if not a.peeked and (not a.bounded or a.kind == "rows")
        ]
    return list(compiled.tables)


def outcome(command: str, count: int, returning: Returning | None, rows: Sequence[Row] | None) -> Outcome:
    """Return the statement's outcome: a tag, or RETURNING's rows with that tag."""
    tag = f"INSERT 0 {count}" if command == "INSERT" else f"{command} {count}"
    if returning is None or rows is None:
        return Command(tag)
    return Rows(returning.columns, ReadyRows(returning.columns, rows), tag=tag, final_tag=True)


# --- INSERT -------------------------------------------------------------------------------------


class InsertPlan:
    """The compiled parts of an INSERT."""

    __slots__ = (
        "arbiters", "arrange", "checks", "conflict", "defaults", "effects", "exclusions", "firing", "in_turn", "plain", "reach", "returning",
        "row", "shape", "source", "statement", "updating",
    )  # fmt: skip

    def __init__(self, session: Session, statement: Insert, parent: RelationDef | None = None) -> None:
        """Compile against the session's catalog. ``parent``: the partitioned table that has brought the rows here."""
        relation = target_of(session, statement.table)
        self.statement = statement
        self.row = _only_row(statement.source)
        shape = TableShape.of(relation, session, routed=parent is not None)
        self.shape = shape.showing(statement.given)
        self.returning = returning_of(session, relation, statement.returning, statement.columns)
        positions: list[int | None] = [None] * self.shape.width
        for source_position, attnum in enumerate(statement.attnums):
            positions[attnum - 1] = source_position
        self.checks = RowChecks(session, relation, statement.row_checks)
        self.arrange = _arranger(positions, len(statement.attnums))
        self.defaults: list[tuple[int, Callable[[Row, Env], Any]]] = [
            (attnum - 1, compile_expr(expr)) for attnum, expr in statement.defaults
        ]
        self.conflict: ConflictPlan | None = None
        self.arbiters: tuple[IndexId, ...] = ()
        self.exclusions: tuple[Exclusion, ...] = ()  # that arbitrate
        if statement.on_conflict is not None and self.shape.shards:  # a view's triggers hear nothing of it
            self.conflict = ConflictPlan(session, relation, statement.on_conflict, parent)
            named = statement.on_conflict.arbiters
            self.arbiters = tuple(
                IndexId(index.oid)
                for index in relation.indexes
                if index.unique and (not named or index.oid in named)
            )
            self.exclusions = tuple(
                compiled(session, relation, constraint)
                for constraint in relation.exclusions
                if not named or constraint.index_oid in named
            )
        assigned = statement.on_conflict.assignments if statement.on_conflict is not None else ()
        self.reach = effects.Reach(session, relation, "insert", frozenset())
        self.firing = firing_of(session, relation, "INSERT")
        self.updating: Firing | None = None
        if assigned:
            changed, self.updating = changed_by(session, relation, [attnum for attnum, _ in assigned])
            self.reach.add(session, relation, "update", changed)
        self.effects = bool(self.reach or self.firing or self.updating) or relation.checks_late
        # Rows only have to be made and stored: nothing is to be done with them afterwards, nor with others in
        # their place.
        updates = self.conflict is not None and self.conflict.action != "nothing"
        asked = bool(self.checks) or self.checks.views
        self.plain = not (self.effects or updates or asked or statement.returning)
        each = self.conflict is None and not (self.firing is not None and self.firing.before_row)
        self.in_turn = each and parent is None and bool(self.shape.shards) and computed_in_turn(statement)
        self.source = statement.source
        if self.in_turn and self.source is not None:
            self.source = in_turn(self.source)

    def conflict_changes(self, relation: RelationDef) -> frozenset[int]:
        """Return the columns that DO UPDATE assigns, with those that are generated from them."""
        clause = self.statement.on_conflict
        assigned = [attnum for attnum, _ in clause.assignments] if clause is not None else []
        return frozenset(assigned) | {c.attnum for c in relation.generated}

    def complete(self, rows: Sequence[Row], env: Env) -> list[Row]:
        """Return full table rows for source rows: columns in place, defaults filled in."""
        full = [self.arrange(row) for row in rows]
        if not self.defaults:
            return full
        result = []
        for row in full:
            cells = list(row)
            for position, make in self.defaults:
                cells[position] = make((), env)
            result.append(tuple(cells))
        return result


def changed_by(
    session: Session, relation: RelationDef, assigned: Sequence[int]
) -> tuple[frozenset[int], Firing | None]:
    """Return the columns that an UPDATE may change, and what it fires; a BEFORE ROW trigger may change any."""
    changed = updated_columns(session, relation, assigned)
    firing = firing_of(session, relation, "UPDATE", changed)
    if firing is not None and firing.before_row:
        changed = frozenset(column.attnum for column in relation.stored_columns)
    return changed, firing


def _only_row(source: QueryExpr | None) -> RowFunction | None:
    """Return what computes the row of a plain one-row VALUES, or None for every other source."""
    if not isinstance(source, Values) or len(source.rows) != 1 or source.ctes or source.order:
        return None
    if source.limit is not None or source.offset is not None:
        return None
    if any(isinstance(node, SubLink) for cell in source.rows[0] for node in walk(cell)):
        return None
    function = compile_row(source.rows[0])
    return None if function.may_suspend else function


def _arranger(positions: list[int | None], width: int) -> Callable[[Row], Row]:
    """Return a function that puts source columns where the table wants them, NULL elsewhere."""
    if positions == list(range(width)):
        return lambda row: row if len(row) == width else row[:width]
    if len(positions) == 1:
        only = positions[0]
        return (lambda row: (None,)) if only is None else (lambda row: (row[only],))
    slots = [width if position is None else position for position in positions]
    pick = itemgetter(*slots)
    return lambda row: pick((*row[:width], None))


class ConflictPlan:
    """The compiled DO UPDATE of an ON CONFLICT: range 0 the existing row, range 1 the proposed one."""

    __slots__ = ("action", "assigned", "tells_xmin", "values", "where")

    def __init__(
        self, session: Session, relation: RelationDef, clause: OnConflict, parent: RelationDef | None
    ) -> None:
        """Compile assignments and WHERE over the two rows side by side; ``parent``: whose rows they are as
        whole rows.
        """
        self.action = clause.action
        width = len(relation.columns)
        layout = table_layout(relation, parent)
        planning = Planning(session.catalog)
        layout.subplan = planning.sublink
        for column in relation.live:
            layout.columns[1, column.attnum] = width + 2 + column.attnum - 1
        layout.records[1] = partial(row_record, relation, parent, at=width + 2)
        parts = [expr for _, expr in clause.assignments] + ([] if clause.where is None else [clause.where])
        read = [node for part in parts for node in walk(part)]
        self.tells_xmin = any(isinstance(node, Var) and node.attnum == XMIN for node in read)
        if self.tells_xmin:
            layout.columns[0, XMIN] = 2 * (width + 1)
        self.assigned = [attnum - 1 for attnum, _ in clause.assignments]
        self.values = compile_row([expr for _, expr in clause.assignments], layout)
        self.where: RowFunction | None = (
            None if clause.where is None else compile_predicate([clause.where], layout)
        )
        planning.end()


async def run_insert(session: Session, plan: Plan, statement: Insert, params: tuple[Any, ...]) -> Outcome:
    """Run an INSERT."""
    target = target_of(session, statement.table)
    clause = statement.on_conflict
    varies = clause is not None and bool(clause.arbiter_where)
    if clause is not None and varies:
        statement = replace(statement, on_conflict=decided(clause, target, session.catalog, params))
        plan.dml = None  # what is there was made for other values
    if target.kind == "p":
        from engine.changes.writes.partitioned import (  # which inserts by what is here
            insert_routed,  # it inserts into tables with what is here
        )

        return await insert_routed(session, plan, statement, params)
    if plan.dml is None:
        made = plan.dml = made_openly(session, plan, lambda: InsertPlan(session, statement))
        plan.short = (
            made.row is not None
            and made.returning is None
            and made.shape.short
            and not (made.effects or made.checks.views)
            and is_short(statement)
        )
        plan.leaves_little = plan.short and made.shape.bounded
        if plan.short and made.plain and not varies:
            plan.at_once = insert_alone
    insert: InsertPlan = plan.dml
    shape = insert.shape
    txn = session.block.ensure_txn()
    ctx = context(session, plan, params)
    env = make_env(ctx)
    reads = []
    if statement.source is not None and plan.bound.reads:
        if insert.source is None:
            raise AssertionError("an INSERT has no source of rows")
        prepare_source(session, compiled_query(plan, "source", insert.source))
        reads = tables_to_lock(session, plan, "source")
    await session.view.start_write(plan, shape.shards, reads)
    if insert.effects:
        await effects.prepare(session, shape.relation, insert.reach)
    session.view.use(plan)
    if statement.source is None:
        source: Sequence[Row] = [()]
    elif insert.row is not None and session.derived.executor == "auto":
        source = [insert.row((), env) if plan.short else openly(insert.row, (), env)]
    else:
        bulky = (
            BulkSource.serves(insert)
            and not insert.in_turn
            and not plan.locking
            and session.parts is None
            and effects.may_bulk_load(session, shape.relation)
        )
        if bulky and not BulkSource.computes(insert):
            query = compiled_query(plan, "source", statement.source)
            loaded = await load_on_spark(session, query, ctx, shape, statement.attnums)
            if loaded is not None:
                await check_bulk(session, shape.relation)
                return outcome("INSERT", loaded, None, None)
        if insert.source is None:
            raise AssertionError("an INSERT has no source of rows")
        result = await run_query(session, plan, "source", insert.source, ctx)
        if insert.in_turn and session.parts is None:
            return await _insert_in_turn(session, insert, result, env)
        if bulky and isinstance(result, ReadyRows):
            source = result.rows
        elif plan.locking and not isinstance(result, ReadyRows):
            source = await collect(session, result)
        elif bulky and not isinstance(result, ReadyRows):

            def complete(rows: Sequence[Row]) -> Sequence[Row]:
                return openly(lambda: shape.made(insert.complete(rows, env), env))

            computes = BulkSource.computes(insert)
            bulk = BulkSource(session, shape.relation, statement.attnums, result, complete, by_row=computes)
            try:
                few = await bulk.few(BULK_ROWS)
                if few is None:
                    count = await txn.bulk_insert(shape.shard, bulk.batches())
                    bulk.raise_refused()
                    await check_bulk(session, shape.relation)
                    return outcome("INSERT", count, None, None)
            finally:
                bulk.close()
            source = few
        else:
            from engine.changes.writes.many import few_or_more, insert_many  # which inserts by what is here

            source, pieces = await few_or_more(session, result)
            if pieces is not None:
                async with aclosing(pieces):
                    return await insert_many(session, insert, pieces, env)
    await begin(session, insert.firing, insert.updating)
    if insert.conflict is not None:
        if len(source) == 1:
            rows = openly(insert.complete, source, env)
        else:
            rows = await in_slices(source, lambda some: insert.complete(some, env))
        done = await _insert_on_conflict(session, insert, rows, env)
        let_go(source, rows)
        return done

    completed: list[Row] = []

    def checked(some: Sequence[Row]) -> Sequence[Row]:
        full = insert.complete(some, env)
        completed.extend(full)
        return shape.made(full, env)

    if insert.firing is not None and insert.firing.before_row:
        whole = await in_slices(source, lambda some: insert.complete(some, env))
        each = await insert_each(session, insert.firing, shape, whole, env, insert.checks)
        row_ids, rows = [row_id for row_id, _ in each], [row for _, row in each]
    else:
        try:
            if insert.checks:
                completed += await in_slices(source, lambda some: insert.complete(some, env))
                rows = list(await insert.checks.made("insert", shape, completed, env))
            elif plan.short:  # of one row
                rows = list(checked(source))
            else:
                rows = await in_slices(source, checked)
            if insert.checks.views:
                await insert.checks.stored(shape, rows, env)
        except DataError as error:
            if error.sqlstate.startswith(
                OF_ROWS
            ):  # an earlier row may break a key, and then that is told, as in PostgreSQL
                for row in completed:
                    [new] = await insert.checks.made("insert", shape, [row], env)
                    await settle(txn.insert(shape.shard, [new]))
                    await insert.checks.stored(shape, [new], env)
            raise
        inserting = txn.insert(shape.shard, rows)
        row_ids = inserting if isinstance(inserting, list) else await inserting
    if session.parts is not None:
        session.parts.touched_in(shape.shard).update(row_ids)
    returned = None
    if insert.returning is not None:
        stored = ((row_id, row, ()) for row_id, row in zip(row_ids, rows, strict=True))
        returned = await insert.returning.rows(stored, env)
    if insert.effects:
        await effects.inserted(session, shape.relation, rows, insert.firing)
    let_go(source, completed, rows, row_ids)
    return outcome("INSERT", len(rows), insert.returning, returned)


async def _insert_in_turn(session: Session, insert: InsertPlan, result: Result, env: Env) -> Outcome:
    """Insert row by row, each as it is computed, with its RETURNING."""
    await begin(session, insert.firing, insert.updating)
    shape = insert.shape
    txn = session.block.ensure_txn()
    rows = SpooledRows.of(session, "the rows that a statement inserts")
    returned = SpooledRows.of(session, "the rows of RETURNING")
    count = 0
    spilling = Spilling(session)
    async for values in each_row(session, result):
        [row] = await insert.checks.made("insert", shape, openly(insert.complete, [values], env), env)
        [row_id] = await settle(txn.insert(shape.shard, [row]))
        await insert.checks.stored(shape, [row], env)
        count += 1
        if insert.effects:
            openly(rows.append, row)
        if insert.returning is not None:
            openly(returned.extend, await insert.returning.rows([(row_id, row, ())], env))
        if spilling.due:
            await spilling.spill()
    if insert.effects:
        await effects.inserted(session, shape.relation, rows, insert.firing)
    return outcome("INSERT", count, insert.returning, returned)


async def _insert_on_conflict(session: Session, insert: InsertPlan, rows: Sequence[Row], env: Env) -> Outcome:
    """Insert rows or update those in their place; then RETURNING, and what follows."""
    done = await insert_on_conflict(session, insert, rows, env)
    changes = effects.Mixed(insert.shape.relation, {"UPDATE": insert.updating, "INSERT": insert.firing})
    for op, _row_id, old, new in done:
        changes.add(op, old, new)
        pause()
    returned = None
    if insert.returning is not None:
        returned = await insert.returning.rows(((row_id, new, ()) for _, row_id, _, new in done), env)
    if insert.effects:
        await changes.follow(session)
    changes.let_go()
    let_go(done)
    return outcome("INSERT", len(done), insert.returning, returned)


def version_of(txn: Transaction, shard: ShardId, row: StoredRow, env: Env) -> int:
    """Return the xmin of a row that a transaction has found."""
    return txn.writer_of(shard, row.begin) & NUMBER_MASK if row.begin else own_number(env)


async def insert_on_conflict(
    session: Session, insert: InsertPlan, rows: Sequence[Row], env: Env, before: RowIds | None = None
) -> list[tuple[Operation, RowId, Row | None, Row]]:
    """Insert row by row: each looks for a live row that holds one of its arbiter keys, or that an arbitrating
    constraint excludes it by.

    ``before``: what the statement has inserted or updated so far, to which these rows come. Returns what was
    done, with the row's id, what it was (of an UPDATE) and is.
    """
    if insert.conflict is None:
        raise AssertionError("an INSERT has no ON CONFLICT")
    shape, conflict = insert.shape, insert.conflict
    txn = session.block.ensure_txn()
    touched: set[RowId] | RowIds = set() if before is None else before
    if session.parts is not None:
        touched = session.parts.touched_in(shape.shard)
    done: list[tuple[Operation, RowId, Row | None, Row]] = []
    firing, updating = insert.firing, insert.updating
    each = firing is not None or updating is not None
    standing = [Standing(session, exclusion) for exclusion in insert.exclusions]
    for number, proposed in enumerate(rows, 1):
        if each:
            await take_turns(number)
        else:
            pause()
        if firing is not None and firing.before_row:
            let = await made_before(session, firing, shape, None, proposed, env, insert.checks)
            if let is None:
                continue
            row = let
        else:
            [row] = await insert.checks.made("insert", shape, [proposed], env)
        if standing:
            if firing is not None and firing.before_row:  # which may have changed the table
                standing = [Standing(session, exclusion) for exclusion in insert.exclusions]
            if await excluded(standing, row):
                continue
        existing = txn.insert_unless(shape.shard, row, insert.arbiters)
        if isinstance(existing, Awaitable):
            existing = await existing
        if isinstance(existing, int):
            if insert.checks.views:
                await insert.checks.stored(shape, [row], env)
            for one in standing:
                one.add(row)
            touched.add(RowId(existing))
            done.append(("INSERT", RowId(existing), None, row))
            continue
        if conflict.action == "nothing":
            continue
        if existing.row_id in touched:
            raise SqlError(
                "21000",
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                hint="Ensure that no rows proposed for insertion within the same command have "
                "duplicate constrained values.",
            )
        version = partial(version_of, txn, shape.shard, existing, env)
        both: Row = (*existing.values, shape.oid, tid_of(existing.row_id), *row)
        if conflict.tells_xmin:
            both = (*both, version())
        if insert.checks:  # before WHERE looks at a row that may not be seen
            await insert.checks.check("conflict", [existing.values], env, version)
        if conflict.where is not None and not await value_of(conflict.where, both, env):
            continue
        cells = list(existing.values)
        for position, value in zip(
            conflict.assigned, await value_of(conflict.values, both, env), strict=True
        ):
            cells[position] = value
        if updating is not None and updating.before_row:
            let = await made_before(
                session, updating, shape, existing.values, tuple(cells), env, insert.checks
            )
            refuse_changed(session, shape, [existing.row_id], "updated")
            if let is None:
                continue
            new = let
        else:
            [new] = await insert.checks.made("update", shape, [tuple(cells)], env)
        await settle(txn.update(shape.shard, [(existing.row_id, new)]))
        await insert.checks.stored(shape, [new], env)
        touched.add(existing.row_id)
        done.append(("UPDATE", existing.row_id, existing.values, new))
    if isinstance(touched, set):
        let_go(touched)
    return done
