"""Whose rights count where a transaction reads at another time: those of today, on the objects as they were (docs/time-travel.md).

    GRANT SELECT ON t TO ann; REVOKE ...; SELECT * FROM t AS OF SYSTEM TIME '-1min'      42501 for ann
    DROP TABLE t;                         SELECT * FROM t AS OF SYSTEM TIME '-1min'      42501 for all but its last owner

An object is the same one where its oid is. So what was revoked is gone at once in transactions that are open, too. What has been
dropped since belongs to its last owner; that nobody else reaches it is ``engine.ddl.past_needs``'s to see to. Whose code runs:
``engine.catalog.todays_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from engine.catalog.stored import key_of
from planner.rights import PG_CLASS, PG_NAMESPACE, PG_PROC, PG_TYPE

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.catalog.stored import Stored, StoredKey
    from planner.acl import AclItem
    from planner.catalog import DatabaseDef, FunctionDef, RelationDef, RoleDef, SchemaDef, TypeDef

Last: TypeAlias = "Callable[[StoredKey], Stored | None]"
_Owned = TypeVar("_Owned", "RelationDef", "SchemaDef", "TypeDef", "FunctionDef")


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
        known = self._now if there is None or there(object_oid) is not None else self._then
        return known.acl(class_oid, object_oid, sub_id)

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        return self._owned(self._then.relation_by_oid(oid), self._now.relation_by_oid(oid))

    def schema(self, name: str) -> SchemaDef | None:
        found = self._then.schema(name)
        return None if found is None else self._owned(found, self._now.schema_by_oid(found.oid))

    def type_by_oid(self, oid: int) -> TypeDef | None:
        return self._owned(self._then.type_by_oid(oid), self._now.type_by_oid(oid))

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        return self._owned(self._then.function_by_oid(oid), self._now.function_by_oid(oid))

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
