"""What is neither relation nor type: extensions, timelines, databases, settings to begin with, sources,
schemas, roles, privileges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.catalog.acl_items import AclItem, Membership
from planner.catalog.relations import DEFAULT_TIMELINE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionDef:
    """An extension in a database (CREATE EXTENSION); its functions name it (``FunctionDef.extension``)."""

    oid: int
    name: str
    schema_oid: int
    version: str
    owner: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineDef:
    """A timeline beside the default one (CREATE TIMELINE)."""

    oid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseDef:
    """A database of the server (CREATE DATABASE). ``connection_limit`` -1: none.

    ``collate`` and ``ctype``: the names that its locale was given, of those that compare bytewise.
    """

    oid: int
    name: str
    owner: int
    is_template: bool = False
    allow_connections: bool = True
    connection_limit: int = -1
    collate: str = "C.UTF-8"
    ctype: str = "C.UTF-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsDef:
    """What settings begin with in a database, for a role, or for a role in a database (0: in all, for all).

    ALTER DATABASE ... SET, ALTER ROLE ... SET.
    """

    database: int
    role: int
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDef:
    """A source (CREATE SOURCE): what is read from elsewhere, and the tables it goes to.

    ``options``: checked, as written; ``tables``: oids, in the order in which the source knows them;
    ``tables_from``: what each of them is called there (only of sources that read tables).
    """

    oid: int
    name: str
    kind: str
    owner: int
    options: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[int, ...] = ()
    tables_from: tuple[str, ...] = ()
    timeline: str = DEFAULT_TIMELINE
    paused: bool = False
    created_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDef:
    """A schema (pg_namespace row)."""

    oid: int
    name: str
    owner: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleDef:
    """A role; ``verifier`` is the SCRAM-SHA-256 verifier text or None."""

    oid: int
    name: str
    superuser: bool = False
    inherit: bool = True
    create_role: bool = False
    create_db: bool = False
    can_login: bool = False
    replication: bool = False
    bypass_rls: bool = False
    connection_limit: int = -1
    verifier: str | None = None
    valid_until: int | None = None
    member_of: tuple[Membership, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AclDef:
    """The access control list of an object of the catalog ``class_oid`` (``sub_id``: one of its columns)."""

    class_oid: int
    object_oid: int
    sub_id: int
    items: tuple[AclItem, ...]
