"""AST of statements other than queries. Read it as ``planner.ast``.

One class per statement family; variants that share every field share a class and say which by a ``kind`` or
``action`` word in lower case. What PostgreSQL's grammar has and the server refuses altogether is not
modelled: ``planner.parse`` raises 0A000 naming the construct.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from planner.ast_query import (
    Expression,
    FromNode,
    Name,
    Node,
    QueryNode,
    SubscriptStep,
    TableRef,
    TargetItem,
    TypeName,
    With,
)
from planner.errors import Span

# --- options ------------------------------------------------------------------------------------

# A plain option value: word or string, number, true/false, a list of names, a type, a role, None = absent.
OptionValue: TypeAlias = "str | int | bool | tuple[str, ...] | TypeName | NumberText | Expression | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberText(Node):
    """A number with a fraction or exponent as an option value, as written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option(Node):
    """``name [=] value`` of WITH (...), COPY, EXPLAIN, CREATE ROLE ...; ``namespace`` as in toast.x."""

    name: str
    value: OptionValue = None
    namespace: str = ""


# --- data-modifying -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumn(Node):
    """A column to be assigned; ``steps`` for ``a[1]`` or ``a.b``."""

    name: str
    steps: tuple[str | SubscriptStep | Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Node):
    """``column = value``, or with ``multiple`` ``(columns) = value`` (ROW or sub-select)."""

    columns: tuple[TargetColumn, ...]
    value: Expression
    multiple: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexElement(Node):
    """A key column of an index or of ON CONFLICT: ``name`` or ``expr``."""

    name: str = ""
    expr: Expression | None = None
    collation: Name = ()
    opclass: Name = ()
    opclass_options: tuple[Option, ...] = ()
    direction: Literal["", "asc", "desc"] = ""
    nulls: Literal["", "first", "last"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnConflict(Node):
    """ON CONFLICT; the arbiter is ``elements`` (+ ``element_where``), ``constraint``, or neither."""

    action: Literal["nothing", "update"]
    elements: tuple[IndexElement, ...] = ()
    element_where: Expression | None = None
    constraint: str = ""
    infer_span: Span | None = field(default=None, compare=False)
    assignments: tuple[Assignment, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Node):
    """INSERT; ``query`` None is DEFAULT VALUES; ``columns`` () where no list was written."""

    relation: TableRef
    columns: tuple[TargetColumn, ...] = ()
    query: QueryNode | None = None
    on_conflict: OnConflict | None = None
    returning: tuple[TargetItem, ...] = ()
    with_: With | None = None
    overriding: Literal["", "user", "system"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Node):
    """UPDATE."""

    relation: TableRef
    assignments: tuple[Assignment, ...]
    from_: tuple[FromNode, ...] = ()
    where: Expression | None = None
    returning: tuple[TargetItem, ...] = ()
    with_: With | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Node):
    """DELETE."""

    relation: TableRef
    using: tuple[FromNode, ...] = ()
    where: Expression | None = None
    returning: tuple[TargetItem, ...] = ()
    with_: With | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWhen(Node):
    """``WHEN [NOT] MATCHED [AND condition] THEN action``; INSERT has ``values`` None for DEFAULT VALUES."""

    matched: bool
    action: Literal["update", "delete", "insert", "nothing"]
    condition: Expression | None = None
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[TargetColumn, ...] = ()
    values: tuple[Expression, ...] | None = None
    overriding: Literal["", "user", "system"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Node):
    """MERGE."""

    relation: TableRef
    source: FromNode
    on: Expression
    clauses: tuple[MergeWhen, ...]
    with_: With | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Node):
    """COPY of a table's ``columns`` (() = all) or of ``query``; ``filename`` None is STDIN/STDOUT."""

    relation: TableRef | None
    query: Node | None
    columns: tuple[str, ...]
    is_from: bool
    program: bool
    filename: str | None
    options: tuple[Option, ...] = ()
    where: Expression | None = None


