"""AST of statements about text search configurations and dictionaries. Read it as ``planner.ast``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.ast.definitions import Role
from planner.ast.option import Option
from planner.ast.query import Name, StatementNode


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTextSearch(StatementNode):
    """CREATE TEXT SEARCH CONFIGURATION or DICTIONARY (``what``, as messages call it)."""

    what: str
    name: Name
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterMapping(StatementNode):
    """ALTER TEXT SEARCH CONFIGURATION ... MAPPING. ``tokens``: of which types, empty: of all.

    ``dictionaries``: those that are asked from now on; of ``replace`` the old one and the new one.
    """

    configuration: Name
    action: Literal["add", "alter", "replace", "drop"]
    tokens: tuple[str, ...]
    dictionaries: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDictionary(StatementNode):
    """ALTER TEXT SEARCH DICTIONARY with options; one without a value goes."""

    dictionary: Name
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTextSearch(StatementNode):
    """RENAME TO, SET SCHEMA, OWNER TO, whichever is there."""

    what: str
    name: Name
    rename: str | None = None
    schema: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTextSearch(StatementNode):
    """DROP TEXT SEARCH CONFIGURATION or DICTIONARY."""

    what: str
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnTextSearch(StatementNode):
    """COMMENT ON TEXT SEARCH CONFIGURATION or DICTIONARY; ``text`` None removes."""

    what: str
    name: Name
    text: str | None
