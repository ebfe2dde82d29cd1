"""pg_get_function*: the SQL text of functions, built-in ones (``planner.information.definitions``) and users'.

CREATE OR REPLACE FUNCTION public.f(a integer, b text DEFAULT 'x'::text)
RETURNS integer
LANGUAGE sql
IMMUTABLE STRICT
AS $function$SELECT a + 1$function$
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from planner.base.errors import SqlError
from planner.base.quoting import quote_ident
from planner.bind.define.functions import body_statements, deparse_kept
from planner.bind.expression.calls import default_values
from planner.catalog import FunctionDef
from planner.conversion.collations import shown_collation
from planner.conversion.polymorphic import POLYMORPHIC, takes_unknown
from planner.deparse import deparse_expr
from planner.deparse.expr import quote_literal
from planner.facts import UNKNOWN
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.function_names import _type, constructor_name
from planner.functions.system.names import function_is_visible, qualifier, shown_schema
from planner.functions.values.reg import search_object_name
from planner.information import definitions as built_in
from planner.information.named_constants import as_literals_are, for_reader
from planner.query import Select
from planner.textsearch import names as search_names
from planner.types import SqlType

_LISTS: Final = ("search_path", "session_preload_libraries", "temp_tablespaces", "local_preload_libraries")
_ITEM: Final = re.compile(r'"((?:[^"]|"")*)"|([^,\s"]+)')
_MODES = {"i": "", "o": "OUT ", "b": "INOUT ", "v": "VARIADIC "}
_VOLATILITY = {"i": "IMMUTABLE", "s": "STABLE", "v": ""}
_PARALLEL = {"s": "PARALLEL SAFE", "r": "PARALLEL RESTRICTED", "u": ""}


def called_function(session: EvalSession, function: FunctionDef) -> str:
    """As ``function_name``, in definitions."""
    name = quote_ident(function.name)
    return (
        name if function_is_visible(session, function) else f"{shown_schema(session, function.schema)}.{name}"
    )


def namer(session: EvalSession) -> built_in.FunctionNamer:
    """Return what tells what the reader has to write for a user's function, text search object or collation
    (oid, schema, name).
    """

    def name(oid: int, schema: str, called: str) -> str:
        function = session.catalog.function_by_oid(oid)
        if function is not None:
            return called_function(session, function)
        if session.catalog.collation_by_oid(oid) is not None:
            return str(shown_collation(oid, session.catalog, session.search_path))
        search = session.catalog.text_search_by_oid(oid)
        if schema == search_names.PG_CATALOG:
            search = search_names.built_in()[oid]
        if search is not None:
            return search_object_name(session, search)
        if called.isdigit():
            return called  # a text search object that is not there
        return constructor_name(session, oid) or quote_ident(called)

    return name


def _default(session: EvalSession, function: FunctionDef, number: int) -> str:
    """Return the text of default ``number`` for the reader."""
    value = default_values(function, session.catalog)[number]
    declared = function.inputs[len(function.inputs) - len(function.defaults) + number]
    if value.type.oid == UNKNOWN and declared in POLYMORPHIC and not takes_unknown(declared):
        value = replace(value, type=SqlType(declared))
    shown = deparse_expr(
        value, settings=built_in.shown_settings(session), type_name=built_in.type_namer(session),
        function_name=namer(session), indented=False,
    )  # fmt: skip
    return for_reader(session, shown)


def _arguments(session: EvalSession, function: FunctionDef, *, defaults: bool) -> str:
    parts: list[str] = []
    inputs = 0
    for oid, mode, name in zip(function.types, function.modes, function.names, strict=True):
        if mode == "t":
            continue
        text = (
            ("IN " if mode == "i" and function.kind == "p" else _MODES[mode])
            + (quote_ident(name) + " " if name else "")
            + _type(session, oid)
        )
        if mode in "ibv":
            inputs += 1
            left = len(function.inputs) - inputs
            if defaults and left < len(function.defaults):
                text += " DEFAULT " + _default(session, function, len(function.defaults) - 1 - left)
        parts.append(text)
    made = function.aggregate
    if made is None or made.kind == "n":
        return ", ".join(parts)
    return built_in.with_order(parts, made.direct)


def _result(session: EvalSession, function: FunctionDef) -> str:
    if "t" in function.modes:
        columns = [
            f"{quote_ident(name)} {_type(session, oid)}"
            for oid, mode, name in zip(function.types, function.modes, function.names, strict=True)
            if mode == "t"
        ]
        return f"TABLE({', '.join(columns)})"
    return ("SETOF " if function.returns_set else "") + _type(session, function.result)


def function_arguments(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_function_arguments``: with names, modes and defaults."""
    function = session.catalog.function_by_oid(oid)
    if function is None:
        return built_in.function_arguments(oid)
    return _arguments(session, function, defaults=True)


