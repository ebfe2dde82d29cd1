"""The one type of several expressions (manual 10.5): UNION, CASE, VALUES, ARRAY[], COALESCE, IN, both sides of USING.

    int4, numeric, unknown   ->   numeric        the category's preferred type, or the one the others can become implicitly
    int4, text               ->   42804          categories differ

Literals without a type take the others' type; where all are such it is text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from planner.base.errors import SqlError
from planner.conversion.casts import CastContext, CoerceEnv, can_coerce, coerce_type
from planner.facts import TEXT, UNKNOWN
from planner.query import Expr
from planner.query.location import location
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import category, format_type, is_preferred


@functools.lru_cache(maxsize=16384)
def common_type(types: tuple[int, ...]) -> int:
    """Return the type that ``types`` resolve to (UNION, CASE, VALUES ...), or 0 across categories."""
    return _common(types)[0]


def _common(types: Iterable[int]) -> tuple[int, int]:
    """Return (type, index of the offending entry or -1)."""
    types = list(types)
    if types and types[0] != UNKNOWN and types.count(types[0]) == len(types):
        return types[0], -1  # a domain stays one only where all are of it
    chosen = UNKNOWN
    for index, oid in enumerate(map(base_oid, types)):
        if oid in (UNKNOWN, chosen):
            continue
        if chosen == UNKNOWN:
            chosen = oid
        elif category(oid) != category(chosen):
            return 0, index
        elif (
            not is_preferred(chosen)
            and can_coerce(chosen, oid, CastContext.IMPLICIT)
            and not can_coerce(oid, chosen, CastContext.IMPLICIT)
        ):
            chosen = oid
    return (TEXT if chosen == UNKNOWN else chosen), -1


def select_common_type(exprs: Sequence[Expr], construct: str) -> int:
    """Return the oid that all of ``exprs`` are to have.

    ``construct`` is PostgreSQL's word for the place: CASE, UNION, VALUES, ARRAY, COALESCE, GREATEST, IN,
    JOIN/USING ... Raises 42804 ``<construct> types a and b cannot be matched`` at the offending one.
    """
    oid, offender = _common(expr.type.oid for expr in exprs)
    if oid:
        return oid
    before = _common(expr.type.oid for expr in exprs[:offender])[0]
    raise SqlError(
        "42804",
        f"{construct} types {format_type(base_oid(before))} and {format_type(base_oid(exprs[offender].type.oid))} "
        "cannot be matched",
        span=location(exprs[offender]),
    )


def select_common_typmod(exprs: Sequence[Expr], oid: int) -> int:
    """Return the typmod shared by all ``exprs`` that already are of type ``oid``, else -1."""
    first = exprs[0].type
    return first.typmod if all(e.type == (oid, first.typmod) for e in exprs) else -1


def coerce_to_common(expr: Expr, oid: int, construct: str, env: CoerceEnv) -> Expr:
    """Convert to a type found by ``select_common_type``; 42846 when the chosen type is out of reach."""
    if expr.type.oid == oid:
        return expr
    if not can_coerce(expr.type.oid, oid, CastContext.IMPLICIT):
        raise SqlError(
            "42846",
            f"{construct} could not convert type {format_type(expr.type.oid)} to {format_type(oid)}",
            span=location(expr),
        )
    return coerce_type(expr, SqlType(oid), CastContext.IMPLICIT, env)


def coerce_all_to_common(
    exprs: Sequence[Expr], construct: str, env: CoerceEnv
) -> tuple[tuple[Expr, ...], SqlType]:
    """Convert ``exprs`` to their common type; returns them and the type (typmod kept if all share it)."""
    oid = select_common_type(exprs, construct)
    coerced = tuple(coerce_to_common(expr, oid, construct, env) for expr in exprs)
    return coerced, SqlType(oid, select_common_typmod(coerced, oid))
