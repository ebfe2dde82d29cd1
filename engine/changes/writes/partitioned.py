"""Writing partitioned tables: what it takes in each partition, and INSERT, whose rows find theirs.

    INSERT   rows of the parent ──key──> partition ──> a row of it, as the partition's own INSERT stores it

Row triggers, CHECKs, keys and foreign keys are the partitions'; statement triggers and RETURNING are the
parent's. The parent is locked by intention, and so are the partitions that rows come to; those that are read
were locked by the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.base.eager import settle
from engine.base.row_ids import RowIds
from engine.base.rows import ReadyRows
from engine.base.slices import in_slices, pause
from engine.changes.bulk.changes import BULK_ROWS
from engine.changes.bulk.row_batches import batches_of
from engine.changes.constraints import effects
from engine.changes.constraints.setwise import check_bulk
from engine.changes.triggers.firing import Firing, Operation, firing_of, updated_columns
from engine.changes.triggers.rows import before_insert, begin, take_turns
from engine.changes.writes.dml import (
    InsertPlan,
    insert_on_conflict,
    leaf_of,
    outcome,
    tables_to_lock,
    target_of,
)
from engine.changes.writes.many import CHANGED, RETURNED, Pieces, few_or_more
from engine.changes.writes.returning import Returning, make_env, returning_of
from engine.changes.writes.routing import Routing
from engine.changes.writes.row_checks import RowChecks
from engine.changes.writes.shape import Shown, TableShape
from engine.changes.writes.spilling import STAGED_BYTES, Spilling
from engine.changes.writes.spooled import Gathering, SpooledRows
from engine.plans.query import collect, compiled_query, context, prepare_source, run_query
from engine.session.catalog.foreign import no_reader
from engine.session.plans.plan import Plan
from engine.session.portal import Outcome
from pgwire.codecs.copy import copy_context, with_context
from pgwire.codecs.errors import DataError
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.evaluate import Env
from planner.partitions.bounds import column_map
from planner.partitions.changes import insert_into, row_checks_of
from planner.query import Delete, Insert, Merge, RowCheck, RowCheckKind, Update
from txn.base.types import Row, RowId, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


class Part:
    """What storing rows in one partition takes: compiled when the first row comes to it."""

    __slots__ = ("_changes", "checks", "firings", "insert", "leaf", "reaches", "shape")

    def __init__(
        self,
        session: Session,
        leaf: RelationDef,
        insert: InsertPlan | None,
        checks: RowChecks,
        parent: RelationDef,
        shown: Shown,
    ) -> None:
        """Rows are routed to it, so its bound need not be asked; errors may show of them what they may show
        of the parent's.
        """
        if leaf.server:
            raise no_reader(session.catalog, leaf)
        self.leaf = leaf
        self.insert = insert
        self.checks = checks
        self.shape = TableShape.of(leaf, session, routed=True).part_of(parent, shown)
        if insert is not None:
            insert.shape.part_of(parent, shown)
        self.firings: dict[Operation, Firing | None] = {}
        self.reaches: set[str] = set()
        self._changes: frozenset[int] | None = None

    def changes(self, session: Session, parent: RelationDef, assigned: Iterable[int]) -> frozenset[int]:
        """Return its columns that the statement changes where it assigns columns of ``parent``; always the
        same ones.
        """
        if self._changes is None:
            attnums = column_map(parent, self.leaf)
            self._changes = updated_columns(session, self.leaf, [attnums[a] for a in assigned])
        return self._changes

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
        if op == "update":
            own = self.firing(session, "UPDATE", changed)
            if own is not None and own.before_row:  # it may change any column
                changed = frozenset(column.attnum for column in self.leaf.stored_columns)
        txn = session.block.ensure_txn()
        await settle(txn.begin_write([ShardId(self.leaf.oid)]))
        await effects.prepare(session, self.leaf, effects.Reach(session, self.leaf, op, changed))

    async def made(self, kind: RowCheckKind, rows: Sequence[Row], env: Env) -> Sequence[Row]:
        """Return rows as they are to be stored, checked. Raises what constraints and row-level security raise."""
        if self.checks:
            return await self.checks.made(kind, self.shape, rows, env)
        return await in_slices(rows, lambda some: self.shape.made(some, env))


def assigned_by(statement: Insert | Update | Delete | Merge) -> tuple[int, ...]:
    """Return the columns that a statement gives values to."""
    match statement:
        case Insert():
            return statement.given
        case Update():
            return statement.assigned
        case Merge():
            return tuple(attnum for action in statement.actions for attnum in action.given)
    return ()


class Partitioned:
    """The compiled parts of one statement on a partitioned table."""

    __slots__ = ("_moves", "base", "parent", "parts", "places", "returning", "routing", "shown", "statement")

    def __init__(self, session: Session, statement: Insert | Update | Delete | Merge) -> None:
        """Compile what does not depend on partitions."""
        self.statement = statement
        self.parent = target_of(session, statement.table)
        self.routing = Routing(session, self.parent)
        self.returning: Returning | None = None
        if not isinstance(statement, Merge):
            self.returning = returning_of(session, self.parent, statement.returning, statement.columns)
        self.base = InsertPlan(session, statement) if isinstance(statement, Insert) else None
        self.shown = Shown.of(self.parent, session).given(assigned_by(statement))
        self.parts: dict[int, Part] = {}
        self.places: tuple[Sequence[int], Sequence[str | None]] | None = None
        """Of a COPY: the line of each row, and its text."""
        self._moves = False

    @contextmanager
    def at(self, number: int) -> Iterator[None]:
        """Give errors the place of a row of COPY."""
        try:
            yield
        except DataError as error:
            if self.places is not None:
                lines, texts = self.places
                with_context(error, copy_context(self.parent.name, lines[number], None, texts[number]))
            raise

    def part(self, session: Session, leaf: RelationDef) -> Part:
        """Return what storing rows in a partition takes."""
        found = self.parts.get(leaf.oid)
        if found is None:
            insert = None
            if isinstance(self.statement, Insert) and self.statement.on_conflict is not None:
                own = insert_into(self.statement, self.parent, leaf, session.catalog)
                insert = InsertPlan(session, own, self.parent)
            checks: Sequence[RowCheck] = ()
            if not isinstance(self.statement, Delete):
                checks = row_checks_of(self.statement.row_checks, self.parent, leaf)
            shown = self.shown.of_part(self.parent, leaf)
            row_checks = RowChecks(session, leaf, checks, self.parent)
            found = Part(session, leaf, insert, row_checks, self.parent, shown)
            if insert is not None:
                insert.checks = found.checks
            self.parts[leaf.oid] = found
        return found

    def start(self) -> None:
        """Begin a run: what the last one has locked may be free again."""
        self._moves = False
        for part in self.parts.values():
            part.reaches.clear()

    async def prepare_moves(self, session: Session) -> None:
        """Lock what rows reach that move between partitions."""
        if not self._moves:
            self._moves = True
            reach = effects.Reach(session, self.parent, "delete", frozenset())
            reach.add(session, self.parent, "update", frozenset(c.attnum for c in self.parent.live))
            await effects.prepare(session, self.parent, reach)

    def cells(self, row: Row) -> list[Any]:
        """Return the parent's row that a row of the source of an UPDATE, DELETE or MERGE has."""
        cells: list[Any] = [None] * len(self.parent.columns)
        for at, column in enumerate(self.parent.live, 1):
            cells[column.attnum - 1] = row[at]
        return cells

    async def returned(
        self, stored: Sequence[tuple[RelationDef, RowId, Row, Row]], env: Env
    ) -> list[Row] | None:
        """Return what RETURNING makes of rows (table, id, row of the table, extras), in their order; None
        without it.
        """
        if self.returning is None:
            return None
        rows: list[Row] = []
        for leaf, row_id, row, extra in stored:
            whole = self.routing.back(leaf, row)
            rows += await self.returning.rows([(row_id, whole, extra)], env, leaf.oid)
            pause()
        return rows

    def bare(self) -> RelationDef:
        """Return the parent as its statement triggers know it: constraints are looked at in the partitions."""
        return replace(self.parent, constraints=(), indexes=(), triggers=())


