"""Operators and comparisons: of scalars, of rows, IN lists, BETWEEN, IS DISTINCT FROM, NULLIF.

(a, b) = (c, d)     a = c AND b = d          (<> joins by OR)
(a, b) < (c, d)     RowCompare: lexicographic
x IN (1, 2, y)      x = ANY (ARRAY[1, 2]) OR x = y       as PostgreSQL splits it
x BETWEEN a AND b   x >= a AND x <= b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from pgwire.give_way import paced
from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.define.extension_operators import bind_operator
from planner.bind.expression.columns import expand_stars
from planner.bind.expression.expr import bind_expr, operator_name, register
from planner.bind.scope import Scope
from planner.conversion.casts import coerce_to_boolean
from planner.conversion.common_types import coerce_to_common
from planner.conversion.composite import compose, fields_made, is_composite
from planner.conversion.order import family_operator, operator_strategies
from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import can_coerce, common_type
from planner.conversion.resolve import make_operator, make_scalar_array_op
from planner.facts import BOOL, RECORD, UNKNOWN, facts
from planner.query import (
    ArrayExpr,
    BoolExpr,
    Const,
    DistinctExpr,
    Expr,
    NullIf,
    NullTest,
    OpExpr,
    RowCompare,
    RowExpr,
)
from planner.query.exprs import reads_own_columns
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import array_of, format_type

_BOOLEAN = SqlType(BOOL)
Comparison: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
_STRATEGIES: Mapping[int, Comparison] = {1: "<", 2: "<=", 3: "=", 4: ">=", 5: ">"}


def _operator(scope: Scope, node: ast.Operator) -> Expr:
    left_node, right_node = node.left, node.right
    tested = _null_test_of(scope, node)
    if tested is not None:
        return NullTest(type=_BOOLEAN, arg=bind_expr(scope, tested), span=node.span)
    if left_node is None:
        return bind_operator(scope, node.name, None, bind_expr(scope, right_node), node.span)
    if isinstance(left_node, ast.Row):
        name = operator_name(node.name, node.span)
        if isinstance(right_node, ast.SubLink) and right_node.kind == "scalar":
            from planner.bind.expression.sublinks import bind_row_sublink  # which compare rows, too

            return bind_row_sublink(scope, left_node, name, right_node, node.span)
        if isinstance(right_node, ast.Row):
            lefts = expand_stars(scope, left_node.items)
            rights = expand_stars(scope, right_node.items)
            return row_comparison(scope, name, lefts, rights, node.span)
    if isinstance(left_node, ast.Operator):
        # a long chain a + b + c leans left: fold it without nesting calls
        chain = [node]
        inner: ast.Expression = left_node
        while (
            isinstance(inner, ast.Operator)
            and inner.left is not None
            and not isinstance(inner.left, ast.Row)
            and _null_test_of(scope, inner) is None
        ):
            chain.append(inner)
            inner = inner.left
        expr = bind_expr(scope, inner)
        for link in reversed(chain):
            right = bind_expr(scope, link.right)
            expr = bind_operator(scope, link.name, expr, right, link.span)
        return expr
    left = bind_expr(scope, left_node)
    right = bind_expr(scope, right_node)
    return bind_operator(scope, node.name, left, right, node.span)


def _null_test_of(scope: Scope, node: ast.Operator) -> ast.Expression | None:
    """Return what an equality with NULL tests under ``transform_null_equals``; None for any other operator."""
    if not scope.context.env.settings.null_equals or node.name != ("=",) or node.left is None:
        return None
    if isinstance(node.left, ast.Constant) and node.left.kind == "null":
        return node.right
    return node.left if isinstance(node.right, ast.Constant) and node.right.kind == "null" else None


def _and(args: Sequence[Expr], span: Span | None, kind: Literal["and", "or"] = "and") -> Expr:
    if len(args) == 1:
        return args[0]
    return BoolExpr(type=_BOOLEAN, kind=kind, args=tuple(args), span=span)


def row_comparison(
    scope: Scope, name: str, lefts: Sequence[Expr], rights: Sequence[Expr], span: Span | None
) -> Expr:
    """Compare rows field by field. Raises SqlError 42601 (widths differ), 0A000 and 42804 as PostgreSQL."""
    if len(lefts) != len(rights):
        raise SqlError("42601", "unequal number of entries in row expressions", span=span)
    if not lefts:
        raise SqlError("0A000", "cannot compare rows of zero length", span=span)
    env = scope.context.env
    pairs: list[OpExpr] = []
    for left, right in zip(lefts, rights, strict=True):
        pair = make_operator(name, left, right, env, span)
        if pair.type.oid != BOOL:
            raise SqlError(
                "42804",
                f"row comparison operator must yield type boolean, not type {format_type(pair.type.oid)}",
                span=span,
            )
        pairs.append(pair)
    if len(pairs) == 1:
        return pairs[0]
    kind, families = comparison_kind(name, [pair.op for pair in pairs], span)
    if kind == "=":
        return _and(pairs, span)
    if kind == "<>":
        return _and(pairs, span, "or")
    lts, eqs = ordering_procs(pairs, families)
    return RowCompare(
        type=_BOOLEAN,
        kind=kind,
        lefts=tuple([pair.args[0] for pair in pairs]),
        rights=tuple([pair.args[1] for pair in pairs]),
        lt_procs=lts,
        eq_procs=eqs,
        span=span,
    )


def comparison_kind(name: str, ops: Sequence[int], span: Span | None) -> tuple[Comparison, list[int]]:
    """Return what a row operator means (= <> < <= > >=) and each column's btree family.

    Raises SqlError 0A000 when the operators are not members of btree families with one common meaning.
    """
    if name == "<>":
        return "<>", []
    candidates: set[int] | None = None
    memberships = [{strategy: family for family, strategy in reversed(operator_strategies(op))} for op in ops]
    for membership in memberships:
        candidates = set(membership) if candidates is None else candidates & set(membership)
    if not candidates:
        if all(not membership for membership in memberships) and name == "!=":
            return "<>", []
        raise SqlError(
            "0A000",
            f"could not determine interpretation of row comparison operator {name}",
            hint="Row comparison operators must be associated with btree operator families.",
            span=span,
        )
    strategy = min(candidates)
    return _STRATEGIES[strategy], [membership[strategy] for membership in memberships]


def ordering_procs(
    pairs: Sequence[OpExpr], families: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the (<, =) procs of each column of a lexicographic comparison."""
    lts, eqs = [], []
    for pair, family in zip(pairs, families, strict=True):
        op = facts().operators[pair.op]
        lt = family_operator(family, op.left, op.right, 1)
        eq = family_operator(family, op.left, op.right, 3)
        if lt is None or eq is None:
            raise AssertionError(f"incomplete operator family {family}")
        lts.append(lt.proc)
        eqs.append(eq.proc)
    return tuple(lts), tuple(eqs)


