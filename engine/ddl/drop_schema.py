"""DROP SCHEMA: all that is in schemas, and what hangs on that from outside.

    s  <── table s.t  <── view public.v             told: table s.t, view v
       <── sequence s.q  <── default of public.x.id       sequence s.q, default value for column id of table x
       <── type s.e  <── column public.x.e                 type s.e, column e of table x

Several schemas of one statement are dropped as one: what is in any of them is no dependent of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.catalog.default_acls import PG_DEFAULT_ACL_OID, split
from engine.catalog.stored import key_of
from engine.constraints import define
from engine.ddl import functions as depends
from engine.ddl.dependents import Dependency, in_report_order, still_needed
from engine.ddl.drop import (
    described,
    drawing_dependency,
    drop_relations,
    kept_about,
    key_dependencies,
    line,
    notice_cascade,
    part_oids,
    policy_dependencies,
    view_dependencies,
)
from engine.ddl.extension_uses import own_types
from engine.ddl.extensions import forget_extensions, in_schema
from engine.ddl.namings import Namings
from engine.ddl.policies import policies_over
from engine.ddl.roles import function_words
from engine.ddl.text_search import asked_by, drop_objects, text_search_words
from engine.ddl.types import (
    drop_types,
    functions_using,
    row_dependencies,
    type_dependencies,
    type_words,
)
from engine.sequences.define import drawing_columns
from pgwire.give_way import between, openly
from planner import statements as st
from planner.catalog import DictionaryDef, FunctionDef, RelationDef, SchemaDef
from planner.errors import SqlError

if TYPE_CHECKING:
    from engine.connection.session import Session


async def drop_schemas(session: Session, statement: st.Drop) -> None:
    """Run DROP SCHEMA. Raises SqlError 3F000 (no such schema), 2BP01 (what the system needs; what is not empty without CASCADE)."""
    schemas: list[SchemaDef] = []
    for _, name in statement.names:
        schema = session.catalog.schema(name)
        if schema is None:
            if not statement.if_exists:
                raise SqlError("3F000", f'schema "{name}" does not exist')
            session.notice(f'schema "{name}" does not exist, skipping')
        elif name in ("pg_catalog", "information_schema"):
            raise SqlError(
                "2BP01", f"cannot drop schema {name} because it is required by the database system"
            )
        elif schema not in schemas:
            schemas.append(schema)
    if schemas:
        await _drop(session, schemas, cascade=statement.cascade)


async def _drop(session: Session, schemas: Sequence[SchemaDef], *, cascade: bool) -> None:
    from engine.ddl.function_uses import drop_parts  # which drops columns

    catalog = session.catalog
    names = {schema.name for schema in schemas}
    oids = {schema.oid for schema in schemas}
    types = sorted((t for t in catalog.user_types() if t.schema in names), key=lambda t: t.oid)
    inside = sorted((r for r in catalog.user_relations() if r.schema in names), key=lambda r: r.oid)
    called = [function for name in sorted(names) for function in catalog.functions_in(name)]
    extensions = [one for oid in sorted(oids) for one in in_schema(catalog, oid)]
    found: list[Dependency] = []
    for r in inside:
        between()  # a schema may have thousands
        if r.sequence is None or not r.sequence.owner_table:
            found.append(Dependency(r.oid, r.oid, described(session, r), r.schema_oid))
    found += [Dependency(r.oid, r.oid, "", r.partition_of) for r in inside if r.partition_of]
    found += [Dependency(e.oid, e.oid, f"extension {e.name}", e.schema_oid) for e in extensions]
    found += [
        Dependency(f.oid, f.oid, function_words(session, f), f.schema_oid)
        if not f.extension
        else Dependency(f.oid, f.oid, "", f.extension)  # goes with its extension
        for f in called
    ]
    members = {t.oid: e.oid for e in catalog.extensions.values() for t in own_types(catalog, [e])}
    found += [
        Dependency(("type", t.oid), t.oid, "", members[t.oid])
        if t.oid in members
        else Dependency(("type", t.oid), t.oid, type_words(session, t), t.schema_oid)
        for t in types
    ]
    searching = [item for item in catalog.text_search() if item.schema in names]
    found += [
        Dependency(i.oid, i.oid, "", i.extension)
        if isinstance(i, DictionaryDef) and i.extension
        else Dependency(i.oid, i.oid, text_search_words(session, i), i.schema_oid)
        for i in searching
    ]
    asking, links = asked_by(session, searching)
    found += links
    words: dict[Any, str] = {schema.oid: f"schema {schema.name}" for schema in schemas}
    named = [*oids, *(i.oid for i in (*called, *searching, *asking))]
    views, hanging = openly(_hanging, session, inside, named, found)
    namings = openly(Namings, catalog)
    uses, called_so = openly(type_dependencies, session, types, namings)
    within = {oid for relation in inside for oid in (relation.oid, *part_oids(relation))}
    whole = {relation.oid for relation in inside}  # what hangs on a type as a whole comes before it
    found += [one for one in uses if one.key in whole or one.oid not in within]
    words |= called_so
    openly(functions_using, session, openly(namings.with_types_over, types), found, words)
    openly(_uses_of_rows, session, [*inside, *views], namings, found, words)
    told = [one for one in openly(in_report_order, [schema.oid for schema in schemas], found) if one.what]
    if told and not cascade:
        what = f"schema {schemas[0].name}" if len(schemas) == 1 else None
        raise still_needed(what, [line(session, one, words) for one in told])
    if told:
        notice_cascade(session, [one.what for one in told])
        await drop_relations(session, [*inside, *views], cascade=True, quiet=True)
        await drop_parts(session, oids)
        await depends.drop_functions(session, [*called, *hanging], cascade=True, quiet=True)
        left = [t for t in map(session.catalog.type_by_oid, [t.oid for t in types]) if t is not None]
        await drop_types(session, left, cascade=True, quiet=True)
        await drop_objects(session, searching, cascade=True, quiet=True)
        await forget_extensions(session, extensions)
    gone = openly(kept_about, session.catalog, oids)
    gone += [
        key_of(acl)
        for acl in session.catalog.acls()
        if acl.class_oid == PG_DEFAULT_ACL_OID and split(acl.sub_id)[0] in oids
    ]
    await session.view.change([], [*map(key_of, schemas), *gone])


def _hanging(
    session: Session, inside: Sequence[RelationDef], named: Sequence[int], found: list[Dependency]
) -> tuple[list[RelationDef], list[FunctionDef]]:
    """Add to ``found`` what hangs on relations, schemas, functions and text search objects; return the views and functions among that."""
    from engine.ddl.function_uses import links_to_relations  # which drops columns

    oids = {relation.oid for relation in inside}
    views, hanging, links = depends.dependents(session, {*oids, *named})
    found += view_dependencies(session, [r for r in inside if r.kind in "vm"]) + links
    found += key_dependencies(session, define.dependents(session, oids))
    going = {*oids, *(view.oid for view in views)}
    found += policy_dependencies(session, policies_over(session.catalog, going))
    found += links_to_relations(session, going)
    found += [
        drawing_dependency(session, t, c, sequence)
        for sequence, t, c in drawing_columns(session, oids)
        if t.oid not in oids
    ]
    return views, hanging


def _uses_of_rows(
    session: Session,
    inside: Sequence[RelationDef],
    namings: Namings,
    found: list[Dependency],
    words: dict[Any, str],
) -> None:
    """Add what uses the types of relations' rows."""
    within = {oid for relation in inside for oid in (relation.oid, *part_oids(relation))}
    uses, called = row_dependencies(session, inside, namings, set())
    found += [one for one in uses if one.oid not in within or _of_type(one)]
    words |= called


def _of_type(one: Dependency) -> bool:
    return isinstance(one.key, tuple) and one.key[0] == "type"
