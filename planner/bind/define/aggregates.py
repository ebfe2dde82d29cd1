"""CREATE AGGREGATE: its options, in both syntaxes, to a definition whose functions are found by name and types.

    CREATE AGGREGATE avg2(float8) (SFUNC = acc, STYPE = float8[], FINALFUNC = done, INITCOND = '{0,0}')
        acc(float8[], float8) must return float8[]        done(float8[]) says what the aggregate returns

What is checked, and in which order, is PostgreSQL's (manual, CREATE AGGREGATE). Functions for partial
aggregation and sort operators are checked and kept; nothing here runs by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.define.functions import creation_schema_of, lacking_input, parameters_of, type_without_place
from planner.bind.expression.calls import groups_of
from planner.catalog import AggregateDef, FunctionDef
from planner.conversion.candidates import select
from planner.conversion.casts import coerce_type
from planner.conversion.pathways import CastContext, is_binary_coercible
from planner.conversion.polymorphic import POLYMORPHIC, can_coerce, consistent, enforce
from planner.conversion.resolve import signature_text
from planner.facts import (
    ANY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLENONARRAY,
    ANYELEMENT,
    ANYENUM,
    ANYNONARRAY,
    BYTEA,
    INTERNAL,
    UNKNOWN,
    ProcFact,
    facts,
)
from planner.query import Const, Expr
from planner.types import SqlType
from planner.types.facts import format_type

MAX_INPUTS: Final = 99
"""One less than functions take: a transition function takes the state, too."""

_SYNONYMS: Final = {"sfunc1": "sfunc", "stype1": "stype", "initcond1": "initcond"}
_KNOWN: Final = frozenset(
    {
        "sfunc", "finalfunc", "combinefunc", "serialfunc", "deserialfunc", "msfunc", "minvfunc", "mfinalfunc", "finalfunc_extra",
        "mfinalfunc_extra", "finalfunc_modify", "mfinalfunc_modify", "sortop", "basetype", "hypothetical", "stype", "sspace",
        "mstype", "msspace", "initcond", "minitcond", "parallel",
    }
)  # fmt: skip
_MODIFY: Final[Mapping[str, Literal["r", "s", "w"]]] = {"read_only": "r", "shareable": "s", "read_write": "w"}
_PARALLEL: Final[Mapping[str, Literal["u", "r", "s"]]] = {"unsafe": "u", "restricted": "r", "safe": "s"}


def bind_create_aggregate(context: BindContext, node: ast.CreateAggregate) -> st.CreateAggregate:
    """CREATE [OR REPLACE] AGGREGATE.

    What is wrong with it is told when it runs, after the warnings about options that nobody knows: SqlError
    42P13, 42601, 42883, 42804, 42704, 22P02 ... as PostgreSQL.
    """
    options: dict[str, ast.Option] = {}
    warnings: list[str] = []
    for option in node.options:
        name = _SYNONYMS.get(option.name, option.name)
        if name in _KNOWN:
            options[name] = option
        else:
            warnings.append(f'aggregate attribute "{option.name}" not recognized')
    definition = _Definition(context, node, options)
    made: FunctionDef | None = None
    wrong: SqlError | None = None
    try:
        made = definition.function()
    except SqlError as error:
        wrong = error.copy()
    return st.CreateAggregate(
        function=made,
        replace=node.replace,
        warnings=tuple(warnings),
        internal=definition.internal,
        initials=tuple(definition.initials),
        error=wrong,
    )


def _wrong(message: str, detail: str | None = None) -> SqlError:
    return SqlError("42P13", message, detail=detail)


@dataclass(frozen=True, slots=True)
class _Found:
    """A function that an aggregate is made of: what it returns for the types that it is called with."""

    proc: ProcFact
    result: int


class _Definition:
    """One CREATE AGGREGATE on the way to what it defines."""

    def __init__(
        self, context: BindContext, node: ast.CreateAggregate, options: Mapping[str, ast.Option]
    ) -> None:
        self.context = context
        self.node = node
        self.options = options
        self.internal = False  # whether a state is of type internal
        self.initials: list[Expr] = []

    # -- options -----------------------------------------------------------------------------------

    def _given(self, name: str) -> Any:
        """Return what an option says, None where it is not there. Raises SqlError 42601 where it says nothing."""
        option = self.options.get(name)
        if option is not None and option.value is None:
            raise SqlError("42601", f"{option.name} requires a parameter")
        return None if option is None else option.value

    def _text(self, name: str, default: str | None = None) -> str | None:
        value = self._given(name)
        if value is None:
            return default
        if isinstance(value, ast.TypeName):
            return ".".join(value.names) + "[]" * len(value.dims)
        if isinstance(value, ast.NumberText):
            return value.text
        return ".".join(value) if isinstance(value, tuple) else str(value)

    def _qualified(self, name: str) -> ast.Name:
        """Return the name that an option gives, () where it is not there."""
        value = self._given(name)
        if value is None:
            return ()
        if isinstance(value, ast.TypeName):
            return value.names
        if isinstance(value, tuple):
            return value
        if isinstance(value, str):
            return (value,)
        raise SqlError("42601", f"argument of {self.options[name].name} must be a name")

    def _type_name(self, name: str) -> ast.TypeName | None:
        value = self._given(name)
        if value is None or isinstance(value, ast.TypeName):
            return value
        if isinstance(value, str):
            return ast.TypeName(names=(value,))
        raise SqlError("42601", f"argument of {self.options[name].name} must be a type name")

    def _flag(self, name: str) -> bool:
        option = self.options.get(name)
        if option is None:
            return False
        if option.value is None:
            return True
        word = str(self._text(name)).lower()
        if word in ("true", "on", "1"):
            return True
        if word in ("false", "off", "0"):
            return False
        raise SqlError("42601", f"{option.name} requires a Boolean value")

    def _space(self, name: str) -> int:
        option = self.options.get(name)
        if option is None:
            return 0
        if option.value is None or isinstance(option.value, bool) or not isinstance(option.value, int):
            raise SqlError("42601", f"{option.name} requires an integer value")
        return option.value

    def _modify(self, name: str, kind: str) -> Literal["r", "s", "w"]:
        word = self._text(name)
        if word is None:
            return "r" if kind == "n" else "w"
        if word not in _MODIFY:
            raise SqlError("42601", f'parameter "{name}" must be READ_ONLY, SHAREABLE, or READ_WRITE')
        return _MODIFY[word]

    # -- the definition ----------------------------------------------------------------------------

    def function(self) -> FunctionDef:
        """Return what is defined, without oids of its own."""
        node = self.node
        schema = creation_schema_of(self.context, node.name)
        names = {
            option: self._qualified(option)
            for option in (
                "sfunc", "finalfunc", "combinefunc", "serialfunc", "deserialfunc", "msfunc", "minvfunc", "mfinalfunc", "sortop",
            )
        }  # fmt: skip
        state_type, moving_type = self._type_name("stype"), self._type_name("mstype")
        parallel = str(self._text("parallel", "unsafe"))
        if state_type is None:
            raise _wrong("aggregate stype must be specified")
        if not names["sfunc"]:
            raise _wrong("aggregate sfunc must be specified")
        self._check_moving_options(moving_type is not None, names)
        kind = self._kind()
        modify, moving_modify = (self._modify(o, kind) for o in ("finalfunc_modify", "mfinalfunc_modify"))
        modes, labels, inputs = self._inputs()
        state = self._state_type(state_type)
        if bool(names["serialfunc"]) != bool(names["deserialfunc"]):
            raise _wrong("must specify both or neither of serialization and deserialization functions")
        if names["serialfunc"] and state != INTERNAL:
            raise _wrong(
                "serialization functions may be specified only when the aggregate transition data type is internal"
            )
        moving = 0 if moving_type is None else self._state_type(moving_type)
        for option, type_ in (("initcond", state), ("minitcond", moving)):
            self._check_initial(self._text(option), type_)
        if parallel not in _PARALLEL:
            raise SqlError("42601", 'parameter "parallel" must be SAFE, RESTRICTED, or UNSAFE')
        made = AggregateDef(
            kind=kind, direct=max(node.direct, 0) if kind != "n" else 0, transition=0, state=state,
            state_space=self._space("sspace"), initial=self._text("initcond"),
            final_extra=self._flag("finalfunc_extra"), final_modify=modify, moving_state=moving,
            moving_state_space=self._space("msspace"), moving_initial=self._text("minitcond"),
            moving_final_extra=self._flag("mfinalfunc_extra"), moving_final_modify=moving_modify,
        )  # fmt: skip
        made, result = _Functions(self.context, made, inputs, modes, names).found()
        return FunctionDef(
            oid=0, schema_oid=0, schema=schema, name=node.name[-1], modes=modes, names=labels, types=inputs, result=result,
            volatility="i", parallel=_PARALLEL[parallel], cost=1, source="aggregate_dummy", kind="a", language="internal",
            aggregate=made,
        )  # fmt: skip

    def _kind(self) -> Literal["n", "o", "h"]:
        if self._flag("hypothetical"):
            if self.node.direct < 0:
                raise _wrong("only ordered-set aggregates can be hypothetical")
            return "h"
        return "n" if self.node.direct < 0 else "o"

    def _check_moving_options(self, moving: bool, names: Mapping[str, ast.Name]) -> None:
        if moving:
            for option in ("msfunc", "minvfunc"):
                if not names[option]:
                    raise _wrong(f"aggregate {option} must be specified when mstype is specified")
            return
        given = {
            "msfunc": bool(names["msfunc"]),
            "minvfunc": bool(names["minvfunc"]),
            "mfinalfunc": bool(names["mfinalfunc"]),
            "msspace": self._space("msspace") != 0,
            "minitcond": "minitcond" in self.options,
        }
        for option, is_there in given.items():
            if is_there:
                raise _wrong(f"aggregate {option} must not be specified without mstype")

    def _inputs(self) -> tuple[tuple[Literal["i", "v"], ...], tuple[str, ...], tuple[int, ...]]:
        """Return modes, names and types of what it aggregates."""
        base = self._type_name("basetype")
        if self.node.parameters is None:
            if base is None:
                raise _wrong("aggregate input type must be specified")
            if ".".join(base.names).lower() == "any" and not base.dims:
                return (), (), ()
            return ("i",), ("",), (type_without_place(self.context, base),)
        if base is not None:
            raise _wrong("basetype is redundant with aggregate input type specification")
        modes, names, types, _ = parameters_of(self.context, self.node.parameters, "aggregates")
        return modes, names, types

    def _state_type(self, name: ast.TypeName) -> int:
        oid = type_without_place(self.context, name)
        fact = facts().types.get(oid)
        if fact is not None and fact.kind == "p" and oid not in POLYMORPHIC and oid != INTERNAL:
            raise _wrong(f"aggregate transition data type cannot be {format_type(oid)}")
        self.internal = self.internal or oid == INTERNAL
        return oid

    def _check_initial(self, text: str | None, type_: int) -> None:
        fact = facts().types.get(type_)
        if text is not None and not (fact is not None and fact.kind == "p"):
            unknown = Const(type=SqlType(UNKNOWN), value=text)
            self.initials.append(coerce_type(unknown, SqlType(type_), CastContext.EXPLICIT, self.context.env))


# --- the functions --------------------------------------------------------------------------------


class _Functions:
    """Finds the functions that an aggregate is made of, and what it returns."""

    def __init__(
        self,
        context: BindContext,
        made: AggregateDef,
        inputs: tuple[int, ...],
        modes: Sequence[str],
        names: Mapping[str, ast.Name],
    ) -> None:
        self.context = context
        self.made = made
        self.inputs = inputs
        self.names = names
        self.any = "v" in modes and inputs[-1] == ANY
        self.variadic = "v" in modes

    def found(self) -> tuple[AggregateDef, int]:
        """Return the definition with its functions, and the type of the result. Raises SqlError 42P13, 42804,
        42883 ...
        """
        made, names, inputs = self.made, self.names, self.inputs
        self._check_signature()
        transition = self._transition("sfunc", "transition", made.state, made.initial)
        changes: dict[str, Any] = {"transition": transition.proc.oid}
        if made.moving_state:
            moving = self._transition("msfunc", "transition", made.moving_state, made.moving_initial)
            inverse = self._lookup("minvfunc", (made.moving_state, *self._aggregated), self.any)
            self._returns(inverse, "inverse transition", "minvfunc", made.moving_state)
            if moving.proc.strict != inverse.proc.strict:
                raise _wrong("strictness of aggregate's forward and inverse transition functions must match")
            changes |= {"moving_transition": moving.proc.oid, "moving_inverse": inverse.proc.oid}
        final, result = self._final("finalfunc", made.state, made.final_extra)
        changes["final"] = final
        if names["combinefunc"]:
            combine = self._lookup("combinefunc", (made.state, made.state), False)
            self._returns(combine, "combine", "combinefunc", made.state)
            if made.state == INTERNAL and combine.proc.strict:
                raise _wrong("combine function with transition type internal must not be declared STRICT")
            changes["combine"] = combine.proc.oid
        for option, field, types, returned in (
            ("serialfunc", "serial", (INTERNAL,), BYTEA),
            ("deserialfunc", "deserial", (BYTEA, INTERNAL), INTERNAL),
        ):
            if names[option]:
                one = self._lookup(option, types, False)
                word = "serialization" if field == "serial" else "deserialization"
                self._returns(one, word, option, returned)
                changes[field] = one.proc.oid
        detail = lacking_input(result, inputs)
        if detail is not None:
            raise _wrong("cannot determine result data type", detail)
        if result == INTERNAL and INTERNAL not in inputs:
            raise _wrong(
                'unsafe use of pseudo-type "internal"',
                "A result of type internal requires at least one input of type internal.",
            )
        if made.moving_state:
            moving_final, other = self._final("mfinalfunc", made.moving_state, made.moving_final_extra)
            changes["moving_final"] = moving_final
            if other != result:
                raise _wrong(
                    f"moving-aggregate implementation returns type {format_type(other)}, "
                    f"but plain implementation returns type {format_type(result)}"
                )
        if names["sortop"]:
            changes["sort_operator"] = self._sort_operator()
        return replace(made, **changes), result

    def _check_signature(self) -> None:
        made, inputs = self.made, self.inputs
        if len(inputs) > MAX_INPUTS:
            raise SqlError("54023", f"aggregates cannot have more than {MAX_INPUTS} arguments")
        for state in (made.state, made.moving_state):
            detail = lacking_input(state, inputs)
            if detail is not None:
                raise _wrong("cannot determine transition data type", detail)
        if made.kind != "n" and self.variadic and not self.any:
            raise SqlError("0A000", "a variadic ordered-set aggregate must use VARIADIC type ANY")
        if made.kind == "h":
            aggregated = len(inputs) - made.direct
            matching = inputs[made.direct - aggregated : made.direct] == inputs[made.direct :]
            if made.direct < aggregated or not matching:
                raise _wrong(
                    "a hypothetical-set aggregate must have direct arguments matching its aggregated arguments"
                )

    @property
    def _aggregated(self) -> tuple[int, ...]:
        """The types of what a transition function gets of each row."""
        if self.made.kind == "n":
            return self.inputs
        return self.inputs[self.made.direct :] or self.inputs[-1:]

    def _transition(self, option: str, word: str, state: int, initial: str | None) -> _Found:
        found = self._lookup(option, (state, *self._aggregated), self.any)
        self._returns(found, word, option, state)
        if found.proc.strict and initial is None:
            inputs = self.inputs
            if not inputs or not (inputs[0] == state or is_binary_coercible(inputs[0], state)):
                raise _wrong(
                    "must not omit initial value when transition function is strict and transition type is not compatible "
                    "with input type"
                )
        return found

    def _returns(self, found: _Found, word: str, option: str, wanted: int) -> None:
        if found.result != wanted:
            name = ".".join(self.names[option])
            raise SqlError("42804", f"return type of {word} function {name} is not {format_type(wanted)}")

    def _final(self, option: str, state: int, extra: bool) -> tuple[int, int]:
        """Return (its oid or 0, what it returns)."""
        if not self.names[option]:
            return 0, state
        direct = self.inputs[: self.made.direct]
        types = (state, *(self.inputs if extra else direct))
        whole = extra or (self.made.kind != "n" and self.made.direct == len(self.inputs))
        found = self._lookup(option, types, self.any and whole)
        if extra and found.proc.strict:
            raise _wrong("final function with extra arguments must not be declared STRICT")
        return found.proc.oid, found.result

    def _sort_operator(self) -> int:
        if len(self.inputs) != 1:
            raise _wrong("sort operator can only be specified for single-argument aggregates")
        name, (type_,) = self.names["sortop"], self.inputs
        for operator in facts().operators_by_name.get(name[-1], ()):
            if (operator.left, operator.right) == (type_, type_) and name[:-1] in ((), ("pg_catalog",)):
                return operator.oid
        shown = format_type(type_)
        raise SqlError("42883", f"operator does not exist: {shown} {'.'.join(name)} {shown}")

    def _lookup(self, option: str, types: tuple[int, ...], variadic: bool) -> _Found:
        """Return the function of a name that takes ``types`` as they are. Raises SqlError 42883, 42804."""
        name = self.names[option]
        shown = ".".join(name)
        found = self._candidate(name, types)
        if found is None or found.kind != "f":
            raise SqlError("42883", f"function {signature_text(shown, types)} does not exist")
        if found.returns_set:
            raise SqlError("42804", f"function {signature_text(shown, types)} returns a set")
        if variadic and found.variadic != ANY:
            raise SqlError(
                "42804",
                f"function {signature_text(shown, types)} must accept VARIADIC ANY to be used in this aggregate",
            )
        declared, result = _applied(types, found.arg_types, found.result)
        for have, want in zip(types, declared, strict=True):
            if have != want and want != ANY and not is_binary_coercible(have, want):
                raise SqlError(
                    "42804", f"function {signature_text(shown, declared)} requires run-time type coercion"
                )
        return _Found(found, result)

    def _candidate(self, name: ast.Name, types: tuple[int, ...]) -> ProcFact | None:
        schema, own = name[-2] if len(name) > 1 else "", name[-1]
        if schema and not self.context.has_schema(schema, None):
            raise SqlError("3F000", f'schema "{schema}" does not exist')
        groups = groups_of(self.context, schema, own)
        if groups is None:
            groups = [facts().procs_by_name.get(own, ())] if schema in ("", "pg_catalog") else []
        procs: list[ProcFact] = []
        for group in groups:  # what comes first on the path hides what has the same types
            procs += [p for p in group if all(p.arg_types != q.arg_types for q in procs)]
        procs = [p for p in procs if len(p.arg_types) == len(types)]
        exact = next((p for p in procs if p.arg_types == types), None)
        if exact is not None:
            return exact
        fitting = [i for i, p in enumerate(procs) if _fits(types, p.arg_types)]
        if len(fitting) > 1:
            chosen = select(types, [p.arg_types for p in procs], fitting)
            return None if chosen is None else procs[chosen]
        return procs[fitting[0]] if fitting else None


def _fits(types: Sequence[int], declared: Sequence[int]) -> bool:
    """Tell whether a function with ``declared`` can be called with ``types``, which may be polymorphic themselves."""
    told = [(have, want) for have, want in zip(types, declared, strict=True) if have != want]
    if any(have in POLYMORPHIC for have, want in told if want != ANY):
        return False
    plain = [(have, want) for have, want in told if want not in POLYMORPHIC]
    if not all(want == ANY or can_coerce(have, want, CastContext.IMPLICIT) for have, want in plain):
        return False
    made = [(have, want) for have, want in told if want in POLYMORPHIC]
    return consistent([have for have, _ in made], [want for _, want in made])


_OPEN: Final = {ANYENUM: ANYELEMENT, ANYNONARRAY: ANYELEMENT, ANYCOMPATIBLENONARRAY: ANYCOMPATIBLE}
"""What a polymorphic result is where its arguments are polymorphic themselves."""


def _applied(types: Sequence[int], declared: Sequence[int], result: int) -> tuple[tuple[int, ...], int]:
    """Return what the parameters and the result stand for in a call with ``types``; those that are
    polymorphic stay so.
    """
    told = [i for i, (have, want) in enumerate(zip(types, declared, strict=True)) if have != want]
    if not any(declared[i] in POLYMORPHIC for i in told):
        return tuple(declared), _OPEN.get(result, result)
    made, given = enforce([types[i] for i in told], [declared[i] for i in told], result)
    places = dict(zip(told, made, strict=True))
    return tuple(places.get(i, want) for i, want in enumerate(declared)), given
