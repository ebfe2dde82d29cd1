"""What a call means where users have functions of that name, and the call of one.

    f(1)    functions f of all schemas in the search path, pg_catalog's among them -> one of them (``planner.conversion.resolve``)
            SqlCall f(integer) -- until ``planner.bind.stored.inline`` puts its body there

Stored texts name a user's function by its oid, ``"#16400"(1)``, so that they mean the same when it is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from planner.base.errors import Span, SqlError
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_kept
from planner.bind.scope import Scope
from planner.bind.stored import stored_context, without_spans
from planner.catalog import Catalog, FunctionDef, RowType
from planner.catalog.kept import kept_with_definition
from planner.conversion.casts import coerce_type
from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import POLYMORPHIC, enforce, takes_unknown
from planner.conversion.resolve import ResolvedFunction, function_arguments, resolve_function
from planner.facts import ANY, RECORD, UNKNOWN, ProcFact, facts
from planner.parse import parse_expression
from planner.query import Expr, OutputColumn, SqlCall
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID, element_of

_BY_OID: Final = re.compile(r"#(\d+)")


@kept_with_definition
def proc_fact(function: FunctionDef) -> ProcFact:
    """Return a user's function as resolution sees all functions."""
    variadic = 0
    if function.modes and "v" in function.modes:
        array = function.types[function.modes.index("v")]
        variadic = element_of(array) or ANY
        if array in POLYMORPHIC:
            variadic = 2283 if array == 2277 else 5077
    return ProcFact(
        oid=function.oid,
        name=function.name,
        kind=function.kind,
        strict=function.strict,
        returns_set=function.returns_set,
        volatility=function.volatility,
        arg_types=function.inputs,
        result=function.result,
        defaults=len(function.defaults),
        variadic=variadic,
        all_arg_types=function.types,
        arg_modes=function.modes,
        arg_names=function.names,
    )


def resolve_call(
    context: BindContext,
    schema: str,
    name: str,
    types: Sequence[int],
    *,
    names: Sequence[str] = (),
    variadic: bool = False,
    ordered: bool = False,
    span: Span | None = None,
) -> ResolvedFunction:
    """Return what a call means. Raises as ``planner.conversion.resolve.resolve_function``."""
    try:
        return resolve_function(
            name,
            types,
            names=names,
            variadic=variadic,
            schema=schema,
            ordered=ordered,
            span=span,
            groups=groups_of(context, schema, name),
            type_called=_type_called(context, schema, name) if len(types) == 1 else 0,
        )
    except SqlError as error:
        by_oid = _BY_OID.fullmatch(name) if not schema else None
        function = None if by_oid is None else context.catalog.function_by_oid(int(by_oid[1]))
        if function is not None:  # errors name it, stored texts do not
            error.message = error.message.replace(name, function.name)
        raise


def _type_called(context: BindContext, schema: str, name: str) -> int:
    """Return the user's type, but no row type, that ``schema.name(x)`` may mean, 0 for none; a temporary one
    has to be qualified.
    """
    schema = context.own_schema(schema)
    path = [schema] if schema else [s for s in context.search_path if not s.startswith("pg_temp")]
    found = next((oid for entry in path if (oid := context.catalog.type_oid(entry, name))), 0)
    made = context.catalog.type_by_oid(found) if found else None
    return 0 if made is not None and made.oid == found and made.kind == "c" else found


def is_users_function(oid: int) -> bool:
    """Tell whether a function is one of CREATE FUNCTION, which has a body: constructors of users' ranges have none."""
    return oid >= FIRST_USER_OID and oid not in facts().procs


