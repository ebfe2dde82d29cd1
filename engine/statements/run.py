"""One place that says which function runs which bound statement.

``run`` answers an ``Outcome``; it commits nothing (but COMMIT) and sends nothing (but COPY data and notices).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.base.executor import Result, RowsChanged
from engine.base.limits import MAX_RERUNS, rows_keep_changing
from engine.base.rows import ReadyRows, RowStream, Wanted
from engine.changes.writes.dml import run_insert, tables_to_lock
from engine.changes.writes.merge import run_merge
from engine.changes.writes.returning import make_env
from engine.changes.writes.update_delete import run_delete, run_update
from engine.changes.writes.with_changes import run_with_changes
from engine.definitions import (
    collations,
    composites,
    conversions,
    databases,
    domains,
    extensions,
    foreign,
    functions,
    grant,
    opclasses,
    own_ranges,
    roles,
    sequences,
    text_search,
    triggers,
    types,
)
from engine.definitions.dropping import drop, owned
from engine.definitions.needs import members
from engine.definitions.needs.privileges import check as check_privileges
from engine.definitions.table import constraint_marks, materialized, policies, statistics
from engine.definitions.table import create as ddl
from engine.definitions.table.index_ahead import build_ahead
from engine.definitions.table.rename import rename
from engine.executors.index.state import value_of
from engine.feeds.sources import statements as source_statements
from engine.feeds.subscriptions import named_statements, subscribe
from engine.plans.later import begun_later
from engine.plans.planning import IN_FAILED_BLOCK
from engine.plans.query import collect, compiled_query, context, prepare_source, run_query
from engine.plans.verify import run_twice
from engine.programs.plpgsql.routine import run_do
from engine.programs.routines.of_session import routines_of
from engine.session.large_objects import statements as large_objects
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome, Rows
from engine.session.transaction import time_travel, timelines
from engine.session.transaction.block_state import FAILED, IMPLICIT
from engine.session.transaction.races import to_lock
from engine.statements import block as block_statements
from engine.statements import copy
from engine.statements import explain as explained
from engine.statements import session as session_statements
from engine.statements.lock_table import lock_table, waiting
from engine.statements.maintenance import maintain
from pgwire.give_way import openly
from planner import query as q
from planner import statements as st
from planner.base.errors import SqlError
from planner.evaluate import compile_row
from planner.query import OutputColumn
from txn.api import Transaction
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

Handler = Callable[["Session", Plan, Any, tuple[Any, ...]], Awaitable[Outcome]]

# They lock what they are about in the catalog; the plan is checked against it under these locks.
_DDL: dict[type, Handler] = {
    st.CreateTable: ddl.create_table,
    st.CreateSchema: ddl.create_schema,
    st.AlterDatabase: databases.alter,
    st.AlterDefaults: databases.alter_defaults,
    st.CreateTimeline: timelines.create_timeline,
    st.DropTimeline: timelines.drop_timeline,
    st.CreateView: ddl.create_view,
    st.CreateMaterializedView: materialized.create,
    st.RefreshMaterializedView: materialized.refresh,
    st.CreateSequence: sequences.create_sequence,
    st.AlterSequence: sequences.alter_sequence,
    st.MarkConstraints: constraint_marks.mark,
    st.CreateIndex: ddl.create_index,
    st.ReassignOwned: owned.reassign,
    st.DropOwned: owned.drop_owned,
    st.AlterDefaultPrivileges: owned.default_privileges,
    st.CreateExtension: extensions.create_extension,
    st.AlterExtension: extensions.alter_extension,
    st.DropExtension: extensions.drop_extension,
    st.CreateFunction: functions.create_function,
    st.CreateAggregate: functions.create_aggregate,
    st.AlterFunction: functions.alter_function,
    st.DropFunction: functions.drop_function,
    st.CreateConfiguration: text_search.create_configuration,
    st.CreateDictionary: text_search.create_dictionary,
    st.AlterMapping: text_search.alter_mapping,
    st.AlterDictionary: text_search.alter_dictionary,
    st.AlterTextSearch: text_search.alter_text_search,
    st.DropTextSearch: text_search.drop_text_search,
    st.CreateWrapper: foreign.create_wrapper,
    st.AlterWrapper: foreign.alter_wrapper,
    st.CreateServer: foreign.create_server,
    st.AlterServer: foreign.alter_server,
    st.CreateUserMapping: foreign.create_mapping,
    st.AlterUserMapping: foreign.alter_mapping,
    st.DropUserMapping: foreign.drop_mapping,
    st.AlterForeign: foreign.alter_foreign,
    st.DropForeign: foreign.drop_foreign,
    st.ImportForeignSchema: foreign.import_schema,
    st.CreateConversion: conversions.create_conversion,
    st.AlterConversion: conversions.alter_conversion,
    st.DropConversion: conversions.drop_conversion,
    st.CreateCollation: collations.create_collation,
    st.AlterCollation: collations.alter_collation,
    st.DropCollation: collations.drop_collation,
    st.CreateOpfamily: opclasses.create_family,
    st.CreateOpclass: opclasses.create_class,
    st.ChangeOpfamily: opclasses.change_family,
    st.AlterOpclass: opclasses.alter_opclass,
    st.DropOpclass: opclasses.drop_opclass,
    st.CreateEnum: types.create_enum,
    st.CreateComposite: composites.create_composite,
    st.CreateRange: own_ranges.create_range,
    st.AlterComposite: composites.alter_composite,
    st.AddEnumValue: types.add_enum_value,
    st.RenameEnumValue: types.rename_enum_value,
    st.CreateDomain: domains.create_domain,
    st.SetDomainDefault: domains.set_default,
    st.SetDomainNotNull: domains.set_not_null,
    st.AddDomainCheck: domains.add_check,
    st.DropDomainConstraint: domains.drop_constraint,
    st.ValidateDomainConstraint: domains.validate_constraint,
    st.RenameDomainConstraint: domains.rename_constraint,
    st.AlterType: types.alter_type,
    st.DropType: types.drop_type,
    st.AlterTable: ddl.alter_table,
    st.CreatePolicy: policies.create_policy,
    st.AlterPolicy: policies.alter_policy,
    st.RenamePolicy: policies.rename_policy,
    st.DropPolicy: policies.drop_policy,
    st.CreateStatistics: statistics.create_statistics,
    st.AlterStatistics: statistics.alter_statistics,
    st.DropStatistics: statistics.drop_statistics,
    st.CreateTrigger: triggers.create_trigger,
    st.RenameTrigger: triggers.rename_trigger,
    st.DropTrigger: triggers.drop_trigger,
    st.AlterSchemaOwner: ddl.alter_schema_owner,
    st.AlterLargeObject: large_objects.alter_owner,
    st.Rename: rename,
    st.Drop: drop.drop,
    st.Truncate: drop.truncate,
    st.Grant: grant.run_grant,
    st.GrantRole: members.run_grant_role,
    st.Comment: ddl.comment,
    st.RoleStatement: roles.run_role,
}


async def run(session: Session, plan: Plan, params: tuple[Any, ...]) -> Outcome:
    """Run a planned statement in the session's transaction.

    Raises SqlError and txn's errors; Replan when the catalog moved under the plan.
    """
    statement = plan.bound.statement
    if session.block.state is FAILED and not isinstance(statement, st.Transaction):
        raise SqlError("25P02", IN_FAILED_BLOCK)
    kind = type(statement)
    if isinstance(statement, st.ExecutePrepared):
        return await _execute_prepared(session, plan, statement, params)
    as_of: time_travel.AsOfValue | None = plan.as_of
    if kind is st.CreateTable:
        as_of = None  # what it is made of is read then, by a transaction of its own
    if (as_of is not None or session.derived.chooses) and kind not in _WITHOUT_DATA:
        if session.block.txn is None:
            await time_travel.start(session, plan, as_of, params)
            if not plan.fresh(session.catalog):
                raise Replan
        elif as_of is not None:
            time_travel.check_same(session, as_of, params)
    if plan.in_transaction:
        session.block.ensure_txn().next_statement()
        session.block.renew_limits()
    if session.db.lease is not None:
        rests = kind not in _WITHOUT_DATA and not session.block.lags(plan)
        if not session.within:
            session.out.rests = rests
        if rests and not session.db.leading():
            await session.db.wait_leading()
    check_privileges(session, plan)
    if plan.enters:
        session.block.enter(plan.enters, plan.tables)
    if isinstance(statement, st.Copy) and statement.change is not None:
        pass  # takes the locks of what it changes itself
    elif plan.locking and isinstance(statement, _LOCKING_QUERIES):
        await _start_locking(session, plan)
    elif plan.bound.changes and isinstance(statement, st.QueryStatement | st.Call | st.Do):
        await _start_changing(session, plan, statement)
    elif isinstance(statement, st.QueryStatement) and (tables := to_lock(session, plan)):
        await session.view.start_write(plan, tables, tables)
    elif isinstance(statement, _QUERIES) and plan.tables:
        await session.view.start_read(plan)
    if isinstance(statement, st.QueryStatement):
        return await _query(session, plan, statement, params)
    if isinstance(statement, q.Update):
        return await run_update(session, plan, statement, params)
    if isinstance(statement, q.Insert):
        return await run_insert(session, plan, statement, params)
    if isinstance(statement, q.Delete):
        return await run_delete(session, plan, statement, params)
    if isinstance(statement, q.Merge):
        return await run_merge(session, plan, statement, params)
    if isinstance(statement, st.WithChanges):
        return await run_with_changes(session, plan, statement, params)
    handler = _DDL.get(kind)
    if handler is not None:
        await build_ahead(session, plan, partial(context, session, plan, params))
        await session.view.start_ddl(plan)
        openly(check_privileges, session, plan)
        outcome = await handler(session, plan, statement, params)
        session.ahead.close()
        return outcome
    return await _UTILITY[kind](session, plan, statement, params)


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
        st.Load,
    )
)


def result_columns(session: Session, plan: Plan) -> tuple[OutputColumn, ...] | None:
    """Return the columns a plan's result has; FETCH and EXECUTE take them from what they name."""
    statement = plan.bound.statement
    if isinstance(statement, st.Fetch):
        return None if statement.move else _fetched_columns(session, statement.cursor)
    if isinstance(statement, st.ExecutePrepared) and statement.into is None:
        prepared = session.connection.prepared.find(statement.name)
        if prepared is None or prepared.plan is None:
            return None
        return result_columns(session, prepared.plan)
    return plan.columns


