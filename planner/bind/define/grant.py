"""GRANT and REVOKE: words to letters, names to oids (``planner.catalog.acl``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from pgwire.give_way import paced, paced_iter
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.foreign import CLASSES
from planner.bind.define.named_functions import PG_PROC, BuiltIn, find_function, signature
from planner.bind.define.types import PG_TYPE, users_type
from planner.bind.session.utility import owner_name
from planner.catalog import RelationDef
from planner.catalog.acl import ALL, WORDS, ordered
from planner.catalog.foreign import FOREIGN_WORDS, PG_FOREIGN_SERVER
from planner.catalog.parameters import PG_PARAMETER_ACL, parameter_oid
from planner.catalog.relation_kinds import CALLED, GRANTED
from planner.catalog.rights import PG_LANGUAGE, grantable_columns, languages
from planner.facts import PG_CATALOG_OID, facts
from planner.types.facts import FIRST_USER_OID, element_of, is_fact, type_kind

PG_CLASS, PG_NAMESPACE, PG_DATABASE, PG_LARGEOBJECT = 1259, 2615, 1262, 2613


def bind_grant(context: BindContext, node: ast.Grant) -> st.Grant:
    """GRANT and REVOKE of privileges on tables, columns, sequences, schemas, types, functions, languages, databases,
    foreign-data wrappers and servers, and large objects.

    Raises SqlError 42P01, 3F000, 3D000, 42703, 42704, 42809 (a language that is not trusted), 0LP01 (a
    privilege that the kind of object has not, grant options for everybody), 42601 (no such word); 0A000 for
    other kinds of objects.
    """
    try:
        targets = tuple(paced_iter(_targets(context, node)))
    except SqlError as error:
        if error.sqlstate in _BEHIND_ROLES:
            check_roles(context, node.grantees)
        raise
    if node.is_grant and node.option and any(role.special == "public" for role in paced(node.grantees)):
        raise SqlError("0LP01", "grant options can only be granted to roles")
    return st.Grant(
        is_grant=node.is_grant,
        targets=targets,
        grantees=tuple(
            None if role.special == "public" else owner_name(role) for role in paced(node.grantees)
        ),
        option=node.option,
        grantor=None if node.grantor is None else owner_name(node.grantor),
        cascade=node.cascade,
    )


_BEHIND_ROLES: Final = ("0LP01", "42601", "42703")
"""What is wrong with privileges and columns is told behind roles that are not there, what is wrong with
objects before."""


def check_roles(context: BindContext, roles: Iterable[ast.Role]) -> None:
    """Raise SqlError 42704 for the first role that is not there; roles that are found where the statement
    runs are looked up again there.
    """
    for role in paced_iter(roles):
        if not role.special and context.catalog.role(role.name) is None:
            raise SqlError("42704", f'role "{role.name}" does not exist')


def bind_grant_role(context: BindContext, node: ast.GrantRole) -> st.GrantRole:
    """GRANT and REVOKE of roles, whose GRANTED BY counts for nothing. Raises SqlError 42704 for PUBLIC."""
    return st.GrantRole(
        is_grant=node.is_grant,
        roles=node.roles,
        members=tuple(owner_name(role) for role in paced(node.grantees)),
        admin=node.admin,
        grantor=owner_name(replace(node.grantor, span=None)) if node.is_grant and node.grantor else None,
    )


def _targets(context: BindContext, node: ast.Grant) -> Iterator[st.GrantTarget]:
    if node.kind in ("table", "sequence"):
        for relation in _relations(context, node):
            yield from _on_relation(relation, node)
    elif node.kind == "schema":
        for name in node.names:
            schema = context.catalog.schema(name)
            if schema is None:
                raise SqlError("3F000", f'schema "{name}" does not exist')
            yield _on_object("schema", PG_NAMESPACE, schema.oid, node)
    elif node.kind in ("type", "domain"):
        for qualified in node.qualified:
            yield _on_object("type", PG_TYPE, _grantable_type(context, qualified, node.kind), node)
    elif node.kind in ("function", "procedure", "routine"):
        for oid in _functions(context, node):
            yield _on_object("function", PG_PROC, oid, node)
    elif node.kind == "database":
        for name in node.names:
            database = context.catalog.database_named(name)
            if database is None:
                raise SqlError("3D000", f'database "{name}" does not exist')
            yield _on_object("database", PG_DATABASE, database.oid, node)
    elif node.kind == "language":
        for name in node.names:
            yield _on_object("language", PG_LANGUAGE, _trusted_language(name), node)
    elif node.kind in CLASSES:
        class_oid = CLASSES[node.kind]
        for name in node.names:
            found = context.catalog.foreign_named(class_oid, name)
            if found is None:
                raise SqlError("42704", f'{FOREIGN_WORDS[class_oid]} "{name}" does not exist')
            kind = "foreign server" if class_oid == PG_FOREIGN_SERVER else FOREIGN_WORDS[class_oid]
            yield _on_object(kind, class_oid, found.oid, replace(node, kind=kind))
    elif node.kind == "parameter acl":
        for name in node.names:
            target = _on_object(
                "parameter", PG_PARAMETER_ACL, parameter_oid(name), replace(node, kind="parameter")
            )
            yield replace(target, name=name)
    elif node.kind == "large object":
        for number in node.numbers:
            yield _on_object("large object", PG_LARGEOBJECT, number, node)
    else:
        raise not_supported(f"{_verb(node)} ON {node.kind.upper()}", span=node.span)


def _verb(node: ast.Grant) -> str:
    return "GRANT" if node.is_grant else "REVOKE"


def _trusted_language(name: str) -> int:
    if name not in languages():
        raise SqlError("42704", f'language "{name}" does not exist')
    oid, trusted = languages()[name]
    if not trusted:
        raise SqlError(
            "42809",
            f'language "{name}" is not trusted',
            detail="GRANT and REVOKE are not allowed on untrusted languages, because only superusers can use untrusted languages.",
        )
    return oid


def _grantable_type(context: BindContext, name: ast.Name, what: str) -> int:
    built_in = context.find_type(name[-2] if len(name) > 1 else "", name[-1]) or 0
    domain = context.catalog.type_by_oid(built_in) if built_in < FIRST_USER_OID else None
    if domain is not None and domain.oid == built_in:
        return built_in
    if domain is not None or is_fact(built_in):
        if what == "domain" and domain is None:
            raise SqlError("42809", f'"{facts().types[built_in].name}" is not a domain')
        if domain is not None or (
            element_of(built_in) and type_kind(built_in) != "p" and facts().types[built_in].length == -1
        ):
            raise SqlError(
                "0LP01",
                "cannot set privileges of array types",
                hint="Set the privileges of the element type instead.",
            )
        return built_in
    found = users_type(context, name, change=False, what=what)
    oid = context.find_type(name[-2] if len(name) > 1 else "", name[-1])
    if found.multirange and oid in (found.multirange, found.multirange + 1):
        raise not_supported("privileges of multirange types")
    if found.array_oid == oid:
        raise SqlError(
            "0LP01",
            "cannot set privileges of array types",
            hint="Set the privileges of the element type instead.",
        )
    return found.oid


def _functions(context: BindContext, node: ast.Grant) -> Iterator[int]:
    """Yield the functions by oid, users' and those built in."""
    if not node.every:
        for named in node.functions:
            if not isinstance(named, ast.FunctionName):
                raise AssertionError(f"a function is named by {type(named).__name__}")
            try:
                yield find_function(context, node.kind, named).oid
            except BuiltIn as error:
                if node.kind == "procedure":
                    proc = facts().procs[error.oid]
                    shown = signature(proc.name, proc.arg_types)
                    raise SqlError("42809", f"{shown} is not a procedure") from None
                yield error.oid
        return
    for name in node.names:
        schema = context.catalog.schema(name)
        if schema is None:
            raise SqlError("3F000", f'schema "{name}" does not exist')
        if schema.oid == PG_CATALOG_OID:  # built-in functions have no access lists
            raise not_supported(f"{_verb(node)} ON ALL {node.kind.upper()}S IN SCHEMA {name}", span=node.span)
        for function in context.catalog.functions_in(name):
            if node.kind == "routine" or (node.kind == "procedure") == (function.kind == "p"):
                yield function.oid


