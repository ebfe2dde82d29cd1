"""CREATE INDEX: which columns and expressions it is over, in which order, of which rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.extension_operators import check_class_made
from planner.bind.define.table.extents import extent, keeps_extents
from planner.bind.define.table.naming import MAX_NAME_BYTES, clip
from planner.bind.define.table.options import check_storage_options
from planner.bind.define.table.table_parts import check_tablespace, column_collation
from planner.bind.expression.calls import make_call, resolve_call
from planner.bind.expression.expr import bind_kept
from planner.bind.expression.output_names import UNNAMED, column_name
from planner.bind.scope import SYSTEM_COLUMNS, Scope
from planner.bind.stored import stored_context, table_scope, with_oids, without_spans
from planner.bind.stored.runnable import runnable
from planner.catalog import Catalog, ColumnDef, IndexDef, IndexMethod, RelationDef, with_index_changed
from planner.catalog.relation_kinds import RELATION_KINDS, STORING
from planner.conversion.casts import coerce_to_boolean, resolve_unknown
from planner.conversion.collations import COLLATE_HINT, expr_collation, without_collate
from planner.conversion.type_names import check_column_type
from planner.deparse import deparse_expr
from planner.facts import BOOL, UNKNOWN
from planner.indexing.opclass import METHODS, check_class, check_indexable, no_default_class
from planner.indexing.opclass_extensions import BLOOM, KEPT_BY
from planner.parse import parse_expression
from planner.query import WHOLE_ROW, CaseExpr, CaseWhen, Const, Expr, Var
from planner.query.walk import walk
from planner.rules.stable import is_immutable
from planner.types import SqlType
from planner.types.domains import plain_type
from planner.types.facts import plain_collation

MAX_INDEX_COLUMNS = 32


def bind_create_index(context: BindContext, node: ast.CreateIndex) -> st.CreateIndex:
    """CREATE INDEX on columns and expressions, of all rows or of those for which a condition holds.

    Raises SqlError 42P01, 42809, 42703, 42704, 54011, 22023, 42P17 (not immutable); 0A000 for other methods,
    and for what keys of expression and partial indexes cannot be.
    """
    reference = node.relation
    table = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    where = None if node.where is None else _predicate(context, table, node.where)
    exprs = [None if one.expr is None else key_expression(context, table, one.expr) for one in node.elements]
    _indexable_relation(table)
    if table.kind == "p" and node.concurrently:
        raise SqlError("0A000", f'cannot create index on partitioned table "{table.name}" concurrently')
    method = _method(context.catalog, node.method)
    check_tablespace(node.tablespace)
    options = check_storage_options(node.options, method)
    if len(node.elements) + len(node.include) > MAX_INDEX_COLUMNS:
        raise SqlError("54011", f"cannot use more than {MAX_INDEX_COLUMNS} columns in an index")
    if method != "btree":
        _check_plain(node, method)
    if where is not None and not _always_same(context, where):
        raise SqlError("42P17", "functions in index predicate must be marked IMMUTABLE")
    keys = [
        _index_key(context, table, element, expr, method)
        for element, expr in zip(node.elements, exprs, strict=True)
    ]
    for element in node.include:
        if element.expr is not None:
            raise SqlError("0A000", "expressions are not supported in included columns")
    include = tuple(_plain_column(table, element).attnum for element in node.include)
    names = key_names([key.name for key in keys] + [table.column(a).name for a in include])
    definition = IndexDef(
        oid=0,
        name=node.name,
        attnums=tuple(key.attnum for key in keys),
        unique=node.unique,
        method=method,
        descending=tuple(key.descending for key in keys),
        nulls_first=tuple(key.nulls_first for key in keys),
        nulls_not_distinct=node.nulls_not_distinct,
        include=include,
        opclasses=tuple(key.opclass for key in keys) if any(key.opclass for key in keys) else (),
        collations=tuple(key.collation for key in keys) if any(key.collation for key in keys) else (),
        options=options,
    )
    hidden: tuple[ColumnDef, ...] = ()
    if (
        where is not None
        or not KEPT_BY.keys().isdisjoint(definition.opclasses)
        or any(keeps_extents(definition, key.expr.type.oid) for key in keys)
        or any(not key.attnum for key in keys)
    ):
        if table.source_oid:
            raise not_supported("an expression or partial index on the table of a source", span=node.span)
        definition, hidden = computed_index(
            definition, table, [key.expr for key in keys], where, context.catalog
        )
        definition = replace(definition, key_names=names)
    return create_index(table.oid, definition, names, hidden, node)


def create_index(
    table: int,
    index: IndexDef,
    names: tuple[str, ...],
    hidden: tuple[ColumnDef, ...],
    node: ast.CreateIndex | None = None,
) -> st.CreateIndex:
    """Return the statement that makes an index; ``node`` None: as part of CREATE TABLE ... LIKE."""
    return st.CreateIndex(
        table=table,
        name=index.name or None,
        if_not_exists=node is not None and node.if_not_exists,
        unique=index.unique,
        method=index.method,
        attnums=index.attnums,
        descending=index.descending,
        nulls_first=index.nulls_first,
        nulls_not_distinct=index.nulls_not_distinct,
        include=index.include,
        concurrently=node is not None and node.concurrently,
        only=node is not None and node.relation.only,
        names=names,
        hidden=hidden,
        written=index.written,
        expressions=index.expressions,
        where_sql=index.where_sql,
        opclasses=index.opclasses,
        collations=index.collations,
        options=index.options,
        guard=index.guard,
    )


def key_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return what the columns of an index are called: each name once, later ones numbered (ChooseIndexColumnNames)."""
    taken: list[str] = []
    for name in names:
        number, found = 0, name
        while found in taken:
            number += 1
            found = clip(name, MAX_NAME_BYTES - len(str(number))) + str(number)
        taken.append(found)
    return tuple(taken)


