"""Type names: from what was written to a SqlType, lengths and precisions checked.

    numeric(10,2)   pg_catalog.numeric, typmods 10, 2   ->  SqlType(1700, ((10 << 16) | 2) + 4)
    varchar(20)[]   pg_catalog.varchar, typmod 20, dims ->  SqlType(1015, 24)
    interval day to second(3)   typmods mask, 3         ->  SqlType(1186, mask << 16 | 3)

Built-in types live in ``pg_catalog``; where users' types are is the catalog's business (``BindContext.find_type``).
``format_type`` (``planner.types.facts``) is the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgwire.codecs.domain import VECTORS
from pgwire.codecs.users.ranges import MULTIRANGES, RANGES
from pgwire.voice import notice
from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.facts import (
    BIT,
    BPCHAR,
    INTERVAL,
    NUMERIC,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    VARBIT,
    VARCHAR,
    facts,
)
from planner.types import SqlType
from planner.types.domains import no_array_type, plain_type
from planner.types.facts import (
    FIRST_USER_OID,
    INTERVAL_FIELDS,
    INTERVAL_FULL_PRECISION,
    INTERVAL_FULL_RANGE,
    array_of,
    element_of,
    format_type,
    type_kind,
)

__all__ = ["check_column_type", "format_type", "resolve_type", "type_name_text"]

MAX_CHAR_LENGTH = 10_485_760
MAX_BIT_LENGTH = 83_886_080
MAX_NUMERIC_PRECISION, MIN_NUMERIC_SCALE, MAX_NUMERIC_SCALE = 1000, -1000, 1000
MAX_TIME_PRECISION = 6

# Types a column may have: the value domain of ``planner.types`` and arrays of it.
_STORABLE = frozenset(
    (16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 114, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184,
     1186, 1266, 600, 601, 602, 603, 604, 628, 718, 650, 774, 790, 829, 869, 1033, 3220, 3614, 3615, 4072, 5038, 5069, *RANGES, *MULTIRANGES, 1560, 1562, 1700, 2202, 2203, 2204, 2205, 2206, 2950, 2970, 3734, 3769, 3802, 4089, 4096, 4191)
)  # fmt: skip


def type_name_text(name: ast.TypeName) -> str:
    """Return the name as PostgreSQL's messages show it: dotted, ``[]`` for arrays."""
    return ".".join(name.names) + ("[]" if name.dims else "")


FindType = Callable[[str, str], int | None]
"""From schema ("": along the search path) and name to the oid of a type, None where there is none."""


def names_by_oid(names: Sequence[str]) -> bool:
    """Tell whether a type's name is the one that stored texts give it (``planner.types.facts.stored_type``)."""
    return names[-1].startswith("#") and names[-1][1:].isdigit() and names[0] == "pg_catalog"


def find_builtin(schema: str, name: str) -> int | None:
    """Return the oid of a built-in type. ``"#16400"`` is how stored texts name users' types."""
    if schema not in ("", "pg_catalog"):
        return None
    if names_by_oid((schema, name)) and int(name[1:]) in facts().types:
        return int(name[1:])
    fact = facts().types_by_name.get(name)
    return None if fact is None else fact.oid


def resolve_type(name: ast.TypeName, find: FindType = find_builtin) -> SqlType:
    """Return the type that ``name`` means; ``find`` knows the types there are.

    Raises SqlError 42704 (unknown type), 42601 and 22023 (bad modifiers), 0A000 (``%TYPE``, SETOF), each at
    the name's span.
    """
    if name.percent_type:
        raise not_supported("%TYPE", span=name.span)
    if name.setof:
        raise not_supported("SETOF", span=name.span)
    *schema, last = name.names
    try:
        found = find(schema[-1] if schema else "", last) if len(schema) < 2 else None
    except SqlError as error:
        error.span = error.span or name.span
        raise
    if found is None:
        raise SqlError("42704", f'type "{type_name_text(name)}" does not exist', span=name.span)
    oid = found
    typmod = _typmod(oid, name) if name.typmods else -1
    if name.dims:
        oid = oid if element_of(oid) and oid not in VECTORS else array_of(oid)
        if not oid:
            raise no_array_type(found, name.span)
    return SqlType(oid, typmod)


def check_column_type(column: str, type_: SqlType, span: Span | None = None) -> None:
    """Refuse types no column can have: 42P16 for pseudo-types, 0A000 for those outside the value domain."""
    fact = facts().types.get(type_.oid)
    if fact is not None and fact.kind == "p":
        raise SqlError("42P16", f'column "{column}" has pseudo-type {format_type(type_.oid)}')
    type_ = plain_type(type_)
    base = element_of(type_.oid) or type_.oid
    if base < FIRST_USER_OID and base not in _STORABLE and type_kind(base) != "c":
        raise not_supported(f"column type {format_type(type_.oid)}", span=span)


