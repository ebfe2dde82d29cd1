"""information_schema's views of roles, and of privileges on functions, types, domains and sequences.

    applicable_roles, enabled_roles        whose rights the user has
    routine_, udt_, usage_privileges       lists as they are, or the default ones; role_*_grants: what is about the user's roles
    data_type_privileges, element_types    every type that something is of, and what arrays of these are arrays of

A privilege is shown to those who have the rights of its grantor or grantee, and what everybody has to all.
Functions are users'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.relations.information.routines import users_parameters, users_routines
from engine.catalog.relations.information.schema import UTF8_ENCODING, collation_columns, columns
from engine.catalog.relations.information.usage import named_type
from engine.catalog.relations.pg_composites import attributes
from engine.catalog.relations.pg_domains import all_domains, domains
from engine.catalog.relations.pg_row_types import row_types
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_CLASS_OID, PG_TYPE_OID, SUPERUSER_OID
from planner.catalog import ColumnDef
from planner.catalog.acl import DATABASE_OWNER, EVERYBODY, default_acl
from planner.catalog.acl_items import AclItem
from planner.catalog.foreign import MappingDef
from planner.catalog.relation_kinds import STANDARD_TABLES
from planner.catalog.rights import Rights, database_owner, foreign_acl, foreign_kind, function_acl, type_acl
from planner.facts import facts, rows
from planner.types import SqlType
from planner.types.facts import element_of, format_type

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def _rights(session: Reading) -> Rights:
    return Rights(session.rights_catalog, session.role)


def _name(session: Reading, oid: int) -> str:
    role = session.catalog.role_by_oid(oid)
    return role.name if role is not None else ""


# --- roles ------------------------------------------------------------------------------------------


@relation("information_schema.enabled_roles", "session")
def enabled_roles(session: Reading) -> Iterator[RowDict]:
    """Yield the roles whose rights the user has."""
    rights = _rights(session)
    return ({"role_name": role.name} for role in session.catalog.roles.values() if rights.owns(role.oid))


@relation("information_schema.applicable_roles", "session")
def applicable_roles(session: Reading) -> Iterator[RowDict]:
    """Yield what the roles are members of whose rights the user has."""
    rights = _rights(session)
    for role in session.catalog.roles.values():
        groups = [(membership.role, membership.admin) for membership in role.member_of]
        if role.oid == database_owner(session.catalog, session.catalog.database):
            groups.append((DATABASE_OWNER, False))
        for group, admin in groups if rights.owns(role.oid) else ():
            yield {"grantee": role.name, "role_name": _name(session, group), "is_grantable": _yes(admin)}


@relation("information_schema.administrable_role_authorizations", "session")
def administrable_role_authorizations(session: Reading) -> Iterator[RowDict]:
    """Yield the memberships with the admin option."""
    return (row for row in applicable_roles(session) if row["is_grantable"] == "YES")


# --- privileges -------------------------------------------------------------------------------------


def _granted(session: Reading, items: Iterable[AclItem], letter: str, owner: int) -> Iterator[RowDict]:
    """Yield grantor, grantee and is_grantable of the items that have a letter and that the user may see."""
    rights = _rights(session)
    for item in items:
        if letter not in item.letters:
            continue
        if item.grantee == EVERYBODY:
            yield {"grantor": _name(session, item.grantor), "grantee": "PUBLIC", "is_grantable": "NO"}
        elif rights.owns(item.grantor) or rights.owns(item.grantee):
            holder = Rights(session.rights_catalog, session.today.role_by_oid(item.grantee))
            yield {
                "grantor": _name(session, item.grantor), "grantee": _name(session, item.grantee),
                "is_grantable": _yes(letter in item.grantable or holder.owns(owner)),
            }  # fmt: skip


def _about_own_roles(session: Reading, found: Iterable[RowDict]) -> Iterator[RowDict]:
    """Yield the rows whose grantor or grantee is a role whose rights the user has."""
    enabled = {row["role_name"] for row in enabled_roles(session)}
    return (row for row in found if row["grantor"] in enabled or row["grantee"] in enabled)


@relation("information_schema.routine_privileges", "session")
def routine_privileges(session: Reading) -> Iterator[RowDict]:
    """Yield who may call users' functions."""
    for function in session.catalog.functions():
        for row in _granted(session, function_acl(session.catalog, function), "X", function.owner):
            yield {
                **row, "specific_catalog": session.database, "specific_schema": function.schema,
                "specific_name": f"{function.name}_{function.oid}", "routine_catalog": session.database,
                "routine_schema": function.schema, "routine_name": function.name, "privilege_type": "EXECUTE",
            }  # fmt: skip


@relation("information_schema.role_routine_grants", "session")
def role_routine_grants(session: Reading) -> Iterator[RowDict]:
    """Yield who may call users' functions, as far as it is about the user's roles."""
    return _about_own_roles(session, routine_privileges(session))


@relation("information_schema.udt_privileges", "session")
def udt_privileges(session: Reading) -> Iterator[RowDict]:
    """Yield who may use composite types, row types of relations among them."""
    found: list[tuple[str, str, int, tuple[AclItem, ...]]] = [
        (made.schema, made.name, made.owner, type_acl(session.catalog, made))
        for made in session.catalog.user_types()
        if made.kind == "c"
    ]
    for item in session.catalog.all_relations():
        row_type, _array = (0, 0) if item.kind == "c" else row_types(item)
        if row_type:
            items = session.catalog.acl(PG_TYPE_OID, row_type) or default_acl("type", item.owner)
            found.append((item.schema, item.name, item.owner, items))
    for schema, name, owner, items in found:
        for row in _granted(session, items, "U", owner):
            yield {
                **row, "udt_catalog": session.database, "udt_schema": schema, "udt_name": name,
                "privilege_type": "TYPE USAGE",
            }  # fmt: skip


