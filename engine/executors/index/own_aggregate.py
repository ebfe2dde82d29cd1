"""Users' aggregates as they run: a state that goes from row to row by an expression or a call.

    initial --row--> transition(initial, a1) --row--> transition(..., a2) ... --> final(state)

A strict transition function is not called for rows that have a NULL; without an INITCOND the first value of
the first other row is the state after it (manual, CREATE AGGREGATE). Each step may have to wait for a
function that runs statements, so all of this is generators, called with ``yield from``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from engine.base.where import tell_where
from engine.executors.index.state import BATCH, Item, evaluate
from pgwire.codecs.errors import DataError
from planner.evaluate import Env, Layout, RowFunction, compile_expr
from planner.functions.aggregates.folds import FOLDS
from planner.query import STEP_INPUT, AggregateSteps, Expr, FuncExpr, RelabelType, Var

Value = Generator[Item, None, Any]


class _Nothing:
    """What stands for a state where there is none."""


NOTHING = _Nothing()
"""Before the first row of a strict aggregate without an INITCOND."""
_UNBEGUN = _Nothing()


def _value(function: RowFunction, row: Any, e: Env) -> Value:
    if function.may_suspend:
        return (yield from evaluate(function, row, e))
    return function(row, e)


class _Told:
    """A function whose errors have the SQL function in their CONTEXT that it is the body of."""

    __slots__ = ("function", "grows", "may_suspend", "where")

    def __init__(self, function: RowFunction, name: str) -> None:
        self.function = function
        self.may_suspend, self.grows = function.may_suspend, function.grows
        self.where = f'SQL function "{name}" statement 1'

    def __call__(self, r: Any, e: Env) -> Any:
        try:
            return self.function(r, e)
        except DataError as error:
            tell_where(error, self.where)
            raise


def _told(function: RowFunction, name: str) -> RowFunction:
    return _Told(function, name) if name else function


def _fold(transition: Expr) -> Callable[[Any, Sequence[Any]], Any] | None:
    """Return what applies a transition of one value to many at once, where there is such a form."""
    if not isinstance(transition, FuncExpr) or transition.proc not in FOLDS:
        return None
    inputs = [arg.arg if isinstance(arg, RelabelType) else arg for arg in transition.args]
    if [x.attnum if isinstance(x, Var) and x.range == STEP_INPUT else 0 for x in inputs] != [1, 2]:
        return None
    form, types = FOLDS[transition.proc], tuple(x.type.oid for x in transition.args)
    return lambda state, values: form(state, values, types)


class Steps:
    """The compiled steps of an aggregate whose transitions take ``inputs`` values, and its final function
    ``direct`` ones.
    """

    def __init__(self, steps: AggregateSteps, inputs: int, direct: int = 0) -> None:
        layout = Layout(columns={(STEP_INPUT, i): i - 1 for i in range(1, max(inputs, direct) + 2)})

        def compiled(expr: Expr | None, within: str = "") -> RowFunction | None:
            return None if expr is None else _told(compile_expr(expr, layout), within)

        step, final, inverse = steps.within
        self.strict = steps.strict
        self.first = compiled(steps.initial)
        self.transition = _told(compile_expr(steps.transition, layout), step)
        self.inverse = compiled(steps.inverse, inverse)
        self.final = compiled(steps.final, final)
        self.fold = _fold(steps.transition)

    def start(self, e: Env) -> Value:
        """Return the state before the first row."""
        if self.first is None:
            return NOTHING if self.strict else None
        return (yield from _value(self.first, (), e))

    def feed(self, state: Any, rows: Sequence[Sequence[Any]], e: Env) -> Value:
        """Return the state after some rows, each the values of the aggregate's arguments."""
        if self.fold is not None and len(rows) > 1:
            return self._folded(state, [row[0] for row in rows])
        transition, strict = self.transition, self.strict
        waits = transition.may_suspend
        for number, values in enumerate(rows):
            if number and number % BATCH == 0:
                yield None
            if strict and None in values:
                continue
            if state is NOTHING:
                state = values[0]
            elif strict and state is None:
                break  # the function is not called with a NULL, and what it returned stays
            elif waits:
                state = yield from evaluate(transition, (state, *values), e)
            else:
                state = transition((state, *values), e)
        return state

    def _folded(self, state: Any, values: list[Any]) -> Any:
        if self.fold is None:
            raise AssertionError("the aggregate has no function to fold with")
        if self.strict:
            values = [value for value in values if value is not None]
            if state is NOTHING and values:
                state, *values = values
            if state is None:
                return None
        return self.fold(state, values) if values else state

    def result(self, state: Any, direct: Sequence[Any], e: Env) -> Value:
        """Return what the aggregate gives for a state."""
        if state is NOTHING:
            state = None
        if self.final is None:
            return state
        return (yield from _value(self.final, (state, *direct), e))


class Done:
    """The result of an aggregate, in the place of its state."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def result(self) -> Any:
        """Return it."""
        return self.value


class Held:
    """The state of a group that is fed as rows come."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: Any = _UNBEGUN

    def feed(self, steps: Steps, rows: Sequence[Sequence[Any]], e: Env) -> Generator[Item, None, None]:
        """Go on with rows."""
        if self.state is _UNBEGUN:
            self.state = yield from steps.start(e)
        self.state = yield from steps.feed(self.state, rows, e)
