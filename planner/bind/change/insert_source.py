"""What an INSERT stores: its VALUES or query, converted to the columns' types, with DEFAULT where that is written.

VALUES of constants     each cell read by the column's own reader, no scope (``_quick_row``)
other VALUES            cells bound one by one, DEFAULT replaced
a query                 bound as such; a projection converts what is not of the column's type
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.change.assign import assigned, default_value
from planner.bind.change.assign_part import is_star
from planner.bind.change.cells import CellReader, cell_reader
from planner.bind.context import BindContext
from planner.bind.expression.columns import expand_stars
from planner.bind.expression.expr import bind_expr
from planner.bind.query.select import bind_query
from planner.bind.query.with_ import bind_with
from planner.bind.scope import Scope
from planner.catalog import ColumnDef, RelationDef
from planner.conversion.casts import resolve_unknown
from planner.facts import UNKNOWN
from planner.query import (
    Const,
    Expr,
    OutputColumn,
    Param,
    QueryExpr,
    RangeColumn,
    RangeRef,
    Select,
    SubqueryRange,
    Target,
    Values,
    Var,
)
from planner.query.tables import table_range
from planner.types import SqlType


def _merged_with(outer: ast.With | None, inner: ast.With | None) -> ast.With | None:
    """Return the WITH items of a statement followed by those of its source."""
    if outer is None or inner is None:
        return outer or inner
    taken = {cte.name for cte in outer.ctes}
    for cte in inner.ctes:
        if cte.name in taken:
            raise not_supported(
                f'WITH query "{cte.name}" of a source that hides one of the statement', span=cte.span
            )
    return replace(inner, ctes=(*outer.ctes, *inner.ctes), recursive=outer.recursive or inner.recursive)


def insert_source(
    context: BindContext,
    node: ast.Insert,
    relation: RelationDef,
    columns: list[ColumnDef],
    stored: Callable[[list[ColumnDef]], list[ColumnDef]],
) -> tuple[QueryExpr, list[ColumnDef]]:
    """Bind the VALUES or query of an INSERT; returns it, giving the columns' types, and the columns that it
    fills. Raises 42601, 42804, 428C9.

    ``columns``: of what is named, a view perhaps; ``stored`` gives the table's for those that get values.
    """
    query = node.query
    if query is None:
        raise AssertionError("an INSERT of rows has no query")
    plain = isinstance(query, ast.Values) and not (
        query.with_ or query.order or query.limit or query.offset or query.locking
    )
    if plain:
        if not isinstance(query, ast.Values):
            raise AssertionError(f"plain rows are {type(query).__name__}, not VALUES")
        return _insert_values(context, node, query, relation, stored(columns))
    query, bound = _bound_query(context, node, query, relation)
    spans = _output_spans(query, len(bound.columns))
    columns = stored(match_counts(node, columns, spans, row=None))
    bound = _converted(context, bound, columns, spans)
    for column in columns:
        refuse_value(column, node)
    if node.overriding == "user" and any(column.identity for column in columns):
        bound = _without_identity(bound, columns)
        columns = [column for column in columns if not column.identity]
    return bound, columns


def _bound_query(
    context: BindContext, node: ast.Insert, query: ast.QueryNode, relation: RelationDef
) -> tuple[ast.QueryNode, QueryExpr]:
    """Bind a source with the WITH of the statement; returns it as it is written then, and bound."""
    merged = _merged_with(node.with_, query.with_)
    if merged is not query.with_:
        query = replace(query, with_=merged)
    return query, bind_query(context, query, _hidden_target(context, node, relation), resolve_unknowns=False)


def query_as_written(context: BindContext, node: ast.Insert, table: int) -> QueryExpr:
    """Return the query of an INSERT, which has one, before its columns are converted to those of the table."""
    relation = context.catalog.relation_by_oid(table)
    if relation is None:
        raise AssertionError(f"relation {table} is gone")
    if node.query is None:
        raise AssertionError("an INSERT of rows has no query")
    return _bound_query(context, node, node.query, relation)[1]


def with_defaults(
    query: QueryExpr | None, columns: Sequence[ColumnDef], defaults: Sequence[tuple[ColumnDef, Expr]]
) -> QueryExpr:
    """Return a source, None for one row without columns, with the defaults of other columns behind what it gives."""
    given = () if query is None else query.columns
    targets = [
        *(
            Target(expr=Var(type=c.type, range=0, attnum=i, name=c.name), name=column.name)
            for i, (c, column) in enumerate(zip(given, columns, strict=True), 1)
        ),
        *(Target(expr=expr, name=column.name) for column, expr in defaults),
    ]
    return Select(
        columns=tuple(OutputColumn(name=target.name, type=target.expr.type) for target in targets),
        targets=tuple(targets),
        ranges=() if query is None else (_as_range(query),),
        from_=() if query is None else (RangeRef(range=0),),
    )


def _as_range(query: QueryExpr) -> SubqueryRange:
    return SubqueryRange(
        alias="*SELECT*",
        columns=tuple(
            RangeColumn(name=c.name, type=c.type, attnum=i) for i, c in enumerate(query.columns, 1)
        ),
        query=query,
    )


def _without_identity(query: QueryExpr, columns: Sequence[ColumnDef]) -> QueryExpr:
    """Return a query without what OVERRIDING USER VALUE says to ignore."""
    range_ = _as_range(query)
    kept = [(i, c) for i, c in enumerate(columns, 1) if not c.identity]
    return Select(
        columns=tuple(OutputColumn(name=c.name, type=c.type) for _, c in kept),
        targets=tuple(
            Target(expr=Var(type=c.type, range=0, attnum=i, name=c.name), name=c.name) for i, c in kept
        ),
        ranges=(range_,),
        from_=(RangeRef(range=0),),
    )


def _hidden_target(context: BindContext, node: ast.Insert, relation: RelationDef) -> Scope:
    """Return a level around the source that has the target but shows nothing: hints speak of it."""
    scope = Scope(context=context, parent=context.around)
    scope.add_range(table_range(relation, node.relation.alias.name if node.relation.alias else ""))
    return scope


def _output_spans(query: ast.QueryNode, count: int) -> list[Span | None]:
    while isinstance(query, ast.SetOp):
        query = query.left
    spans: list[Span | None] = []
    if isinstance(query, ast.Select):
        stars = [target for target in query.targets if is_star(target.expr)]
        more = count - len(query.targets)
        for target in query.targets if len(stars) == 1 or not more else ():
            spans += [target.span or target.expr.span] * (1 + more if is_star(target.expr) else 1)
    return spans or [query.span] * count


def match_counts(
    node: ast.Insert | ast.MergeWhen,
    columns: list[ColumnDef],
    spans: Sequence[Span | None],
    row: ast.Expression | None,
) -> list[ColumnDef]:
    """Return the columns that get values: fewer values than columns are fine without a column list."""
    if len(spans) > len(columns):
        raise SqlError("42601", "INSERT has more expressions than target columns", span=spans[len(columns)])
    if len(spans) < len(columns):
        if node.columns:
            hint = None
            if isinstance(row, ast.Row) and len(row.items) == len(columns):
                hint = (
                    "The insertion source is a row expression containing the same number of columns "
                    "expected by the INSERT. Did you accidentally use extra parentheses?"
                )
            raise SqlError(
                "42601",
                "INSERT has more target columns than expressions",
                hint=hint,
                span=node.columns[len(spans)].span,
            )
        return columns[: len(spans)]
    return columns


def _insert_values(
    context: BindContext,
    node: ast.Insert,
    query: ast.Values,
    relation: RelationDef,
    columns: list[ColumnDef],
) -> tuple[QueryExpr, list[ColumnDef]]:
    """Bind ``VALUES``: each cell is converted straight to its column's type."""
    scope = Scope(context=context, parent=_hidden_target(context, node, relation))
    if node.with_ is not None:
        bind_with(scope, node.with_)
    single = len(query.rows) == 1
    scope.clause = "INSERT" if single else "VALUES"
    readers = [_reader(column) for column in columns]
    refused: list[ColumnDef] = []
    quick = _quick_row(scope, query.rows[0], readers, columns, refused)
    if quick is not None:
        rows = [quick]
    else:
        first = insert_cells(scope, query.rows[0])
        only = query.rows[0][0] if len(query.rows[0]) == 1 else None
        columns = match_counts(node, columns, [cell.span for cell in first], only)
        readers = readers[: len(columns)]
        rows = [_converted_row(first, columns, scope.context, refused)]
    for row in query.rows[1:]:
        quick = _quick_row(scope, row, readers, columns, refused)
        if quick is not None:
            rows.append(quick)
            continue
        cells = insert_cells(scope, row)
        if len(cells) != len(columns):
            raise SqlError("42601", "VALUES lists must all be the same length", span=cells[0].span)
        rows.append(_converted_row(cells, columns, scope.context, refused))
    for column in refused:
        refuse_value(column, node)
    if node.overriding == "user" and any(column.identity for column in columns):
        rows = [
            tuple(
                [
                    default_value(column, scope.context) if column.identity else cell
                    for cell, column in zip(row, columns, strict=True)
                ]
            )
            for row in rows
        ]
    outputs = tuple(OutputColumn(name=column.name, type=column.type) for column in columns)
    ctes = tuple(scope.bound_ctes)
    if single and scope.set_returning:
        targets = tuple(
            Target(expr=expr, name=column.name) for expr, column in zip(rows[0], columns, strict=True)
        )
        return Select(columns=outputs, targets=targets, ctes=ctes), columns
    return Values(columns=outputs, rows=tuple(rows), ctes=ctes), columns