def function_identity_arguments(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_function_identity_arguments``: without defaults."""
    function = session.catalog.function_by_oid(oid)
    if function is None:
        return built_in.function_identity_arguments(oid)
    return _arguments(session, function, defaults=False)


def function_result(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_function_result``; NULL for procedures."""
    function = session.catalog.function_by_oid(oid)
    if function is None:
        return built_in.function_result(oid)
    return None if function.kind == "p" else _result(session, function)


def function_argument_default(session: EvalSession, oid: int, position: int) -> str | None:
    """SQL's ``pg_get_function_arg_default``: of parameter ``position``, from 1; NULL where it has none."""
    function = session.catalog.function_by_oid(oid)
    if function is None:
        return built_in.function_argument_default(oid, position)
    if not 1 <= position <= len(function.modes) or function.modes[position - 1] not in "ibv":
        return None
    before = sum(mode in "ibv" for mode in function.modes[:position])
    number = before - 1 - (len(function.inputs) - len(function.defaults))
    return _default(session, function, number) if number >= 0 else None


def function_body(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_function_sqlbody``: RETURN or BEGIN ATOMIC; NULL for a body that is a text."""
    function = session.catalog.function_by_oid(oid)
    if function is None or function.source or not (function.body_sql or function.path):
        return None
    if not function.body_sql:
        return "BEGIN ATOMIC\nEND"
    kept = body_statements(function, session.catalog)
    settings, types, names = built_in.shown_settings(session), built_in.type_namer(session), namer(session)
    parameters = function.input_names
    shown: list[str] = []
    for number, one in enumerate(kept):
        if isinstance(one, Select) and (function.returns or number in function.returned):
            text = " RETURN " + deparse_expr(
                one.targets[0].expr, settings=settings, qualify=qualifier(session), type_name=types,
                function_name=names, parameters=parameters, indented=False,
            )  # fmt: skip
        else:
            text = deparse_kept(
                one, session.catalog, settings=settings, qualify=qualifier(session), type_name=types,
                function_name=names, function=function.name, parameters=parameters, names_visible=False,
            )  # fmt: skip
        shown.append(for_reader(session, text))
    if function.returns:
        return shown[0].lstrip()
    lines = "".join([text.replace("\n", "\n ") + ";\n" for text in shown])
    return f"BEGIN ATOMIC\n{lines}END"


def function_definition(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_functiondef``. Raises SqlError 42809 for aggregates."""
    function = session.catalog.function_by_oid(oid)
    if function is None:
        return built_in.function_definition(oid)
    if function.kind == "a":
        raise SqlError("42809", f'"{function.name}" is an aggregate function')
    name = f"{shown_schema(session, function.schema)}.{quote_ident(function.name)}"
    what = "PROCEDURE" if function.kind == "p" else "FUNCTION"
    text = f"CREATE OR REPLACE {what} {name}({_arguments(session, function, defaults=True)})\n"
    text += f" RETURNS {_result(session, function)}\n" if function.kind == "f" else ""
    text += f" LANGUAGE {quote_ident('internal' if function.internal else function.language)}\n"
    words = [_VOLATILITY[function.volatility], _PARALLEL[function.parallel]]
    words += ["STRICT" if function.strict else "", "SECURITY DEFINER" if function.definer else ""]
    words.append("LEAKPROOF" if function.leakproof else "")
    words.append(f"COST {function.cost:g}" if function.cost != (1 if function.internal else 100) else "")
    words.append(f"ROWS {function.rows:g}" if function.rows not in (0, 1000) else "")
    line = " ".join(word for word in words if word)
    text += f" {line}\n" if line else ""
    for setting, value in function.settings:
        text += f" SET {quote_ident(setting)} TO {as_literals_are(session, _setting_value(setting, value))}\n"
    body = function_body(session, oid)
    if body is not None:
        return f"{text}{body}\n"
    quote = "$procedure" if function.kind == "p" else "$function"
    while quote in function.source:
        quote += "x"
    return f"{text}AS {quote}${function.source}{quote}$\n"


def _setting_value(name: str, value: str) -> str:
    """Return a setting's value as SET takes it: a list as its items."""
    if name.lower() not in _LISTS:
        return quote_literal(value)
    items = [quoted.replace('""', '"') if quoted else plain for quoted, plain in _ITEM.findall(value)]
    return ", ".join(quote_literal(item) for item in items)


def _register() -> None:
    python = REGISTRY.python
    python("pg_get_functiondef(oid)", function_definition, needs_session=True)
    python("pg_get_function_arguments(oid)", function_arguments, needs_session=True)
    python("pg_get_function_identity_arguments(oid)", function_identity_arguments, needs_session=True)
    python("pg_get_function_result(oid)", function_result, needs_session=True)
    python("pg_get_function_arg_default(oid,int4)", function_argument_default, needs_session=True)
    python("pg_get_function_sqlbody(oid)", function_body, needs_session=True)


_register()
