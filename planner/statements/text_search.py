"""Bound statements about text search configurations and dictionaries. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConfiguration:
    """CREATE TEXT SEARCH CONFIGURATION; ``copy``: the one whose maps it takes, by oid, 0 for none."""

    schema: str
    name: str
    copy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDictionary:
    """CREATE TEXT SEARCH DICTIONARY; ``options``: names and literals, in which the template has found nothing wrong."""

    schema: str
    name: str
    template: int
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterMapping:
    """ALTER TEXT SEARCH CONFIGURATION ... MAPPING. ``tokens``: number and name of the types, empty: all.

    ``dictionaries``: by oid; of ``replace`` the old one and the new one. ``written``: the name of the
    configuration, as it is.
    """

    configuration: int
    written: str
    action: Literal["add", "alter", "replace", "drop"]
    tokens: tuple[tuple[int, str], ...]
    dictionaries: tuple[int, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDictionary:
    """ALTER TEXT SEARCH DICTIONARY; ``changes``: names and literals, None for what goes. ``written``: its
    name, as it is.
    """

    dictionary: int
    written: str
    changes: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTextSearch:
    """RENAME TO, SET SCHEMA or OWNER TO, whichever is there, of a configuration or dictionary by oid."""

    object: int
    name: str | None
    schema: str | None
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTextSearch:
    """DROP of configurations or dictionaries: oid and name as written; ``missing``: notices about those that
    are not there.
    """

    objects: tuple[tuple[int, str], ...]
    missing: tuple[str, ...]
    cascade: bool


TextSearchStatement: TypeAlias = (
    CreateConfiguration | CreateDictionary | AlterMapping | AlterDictionary | AlterTextSearch | DropTextSearch
)
