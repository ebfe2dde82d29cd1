"""SET ROLE and SET SESSION AUTHORIZATION: who may become whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.session.acting import refuse_other_role
from planner.base.errors import SqlError
from planner.catalog import RoleDef
from planner.catalog.acl import memberships

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.acting import Acting


def set_role(session: Acting, setting: str, value: str | None, *, local: bool) -> None:
    """SET ROLE and SET SESSION AUTHORIZATION: a superuser may become anyone, others only themselves.

    SET ROLE goes by the session user, SET SESSION AUTHORIZATION by who logged in; the latter also ends a
    SET ROLE. ``is_superuser`` follows the current user. All of it is undone with the transaction.

    Raises SqlError 22023 for an unknown role, 42501 where it is not allowed.
    """
    refuse_other_role(session, setting)
    settings = session.settings
    if setting == "role":
        if value is not None and value != "none":
            session.identity.take(allow_role(session.today, value, session.identity.session, "role"))
        settings.follow("role", value, local=local)
    else:
        if value is not None:
            login = session.identity.login
            session.identity.take(allow_role(session.today, value, login, "session authorization"))
        settings.follow("session_authorization", value, local=local)
        settings.follow("role", None, local=local)
    settings.follow("is_superuser", "on" if session.is_superuser else "off", local=local)


def allow_role(catalog: CatalogSnapshot, name: str, by: int, what: str) -> RoleDef:
    """Return the role that the role ``by`` becomes, as a ``role`` or as a ``session authorization``.

    Raises SqlError 22023 for an unknown one, 42501 where it may not.
    """
    other = catalog.role(name)
    if other is None:
        raise SqlError("22023", f'role "{name}" does not exist')
    acting = catalog.role_by_oid(by)
    may = acting is not None and (
        acting.superuser
        or acting.oid == other.oid
        or (what == "role" and other.oid in memberships(acting, catalog.role_by_oid))
    )
    if not may:
        raise SqlError("42501", f'permission denied to set {what} "{name}"')
    return other
