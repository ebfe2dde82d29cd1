"""Bodies of PL/pgSQL functions as Python: a generator whose control flow is that of the body.

    WHILE n < m LOOP            while True:
      n := n * 2;                   f.line, f.what = 3, 'WHILE'
      PERFORM tell(n);              if not x_1(v, e): break
    END LOOP;                       v[0] = x_2(v, e)             expressions over the variables alone: evaluated on the spot
                                    yield x_3                    all else: the driver awaits what the interpreter makes of it
                                    tick ... yield               now and then: others have their turn

``v`` are the call's variables, ``e`` an env with the session, ``f`` the frame. What cannot be bound before it
is reached, needs the shapes of records, a transaction, or rights, is left to the interpreter
(``engine.programs.plpgsql.interpreter``), statement by statement: so are errors of binding, which are those
of the statement when it runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.programs.plpgsql.signals import RETURN, Signal, after
from pgwire.codecs.errors import DataError
from pgwire.give_way import give_way
from planner.base.errors import SqlError
from planner.evaluate import Env, Shared
from planner.facts import BOOL, INT4
from planner.plpgsql import tree
from planner.plpgsql.bind import VALUE, direct_test, direct_value
from planner.plpgsql.variables import Source
from planner.types import SqlType
from planner.types.domains import is_domain

if TYPE_CHECKING:
    from engine.programs.plpgsql.body import Body, Ready
    from engine.programs.plpgsql.frame import Frame

TICKS: Final = 256
"""So many turns of loops run before others may have theirs."""

MAX_LINES: Final = 1000
"""Python compiles a text in one step, in which nobody else has a turn: a longer body is left to the interpreter."""

Operation: TypeAlias = "Callable[[Any], Awaitable[Any]]"
"""What an interpreter is asked to do: a function of it."""
Program: TypeAlias = "Callable[[list[Any], Env, Frame], Generator[Operation | None, Any, Signal | None]]"

_MAY_SIGNAL: Final = (
    tree.Block | tree.Case | tree.ForRows | tree.ForCursor | tree.ForEach | tree.ForInteger | tree.Exit
)
_LOOPS: Final = tree.Loop | tree.While | tree.ForInteger | tree.ForRows | tree.ForCursor | tree.ForEach
_INT4: Final = SqlType(INT4)


def has_loop(routine: tree.Routine) -> bool:
    """Tell whether a body holds a loop, so that it is worth compiling for one call."""
    return any(isinstance(s, _LOOPS) for s in _inner(routine.body))


def _inner(block: tree.Block) -> list[tree.Statement]:
    """Return the statements of a block and of blocks and conditions in it, as far as no loop is around them."""
    found: list[tree.Statement] = []
    stack: list[tree.Statement] = list(block.body)
    while stack:
        one = stack.pop()
        found.append(one)
        if isinstance(one, tree.Block):
            stack += one.body
        elif isinstance(one, tree.If):
            stack += [s for _, body in one.branches for s in body] + one.otherwise
    return found


def compiled(body: Body, scalar: SqlType | None) -> Program | None:
    """Return the program of a body that returns ``scalar`` (None: a row or nothing); None where Python cannot
    nest it so deep, or takes long.
    """
    return _Compiler(body, scalar).program()


class _Left(Exception):
    """A piece cannot be evaluated on the spot: the interpreter runs what it belongs to."""


class _Compiler:
    """Writes the source of one body; ``loops`` are the labels of the loops around what is written."""

    def __init__(self, body: Body, scalar: SqlType | None) -> None:
        self.body = body
        self.scalar = scalar
        self.values: list[Any] = [None] * len(body.routine.variables)
        self.names: dict[str, Any] = {
            "RETURN": RETURN, "after": after, "Env": Env, "Shared": Shared, "no_case": _no_case,
            "null_bound": _null_bound, "bad_step": _bad_step, "no_null": _no_null,
        }  # fmt: skip
        self.lines: list[str] = []
        self.depth = 1
        self.loops: list[str] = []

    def program(self) -> Program | None:
        self._emit("n = 0")
        self._emit("s = None")
        self._block(self.body.routine.body)
        self._emit("return None")
        self._emit("yield")  # a generator in any case
        if len(self.lines) > MAX_LINES:
            return None
        source = "def program(v, e, f):\n" + "\n".join(self.lines) + "\n"
        try:
            exec(compile(source, "<plpgsql>", "exec"), self.names)
        except (SyntaxError, RecursionError, MemoryError):
            return None
        made: Program = self.names.pop("program")
        return made

    def _emit(self, line: str) -> None:
        give_way()
        self.lines.append("    " * self.depth + line)

    def _name(self, value: Any) -> str:
        name = f"x_{len(self.names)}"
        self.names[name] = value
        return name

    # -- pieces ------------------------------------------------------------------------------------

    def _ready(self, piece: tree.Piece) -> Ready:
        """Return a piece that is an expression over variables. Raises _Left."""
        try:
            ready = self.body.ready(piece, self.values)
        except (SqlError, DataError):
            raise _Left from None  # it is an error when it runs, if it does
        dynamic = self.body.prepared(
            piece
        ).dynamic  # a record that holds nothing yet is NULL here, whatever it is when the piece runs
        fits = (
            ready.plain
            and ready.failing is None
            and ready.one
            and not ready.plan.bound.stable
            and not dynamic
        )
        if not fits or not all(map(self._is_at_hand, ready.sources)):
            raise _Left
        return ready

    def _is_at_hand(self, source: Source) -> bool:
        """Tell whether a parameter is a whole variable whose value is kept as expressions take it."""
        kind = self.body.routine.variables[source.variable].kind
        return source.field is None and kind in ("scalar", "row") and source.variable not in self.body.opened

    def _value(self, piece: tree.Piece, type_: SqlType | None) -> str:
        """Return the source of a piece's value, of ``type_`` if one is given. Raises _Left."""
        ready = self._ready(piece)
        try:
            function = direct_value(self.body.context().env, ready.plan.bound, ready.sources, type_)
            if function is None or function.may_suspend:
                raise _Left
            if ready.constant:
                return self._name(function((), Env((), self.body.session, shared=Shared())))
        except (SqlError, DataError):
            raise _Left from None
        return f"{self._name(function)}(v, e)"

    def _truth(self, piece: tree.Piece) -> str:
        """Return the source of a test."""
        try:
            ready = self._ready(piece)
            if ready.type.oid != BOOL or ready.constant:
                raise _Left
            test = direct_test(ready.plan.bound, ready.sources)
        except _Left:
            return f"(yield {self._name(lambda interpreter: interpreter.frame.truth(piece))})"
        return f"{self._name(test)}(v, e)"

    # -- statements --------------------------------------------------------------------------------

    def _statements(self, body: Sequence[tree.Statement]) -> None:
        if not body:
            self._emit("pass")
        for statement in body:
            self._place(statement)
            write = _WRITE.get(type(statement))
            before = len(self.lines), self.depth
            try:
                if write is None:
                    raise _Left
                write(self, statement)
            except _Left:
                del self.lines[before[0] :]
                self.depth = before[1]
                self._leave(statement)

    def _place(self, statement: tree.Statement) -> None:
        self._emit(f"f.line, f.what = {statement.line}, {statement.what!r}")

    def _leave(self, statement: tree.Statement) -> None:
        """Let the interpreter run a statement."""
        operation = self._name(lambda interpreter: interpreter.one(statement))
        if isinstance(statement, tree.Return):
            self._emit(f"yield {operation}")
            self._emit("return RETURN")
        elif isinstance(statement, _MAY_SIGNAL):
            self._emit(f"s = yield {operation}")
            self._signalled()
        else:
            self._emit(f"yield {operation}")

    def _signalled(self) -> None:
        """Hand on what a statement or an inner loop signals."""
        self._emit("if s is not None:")
        self.depth += 1
        if not self.loops:
            self._emit("return s")
        else:
            self._emit(f"ends, s = after(s, {self.loops[-1]!r})")
            self._emit("if ends: break")
            self._emit("continue")
        self.depth -= 1

    def _block(self, block: tree.Block) -> None:
        routine = self.body.routine
        if block.handlers or (block.label and _left_by_label(block)):
            self._emit(f"s = yield {self._name(lambda interpreter: interpreter.block(block))}")
            self._signalled()
            return
        variables = [routine.variables[number] for number in block.declares]
        try:
            mark = len(self.lines)
            if variables:
                self._emit("f.doing = 'during statement block local variable initialization'")
            for variable in variables:
                if variable.kind != "scalar" or (variable.default is None and is_domain(variable.type.oid)):
                    raise _Left
                self._emit(f"f.declaring = {variable.line}")
                if variable.cursor is not None:
                    source = repr(variable.name)  # a bound cursor names its portal, open or not
                elif variable.default is None:
                    source = "None"
                else:
                    source = self._value(variable.default, variable.type)
                self._emit(f"v[{variable.number}] = {source}")
                if variable.not_null:
                    self._emit(f"if v[{variable.number}] is None: raise no_null({variable.name!r})")
            self._emit("f.declaring, f.doing = 0, ''")
        except _Left:
            del self.lines[mark:]
            self._emit(f"yield {self._name(lambda interpreter: interpreter.declare(block))}")
        self._statements(block.body)

    def _assign(self, statement: tree.Assign) -> None:
        target = statement.target
        variable = self.body.routine.variables[target.variable]
        if variable.kind != "scalar":
            raise _Left
        if target.steps:
            self._assign_part(statement, variable)
            return
        source = self._value(statement.value, variable.type)
        if variable.not_null:
            self._emit(f"t = {source}")
            self._emit(f"if t is None: raise no_null({variable.name!r})")
            source = "t"
        self._emit(f"v[{variable.number}] = {source}")

    def _assign_part(self, statement: tree.Assign, variable: tree.Variable) -> None:
        """``a[i] := value``."""
        whole = Source(variable.number)
        try:
            part = self.body.part(statement.target, variable.type, whole, self.values, 0)
        except (SqlError, DataError):
            raise _Left from None
        if part.function is None or part.function.may_suspend or part.failing is not None:
            raise _Left
        if not all(s == VALUE or self._is_at_hand(s) for s in part.sources):
            raise _Left
        ready = self._ready(statement.value)
        if ready.constant:
            raise _Left  # errors name the assignment
        value = self._value(statement.value, None)
        cast = None
        if ready.type != part.type:
            try:
                cast = self.body.cast(ready.type, part.type)
            except SqlError:
                raise _Left from None
        if cast is not None and cast.may_suspend:
            raise _Left
        given = ", ".join("t" if s == VALUE else f"v[{s.variable}]" for s in part.sources)
        self._emit(f"t = {value}")
        if cast is not None:
            self._emit(f"t = {self._name(cast)}((), Env((t,), e.session, shared=e.shared))")
        self._emit(
            f"v[{variable.number}] = {self._name(part.function)}((), Env(({given},), e.session, shared=e.shared))"
        )

    def _if(self, statement: tree.If) -> None:
        for number, (condition, body) in enumerate(statement.branches):
            if number:
                self._emit("else:")
                self.depth += 1
            self._emit(f"if {self._truth(condition)}:")
            self._nested(body)
        if statement.otherwise:
            self._emit("else:")
            self._nested(statement.otherwise)
        self.depth -= len(statement.branches) - 1

    def _nested(self, body: Sequence[tree.Statement]) -> None:
        self.depth += 1
        self._statements(body)
        self.depth -= 1

    def _case(self, statement: tree.Case) -> None:
        if statement.subject is not None:
            raise _Left
        for condition, body in statement.whens:
            self._emit(f"if {self._truth(condition)}:")
            self._nested(body)
            self._emit("else:")
            self.depth += 1
        if statement.otherwise is None:
            self._emit("raise no_case()")
        else:
            self._statements(statement.otherwise)
        self.depth -= len(statement.whens)

    # -- loops -------------------------------------------------------------------------------------

    def _loop(self, statement: tree.Loop | tree.While) -> None:
        self._emit("s = None")
        self._emit("while True:")
        self.depth += 1
        self._tick(statement)
        if isinstance(statement, tree.While):
            self._emit(f"if not {self._truth(statement.condition)}: break")
        self._turn(statement.label, statement.body)
        self._signalled()

    def _for_integer(self, statement: tree.ForInteger) -> None:
        bounds = [self._value(statement.lower, _INT4), self._value(statement.upper, _INT4)]
        bounds.append("1" if statement.step is None else self._value(statement.step, _INT4))
        own = len(self.lines)
        names = [f"b{own}_{i}" for i in range(3)]
        for name, source, what in zip(names, bounds, ("lower bound", "upper bound", "BY value"), strict=True):
            self._emit(f"{name} = {source}")
            self._emit(f"if {name} is None: raise null_bound({what!r})")
        low, high, step = names
        self._emit(f"if {step} <= 0: raise bad_step()")
        turns = (
            f"range({low}, {high} - 1, -{step})" if statement.reverse else f"range({low}, {high} + 1, {step})"
        )
        self._emit(f"{low} = {turns}")
        self._emit("s = None")
        self._emit(f"for {high} in {low}:")
        self.depth += 1
        self._emit(f"v[{statement.variable}] = {high}")
        self._tick(None)
        self._turn(statement.label, statement.body)
        self._emit(f"v[{self.body.routine.found}] = {low}.start in {low}")
        self._signalled()

    def _tick(self, statement: tree.Statement | None) -> None:
        """Write the beginning of a turn."""
        if statement is not None:
            self._place(statement)
        self._emit("n += 1")
        self._emit(f"if n > {TICKS}:")
        self._emit("    n = 0")
        self._emit("    yield")

    def _turn(self, label: str, body: Sequence[tree.Statement]) -> None:
        """Write the body of a loop, and its end."""
        self.loops.append(label)
        self._statements(body)
        self.loops.pop()
        self.depth -= 1

    def _exit(self, statement: tree.Exit) -> None:
        if not self.loops:
            raise _Left
        word = "break" if statement.is_exit else "continue"
        own = not statement.label or statement.label == self.loops[-1]
        before = self.depth
        if statement.condition is not None:
            self._emit(f"if {self._truth(statement.condition)}:")
            self.depth += 1
        if not own:
            signal = Signal("exit" if statement.is_exit else "continue", statement.label)
            self._emit(f"s = {self._name(signal)}")
            word = "break"
        self._emit(word)
        self.depth = before

    # -- results -----------------------------------------------------------------------------------

    def _return(self, statement: tree.Return) -> None:
        if statement.value is not None:
            if self.scalar is None:
                raise _Left
            ready = self._ready(statement.value)
            if ready.type != self.scalar:
                raise _Left
            self._emit(f"f.result = ({self._value(statement.value, None)},)")
        self._emit("return RETURN")


