"""Statements within a PL/pgSQL function: EXECUTE, rows INTO variables, CALL with its outputs, cursors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from engine.base.rows import ReadyRows
from engine.base.where import tell_where, telling
from engine.plans.named_queries import name_in
from engine.programs.plpgsql.extra_checks import tell_extra
from engine.programs.plpgsql.frame import Frame, check_planned, declared_columns, fails_planned, with_domains
from engine.programs.plpgsql.parts import type_of
from engine.programs.plpgsql.raising import shown
from engine.programs.routines.of_session import routines_of
from engine.session.cursors import Cursors
from engine.session.plans.plan import PLAN_CACHE_MAX_TEXT, Plan
from engine.session.portal import Cursor, Outcome, Rows
from engine.session.transaction.within import end_within
from pgwire.give_way import openly
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.conversion.polymorphic import POLYMORPHIC
from planner.facts import INT4, TEXT
from planner.parse import Parsed, parse
from planner.plpgsql import tree
from planner.plpgsql.bind import of_loop
from planner.query import OutputColumn
from planner.types import SqlType
from planner.types.domains import base_type, is_domain
from txn.base.types import Row

_TEXT: Final = SqlType(TEXT)


async def check_domain(frame: Frame, variable: tree.Variable) -> None:
    """Raise what a domain demands of NULL, which a variable without a default is."""
    if is_domain(variable.type.oid):
        await frame.cast(None, base_type(variable.type), variable.type)


# --- EXECUTE --------------------------------------------------------------------------------------


async def execute(
    frame: Frame,
    piece: tree.Piece,
    params: Sequence[tree.Piece],
    *,
    fetched: bool = False,
    keeps: bool = False,
    check: Callable[[Sequence[OutputColumn]], None] | None = None,
) -> tuple[Outcome, ast.StatementNode] | None:
    """Run the text that an expression gives; returns the outcome of its last statement, and that statement;
    None where it has none.

    ``fetched``: its rows are a loop's or a cursor's, which fetches them: CONTEXT names the text only where it
    cannot be planned. ``keeps``: they come with the keys behind them that WHERE CURRENT OF asks for
    (``made_cursor``).

    Raises SqlError 22004 for NULL, 0A000 for SELECT INTO and statements about transactions, and what the text raises.
    """
    value, type_ = await frame.value(piece)
    text = shown(frame, value, type_)
    if text is None:
        raise SqlError("22004", "query string argument of EXECUTE is null")
    given = [await frame.declared(param) for param in params]
    values = tuple([v for v, _ in given])
    oids = tuple([TEXT if t.oid == 705 else t.oid for _, t in given])
    words = f'SQL statement "{text}"'
    try:
        parsed = openly(parse, frame.session.standard_text(text))
    except SqlError as error:
        error.query = text
        raise
    done: tuple[Outcome, ast.StatementNode] | None = None
    for one in parsed:
        node = one.statement
        _check(node)
        try:
            plan = _planned(
                frame, one, oids, alone=len(parsed) == 1, keeps=keeps, loops=fetched and not keeps
            )
        except SqlError as error:
            if error.span is None:
                tell_where(error, words)
            raise
        if fetched or values:
            with telling(words):
                check_planned(frame, plan, values)
        if check is not None and plan.columns is not None:
            with telling(words):
                check(declared_columns(plan.columns, plan.bound.declared))
        frame.sql = None if fetched else words
        try:
            outcome = await _run(frame, one, plan, oids, values, keeps=keeps, loops=fetched and not keeps)
            done = with_domains(outcome, plan.bound.declared), node
        except Exception as error:
            if not fetched or fails_planned(plan, values, frame.session):
                tell_where(error, words)
            raise
        finally:
            frame.sql = None
    return done


async def _run(
    frame: Frame,
    parsed: Parsed,
    plan: Plan,
    oids: tuple[int, ...],
    values: tuple[Any, ...],
    *,
    keeps: bool,
    loops: bool,
) -> Outcome:
    now = plan

    def again() -> None:
        nonlocal now
        now = _planned(frame, parsed, oids, alone=False, keeps=keeps, loops=loops)

    return await frame.run_plan(lambda: (now, values), again)


def _check(node: ast.StatementNode) -> None:
    if isinstance(node, ast.Transaction):
        raise SqlError("0A000", "EXECUTE of transaction commands is not implemented")
    if isinstance(node, ast.CreateTableAs) and node.select_into:
        raise SqlError(
            "0A000",
            "EXECUTE of SELECT ... INTO is not implemented",
            hint="You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.",
        )
    if isinstance(node, ast.Copy) and node.filename is None:
        raise SqlError("0A000", "cannot COPY to/from client in PL/pgSQL")


def _planned(
    frame: Frame, parsed: Parsed, oids: tuple[int, ...], *, alone: bool, keeps: bool, loops: bool
) -> Plan:
    """Return the plan of a text, kept as those of clients are, for a cursor if it ``keeps`` keys, for a loop
    if it ``loops``. Errors name the text.
    """
    session = frame.session
    steps = frame.body.steps
    keeps = keeps and parsed.as_of is None and name_in(parsed.statement) is None
    cacheable = alone and not steps and not keeps and len(parsed.text) <= PLAN_CACHE_MAX_TEXT
    key = ("EXECUTE", loops, parsed.text, oids, session.plan_key)
    kept = session.view.plans if cacheable else None
    if kept is not None:
        found = kept.get(key, session.catalog)
        if found is not None:
            return found
    try:
        if steps or keeps:
            plan = _bound_here(frame, parsed, oids, keeps=keeps)
        else:
            plan = session.connection.planning.bind(parsed, oids, variable_params=False)
        if loops:
            bound = replace(plan.bound, statement=of_loop(plan.bound.statement))
            plan = Plan(bound, session.catalog, session.search_path)
    except SqlError as error:
        if error.query is None and error.span is not None:
            error.query = parsed.text
        raise
    kept = session.view.plans if cacheable and plan.cacheable else None
    if kept is not None:
        kept.put(key, plan)
    return plan


def _bound_here(frame: Frame, parsed: Parsed, oids: tuple[int, ...], *, keeps: bool) -> Plan:
    """Return the plan of a text that reads transition tables, or is a cursor's."""
    session = frame.session
    session.view.renew()
    bound = bind_statement(
        parsed.statement, parsed.text, session.catalog, session.bind_path, oids, session.bind_settings,
        database=session.database, variable_params=False, steps=frame.body.steps,
        security=session.row_security, keeps=keeps,
    )  # fmt: skip
    return Plan(bound, session.catalog, session.search_path)


