"""Roles as statements name them, current_user and its kin included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from engine.session.identity import existing
from pgwire.give_way import spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import RoleDef
from planner.catalog.acl import EVERYBODY

if TYPE_CHECKING:
    from engine.session.session import Session


OWN_NAMES: Final = ("current_user", "current_role", "session_user")
"""Names that mean a role of the session's."""


def named_role(session: Session, name: str) -> RoleDef:
    """Return the role an OWNER TO names, current_user and session_user included; 42704 if there is none."""
    if name in ("current_user", "current_role"):
        return session.role
    if name == "session_user":
        return existing(session.identity.session, session.catalog)
    role = session.catalog.role(name)
    if role is None:
        raise SqlError("42704", f'role "{name}" does not exist')
    return role


def named_roles(session: Session, names: Iterable[str]) -> list[RoleDef]:
    """As ``named_role``, of a list as long as a client likes: for where an ``await`` may stand."""
    return [named_role(session, name) for name in spaced(names)]


def grantees(session: Session, names: Iterable[str | None]) -> list[int]:
    """Return whom GRANT and REVOKE name by oid, each once, None being everybody; as ``named_roles``."""
    found = dict.fromkeys(spaced(names))
    return list(
        dict.fromkeys(EVERYBODY if name is None else named_role(session, name).oid for name in spaced(found))
    )


def name_of_schema(session: Session, statement: st.CreateSchema) -> str:
    """Return what CREATE SCHEMA calls the new schema: without a name as the role it is for. Raises SqlError 42704."""
    return statement.name or named_role(session, statement.owner or "current_user").name
