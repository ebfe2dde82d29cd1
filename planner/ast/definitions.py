"""AST of definitions: tables, views, indexes, sequences, sources, roles and privileges. Read it as ``planner.ast``.

One class per statement family; variants that share every field share a class and say which by a ``kind`` or
``action`` word in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.ast.changes import IndexElement
from planner.ast.option import ForeignOption, Option
from planner.ast.query import Expression, Name, Node, QueryNode, StatementNode, TableRef, TypeName
from planner.base.errors import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(Node):
    """A column or table constraint.

    ``kind``: null, not null, default, check, primary key, unique, foreign key, exclude, generated, identity,
    or one of the attributes deferrable, not deferrable, deferred, immediate. ``columns`` is empty for column
    constraints. ``expr`` belongs to default, check and generated. Of a foreign key ``match`` is s(imple) or
    f(ull), ``on_update`` and ``on_delete`` are a (no action), r(estrict), c(ascade), n (set null) or d (set
    default), and ``delete_columns`` the list behind ON DELETE SET. ``generated_when`` of an identity is
    a(lways) or d (by default); its ``options`` are those of its sequence. ``exclusions``: elements and
    operators of EXCLUDE, with ``method`` and ``where``.
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
    exclusions: tuple[tuple[IndexElement, Name], ...] = ()
    method: str = ""
    where: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDef(Node):
    """A column of CREATE TABLE, ADD COLUMN, ALTER COLUMN TYPE (``name`` "" there)."""

    name: str
    type: TypeName | None
    constraints: tuple[Constraint, ...] = ()
    collation: Name = ()
    collation_span: Span | None = None
    compression: str = ""
    using: Expression | None = None  # ALTER COLUMN TYPE ... USING
    foreign_options: tuple[ForeignOption, ...] = ()  # OPTIONS (...)

    @property
    def dims(self) -> int:
        """How many pairs of brackets its type was written with."""
        return 0 if self.type is None else len(self.type.dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLike(Node):
    """``LIKE table`` in CREATE TABLE; ``including`` holds lower-case option words (see parse)."""

    relation: TableRef
    including: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionElement(Node):
    """A key column of PARTITION BY: a name, or an expression."""

    name: str = ""
    expr: Expression | None = None
    collation: Name = ()
    opclass: Name = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBy(Node):
    """``PARTITION BY strategy (elements)``."""

    strategy: Literal["r", "l", "h"]
    elements: tuple[PartitionElement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBound(Node):
    """``FOR VALUES ...`` or DEFAULT (``strategy`` ""). ``values``: of IN; ``lower`` and ``upper``: of FROM and TO.

    MINVALUE and MAXVALUE are column references of these names, as the grammar has them.
    """

    strategy: Literal["", "r", "l", "h"]
    values: tuple[Expression, ...] = ()
    lower: tuple[Expression, ...] = ()
    upper: tuple[Expression, ...] = ()
    modulus: int = 0
    remainder: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAction(Node):
    """What ATTACH and DETACH PARTITION are about; ``bound`` None: of an index, or DETACH."""

    relation: TableRef
    bound: PartitionBound | None = None
    concurrently: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(StatementNode):
    """CREATE TABLE. ``unsupported`` names refused clauses found (INHERITS ...); ``parent`` and ``bound``:
    PARTITION OF; ``of_type``: OF.

    ``server``, ``foreign_options``: of CREATE FOREIGN TABLE; "" for others.
    """

    relation: TableRef
    elements: tuple[ColumnDef | Constraint | TableLike, ...]
    if_not_exists: bool = False
    on_commit: Literal["", "preserve", "delete", "drop"] = ""
    options: tuple[Option, ...] = ()
    tablespace: str = ""
    access_method: str = ""
    unsupported: tuple[str, ...] = ()
    partition_by: PartitionBy | None = None
    parent: TableRef | None = None
    bound: PartitionBound | None = None
    of_type: TypeName | None = None
    server: str = ""
    foreign_options: tuple[ForeignOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableAs(StatementNode):
    """CREATE TABLE AS, SELECT INTO, CREATE MATERIALIZED VIEW; ``query`` may be an Execute, or, ``executed``,
    have come of one.
    """

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
    executed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshMaterializedView(StatementNode):
    """REFRESH MATERIALIZED VIEW."""

    relation: TableRef
    concurrently: bool = False
    with_data: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema(StatementNode):
    """CREATE SCHEMA; ``name`` "" when only AUTHORIZATION was written."""

    name: str
    owner: Role | None = None
    elements: tuple[StatementNode, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTimeline(StatementNode):
    """CREATE TIMELINE (``planner.parse.beyond``)."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTimeline(StatementNode):
    """DROP TIMELINE (``planner.parse.beyond``)."""

    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource(StatementNode):
    """CREATE SOURCE (``planner.parse.beyond.sources``). ``options``: name, value (None: none was written),
    where it stands.

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
class AlterSource(StatementNode):
    """ALTER SOURCE ... PAUSE, or RESUME."""

    name: str
    pause: bool
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource(StatementNode):
    """DROP SOURCE."""

    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSequence(StatementNode):
    """CREATE SEQUENCE; options by PostgreSQL's names (increment, minvalue, owned_by ...)."""

    relation: TableRef
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSequence(StatementNode):
    """ALTER SEQUENCE with options."""

    relation: TableRef
    options: tuple[Option, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView(StatementNode):
    """CREATE [OR REPLACE] VIEW."""

    relation: TableRef
    query: QueryNode
    columns: tuple[str, ...] = ()
    replace: bool = False
    options: tuple[Option, ...] = ()
    check_option: Literal["", "local", "cascaded"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex(StatementNode):
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
    "drop constraint", "column default", "set not null", "drop not null", "alter column type", "change owner",
    "set rel options", ... (AlterTableType without its prefix). ``definition``: ColumnDef, Constraint, default
    expression, or None. ``word``: of SET STORAGE and SET COMPRESSION, the letter of REPLICA IDENTITY, whose
    index is the ``name``; ``number``: of an index's column; ``value``: of SET STATISTICS; ``of_type``: of OF;
    ``parent``: of INHERIT; ``foreign_options``: of OPTIONS.
    """

    kind: str
    name: str = ""
    word: str = ""
    number: int = 0
    value: int = 0
    definition: Node | None = None
    of_type: TypeName | None = None
    parent: TableRef | None = None
    options: tuple[Option, ...] = ()
    foreign_options: tuple[ForeignOption, ...] = ()
    role: Role | None = None
    cascade: bool = False
    missing_ok: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable(StatementNode):
    """ALTER TABLE / VIEW / INDEX / SEQUENCE ...: ``what`` is the object word written."""

    what: str
    relation: TableRef
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(StatementNode):
    """ALTER ... RENAME. ``what`` is the object word: table, view, index, column, table constraint, schema,
    role, ...; ``old`` is the inner name (column, constraint) or the name of a schema or role.
    """

    what: str
    relation: TableRef | None
    old: str
    new: str
    relation_what: str = ""
    if_exists: bool = False
    name: Name = ()  # of a type or domain
    cascade: bool = False  # of an attribute: in typed tables, too


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSchema(StatementNode):
    """ALTER ... SET SCHEMA."""

    what: str
    relation: TableRef | None
    new: str
    if_exists: bool = False
    name: Name = ()  # of a type or domain


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOwner(StatementNode):
    """ALTER SCHEMA / ... OWNER TO (tables use AlterTable)."""

    what: str
    name: Name
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(StatementNode):
    """DROP. ``what``: table, view, index, schema, sequence, materialized view, ... in lower case."""

    what: str
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False
    concurrently: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(StatementNode):
    """TRUNCATE."""

    relations: tuple[TableRef, ...]
    restart_identity: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment(StatementNode):
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
class Grant(StatementNode):
    """GRANT and REVOKE of privileges; ``kind``: the object word; ``every``: ALL ... IN SCHEMA ``names``.

    ``qualified``: names of types; ``functions``: FunctionName; ``numbers``: of large objects. ``privileges``
    empty = ALL. Of a REVOKE ``option`` is GRANT OPTION FOR.
    """

    is_grant: bool
    kind: str
    every: bool
    relations: tuple[TableRef, ...]
    names: tuple[str, ...]
    privileges: tuple[Privilege, ...]
    grantees: tuple[Role, ...]
    qualified: tuple[Name, ...] = ()
    functions: tuple[Node, ...] = ()
    numbers: tuple[int, ...] = ()
    option: bool = False
    grantor: Role | None = None
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRole(StatementNode):
    """GRANT and REVOKE of roles. Of a REVOKE ``admin`` is ADMIN OPTION FOR."""

    is_grant: bool
    roles: tuple[str, ...]
    grantees: tuple[Role, ...]
    admin: bool = False
    grantor: Role | None = None
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRole(StatementNode):
    """CREATE ROLE / USER / GROUP. ``members`` (ROLE, USER), ``admins`` (ADMIN), ``in_roles`` (IN ROLE, IN GROUP)."""

    kind: Literal["role", "user", "group"]
    name: str
    options: tuple[Option, ...] = ()
    members: tuple[Role, ...] = ()
    admins: tuple[Role, ...] = ()
    in_roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRole(StatementNode):
    """ALTER ROLE / USER; with ``members`` ALTER GROUP ADD (``adds``) or DROP USER."""

    role: Role
    options: tuple[Option, ...] = ()
    members: tuple[Role, ...] = ()
    adds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRole(StatementNode):
    """DROP ROLE / USER / GROUP."""

    roles: tuple[Role, ...]
    if_exists: bool = False