async def query_of(
    frame: Frame,
    piece: tree.Piece,
    params: Sequence[tree.Piece],
    check: Callable[[Sequence[OutputColumn]], None],
) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
    """Run the text that an expression gives as a query, whose columns ``check`` has looked at. Raises as
    ``execute``; 42601 for what returns no rows.
    """
    done = await execute(frame, piece, params, check=check)
    if done is None:
        raise SqlError("42601", "empty query does not return tuples")
    return rows_of(done[0])


async def opened(frame: Frame, piece: tree.Piece, params: Sequence[tree.Piece], *, keeps: bool) -> Outcome:
    """Run the text that an expression gives as the query of a loop, or of a cursor, which ``keeps`` keys.

    Raises as ``execute``; 42P11 where it holds no statement.
    """
    done = await execute(frame, piece, params, fetched=True, keeps=keeps)
    if done is None:
        raise SqlError("42P11", "cannot open multi-query plan as cursor")
    return done[0]


def rows_of(outcome: Outcome) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
    """Return the rows of a statement. Raises SqlError 42601 where it is none that returns rows."""
    if not isinstance(outcome, Rows) or not isinstance(outcome.result, ReadyRows):
        raise _no_rows(outcome)
    return outcome.columns, outcome.result.rows


def _no_rows(outcome: Outcome) -> SqlError:
    return SqlError("42P11", f"cannot open {outcome.tag.split(' ', 1)[0]} query as cursor")


# --- INTO -----------------------------------------------------------------------------------------


async def take_rows(
    frame: Frame,
    outcome: Outcome,
    into: tree.Into | None,
    *,
    changes: bool,
    select: bool,
    dynamic: bool = False,
) -> None:
    """Give variables the row that a statement returned.

    Raises SqlError 42601 where rows have no destination or there are none to have; P0002, P0003 for other than one row.
    """
    if into is None:
        if isinstance(outcome, Rows):
            hint = "If you want to discard the results of a SELECT, use PERFORM instead." if select else None
            raise SqlError("42601", "query has no destination for result data", hint=hint)
        return
    if not isinstance(outcome, Rows):
        raise SqlError("42601", "INTO used with a command that cannot return data")
    columns, rows = rows_of(outcome)
    if not rows:
        if into.strict:
            raise SqlError("P0002", "query returned no rows")
        await frame.into(into, columns, None)
        return
    if len(rows) > 1:
        many = "query returned more than one row"
        hint = "Make sure the query returns a single row, or use LIMIT 1."
        if into.strict or changes:
            raise SqlError("P0003", many, hint=None if dynamic else hint)
        if not dynamic:  # of EXECUTE PostgreSQL never asks
            tell_extra(frame.session, "too_many_rows", "P0003", many, hint=hint)
    await frame.into(into, columns, rows[0])


