"""Access control lists as catalogs show them: ``{owner=arwdDxt/owner,=r/owner}``, roles by their names now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.catalog.storage.stored import SUPERUSER_OID, predefined_roles
from planner.catalog.acl import item_text, quoted_role
from planner.catalog.acl_items import AclItem

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def acl_texts(session: Reading, items: tuple[AclItem, ...] | None) -> tuple[str, ...] | None:
    """Return a list as aclitem[] shows it, None where there is none."""
    if items is None:
        return None

    def name(oid: int) -> str:
        role = session.catalog.role_by_oid(oid)
        return quoted_role(role.name) if role is not None else str(oid)

    return tuple(item_text(item, name) for item in items)


def acl_of(session: Reading, class_oid: int, oid: int, sub: int = 0) -> tuple[str, ...] | None:
    """Return the privileges on an object (``sub``: a column of it) as aclitem[] shows them, None where they
    are the default ones.
    """
    return acl_texts(session, session.catalog.acl(class_oid, oid, sub))


def builtin_acl_texts(items: tuple[AclItem, ...] | None) -> tuple[str, ...] | None:
    """As ``acl_texts``, of a list that names roles alone that are there from the start, under the names they
    have then.
    """
    if items is None:
        return None
    names = {role.oid: role.name for role in predefined_roles().values()} | {SUPERUSER_OID: "postgres"}
    return tuple(item_text(item, lambda oid: quoted_role(names[oid])) for item in items)
