"""Subscripts: of arrays and other values of several parts, of jsonb and of hstore.

    x[1]     x[2:3]        elements and slices of arrays, coordinates of geometric types
    j['a'][1]              jsonb: j -> 'a' #> ARRAY['1']
    h['a']                 hstore: h -> 'a'

What is assigned to a part takes the same subscripts (``planner.bind.change.assign_part``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.expr import bind_expr
from planner.bind.scope import Scope
from planner.conversion.casts import coerce_type, try_coerce
from planner.conversion.pathways import CastContext
from planner.conversion.resolve import make_operator
from planner.facts import CHAR, HSTORE, INT2VECTOR, INT4, JSONB, NAME, OIDVECTOR, TEXT, UNKNOWN, facts
from planner.query import (
    Aggregate,
    ArrayExpr,
    Const,
    Expr,
    GroupingFunc,
    OpExpr,
    RelabelType,
    SubLink,
    Subscript,
    WindowFunc,
)
from planner.query.walk import walk
from planner.types import SqlType
from planner.types.domains import base_type, is_domain
from planner.types.facts import coordinates_of, element_of, format_type


def subscript(scope: Scope, expr: Expr, steps: Sequence[ast.SubscriptStep], span: Span | None) -> Expr:
    """Return what subscripts read of a value. Raises SqlError 42804, 0A000, 54000."""
    if is_domain(expr.type.oid):
        under = base_type(expr.type)
        expr = RelabelType(arg=expr, type=under, span=expr.span)
    oid = expr.type.oid
    if oid == JSONB:
        return _jsonb_subscript(scope, expr, steps, span)
    if oid == HSTORE:
        return _hstore_subscript(scope, expr, steps, span)
    element, indexes, is_slice = subscripts_of(scope, oid, steps, expr.span)
    if is_slice and coordinates_of(oid)[0]:
        raise SqlError("0A000", "slices of fixed-length arrays not implemented")
    if is_slice and oid in (INT2VECTOR, OIDVECTOR):  # a part of one is an array as others
        oid = facts().types[element].array
        expr = RelabelType(arg=expr, type=SqlType(oid), span=expr.span)
    result = SqlType(oid, expr.type.typmod) if is_slice else SqlType(element, expr.type.typmod)
    return Subscript(type=result, arg=expr, indexes=indexes, is_slice=is_slice, span=span)


def subscripts_of(
    scope: Scope, oid: int, steps: Sequence[ast.SubscriptStep], span: Span | None
) -> tuple[int, tuple[tuple[Expr | None, Expr | None], ...], bool]:
    """Bind the subscripts of an array: (element type, (lower, upper) per dimension, whether it is a slice).

    Raises SqlError 42804 for a type that has no subscripts and for subscripts that are no integers, 54000 for too many.
    """
    element = element_of(oid) or coordinates_of(oid)[0]
    if oid == NAME and len(steps) == 1 and not steps[0].is_slice:
        element = CHAR
    if not element and oid not in (INT2VECTOR, OIDVECTOR):
        raise SqlError(
            "42804", f"cannot subscript type {format_type(oid)} because it does not support subscripting", span=span
        )  # fmt: skip
    if len(steps) > 6:
        raise SqlError("54000", f"number of array dimensions ({len(steps)}) exceeds the maximum allowed (6)")
    is_slice = any(step.is_slice for step in steps)
    indexes: list[tuple[Expr | None, Expr | None]] = []
    for step in steps:
        lower = _array_index(scope, step.lower)
        upper = _array_index(scope, step.upper)
        if is_slice and not step.is_slice:  # beside a slice a single subscript is one from 1 on
            lower = Const(type=SqlType(INT4), value=1)
        indexes.append((lower, upper))
    return element, tuple(indexes), is_slice


def _array_index(scope: Scope, node: ast.Expression | None) -> Expr | None:
    if node is None:
        return None
    index = bind_expr(scope, node)
    coerced = try_coerce(index, SqlType(INT4), CastContext.ASSIGNMENT, scope.context.env)
    if coerced is None:
        raise SqlError("42804", "array subscript must have type integer", span=index.span)
    return coerced


_NUMBER = re.compile(r"\s*[+-]?\d")


def jsonb_keys(scope: Scope, steps: Sequence[ast.SubscriptStep]) -> list[Expr]:
    """Bind the subscripts of a jsonb: each is an integer or a text. Raises SqlError 42804."""
    env = scope.context.env
    keys = []
    for step in steps:
        if step.is_slice or step.upper is None:
            at = step.upper or step.lower
            raise SqlError(
                "42804", "jsonb subscript does not support slices", span=step.span if at is None else at.span
            )
        index = bind_expr(scope, step.upper)
        if index.type.oid == UNKNOWN:
            index = coerce_type(index, SqlType(TEXT), CastContext.IMPLICIT, env)
        elif index.type.oid not in (INT4, TEXT):
            wanted = try_coerce(index, SqlType(INT4), CastContext.IMPLICIT, env) or try_coerce(
                index, SqlType(TEXT), CastContext.IMPLICIT, env
            )
            if wanted is None:
                raise SqlError(
                    "42804",
                    f"subscript type {format_type(index.type.oid)} is not supported",
                    hint="jsonb subscript must be coercible to either integer or text.",
                    span=index.span,
                )
            index = wanted
        keys.append(index)
    return keys


def _jsonb_subscript(scope: Scope, expr: Expr, steps: Sequence[ast.SubscriptStep], span: Span | None) -> Expr:
    """``j['a'][1]`` reads as ``j -> 'a' #> ARRAY['1']``: what looks like a number finds elements of arrays
    and keys of objects.
    """
    env = scope.context.env
    keys = jsonb_keys(scope, steps)
    for count, index in enumerate(keys, 1):
        if isinstance(index, Const) and isinstance(index.value, str) and not _NUMBER.match(index.value):
            expr = _as_written(make_operator("->", expr, index, env, span), keys[:count])
            continue
        if isinstance(index, Const) and index.value is not None:
            text: Expr = Const(type=SqlType(TEXT), value=str(index.value), span=index.span)
        else:
            text = coerce_type(index, SqlType(TEXT), CastContext.EXPLICIT, env)
        path = ArrayExpr(type=SqlType(facts().types[TEXT].array), elements=(text,))
        expr = _as_written(make_operator("#>", expr, path, env, span), keys[:count])
    return expr


def _as_written(expr: Expr, keys: Sequence[Expr]) -> Expr:
    """Return an operator that definitions show as subscripts; not with keys that are more than plain
    expressions: they stay in one place.
    """
    if isinstance(expr, OpExpr) and not any(isinstance(item, _WHOLE) for key in keys for item in walk(key)):
        return replace(expr, keys=tuple(keys))
    return expr


_WHOLE = (SubLink, Aggregate, GroupingFunc, WindowFunc)


def hstore_key(scope: Scope, steps: Sequence[ast.SubscriptStep]) -> Expr:
    """Bind the subscript of an hstore, a text. Raises SqlError 0A000, 42804."""
    if len(steps) != 1 or steps[0].is_slice or steps[0].upper is None:
        raise SqlError("0A000", "hstore allows only one subscript")
    index = bind_expr(scope, steps[0].upper)
    key = try_coerce(index, SqlType(TEXT), CastContext.ASSIGNMENT, scope.context.env)
    if key is None:
        raise SqlError("42804", "hstore subscript must have type text", span=index.span)
    return key


def _hstore_subscript(
    scope: Scope, expr: Expr, steps: Sequence[ast.SubscriptStep], span: Span | None
) -> Expr:
    """``h['a']`` reads as ``h -> 'a'``, wherever its extension is."""
    env = replace(scope.context.env, extensions=("hstore",))
    key = hstore_key(scope, steps)
    return _as_written(make_operator("->", expr, key, env, span), (key,))