def routed(session: Session, plan: Plan, statement: Insert | Update | Delete | Merge) -> Partitioned:
    """Return the compiled parts of a plan, for another run of it."""
    if plan.dml is None:
        plan.dml = Partitioned(session, statement)
    made: Partitioned = plan.dml
    made.start()
    return made


class Noted:
    """The changes of a statement, by partition, for what follows them.

    Rows for which triggers fire stay in the order in which they were changed, as a change for each run of one
    kind in one partition.
    """

    def __init__(
        self, made: Partitioned, firings: Sequence[Firing | None], many: Session | None = None
    ) -> None:
        """``firings``: the statement triggers, of each kind of change that the statement may make. ``many``:
        of whom, where there are many rows.
        """
        self._made = made
        self._many = many
        self._touched: dict[int, RowIds] = {}
        self._firings = [firing for firing in firings if firing is not None]
        self._shown = {firing.op for firing in self._firings if firing.transitions}
        self._changes: list[effects.Change] = []
        self._latest: dict[tuple[int, str, str], effects.Change] = {}
        self._seen: dict[str, tuple[Gathering, Gathering]] = {}
        self._moved: list[tuple[Row, Row | None]] = []

    def touched(self, oid: int) -> RowIds:
        """Return the rows of a partition that ON CONFLICT has inserted or updated, to be added to."""
        return self._touched.setdefault(oid, RowIds())

    def moved(self, old: Row, new: Row | None) -> None:
        """Note a row of the parent that has left its partition; ``new`` None: triggers of the other one did
        not let it in.
        """
        self._moved.append((old, new))

    def add(
        self,
        part: Part,
        op: Operation,
        firing: Firing | None,
        old: Row | None,
        new: Row | None,
        by: Operation | None = None,
    ) -> None:
        """Note a row that was changed. ``by``: what its statement does, where that is not ``op``: an UPDATE
        also deletes and inserts.
        """
        by = by or op
        key = (part.leaf.oid, op, by)
        change = self._latest.get(key)
        if change is None or (firing is not None and change is not self._changes[-1]):
            change = effects.Change(
                part.leaf,
                None if op == "INSERT" else self._gathering(),
                None if op == "DELETE" else self._gathering(),
                firing,
                ends=False,
                moves=op != by,
            )
            self._latest[key] = change
            self._changes.append(change)
        if by not in self._seen:
            self._seen[by] = (self._gathering(), self._gathering())
        olds, news = self._seen[by]
        for rows, seen, row in ((change.old, olds, old), (change.new, news, new)):
            if row is not None and isinstance(rows, list | SpooledRows):
                rows.append(row)
                if by in self._shown:
                    seen.append(self._made.routing.back(part.leaf, row))

    def _gathering(self) -> Gathering:
        return [] if self._many is None else SpooledRows.of(self._many, CHANGED)

    async def follow(self, session: Session) -> None:
        """Check foreign keys, fire AFTER triggers."""
        await effects.after(session, *self.changes())

    def changes(self) -> list[effects.Change]:
        """Return what was noted, in the order in which it is followed."""
        bare = self._made.bare()
        ends = [
            effects.Change(bare, None, (), firing, shown=self._seen.get(firing.op, ((), ())))
            for firing in self._firings
        ]
        came = [(old, new) for old, new in self._moved if new is not None]
        lost = [old for old, new in self._moved if new is None]
        moves = [effects.Change(bare, [old for old, _ in came], [new for _, new in came])] if came else []
        moves += [effects.Change(bare, lost, None)] if lost else []
        return [*self._changes, *moves, *ends]

    def let_go(self) -> None:
        """Have all of it freed in slices, unless it waits for other parts of its statement."""
        for change in self._changes:
            change.let_go()
        let_go(self._moved, *(rows for seen in self._seen.values() for rows in seen))


