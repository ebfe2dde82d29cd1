"""Generated columns: GENERATED ALWAYS AS (expression) STORED.

    CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) STORED)
      column b    generated "s", default_sql "(a * 2)"
      INSERT, UPDATE, COPY, MERGE: whoever stores a row computes b from the row's other columns
      (engine.changes.writes.shape)

The expression sees the row alone and has to be immutable, so what is stored stays right whatever happens
elsewhere. No generated column looks at another, so the order in which they are computed does not matter.
Expression and partial indexes keep what they compute in columns of this kind that nobody sees
(``ColumnDef.hidden``); these may look at others, whose expressions then stand in their place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from planner import ast
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_kept
from planner.bind.stored import coerce_default, stored_context, table_scope, with_oids, without_spans
from planner.bind.stored.runnable import runnable
from planner.catalog import Catalog, RelationDef
from planner.parse import parse_expression
from planner.query import TABLEOID, WHOLE_ROW, Expr, Var
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.rules.stable import is_immutable
from planner.types import SqlType


def bind_generation(
    context: BindContext,
    node: ast.Expression,
    relation: RelationDef,
    column: str,
    type_: SqlType,
) -> Expr:
    """Bind the expression of a generated column over ``relation``, in which other generated columns are marked.

    Raises SqlError 42P17 (not immutable, another generated column, the whole row), 42P10 (a system column), 42804, and
    what its clause may not hold: 0A000 (sub-queries, sets, what ``runnable`` refuses), 42803, 42P20.
    """
    expr: Expr = bind_kept(table_scope(context, relation), node, "GENERATED")
    for item in walk(expr):
        if isinstance(item, Var):
            _check_column(item, relation)
    if not is_immutable(with_oids(context, expr)):  # before it is coerced, which may fail
        raise SqlError("42P17", "generation expression is not immutable")
    expr = with_oids(context, coerce_default(expr, column, type_, context.env))
    runnable(expr, context.catalog)  # it has to be, later
    return expr


def _check_column(var: Var, relation: RelationDef) -> None:
    if var.attnum == WHOLE_ROW:
        raise SqlError(
            "42P17",
            "cannot use whole-row variable in column generation expression",
            detail="This would cause the generated column to depend on its own value.",
            span=var.span,
        )
    if var.attnum < 0 and var.attnum != TABLEOID:
        raise SqlError(
            "42P10", f'cannot use system column "{var.name}" in column generation expression', span=var.span
        )
    if var.attnum > 0 and relation.column(var.attnum).generated:
        raise SqlError(
            "42P17",
            f'cannot use generated column "{var.name}" in column generation expression',
            detail="A generated column cannot reference another generated column.",
            span=var.span,
        )


def stored_generation(
    relation: RelationDef, attnum: int, catalog: Catalog, type_: SqlType | None = None
) -> Expr:
    """Return the expression of a generated column, of the column's type or ``type_``; Vars are range 0.

    Raises SqlError 42804 where it does not become ``type_``.
    """
    column = relation.column(attnum)
    if column.default_sql is None:
        raise AssertionError(f"generated column {column.name} has no expression")
    context = stored_context(catalog, column.default_sql)
    expr = bind_kept(table_scope(context, relation), parse_expression(column.default_sql), "GENERATED")
    found: Expr = without_spans(coerce_default(expr, column.name, type_ or column.declared, context.env))
    return found


def generations(
    relation: RelationDef, catalog: Catalog, functions: set[int] | None = None
) -> tuple[tuple[int, Expr], ...]:
    """Return (attnum, expression) of each generated column of a table, as they are evaluated: all at once,
    from the others.

    So an index's expression over generated columns has what these are made of in their place. The oids of the users'
    functions that they call are added to ``functions``.
    """
    return _over_plain(relation, _written(relation, catalog, functions))


_Generations: TypeAlias = tuple[tuple[int, Expr], ...]


def _written(relation: RelationDef, catalog: Catalog, functions: set[int] | None = None) -> _Generations:
    """Return (attnum, expression) of generated columns; those of indexes, which are hidden, may read other ones."""
    return tuple(
        (column.attnum, runnable(stored_generation(relation, column.attnum, catalog), catalog, functions))
        for column in relation.stored_columns
        if column.generated
    )


def _over_plain(relation: RelationDef, written: _Generations) -> _Generations:
    made = {attnum: expr for attnum, expr in written if not relation.column(attnum).hidden}
    if not made or len(made) == len(written):
        return written
    return tuple((attnum, expr if attnum in made else with_values(expr, made)) for attnum, expr in written)


def columns_used(expr: Expr) -> frozenset[int]:
    """Return the attnums that an expression over a row (range 0) reads; placeholders for elements are no columns."""
    return frozenset(node.attnum for node in walk(expr) if isinstance(node, Var) and node.range >= 0)


def generated_from(relation: RelationDef, changed: Collection[int], catalog: Catalog) -> dict[int, Expr]:
    """Return the generated columns that have to be computed again when the columns ``changed`` change."""
    written = _written(relation, catalog)
    reached = {*changed, *(attnum for attnum, expr in written if not columns_used(expr).isdisjoint(changed))}
    return {
        attnum: expr
        for (attnum, expr), (_, as_written) in zip(_over_plain(relation, written), written, strict=True)
        if not columns_used(as_written).isdisjoint(reached)
    }


def with_values(expr: Any, values: Mapping[int, Expr]) -> Any:
    """Return an expression over a row with columns replaced by what is assigned to them."""
    if isinstance(expr, Var) and expr.level == 0 and expr.range == 0:
        return values.get(expr.attnum, expr)
    return replace_children(expr, lambda child: with_values(child, values))