def _reader(column: ColumnDef) -> CellReader:
    """Return the quick way of reading constants for a column; none for those that refuse values."""
    if column.generated or column.identity:
        return lambda node: None
    return cell_reader(column)


def _quick_row(
    scope: Scope,
    row: Sequence[ast.Expression],
    readers: Sequence[CellReader],
    columns: Sequence[ColumnDef],
    refused: list[ColumnDef],
) -> tuple[Expr, ...] | None:
    """Convert a row that has constants, parameters and defaults only; None for any other, and where one does
    not fit: what else is wrong with the row may come first.
    """
    if len(row) != len(readers):
        return None
    cells: list[Expr] = []
    try:
        for item, reader, column in zip(row, readers, columns, strict=True):
            kind = type(item)
            if type(item) is ast.Constant:
                const = reader(item)
                cells.append(
                    _cell(bind_expr(scope, item), column, scope.context, refused) if const is None else const
                )
            elif kind is ast.ParamRef:
                cells.append(_cell(bind_expr(scope, item), column, scope.context, refused))
            elif kind is ast.Default:
                cells.append(default_value(column, scope.context, item.span))
            else:
                return None
    except SqlError as error:
        if error.ends_statement:
            raise
        return None
    return tuple(cells)


def converted_row(
    cells: Sequence[Expr | ast.Default],
    columns: Sequence[ColumnDef],
    node: ast.Insert | ast.MergeWhen,
    context: BindContext,
) -> tuple[Expr, ...]:
    """Return the values of a VALUES row as its columns store them. Raises SqlError 42804, 428C9."""
    refused: list[ColumnDef] = []
    row = _converted_row(cells, columns, context, refused)
    for column in refused:
        refuse_value(column, node)
    if node.overriding != "user":
        return row
    return tuple(
        [
            default_value(column, context) if column.identity else cell
            for cell, column in zip(row, columns, strict=True)
        ]
    )


