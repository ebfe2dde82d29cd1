"""AST of statements about collations. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.option import Option
from planner.ast.query import Name, StatementNode


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCollation(StatementNode):
    """CREATE COLLATION [IF NOT EXISTS]; FROM is an option, too."""

    name: Name
    options: tuple[Option, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCollation(StatementNode):
    """RENAME TO, SET SCHEMA, OWNER TO, whichever is there."""

    name: Name
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCollation(StatementNode):
    """ALTER COLLATION ... REFRESH VERSION."""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCollation(StatementNode):
    """DROP COLLATION."""

    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnCollation(StatementNode):
    """COMMENT ON such; ``text`` None removes."""

    name: Name
    text: str | None