def _fetched_columns(session: Session, name: str) -> tuple[OutputColumn, ...] | None:
    """Return the columns of the cursor or portal of a name, which may itself be a FETCH; that there is none is for Execute to say."""
    seen: set[str] = set()
    while (portal := session.connection.portals.get(name)) is not None:
        plan = portal.plan
        if plan is None or name in seen:
            return None
        if not isinstance(plan.bound.statement, st.Fetch):
            return result_columns(session, plan)
        seen.add(name)
        name = plan.bound.statement.cursor
    cursor = session.connection.cursors.find(name)
    return None if cursor is None else cursor.columns


# --- queries ------------------------------------------------------------------------------------


_LOCKING_QUERIES = (st.QueryStatement, st.Copy)
_QUERIES = (st.QueryStatement, st.Copy, st.DeclareCursor, st.Explain)


async def _start_locking(session: Session, plan: Plan) -> None:
    """Make the transaction a writing one: FOR UPDATE and its kin read, and lock, the latest state.

    Raises 25006 in a READ ONLY transaction.
    """
    txn = session.block.ensure_txn()
    if txn.read_only and not session.view.may_write(txn, plan.tables):
        raise SqlError("25006", f"cannot execute {plan.locking} in a read-only transaction")
    with waiting(session, not plan.nowait):
        await session.view.start_write(plan, plan.tables if txn.read_only else ())


