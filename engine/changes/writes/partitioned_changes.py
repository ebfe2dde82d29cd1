"""UPDATE and DELETE of partitioned tables, and what MERGE has of them.

    UPDATE   source rows, with the table each is in ──> new row ─┬─ same partition   updated there
                                                                 └─ another one      deleted here, inserted there
    DELETE   source rows, with the table each is in ──> deleted there

Changes are staged at the statement's end: what goes, what changes, what comes. Where BEFORE ROW triggers look
at rows, or row triggers fire for one that moves, it is staged at once, as PostgreSQL does it, and what waits
before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.base.eager import settle
from engine.base.executor import CHANGES
from engine.base.row_ids import RowIds
from engine.base.rows import ReadyRows
from engine.base.slices import SLICE_ROWS
from engine.changes.triggers.firing import Operation, updated_columns
from engine.changes.triggers.rows import before_insert, begin, changed_already, delete_each, refuse_changed
from engine.changes.writes.dml import leaf_of, outcome, tables_to_lock
from engine.changes.writes.many import RETURNED, KeysAtTheEnd, Pieces, few_or_more
from engine.changes.writes.partitioned import Noted, Part, Partitioned, routed, statement_firing, store_in
from engine.changes.writes.returning import make_env
from engine.changes.writes.spilling import Spilling
from engine.changes.writes.spooled import SpooledRows
from engine.plans.query import collect, compiled_query, context, prepare_source, run_query
from engine.session.plans.plan import Plan
from engine.session.portal import Outcome
from pgwire.give_way import openly, paced
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.evaluate import Env
from planner.partitions.bounds import ancestors
from planner.query import Delete, Merge, Update
from txn.base.types import Row, RowId, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

Stored = tuple[RelationDef, RowId, Row, Row]


class _Coming(NamedTuple):
    """A row that comes to a partition: its place among the rows that count, the partition's row, extras; what
    it was in the parent.
    """

    place: int
    row: Row
    extra: Row
    old: Row | None


class Changes:
    """What a statement does to rows of a partitioned table, row by row.

    ``stored``: for each row that counts its partition, id, the row there (of a DELETE: as it was), and extras.
    """

    def __init__(
        self, session: Session, made: Partitioned, env: Env, noted: Noted, verb: str | None = None
    ) -> None:
        """``verb``: what messages say is done to rows, None: what is."""
        self._session, self._made, self._env, self._noted, self._verb = session, made, env, noted, verb
        self._stored: list[Stored | None] = []
        self._gone: dict[int, list[RowId]] = {}
        self._changed: dict[int, list[tuple[RowId, Row]]] = {}
        self._come: dict[tuple[int, Operation], list[_Coming]] = {}
        self._keys = ExitStack()
        self._waiting: dict[int, KeysAtTheEnd] | None = None
        self.count = 0
        self.returned: Sequence[Row] | None = None

    async def settled(self, *, many: bool) -> None:
        """Stage all that is not, and make what RETURNING says of the rows so far. ``many``: more are to come,
        or came.
        """
        await self.stage()
        stored = [one for one in self._stored if one is not None]
        self.count += len(stored)
        rows = await self._made.returned(stored, self._env)
        if rows is not None and many:
            if self.returned is None:
                self.returned = SpooledRows.of(self._session, RETURNED)
            if not isinstance(self.returned, SpooledRows):
                raise AssertionError(f"the returned rows are kept as {type(self.returned).__name__}")
            openly(self.returned.extend, rows)
        elif rows is not None:
            self.returned = rows
        let_go(self._stored, stored)
        self._stored = []

    async def update(
        self, part: Part, row_id: RowId, old: Row, new: Row, assigned: Sequence[int], extra: Row = ()
    ) -> None:
        """Update a row of the parent that is in ``part``. ``assigned``: attnums, of all such rows the same."""
        session, made = self._session, self._made
        changed = part.changes(session, made.parent, assigned)
        await part.prepare(session, "update", changed)
        own = part.firing(session, "UPDATE", changed)
        at_once = own is not None and bool(own.before_row)
        before, now = made.routing.forth(part.leaf, old), made.routing.forth(part.leaf, new)
        if own is not None:
            verb = self._verb or "updated"
            refuse_changed(session, part.shape, [row_id], "updated" if own.before_row else verb)
            let = await own.before(session, before, now)
            if let is None:
                return
            now = let
            if at_once:
                refuse_changed(session, part.shape, [row_id], verb)
        whole = made.routing.back(part.leaf, now)
        target = made.routing.find(session, whole, self._env)
        if target.oid != part.leaf.oid:
            await self._move(part, row_id, before, whole, target, extra)
            return
        [full] = await part.made("update", [now], self._env)
        if at_once:
            await self.stage()
            if not all(await settle(session.block.ensure_txn().update(part.shape.shard, [(row_id, full)]))):
                raise changed_already(self._verb or "updated")
            await part.checks.stored(part.shape, [full], self._env)
        else:
            self._changed.setdefault(part.leaf.oid, []).append((row_id, full))
        self._noted.add(part, "UPDATE", own, before, full)
        self._stored.append((part.leaf, row_id, full, extra))

    async def _move(
        self, part: Part, row_id: RowId, before: Row, whole: Row, target: RelationDef, extra: Row
    ) -> None:
        """Delete a row here, and insert the parent's row ``whole`` in ``target``. Raises SqlError 0A000."""
        session, made = self._session, self._made
        self._refuse_between(part.leaf)
        await made.prepare_moves(session)
        there = made.part(session, target)
        await part.prepare(session, "delete")
        await there.prepare(session, "insert")
        deleting, inserting = part.firing(session, "DELETE"), there.firing(session, "INSERT")
        at_once = deleting is not None or inserting is not None
        if await self._go(part, row_id, before, at_once=at_once):
            self._noted.add(part, "DELETE", deleting, before, None, by="UPDATE")
            old = made.routing.back(part.leaf, before)
            await self._arrive(there, made.routing.forth(target, whole), extra, old, at_once=at_once)

    def _refuse_between(self, leaf: RelationDef) -> None:
        """Raise SqlError 0A000 where a foreign key refers to a table between a partition and the one that the
        statement names.
        """
        catalog, root = self._session.catalog, self._made.parent
        for above in ancestors(leaf, catalog):
            if above.oid == root.oid:
                return
            if any(not c.parent for _, c in catalog.foreign_keys_to(above.oid)):
                raise SqlError(
                    "0A000",
                    "cannot move tuple across partitions when a non-root ancestor of the source partition is directly "
                    "referenced in a foreign key",
                    detail=f'A foreign key points to ancestor "{above.name}" but not the root ancestor "{root.name}".',
                    hint=f'Consider defining the foreign key on table "{root.name}".',
                )

    async def delete(self, part: Part, row_id: RowId, old: Row, extra: Row = ()) -> None:
        """Delete a row of the parent that is in ``part``."""
        session = self._session
        await part.prepare(session, "delete")
        own = part.firing(session, "DELETE")
        before = self._made.routing.forth(part.leaf, old)
        if not await self._go(part, row_id, before, at_once=own is not None and bool(own.before_row)):
            return
        self._noted.add(part, "DELETE", own, before, None)
        self._stored.append((part.leaf, row_id, before, extra))

    async def _go(self, part: Part, row_id: RowId, old: Row, *, at_once: bool) -> bool:
        """Delete a row of a partition; tell whether triggers let it go."""
        if not at_once:
            self._gone.setdefault(part.leaf.oid, []).append(row_id)
            return True
        session = self._session
        await self.stage()
        firing = part.firing(session, "DELETE")
        if firing is not None:
            verb = self._verb or "deleted"
            return bool(await delete_each(session, firing, part.shape, [(row_id, old)], verb))
        await settle(session.block.ensure_txn().delete(part.shape.shard, [row_id]))
        return True

    async def insert(self, new: Row) -> None:
        """Insert a row of the parent. Raises SqlError 23514 where no partition has it."""
        session, made = self._session, self._made
        target = made.routing.find(session, new, self._env)
        there = made.part(session, target)
        await there.prepare(session, "insert")
        at_once = there.firing(session, "INSERT") is not None
        await self._arrive(there, made.routing.forth(target, new), (), None, at_once=at_once)

    async def _arrive(self, there: Part, row: Row, extra: Row, old: Row | None, *, at_once: bool) -> None:
        by: Operation = "INSERT" if old is None else "UPDATE"
        one = _Coming(len(self._stored), row, extra, old)
        self._stored.append(None)
        if at_once:
            await self.stage()
            await self._store(there, [one], by)
        else:
            self._come.setdefault((there.leaf.oid, by), []).append(one)

    async def _store(self, there: Part, rows: Sequence[_Coming], by: Operation) -> None:
        """Store rows in a partition that were inserted, or ``by`` an UPDATE came from another one."""
        session = self._session
        firing = there.firing(session, "INSERT")
        let: list[Row] = []
        for one in rows:
            row: Row | None = one.row
            if firing is not None and firing.before_row:
                row = await before_insert(
                    session, firing, there.shape, one.row, self._env, moved=one.old is not None
                )
            if row is None:  # then it is the only one: triggers look at each
                if one.old is not None:
                    self._noted.moved(one.old, None)
                return
            let.append(row)
        kept = await store_in(session, there, let, self._env, "update" if by == "UPDATE" else "insert")
        for one, (row_id, full) in zip(rows, kept, strict=True):
            self._noted.add(there, "INSERT", firing, None, full, by=by)
            if one.old is not None:
                self._noted.moved(one.old, self._made.routing.back(there.leaf, full))
            self._stored[one.place] = (there.leaf, row_id, full, one.extra)

    def keys_at_the_end(self) -> ExitStack:
        """Have unique keys of partitions looked at behind all pieces, as far as no trigger looks at rows
        before; to be entered.
        """
        self._keys = ExitStack()
        self._waiting = {}
        return self._keys

    def _put_off(self, oid: int) -> None:
        if self._waiting is not None and oid not in self._waiting:
            keys = KeysAtTheEnd(self._session, self._made.parts[oid].shape, None)
            self._waiting[oid] = self._keys.enter_context(keys)

    async def look_at_keys(self) -> None:
        """Look at them. Raises DuplicateKey."""
        for keys in (self._waiting or {}).values():
            await keys.look()
        self._waiting = None

    async def stage(self) -> None:
        """Write what is not staged yet: what goes, what changes, what comes."""
        txn = self._session.block.ensure_txn()
        gone, changed, come = self._gone, self._changed, self._come
        self._gone, self._changed, self._come = {}, {}, {}
        for oid, row_ids in gone.items():
            await settle(txn.delete(ShardId(oid), row_ids))
            await self._session.cancelled.turn()
        if not any(any(part.firings.values()) for part in self._made.parts.values()):
            for oid in {*changed, *(oid for oid, _by in come)}:
                self._put_off(oid)
        for oid, changes in changed.items():
            await settle(txn.update(ShardId(oid), changes))
            part = self._made.parts[oid]
            if part.checks.views:
                await part.checks.stored(part.shape, [new for _, new in changes], self._env)
            await self._session.cancelled.turn()
        for (oid, by), rows in come.items():
            for start in range(0, len(rows), SLICE_ROWS):
                await self._store(self._made.parts[oid], rows[start : start + SLICE_ROWS], by)
                await asyncio.sleep(0)
        let_go(*gone.values(), *changed.values(), *come.values())


