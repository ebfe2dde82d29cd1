"""Tables, views, indexes and sequences as the catalog knows them, with their columns, constraints and partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from planner.catalog.foreign import Options
from planner.catalog.policy import PolicyDef
from planner.catalog.relation_kinds import STORING, RelationKind
from planner.catalog.statistics import StatisticsDef
from planner.catalog.trigger import TriggerDef
from planner.types import SqlType

IndexMethod: TypeAlias = Literal["btree", "hash", "gist", "spgist", "gin", "brin", "bloom"]

DEFAULT_TIMELINE = "epoch_ms"
"""Where tables are that do not say; it is there without being created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDef:
    """A column. ``default_sql`` is the canonical text of its default (bound anew where used).

    ``attnum`` is its id, from 1, never changed or used again: rows have its value at ``attnum - 1``, parts as
    ``c<attnum>``. What SQL calls its attribute number is ``RelationDef.number``, the same where no index
    keeps columns. ``type`` is plain (``planner.types.domains``); ``domain`` is the oid of the domain, or
    array of domains, that it was declared as, 0 for none. ``dims``: how many pairs of brackets its type was
    written with, 0 for what a query or another table gave it, -1 where that was not kept (catalogs of
    before). ``storage`` (p, e, m, x; "" for its type's), ``compression`` (p, l, "" for none), ``statistics``
    (-1: by default), ``options`` and ``foreign_options`` (of a foreign table's) are kept for who asks, and
    change nothing. ``generated`` s(tored): that text is its expression. ``hidden``: a generated column that
    an index keeps, or kept, for itself; nobody sees it, and it has no attribute number.
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
    compression: str = ""
    statistics: int = -1
    options: Mapping[str, str] = field(default_factory=dict)
    identity: str = ""
    generated: str = ""
    hidden: bool = False
    domain: int = 0
    dims: int = -1
    foreign_options: Options = ()

    @property
    def declared(self) -> SqlType:
        """The type it was declared as, domains included."""
        return SqlType(self.domain) if self.domain else self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDef:
    """An index; ``attnums`` are its key columns. ``descending``/``nulls_first`` are per key column.

    Of an expression or partial index some of those are hidden columns, which hold what an expression gives,
    and of a partial index's first key NULL where its condition does not hold. Where NULLs are equal that does
    not tell which rows are in it: ``guard`` is a further hidden column that does, true or NULL (0: there is
    none), and ``kept`` all that its keys are stored with. ``written``: per key the column that was written, 0
    for an expression; ``expressions``: their canonical texts, "" for columns; ``where_sql``: that of the
    condition; ``key_names``: what pg_attribute calls the keys and what is carried with them, whatever the columns
    are called since. All but ``where_sql`` are empty for plain indexes, ``key_names`` until a column is renamed.
    ``opclasses``: the operator class of each key, "" for the default one; empty where all are.
    ``collations``: likewise the oid of each key's collation, 0 for the one that its column or type has.
    ``options``: WITH (...) as written, ``statistics``: of each key (-1: by default), empty where none was
    set, ``clustered``, ``replica_identity``: all without effect.
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
    collations: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    parent: int = 0  # the index of the partitioned table that this one is a part of
    valid: bool = True  # of a partitioned table's: whether every partition has one; else whether it is built (``RelationDef.unbuilt``)
    statistics: tuple[int, ...] = ()
    clustered: bool = False
    replica_identity: bool = False
    guard: int = 0

    @property
    def kept(self) -> tuple[int, ...]:
        """The columns that its keys are stored with."""
        return (*self.attnums, self.guard) if self.guard else self.attnums

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
    """A constraint: kind p, u, c (check), f (foreign key), x (exclusion) or t (constraint trigger);
    ``check_sql`` is the canonical expression, or WHERE.

    ``index_oid`` is the index of a key or exclusion constraint, and of a foreign key the one of the key it
    refers to. ``operators``: those of an exclusion constraint, by oid, one for each column.
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

    ``type_oid``: int2, int4 or int8. ``generation`` is new with every RESTART, whose counting begins at
    ``restart`` (None: at ``start``). ``owner_table``, ``owner_attnum``: the column it goes with, 0 = none;
    ``internal``: that column is an identity column and has made it.
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

    Per key the column, 0 for an expression, whose canonical text is in ``expressions`` ("" for columns); its
    type, and its collation as pg_partitioned_table has it. ``opclasses``: of each the operator class, "" for
    the type's default one; empty where all are. ``own_classes``: of each the oid of the users' class that it
    is hashed by, 0 for none; empty where there are none.
    """

    strategy: Literal["r", "l", "h"]
    attnums: tuple[int, ...]
    expressions: tuple[str, ...]
    types: tuple[SqlType, ...]
    collations: tuple[int, ...]
    opclasses: tuple[str, ...] = ()
    own_classes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBound:
    """Which rows a partition has: r(ange), l(ist), h(ash) or d(efault).

    Values are canonical texts, None is NULL. Of a range ``infinite`` and ``upper_infinite`` say of each place
    whether it is a value (0), MINVALUE (-1) or MAXVALUE (1); where it is none its text is "".
    """

    strategy: Literal["r", "l", "h", "d"]
    values: tuple[str | None, ...] = ()
    infinite: tuple[int, ...] = ()
    upper: tuple[str, ...] = ()
    upper_infinite: tuple[int, ...] = ()
    modulus: int = 0
    remainder: int = 0


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class RelationDef:
    """A table ('r'), partitioned table ('p', whose rows are in its partitions), foreign table ('f', whose
    rows would be a wrapper's to get), view ('v'), materialized view ('m'), sequence ('S'), or virtual catalog
    relation ('r'/'v' with ``virtual``).

    A composite type is one ('c') as far as names of relations and its attributes go; it is stored as a ``TypeDef``.

    ``columns`` includes dropped ones, in attnum order, ``triggers`` and ``policies`` are ordered by name,
    ``statistics`` (extended ones) by oid. ``row_security``: the policies count, ``force_row_security``: for
    its owner, too (``planner.row_security``). ``keys_off``: changes of its rows neither ask nor act on
    foreign keys (DISABLE TRIGGER ALL). ``version`` changes with every DDL on it. ``unbuilt``: the indexes
    that CONCURRENTLY has left behind where it failed. They have a name and a definition, but are not kept,
    serve no query and keep no row out; their hidden columns are there as dropped ones, with their types and
    expressions. ``view_sql`` is the canonical SELECT text of a view, bound with ``view_path`` as search path.
    ``populated`` False: a materialized view that must be refreshed before it can be read.
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    kind: RelationKind
    columns: tuple[ColumnDef, ...] = ()
    indexes: tuple[IndexDef, ...] = ()
    unbuilt: tuple[IndexDef, ...] = ()
    constraints: tuple[ConstraintDef, ...] = ()
    triggers: tuple[TriggerDef, ...] = ()
    policies: tuple[PolicyDef, ...] = ()
    statistics: tuple[StatisticsDef, ...] = ()
    row_security: bool = False
    force_row_security: bool = False
    keys_off: bool = False
    version: int = 0
    virtual: bool = False
    # of a catalog relation: the oids of the type of its rows and of the array type over that; other
    # relations' follow their own
    row_oids: tuple[int, int] = (0, 0)
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
    # of a typed table: the composite type whose attributes its columns are
    of_type: int = 0
    # of a foreign table: its server, and what the wrapper of that would be told
    server: int = 0
    foreign_options: Options = ()
    # what a publication would tell of old rows: d(efault), n(othing), f(ull), i(ndex); there are none
    replica_identity: Literal["d", "n", "f", "i"] = "d"

    @property
    def row_type(self) -> int:
        """The oid of the type of its rows; sequences and indexes have none."""
        return self.row_oids[0] or self.oid + 1

    @property
    def row_array(self) -> int:
        """The oid of the array type over that."""
        return self.row_oids[1] or self.oid + 2

    @property
    def stored(self) -> bool:
        """Whether it has a shard: tables and materialized views, but no catalog relations.

        That of a partitioned table has no rows: it is there to be locked, and changed with the definition.
        """
        return self.kind in STORING and not self.virtual

    @property
    def divided_by(self) -> PartitionKey:
        """The key of a partitioned table."""
        if self.partition_key is None:
            raise AssertionError(f"relation {self.name} is not partitioned")
        return self.partition_key

    @property
    def timeline(self) -> str:
        """The timeline that a table's rows are in (``WITH (timeline = ...)``)."""
        return self.options.get("timeline", DEFAULT_TIMELINE)

    @property
    def live(self) -> tuple[ColumnDef, ...]:
        """Columns that can be seen: neither dropped nor hidden, in attnum order."""
        return tuple(c for c in self.columns if not c.dropped and not c.hidden)

    @property
    def numbers(self) -> Mapping[int, int]:
        """SQL's attribute numbers by ``attnum``, dropped columns included, hidden ones not: without gaps, and
        never others.
        """
        shown = [column.attnum for column in self.columns if not column.hidden]
        return dict(zip(shown, range(1, len(shown) + 1), strict=True))

    def number(self, attnum: int) -> int:
        """Return SQL's attribute number of a column; 0 (a whole row) and system columns have their own."""
        return attnum - sum(column.hidden for column in self.columns[:attnum]) if attnum > 0 else attnum

    def numbered(self, number: int) -> int:
        """Return the ``attnum`` of the column that SQL gives a number, above 0; 0 where there is none."""
        return next((attnum for attnum, its in self.numbers.items() if its == number), 0)

    @property
    def every_index(self) -> tuple[IndexDef, ...]:
        """The indexes that have a name and a row in pg_index: those that are kept, then those that are not built."""
        return self.indexes + self.unbuilt if self.unbuilt else self.indexes

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

    def written_columns(self, constraint: ConstraintDef) -> tuple[int, ...]:
        """The columns that a constraint was written over, 0 for expressions (pg_constraint.conkey)."""
        if constraint.kind != "x":
            return constraint.attnums
        return next(index.key_columns for index in self.indexes if index.oid == constraint.index_oid)

    @property
    def exclusions(self) -> tuple[ConstraintDef, ...]:
        """Exclusion constraints, oldest first."""
        return tuple([c for c in self.constraints if c.kind == "x"])

    def predicate_of(self, index: IndexDef) -> str:
        """The condition of the rows of an index as pg_index has it: a partial index's own, an exclusion
        constraint's of the index it made.
        """
        made = next((c for c in self.exclusions if c.index_oid == index.oid), None)
        return index.where_sql if made is None else made.check_sql

    @property
    def has_deferrable_key(self) -> bool:
        """Whether a PRIMARY KEY, UNIQUE or EXCLUDE constraint may be checked at commit."""
        return any(i.deferrable for i in self.indexes)

    @property
    def checks_late(self) -> bool:
        """Whether a statement's rows are looked at once more when all of them are stored: see
        ``engine.changes.constraints.effects``.
        """
        return any(i.deferrable for i in self.indexes) or any(c.kind == "x" for c in self.constraints)

    def has_instead(self, letter: str) -> bool:
        """Tell whether INSTEAD OF triggers say what a kind of change (``TriggerEventKind``) of a view's rows
        means, on or off.
        """
        return any(t.timing == "i" and letter in t.events for t in self.triggers)

    def column(self, attnum: int) -> ColumnDef:
        """Return the column with this number."""
        return self.columns[attnum - 1]


def with_index_changed(table: RelationDef, oid: int, change: Callable[[IndexDef], IndexDef]) -> RelationDef:
    """Return a table with one of its indexes changed, be it built or not; as it is where it has none of this oid."""
    return replace(
        table,
        indexes=tuple([change(i) if i.oid == oid else i for i in table.indexes]),
        unbuilt=tuple([change(i) if i.oid == oid else i for i in table.unbuilt]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BorrowedView(RelationDef):
    """A view as it is, in a catalog of what was (``engine.catalog.todays_code``); it is never stored.

    ``fits``: what it reads was there, under the same names.
    """

    fits: bool
