"""What a catalog is made of: the objects that are stored, under which keys, and the oids that they take.

Objects are stored as rows of the catalog shard (``engine.catalog.storage.store``), and
``engine.catalog.state.CatalogSnapshot`` is all of them at one moment. Oids: built-in ones lie below 16384. A
table takes three consecutive ones: itself, its row type, and the array type of that (``row_type_oid``,
``row_array_oid``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pgwire.codecs.domain import FIRST_FIXED_OID
from planner.catalog import (
    AclDef,
    ConfigurationDef,
    DatabaseDef,
    DefaultsDef,
    DictionaryDef,
    ExtensionDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    SchemaDef,
    SourceDef,
    TimelineDef,
    TypeDef,
)
from planner.catalog.acl import (
    DATABASE_OWNER,
    READ_ALL_DATA,
    READ_SERVER_FILES,
    WRITE_ALL_DATA,
    WRITE_SERVER_FILES,
)
from planner.catalog.acl_items import Membership
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import MappingDef, ServerDef, WrapperDef
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.types.facts import FIRST_USER_OID

SUPERUSER_OID = 10
DATABASE_OID = 5
CATALOG_SHARD = 1  # the shard that stores the catalog itself

PG_CLASS_OID, PG_NAMESPACE_OID, PG_CONSTRAINT_OID, PG_TYPE_OID = 1259, 2615, 2606, 1247
PG_AUTHID_OID, PG_DATABASE_OID, PG_PROC_OID, PG_EXTENSION_OID = 1260, 1262, 1255, 3079
PG_LANGUAGE_OID = 2612
PG_LARGEOBJECT_OID = 2613  # what comments and rights of large objects are filed under
PG_TRIGGER_OID = 2620
PG_POLICY_OID = 3256
PG_STATISTIC_EXT_OID = 3381
PG_FOREIGN_SERVER_OID, PG_FOREIGN_DATA_WRAPPER_OID, PG_USER_MAPPING_OID = 1417, 2328, 1418
PG_OPCLASS_OID, PG_OPFAMILY_OID = 2616, 2753
PG_TS_DICT_OID, PG_TS_CONFIG_OID, PG_TS_TEMPLATE_OID = 3600, 3602, 3764


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentDef:
    """A comment on an object (COMMENT ON)."""

    class_oid: int
    object_oid: int
    sub_id: int
    text: str


Stored: TypeAlias = (
    AclDef
    | SchemaDef
    | RelationDef
    | RoleDef
    | CommentDef
    | TimelineDef
    | SourceDef
    | DatabaseDef
    | DefaultsDef
    | TypeDef
    | FunctionDef
    | ExtensionDef
    | ConfigurationDef
    | DictionaryDef
    | WrapperDef
    | ServerDef
    | MappingDef
    | OperatorFamilyDef
    | OperatorClassDef
    | ConversionDef
    | CollationDef
)
# kind and oid name a stored object; a comment's oid packs its sub id
StoredKey: TypeAlias = tuple[str, int, int]


@functools.cache
def comment_kind(class_oid: int) -> str:
    """Return the kind of the comments on objects of a catalog; many are looked up, one by one."""
    return f"comment/{class_oid}"


def key_of(item: Stored) -> StoredKey:
    """Return the key under which an object is stored."""
    match item:
        case SchemaDef():
            return ("schema", item.oid, 0)
        case RelationDef():
            return ("relation", item.oid, 0)
        case RoleDef():
            return ("role", item.oid, 0)
        case TimelineDef():
            return ("timeline", item.oid, 0)
        case SourceDef():
            return ("source", item.oid, 0)
        case DatabaseDef():
            return ("database", item.oid, 0)
        case DefaultsDef():
            return ("defaults", item.database, item.role)
        case TypeDef():
            return ("type", item.oid, 0)
        case FunctionDef():
            return ("function", item.oid, 0)
        case ExtensionDef():
            return ("extension", item.oid, 0)
        case ConfigurationDef():
            return ("text configuration", item.oid, 0)
        case DictionaryDef():
            return ("text dictionary", item.oid, 0)
        case WrapperDef():
            return ("foreign wrapper", item.oid, 0)
        case ServerDef():
            return ("foreign server", item.oid, 0)
        case MappingDef():
            return ("user mapping", item.oid, 0)
        case OperatorFamilyDef():
            return ("operator family", item.oid, 0)
        case OperatorClassDef():
            return ("operator class", item.oid, 0)
        case ConversionDef():
            return ("conversion", item.oid, 0)
        case CollationDef():
            return ("collation", item.oid, 0)
        case CommentDef():
            return (comment_kind(item.class_oid), item.object_oid, item.sub_id)
        case AclDef():
            return (f"acl/{item.class_oid}", item.object_oid, item.sub_id)


def row_type_oid(relation_oid: int) -> int:
    """Return the oid of a table's row type."""
    return relation_oid + 1


