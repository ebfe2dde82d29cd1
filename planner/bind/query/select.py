"""SELECT, VALUES and set operations: AST -> Query tree.

    bind_query(context, node, parent)   any query, as a sub-query of ``parent`` or at the top

Every Select, SetOp and Values is one query level: the two sides of a set operation see its WITH items at
level 1, as the items of a SELECT see its own at level 1 from inside. Clauses are bound in PostgreSQL's
order (select list, WHERE, HAVING, ORDER BY, GROUP BY, DISTINCT, LIMIT, windows), since what an untyped ``$n``
becomes depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pgwire.give_way import give_way, paced
from pgwire.kept import kept
from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.context import BindContext
from planner.bind.expression.columns import expand_stars, star_of
from planner.bind.expression.expr import bind_boolean, bind_clause, bind_expr
from planner.bind.expression.output_names import column_name
from planner.bind.query.from_ import bind_from, column_origins
from planner.bind.query.grouping import GroupCheck
from planner.bind.query.locking import bind_locking, clause_name
from planner.bind.query.set_operations import combine, refuse_locking
from planner.bind.query.sortgroup import bind_distinct, bind_group, bind_order, sort_key
from planner.bind.query.window import bind_windows, declare_windows
from planner.bind.query.with_ import bind_with
from planner.bind.scope import Scope, index_names
from planner.catalog import BorrowedView, RelationDef
from planner.conversion.casts import coerce_to_specific, coerce_type
from planner.conversion.common_types import coerce_to_common, select_common_type, select_common_typmod
from planner.conversion.pathways import CastContext
from planner.deparse.names import VALUES_NAME
from planner.facts import INT8, TEXT, UNKNOWN
from planner.parse import parse_one
from planner.query import (
    Aggregate,
    Const,
    CteRange,
    Expr,
    GroupingItem,
    OutputColumn,
    QueryExpr,
    RangeColumn,
    RangeRef,
    RelationRange,
    Select,
    SetOp,
    SortBy,
    SortKey,
    SubqueryRange,
    Target,
    Values,
    Var,
    Window,
)
from planner.query.exprs import reads_own_columns
from planner.query.location import location
from planner.query.rewrite import shift_query
from planner.query.walk import children, walk
from planner.types import SqlType

# Columns a select list may have, as PostgreSQL.
MAX_TARGETS = 1664


def bind_query(
    context: BindContext,
    node: ast.QueryNode,
    parent: Scope | None = None,
    *,
    resolve_unknowns: bool = True,
) -> QueryExpr:
    """Bind a query one level inside ``parent`` (None: the top).

    ``resolve_unknowns`` False leaves output columns that are bare literals or parameters of unknown type as
    they are, for a caller that knows their type (set operations, INSERT ... SELECT).
    """
    give_way()
    scope = Scope(context=context, parent=parent)
    if isinstance(node, ast.Select):
        return bind_select(scope, node, resolve_unknowns=resolve_unknowns)
    if isinstance(node, ast.SetOp):
        return _set_op(scope, node)
    return _values(scope, node, resolve_unknowns=resolve_unknowns)


@kept(2048, short=1 << 13)
def _view_body(text: str) -> ast.QueryNode:
    parsed = parse_one(text)
    if parsed is None or not isinstance(parsed.statement, ast.Select | ast.SetOp | ast.Values):
        raise SqlError("XX000", "a view's stored text is not a query")
    return parsed.statement


def bind_view(context: BindContext, relation: RelationDef) -> QueryExpr:
    """Bind a view's stored query under its own search path. Raises 42P17 for endless nesting."""
    inner = context.for_view(relation)
    if isinstance(relation, BorrowedView):
        return _bind_borrowed(inner, relation)
    return bind_query(inner, _view_body(relation.view_sql))


