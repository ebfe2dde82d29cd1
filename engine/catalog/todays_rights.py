"""Whose rights count where a transaction reads at another time: those of today, on the objects as they were (docs/time-travel.md).

    GRANT SELECT ON t TO ann; REVOKE ...; SELECT * FROM t AS OF SYSTEM TIME '-1min'      42501 for ann
    DROP TABLE t;                         SELECT * FROM t AS OF SYSTEM TIME '-1min'      as what was granted then: there is nothing newer

So what was revoked is gone at once in transactions that are open, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from planner.rights import PG_CLASS, PG_NAMESPACE, PG_PROC, PG_TYPE

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from planner.acl import AclItem
    from planner.catalog import FunctionDef, RelationDef, RoleDef, SchemaDef, TypeDef

_Owned = TypeVar("_Owned", "RelationDef", "SchemaDef", "TypeDef", "FunctionDef")


def with_rights_of(now: CatalogSnapshot, then: CatalogSnapshot) -> CatalogSnapshot:
    """Return the catalog ``then`` with the roles, owners and access control lists of ``now``."""
    if now is then:
        return then
    return cast("CatalogSnapshot", _Mixed(then, now))


class _Mixed:
    """The objects of one catalog under the rights of another."""

    def __init__(self, then: CatalogSnapshot, now: CatalogSnapshot) -> None:
        self._then = then
        self._now = now
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
        return _owned(self._then.relation_by_oid(oid), self._now.relation_by_oid(oid))

    def schema(self, name: str) -> SchemaDef | None:
        found = self._then.schema(name)
        return None if found is None else _owned(found, self._now.schema_by_oid(found.oid))

    def type_by_oid(self, oid: int) -> TypeDef | None:
        return _owned(self._then.type_by_oid(oid), self._now.type_by_oid(oid))

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        return _owned(self._then.function_by_oid(oid), self._now.function_by_oid(oid))


def _owned(then: _Owned | None, now: _Owned | None) -> _Owned | None:
    """Return an object as it was, owned by whom it belongs to today."""
    if then is None or now is None or then.owner == now.owner:
        return then
    return replace(then, owner=now.owner)