# --- definitions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(Node):
    """A column or table constraint.

    ``kind``: null, not null, default, check, primary key, unique, foreign key, exclude, generated, identity, or
    one of the attributes deferrable, not deferrable, deferred, immediate. ``columns`` is empty for column
    constraints. ``expr`` belongs to default, check and generated. Of a foreign key ``match`` is s(imple) or f(ull),
    ``on_update`` and ``on_delete`` are a (no action), r(estrict), c(ascade), n (set null) or d (set default), and
    ``delete_columns`` the list behind ON DELETE SET. ``generated_when`` of an identity is a(lways) or d (by default); its
    ``options`` are those of its sequence.
    """

    kind: str
    name: str = ""
    expr: Expression | None = None
    columns: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    nulls_not_distinct: bool = False
    no_inherit: bool = False
    deferrable: bool = False
    initially_deferred: bool = False
    not_valid: bool = False
    using_index: str = ""
    tablespace: str = ""
    references: TableRef | None = None
    referenced: tuple[str, ...] = ()
    match: str = "s"
    on_update: str = "a"
    on_delete: str = "a"
    delete_columns: tuple[str, ...] = ()
    generated_when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDef(Node):
    """A column of CREATE TABLE, ADD COLUMN, ALTER COLUMN TYPE (``name`` "" there)."""

    name: str
    type: TypeName | None
    constraints: tuple[Constraint, ...] = ()
    collation: Name = ()
    compression: str = ""
    storage: str = ""
    using: Expression | None = None  # ALTER COLUMN TYPE ... USING


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLike(Node):
    """``LIKE table`` in CREATE TABLE; ``including`` holds lower-case option words (see parse)."""

    relation: TableRef
    including: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(Node):
    """CREATE TABLE. ``unsupported`` names refused clauses found (INHERITS, PARTITION BY ...)."""

    relation: TableRef
    elements: tuple[ColumnDef | Constraint | TableLike, ...]
    if_not_exists: bool = False
    on_commit: Literal["", "preserve", "delete", "drop"] = ""
    options: tuple[Option, ...] = ()
    tablespace: str = ""
    access_method: str = ""
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableAs(Node):
    """CREATE TABLE AS, SELECT INTO, CREATE MATERIALIZED VIEW; ``query`` may be an Execute."""

    relation: TableRef
    query: Node
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    with_data: bool = True
    on_commit: Literal["", "preserve", "delete", "drop"] = ""
    options: tuple[Option, ...] = ()
    tablespace: str = ""
    access_method: str = ""
    materialized: bool = False
    select_into: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshMaterializedView(Node):
    """REFRESH MATERIALIZED VIEW."""

    relation: TableRef
    concurrently: bool = False
    with_data: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema(Node):
    """CREATE SCHEMA; ``name`` "" when only AUTHORIZATION was written."""

    name: str
    owner: Role | None = None
    elements: tuple[Node, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTimeline(Node):
    """CREATE TIMELINE (``planner.beyond``)."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTimeline(Node):
    """DROP TIMELINE (``planner.beyond``)."""

    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource(Node):
    """CREATE SOURCE (``planner.beyond_sources``). ``options``: name, value (None: none was written), where it stands.

    ``table`` is where it writes; without ``has_columns`` its kind says which columns that has.
    """

    name: str
    kind: str
    options: tuple[tuple[str, str | None, Span], ...]
    table: CreateTable
    has_columns: bool
    timeline: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource(Node):
    """ALTER SOURCE ... PAUSE, or RESUME."""

    name: str
    pause: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource(Node):
    """DROP SOURCE."""

    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSequence(Node):
    """CREATE SEQUENCE; options by PostgreSQL's names (increment, minvalue, owned_by ...)."""

    relation: TableRef
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSequence(Node):
    """ALTER SEQUENCE with options."""

    relation: TableRef
    options: tuple[Option, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView(Node):
    """CREATE [OR REPLACE] VIEW."""

    relation: TableRef
    query: QueryNode
    columns: tuple[str, ...] = ()
    replace: bool = False
    options: tuple[Option, ...] = ()
    check_option: Literal["", "local", "cascaded"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex(Node):
    """CREATE INDEX; ``name`` "" lets the server choose."""

    name: str
    relation: TableRef
    method: str
    elements: tuple[IndexElement, ...]
    include: tuple[IndexElement, ...] = ()
    where: Expression | None = None
    unique: bool = False
    concurrently: bool = False
    if_not_exists: bool = False
    nulls_not_distinct: bool = False
    options: tuple[Option, ...] = ()
    tablespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterAction(Node):
    """One action of ALTER TABLE.

    ``kind`` is PostgreSQL's action in lower case with blanks: "add column", "drop column", "add constraint",
    "drop constraint", "column default", "set not null", "drop not null", "alter column type", "change owner", "set rel options",
    ... (AlterTableType without its prefix). ``definition``: ColumnDef, Constraint, default expression, or None.
    """

    kind: str
    name: str = ""
    definition: Node | None = None
    options: tuple[Option, ...] = ()
    role: Role | None = None
    cascade: bool = False
    missing_ok: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable(Node):
    """ALTER TABLE / VIEW / INDEX / SEQUENCE ...: ``what`` is the object word written."""

    what: str
    relation: TableRef
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(Node):
    """ALTER ... RENAME. ``what`` is the object word: table, view, index, column, table constraint, schema,
    role, ...; ``old`` is the inner name (column, constraint) or the name of a schema or role.
    """

    what: str
    relation: TableRef | None
    old: str
    new: str
    relation_what: str = ""
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSchema(Node):
    """ALTER ... SET SCHEMA."""

    what: str
    relation: TableRef | None
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOwner(Node):
    """ALTER SCHEMA / ... OWNER TO (tables use AlterTable)."""

    what: str
    name: Name
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Node):
    """DROP. ``what``: table, view, index, schema, sequence, materialized view, ... in lower case."""

    what: str
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False
    concurrently: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(Node):
    """TRUNCATE."""

    relations: tuple[TableRef, ...]
    restart_identity: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment(Node):
    """COMMENT ON; ``name`` is qualified, for a column the column comes last. ``text`` None removes."""

    what: str
    name: Name
    text: str | None


# --- roles --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Role(Node):
    """A role by ``name``, or ``special``: current_role, current_user, session_user, public."""

    name: str
    special: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Privilege(Node):
    """A privilege word of GRANT, in lower case ("" = ALL), and the columns it is for."""

    word: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Node):
    """GRANT and REVOKE of privileges; ``kind``: the object word; ``every``: ALL ... IN SCHEMA ``names``.

    ``privileges`` empty = ALL. Of a REVOKE ``option`` is GRANT OPTION FOR.
    """

    is_grant: bool
    kind: str
    every: bool
    relations: tuple[TableRef, ...]
    names: tuple[str, ...]
    privileges: tuple[Privilege, ...]
    grantees: tuple[Role, ...]
    option: bool = False
    grantor: Role | None = None
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRole(Node):
    """GRANT and REVOKE of roles. Of a REVOKE ``admin`` is ADMIN OPTION FOR."""

    is_grant: bool
    roles: tuple[str, ...]
    grantees: tuple[Role, ...]
    admin: bool = False
    grantor: Role | None = None
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRole(Node):
    """CREATE ROLE / USER / GROUP."""

    kind: Literal["role", "user", "group"]
    name: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRole(Node):
    """ALTER ROLE / USER."""

    role: Role
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRole(Node):
    """DROP ROLE / USER / GROUP."""

    roles: tuple[Role, ...]
    if_exists: bool = False


# --- session ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Node):
    """BEGIN, START, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, ROLLBACK TO, PREPARE TRANSACTION ...

    ``options``: transaction_isolation, transaction_read_only, transaction_deferrable.
    """

    action: Literal[
        "begin", "start", "commit", "rollback", "savepoint", "release", "rollback to", "prepare transaction",
        "commit prepared", "rollback prepared",
    ]  # fmt: skip
    name: str = ""
    options: tuple[Option, ...] = ()
    chain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVariable(Node):
    """SET / RESET. ``kind``: value, default, current (FROM CURRENT), multi, reset, reset all.

    For "multi", ``name`` is "TRANSACTION", "SESSION CHARACTERISTICS" or "TRANSACTION SNAPSHOT" and
    ``options`` carries the modes; else ``args`` are Constant or TypeCast (SET TIME ZONE INTERVAL).
    """

    kind: Literal["value", "default", "current", "multi", "reset", "reset all"]
    name: str
    args: tuple[Expression, ...] = ()
    options: tuple[Option, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Show(Node):
    """SHOW name | ALL ("all")."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Node):
    """PREPARE; ``text`` is the inner statement's text, as written, ``at`` where it stands in the text parsed."""

    name: str
    types: tuple[TypeName, ...]
    query: Node
    text: str
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute(Node):
    """EXECUTE."""

    name: str
    args: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deallocate(Node):
    """DEALLOCATE; ``name`` None = ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe(Node):
    """SUBSCRIBE (``planner.beyond``); a table is the query TABLE name.

    ``query`` None: what the named ``subscription`` is about; whoever knows that puts it in before the statement is bound.
    """

    query: QueryNode | None
    subscription: str | None = None
    as_of: Expression | None = None
    up_to: Expression | None = None
    snapshot: bool = True
    progress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSubscription(Node):
    """CREATE SUBSCRIPTION name FOR (``planner.beyond_named``)."""

    name: str
    query: QueryNode
    snapshot: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeSubscription(Node):
    """ALTER SUBSCRIPTION name ACKNOWLEDGE moment."""

    name: str
    to: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSubscription(Node):
    """DROP SUBSCRIPTION."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareCursor(Node):
    """DECLARE CURSOR; ``scroll`` None where not written. ``text`` is the query's text."""

    name: str
    query: QueryNode | Subscribe
    text: str
    scroll: bool | None = None
    hold: bool = False
    binary: bool = False
    insensitive: bool = False
    asensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Node):
    """FETCH / MOVE; ``count`` None = ALL."""

    cursor: str
    direction: Literal["forward", "backward", "absolute", "relative"]
    count: int | None
    move: bool = False
    timeout: str | None = None
    """WITH (timeout = '...'): an interval's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePortal(Node):
    """CLOSE; ``name`` None = ALL."""

    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Node):
    """EXPLAIN of ``statement``; ``text`` is that statement's text."""

    statement: Node
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance(Node):
    """VACUUM, ANALYZE, CHECKPOINT, REINDEX, CLUSTER.

    ``relations`` pairs a table with its column list. ``object`` (REINDEX): index, table, schema, system,
    database; ``name`` its schema or database, or CLUSTER's index.
    """

    what: Literal["vacuum", "analyze", "checkpoint", "reindex", "cluster"]
    options: tuple[Option, ...] = ()
    relations: tuple[tuple[TableRef, tuple[str, ...]], ...] = ()
    object: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard(Node):
    """DISCARD."""

    what: Literal["all", "plans", "sequences", "temp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify(Node):
    """LISTEN, UNLISTEN (``channel`` "" = all), NOTIFY."""

    action: Literal["listen", "unlisten", "notify"]
    channel: str
    payload: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConstraints(Node):
    """SET CONSTRAINTS; no ``names`` = ALL. A name is (constraint,), (schema, constraint) or longer."""

    names: tuple[Name, ...]
    deferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTable(Node):
    """LOCK TABLE; ``mode`` is PostgreSQL's lock level 1 (access share) .. 8 (access exclusive)."""

    relations: tuple[TableRef, ...]
    mode: int
    nowait: bool = False


Statement: TypeAlias = (
    QueryNode | Insert | Update | Delete | Copy | CreateTable | CreateTableAs | CreateSchema | CreateView
    | CreateIndex | AlterTable | Rename | SetSchema | AlterOwner | Drop | Truncate | Comment | CreateRole
    | AlterRole | DropRole | Transaction | SetVariable | Show | Prepare | Execute | Deallocate | DeclareCursor
    | Fetch | ClosePortal | Explain | Maintenance | Discard | Notify | LockTable
    | SetConstraints | CreateTimeline | DropTimeline | CreateSource | AlterSource | DropSource
)  # fmt: skip
