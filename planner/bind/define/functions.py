"""CREATE FUNCTION: parameters to types and modes, options, bodies checked; and what their stored texts become
when names change.

    CREATE FUNCTION f(a int, OUT b text) LANGUAGE sql AS 'SELECT ...'      modes i o, types int4 text, result text
                                         RETURN a + 1                      canonical text, bound under the path of now
                                         BEGIN ATOMIC SELECT ...; END

A body that is a text is kept as written and bound anew wherever it is called; here it is bound to see that it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pgwire.codecs.settings import STORED_TEXT, CodecSettings
from pgwire.give_way import paced
from pgwire.release import let_go
from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.change.changing_items import modifies
from planner.bind.change.kept_changes import kept_change, kept_insert, kept_merge
from planner.bind.context import Arguments, BindContext, make_context
from planner.bind.define.relations import relations_named
from planner.bind.define.table.placing import creation_schema
from planner.bind.expression.calls import result_row
from planner.bind.expression.expr import bind_kept
from planner.bind.expression.funcs import MAX_ARGUMENTS
from planner.bind.query.select import bind_query
from planner.bind.query.with_ import QUERIES
from planner.bind.scope import Scope
from planner.bind.session.utility import bind_set
from planner.bind.stored import stored_context, with_oids
from planner.bind.stored.bodies import Wanted, bind_body, bind_called, check_body
from planner.bind.stored.renaming import renamed
from planner.catalog import Catalog, FunctionDef
from planner.conversion.casts import coerce_to_specific, coerce_type
from planner.conversion.collations import query_collations
from planner.conversion.env import CoerceEnv, ParamTypes
from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import POLYMORPHIC, consistent, needed_inputs, takes_unknown
from planner.deparse import deparse_change, deparse_expr, deparse_query
from planner.facts import ANYENUM, RECORD, TRIGGER, UNKNOWN, VOID, facts
from planner.functions.system.function_names import entry_points
from planner.parse import parse, parse_expression
from planner.plpgsql.check import check_routine
from planner.query import Const, Expr, Insert, KeptChange, KeptMerge, OutputColumn, QueryExpr
from planner.query.location import location
from planner.query.walk import walk
from planner.statements.classify import setting_spelling
from planner.statements.parsed import command_tag
from planner.types import SqlType
from planner.types.facts import element_of, format_type

_BETWEEN: Final = ";\n"
"""What is between the statements of a body that is kept."""
_AS_TEXT: Final = "A body that is a text may have it: AS $$ ... $$."
LANGUAGES: Final = ("sql", "plpgsql")
INTERNAL_LANGUAGE: Final = "internal"
"""Of functions that are another name for one of PostgreSQL's own."""


def bind_create_function(context: BindContext, node: ast.CreateFunction) -> st.CreateFunction:
    """CREATE [OR REPLACE] FUNCTION in languages sql and plpgsql.

    Raises SqlError 42P13 and 42704 as PostgreSQL for what does not fit together; 0A000 by name for other
    languages, row types as inputs, BEGIN ATOMIC of several statements or that changes data; what binding the
    body raises.
    """
    language = "sql" if node.language is None and node.body is not None else node.language
    if language is None:
        raise SqlError("42P13", "no language specified")
    language = language.lower()
    if language not in (*LANGUAGES, INTERNAL_LANGUAGE):
        if language == "c":
            raise not_supported(
                "LANGUAGE c", hint="Functions can be written in LANGUAGE sql and LANGUAGE plpgsql."
            )
        raise SqlError("42704", f'language "{language}" does not exist')
    schema = creation_schema_of(context, node.name)
    modes, names, types, defaults = parameters_of(context, node.parameters, "functions")
    if sum(mode in "ibv" for mode in paced(modes)) > MAX_ARGUMENTS:
        raise SqlError("54023", f"functions cannot have more than {MAX_ARGUMENTS} arguments")
    result, returns_set = _result(context, node, modes, types, language)
    if result == TRIGGER and types:
        raise SqlError(
            "42P13",
            "trigger functions cannot have declared arguments",
            hint="The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.",
            where=f'compilation of PL/pgSQL function "{node.name[-1]}" near line 1'
            if language == "plpgsql"
            else None,
        )
    twice = next((name for at, name in enumerate(names) if name and name in names[:at]), None)
    if twice is not None and language == "plpgsql":  # where each is a variable, be it IN or OUT
        raise SqlError(
            "42P13",
            f'parameter name "{twice}" used more than once',
            where=f'compilation of PL/pgSQL function "{node.name[-1]}" near line 1',
        )
    if node.procedure:
        _check_procedure(node, modes, defaults)
    changes = dict(function_options(node.options, returns_set=returns_set, creating=True))
    if node.settings:
        changes["settings"] = with_settings((), function_settings(context, node.settings))
    if language == INTERNAL_LANGUAGE:
        changes.setdefault("cost", 1.0)
    if "rows" not in changes and returns_set:
        changes["rows"] = 1000.0
    function = FunctionDef(
        oid=0, schema_oid=0, schema=schema, name=node.name[-1], modes=modes, names=names, types=types,
        result=result, defaults=defaults, returns_set=returns_set, kind="p" if node.procedure else "f", language=language,
        **changes,
    )  # fmt: skip
    made = _with_body(context, node, function)
    if language == INTERNAL_LANGUAGE:
        made = _as_built_in(made)
    current = from_current(node.settings)
    return st.CreateFunction(
        function=made, replace=node.replace, source_at=node.source_at, from_current=current
    )


