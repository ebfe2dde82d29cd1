"""Bound trees -> canonical SQL text: defaults, checks, views, indexes, keys.

What the catalog stores is this text in plain form with every relation qualified, and it is bound anew where it is
used; what ``pg_get_expr``, ``pg_get_viewdef``, ``pg_get_constraintdef`` and ``pg_get_indexdef`` show is the same
printer with the reader's search path and, for psql, in pretty form.

    Select(targets=[Var 0.1], ranges=[public.t], where=OpExpr(...))
     SELECT a
       FROM public.t
      WHERE (a > 0)

Names of ranges are made unique against the queries around them, so that a Var of an outer level never falls
to an inner range of the same name. A merged column of JOIN ... USING prints as what it was bound to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgwire.codecs.settings import STORED_TEXT, CodecSettings
from planner.catalog import Catalog, ConstraintDef, IndexDef, RelationDef
from planner.deparse import nodes as _nodes  # noqa: F401 - completes the printer
from planner.deparse.changes import print_changes
from planner.deparse.expr import (
    FunctionName,
    Level,
    Printer,
    TypeName,
    collation_name,
    depends_on_styles,
    quote_identifier,
    quote_literal,
    stored_function,
)
from planner.deparse.query import print_query
from planner.indexing.opclass_extensions import HSTORE_CLASS, TRIGRAM_CLASS, TRIGRAM_EXTENSION
from planner.parse import parse_expression
from planner.query import (
    CoalesceExpr,
    CurrentSetting,
    Expr,
    FuncExpr,
    Insert,
    KeptChange,
    KeptMerge,
    MinMaxExpr,
    NullIf,
    QueryExpr,
    Range,
    RangeColumn,
)
from planner.types.facts import stored_type

Qualify = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads a definition: what users' types and functions, and their values, are called."""

    settings: CodecSettings = STORED_TEXT
    type_name: TypeName = stored_type
    function_name: FunctionName = stored_function
    catalog: Catalog | None = None  # which has the users' functions that definitions call
    class_name: Callable[[int], str] | None = None  # of users' operator classes, by oid
    schema_name: Callable[[str], str] = quote_identifier


STORED_READER = Reader()


def always(schema: str, name: str) -> bool:
    """Qualify every relation: text that means the same under any search path."""
    return True


def deparse_expr(
    expr: Expr,
    relation: RelationDef | None = None,
    *,
    pretty: bool = False,
    settings: CodecSettings = STORED_TEXT,
    qualify: Qualify = always,
    type_name: TypeName = stored_type,
    function_name: FunctionName = stored_function,
    parameters: Sequence[str] = (),
    indented: bool = True,
) -> str:
    """Return a default's or check's text. Vars (range 0, level 0) are columns of ``relation``.

    Implicit casts at the top are not shown, as pg_get_expr does.
    """
    columns = (
        tuple(RangeColumn(name=c.name, type=c.type, attnum=c.attnum) for c in relation.columns)
        if relation is not None
        else ()
    )
    return deparse_over_columns(
        expr,
        columns,
        name=relation.name if relation is not None else "",
        pretty=pretty,
        settings=settings,
        qualify=qualify,
        type_name=type_name,
        function_name=function_name,
        parameters=parameters,
        indented=indented,
    )


def deparse_over_columns(
    expr: Expr,
    columns: Sequence[RangeColumn] = (),
    *,
    name: str = "",
    pretty: bool = False,
    settings: CodecSettings = STORED_TEXT,
    qualify: Qualify = always,
    type_name: TypeName = stored_type,
    function_name: FunctionName = stored_function,
    parameters: Sequence[str] = (),
    indented: bool = True,
) -> str:
    """As ``deparse_expr`` for a table that is only being defined."""
    level = Level(ranges=(Range(alias=name, columns=tuple(columns)),), names=(name,))
    printer = Printer(
        pretty=pretty,
        settings=settings,
        qualify=qualify,
        type_name=type_name,
        function_name=function_name,
        parameters=parameters,
        indented=indented,
        levels=[level],
        query=print_query,
    )
    printer.expr(expr, False)
    return printer.out


def deparse_change(
    change: Insert | KeptChange | KeptMerge,
    table: Callable[[int], RelationDef | None],
    *,
    settings: CodecSettings = STORED_TEXT,
    qualify: Qualify = always,
    type_name: TypeName = stored_type,
    function_name: FunctionName = stored_function,
    function: str | None = None,
    parameters: Sequence[str] = (),
) -> str:
    """Return the text of an INSERT, UPDATE, DELETE or MERGE, as ``deparse_query`` does that of a query in the body of a function.

    ``table`` finds tables by oid. Raises SqlError 42P01, 42703 where what is changed has gone.
    """
    printer = Printer(
        settings=settings,
        qualify=qualify,
        type_name=type_name,
        function_name=function_name,
        function=function or "",
        parameters=parameters,
        levels=[] if function is None else [Level(ranges=(), names=())],
        indented=True,
        query=print_query,
        table=table,
    )
    print_changes(printer, change)
    return printer.out


