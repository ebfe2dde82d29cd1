"""A lowered expression: its engine SQL, its SQL type, and how its value is held.

Every SQL type has one engine form (the kinds of the storage layer), except ``numeric``, which has two:

    Fixed(p, s)   DECIMAL(p, s); PostgreSQL's display scale is s for every row. Columns numeric(p, s), constants,
                  sums, products, integers made numeric.
                  With ``dynamic`` the display scale is that expression (at most s, trailing zeros aside):
                  CASE WHEN c THEN 1.50 ELSE 0 END.
    Floating      STRUCT(u DECIMAL(38, 0), s INTEGER): the value u / 10**s with its own display scale. Columns of
                  plain numeric, quotients, averages. Specials: u = 0 and s = -1 NaN, -2 -Infinity, -3 Infinity.

A Floating value is compared, grouped and ordered by its *key* (``varying``), which is equal for equal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from pgwire.codecs.users.ranges import range_type
from planner import facts as f
from planner.base.errors import not_supported
from planner.facts import facts
from planner.lower.kit.build import Node
from planner.types import SqlType

MAX_PRECISION = 38
NAN_SCALE, MINUS_INFINITY_SCALE, INFINITY_SCALE = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Fixed:
    """DECIMAL(precision, scale); ``dynamic``: the display scale where it varies by row."""

    precision: int
    scale: int
    dynamic: Node | None = None


@dataclass(frozen=True, slots=True)
class Floating:
    """STRUCT(u, s). ``pieces``: the same as two expressions (u, s), where those are small; not part of the form."""

    pieces: tuple[Node, Node] | None = field(default=None, compare=False)


Num: TypeAlias = Fixed | Floating
FLOATING = Floating()


class _NotConstant:
    """Marks an expression whose value is not known before it runs."""


NOT_CONSTANT = _NotConstant()


@dataclass(frozen=True, slots=True)
class Val:
    """A lowered expression.

    Attributes:
        node: the engine expression.
        type: the SQL type.
        num: how a numeric is held; None for other types.
        constant: the value where it is a constant, else ``NOT_CONSTANT``.
        padded: the length to which a bpchar's values are certainly padded, or 0.
        nullable: False only where NULL is impossible.
    """

    node: Node
    type: SqlType
    num: Num | None = None
    constant: object = field(default=NOT_CONSTANT)
    padded: int = 0

    @property
    def is_constant(self) -> bool:
        """Whether the value is known."""
        return self.constant is not NOT_CONSTANT

    @property
    def fixed(self) -> Fixed:
        """The Fixed form; an error of ours where it is another."""
        if not isinstance(self.num, Fixed):
            raise TypeError(f"not a fixed-scale numeric: {self.type}")
        return self.num


KINDS: dict[int, str] = {
    f.BOOL: "bool",
    f.INT2: "int16",
    f.INT4: "int32",
    f.INT8: "int64",
    f.FLOAT4: "float32",
    f.FLOAT8: "float64",
    f.NUMERIC: "numeric",
    f.BYTEA: "bytes",
    f.UUID: "uuid",
    f.DATE: "date",
    f.TIME: "time",
    f.TIMETZ: "timetz",
    f.TIMESTAMP: "timestamp",
    f.TIMESTAMPTZ: "timestamptz",
    f.INTERVAL: "interval",
}
KINDS.update(
    dict.fromkeys(
        (f.TEXT, f.VARCHAR, f.BPCHAR, f.NAME, f.CHAR, f.JSON, f.JSONB, f.UNKNOWN, f.BIT, f.VARBIT, f.CSTRING),
        "text",
    )
)
KINDS.update(
    dict.fromkeys(
        (f.OID, f.TID, f.XID, f.CID, f.REGPROC, f.REGCLASS, f.REGCONFIG, f.REGDICTIONARY, f.REGTYPE, f.REGNAMESPACE, f.REGROLE, f.REGPROCEDURE,
         f.REGOPER, f.REGOPERATOR, f.REGCOLLATION), "int64",
    )
)  # fmt: skip

KINDS.update(
    {
        650: "bytes",
        774: "bytes",
        790: "int64",
        829: "bytes",
        869: "bytes",
        3220: "bytes",
        3614: "bytes",
        3615: "tailed",
        4072: "text",
        5069: "int64",
        f.CITEXT: "tailed",
        f.HSTORE: "bytes",
    }
)
GEOMETRIC = frozenset((600, 601, 602, 603, 604, 628, 718))
"""Types of points, lines and areas: none of their operators compares bytes."""
KINDS.update(dict.fromkeys(GEOMETRIC, "bytes"))

INTEGER_DIGITS = {"int16": 5, "int32": 10, "int64": 19}


def element_of(oid: int) -> int:
    """Return the element type of an array type, or 0."""
    fact = facts().types.get(oid)
    if fact is None or fact.category != "A" or fact.length != -1:
        return 0
    return fact.element


def kind_of(oid: int) -> str:
    """Return the engine kind of a type; ``list`` for arrays.

    Raises:
        SqlError: 0A000 for types no engine holds.
    """
    kind = KINDS.get(oid)
    if kind is not None:
        return kind
    if element_of(oid):
        return "list"
    fact = facts().types.get(oid)
    if fact is not None and fact.kind == "e":
        return "int64"
    if fact is not None and fact.kind in ("r", "m"):
        # some have bytes at their end that are not compared (``pgwire.codecs.users.ranges``)
        return "tailed" if range_type(oid).tailed else "bytes"
    if fact is not None and fact.kind == "c":
        return "tailed"
    raise not_supported(f"type {fact.name if fact else oid} in this executor")


def declared_num(type_: SqlType) -> Num | None:
    """Return how a stored column of this type is held: Fixed for numeric(p, s) up to 38 digits."""
    if type_.oid != f.NUMERIC:
        return None
    if type_.typmod < 4:
        return FLOATING
    precision = ((type_.typmod - 4) >> 16) & 0xFFFF
    scale = (((type_.typmod - 4) & 0x7FF) ^ 1024) - 1024
    if 0 <= scale <= precision <= MAX_PRECISION:
        return Fixed(precision, scale)
    return FLOATING


def declared_padding(type_: SqlType) -> int:
    """Return n for char(n), else 0."""
    return type_.typmod - 4 if type_.oid == f.BPCHAR and type_.typmod > 4 else 0