_OF_PROCEDURES: Final = ("security",)


def _check_procedure(node: ast.CreateFunction, modes: Sequence[str], defaults: Sequence[str]) -> None:
    """Raise SqlError 42P13 for what a procedure cannot have."""
    for option in node.options:
        if option.name not in _OF_PROCEDURES:
            raise SqlError("42P13", "invalid attribute in procedure definition", span=option.span)
    if "v" in modes and modes[-1] != "v":
        raise SqlError("42P13", "VARIADIC parameter must be the last parameter")
    if defaults and "o" in modes:
        inputs = [i for i, mode in enumerate(modes) if mode in "ibv"]
        if max(i for i, mode in enumerate(modes) if mode == "o") > inputs[-len(defaults)]:
            raise SqlError("42P13", "procedure OUT parameters cannot appear after one with a default value")


def function_settings(
    context: BindContext, nodes: Sequence[ast.SetVariable]
) -> tuple[tuple[str, str | None], ...]:
    """Return (name, value) of SET clauses, None for RESET, "" for FROM CURRENT (see ``from_current``). Raises
    as SET; 0A000 for SET TRANSACTION.
    """
    found: dict[str, tuple[str, str | None]] = {}
    for node in nodes:
        change = bind_set(context, node)
        if not isinstance(change, st.SetVariable) or change.name.lower() in ("role", "session_authorization"):
            raise not_supported(f"SET {node.name} of a function", span=node.span)
        name = "all" if change.name == "all" else setting_spelling(change.name)
        if name == "all":
            found.clear()
        elif change.value is None and not change.current:
            found.pop(name.lower(), None)
        found[name.lower()] = (name, "" if change.current else change.value)
    return tuple(found.values())


def from_current(nodes: Sequence[ast.SetVariable]) -> frozenset[str]:
    """Return the settings, in lower case, that are the session's when the statement runs: the last clause for
    each counts.
    """
    last = {node.name.lower(): node.kind == "current" for node in nodes}
    return frozenset(name for name, current in last.items() if current)


def with_settings(
    old: Sequence[tuple[str, str]], changes: Sequence[tuple[str, str | None]]
) -> tuple[tuple[str, str], ...]:
    """Return a function's SET clauses after SET and RESET."""
    now = {name.lower(): (name, value) for name, value in old}
    for name, value in changes:
        if name == "all" and value is None:
            now.clear()
        elif value is None:
            now.pop(name.lower(), None)
        else:
            now[name.lower()] = (name, value)
    return tuple(now.values())


def creation_schema_of(context: BindContext, name: ast.Name) -> str:
    """Return the schema in which a function of this name is made. Raises SqlError as ``creation_schema``."""
    reference = ast.TableRef(catalog="", schema=name[-2] if len(name) > 1 else "", name=name[-1])
    return creation_schema(context, reference)


# --- parameters -----------------------------------------------------------------------------------