# --- IN -----------------------------------------------------------------------------------------


def _in(scope: Scope, node: ast.In) -> Expr:
    name = "<>" if node.negated else "="
    env = scope.context.env
    if isinstance(node.left, ast.Row):
        lefts = expand_stars(scope, node.left.items)
        comparisons: list[Expr] = []
        for item in node.items:
            if isinstance(item, ast.Row):
                rights: Sequence[Expr] = expand_stars(scope, item.items)
                comparisons.append(row_comparison(scope, name, lefts, rights, node.span))
            else:
                row = RowExpr(
                    type=SqlType(RECORD),
                    fields=lefts,
                    names=tuple([f"f{i}" for i in range(1, len(lefts) + 1)]),
                    span=node.left.span,
                )
                comparisons.append(_in_one(scope, name, row, bind_expr(scope, item), node.span))
        return _and(comparisons, node.span, "and" if node.negated else "or")
    left = bind_expr(scope, node.left)
    plain: list[Expr] = []
    with_vars: list[Expr] = []
    values: Sequence[Expr] = expand_stars(scope, node.items)
    for value in paced(values):
        (with_vars if reads_own_columns(value) else plain).append(value)
    parts: list[Expr] = []
    if len(plain) > 1:
        types = (left.type.oid, *[item.type.oid for item in plain])
        scalar = common_type(types)
        array = array_of(scalar) if scalar and scalar != RECORD else 0
        if array and all(
            oid in (scalar, UNKNOWN) or can_coerce(oid, scalar, CastContext.IMPLICIT) for oid in set(types)
        ):
            items = tuple([coerce_to_common(item, scalar, "IN", env) for item in paced(plain)])
            right = ArrayExpr(type=SqlType(array), elements=items)
            parts.append(make_scalar_array_op(name, left, right, not node.negated, env, node.span))
            values = with_vars
    for value in values:
        comparison = _in_one(scope, name, left, value, node.span)
        parts.append(coerce_to_boolean(comparison, "IN", env))
    return _and(parts, node.span, "and" if node.negated else "or")