# --- CALL -----------------------------------------------------------------------------------------


async def call(frame: Frame, statement: tree.CallRoutine) -> None:
    """CALL, whose outputs go to the variables that stand for them, and DO. Raises SqlError 42601."""
    ready = frame.body.ready(statement.statement, frame.values)
    targets: list[tree.Target] = []
    bound = ready.plan.bound.statement
    if isinstance(ready.node, ast.Call) and isinstance(bound, st.Call):
        targets = _outputs(frame, ready.node, bound, statement.statement.names)
    routines = routines_of(frame.session)
    before, routines.offered = routines.offered, -1 if frame.atomic or frame.parts else len(routines.stack)
    try:
        outcome = await frame.run(statement.statement)
    finally:
        routines.offered = before
    if isinstance(outcome, Rows) and targets:
        columns, rows = rows_of(outcome)
        for target, column, value in zip(targets, columns, rows[0], strict=True):
            await frame.assign(target, value, column.type)


def _outputs(frame: Frame, node: ast.Call, bound: st.Call, names: tree.Names) -> list[tree.Target]:
    """Return the variables that stand for a procedure's outputs. Raises SqlError 42601 for what is none."""
    function = frame.session.catalog.function_by_oid(bound.call.proc)
    if function is None:
        raise AssertionError(f"function {bound.call.proc} is gone while it is called")
    given: dict[str | int, ast.Node] = {}
    for i, arg in enumerate(node.call.args):
        if isinstance(arg, ast.NamedArg):
            given[arg.name] = arg.arg
        else:
            given[i] = arg
    targets = []
    for i, (name, mode) in enumerate(zip(function.names, function.modes, strict=True)):
        if mode not in "ob":
            continue
        arg = given.get(i, given.get(name))  # type: ignore[assignment]
        found = (
            names.find(arg.names, frame.body.routine.variables) if isinstance(arg, ast.ColumnRef) else None
        )
        if found is not None and isinstance(arg, ast.ColumnRef):
            steps = arg.names[found[1] :]
            variable = frame.body.routine.variables[found[0]]
            given_type = None if variable.kind != "scalar" else variable.type
            if steps:
                given_type = type_of(frame, tree.Target(found[0], steps, names))
            known = given_type is not None and function.types[i] not in POLYMORPHIC
            if known and given_type is not None and given_type.oid != function.types[i]:
                found = None  # it is converted: what is passed is no variable then
        if found is None or not isinstance(arg, ast.ColumnRef):
            shown_name = f'"{name}"' if name else str(i + 1)
            raise SqlError(
                "42601",
                f"procedure parameter {shown_name} is an output parameter but corresponding argument is not writable",
            )
        if frame.body.routine.variables[found[0]].constant:
            raise SqlError("22005", f'variable "{arg.names[-1]}" is declared CONSTANT')
        targets.append(tree.Target(found[0], arg.names[found[1] :], names, ".".join(arg.names)))
    return targets


# --- transactions ---------------------------------------------------------------------------------


async def end_transaction(frame: Frame, statement: tree.EndTransaction) -> None:
    """COMMIT or ROLLBACK. Raises SqlError 2D000 and 55000 where the procedure cannot, and what a commit raises."""
    if frame.atomic:
        raise SqlError("2D000", "invalid transaction termination")
    if frame.parts:
        verb = "commit" if statement.committing else "roll back"
        raise SqlError("2D000", f"cannot {verb} while a subtransaction is active")
    if routines_of(frame.session).changing_loops:
        raise SqlError(
            "55000", "cannot perform transaction commands inside a cursor loop that is not read-only"
        )
    await cursors_of(frame).hold_pinned()
    await end_within(frame.session, committing=statement.committing, chain=statement.chain)


# --- cursors --------------------------------------------------------------------------------------


def is_open(frame: Frame, variable: tree.Variable) -> bool:
    """Tell whether the cursor that a variable names is open."""
    name = frame.values[variable.number]
    return name is not None and cursors_of(frame).find(name) is not None


def cursors_of(frame: Frame) -> Cursors:
    """Return the cursors of the session."""
    return frame.session.connection.cursors


