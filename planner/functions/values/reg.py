"""reg* types: oids that read and print as the names of catalog objects.

    'public.t'::regclass -> 16384        1259::regclass -> pg_class

Names are looked up along the search path; a name that is visible there prints without its schema.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from string import whitespace
from typing import Any, Final

from pgwire.codecs import array
from pgwire.codecs.int import parse_oid
from pgwire.codecs.invalid import quoting
from pgwire.give_way import outside
from pgwire.long.values import joined, run_end, stripped
from planner import ast
from planner.base.errors import SqlError, not_supported
from planner.base.identifiers import split_identifier
from planner.base.quoting import quote_ident
from planner.catalog import RelationDef, TextSearchDef, row_type_named
from planner.facts import (
    REGCLASS,
    REGCOLLATION,
    REGCONFIG,
    REGDICTIONARY,
    REGNAMESPACE,
    REGOPER,
    REGOPERATOR,
    REGPROC,
    REGPROCEDURE,
    REGROLE,
    REGTYPE,
    facts,
    rows,
)  # fmt: skip
from planner.functions.registry import REGISTRY
from planner.functions.session import NameScope
from planner.parse import parse, parse_expression
from planner.textsearch.names import (
    SEARCH_NAMES,
    find_named,
    is_visible,
)
from planner.types.facts import array_of

REG_TYPES = frozenset(
    (
        REGCLASS,
        REGNAMESPACE,
        REGOPER,
        REGOPERATOR,
        REGPROC,
        REGPROCEDURE,
        REGROLE,
        REGTYPE,
        REGCOLLATION,
        REGCONFIG,
        REGDICTIONARY,
    )
)
REG_ARRAYS = {facts().types[oid].array: oid for oid in REG_TYPES}
NAMED = REG_TYPES | REG_ARRAYS.keys()  # types whose text names catalog objects
_LABEL = {
    REGCLASS: "relation", REGNAMESPACE: "schema", REGROLE: "role", REGTYPE: "type", REGPROC: "function",
    REGPROCEDURE: "function", REGOPER: "operator", REGOPERATOR: "operator", REGCOLLATION: "collation",
    REGCONFIG: "text search configuration", REGDICTIONARY: "text search dictionary",
}  # fmt: skip


def _session(session: NameScope | None) -> NameScope:
    if session is None:
        raise not_supported("a catalog lookup without a session")
    return session


def object_schemas(session: NameScope, names: Sequence[str]) -> Sequence[str]:
    """Return the schemas in which a name is looked up; ``pg_temp`` is the session's own, once it exists.

    Raises SqlError 42501 for a schema in which the user may look nothing up, 42601 and 0A000 for names of too
    many parts.
    """
    if len(names) > 3:
        raise SqlError("42601", f"improper qualified name (too many dotted names): {'.'.join(names)}")
    if len(names) == 3:
        if names[0] != session.database:
            raise SqlError("0A000", f"cross-database references are not implemented: {'.'.join(names)}")
        names = names[1:]
    if len(names) > 1 and names[-2] in session.closed_schemas:
        raise SqlError("42501", f"permission denied for schema {names[-2]}")
    if len(names) > 1 and names[0] == "pg_temp":
        return [next((entry for entry in session.search_path if entry.startswith("pg_temp_")), "pg_temp")]
    return names[:-1] or session.search_path


def find_relation(session: NameScope, text: str) -> RelationDef | None:
    """Return the relation that a possibly qualified name denotes."""
    names = split_identifier(text)
    if len(names) > 3:
        raise SqlError("42601", f"improper relation name (too many dotted names): {text}")
    if len(names) == 3:
        if names[0] != session.database:
            raise SqlError("0A000", quoting("cross-database references are not implemented: ", text))
        names = names[1:]
    schemas = object_schemas(session, names)
    if len(names) == 2 and session.catalog.schema(schemas[0]) is None:
        raise SqlError("3F000", quoting("schema ", names[0], " does not exist"))
    for schema in schemas:
        relation = session.catalog.relation(schema, names[-1])
        if relation is not None:
            return relation
    return None


_SQL_TYPES = {
    "integer": "int4", "int": "int4", "smallint": "int2", "bigint": "int8", "real": "float4", "float": "float8",
    "double precision": "float8", "decimal": "numeric", "boolean": "bool", "character": "bpchar", "char": "bpchar",
    "character varying": "varchar", "char varying": "varchar", "bit varying": "varbit",
    "time without time zone": "time", "time with time zone": "timetz", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz", '"char"': "char",
}  # fmt: skip
_LONGEST: Final = max(map(len, _SQL_TYPES))


@outside(1 << 14)
def _written(text: str) -> tuple[str, int]:
    """Return the name of a type as it is written, without modifiers, and 1 where it is an array."""
    before, close, after = " ".join(text.split()).rpartition(
        ")"
    )  # no bracket is looked for that does not come
    name = (re.sub(r"\s*\([^)]*\)", "", before + close) + after).strip()
    dimensions = 0
    while name.endswith("[]"):
        name, dimensions = name[:-2].rstrip(), 1
    return name, dimensions


def find_type(text: str, session: NameScope | None = None) -> int | None:
    """Return the oid of a type written in SQL: ``integer[]``, ``character varying(20)``, ``pg_catalog.int4``.

    With ``session`` users' types are found, too, along the search path.
    """
    name, dimensions = _written(text)
    lowered = name.lower() if len(name) <= _LONGEST else ""
    if lowered in _SQL_TYPES:
        lowered = _SQL_TYPES[lowered]
    else:
        names = split_identifier(name)
        if len(names) > 2:
            if session is None:
                return None
            names = [*object_schemas(session, names), names[-1]]
        if len(names) == 1 or names[0] != "pg_catalog":
            made = _users_type(session, names)
            if made or len(names) == 2:
                return array_of(made) if dimensions and made else made
        lowered = names[-1]
    fact = facts().types_by_name.get(lowered)
    if fact is None:
        of_rows = None if session is None else row_type_named(session.catalog, "pg_catalog", lowered)
        return None if of_rows is None else array_of(of_rows[1]) or None if dimensions else of_rows[1]
    return (fact.array or None) if dimensions else fact.oid


def _users_type(session: NameScope | None, names: list[str]) -> int | None:
    """Return the user's type, of a table's rows maybe, that a name means; None where a built-in one comes first."""
    if session is None:
        return None
    for schema in object_schemas(session, names):
        if schema == "pg_catalog" and names[-1] in facts().types_by_name:
            return None
        found = session.catalog.type_oid(schema, names[-1])
        if found is not None:
            return found
        of_rows = row_type_named(session.catalog, schema, names[-1])
        if of_rows is not None:
            return of_rows[1]
    return None


def _find_type(session: NameScope, text: str) -> int | None:
    return find_type(text, session)


def _find_by_grammar(session: NameScope, text: str) -> int | None:
    """Return the type that a text means, which may be whatever SQL takes for one. Raises SqlError 42601 for what it
    does not.
    """
    try:
        found = find_type(text, session)
    except SqlError as error:
        if error.sqlstate != "42602" or len(text) > _LONGEST_PARSED:
            raise
        found = None
    if found is not None or len(text) > _LONGEST_PARSED or _PLAIN_NAME.fullmatch(text):
        return found
    where = quoting("invalid type name ", text, "")
    if not text.strip(whitespace):
        raise SqlError("42601", where)
    try:
        written = parse_expression(f"NULL::{text}")
    except SqlError as error:
        message = error.message
        if message.endswith((' ")"', '\n)"')):  # behind the text, where the expression ends
            message = _at_end(text)
        raise SqlError(error.sqlstate, message, where=where) from error
    if (
        not isinstance(written, ast.TypeCast)
        or not isinstance(written.arg, ast.Constant)
        or written.type.setof
    ):
        raise SqlError("42601", where)
    name = ".".join(map(quote_ident, written.type.names)) + "[]" * bool(written.type.dims)
    return find_type(name, session)


def _at_end(text: str) -> str:
    """Return what is wrong with the name of a type that stops too early."""
    try:
        parse(f"SELECT NULL::{text}")
    except SqlError as error:
        return error.message
    return "syntax error at end of input"


_LONGEST_PARSED: Final = 1 << 12
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?(\[\])*", re.ASCII)


def find_procs(session: NameScope, text: str) -> list[tuple[int, tuple[int, ...]]]:
    """Return oid and argument types of the functions of a name, along the search path where it has no schema."""
    names = split_identifier(text)
    found: list[tuple[int, tuple[int, ...]]] = []
    for schema in object_schemas(session, names):
        if schema == "pg_catalog":
            found += [(proc.oid, proc.arg_types) for proc in facts().procs_by_name.get(names[-1], ())]
            continue
        seen = {types for _, types in found}
        found += [
            (function.oid, function.inputs)
            for function in session.catalog.functions_named(names[-1])
            if function.schema == schema and function.inputs not in seen
        ]
    return found


def _find_procedure(session: NameScope, text: str) -> int | None:
    head, paren, rest = text.partition("(")
    if not paren or not rest.rstrip().endswith(")"):
        raise SqlError(
            "22P02", "expected a left parenthesis" if not paren else "expected a right parenthesis"
        )
    inner = rest.rstrip()[:-1].strip()
    types = tuple(_find_type(session, part) for part in inner.split(",")) if inner else ()
    return next((oid for oid, found in find_procs(session, head) if found == types), None)


def _find_operator(text: str) -> int | None:
    head, paren, rest = text.partition("(")
    parts = rest.rstrip().removesuffix(")").split(",") if paren else []
    if not rest.rstrip().endswith(")"):
        raise SqlError(
            "22P02", "expected a left parenthesis" if not paren else "expected a right parenthesis"
        )
    if len(parts) != 2:
        raise SqlError(
            "42P02", "missing argument", hint="Use NONE to denote the missing argument of a unary operator."
        )
    types = tuple(0 if part.strip().lower() == "none" else find_type(part) for part in parts)
    for operator in facts().operators_by_name.get(head.strip().rpartition(".")[2], ()):
        if (operator.left, operator.right) == types:
            return operator.oid
    return None


def _lookup(session: NameScope | None, oid: int, text: str) -> int | None:
    if oid in SEARCH_NAMES:
        if session is None:
            return _oid_of(find_named(oid, text, None, ("pg_catalog",), ""))
        return _oid_of(find_named(oid, text, session.catalog, session.search_path, session.database))
    return _lookup_in_catalog(_session(session), oid, text)


def _oid_of(found: TextSearchDef | None) -> int | None:
    return None if found is None else found.oid


def search_object_name(session: NameScope, found: TextSearchDef) -> str:
    """Return the name of a text search object as the reader has to write it."""
    name = quote_ident(found.name)
    if is_visible(session.catalog, session.search_path, found):
        return name
    return f"{quote_ident(found.schema)}.{name}"


def _only_name(text: str) -> str:
    """Return the name of what is in no schema. Raises SqlError 42602 for one of several parts."""
    names = split_identifier(text)
    if len(names) != 1:
        raise SqlError("42602", "invalid name syntax")
    return names[0]


def _lookup_in_catalog(session: NameScope, oid: int, text: str) -> int | None:
    if oid == REGCLASS:
        relation = find_relation(session, text)
        return relation.oid if relation is not None else None
    if oid == REGNAMESPACE:
        schema = session.catalog.schema(_only_name(text))
        return schema.oid if schema is not None else None
    if oid == REGROLE:
        role = session.catalog.role(_only_name(text))
        return role.oid if role is not None else None
    if oid == REGTYPE:
        return _find_by_grammar(session, text)
    if oid == REGPROC:
        procs = find_procs(session, text)
        if len(procs) > 1:
            raise SqlError("42725", quoting("more than one function named ", text))
        return procs[0][0] if procs else None
    if oid == REGPROCEDURE:
        return _find_procedure(session, text)
    if oid == REGOPER:
        names = split_identifier(text)
        operators = facts().operators_by_name.get(names[-1], ())
        found = [op.oid for op in operators if "pg_catalog" in object_schemas(session, names)]
        if len(found) > 1:
            raise SqlError("42725", joined(("more than one operator named ", text)))
        return found[0] if found else None
    if oid == REGOPERATOR:
        return _find_operator(text)
    if oid == REGCOLLATION:
        names = split_identifier(text)
        places = object_schemas(session, names)
        if len(names) > 1 and places[0] != "pg_catalog" and session.catalog.schema(places[0]) is None:
            raise SqlError("3F000", f'schema "{places[0]}" does not exist')
        for place in places:
            made = session.catalog.collation_named(place, names[-1])
            if made is not None and not place.startswith("pg_temp"):
                return made.oid
            if place == "pg_catalog":
                for row in rows("collations"):
                    if row["collname"] == names[-1]:
                        return int(row["oid"])
        return None
    raise not_supported(f"input of type {facts().types[oid].name}")


_MISSING = {
    REGCLASS: "42P01", REGNAMESPACE: "3F000", REGROLE: "42704", REGTYPE: "42704", REGPROC: "42883",
    REGPROCEDURE: "42883", REGOPER: "42883", REGOPERATOR: "42883", REGCOLLATION: "42704",
    REGCONFIG: "42704", REGDICTIONARY: "42704",
}  # fmt: skip


_DIGITS: Final = re.compile(r"[0-9]*")


def reg_input(session: NameScope | None, oid: int, text: str) -> int:
    """Read a reg* value: a number, ``-`` for 0, or a name."""
    bare = stripped(text, whitespace, True, True)
    if bare == "-":
        return 0
    if bare and run_end(_DIGITS, bare, 0) == len(bare):
        return parse_oid(bare)
    return named_oid(session, oid, text)


def named_oid(session: NameScope | None, oid: int, text: str) -> int:
    """Return the oid of what a name means, be it a name of digits; 42P01 and kin where nothing has it."""
    found = _lookup(session, oid, text)
    if found is None:
        if oid == REGOPER:
            message = joined(("operator does not exist: ", text))
        elif oid == REGCOLLATION:
            message = quoting(
                "collation ", joined(_names(text, oid), "."), ' for encoding "UTF8" does not exist'
            )
        else:
            message = quoting(f"{_LABEL[oid]} ", joined(_names(text, oid), "."), " does not exist")
        raise SqlError(_MISSING[oid], message)
    return found


def _names(text: str, oid: int) -> list[str]:
    if oid in (REGTYPE, REGPROCEDURE):
        return [text]
    return split_identifier(text)


def named_input(session: NameScope | None, oid: int, text: str) -> Any:
    """Read a value of a type in NAMED: a reg* value, or an array of them."""
    element = REG_ARRAYS.get(oid)
    if element is None:
        return reg_input(session, oid, text)
    return array.parse(text, lambda item: reg_input(session, element, item))


def _to_reg(oid: int) -> object:
    def convert(session: NameScope, text: str) -> int | None:
        if text.strip().isdigit() or text.strip() == "-":
            return None
        try:
            return _lookup(session, oid, text)
        except SqlError as error:
            if error.sqlstate in ("42725", "42704", "3F000"):
                return None
            raise

    return convert


def _register() -> None:
    python = REGISTRY.python
    python(
        "regclass(text)",
        lambda session, text: named_oid(session, REGCLASS, text),
        needs_session=True,
        for_rows=lambda session: functools.cache(lambda text: named_oid(session, REGCLASS, text)),
    )
    for name, oid in (
        ("to_regclass", REGCLASS), ("to_regnamespace", REGNAMESPACE), ("to_regrole", REGROLE),
        ("to_regtype", REGTYPE), ("to_regproc", REGPROC), ("to_regprocedure", REGPROCEDURE),
        ("to_regoper", REGOPER), ("to_regoperator", REGOPERATOR), ("to_regcollation", REGCOLLATION),
    ):  # fmt: skip
        python(f"{name}(text)", _to_reg(oid), needs_session=True)  # type: ignore[arg-type]


_register()
