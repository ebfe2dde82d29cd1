"""One place that says which function runs which bound statement.

``run`` answers an ``Outcome``; it commits nothing (but COMMIT) and sends nothing (but COPY data and notices).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from engine import (
    copy,
    ddl,
    drop,
    explain,
    named_statements,
    roles,
    snapshots,
    subscribe,
    time_travel,
    timelines,
)
from engine.block_state import BlockState
from engine.constraints.checks import set_constraints
from engine.dml import run_delete, run_insert, run_update
from engine.lock_table import lock_table
from engine.plans import Plan, Replan
from engine.portal import Command, Outcome, Rows
from engine.privileges import check as check_privileges
from engine.privileges import maintainable
from engine.query import collect, context, run_query
from engine.rows import ReadyRows
from engine.settings import SettingDef
from pgwire.backend import Responder
from planner import query as q
from planner import statements as st
from planner.errors import SqlError
from planner.query import OutputColumn
from planner.statements import StatementClass
from txn.types import ShardId

if TYPE_CHECKING:
    from engine.backend import Connection
    from engine.session import Session

Handler = Callable[["Connection", Plan, Any, tuple[Any, ...], Responder], Awaitable[Outcome]]

# DDL is serialised by the catalog lock; the plan is checked against the catalog under it.
_DDL: dict[type, Callable[..., Awaitable[Outcome]]] = {
    st.CreateTable: ddl.create_table,
    st.CreateSchema: ddl.create_schema,
    st.CreateTimeline: timelines.create_timeline,
    st.DropTimeline: timelines.drop_timeline,
    st.CreateView: ddl.create_view,
    st.CreateIndex: ddl.create_index,
    st.AlterTable: ddl.alter_table,
    st.AlterSchemaOwner: ddl.alter_schema_owner,
    st.Rename: ddl.rename,
    st.Drop: drop.drop,
    st.Truncate: drop.truncate,
    st.Comment: ddl.comment,
    st.RoleStatement: roles.run_role,
}


async def run(conn: Connection, plan: Plan, params: tuple[Any, ...], out: Responder) -> Outcome:
    """Run a planned statement in the session's transaction.

    Raises SqlError and txn's errors; Replan when the catalog moved under the plan.
    """
    session = conn.session
    statement = plan.bound.statement
    if session.block.state is BlockState.FAILED and not isinstance(statement, st.Transaction):
        raise SqlError(
            "25P02", "current transaction is aborted, commands ignored until end of transaction block"
        )
    if isinstance(statement, st.ExecutePrepared):
        return await _execute_prepared(conn, plan, statement, params, out)
    as_of: time_travel.AsOfValue | None = plan.as_of
    if isinstance(statement, st.CreateTable):
        as_of = None  # what it is made of is read then, by a transaction of its own
    if type(statement) not in _WITHOUT_DATA and (as_of is not None or session.derived.chooses):
        if session.block.txn is None:
            await time_travel.start(session, plan, as_of, params)
            if not plan.fresh(session.catalog):
                raise Replan
        elif as_of is not None:
            time_travel.check_same(session, as_of, params)
    if plan.bound.class_ in _NEEDS_TXN:
        session.block.ensure_txn().next_statement()
        session.block.renew_limits()
    if not conn.db.leading() and type(statement) not in _WITHOUT_DATA and not session.block.lags(plan):
        await conn.db.wait_leading()
    check_privileges(session, plan)
    if plan.enters:
        session.block.enter(plan.enters, plan.tables)
    if plan.locking and isinstance(statement, _LOCKING_QUERIES):
        await _start_locking(session, plan)
    elif isinstance(statement, _QUERIES) and plan.tables:
        await session.view.start_read(plan)
    if isinstance(statement, st.QueryStatement):
        return await _query(conn, plan, statement, params)
    if isinstance(statement, q.Update):
        return await run_update(session, plan, statement, params)
    if isinstance(statement, q.Insert):
        return await run_insert(session, plan, statement, params)
    if isinstance(statement, q.Delete):
        return await run_delete(session, plan, statement, params)
    kind = type(statement)
    handler = _DDL.get(kind)
    if handler is not None:
        await session.ahead.prepare(plan)
        await session.view.start_ddl(plan)
        check_privileges(session, plan)
        outcome = await handler(conn, plan, statement, params)
        session.ahead.close()
        return outcome
    return await _UTILITY[kind](conn, plan, statement, params, out)


# What they say rests on nothing that another leader could have changed.
_WITHOUT_DATA = frozenset(
    (
        st.Transaction,
        st.SetVariable,
        st.SetTransaction,
        st.ShowVariable,
        st.SetConstraints,
        st.Prepare,
        st.Deallocate,
        st.CloseCursor,
        st.Discard,
    )
)

_NEEDS_TXN = frozenset(
    (
        StatementClass.READ_ONLY,
        StatementClass.WRITE_ONLY,
        StatementClass.READ_THEN_WRITE,
        StatementClass.DDL,
    )
)


def result_columns(conn: Connection, plan: Plan) -> tuple[OutputColumn, ...] | None:
    """Return the columns a plan's result has; FETCH and EXECUTE take them from what they name."""
    statement = plan.bound.statement
    if isinstance(statement, st.Fetch):
        return None if statement.move else conn.cursors.get(statement.cursor).columns
    if isinstance(statement, st.ExecutePrepared):
        prepared = conn.prepared.find(statement.name)
        if prepared is None or prepared.plan is None:
            return None
        return result_columns(conn, prepared.plan)
    return plan.columns


