"""TABLESAMPLE: a method by name, and its arguments.

    FROM t TABLESAMPLE BERNOULLI (10) REPEATABLE (1)      Sample(bernoulli, SampleKey(10::real, 1::double precision))

Arguments see outer queries, and nothing of the FROM that they stand in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from planner import ast
from planner.base.errors import SqlError
from planner.bind.expression.expr import bind_expr
from planner.bind.scope import Scope
from planner.conversion.casts import coerce_to_specific
from planner.facts import FLOAT4, FLOAT8, INT8
from planner.query import Expr, FuncExpr, QueryBase, Sample, SampleKey
from planner.query.location import location
from planner.query.sampling import METHODS
from planner.query.walk import children
from planner.types import SqlType

_SCHEMA: Final = "pg_catalog"


def refused_sample(node: ast.TableRef) -> SqlError:
    """Return the error for a sample of what is neither a table nor a materialized view."""
    return SqlError(
        "0A000",
        "TABLESAMPLE clause can only be applied to tables and materialized views",
        span=node.span,
    )


def bind_sample(scope: Scope, node: ast.TableSample) -> Sample:
    """Bind a TABLESAMPLE clause.

    Raises SqlError 42704 for an unknown method, 2202H for a number of arguments that it does not take, 42804.
    """
    *schema, name = node.method
    method = next((known for known in METHODS if known == name and schema in ([], [_SCHEMA])), None)
    if method is None:
        raise SqlError("42704", f"tablesample method {'.'.join(node.method)} does not exist", span=node.span)
    if len(node.args) != 1:
        raise SqlError(
            "2202H", f"tablesample method {name} requires 1 argument, not {len(node.args)}", span=node.span
        )
    before = scope.lateral_active, scope.clause
    scope.lateral_active, scope.clause = False, "TABLESAMPLE"
    try:
        percent = _argument(scope, node.args[0], FLOAT4, "TABLESAMPLE")
        seed = None if node.seed is None else _argument(scope, node.seed, FLOAT8, "REPEATABLE")
    finally:
        scope.lateral_active, scope.clause = before
    return Sample(
        method=method, key=SampleKey(type=SqlType(INT8), percent=percent, seed=seed, span=node.span)
    )


def _own(expr: Expr) -> Iterator[Any]:
    """Yield what an argument is made of, sub-selects apart."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(child for child in children(node) if not isinstance(child, QueryBase))


def _argument(scope: Scope, node: ast.Expression, oid: int, word: str) -> Expr:
    expr = coerce_to_specific(bind_expr(scope, node), oid, word, scope.context.env)
    if any(isinstance(node, FuncExpr) and node.returns_set for node in _own(expr)):
        raise SqlError("42804", f"argument of {word} must not return a set", span=location(expr))
    return expr