def written_type(context: BindContext, name: ast.TypeName) -> int:
    """Return the oid of a type; of a table's name, that of its row type."""
    name = replace(name, setof=False)
    try:
        return context.type_of(name).oid
    except SqlError as error:
        if error.sqlstate != "42704" or name.dims or name.typmods:
            raise
        schema = name.names[-2] if len(name.names) > 1 else ""
        relation = context.find_relation(schema, name.names[-1])
        if relation is None or result_row(context.catalog, relation.row_type) is None:
            raise
        return relation.row_type


def type_without_place(context: BindContext, name: ast.TypeName) -> int:
    """Return the oid of a type, or of a table's row type; that there is none is told without its place, as
    PostgreSQL does.
    """
    try:
        return written_type(context, name)
    except SqlError as error:
        if error.sqlstate == "42704":
            error.span = None
        raise


def parameters_of(
    context: BindContext, parameters: Sequence[ast.Parameter], what: str
) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[int, ...], tuple[str, ...]]:
    """Return modes, names, types and texts of defaults; ``what`` has them: functions, aggregates. Raises
    SqlError 42P13, 42704.
    """
    modes: list[str] = []
    names: list[str] = []
    types: list[int] = []
    defaults: list[str] = []
    for parameter in parameters:
        try:
            oid = written_type(context, parameter.type)
        except SqlError as error:
            if error.sqlstate == "42704":  # PostgreSQL has no quotes here
                error.message = error.message.replace('"', "")
                error.span = None
            raise
        if parameter.type.setof:
            raise SqlError("42P13", f"{what} cannot accept set arguments")
        if parameter.mode in "ibv" and "v" in modes:
            raise SqlError("42P13", "VARIADIC parameter must be the last input parameter")
        if parameter.mode == "v" and not element_of(oid) and oid not in (2276, 2277, 5078):
            raise SqlError("42P13", "VARIADIC parameter must be an array")
        input_ = parameter.mode in "ibv"
        for name, mode in zip(names, modes, strict=True):
            same_side = input_ == (mode in "ibv") or "b" in (mode, parameter.mode)
            if name and name == parameter.name and same_side:
                raise SqlError("42P13", f'parameter name "{name}" used more than once')
        if parameter.default is not None:
            if not input_:
                raise SqlError("42P13", "only input parameters can have default values")
            expr = bind_kept(Scope(context=context), parameter.default, "PARAMETER DEFAULT")
            expr = _default_of(expr, oid, context.env)
            defaults.append(deparse_expr(with_oids(context, expr), indented=False))
        elif defaults and input_:
            raise SqlError("42P13", "input parameters after one with a default value must also have defaults")
        modes.append(parameter.mode)
        names.append(parameter.name)
        types.append(oid)
    return tuple(modes), tuple(names), tuple(types), tuple(defaults)


def _default_of(expr: Expr, oid: int, env: CoerceEnv) -> Expr:
    """Return a parameter's default as one of its type. Raises SqlError 42804, 0A000 for a literal of an array
    or a range that nobody knows.
    """
    if oid not in POLYMORPHIC:
        return coerce_to_specific(expr, oid, "DEFAULT", env)
    if isinstance(expr, Const) and expr.value is None and expr.type.oid == oid != ANYENUM:
        expr = replace(expr, type=SqlType(UNKNOWN))  # NULL::anyarray, as definitions show a plain NULL
    unknown = expr.type.oid == UNKNOWN
    if unknown and (
        takes_unknown(oid) or (isinstance(expr, Const) and expr.value is None and oid != ANYENUM)
    ):
        return expr
    if unknown and oid != ANYENUM:
        raise SqlError("0A000", f"cannot accept a value of type {format_type(oid)}", span=location(expr))
    if unknown or not consistent((expr.type.oid,), (oid,)):
        raise SqlError(
            "42804",
            f"argument of DEFAULT must be type {format_type(oid)}, not type {format_type(expr.type.oid)}",
            span=location(expr),
        )
    return expr


