"""CREATE INDEX: which columns and expressions it is over, in which order, of which rows."""

from __future__ import annotations

from typing import Literal, NamedTuple

from planner import ast
from planner import statements as st
from planner.bind.context import BindContext
from planner.bind.expr import check_collation
from planner.bind.options import check_storage_options
from planner.bind.table_parts import (
    PLURALS,
    check_indexable,
    check_tablespace,
)
from planner.catalog import ColumnDef, RelationDef
from planner.errors import Span, SqlError, not_supported
from planner.facts import rows
from planner.scope import SYSTEM_COLUMNS

MAX_INDEX_COLUMNS = 32


def bind_create_index(context: BindContext, node: ast.CreateIndex) -> st.CreateIndex:
    """CREATE [UNIQUE] INDEX on plain columns.

    Raises SqlError 42P01, 42809, 42703, 42704, 54011, 22023; 0A000 for expressions, predicates and other methods.
    """
    reference = node.relation
    table = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    _indexable_relation(table)
    method = _method(node.method)
    if node.where is not None:
        raise not_supported("a partial index", span=node.where.span)
    check_tablespace(node.tablespace)
    check_storage_options(node.options, method)
    if len(node.elements) + len(node.include) > MAX_INDEX_COLUMNS:
        raise SqlError("54011", f"cannot use more than {MAX_INDEX_COLUMNS} columns in an index")
    if method == "hash":
        _check_hash(node)
    keys = [_index_column(table, element, method) for element in node.elements]
    for element in node.include:
        if element.expr is not None:
            raise SqlError("0A000", "expressions are not supported in included columns", span=element.span)
    include = tuple(_plain_column(table, element).attnum for element in node.include)
    return st.CreateIndex(
        table=table.oid,
        name=node.name or None,
        if_not_exists=node.if_not_exists,
        unique=node.unique,
        method=method,
        attnums=tuple(key.attnum for key in keys),
        descending=tuple(key.descending for key in keys),
        nulls_first=tuple(key.nulls_first for key in keys),
        nulls_not_distinct=node.nulls_not_distinct,
        include=include,
        concurrently=node.concurrently,
    )


def _indexable_relation(table: RelationDef) -> None:
    if table.kind == "i":
        raise SqlError("42809", f'"{table.name}" is an index')
    if table.kind not in "rm":
        what = PLURALS[table.kind]
        raise SqlError(
            "42809",
            f'cannot create index on relation "{table.name}"',
            detail=f"This operation is not supported for {what}.",
        )
    if table.virtual:
        raise SqlError("42501", f'permission denied: "{table.name}" is a system catalog')


def _method(name: str) -> Literal["btree", "hash"]:
    if name == "btree":
        return "btree"
    if name == "hash":
        return "hash"
    if any(row["amname"] == name and row["amtype"] == "i" for row in rows("am")):
        raise not_supported(f'index access method "{name}"')
    raise SqlError("42704", f'access method "{name}" does not exist')


def _check_hash(node: ast.CreateIndex) -> None:
    if node.unique:
        raise SqlError("0A000", 'access method "hash" does not support unique indexes')
    if node.include:
        raise SqlError("0A000", 'access method "hash" does not support included columns')
    if len(node.elements) > 1:
        raise SqlError("0A000", 'access method "hash" does not support multicolumn indexes')
    if any(element.direction for element in node.elements):
        raise SqlError("0A000", 'access method "hash" does not support ASC/DESC options')
    if any(element.nulls for element in node.elements):
        raise SqlError("0A000", 'access method "hash" does not support NULLS FIRST/LAST options')


class _IndexColumn(NamedTuple):
    attnum: int
    descending: bool
    nulls_first: bool


def _plain_column(table: RelationDef, element: ast.IndexElement) -> ColumnDef:
    if element.expr is not None:
        raise not_supported("an expression index", span=element.span or element.expr.span)
    for column in table.live:
        if column.name == element.name:
            return column
    if element.name in SYSTEM_COLUMNS:
        raise SqlError("0A000", "index creation on system columns is not supported", span=element.span)
    raise SqlError("42703", f'column "{element.name}" does not exist', span=element.span)


def _index_column(table: RelationDef, element: ast.IndexElement, method: str) -> _IndexColumn:
    column = _plain_column(table, element)
    if element.collation:
        check_collation(element.collation, element.span)
    if element.opclass_options:
        raise not_supported("an operator class parameter", span=element.span)
    if element.opclass:
        _check_opclass(element.opclass, method, element.span)
    else:
        check_indexable(column.type.oid, method)
    descending = element.direction == "desc"
    nulls_first = element.nulls == "first" or (descending and element.nulls != "last")
    return _IndexColumn(column.attnum, descending, nulls_first)


def _check_opclass(name: ast.Name, method: str, span: Span | None) -> None:
    """Accept default operator classes and the bytewise pattern classes, which order as all text does."""
    oid = 403 if method == "btree" else 405
    for row in rows("opclass"):
        if row["opcname"] == name[-1] and int(row["opcmethod"]) == oid:
            if row["opcdefault"] == "t" or name[-1].endswith("_pattern_ops"):
                return
            raise not_supported(f'operator class "{name[-1]}"', span=span)
    raise SqlError("42704", f'operator class "{".".join(name)}" does not exist for access method "{method}"')