async def open_cursor(frame: Frame, statement: tree.Open) -> None:
    """OPEN: the variable then names a cursor, which FETCH of SQL knows too. Raises SqlError 42P03."""
    variables = frame.body.routine.variables
    variable = variables[statement.cursor]
    if is_open(frame, variable):
        raise SqlError("42P03", f'cursor "{frame.values[variable.number]}" already in use')
    scroll = statement.scroll
    if variable.cursor is not None:
        await take_arguments(frame, variable.cursor, statement.arguments)
        outcome = await frame.opened(variable.cursor.query)
        scroll = variable.cursor.scroll
    elif statement.dynamic:
        if statement.query is None:
            raise AssertionError("OPEN has no query")
        outcome = await opened(frame, statement.query, statement.params, keeps=True)
    else:
        if statement.query is None:
            raise AssertionError("OPEN has no query")
        outcome = await frame.opened(statement.query)
    cursors = cursors_of(frame)
    name = frame.values[variable.number]
    if name is None:
        if variable.constant:
            raise SqlError("22005", f'variable "{variable.name}" is declared CONSTANT')
        name = variable.name if variable.cursor is not None else cursors.free_name()
    made_cursor(frame, name, outcome, scroll=scroll)
    frame.values[variable.number] = name


async def take_arguments(frame: Frame, cursor: tree.CursorQuery, arguments: Sequence[tree.Piece]) -> None:
    """Give a bound cursor's parameters their values. That is a SELECT INTO: FOUND and ROW_COUNT are its own
    then, as in PostgreSQL.
    """
    for number, piece in zip(cursor.arguments, arguments, strict=True):
        value, type_ = await frame.value(piece)
        await frame.store(number, value, type_)
    if arguments:
        frame.row_count = 1
        frame.values[frame.body.routine.found] = True


def made_cursor(
    frame: Frame, name: str, outcome: Outcome, *, scroll: bool | None = None, loop: bool = False
) -> Cursor:
    """Open a cursor over the rows of a query, without the keys behind them; ``loop``: nobody may close it
    before that ends.

    Raises SqlError 42P03, 53400; 0A000 for SCROLL where the query locks rows; 42P11 where there are no rows.
    """
    if not isinstance(outcome, Rows):
        raise _no_rows(outcome)
    plan = outcome.plan
    statement = None if plan is None else plan.bound.statement
    if scroll and plan is not None and plan.locking:
        raise SqlError(
            "0A000",
            "DECLARE SCROLL CURSOR ... FOR UPDATE/SHARE is not supported",
            detail="Scrollable cursors must be READ ONLY.",
        )
    keys = statement.keys if isinstance(statement, st.QueryStatement) else ()
    return cursors_of(frame).declare_rows(name, outcome, scroll=scroll, keys=keys, loop=loop)


def end_cursor(frame: Frame, cursor: Cursor) -> None:
    """Close a cursor, if it is still open."""
    cursor.pinned = False
    if cursors_of(frame).find(cursor.name) is cursor:
        cursors_of(frame).close(cursor.name)


def _named(frame: Frame, number: int) -> Any:
    variable = frame.body.routine.variables[number]
    name = frame.values[number]
    if name is None:
        raise SqlError("22004", f'cursor variable "{variable.name}" is null')
    cursor = cursors_of(frame).find(name)
    if cursor is None:
        raise SqlError("34000", f'cursor "{name}" does not exist')
    return cursor


async def fetch(frame: Frame, statement: tree.Fetch) -> None:
    """FETCH one row INTO variables, or MOVE. Raises SqlError 22004, 34000."""
    cursor = _named(frame, statement.cursor)
    count: int | None = 1
    if statement.every:
        count = None
    elif isinstance(statement.count, int):
        count = statement.count
    elif statement.count is not None:
        count = await frame.of_type(statement.count, SqlType(INT4))
        if count is None:
            raise SqlError("22004", "relative or absolute cursor position is null")
    asked = st.Fetch(
        cursor=cursor.name,
        direction=statement.direction,  # type: ignore[arg-type]
        count=count,
        move=statement.into is None,
    )
    rows = await cursors_of(frame).fetch(cursor, asked)
    frame.row_count = len(rows)
    frame.values[frame.body.routine.found] = bool(rows)
    if statement.into is not None:
        await frame.into(statement.into, cursor.columns, rows[0] if rows else None)


def close(frame: Frame, statement: tree.Close) -> None:
    """CLOSE. Raises SqlError 22004, 34000."""
    cursors_of(frame).close(_named(frame, statement.cursor).name)
