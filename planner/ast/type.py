"""AST of statements about types: CREATE TYPE, ALTER TYPE (RENAME, OWNER TO and DROP are those of all objects)."""

from __future__ import annotations

from dataclasses import dataclass

from planner.ast.definitions import ColumnDef
from planner.ast.option import Option
from planner.ast.query import Name, StatementNode


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEnum(StatementNode):
    """CREATE TYPE ... AS ENUM (labels)."""

    name: Name
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateComposite(StatementNode):
    """CREATE TYPE ... AS (attributes)."""

    name: Name
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRange(StatementNode):
    """CREATE TYPE ... AS RANGE (attributes)."""

    name: Name
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddEnumValue(StatementNode):
    """ALTER TYPE ... ADD VALUE [BEFORE | AFTER neighbour]; without neighbour it comes last."""

    name: Name
    label: str
    neighbour: str | None
    after: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameEnumValue(StatementNode):
    """ALTER TYPE ... RENAME VALUE old TO new."""

    name: Name
    old: str
    new: str
