"""AST of statements about collations. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.option import Option
from planner.ast.query import Name, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCollation(Node):
    """CREATE COLLATION [IF NOT EXISTS]; FROM is an option, too."""

    name: Name
    options: tuple[Option, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCollation(Node):
    """RENAME TO, SET SCHEMA, OWNER TO, whichever is there."""

    name: Name
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCollation(Node):
    """ALTER COLLATION ... REFRESH VERSION."""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCollation(Node):
    """DROP COLLATION."""

    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnCollation(Node):
    """COMMENT ON such; ``text`` None removes."""

    name: Name
    text: str | None
