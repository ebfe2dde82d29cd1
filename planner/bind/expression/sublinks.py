"""Sub-selects as expressions: EXISTS, scalar, ARRAY, IN / ANY / ALL, row comparison.

The body is one query level further in; the columns it takes from outside make it correlated. Comparisons are
resolved here, column by column, over placeholders for the body's output columns, so that executors get
the procs and conversions and need no type rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.columns import expand_stars
from planner.bind.expression.compare import comparison_kind, ordering_procs
from planner.bind.expression.expr import bind_expr, operator_name, register
from planner.bind.recursion import QUERY
from planner.bind.scope import Scope
from planner.conversion.composite import fields_made
from planner.conversion.resolve import make_operator
from planner.facts import BOOL, facts
from planner.query import Expr, OpExpr, QueryExpr, SubLink, SubLinkKind, Var
from planner.types import SqlType
from planner.types.domains import no_array_type
from planner.types.facts import array_of, element_of, format_type

_BOOLEAN = SqlType(BOOL)

# Clauses that admit no sub-select, with PostgreSQL's words.
_FORBIDDEN = {
    "CHECK": "cannot use subquery in check constraint",
    "TRIGGER WHEN": "cannot use subquery in trigger WHEN condition",
    "PARAMETER DEFAULT": "cannot use subquery in DEFAULT expression",
    "DEFAULT": "cannot use subquery in DEFAULT expression",
    "PARTITION BY": "cannot use subquery in partition key expression",
    "PARTITION BOUND": "cannot use subquery in partition bound",
    "INDEX": "cannot use subquery in index expression",
    "STATISTICS": "cannot use subquery in statistics expression",
    "INDEX WHERE": "cannot use subquery in index predicate",
    "TRANSFORM": "cannot use subquery in transform expression",
    "EXECUTE": "cannot use subquery in EXECUTE parameter",
    "CALL": "cannot use subquery in CALL argument",
    "COPY WHERE": "cannot use subquery in COPY FROM WHERE condition",
    "GENERATED": "cannot use subquery in column generation expression",
}


def _body(scope: Scope, node: ast.SubLink) -> QueryExpr:
    refusal = _FORBIDDEN.get(scope.clause)
    if refusal is not None:
        raise SqlError("0A000", refusal, span=node.span)
    return QUERY.call(scope.context, node.query, scope)


def _sublink(scope: Scope, node: ast.SubLink) -> Expr:
    if node.kind in ("any", "all"):
        return _quantified(scope, node)
    query = _body(scope, node)
    if node.kind == "exists":
        return SubLink(type=_BOOLEAN, kind=SubLinkKind.EXISTS, query=query, span=node.span)
    if len(query.columns) != 1:
        raise SqlError("42601", "subquery must return only one column", span=node.span)
    type_ = query.columns[0].type
    if node.kind == "scalar":
        return SubLink(type=type_, kind=SubLinkKind.SCALAR, query=query, span=node.span)
    oid = array_of(type_.oid)
    if not oid and element_of(type_.oid):
        oid = type_.oid
    if not oid:
        raise no_array_type(type_.oid, node.span)
    return SubLink(type=SqlType(oid, type_.typmod), kind=SubLinkKind.ARRAY, query=query, span=node.span)


def _quantified(scope: Scope, node: ast.SubLink) -> Expr:
    if node.test is None:
        raise AssertionError("ANY or ALL compares nothing")
    name = operator_name(node.op, node.span) if node.op else "="
    if isinstance(node.test, ast.Row):
        lefts: Sequence[Expr] = expand_stars(scope, node.test.items)
    else:
        left = bind_expr(scope, node.test)
        lefts = fields_made(left) or (left,)
    query = _body(scope, node)
    kind = SubLinkKind.ANY if node.kind == "any" else SubLinkKind.ALL
    return _compared(scope, kind, name, lefts, query, node.span)


def bind_row_sublink(scope: Scope, left: ast.Row, name: str, right: ast.SubLink, span: Span | None) -> Expr:
    """Bind ``(a, b) op (SELECT x, y ...)``."""
    lefts = expand_stars(scope, left.items)
    return _compared(scope, SubLinkKind.ROW, name, lefts, _body(scope, right), span)


def _compared(
    scope: Scope,
    kind: SubLinkKind,
    name: str,
    lefts: Sequence[Expr],
    query: QueryExpr,
    span: Span | None,
) -> SubLink:
    columns = query.columns
    if len(lefts) < len(columns):
        raise SqlError("42601", "subquery has too many columns", span=span)
    if len(lefts) > len(columns):
        raise SqlError("42601", "subquery has too few columns", span=span)
    env = scope.context.env
    pairs: list[OpExpr] = []
    for position, (left, column) in enumerate(zip(lefts, columns, strict=True), 1):
        right = Var(type=column.type, range=-1, attnum=position, name=column.name)
        pair = make_operator(name, left, right, env, span)
        if pair.type.oid != BOOL:
            raise SqlError(
                "42804",
                f"row comparison operator must yield type boolean, not type {format_type(pair.type.oid)}",
                span=span,
            )
        if facts().procs[pair.proc].returns_set:
            raise SqlError("42804", "row comparison operator must not return a set", span=span)
        pairs.append(pair)
    procs = tuple([pair.proc for pair in pairs])
    row_kind: Literal["", "<", "<=", ">", ">="] = ""
    join_or = False
    eq_procs: tuple[int, ...] = ()
    if len(pairs) > 1:
        meaning, families = comparison_kind(name, [pair.op for pair in pairs], span)
        if meaning == "<>":
            join_or = True
        elif meaning != "=":
            row_kind = meaning
            procs, eq_procs = ordering_procs(pairs, families)
    return SubLink(
        type=_BOOLEAN,
        kind=kind,
        query=query,
        lefts=tuple([pair.args[0] for pair in pairs]),
        casts=tuple([pair.args[1] for pair in pairs]),
        procs=procs,
        ops=tuple([pair.op for pair in pairs]),
        join_or=join_or,
        row_kind=row_kind,
        eq_procs=eq_procs,
        span=span,
    )


register(ast.SubLink, _sublink)
