"""How values of the reg* types print: by the names of what they are oids of, as the reader's search path finds it."""

from __future__ import annotations

from typing import Any

from pgwire.codecs import array
from planner.base.quoting import printed, quote_ident
from planner.conversion.collations import shown_collation
from planner.facts import (
    INFORMATION_SCHEMA_OID,
    PG_CATALOG_OID,
    PUBLIC_OID,
    REGCLASS,
    REGCOLLATION,
    REGNAMESPACE,
    REGOPER,
    REGOPERATOR,
    REGPROC,
    REGPROCEDURE,
    REGROLE,
    REGTYPE,
    facts,
)  # fmt: skip
from planner.functions.session import EvalSession
from planner.functions.system.function_names import constructor_name, function_name, shown_function
from planner.functions.system.names import other_type_name
from planner.functions.values.reg import REG_ARRAYS, find_procs, search_object_name
from planner.textsearch.names import (
    SEARCH_NAMES,
    built_in_name,
    by_oid,
)
from planner.types.facts import FIRST_USER_OID, format_type, is_fact


def _search_name(session: EvalSession | None, oid: int, value: int) -> str | None:
    if session is None:
        return built_in_name(oid, value)
    found = by_oid(session.catalog, oid, value)
    return None if found is None else search_object_name(session, found)


def _relation_name(session: EvalSession, value: int) -> str | None:
    relation = session.catalog.relation_by_oid(value)
    if relation is None:
        return None
    for schema in session.search_path:
        visible = session.catalog.relation(schema, relation.name)
        if visible is not None:
            if visible.oid == value:
                return quote_ident(relation.name)
            break
    return f"{quote_ident(relation.schema)}.{quote_ident(relation.name)}"


def _schema_name(session: EvalSession, value: int) -> str | None:
    for name in ("pg_catalog", "public", "information_schema", "pg_toast", *session.search_path):
        schema = session.catalog.schema(name)
        if schema is not None and schema.oid == value:
            return quote_ident(name)
    by_oid = getattr(session.catalog, "schema_by_oid", None)
    if by_oid is not None:
        schema = by_oid(value)
        return quote_ident(schema.name) if schema is not None else None
    known = {PG_CATALOG_OID: "pg_catalog", PUBLIC_OID: "public", INFORMATION_SCHEMA_OID: "information_schema"}
    return known.get(value)


def _role_name(session: EvalSession, value: int) -> str | None:
    by_oid = getattr(session.catalog, "role_by_oid", None)
    if by_oid is not None:
        role = by_oid(value)
        return quote_ident(role.name) if role is not None else None
    role = session.catalog.role(session.user)
    return quote_ident(role.name) if role is not None and role.oid == value else None


def procedure_name(value: int) -> str | None:
    """Return ``name(argtypes)`` of a function."""
    proc = facts().procs.get(value)
    if proc is None:
        return None
    name = quote_ident(proc.name)
    if proc.name not in facts().procs_by_name:
        name = f"{quote_ident('information_schema')}.{name}"
    return f"{name}({','.join(format_type(t) for t in proc.arg_types)})"


def _users_function(session: EvalSession, oid: int, value: int) -> str | None:
    """Return a user's function as regproc (its name) or regprocedure (with argument types) prints it."""
    function = session.catalog.function_by_oid(value)
    if function is None:
        return constructor_name(session, value, with_types=oid == REGPROCEDURE)
    if oid == REGPROCEDURE:
        return shown_function(session, function)
    if len(find_procs(session, quote_ident(function.name))) > 1:
        return f"{quote_ident(function.schema)}.{quote_ident(function.name)}"
    return function_name(session, function)


def reg_output(session: EvalSession | None, oid: int, value: int) -> str:
    """Print a reg* value: the name, ``-`` for 0, the number when nothing has that oid."""
    if value == 0:
        return "-"
    found: str | None = printed(session, _reg_name, session, oid, value)
    return found if found is not None else str(value)


def _reg_name(session: EvalSession | None, oid: int, value: int) -> str | None:
    found: str | None = None
    if oid == REGTYPE:
        if is_fact(value):
            found = format_type(value, None)
        elif session is not None:
            found = other_type_name(session, value)
    elif oid in (REGPROC, REGPROCEDURE) and value >= FIRST_USER_OID:
        found = None if session is None else _users_function(session, oid, value)
    elif oid == REGPROC:
        proc = facts().procs.get(value)
        if proc is not None:
            same_name = len(facts().procs_by_name.get(proc.name, ()))
            schema = quote_ident("pg_catalog" if same_name else "information_schema")
            found = quote_ident(proc.name) if same_name == 1 else f"{schema}.{quote_ident(proc.name)}"
    elif oid == REGPROCEDURE:
        found = procedure_name(value)
    elif oid in SEARCH_NAMES:
        found = _search_name(session, oid, value)
    elif oid in (REGOPER, REGOPERATOR):
        op = facts().operators.get(value)
        if op is not None:
            if oid == REGOPER:
                unique = len(facts().operators_by_name[op.name]) == 1
                found = op.name if unique else f"{quote_ident('pg_catalog')}.{op.name}"
            else:
                left = format_type(op.left) if op.left else "NONE"
                found = f"{op.name}({left},{format_type(op.right)})"
    elif session is not None:
        if oid == REGCLASS:
            found = _relation_name(session, value)
        elif oid == REGNAMESPACE:
            found = _schema_name(session, value)
        elif oid == REGROLE:
            found = _role_name(session, value)
        elif oid == REGCOLLATION:
            found = shown_collation(value, session.catalog, session.search_path)
    return found


def named_output(session: EvalSession | None, oid: int, value: Any) -> str:
    """Print a value of a type in NAMED."""
    element = REG_ARRAYS.get(oid)
    if element is None:
        return reg_output(session, oid, value)
    return array.printer(lambda item: reg_output(session, element, item), leaf_is_tuple=False, plain=False)(
        value
    )