async def _start_changing(
    session: Session, plan: Plan, statement: st.QueryStatement | st.Call | st.Do
) -> None:
    """Make the transaction a writing one where functions may write: so all that the statement reads is the latest state.

    In a READ ONLY transaction the first statement that writes is refused.
    """
    if session.block.ensure_txn().read_only:
        await session.view.start_read(plan)
        return
    scans: list[ShardId] = []
    if isinstance(statement, st.QueryStatement) and plan.bound.reads:
        prepare_source(session, compiled_query(plan, "query", statement.query))
        scans = tables_to_lock(session, plan, "query")
    await session.view.start_write(plan, (), scans)


async def _call(session: Session, plan: Plan, statement: st.Call, params: tuple[Any, ...]) -> Outcome:
    """CALL."""
    atomic = not session.system.routines.may_end
    ctx = context(session, plan, params)
    if plan.dml is None:
        plan.dml = compile_row(statement.call.args)
    args = await value_of(plan.dml, (), make_env(ctx))
    columns, rows = await routines_of(session).rows(statement.call, args, atomic=atomic)
    _done(session, plan)
    if not statement.call.outputs:
        return Command("CALL")
    row = rows[0] if rows else (None,) * len(columns)
    return Rows(statement.call.outputs, ReadyRows(statement.call.outputs, [row]), tag="CALL", final_tag=True)


