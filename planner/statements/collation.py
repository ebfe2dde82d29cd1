"""Bound statements about collations. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCollation:
    """CREATE COLLATION; the fields of ``planner.catalog.collations.CollationDef``."""

    schema: str
    name: str
    encoding: int
    collate: str
    ctype: str
    version: str | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCollation:
    """RENAME TO, SET SCHEMA or OWNER TO, whichever is there, of a collation by oid."""

    object: int
    name: str | None
    schema: str | None
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCollation:
    """ALTER COLLATION ... REFRESH VERSION, by oid; ``name``: as it is written."""

    object: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCollation:
    """DROP COLLATION, by oid; ``written``: as they are named; ``missing``: notices about those that are not there."""

    objects: tuple[int, ...]
    written: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    cascade: bool = False


CollationStatement: TypeAlias = CreateCollation | AlterCollation | RefreshCollation | DropCollation
