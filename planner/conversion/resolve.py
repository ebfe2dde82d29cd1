"""Which operator or function a call means (manual 10.2, 10.3), and building the call.

    resolve:  name + argument types          -> one pg_operator / pg_proc row      (pure, cached)
    make:     that row + argument expressions -> OpExpr / FuncExpr arguments        (coercions inserted)

Candidates are thinned in PostgreSQL's order: exact match; can be coerced implicitly; most exact matches;
most exact or preferred matches; the category unknown literals point to; all known arguments of one type.
Whatever is left undecided is 42725, nothing left is 42883, both with the manual's hints.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.base.errors import Span, SqlError
from planner.conversion.candidates import coercible, select
from planner.conversion.casts import coerce_type
from planner.conversion.composite import same_composite
from planner.conversion.env import CoerceEnv
from planner.conversion.order import comparable
from planner.conversion.pathways import CastContext, find_pathway
from planner.conversion.polymorphic import POLYMORPHIC, enforce
from planner.facts import ANY, BOOL, FLOAT8, INT4, JSONB, RECORD, TEXT, UNKNOWN, OperatorFact, ProcFact, facts
from planner.query import ArrayExpr, Const, Expr, OpExpr, ScalarArrayOp
from planner.types import SqlType
from planner.types.domains import base_oid, no_array_type
from planner.types.facts import STRING, array_of, element_of, format_type

_NO_FUNCTION = (
    "No function matches the given name and argument types. You might need to add explicit type casts."
)
_NO_AGGREGATE = (
    "No aggregate function matches the given name and argument types. Perhaps you misplaced ORDER BY; "
    "ORDER BY must appear after all regular arguments of the aggregate."
)
_NOT_UNIQUE_FUNCTION = (
    "Could not choose a best candidate function. You might need to add explicit type casts."
)


# --- operators ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResolvedOperator:
    """An operator with the types its arguments must be coerced to, and its concrete result type."""

    op: OperatorFact
    arg_types: tuple[int, ...]
    result: int


@functools.lru_cache(maxsize=1024)  # names are what clients write
def _operators(name: str, extensions: tuple[str, ...]) -> dict[tuple[int, int], OperatorFact]:
    found = {(op.left, op.right): op for op in facts().operators_by_name.get(name, ()) if op.proc}
    for extension in extensions:
        found |= {(op.left, op.right): op for op in facts().extensions[extension].operators.get(name, ())}
    return found


@functools.lru_cache(maxsize=16384)
def _find_operator(
    name: str, left: int, right: int, extensions: tuple[str, ...] = ()
) -> ResolvedOperator | str:
    """Return the operator, or the word of the failure: "missing" or "ambiguous"."""
    table = _operators(name, extensions)
    exact_left, exact_right = left, right
    if left:
        if left == UNKNOWN:
            exact_left = right
        elif right == UNKNOWN:
            exact_right = left
    op = table.get((exact_left, exact_right))
    if op is None and UNKNOWN in (left, right):
        known = base_oid(right if left == UNKNOWN else left)
        op = table.get((left and known, known))
    if op is None:  # domains are judged as such: what is polymorphic does not look under all of them
        pool = [o for o in table.values() if bool(o.left) == bool(left)]
        inputs = (left, right) if left else (right,)
        candidates = [(o.left, o.right) if left else (o.right,) for o in pool]
        matching = coercible(inputs, candidates)
        if not matching:
            return "missing"
        choice = matching[0] if len(matching) == 1 else select(inputs, candidates, matching)
        if choice is None:
            return "ambiguous"
        op = pool[choice]
    inputs = (left, right) if left else (right,)
    declared = (op.left, op.right) if left else (op.right,)
    arg_types, result = enforce(inputs, declared, op.result)
    return ResolvedOperator(op, arg_types, result)


def resolve_operator(
    name: str, left: int, right: int, span: Span | None = None, extensions: tuple[str, ...] = ()
) -> ResolvedOperator:
    """Return the operator ``left name right``; ``left`` 0 for a prefix operator. ``extensions``: whose
    operators count, too.

    Raises SqlError 42883 (none), 42725 (several), 42804 (polymorphic arguments disagree).
    """
    found = _find_operator(name, left, right, extensions)
    if isinstance(found, ResolvedOperator):
        return found
    shown = f"{format_type(left)} {name} {format_type(right)}" if left else f"{name} {format_type(right)}"
    if found == "ambiguous":
        raise SqlError(
            "42725",
            f"operator is not unique: {shown}",
            hint="Could not choose a best candidate operator. You might need to add explicit type casts.",
            span=span,
        )
    raise SqlError(
        "42883",
        f"operator does not exist: {shown}",
        hint="No operator matches the given name and argument types. "
        "You might need to add explicit type casts."
        if left
        else "No operator matches the given name and argument type. "
        "You might need to add an explicit type cast.",
        span=span,
    )


def _at(error: SqlError, span: Span | None) -> SqlError:
    return SqlError(
        error.sqlstate, error.message, detail=error.detail, hint=error.hint, where=error.where, span=span
    )


def _fit(expr: Expr, oid: int, env: CoerceEnv) -> Expr:
    if expr.type.oid == oid:
        return expr
    return coerce_type(expr, SqlType(oid), CastContext.IMPLICIT, env)


def make_operator(
    name: str, left: Expr | None, right: Expr, env: CoerceEnv, span: Span | None = None
) -> OpExpr:
    """Build ``left name right`` with its arguments coerced (``left`` None: prefix operator)."""
    found = resolve_operator(
        name, left.type.oid if left is not None else 0, right.type.oid, span, env.extensions
    )
    if left is None:
        args: tuple[Expr, ...] = (_fit(right, found.arg_types[0], env),)
    else:
        wanted = found.arg_types
        same = wanted == (RECORD, RECORD) and same_composite((left.type.oid, right.type.oid))
        # of others the values decide whether a field that cannot be compared is reached: anonymous rows are compared so
        if same and comparable(name, left.type.oid, env.row_type):
            wanted = (base_oid(left.type.oid),) * 2
        args = (_fit(left, wanted[0], env), _fit(right, wanted[1], env))
    return OpExpr(op=found.op.oid, proc=found.op.proc, args=args, type=SqlType(found.result, -1), span=span)


def make_scalar_array_op(
    name: str, left: Expr, right: Expr, use_any: bool, env: CoerceEnv, span: Span | None = None
) -> ScalarArrayOp:
    """Build ``left name ANY|ALL (right)``; 42809 when ``right`` is no array or the operator not boolean."""
    array_type = right.type.oid
    if array_type == UNKNOWN:
        member = UNKNOWN
    else:
        member = element_of(base_oid(array_type))
        if not member:
            raise SqlError("42809", "op ANY/ALL (array) requires array on right side", span=span)
    found = resolve_operator(name, left.type.oid, member, span, env.extensions)
    if found.result != BOOL:
        raise SqlError("42809", "op ANY/ALL (array) requires operator to yield boolean", span=span)
    if facts().procs[found.op.proc].returns_set:
        raise SqlError("42809", "op ANY/ALL (array) requires operator not to return a set", span=span)
    wanted = array_of(found.arg_types[1])
    if not wanted:
        raise no_array_type(found.arg_types[1], span)
    return ScalarArrayOp(
        op=found.op.oid,
        proc=found.op.proc,
        use_any=use_any,
        scalar=_fit(left, found.arg_types[0], env),
        array=_fit(right, wanted, env),
        type=SqlType(BOOL),
        span=span,
    )


# --- functions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """What a call means.

    ``kind`` "call": ``proc`` with ``arg_types``, one per argument in the function's own order, defaults
    included. ``sources[i]`` is the index of the written argument that fills position i, or -1 for a default.
    ``expanded`` is the number of written arguments (at the end) gathered into the variadic array, or -1.
    ``variadic``: the call ends in an array of the variadic arguments.
    ``kind`` "cast": ``f(x)`` where f names a type; an explicit cast to ``result``.
    """

    kind: str
    proc: ProcFact | None
    arg_types: tuple[int, ...]
    result: int
    sources: tuple[int, ...] = ()
    expanded: int = -1
    variadic: bool = False

    @property
    def fact(self) -> ProcFact:
        """The pg_proc row of a call."""
        if self.proc is None:
            raise ValueError("a cast has no function")
        return self.proc


@dataclass(frozen=True, slots=True)
class _Candidate:
    proc: ProcFact
    types: tuple[int, ...]  # by written argument position
    positions: tuple[int, ...]  # written argument -> parameter index
    expanded: bool = False
    defaulted: int = 0
    ambiguous: bool = False  # another one with the same types is as good


def _input_names(proc: ProcFact) -> tuple[str, ...]:
    """Return the names of the input parameters, "" where unnamed."""
    names = proc.arg_names or ()
    if proc.arg_modes is None:
        padded = tuple(names) + ("",) * (len(proc.arg_types) - len(names))
        return padded[: len(proc.arg_types)]
    return tuple(
        names[i] if i < len(names) else "" for i, mode in enumerate(proc.arg_modes) if mode in ("i", "b", "v")
    )


def _named_candidate(proc: ProcFact, count: int, names: Sequence[str]) -> _Candidate | None:
    total = len(proc.arg_types)
    if count > total or count + proc.defaults < total:
        return None
    parameters = _input_names(proc)
    positional = count - len(names)
    positions = list(range(positional))
    for name in names:
        if name not in parameters:
            return None
        index = parameters.index(name)
        if index in positions:
            return None
        positions.append(index)
    missing = [i for i in range(total) if i not in positions]
    if any(i < total - proc.defaults for i in missing):
        return None
    return _Candidate(
        proc, tuple(proc.arg_types[i] for i in positions), tuple(positions), defaulted=len(missing)
    )


def _candidates(
    procs: Sequence[ProcFact], count: int, names: Sequence[str], variadic: bool
) -> list[_Candidate]:
    result: list[_Candidate] = []
    for proc in procs:
        total = len(proc.arg_types)
        if names:
            if proc.variadic and not variadic:
                continue
            candidate = _named_candidate(proc, count, names)
            if candidate is not None:
                result.append(candidate)
            continue
        if proc.variadic and not variadic and total <= count:
            types = proc.arg_types[:-1] + (proc.variadic,) * (count - total + 1)
            result.append(_Candidate(proc, types, tuple(range(count)), expanded=True))
        elif total == count or (total > count and count + proc.defaults >= total):
            result.append(
                _Candidate(proc, proc.arg_types[:count], tuple(range(count)), defaulted=total - count)
            )
    if len(result) > 1:
        result = _without_duplicates(result)
    return result


def _without_duplicates(candidates: list[_Candidate]) -> list[_Candidate]:
    """Of candidates with equal argument types keep the one that is not variadic; of two alike a call by these
    types would be ambiguous.

    That one of them needs fewer defaults, or none, decides nothing (PostgreSQL's FuncnameGetCandidates).
    """
    kept: dict[tuple[int, ...], _Candidate] = {}
    for candidate in candidates:
        key = tuple(t for _, t in sorted(zip(candidate.positions, candidate.types, strict=True)))
        rival = kept.get(key)
        if rival is None or candidate.expanded < rival.expanded:
            kept[key] = candidate
        elif candidate.expanded == rival.expanded:
            kept[key] = replace(rival, ambiguous=True)
    return list(kept.values())


def _along_path(
    groups: Sequence[Sequence[ProcFact]], count: int, names: Sequence[str], variadic: bool
) -> list[_Candidate]:
    """Return the candidates of all schemas: one hides those with the same argument types in schemas behind its own."""
    kept: dict[tuple[int, ...], _Candidate] = {}
    for procs in groups:
        for candidate in _candidates(procs, count, names, variadic):
            key = tuple(t for _, t in sorted(zip(candidate.positions, candidate.types, strict=True)))
            kept.setdefault(key, candidate)
    return list(kept.values())


@functools.lru_cache(maxsize=16384)
def _find_function(
    name: str, inputs: tuple[int, ...], names: tuple[str, ...], variadic: bool
) -> ResolvedFunction | str:
    pool = _candidates(facts().procs_by_name.get(name, ()), len(inputs), names, variadic)
    return _choose(pool, name, inputs, names, variadic)


def _choose(
    pool: Sequence[_Candidate],
    name: str,
    inputs: tuple[int, ...],
    names: tuple[str, ...],
    variadic: bool,
    type_called: int = 0,
) -> ResolvedFunction | str:
    """Return which of ``pool`` a call means, or "missing", "ambiguous"."""
    chosen = next((c for c in pool if c.types == inputs), None)
    if chosen is None:
        if len(inputs) == 1 and not names and not variadic:
            fact = facts().types_by_name.get(name)
            target = type_called if fact is None or fact.kind == "p" else fact.oid
            cast = _cast_to(target, inputs[0]) if target else None
            if cast is not None:
                return cast
        types = [c.types for c in pool]
        matching = coercible(inputs, types)
        if not matching:
            return "missing"
        index = matching[0] if len(matching) == 1 else select(inputs, types, matching)
        if index is None:
            return "ambiguous"
        chosen = pool[index]
    if chosen.ambiguous:
        return "ambiguous"
    return _resolved(chosen, inputs, variadic)


def _cast_to(target: int, source: int) -> ResolvedFunction | None:
    """Return the cast that the name of the type ``target``, called as a function, is for a ``source``: one
    that needs no function.
    """
    if source != UNKNOWN:
        pathway = find_pathway(source, target, CastContext.EXPLICIT)
        if pathway is None or pathway.kind not in ("relabel", "io"):
            return None
        row = source == RECORD or facts().types[source].kind == "c"
        if pathway.kind == "io" and row and facts().types[base_oid(target)].category == STRING:
            return None
    return ResolvedFunction("cast", None, (target,), target)


def _default_type(proc: ProcFact, position: int) -> int:
    """Return the type that a parameter's default brings to a call."""
    if not proc.default_types:
        return proc.arg_types[position]
    return proc.default_types[position - len(proc.arg_types)]


def _resolved(chosen: _Candidate, inputs: tuple[int, ...], variadic: bool) -> ResolvedFunction:
    proc = chosen.proc
    order = sorted(range(len(inputs)), key=lambda i: chosen.positions[i])
    actual = [inputs[i] for i in order]
    declared = [chosen.types[i] for i in order]
    sources = list(order)
    if chosen.defaulted:
        present = {chosen.positions[i] for i in order}
        merged = sorted(
            [(chosen.positions[i], inputs[i], chosen.types[i], i) for i in order]
            + [
                (p, _default_type(proc, p), proc.arg_types[p], -1)
                for p in range(len(proc.arg_types))
                if p not in present
            ]
        )
        actual = [t for _, t, _, _ in merged]
        declared = [t for _, _, t, _ in merged]
        sources = [s for _, _, _, s in merged]
    arg_types, result = enforce(tuple(actual), tuple(declared), proc.result)
    expanded = -1
    is_variadic = variadic and proc.variadic != 0
    if chosen.expanded and proc.variadic != ANY:
        expanded = len(inputs) - len(proc.arg_types) + 1
        is_variadic = True
    return ResolvedFunction("call", proc, arg_types, result, tuple(sources), expanded, is_variadic)


def resolve_function(
    name: str,
    types: Sequence[int],
    *,
    names: Sequence[str] = (),
    variadic: bool = False,
    schema: str = "",
    ordered: bool = False,
    span: Span | None = None,
    groups: Sequence[Sequence[ProcFact]] | None = None,
    type_called: int = 0,
) -> ResolvedFunction:
    """Return what ``name(types...)`` means.

    ``groups``: the functions of this name, a group for each schema of the path, where users have any;
    ``type_called``: the user's type of this name, which a call may cast to, or 0. ``names`` are those of the
    trailing named arguments; ``variadic``: the last argument was marked so; ``ordered``: the call had ORDER
    BY of several (only the hint differs). Functions live in pg_catalog and information_schema, so another
    ``schema`` finds nothing. Raises SqlError 42883, 42725, 42804.
    """
    inputs = tuple(types)
    try:
        found: ResolvedFunction | str = "missing"
        if groups is not None:
            found = _choose(
                _along_path(groups, len(inputs), names, variadic),
                name,
                inputs,
                tuple(names),
                variadic,
                type_called,
            )
        elif schema in ("", "pg_catalog", "information_schema"):
            key = f"{schema}.{name}" if schema == "information_schema" else name
            found = _find_function(key, inputs, tuple(names), variadic)
        if found == "missing" and type_called and len(inputs) == 1 and not names and not variadic:
            found = _cast_to(type_called, inputs[0]) or found
    except SqlError as error:
        raise _at(error, None) from None  # types that do not agree have no place in PostgreSQL's message
    if isinstance(found, ResolvedFunction):
        return found
    shown = signature_text(f"{schema}.{name}" if schema else name, inputs, names)
    if found == "ambiguous":
        raise SqlError("42725", f"function {shown} is not unique", hint=_NOT_UNIQUE_FUNCTION, span=span)
    raise SqlError(
        "42883",
        f"function {shown} does not exist",
        hint=_NO_AGGREGATE if ordered else _NO_FUNCTION,
        span=span,
    )


def signature_text(name: str, types: Sequence[int], names: Sequence[str] = ()) -> str:
    """Return ``name(integer, arg => text)`` as PostgreSQL's messages show a call."""
    parts = [format_type(t) for t in types]
    first = len(parts) - len(names)
    for offset, label in enumerate(names):
        parts[first + offset] = f"{label} => {parts[first + offset]}"
    return f"{name}({', '.join(parts)})"


def function_arguments(
    found: ResolvedFunction, args: Sequence[Expr], env: CoerceEnv, defaults: Sequence[Expr] = ()
) -> tuple[Expr, ...]:
    """Return the arguments in the function's order: coerced, defaults filled in, variadic ones gathered.

    ``defaults``: those of a user's function, for its last parameters.
    """
    result: list[Expr] = []
    for source, oid in zip(found.sources, found.arg_types, strict=True):
        if source < 0 and defaults:
            default = defaults[len(result) - len(found.fact.arg_types)]
            result.append(default if oid in POLYMORPHIC else _fit(default, oid, env))
        elif source < 0:
            result.append(_default_argument(found.fact, len(result)))
        else:
            result.append(_fit(args[source], oid, env))
    if found.expanded > 0:
        gathered = tuple(result[-found.expanded :])
        element = found.arg_types[-1]
        if element in POLYMORPHIC:
            element = gathered[0].type.oid
        result[-found.expanded :] = [
            ArrayExpr(elements=gathered, type=SqlType(array_of(element)), span=gathered[0].span)
        ]
    return tuple(result)


_FALSE = Const(type=SqlType(BOOL), value=False)
_TRUE = Const(type=SqlType(BOOL), value=True)
_EMPTY_OBJECT = Const(type=SqlType(JSONB), value="{}")
_ZERO = Const(type=SqlType(INT4), value=0)
_JSON_PATH = (_EMPTY_OBJECT, _FALSE)

# values of pg_proc.proargdefaults, for the trailing parameters of functions that have any
_DEFAULTS: dict[str, tuple[Expr, ...]] = {
    "make_interval": (_ZERO,) * 6 + (Const(type=SqlType(FLOAT8), value=0.0),),
    "jsonb_insert": (_FALSE,),
    "jsonb_set": (_TRUE,),
    "jsonb_set_lax": (_TRUE, Const(type=SqlType(TEXT), value="use_json_null")),
    "parse_ident": (_TRUE,),
    "normalize": (Const(type=SqlType(TEXT), value="NFC"),),
    "is_normalized": (Const(type=SqlType(TEXT), value="NFC"),),
    "json_populate_record": (_FALSE,),
    "json_populate_recordset": (_FALSE,),
    "pg_terminate_backend": (Const(type=SqlType(20), value=0),),
    **{
        f"jsonb_path_{what}{suffix}": _JSON_PATH
        for what in ("query", "exists", "match", "query_array", "query_first")
        for suffix in ("", "_tz")
    },
}


def _default_argument(proc: ProcFact, position: int) -> Expr:
    values = _DEFAULTS.get(proc.name)
    if values is None:
        raise SqlError("0A000", f"default arguments of function {proc.name} are not supported")
    return values[position - len(proc.arg_types) + len(values)]


def default_arguments(proc: ProcFact) -> tuple[Expr, ...]:
    """Return the default values of the trailing parameters (as many as ``proc.defaults``)."""
    return _DEFAULTS.get(proc.name, ()) if proc.defaults else ()
