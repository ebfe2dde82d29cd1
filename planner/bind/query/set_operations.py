"""UNION, INTERSECT, EXCEPT: two bound sides become one query of common column types.

    SELECT 1 UNION SELECT 2.5      both sides give numeric: the left one's target is converted where it stands
    VALUES (1) UNION ALL t         cells are converted
    (SELECT DISTINCT a ...) UNION  what looks at the unconverted values keeps them: a SELECT around it converts

Recursive items of WITH are combined here, too, after sides are bound that no other set operation has
(``planner.bind.query.with_``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.query.locking import clause_name
from planner.bind.scope import Scope
from planner.conversion.common_types import coerce_to_common, select_common_type
from planner.conversion.order import default_equality, find_equality
from planner.deparse.names import CONVERTED_NAME
from planner.facts import UNKNOWN
from planner.query import (
    Expr,
    OutputColumn,
    QueryExpr,
    RangeColumn,
    RangeRef,
    Select,
    SetOp,
    SubqueryRange,
    Target,
    Values,
    Var,
)
from planner.query.location import location
from planner.query.rewrite import shift_query
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import type_kind


def refuse_locking(node: ast.SetOp) -> None:
    """Raise 0A000 for a locking clause of a set operation or of one of its sides."""
    for part in (node, node.left, node.right):
        if part.locking:
            name = clause_name(part.locking[0].strength)
            raise SqlError("0A000", f"{name} is not allowed with UNION/INTERSECT/EXCEPT")


def combine(scope: Scope, node: ast.SetOp, left: QueryExpr, right: QueryExpr) -> SetOp:
    """Join two bound sides into a set operation of common column types.

    Raises SqlError 42601 for different widths, 42804 for types that do not match, 42883 for types without
    equality (except UNION ALL).
    """
    refuse_locking(node)
    word = node.op.upper()
    if len(left.columns) != len(right.columns):
        raise SqlError(
            "42601",
            f"each {word} query must have the same number of columns",
            span=_first_span(right) or node.right.span,
        )
    types: list[SqlType] = []
    for position in range(len(left.columns)):
        a, b = _column_expr(left, position), _column_expr(right, position)
        try:
            oid = select_common_type([a, b], word)
        except SqlError as error:
            error.span = error.span or _column_span(right, position)
            raise
        both = a.type.oid == b.type.oid == oid and a.type.typmod == b.type.typmod
        types.append(SqlType(oid, a.type.typmod if both else -1))
        if not (node.op == "union" and node.all):
            _check_equality(oid, left, position, scope)
    columns = tuple(
        [
            OutputColumn(name=column.name, type=type_)
            for column, type_ in zip(left.columns, types, strict=True)
        ]
    )
    return SetOp(
        columns=columns,
        op=node.op,
        all=node.all,
        left=coerce_output(left, types, word, scope),
        right=coerce_output(right, types, word, scope),
    )


def _check_equality(oid: int, left: QueryExpr, position: int, scope: Scope) -> None:
    if find_equality(oid) is None or type_kind(base_oid(oid)) == "c":
        default_equality(oid, _column_span(left, position), scope.context.env.row_type)


def _first_span(query: QueryExpr) -> Span | None:
    return query.targets[0].expr.span if isinstance(query, Select) and query.targets else None


def _column_expr(query: QueryExpr, position: int) -> Expr:
    """Return an expression of an output column's type and place."""
    if isinstance(query, Select):
        return [target for target in query.targets if not target.junk][position].expr
    if isinstance(query, Values):
        cell = query.rows[0][position]
        return replace(cell, type=query.columns[position].type)
    column = query.columns[position]
    return Var(type=column.type, range=-1, attnum=position + 1, name=column.name)


def _column_span(query: QueryExpr, position: int) -> Span | None:
    """Return the place of an output column: that of the leftmost side of set operations."""
    while isinstance(query, SetOp):
        query = query.left
    return location(_column_expr(query, position))


def coerce_output(query: QueryExpr, types: Sequence[SqlType], word: str, scope: Scope) -> QueryExpr:
    """Return ``query`` with output columns converted to ``types``.

    Conversions go into the select list where nothing looks at the unconverted values after it; else the
    query becomes the range of a SELECT that converts.
    """
    env = scope.context.env
    if all(column.type == type_ for column, type_ in zip(query.columns, types, strict=True)):
        return query

    def converted(expr: Expr, type_: SqlType) -> Expr:
        made = coerce_to_common(expr, type_.oid, word, env)
        return made

    if isinstance(query, Select):
        shown = [index for index, target in enumerate(query.targets) if not target.junk]
        plain = not query.distinct and not query.order
        open_only = all(
            query.targets[index].expr.type.oid in (UNKNOWN, type_.oid)
            for index, type_ in zip(shown, types, strict=True)
        )
        if plain or open_only:
            targets = list(query.targets)
            for index, type_ in zip(shown, types, strict=True):
                targets[index] = replace(targets[index], expr=converted(targets[index].expr, type_))
            columns = tuple(
                [
                    replace(column, type=targets[index].expr.type)
                    for index, column in zip(shown, query.columns, strict=True)
                ]
            )
            return replace(query, targets=tuple(targets), columns=columns)
    if isinstance(query, Values) and not query.order:
        rows = tuple(
            [
                tuple([converted(cell, type_) for cell, type_ in zip(row, types, strict=True)])
                for row in query.rows
            ]
        )
        columns = tuple(
            [replace(column, type=type_) for column, type_ in zip(query.columns, types, strict=True)]
        )
        return replace(query, rows=rows, columns=columns)
    range_columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(query.columns, 1)
        ]
    )
    targets_ = tuple(
        [
            Target(
                expr=converted(Var(type=column.type, range=0, attnum=column.attnum, name=column.name), type_),
                name=column.name,
            )
            for column, type_ in zip(range_columns, types, strict=True)
        ]
    )
    return Select(
        columns=tuple([OutputColumn(name=t.name, type=t.expr.type) for t in targets_]),
        targets=targets_,
        ranges=(SubqueryRange(alias=CONVERTED_NAME, columns=range_columns, query=shift_query(query, 1)),),
        from_=(RangeRef(range=0),),
    )
