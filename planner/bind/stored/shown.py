"""Stored texts over a table's columns as definitions show them: indexes and their keys, expressions of
statistics, conditions.

They are bound to be printed for a reader, so this stands with what binds them.
"""

from __future__ import annotations

from planner.base.quoting import quote_identifier
from planner.bind.expression.expr import bind_clause
from planner.bind.stored import EMPTY_CATALOG, stored_context, table_scope
from planner.catalog import IndexDef, RelationDef
from planner.deparse import STORED_READER, Qualify, Reader, always, deparse_expr, with_options
from planner.deparse.expr import (
    collation_name,
    depends_on_styles,
)
from planner.indexing.opclass_extensions import HSTORE_CLASS, TRIGRAM_CLASS, TRIGRAM_EXTENSION
from planner.parse import parse_expression
from planner.query import (
    CoalesceExpr,
    CurrentSetting,
    Expr,
    FuncExpr,
    MinMaxExpr,
    NullIf,
)


def index_definition(
    index: IndexDef,
    table: RelationDef,
    *,
    pretty: bool = False,
    qualify: Qualify = always,
    reader: Reader = STORED_READER,
) -> str:
    """Return pg_get_indexdef's text; the table is qualified, in pretty form only where ``qualify`` says so."""
    columns = {c.attnum: c.name for c in table.columns}
    items: list[str] = []
    for position in range(len(index.attnums)):
        item = index_key_text(index, table, position, pretty=pretty, part=False, reader=reader)
        if index.collations and index.collations[position]:
            item += f" COLLATE {collation_name(index.collations[position], reader.function_name)}"
        if position < len(index.opclasses) and index.opclasses[position] not in ("", HSTORE_CLASS):
            item += f" {_class_name(index.opclasses[position], reader)}"
        if index.method == "btree":
            descending = position < len(index.descending) and index.descending[position]
            first = index.nulls_first[position] if position < len(index.nulls_first) else descending
            if descending:
                item += " DESC" + ("" if first else " NULLS LAST")
            elif first:
                item += " NULLS FIRST"
        items.append(item)
    name = quote_identifier(table.name)
    if not pretty or qualify(table.schema, table.name):
        name = f"{reader.schema_name(table.schema)}.{name}"
    only = "ONLY " if table.kind == "p" else ""
    text = (
        f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {quote_identifier(index.name)} ON {only}{name} "
        f"USING {quote_identifier(index.method)} ({', '.join(items)})"
    )
    if index.include:
        text += f" INCLUDE ({', '.join(quote_identifier(columns[a]) for a in index.include)})"
    if index.nulls_not_distinct:
        text += " NULLS NOT DISTINCT"
    text += with_options(index)
    where = table.predicate_of(index)
    if where:
        text += f" WHERE {over_table(where, table, pretty=pretty, reader=reader)[0]}"
    return text


def _class_name(name: str, reader: Reader) -> str:
    """Return an operator class as the reader finds it: an extension's where its functions are."""
    extension = (
        reader.catalog.extension(TRIGRAM_EXTENSION) if reader.catalog and name == TRIGRAM_CLASS else None
    )
    if reader.catalog is None or extension is None:
        return name
    member = next(f for f in reader.catalog.functions_named("show_trgm") if f.extension == extension.oid)
    written = reader.function_name(member.oid, member.schema, member.name)
    return written.removesuffix(member.name) + name


def index_key_text(
    index: IndexDef,
    table: RelationDef,
    position: int,
    *,
    pretty: bool,
    part: bool = True,
    reader: Reader = STORED_READER,
) -> str:
    """Return a key column of an index: a name, or an expression, in parentheses unless it looks like a call.

    ``part``: as pg_get_indexdef(index, column) gives it, whose pretty form has no parentheses around a call's name.
    """
    attnum = index.key_columns[position]
    if attnum:
        return quote_identifier(table.column(attnum).name)
    return _in_parentheses(*over_table(index.expressions[position], table, pretty=pretty, reader=reader))


def expression_in_definition(sql: str, table: RelationDef, reader: Reader) -> str:
    """Return a stored expression over a table as definitions of statistics have it: pretty, in one line, in
    parentheses unless it is a call.
    """
    _, expr = over_table(sql, table, pretty=False, reader=reader)
    text = deparse_expr(
        expr, table, pretty=True, settings=reader.settings, type_name=reader.type_name,
        function_name=reader.function_name, indented=False,
    )  # fmt: skip
    return _in_parentheses(text, expr)


def _in_parentheses(text: str, expr: Expr) -> str:
    """Return an expression as an element of a definition: in parentheses unless it looks like a call."""
    called = isinstance(expr, FuncExpr) and (
        expr.cast == "call" or (expr.cast == "sql" and not text.startswith("("))
    )
    if called or isinstance(expr, CoalesceExpr | MinMaxExpr | NullIf | CurrentSetting):
        return text
    return f"({text})"


def over_table(sql: str, table: RelationDef, *, pretty: bool, reader: Reader) -> tuple[str, Expr]:
    """Return a stored expression over a table's columns as text, and bound."""
    context = stored_context(reader.catalog or EMPTY_CATALOG, sql)
    expr = bind_clause(table_scope(context, table), parse_expression(sql), "INDEX")
    if pretty or '"#' in sql or depends_on_styles(sql, reader.settings):
        shown = deparse_expr(
            expr, table, pretty=pretty, settings=reader.settings, type_name=reader.type_name,
            function_name=reader.function_name,
        )  # fmt: skip
        return shown, expr
    return sql, expr
