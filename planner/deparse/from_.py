"""What stands in FROM as text: tables, views, sub-selects, functions, joins, under the names that
``planner.deparse.names`` gives them.

    FROM (t x(p, q)
      JOIN u USING (k)) j(x, y)

``level_of`` names everything at one query level; ``values`` is here because VALUES may stand in FROM without
a SELECT of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.base.quoting import quote_identifier
from planner.deparse.expr import INDENT_JOIN, INDENT_STEP, Level, Printer, stored_function
from planner.deparse.names import VALUES_NAME, Names, is_called_otherwise, names_of, unlike
from planner.facts import facts
from planner.query import (
    CoalesceExpr,
    CteRange,
    CurrentSetting,
    Expr,
    FromItem,
    FuncExpr,
    FunctionRange,
    Join,
    JoinKind,
    MinMaxExpr,
    NullIf,
    QueryExpr,
    Range,
    RangeRef,
    RelationRange,
    Sample,
    SampleKey,
    Select,
    SetOp,
    SqlCall,
    SubqueryRange,
    Values,
)
from planner.types import SqlType


def level_of(p: Printer, query: QueryExpr) -> Level:
    """Return the level that a query is below those of ``p``: its ranges under names that none of these has."""
    outer = {name for level in p.levels for name in level.all_names()}
    ranges: Sequence[Range] = query.ranges if isinstance(query, Select) else ()
    stored = p.function_name is stored_function
    made = names_of(ranges, query.from_ if isinstance(query, Select) else (), outer, stored=stored)
    names = [one.name for one in made.ranges]
    return Level(
        ranges=[_under(item, one) for item, one in zip(ranges, made.ranges, strict=True)],
        names=names,
        select=query if isinstance(query, Select) else None,
        ctes={cte.name: tuple(c.name for c in cte.columns) for cte in query.ctes},
        unites=isinstance(query, SetOp),
        made=made,
        values=unlike(VALUES_NAME, outer) if isinstance(query, Values) else "",
    )


def _under(item: Range, names: Names) -> Range:
    """Return a range whose columns are called as they are printed."""
    if all(column.name == name for column, name in zip(item.columns, names.columns, strict=True)):
        return item
    pairs = zip(item.columns, names.columns, strict=True)
    return replace(item, columns=tuple([replace(column, name=name or "") for column, name in pairs]))


def values(p: Printer, query: Values) -> None:
    """Append the rows of VALUES."""
    p.out += "VALUES "
    for index, row in enumerate(query.rows):
        p.out += ", (" if index else "("
        for position, cell in enumerate(row):
            p.out += "," if position else ""
            p.value(cell, False)
        p.out += ")"


_JOIN_WORDS = {
    JoinKind.INNER: " JOIN ",
    JoinKind.LEFT: " LEFT JOIN ",
    JoinKind.RIGHT: " RIGHT JOIN ",
    JoinKind.FULL: " FULL JOIN ",
}


def from_item(p: Printer, item: FromItem, query: Select) -> None:
    """Append an entry of FROM: a range, or a join with its sides."""
    made = p.levels[-1].made
    if made is None:
        raise AssertionError("there is no new query level")
    if isinstance(item, RangeRef):
        _range(p, p.levels[-1].ranges[item.range], made.ranges[item.range])
        return
    written, names = item.written, made.joins[item.written.number]
    p.out += "(" if not p.pretty or written.alias else ""
    from_item(p, item.left, query)
    cross = item.kind == JoinKind.INNER and item.on is None
    word = " CROSS JOIN " if cross else _JOIN_WORDS[item.kind]
    p.keyword(word, -INDENT_STEP, INDENT_STEP, INDENT_JOIN)
    right_paren = p.pretty and isinstance(item.right, Join) and not item.right.written.alias
    p.out += "(" if right_paren else ""
    from_item(p, item.right, query)
    p.out += ")" if right_paren else ""
    if names.merged:
        p.out += f" USING ({', '.join(map(quote_identifier, names.merged))})"
        p.out += f" AS {quote_identifier(written.called)}" if written.called else ""
    elif item.on is not None:
        p.out += " ON "
        p.open()
        p.expr(item.on, False)
        p.close()
    elif not cross:
        p.out += " ON TRUE"
    p.out += ")" if not p.pretty or written.alias else ""
    if written.alias:
        p.out += f" {quote_identifier(names.name)}{_listed(p, names)}"


def _listed(p: Printer, names: Names) -> str:
    """Return the list of columns of an alias; stored texts name no more of them than they have to, so that
    the others follow their tables.
    """
    if p.function_name is stored_function or names.brief:
        shown = names.visible[: names.needed]
    else:
        shown = names.visible if names.listed else []
    return f"({', '.join(quote_identifier(name) for name, _ in shown)})" if shown else ""


def _range(p: Printer, item: Range, names: Names) -> None:
    columns = _listed(p, names)
    shown = quote_identifier(names.name)
    if isinstance(item, RelationRange):
        p.out += "ONLY " if item.written.only else ""
        p.out += relation_name(p, item.schema, item.name)
    elif isinstance(item, SubqueryRange) and item.view is not None:
        _, schema, view = item.view
        p.out += "ONLY " if item.written.only else ""
        p.out += relation_name(p, schema, view)
    elif isinstance(item, SubqueryRange):
        p.out += "LATERAL (" if item.lateral else "("
        if item.alias == VALUES_NAME and isinstance(item.query, Values):
            p.levels.append(level_of(p, item.query))
            values(p, item.query)
            p.levels.pop()
        else:
            _sub_select(p, item.query)
        p.out += ")"
    elif isinstance(item, CteRange):
        p.out += quote_identifier(item.name)
    elif isinstance(item, FunctionRange):
        p.out += "LATERAL " if item.lateral else ""
        if len(item.functions) == 1 and not (item.ordinality and item.defined):
            _function(p, item.functions[0])
            if item.defined:
                types = [type_ for _, type_ in item.defined[0]]
                columns = f"({_definitions(p, list(zip([n for n, _ in names.visible], types, strict=True)))})"
                shown = shown if names.name else "AS "
        elif len(item.functions) > 1 and all(_is_unnest(f) for f in item.functions):
            arguments = [f.args[0] for f in item.functions if isinstance(f, FuncExpr)]
            p.out += "UNNEST("
            for index, argument in enumerate(arguments):
                p.out += ", " if index else ""
                p.expr(argument, False)
            p.out += ")"
        else:
            _rows_from(p, item)
        p.out += " WITH ORDINALITY" if item.ordinality else ""
    else:
        raise TypeError(f"cannot print range {type(item).__name__}")
    if names.name and (columns or is_called_otherwise(item, names)):
        p.out += f" {shown}"
    p.out += columns
    if isinstance(item, RelationRange) and item.sample is not None:
        _sample(p, item.sample)


def _sample(p: Printer, sample: Sample) -> None:
    """Append a TABLESAMPLE clause; where it is printed its key has not been made yet."""
    if not isinstance(sample.key, SampleKey):
        raise AssertionError(f"the key of a sample is {type(sample.key).__name__}")
    p.out += f" TABLESAMPLE {sample.method} ("
    p.expr(sample.key.percent, False)
    p.out += ")"
    if sample.key.seed is not None:
        p.out += " REPEATABLE ("
        p.expr(sample.key.seed, False)
        p.out += ")"


def _sub_select(p: Printer, query: QueryExpr) -> None:
    if p.query is None:
        raise AssertionError("a sub-query is printed by a printer that has no form for queries")
    p.query(p, query, True)


def _rows_from(p: Printer, item: FunctionRange) -> None:
    """Append ROWS FROM (f(...) AS (a integer, ...), ...)."""
    p.out += "ROWS FROM("
    defined = item.defined or ((),) * len(item.functions)
    for index, (function, columns) in enumerate(zip(item.functions, defined, strict=True)):
        p.out += ", " if index else ""
        _function(p, function)
        if columns:
            p.out += f" AS ({_definitions(p, columns)})"
    p.out += ")"


def _definitions(p: Printer, columns: Sequence[tuple[str, SqlType]]) -> str:
    """Return a column definition list."""
    return ", ".join(f"{quote_identifier(name)} {p.type_name(*type_)}" for name, type_ in columns)


def _is_unnest(expr: Expr) -> bool:
    """Tell whether a function of FROM is unnest of one array."""
    return (
        isinstance(expr, FuncExpr)
        and not isinstance(expr, SqlCall)
        and facts().procs[expr.proc].name == "unnest"
        and len(expr.args) == 1
    )


def _function(p: Printer, expr: Expr) -> None:
    """Append a function of FROM; what does not look like a call goes into CAST(...), which was how it could
    be written there.
    """
    called = isinstance(expr, FuncExpr) and expr.cast not in ("implicit", "explicit")
    if called or isinstance(expr, CoalesceExpr | MinMaxExpr | NullIf | CurrentSetting):
        p.expr(expr)
        return
    p.out += "CAST("
    p.expr(expr, False)
    p.out += f" AS {p.type_name(*expr.type)})"


def relation_name(p: Printer, schema: str, name: str, *, changed: bool = False) -> str:
    """Return what a relation is called, with its schema where the reader needs it; items of WITH do not hide
    what is ``changed``.
    """
    hidden = not changed and any(name in level.ctes for level in p.levels)
    if hidden or p.qualify(schema, name):
        return f"{quote_identifier(schema)}.{quote_identifier(name)}"
    return quote_identifier(name)