def groups_of(
    context: BindContext, schema: str, name: str, fact_of: Callable[[FunctionDef], ProcFact] = proc_fact
) -> list[Sequence[ProcFact]] | None:
    """Return the functions of a name by schema, None where no user's is among them."""
    by_oid = _BY_OID.fullmatch(name) if not schema else None
    if by_oid is not None:
        function = context.catalog.function_by_oid(int(by_oid[1]))
        proc = facts().procs.get(int(by_oid[1]))  # a constructor of ranges
        return [[fact_of(function)]] if function is not None else None if proc is None else [[proc]]
    made = context.catalog.functions_named(name)
    constructors = context.catalog.constructors_named(name)
    if not made and not constructors:
        return None
    schema = context.own_schema(schema)
    # functions of the temporary schema are found only where it is named (manual, search_path)
    path = [schema] if schema else [s for s in context.search_path if not s.startswith("pg_temp")]
    groups: list[Sequence[ProcFact]] = []
    found = False
    for entry in path:
        if entry == "pg_catalog":
            groups.append(facts().procs_by_name.get(name, ()))
        else:
            mine = [
                _with_default_types(fact_of(function), function, context.catalog)
                for function in made
                if function.schema == entry
            ]
            mine += [facts().procs[oid] for within, oid in constructors if within == entry]
            found = found or bool(mine)
            groups.append(mine)
    return groups if found else None


def _with_default_types(fact: ProcFact, function: FunctionDef, catalog: Catalog) -> ProcFact:
    """Return a function with the types of its defaults, where one may decide what a polymorphic parameter is."""
    declared = function.inputs[len(function.inputs) - len(function.defaults) :]
    if not any(oid in POLYMORPHIC for oid in declared):
        return fact
    types = [default.type.oid for default in default_values(function, catalog)]
    undecided = [
        want if have == UNKNOWN and not takes_unknown(want) else have
        for have, want in zip(types, declared, strict=True)
    ]
    return replace(fact, default_types=tuple(undecided))


def result_row(catalog: Catalog, oid: int) -> RowType | None:
    """Return the composite type with this oid: one by itself, or that of a relation's rows."""
    return catalog.row_type(oid)


def make_call(scope: Scope, found: ResolvedFunction, args: Sequence[Expr], span: Span | None) -> SqlCall:
    """Return the call of a user's function. Raises SqlError as coercions do."""
    context = scope.context
    function = context.catalog.function_by_oid(found.fact.oid)
    if function is None:
        raise AssertionError(f"function {found.fact.oid} is not in the catalog")
    defaults = default_values(function, context.catalog)
    made = function_arguments(found, args, context.env, defaults)
    declared = function.inputs
    actual = [arg.type.oid for arg in made]
    outputs = _outputs(context.catalog, function, actual, declared)
    record = len(outputs) > 1 or found.result == RECORD or result_row(context.catalog, function.result)
    return SqlCall(
        type=SqlType(RECORD if record else found.result),
        proc=function.oid,
        args=made,
        variadic=found.variadic,
        returns_set=function.returns_set,
        span=span,
        schema=function.schema,
        name=function.name,
        outputs=outputs,
        defaulted=_defaulted(found.sources),
        volatility=function.volatility,
    )


def _defaulted(sources: Sequence[int]) -> int:
    """Return how many of the last arguments are defaults; 0 where one stands before a written one."""
    count = sum(source < 0 for source in sources)
    return count if all(source < 0 for source in sources[len(sources) - count :]) else 0


def _outputs(
    catalog: Catalog, function: FunctionDef, actual: Sequence[int], declared: Sequence[int]
) -> tuple[OutputColumn, ...]:
    if function.outputs:
        return tuple(
            OutputColumn(name=name or f"column{i}", type=SqlType(enforce(actual, declared, oid)[1]))
            for i, (name, oid) in enumerate(function.outputs, 1)
        )
    relation = result_row(catalog, function.result)
    if relation is None:
        return ()
    return tuple(OutputColumn(name=c.name, type=c.type) for c in relation.live)


def default_values(function: FunctionDef, catalog: Catalog) -> tuple[Expr, ...]:
    """Return the default values of a function's last inputs, of their types."""
    if not function.defaults:
        return ()
    found: list[Expr] = []
    types = function.inputs[-len(function.defaults) :]
    for text, oid in zip(function.defaults, types, strict=True):
        context = stored_context(catalog, text)
        expr = bind_kept(Scope(context=context), parse_expression(text), "PARAMETER DEFAULT")
        if oid not in POLYMORPHIC:
            expr = coerce_type(expr, SqlType(oid), CastContext.ASSIGNMENT, context.env)
        found.append(without_spans(expr))
    return tuple(found)
