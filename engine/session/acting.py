"""Whose rights code of others runs with: SECURITY DEFINER functions, expressions of indexes, materialized views.

    a superuser's REFRESH MATERIALIZED VIEW v        v is bob's: the functions that it calls run as bob
       └── f(): SET ROLE, set_config('role', …)      42501, or f would be a superuser after all

PostgreSQL's security-restricted operations (src/backend/utils/init/miscinit.c); manual, chapter "CREATE
FUNCTION", Writing SECURITY DEFINER Functions Safely.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from planner.base.errors import SqlError
from planner.catalog.acl import inherited

if TYPE_CHECKING:
    from engine.base.settings import Settings
    from engine.catalog.state import CatalogSnapshot
    from engine.session.identity import Identity
    from planner.catalog import RoleDef


class Acting(Protocol):
    """A session, as far as it can run with the rights of others; what its attributes mean says
    ``engine.session.session``.
    """

    settings: Settings
    identity: Identity
    acting: bool
    restricted: bool
    asking: int | None

    @property
    def today(self) -> CatalogSnapshot:
        """The catalog whose roles and rights count."""

    @property
    def asker(self) -> RoleDef | None:
        """As whom it is asked what is to be had of the past; None: as nobody."""

    @property
    def is_superuser(self) -> bool:
        """Whether the current user is one."""


@contextmanager
def acting_as(session: Acting, oid: int, *, restricted: bool) -> Iterator[None]:
    """Be the role ``oid`` for a while, and nobody else: SET ROLE and SET SESSION AUTHORIZATION fail meanwhile (42501).

    ``restricted``: for what the current user did not call by name, which errors tell apart. What it sets is
    undone when it is over: a search_path that stays would be the current user's. Nothing else is restricted
    then, as PostgreSQL does for temporary tables: functions that change something stand neither in indexes
    nor in materialized views. ``is_superuser`` goes on saying what the session is. Raises SqlError 42704
    where the role has gone.
    """
    role = session.today.role_by_oid(oid)
    if role is None:
        raise SqlError("42704", f"role with OID {oid} does not exist")
    settings = session.settings
    before = settings.stored("role")
    was = session.acting, session.restricted, session.asking
    session.asking = _weaker(session, session.asker, role)
    session.acting, session.restricted = session.acting or not restricted, session.restricted or restricted
    mark = settings.mark()
    try:
        with session.identity.taken(role):
            settings.override("role", role.name)
            yield
    finally:
        if restricted:
            settings.undo_to(mark)
        session.acting, session.restricted, session.asking = was
        settings.override("role", before)


def _weaker(session: Acting, caller: RoleDef | None, owner: RoleDef) -> int:
    """Return which of two roles has no rights that the other lacks; 0, nobody, where each may have some.

    What only owners are given of the past, a superuser must not fetch for the owner of the function that he calls.
    """
    if caller is None or caller.oid == owner.oid or owner.superuser:
        return 0 if caller is None else caller.oid
    find = session.today.role_by_oid
    if caller.superuser or owner.oid in inherited(caller, find):
        return owner.oid
    return caller.oid if caller.oid in inherited(owner, find) else 0


def refuse_other_role(session: Acting, setting: str) -> None:
    """Raise SqlError 42501 for SET ROLE and its kin where the current role is not the session's own choice."""
    if session.acting or session.restricted:
        where = "security-definer function" if session.acting else "security-restricted operation"
        raise SqlError("42501", f'cannot set parameter "{setting}" within {where}')
