"""Statements about extended statistics: names to oids, what they are over to columns and canonical texts.

    CREATE STATISTICS s (mcv) ON a, (b + 1) FROM t      columns 1, expressions ("(b + 1)",), kinds "me"

The columns and expressions are bound here, since errors within them have a place in the text; what is wrong
with them as statistics is told by ``definition`` when the statement runs, behind what PostgreSQL looks at
first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.define.table.placing import creation_schema
from planner.bind.expression.expr import bind_kept
from planner.bind.scope import SYSTEM_COLUMNS
from planner.bind.session.utility import owner_name
from planner.bind.stored import stored_context, table_scope, with_oids, without_spans
from planner.catalog import Catalog, ColumnDef, RelationDef
from planner.catalog.relation_kinds import RELATION_KINDS, STATISTICS_KINDS
from planner.catalog.statistics import DEFAULT_TARGET, KINDS, OF_EXPRESSIONS, PG_STATISTIC_EXT, StatisticsDef
from planner.conversion.casts import resolve_unknown
from planner.deparse import deparse_expr
from planner.facts import facts
from planner.indexing.opclass import check_indexable
from planner.parse import parse_expression
from planner.query import Expr, Var
from planner.query.walk import walk
from planner.types.domains import base_oid
from planner.types.facts import element_of, format_type

MAX_PARTS = 8
_MISSING = ("42704", "3F000")


def missing(name: ast.Name) -> SqlError:
    """Return the error for statistics that are not there."""
    return SqlError("42704", f'statistics object "{".".join(name)}" does not exist')


def find(context: BindContext, name: ast.Name) -> tuple[RelationDef, StatisticsDef]:
    """Return the statistics that a name means, and their table. Raises SqlError 42704, 3F000, 42501."""
    if len(name) > 1:
        context.require_schema(name[-2])
    # temporary schemas are not searched, as in PostgreSQL
    searched = [context.own_schema(name[-2])] if len(name) > 1 else [
        s for s in context.search_path if not s.startswith("pg_temp")
    ]  # fmt: skip
    for entry in searched:
        schema = context.catalog.schema(entry)
        found = None if schema is None else context.catalog.statistics_named(schema.oid, name[-1])
        if found is not None:
            return found
    raise missing(name)


def bind_create(context: BindContext, node: ast.CreateStatistics) -> st.CreateStatistics:
    """CREATE STATISTICS. Raises SqlError 0A000, 42P01, 42809, 42501, 3F000, and what its expressions raise."""
    reference = node.relation
    try:
        relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    except SqlError as error:
        error.span = None  # PostgreSQL looks it up without the statement's text
        raise
    parts = tuple([_part(context, element, relation) for element in node.elements])
    if relation.kind not in STATISTICS_KINDS:
        raise SqlError(
            "42809",
            f'cannot define statistics for relation "{relation.name}"',
            detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
        )
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    place = ast.TableRef(catalog="", schema=node.name[-2] if len(node.name) > 1 else "", name=node.name[-1])
    return st.CreateStatistics(
        table=relation.oid,
        schema=creation_schema(context, place),
        name=node.name[-1],
        kinds=node.kinds,
        parts=parts,
        if_not_exists=node.if_not_exists,
    )


def _part(context: BindContext, element: ast.StatisticsElement, relation: RelationDef) -> st.StatisticsPart:
    if element.expr is None:
        column = next((c for c in relation.live if c.name == element.name), None)
        if column is not None:
            return _column_part(column, context.catalog)
        return st.StatisticsPart(name=element.name, attnum=-1 if element.name in SYSTEM_COLUMNS else 0)
    bound = bind_kept(table_scope(context, relation), element.expr, "STATISTICS")
    kind = facts().types.get(bound.type.oid)
    if kind is not None and kind.kind == "p":
        raise SqlError("42P16", f"expression has pseudo-type {format_type(bound.type.oid)}")
    expr: Expr = without_spans(with_oids(context, resolve_unknown(bound, context.env)))
    if isinstance(expr, Var):
        if expr.attnum > 0:
            return _column_part(relation.column(expr.attnum), context.catalog)
        return st.StatisticsPart(name=expr.name, attnum=-1)
    return _expression_part(deparse_expr(expr, relation), expr, context.catalog)


def _column_part(column: ColumnDef, catalog: Catalog) -> st.StatisticsPart:
    oid = column.declared.oid
    return st.StatisticsPart(name=column.name, attnum=column.attnum, type=oid, ordered=_orders(oid, catalog))


def _expression_part(sql: str, expr: Expr, catalog: Catalog) -> st.StatisticsPart:
    return st.StatisticsPart(
        sql=sql,
        system=any(isinstance(one, Var) and one.attnum <= 0 for one in walk(expr)),
        type=expr.type.oid,
        ordered=_orders(expr.type.oid, catalog),
    )


def _orders(type_oid: int, catalog: Catalog) -> bool:
    """Tell whether values of a type have an order: of arrays and rows, whether those in them have one."""
    base = base_oid(type_oid)
    inner = element_of(base)
    row = None if inner else catalog.row_type(base)
    if inner or row is not None:
        within = [inner] if row is None else [column.declared.oid for column in row.live]
        return all(_orders(oid, catalog) for oid in within)
    try:
        check_indexable(base, "btree")
    except SqlError as error:
        if error.sqlstate != "42704":
            raise
        return False
    return True


def _without_order(part: st.StatisticsPart) -> SqlError:
    what = "expression" if part.sql else f'column "{part.name}"'
    many = " multivariate" if part.sql else ""
    return SqlError(
        "0A000",
        f"{what} cannot be used in{many} statistics because its type {format_type(part.type)} "
        "has no default btree operator class",
    )


def definition(statement: st.CreateStatistics) -> StatisticsDef:
    """Return the statistics that a statement defines, without oids and owner.

    Raises SqlError 54011, 42703, 0A000, 42601, 42P17, 42701, in PostgreSQL's order.
    """
    parts = statement.parts
    if len(parts) > MAX_PARTS:
        raise SqlError("54011", f"cannot have more than {MAX_PARTS} columns in statistics")
    for part in parts:
        if not part.sql and part.attnum == 0:
            raise SqlError("42703", f'column "{part.name}" does not exist')
        if part.system or part.attnum < 0:
            raise SqlError("0A000", "statistics creation on system columns is not supported")
        if not part.ordered and (not part.sql or len(parts) > 1):
            raise _without_order(part)
    attnums = [part.attnum for part in parts if not part.sql]
    texts = [part.sql for part in parts if part.sql]
    single = len(parts) == 1 and bool(texts)
    if single and statement.kinds:
        raise SqlError(
            "0A000",
            "when building statistics on a single expression, statistics kinds may not be specified",
        )
    for word in statement.kinds:
        if word not in KINDS:
            raise SqlError("42601", f'unrecognized statistics kind "{word}"')
    asked = statement.kinds or (() if len(parts) < 2 else KINDS)
    if len(parts) < 2 and not single:
        raise SqlError("42P17", "extended statistics require at least 2 columns")
    if len(set(attnums)) < len(attnums):
        raise SqlError("42701", "duplicate column name in statistics definition")
    if len(set(texts)) < len(texts):
        raise SqlError("42701", "duplicate expression in statistics definition")
    return StatisticsDef(
        oid=0,
        schema_oid=0,
        name=statement.name,
        attnums=tuple(sorted(attnums)),
        expressions=tuple(texts),
        kinds="".join(letter for word, letter in KINDS.items() if word in asked)
        + (OF_EXPRESSIONS if texts else ""),
    )


# --- others ---------------------------------------------------------------------------------------


def bind_alter(context: BindContext, node: ast.AlterStatistics) -> st.AlterStatistics | st.Skip:
    """RENAME TO, SET SCHEMA, OWNER TO, SET STATISTICS. Raises SqlError 22023, 42704, 3F000; with IF EXISTS a
    notice for what is missing.
    """
    if node.target is not None and node.target < DEFAULT_TARGET:
        raise SqlError("22023", f"statistics target {node.target} is too low")
    try:
        _relation, found = find(context, node.name)
    except SqlError as error:
        if not node.if_exists or error.sqlstate not in _MISSING:
            raise
        return st.Skip(notice=f"{missing(node.name).message}, skipping")
    return st.AlterStatistics(
        object=found.oid,
        written=".".join(node.name),
        name=node.rename,
        schema=node.schema,
        owner=None if node.owner is None else owner_name(node.owner),
        target=node.target,
    )


def bind_drop(context: BindContext, node: ast.DropStatistics) -> st.DropStatistics:
    """DROP STATISTICS. Raises SqlError 42704, 3F000; with IF EXISTS these are notices."""
    found: dict[int, str] = {}
    notices: list[str] = []
    for name in paced(node.names):
        try:
            found.setdefault(find(context, name)[1].oid, ".".join(name))
        except SqlError as error:
            if not node.if_exists or error.sqlstate not in _MISSING:
                raise
            notices.append(f"{error.message}, skipping")
    return st.DropStatistics(objects=tuple(found.items()), missing=tuple(notices))


def bind_comment(context: BindContext, node: ast.CommentOnStatistics) -> st.Comment:
    """COMMENT ON STATISTICS. Raises SqlError 42704, 3F000."""
    _relation, found = find(context, node.name)
    return st.Comment(
        class_oid=PG_STATISTIC_EXT,
        object_oid=found.oid,
        sub_id=0,
        text=node.text,
        name=".".join(node.name),
    )


# --- stored ---------------------------------------------------------------------------------------


def stored_expressions(statistics: StatisticsDef, relation: RelationDef, catalog: Catalog) -> list[Expr]:
    """Return the expressions of statistics over their table (range 0)."""
    found: list[Expr] = []
    for sql in statistics.expressions:
        scope = table_scope(stored_context(catalog, sql), relation)
        found.append(without_spans(bind_kept(scope, parse_expression(sql), "STATISTICS")))
    return found


def columns_of(statistics: StatisticsDef, relation: RelationDef, catalog: Catalog) -> set[int]:
    """Return the columns that statistics are over, or that their expressions name."""
    found = set(statistics.attnums)
    for expr in stored_expressions(statistics, relation, catalog):
        found |= {one.attnum for one in walk(expr) if isinstance(one, Var)}
    return found


def rebound_statistics(
    before: RelationDef, after: RelationDef, catalog: Catalog, change: Callable[[Expr], Expr]
) -> tuple[StatisticsDef, ...]:
    """Return a table's statistics with their expressions, bound against ``catalog`` and ``before``, changed
    and printed for ``after``.
    """
    return tuple(
        replace(
            one,
            expressions=tuple(
                deparse_expr(change(expr), after) for expr in stored_expressions(one, before, catalog)
            ),
        )
        if one.expressions
        else one
        for one in after.statistics
    )


def retyped_statistics(table: RelationDef, attnum: int, catalog: Catalog) -> tuple[StatisticsDef, ...]:
    """Return a table's statistics for a new type of a column: those over it have the default target again, as
    in PostgreSQL. Raises SqlError where an expression means nothing any more, 0A000 as ``definition``.
    """
    for one in table.statistics:
        parts = [_column_part(table.column(number), catalog) for number in one.attnums]
        if len(parts) + len(one.expressions) > 1:
            exprs = stored_expressions(one, table, catalog)
            parts += [
                _expression_part(sql, expr, catalog) for sql, expr in zip(one.expressions, exprs, strict=True)
            ]
        for part in parts:
            if not part.ordered:
                raise _without_order(part)
    made = rebound_statistics(table, table, catalog, lambda expr: expr)
    return tuple(
        replace(one, target=DEFAULT_TARGET) if attnum in columns_of(one, table, catalog) else one
        for one in made
    )


def copied_statistics(source: RelationDef, table: RelationDef, catalog: Catalog) -> list[StatisticsDef]:
    """Return what LIKE ... INCLUDING STATISTICS copies to a new table, whose columns have the names that
    those of ``source`` have.
    """
    by_name = {column.name: column.attnum for column in table.live}
    attnum_of = {column.attnum: by_name[column.name] for column in source.live}
    return [
        StatisticsDef(
            oid=0,
            schema_oid=0,
            name="",
            attnums=tuple(sorted(attnum_of[attnum] for attnum in one.attnums)),
            expressions=tuple(deparse_expr(expr, table) for expr in stored_expressions(one, table, catalog)),
            kinds=one.kinds,
        )
        for one in source.statistics
    ]