def _typmod(oid: int, name: ast.TypeName) -> int:
    base = element_of(oid) or oid
    if base not in _TYPMOD_IN:
        raise SqlError(
            "42601", f'type modifier is not allowed for type "{type_name_text(name)}"', span=name.span
        )
    values = [_modifier(expr, name.span) for expr in name.typmods]
    return _TYPMOD_IN[base](base, values, name.span)


def _modifier(expr: ast.Expression, span: Span | None) -> int:
    text: object = None
    if isinstance(expr, ast.Constant) and expr.kind in ("int", "float", "string"):
        text = expr.value
    elif isinstance(expr, ast.ColumnRef) and len(expr.names) == 1 and not expr.star:
        text = expr.names[0]
    if text is None:
        raise SqlError("42601", "type modifiers must be simple constants or identifiers", span=span)
    try:
        return int(str(text))
    except ValueError:
        raise SqlError("22P02", f'invalid input syntax for type integer: "{text}"', span=span) from None


def _invalid(message: str, span: Span | None) -> SqlError:
    return SqlError("22023", message, span=span)


def _char(oid: int, values: list[int], span: Span | None) -> int:
    word = "char" if oid == BPCHAR else "varchar"
    length = _one(values, span)
    if length < 1:
        raise _invalid(f"length for type {word} must be at least 1", span)
    if length > MAX_CHAR_LENGTH:
        raise _invalid(f"length for type {word} cannot exceed {MAX_CHAR_LENGTH}", span)
    return length + 4


def _bits(oid: int, values: list[int], span: Span | None) -> int:
    word = "bit" if oid == BIT else "varbit"
    length = _one(values, span)
    if length < 1:
        raise _invalid(f"length for type {word} must be at least 1", span)
    if length > MAX_BIT_LENGTH:
        raise _invalid(f"length for type {word} cannot exceed {MAX_BIT_LENGTH}", span)
    return length


def _one(values: list[int], span: Span | None) -> int:
    if len(values) != 1:
        raise _invalid("invalid type modifier", span)
    return values[0]


def _numeric(oid: int, values: list[int], span: Span | None) -> int:
    if len(values) not in (1, 2):
        raise _invalid("invalid NUMERIC type modifier", span)
    precision, scale = values[0], values[1] if len(values) == 2 else 0
    if not 1 <= precision <= MAX_NUMERIC_PRECISION:
        raise _invalid(f"NUMERIC precision {precision} must be between 1 and {MAX_NUMERIC_PRECISION}", span)
    if not MIN_NUMERIC_SCALE <= scale <= MAX_NUMERIC_SCALE:
        raise _invalid(
            f"NUMERIC scale {scale} must be between {MIN_NUMERIC_SCALE} and {MAX_NUMERIC_SCALE}", span
        )
    return ((precision << 16) | (scale & 0x7FF)) + 4


def _time(oid: int, values: list[int], span: Span | None) -> int:
    return time_precision(oid, _one(values, span), span)


def time_precision(oid: int, precision: int, span: Span | None) -> int:
    """Return the modifier of a time or timestamp with a precision; a WARNING says where it is less than was
    asked for. Raises SqlError 22023.
    """
    word = "TIMESTAMP" if oid in (TIMESTAMP, TIMESTAMPTZ) else "TIME"
    zone = " WITH TIME ZONE" if oid in (TIMESTAMPTZ, TIMETZ) else ""
    if precision < 0:
        raise _invalid(f"{word}({precision}){zone} precision must not be negative", span)
    return _reduced(precision, f"{word}({precision}){zone}")


def _reduced(precision: int, name: str) -> int:
    if precision <= MAX_TIME_PRECISION:
        return precision
    notice(
        f"{name} precision reduced to maximum allowed, {MAX_TIME_PRECISION}",
        severity="WARNING",
        sqlstate="22023",
    )
    return MAX_TIME_PRECISION


def _interval(oid: int, values: list[int], span: Span | None) -> int:
    mask = values[0]
    if mask != INTERVAL_FULL_RANGE and mask not in INTERVAL_FIELDS.values():
        raise _invalid("invalid INTERVAL type modifier", span)
    if len(values) == 1:
        if mask == INTERVAL_FULL_RANGE:
            return -1
        return (mask << 16) | INTERVAL_FULL_PRECISION
    if len(values) != 2:
        raise _invalid("invalid INTERVAL type modifier", span)
    if values[1] < 0:
        raise _invalid(f"INTERVAL({values[1]}) precision must not be negative", span)
    return (mask << 16) | _reduced(values[1], f"INTERVAL({values[1]})")


_TYPMOD_IN = {
    BPCHAR: _char,
    VARCHAR: _char,
    BIT: _bits,
    VARBIT: _bits,
    NUMERIC: _numeric,
    TIME: _time,
    TIMETZ: _time,
    TIMESTAMP: _time,
    TIMESTAMPTZ: _time,
    INTERVAL: _interval,
}
