"""AST of statements about foreign data. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.ast.definitions import Role
from planner.ast.option import ForeignOption
from planner.ast.query import Name, StatementNode


@dataclass(frozen=True, slots=True, kw_only=True)
class DefineWrapper(StatementNode):
    """CREATE or ALTER FOREIGN DATA WRAPPER. ``handler``, ``validator``: names of functions, empty for NO
    HANDLER, None where not written.
    """

    create: bool
    name: str
    handler: Name | None = None
    validator: Name | None = None
    options: tuple[ForeignOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateServer(StatementNode):
    """CREATE SERVER."""

    name: str
    wrapper: str
    type: str | None
    version: str | None
    if_not_exists: bool
    options: tuple[ForeignOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterServer(StatementNode):
    """ALTER SERVER; ``version`` counts where ``has_version``."""

    name: str
    has_version: bool
    version: str | None
    options: tuple[ForeignOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMapping(StatementNode):
    """CREATE, ALTER and DROP USER MAPPING; ``lenient``: IF [NOT] EXISTS."""

    verb: Literal["create", "alter", "drop"]
    role: Role
    server: str
    lenient: bool = False
    options: tuple[ForeignOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterForeign(StatementNode):
    """RENAME TO or OWNER TO of a wrapper or server (``what``, as the grammar calls it)."""

    what: str
    name: str
    rename: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropForeign(StatementNode):
    """DROP FOREIGN DATA WRAPPER or SERVER."""

    what: str
    names: tuple[str, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnForeign(StatementNode):
    """COMMENT ON such; ``text`` None removes."""

    what: str
    name: str
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportForeignSchema(StatementNode):
    """IMPORT FOREIGN SCHEMA ... FROM SERVER ... INTO ``schema``; what would be imported only a handler could
    ask for.
    """

    server: str
    schema: str
