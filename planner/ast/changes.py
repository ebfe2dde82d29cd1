"""AST of the statements that modify data: INSERT, UPDATE, DELETE, MERGE, COPY. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.ast.option import Option
from planner.ast.query import (
    Expression,
    FromNode,
    Name,
    Node,
    QueryNode,
    StatementNode,
    SubscriptStep,
    TableRef,
    TargetItem,
    With,
)
from planner.base.errors import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumn(Node):
    """A column to be assigned; ``steps`` for ``a[1]`` or ``a.b``."""

    name: str
    steps: tuple[str | SubscriptStep | Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Node):
    """``column = value``, or with ``multiple`` ``(columns) = value`` (ROW or sub-select)."""

    columns: tuple[TargetColumn, ...]
    value: Expression
    multiple: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexElement(Node):
    """A key column of an index or of ON CONFLICT: ``name`` or ``expr``."""

    name: str = ""
    expr: Expression | None = None
    collation: Name = ()
    opclass: Name = ()
    opclass_options: tuple[Option, ...] = ()
    direction: Literal["", "asc", "desc"] = ""
    nulls: Literal["", "first", "last"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnConflict(Node):
    """ON CONFLICT; the arbiter is ``elements`` (+ ``element_where``), ``constraint``, or neither."""

    action: Literal["nothing", "update"]
    elements: tuple[IndexElement, ...] = ()
    element_where: Expression | None = None
    constraint: str = ""
    infer_span: Span | None = field(default=None, compare=False)
    assignments: tuple[Assignment, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(StatementNode):
    """INSERT; ``query`` None is DEFAULT VALUES; ``columns`` () where no list was written."""

    relation: TableRef
    columns: tuple[TargetColumn, ...] = ()
    query: QueryNode | None = None
    on_conflict: OnConflict | None = None
    returning: tuple[TargetItem, ...] = ()
    with_: With | None = None
    overriding: Literal["", "user", "system"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(StatementNode):
    """UPDATE."""

    relation: TableRef
    assignments: tuple[Assignment, ...]
    from_: tuple[FromNode, ...] = ()
    where: Expression | None = None
    returning: tuple[TargetItem, ...] = ()
    with_: With | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(StatementNode):
    """DELETE."""

    relation: TableRef
    using: tuple[FromNode, ...] = ()
    where: Expression | None = None
    returning: tuple[TargetItem, ...] = ()
    with_: With | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWhen(Node):
    """``WHEN [NOT] MATCHED [AND condition] THEN action``; INSERT has ``values`` None for DEFAULT VALUES."""

    matched: bool
    action: Literal["update", "delete", "insert", "nothing"]
    condition: Expression | None = None
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[TargetColumn, ...] = ()
    values: tuple[Expression, ...] | None = None
    overriding: Literal["", "user", "system"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(StatementNode):
    """MERGE."""

    relation: TableRef
    source: FromNode
    on: Expression
    clauses: tuple[MergeWhen, ...]
    with_: With | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(StatementNode):
    """COPY of a table's ``columns`` (() = all) or of ``query``; ``filename`` None is STDIN/STDOUT."""

    relation: TableRef | None
    query: StatementNode | None
    columns: tuple[str, ...]
    is_from: bool
    program: bool
    filename: str | None
    options: tuple[Option, ...] = ()
    where: Expression | None = None