def _relations(context: BindContext, node: ast.Grant) -> Iterator[RelationDef]:
    if not node.every:
        for reference in node.relations:
            relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
            if relation.kind == "c":
                raise SqlError("42809", f'"{relation.name}" is a composite type')
            if relation.kind == "i":
                raise SqlError("42809", f'"{relation.name}" is an index')
            if node.kind == "sequence" and relation.kind != "S":
                raise SqlError("42809", f'"{relation.name}" is not a sequence')
            yield relation
        return
    kinds = CALLED["sequence"] if node.kind == "sequence" else GRANTED
    for name in node.names:
        if context.catalog.schema(name) is None:
            raise SqlError("3F000", f'schema "{name}" does not exist')
        found = [r for r in context.catalog.relations(name) if r.kind in kinds]
        if any(r.virtual for r in found):
            raise not_supported(f"{_verb(node)} ON ALL TABLES IN SCHEMA {name}", span=node.span)
        yield from sorted(found, key=lambda relation: relation.oid)


def _on_relation(relation: RelationDef, node: ast.Grant) -> Iterator[st.GrantTarget]:
    """Yield what is asked of a relation, then of its columns.

    A sequence may be written as a table: it takes what it knows of a table's rights, and tells of the others.
    """
    kind = "sequence" if relation.kind == "S" else "relation"
    if node.kind == "sequence" and any(privilege.columns for privilege in node.privileges):
        raise SqlError("0LP01", "column privileges are only valid for relations")
    whole = [privilege for privilege in node.privileges if not privilege.columns]
    if whole or not node.privileges:
        asked = "".join(_letters(p, kind, node.kind) for p in whole) if whole else ALL[kind]
        letters = _had(asked, ALL[kind])
        told = f'sequence "{relation.name}" only supports USAGE, SELECT, and UPDATE privileges'
        yield st.GrantTarget(
            kind=kind, class_oid=PG_CLASS, oid=relation.oid, attnum=0, letters=ordered(letters),
            every=not whole or any(not p.word for p in whole), warnings=(told,) if letters != asked else (),
        )  # fmt: skip
    by_column: dict[int, str] = {}
    if all(not privilege.columns for privilege in node.privileges):
        return
    columns = {name: attnum for attnum, name in grantable_columns(relation).items()}
    for privilege in node.privileges:
        for name in paced(privilege.columns):
            attnum = columns.get(name)
            if attnum is None:
                raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')
            letters = letter_of(privilege, "column", "column")
            by_column[attnum] = by_column.get(attnum, "") + letters
    for attnum, asked in by_column.items():
        letters = _had(asked, "r") if kind == "sequence" else asked
        told = f'sequence "{relation.name}" only supports SELECT column privileges'
        yield st.GrantTarget(
            kind="column", class_oid=PG_CLASS, oid=relation.oid, attnum=attnum, letters=ordered(letters),
            every=False, warnings=(told,) if letters != asked else (),
        )  # fmt: skip