def _result(
    context: BindContext, node: ast.CreateFunction, modes: Sequence[str], types: Sequence[int], language: str
) -> tuple[int, bool]:
    """Return (type oid, whether it returns a set)."""
    outputs = [oid for oid, mode in zip(types, modes, strict=True) if mode in "obt"]
    if node.procedure:
        return RECORD if outputs else VOID, False
    from_outputs = outputs[0] if len(outputs) == 1 else RECORD if outputs else 0
    if node.result is None:
        if not outputs:
            raise SqlError("42P13", "function result type must be specified")
        result, returns_set = from_outputs, False
    else:
        result, returns_set = type_without_place(context, node.result), node.result.setof
        if "t" in modes:
            result = from_outputs
        elif outputs and result != from_outputs:
            raise SqlError(
                "42P13",
                f"function result type must be {format_type(from_outputs)} because of OUT parameters",
            )
    inputs = [oid for oid, mode in zip(types, modes, strict=True) if mode in "ibv"]
    for oid in (result, *outputs):
        detail = lacking_input(oid, inputs)
        if detail is not None:
            raise SqlError("42P13", "cannot determine result data type", detail=detail)
    for oid in types:
        _usable(oid, language, result=False)
    _usable(result, language, result=True)
    return result, returns_set


def lacking_input(oid: int, inputs: Sequence[int]) -> str | None:
    """Return why nothing among ``inputs`` decides what a polymorphic result is; None where something does,
    and for other results.
    """
    wanted = needed_inputs(oid)
    if not wanted or any(one in inputs for one in wanted):
        return None
    *names, last = [format_type(one) for one in wanted]
    listed = f"{', '.join(names)}{',' if len(names) > 1 else ''} or {last}"
    return f"A result of type {format_type(oid)} requires at least one input of type {listed}."


def _usable(oid: int, language: str, *, result: bool) -> None:
    fact = facts().types.get(oid)
    if (
        fact is None
        or fact.kind != "p"
        or oid in POLYMORPHIC
        or language == INTERNAL_LANGUAGE
        or (result and oid in (RECORD, VOID))
    ):
        return
    if language == "plpgsql":
        if oid == RECORD or (result and oid == TRIGGER):
            return
        if fact.name == "event_trigger":
            raise not_supported("a function of event triggers")
        what = "return" if result else "accept"
        raise SqlError("0A000", f"PL/pgSQL functions cannot {what} type {format_type(oid)}")
    what = "return type" if result else "have arguments of type"
    raise SqlError("42P13", f"SQL functions cannot {what} {format_type(oid)}")


# --- options --------------------------------------------------------------------------------------

_VOLATILITY: Final = {"immutable": "i", "stable": "s", "volatile": "v"}
_PARALLEL: Final = {"unsafe": "u", "restricted": "r", "safe": "s"}


def function_options(
    options: Sequence[ast.Option], *, returns_set: bool, creating: bool
) -> tuple[tuple[str, Any], ...]:
    """Return the fields of FunctionDef that options set. Raises SqlError 42601, 22023; 0A000 for what is refused."""
    found: dict[str, Any] = {}
    for option in options:
        name, value = option.name, option.value
        field = {"window": "", "transform": "", "support": "", "security": "definer"}.get(name, name)
        if field in found:
            raise SqlError("42601", "conflicting or redundant options", span=option.span)
        match name:
            case "volatility":
                found[field] = _VOLATILITY[str(value)]
            case "strict" | "leakproof":
                found[field] = bool(value)
            case "parallel":
                word = str(value)
                if word not in _PARALLEL:
                    raise SqlError("42601", 'parameter "parallel" must be SAFE, RESTRICTED, or UNSAFE')
                found[field] = _PARALLEL[word]
            case "cost" | "rows":
                number = float(value.text if isinstance(value, ast.NumberText) else str(value))
                if number <= 0:
                    raise SqlError("22023", f"{name.upper()} must be positive")
                if name == "rows" and not returns_set:
                    raise SqlError("22023", "ROWS is not applicable when function does not return a set")
                found[field] = number
            case "security":
                found["definer"] = bool(value)
            case _:
                verb = "CREATE" if creating else "ALTER"
                raise not_supported(f"{verb} FUNCTION ... {name.upper()}", span=option.span)
    return tuple(found.items())


# --- the body -------------------------------------------------------------------------------------


def wanted_of(context: BindContext, function: FunctionDef) -> Wanted:
    """Return what a function's body has to give, None where only a call can say."""
    if any(oid in POLYMORPHIC for oid in function.types):
        return None
    if function.outputs and (len(function.outputs) > 1 or function.result == RECORD):
        return tuple(OutputColumn(name=name, type=SqlType(oid)) for name, oid in function.outputs)
    relation = result_row(context.catalog, function.result)
    if relation is not None:
        return tuple(OutputColumn(name=c.name, type=c.type) for c in relation.live)
    return None if function.result == RECORD else SqlType(function.result)


