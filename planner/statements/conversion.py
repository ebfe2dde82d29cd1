"""Bound statements about conversions between encodings. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConversion:
    """CREATE CONVERSION; encodings by number, the function by oid."""

    schema: str
    name: str
    source: int
    target: int
    function: int
    default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConversion:
    """RENAME TO, SET SCHEMA or OWNER TO, whichever is there, of a conversion by oid."""

    object: int
    name: str | None
    schema: str | None
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConversion:
    """DROP CONVERSION, by oid; ``written``: as they are named; ``missing``: notices about those that are not there."""

    objects: tuple[int, ...]
    written: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


ConversionStatement: TypeAlias = CreateConversion | AlterConversion | DropConversion
