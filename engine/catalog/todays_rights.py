"""Whose rights count where a transaction reads at another time: those of today, on the objects as they were
(docs/guide/time-travel.md).

    GRANT SELECT ON t TO ann; REVOKE ...; SELECT * FROM t AS OF SYSTEM TIME '-1min'      42501 for ann
    DROP TABLE t;                         SELECT * FROM t AS OF SYSTEM TIME '-1min'      42501 for all but its last owner

An object is the same one where its oid is. So what was revoked is gone at once in transactions that are open,
too. What has been dropped since, an object or a column, belongs to its last owner, and no grant on it counts,
so that ``has_table_privilege()`` and what shows figures by it (pg_stats, pg_sequences) tell nobody else of
it; that nobody else reads it is ``engine.definitions.needs.past``'s to see to. Whose code runs:
``engine.catalog.todays_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from engine.catalog.storage.stored import key_of
from planner.catalog import RelationDef
from planner.catalog.acl import default_acl
from planner.catalog.foreign import (
    PG_FOREIGN_DATA_WRAPPER,
    PG_FOREIGN_SERVER,
    ForeignDef,
    Name,
    ServerDef,
    WrapperDef,
)
from planner.catalog.rights import PG_CLASS, PG_NAMESPACE, PG_PROC, PG_TYPE
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.catalog.storage.stored import Stored, StoredKey
    from planner.catalog import DatabaseDef, FunctionDef, RoleDef, SchemaDef, TypeDef
    from planner.catalog.acl_items import AclItem

Last: TypeAlias = "Callable[[StoredKey], Stored | None]"
_Owned = TypeVar("_Owned", "RelationDef", "SchemaDef", "TypeDef", "FunctionDef", WrapperDef, ServerDef)


def with_rights_of(now: CatalogSnapshot, then: CatalogSnapshot, last: Last) -> CatalogSnapshot:
    """Return the catalog ``then`` with the roles, owners and access control lists of ``now``.

    ``last``: what something was just before it was dropped (``CatalogHistory.last``).
    """
    if now is then:
        return then
    return cast("CatalogSnapshot", _Mixed(then, now, last))


class _Mixed:
    """The objects of one catalog under the rights of another."""

    def __init__(self, then: CatalogSnapshot, now: CatalogSnapshot, last: Last) -> None:
        self._then = then
        self._now = now
        self._last = last
        self._there: Mapping[int, Callable[[int], Any]] = {
            PG_CLASS: now.relation_by_oid,
            PG_NAMESPACE: now.schema_by_oid,
            PG_TYPE: now.type_by_oid,
            PG_PROC: now.function_by_oid,
            PG_FOREIGN_DATA_WRAPPER: now.foreign_by_oid,
            PG_FOREIGN_SERVER: now.foreign_by_oid,
        }

    def __getattr__(self, name: str) -> Any:
        """Everything else is as it was."""
        return getattr(self._then, name)

    def role(self, name: str) -> RoleDef | None:
        return self._now.role(name)

    def role_by_oid(self, oid: int) -> RoleDef | None:
        return self._now.role_by_oid(oid)

    def acl(self, class_oid: int, object_oid: int, sub_id: int = 0) -> tuple[AclItem, ...] | None:
        there = self._there.get(class_oid)
        built_in = class_oid in (PG_PROC, PG_TYPE) and object_oid < FIRST_USER_OID
        if there is None or built_in or there(object_oid) is not None:
            return self._now.acl(class_oid, object_oid, sub_id)
        return self._last_owners(class_oid, object_oid) if sub_id == 0 else ()

    def _last_owners(self, class_oid: int, oid: int) -> tuple[AclItem, ...]:
        """Return the list of what has been dropped: its last owner may do everything, nobody else anything."""
        if class_oid == PG_CLASS:
            gone: Any = self.relation_by_oid(oid)
            kind = "sequence" if gone is not None and gone.kind == "S" else "relation"
        else:
            find, kind = {
                PG_NAMESPACE: (self.schema_by_oid, "schema"),
                PG_TYPE: (self.type_by_oid, "type"),
                PG_PROC: (self.function_by_oid, "function"),
                PG_FOREIGN_DATA_WRAPPER: (self.foreign_by_oid, "foreign-data wrapper"),
                PG_FOREIGN_SERVER: (self.foreign_by_oid, "foreign server"),
            }[class_oid]
            gone = find(oid)
        if gone is None:
            return ()
        return tuple(item for item in default_acl(kind, gone.owner) if item.grantee == gone.owner)

    def lost_columns(self, relation: int) -> frozenset[int]:
        before = self._then.relation_by_oid(relation)
        return frozenset() if before is None else lost_columns(before, self._now.relation_by_oid(relation))

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        return self._owned(self._then.relation_by_oid(oid), self._now.relation_by_oid(oid))

    def schema(self, name: str) -> SchemaDef | None:
        found = self._then.schema(name)
        return None if found is None else self.schema_by_oid(found.oid)

    def schema_by_oid(self, oid: int) -> SchemaDef | None:
        return self._owned(self._then.schema_by_oid(oid), self._now.schema_by_oid(oid))

    def type_by_oid(self, oid: int) -> TypeDef | None:
        return self._owned(self._then.type_by_oid(oid), self._now.type_by_oid(oid))

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        return self._owned(self._then.function_by_oid(oid), self._now.function_by_oid(oid))

    def foreign_named(self, class_oid: int, name: Name) -> ForeignDef | None:
        found = self._then.foreign_named(class_oid, name)
        return None if found is None else self.foreign_by_oid(found.oid)

    def foreign_by_oid(self, oid: int) -> ForeignDef | None:
        then, now = self._then.foreign_by_oid(oid), self._now.foreign_by_oid(oid)
        if isinstance(then, WrapperDef):
            return self._owned(then, now if isinstance(now, WrapperDef) else None)
        if isinstance(then, ServerDef):
            return self._owned(then, now if isinstance(now, ServerDef) else None)
        return then

    def database_by_oid(self, oid: int) -> DatabaseDef | None:
        return self._now.database_by_oid(oid) or self._then.database_by_oid(oid)

    def _owned(self, then: _Owned | None, now: _Owned | None) -> _Owned | None:
        """Return an object as it was, owned by whom it belongs to today, or belonged to last."""
        if then is None or then.owner == (owner := last_owner(then, now, self._last)):
            return then
        return replace(then, owner=owner)


def last_owner(then: _Owned, now: _Owned | None, last: Last) -> int:
    """Return the role that an object belongs to, or belonged to when it was dropped."""
    if now is not None:
        return now.owner
    found = last(key_of(then))
    return found.owner if isinstance(found, type(then)) else then.owner


def lost_columns(before: RelationDef, after: RelationDef | None) -> frozenset[int]:
    """Return the columns of a relation that have been dropped since."""
    if after is None:
        return frozenset()
    return frozenset(column.attnum for column in before.live) - {column.attnum for column in after.live}