async def _do(session: Session, plan: Plan, statement: st.Do, params: tuple[Any, ...]) -> Outcome:
    """DO."""
    routines = session.system.routines
    alone, atomic = not routines.stack, not routines.may_end
    await run_do(session, statement.source, statement.source_at, alone=alone, atomic=atomic)
    _done(session, plan)
    return Command("DO")


def _done(session: Session, plan: Plan) -> None:
    """A procedure has run: what it did not end itself is part of the transaction."""
    if session.block.txn is None:
        session.block.endings = 0
    session.view.use(plan)


async def _query(
    session: Session, plan: Plan, statement: st.QueryStatement, params: tuple[Any, ...]
) -> Outcome:
    result: ReadyRows | RowStream
    if statement.fetched:
        session.view.use(plan)
        result = begun_later(
            statement.query.columns,
            partial(_begun, session, plan, statement, params, session.block.ensure_txn()),
        )
        return Rows(plan.columns or statement.query.columns, result)
    ctx = context(session, plan, params)
    if session.derived.verifies:
        result = await run_twice(session, plan, statement.query, ctx)
    else:
        if statement.query.in_turn == "asked":
            ctx.wanted = Wanted()
        result = await run_query(session, plan, "query", statement.query, ctx)
    if (plan.locking or plan.bound.calls) and statement.query.in_turn != "asked":
        # all rows are locked, and all functions called, before the first one is sent: until then the statement can run again
        result = ReadyRows(statement.query.columns, await collect(session, result))
    session.view.use(plan)
    # what the client was told of them: executors know no arrays of domains
    return Rows(plan.columns or statement.query.columns, result)


async def _begun(
    session: Session,
    plan: Plan,
    statement: st.QueryStatement | st.DeclareCursor,
    params: tuple[Any, ...],
    txn: Transaction,
    wanted: Wanted,
) -> Result:
    """Begin the query of a cursor or loop, whose first row is asked for; where it locks rows all of them are locked then.

    ``txn``: in which it was opened; a block that reads several timelines may be in another by now.
    """
    reruns = 0
    while True:
        ctx = context(session, plan, params)
        ctx.txn, ctx.wanted = txn, wanted
        try:
            result = await run_query(session, plan, "query", statement.query, ctx)
            if not plan.locking:
                return result
            return ReadyRows(statement.query.columns, await collect(session, result))
        except RowsChanged:
            reruns += 1
            if reruns > MAX_RERUNS:
                raise rows_keep_changing() from None


