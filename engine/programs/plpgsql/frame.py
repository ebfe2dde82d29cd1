"""One running call of a PL/pgSQL function: its variables, where it stands, and the evaluation of its pieces.

Frame        values [$1, n, r, found ...]     line 3 at assignment
value      a piece as an expression         evaluated on the spot where it reads nothing
rows       a piece as a query               run as any statement of the transaction
assign     a value to a variable or a part  converted to its type
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.base.executor import READS, ExecContext
from engine.base.where import tell_where, telling, told
from engine.changes.writes.returning import make_env
from engine.executors.index.state import value_of
from engine.plans.query import context
from engine.programs.plpgsql import parts
from engine.programs.plpgsql.body import Body, Ready
from engine.programs.plpgsql.extra_checks import extra_level, tell_extra
from engine.programs.routines.inner import run_inner
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Rows
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.composite import pack_row, record_of
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.bind.expression.calls import result_row
from planner.evaluate import Env, RowFunction, Shared
from planner.facts import BOOL, INT4, RECORD, TEXT, UNKNOWN
from planner.plpgsql.planned import failing_in
from planner.plpgsql.tree import Into, Piece, Target
from planner.query import OutputColumn
from planner.statements import StatementClass
from planner.types import SqlType
from planner.types.domains import base_oid, base_type
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session
    from pgwire.errors import ErrorReport

CUSTOM_PLANS: Final = 5
"""So often PostgreSQL plans a statement with the values of its parameters before it may keep a plan for all of them."""
_BETWEEN_TURNS: Final = 64
"""So many statements run before the clock is looked at."""

_BOOL: Final = SqlType(BOOL)
_RECORD: Final = SqlType(RECORD)


class Frame:
    """A call; see the module. ``signature`` gives the function as CONTEXT shows it; ``doing`` is told there
    in place of a statement.
    """

    __slots__ = (
        "_count",
        "_signature",
        "atomic",
        "body",
        "columns",
        "declaring",
        "doing",
        "handling",
        "ignored",
        "leaving",
        "line",
        "mismatch",
        "parts",
        "result",
        "returned",
        "row_count",
        "rows",
        "scalar",
        "session",
        "sql",
        "values",
        "what",
    )  # fmt: skip

    def __init__(self, session: Session, body: Body, signature: Callable[[], str]) -> None:
        """Nothing has run yet; all variables are NULL."""
        self.session = session
        self.body = body
        self._signature = signature
        self.values: list[Any] = [None] * len(body.routine.variables)
        self.values[body.routine.found] = False
        self.atomic = True  # it cannot end transactions
        self.parts = 0  # blocks with EXCEPTION that run
        self.line = 0
        self.declaring = 0  # the line of the variable that is being made
        self.what = ""
        self.doing = ""
        self.sql: str | None = None
        self.row_count = 0
        self.rows: list[Row] = []
        self.columns: tuple[OutputColumn, ...] = ()
        self.scalar: SqlType | None = None  # what one value is returned as, None for rows
        self.result: Any = None
        self.returned: tuple[Any, SqlType] | None = None  # what RETURN gave, not converted yet
        self.ignored = False  # whatever is returned means nothing, and is not looked at
        self.leaving = "while casting return value to function's return type"
        self.mismatch = "returned record type does not match expected record type"
        self.handling: list[ErrorReport] = []
        self._count = 0

    @property
    def signature(self) -> str:
        """The function as CONTEXT shows it."""
        return self._signature()

    @property
    def where(self) -> str:
        """What CONTEXT says of the call."""
        line = self.declaring or self.line
        if self.doing:
            place = f" line {line}" if line else ""
            return f"PL/pgSQL function {self.signature}{place} {self.doing}"
        return f"PL/pgSQL function {self.signature} line {line} at {self.what}"

    async def turn(self) -> None:
        """Between statements: let others go on now and then, and notice a cancel. Raises SqlError 57014."""
        self._count = 0
        await self.session.cancelled.turn()

    def due(self) -> bool:
        """Tell whether ``turn`` is to be called before the next statement; at once where a cancel came during
        COMMIT.
        """
        self._count += 1
        return self._count >= _BETWEEN_TURNS or bool(self.session.cancelled.reason)

    # -- pieces ------------------------------------------------------------------------------------

    async def value(self, piece: Piece) -> tuple[Any, SqlType]:
        """Return the value of an expression and its type. Raises SqlError 42601 for several columns, 21000
        for several rows.
        """
        ready = self.body.ready(piece, self.values)
        plan = ready.plan
        if not ready.one:
            raise _columns(piece, len(plan.columns or ()))
        self.plan(ready, piece)
        if ready.plain:
            value = self.plain(ready)
            return (_of_fields(value, ready.fields) if ready.fields else value), ready.type
        values = ready.values(self.values)
        if ready.function is not None:
            self.session.db.ports.check_rights(self.session, plan)
            row = await value_of(ready.function, (), make_env(context(self.session, plan, values)))
            return (_of_fields(row[0], ready.fields) if ready.fields else row[0]), ready.type
        _, rows = await self.query(piece)
        if len(rows) > 1:
            error = SqlError("21000", "query returned more than one row")
            tell_where(error, f"query: {piece.target}{piece.text}")
            raise error
        self.row_count = len(rows)  # as of any query that PostgreSQL runs
        value = rows[0][0] if rows else None
        return (_of_fields(value, ready.fields) if ready.fields else value), ready.type

    async def declared(self, piece: Piece) -> tuple[Any, SqlType]:
        """As ``value``, but the type is a domain's where the expression is of one."""
        value, type_ = await self.value(piece)
        return value, self.body.ready(piece, self.values).domain or type_

    def held(self, piece: Piece) -> Any:
        """Return what a variable holds where an expression is nothing but its name, else None."""
        number = self.body.ready(piece, self.values).variable
        return None if number is None else self.values[number]

    def plan(self, ready: Ready, piece: Piece) -> None:
        """Raise what PostgreSQL would while it plans a piece, before anything of it runs."""
        if ready.failing is not None:
            with told(piece):
                openly(ready.failing, (), Env((), self.session, shared=Shared()))

    def plain(self, ready: Ready) -> Any:
        """Return the value of an expression that needs nothing but variables."""
        values = ready.values(self.values)
        plan = ready.plan
        if plan.bound.stable:
            values += plan.stable_values(self.session, values)
        if ready.function is None:
            raise AssertionError("an expression that is ready has no compiled function")
        return openly(ready.function, (), Env(values, self.session, shared=Shared()))[0]

    async def of_type(self, piece: Piece, type_: SqlType) -> Any:
        """Return the value of an expression as one of a type."""
        value, given = await self.value(piece)
        return value if given == type_ else await self.cast(value, given, type_)

    async def truth(self, piece: Piece) -> bool:
        """Tell whether a condition is true."""
        ready = self.body.ready(piece, self.values)
        if ready.plain and ready.failing is None and ready.type.oid == BOOL and ready.one:
            return self.plain(ready) is True
        return await self.of_type(piece, _BOOL) is True

    async def integer(self, piece: Piece) -> int | None:
        """Return an expression's value as an integer."""
        found: int | None = await self.of_type(piece, SqlType(INT4))
        return found

    # -- statements --------------------------------------------------------------------------------

    async def query(self, piece: Piece) -> tuple[tuple[OutputColumn, ...], list[Row]]:
        """Run a piece that returns rows. Raises SqlError 42601 where it returns none."""
        outcome = await self.run(piece)
        if not isinstance(outcome, Rows):
            raise SqlError("42601", f"query is not a SELECT: {piece.text}")
        if hasattr(outcome.result, "batches"):
            raise AssertionError("rows come in batches where all of them were asked for")
        return outcome.columns, list(outcome.result.rows)

    async def fetched(self, piece: Piece) -> Outcome:
        """As ``run`` for the rows of a cursor or loop, which fetches them: CONTEXT names the piece only where
        it cannot be planned.
        """
        outcome = await self.run(piece, named=False)
        return (
            replace(outcome, columns=self.told(piece, outcome.columns))
            if isinstance(outcome, Rows)
            else outcome
        )

    async def opened(self, piece: Piece) -> Outcome:
        """As ``fetched`` for a cursor, of which nothing may be fetched: what cannot be planned is an error at once."""
        ready = self.body.ready(piece, self.values)
        with telling(piece.words):
            check_planned(self, ready.plan, ready.values(self.values))
        return await self.fetched(piece)

    def told(self, piece: Piece, columns: Sequence[OutputColumn]) -> tuple[OutputColumn, ...]:
        """Return the columns of a piece that has been run with the domains that clients are not told of."""
        return declared_columns(columns, self.body.ready(piece, self.values).declared)

    async def run(self, piece: Piece, *, named: bool = True, enough: int | None = None) -> Outcome:
        """Run a piece as a statement, until it has an outcome, rows gathered, or ``enough`` of them. Raises
        what it raises; CONTEXT names it.
        """
        first = self.body.ready(piece, self.values)  # what cannot be bound names its text itself

        def plan() -> tuple[Plan, Row]:
            ready = first if first.plan.fresh(self.session.catalog) else self.body.ready(piece, self.values)
            return ready.plan, ready.values(self.values)

        def again() -> None:
            nonlocal first
            self.body.forget(piece)
            first = self.body.ready(piece, self.values)

        self.sql = piece.words if named else None
        try:
            if named:
                self.check_planned(piece)
            return await self.run_plan(plan, again, enough)
        except Exception as error:
            if named or fails_planned(first.plan, first.values(self.values), self.session):
                tell_where(error, piece.words)
            raise
        finally:
            self.sql = None

    def check_planned(self, piece: Piece) -> None:
        """Raise what PostgreSQL meets while it plans a piece for its parameters' values, as often as it
        surely does that.
        """
        ready = self.body.ready(piece, self.values)
        if ready.checked < CUSTOM_PLANS:
            ready.checked += 1
            check_planned(self, ready.plan, ready.values(self.values))

    async def run_plan(
        self, plan_of: Callable[[], tuple[Plan, Row]], again: Callable[[], None], enough: int | None = None
    ) -> Outcome:
        """Run what ``plan_of`` returns as ``run_inner``. Raises SqlError 0A000 for a change where the
        function is not volatile.
        """
        if self.body.function.volatility == "v":
            return await run_inner(self.session, plan_of, again, enough)

        def allowed() -> tuple[Plan, Row]:
            plan, values = plan_of()
            if plan.bound.class_ is not StatementClass.READ_ONLY:
                raise SqlError("0A000", f"{plan.bound.tag} is not allowed in a non-volatile function")
            return plan, values

        return await run_inner(self.session, allowed, again, enough)

    # -- conversions -------------------------------------------------------------------------------

    async def cast(self, value: Any, source: SqlType, target: SqlType) -> Any:
        """Return a value as assignments convert it. Raises SqlError 42846, 42804 and what the conversion raises."""
        if source.oid == target.oid and target.typmod < 0:
            return value
        if source.oid == UNKNOWN:  # a literal in a row that was made without a type for it
            source = SqlType(TEXT)
        base = base_type(target)
        row = None if source.oid == base.oid else result_row(self.session.catalog, base.oid)
        if row is not None and (self.is_row(source)):
            record = self.record(value, source)
            made = None if record is None else await self.packed(record, record.types, base)
            return made if base == target else await self.cast(made, base, target)
        function = self.body.cast(source, target)
        if function is None:
            return value
        return await self.apply(function, (value,))

    async def apply(self, function: RowFunction, values: Row) -> Any:
        """Return the value of a compiled expression over ``$1`` ..."""
        if not function.may_suspend:
            return function((), Env(values, self.session, shared=Shared()))
        session = self.session
        ctx = ExecContext(
            txn=session.block.ensure_txn(), session=session, virtual=session.db.virtual, params=values, for_update=READS,
            cancelled=session.cancelled, steps={}, spark_start_ms=session.derived.spark_start_ms,
        )  # fmt: skip
        return await value_of(function, (), make_env(ctx))

    async def packed(self, row: Sequence[Any], types: Sequence[int], target: SqlType) -> bytes:
        """Return a row as a value of a composite type, by position: what is missing is NULL, what is too much
        is left out.
        """
        made = result_row(self.session.catalog, target.oid)
        if made is None:
            raise AssertionError(f"type {target.oid} is no row type")
        live = made.live
        values = [
            await self.cast(row[i], SqlType(types[i]), column.declared) if i < len(row) else None
            for i, column in enumerate(live)
        ]
        return pack_row(values, made.slots, tuple(c.type.oid for c in live), len(made.columns))

    def is_row(self, type_: SqlType) -> bool:
        """Tell whether values of a type are rows."""
        oid = base_oid(type_.oid)
        return oid == RECORD or result_row(self.session.catalog, oid) is not None

    def record(self, value: Any, type_: SqlType) -> RecordValue | None:
        """Return a row value as a record. Raises SqlError 42804 for what is no row."""
        if value is None or isinstance(value, RecordValue):
            return value
        row = result_row(self.session.catalog, base_oid(type_.oid))
        if row is None:
            raise SqlError("42804", "cannot assign non-composite value to a record variable")
        live = row.live
        declared = [c.declared for c in live]
        typmods = tuple([t.typmod for t in declared])
        return record_of(
            value, row.slots, tuple([t.oid for t in declared]), tuple([c.name for c in live]), typmods
        )

    # -- assignment --------------------------------------------------------------------------------

    async def assign(self, target: Target, value: Any, type_: SqlType) -> None:
        """Give a variable, or a part of it, a value of a type. Raises SqlError 22004, 42804, 42703, 55000."""
        if target.steps:
            await parts.assign_part(self, target, value, type_)
            return
        await self.store(target.variable, value, type_)

    async def store(self, number: int, value: Any, type_: SqlType) -> None:
        """Give a whole variable a value of a type."""
        variable = self.body.routine.variables[number]
        if variable.kind == "record":
            value = self.record(value, type_)
        elif variable.kind == "any":
            value = (type_.oid, value)
        elif type_ != variable.type:
            row = variable.kind == "row"
            if row and value is not None and not self.is_row(type_):
                raise SqlError("42804", "cannot assign non-composite value to a record variable")
            if value is not None or not row:
                value = await self.cast(value, type_, variable.type)
        if value is None and variable.not_null:
            raise SqlError(
                "22004", f'null value cannot be assigned to variable "{variable.name}" declared NOT NULL'
            )
        self.keep(number, value)

    def keep(self, number: int, value: Any) -> None:
        """Have a variable hold a value of its type."""
        form = self.body.row_form
        self.values[number] = form.open(value) if form is not None and number in self.body.opened else value

    async def into(self, into: Into, columns: Sequence[OutputColumn], row: Sequence[Any] | None) -> None:
        """Give variables the columns of a row; NULL where there is no row, or it has too few."""
        if row is not None:
            self._check_count(into, columns)
        if not into.whole:
            for i, target in enumerate(into.targets):
                if row is None or i >= len(columns):
                    await self.assign(target, None, SqlType(705))
                else:
                    await self.assign(target, row[i], columns[i].type)
            return
        number = into.targets[0].variable
        variable = self.body.routine.variables[number]
        types = tuple(c.type.oid for c in columns)
        if variable.kind == "record":
            names = tuple(c.name for c in columns)
            typmods = tuple(c.type.typmod for c in columns)
            held = (None,) * len(types) if row is None else row
            self.values[number] = RecordValue(held, types, names, typmods)
        elif row is None:
            # a row of NULLs; NOT NULL is asked of what is assigned, not of rows that are missing
            base = base_type(variable.type)
            self.keep(number, await self.packed((), (), base) if base == variable.type else None)
        else:
            base = base_type(variable.type)
            made = await self.packed(row, types, base)
            self.keep(number, made if base == variable.type else await self.cast(made, base, variable.type))

    def _check_count(self, into: Into, columns: Sequence[OutputColumn]) -> None:
        """Say where a row has not as many columns as variables wait for it, if somebody asks (``extra_checks``)."""
        wanted = len(into.targets)
        if into.whole:
            variable = self.body.routine.variables[into.targets[0].variable]
            row = result_row(self.session.catalog, variable.type.oid) if variable.kind == "row" else None
            if row is None:
                return
            wanted = len(row.live)
        if wanted == len(columns):
            return
        check = "strict_multi_assignment"
        level = extra_level(self.session, check)
        if level:
            tell_extra(
                self.session,
                check,
                "42804",
                "number of source and target fields in assignment does not match",
                detail=f"{check} check of {level} is active.",
                hint="Make sure the query returns the exact list of columns.",
            )


