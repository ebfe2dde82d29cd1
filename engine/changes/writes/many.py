"""UPDATE, DELETE and INSERT of many rows that somebody looks at: a piece of the source at a time, in bounded memory.

    source ──500 rows──> triggers, checks ──> staged ──16 MB──> parts (``engine.changes.writes.spilling``)
                                        ├──> RETURNING ────────┐
                                        └──> old and new rows ─┴──> files (``engine.changes.writes.spooled``)
    at the end: keys that change, foreign keys, AFTER triggers, transition tables; then RETURNING's rows go to
    the client

Few rows, and those that nobody looks at (``engine.changes.bulk.changes``,
``engine.changes.writes.insert_bulk``), never come here. A statement reads what was there before it, so what
it has staged of earlier pieces its source does not find; functions of triggers do, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from engine.base.eager import settle
from engine.base.executor import Result
from engine.base.pieces import FEW_BYTES, cut
from engine.base.row_ids import RowIds
from engine.base.rows import ReadyRows, RowBatch
from engine.base.slices import pause
from engine.changes.bulk.changes import BULK_ROWS
from engine.changes.constraints import effects
from engine.changes.triggers.rows import begin, delete_each, insert_each, refuse_changed, update_each
from engine.changes.writes.dml import InsertPlan, insert_on_conflict, outcome
from engine.changes.writes.shape import OF_ROWS, TableShape
from engine.changes.writes.spilling import Spilling
from engine.changes.writes.spooled import SpooledRows
from engine.session.portal import Outcome
from pgwire.codecs.errors import DataError
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import openly
from pgwire.release import let_go
from planner.evaluate import Env
from txn.base.types import IndexId, Row, RowId

if TYPE_CHECKING:
    from engine.changes.writes.update_delete import ChangePlan
    from engine.session.session import Session

PIECE_ROWS: Final = 500
RETURNED: Final = "the rows of RETURNING"
CHANGED: Final = "the rows that a statement changes"

Pieces: TypeAlias = AsyncGenerator[Sequence[Row]]


async def _pieces(session: Session, result: Result) -> Pieces:
    """Yield a result's rows, some at a time; ends the query where nobody reads on."""
    if isinstance(result, ReadyRows):
        for start in range(0, len(result.rows), PIECE_ROWS):
            yield result.rows[start : start + PIECE_ROWS]
        return
    try:
        async for batch in result.batches:
            for start in range(0, len(batch), PIECE_ROWS):
                if batch.rows is not None:
                    yield batch.rows[start : start + PIECE_ROWS]
                    continue
                some = RowBatch(arrow=batch.arrow.slice(start, PIECE_ROWS))
                for part, _long in cut(some, None):
                    yield openly(session.db.arrow_rows, part.arrow, result.columns)
    finally:
        result.close()


async def few_or_more(session: Session, result: Result) -> tuple[Sequence[Row], Pieces | None]:
    """Return a result's rows where they are few; else no rows, and all of them in pieces, which are to be closed."""
    if isinstance(result, ReadyRows) and len(result.rows) <= BULK_ROWS:
        return result.rows, None
    pieces = _pieces(session, result)
    first: list[Row] = []
    size = 0
    async for some in pieces:
        first += some
        size += openly(row_bytes, some[0]) if some else 0
        size += openly(row_bytes, some[-1]) * (len(some) - 1) if len(some) > 1 else 0
        pause()
        if len(first) > BULK_ROWS or size > FEW_BYTES:
            return (), _joined(first, pieces)
    return first, None


async def _joined(first: list[Row], pieces: Pieces) -> Pieces:
    try:
        for start in range(0, len(first), PIECE_ROWS):
            yield first[start : start + PIECE_ROWS]
        let_go(first)
        del first
        async for some in pieces:
            yield some
    finally:
        await pieces.aclose()


class Gathered:
    """What a statement of many rows gathers of each: for RETURNING, and for what follows from its changes."""

    def __init__(self, session: Session, *, returns: bool, follows: bool) -> None:
        """``returns``, ``follows``: whether there is such a thing; else nothing is kept."""
        self.returned = SpooledRows.of(session, RETURNED) if returns else None
        self.follows = follows
        self.old = SpooledRows.of(session, CHANGED)
        self.new = SpooledRows.of(session, CHANGED)
        self.count = 0