def deparse_query(
    query: QueryExpr,
    *,
    pretty: bool = False,
    settings: CodecSettings = STORED_TEXT,
    qualify: Qualify = always,
    type_name: TypeName = stored_type,
    function_name: FunctionName = stored_function,
    function: str | None = None,
    parameters: Sequence[str] = (),
    names: Sequence[str] = (),
    names_visible: bool = True,
    indented: bool = True,
    taken: Sequence[str] = (),
    table: Callable[[int], RelationDef | None] | None = None,
) -> str:
    """Return a query's text as pg_get_viewdef prints it, with its leading blank and without the semicolon.

    ``names`` override the output column names (those a view was given); where they are not visible (in bodies of functions), each column goes by its own, if it has one. ``parameters``: what ``$1`` ... are called in the body
    of ``function``, whose columns go with their tables' names. ``taken``: what no range may be called. ``table`` finds what items of WITH change.
    """
    printer = Printer(
        pretty=pretty,
        settings=settings,
        qualify=qualify,
        type_name=type_name,
        function_name=function_name,
        function=function or "",
        parameters=parameters,
        levels=[] if function is None and not taken else [Level(ranges=(), names=taken)],
        indented=indented,
        query=print_query,
        table=table,
    )
    print_query(
        printer, query, names_visible, names or [c.name for c in query.columns] if names_visible else ()
    )
    return printer.out


def check_definition(sql: str) -> str:
    """Return pg_get_constraintdef's text for a CHECK whose expression prints as ``sql``."""
    return f"CHECK ({sql})"


def key_definition(
    primary: bool, columns: Sequence[str], *, include: Sequence[str] = (), nulls_not_distinct: bool = False
) -> str:
    """Return pg_get_constraintdef's text for a PRIMARY KEY or UNIQUE constraint."""
    word = "PRIMARY KEY" if primary else "UNIQUE NULLS NOT DISTINCT" if nulls_not_distinct else "UNIQUE"
    text = f"{word} ({', '.join(quote_identifier(c) for c in columns)})"
    if include:
        text += f" INCLUDE ({', '.join(quote_identifier(c) for c in include)})"
    return text


def exclusion_definition(
    index: IndexDef, keys: Sequence[str], operators: Sequence[str], where: str, include: Sequence[str] = ()
) -> str:
    """Return pg_get_constraintdef's text for an EXCLUDE constraint; ``keys`` and ``where`` as they print, "" for no condition."""
    items = [f"{key} WITH {operator}" for key, operator in zip(keys, operators, strict=True)]
    text = f"EXCLUDE USING {quote_identifier(index.method)} ({', '.join(items)})"
    if include:
        text += f" INCLUDE ({', '.join(quote_identifier(c) for c in include)})"
    text += _with_options(index)
    return f"{text} WHERE ({where})" if where else text


_ACTIONS = {"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def foreign_key_definition(
    constraint: ConstraintDef, table: RelationDef, referenced: RelationDef, qualify: Qualify = always
) -> str:
    """Return pg_get_constraintdef's text for a FOREIGN KEY, but for ``timing_words``."""
    foreign = constraint.foreign
    assert foreign is not None

    def names(relation: RelationDef, attnums: Sequence[int]) -> str:
        return ", ".join(quote_identifier(relation.column(a).name) for a in attnums)

    name = quote_identifier(referenced.name)
    if qualify(referenced.schema, referenced.name):
        name = f"{quote_identifier(referenced.schema)}.{name}"
    text = f"FOREIGN KEY ({names(table, constraint.attnums)}) REFERENCES {name}({names(referenced, foreign.attnums)})"
    if foreign.match == "f":
        text += " MATCH FULL"
    if foreign.on_update in _ACTIONS:
        text += f" ON UPDATE {_ACTIONS[foreign.on_update]}"
    if foreign.on_delete in _ACTIONS:
        text += f" ON DELETE {_ACTIONS[foreign.on_delete]}"
    if foreign.delete_attnums:
        text += f" ({names(table, foreign.delete_attnums)})"
    return text


def timing_words(constraint: ConstraintDef) -> str:
    """Return what pg_get_constraintdef ends with: when a constraint is checked, and whether all rows were."""
    text = " DEFERRABLE" if constraint.deferrable else ""
    if constraint.deferred:
        text += " INITIALLY DEFERRED"
    return text if constraint.validated else f"{text} NOT VALID"


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
    text += _with_options(index)
    where = table.predicate_of(index)
    if where:
        text += f" WHERE {over_table(where, table, pretty=pretty, reader=reader)[0]}"
    return text


def _with_options(index: IndexDef) -> str:
    shown = ", ".join(_option_text(*item) for item in index.options.items())
    return f" WITH ({shown})" if shown else ""


def _option_text(name: str, value: str) -> str:
    shown = value if quote_identifier(value) == value else quote_literal(value)
    return f"{quote_identifier(name)}={shown}"


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
    """Return a stored expression over a table as definitions of statistics have it: pretty, in one line, in parentheses unless it is a call."""
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
    from planner.bind.expression.expr import bind_clause
    from planner.bind.stored import EMPTY_CATALOG, stored_context, table_scope

    context = stored_context(reader.catalog or EMPTY_CATALOG, sql)
    expr = bind_clause(table_scope(context, table), parse_expression(sql), "INDEX")
    if pretty or '"#' in sql or depends_on_styles(sql, reader.settings):
        shown = deparse_expr(
            expr, table, pretty=pretty, settings=reader.settings, type_name=reader.type_name,
            function_name=reader.function_name,
        )  # fmt: skip
        return shown, expr
    return sql, expr
