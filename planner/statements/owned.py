"""Bound statements about what roles own and what others get of it. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignOwned:
    """REASSIGN OWNED. Roles are names, or current_user and session_user as such."""

    roles: tuple[str, ...]
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOwned:
    """DROP OWNED."""

    roles: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES. ``kind`` as in ``planner.catalog.acl.ALL``; ``schemas``: oids, (0,) =
    everywhere; grantee None: PUBLIC.
    """

    roles: tuple[str, ...]
    schemas: tuple[int, ...]
    kind: str
    is_grant: bool
    letters: str
    grantees: tuple[str | None, ...]
    option: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateExtension:
    """CREATE EXTENSION. ``version`` "": none was named."""

    name: str
    schema: str
    version: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterExtension:
    """ALTER EXTENSION SET SCHEMA, or with ``schema`` "" UPDATE [TO ``version``]."""

    name: str
    schema: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropExtension:
    """DROP EXTENSION."""

    names: tuple[str, ...]
    if_exists: bool
    cascade: bool


OwnedStatement: TypeAlias = (
    ReassignOwned | DropOwned | AlterDefaultPrivileges | CreateExtension | AlterExtension | DropExtension
)
