"""AST of statements about operator classes and families. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import Role
from planner.ast.function import FunctionName
from planner.ast.query import Name, Node, StatementNode, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class OpclassItem(Node):
    """OPERATOR, FUNCTION or STORAGE of a class, or of what a family gets or loses.

    ``name``: the operator with its ``operands``, empty where none are written, or the function. ``types``:
    those in parentheses before a function, or of what is dropped. ``order_by``: the family of FOR ORDER BY.
    """

    kind: str
    number: int = 0
    operator: Name = ()
    operands: tuple[TypeName | None, ...] = ()
    function: FunctionName | None = None
    types: tuple[TypeName, ...] = ()
    order_by: Name = ()
    storage: TypeName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOpfamily(StatementNode):
    """CREATE OPERATOR FAMILY."""

    name: Name
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOpclass(StatementNode):
    """CREATE OPERATOR CLASS; ``family`` empty: one of the class's name."""

    name: Name
    method: str
    type: TypeName
    default: bool
    family: Name
    items: tuple[OpclassItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOpfamily(StatementNode):
    """ALTER OPERATOR FAMILY ... ADD, or DROP."""

    name: Name
    method: str
    drop: bool
    items: tuple[OpclassItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOpclass(StatementNode):
    """RENAME TO, SET SCHEMA, OWNER TO, whichever is there, of a class or family (``what``)."""

    what: str
    method: str
    name: Name
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOpclass(StatementNode):
    """DROP OPERATOR CLASS or FAMILY."""

    what: str
    method: str
    name: Name
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnOpclass(StatementNode):
    """COMMENT ON such; ``text`` None removes."""

    what: str
    method: str
    name: Name
    text: str | None
