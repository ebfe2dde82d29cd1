"""AST of statements about conversions between encodings. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.query import Name, StatementNode


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConversion(StatementNode):
    """CREATE [DEFAULT] CONVERSION; encodings as they are written."""

    name: Name
    source: str
    target: str
    function: Name
    default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConversion(StatementNode):
    """RENAME TO, SET SCHEMA, OWNER TO, whichever is there."""

    name: Name
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConversion(StatementNode):
    """DROP CONVERSION."""

    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnConversion(StatementNode):
    """COMMENT ON such; ``text`` None removes."""

    name: Name
    text: str | None