def _had(asked: str, letters: str) -> str:
    return "".join(letter for letter in asked if letter in letters)


def _letters(privilege: ast.Privilege, kind: str, written: str) -> str:
    """Return the letters asked of a table or sequence, those of a table where a sequence is written as one.
    Raises SqlError 0LP01.
    """
    if written == "sequence" or not privilege.word:
        return letter_of(privilege, kind, written)
    if kind == "relation" and privilege.word.upper() == "USAGE":
        raise SqlError("0LP01", "invalid privilege type USAGE for table")
    return letter_of(privilege, "relation", "relation", besides=ALL["sequence"])


def _on_object(kind: str, class_oid: int, oid: int, node: ast.Grant) -> st.GrantTarget:
    for privilege in node.privileges:
        if privilege.columns:
            raise SqlError("0LP01", "column privileges are only valid for relations")
    letters = (
        "".join(letter_of(p, kind, node.kind) for p in node.privileges) if node.privileges else ALL[kind]
    )
    return st.GrantTarget(
        kind=kind, class_oid=class_oid, oid=oid, attnum=0, letters=ordered(letters), every=not node.privileges
    )


def letter_of(privilege: ast.Privilege, kind: str, written: str, besides: str = "") -> str:
    """Return the letters of a word; ``written``: the kind as messages call it; ``besides``: letters allowed
    beside the kind's.
    """
    if not privilege.word:
        return ALL[kind]
    word = privilege.word.upper()
    letter = WORDS.get(word)
    if letter is None:
        raise SqlError("42601", f'unrecognized privilege type "{privilege.word}"')
    if letter not in ALL[kind] + besides:
        raise SqlError("0LP01", f"invalid privilege type {word} for {written}")
    return letter
