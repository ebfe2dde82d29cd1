"""The one type of several expressions (manual 10.5): UNION, CASE, VALUES, ARRAY[], COALESCE, IN, both sides of USING.

    int4, numeric, unknown   ->   numeric        the category's preferred type, or the one the others can become implicitly
    int4, text               ->   42804          categories differ

Literals without a type take the others' type; where all are such it is text.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.base.errors import SqlError
from planner.conversion.casts import coerce_type
from planner.conversion.env import CoerceEnv
from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import can_coerce, common_or_offender
from planner.query import Expr
from planner.query.location import location
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import format_type


def select_common_type(exprs: Sequence[Expr], construct: str) -> int:
    """Return the oid that all of ``exprs`` are to have.

    ``construct`` is PostgreSQL's word for the place: CASE, UNION, VALUES, ARRAY, COALESCE, GREATEST, IN,
    JOIN/USING ... Raises 42804 ``<construct> types a and b cannot be matched`` at the offending one.
    """
    oid, offender = common_or_offender(expr.type.oid for expr in exprs)
    if oid:
        return oid
    before = common_or_offender(expr.type.oid for expr in exprs[:offender])[0]
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