def computed_index(
    index: IndexDef, table: RelationDef, keys: Sequence[Expr], where: Expr | None, catalog: Catalog
) -> tuple[IndexDef, tuple[ColumnDef, ...]]:
    """Return an index over ``keys`` (Vars for columns) of the rows for which ``where`` holds, and its hidden columns.

    One row that is not in a partial index has NULL as its first key, so no other row is equal to it; where
    NULLs are equal, a column behind the keys tells which rows are in it (``IndexDef.guard``). Of values of
    which only parts are indexed (trigrams of texts, keys of an hstore, extents of shapes) the hidden column
    has these.
    """
    written = tuple(key.attnum if isinstance(key, Var) else 0 for key in keys)
    attnums: list[int] = []
    hidden: list[ColumnDef] = []
    free = _free(table)
    for position, key in enumerate(keys):
        by_parts = KEPT_BY.get(index.opclasses[position]) if index.opclasses else None
        kept = key if by_parts is None else _parts_of(key, *by_parts, catalog)
        by_extent = keeps_extents(index, key.type.oid)
        if by_extent:
            kept = extent(key, catalog)
        if where is not None and position == 0:
            kept = _where(where, kept)
        elif isinstance(key, Var) and by_parts is None and not by_extent:
            attnums.append(key.attnum)
            continue
        attnum = next(free)
        attnums.append(attnum)
        hidden.append(hidden_column(attnum, kept, table, catalog))
    expressions = tuple("" if isinstance(key, Var) else deparse_expr(key, table) for key in keys)
    where_sql = "" if where is None else deparse_expr(where, table)
    guard = 0
    if where is not None and index.unique and index.nulls_not_distinct:
        guard = next(free)
        hidden.append(
            hidden_column(guard, _where(where, Const(type=SqlType(BOOL), value=True)), table, catalog)
        )
    made = replace(
        index,
        attnums=tuple(attnums),
        written=written,
        expressions=expressions,
        where_sql=where_sql,
        guard=guard,
    )
    return made, tuple(hidden)


def _where(condition: Expr, value: Expr) -> Expr:
    """Return an expression that is ``value`` where a condition holds, else NULL."""
    none = Const(type=value.type, value=None)
    return CaseExpr(type=value.type, whens=(CaseWhen(condition=condition, result=value),), default=none)


