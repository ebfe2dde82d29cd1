"""Changes of rows one by one, where triggers look at each before it is stored.

    row ──> BEFORE ROW ──> generated columns, NOT NULL, CHECK, views ──> staged, keys checked ──> the next row

So a function finds the rows before its own as the statement has left them. All of it is one statement of the
transaction: what a function changes by statements of its own comes later, and must not be the row it was
called for (27000, as in PostgreSQL). Of a view nothing is stored: what its INSTEAD OF triggers let through
counts as done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.base.eager import settle
from engine.base.slices import pause
from engine.changes.triggers.firing import ROWS_A_TURN, Firing
from engine.changes.writes.row_checks import RowChecks
from engine.changes.writes.shape import TableShape
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.evaluate import Env
from txn.base.types import Row, RowId

if TYPE_CHECKING:
    from engine.session.session import Session

_HINT: Final = (
    "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows."
)


NO_ROW: Final = RowId(0)
"""The row id of a row of a view."""


class Changed(NamedTuple):
    """A row that an UPDATE or a DELETE has changed: its place among those given, what it was and is (of a
    DELETE: was).
    """

    at: int
    old: Row
    new: Row


async def insert_each(
    session: Session,
    firing: Firing,
    shape: TableShape,
    rows: Iterable[Row],
    env: Env,
    checks: RowChecks | None = None,
) -> list[tuple[RowId, Row]]:
    """Insert rows that triggers let through; return them as they are stored. Raises what functions and
    storing raise.
    """
    stored: list[tuple[RowId, Row]] = []
    for count, row in enumerate(rows, 1):
        await take_turns(count)
        if firing.instead:
            done = await firing.before(session, None, row)
            stored += [] if done is None else [(NO_ROW, done)]
            continue
        made = await made_before(session, firing, shape, None, row, env, checks)
        if made is not None:
            txn = session.block.ensure_txn()
            [row_id] = await settle(txn.insert(shape.shard, [made]))
            if checks is not None:
                await checks.stored(shape, [made], env)
            stored.append((row_id, made))
    return stored


async def update_each(
    session: Session,
    firing: Firing,
    shape: TableShape,
    rows: Iterable[tuple[RowId, Row, Row]],
    env: Env,
    verb: str = "updated",
    checks: RowChecks | None = None,
) -> list[Changed]:
    """Update rows (row id, old, new) as far as triggers let them through. Raises SqlError 27000, and what
    functions and storing raise.
    """
    changed: list[Changed] = []
    for at, (row_id, old, new) in enumerate(rows):
        await take_turns(at)
        if firing.instead:
            done = await firing.before(session, old, new)
            changed += [] if done is None else [Changed(at, old, done)]
            continue
        refuse_changed(session, shape, [row_id], "updated" if firing.before_row else verb)
        made = await made_before(session, firing, shape, old, new, env, checks)
        if made is not None:
            refuse_changed(session, shape, [row_id], verb)
            txn = session.block.ensure_txn()
            if not all(await settle(txn.update(shape.shard, [(row_id, made)]))):
                raise changed_already(verb)
            if checks is not None:
                await checks.stored(shape, [made], env)
            changed.append(Changed(at, old, made))
    return changed


async def delete_each(
    session: Session,
    firing: Firing,
    shape: TableShape,
    rows: Iterable[tuple[RowId, Row]],
    verb: str = "deleted",
) -> list[Changed]:
    """Delete rows (row id, old) as far as triggers let them through. Raises SqlError 27000, and what
    functions raise.
    """
    changed: list[Changed] = []
    for at, (row_id, old) in enumerate(rows):
        await take_turns(at)
        if firing.instead:
            done = await firing.before(session, old, None)
            changed += [] if done is None else [Changed(at, old, old)]
            continue
        # so PostgreSQL calls it where it takes the row for a trigger
        refuse_changed(session, shape, [row_id], "updated" if firing.before_row else verb)
        kept = await firing.before(session, old, None)
        if kept is not None:
            refuse_changed(session, shape, [row_id], verb)
            txn = session.block.ensure_txn()
            if not all(await settle(txn.delete(shape.shard, [row_id]))):
                raise changed_already(verb)
            changed.append(Changed(at, old, old))
    return changed


async def made_before(
    session: Session,
    firing: Firing,
    shape: TableShape,
    old: Row | None,
    new: Row,
    env: Env,
    checks: RowChecks | None = None,
) -> Row | None:
    """Return a new row as it is to be stored, None where a trigger leaves it out. Raises what functions and
    constraints raise.
    """
    if old is None:
        row = await before_insert(session, firing, shape, new, env)
    else:
        row = await firing.before(session, old, new)
    if row is None:
        return None
    if checks:
        [made] = await checks.made("insert" if old is None else "update", shape, [row], env)
    else:
        [made] = openly(shape.made, [row], env)
    return made


async def before_insert(
    session: Session, firing: Firing, shape: TableShape, new: Row, env: Env, *, moved: bool = False
) -> Row | None:
    """Fire BEFORE ROW for a new row; return it as it goes on, None where a trigger leaves it out. ``moved``:
    from another partition.

    A trigger that a partition has of its partitioned table must not give a row a key of another partition:
    0A000. One of its own may, and the next may take it back: the bound is asked when the row is stored.
    """
    table = shape.relation
    if moved:
        new = shape.complete([new], env)[0]
    if not table.partition_of or not any(one.trigger.parent for one in firing.before_row):
        return await firing.before(session, None, new, computed=moved)
    for each in firing.one_by_one():
        row = await each.before(session, None, new, computed=moved)
        if row is None:
            return None
        trigger = each.before_row[0].trigger
        if trigger.parent and row != new and not openly(shape.in_bound, row, env):
            raise SqlError(
                "0A000",
                "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported",
                detail=f'Before executing trigger "{trigger.name}", the row was to be in partition '
                f'"{table.schema}.{table.name}".',
            )
        new = row
    return new


async def take_turns(count: int) -> None:
    """Let others have a turn after every so many rows, be there something to wait for or not."""
    pause()
    if count % ROWS_A_TURN == 0:
        await asyncio.sleep(0)


async def begin(session: Session, *firings: Firing | None) -> None:
    """Fire BEFORE STATEMENT; in a statement of several parts once for each table and kind of change."""
    for firing in firings:
        if firing is None:
            continue
        if session.parts is not None:
            key = (firing.relation.oid, firing.op)
            if key in session.parts.begun:
                continue
            session.parts.begun.add(key)
        await firing.before_statement(session)


def refuse_changed(session: Session, shape: TableShape, row_ids: Iterable[RowId], verb: str) -> None:
    """Raise SqlError 27000 for a row that a trigger of the running statement has changed by a statement of its own."""
    txn = session.block.ensure_txn()
    if any(txn.changed_within(shape.shard, row_id) for row_id in row_ids):
        raise changed_already(verb)


def changed_already(verb: str) -> SqlError:
    """Return the error for a row that is to be ``verb`` (updated, deleted, of MERGE: either)."""
    return SqlError(
        "27000",
        f"tuple to be {verb} was already modified by an operation triggered by the current command",
        hint=_HINT,
    )