async def _declare(
    session: Session, plan: Plan, statement: st.DeclareCursor, params: tuple[Any, ...]
) -> Outcome:
    if session.block.is_alone and not statement.hold:
        raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    session.block.ensure_txn().next_statement()
    if plan.locking:
        await _start_locking(session, plan)
    current: Sequence[tuple[Any, ...]] = ()
    shown = statement.shown
    result: ReadyRows | RowStream
    if not plan.locking:
        result = begun_later(
            statement.query.columns,
            partial(_begun, session, plan, statement, params, session.block.ensure_txn()),
        )
    else:
        found = await run_query(session, plan, "query", statement.query, context(session, plan, params))
        rows = await collect(session, found)
        if statement.keys:
            current = [row[len(shown) :] for row in rows]
            rows = [row[: len(shown)] for row in rows]
        result = ReadyRows(shown, rows)
    session.view.use(plan)
    columns = shown if plan.locking else statement.query.columns
    session.connection.cursors.declare(statement, Rows(columns, result, plan=plan), current)
    if statement.hold and session.block.state is IMPLICIT:
        await session.connection.cursors.materialise_held()
    return Command("DECLARE CURSOR")


async def _fetch(session: Session, plan: Plan, statement: st.Fetch, params: tuple[Any, ...]) -> Outcome:
    cursor = await session.connection.cursor_of(statement.cursor)
    many = session.connection.cursors.stream(cursor, statement)
    if many is not None:
        if statement.move:
            return Command(f"MOVE {sum([len(batch) async for batch in many])}")
        return Rows(cursor.columns, RowStream(cursor.columns, many), tag="FETCH", binary=cursor.binary)
    rows = await session.connection.cursors.fetch(cursor, statement)
    if statement.move:
        return Command(f"MOVE {len(rows)}")
    return Rows(cursor.columns, ReadyRows(cursor.columns, rows), tag="FETCH", binary=cursor.binary)


async def _close_cursor(
    session: Session, plan: Plan, statement: st.CloseCursor, params: tuple[Any, ...]
) -> Outcome:
    session.connection.cursors.close(statement.name)
    return Command("CLOSE CURSOR ALL" if statement.name is None else "CLOSE CURSOR")


async def _execute_prepared(
    session: Session, plan: Plan, statement: st.ExecutePrepared, params: tuple[Any, ...]
) -> Outcome:
    if plan.bound.functions:  # which its arguments call
        check_privileges(session, plan)
    made = statement.into
    if made is not None:
        schema = session.temp_schema if statement.schema == "pg_temp" else statement.schema
        if ddl.exists_already(session, schema, made.relation.name, made.if_not_exists):
            return Command(plan.bound.tag)
    inner, values = session.connection.prepared.to_execute(plan, statement, params)
    return await run(session, inner, values)


# --- locks ---------------------------------------------------------------------------------------


async def _lock_table(
    session: Session, plan: Plan, statement: st.LockTable, params: tuple[Any, ...]
) -> Outcome:
    return await lock_table(session, plan, statement)


_UTILITY: dict[type, Handler] = {
    st.SetConstraints: block_statements.set_constraints,
    st.Call: _call,
    st.Do: _do,
    st.Skip: session_statements.skip,
    st.Notify: session_statements.notify,
    st.LockTable: _lock_table,
    st.Explain: explained.run_explain,
    st.Copy: copy.run_copy,
    st.Transaction: block_statements.transaction,
    st.SetVariable: session_statements.set_variable,
    st.SetTransaction: block_statements.set_transaction,
    st.ShowVariable: session_statements.show,
    st.Prepare: session_statements.prepare,
    st.Deallocate: session_statements.deallocate,
    st.DeclareCursor: _declare,
    st.Subscribe: subscribe.run_subscribe,
    st.CreateSubscription: named_statements.create,
    st.AcknowledgeSubscription: named_statements.acknowledge,
    st.DropSubscription: named_statements.drop,
    st.CreateDatabase: databases.create,
    st.DropDatabase: databases.drop,
    st.CreateSource: source_statements.create,
    st.AlterSource: source_statements.alter,
    st.DropSource: source_statements.drop,
    st.DeclareSubscribe: subscribe.declare,
    st.Fetch: _fetch,
    st.CloseCursor: _close_cursor,
    st.Maintenance: maintain,
    st.Discard: session_statements.discard,
    st.Load: session_statements.load,
    st.RefreshCollation: session_statements.refresh_collation,
}