def statement_firing(
    session: Session, parent: RelationDef, op: Operation, changed: Iterable[int] = ()
) -> Firing | None:
    """Return the statement triggers of a partitioned table for one kind of change, None for none."""
    found = firing_of(session, parent, op, tuple(changed))
    return None if found is None else found.statements_only()


# --- INSERT -----------------------------------------------------------------------------------------


async def insert_routed(session: Session, plan: Plan, statement: Insert, params: tuple[Any, ...]) -> Outcome:
    """Run an INSERT into a partitioned table. Raises SqlError 23514 for a row without a partition, and as
    ``run_insert``.
    """
    made = routed(session, plan, statement)
    base = made.base
    if base is None:
        raise AssertionError("a routed INSERT has no base")
    ctx = context(session, plan, params)
    env = make_env(ctx)
    scans: Sequence[ShardId] = []
    if statement.source is not None and plan.bound.reads:
        prepare_source(session, compiled_query(plan, "source", statement.source))
        scans = tables_to_lock(session, plan, "source")
    await session.view.start_write(plan, [ShardId(made.parent.oid)], scans)
    session.view.use(plan)
    pieces: Pieces | None = None
    if statement.source is None:
        source: Sequence[Row] = [()]
    elif base.row is not None and session.derived.executor == "auto":
        source = [base.row((), env)]
    else:
        result = await run_query(session, plan, "source", statement.source, ctx)
        if plan.locking and not isinstance(result, ReadyRows):
            source = await collect(session, result)
        else:
            source, pieces = await few_or_more(session, result)
    rows = await in_slices(source, lambda some: base.complete(some, env))
    updates = statement.on_conflict is not None and statement.on_conflict.action == "update"
    updating = None
    if updates and statement.on_conflict is not None:
        assigned = [attnum for attnum, _ in statement.on_conflict.assignments]
        updating = statement_firing(session, made.parent, "UPDATE", assigned)
    firing = statement_firing(session, made.parent, "INSERT")
    await begin(session, firing, updating)
    if pieces is not None:
        async with aclosing(pieces):
            return await _insert_pieces(session, made, base, pieces, env, [updating, firing])
    noted = Noted(made, [updating, firing])
    stored, count = await store(session, made, rows, env, noted)
    await noted.follow(session)
    noted.let_go()
    returned = await made.returned(stored, env)
    let_go(source, rows, stored)
    return outcome("INSERT", count, made.returning, returned)


