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
from planner.base.quoting import quote_identifier
from planner.catalog import Catalog, ConstraintDef, IndexDef, RelationDef
from planner.deparse import nodes as _nodes  # noqa: F401 - completes the printer
from planner.deparse.changes import print_changes
from planner.deparse.expr import FunctionName, Level, Printer, TypeName, quote_literal, stored_function
from planner.deparse.query import print_query
from planner.query import Expr, Insert, KeptChange, KeptMerge, QueryExpr, Range, RangeColumn
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
    """Return the text of an INSERT, UPDATE, DELETE or MERGE, as ``deparse_query`` does that of a query in the
    body of a function.

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

    ``names`` override the output column names (those a view was given); where they are not visible (in bodies
    of functions), each column goes by its own, if it has one. ``parameters``: what ``$1`` ... are called in
    the body of ``function``, whose columns go with their tables' names. ``taken``: what no range may be
    called. ``table`` finds what items of WITH change.
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
    """Return pg_get_constraintdef's text for an EXCLUDE constraint; ``keys`` and ``where`` as they print, ""
    for no condition.
    """
    items = [f"{key} WITH {operator}" for key, operator in zip(keys, operators, strict=True)]
    text = f"EXCLUDE USING {quote_identifier(index.method)} ({', '.join(items)})"
    if include:
        text += f" INCLUDE ({', '.join(quote_identifier(c) for c in include)})"
    text += with_options(index)
    return f"{text} WHERE ({where})" if where else text


_ACTIONS = {"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def foreign_key_definition(
    constraint: ConstraintDef, table: RelationDef, referenced: RelationDef, qualify: Qualify = always
) -> str:
    """Return pg_get_constraintdef's text for a FOREIGN KEY, but for ``timing_words``."""
    foreign = constraint.foreign
    if foreign is None:
        raise AssertionError(f"constraint {constraint.name} is no foreign key")

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


def with_options(index: IndexDef) -> str:
    """Return WITH and an index's options as its definition ends with them; empty of none."""
    shown = ", ".join(_option_text(*item) for item in index.options.items())
    return f" WITH ({shown})" if shown else ""


def _option_text(name: str, value: str) -> str:
    shown = value if quote_identifier(value) == value else quote_literal(value)
    return f"{quote_identifier(name)}={shown}"