def row_array_oid(relation_oid: int) -> int:
    """Return the oid of the array type over a table's row type."""
    return relation_oid + 2


@functools.cache
def predefined_roles() -> Mapping[str, RoleDef]:
    """Return the roles that are there from the start and stay as they are, by name (manual 22.5)."""
    roles = {
        name: RoleDef(oid=oid, name=name)
        for oid, name in (
            (3374, "pg_read_all_settings"), (3375, "pg_read_all_stats"), (3377, "pg_stat_scan_tables"),
            (4200, "pg_signal_backend"), (4544, "pg_checkpoint"), (READ_SERVER_FILES, "pg_read_server_files"),
            (WRITE_SERVER_FILES, "pg_write_server_files"), (4571, "pg_execute_server_program"),
            (DATABASE_OWNER, "pg_database_owner"), (READ_ALL_DATA, "pg_read_all_data"), (WRITE_ALL_DATA, "pg_write_all_data"),
        )
    }  # fmt: skip
    watched = tuple(Membership(role=oid, grantor=SUPERUSER_OID) for oid in (3374, 3375, 3377))
    return {"pg_monitor": RoleDef(oid=3373, name="pg_monitor", member_of=watched), **roles}


def highest_oid(items: Iterable[Stored]) -> int:
    """Return the highest oid that stored objects have taken (at least the last built-in one)."""
    highest = FIRST_USER_OID - 1
    for item in items:
        match item:
            case RelationDef():
                highest = max(
                    highest,
                    row_array_oid(item.oid),
                    *(i.oid for i in item.every_index),
                    *(c.oid for c in item.constraints),
                    *(t.oid for t in item.triggers),
                    *(p.oid for p in item.policies),
                    *(s.oid for s in item.statistics),
                )
            case (
                SchemaDef() | RoleDef() | TimelineDef() | SourceDef() | DatabaseDef() | FunctionDef()
                | ExtensionDef() | ConfigurationDef() | DictionaryDef() | WrapperDef() | ServerDef() | MappingDef()
                | OperatorClassDef() | ConversionDef() | CollationDef()
            ):  # fmt: skip
                highest = max(highest, item.oid)
            case OperatorFamilyDef():
                highest = max(highest, item.oid, *(member.oid for member in item.members))
            case TypeDef() if item.oid >= FIRST_FIXED_OID:
                pass  # of an extension, also where nothing else of it can be read
            case TypeDef():
                parts = (*(label.oid for label in item.labels), *(c.oid for c in item.checks))
                highest = max(highest, item.relation_oid, *item.family, *parts)
            case CommentDef() | AclDef() | DefaultsDef():
                pass
    return highest


def _statistics_names(relation: RelationDef) -> set[tuple[int, str, int]]:
    """Return what finds a relation's extended statistics, whose names are their schema's, not the relation's."""
    return {(one.schema_oid, one.name, one.oid) for one in relation.statistics}


def same_names(old: Stored | None, new: Stored) -> bool:
    """Tell whether replacing ``old`` by ``new`` leaves every name resolving as before."""
    match old, new:
        case RelationDef(), RelationDef():
            return (
                (old.schema, old.name) == (new.schema, new.name)
                and {i.name for i in old.every_index} == {i.name for i in new.every_index}
                and _statistics_names(old) == _statistics_names(new)
            )
        case SchemaDef(), SchemaDef():
            return (old.name, old.owner) == (new.name, new.owner)
        case RoleDef(), RoleDef():  # which schemas it may use
            return (old.superuser, old.inherit, old.member_of) == (new.superuser, new.inherit, new.member_of)
        case (CommentDef(), CommentDef()) | (None, CommentDef()):
            return True
        case (_, TimelineDef() | SourceDef() | DatabaseDef() | DefaultsDef() | ExtensionDef()):
            return True
    return False


def new_names(old: Stored | None, new: Stored) -> frozenset[str] | None:
    """Return the names of relations, indexes among them, that replacing ``old`` by ``new`` adds; None if it
    does anything else to names.
    """
    if not isinstance(new, RelationDef) or new.partition_of or (old is None and new.statistics):
        return None
    names = frozenset((new.name, *(index.name for index in new.every_index)))
    if old is None:
        return names
    if not isinstance(old, RelationDef) or (old.schema, old.name) != (new.schema, new.name):
        return None
    if _statistics_names(old) != _statistics_names(new):
        return None
    before = frozenset((old.name, *(index.name for index in old.every_index)))
    return names - before if before <= names else None