async def _insert_pieces(
    session: Session,
    made: Partitioned,
    base: InsertPlan,
    pieces: Pieces,
    env: Env,
    firings: Sequence[Firing | None],
) -> Outcome:
    """Insert many rows, an eighth of the statement's share at a time: so many are written as parts where
    nobody looks at them.
    """
    noted = Noted(made, firings, session)
    returned = None if made.returning is None else SpooledRows.of(session, RETURNED)
    spilling = Spilling(session)
    total = 0
    waiting: list[Row] = []

    async def insert() -> None:
        nonlocal total, waiting
        rows, waiting = waiting, []
        stored, count = await store(session, made, rows, env, noted)
        total += count
        if returned is not None:
            openly(returned.extend, await made.returned(stored, env) or ())
        let_go(stored, rows)
        if spilling.due:
            for shard, ids in (await spilling.spill()).items():
                noted.touched(int(shard)).update(ids)

    size = 0
    async for some in pieces:
        waiting += openly(base.complete, some, env)
        size += openly(lambda rows: sum(map(row_bytes, rows)), some) + len(some) * STAGED_BYTES // 4
        if size > spilling.limit:
            await insert()
            size = 0
    await insert()
    await spilling.rest()
    await noted.follow(session)
    noted.let_go()
    return outcome("INSERT", total, made.returning, returned)


async def copy_routed(
    session: Session,
    parent: RelationDef,
    attnums: Sequence[int],
    rows: Sequence[Row],
    env: Env,
    firing: Firing | None,
    places: tuple[Sequence[int], Sequence[str | None]],
) -> int:
    """Store the rows of a COPY of columns, as they are read; return how many. ``places``: line and text of
    each, for errors.
    """
    made = Partitioned(session, Insert(table=parent.oid, attnums=(), source=None))
    made.shown = made.shown.given(attnums)
    made.places = places
    for number, row in enumerate(rows):
        with made.at(number):
            made.routing.find(session, row, env)
        pause()
    noted = Noted(made, [firing])
    _stored, count = await store(session, made, rows, env, noted)
    await noted.follow(session)
    noted.let_go()
    return count


async def _raise_first(made: Partitioned, placed: Mapping[int, Sequence[tuple[int, Row]]], env: Env) -> None:
    """Raise the error of the first row that may not be stored, with its place; partition by partition another
    one may have come first.
    """
    order = _in_order(placed, 1 + max(some[-1][0] for some in placed.values()))
    for count, (number, oid, row) in enumerate(order, 1):
        await take_turns(count)
        with made.at(number):
            await made.parts[oid].made("insert", [row], env)


def _in_order(placed: Mapping[int, Sequence[tuple[int, Row]]], count: int) -> list[tuple[int, int, Row]]:
    """Return (place, partition, row) of ``count`` rows that were placed, as they came."""
    order: list[tuple[int, int, Row] | None] = [None] * count
    for oid, some in placed.items():
        for number, row in some:
            order[number] = (number, oid, row)
            pause()
    return [one for one in order if one is not None]


