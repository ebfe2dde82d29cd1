"""Default privileges: what others get of the objects that a role makes from now on (ALTER DEFAULT PRIVILEGES).

    FOR ROLE alice                GRANT SELECT ON TABLES TO bob       the whole list of her new tables: her own rights, and bob=r
    FOR ROLE alice IN SCHEMA s    GRANT INSERT ON TABLES TO eve       added to that in s

They are kept as access control lists of the catalog pg_default_acl: of the role, in a schema (0: anywhere),
for a kind of object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_NAMESPACE_OID,
    PG_PROC_OID,
    PG_TYPE_OID,
    Stored,
    key_of,
)
from planner.catalog import AclDef, FunctionDef, RelationDef, SchemaDef, TypeDef
from planner.catalog.acl import default_acl, grant, ordered
from planner.catalog.acl_items import AclItem

PG_DEFAULT_ACL_OID: Final = 826
LETTERS: Final = {"relation": "r", "sequence": "S", "function": "f", "type": "T", "schema": "n"}
"""pg_default_acl.defaclobjtype of each kind."""


def sub_id(schema: int, kind: str) -> int:
    """Return the key of a default list of a role: for which schema (0: all) and which kind of object."""
    return schema << 8 | ord(LETTERS[kind])


def split(sub: int) -> tuple[int, str]:
    """Return (schema oid, letter of the kind) of a key."""
    return sub >> 8, chr(sub & 0xFF)


def lists_for_new(catalog: CatalogSnapshot, puts: Iterable[Stored]) -> Iterator[AclDef]:
    """Yield the lists that objects among ``puts`` get which ``catalog`` does not have yet."""
    for item in puts:
        if (
            not isinstance(item, RelationDef | FunctionDef | TypeDef | SchemaDef)
            or key_of(item) in catalog.items
        ):
            continue
        if isinstance(item, SchemaDef):
            yield from _made(catalog, PG_NAMESPACE_OID, item.oid, "schema", item.owner, 0)
            continue
        schema = item.schema_oid
        if isinstance(item, RelationDef):
            class_, kind = PG_CLASS_OID, "sequence" if item.kind == "S" else "relation"
        elif isinstance(item, FunctionDef):
            class_, kind = PG_PROC_OID, "function"
        else:
            class_, kind = PG_TYPE_OID, "type"
        yield from _made(catalog, class_, item.oid, kind, item.owner, schema)


def _made(
    catalog: CatalogSnapshot, class_: int, oid: int, kind: str, owner: int, schema: int
) -> Iterator[AclDef]:
    everywhere = catalog.acl(PG_DEFAULT_ACL_OID, owner, sub_id(0, kind))
    here = catalog.acl(PG_DEFAULT_ACL_OID, owner, sub_id(schema, kind)) if schema else None
    if everywhere is None and here is None:
        return
    plain = default_acl(kind, owner)
    items = plain if everywhere is None else everywhere
    for item in here or ():
        items = merged(items, item)
    if items and set(items) != set(
        plain
    ):  # of an empty list PostgreSQL makes none, so that the owner keeps its rights
        ordered_items = tuple(sorted(items, key=lambda item: (item.grantee, item.grantor)))
        yield AclDef(class_oid=class_, object_oid=oid, sub_id=0, items=ordered_items)


def merged(items: tuple[AclItem, ...], item: AclItem) -> tuple[AclItem, ...]:
    """Return a list with another item added to it."""
    result = grant(items, item.grantor, item.grantor, item.grantee, item.letters, option=None)
    at = next(i for i, it in enumerate(result) if (it.grantee, it.grantor) == (item.grantee, item.grantor))
    more = replace(result[at], grantable=ordered(result[at].grantable + item.grantable))
    return (*result[:at], more, *result[at + 1 :])
