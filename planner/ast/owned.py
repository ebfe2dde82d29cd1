"""AST of statements about what roles own and what others get of it, and of extensions. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Privilege, Role
from planner.ast.query import StatementNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignOwned(StatementNode):
    """REASSIGN OWNED BY roles TO role."""

    roles: tuple[Role, ...]
    to: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOwned(StatementNode):
    """DROP OWNED BY roles."""

    roles: tuple[Role, ...]
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDefaultPrivileges(StatementNode):
    """ALTER DEFAULT PRIVILEGES. ``roles`` () = the current one; ``kind``: table, sequence, function, type or schema.

    ``privileges`` empty = ALL. Of a REVOKE ``option`` is GRANT OPTION FOR.
    """

    roles: tuple[Role, ...]
    schemas: tuple[str, ...]
    is_grant: bool
    kind: str
    privileges: tuple[Privilege, ...]
    grantees: tuple[Role, ...]
    option: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension(StatementNode):
    """CREATE, DROP, COMMENT ON, UPDATE, SET SCHEMA or ALTER (its members: ``verb``, lower case) of extensions.

    ``skips``: IF EXISTS, or IF NOT EXISTS. ``schema``, ``version`` "": none was named.
    """

    verb: str
    names: tuple[str, ...]
    skips: bool = False
    cascade: bool = False
    schema: str = ""
    version: str = ""
    text: str | None = None