def _bind_borrowed(context: BindContext, relation: BorrowedView) -> QueryExpr:
    """Bind today's definition of a view over what was there. Raises 42501 where it does not fit that, or
    would read something else.
    """
    refused = SqlError(
        "42501",
        f"permission denied for view {relation.name}",
        detail="Its definition has changed since the time that is read, and what it reads now was not there then.",
        hint="Its owner can read it as it was.",
    )
    if not relation.fits:
        raise refused.copy()
    try:
        query = bind_query(context, _view_body(relation.view_sql))
    except SqlError as error:
        if error.sqlstate == "42501":
            raise
        raise refused.copy() from error
    columns = [output.type.oid for output in query.columns]
    if columns != [column.declared.oid for column in relation.live] or not _read_by(query) <= {
        *relation.depends_on
    }:
        raise refused.copy()
    return query


def _read_by(query: QueryExpr) -> set[int]:
    """Return the oids of the tables and views that a view's own text names."""
    found: set[int] = set()
    stack: list[Any] = [query]
    while stack:
        node = stack.pop()
        if isinstance(node, RelationRange):
            found.add(node.parent or node.oid)  # what its policies read is not the view's
            if node.sample is not None:
                stack.append(node.sample)
        elif isinstance(node, SubqueryRange) and (node.parent or node.view is not None):
            found.add(node.parent or node.view[0])  # type: ignore[index]
        else:
            stack.extend(children(node))
    return found


# --- select lists -------------------------------------------------------------------------------


def bind_targets(scope: Scope, items: Sequence[ast.TargetItem], clause: str) -> list[Target]:
    """Bind a select list or RETURNING: stars expanded, unnamed columns named."""
    before = scope.clause
    scope.clause = clause
    targets: list[Target] = []
    for item in items:
        star = star_of(scope, item.expr)
        if star is not None:
            targets.extend([Target(expr=expr, name=name) for name, expr in star])
            continue
        expr = bind_expr(scope, item.expr)
        targets.append(Target(expr=expr, name=item.name or column_name(item.expr, expr)))
    scope.clause = before
    if len(targets) > MAX_TARGETS:
        raise SqlError("54011", f"target lists can have at most {MAX_TARGETS} entries")
    return targets


def resolve_targets(scope: Scope, targets: list[Target]) -> None:
    """Give text to the targets whose type is still unknown."""
    for index, target in enumerate(targets):
        if target.expr.type.oid == UNKNOWN:
            give_way()
            expr = coerce_type(target.expr, SqlType(TEXT), CastContext.IMPLICIT, scope.context.env)
            targets[index] = replace(target, expr=expr)


def output_columns(scope: Scope, targets: Sequence[Target]) -> tuple[OutputColumn, ...]:
    """Return the result columns of targets, with the table columns they come from."""
    shown = [target for target in targets if not target.junk]
    origins = column_origins(scope, [target.expr for target in shown])
    return tuple(
        [
            OutputColumn(name=target.name, type=target.expr.type, table_oid=oid, attnum=attnum)
            for target, (oid, attnum) in paced(list(zip(shown, origins, strict=True)))
        ]
    )


# --- SELECT -------------------------------------------------------------------------------------