def _in_one(scope: Scope, name: str, left: Expr, right: Expr, span: Span | None) -> Expr:
    """Compare with one item of a list: rows that are made here column by column, whether they are cast or not."""
    lefts, rights = fields_made(left), fields_made(right)
    if lefts is None or rights is None:
        return make_operator(name, left, right, scope.context.env, span)
    return row_comparison(scope, name, lefts, rights, span)


# --- BETWEEN, DISTINCT, NULLIF ------------------------------------------------------------------


def _between(scope: Scope, node: ast.Between) -> Expr:
    env, span = scope.context.env, node.span

    def bound(name: str, arg: ast.Expression, limit: ast.Expression) -> Expr:
        operator = ast.Operator(name=(name,), left=arg, right=limit, span=span)
        return coerce_to_boolean(bind_expr(scope, operator), "BETWEEN", env)

    def inside(low: ast.Expression, high: ast.Expression) -> Expr:
        if node.negated:
            return _and([bound("<", node.arg, low), bound(">", node.arg, high)], span, "or")
        return _and([bound(">=", node.arg, low), bound("<=", node.arg, high)], span)

    one = inside(node.low, node.high)
    if not node.symmetric:
        return one
    other = inside(node.high, node.low)
    return _and([one, other], span, "and" if node.negated else "or")


def _distinct(scope: Scope, node: ast.Distinct) -> Expr:
    if isinstance(node.left, ast.Row) and isinstance(node.right, ast.Row):
        return _distinct_rows(
            scope, node, expand_stars(scope, node.left.items), expand_stars(scope, node.right.items)
        )
    for side, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(side, ast.Constant) and side.kind == "null":
            arg = bind_expr(scope, other)
            scope.context.env.params.left_open(arg)
            row = arg.type.oid == RECORD or is_composite(arg.type.oid)
            return NullTest(type=_BOOLEAN, arg=arg, negated=not node.negated, whole=row, span=node.span)
    left, right = bind_expr(scope, node.left), bind_expr(scope, node.right)
    lefts, rights = fields_made(left), fields_made(right)
    if lefts is not None and rights is not None:
        return _distinct_rows(scope, node, lefts, rights)
    return replace(_one_distinct(scope, left, right, node.span), negated=node.negated)


def _distinct_rows(scope: Scope, node: ast.Distinct, lefts: Sequence[Expr], rights: Sequence[Expr]) -> Expr:
    if len(lefts) != len(rights):
        raise SqlError("42601", "unequal number of entries in row expressions", span=node.span)
    parts = [_one_distinct(scope, left, right, node.span) for left, right in zip(lefts, rights, strict=True)]
    if not parts:
        whole: Expr = Const(type=_BOOLEAN, value=False, span=node.span)
    else:
        whole = _and(parts, node.span, "or")
    if node.negated:
        return BoolExpr(type=_BOOLEAN, kind="not", args=(whole,), span=node.span)
    return whole


def _one_distinct(scope: Scope, left: Expr, right: Expr, span: Span | None) -> DistinctExpr:
    op = make_operator("=", left, right, scope.context.env, span)
    if op.type.oid != BOOL:
        raise SqlError("42804", "IS DISTINCT FROM requires = operator to yield boolean", span=span)
    return DistinctExpr(type=_BOOLEAN, proc=op.proc, left=op.args[0], right=op.args[1], span=span)


def _null_if(scope: Scope, node: ast.NullIf) -> Expr:
    left, right = bind_expr(scope, node.left), bind_expr(scope, node.right)
    op = make_operator("=", left, right, scope.context.env, node.span)
    if op.type.oid != BOOL:
        raise SqlError("42804", "NULLIF requires = operator to yield boolean", span=node.span)
    first, second = op.args
    made = NullIf(type=first.type, proc=op.proc, left=first, right=second, span=node.span)
    row = None if first.type.oid != RECORD else scope.context.env.row_type(base_oid(left.type.oid))
    return made if row is None else compose(made, row, explicit=False, span=node.span)


register(ast.Operator, _operator)
register(ast.In, _in)
register(ast.Between, _between)
register(ast.Distinct, _distinct)
register(ast.NullIf, _null_if)