def _converted_row(
    cells: Sequence[Expr | ast.Default],
    columns: Sequence[ColumnDef],
    context: BindContext,
    refused: list[ColumnDef],
) -> tuple[Expr, ...]:
    """As ``converted_row``; ``refused`` gets the columns that may take no values."""
    return tuple(
        [
            default_value(column, context, cell.span)
            if isinstance(cell, ast.Default)
            else _cell(cell, column, context, refused)
            for cell, column in zip(cells, columns, strict=True)
        ]
    )


def insert_cells(scope: Scope, row: Sequence[ast.Expression]) -> list[Expr | ast.Default]:
    """Bind the values of a VALUES row; stars stand for several."""
    cells: list[Expr | ast.Default] = []
    for item in row:
        if isinstance(item, ast.Default):
            cells.append(item)
        elif isinstance(item, ast.ColumnRef | ast.Indirection):
            cells.extend(expand_stars(scope, (item,)))
        else:
            cells.append(bind_expr(scope, item))
    return cells


def _cell(cell: Expr, column: ColumnDef, context: BindContext, refused: list[ColumnDef]) -> Expr:
    """Convert a cell; ``refused`` gets a column that may take no values: all cells are judged first."""
    made = assigned(cell, column, context.env)
    if (column.generated or column.identity) and column not in refused:
        refused.append(column)
    return made


