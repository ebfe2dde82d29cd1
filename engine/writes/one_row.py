"""An INSERT of one row of VALUES that begins a transaction: values computed and row staged within one call.

    Execute ──> the table's lock ──> values, defaults, checks ──> keys locked, row staged        Sync ──> commit
                     │                                                 └ has to wait: an awaitable of the same outcome
                     └ not free, or anything else out of the usual: None, the general way (``dml.run_insert``)

It does what the general way does, of which every step is a coroutine that here would not suspend.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from engine.connection.portal import Command
from engine.ddl.privileges import permitted
from engine.reads.plans import Plan
from engine.reads.query import context
from engine.writes.dml import InsertPlan
from engine.writes.returning import make_env
from planner.evaluate import Env, Shared
from txn.errors import Deadlock, WriteConflict
from txn.types import RowId, StoredRow

if TYPE_CHECKING:
    from engine.connection.session import Session

_ONE: Final = Command("INSERT 0 1")
_NONE: Final = Command("INSERT 0 0")  # ON CONFLICT DO NOTHING


def insert_alone(
    session: Session, plan: Plan, params: tuple[Any, ...]
) -> Command | Awaitable[Command] | None:
    """Run an INSERT outside a transaction, which begins; None: the general way has to, in the one that may have begun.

    The session's settings leave the choice (``Derived.short_ways``).

    Raises SqlError and DuplicateKey. What loses a race is raised by the awaitable: the statement may run again.
    """
    insert: InsertPlan | None = plan.dml
    if insert is None or insert.row is None or not insert.plain:
        return None
    shape = insert.shape
    if plan.tables != (shape.shard,) or plan.bound.reads or session.parts is not None:
        return None
    if not plan.fresh(session.view.catalog) or not permitted(session, plan):
        return None
    block = session.block
    txn = block.ensure_txn()
    txn.next_statement()
    block.enter(plan.enters, plan.tables)
    block.wrote = True
    if not txn.try_begin_write(shape.shard):
        return None
    session.db.turns.yield_to_readers()
    if shape.by_row or insert.defaults:
        env = make_env(context(session, plan, params))
    else:
        if plan.bound.stable:
            params += plan.stable_values(session, params)
        env = Env(params, session, shared=Shared())
    (row,) = shape.made(insert.complete([insert.row((), env)], env), env)
    found: RowId | StoredRow | list[RowId] | Awaitable[RowId | StoredRow | list[RowId]]
    try:
        if insert.conflict is None:
            found = txn.insert(shape.shard, [row])
        else:
            found = txn.insert_unless(shape.shard, row, insert.arbiters)
    except (WriteConflict, Deadlock) as lost:
        return _lost(lost)
    if type(found) is int or type(found) is list:  # asked before Awaitable, which is a slow question
        return _ONE
    return _waited(found) if isinstance(found, Awaitable) else _NONE


async def _lost(error: WriteConflict | Deadlock) -> NoReturn:
    raise error


async def _waited(found: Awaitable[RowId | StoredRow | list[RowId]]) -> Command:
    return _NONE if isinstance(await found, StoredRow) else _ONE