async def change_many(session: Session, change: ChangePlan, pieces: Pieces, env: Env) -> Outcome:
    """Update or delete the rows of a source. Raises as ``run_update``."""
    firing, shape = change.firing, change.shape
    if firing is not None:
        await begin(session, firing)
    each = firing is not None and bool(firing.before_row)
    changed = frozenset[int]() if each or change.deletes else change.assigned_attnums
    gathered = Gathered(session, returns=change.returning is not None, follows=change.effects)
    stores = bool(shape.shards)  # of a view each row is told to its triggers
    seen = RowIds() if stores and len(change.source.ranges) > 1 else None
    spilling = Spilling(session)
    with KeysAtTheEnd(session, shape, changed) as waiting:
        async for rows in pieces:
            if seen is not None:
                rows = [row for row in rows if seen.add(row[0])]
            if stores and session.parts is not None:
                rows = openly(session.parts.first_to_change, shape.shard, rows)
            if rows:
                await _change_some(session, change, rows, env, gathered)
            if spilling.due:
                moved = await spilling.spill()
                if stores and session.parts is not None:
                    session.parts.touched_in(shape.shard).update(map(RowId, moved.get(shape.shard, ())))
            pause()
        await spilling.rest()
        await waiting.look()
    if change.effects and change.deletes:
        await effects.deleted(session, shape.relation, gathered.old, firing)
    elif change.effects:
        await effects.updated(session, shape.relation, gathered.old, gathered.new, firing)
    return outcome(change.verb, gathered.count, change.returning, gathered.returned)


async def _change_some(
    session: Session, change: ChangePlan, rows: Sequence[Row], env: Env, gathered: Gathered
) -> None:
    firing, shape, txn = change.firing, change.shape, session.block.ensure_txn()
    each = firing is not None and bool(firing.before_row)
    extra = change.extra_from
    if firing is not None and shape.shards:
        verb = "deleted" if change.deletes else "updated"
        refuse_changed(session, shape, [RowId(row[0]) for row in rows], verb)
    if change.deletes:
        if each:
            if firing is None:
                raise AssertionError("rows are changed one by one, yet no trigger fires")
            gone = ((RowId(row[0]), change.old(row)) for row in rows)
            rows = [rows[one.at] for one in await delete_each(session, firing, shape, gone)]
        else:
            await settle(txn.delete(shape.shard, [RowId(row[0]) for row in rows]))
        looked_at = gathered.follows or gathered.returned is not None  # else the source has ids alone
        old = openly(lambda: [change.old(row) for row in rows]) if looked_at else []
        new = old
    elif each:
        if firing is None:
            raise AssertionError("rows are changed one by one, yet no trigger fires")
        wanted = ((RowId(row[0]), change.old(row), change.new(row)) for row in rows)
        done = await update_each(session, firing, shape, wanted, env, checks=change.checks)
        rows = [rows[one.at] for one in done]
        old, new = [one.old for one in done], [one.new for one in done]
    else:
        changes = await change.all_changed(session, rows, env)
        await settle(txn.update(shape.shard, changes, keys_kept=change.keys_kept))
        old = openly(lambda: [change.old(row) for row in rows])
        new = [row for _, row in changes]
    gathered.count += len(rows)
    if gathered.returned is not None:
        if change.returning is None:
            raise AssertionError("rows were gathered for a RETURNING that is not there")
        stored = ((RowId(row[0]), now, row[extra:]) for row, now in zip(rows, new, strict=True))
        openly(gathered.returned.extend, await change.returning.rows(stored, env))
    if gathered.follows:
        openly(gathered.old.extend, old)
        if not change.deletes:
            openly(gathered.new.extend, new)


async def _checked(session: Session, insert: InsertPlan, rows: Sequence[Row], env: Env) -> list[Row]:
    """Return rows as they are stored. The first one that has an error decides which it is: those before it
    are stored, as they may break a key.
    """
    checks, shape = insert.checks, insert.shape
    try:
        if checks:
            made = list(await checks.made("insert", shape, rows, env))
        else:
            made = list(openly(shape.made, rows, env))
        if checks.views:
            await checks.stored(shape, made, env)
    except DataError as error:
        if error.sqlstate.startswith(OF_ROWS):
            for row in rows:
                [new] = await checks.made("insert", shape, [row], env)
                await settle(session.block.ensure_txn().insert(shape.shard, [new]))
                await checks.stored(shape, [new], env)
        raise
    return made


