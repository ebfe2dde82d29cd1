"""AST of statements about functions: CREATE, ALTER and DROP FUNCTION, COMMENT ON FUNCTION. Read it as
``planner.ast``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.ast.definitions import Role
from planner.ast.option import Option
from planner.ast.query import Expression, FuncCall, Name, Node, StatementNode, TypeName
from planner.ast.session import SetVariable


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Node):
    """A parameter of a function; ``mode`` as pg_proc has it: i(n), o(ut), b(oth), v(ariadic), t(able column)."""

    mode: Literal["i", "o", "b", "v", "t"]
    name: str
    type: TypeName
    default: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(StatementNode):
    """CREATE [OR REPLACE] FUNCTION or PROCEDURE.

    ``result`` None: none was written. ``body``: statements of BEGIN ATOMIC, the expression of RETURN, or None
    where the body is a text (``source``, which stands at ``source_at`` as it is); ``returned``: which of
    those statements are RETURN. ``settings``: its SET clauses. ``options`` are all others, ``language`` None
    where it was not written.
    """

    name: Name
    replace: bool
    procedure: bool
    parameters: tuple[Parameter, ...]
    result: TypeName | None
    options: tuple[Option, ...]
    language: str | None = None
    source: tuple[str, ...] | None = None
    body: tuple[Node, ...] | Expression | None = None
    returned: tuple[int, ...] = ()
    source_at: int | None = None
    settings: tuple[SetVariable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAggregate(StatementNode):
    """CREATE [OR REPLACE] AGGREGATE; ``parameters`` None: the old syntax, in which an option names the input.

    ``direct``: how many of them stand before ORDER BY, -1 without that.
    """

    name: Name
    replace: bool
    parameters: tuple[Parameter, ...] | None
    options: tuple[Option, ...]
    direct: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(StatementNode):
    """CALL procedure(arguments)."""

    call: FuncCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(StatementNode):
    """DO ``source``, which stands at ``source_at`` as it is, if it does."""

    language: str
    source: str
    source_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionName(Node):
    """A function as other statements name it; ``parameters`` None: no list of arguments was written."""

    name: Name
    parameters: tuple[Parameter, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterFunction(StatementNode):
    """ALTER FUNCTION, PROCEDURE, AGGREGATE or ROUTINE: RENAME TO, SET SCHEMA, OWNER TO, or options, whichever
    is there.
    """

    what: str
    function: FunctionName
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None
    options: tuple[Option, ...] = ()
    settings: tuple[SetVariable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction(StatementNode):
    """DROP FUNCTION, PROCEDURE, AGGREGATE or ROUTINE (``what``)."""

    what: str
    functions: tuple[FunctionName, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnFunction(StatementNode):
    """COMMENT ON FUNCTION, PROCEDURE, AGGREGATE or ROUTINE; ``text`` None removes."""

    what: str
    function: FunctionName
    text: str | None
