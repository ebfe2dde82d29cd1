"""INSERT, UPDATE and DELETE of partitioned tables: rows find their partition, and move when their key changes.

    INSERT   rows of the parent ──key──> partition ──> a row of it, as the partition's own INSERT stores it
    UPDATE   source rows, with the table each is in ──> new row ─┬─ same partition   updated there
                                                                 └─ another one      deleted here, inserted there
    DELETE   source rows, with the table each is in ──> deleted there

Row triggers, CHECKs, keys and foreign keys are the partitions'; statement triggers and RETURNING are the parent's. The parent is locked
by intention, and so are the partitions that rows come to; those that are read were locked by the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.bulk.changes import BULK_ROWS
from engine.connection.portal import Outcome
from engine.connection.rows import ReadyRows
from engine.constraints import effects
from engine.constraints.setwise import check_bulk
from engine.ddl.rewrite import batches_of
from engine.eager import settle
from engine.executor import CHANGES
from engine.reads.plans import Plan
from engine.reads.query import collect, compiled_query, context, prepare_source, run_query
from engine.slices import SLICE_ROWS, in_slices
from engine.triggers.firing import Firing, Operation, firing_of, updated_columns
from engine.triggers.rows import begin, delete_each, refuse_changed
from engine.writes.dml import InsertPlan, insert_on_conflict, outcome, tables_to_lock, target_of
from engine.writes.returning import make_env, returning_of
from engine.writes.shape import TableShape, runnable_check, table_layout
from pgwire.codecs.copy import copy_context, with_context
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_output
from planner.bind.partition import partition_check
from planner.catalog import RelationDef
from planner.errors import SqlError
from planner.evaluate import Env, RowFunction, compile_expr
from planner.partition import column_map, divided
from planner.partition_dml import insert_into
from planner.query import Delete, Insert, Update
from planner.rights import Rights
from txn.types import Row, RowId, ShardId

if TYPE_CHECKING:
    from engine.connection.session import Session


class Routing:
    """The way from rows of a partitioned table to its partitions, and back, under one catalog."""

    __slots__ = ("_back", "_bound", "_forth", "_session", "parent")

    def __init__(self, session: Session, parent: RelationDef) -> None:
        """Route rows of ``parent``."""
        self._session = session
        self.parent = parent
        self._forth: dict[int, list[int] | None] = {}
        self._back: dict[int, list[int] | None] = {}
        expr = partition_check(parent, session.catalog)
        self._bound: RowFunction | None = (
            None  # of a partition that is divided again, and named by the statement
        )
        if expr is not None:
            self._bound = compile_expr(runnable_check(expr, session), table_layout(parent))

    def find(self, row: Row, env: Env) -> RelationDef:
        """Return the table for a row of the parent. Raises SqlError 23514."""
        catalog = self._session.catalog
        table = self.parent
        if self._bound is not None and self._bound((*row, table.oid), env) is False:
            raise TableShape.of(table, self._session).out_of_bound(row)
        while table.kind == "p":
            parts = divided(table, catalog)
            key = parts.key_of(row, env)
            found = parts.find(key)
            if found is None:
                raise self._nowhere(table, key)
            if found.kind == "p":
                row = moved(row, slots_of(table, found))
            table = found
        return table

    def forth(self, leaf: RelationDef, row: Row) -> Row:
        """Return a row of the parent as one of a partition."""
        if leaf.oid not in self._forth:
            self._forth[leaf.oid] = slots_of(self.parent, leaf)
        return moved(row, self._forth[leaf.oid])

    def back(self, leaf: RelationDef, row: Row) -> Row:
        """Return a row of a partition as one of the parent."""
        if leaf.oid not in self._back:
            self._back[leaf.oid] = slots_of(leaf, self.parent)
        return moved(row, self._back[leaf.oid])

    def _nowhere(self, table: RelationDef, key: Row) -> SqlError:
        """Return 23514 for a row that no partition has; its key is shown to who may read all of it."""
        session = self._session
        made = table.partition_key
        assert made is not None
        detail = None
        rights = Rights(session.catalog, session.role)
        if rights.relation(table, "r") or all(
            attnum and rights.column(table, attnum, "r") for attnum in made.attnums
        ):
            names = [
                table.column(attnum).name if attnum else text
                for attnum, text in zip(made.attnums, made.expressions, strict=True)
            ]
            values = [
                "null" if value is None else text_output(type_.oid, value, session.codec_settings)
                for value, type_ in zip(key, made.types, strict=True)
            ]
            detail = (
                f"Partition key of the failing row contains ({', '.join(names)}) = ({', '.join(values)})."
            )
        return SqlError(
            "23514",
            f'no partition of relation "{table.name}" found for row',
            detail=detail,
            schema=table.schema,
            table=table.name,
        )


def slots_of(table: RelationDef, other: RelationDef) -> list[int] | None:
    """Return for each column of ``other`` where rows of ``table`` have it, -1 for nowhere; None where rows are the same."""
    named = {c.name: c.attnum - 1 for c in table.live}
    found = [-1 if c.dropped or c.hidden else named.get(c.name, -1) for c in other.columns]
    return None if found == list(range(len(table.columns))) else found


def moved(row: Row, slots: list[int] | None) -> Row:
    """Return a row with its values in other places (``slots_of``)."""
    return row if slots is None else tuple([None if at < 0 else row[at] for at in slots])


class Part:
    """What storing rows in one partition takes: compiled when the first row comes to it."""

    __slots__ = ("firings", "insert", "leaf", "reaches", "shape")

    def __init__(self, session: Session, leaf: RelationDef, insert: InsertPlan | None, brought: bool) -> None:
        """``brought``: rows are routed to it, so its bound need not be asked."""
        self.leaf = leaf
        self.insert = insert
        self.shape = TableShape.of(leaf, session)
        if brought:
            self.shape.routed()
        self.firings: dict[Operation, Firing | None] = {}
        self.reaches: set[str] = set()

    def firing(self, session: Session, op: Operation, changed: Iterable[int] = ()) -> Firing | None:
        """Return what fires for its rows: statement triggers are those of the table that the statement names."""
        if op not in self.firings:
            found = firing_of(session, self.leaf, op, tuple(changed))
            self.firings[op] = None if found is None else found.rows_only()
        return self.firings[op]

    async def prepare(self, session: Session, op: str, changed: frozenset[int] = frozenset()) -> None:
        """Lock the partition, and what changes of its rows reach."""
        if op in self.reaches:
            return
        self.reaches.add(op)
        txn = session.block.ensure_txn()
        await settle(txn.begin_write([ShardId(self.leaf.oid)]))
        await effects.prepare(session, self.leaf, effects.Reach(session, self.leaf, op, changed))


class Partitioned:
    """The compiled parts of one statement on a partitioned table."""

    __slots__ = ("base", "parent", "parts", "returning", "routing", "statement")

    def __init__(self, session: Session, statement: Insert | Update | Delete) -> None:
        """Compile what does not depend on partitions."""
        self.statement = statement
        self.parent = target_of(session, statement.table)
        self.routing = Routing(session, self.parent)
        self.returning = returning_of(session, self.parent, statement.returning, statement.columns)
        self.base = InsertPlan(session, statement) if isinstance(statement, Insert) else None
        self.parts: dict[int, Part] = {}

    def part(self, session: Session, leaf: RelationDef) -> Part:
        """Return what storing rows in a partition takes."""
        found = self.parts.get(leaf.oid)
        if found is None:
            insert = None
            if isinstance(self.statement, Insert):
                insert = InsertPlan(session, insert_into(self.statement, self.parent, leaf, session.catalog))
                insert.shape.routed()
            found = self.parts[leaf.oid] = Part(session, leaf, insert, True)
        return found

    async def returned(
        self, stored: Sequence[tuple[RelationDef, RowId, Row, Row]], env: Env
    ) -> list[Row] | None:
        """Return what RETURNING makes of rows (table, id, row of the table, extras), in their order; None without it."""
        if self.returning is None:
            return None
        rows: list[Row] = []
        for leaf, row_id, row, extra in stored:
            whole = self.routing.back(leaf, row)
            rows += await self.returning.rows([(row_id, whole, extra)], env, leaf.oid)
        return rows

    def bare(self) -> RelationDef:
        """Return the parent as its statement triggers know it: constraints are looked at in the partitions."""
        return replace(self.parent, constraints=(), indexes=(), triggers=())


class _Noted:
    """The changes of a statement, by partition in the order in which these were met, for what follows them."""

    def __init__(self, made: Partitioned, firings: Sequence[Firing | None]) -> None:
        self._made = made
        self._firings = [firing for firing in firings if firing is not None]
        self._changes: dict[tuple[int, str], effects.Change] = {}
        self._seen: dict[str, tuple[list[Row], list[Row]]] = {}

    def add(self, part: Part, op: Operation, firing: Firing | None, old: Row | None, new: Row | None) -> None:
        """Note a row that was changed."""
        change = self._changes.get((part.leaf.oid, op))
        if change is None:
            none_old, none_new = op == "INSERT", op == "DELETE"
            change = effects.Change(
                part.leaf, None if none_old else [], None if none_new else [], firing, ends=False
            )
            self._changes[part.leaf.oid, op] = change
        olds, news = self._seen.setdefault(op, ([], []))
        for rows, seen, row in ((change.old, olds, old), (change.new, news, new)):
            if row is not None and isinstance(rows, list):
                rows.append(row)
                if self._firings:
                    seen.append(self._made.routing.back(part.leaf, row))

    async def follow(self, session: Session) -> None:
        """Check foreign keys, fire AFTER triggers."""
        bare = self._made.bare()
        ends = []
        for firing in self._firings:
            old, new = self._seen.get(firing.op, ([], []))
            ends.append(
                effects.Change(
                    bare,
                    None if firing.op == "INSERT" else old,
                    None if firing.op == "DELETE" else new,
                    firing,
                )
            )
        await effects.after(session, *self._changes.values(), *ends)


def _statement_firing(
    session: Session, parent: RelationDef, op: Operation, changed: Iterable[int] = ()
) -> Firing | None:
    found = firing_of(session, parent, op, tuple(changed))
    return None if found is None else found.statements_only()


# --- INSERT -----------------------------------------------------------------------------------------


async def insert_routed(session: Session, plan: Plan, statement: Insert, params: tuple[Any, ...]) -> Outcome:
    """Run an INSERT into a partitioned table. Raises SqlError 23514 for a row without a partition, and as ``run_insert``."""
    if plan.dml is None:
        plan.dml = Partitioned(session, statement)
    made: Partitioned = plan.dml
    base = made.base
    assert base is not None
    ctx = context(session, plan, params)
    env = make_env(ctx)
    scans: Sequence[ShardId] = []
    if statement.source is not None and plan.bound.reads:
        prepare_source(session, compiled_query(plan, "source", statement.source))
        scans = tables_to_lock(session, plan, "source")
    await session.view.start_write(plan, [ShardId(made.parent.oid)], scans)
    session.view.use(plan)
    if statement.source is None:
        source: Sequence[Row] = [()]
    elif base.row is not None and session.derived.executor == "auto":
        source = [base.row((), env)]
    else:
        result = await run_query(session, plan, "source", statement.source, ctx)
        source = result.rows if isinstance(result, ReadyRows) else await collect(session, result)
    rows = await in_slices(source, lambda some: base.complete(some, env))
    updates = statement.on_conflict is not None and statement.on_conflict.action == "update"
    updating = None
    if updates and statement.on_conflict is not None:
        assigned = [attnum for attnum, _ in statement.on_conflict.assignments]
        updating = _statement_firing(session, made.parent, "UPDATE", assigned)
    firing = _statement_firing(session, made.parent, "INSERT")
    await begin(session, firing, updating)
    stored, count = await store(session, made, rows, env, [firing, updating])
    return outcome("INSERT", count, made.returning, await made.returned(stored, env))


async def copy_routed(
    session: Session,
    parent: RelationDef,
    rows: Sequence[Row],
    env: Env,
    firing: Firing | None,
    places: tuple[Sequence[int], Sequence[str | None]],
) -> int:
    """Store the rows of a COPY, as they are read; return how many. ``places``: line and text of each, for errors."""
    made = Partitioned(session, Insert(table=parent.oid, attnums=(), source=None))
    for number, (row, line, text) in enumerate(zip(rows, *places, strict=True)):
        try:
            made.routing.find(row, env)
        except DataError as error:
            with_context(error, copy_context(parent.name, line, None, text))
            raise
        if number % SLICE_ROWS == SLICE_ROWS - 1:
            await asyncio.sleep(0)
    _stored, count = await store(session, made, rows, env, [firing])
    return count


async def store(
    session: Session,
    made: Partitioned,
    rows: Sequence[Row],
    env: Env,
    firings: Sequence[Firing | None],
) -> tuple[list[tuple[RelationDef, RowId, Row, Row]], int]:
    """Insert rows of the parent into their partitions, and do what follows; return them as they are stored, and how many count."""
    noted = _Noted(made, firings)
    placed: dict[int, list[tuple[int, Row]]] = {}
    for number, row in enumerate(rows):
        leaf = made.routing.find(row, env)
        placed.setdefault(leaf.oid, []).append((number, made.routing.forth(leaf, row)))
        if number % SLICE_ROWS == SLICE_ROWS - 1:
            await asyncio.sleep(0)
    by_row = False
    for oid in placed:
        leaf = target_of(session, oid)
        part = made.part(session, leaf)
        await part.prepare(session, "insert")
        if (
            part.insert is not None
            and part.insert.conflict is not None
            and part.insert.conflict.action != "nothing"
        ):
            await part.prepare(session, "update", frozenset(c.attnum for c in leaf.live))
        own = part.firing(session, "INSERT")
        by_row |= own is not None and bool(own.before_row)
        by_row |= part.insert is not None and part.insert.conflict is not None
    if by_row:
        order = sorted((number, oid, row) for oid, some in placed.items() for number, row in some)
        return await _store_each(session, made, order, env, noted)
    stored: dict[int, tuple[RelationDef, RowId, Row, Row]] = {}
    count = 0
    for oid, some in placed.items():
        part = made.parts[oid]
        own = part.firing(session, "INSERT")
        kept = await _store_in(session, part, [row for _, row in some], env)
        count += len(some)
        if kept is None:
            continue
        for (number, _), (row_id, row) in zip(some, kept, strict=True):
            noted.add(part, "INSERT", own, None, row)
            if made.returning is not None:
                stored[number] = (part.leaf, row_id, row, ())
    await noted.follow(session)
    return [stored[number] for number in sorted(stored)], count


async def _store_in(
    session: Session, part: Part, rows: Sequence[Row], env: Env
) -> list[tuple[RowId, Row]] | None:
    """Insert rows of one partition; None: they were so many that they became parts, and all has been checked."""
    full = await in_slices(rows, lambda some: part.shape.made(some, env))
    txn = session.block.ensure_txn()
    plain = part.insert is None or not (part.insert.statement.returning or session.parts is not None)
    if len(full) > BULK_ROWS and plain and effects.may_bulk_load(session, part.leaf):
        await txn.bulk_insert(part.shape.shard, batches_of(part.leaf, full))
        await check_bulk(session, part.leaf)
        return None
    row_ids: list[RowId] = await settle(txn.insert(part.shape.shard, full))
    if session.parts is not None:
        session.parts.touched_in(part.shape.shard).update(row_ids)
    return list(zip(row_ids, full, strict=True))


async def _store_each(
    session: Session,
    made: Partitioned,
    order: Sequence[tuple[int, int, Row]],
    env: Env,
    noted: _Noted,
) -> tuple[list[tuple[RelationDef, RowId, Row, Row]], int]:
    """Insert rows one by one, as triggers look at them, or ON CONFLICT may let them out."""
    stored: list[tuple[RelationDef, RowId, Row, Row]] = []
    for _number, oid, row in order:
        part = made.parts[oid]
        own = part.firing(session, "INSERT")
        insert = part.insert
        if insert is not None and insert.conflict is not None:
            insert.firing = own
            updating = part.firing(session, "UPDATE", insert.conflict_changes(part.leaf))
            insert.updating = updating
            found = await insert_on_conflict(session, insert, [row], env)
            for op, row_id, old, new in found:
                if op == "UPDATE":
                    _refuse_move(made, part, new, env)
                noted.add(part, op, own if op == "INSERT" else updating, old, new)
                stored.append((part.leaf, row_id, new, ()))
            continue
        if own is not None and own.before_row:
            let = await _let_in(session, made, part, own, row, env)
            if let is None:
                continue
            kept = await _store_in(session, part, [let], env) or []
        else:
            kept = await _store_in(session, part, [row], env) or []
        for row_id, full in kept:
            noted.add(part, "INSERT", own, None, full)
            stored.append((part.leaf, row_id, full, ()))
    await noted.follow(session)
    return stored, len(stored)


async def _let_in(
    session: Session, made: Partitioned, part: Part, firing: Firing, row: Row, env: Env
) -> Row | None:
    """Fire BEFORE INSERT; return the row as it goes on, None where a trigger leaves it out.

    Raises SqlError 0A000 where one gives it a key of another partition.
    """
    let: Row | None = row
    for one in firing.one_by_one():
        assert let is not None
        let = await one.before(session, None, let)
        if let is None:
            return None
        found = _place(made, part, let, env)
        if found is None or found.oid != part.leaf.oid:
            name = one.before_row[0].trigger.name
            raise SqlError(
                "0A000",
                "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported",
                detail=f'Before executing trigger "{name}", the row was to be in partition '
                f'"{part.leaf.schema}.{part.leaf.name}".',
            )
    return let


def _refuse_move(made: Partitioned, part: Part, row: Row, env: Env) -> None:
    found = _place(made, part, row, env)
    if found is None or found.oid != part.leaf.oid:
        raise SqlError(
            "0A000",
            "invalid ON UPDATE specification",
            detail="The result tuple would appear in a different partition than the original tuple.",
        )


def _place(made: Partitioned, part: Part, row: Row, env: Env) -> RelationDef | None:
    try:
        return made.routing.find(made.routing.back(part.leaf, row), env)
    except SqlError as error:
        if error.sqlstate != "23514":
            raise
        return None


# --- UPDATE, DELETE ---------------------------------------------------------------------------------


async def _found(
    session: Session, plan: Plan, made: Partitioned, statement: Update | Delete, params: tuple[Any, ...]
) -> tuple[Sequence[Row], Env]:
    """Take the statement's locks; return its source's rows: of those that a join gives for one row the first."""
    query = compiled_query(plan, "source", statement.source)
    prepare_source(session, query)
    ctx = context(session, plan, params, for_update=CHANGES)
    shards = [
        ShardId(made.parent.oid),
        *(ShardId(oid) for oid in statement.leaves if ShardId(oid) in query.tables),
    ]
    await session.view.start_write(plan, shards, tables_to_lock(session, plan, "source"))
    session.view.use(plan)
    result = await run_query(session, plan, "source", statement.source, ctx)
    rows = result.rows if isinstance(result, ReadyRows) else await collect(session, result)
    first: dict[tuple[int, int], Row] = {}
    for row in rows:
        first.setdefault((row[-1], row[0]), row)
    rows = list(first.values())
    if session.parts is not None:
        kept: list[Row] = []
        for oid in dict.fromkeys(row[-1] for row in rows):
            kept += session.parts.first_to_change(ShardId(oid), [row for row in rows if row[-1] == oid])
        rows = kept
    return rows, make_env(ctx)


def _cells(made: Partitioned, row: Row) -> list[Any]:
    """Return the parent's row that a row of the source has."""
    cells: list[Any] = [None] * len(made.parent.columns)
    for at, column in enumerate(made.parent.live, 1):
        cells[column.attnum - 1] = row[at]
    return cells


