"""Bound definitions of tables and indexes: CREATE TABLE, CREATE INDEX, and what ALTER TABLE consists of. Read
them as ``planner.statements``.

What does not exist yet is described (``ColumnSpec``, ``KeySpec`` ...), what exists is named by oid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner import ast
from planner.base.errors import Span, SqlError
from planner.catalog import ColumnDef, IndexMethod, PartitionBound, PartitionKey, SequenceDef
from planner.catalog.foreign import Options
from planner.catalog.statistics import StatisticsDef
from planner.query import Expr, QueryExpr
from planner.statements.foreign import OptionChanges
from planner.types import SqlType


@dataclass(frozen=True, slots=True)
class ColumnSequence:
    """The sequence of a serial or identity column. ``name``: None for one that is made up; ``persistence``:
    None for its table's.
    """

    definition: SequenceDef
    name: str | None = None
    persistence: Literal["p", "u"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """A column as CREATE TABLE or ADD COLUMN defines it, resolved. ``default`` is bound and coerced.

    ``generated`` s(tored): ``default_sql`` is its expression, and there is no ``default``. ``dims``: how many
    pairs of brackets were written.
    """

    name: str
    type: SqlType
    not_null: bool = False
    default: Expr | None = None
    default_sql: str | None = None
    collation: int = 0
    identity: str = ""
    generated: str = ""
    sequence: ColumnSequence | None = None  # of a serial or identity column, to be made with it
    late: ast.Expression | None = (
        None  # a default that names what the statement makes, bound once that is there
    )
    dims: int = 0
    storage: str = ""
    compression: str = ""
    foreign_options: Options = ()  # of a foreign table's


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """A PRIMARY KEY, UNIQUE or EXCLUDE constraint: column names; ``name`` None = choose one as PostgreSQL does.

    ``operators``: of EXCLUDE, by oid; empty for keys. ``method`` and ``where_sql`` are its index's;
    ``expressions``: canonical texts, "" for columns, empty where all are; ``columns`` has what an expression
    is called. ``options``: as IndexDef's. ``index_names``: what an index that is copied calls its columns, where that
    is not what they are called.
    """

    name: str | None
    primary: bool
    columns: tuple[str, ...]
    nulls_not_distinct: bool = False
    include: tuple[str, ...] = ()
    using_index: str | None = None
    deferrable: bool = False
    deferred: bool = False
    operators: tuple[int, ...] = ()
    method: IndexMethod = "btree"
    where_sql: str = ""
    expressions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    index_names: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """What messages call it."""
        return "exclusion" if self.operators else "primary key" if self.primary else "unique"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """A CHECK constraint; ``expr`` sees Var(range=0, attnum) of the table; ``sql`` is its canonical text."""

    name: str | None
    expr: Expr
    sql: str
    columns: tuple[str, ...] = ()
    no_inherit: bool = False
    not_valid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeySpec:
    """A FOREIGN KEY constraint as written; what it means depends on both tables (``bind.foreign_key.resolve``).

    ``table`` 0 is the table being created. ``referenced`` empty = its primary key. Letters as in ForeignKeyDef.
    """

    name: str | None
    columns: tuple[str, ...]
    table: int
    referenced: tuple[str, ...] = ()
    match: str = "s"
    on_update: str = "a"
    on_delete: str = "a"
    delete_columns: tuple[str, ...] = ()
    deferrable: bool = False
    deferred: bool = False
    not_valid: bool = False


@dataclass(frozen=True, slots=True)
class BoundSpans:
    """Where a partition's bound stands in its statement, for errors."""

    whole: Span | None = None
    lower: tuple[Span | None, ...] = ()
    upper: tuple[Span | None, ...] = ()


