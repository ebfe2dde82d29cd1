"""What the binder needs to know about relations, and the protocol that tells it.

The engine implements ``Catalog`` over its versioned catalog; a catalog value is an immutable snapshot at
one timestamp (plus the transaction's own DDL), so binding is a pure function of text and catalog.
Built-in types, functions, operators and casts come from ``planner.facts``, not from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from planner.acl import AclItem, Membership
from planner.catalog_policy import PolicyDef
from planner.catalog_trigger import TriggerDef
from planner.types import SqlType

IndexMethod: TypeAlias = Literal["btree", "hash", "gist", "spgist", "gin", "brin"]

DEFAULT_TIMELINE = "epoch_ms"
"""Where tables are that do not say; it is there without being created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDef:
    """A column. ``default_sql`` is the canonical text of its default (bound anew where used).

    ``type`` is plain (``planner.domains``); ``domain`` is the oid of the domain, or array of domains, that it was declared
    as, 0 for none. ``generated`` s(tored): that text is its expression. ``hidden``: a generated column that an index keeps for itself;
    nobody sees it, and its place looks like that of a dropped column.
    """

    attnum: int
    name: str
    type: SqlType
    not_null: bool = False
    default_sql: str | None = None
    dropped: bool = False
    # the value of rows written before the column was added (domain of planner.types), else None
    missing_value: object = None
    collation: int = 0
    storage: str = ""
    identity: str = ""
    generated: str = ""
    hidden: bool = False
    domain: int = 0

    @property
    def declared(self) -> SqlType:
        """The type it was declared as, domains included."""
        return SqlType(self.domain) if self.domain else self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDef:
    """An index; ``attnums`` are its key columns. ``descending``/``nulls_first`` are per key column.

    Of an expression or partial index some of those are hidden columns, which hold what an expression gives, and of a
    partial index's first key NULL where its condition does not hold. ``written``: per key the column that was written, 0
    for an expression; ``expressions``: their canonical texts, "" for columns; ``where_sql``: that of the condition;
    ``key_names``: what pg_attribute calls the keys. All but ``where_sql`` are empty for plain indexes. ``opclasses``: the
    operator class of each key, "" for the default one; empty where all are.
    """

    oid: int
    name: str
    attnums: tuple[int, ...]
    unique: bool = False
    primary: bool = False
    method: IndexMethod = "btree"
    nulls_not_distinct: bool = False
    descending: tuple[bool, ...] = ()
    nulls_first: tuple[bool, ...] = ()
    include: tuple[int, ...] = ()
    constraint_oid: int = 0  # of the PRIMARY KEY / UNIQUE constraint it serves
    deferrable: bool = False  # that constraint may be checked at commit
    written: tuple[int, ...] = ()
    expressions: tuple[str, ...] = ()
    where_sql: str = ""
    key_names: tuple[str, ...] = ()
    opclasses: tuple[str, ...] = ()
    parent: int = 0  # the index of the partitioned table that this one is a part of
    valid: bool = True  # of a partitioned table's: whether every partition has one

    @property
    def by_value(self) -> bool:
        """Whether its keys are the values of its columns, not what gin and gist make of them."""
        return self.method in ("btree", "hash") or bool(self.constraint_oid)

    @property
    def stored(self) -> bool:
        """Whether something is kept for it: a brin index is the bounds that every part has of every column."""
        return self.method != "brin"

    @property
    def computed(self) -> bool:
        """Whether it keeps hidden columns."""
        return bool(self.written)

    @property
    def key_columns(self) -> tuple[int, ...]:
        """The columns that its keys were written as, 0 for expressions (pg_index.indkey)."""
        return self.written or self.attnums


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeyDef:
    """What a foreign key refers to.

    ``table`` and its columns ``attnums``, in the order of the referencing ones. ``match``: s(imple), f(ull). Actions:
    a (none), r(estrict), c(ascade), n (set null), d (set default); ``delete_attnums``: the referencing columns that ON
    DELETE SET changes, empty = all. The operators are pg_constraint's: referenced = referencing and so on.
    """

    table: int
    attnums: tuple[int, ...]
    match: str = "s"
    on_update: str = "a"
    on_delete: str = "a"
    delete_attnums: tuple[int, ...] = ()
    pf_operators: tuple[int, ...] = ()
    pp_operators: tuple[int, ...] = ()
    ff_operators: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintDef:
    """A constraint: kind p, u, c (check), f (foreign key), x (exclusion) or t (constraint trigger); ``check_sql`` is the canonical expression, or WHERE.

    ``index_oid`` is the index of a key or exclusion constraint, and of a foreign key the one of the key it refers to. ``operators``:
    those of an exclusion constraint, by oid, one for each column.
    """

    oid: int
    name: str
    kind: Literal["p", "u", "c", "f", "x", "t"]
    attnums: tuple[int, ...] = ()
    index_oid: int = 0
    check_sql: str = ""
    foreign: ForeignKeyDef | None = None
    deferrable: bool = False
    deferred: bool = False  # INITIALLY DEFERRED
    no_inherit: bool = False  # a check that is the table's alone
    operators: tuple[int, ...] = ()
    validated: bool = True  # False: NOT VALID, existing rows have not been looked at
    parent: int = (
        0  # the constraint of the partitioned table that this one comes from; of a CHECK any number but 0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceDef:
    """What a sequence counts (pg_sequence); how far it is belongs to the server, not to the catalog.

    ``type_oid``: int2, int4 or int8. ``generation`` is new with every RESTART, whose counting begins at ``restart``
    (None: at ``start``). ``owner_table``, ``owner_attnum``: the column it goes with, 0 = none; ``internal``: that column
    is an identity column and has made it.
    """

    type_oid: int
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int = 1
    cycle: bool = False
    generation: int = 0
    restart: int | None = None
    owner_table: int = 0
    owner_attnum: int = 0
    internal: bool = False

    @property
    def first(self) -> int:
        """The value that this generation begins with."""
        return self.start if self.restart is None else self.restart


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionKey:
    """What the rows of a partitioned table are divided by: r(ange), l(ist) or h(ash).

    Per key the column, 0 for an expression, whose canonical text is in ``expressions`` ("" for columns); its type, and its collation
    as pg_partitioned_table has it.
    """

    strategy: Literal["r", "l", "h"]
    attnums: tuple[int, ...]
    expressions: tuple[str, ...]
    types: tuple[SqlType, ...]
    collations: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBound:
    """Which rows a partition has: r(ange), l(ist), h(ash) or d(efault).

    Values are canonical texts, None is NULL. Of a range ``infinite`` and ``upper_infinite`` say of each place whether it is a
    value (0), MINVALUE (-1) or MAXVALUE (1); where it is none its text is "".
    """

    strategy: Literal["r", "l", "h", "d"]
    values: tuple[str | None, ...] = ()
    infinite: tuple[int, ...] = ()
    upper: tuple[str, ...] = ()
    upper_infinite: tuple[int, ...] = ()
    modulus: int = 0
    remainder: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationDef:
    """A table ('r'), partitioned table ('p', whose rows are in its partitions), view ('v'), materialized view ('m'), sequence ('S'), or virtual catalog relation ('r'/'v' with ``virtual``).

    A composite type is one ('c') as far as names of relations and its attributes go; it is stored as a ``TypeDef``.

    ``columns`` includes dropped ones, in attnum order, ``triggers`` and ``policies`` are ordered by name. ``row_security``:
    the policies count, ``force_row_security``: for its owner, too (``planner.row_security``). ``keys_off``: changes of its rows
    neither ask nor act on foreign keys (DISABLE TRIGGER ALL). ``version`` changes with every DDL on it.
    ``view_sql`` is the canonical SELECT text of a view, bound with ``view_path`` as search path. ``populated`` False: a
    materialized view that must be refreshed before it can be read.
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    kind: Literal["r", "v", "m", "i", "S", "c", "p"]
    columns: tuple[ColumnDef, ...] = ()
    indexes: tuple[IndexDef, ...] = ()
    constraints: tuple[ConstraintDef, ...] = ()
    triggers: tuple[TriggerDef, ...] = ()
    policies: tuple[PolicyDef, ...] = ()
    row_security: bool = False
    force_row_security: bool = False
    keys_off: bool = False
    version: int = 0
    virtual: bool = False
    view_sql: str = ""
    view_path: tuple[str, ...] = ()
    # relations a view reads
    depends_on: tuple[int, ...] = ()
    owner: int = 10
    persistence: Literal["p", "t", "u"] = "p"
    options: Mapping[str, str] = field(default_factory=dict)
    # the oid of the table an index ('i') belongs to
    table_oid: int = 0
    # the oid of the source that writes a table: nobody else does; 0 = there is none
    source_oid: int = 0
    populated: bool = True
    sequence: SequenceDef | None = None
    # of a partitioned table: by what; of a partition: of which table, and which rows
    partition_key: PartitionKey | None = None
    partition_of: int = 0
    bound: PartitionBound | None = None

    @property
    def stored(self) -> bool:
        """Whether it has a shard: tables and materialized views, but no catalog relations.

        That of a partitioned table has no rows: it is there to be locked, and changed with the definition.
        """
        return self.kind in "rmp" and not self.virtual

    @property
    def timeline(self) -> str:
        """The timeline that a table's rows are in (``WITH (timeline = ...)``)."""
        return self.options.get("timeline", DEFAULT_TIMELINE)

    @property
    def live(self) -> tuple[ColumnDef, ...]:
        """Columns that can be seen: neither dropped nor hidden, in attnum order."""
        return tuple(c for c in self.columns if not c.dropped and not c.hidden)

    @property
    def stored_columns(self) -> tuple[ColumnDef, ...]:
        """Columns that rows have values of: not dropped, in attnum order."""
        return tuple(c for c in self.columns if not c.dropped)

    @property
    def generated(self) -> tuple[ColumnDef, ...]:
        """Columns that are computed whenever a row is stored, in attnum order."""
        return tuple(c for c in self.columns if c.generated and not c.dropped)

    @property
    def foreign_keys(self) -> tuple[ConstraintDef, ...]:
        """Constraints that refer to other tables (or to this one), oldest first."""
        return tuple(c for c in self.constraints if c.kind == "f")

    @property
    def exclusions(self) -> tuple[ConstraintDef, ...]:
        """Exclusion constraints, oldest first."""
        return tuple([c for c in self.constraints if c.kind == "x"])

    @property
    def has_deferrable_key(self) -> bool:
        """Whether a PRIMARY KEY or UNIQUE constraint may be checked at commit."""
        return any(i.deferrable and i.unique for i in self.indexes)

    @property
    def checks_late(self) -> bool:
        """Whether a statement's rows are looked at once more when all of them are stored: see ``engine.constraints.effects``."""
        return any(i.deferrable for i in self.indexes) or any(c.kind == "x" for c in self.constraints)

    def has_instead(self, letter: str) -> bool:
        """Tell whether INSTEAD OF triggers say what a kind of change (``TriggerEventKind``) of a view's rows means, on or off."""
        return any(t.timing == "i" and letter in t.events for t in self.triggers)

    def column(self, attnum: int) -> ColumnDef:
        """Return the column with this number."""
        return self.columns[attnum - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowType:
    """A composite type: one that was made as such, or what the rows of a table or view are of.

    ``columns`` in attnum order, dropped ones included; ``relation``: whose rows these are, 0 for a type by itself.
    """

    oid: int
    name: str
    columns: tuple[ColumnDef, ...]
    relation: int = 0

    @property
    def live(self) -> tuple[ColumnDef, ...]:
        """The attributes that it has."""
        return tuple(c for c in self.columns if not c.dropped and not c.hidden)

    @property
    def slots(self) -> tuple[int, ...]:
        """Where values have those (``pgwire.codecs.composite``)."""
        return tuple(c.attnum - 1 for c in self.live)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumLabel:
    """A label of an enum. Values are its ``rank``, which is its own for ever; labels are ordered by rank."""

    oid: int
    rank: int
    label: str


RANGE_CONSTRUCTORS = 5

FIRST_RANK = 1 << 40
"""The rank of an enum's first label, and the distance to the next: halved for each label put in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDef:
    """A type made by CREATE TYPE or CREATE DOMAIN; ``array_oid`` is the array type over it.

    Of kind c(omposite): its ``attributes`` in attnum order, dropped ones included, and the oid of its row of pg_class.

    Of kind r(ange): its subtype (``base``), function for distances (``subtype_diff``, 0: none), and what its constructors and those of
    its multirange type are called, whatever name it gets later. Its oids follow each other: the type, the array type over it, both
    for multiranges, the constructors (``planner.builtins.own_ranges``).

    Of kind e(num): its ``labels`` in order. Of kind d(omain): what it is over (``base``, maybe a domain, with its typmod
    ``base_typmod``) and what it demands: ``default_sql`` and ``checks`` are canonical texts, ``value`` stands for the value.

    Of kind b(ase): an extension's, with the same oids in every database (``planner.facts.ExtensionFact``).
    """

    oid: int
    array_oid: int
    array_name: str
    schema_oid: int
    schema: str
    name: str
    kind: Literal["e", "d", "c", "r", "b"]
    owner: int = 10
    labels: tuple[EnumLabel, ...] = ()
    base: int = 0
    base_typmod: int = -1
    not_null: bool = False
    default_sql: str | None = None
    checks: tuple[ConstraintDef, ...] = ()
    collation: int = 0
    attributes: tuple[ColumnDef, ...] = ()
    relation_oid: int = 0
    multirange_name: str = ""
    multirange_array_name: str = ""
    constructors: tuple[str, str] = ("", "")
    subtype_diff: int = 0

    @property
    def base_type(self) -> SqlType:
        """What a domain is over."""
        return SqlType(self.base, self.base_typmod)

    @property
    def multirange(self) -> int:
        """The multirange type of a range type, 0 for other types; the array type over it comes next."""
        return self.oid + 2 if self.kind == "r" else 0

    @property
    def first_constructor(self) -> int:
        """The first of the ``RANGE_CONSTRUCTORS`` functions that come with a range type."""
        return self.oid + 4

    @property
    def names(self) -> Mapping[int, str]:
        """The names of all types that are made with it, itself included, by oid."""
        found = {self.oid: self.name, self.array_oid: self.array_name}
        if self.kind == "r":
            found |= {self.multirange: self.multirange_name, self.multirange + 1: self.multirange_array_name}
        return found

    @property
    def family(self) -> set[int]:
        """The oids of all that is made with it and stored texts may name: types, and the constructors of ranges."""
        more = range(self.first_constructor, self.first_constructor + RANGE_CONSTRUCTORS)
        return {*self.names, *(more if self.kind == "r" else ())}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDef:
    """A function in SQL or PL/pgSQL (CREATE FUNCTION; ``language`` "sql" or "plpgsql"), as pg_proc has it.

    ``modes`` (i, o, b, v, t), ``names`` and ``types`` are of all parameters; ``defaults``: canonical texts of the last inputs'.
    ``source``: a body that is a text, bound under the search path of whoever calls. Of BEGIN ATOMIC and RETURN ``body_sql`` is the
    canonical text, bound under ``path``, and ``depends_on`` what it reads; ``returns``: it was written with RETURN.
    ``kind``: f(unction) or p(rocedure). ``definer``: it runs with the rights of its owner. ``settings``: those of its SET clauses,
    as pg_proc.proconfig has them. ``extension``: the oid of the extension that it belongs to, or 0; ``internal``: instead of a body,
    which built-in one it stands for, by its signature (``planner.facts.ExtensionFact``).
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    modes: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[int, ...]
    result: int
    owner: int = 10
    defaults: tuple[str, ...] = ()
    returns_set: bool = False
    volatility: Literal["i", "s", "v"] = "v"
    strict: bool = False
    parallel: Literal["u", "r", "s"] = "u"
    leakproof: bool = False
    cost: float = 100
    rows: float = 0
    source: str = ""
    body_sql: str = ""
    returns: bool = False
    path: tuple[str, ...] = ()
    depends_on: tuple[int, ...] = ()
    kind: Literal["f", "p"] = "f"
    definer: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    extension: int = 0
    internal: str = ""
    language: str = "sql"

    @property
    def inputs(self) -> tuple[int, ...]:
        """The types of what a call passes: pg_proc.proargtypes."""
        return tuple(t for t, mode in zip(self.types, self.modes, strict=True) if mode in "ibv")

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of what a call passes, "" where there is none."""
        return tuple(n for n, mode in zip(self.names, self.modes, strict=True) if mode in "ibv")

    @property
    def outputs(self) -> tuple[tuple[str, int], ...]:
        """(name, type) of its OUT parameters or of the columns of RETURNS TABLE."""
        found = zip(self.names, self.types, self.modes, strict=True)
        return tuple((name, type_) for name, type_, mode in found if mode in "obt")


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

    ``options``: checked, as written; ``tables``: oids, in the order in which the source knows them; ``tables_from``: what
    each of them is called there (only of sources that read tables).
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


class Catalog(Protocol):
    """An immutable view of the catalog."""

    def schema(self, name: str) -> SchemaDef | None:
        """Return the schema called ``name``."""

    def relation(self, schema: str, name: str) -> RelationDef | None:
        """Return relation ``schema.name`` of any kind, indexes included."""

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        """Return the relation with this oid."""

    def relations(self, schema: str) -> Iterable[RelationDef]:
        """Yield the relations of a schema, in any order."""

    def partitions_of(self, oid: int) -> Sequence[RelationDef]:
        """Return the partitions of a table, oldest first."""
        ...

    def role(self, name: str) -> RoleDef | None:
        """Return the role called ``name``."""

    def database_named(self, name: str) -> DatabaseDef | None:
        """Return the server's database called ``name``."""

    def type_oid(self, schema: str, name: str) -> int | None:
        """Return the oid of the user's type, or array type, called ``schema.name``."""

    def type_by_oid(self, oid: int) -> TypeDef | None:
        """Return the user's type that has this oid, or whose array type has."""

    def row_type(self, oid: int) -> RowType | None:
        """Return the composite type with this oid, None for any other type."""

    def constructors_named(self, name: str) -> Sequence[tuple[str, int]]:
        """Return (schema, oid) of the constructors of users' range types that are called ``name``."""
        ...

    def functions_named(self, name: str) -> Sequence[FunctionDef]:
        """Return the users' functions called ``name`` in any schema, oldest first."""

    def functions_in(self, schema: str) -> Iterable[FunctionDef]:
        """Yield the users' functions of a schema, oldest first."""

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        """Return the user's function with this oid."""

    def extension(self, name: str) -> ExtensionDef | None:
        """Return the extension called ``name``."""


class SystemCatalog(Catalog, Protocol):
    """What catalog functions (``pg_get_constraintdef``, ``obj_description`` ...) ask besides: objects by oid."""

    @property
    def database(self) -> int:
        """Oid of the database whose catalog this is."""

    @property
    def namespace_version(self) -> int:
        """A number that changes when a name may resolve differently."""

    def database_by_oid(self, oid: int) -> DatabaseDef | None:
        """Return the server's database with this oid."""

    def schemas(self) -> Iterable[SchemaDef]:
        """Yield all schemas."""

    def schema_by_oid(self, oid: int) -> SchemaDef | None:
        """Return the schema with this oid."""

    def role_by_oid(self, oid: int) -> RoleDef | None:
        """Return the role with this oid."""

    def constraint_by_oid(self, oid: int) -> tuple[RelationDef, ConstraintDef] | None:
        """Return the constraint with this oid and its table."""

    def domain_constraint(self, oid: int) -> tuple[TypeDef, ConstraintDef] | None:
        """Return the CHECK of a domain with this oid, and the domain."""

    def trigger_by_oid(self, oid: int) -> tuple[RelationDef, TriggerDef] | None:
        """Return the trigger with this oid and its table."""

    def sequences_of(self, table: int) -> Sequence[RelationDef]:
        """Return the sequences that a table's columns own, oldest first."""

    def row_type_relation(self, oid: int) -> tuple[RelationDef, bool] | None:
        """Return the relation whose row type has this oid; True with it for the array type over that."""

    def acl(self, class_oid: int, object_oid: int, sub_id: int = 0) -> tuple[AclItem, ...] | None:
        """Return the access control list of an object of the catalog ``class_oid``, None where it is the default one."""

    def comment(self, class_oid: int, object_oid: int, sub_id: int = 0) -> str | None:
        """Return the comment on an object of the catalog ``class_oid``, or None."""
