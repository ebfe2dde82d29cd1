"""AST of statements about what all databases of the server share: databases, and what settings begin with."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.option import Option
from planner.ast.query import StatementNode
from planner.ast.session import SetVariable


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase(StatementNode):
    """CREATE DATABASE."""

    name: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDatabase(StatementNode):
    """ALTER DATABASE ... [WITH] options, or ``refresh``: REFRESH COLLATION VERSION."""

    name: str
    options: tuple[Option, ...] = ()
    refresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase(StatementNode):
    """DROP DATABASE."""

    name: str
    if_exists: bool = False
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDefaults(StatementNode):
    """ALTER DATABASE ... SET | RESET, ALTER ROLE {role | ALL} [IN DATABASE] SET | RESET.

    ``database`` "": in all; ``role`` None: for all.
    """

    database: str
    role: Role | None
    setting: SetVariable
    of_role: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityLabel(StatementNode):
    """SECURITY LABEL ON whatever; ``provider`` "" where none is named."""

    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(StatementNode):
    """LOAD of a shared library."""

    library: str
