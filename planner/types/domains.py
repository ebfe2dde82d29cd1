"""Which type is under a domain, and types without their domains.

    CREATE DOMAIN price AS numeric(10,2)     base_type(price)  = numeric(10,2)      plain_type(price)   = numeric(10,2)
    CREATE DOMAIN fee   AS price             base_type(fee)    = numeric(10,2)      plain_type(fee[])   = numeric(10,2)[]
    CREATE DOMAIN bag   AS price[]           base_type(bag)    = price[]            plain_type(bag)     = numeric(10,2)[]

What a domain is over never changes, so it belongs to its oid like all of a type's structure. While a
statement is bound its expressions have domains as PostgreSQL's have; executors see plain types alone
(``planner.rules.plain``), and a column's ``ColumnDef.type`` is plain, too. What a domain demands of values is
in the catalog: ``planner.conversion.domain_checks``.
"""

from __future__ import annotations

from planner.base.errors import Span, SqlError, not_supported
from planner.types import SqlType
from planner.types.facts import format_type

_BASES: dict[int, SqlType] = {}
"""Domain -> the type under all domains that it is made of."""
_PLAIN: dict[int, SqlType] = {}
"""Domain, or array of one -> the type without domains."""


def know_domain(oid: int, array_oid: int, base: SqlType, plain_array: int) -> None:
    """Say that ``oid`` is a domain over ``base``, which is known if it is a domain itself.

    ``plain_array``: the array type over its plain type; 0 where the domain is over an array: there are no
    arrays of those.
    """
    _BASES[oid] = base_type(base)
    _PLAIN[oid] = plain = plain_type(base)
    if plain_array:
        _PLAIN[array_oid] = SqlType(plain_array, plain.typmod)


def forget_domain(oid: int) -> None:
    """Take back what ``know_domain`` was told of a type: a domain, or an array of one."""
    _BASES.pop(oid, None)
    _PLAIN.pop(oid, None)


def any_domains() -> bool:
    """Tell whether this server knows a domain at all."""
    return bool(_BASES)


def is_domain(oid: int) -> bool:
    """Tell whether a type is a domain."""
    return oid in _BASES


def base_type(type_: SqlType) -> SqlType:
    """Return the type under a domain, with its typmod; any other type as it is (getBaseTypeAndTypmod)."""
    return _BASES.get(type_.oid, type_)


def base_oid(oid: int) -> int:
    """Return the oid of the type under a domain, and of any other type (getBaseType)."""
    found = _BASES.get(oid)
    return oid if found is None else found.oid


def plain_type(type_: SqlType) -> SqlType:
    """Return a type without domains: in its place, or in that of its elements, stands what they are over."""
    return _PLAIN.get(type_.oid, type_)


def names_domain(oid: int) -> bool:
    """Tell whether a type is a domain or an array of one."""
    return oid in _PLAIN


def domain_named(type_: SqlType) -> int:
    """Return what ``ColumnDef.domain`` is for a column that was declared so: the oid, 0 for a plain type."""
    return type_.oid if type_.oid in _PLAIN else 0


def no_array_type(oid: int, span: Span | None = None) -> SqlError:
    """Return the error for a type without an array type: 42704, 0A000 for a domain over an array."""
    if is_domain(oid):
        return not_supported("an array of a domain over an array", span=span)
    return SqlError("42704", f"could not find array type for data type {format_type(oid)}", span=span)
