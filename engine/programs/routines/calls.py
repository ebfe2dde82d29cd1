"""Calls of users' functions whose bodies run as statements of their own, within the statement that calls them.

    SELECT pay(7, 100)                        statement 5 of the transaction
       └── pay: UPDATE accounts ...           statement 6: sees what came before, its own numbers for what it writes
                INSERT INTO log ...           statement 7: sees what 6 wrote
       <── value of the last one              statement 5 goes on, and sees none of it

The row executor waits for a call as it waits for a lock (``planner.base.suspend.Suspend``). A body is bound
when it is called, under the search path, settings and rights of then, or those that the function brings:
SECURITY DEFINER, SET. Its plans are kept with the session. What fails in it fails the statement that calls
it; errors name the function in CONTEXT.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import OnStrand, Started, eager
from engine.base.loop.strands import Done, may_wait, wait
from engine.base.rows import ReadyRows
from engine.base.where import tell_where
from engine.catalog.state import CatalogSnapshot
from engine.programs.plpgsql.routine import call_function
from engine.programs.routines.inner import run_inner
from engine.session.acting import acting_as
from engine.session.plans.plan import Plan
from engine.session.portal import Command
from pgwire.give_way import between, closed_step, end_step, openly
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext, make_context
from planner.bind.stored.bodies import bind_called, bind_utility
from planner.catalog import FunctionDef
from planner.evaluate.runtime import record_maker
from planner.facts import RECORD, VOID
from planner.parse import Parsed, parse
from planner.query import OutputColumn, SqlCall
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.programs.plpgsql.body import Body as PlBody
    from engine.session.session import Session

MAX_DEPTH: Final = 200
"""So deep functions may call each other while they run; deeper is 54001."""
MAX_KEPT: Final = 200
MAX_NOW_S: Final = 1
"""So long a call may hold everybody up that cannot give way to others."""


class Running:
    """A call that runs: what CONTEXT says of it, and of the statement that it runs."""

    __slots__ = ("sql", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self.sql: str | None = None


class Body:
    """The statements of a function, bound for types of inputs, as plans; what is no query is bound anew
    whenever its turn comes.
    """

    __slots__ = ("function", "plans")

    def __init__(self, function: FunctionDef, plans: list[Plan | Parsed]) -> None:
        self.function = function
        self.plans = plans

    def fresh(self, catalog: CatalogSnapshot) -> bool:
        """Tell whether the plans still mean the same under ``catalog``."""
        return all(plan.fresh(catalog) for plan in self.plans if isinstance(plan, Plan))


class _Called:
    """A call of a routine within a statement: afterwards all is as before, and the statement goes on."""

    __slots__ = ("_around", "_number", "_parts", "_routines", "_txn")

    def __init__(self, routines: Routines, around: AbstractContextManager[None] | None) -> None:
        """``around``: what else is in force during the call."""
        self._routines = routines
        self._around = around

    def __enter__(self) -> None:
        routines = self._routines
        session = routines.session
        if routines.depth >= MAX_DEPTH:
            raise SqlError(
                "54001", "stack depth limit exceeded", hint=f"Functions may call each other {MAX_DEPTH} deep."
            )
        self._txn = session.block.ensure_txn()
        self._number = self._txn.statement
        self._parts, session.parts = session.parts, None
        routines.depth += 1
        try:
            if self._around is not None:
                self._around.__enter__()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            if self._around is not None:
                self._around.__exit__(*error)
        finally:
            self._leave()

    def _leave(self) -> None:
        routines = self._routines
        session = routines.session
        routines.depth -= 1
        session.parts = self._parts
        if session.block.txn is self._txn:
            self._txn.resume_statement(self._number)


class Routines:
    """One session's calls; ``depth``: how many are within each other."""

    __slots__ = ("_bodies", "_latest", "changing_loops", "depth", "offered", "session", "stack")

    def __init__(self, session: Session) -> None:
        """Call functions for ``session``."""
        self.session = session
        self.stack: list[Any] = []  # the calls that run, the innermost last
        self.offered = -1  # calls that ran when one of them let the procedure that it calls end transactions
        self.changing_loops = 0  # over rows of statements that change them
        self._bodies: dict[Any, Any] = {}
        self._latest: dict[Any, tuple[object, PlBody]] = {}  # by what identifies a body but the settings
        self.depth = 0

    def context(self, outside: Any = None) -> list[str]:
        """Return what CONTEXT says of the calls that run, the innermost first; of those ``outside`` of one."""
        lines: list[str] = []
        for running in reversed(self.stack if outside is None else self.stack[: self.stack.index(outside)]):
            if running.sql is not None:
                lines.append(running.sql)
            lines.append(running.where)
        return lines

    async def call(self, call: SqlCall, args: Sequence[Any]) -> Any:
        """Run a function; see ``planner.functions.session.RoutineSystem``."""
        function = self._function(call)
        if function.strict and any(arg is None for arg in args):
            return [] if call.returns_set else None
        columns, rows = await self.rows(call, args)
        if call.type.oid == RECORD:
            if not call.returns_set:
                rows = rows[:1]
            make = record_maker(tuple(c.type.oid for c in columns), tuple(c.name for c in columns))
            values: list[Any] = [make(row) for row in rows]
        else:
            values = [row[0] for row in rows]
        if call.returns_set:
            return values
        return values[0] if values else None

    def start(self, call: SqlCall, args: Sequence[Any]) -> tuple[bool, Any]:
        """Begin a call; see ``planner.functions.session.RoutineSystem``."""
        return self.begin(self.call(call, args))

    def begin(self, work: Coroutine[Any, Any, Any]) -> tuple[bool, Any]:
        """Begin what a function does by statements of its own; see ``planner.functions.session.RoutineSystem``."""
        result = eager(work)
        return (False, result) if isinstance(result, Started) else (True, result)

    async def query(self, text: str) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
        """Run a text that is one query; see ``planner.functions.session.RoutineSystem``."""
        between()
        session = self.session
        words = f'SQL statement "{text}"'
        try:
            parsed = openly(parse, session.standard_text(text))
            plans = [self._planned(one) for one in parsed]
        except SqlError as error:
            if error.span is None:
                tell_where(error, words)
            elif error.query is None:
                error.query = text
            raise
        if len(plans) != 1:
            raise SqlError("42P11", "cannot open multi-query plan as cursor")
        if not isinstance(plans[0].bound.statement, st.QueryStatement):
            raise SqlError("42P11", f"cannot open {plans[0].bound.tag} query as cursor")

        def again() -> None:
            plans[0] = self._planned(parsed[0])

        try:
            with self.within():
                outcome = await run_inner(session, lambda: (plans[0], ()), again)
        except Exception as error:
            tell_where(error, words)
            raise
        if isinstance(outcome, Command):
            raise AssertionError("a query ended without rows")
        if not isinstance(outcome.result, ReadyRows):
            raise AssertionError(f"rows that are all there are {type(outcome.result).__name__}")
        return outcome.columns, outcome.result.rows

    def _planned(self, parsed: Parsed) -> Plan:
        return self.session.connection.planning.bind(parsed, (), variable_params=False)

    def call_now(self, call: SqlCall, args: Sequence[Any]) -> Any:
        """As ``call``, on the spot; see ``planner.functions.session.RoutineSystem``."""
        running = self.call(call, args)
        was = closed_step()
        try:
            first = running.send(None)
        except StopIteration as done:
            return done.value
        finally:
            end_step(was)
        if may_wait():
            return wait(OnStrand(running, Done(first)))
        return self._driven(call.name, running, first)

    def _driven(self, name: str, running: Coroutine[Any, Any, Any], first: Any) -> Any:
        """Run a call to its end in a turn that nothing can interrupt: for ``MAX_NOW_S`` at most."""
        deadline = time.monotonic() + MAX_NOW_S
        was = closed_step()
        try:
            while first is None:  # it lets others have their turn, which they cannot have now
                if time.monotonic() > deadline:
                    raise SqlError(
                        "54001",
                        f"function {name} takes longer than {MAX_NOW_S} s in an expression that is evaluated row by row",
                    )
                first = running.send(None)
        except StopIteration as done:
            return done.value
        finally:
            end_step(was)
            running.close()
        raise not_supported(
            f"function {name}, which has to wait, in an expression that is evaluated row by row"
        )

    @property
    def may_end(self) -> bool:
        """Whether the procedure that is called next may end transactions: nothing but such procedures is around it."""
        return self.session.block.is_alone or self.offered == len(self.stack)

    async def rows(
        self, call: SqlCall, args: Sequence[Any], *, atomic: bool = True
    ) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
        """Run the statements of a routine; return what the last one returns, nothing of one that returns void.

        ``atomic``: it cannot end transactions, which none can either that has rights or settings of its own.
        Raises SqlError 54001 where functions call each other too deep, and what its statements raise.
        """
        between()
        function = self._function(call)
        with self.called(function):
            if function.language == "plpgsql":
                atomic = atomic or function.definer or bool(function.settings)
                return await call_function(self, function, call, tuple(args), atomic=atomic)
            return await self._run(function, call, tuple(args))

    def called(self, function: FunctionDef) -> _Called:
        """Run a function's statements as ``within``, with the rights and settings that it brings."""
        brings = function.definer or function.settings
        return _Called(self, self._surroundings(function) if brings else None)

    def within(self) -> _Called:
        """Run a function's statements within the statement that calls it. Raises SqlError 54001 where calls
        are too deep.
        """
        return _Called(self, None)

    def body(self, key: tuple[Any, ...], function: FunctionDef, read: Callable[[], PlBody]) -> PlBody:
        """Return the body of a PL/pgSQL function, as long as it is fresh, else what ``read`` returns. Raises
        what that raises.
        """
        catalog, plan_key = self.session.catalog, self.session.plan_key
        latest = self._latest.get(key)
        if latest is not None and latest[0] == plan_key and latest[1].fresh(catalog, function):
            return latest[1]
        whole = (*key, plan_key)
        found: PlBody | None = self._bodies.get(whole)
        if found is None or not found.fresh(catalog, function):
            if len(self._bodies) >= MAX_KEPT:
                self._bodies.clear()
                self._latest.clear()
            found = self._bodies[whole] = read()
        self._latest[key] = plan_key, found
        return found

    def _function(self, call: SqlCall) -> FunctionDef:
        function = self.session.catalog.function_by_oid(call.proc)
        if function is None:
            raise SqlError("42883", f"function {call.name} does not exist")
        return function

    # -- statements --------------------------------------------------------------------------------

    async def _run(
        self, function: FunctionDef, call: SqlCall, args: Row
    ) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
        body = self._body(function, call)
        columns: Sequence[OutputColumn] = ()
        rows: Sequence[Row] = ()
        running = Running(f'SQL function "{function.name}"')
        self.stack.append(running)
        try:
            for number in range(len(body.plans)):
                running.where = f'SQL function "{function.name}" statement {number + 1}'
                columns, rows = await self._statement(body, number, call, args)
        except Exception as error:
            tell_where(error, running.where)
            raise
        finally:
            self.stack.pop()
        return ((), ()) if call.type.oid == VOID else (columns, rows)

    async def _statement(
        self, body: Body, number: int, call: SqlCall, args: Row
    ) -> tuple[Sequence[OutputColumn], Sequence[Row]]:
        def plan() -> tuple[Plan, Row]:
            found = body.plans[number]
            return (found if isinstance(found, Plan) else self._utility(body.function, call, found)), args

        def again() -> None:
            body.plans = self._bound(body.function, call)

        outcome = await run_inner(self.session, plan, again)
        if isinstance(outcome, Command):
            return (), ()
        if not isinstance(outcome.result, ReadyRows):
            raise AssertionError(f"rows that are all there are {type(outcome.result).__name__}")
        return outcome.columns, outcome.result.rows

    def _body(self, function: FunctionDef, call: SqlCall) -> Body:
        session = self.session
        key = (
            function.oid,
            tuple(arg.type.oid for arg in call.args),
            call.type,
            call.outputs,
            session.plan_key,
        )
        body = self._bodies.get(key)
        if body is None or body.function != function or not body.fresh(session.catalog):
            body = Body(function, self._bound(function, call))
            if len(self._bodies) >= MAX_KEPT:
                self._bodies.clear()
            self._bodies[key] = body
        return body

    def _bound(self, function: FunctionDef, call: SqlCall) -> list[Plan | Parsed]:
        session = self.session
        catalog, context = self._context()
        wanted = (call.outputs or None) if call.type.oid == RECORD else call.type
        try:
            statements = openly(bind_called, context, function, [arg.type.oid for arg in call.args], wanted)
        except SqlError as error:
            error.span = None  # it stands in another text
            raise
        return [
            one if isinstance(one, Parsed) else Plan(one, catalog, session.search_path) for one in statements
        ]

    def _utility(self, function: FunctionDef, call: SqlCall, parsed: Parsed) -> Plan:
        catalog, context = self._context()
        types = [arg.type.oid for arg in call.args]
        try:
            bound = openly(bind_utility, context, function, types, parsed)
        except SqlError as error:
            error.span = None  # it stands in another text
            raise
        return Plan(bound, catalog, self.session.search_path)

    def _context(self) -> tuple[CatalogSnapshot, BindContext]:
        session = self.session
        session.view.renew()
        catalog = session.catalog  # others may change it while binding gives way
        return catalog, make_context(
            catalog,
            session.bind_path,
            settings=session.bind_settings,
            database=session.database,
            security=session.row_security,
        )

    # -- rights and settings -----------------------------------------------------------------------

    @contextmanager
    def _surroundings(self, function: FunctionDef) -> Iterator[None]:
        """Have the rights and settings under which a function runs."""
        rights = (
            acting_as(self.session, function.owner, restricted=False) if function.definer else nullcontext()
        )
        with rights, self.settings_of(function):
            yield

    @contextmanager
    def settings_of(self, function: FunctionDef) -> Iterator[None]:
        """Have the settings of a function's SET clauses; what its body sets of them stays only by a plain
        SET. Raises SqlError as SET.
        """
        settings = self.session.settings
        before: list[tuple[str, str | None]] = []
        mark = settings.mark()
        try:
            for name, value in function.settings:
                canonical = settings.check(name, value)
                before.append((name.lower(), settings.stored(name.lower())))
                settings.override(name.lower(), canonical)
            yield
        finally:
            for name, old in reversed(before):
                settings.leave(name, old, mark)