def _free(table: RelationDef) -> Iterator[int]:
    """Yield ids for hidden columns: those of hidden columns that have been dropped, then new ones.

    No file or row has another column under such an id: whoever adds a hidden column stores all rows of the table anew.
    """
    kept = {attnum for index in table.unbuilt for attnum in index.kept}
    yield from [c.attnum for c in table.columns if c.hidden and c.dropped and c.attnum not in kept]
    yield from itertools.count(len(table.columns) + 1)


def with_hidden(table: RelationDef, hidden: Sequence[ColumnDef]) -> RelationDef:
    """Return a table with the hidden columns of a new index (``computed_index``), whose rows have no values
    of them yet.
    """
    columns = list(table.columns)
    for column in hidden:
        columns[column.attnum - 1 : column.attnum] = [column]
    return replace(table, columns=tuple(columns))


def lacks_hidden(before: RelationDef, after: RelationDef) -> bool:
    """Tell whether rows of a table lack values of hidden columns that it gets."""
    return any(
        column.hidden and not column.dropped and (at >= len(before.columns) or before.columns[at].dropped)
        for at, column in enumerate(after.columns)
    )


def _parts_of(key: Expr, owner: str, function: str, catalog: Catalog) -> Expr:
    """Return the call of an extension's function of a key. Raises SqlError 0A000 where it has gone with its
    extension.
    """
    extension = catalog.extension(owner)
    made = [f for f in catalog.functions_named(function) if extension and f.extension == extension.oid]
    if not made:
        raise not_supported(f"an index by {function} without the extension {owner}")
    context = stored_context(catalog, "")
    found = resolve_call(context, "", f"#{made[0].oid}", [key.type.oid])
    return make_call(Scope(context=context), found, [key], None)


def hidden_column(attnum: int, expr: Expr, table: RelationDef, catalog: Catalog) -> ColumnDef:
    """Return a column that keeps what ``expr`` gives; pg_attribute does not show it, and no statement can name it."""
    return ColumnDef(
        attnum=attnum,
        name=f"........pg.dropped.{attnum}........",
        type=plain_type(expr.type),
        default_sql=deparse_expr(expr, table),
        collation=expr_collation(expr, [table], catalog) or plain_collation(plain_type(expr.type).oid),
        generated="s",
        hidden=True,
    )


def index_keys(index: IndexDef, table: RelationDef, catalog: Catalog) -> tuple[list[Expr], Expr | None]:
    """Return the keys of an index and the condition of its rows as expressions over its table (range 0)."""
    columns = {column.attnum: column for column in table.columns}
    keys: list[Expr] = []
    for position, attnum in enumerate(index.key_columns):
        if attnum:
            column = columns[attnum]
            keys.append(Var(type=column.type, range=0, attnum=attnum, name=column.name))
        else:
            keys.append(_stored(index.expressions[position], "INDEX", table, catalog))
    where = _stored(index.where_sql, "INDEX WHERE", table, catalog) if index.where_sql else None
    return keys, where


def _stored(sql: str, clause: str, table: RelationDef, catalog: Catalog) -> Expr:
    context = stored_context(catalog, sql)
    expr: Expr = without_spans(bind_kept(table_scope(context, table), parse_expression(sql), clause))
    return resolve_unknown(expr, context.env)


def rebound_indexes(
    bind_over: RelationDef,
    table: RelationDef,
    catalog: Catalog,
    change: Callable[[Expr], Expr] = lambda expr: expr,
) -> RelationDef:
    """Return ``table`` with its computed indexes, whose texts mean the columns of ``bind_over``, written anew.

    ``change``: made to each expression before. For columns with new names the two differ, for columns with
    new types they are one. Raises SqlError where an expression has no meaning any more.
    """
    columns = list(table.columns)
    indexes: list[IndexDef] = []
    for index in table.every_index:
        if index.computed:
            keys, where = index_keys(index, bind_over, catalog)
            keys = [change(key) for key in keys]
            where = None if where is None else change(where)
            made, hidden = computed_index(index, table, keys, where, catalog)
            old = [a for a, w in zip(index.kept, (*index.written, 0), strict=False) if a != w]
            for attnum, column in zip(old, hidden, strict=True):
                columns[attnum - 1] = replace(
                    columns[attnum - 1], type=column.type, default_sql=column.default_sql
                )
            index = replace(made, attnums=index.attnums, guard=index.guard)
        indexes.append(index)
    built = len(table.indexes)
    return replace(
        table, columns=tuple(columns), indexes=tuple(indexes[:built]), unbuilt=tuple(indexes[built:])
    )


