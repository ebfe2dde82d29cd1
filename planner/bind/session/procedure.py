"""CALL: which procedure is meant, and what it is passed.

    CALL p(1, b => 2, NULL)     procedures p of the search path, OUT parameters counted as arguments  ->  SqlCall p(1, 2)

What stands for an OUT parameter has to fit its type and is not evaluated. The outputs are the one row of the result.
"""

from __future__ import annotations

from dataclasses import replace

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.expression.calls import default_values, groups_of, proc_fact
from planner.bind.expression.funcs import bound_arguments
from planner.bind.scope import Scope
from planner.bind.stored.bodies import bind_called
from planner.catalog import FunctionDef
from planner.catalog.kept import kept_with_definition
from planner.conversion.polymorphic import enforce
from planner.conversion.resolve import function_arguments, resolve_function
from planner.facts import RECORD, ProcFact
from planner.query import OutputColumn, SqlCall
from planner.types import SqlType
from planner.types.facts import format_type


@kept_with_definition
def call_fact(function: FunctionDef) -> ProcFact:
    """Return a routine as CALL sees it: the types of OUT parameters are among those of its arguments."""
    fact = proc_fact(function)
    if function.kind != "p":
        return fact
    return replace(
        fact, arg_types=function.types, arg_names=function.names, arg_modes=("i",) * len(function.types)
    )


def bind_call(context: BindContext, node: ast.Call) -> st.Call:
    """CALL. Raises SqlError 42883, 42725, 42809 (a function), 3F000, 0A000 (a sub-select), and what its
    arguments raise.
    """
    written = node.call
    schema = written.name[-2] if len(written.name) > 1 else ""
    scope = Scope(context=context)
    scope.clause = "CALL"
    args, names = bound_arguments(scope, written)
    if not context.has_schema(schema, written.span):
        raise SqlError("3F000", f'schema "{schema}" does not exist', span=written.span)
    types = [arg.type.oid for arg in args]
    try:
        found = resolve_function(
            written.name[-1],
            types,
            names=names,
            variadic=written.variadic,
            schema=schema,
            span=written.span,
            groups=groups_of(context, schema, written.name[-1], call_fact),
        )
    except SqlError as error:
        if error.sqlstate == "42883":
            error.message = error.message.replace("function", "procedure", 1)
            error.hint = "No procedure matches the given name and argument types. You might need to add explicit type casts."
        elif error.sqlstate == "42725":
            error.message = error.message.replace("function", "procedure", 1)
            error.hint = (
                "Could not choose a best candidate procedure. You might need to add explicit type casts."
            )
        raise
    function = context.catalog.function_by_oid(found.fact.oid)
    if function is None or function.kind != "p":
        shown = f"{written.name[-1]}({', '.join(format_type(oid) for oid in found.fact.arg_types)})"
        raise SqlError(
            "42809", f"{shown} is not a procedure", hint="To call a function, use SELECT.", span=written.span
        )
    context.functions.add(function.oid)
    made = function_arguments(found, args, context.env, default_values(function, context.catalog))
    actual = [arg.type.oid for arg in made]
    outputs = tuple(
        OutputColumn(name=name or f"column{i}", type=SqlType(enforce(actual, function.types, oid)[1]))
        for i, (name, oid) in enumerate(function.outputs, 1)
    )
    given = tuple(arg for arg, mode in zip(made, function.modes, strict=True) if mode in "ibv")
    call = SqlCall(
        type=SqlType(RECORD) if outputs else SqlType(function.result),
        proc=function.oid,
        args=given,
        schema=function.schema,
        name=function.name,
        outputs=outputs,
        stays=True,
        span=written.span,
    )
    context.flags |= {"calls", "changes"}
    if not (function.definer or function.settings) and function.language == "sql":
        _note(context, function, call)
    return st.Call(call=call)


def bind_do(context: BindContext, node: ast.Do) -> st.Do:
    """DO. Raises SqlError 42704, 0A000 for languages without blocks."""
    language = node.language.lower()
    if language in ("sql", "internal", "c"):
        raise SqlError("0A000", f'language "{language}" does not support inline code execution')
    if language != "plpgsql":
        raise SqlError("42704", f'language "{node.language}" does not exist')
    context.flags |= {"calls", "changes"}
    return st.Do(source=node.source, source_at=node.source_at)


def _note(context: BindContext, function: FunctionDef, call: SqlCall) -> None:
    """Note what the body is bound against. Raises SqlError as binding it does."""
    wanted = call.outputs or call.type
    try:
        bind_called(context, function, [arg.type.oid for arg in call.args], wanted)
    except SqlError as error:
        error.span = None  # it stands in another text
        raise
