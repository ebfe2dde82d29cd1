"""Statements about the transaction block: BEGIN, COMMIT, ROLLBACK, savepoints, SET TRANSACTION, SET CONSTRAINTS.

``engine.session.transaction.block`` has the block; here is which statement asks what of it, and when that is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.base.settings import MODES
from engine.changes.constraints import checks
from engine.plans.planning import IN_FAILED_BLOCK
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.transaction import snapshots, time_travel
from engine.session.transaction.block_state import FAILED, IDLE, IMPLICIT
from engine.session.transaction.modes import change_mode
from planner import statements as st
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from engine.session.session import Session


async def transaction(
    session: Session, plan: Plan, statement: st.Transaction, params: tuple[Any, ...]
) -> Outcome:
    """BEGIN, COMMIT, ROLLBACK and savepoints. Raises SqlError 25P01, 25P02, 3B001, 25001, and what a commit raises."""
    action = statement.action
    if action == "begin":
        if plan.as_of is not None:
            return await _begin_in_past(session, plan, statement)
        session.block.begin(statement)
        return Command(plan.bound.tag)
    if action in ("commit", "rollback"):
        return await _end_block(session, statement)
    if session.block.state in (IDLE, IMPLICIT):
        name = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(action, "ROLLBACK TO SAVEPOINT")
        raise SqlError("25P01", f"{name} can only be used in transaction blocks")
    if action == "rollback_to":
        depth = await session.block.rollback_to(statement.name)
        session.connection.cursors.rolled_back_to(depth)
        return Command("ROLLBACK")
    if session.block.state is FAILED:
        raise SqlError("25P02", IN_FAILED_BLOCK)
    if action == "savepoint":
        session.block.savepoint(statement.name)
        return Command("SAVEPOINT")
    session.connection.cursors.released(session.block.release(statement.name))
    return Command("RELEASE")


async def _begin_in_past(session: Session, plan: Plan, statement: st.Transaction) -> Outcome:
    """BEGIN AS OF SYSTEM TIME: the block's transaction begins at once, and only reads."""
    if session.block.txn is not None or session.block.state is not IDLE:
        raise SqlError(
            "25001", "BEGIN AS OF SYSTEM TIME must be called before any query", span=plan.as_of.span
        )
    if statement.read_only is False:
        raise SqlError(
            "25006", "a transaction that reads AS OF SYSTEM TIME is read-only", span=plan.as_of.span
        )
    time_travel.catalog_at(session, plan.as_of)  # an error here opens no block
    session.block.begin(statement)
    await time_travel.start(session, plan, plan.as_of)
    return Command(plan.bound.tag)


async def _end_block(session: Session, statement: st.Transaction) -> Outcome:
    if statement.chain and session.block.state in (IDLE, IMPLICIT):
        verb = "COMMIT" if statement.action == "commit" else "ROLLBACK"
        raise SqlError("25P01", f"{verb} AND CHAIN can only be used in transaction blocks")
    if session.block.state in (IDLE, IMPLICIT):
        session.warning("there is no transaction in progress", "25P01")
    chained = {name: session.settings.get(name) for name in MODES} if statement.chain else {}
    committing = statement.action == "commit" and session.block.state is not FAILED
    if committing:
        try:
            await session.connection.cursors.materialise_held()
            if session.connection.cursors.many:
                await session.connection.cursors.close_ending(True)
        except BaseException:  # the commit has failed, and leaves the block as any other
            session.block.rollback()
            raise
        await session.block.commit()
    else:
        try:
            if session.connection.cursors.many:
                await session.connection.cursors.close_ending(False)
        finally:
            session.block.rollback()
    if statement.chain:
        session.block.begin(
            st.Transaction(
                action="begin",
                isolation=chained["transaction_isolation"],
                read_only=chained["transaction_read_only"] == "on",
                deferrable=chained["transaction_deferrable"] == "on",
            )
        )
    return Command("COMMIT" if committing else "ROLLBACK")


async def set_transaction(
    session: Session, plan: Plan, statement: st.SetTransaction, params: tuple[Any, ...]
) -> Outcome:
    """SET TRANSACTION, also with a snapshot or AS OF SYSTEM TIME. Raises SqlError 25001, 22023, 0A000."""
    if statement.snapshot is not None:
        snapshots.import_(session, statement.snapshot)
        return Command("SET")
    if plan.as_of is not None and session.block.state not in (IDLE, IMPLICIT):
        if session.block.txn is not None or session.block.savepoints:
            message = "SET TRANSACTION AS OF SYSTEM TIME must be called before any query"
            raise SqlError("25001", message, span=plan.as_of.span)
        session.block.set_modes(isolation=None, read_only=True, deferrable=None)
        await time_travel.start(session, plan, plan.as_of)
        return Command("SET")
    if statement.session:
        if statement.isolation is not None:
            session.settings.set("default_transaction_isolation", statement.isolation)
        if statement.read_only is not None:
            session.settings.set("default_transaction_read_only", "on" if statement.read_only else "off")
        if statement.deferrable is not None:
            session.settings.set("default_transaction_deferrable", "on" if statement.deferrable else "off")
        return Command("SET")
    if session.block.state in (IDLE, IMPLICIT):
        if session.block.one_of_several or session.system.routines.stack:
            session.block.set_modes_of_several(statement)
        else:
            session.warning("SET TRANSACTION can only be used in transaction blocks", "25P01")
        return Command("SET")
    session.block.set_modes(
        isolation=statement.isolation,
        read_only=statement.read_only,
        deferrable=statement.deferrable,
    )
    return Command("SET")


async def set_mode(session: Session, name: str, value: str | None) -> Outcome:
    """SET transaction_isolation and its kin; None: as the default says. Raises SqlError 22023, 25001."""
    change_mode(session, name, value)
    return Command("SET")


async def set_constraints(
    session: Session, plan: Plan, statement: st.SetConstraints, params: tuple[Any, ...]
) -> Outcome:
    """SET CONSTRAINTS. Raises SqlError 42704, 42809, 3F000, and what checks that are made at once find."""
    if session.block.is_alone:
        session.warning("SET CONSTRAINTS can only be used in transaction blocks", "25P01")
    elif not session.block.in_block:
        session.block.ensure_txn()
    await checks.set_constraints(session, statement)
    return Command("SET CONSTRAINTS")
