"""Bound definitions of databases, schemas, timelines, sources, sequences and views; RENAME, DROP and TRUNCATE
of anything.

Those of tables and indexes are in ``planner.statements.table``. Read them as ``planner.statements``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from planner import ast
from planner.base.errors import Span
from planner.catalog import SequenceDef
from planner.query import OutputColumn, QueryExpr
from planner.statements.table import ColumnSpec, CreateTable, TableStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema:
    """CREATE SCHEMA, with its element statements as raw AST (bound one by one when run); ``name`` "": that of
    the role it is for.
    """

    name: str
    if_not_exists: bool
    owner: str | None = None
    elements: tuple[ast.StatementNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """CREATE DATABASE. ``options``: attribute of ``DatabaseDef`` -> value; ``owner`` and ``template`` are names."""

    name: str
    options: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDatabase:
    """ALTER DATABASE. ``options``: attribute of ``DatabaseDef`` -> value; ``owner`` is a name. ``refresh``:
    REFRESH COLLATION VERSION, and nothing else.
    """

    name: str
    options: Mapping[str, object]
    refresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """DROP DATABASE. ``force``: sessions in it are ended."""

    name: str
    if_exists: bool
    force: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTimeline:
    """CREATE TIMELINE."""

    name: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTimeline:
    """DROP TIMELINE."""

    names: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource:
    """CREATE SOURCE. ``table`` has no columns where the source's kind says which there are.

    ``options``: name, value (None: none was written) and where each stands; the engine knows what each kind takes.
    """

    name: str
    kind: str
    options: tuple[tuple[str, str | None, Span], ...]
    table: CreateTable
    has_columns: bool
    timeline: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource:
    """ALTER SOURCE ... PAUSE, or RESUME."""

    name: str
    pause: bool
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource:
    """DROP SOURCE."""

    names: tuple[str, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSequence:
    """CREATE SEQUENCE; ``owned_by``: (table, attnum), None or (0, 0) = no column."""

    schema: str
    name: str
    if_not_exists: bool
    definition: SequenceDef
    owned_by: tuple[int, int] | None = None
    persistence: Literal["p", "t", "u"] = "p"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSequence:
    """ALTER SEQUENCE: ``definition`` as it is to be; ``restarts``: counting begins anew at its ``restart``."""

    sequence: int
    definition: SequenceDef
    restarts: bool
    owned_by: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW; ``sql`` is the canonical SELECT text, ``collations`` are those of ``columns``
    (0: none).

    ``follows``: it is temporary because something that it reads is, which nobody has asked for.
    """

    schema: str
    name: str
    replace: bool
    columns: tuple[OutputColumn, ...]
    collations: tuple[int, ...]
    sql: str
    query: QueryExpr
    depends_on: frozenset[int] = frozenset()
    persistence: Literal["p", "t", "u"] = "p"
    follows: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMaterializedView:
    """CREATE MATERIALIZED VIEW; ``columns`` match ``query``, ``sql`` is its canonical text."""

    schema: str
    name: str
    if_not_exists: bool
    columns: tuple[ColumnSpec, ...]
    sql: str
    query: QueryExpr
    depends_on: frozenset[int]
    options: Mapping[str, str]
    with_data: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshMaterializedView:
    """REFRESH MATERIALIZED VIEW; ``query`` is what it is now to hold, None WITH NO DATA."""

    table: int
    query: QueryExpr | None
    concurrently: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkConstraints:
    """UPDATE of pg_constraint.convalidated; ``query``: oids of constraints (some perhaps several times), the
    new value of each.
    """

    query: QueryExpr


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterLargeObject:
    """ALTER LARGE OBJECT ... OWNER TO; ``role`` may be current_user or session_user."""

    oid: int
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSchemaOwner:
    """ALTER SCHEMA ... OWNER TO; ``role`` as for AlterOwner."""

    schema: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """RENAME of a relation, column, constraint, index, schema, role or database; ``old`` names the inner thing."""

    what: Literal["relation", "column", "constraint", "schema", "role", "database"]
    relation: int = 0
    old: str = ""
    new: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """DROP of tables, views, indexes or schemas. ``names``: (schema, name), schema "" = search path."""

    what: Literal["table", "foreign table", "view", "materialized view", "index", "sequence", "schema"]
    names: tuple[tuple[str, str], ...]
    if_exists: bool
    cascade: bool
    concurrently: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """TRUNCATE of tables by oid."""

    tables: tuple[int, ...]
    restart_identity: bool = False
    cascade: bool = False


Definition: TypeAlias = (
    TableStatement
    | AlterDatabase
    | AlterSchemaOwner
    | AlterLargeObject
    | AlterSequence
    | AlterSource
    | CreateDatabase
    | CreateMaterializedView
    | CreateSchema
    | CreateSequence
    | CreateSource
    | CreateTimeline
    | CreateView
    | Drop
    | DropDatabase
    | DropSource
    | DropTimeline
    | MarkConstraints
    | RefreshMaterializedView
    | Rename
    | Truncate
)
