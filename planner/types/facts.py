"""Small questions about built-in types: category, arrays and elements, and how a type prints.

Everything here is a pure lookup in ``planner.facts``, where users' types are, too, once a catalog has them
(``register_type``); oids that are not there answer as an opaque type would (category U, no array, prints as ``???``).
"""

from __future__ import annotations

import functools
from typing import Final

from pgwire.codecs import domain
from pgwire.codecs.users.types import called
from planner.base.quoting import everything
from planner.facts import (
    BPCHAR,
    CSTRING,
    INTERVAL,
    NAME,
    NUMERIC,
    RECORD,
    UNKNOWN,
    VOID,
    facts,
    forget_cast,
    of_types,
    rows,
)
from planner.types import SqlType

FIRST_USER_OID: Final = domain.FIRST_USER_OID
FIRST_UNPINNED: Final = 12_000
"""On what has a smaller oid everything depends, which pg_depend does not say."""
"""Oids of what users make begin here."""
MAX_DECIMAL_PRECISION = 38
"""Digits of a stored numeric."""

DEFAULT_COLLATION: Final = 100
C_COLLATION: Final = 950
"""Oids of pg_collation."""

# typcategory codes of pg_type
STRING, NUMERIC_CATEGORY, BOOLEAN, DATETIME, TIMESPAN = "S", "N", "B", "D", "T"

_SQL_NAMES = {
    16: "boolean", 20: "bigint", 21: "smallint", 23: "integer", 700: "real", 701: "double precision",
    1042: "character", 1043: "character varying", 1083: "time without time zone",
    1114: "timestamp without time zone", 1184: "timestamp with time zone", 1186: "interval",
    1266: "time with time zone", 1560: "bit", 1562: "bit varying", 1700: "numeric",
}  # fmt: skip
# pg_type names that are also SQL keywords or type-name keywords and so print quoted
_QUOTED = {18: '"char"', 2276: '"any"'}


def numeric_precision_scale(typmod: int) -> tuple[int, int] | None:
    """Return (precision, scale) of a numeric typmod, None when unconstrained. Scale may be negative."""
    if typmod < 4:
        return None
    packed = typmod - 4
    scale = packed & 0x7FF
    return packed >> 16, scale - 0x800 if scale > 1000 else scale


def decimal_of(type_: SqlType) -> tuple[int, int] | None:
    """Return (precision, scale) of a numeric type whose values are stored as decimals; None of other types."""
    declared = numeric_precision_scale(type_.typmod) if type_.oid == NUMERIC else None
    if declared is None or declared[0] > MAX_DECIMAL_PRECISION or not 0 <= declared[1] <= declared[0]:
        return None
    return declared


@of_types
def category(oid: int) -> str:
    """Return the typcategory letter; ``U`` for an oid that is not a built-in type."""
    fact = facts().types.get(oid)
    return fact.category if fact else "U"


@of_types
def plain_collation(oid: int) -> int:
    """Return the collation of a type that is no domain, 0 where it has none: texts have one, and arrays of them."""
    base = element_of(oid) or oid
    if base == NAME:
        return C_COLLATION
    return DEFAULT_COLLATION if category(base) == "S" else 0


@of_types
def is_preferred(oid: int) -> bool:
    """Tell whether the type is preferred within its category."""
    fact = facts().types.get(oid)
    return fact.preferred if fact else False


def type_kind(oid: int) -> str:
    """Return the typtype letter; "" for an oid that is not known."""
    fact = facts().types.get(oid)
    return fact.kind if fact else ""


# record[] is an array among the pseudo-types
_RECORD_ARRAY = 2287
_READ = frozenset((CSTRING, RECORD, _RECORD_ARRAY, UNKNOWN, VOID))
"""Pseudo-types with an input of their own."""


def has_input(oid: int, *, null: bool) -> bool:
    """Tell whether texts are read as the type, with ``null`` whether NULL is: most pseudo-types read nothing,
    some not even that.
    """
    if type_kind(oid) != "p" or oid in _READ:
        return True
    return null and all(p.strict for p in facts().procs_by_name.get(f"{facts().types[oid].name}_in", ()))


@of_types
def element_of(oid: int) -> int:
    """Return the element type of an array type, else 0.

    int2vector and oidvector are arrays of their elements; name and point, though subscriptable, are not.
    """
    fact = facts().types.get(oid)
    if fact is None or (fact.category != "A" and oid != _RECORD_ARRAY):
        return 0
    return fact.element


@of_types
def coordinates_of(oid: int) -> tuple[int, int]:
    """Return what the subscripts of a type of fixed length name, and how many there are: ``p[0]``, ``p[1]`` of a point.

    (0, 0) for types that have none: those are points, boxes, segments and lines, whose parts are numbered from 0.
    """
    fact = facts().types.get(oid)
    if fact is None or fact.category != "G" or not fact.element:
        return 0, 0
    return fact.element, fact.length // facts().types[fact.element].length


@of_types
def array_of(oid: int) -> int:
    """Return the array type over ``oid``, or 0."""
    fact = facts().types.get(oid)
    return fact.array if fact else 0


@functools.cache
def _ranges() -> dict[int, tuple[int, int]]:
    """Return subtype and multirange type of each range type, users' ones included."""
    return {int(r["rngtypid"]): (int(r["rngsubtype"]), int(r["rngmultitypid"])) for r in rows("range")}


def register_range(oid: int, subtype: int, multirange: int) -> None:
    """Make a user's range type known."""
    _ranges()[oid] = subtype, multirange


