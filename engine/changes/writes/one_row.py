"""An INSERT of one row of VALUES that is a transaction by itself: values computed and row staged within one call.

    Execute ──> the table's lock ──> values, defaults, checks ──> keys locked, row staged        Sync ──> commit
                     │                                                 └ has to wait: an awaitable of the same outcome
                     └ not free, or anything else out of the usual: None, the general way (``dml.run_insert``)

It does what the general way does, of which every step is a coroutine that here would not suspend.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from engine.changes.writes.returning import make_env
from engine.plans.query import context
from engine.session.plans.permission import permitted
from engine.session.plans.plan import Plan
from engine.session.portal import Command
from engine.session.transaction.block_state import IDLE
from planner.evaluate import Env, Shared
from txn.api import Transaction
from txn.base.types import RowId, ShardId, StoredRow

if TYPE_CHECKING:
    from engine.changes.writes.dml import InsertPlan
    from engine.session.session import Session

_ONE: Final = Command("INSERT 0 1")
_NONE: Final = Command("INSERT 0 0")  # ON CONFLICT DO NOTHING


def begin_alone(session: Session, plan: Plan, shard: ShardId) -> Transaction | None:
    """Begin the transaction of a statement that changes one table and reads no other, and lock that; None:
    the general way has to.

    Nothing has begun where None is returned.
    """
    block = session.block
    if (
        block.txn is not None
        or block.state is not IDLE
        or plan.tables != (shard,)
        or not plan.fresh(session.view.catalog)
        or not permitted(session, plan)
    ):
        return None
    txn = block.ensure_txn()
    txn.next_statement()
    block.enter(plan.enters, plan.tables)
    block.wrote = True
    if not txn.try_begin_write(shard):
        block.restart()
        return None
    session.db.turns.yield_to_readers()
    return txn


def insert_alone(
    session: Session, plan: Plan, params: tuple[Any, ...]
) -> Command | Awaitable[Command] | None:
    """Run an INSERT outside a transaction, which begins (``Plan.at_once``); None: the dispatch has to
    (``begin_alone``).
    """
    insert: InsertPlan | None = plan.dml
    if insert is None or insert.row is None or not insert.plain:
        return None
    shape = insert.shape
    if plan.bound.reads or session.parts is not None:
        return None
    txn = begin_alone(session, plan, shape.shard)
    if txn is None:
        return None
    if shape.by_row or insert.defaults:
        env = make_env(context(session, plan, params))
    else:
        if plan.bound.stable:
            params += plan.stable_values(session, params)
        env = Env(params, session, shared=Shared())
    (row,) = shape.made(insert.complete([insert.row((), env)], env), env)
    found: RowId | StoredRow | list[RowId] | Awaitable[RowId | StoredRow | list[RowId]]
    if insert.conflict is None:
        found = txn.insert(shape.shard, [row])
    else:
        found = txn.insert_unless(shape.shard, row, insert.arbiters)
    if type(found) is int or type(found) is list:  # asked before Awaitable, which is a slow question
        return _ONE
    return _waited(found) if isinstance(found, Awaitable) else _NONE


async def _waited(found: Awaitable[RowId | StoredRow | list[RowId]]) -> Command:
    return _NONE if isinstance(await found, StoredRow) else _ONE