async def update_routed(session: Session, plan: Plan, statement: Update, params: tuple[Any, ...]) -> Outcome:
    """Run an UPDATE of a partitioned table. Raises as ``run_update``; SqlError 23514 for a row without a partition."""
    if plan.dml is None:
        plan.dml = Partitioned(session, statement)
    made: Partitioned = plan.dml
    rows, env = await _found(session, plan, made, statement, params)
    parent = made.parent
    firing = _statement_firing(
        session, parent, "UPDATE", updated_columns(session, parent, statement.assigned)
    )
    await begin(session, firing)
    noted = _Noted(made, [firing])
    values_from = 1 + len(parent.live)
    extra = values_from + len(statement.assigned)
    stored: list[tuple[RelationDef, RowId, Row, Row]] = []
    staged: dict[int, list[tuple[RowId, Row]]] = {}
    gone: dict[int, list[RowId]] = {}
    come: list[tuple[int, Part, Row]] = []
    for number, row in enumerate(rows):
        cells = _cells(made, row)
        old = tuple(cells)
        for at, attnum in enumerate(statement.assigned, values_from):
            cells[attnum - 1] = row[at]
        part = made.part(session, target_of(session, row[-1]))
        attnums = column_map(parent, part.leaf)
        assigned = updated_columns(session, part.leaf, [attnums[a] for a in statement.assigned])
        await part.prepare(session, "update", assigned)
        own = part.firing(session, "UPDATE", assigned)
        row_id = RowId(row[0])
        before = made.routing.forth(part.leaf, old)
        new: Row | None = made.routing.forth(part.leaf, tuple(cells))
        if own is not None:
            refuse_changed(session, part.shape, [row_id], "updated")
            if own.before_row:
                assert new is not None
                new = await own.before(session, before, new)
                if new is None:
                    continue
                refuse_changed(session, part.shape, [row_id], "updated")
        assert new is not None
        whole = made.routing.back(part.leaf, new)
        target = made.routing.find(whole, env)
        if target.oid == part.leaf.oid:
            [full] = part.shape.made([new], env)
            if own is not None and own.before_row:
                txn = session.block.ensure_txn()
                await settle(txn.update(part.shape.shard, [(row_id, full)]))
            else:
                staged.setdefault(part.leaf.oid, []).append((row_id, full))
            noted.add(part, "UPDATE", own, before, full)
            stored.append((part.leaf, row_id, full, row[extra:-1]))
        else:
            if session.catalog.foreign_keys_to(part.leaf.oid):
                raise SqlError("0A000", "moving a row that others refer to into another partition")
            await part.prepare(session, "delete")
            deleting = part.firing(session, "DELETE")
            if deleting is not None and deleting.before_row:
                if not await delete_each(session, deleting, part.shape, [(row_id, before)]):
                    continue
            else:
                gone.setdefault(part.leaf.oid, []).append(row_id)
            noted.add(part, "DELETE", deleting, before, None)
            there = made.part(session, target)
            await there.prepare(session, "insert")
            come.append((len(stored), there, made.routing.forth(target, whole)))
            stored.append((target, row_id, (), row[extra:-1]))
        if number % SLICE_ROWS == SLICE_ROWS - 1:
            await asyncio.sleep(0)
    txn = session.block.ensure_txn()
    for oid, row_ids in gone.items():
        await settle(txn.delete(ShardId(oid), row_ids))
    for oid, changes in staged.items():
        await settle(txn.update(ShardId(oid), changes))
    left: set[int] = set()
    for at, there, new in come:
        inserting = there.firing(session, "INSERT")
        if inserting is not None and inserting.before_row:
            let = await _let_in(session, made, there, inserting, new, env)
            if let is None:
                left.add(at)
                continue
            new = let
        kept = await _store_in(session, there, [new], env)
        assert kept is not None
        [(row_id, full)] = kept
        noted.add(there, "INSERT", inserting, None, full)
        stored[at] = (there.leaf, row_id, full, stored[at][3])
    stored = [one for at, one in enumerate(stored) if at not in left]
    await noted.follow(session)
    return outcome("UPDATE", len(stored), made.returning, await made.returned(stored, env))