def _with_body(context: BindContext, node: ast.CreateFunction, function: FunctionDef) -> FunctionDef:
    if node.body is not None and function.language != "sql":
        raise SqlError("42P13", "inline SQL function body only valid for language SQL")
    if node.body is not None and node.source is not None:
        raise SqlError("42P13", "duplicate function body specified")
    if node.body is None:
        if node.source is None:
            raise SqlError("42P13", "no function body specified")
        if len(node.source) > 1:
            raise SqlError("42P13", f'only one AS item needed for language "{function.language}"')
        return replace(function, source=node.source[0])
    if any(oid in POLYMORPHIC for oid in function.types):
        raise SqlError("0A000", "SQL function with unquoted function body cannot have polymorphic arguments")
    returns = not isinstance(node.body, tuple)
    text, depends = _canonical(context, node, function)
    path = tuple(s for s in context.search_path if not s.startswith("pg_temp"))
    return replace(
        function, body_sql=text, returns=returns, returned=node.returned, path=path, depends_on=depends
    )


def _as_built_in(function: FunctionDef) -> FunctionDef:
    """Return a function in LANGUAGE internal: another name for the built-in one that its source names, kept
    as those of extensions are.

    Raises SqlError 42883 where there is none, 0A000 where it is one of other types, or is declared to be
    something else.
    """
    entries = entry_points()
    found = [
        proc
        for proc in list(facts().procs.values())
        if entries.get(proc.oid, proc.name) == function.source and proc.kind == "f"
    ]
    if not found:
        raise SqlError("42883", f'there is no built-in function named "{function.source}"')
    same = [
        proc
        for proc in found
        if (proc.arg_types, proc.result, proc.returns_set)
        == (tuple(function.inputs), function.result, function.returns_set)
    ]
    if not same or function.kind == "p" or function.result == TRIGGER:
        raise not_supported(f'LANGUAGE internal for other types than those of "{function.source}"')
    if function.strict and not same[0].strict:
        raise not_supported(f'STRICT of LANGUAGE internal where "{function.source}" is not')
    if function.settings or function.definer:
        raise not_supported("SET and SECURITY DEFINER in LANGUAGE internal")
    return replace(function, language="sql", internal=facts().signature(same[0].oid))


def check_source(
    function: FunctionDef,
    catalog: Catalog,
    search_path: Sequence[str],
    settings: CodecSettings,
    source_at: int | None = None,
) -> Sequence[tuple[str, Span | None]]:
    """Check a body, as ``check_function_bodies`` wants it: one in SQL can be bound, and gives what is returned.

    ``source_at``: errors tell places counted from there. Returns the variables of PL/pgSQL that hide others,
    and where. Raises SqlError 42P13, what binding raises, 0A000 for statements that cannot be in it.
    """
    if function.internal:
        return ()
    if function.language == "plpgsql":
        return check_routine(function, catalog, search_path, settings, source_at)
    try:
        if any(oid in POLYMORPHIC for oid in function.types):
            check_body(function)
        else:
            context = make_context(catalog, search_path, text=function.source, settings=settings)
            _check(context, function)
    except SqlError as error:
        if error.span is not None:
            moved = Span(error.span.start + source_at, error.span.end + source_at) if source_at else None
            error.span = moved
        raise
    return ()


def _check(context: BindContext, function: FunctionDef) -> None:
    context = replace(context, defines=True)
    wanted = wanted_of(context, function)
    try:
        if bind_body(context, function, function.inputs, wanted) is None:
            let_go(bind_called(context, function, function.inputs, wanted, defining=True))
    except SqlError as error:
        error.where = f'SQL function "{function.name}"' if error.span is None else None
        raise


