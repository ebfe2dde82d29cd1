"""pg_shdepend: which roles the objects of this database, and the databases, need: as owners, in rights, in policies.

Of what the bootstrap superuser owns and may do there are no rows, as in PostgreSQL, and none of large objects
and of the objects of other databases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.default_acls import PG_DEFAULT_ACL_OID
from engine.catalog.relations.pg_default_acl import pg_default_acl
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import (
    PG_AUTHID_OID,
    PG_CLASS_OID,
    PG_DATABASE_OID,
    PG_EXTENSION_OID,
    PG_LARGEOBJECT_OID,
    PG_NAMESPACE_OID,
    PG_POLICY_OID,
    PG_PROC_OID,
    PG_STATISTIC_EXT_OID,
    PG_TS_CONFIG_OID,
    PG_TS_DICT_OID,
    PG_TYPE_OID,
    SUPERUSER_OID,
    row_type_oid,
)
from planner.catalog import ConfigurationDef
from planner.catalog.acl import EVERYBODY
from planner.catalog.acl_items import AclItem
from planner.catalog.parameters import PG_PARAMETER_ACL
from planner.catalog.policy import EVERYBODY as ALL_ROLES

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

Key = tuple[int, int]
"""The catalog of an object, and its oid."""


def _row(session: Reading, class_: int, oid: int, role: int, kind: str, *, sub: int = 0) -> RowDict:
    """Return a row. ``kind``: PostgreSQL's deptype, o(wner), a(cl), r(ow policy)."""
    return {
        "dbid": 0 if class_ in (PG_DATABASE_OID, PG_PARAMETER_ACL) else session.catalog.database, "classid": class_, "objid": oid, "objsubid": sub,
        "refclassid": PG_AUTHID_OID, "refobjid": role, "deptype": kind,
    }  # fmt: skip


def _owners(session: Reading) -> Iterator[tuple[Key, int]]:
    """Yield the owners of objects; what is made along with a table or an index has none of its own."""
    catalog = session.catalog
    for item in catalog.user_relations():
        if item.kind == "c":
            yield (PG_TYPE_OID, row_type_oid(item.oid)), item.owner
        elif item.kind != "i":
            yield (PG_CLASS_OID, item.oid), item.owner
    for function in catalog.functions():
        yield (PG_PROC_OID, function.oid), function.owner
    for type_ in catalog.user_types():
        yield (PG_TYPE_OID, type_.oid), type_.owner
        if type_.multirange:
            yield (PG_TYPE_OID, type_.multirange), type_.owner
    for schema in catalog.schemas():
        yield (PG_NAMESPACE_OID, schema.oid), schema.owner
    for extension in catalog.extensions.values():
        yield (PG_EXTENSION_OID, extension.oid), extension.owner
    for made in catalog.text_search():
        class_ = PG_TS_CONFIG_OID if isinstance(made, ConfigurationDef) else PG_TS_DICT_OID
        yield (class_, made.oid), made.owner
    for _table, statistics in catalog.statistics().values():
        yield (PG_STATISTIC_EXT_OID, statistics.oid), statistics.owner
    for opclass in (*catalog.opclasses(), *catalog.conversions(), *catalog.collations()):
        yield (opclass.class_oid, opclass.oid), opclass.owner
    for foreign in catalog.foreign():
        if foreign.owner:
            yield (foreign.class_oid, foreign.oid), foreign.owner
    for database in catalog.databases.values():
        yield (PG_DATABASE_OID, database.oid), database.owner


def _named(items: tuple[AclItem, ...], owner: int) -> list[int]:
    """Return the roles that a list names beside the object's owner."""
    roles = {role for item in items for role in (item.grantee, item.grantor)}
    return sorted(roles - {EVERYBODY, SUPERUSER_OID, owner})


@relation("pg_shdepend", "catalog")
def pg_shdepend(session: Reading) -> Iterator[RowDict]:
    """Yield pg_shdepend."""
    owners = dict(_owners(session))
    for (class_, oid), owner in owners.items():
        if owner != SUPERUSER_OID:
            yield _row(session, class_, oid, owner, "o")
    for acl in session.catalog.acls():
        if acl.class_oid in (PG_DEFAULT_ACL_OID, PG_LARGEOBJECT_OID):
            continue
        key = acl.class_oid, acl.object_oid
        for role in _named(acl.items, owners.get(key, SUPERUSER_OID)):
            yield _row(session, *key, role, "a", sub=acl.sub_id)
    yield from _default_rights(session)
    for item in session.catalog.user_relations():
        for policy in item.policies:
            for role in policy.roles:
                if role not in (ALL_ROLES, SUPERUSER_OID):
                    yield _row(session, PG_POLICY_OID, policy.oid, role, "r")


def _default_rights(session: Reading) -> Iterator[RowDict]:
    lists = {
        (acl.object_oid, acl.sub_id): acl.items
        for acl in session.catalog.acls()
        if acl.class_oid == PG_DEFAULT_ACL_OID
    }
    for row, key in zip(pg_default_acl(session), sorted(lists), strict=True):
        role = key[0]
        if role != SUPERUSER_OID:
            yield _row(session, PG_DEFAULT_ACL_OID, row["oid"], role, "o")
        for named in _named(lists[key], role):
            yield _row(session, PG_DEFAULT_ACL_OID, row["oid"], named, "a")
