"""How a call of a user's aggregate is computed: its functions as expressions over the state and a row's values.

    CREATE AGGREGATE total(int) (SFUNC = plus, STYPE = bigint, FINALFUNC = shown)
    total(o.n)      initial      NULL
                    transition   plus($state, $1)     its body in its place where that is an expression, else a call that stays
                    final        shown($state)

Types are those of the call: where the aggregate is polymorphic, its state is of the type that the arguments decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.expression.calls import proc_fact
from planner.bind.expression.funcs import users_call
from planner.bind.scope import Scope
from planner.catalog import AggregateDef, FunctionDef
from planner.conversion.casts import coerce_type
from planner.conversion.pathways import CastContext, is_binary_coercible
from planner.conversion.polymorphic import enforce
from planner.conversion.resolve import ResolvedFunction
from planner.facts import ANY, INTERNAL, UNKNOWN, ProcFact, facts
from planner.query import (
    STEP_INPUT,
    Aggregate,
    AggregateSteps,
    Const,
    Expr,
    FuncExpr,
    RelabelType,
    SqlCall,
    Var,
    WindowFunc,
)
from planner.query.walk import walk
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID, format_type

Visit = Callable[[Expr], Expr]


def with_steps(context: BindContext, call: Aggregate | WindowFunc, visit: Visit) -> Any:
    """Return a call of a user's aggregate as it is run; ``visit`` puts bodies in the place of calls.

    Raises SqlError 42883 where the aggregate has gone, 22P02 and its kin where its INITCOND is no value of
    the state's type, 42P13 where functions have been replaced by ones that do not fit it.
    """
    own = call.own
    if own is None:
        raise AssertionError("the aggregate is no user's")
    function = context.catalog.function_by_oid(call.proc)
    if function is None or function.aggregate is None:
        raise SqlError("42883", f"aggregate {own.name} does not exist")
    made = function.aggregate
    direct: tuple[Expr, ...] = ()
    inputs = call.args
    if isinstance(call, Aggregate) and made.kind != "n":
        direct, inputs = call.direct, tuple(key.expr for key in call.order)
    signature = _signature(context, function)
    stands_for = built_in_of(made) if made.state == INTERNAL else 0
    windowed = isinstance(call, WindowFunc)
    if stands_for and not (windowed and any(oid >= FIRST_USER_OID for oid in made.functions)):
        if made.initial is not None:
            raise SqlError("0A000", "cannot accept a value of type internal")
        if windowed and made.final_modify != "r":
            raise no_window(signature)
        return replace(call, own=replace(own, stands_for=stands_for))
    steps = _Steps(context, function, made, [x.type.oid for x in direct], [x.type.oid for x in inputs], visit)
    moving = steps.moving() if windowed and made.moving_state else None
    return replace(call, own=replace(own, steps=steps.plain(), moving=moving, signature=signature))


def no_window(signature: str) -> SqlError:
    """Return 0A000 for an aggregate whose final function changes the state, over a window."""
    return SqlError("0A000", f"aggregate function {signature} does not support use as a window function")


def _signature(context: BindContext, function: FunctionDef) -> str:
    name = f"{function.name}({','.join(map(format_type, function.inputs))})"
    return name if function.schema in context.search_path else f"{function.schema}.{name}"


def built_in_of(made: AggregateDef) -> int:
    """Return the built-in aggregate that is made of the same functions, 0 if there is none."""
    for proc, fact in facts().aggregates.items():
        if (fact.transition, fact.final, fact.kind) == (made.transition, made.final, made.kind):
            return proc
    return 0


class _Steps:
    """The functions of one aggregate, called with the types of one call."""

    def __init__(
        self,
        context: BindContext,
        function: FunctionDef,
        made: AggregateDef,
        direct: Sequence[int],
        inputs: Sequence[int],
        visit: Visit,
    ) -> None:
        self.context = context
        self.function = function
        self.made = made
        self.direct = direct
        self.inputs = inputs
        self.visit = visit
        actual = [*direct, *inputs]
        declared = list(function.inputs[: len(actual)])
        declared += [ANY] * (len(actual) - len(declared))
        self.actual, self.declared = actual, declared

    def plain(self) -> AggregateSteps:
        """Return how it is computed."""
        made = self.made
        steps = self._steps(made.state, made.initial, made.transition, made.final, made.final_extra)
        return replace(steps, modify=made.final_modify)

    def moving(self) -> AggregateSteps:
        """Return how it is computed over frames whose start moves."""
        made = self.made
        steps = self._steps(
            made.moving_state,
            made.moving_initial,
            made.moving_transition,
            made.moving_final,
            made.moving_final_extra,
        )
        inverse = self._call(made.moving_inverse, self._of_row(self._state(made.moving_state)))
        if steps.strict != self._fact(made.moving_inverse).strict:  # of which one has been replaced
            raise SqlError(
                "42P13", "strictness of aggregate's forward and inverse transition functions must match"
            )
        return replace(
            steps,
            inverse=inverse,
            within=(*steps.within[:2], self._within(made.moving_inverse, inverse)),
            modify=made.moving_final_modify,
        )

    def _steps(
        self, declared: int, initial: str | None, transition: int, final: int, extra: bool
    ) -> AggregateSteps:
        state = self._state(declared)
        first = None
        if initial is not None:
            unknown = Const(type=SqlType(UNKNOWN), value=initial)
            first = coerce_type(unknown, SqlType(state), CastContext.EXPLICIT, self.context.env)
        last = None
        if final:
            inputs: list[Expr] = [_input(1, state)]
            inputs += [_input(i, oid) for i, oid in enumerate(self.direct, 2)]
            if extra:
                inputs += [Const(type=SqlType(oid), value=None) for oid in self.inputs]
            last = self._call(final, inputs)
        strict = self._fact(transition).strict
        if strict and first is None and not (self.inputs and is_binary_coercible(self.inputs[0], state)):
            raise SqlError(  # it has become strict
                "42P13",
                f"aggregate {self.function.oid} needs to have compatible input type and transition type",
            )
        step = self._call(transition, self._of_row(state))
        return AggregateSteps(
            initial=first,
            transition=step,
            strict=strict,
            final=last,
            within=(self._within(transition, step), self._within(final, last), ""),
        )

    def _within(self, oid: int, made: Expr | None) -> str:
        """Return the name of a function whose body an expression is."""
        function = self.context.catalog.function_by_oid(oid)
        if function is None or function.internal or made is None:
            return ""
        called = any(isinstance(node, SqlCall) and node.proc == oid for node in walk(made))
        return "" if called else function.name

    def _state(self, declared: int) -> int:
        """Return the type of the state in this call."""
        return enforce(self.actual, self.declared, declared)[1]

    def _of_row(self, state: int) -> list[Expr]:
        return [_input(1, state), *(_input(i, oid) for i, oid in enumerate(self.inputs, 2))]

    def _fact(self, oid: int) -> ProcFact:
        function = self.context.catalog.function_by_oid(oid)
        if function is not None:
            return proc_fact(function)
        return facts().procs[oid]

    def _call(self, oid: int, inputs: Sequence[Expr]) -> Expr:
        """Return a call of a function by oid, with inputs of types that are as good as its own."""
        proc = self._fact(oid)
        actual = [x.type.oid for x in inputs]
        declared = list(proc.arg_types[: len(actual)])
        declared += [ANY] * (len(actual) - len(declared))
        types, result = enforce(actual, declared, proc.result)
        args = [
            x if want == ANY or given == x.type.oid else RelabelType(type=SqlType(given), arg=x)
            for x, want, given in zip(inputs, declared, types, strict=True)
        ]
        if self.context.catalog.function_by_oid(oid) is None:
            return FuncExpr(type=SqlType(result), proc=oid, args=tuple(args))
        found = ResolvedFunction("call", proc, types, result, tuple(range(len(args))))
        before = set(self.context.functions)
        made = self.visit(users_call(Scope(context=self.context), found, args, None, None))
        if oid not in before:
            self.context.functions.discard(oid)  # whoever owns the aggregate calls it, not who calls that
        return made


def _input(number: int, oid: int) -> Var:
    return Var(type=SqlType(oid), range=STEP_INPUT, attnum=number)


def is_own(node: object) -> bool:
    """Tell whether a node is a call of a user's aggregate that is not yet as it is run."""
    return (
        isinstance(node, Aggregate | WindowFunc)
        and node.own is not None
        and node.own.steps is None
        and not node.own.stands_for
    )
