"""Users' types, composite, enum, range and domain, and users' functions, as the catalog knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planner.catalog.relations import ColumnDef, ConstraintDef
from planner.types import SqlType


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
        """Where values have those (``pgwire.codecs.users.composite``)."""
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


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class TypeDef:
    """A type made by CREATE TYPE or CREATE DOMAIN; ``array_oid`` is the array type over it.

    Of kind c(omposite): its ``attributes`` in attnum order, dropped ones included, and the oid of its row of pg_class.

    Of kind r(ange): its subtype (``base``), function for distances (``subtype_diff``, 0: none), and what its
    constructors and those of its multirange type are called, whatever name it gets later. Its oids follow
    each other: the type, the array type over it, both for multiranges, the constructors
    (``planner.functions.values.own_ranges``).

    Of kind e(num): its ``labels`` in order. Of kind d(omain): what it is over (``base``, maybe a domain, with
    its typmod ``base_typmod``, ``dims`` as in ``ColumnDef``) and what it demands: ``default_sql`` and
    ``checks`` are canonical texts, ``value`` stands for the value. ``default_shown`` is the default as whoever
    set it saw it (pg_type.typdefault); None for those of before 2026-12, too. ``default_inherited``: it came from the
    domain that this one is over.

    Of kind b(ase): an extension's, with the same oids in every database (``planner.facts.ExtensionFact``).
    ``extension``: the one that a type of another kind belongs to, 0 for none.
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
    default_shown: str | None = None
    default_inherited: bool = False
    checks: tuple[ConstraintDef, ...] = ()
    collation: int = 0
    attributes: tuple[ColumnDef, ...] = ()
    relation_oid: int = 0
    multirange_name: str = ""
    multirange_array_name: str = ""
    constructors: tuple[str, str] = ("", "")
    subtype_diff: int = 0
    extension: int = 0
    dims: int = -1

    def __hash__(self) -> int:
        return hash((self.oid, self.name, len(self.labels)))  # not of a hundred thousand labels

    @property
    def is_domain(self) -> bool:
        """Whether it is a domain, of whose array type this is not asked."""
        return self.kind == "d"

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

    def chose(self, name: str) -> bool:
        """Whether a name was chosen for an array type that is made with it: it makes room for what somebody
        calls so.
        """
        return name in (self.array_name, self.multirange_array_name if self.kind == "r" else "")

    @property
    def family(self) -> set[int]:
        """The oids of all that is made with it and stored texts may name: types, and the constructors of ranges."""
        more = range(self.first_constructor, self.first_constructor + RANGE_CONSTRUCTORS)
        return {*self.names, *(more if self.kind == "r" else ())}


Modify = Literal["r", "s", "w"]
"""What a final function does to the state: nothing (READ_ONLY), what others can go on from (SHAREABLE),
anything (READ_WRITE)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateDef:
    """What an aggregate has besides its pg_proc row: pg_aggregate's, functions and the operator by oid, 0 for none.

    ``kind``: n(ormal), o(rdered-set), h(ypothetical-set), of which the latter two take ``direct`` arguments
    before ORDER BY. ``state``: the transition type, as declared; ``initial``: its first value as a text, None
    for NULL. ``moving_*``: the same for frames whose start moves, where ``moving_inverse`` takes a row out
    again.
    """

    kind: Literal["n", "o", "h"] = "n"
    direct: int = 0
    transition: int
    state: int
    state_space: int = 0
    initial: str | None = None
    final: int = 0
    final_extra: bool = False
    final_modify: Modify = "r"
    combine: int = 0
    serial: int = 0
    deserial: int = 0
    moving_transition: int = 0
    moving_inverse: int = 0
    moving_state: int = 0
    moving_state_space: int = 0
    moving_initial: str | None = None
    moving_final: int = 0
    moving_final_extra: bool = False
    moving_final_modify: Modify = "r"
    sort_operator: int = 0

    @property
    def functions(self) -> tuple[int, ...]:
        """The functions that it is made of, in the order of pg_aggregate."""
        every = (
            self.transition, self.final, self.combine, self.serial, self.deserial, self.moving_transition,
            self.moving_inverse, self.moving_final,
        )  # fmt: skip
        return tuple(oid for oid in every if oid)


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class FunctionDef:
    """A function in SQL or PL/pgSQL (CREATE FUNCTION; ``language`` "sql" or "plpgsql"), or an aggregate, as
    pg_proc has it.

    ``modes`` (i, o, b, v, t), ``names`` and ``types`` are of all parameters; ``defaults``: canonical texts of
    the last inputs'. ``source``: a body that is a text, bound under the search path of whoever calls. Of
    BEGIN ATOMIC and RETURN ``body_sql`` is the canonical text, bound under ``path``, and ``depends_on`` what
    it reads; ``returns``: it was written with RETURN; ``returned``: the statements of BEGIN ATOMIC that were.
    ``kind``: f(unction), p(rocedure) or a(ggregate), which has ``aggregate`` instead of a body. ``definer``:
    it runs with the rights of its owner. ``settings``: those of its SET clauses, as pg_proc.proconfig has
    them. ``extension``: the oid of the extension that it belongs to, or 0; ``internal``: instead of a body,
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
    returned: tuple[int, ...] = ()
    path: tuple[str, ...] = ()
    depends_on: tuple[int, ...] = ()
    kind: Literal["f", "p", "a"] = "f"
    definer: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    extension: int = 0
    internal: str = ""
    language: str = "sql"
    aggregate: AggregateDef | None = None

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
