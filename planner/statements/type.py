"""Bound statements about types. Read them as ``planner.statements``; types that exist are named by oid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.statements.table import AlterTable
from planner.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEnum:
    """CREATE TYPE ... AS ENUM."""

    schema: str
    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeSpec:
    """An attribute of a composite type; ``type`` may be a domain."""

    name: str
    type: SqlType
    collation: int
    dims: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateComposite:
    """CREATE TYPE ... AS (attributes)."""

    schema: str
    name: str
    attributes: tuple[AttributeSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRange:
    """CREATE TYPE ... AS RANGE. ``subtype``, ``subtype_diff`` (0: none): oids; ``multirange``: the name of
    its multirange type, "" for the usual one.
    """

    schema: str
    name: str
    subtype: int
    collation: int
    subtype_diff: int
    multirange: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAttribute:
    """ADD ATTRIBUTE."""

    attribute: AttributeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DropAttribute:
    """DROP ATTRIBUTE [IF EXISTS] [CASCADE]."""

    name: str
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterAttribute:
    """ALTER ATTRIBUTE ... TYPE."""

    attribute: AttributeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameAttribute:
    """RENAME ATTRIBUTE."""

    old: str
    new: str


AttributeAction: TypeAlias = AddAttribute | DropAttribute | AlterAttribute | RenameAttribute


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterComposite:
    """ALTER TYPE ... with actions on attributes, in order.

    ``typed``: CASCADE's, the same actions on the columns of each table of the type; ``renamed``: the tables
    of a type whose attribute is renamed.
    """

    type: int
    actions: tuple[AttributeAction, ...]
    typed: tuple[AlterTable, ...] = ()
    renamed: tuple[int, ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainCheck:
    """A CHECK of a domain: ``name`` None = choose one as PostgreSQL does; ``sql`` is its canonical text."""

    name: str | None
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDomain:
    """CREATE DOMAIN. ``base`` may be a domain itself, and the default its one."""

    schema: str
    name: str
    base: SqlType
    not_null: bool
    default_sql: str | None
    checks: tuple[DomainCheck, ...]
    collation: int
    dims: int = 0
    default_inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDomainDefault:
    """ALTER DOMAIN ... SET DEFAULT, or (None) DROP DEFAULT."""

    type: int
    default_sql: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDomainNotNull:
    """ALTER DOMAIN ... SET or DROP NOT NULL."""

    type: int
    not_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddDomainCheck:
    """ALTER DOMAIN ... ADD CHECK [NOT VALID]."""

    type: int
    check: DomainCheck
    not_valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDomainConstraint:
    """ALTER DOMAIN ... DROP CONSTRAINT. ``shown``: the domain as it was written, for messages."""

    type: int
    name: str
    if_exists: bool
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateDomainConstraint:
    """ALTER DOMAIN ... VALIDATE CONSTRAINT. ``shown``: the domain as it was written, for messages."""

    type: int
    name: str
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameDomainConstraint:
    """ALTER DOMAIN ... RENAME CONSTRAINT."""

    type: int
    old: str
    new: str


AlterDomain: TypeAlias = (
    SetDomainDefault
    | SetDomainNotNull
    | AddDomainCheck
    | DropDomainConstraint
    | ValidateDomainConstraint
    | RenameDomainConstraint
)

TypeStatement: TypeAlias = (
    AddEnumValue
    | AlterComposite
    | AlterDomain
    | AlterType
    | CreateComposite
    | CreateDomain
    | CreateEnum
    | CreateRange
    | DropType
    | RenameEnumValue
)