def named_anew(table: RelationDef, attnums: Collection[int]) -> RelationDef:
    """Return a table whose indexes on some columns, hidden ones too, call their columns as these are called now: they
    are built anew.
    """
    for index in table.every_index:
        if index.key_names and not set(attnums).isdisjoint(index.kept + index.include + index.written):
            columns = index.key_columns + index.include
            names = [
                table.column(a).name if a else name for a, name in zip(columns, index.key_names, strict=True)
            ]
            made = replace(index, key_names=key_names(names) if index.computed else ())
            table = with_index_changed(table, index.oid, partial(_instead, made))
    return table


def _instead(made: IndexDef, _index: IndexDef) -> IndexDef:
    return made


def without_indexes(table: RelationDef, oids: Collection[int]) -> RelationDef:
    """Return a table without some of its indexes, and without the columns that were theirs alone."""
    gone = {a for i in table.every_index if i.oid in oids for a in i.kept if table.column(a).hidden}
    return replace(
        table,
        indexes=tuple(i for i in table.indexes if i.oid not in oids),
        unbuilt=tuple(i for i in table.unbuilt if i.oid not in oids),
        columns=tuple(dropped_column(c) if c.attnum in gone else c for c in table.columns),
    )


def dropped_column(column: ColumnDef) -> ColumnDef:
    """Return a column as one that has been dropped; one that was an index's own is known as such from then
    on: it has no number, and serves the next one.
    """
    return replace(
        column,
        name=f"........pg.dropped.{column.attnum}........",
        dropped=True,
        not_null=False,
        default_sql=None,
        missing_value=None,
        identity="",
        generated="",
        domain=0,
    )


def _predicate(context: BindContext, table: RelationDef, node: ast.Expression) -> Expr:
    where: Expr = bind_kept(table_scope(context, table), node, "INDEX WHERE")
    _check_columns(where)
    where = with_oids(context, coerce_to_boolean(where, "WHERE", context.env))
    return where


def _always_same(context: BindContext, expr: Expr) -> bool:
    """Tell whether an expression may be kept in an index: functions are declared immutable, or their bodies are.

    Raises SqlError 0A000 as ``runnable``.
    """
    made = runnable(expr, context.catalog)
    return is_immutable(expr) or is_immutable(made)


def _check_columns(expr: Expr) -> None:
    for item in walk(expr):
        if isinstance(item, Var) and item.attnum < 0:
            raise SqlError("0A000", "index creation on system columns is not supported")
        if isinstance(item, Var) and item.attnum == WHOLE_ROW:
            raise not_supported("an index on a whole row", span=item.span)


def _indexable_relation(table: RelationDef) -> None:
    if table.kind == "c":
        raise SqlError("42809", f'"{table.name}" is a composite type')
    if table.kind == "i":
        raise SqlError("42809", f'"{table.name}" is an index')
    if table.kind not in STORING:
        what = RELATION_KINDS[table.kind].plural
        raise SqlError(
            "42809",
            f'cannot create index on relation "{table.name}"',
            detail=f"This operation is not supported for {what}.",
        )
    if table.virtual:
        raise SqlError("42501", f'permission denied: "{table.name}" is a system catalog')


def _method(catalog: Catalog, name: str) -> IndexMethod:
    for method in METHODS:
        if method == name and (method != BLOOM or catalog.extension(BLOOM) is not None):
            return method
    raise SqlError("42704", f'access method "{name}" does not exist')


def _check_plain(node: ast.CreateIndex, method: str) -> None:
    """Refuse what only btree has."""
    if node.unique:
        raise SqlError("0A000", f'access method "{method}" does not support unique indexes')
    if node.include and method not in ("gist", "spgist"):
        raise SqlError("0A000", f'access method "{method}" does not support included columns')
    if len(node.elements) > 1 and method not in ("brin", "gin", "gist", "bloom"):
        raise SqlError("0A000", f'access method "{method}" does not support multicolumn indexes')
    if any(element.direction for element in node.elements):
        raise SqlError("0A000", f'access method "{method}" does not support ASC/DESC options')
    if any(element.nulls for element in node.elements):
        raise SqlError("0A000", f'access method "{method}" does not support NULLS FIRST/LAST options')