async def source_rows(
    session: Session,
    plan: Plan,
    made: Partitioned,
    statement: Update | Delete | Merge,
    params: tuple[Any, ...],
) -> tuple[Sequence[Row], Pieces | None, Env]:
    """Take the statement's locks; return its source's rows if they are few, else pieces of them, which are to
    be closed.
    """
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
    if plan.locking and not isinstance(result, ReadyRows):
        return await collect(session, result), None, make_env(ctx)
    rows, pieces = await few_or_more(session, result)
    return rows, pieces, make_env(ctx)


class _Once:
    """Of the rows of a source those that count: of what a join gives for one row of the table the first."""

    def __init__(self, session: Session) -> None:
        self._parts = session.parts
        self._seen: dict[int, RowIds] = {}

    def __call__(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return those of some more rows. May give way."""
        first: list[Row] = []
        for row in paced(rows):
            seen = self._seen.get(row[-1])
            if seen is None:
                seen = self._seen[row[-1]] = RowIds()
            if seen.add(row[0]):
                first.append(row)
        if self._parts is None:
            return first
        by_table: dict[int, list[Row]] = {}
        for row in paced(first):
            by_table.setdefault(row[-1], []).append(row)
        kept: list[Row] = []
        for oid, some in by_table.items():
            kept += self._parts.first_to_change(ShardId(oid), some)
        return kept


async def in_pieces(
    session: Session,
    rows: Sequence[Row],
    pieces: Pieces | None,
    changes: Changes,
    take: Callable[[Row], Awaitable[None]],
    once: Callable[[Sequence[Row]], Sequence[Row]] | None = None,
) -> None:
    """Have ``take`` change each row that counts, and all of it staged, with what RETURNING makes of it."""
    for row in rows if once is None else openly(once, rows):
        await take(row)
        await session.cancelled.turn()
    if pieces is not None:
        spilling = Spilling(session)
        async with aclosing(pieces):
            with changes.keys_at_the_end():
                async for some in pieces:
                    for row in some if once is None else openly(once, some):
                        await take(row)
                        await session.cancelled.turn()
                    await changes.settled(many=True)
                    if spilling.due:
                        await spilling.spill()
                await spilling.rest()
                await changes.look_at_keys()
    await changes.settled(many=pieces is not None)


async def update_routed(session: Session, plan: Plan, statement: Update, params: tuple[Any, ...]) -> Outcome:
    """Run an UPDATE of a partitioned table. Raises as ``run_update``; SqlError 23514 for a row without a partition."""
    made = routed(session, plan, statement)
    rows, pieces, env = await source_rows(session, plan, made, statement, params)
    parent = made.parent
    assigned = updated_columns(session, parent, statement.assigned)
    firing = statement_firing(session, parent, "UPDATE", assigned)
    await begin(session, firing)
    noted = Noted(made, [firing], None if pieces is None else session)
    changes = Changes(session, made, env, noted)
    values_from = 1 + len(parent.live)
    extra = values_from + len(statement.assigned)

    async def take(row: Row) -> None:
        cells = made.cells(row)
        old = tuple(cells)
        for at, attnum in enumerate(statement.assigned, values_from):
            cells[attnum - 1] = row[at]
        part = made.part(session, leaf_of(session, row[-1]))
        await changes.update(part, RowId(row[0]), old, tuple(cells), statement.assigned, row[extra:-1])

    await in_pieces(session, rows, pieces, changes, take, _Once(session))
    return await _followed(session, "UPDATE", made, changes, noted, rows)


async def _followed(
    session: Session, verb: str, made: Partitioned, changes: Changes, noted: Noted, rows: Sequence[Row]
) -> Outcome:
    """Follow up what is changed; let go of it, and of the source's rows."""
    await noted.follow(session)
    noted.let_go()
    let_go(rows)
    return outcome(verb, changes.count, made.returning, changes.returned)


async def delete_routed(session: Session, plan: Plan, statement: Delete, params: tuple[Any, ...]) -> Outcome:
    """Run a DELETE of rows of a partitioned table. Raises as ``run_delete``."""
    made = routed(session, plan, statement)
    rows, pieces, env = await source_rows(session, plan, made, statement, params)
    firing = statement_firing(session, made.parent, "DELETE")
    await begin(session, firing)
    noted = Noted(made, [firing], None if pieces is None else session)
    changes = Changes(session, made, env, noted)
    extra = 1 + len(made.parent.live)

    async def take(row: Row) -> None:
        part = made.part(session, leaf_of(session, row[-1]))
        await changes.delete(part, RowId(row[0]), tuple(made.cells(row)), row[extra:-1])

    await in_pieces(session, rows, pieces, changes, take, _Once(session))
    return await _followed(session, "DELETE", made, changes, noted, rows)