async def delete_routed(session: Session, plan: Plan, statement: Delete, params: tuple[Any, ...]) -> Outcome:
    """Run a DELETE of rows of a partitioned table. Raises as ``run_delete``."""
    if plan.dml is None:
        plan.dml = Partitioned(session, statement)
    made: Partitioned = plan.dml
    rows, env = await _found(session, plan, made, statement, params)
    firing = _statement_firing(session, made.parent, "DELETE")
    await begin(session, firing)
    noted = _Noted(made, [firing])
    extra = 1 + len(made.parent.live)
    stored: list[tuple[RelationDef, RowId, Row, Row]] = []
    gone: dict[int, list[RowId]] = {}
    for number, row in enumerate(rows):
        part = made.part(session, target_of(session, row[-1]))
        await part.prepare(session, "delete")
        own = part.firing(session, "DELETE")
        row_id = RowId(row[0])
        old = made.routing.forth(part.leaf, tuple(_cells(made, row)))
        if own is not None and own.before_row:
            if not await delete_each(session, own, part.shape, [(row_id, old)]):
                continue
        else:
            gone.setdefault(part.leaf.oid, []).append(row_id)
        noted.add(part, "DELETE", own, old, None)
        stored.append((part.leaf, row_id, old, row[extra:-1]))
        if number % SLICE_ROWS == SLICE_ROWS - 1:
            await asyncio.sleep(0)
    for oid, row_ids in gone.items():
        await settle(session.block.ensure_txn().delete(ShardId(oid), row_ids))
    await noted.follow(session)
    return outcome("DELETE", len(stored), made.returning, await made.returned(stored, env))
