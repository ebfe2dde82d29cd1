"""Bound statements that are not queries, and the envelope every bound statement comes in.

Definitions are in ``planner.statements.definitions``, those of tables and indexes in
``planner.statements.table``, of types in ``planner.statements.type``, of functions in
``planner.statements.function``, about triggers in ``planner.statements.trigger``, and of this name space.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner import ast, query
from planner.base.errors import SqlError
from planner.query import Expr, OutputColumn, QueryExpr
from planner.statements.collation import *  # noqa: F403
from planner.statements.collation import CollationStatement
from planner.statements.conversion import *  # noqa: F403
from planner.statements.conversion import ConversionStatement
from planner.statements.definitions import *  # noqa: F403
from planner.statements.definitions import Definition
from planner.statements.foreign import *  # noqa: F403
from planner.statements.foreign import ForeignStatement
from planner.statements.function import *  # noqa: F403
from planner.statements.function import FunctionStatement
from planner.statements.opclass import *  # noqa: F403
from planner.statements.opclass import OpclassStatement
from planner.statements.owned import *  # noqa: F403
from planner.statements.owned import OwnedStatement
from planner.statements.policy import *  # noqa: F403
from planner.statements.policy import PolicyStatement
from planner.statements.statistics import *  # noqa: F403
from planner.statements.statistics import StatisticsStatement
from planner.statements.table import *  # noqa: F403
from planner.statements.text_search import *  # noqa: F403
from planner.statements.text_search import TextSearchStatement
from planner.statements.trigger import *  # noqa: F403
from planner.statements.trigger import TriggerStatement
from planner.statements.type import *  # noqa: F403
from planner.statements.type import TypeStatement
from planner.types import SqlType


class StatementClass(enum.Enum):
    """How a statement runs."""

    READ_ONLY = "read only"
    WRITE_ONLY = "write only"
    READ_THEN_WRITE = "read then write"
    DDL = "ddl"
    UTILITY = "utility"
    TRANSACTION_CONTROL = "transaction control"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatement:
    """A SELECT, VALUES or set operation as a statement; ``keys`` of a cursor of PL/pgSQL are behind its columns.

    ``fetched``: it begins when its first row is fetched.
    """

    query: QueryExpr
    keys: tuple[CursorKey, ...] = ()
    fetched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A WITH item that runs by itself: one that changes data, or a query that such a one reads.

    ``needs``: the steps whose rows it reads, which come before it.
    """

    name: str
    statement: QueryStatement | query.Insert | query.Update | query.Delete
    needs: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithChanges:
    """A statement with items in WITH that change data: all parts see one snapshot, and each runs once, to its end.

    ``StepRange`` reads what ``steps`` return. ``body`` is the statement itself, whose result is the result.
    """

    steps: tuple[Step, ...]
    body: QueryStatement | query.Insert | query.Update | query.Delete | query.Merge
    needs: frozenset[int]

    @property
    def parts(self) -> tuple[QueryStatement | query.Insert | query.Update | query.Delete | query.Merge, ...]:
        """The statements of all steps, and at last the body."""
        return (*(step.statement for step in self.steps), self.body)