def refuse_view_defaults(
    view: RelationDef, table: RelationDef, columns: Sequence[ColumnDef], node: ast.Insert
) -> None:
    """Raise SqlError 428C9 where a view's default is a value for a column that takes none.

    Args:
        view: the base table with the views' defaults.
        table: the same with its own.
        columns: those that the source gives values for.
        node: the statement.
    """
    differing = [
        c for c, own in zip(view.columns, table.columns, strict=True) if c.default_sql != own.default_sql
    ]
    given = {column.attnum: place for place, column in enumerate(columns)}
    rows = node.query.rows if isinstance(node.query, ast.Values) else ()
    for column in differing:
        place = given.get(column.attnum)
        if place is None or any(place < len(row) and isinstance(row[place], ast.Default) for row in rows):
            refuse_value(column, node)


def refuse_value(column: ColumnDef, node: ast.Insert | ast.MergeWhen) -> None:
    """Raise SqlError 428C9 for a generated column, and an identity column that is always generated."""
    if column.generated or (column.identity == "a" and not node.overriding):
        detail = (
            f'Column "{column.name}" is a generated column.'
            if column.generated
            else f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
        )
        raise SqlError(
            "428C9",
            f'cannot insert a non-DEFAULT value into column "{column.name}"',
            detail=detail,
            hint=None if column.generated else "Use OVERRIDING SYSTEM VALUE to override.",
        )


def _converted(
    context: BindContext, query: QueryExpr, columns: Sequence[ColumnDef], spans: Sequence[Span | None]
) -> QueryExpr:
    """Return a query whose output columns have exactly the types of ``columns``."""
    if all(have.type == want.declared for have, want in zip(query.columns, columns, strict=True)):
        return query
    env = context.env
    outputs = tuple(OutputColumn(name=column.name, type=column.type) for column in columns)
    if isinstance(query, Select) and _targets_are_free(query):
        targets = tuple(
            replace(target, expr=assigned(target.expr, column, env))
            for target, column in zip(query.targets, columns, strict=True)
        )
        return replace(query, targets=targets, columns=outputs)
    inner, literals = _settled(context, query)
    range_ = SubqueryRange(
        alias="*SELECT*",
        columns=tuple(
            RangeColumn(name=c.name, type=c.type, attnum=i) for i, c in enumerate(inner.columns, 1)
        ),
        query=inner,
    )
    values: list[Expr] = []
    for index, (have, column) in enumerate(zip(inner.columns, columns, strict=True)):
        expr = literals.get(index) or Var(
            type=have.type, range=0, attnum=index + 1, name=have.name, span=spans[index]
        )
        values.append(assigned(expr, column, env))
    return Select(
        columns=outputs,
        targets=tuple(Target(expr=e, name=c.name) for e, c in zip(values, columns, strict=True)),
        ranges=(range_,),
        from_=(RangeRef(range=0),),
    )


def _targets_are_free(query: Select) -> bool:
    """Tell whether targets may be converted in place: nothing sorts, groups or compares them."""
    return not query.distinct and not query.order and not any(target.junk for target in query.targets)


def _settled(context: BindContext, query: QueryExpr) -> tuple[QueryExpr, dict[int, Expr]]:
    """Give open outputs of ``query`` a type; literals and parameters are also returned to stand outside."""
    literals: dict[int, Expr] = {}
    if not isinstance(query, Select):
        return query, literals
    targets = list(query.targets)
    outputs = list(query.columns)
    for index, output in enumerate(outputs):
        expr = targets[index].expr
        if output.type.oid != UNKNOWN:
            continue
        if isinstance(expr, Const | Param):
            literals[index] = expr
        if isinstance(expr, Param):
            # the parameter's type is the column's; what the inner query yields is not used
            expr = Const(type=SqlType(UNKNOWN), value=None)
        settled = resolve_unknown(expr, context.env)
        targets[index] = replace(targets[index], expr=settled)
        outputs[index] = replace(output, type=settled.type)
    return replace(query, targets=tuple(targets), columns=tuple(outputs)), literals
