"""Stored expressions as they are evaluated: defaults, checks and keys of partitions, with the bodies of what
they call put in.

    default_sql   --parse, bind--> tree --runnable, without domains, folded-->  what computes the value
    CHECK         bound and looked at: it has to be runnable, later

``planner.bind.stored`` binds stored texts to be read and printed; bodies of functions are such texts, so what puts
them in (``planner.bind.stored.runnable``) stands between the two.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pgwire.codecs.settings import DEFAULT, CodecSettings
from pgwire.kept import kept
from planner import ast
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_kept
from planner.bind.stored import EMPTY_CATALOG, bound_default, stored_context, table_scope, without_spans
from planner.bind.stored.runnable import check_runnable, runnable, runnable_or_called
from planner.catalog import Catalog, ColumnDef, RelationDef
from planner.conversion.casts import coerce_to_boolean, resolve_unknown
from planner.conversion.collations import without_collations
from planner.conversion.domain_checks import default_sql
from planner.facts import REGCLASS
from planner.parse import parse_expression
from planner.query import TABLEOID, Const, Expr, Var
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from planner.types import SqlType


def stored_default(
    sql: str,
    type_: SqlType,
    catalog: Catalog | None = None,
    functions: set[int] | None = None,
    *,
    calls: bool = False,
) -> Expr:
    """Return the expression of a stored default, of its column's type, as it is evaluated.

    It is a pure function of the text unless that makes rows or calls users' functions, which are looked up in
    ``catalog``; their oids are added to ``functions``. ``calls``: it may hold calls that only a query can
    make (``planner.bind.stored.runnable.must_be_called``), else they are 0A000.
    """
    if catalog is None or not (calls_functions(sql) or _ROWS.search(sql)):
        return _pure_default(sql, type_)
    expr = bound_default(sql, type_, catalog)
    made = runnable_or_called(expr, catalog, functions) if calls else runnable(expr, catalog, functions)
    return fold(without_domains(made))


def calls_functions(sql: str) -> bool:
    """Tell whether a stored text may call users' functions, which it names by oid
    (``planner.deparse.expr.stored_function``).
    """
    return _CALL.search(sql) is not None


_CALL = re.compile(r'"#\d+"\(')
_ROWS = re.compile(r"\bROW\(|\)\.")  # which attributes they have, a catalog says


@kept(4096)
def _pure_default(sql: str, type_: SqlType) -> Expr:
    return fold(without_domains(bound_default(sql, type_, EMPTY_CATALOG)))


def column_default(
    column: ColumnDef, catalog: Catalog, functions: set[int] | None = None, *, calls: bool = False
) -> Expr | None:
    """Return a column's default expression, or else its domain's; None where it has none.

    A generated column is computed, whatever is said. ``functions`` and ``calls`` as in ``stored_default``.
    """
    if column.generated:
        return None
    sql = column.default_sql
    if sql is None and column.domain:
        sql = default_sql(catalog, column.domain)
    if sql is None:
        return None
    made: Expr = stored_default(sql, column.declared, catalog, functions, calls=calls)
    if column.identity:
        made = _of_identity(made)
    return made


def _of_identity(node: object) -> Any:
    """Return the default of an identity column: whoever may store the row may draw its value
    (``SequenceSystem.next``).
    """
    if isinstance(node, Const) and node.type.oid == REGCLASS and isinstance(node.value, int):
        return replace(node, value=-node.value)
    return replace_children(node, _of_identity)


# --- checks ---------------------------------------------------------------------------------------


def bind_check_expr(context: BindContext, node: ast.Expression, relation: RelationDef) -> Expr:
    """Bind a CHECK over ``relation``'s columns; 0A000 for sub-queries and what ``runnable`` refuses, 42804
    unless boolean.
    """
    scope = table_scope(context, relation)
    expr = bind_kept(scope, node, "CHECK")
    for item in walk(expr):
        if isinstance(item, Var) and item.attnum < 0 and item.attnum != TABLEOID:
            raise SqlError(
                "42P10",
                f'system column "{item.name}" reference in check constraint is invalid',
                span=item.span,
            )
    made = coerce_to_boolean(expr, "CHECK", context.env)
    check_runnable(made, context.catalog)  # it has to be, later
    return made


def bind_check(
    sql: str, relation: RelationDef, catalog: Catalog, *, settings: CodecSettings = DEFAULT
) -> Expr:
    """Return the expression of a stored CHECK; Vars are range 0. ``settings`` do not matter to it.

    It is evaluated after ``planner.bind.stored.runnable``.
    """
    context = stored_context(catalog, sql)
    expr: Expr = without_spans(bind_check_expr(context, parse_expression(sql), relation))
    return expr


def bind_key_expr(
    sql: str, relation: RelationDef, catalog: Catalog, functions: set[int] | None = None
) -> Expr:
    """Return a stored expression of a partition key, as it is evaluated; the oids of what it calls are added
    to ``functions``.
    """
    context = stored_context(catalog, sql)
    expr: Expr = without_spans(
        bind_kept(table_scope(context, relation), parse_expression(sql), "PARTITION BY")
    )
    made: Expr = without_collations(
        without_domains(runnable(resolve_unknown(expr, context.env), catalog, functions))
    )
    return fold(made)