Change: TypeAlias = query.Insert | query.Update | query.Delete | WithChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """EXPLAIN of a bound statement; ``options`` are lower-case (analyze, verbose, timestamp, format ...)."""

    body: BoundStatement
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """COPY. ``query`` is set for COPY (query) TO; ``attnums`` are the table's columns in copy order.

    ``where`` filters rows of COPY FROM over Var(range=0). ``options`` are validated by the binder:
    format, delimiter, null, header, quote, escape, force_quote, force_not_null, force_null, encoding, freeze.
    ``filename`` None is STDIN/STDOUT.
    """

    table: int
    attnums: tuple[int, ...]
    query: QueryExpr | None
    is_from: bool
    filename: str | None
    program: bool
    options: Mapping[str, object]
    defaults: tuple[tuple[int, Expr], ...] = ()
    where: Expr | None = None
    subscribe: Subscribe | None = None
    """COPY (SUBSCRIBE ...) TO; then ``query`` is None."""

    wrong: SqlError | None = None
    """Why its relation is not copied: told when it runs, behind who may."""

    change: Change | None = None
    """COPY (INSERT ... RETURNING ...) TO, or a query whose WITH changes data; then ``query`` is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """SUBSCRIBE. ``as_of``, ``up_to``: constant expressions of a type that names a moment; None: not given.

    ``columns``: holdfast_timestamp, with ``progress`` holdfast_progressed, holdfast_diff, then those of ``query``.
    ``subscription``: the named one whose query and position these are; it has no ``as_of``.
    """

    query: QueryExpr
    subscription: str | None = None
    as_of: Expr | None
    up_to: Expr | None
    snapshot: bool
    progress: bool
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSubscription:
    """CREATE SUBSCRIPTION. ``sql``: the query as canonical text."""

    name: str
    query: QueryExpr
    sql: str
    snapshot: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeSubscription:
    """ALTER SUBSCRIPTION ... ACKNOWLEDGE; ``to`` as ``Subscribe.as_of``."""

    name: str
    to: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSubscription:
    """DROP SUBSCRIPTION."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareSubscribe:
    """DECLARE name CURSOR FOR SUBSCRIBE."""

    name: str
    subscribe: Subscribe
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConstraints:
    """SET CONSTRAINTS: (schema, name) pairs, schema "" = search path; none = ALL."""

    names: tuple[tuple[str, str], ...]
    deferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTable:
    """LOCK TABLE of tables and views by oid; ``mode`` is PostgreSQL's lock level 1 (access share) .. 8
    (access exclusive).

    ``partitions``: those of the tables, at all levels; rights to them are not asked for. ``beneath``: what
    the views read, at all levels, and the role that is asked about it, 0 for whoever runs the statement.
    """

    tables: tuple[int, ...]
    mode: int
    nowait: bool = False
    partitions: tuple[int, ...] = ()
    beneath: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTarget:
    """An object of GRANT: its catalog and oid, ``attnum`` of a column or 0, the letters asked for
    (``planner.catalog.acl``).

    ``kind``: relation, column, sequence, schema or database; ``every``: ALL was said; ``warnings``: what is
    told (0LP01) before anybody's right to it is asked for. Without letters there is nothing to grant.
    ``name``: of a setting, as written.
    """

    kind: str
    class_oid: int
    oid: int
    attnum: int
    letters: str
    every: bool
    warnings: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """GRANT and REVOKE. ``grantees``: names of roles, None = PUBLIC; a name may be current_user or session_user."""

    is_grant: bool
    targets: tuple[GrantTarget, ...]
    grantees: tuple[str | None, ...]
    option: bool
    grantor: str | None
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRole:
    """GRANT and REVOKE of roles. CASCADE says nothing here: no membership depends on another. ``grantor``
    None: the current user.
    """

    is_grant: bool
    roles: tuple[str, ...]
    members: tuple[str, ...]
    admin: bool
    alters_group: bool = False  # ALTER GROUP, for which an admin option is not enough
    grantor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleStatement:
    """CREATE / ALTER / DROP ROLE (USER). ``options``: attribute name of RoleDef, or password -> value.

    ``memberships``: what CREATE grants besides, by IN ROLE, ADMIN and ROLE.
    """

    action: Literal["create", "alter", "drop"]
    names: tuple[str, ...]
    options: Mapping[str, object]
    if_exists: bool = False
    is_user: bool = False
    memberships: tuple[GrantRole, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """BEGIN, COMMIT, ROLLBACK and the savepoint statements."""

    action: Literal["begin", "commit", "rollback", "savepoint", "release", "rollback_to"]
    name: str = ""
    chain: bool = False
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVariable:
    """SET / RESET. ``value`` None = default; ``name`` "all" for RESET ALL.

    ``current``: FROM CURRENT, so the value is what the session has when the statement runs.
    """

    name: str
    value: str | None
    current: bool = False
    local: bool = False
    span: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDefaults:
    """ALTER DATABASE / ROLE ... SET | RESET: what a setting begins with. ``database`` "": in all; ``role``
    None: for all.
    """

    database: str
    role: str | None
    of_role: bool
    change: SetVariable


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransaction:
    """SET TRANSACTION / SET SESSION CHARACTERISTICS."""

    session: bool
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    snapshot: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowVariable:
    """SHOW name | ALL."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """PREPARE name (types) AS statement.

    ``text`` is the inner statement's text, ``at`` the number of characters before it in what the client sent.
    """

    name: str
    param_types: tuple[int, ...]
    text: str
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutePrepared:
    """EXECUTE name (args); each argument is bound without a context type (unknown literals stay unknown).

    ``into``: the CREATE TABLE AS that it is the query of, whose table is to be in ``schema`` ("pg_temp": the
    session's own).
    """

    name: str
    args: tuple[Expr, ...]
    into: ast.CreateTableAs | None = None
    schema: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deallocate:
    """DEALLOCATE name; None = ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorKey:
    """Where a cursor's query gives the key ``attnums`` (``planner.bind.change.current_of``) of a table: from
    the key column ``position`` on.
    """

    table: int
    attnums: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareCursor:
    """DECLARE name CURSOR FOR query; ``keys`` are behind the columns that are shown."""

    name: str
    query: QueryExpr
    scroll: bool | None = None
    hold: bool = False
    binary: bool = False
    keys: tuple[CursorKey, ...] = ()

    @property
    def shown(self) -> tuple[OutputColumn, ...]:
        """The columns that FETCH gives."""
        behind = sum(len(key.attnums) for key in self.keys)
        return self.query.columns[: len(self.query.columns) - behind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """FETCH / MOVE. ``count`` None = ALL; direction as PostgreSQL's FetchDirection."""

    cursor: str
    direction: Literal["forward", "backward", "absolute", "relative"]
    count: int | None
    move: bool = False
    timeout_us: int | None = None
    """Of a subscription's cursor: how long to wait for a first row, in microseconds; None: for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseCursor:
    """CLOSE name; None = ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """VACUUM, ANALYZE, CHECKPOINT, REINDEX, CLUSTER.

    Attributes:
        tables: those that were named and store rows, those of indexes for these. relations: all that were
        named; of none it is about all, or with ``object`` about all tables of what that says. object, name:
        REINDEX SCHEMA, DATABASE (this one) and SYSTEM, the tables of the catalog. not_tables: names of those
        that VACUUM and ANALYZE have to skip. analyze: what is in the columns is to be counted. alone: its
        name, where a block may not hold it. verbose: whoever asks is told what is done, table by table.
        index: of CLUSTER ... USING, which marks it. concurrently: REINDEX CONCURRENTLY. wrong_columns:
        relation, SQLSTATE and message: what is wrong with columns that are named, for who may ANALYZE the
        relation.
    """

    what: Literal["vacuum", "analyze", "checkpoint", "reindex", "cluster"]
    tables: tuple[int, ...] = ()
    full: bool = False
    analyze: bool = False
    relations: tuple[int, ...] = ()
    object: Literal["", "schema", "database", "system"] = ""
    name: str = ""
    not_tables: tuple[str, ...] = ()
    alone: str = ""
    verbose: bool = False
    index: int = 0
    wrong_columns: tuple[tuple[int, str, str], ...] = ()
    concurrently: bool = False

    @property
    def named(self) -> bool:
        """Whether relations were named."""
        return bool(self.relations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """DISCARD ALL | PLANS | SEQUENCES | TEMP."""

    what: Literal["all", "plans", "sequences", "temp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """LOAD of a shared library, by the name of its file."""

    library: str


CommentClass: TypeAlias = Literal[
    1247,
    1255,
    1259,
    1260,
    1262,
    1417,
    2328,
    2606,
    2607,
    2613,
    2615,
    2616,
    2620,
    2753,
    3079,
    3256,
    3381,
    3456,
    3600,
    3602,
]
"""The catalogs in whose objects there are comments: pg_type, pg_proc, pg_class, pg_authid, pg_database,
pg_foreign_server, pg_foreign_data_wrapper, pg_constraint, pg_conversion, pg_largeobject, pg_namespace,
pg_opclass, pg_trigger, pg_opfamily, pg_extension, pg_policy, pg_statistic_ext, pg_collation, pg_ts_dict,
pg_ts_config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """COMMENT ON; ``name``: a function's, text search object's, statistics object's, wrapper's, server's,
    operator class's, conversion's or collation's as the statement writes it.
    """

    class_oid: CommentClass
    object_oid: int
    sub_id: int
    text: str | None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A statement that does nothing but say so: ALTER ... IF EXISTS of what does not exist; ``more``: notices, too."""

    notice: str
    severity: Literal["NOTICE", "WARNING"] = "NOTICE"
    sqlstate: str = "00000"
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """LISTEN, UNLISTEN (``channel`` "" = all) and NOTIFY."""

    action: Literal["listen", "unlisten", "notify"]
    channel: str
    payload: str = ""


Statement: TypeAlias = (
    Skip
    | Notify
    | QueryStatement
    | query.Insert
    | query.Update
    | query.Delete
    | query.Merge
    | WithChanges
    | Explain
    | Copy
    | LockTable
    | SetConstraints
    | RoleStatement
    | AlterDefaults
    | Grant
    | GrantRole
    | Transaction
    | SetVariable
    | SetTransaction
    | ShowVariable
    | Prepare
    | ExecutePrepared
    | Deallocate
    | DeclareCursor
    | Subscribe
    | DeclareSubscribe
    | CreateSubscription
    | AcknowledgeSubscription
    | DropSubscription
    | Fetch
    | CloseCursor
    | Maintenance
    | Discard
    | Load
    | Comment
    | Definition
    | TypeStatement
    | FunctionStatement
    | OwnedStatement
    | TriggerStatement
    | PolicyStatement
    | TextSearchStatement
    | StatisticsStatement
    | ForeignStatement
    | OpclassStatement
    | ConversionStatement
    | CollationStatement
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStatement:
    """One bound statement.

    ``params[i]`` is the type oid of ``$(i+1)``. ``columns`` None means it returns no rows (EXPLAIN, SHOW,
    FETCH and DML RETURNING do return rows; FETCH's and EXECUTE's columns are known to the engine only).
    ``declared``: their types where some are domains, of which clients are not told. ``stable`` lists the
    session- or transaction-stable values that were turned into parameters: entry i is the value of
    ``Param(len(params) + 1 + i)``. ``volatile``: contains a volatile function. ``reads``/``writes``: oids of
    base tables (through views). ``versions``: (oid, RelationDef.version) of every relation it was bound
    against. ``functions``: oids of users' functions whose bodies it holds or that it calls. ``calls``: some
    it calls as it runs; ``changes``: these may write. ``settings``: names of settings whose values were
    folded in at bind time. ``row_security``: it reads or writes tables that have it, be the user exempt or
    not: who that was, by oid, the setting ``row_security``, and the version of the catalog that said who is
    exempt and a member of what. ``tag``: command tag without counts, e.g. "SELECT", "CREATE TABLE".
    ``asked``: the statement before what constants decide fell away, where columns or relations did: rights
    are asked for what is written, not for what is left. ``fails``: the error that planning it meets in
    constants (``planner.rules.failing``); it is raised before the statement runs, with each attempt a copy.
    """

    statement: Statement
    class_: StatementClass
    tag: str
    text: str
    params: tuple[int, ...] = ()
    stable: tuple[Expr, ...] = ()
    columns: tuple[OutputColumn, ...] | None = None
    declared: tuple[SqlType, ...] = ()
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    versions: tuple[tuple[int, int], ...] = ()
    volatile: bool = False
    uses_virtual: bool = False
    settings: frozenset[str] = frozenset()
    functions: frozenset[int] = frozenset()
    calls: bool = False
    changes: bool = False
    row_security: tuple[int, bool, int] | None = None
    asked: Statement | None = None
    fails: SqlError | None = None
