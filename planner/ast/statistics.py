"""AST of statements about extended statistics. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.query import Expression, Name, Node, StatementNode, TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsElement(Node):
    """What statistics are over: a column's name, or an expression."""

    name: str
    expr: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStatistics(StatementNode):
    """CREATE STATISTICS."""

    name: Name
    kinds: tuple[str, ...]
    elements: tuple[StatisticsElement, ...]
    relation: TableRef
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStatistics(StatementNode):
    """ALTER STATISTICS: RENAME TO, SET SCHEMA, OWNER TO, SET STATISTICS, whichever is there."""

    name: Name
    if_exists: bool = False
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStatistics(StatementNode):
    """DROP STATISTICS; nothing depends on such objects, so CASCADE says nothing."""

    names: tuple[Name, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnStatistics(StatementNode):
    """COMMENT ON STATISTICS; ``text`` None removes."""

    name: Name
    text: str | None