async def store(
    session: Session,
    made: Partitioned,
    rows: Sequence[Row],
    env: Env,
    noted: Noted,
) -> tuple[list[tuple[RelationDef, RowId, Row, Row]], int]:
    """Insert rows of the parent into their partitions; return them as they are stored, and how many count.
    ``noted``: what follows them.
    """
    placed: dict[int, list[tuple[int, Row]]] = {}
    for number, row in enumerate(rows):
        leaf = made.routing.find(session, row, env)
        placed.setdefault(leaf.oid, []).append((number, made.routing.forth(leaf, row)))
        pause()
    by_row = False
    for oid in placed:
        await session.cancelled.turn()
        leaf = leaf_of(session, oid)
        part = made.part(session, leaf)
        await part.prepare(session, "insert")
        if (
            part.insert is not None
            and part.insert.conflict is not None
            and part.insert.conflict.action != "nothing"
        ):
            await part.prepare(session, "update", frozenset(c.attnum for c in leaf.live))
        own = part.firing(session, "INSERT")
        by_row |= own is not None
        by_row |= part.insert is not None and part.insert.conflict is not None
    if by_row:
        order = _in_order(placed, len(rows))
        return await _store_each(session, made, order, env, noted)
    stored: list[tuple[RelationDef, RowId, Row, Row] | None] = [None] * len(rows)
    count = 0
    for oid, some in placed.items():
        await session.cancelled.turn()
        part = made.parts[oid]
        own = part.firing(session, "INSERT")
        count += len(some)
        whole = [row for _, row in some]
        try:
            if made.returning is None and await _store_many(session, part, whole, env):
                continue
            kept = await store_in(session, part, whole, env)
        except DataError:
            if made.places is not None:
                await _raise_first(made, placed, env)
            raise
        for (number, _), (row_id, row) in zip(some, kept, strict=True):
            noted.add(part, "INSERT", own, None, row)
            if made.returning is not None:
                stored[number] = (part.leaf, row_id, row, ())
            pause()
        let_go(whole, kept)
    let_go(stored, *placed.values())
    return [one for one in stored if one is not None], count


async def store_in(
    session: Session, part: Part, rows: Sequence[Row], env: Env, kind: RowCheckKind = "insert"
) -> list[tuple[RowId, Row]]:
    """Insert rows of one partition; return them as they are stored."""
    full = await part.made(kind, rows, env)
    row_ids: list[RowId] = await settle(session.block.ensure_txn().insert(part.shape.shard, full))
    if session.parts is not None:
        session.parts.touched_in(part.shape.shard).update(row_ids)
    await part.checks.stored(part.shape, full, env)
    return list(zip(row_ids, full, strict=True))


async def _store_many(session: Session, part: Part, rows: Sequence[Row], env: Env) -> bool:
    """Insert rows of one partition as parts, and check all, if they are so many that it pays, and nobody asks
    for them; tell whether.
    """
    if len(rows) <= BULK_ROWS or session.parts is not None or not effects.may_bulk_load(session, part.leaf):
        return False
    if part.checks.views:
        return False
    full = await part.made("insert", rows, env)
    await session.block.ensure_txn().bulk_insert(part.shape.shard, batches_of(part.leaf, full))
    await check_bulk(session, part.leaf)
    return True


async def _store_each(
    session: Session,
    made: Partitioned,
    order: Sequence[tuple[int, int, Row]],
    env: Env,
    noted: Noted,
) -> tuple[list[tuple[RelationDef, RowId, Row, Row]], int]:
    """Insert rows one by one, as triggers look at them, or ON CONFLICT may let them out."""
    stored: list[tuple[RelationDef, RowId, Row, Row]] = []
    for number, oid, row in order:
        await session.cancelled.turn()
        part = made.parts[oid]
        own = part.firing(session, "INSERT")
        insert = part.insert
        if insert is not None and insert.conflict is not None:
            insert.firing = own
            updating = part.firing(session, "UPDATE", insert.conflict_changes(part.leaf))
            insert.updating = updating
            found = await insert_on_conflict(session, insert, [row], env, noted.touched(oid))
            for op, row_id, old, new in found:
                if op == "UPDATE":
                    _refuse_move(session, made, part, new, env)
                noted.add(part, op, own if op == "INSERT" else updating, old, new)
                stored.append((part.leaf, row_id, new, ()))
            continue
        with made.at(number):
            let: Row | None = row
            if own is not None and own.before_row:
                let = await before_insert(session, own, part.shape, row, env)
            if let is None:
                continue
            kept = await store_in(session, part, [let], env)
        for row_id, full in kept:
            noted.add(part, "INSERT", own, None, full)
            stored.append((part.leaf, row_id, full, ()))
    let_go(order)
    return stored, len(stored)


def _refuse_move(session: Session, made: Partitioned, part: Part, row: Row, env: Env) -> None:
    found = _place(session, made, part, row, env)
    if found is None or found.oid != part.leaf.oid:
        raise SqlError(
            "0A000",
            "invalid ON UPDATE specification",
            detail="The result tuple would appear in a different partition than the original tuple.",
        )


def _place(session: Session, made: Partitioned, part: Part, row: Row, env: Env) -> RelationDef | None:
    try:
        return made.routing.find(session, made.routing.back(part.leaf, row), env)
    except SqlError as error:
        if error.sqlstate != "23514":
            raise
        return None