class KeysAtTheEnd:
    """Unique keys that a statement changes in pieces are looked at once all rows have changed: ``SET k = k +
    1`` works where the final state is unique.

    Those of constraints that wait for the commit do so anyway. Nothing else runs in the transaction meanwhile.
    """

    def __init__(self, session: Session, shape: TableShape, changed: frozenset[int] | None) -> None:
        """Put the look off for the columns ``changed``, by attnum; None: all."""
        relation = shape.relation
        self._session, self._shard = session, shape.shard
        self._changed = (
            frozenset(column.attnum for column in relation.columns) if changed is None else changed
        )
        waiting = {
            constraint.index_oid
            for constraint in relation.constraints
            if constraint.kind in "pu" and session.timing.is_deferred(constraint)
        }
        self._indexes = [
            IndexId(index.oid)
            for index in relation.indexes
            if index.unique and index.oid not in waiting and not self._changed.isdisjoint(index.kept)
        ]

    def __enter__(self) -> KeysAtTheEnd:
        """Begin."""
        for index in self._indexes:
            self._session.block.ensure_txn().defer_unique(index, True)
        return self

    def __exit__(self, *error: object) -> None:
        """What comes next has its keys looked at."""
        txn = self._session.block.txn
        if txn is not None:
            for index in self._indexes:
                txn.defer_unique(index, False)

    async def look(self) -> None:
        """Look at them. Raises DuplicateKey."""
        txn = self._session.block.ensure_txn()
        for index in self._indexes:
            await settle(txn.check_unique(self._shard, index))
        if self._indexes:
            await txn.check_loaded(self._shard, self._changed)


async def insert_many(session: Session, insert: InsertPlan, pieces: Pieces, env: Env) -> Outcome:
    """Insert the rows of a source. Raises as ``run_insert``."""
    await begin(session, insert.firing, insert.updating)
    shape, txn = insert.shape, session.block.ensure_txn()
    gathered = Gathered(session, returns=insert.returning is not None, follows=insert.effects)
    touched = RowIds()
    mixed = effects.Mixed(
        shape.relation,
        {"UPDATE": insert.updating, "INSERT": insert.firing},
        lambda: SpooledRows.of(session, CHANGED),
    )
    spilling = Spilling(session)
    async for some in pieces:
        whole = openly(insert.complete, some, env)
        if insert.conflict is not None:
            done = await insert_on_conflict(session, insert, whole, env, touched)
            kept = [(row_id, new) for _, row_id, _, new in done]
            for op, _row_id, old, new in done if insert.effects else ():
                openly(mixed.add, op, old, new)
        elif insert.firing is not None and insert.firing.before_row:
            kept = await insert_each(session, insert.firing, shape, whole, env, insert.checks)
        else:
            rows = await _checked(session, insert, whole, env)
            inserted = await settle(txn.insert(shape.shard, rows))
            kept = list(zip(inserted, rows, strict=True))
        gathered.count += len(kept)
        if session.parts is not None:
            session.parts.touched_in(shape.shard).update(row_id for row_id, _ in kept)
        if gathered.returned is not None:
            if insert.returning is None:
                raise AssertionError("rows were gathered for a RETURNING that is not there")
            stored = ((row_id, row, ()) for row_id, row in kept)
            openly(gathered.returned.extend, await insert.returning.rows(stored, env))
        if insert.effects and insert.conflict is None:
            openly(gathered.new.extend, [row for _, row in kept])
        if spilling.due:
            moved = await spilling.spill()
            touched.update(moved.get(shape.shard, ()) if shape.shards else ())
        pause()
    await spilling.rest()
    if insert.effects and insert.conflict is not None:
        await mixed.follow(session)
    elif insert.effects:
        await effects.inserted(session, shape.relation, gathered.new, insert.firing)
    return outcome("INSERT", gathered.count, insert.returning, gathered.returned)
