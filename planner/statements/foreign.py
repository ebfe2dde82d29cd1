"""Bound statements about foreign data. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.catalog.foreign import Options

OptionChanges: TypeAlias = tuple[tuple[Literal["add", "set", "drop"], str, str], ...]
"""What is done with options, one after the other: action, name, value ("" where it goes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWrapper:
    """CREATE FOREIGN DATA WRAPPER."""

    name: str
    validator: int
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterWrapper:
    """ALTER FOREIGN DATA WRAPPER. ``validator``: None where it stays. ``handler``: HANDLER was written, and
    none is meant.
    """

    wrapper: int
    handler: bool
    validator: int | None
    changes: OptionChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateServer:
    """CREATE SERVER; ``wrapper`` 0: there is a server of that name, so nobody has looked."""

    name: str
    wrapper: int
    type: str | None
    version: str | None
    if_not_exists: bool
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterServer:
    """ALTER SERVER; ``version`` counts where ``has_version``."""

    server: int
    has_version: bool
    version: str | None
    changes: OptionChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUserMapping:
    """CREATE USER MAPPING; ``role`` None: for everybody."""

    role: str | None
    server: int
    if_not_exists: bool
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserMapping:
    """ALTER USER MAPPING; ``role`` None: that for everybody."""

    role: str | None
    server: int
    changes: OptionChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUserMapping:
    """DROP USER MAPPING; ``role`` None: that for everybody; ``server`` 0: there is none of the name ``written``."""

    role: str | None
    server: int
    written: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterForeign:
    """RENAME TO or OWNER TO, whichever is there, of a wrapper or server by oid."""

    object: int
    name: str | None
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropForeign:
    """DROP of wrappers or servers, by oid; ``missing``: notices about those that are not there."""

    objects: tuple[int, ...]
    missing: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportForeignSchema:
    """IMPORT FOREIGN SCHEMA, which no wrapper's handler can do."""

    server: int
    schema: str


ForeignStatement: TypeAlias = (
    CreateWrapper | AlterWrapper | CreateServer | AlterServer | CreateUserMapping | AlterUserMapping | DropUserMapping
    | AlterForeign | DropForeign | ImportForeignSchema
)  # fmt: skip