@relation("information_schema.role_udt_grants", "session")
def role_udt_grants(session: Reading) -> Iterator[RowDict]:
    """Yield who may use composite types, as far as it is about the user's roles."""
    return _about_own_roles(session, udt_privileges(session))


@relation("information_schema.usage_privileges", "session")
def usage_privileges(session: Reading) -> Iterator[RowDict]:
    """Yield who may use collations (everybody), domains, foreign-data wrappers and servers, and the sequences
    that have lists.
    """
    everybody: RowDict = {"grantor": _name(session, SUPERUSER_OID), "grantee": "PUBLIC", "is_grantable": "NO"}
    for fact in rows("collations"):
        if int(fact["collencoding"]) in (-1, UTF8_ENCODING):
            yield _usable(session, everybody, "COLLATION", "pg_catalog", fact["collname"])
    for collation in session.catalog.collations():
        of = {**everybody, "grantor": _name(session, collation.owner)}
        yield _usable(session, of, "COLLATION", collation.schema, collation.name)
    for made in all_domains(session):
        for row in _granted(session, type_acl(session.catalog, made), "U", made.owner):
            yield _usable(session, row, "DOMAIN", made.schema, made.name)
    for foreign in session.catalog.foreign():
        if not isinstance(foreign, MappingDef):
            word = foreign_kind(foreign).upper().replace("-", " ")
            for row in _granted(session, foreign_acl(session.catalog, foreign), "U", foreign.owner):
                yield _usable(session, row, word, "", foreign.name)
    for item in session.catalog.user_relations():
        items = (session.catalog.acl(PG_CLASS_OID, item.oid) or ()) if item.kind == "S" else ()
        for row in _granted(session, items, "U", item.owner):
            yield _usable(session, row, "SEQUENCE", item.schema, item.name)


def _usable(session: Reading, granted: RowDict, kind: str, schema: str, name: str) -> RowDict:
    return {
        **granted, "object_catalog": session.database, "object_schema": schema, "object_name": name,
        "object_type": kind, "privilege_type": "USAGE",
    }  # fmt: skip


@relation("information_schema.role_usage_grants", "session")
def role_usage_grants(session: Reading) -> Iterator[RowDict]:
    """Yield who may use domains, collations and sequences, as far as it is about the user's roles."""
    return _about_own_roles(session, usage_privileges(session))


# --- types ------------------------------------------------------------------------------------------


@relation("information_schema.data_type_privileges", "session")
def data_type_privileges(session: Reading) -> Iterator[RowDict]:
    """Yield everything that has a type: attributes, columns, domains, parameters and results of users' functions."""
    for row in attributes(session):
        yield _typed(session, row["udt_schema"], row["udt_name"], "USER-DEFINED TYPE", row)
    for item in session.catalog.all_relations():
        for row in columns(session, item):
            yield _typed(session, item.schema, item.name, "TABLE", row)
    for row in domains(session):
        yield _typed(session, row["domain_schema"], row["domain_name"], "DOMAIN", row)
    for row in (*users_parameters(session), *users_routines(session)):
        yield _typed(session, row["specific_schema"], row["specific_name"], "ROUTINE", row)


def _typed(session: Reading, schema: str, name: str, kind: str, row: RowDict) -> RowDict:
    return {
        "object_catalog": session.database, "object_schema": schema, "object_name": name, "object_type": kind,
        "dtd_identifier": row["dtd_identifier"],
    }  # fmt: skip


@relation("information_schema.element_types", "session")
def element_types(session: Reading) -> Iterator[RowDict]:
    """Yield what arrays are arrays of, of everything that is of an array type."""
    catalog = session.catalog
    for made in catalog.user_types():
        if made.kind == "c":
            for column in made.attributes:
                if not column.dropped:
                    yield from _element(session, made.schema, made.name, "USER-DEFINED TYPE", column)
        elif made.is_domain:
            column = ColumnDef(attnum=1, name="", type=SqlType(made.base), collation=made.collation)
            yield from _element(session, made.schema, made.name, "DOMAIN", column)
    for item in catalog.all_relations():
        for column in item.live if item.kind in STANDARD_TABLES else ():
            yield from _element(
                session, item.schema, item.name, "TABLE", replace(column, attnum=item.number(column.attnum))
            )
    for function in catalog.functions():
        for number, oid in enumerate((function.result, *function.types)):
            column = ColumnDef(attnum=number, name="", type=SqlType(oid))
            yield from _element(
                session, function.schema, f"{function.name}_{function.oid}", "ROUTINE", column
            )


def _element(session: Reading, schema: str, name: str, kind: str, column: ColumnDef) -> Iterator[RowDict]:
    oid = column.declared.oid
    fact = facts().types.get(oid)
    element = element_of(oid)
    if not element or (fact is not None and fact.length != -1):
        return
    type_schema, type_name, _owner = named_type(session, element)
    yield {
        "object_catalog": session.database, "object_schema": schema, "object_name": name, "object_type": kind,
        "collection_type_identifier": str(column.attnum),
        "data_type": format_type(element) if type_schema == "pg_catalog" else "USER-DEFINED",
        "udt_catalog": session.database, "udt_schema": type_schema, "udt_name": type_name,
        "dtd_identifier": f"a{column.attnum}", **collation_columns(session, column),
    }  # fmt: skip
