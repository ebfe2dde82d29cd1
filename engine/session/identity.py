"""Who a session is: roles by oid, for a name may be given to another role while the session lives.

    logged in as ann, oid 16384       ALTER ROLE ann RENAME TO eve      current_user is eve
                                      DROP ROLE ann                     42704 for what asks who one is
                                      CREATE ROLE ann SUPERUSER         still 42704: that one is oid 16390

The settings ``role`` and ``session_authorization`` keep names, as SHOW prints them and transactions restore
them; here is which role each name meant when the session took it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.base.errors import SqlError

if TYPE_CHECKING:
    from engine.base.settings import Settings
    from engine.catalog.state import CatalogSnapshot
    from planner.catalog import RoleDef


class Identity:
    """The roles of one session.

    Attributes:
        login, login_name: the oid of the role that logged in, and what it was called.
    """

    __slots__ = ("_meant", "_settings", "login", "login_name")

    def __init__(self, settings: Settings, login: RoleDef, catalog: CatalogSnapshot) -> None:
        """Begin as who logged in, and as what the settings say of it at the start."""
        self.login, self.login_name = login.oid, login.name
        self._settings = settings
        self._meant = {login.name: login.oid}
        for name in (settings.get("session_authorization"), settings.get("role")):
            role = catalog.role(name)
            if role is not None and name not in self._meant:
                self._meant[name] = role.oid

    def take(self, role: RoleDef) -> None:
        """Let a name mean a role, which the session may become, or has become by the setting's being the name
        already.
        """
        if self._meant.get(role.name) != role.oid:
            self._meant[role.name] = role.oid
            self._settings.outdate()

    @contextmanager
    def taken(self, role: RoleDef) -> Iterator[None]:
        """Let a name mean a role for a while."""
        before = dict(self._meant)
        self.take(role)
        try:
            yield
        finally:
            if self._meant != before:
                self._meant = before
                self._settings.outdate()

    @property
    def session(self) -> int:
        """The oid of the session's user: who logged in, or whom SET SESSION AUTHORIZATION made of them."""
        return self._meant[self._settings.get("session_authorization")]

    @property
    def current(self) -> int:
        """The oid of the current user; that a role with it exists is not looked at."""
        name = self._settings.get("role")
        return self.session if name == "none" else self._meant[name]


def name_of(oid: int, catalog: CatalogSnapshot) -> str:
    """Return what a role is called now. Raises SqlError 42704 for one that has been dropped."""
    return existing(oid, catalog).name


def existing(oid: int, catalog: CatalogSnapshot) -> RoleDef:
    """Return a role. Raises SqlError 42704 for one that has been dropped."""
    role = catalog.role_by_oid(oid)
    if role is None:
        raise SqlError("42704", f"role with OID {oid} does not exist")
    return role
