"""Bound statements about types. Read them as ``planner.statements``; types that exist are named by oid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEnum:
    """CREATE TYPE ... AS ENUM."""

    schema: str
    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddEnumValue:
    """ALTER TYPE ... ADD VALUE."""

    type: int
    label: str
    neighbour: str | None
    after: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameEnumValue:
    """ALTER TYPE ... RENAME VALUE."""

    type: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterType:
    """ALTER TYPE or DOMAIN ... RENAME TO, SET SCHEMA, OWNER TO: the one that is not None."""

    type: int
    name: str | None = None
    schema: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType:
    """DROP TYPE or DOMAIN. ``names``: (schema, name), schema "" = search path."""

    what: Literal["type", "domain"]
    names: tuple[tuple[str, str], ...]
    if_exists: bool
    cascade: bool


TypeStatement: TypeAlias = AddEnumValue | AlterType | CreateEnum | DropType | RenameEnumValue
