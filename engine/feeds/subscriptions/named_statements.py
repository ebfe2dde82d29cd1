"""CREATE, ALTER ... ACKNOWLEDGE and DROP SUBSCRIPTION (``engine.session.named_subscriptions`` has what they work on).

create        hold now ─> row, committed ─> known              not in a transaction block: it holds at once
acknowledge   row, in whatever transaction ─(applied)─> hold moves
drop          row, committed ─> hold goes                      not in a transaction block
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.base.eager import settle
from engine.feeds.subscriptions.subscribe import moment_of
from engine.session.named_subscriptions import SHARD, SPEC, Record, decode, encode, locked_row, lost_error
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.transaction.timelines import gone, keep
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import DEFAULT_TIMELINE
from planner.evaluate import Env, Shared
from txn.api import Transaction
from txn.base.errors import DuplicateKey

if TYPE_CHECKING:
    from engine.session.session import Session

MAX_SUBSCRIPTIONS: Final = 64
OF_ONE_ROLE: Final = 16
"""How many a role may have that is no superuser: each keeps history for all."""
FOR_SUPERUSERS: Final = 8
"""How many are left for superusers, however many roles there are."""


def _alone(session: Session, what: str) -> None:
    session.block.must_be_alone(what)


async def create(
    session: Session, plan: Plan, statement: st.CreateSubscription, params: tuple[Any, ...]
) -> Outcome:
    """CREATE SUBSCRIPTION: from now on. SqlError 25001, 42710, 53400 for too many, 25006."""
    db, name = session.db, statement.name
    _alone(session, "CREATE SUBSCRIPTION")
    if db.named.find(name) is not None:
        if statement.if_not_exists:
            session.notice(f'subscription "{name}" already exists, skipping', sqlstate="42710")
            return Command("CREATE SUBSCRIPTION")
        raise SqlError("42710", f'subscription "{name}" already exists')
    owner = session.role_oid
    _check_place(session, owner)
    with db.named.making(owner):
        return await _create(session, plan, statement, owner)


def _check_place(session: Session, owner: int) -> None:
    """Raise SqlError 53400 where all named subscriptions are taken, or all that one role may have."""
    owners = session.db.named.owners()
    if session.is_superuser:
        if len(owners) >= MAX_SUBSCRIPTIONS:
            raise SqlError("53400", f"more than {MAX_SUBSCRIPTIONS} named subscriptions")
        return
    if owners.count(owner) >= OF_ONE_ROLE:
        raise SqlError(
            "53400",
            f'more than {OF_ONE_ROLE} named subscriptions of role "{session.user}"',
            hint="Drop those that nobody reads any more.",
        )
    if len(owners) >= MAX_SUBSCRIPTIONS - FOR_SUPERUSERS:
        raise SqlError("53400", "remaining named subscriptions are reserved for superusers")


async def _create(session: Session, plan: Plan, statement: st.CreateSubscription, owner: int) -> Outcome:
    db, name = session.db, statement.name
    await db.store.register(SPEC)
    txn = _writing(session, "CREATE SUBSCRIPTION")
    timeline = plan.timeline or DEFAULT_TIMELINE
    if not db.store.has_timeline(timeline):
        raise gone(timeline)
    hold = db.store.hold(durable=True, timeline=timeline)
    record = Record(
        name=name, owner=owner, sql=statement.sql, position=hold.ts, snapshot=statement.snapshot,
        created_us=session.statement_time_us, timeline=timeline, database=session.database_oid,
    )  # fmt: skip
    try:
        if await locked_row(txn, name) is not None:
            raise SqlError("42710", f'subscription "{name}" already exists')
        await keep(session, txn, timeline)
        await settle(txn.insert(SHARD, [encode(record)]))
        await session.block.commit()
    except DuplicateKey:
        db.store.release(hold)
        raise SqlError("42710", f'subscription "{name}" already exists') from None
    except BaseException:
        db.store.release(hold)
        raise
    db.named.add(record, hold)
    return Command("CREATE SUBSCRIPTION")


async def acknowledge(
    session: Session,
    plan: Plan,
    statement: st.AcknowledgeSubscription,
    params: tuple[Any, ...],
) -> Outcome:
    """ALTER SUBSCRIPTION ... ACKNOWLEDGE: everything at or below a timestamp has been taken, once this commits.

    One below the position changes nothing. SqlError 22023 for the future, 42704, 42501, 55000 for one that is
    lost, 25006.
    """
    name = statement.name
    if (named := session.db.named.of(session, name)).hold is None:
        raise lost_error(named)
    if session.block.txn is None:
        session.transaction_time_us = session.statement_time_us
    if plan.bound.stable:
        params = params + plan.stable_values(session, params)
    timeline = named.record.timeline
    env = Env(params, session, shared=Shared())
    ts = moment_of(session, statement.to, "ACKNOWLEDGE", env, timeline)
    if ts > session.db.store.read_ts(timeline):
        raise SqlError(
            "22023",
            f"ACKNOWLEDGE {ts} is in the future",
            hint=f"The latest readable timestamp is {session.db.store.read_ts(timeline)}.",
        )
    txn = _writing(session, "ALTER SUBSCRIPTION")
    row = await locked_row(txn, name)
    if row is None:
        raise SqlError("42704", f'subscription "{name}" does not exist')
    record = decode(*row.values)
    if ts >= record.position and (ts > record.position or record.snapshot):
        record = msgspec.structs.replace(record, position=int(ts), snapshot=False)
        txn.on_applied(lambda _ts: session.db.named.moved(name, row.row_id))
        await settle(txn.update(SHARD, [(row.row_id, encode(record))]))
    return Command("ALTER SUBSCRIPTION")


async def drop(
    session: Session, plan: Plan, statement: st.DropSubscription, params: tuple[Any, ...]
) -> Outcome:
    """DROP SUBSCRIPTION. SqlError 25001, 42704, 42501, 55006 while it is read, 25006."""
    name = statement.name
    _alone(session, "DROP SUBSCRIPTION")
    named = session.db.named.find(name)
    if named is None and statement.if_exists:
        session.notice(f'subscription "{name}" does not exist, skipping')
        return Command("DROP SUBSCRIPTION")
    named = session.db.named.of(session, name)
    if named.reader in session.db.sessions:
        raise SqlError("55006", f'subscription "{name}" is active for PID {named.reader}')
    txn = _writing(session, "DROP SUBSCRIPTION")
    row = await locked_row(txn, name)
    if row is None:
        raise SqlError("42704", f'subscription "{name}" does not exist')
    await settle(txn.delete(SHARD, [row.row_id]))
    await session.block.commit()
    session.db.named.remove(name)
    return Command("DROP SUBSCRIPTION")


def _writing(session: Session, tag: str) -> Transaction:
    txn = session.block.ensure_txn()
    if txn.read_only:
        raise SqlError("25006", f"cannot execute {tag} in a read-only transaction")
    txn.next_statement()
    return txn
