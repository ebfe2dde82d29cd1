"""AST of statements about policies of row-level security. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.query import Expression, Name, StatementNode, TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePolicy(StatementNode):
    """CREATE POLICY; ``command``: all, select, insert, update or delete."""

    name: str
    relation: TableRef
    command: str
    permissive: bool
    roles: tuple[Role, ...]
    using: Expression | None
    check: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPolicy(StatementNode):
    """ALTER POLICY; ``roles`` None and expressions that are None stay as they are."""

    name: str
    relation: TableRef
    roles: tuple[Role, ...] | None
    using: Expression | None
    check: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePolicy(StatementNode):
    """ALTER POLICY ... RENAME TO."""

    name: str
    relation: TableRef
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPolicy(StatementNode):
    """DROP POLICY; ``table``: the table's name, with its schema where it was written."""

    table: Name
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnPolicy(StatementNode):
    """COMMENT ON POLICY."""

    table: Name
    name: str
    text: str | None
