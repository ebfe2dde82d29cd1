"""UPDATE and DELETE whose rows one key finds: from the table's lock to the changed row without asking how.

    a transaction by itself     ``change_alone``: one call, no coroutine, unless there is something to wait for
    any other                   ``change_by_key``

Nothing follows from what becomes of the rows, nor do policies check them (``ChangePlan.note_key``).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from engine.base.eager import settle
from engine.base.executor import ExecContext, Result
from engine.base.rows import ReadyRows
from engine.changes.writes.dml import outcome
from engine.changes.writes.one_row import begin_alone
from engine.changes.writes.returning import make_env
from engine.plans.query import collect, context
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import PACE
from txn.base.types import RowId

if TYPE_CHECKING:
    from engine.changes.writes.update_delete import ChangePlan
    from engine.session.session import Session


def change_alone(
    session: Session, plan: Plan, params: tuple[Any, ...]
) -> Command | Awaitable[Command] | None:
    """Run an UPDATE or DELETE outside a transaction, as ``insert_alone`` does an INSERT."""
    change: ChangePlan | None = plan.dml
    if change is None or change.by_key is None or session.parts is not None:
        return None
    shard = change.shape.shard
    txn = begin_alone(session, plan, shard)
    if txn is None:
        return None
    ctx = context(session, plan, params, for_update=change.for_update)
    found = session.db.executors["index"].run(change.by_key, ctx)
    if type(found) is not ReadyRows or len(found.rows) > 1:
        return cast("Awaitable[Command]", _finish(session, change, ctx, found))
    if not found.rows:
        return change.none
    changing: list[bool] | Awaitable[list[bool]]
    if change.deletes:
        changing = txn.delete(shard, [RowId(found.rows[0][0])])
    else:
        changed = change.changed(found.rows, make_env(ctx))
        changing = txn.update(shard, changed, keys_kept=change.keys_kept)
    return change.one if type(changing) is list else _waited(change.one, changing)


async def _waited(command: Command, changing: list[bool] | Awaitable[list[bool]]) -> Command:
    await settle(changing)
    return command


async def change_by_key(session: Session, plan: Plan, change: ChangePlan, params: tuple[Any, ...]) -> Outcome:
    """Run an UPDATE or DELETE: take the locks of the statement, then those of the rows."""
    ctx = context(session, plan, params, for_update=change.for_update)
    await session.view.start_write(plan, (change.shape.shard,))
    session.view.use(plan)
    return await _finish(session, change, ctx, session.db.executors["index"].run(change.by_key, ctx))


async def _finish(
    session: Session, change: ChangePlan, ctx: ExecContext, found: Result | Awaitable[Result]
) -> Outcome:
    """Change the rows that were found."""
    result: Result = found if type(found) is ReadyRows else await settle(found)
    rows = result.rows if isinstance(result, ReadyRows) else await collect(session, result)
    shard, returning = change.shape.shard, change.returning
    if not rows:
        return outcome(change.verb, 0, returning, [])
    env = make_env(ctx)
    if change.deletes:
        await settle(ctx.txn.delete(shard, [RowId(row[0]) for row in rows]))
    else:
        if change.short and len(rows) <= PACE:
            changes = change.changed(rows, env)
        else:
            changes = await change.all_changed(session, rows, env)
        updating = ctx.txn.update(shard, changes, keys_kept=change.keys_kept)
        if type(updating) is not list:
            await settle(updating)
    if returning is None:
        return Command(f"{change.verb} {len(rows)}")
    extra = change.extra_from
    if change.deletes:
        stored = [(RowId(row[0]), change.old(row), row[extra:]) for row in rows]
    else:
        stored = [(row_id, new, row[extra:]) for (row_id, new), row in zip(changes, rows, strict=True)]
    return outcome(change.verb, len(rows), returning, await returning.rows(stored, env))