_WRITE: Final[dict[type[tree.Statement], Callable[[_Compiler, Any], None]]] = {
    tree.Block: _Compiler._block,
    tree.Assign: _Compiler._assign,
    tree.If: _Compiler._if,
    tree.Case: _Compiler._case,
    tree.Loop: _Compiler._loop,
    tree.While: _Compiler._loop,
    tree.ForInteger: _Compiler._for_integer,
    tree.Exit: _Compiler._exit,
    tree.Return: _Compiler._return,
}


def _left_by_label(block: tree.Block) -> bool:
    """Tell whether a statement within a block leaves it by its label."""
    stack: list[Any] = list(block.body)
    while stack:
        one = stack.pop()
        if isinstance(one, list | tuple):
            stack += one
        elif isinstance(one, tree.Exit):
            if one.label == block.label:
                return True
        elif isinstance(one, tree.Block):
            stack += [one.body, [handler.body for handler in one.handlers]]
        elif isinstance(one, tree.If):
            stack += [[body for _, body in one.branches], one.otherwise]
        elif isinstance(one, tree.Case):
            stack += [[body for _, body in one.whens], one.otherwise or []]
        elif isinstance(one, _LOOPS):
            stack += one.body
    return False


def _no_case() -> SqlError:
    return SqlError("20000", "case not found", hint="CASE statement is missing ELSE part.")


def _no_null(name: str) -> SqlError:
    return SqlError("22004", f'null value cannot be assigned to variable "{name}" declared NOT NULL')


def _null_bound(what: str) -> SqlError:
    return SqlError("22004", f"{what} of FOR loop cannot be null")


def _bad_step() -> SqlError:
    return SqlError("22023", "BY value of FOR loop must be greater than zero")
