"""Locks of types, functions, roles, comments and rights (``engine.definitions.locks``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.catalog.row_parts import columns_holding
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_LARGEOBJECT_OID, StoredKey, key_of
from engine.definitions.locks.forms import about, create, roles
from engine.definitions.locks.of_actions import alter_table
from engine.definitions.locks.of_relations import rename
from engine.session.catalog.wants import ROLE_NAME, WHOLE, Wants, role_name_key
from engine.session.session import Session
from pgwire.give_way import paced
from planner import statements as st
from planner.bind.define.own_range import default_multirange_name
from planner.catalog import FunctionDef

_MEMBERSHIPS: Final[StoredKey] = (f"{ROLE_NAME}/members", 0, 0)
"""Who is a member of whom: circles are looked for."""


def create_type(
    wants: Wants, session: Session, statement: st.CreateEnum | st.CreateComposite | st.CreateRange
) -> None:
    """Take its name and its array's, of a range the multirange's."""
    catalog = session.catalog
    name = session.temp_schema if statement.schema == "pg_temp" else statement.schema
    create(wants, catalog, name, statement.name)
    wants.array_of(name, statement.name)
    if isinstance(statement, st.CreateRange):
        multirange = statement.multirange or default_multirange_name(statement.name)
        wants.name(name, multirange)
        wants.array_of(name, multirange)
        if catalog.function_by_oid(statement.subtype_diff) is not None:
            wants.rely(("function", statement.subtype_diff, 0))


def change_enum(wants: Wants, _session: Session, statement: st.AddEnumValue | st.RenameEnumValue) -> None:
    """Change the type."""
    wants.change(("type", statement.type, 0))


def alter_composite(wants: Wants, session: Session, statement: st.AlterComposite) -> None:
    """Change the type, and tables with values of it: they are stored anew without an attribute that is dropped."""
    catalog = session.catalog
    wants.change(("type", statement.type, 0))
    type_ = catalog.type_by_oid(statement.type)
    if type_ is not None and any(isinstance(action, st.DropAttribute) for action in statement.actions):
        for table in {table.oid for table, _column in columns_holding(catalog, type_.oid, type_.array_oid)}:
            wants.relation(table)
    for below in statement.typed:
        alter_table(wants, session, below)
    for oid in statement.renamed:
        rename(wants, session, st.Rename(what="column", relation=oid))


def alter_type(wants: Wants, session: Session, statement: st.AlterType) -> None:
    """Change the type, give up its name and take the new one."""
    catalog = session.catalog
    type_ = catalog.type_by_oid(statement.type)
    wants.change(("type", statement.type, 0))
    if type_ is not None:
        wants.schema(statement.schema or type_.schema)
        wants.name(type_.schema, type_.name)
        wants.name(statement.schema or type_.schema, statement.name or type_.name)
        wants.array_of(statement.schema or type_.schema, statement.name or type_.name)


def create_function(wants: Wants, session: Session, statement: st.CreateFunction) -> None:
    """Take its name and rely on what it names where nothing depends on it yet; else want the database's catalog."""
    if _is_new(session, statement.function):
        _create_function(wants, session, statement.function)
    else:
        wants.change(WHOLE)


def _is_new(session: Session, function: FunctionDef) -> bool:
    """Tell whether there is no function with a name and parameters yet, so that nothing depends on it."""
    schema = _place(session, function)
    same = [f for f in session.catalog.functions_named(function.name) if f.schema == schema]
    return all(f.inputs != function.inputs for f in same)


def _place(session: Session, function: FunctionDef) -> str:
    return session.temp_schema if function.schema == "pg_temp" else function.schema


def _create_function(wants: Wants, session: Session, function: FunctionDef) -> None:
    """Take the name, which others that are made meanwhile may have too, and rely on what the definition names."""
    schema = _place(session, function)
    wants.schema(schema)
    wants.name(schema, f"{function.name}(")
    for oid in (*function.types, function.result):
        wants.type(oid)
    for oid in function.depends_on:
        wants.rely(("relation", oid, 0))
    wants.text(*function.defaults, function.body_sql)


def is_new_extension(catalog: CatalogSnapshot, statement: st.CreateExtension) -> bool:
    """Tell whether CREATE EXTENSION does not skip one that is there."""
    return not (statement.if_not_exists and catalog.extension(statement.name) is not None)


def has_extensions(catalog: CatalogSnapshot, statement: st.DropExtension) -> bool:
    """Tell whether DROP EXTENSION does not skip all that it names."""
    absent = all(catalog.extension(name) is None for name in paced(statement.names))
    return not (statement.if_exists and absent)


def comment(wants: Wants, session: Session, statement: st.Comment) -> None:
    """Change what it is about, and the comment."""
    catalog = session.catalog
    about(wants, catalog, statement.class_oid, statement.object_oid)
    wants.change((f"comment/{statement.class_oid}", statement.object_oid, statement.sub_id))


def grant(wants: Wants, session: Session, statement: st.Grant) -> None:
    """Change what rights are given to, and the list of them."""
    catalog = session.catalog
    for target in paced(statement.targets):
        about(wants, catalog, target.class_oid, target.oid)
        wants.change((f"acl/{target.class_oid}", target.oid, target.attnum))


def grant_role(wants: Wants, session: Session, statement: st.GrantRole) -> None:
    """Change who is a member of whom, and the members; rely on the roles."""
    catalog = session.catalog
    wants.change(_MEMBERSHIPS)
    roles(wants, catalog, statement.members, exclusive=True)
    granting = () if statement.grantor is None else (statement.grantor,)
    roles(wants, catalog, (*statement.roles, *granting), exclusive=False)


def role_statement(wants: Wants, session: Session, statement: st.RoleStatement) -> None:
    """Change the roles and memberships; DROP of one that is there wants the catalogs of all databases."""
    catalog = session.catalog
    if statement.action == "drop":
        absent = statement.if_exists and all(catalog.role(name) is None for name in paced(statement.names))
        wants.everything = not absent
        return
    roles(wants, catalog, statement.names, exclusive=True)
    for role in paced(statement.names):
        wants.change(role_name_key(role))
    for grant in statement.memberships:
        wants.change(_MEMBERSHIPS)
        roles(wants, catalog, _others(grant.members, statement.names), exclusive=True)
        roles(wants, catalog, _others(grant.roles, statement.names), exclusive=False)


def alter_large_object(wants: Wants, _session: Session, statement: st.AlterLargeObject) -> None:
    """Change who may do what with it."""
    wants.change((f"acl/{PG_LARGEOBJECT_OID}", statement.oid, 0))


def alter_source(wants: Wants, session: Session, statement: st.AlterSource) -> None:
    """Change the source."""
    catalog = session.catalog
    source = catalog.sources.get(statement.name)
    if source is not None:
        wants.change(key_of(source))


def _others(names: Sequence[str], without: Sequence[str]) -> set[str]:
    return set(paced(names)).difference(without)
