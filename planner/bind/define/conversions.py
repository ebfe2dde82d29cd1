"""Statements about conversions between encodings: encodings to numbers, functions and conversions to oids.

    CREATE CONVERSION c FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8       8, 6, 4346

A function that converts takes internal arguments, so those that there are are PostgreSQL's own; each is for
the encodings of its own conversions.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from pgwire.codecs.text.encodings import NAMES
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.placed import PG_CATALOG, creation_schema, schemas_of
from planner.catalog.conversions import PG_CONVERSION, ConversionDef
from planner.facts import BOOL, INT4, facts, rows
from planner.functions.system.names import encoding_number

_CSTRING, _INTERNAL = 2275, 2281
_ARGUMENTS: Final = (INT4, INT4, _CSTRING, _INTERNAL, INT4, BOOL)
_SHOWN: Final = "integer, integer, cstring, internal, integer, boolean"


@functools.cache
def own_conversions() -> Mapping[str, int]:
    """Return the oids of PostgreSQL's own conversions by name."""
    return {row["conname"]: int(row["oid"]) for row in rows("conversions")}


@functools.cache
def _pairs() -> Mapping[int, frozenset[tuple[int, int]]]:
    """Return between which encodings each function converts."""
    found: dict[int, set[tuple[int, int]]] = {}
    for row in rows("conversions"):
        pair = int(row["conforencoding"]), int(row["contoencoding"])
        found.setdefault(int(row["conproc"]), set()).add(pair)
    return {function: frozenset(pairs) for function, pairs in found.items()}


def find_conversion(context: BindContext, name: ast.Name) -> ConversionDef | int:
    """Return the conversion of a name, of PostgreSQL's own the oid. Raises SqlError 42704, 3F000."""
    for schema in schemas_of(context, name):
        if schema == PG_CATALOG and name[-1] in own_conversions():
            return own_conversions()[name[-1]]
        found = context.catalog.conversion_named(schema, name[-1])
        if found is not None:
            return found
    raise SqlError("42704", f'conversion "{".".join(name)}" does not exist')


def _users(context: BindContext, verb: str, name: ast.Name) -> ConversionDef:
    found = find_conversion(context, name)
    if isinstance(found, int):
        raise not_supported(f"{verb} CONVERSION of PostgreSQL's own")
    return found


def bind_create(context: BindContext, node: ast.CreateConversion) -> st.CreateConversion:
    """CREATE CONVERSION.

    Raises SqlError 3F000, 42704 (no such encoding), 42P17 (SQL_ASCII, another result than integer), 42883,
    XX000 as PostgreSQL (the function is for other encodings); 0A000 for a function of one's own.
    """
    schema = creation_schema(context, node.name, "conversion")
    source, target = encoding_number(node.source), encoding_number(node.target)
    for number, written, what in ((source, node.source, "source"), (target, node.target, "destination")):
        if number < 0:
            raise SqlError("42704", f'{what} encoding "{written}" does not exist')
    if "SQL_ASCII" in (NAMES[source], NAMES[target]):
        raise SqlError("42P17", 'encoding conversion to or from "SQL_ASCII" is not supported')
    return st.CreateConversion(
        schema=schema,
        name=node.name[-1],
        source=source,
        target=target,
        function=_function(context, node.function, source, target),
        default=node.default,
    )


def _function(context: BindContext, name: ast.Name, source: int, target: int) -> int:
    """Return a function that converts between two encodings."""
    for schema in schemas_of(context, name):
        for function in context.catalog.functions_named(name[-1]):
            if function.schema == schema and tuple(function.inputs) == _ARGUMENTS:
                raise not_supported("a conversion by a function of one's own")
        if schema != PG_CATALOG:
            continue
        for proc in facts().procs_by_name.get(name[-1], ()):
            if tuple(proc.arg_types) == _ARGUMENTS:
                _check_encodings(_pairs()[proc.oid], source, target)
                return proc.oid
    raise SqlError("42883", f"function {'.'.join(name)}({_SHOWN}) does not exist")


def _check_encodings(pairs: frozenset[tuple[int, int]], source: int, target: int) -> None:
    """Raise what PostgreSQL's function says when it is called with encodings that it is not for."""
    if (source, target) in pairs:
        return
    sources, targets = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    for asked, known, what in ((source, sources, "source"), (target, targets, "destination")):
        if len(known) == 1 and asked not in known:
            [only] = known
            raise SqlError("XX000", f'expected {what} encoding "{NAMES[only]}", but got "{NAMES[asked]}"')
    several = target if len(targets) > 1 else source
    family = "ISO 8859" if any(NAMES[n].startswith("LATIN") for n in sources | targets) else "WIN"
    raise SqlError("XX000", f"unexpected encoding ID {several} for {family} character sets")


def altered(context: BindContext, node: ast.AlterConversion) -> ConversionDef:
    """Return what ALTER CONVERSION is about. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    return _users(context, "ALTER", node.name)


def bind_drop(context: BindContext, node: ast.DropConversion) -> st.DropConversion:
    """DROP CONVERSION; nothing hangs on one. Raises SqlError 42704, 3F000, with IF EXISTS notices; 2BP01 for
    PostgreSQL's own.
    """
    found: dict[int, str] = {}
    notices: list[str] = []
    for name in node.names:
        try:
            one = find_conversion(context, name)
        except SqlError as error:
            if not node.if_exists or error.sqlstate not in ("42704", "3F000"):
                raise
            notices.append(f"{error.message}, skipping")
            continue
        if isinstance(one, int):
            raise SqlError(
                "2BP01", f"cannot drop conversion {name[-1]} because it is required by the database system"
            )
        found.setdefault(one.oid, ".".join(name))
    return st.DropConversion(objects=tuple(found), written=tuple(found.values()), missing=tuple(notices))


def bind_comment(context: BindContext, node: ast.CommentOnConversion) -> st.Comment:
    """COMMENT ON. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    found = _users(context, "COMMENT ON", node.name)
    class_oid: st.CommentClass = PG_CONVERSION
    return st.Comment(
        class_oid=class_oid, object_oid=found.oid, sub_id=0, text=node.text, name=".".join(node.name)
    )