def bind_select(scope: Scope, node: ast.Select, *, resolve_unknowns: bool = True) -> Select:
    """Bind a SELECT block whose level ``scope`` is."""
    if node.into is not None:
        raise SqlError("42601", "SELECT ... INTO is not allowed here", span=node.into.span)
    bind_with(scope, node.with_)
    from_ = bind_from(scope, node.from_) if node.from_ else ()
    if node.windows:
        declare_windows(scope, node.windows)
    targets = bind_targets(scope, node.targets, "SELECT")
    where = bind_boolean(scope, node.where, "WHERE") if node.where is not None else None
    having = bind_boolean(scope, node.having, "HAVING") if node.having is not None else None
    order = bind_order(scope, targets, node.order) if node.order else ()
    group: tuple[Expr, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    grouping: tuple[GroupingItem, ...] = ()
    if node.group:
        group, sets, grouping = bind_group(scope, targets, node)
    distinct: bool | tuple[int, ...] = False
    if node.distinct is not None:
        distinct = bind_distinct(scope, targets, node.distinct, order)
    offset, limit = bind_limits(scope, node)
    windows: tuple[Window, ...] = ()
    if scope.windows:
        windows = bind_windows(scope)
    if resolve_unknowns:
        resolve_targets(scope, targets)
    if scope.aggregates and any(isinstance(made, CteRange) and made.recursive_ref for made in scope.ranges):
        raise SqlError(
            "42P19",
            "aggregate functions are not allowed in a recursive query's recursive term",
            span=_aggregate_span([*[target.expr for target in targets], *([having] if having else [])]),
        )
    grouped = bool(group) or sets is not None or having is not None or scope.aggregates
    if grouped:
        check = GroupCheck(scope, group, sets)
        targets = [replace(target, expr=check.check(target.expr)) for target in targets]
        if having is not None:
            having = check.check(having)
        windows = tuple([_checked_window(check, window) for window in windows])
    made = Select(
        columns=output_columns(scope, targets),
        ctes=tuple(scope.bound_ctes),
        order=order,
        limit=limit,
        offset=offset,
        with_ties=node.with_ties,
        limit_all=node.limit is not None and limit is None,
        targets=tuple(targets),
        ranges=scope.finished_ranges(),
        from_=from_,
        where=where,
        grouped=grouped,
        group=group,
        grouping_sets=sets,
        grouping=grouping,
        group_distinct=node.group_distinct,
        having=having,
        windows=windows,
        distinct=distinct,
    )
    return bind_locking(scope, node.locking, made) if node.locking else made


def _aggregate_span(exprs: Sequence[Expr]) -> Span | None:
    return next(
        (
            part.span
            for expr in exprs
            for part in walk(expr)
            if isinstance(part, Aggregate) and part.level == 0
        ),
        None,
    )


def _checked_window(check: GroupCheck, window: Window) -> Window:
    def checked(keys: tuple[SortBy, ...]) -> tuple[SortBy, ...]:
        return tuple([replace(key, expr=check.check(key.expr)) for key in keys])

    return replace(window, partition=checked(window.partition), order=checked(window.order))


def bind_limits(scope: Scope, node: ast.QueryTail) -> tuple[Expr | None, Expr | None]:
    """Bind OFFSET and LIMIT as bigint: (offset, limit). Raises 42P10 for column references."""
    offset = _limit(scope, node.offset, "OFFSET") if node.offset is not None else None
    limit = None
    if node.limit is not None:
        limit = _limit(scope, node.limit, "LIMIT")
        if isinstance(limit, Const) and limit.value is None:
            if node.with_ties:
                raise SqlError("2201W", "row count cannot be null in FETCH FIRST ... WITH TIES clause")
            limit = None
    return offset, limit


def _limit(scope: Scope, node: ast.Expression, word: str) -> Expr:
    expr = bind_clause(scope, node, word)
    expr = coerce_to_specific(expr, INT8, word, scope.context.env)
    if reads_own_columns(expr):
        raise SqlError("42P10", f"argument of {word} must not contain variables", span=location(expr))
    return expr


# --- VALUES -------------------------------------------------------------------------------------


def _values(scope: Scope, node: ast.Values, *, resolve_unknowns: bool) -> QueryExpr:
    if node.locking:
        raise SqlError("0A000", f"{clause_name(node.locking[0].strength)} cannot be applied to VALUES")
    bind_with(scope, node.with_)
    rows = values_rows(scope, node)
    width = len(rows[0])
    env = scope.context.env
    columns: list[OutputColumn] = []
    converted: list[list[Expr]] = [[] for _ in rows]
    for position in range(width):
        cells = [row[position] for row in rows]
        if all(cell.type.oid == UNKNOWN for cell in cells) and not resolve_unknowns:
            type_ = SqlType(UNKNOWN)
        else:
            oid = select_common_type(cells, "VALUES")
            cells = [coerce_to_common(cell, oid, "VALUES", env) for cell in cells]
            type_ = SqlType(oid, select_common_typmod(cells, oid))
        for row, cell in zip(converted, cells, strict=True):
            row.append(cell)
        columns.append(OutputColumn(name=f"column{position + 1}", type=type_))
    if resolve_unknowns:
        columns, converted = _settled_values(scope, columns, converted)
    values = Values(columns=tuple(columns), rows=tuple([tuple(row) for row in converted]))
    names = [column.name for column in columns]
    items = [_of_values(item) for item in node.order]
    if any(_named(item.expr, names) is None for item in items):
        return _wrapped_values(scope, node, values)
    order = _order_by_output(scope, items, values)
    offset, limit = bind_limits(scope, node)
    return replace(
        values,
        ctes=tuple(scope.bound_ctes),
        order=order,
        limit=limit,
        offset=offset,
        with_ties=node.with_ties,
        limit_all=node.limit is not None and limit is None,
    )


def _of_values(item: ast.SortItem) -> ast.SortItem:
    """Return an item of ORDER BY of VALUES with the bare name of a column, which may be given with the name
    that VALUES have.
    """
    expr = item.expr
    if (
        not isinstance(expr, ast.ColumnRef)
        or expr.star
        or len(expr.names) != 2
        or expr.names[0] != VALUES_NAME
    ):
        return item
    return replace(item, expr=replace(expr, names=expr.names[1:]))


def values_rows(scope: Scope, node: ast.Values, *, allow_default: bool = False) -> list[tuple[Expr, ...]]:
    """Bind the cells of VALUES. Raises 42601 when rows differ in width or DEFAULT stands in one."""
    before = scope.clause
    scope.clause = "VALUES"
    rows: list[tuple[Expr, ...]] = []
    for cells in node.rows:
        row = expand_stars(scope, cells)
        if rows and len(row) != len(rows[0]):
            raise SqlError(
                "42601", "VALUES lists must all be the same length", span=cells[0].span if cells else None
            )
        rows.append(row)
    scope.clause = before
    return rows


def _settled_values(
    scope: Scope, columns: list[OutputColumn], rows: list[list[Expr]]
) -> tuple[list[OutputColumn], list[list[Expr]]]:
    env = scope.context.env
    for position, column in enumerate(columns):
        if column.type.oid == UNKNOWN:
            columns[position] = replace(column, type=SqlType(TEXT))
            for row in rows:
                row[position] = coerce_type(row[position], SqlType(TEXT), CastContext.IMPLICIT, env)
    return columns, rows


def _wrapped_values(scope: Scope, node: ast.Values, values: Values) -> Select:
    """ORDER BY an expression: VALUES as the one range of a SELECT over it."""
    inner = shift_query(values, 1)
    columns = tuple(
        [
            RangeColumn(name=column.name, type=column.type, attnum=position)
            for position, column in enumerate(values.columns, 1)
        ]
    )
    index = scope.add_range(SubqueryRange(alias=VALUES_NAME, columns=columns, query=inner))
    scope.add_namespace([scope.item(index)])
    targets = [
        Target(expr=Var(type=c.type, range=index, attnum=c.attnum, name=c.name), name=c.name) for c in columns
    ]
    order = bind_order(scope, targets, node.order)
    offset, limit = bind_limits(scope, node)
    return Select(
        columns=output_columns(scope, targets),
        ctes=tuple(scope.bound_ctes),
        order=order,
        limit=limit,
        offset=offset,
        with_ties=node.with_ties,
        limit_all=node.limit is not None and limit is None,
        targets=tuple(targets),
        ranges=scope.finished_ranges(),
        from_=(RangeRef(range=index),),
    )


# --- set operations -----------------------------------------------------------------------------


def _set_op(scope: Scope, node: ast.SetOp) -> SetOp:
    refuse_locking(node)
    _refuse_into(node.right)
    bind_with(scope, node.with_)
    left = bind_query(scope.context, node.left, scope, resolve_unknowns=False)
    outer = scope.parent.ranges if scope.parent is not None else []
    # not visible: for the hints of errors in the other side
    _add_sides(scope, left, len(outer) if outer and outer[0].alias == "*SELECT* 1" else 0)
    right = bind_query(scope.context, node.right, scope, resolve_unknowns=False)
    made = combine(scope, node, left, right)
    order = _order_by_output(scope, node.order, made) if node.order else ()
    offset, limit = bind_limits(scope, node)
    return replace(
        made,
        ctes=tuple(scope.bound_ctes),
        order=order,
        limit=limit,
        offset=offset,
        with_ties=node.with_ties,
        limit_all=node.limit is not None and limit is None,
    )


def _refuse_into(side: ast.QueryNode) -> None:
    """Raise 42601 for INTO in the side of a set operation that does not come first."""
    while isinstance(side, ast.SetOp):
        side = side.left
    if isinstance(side, ast.Select) and side.into is not None:
        raise SqlError(
            "42601",
            "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT",
            span=side.into.span,
        )


# --- ORDER BY over output columns ---------------------------------------------------------------


def _named(node: ast.Expression, names: Sequence[str]) -> int | None:
    """Return the output column an item of ORDER BY names or numbers, None for an expression.

    Raises SqlError 42702 and 42P10.
    """
    if isinstance(node, ast.ColumnRef) and len(node.names) == 1 and not node.star:
        found = [index for index, name in enumerate(names) if name == node.names[0]]
        if len(found) > 1:
            raise SqlError("42702", f'ORDER BY "{node.names[0]}" is ambiguous', span=node.span)
        return found[0] if found else None
    if isinstance(node, ast.Constant):
        if node.kind != "int" or not isinstance(node.value, int):
            raise SqlError("42601", "non-integer constant in ORDER BY", span=node.span)
        if not 1 <= node.value <= len(names):
            raise SqlError("42P10", f"ORDER BY position {node.value} is not in select list", span=node.span)
        return node.value - 1
    return None


def _order_by_output(scope: Scope, items: Sequence[ast.SortItem], made: QueryExpr) -> tuple[SortKey, ...]:
    columns = made.columns
    names = [column.name for column in columns]
    keys: list[SortKey] = []
    for item in items:
        index = _named(item.expr, names)
        if index is None:
            raise _not_an_output(scope, item, made)
        if not any(key.target == index for key in keys):
            keys.append(sort_key(index, columns[index].type.oid, item, scope.context.env.row_type))
    return tuple(keys)


def _add_sides(scope: Scope, made: QueryExpr, before: int = 0) -> None:
    """Add the sides of a set operation to a scope as PostgreSQL has them there; ``before``: those that come before."""
    for number, leaf in enumerate(_leaves(made), before + 1):
        columns = tuple(
            [
                RangeColumn(name=column.name, type=column.type, attnum=position)
                for position, column in enumerate(leaf.columns, 1)
            ]
        )
        scope.add_range(SubqueryRange(alias=f"*SELECT* {number}", columns=columns, query=leaf))


def _not_an_output(scope: Scope, item: ast.SortItem, made: QueryExpr) -> SqlError:
    """Return the error for an ORDER BY item over a set operation that is no output column."""
    over = Scope(context=scope.context, parent=scope.parent, clause="ORDER BY")
    _add_sides(over, made)
    output = over.item(0)
    output.names = [column.name for column in made.columns]
    output.index = index_names(output.names)
    output.name, output.by_table = "", False
    over.namespace.append(output)
    try:
        expr = bind_expr(over, item.expr)
    except SqlError as error:
        return error.copy()
    return SqlError(
        "0A000",
        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
        detail="Only result column names can be used, not expressions or functions.",
        hint="Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
        span=location(expr),
    )


def _leaves(query: QueryExpr) -> list[QueryExpr]:
    if isinstance(query, SetOp):
        return [*_leaves(query.left), *_leaves(query.right)]
    return [query]