# --- queries ------------------------------------------------------------------------------------


_LOCKING_QUERIES = (st.QueryStatement, st.Copy)
_QUERIES = (st.QueryStatement, st.Copy, st.DeclareCursor, st.Explain)


async def _start_locking(session: Session, plan: Plan) -> None:
    """Make the transaction a writing one: FOR UPDATE and its kin read, and lock, the latest state.

    Raises 25006 in a READ ONLY transaction.
    """
    if session.block.ensure_txn().read_only:
        raise SqlError("25006", f"cannot execute {plan.locking} in a read-only transaction")
    await session.view.start_write(plan, ())


async def _query(
    conn: Connection, plan: Plan, statement: st.QueryStatement, params: tuple[Any, ...]
) -> Outcome:
    session = conn.session
    ctx = context(session, plan, params)
    result = await run_query(session, plan, "query", statement.query, ctx)
    if plan.locking:
        # all rows are locked before the first one is sent: until then the statement can run again
        result = ReadyRows(statement.query.columns, await collect(session, result))
    session.view.use(plan)
    return Rows(statement.query.columns, result)


async def _declare(
    conn: Connection, plan: Plan, statement: st.DeclareCursor, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    in_block = session.block.state is BlockState.BLOCK or session.block.one_of_several
    if not in_block and not statement.hold:
        raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    session.block.ensure_txn().next_statement()
    if plan.locking:
        await _start_locking(session, plan)
    ctx = context(session, plan, params)
    result = await run_query(session, plan, "query", statement.query, ctx)
    if plan.locking:
        result = ReadyRows(statement.query.columns, await collect(session, result))
    session.view.use(plan)
    conn.cursors.declare(statement, Rows(statement.query.columns, result))
    if statement.hold and session.block.state is BlockState.IMPLICIT:
        await conn.cursors.materialise_held()
    return Command("DECLARE CURSOR")


async def _fetch(
    conn: Connection, plan: Plan, statement: st.Fetch, params: tuple[Any, ...], out: Responder
) -> Outcome:
    rows = await conn.cursors.fetch(statement)
    if statement.move:
        return Command(f"MOVE {len(rows)}")
    cursor = conn.cursors.get(statement.cursor)
    return Rows(cursor.columns, ReadyRows(cursor.columns, rows), tag="FETCH", binary=cursor.binary)


async def _close_cursor(
    conn: Connection, plan: Plan, statement: st.CloseCursor, params: tuple[Any, ...], out: Responder
) -> Outcome:
    conn.cursors.close(statement.name)
    return Command("CLOSE CURSOR ALL" if statement.name is None else "CLOSE CURSOR")


# --- transactions -------------------------------------------------------------------------------


async def _transaction(
    conn: Connection, plan: Plan, statement: st.Transaction, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    action = statement.action
    if action == "begin":
        if plan.as_of is not None:
            return await _begin_in_past(conn, plan, statement)
        session.block.begin(statement)
        return Command(plan.bound.tag)
    if action in ("commit", "rollback"):
        return await _end_block(conn, statement)
    if session.block.state in (BlockState.IDLE, BlockState.IMPLICIT):
        name = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(action, "ROLLBACK TO SAVEPOINT")
        raise SqlError("25P01", f"{name} can only be used in transaction blocks")
    if action == "rollback_to":
        depth = session.block.rollback_to(statement.name)
        conn.cursors.rolled_back_to(depth)
        return Command("ROLLBACK")
    if session.block.state is BlockState.FAILED:
        raise SqlError(
            "25P02", "current transaction is aborted, commands ignored until end of transaction block"
        )
    if action == "savepoint":
        session.block.savepoint(statement.name)
        return Command("SAVEPOINT")
    session.block.release(statement.name)
    return Command("RELEASE")


async def _begin_in_past(conn: Connection, plan: Plan, statement: st.Transaction) -> Outcome:
    """BEGIN AS OF SYSTEM TIME: the block's transaction begins at once, and only reads."""
    session = conn.session
    if session.block.txn is not None or session.block.state is not BlockState.IDLE:
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


async def _end_block(conn: Connection, statement: st.Transaction) -> Outcome:
    session = conn.session
    if statement.chain and session.block.state in (BlockState.IDLE, BlockState.IMPLICIT):
        verb = "COMMIT" if statement.action == "commit" else "ROLLBACK"
        raise SqlError("25P01", f"{verb} AND CHAIN can only be used in transaction blocks")
    if session.block.state in (BlockState.IDLE, BlockState.IMPLICIT):
        session.warning("there is no transaction in progress", "25P01")
    chained = {
        name: session.settings.get(name)
        for name in ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
    }
    committing = statement.action == "commit" and session.block.state is not BlockState.FAILED
    if committing:
        await conn.cursors.materialise_held()
        await session.block.commit()
    else:
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


async def _set_transaction(
    conn: Connection, plan: Plan, statement: st.SetTransaction, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    if statement.snapshot is not None:
        snapshots.import_(session, statement.snapshot)
        return Command("SET")
    if plan.as_of is not None and session.block.state not in (BlockState.IDLE, BlockState.IMPLICIT):
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
    if session.block.state in (BlockState.IDLE, BlockState.IMPLICIT):
        session.warning("SET TRANSACTION can only be used in transaction blocks", "25P01")
        return Command("SET")
    session.block.set_modes(
        isolation=statement.isolation,
        read_only=statement.read_only,
        deferrable=statement.deferrable,
    )
    return Command("SET")


# --- settings -----------------------------------------------------------------------------------


async def _set(
    conn: Connection, plan: Plan, statement: st.SetVariable, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    name = statement.name.lower()
    reset = plan.bound.tag == "RESET"
    if name == "all" and statement.value is None:
        session.settings.reset_all()
        return Command("RESET")
    if statement.local and session.block.state in (BlockState.IDLE, BlockState.IMPLICIT):
        session.warning("SET LOCAL can only be used in transaction blocks", "25P01")
    if name in ("transaction_isolation", "transaction_read_only", "transaction_deferrable"):
        return await _set_transaction_variable(conn, name, statement.value)
    if name in ("role", "session_authorization"):
        roles.set_role(session, name, statement.value, local=statement.local)
        return Command("RESET" if reset else "SET")
    session.settings.set(name, statement.value, local=statement.local)
    return Command("RESET" if reset else "SET")


async def _set_transaction_variable(conn: Connection, name: str, value: str | None) -> Outcome:
    session = conn.session
    if value is None:
        value = session.settings.get("default_" + name)
    canonical = session.settings.check("default_" + name, value)
    if session.block.state not in (BlockState.IDLE, BlockState.IMPLICIT):
        flag = canonical == "on"
        session.block.set_modes(
            isolation=canonical if name == "transaction_isolation" else None,
            read_only=flag if name == "transaction_read_only" else None,
            deferrable=flag if name == "transaction_deferrable" else None,
        )
    return Command("SET")


async def _show(
    conn: Connection, plan: Plan, statement: st.ShowVariable, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    columns = plan.columns
    assert columns is not None
    if statement.name.lower() == "all":
        rows = [_show_row(definition, value) for definition, value in session.settings.items()]
    else:
        rows = [(session.setting(statement.name),)]
    return Rows(columns, ReadyRows(columns, rows), tag="SHOW", final_tag=True)


def _show_row(definition: SettingDef, value: str) -> tuple[str, ...]:
    return (definition.name, value, definition.description)


# --- prepared statements ------------------------------------------------------------------------


async def _prepare(
    conn: Connection, plan: Plan, statement: st.Prepare, params: tuple[Any, ...], out: Responder
) -> Outcome:
    # blanks in front, so that an error points into what the client sent
    padded = " " * statement.at + statement.text
    prepared = conn.prepared.prepare(statement.name, padded, statement.param_types, from_sql=True)
    prepared.text, prepared.shown = statement.text, plan.bound.text
    return Command("PREPARE")


async def _execute_prepared(
    conn: Connection, plan: Plan, statement: st.ExecutePrepared, params: tuple[Any, ...], out: Responder
) -> Outcome:
    inner, values = conn.prepared.to_execute(plan, statement, params)
    return await run(conn, inner, values, out)


async def _deallocate(
    conn: Connection, plan: Plan, statement: st.Deallocate, params: tuple[Any, ...], out: Responder
) -> Outcome:
    if statement.name is None:
        conn.prepared.clear()
        return Command("DEALLOCATE ALL")
    if not conn.prepared.close(statement.name):
        raise SqlError("26000", f'prepared statement "{statement.name}" does not exist')
    return Command("DEALLOCATE")


async def _discard(
    conn: Connection, plan: Plan, statement: st.Discard, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    if statement.what == "all":
        if session.block.state is BlockState.BLOCK or session.block.one_of_several:
            raise SqlError("25001", "DISCARD ALL cannot run inside a transaction block")
        conn.cursors.close_all()
        session.settings.reset_all()
        roles.set_role(session, "session_authorization", None, local=False)
        conn.prepared.clear()
        session.system.advisory.unlock_all()
    if statement.what in ("all", "temp"):
        await drop.drop_temporary(session)
    return Command(f"DISCARD {statement.what.upper()}")


async def _skip(
    conn: Connection, plan: Plan, statement: st.Skip, params: tuple[Any, ...], out: Responder
) -> Outcome:
    if statement.notice:
        conn.session.notice(statement.notice)
    return Command(plan.bound.tag)


# --- maintenance --------------------------------------------------------------------------------


async def _maintenance(
    conn: Connection, plan: Plan, statement: st.Maintenance, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    if statement.what == "vacuum" and (
        session.block.state is BlockState.BLOCK or session.block.one_of_several
    ):
        raise SqlError("25001", "VACUUM cannot run inside a transaction block")
    if statement.what in ("vacuum", "checkpoint", "cluster"):
        # Flushing hot rows to parts is what reclaiming and checkpointing mean here (docs/storage.md).
        if statement.tables:
            for oid in maintainable(session, statement.tables, statement.what):
                await session.db.store.flush(ShardId(oid))
        elif statement.what == "checkpoint" or statement.what == "vacuum":
            await session.db.store.flush()
    else:
        maintainable(session, statement.tables, statement.what)
    return Command(statement.what.upper())


async def _lock_table(
    conn: Connection, plan: Plan, statement: st.LockTable, params: tuple[Any, ...], out: Responder
) -> Outcome:
    return await lock_table(conn.session, plan, statement)


async def _set_constraints(
    conn: Connection, plan: Plan, statement: st.SetConstraints, params: tuple[Any, ...], out: Responder
) -> Outcome:
    session = conn.session
    if session.block.state in (BlockState.IDLE, BlockState.IMPLICIT):
        session.warning("SET CONSTRAINTS can only be used in transaction blocks", "25P01")
    await set_constraints(session, statement)
    return Command("SET CONSTRAINTS")


_UTILITY: dict[type, Handler] = {
    st.SetConstraints: _set_constraints,
    st.Skip: _skip,
    st.LockTable: _lock_table,
    st.Explain: explain.run_explain,
    st.Copy: copy.run_copy,
    st.Transaction: _transaction,
    st.SetVariable: _set,
    st.SetTransaction: _set_transaction,
    st.ShowVariable: _show,
    st.Prepare: _prepare,
    st.Deallocate: _deallocate,
    st.DeclareCursor: _declare,
    st.Subscribe: subscribe.run_subscribe,
    st.CreateSubscription: named_statements.create,
    st.AcknowledgeSubscription: named_statements.acknowledge,
    st.DropSubscription: named_statements.drop,
    st.DeclareSubscribe: subscribe.declare,
    st.Fetch: _fetch,
    st.CloseCursor: _close_cursor,
    st.Maintenance: _maintenance,
    st.Discard: _discard,
}