def forget_range(oid: int) -> None:
    """Take back ``register_range``, and the cast to its multirange type; of any other type there is nothing
    to take back.
    """
    found = _ranges().pop(oid, None)
    if found is not None:
        forget_cast(oid, found[1])


def range_subtype(oid: int) -> int:
    """Return a range type's subtype, or 0 if ``oid`` is no range type."""
    return _ranges().get(oid, (0, 0))[0]


def multirange_of(oid: int) -> int:
    """Return a range type's multirange type, or 0 if ``oid`` is no range type."""
    return _ranges().get(oid, (0, 0))[1]


def range_of(oid: int) -> int:
    """Return a multirange type's range type, or 0 if ``oid`` is no multirange type."""
    return next((range_ for range_, (_, multirange) in _ranges().items() if multirange == oid), 0)


def format_type(oid: int, typmod: int | None = None) -> str:
    """Return a type's name as PostgreSQL's ``format_type`` prints it.

    ``typmod`` None means "not given": the plain SQL name. -1 means "given, and none": then ``character``
    and ``bit`` print as ``bpchar`` and ``"bit"``, whose bare spelling would mean length 1.
    """
    if oid and not is_fact(oid):
        return _user_type(oid)
    return _builtin_type(oid, typmod, everything())


@functools.cache
def _fact_oids() -> frozenset[int]:
    every = {int(row["oid"]): int(row["typelem"]) for row in rows("types")}
    return frozenset(oid for oid, element in every.items() if element == 0 or element in every)


def is_fact(oid: int) -> bool:
    """Tell whether a type is built in and of pg_catalog: no user's, no domain of information_schema, no row
    of a catalog, no array of either.
    """
    return oid < FIRST_USER_OID and oid in _fact_oids()


def _user_type(oid: int) -> str:
    """Return what messages call a user's type; its bare name where no session runs."""
    element = element_of(oid)
    fact = facts().types.get(element or oid)
    return called(oid, "???" if fact is None else fact.name + ("[]" if element else ""))


@functools.lru_cache(maxsize=4096)  # modifiers are what clients write
def _builtin_type(oid: int, typmod: int | None, quoted: bool) -> str:
    if oid == 0:
        return "-"
    element = element_of(oid)
    if element and array_of(element) == oid:
        return _builtin_type(element, typmod, quoted) + "[]"
    if typmod is not None:
        if typmod >= 0:
            shown = _with_typmod(oid, typmod)
            if shown:
                return shown
        elif oid == BPCHAR:
            return '"bpchar"' if quoted else "bpchar"
        elif oid == 1560:
            return '"bit"'
    name = _SQL_NAMES.get(oid) or _QUOTED.get(oid)
    if name:
        return name
    fact = facts().types.get(oid)
    if fact is None:
        return "???"
    return f'"{fact.name}"' if quoted else fact.name


def _with_typmod(oid: int, typmod: int) -> str:
    if oid in (1042, 1043):
        return f"{_SQL_NAMES[oid]}({typmod - 4})" if typmod > 4 else ""
    if oid == 1700:
        if typmod < 4:
            return ""
        precision, scale = ((typmod - 4) >> 16) & 0xFFFF, (typmod - 4) & 0x7FF
        scale = scale - 2048 if scale >= 1024 else scale
        return f"numeric({precision},{scale})"
    if oid in (1560, 1562):
        return f"{_SQL_NAMES[oid]}({typmod})"
    if oid in (1083, 1114, 1184, 1266):
        head, _, tail = _SQL_NAMES[oid].partition(" ")
        return f"{head}({typmod}) {tail}"
    if oid == INTERVAL:
        return f"interval{interval_fields(typmod)}"
    return ""


# interval typmod: range mask << 16 | precision
_MONTH, _YEAR, _DAY, _HOUR, _MINUTE, _SECOND = 1 << 1, 1 << 2, 1 << 3, 1 << 10, 1 << 11, 1 << 12
INTERVAL_FULL_RANGE, INTERVAL_FULL_PRECISION = 0x7FFF, 0xFFFF
INTERVAL_FIELDS = {
    "year": _YEAR,
    "month": _MONTH,
    "day": _DAY,
    "hour": _HOUR,
    "minute": _MINUTE,
    "second": _SECOND,
    "year to month": _YEAR | _MONTH,
    "day to hour": _DAY | _HOUR,
    "day to minute": _DAY | _HOUR | _MINUTE,
    "day to second": _DAY | _HOUR | _MINUTE | _SECOND,
    "hour to minute": _HOUR | _MINUTE,
    "hour to second": _HOUR | _MINUTE | _SECOND,
    "minute to second": _MINUTE | _SECOND,
}
_FIELD_NAMES = {mask: name for name, mask in INTERVAL_FIELDS.items()}


def interval_fields(typmod: int) -> str:
    """Return what follows the word ``interval`` for a typmod >= 0, e.g. `` day to second(3)``."""
    mask, precision = (typmod >> 16) & 0x7FFF, typmod & 0xFFFF
    fields = "" if mask == INTERVAL_FULL_RANGE else " " + _FIELD_NAMES.get(mask, "")
    return fields.rstrip() + (f"({precision})" if precision != INTERVAL_FULL_PRECISION else "")


def stored_type(oid: int, typmod: int | None = None) -> str:
    """Return how a stored text names a type, so that it means the same when the type is renamed.

    integer[]  ->  integer[]        a user's type with oid 16400  ->  pg_catalog."#16400"
    """
    if oid == 0 or is_fact(oid):
        return format_type(oid, typmod)
    element = element_of(oid)
    return f'pg_catalog."#{element or oid}"' + ("[]" if element else "")