NO_SPANS = BoundSpans()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedBound:
    """A value of a partition's bound that the statement computes when it runs: that at ``place`` of the
    ``upper`` side of a range, or of the other side, or of a list, where its text is "".

    ``functions``: users' functions that it calls.
    """

    upper: bool
    place: int
    expr: Expr
    type: SqlType
    span: Span | None
    functions: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPartition:
    """ALTER TABLE ... ATTACH PARTITION: the table ``partition`` becomes one."""

    partition: int
    bound: PartitionBound
    spans: BoundSpans
    computed: tuple[ComputedBound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachPartition:
    """ALTER TABLE ... DETACH PARTITION. ``check``: the condition that CONCURRENTLY leaves the table as a
    CHECK; ``finalize``: FINALIZE.
    """

    partition: int
    concurrently: bool = False
    finalize: bool = False
    check: CheckSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachIndex:
    """ALTER INDEX ... ATTACH PARTITION: both by oid."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE, LIKE already expanded (``likes``: of which relations, ``commented``: of which with
    comments). ``query`` is set for CREATE TABLE AS (then columns match it).

    ``executed``: that is a prepared statement's. ``indexes``: copied ones that serve no constraint;
    ``statistics``: copied ones, without oids and names. ``parent``, ``bound``: of a partition, whose columns
    are the parent's. ``path``: the schemas in which late defaults look names up. ``of_type``: the composite
    type that gives it its columns. ``server``, ``foreign_options``: of a foreign table, which is of that
    server; 0 for others.
    """

    schema: str
    name: str
    if_not_exists: bool
    columns: tuple[ColumnSpec, ...]
    keys: tuple[KeySpec, ...] = ()
    checks: tuple[CheckSpec, ...] = ()
    foreign_keys: tuple[ForeignKeySpec, ...] = ()
    persistence: Literal["p", "t", "u"] = "p"
    on_commit: Literal["", "preserve", "delete", "drop"] = ""
    options: Mapping[str, str] = field(default_factory=dict)
    query: QueryExpr | None = None
    with_data: bool = True
    executed: bool = False
    indexes: tuple[CreateIndex, ...] = ()
    statistics: tuple[StatisticsDef, ...] = ()
    partition_key: PartitionKey | None = None
    parent: int = 0
    bound: PartitionBound | None = None
    bound_spans: BoundSpans = NO_SPANS
    bound_computed: tuple[ComputedBound, ...] = ()
    likes: tuple[int, ...] = ()
    commented: tuple[int, ...] = ()
    path: tuple[str, ...] = ()
    of_type: int = 0
    server: int = 0
    foreign_options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """CREATE [UNIQUE] INDEX.

    ``hidden``: the columns that an expression or partial index adds to its table, behind those there are; the
    rest of it as in IndexDef. ``names``: of the keys, for a name to choose; ``keeps_names``: they are not what the
    columns are called.
    """

    table: int
    name: str | None
    if_not_exists: bool
    unique: bool
    method: IndexMethod
    attnums: tuple[int, ...]
    descending: tuple[bool, ...]
    nulls_first: tuple[bool, ...]
    nulls_not_distinct: bool = False
    include: tuple[int, ...] = ()
    concurrently: bool = False
    only: bool = False  # of a partitioned table: not of its partitions
    names: tuple[str, ...] = ()
    keeps_names: bool = False
    hidden: tuple[ColumnDef, ...] = ()
    written: tuple[int, ...] = ()
    expressions: tuple[str, ...] = ()
    where_sql: str = ""
    opclasses: tuple[str, ...] = ()
    collations: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    guard: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """ALTER TABLE: actions in order. ``fails``: what is wrong with the one that comes next, which is told when these
    are done, as they may fail, too.
    """

    table: int
    actions: tuple[AlterAction, ...]
    only: bool = False
    fails: SqlError | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """ADD COLUMN."""

    column: ColumnSpec
    if_not_exists: bool = False
    keys: tuple[KeySpec, ...] = ()
    checks: tuple[CheckSpec, ...] = ()
    foreign_keys: tuple[ForeignKeySpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddKey:
    """ADD PRIMARY KEY / UNIQUE."""

    key: KeySpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCheck:
    """ADD CHECK."""

    check: CheckSpec
    not_valid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddForeignKey:
    """ADD FOREIGN KEY."""

    key: ForeignKeySpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateConstraint:
    """VALIDATE CONSTRAINT of a check or foreign key that was added NOT VALID."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConstraint:
    """ALTER CONSTRAINT of a foreign key: when it is checked."""

    name: str
    deferrable: bool
    deferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """DROP CONSTRAINT."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault:
    """ALTER COLUMN SET / DROP DEFAULT (``default`` None drops)."""

    column: str
    default: Expr | None
    default_sql: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropExpression:
    """ALTER COLUMN DROP EXPRESSION; with a ``notice`` there is none, and it is told so."""

    column: str
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddIdentity:
    """ALTER COLUMN ADD GENERATED ... AS IDENTITY: ``identity`` a(lways) or d (by default)."""

    column: str
    identity: str
    sequence: ColumnSequence


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentity:
    """ALTER COLUMN SET GENERATED, SET sequence option, RESTART; ``identity`` "" and ``definition`` None keep theirs."""

    column: str
    identity: str = ""
    definition: SequenceDef | None = None
    restarts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIdentity:
    """ALTER COLUMN DROP IDENTITY."""

    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNotNull:
    """ALTER COLUMN SET / DROP NOT NULL."""

    column: str
    not_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRetype:
    """ALTER COLUMN TYPE of one column. ``using`` computes the new value over Var(range=0) of the row as it
    was before the statement.

    ``default`` and ``default_sql`` are the column's default under the new type. ``rewrites`` False: stored
    values are already right (varchar(5) to text), only the definition changes.
    """

    column: str
    type: SqlType
    using: Expr
    default: Expr | None = None
    default_sql: str | None = None
    collation: int = 0
    rewrites: bool = True
    dims: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterColumnTypes:
    """All ALTER COLUMN TYPE of one statement: each row is written once, each value computed of the row as it
    was, and what is over several columns (CHECKs, indexes, statistics) bound when all have their new types.
    """

    columns: tuple[ColumnRetype, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOwner:
    """OWNER TO; ``role`` may be current_user or session_user."""

    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnableTriggers:
    """ENABLE and DISABLE TRIGGER; ``enabled`` as in ``TriggerDef``, ``name`` None: USER, or with ``everything`` ALL."""

    name: str | None
    enabled: Literal["O", "D", "R", "A"]
    everything: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRowSecurity:
    """[ENABLE | DISABLE | FORCE | NO FORCE] ROW LEVEL SECURITY; None: as it is."""

    enabled: bool | None
    forced: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """SET (...), RESET (...) of a table, index or view: the options as they are to be."""

    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneColumn:
    """SET STATISTICS, STORAGE, COMPRESSION and options of a column: what changes of its ``ColumnDef``;
    ``below``: in partitions, too.
    """

    column: str
    changes: Mapping[str, Any]
    below: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneIndexKey:
    """ALTER INDEX ... SET STATISTICS of a key, by its place from 0."""

    position: int
    statistics: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkClustered:
    """CLUSTER ON an index, by oid; 0: SET WITHOUT CLUSTER."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReplicaIdentity:
    """REPLICA IDENTITY; ``index``: of USING INDEX, by oid."""

    identity: Literal["d", "n", "f", "i"]
    index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPersistence:
    """SET LOGGED (``p``) and UNLOGGED (``u``): what the catalog says; every table is logged."""

    persistence: Literal["p", "u"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSchema:
    """SET SCHEMA of a table or view."""

    schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetForeignOptions:
    """OPTIONS (...) of a foreign table, or of a column of it: what is done with those there are. ``column``
    "": the table's.
    """

    column: str
    changes: OptionChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOfType:
    """OF and, with 0, NOT OF: the composite type that a table's columns are those of."""

    type: int


AlterAction: TypeAlias = (
    AddColumn
    | AttachPartition
    | DetachPartition
    | AttachIndex
    | EnableTriggers
    | SetRowSecurity
    | DropColumn
    | AddKey
    | AddCheck
    | AddForeignKey
    | ValidateConstraint
    | AlterConstraint
    | DropConstraint
    | SetDefault
    | DropExpression
    | AddIdentity
    | SetIdentity
    | DropIdentity
    | SetNotNull
    | AlterColumnTypes
    | AlterOwner
    | SetOptions
    | TuneColumn
    | TuneIndexKey
    | MarkClustered
    | SetReplicaIdentity
    | SetPersistence
    | SetSchema
    | SetOfType
    | SetForeignOptions
)


TableStatement: TypeAlias = AlterTable | CreateIndex | CreateTable