def _canonical(
    context: BindContext, node: ast.CreateFunction, function: FunctionDef
) -> tuple[str, tuple[int, ...]]:
    """Return the text of BEGIN ATOMIC or RETURN, and the relations that it names, by oid."""
    inner = replace(
        context,
        env=CoerceEnv(
            settings=context.env.settings,
            params=ParamTypes(function.inputs, variable=False),
            row_type=context.env.row_type,
            search_name=context.env.search_name,
            extensions=context.env.extensions,
        ),
        arguments=Arguments(function.name, function.input_names),
    )
    body: Any = node.body
    if not isinstance(body, tuple):
        body = (ast.Select(targets=(ast.TargetItem(expr=body, name="", span=body.span),)),)
    texts: list[str] = []
    named: set[int] = set()
    for statement in body:
        try:
            kept = with_oids(context, _bound_to_keep(inner, statement, runs=True))
        except SqlError as error:
            if error.span is None and error.where is None:
                error.where = f'SQL function "{function.name}"'
            raise
        texts.append(deparse_kept(kept, context.catalog))
        named |= relations_named(kept)
        named |= {node.table for node in walk(kept) if isinstance(node, CHANGES)}
    return _BETWEEN.join(texts), tuple(sorted(named))


CHANGES: Final = (Insert, KeptChange, KeptMerge)
Kept: TypeAlias = QueryExpr | Insert | KeptChange | KeptMerge
"""A statement of a body that is kept as canonical text."""


def _bound_to_keep(context: BindContext, node: ast.StatementNode, *, runs: bool) -> Kept:
    """Bind a statement of a body that is kept as canonical text; ``runs``: it has to be one that can be run.
    Raises SqlError 0A000 for those that have none.
    """
    if modifies(node):
        if node.with_ is None:
            raise AssertionError("a query changes rows, and has no WITH")
        changing = frozenset(id(item) for item in node.with_.ctes if not isinstance(item.query, QUERIES))
        context = replace(context, changing=changing)
    if isinstance(node, QUERIES):
        query = bind_query(context, node)
        query_collations(query, context.catalog)
        return query
    if isinstance(node, ast.Update | ast.Delete):
        return kept_change(context, node, hint=_AS_TEXT, runs=runs)
    if isinstance(node, ast.Merge):
        return kept_merge(context, node, runs=runs)
    if not isinstance(node, ast.Insert):
        raise not_supported(f"{command_tag(node)} in BEGIN ATOMIC", hint=_AS_TEXT)
    return kept_insert(context, node, hint=_AS_TEXT)


def deparse_kept(kept: Kept, catalog: Catalog, **how: Any) -> str:
    """Return the text of a statement of a body, as stored or (``how``) for a reader. Raises SqlError 42703
    for a column that has gone.
    """
    if not isinstance(kept, CHANGES):
        return deparse_query(kept, table=catalog.relation_by_oid, **how)
    how.pop("names_visible", None)
    return deparse_change(kept, catalog.relation_by_oid, **how)


# --- bodies that are kept as canonical text -------------------------------------------------------


def body_statements(
    function: FunctionDef, catalog: Catalog, keys: set[tuple[int, int]] | None = None
) -> list[Kept]:
    """Return the statements of a BEGIN ATOMIC or RETURN body, ``$n`` for its inputs. Raises SqlError as binding does.

    ``keys`` gets the primary keys that its groups rely on (``BindContext.keys``).
    """
    context = make_context(
        catalog, function.path, text=function.body_sql, settings=STORED_TEXT, variable_params=False
    )
    inner = context.for_function(function, function.inputs)
    made = [_bound_to_keep(inner, parsed.statement, runs=False) for parsed in parse(function.body_sql)]
    if keys is not None:
        keys |= context.keys
    return made


def rebase_body(function: FunctionDef, before: Catalog, after: Catalog) -> str:
    """Return a body's text as it must read under ``after``, where relations or columns have new names."""
    return _BETWEEN.join(
        deparse_kept(renamed(kept, after), after) for kept in body_statements(function, before)
    )


def rebase_default(text: str, oid: int, before: Catalog, after: Catalog) -> str:
    """Return the text of a parameter's default as it must read under ``after``."""
    context = stored_context(before, text)
    expr = bind_kept(Scope(context=context), parse_expression(text), "PARAMETER DEFAULT")
    if oid not in POLYMORPHIC:
        expr = coerce_type(expr, SqlType(oid), CastContext.ASSIGNMENT, context.env)
    made: Expr = renamed(expr, after)
    return deparse_expr(made, indented=False)