class _IndexKey(NamedTuple):
    attnum: int  # 0: an expression
    expr: Expr
    name: str
    descending: bool
    nulls_first: bool
    opclass: str
    collation: int  # 0: the one of the column or type


def _plain_column(table: RelationDef, element: ast.IndexElement) -> ColumnDef:
    for column in table.live:
        if column.name == element.name:
            return column
    if element.name in SYSTEM_COLUMNS:
        raise SqlError("0A000", "index creation on system columns is not supported", span=element.span)
    raise SqlError("42703", f'column "{element.name}" does not exist', span=element.span)


def key_expression(context: BindContext, table: RelationDef, node: ast.Expression) -> Expr:
    """Bind the expression of an index's key over the table (range 0)."""
    return bind_kept(table_scope(context, table), node, "INDEX")


def index_expression(
    context: BindContext, element: ast.IndexElement, bound: Expr, method: str
) -> tuple[str, Expr]:
    """Return what an index's key is called whose expression is ``bound``, and what that is when it is evaluated.

    Raises SqlError 0A000 for system columns and whole rows, 42704 and 42P16 for its type, 42P17 where it is
    not immutable.
    """
    node = element.expr
    if node is None:
        raise AssertionError("an index element is no expression")
    if bound.type.oid == UNKNOWN and not element.opclass:  # a literal, which nothing gives a type
        raise no_default_class(UNKNOWN, method)
    expr: Expr = with_oids(context, resolve_unknown(bound, context.env))
    name = column_name(node, without_collate(expr))
    name = "expr" if name == UNNAMED else name
    _check_columns(expr)
    check_column_type(name, expr.type, element.span)
    if not _always_same(context, expr):
        raise SqlError("42P17", "functions in index expression must be marked IMMUTABLE")
    return name, expr


def _index_key(
    context: BindContext, table: RelationDef, element: ast.IndexElement, bound: Expr | None, method: str
) -> _IndexKey:
    expr: Expr
    if bound is None:
        column = _plain_column(table, element)
        name, expr = column.name, Var(type=column.type, range=0, attnum=column.attnum, name=column.name)
        declared = column.declared
    else:
        name, expr = index_expression(context, element, bound, method)
        declared = expr.type
    kept = plain_type(expr.type)
    collation, own = _key_collation(context, table, expr, element)
    expr = without_collate(expr)
    check_class_made(context, method, element.opclass, declared.oid, element.span)
    if not element.opclass:
        check_indexable(declared.oid, method)
    opclass = check_class(kept, method, element.opclass, element.span)
    if element.opclass_options:
        if method in ("btree", "hash", "gin", "spgist"):
            raise SqlError("22023", f"operator class {element.opclass[-1]} has no options")
        raise not_supported("an operator class parameter", span=element.span)
    descending = element.direction == "desc"
    nulls_first = element.nulls == "first" or (descending and element.nulls != "last")
    attnum = expr.attnum if isinstance(expr, Var) else 0
    changed = collation if collation != own else 0
    return _IndexKey(attnum, expr, name, descending, nulls_first, opclass, changed)


def _key_collation(
    context: BindContext, table: RelationDef, expr: Expr, element: ast.IndexElement
) -> tuple[int, int]:
    """Return the collation of a key, and the one it would have without COLLATE at its top.

    Raises SqlError 42P22 where it is a text of none, 42804, 42704, 0A000.
    """
    own = expr_collation(without_collate(expr), [table], context.catalog)
    if element.collation:
        return column_collation(context, element.collation, plain_type(expr.type), None), own
    collation = expr_collation(expr, [table], context.catalog)
    if not collation and plain_collation(plain_type(expr.type).oid):
        raise SqlError(
            "42P22", "could not determine which collation to use for index expression", hint=COLLATE_HINT
        )
    return collation, own