def declared_columns(columns: Sequence[OutputColumn], types: Sequence[SqlType]) -> tuple[OutputColumn, ...]:
    """Return columns with the types that they are declared of, where these are given."""
    if not types:
        return tuple(columns)
    return tuple([replace(c, type=t) for c, t in zip(columns, types, strict=False)])


def with_domains(outcome: Outcome, types: Sequence[SqlType]) -> Outcome:
    """Return the outcome of a statement, whose columns may be declared of domains."""
    if not types or not isinstance(outcome, Rows):
        return outcome
    return replace(outcome, columns=declared_columns(outcome.columns, types))


def _of_fields(value: Any, types: tuple[int, ...]) -> Any:
    """Return a row that knows of which domains its fields are."""
    return RecordValue(value, types, value.names, value.typmods) if isinstance(value, RecordValue) else value


def check_planned(frame: Frame, plan: Plan, values: Row) -> None:
    """Raise what PostgreSQL meets while it plans a query for these parameters: something that is constant
    then fails.
    """
    failing = openly(failing_in, plan.bound.statement, values, frame.session)
    if failing is not None:
        failing((), Env((), frame.session, shared=Shared()))


def fails_planned(plan: Plan, values: Row, session: Session) -> bool:
    """Tell whether PostgreSQL cannot plan a statement for these parameters: something that is constant then fails."""
    return openly(failing_in, plan.bound.statement, values, session) is not None


def _columns(piece: Piece, count: int) -> SqlError:
    what = "assignment source" if piece.target else "query"
    error = SqlError("42601", f"{what} returned {count} columns")
    tell_where(error, piece.words if piece.target else f"query: {piece.text}")
    return error


def affected(outcome: Outcome) -> int:
    """Return how many rows a statement returned, or changed."""
    if isinstance(outcome, Rows):
        return len(outcome.result.rows)  # type: ignore[union-attr]
    if not isinstance(outcome, Command):
        raise AssertionError(f"a statement ended as {type(outcome).__name__}")
    last = outcome.tag.rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else 0
