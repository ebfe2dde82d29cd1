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
from planner import deparse_nodes as _nodes  # noqa: F401 - completes the printer
from planner.catalog import Catalog, ConstraintDef, IndexDef, RelationDef
from planner.deparse_expr import (
    INDENT_COLUMN,
    INDENT_JOIN,
    INDENT_STEP,
    FunctionName,
    Level,
    Printer,
    TypeName,
    quote_identifier,
    stored_function,
)
from planner.facts import facts
from planner.opclass_extensions import HSTORE_CLASS, TRIGRAM_CLASS, TRIGRAM_EXTENSION
from planner.query import (
    CoalesceExpr,
    Const,
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
    QueryBase,
    QueryExpr,
    Range,
    RangeColumn,
    RangeRef,
    RelationRange,
    Select,
    SetOp,
    SortKey,
    SqlCall,
    SubqueryRange,
    Values,
    Var,
)
from planner.typefacts import stored_type
from planner.types import SqlType

Qualify = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads a definition: what users' types and functions, and their values, are called."""

    settings: CodecSettings = STORED_TEXT
    type_name: TypeName = stored_type
    function_name: FunctionName = stored_function
    catalog: Catalog | None = None  # which has the users' functions that definitions call


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
    indented: bool = True,
) -> str:
    """Return a query's text as pg_get_viewdef prints it, with its leading blank and without the semicolon.

    ``names`` override the output column names (those a view was given). ``parameters``: what ``$1`` ... are called in the body
    of ``function``, whose columns go with their tables' names.
    """
    printer = Printer(
        pretty=pretty,
        settings=settings,
        qualify=qualify,
        type_name=type_name,
        function_name=function_name,
        function=function or "",
        parameters=parameters,
        levels=[] if function is None else [Level(ranges=(), names=())],
        indented=indented,
        query=print_query,
    )
    print_query(printer, query, True, names or [column.name for column in query.columns])
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


def exclusion_definition(method: str, columns: Sequence[str], operators: Sequence[str], where: str) -> str:
    """Return pg_get_constraintdef's text for an EXCLUDE constraint; ``where``: its condition as it prints, "" for none."""
    items = [f"{quote_identifier(c)} WITH {o}" for c, o in zip(columns, operators, strict=True)]
    text = f"EXCLUDE USING {method} ({', '.join(items)})"
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
        name = f"{quote_identifier(table.schema)}.{name}"
    only = "ONLY " if table.kind == "p" else ""
    text = (
        f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {quote_identifier(index.name)} ON {only}{name} "
        f"USING {index.method} ({', '.join(items)})"
    )
    if index.include:
        text += f" INCLUDE ({', '.join(quote_identifier(columns[a]) for a in index.include)})"
    if index.nulls_not_distinct:
        text += " NULLS NOT DISTINCT"
    if index.where_sql:
        text += f" WHERE {_over_table(index.where_sql, table, pretty=pretty, reader=reader)[0]}"
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
    text, expr = _over_table(index.expressions[position], table, pretty=pretty, reader=reader)
    called = isinstance(expr, FuncExpr) and expr.cast == "call"
    if called or isinstance(expr, CoalesceExpr | MinMaxExpr | NullIf | CurrentSetting):
        return text
    return f"({text})"


def _over_table(sql: str, table: RelationDef, *, pretty: bool, reader: Reader) -> tuple[str, Expr]:
    """Return a stored expression over a table's columns as text, and bound."""
    from planner.bind.expr import bind_clause
    from planner.bind.stored import EMPTY_CATALOG, stored_context, table_scope
    from planner.parse import parse_expression

    context = stored_context(reader.catalog or EMPTY_CATALOG, sql)
    expr = bind_clause(table_scope(context, table), parse_expression(sql), "INDEX")
    if pretty or '"#' in sql:
        shown = deparse_expr(
            expr, table, pretty=pretty, settings=reader.settings, type_name=reader.type_name,
            function_name=reader.function_name,
        )  # fmt: skip
        return shown, expr
    return sql, expr


# --- queries ----------------------------------------------------------------------------------------


def print_query(p: Printer, query: QueryExpr, names_visible: bool, names: Sequence[str] = ()) -> None:
    """Append a query. ``names_visible``: its output column names matter (not inside EXISTS, IN ...)."""
    outer_indent, outer_prefix = p.indent, p.prefix
    p.prefix = True
    level = _level(p, query)
    p.levels.append(level)
    _with(p, query)
    if isinstance(query, SetOp):
        _set_operation(p, query, names_visible, names)
    elif isinstance(query, Values):
        _indent_query(p)
        _values(p, query)
    else:
        _select(p, query, names_visible, names)
    _tail(p, query)
    p.levels.pop()
    p.indent, p.prefix = outer_indent, outer_prefix


def _level(p: Printer, query: QueryExpr) -> Level:
    ranges: Sequence[Range] = query.ranges if isinstance(query, Select) else ()
    taken = {name for level in p.levels for name in level.names}
    names: list[str] = []
    for item in ranges:
        name, number = item.alias, 0
        while name in taken:
            number += 1
            name = f"{item.alias}_{number}"
        taken.add(name)
        names.append(name)
    return Level(
        ranges=ranges,
        names=names,
        select=query if isinstance(query, Select) else None,
        ctes=frozenset(cte.name for cte in query.ctes),
    )


def _indent_query(p: Printer) -> None:
    if p.indented:
        p.indent += INDENT_STEP
        p.out += " "


def _with(p: Printer, query: QueryBase) -> None:
    if not query.ctes:
        return
    if p.indented:
        p.indent += INDENT_STEP
        p.out += " "
    p.out += "WITH RECURSIVE " if any(cte.recursive for cte in query.ctes) else "WITH "
    for index, cte in enumerate(query.ctes):
        p.out += ", " if index else ""
        p.out += quote_identifier(cte.name)
        if tuple(c.name for c in cte.columns) != tuple(c.name for c in cte.query.columns):
            p.out += "(" + ", ".join(quote_identifier(c.name) for c in cte.columns) + ")"
        p.out += " AS "
        if cte.materialized is not None:
            p.out += "MATERIALIZED " if cte.materialized else "NOT MATERIALIZED "
        p.out += "("
        if p.indented:
            p.keyword("", 0, 0, 0)
        print_query(p, cte.query, True)
        if p.indented:
            p.keyword("", 0, 0, 0)
        p.out += ")"
    if p.indented:
        p.indent -= INDENT_STEP
        p.keyword("", 0, 0, 0)
    else:
        p.out += " "


def _tail(p: Printer, query: QueryExpr) -> None:
    if query.order:
        p.keyword(" ORDER BY ", -INDENT_STEP, INDENT_STEP, 1)
        for index, key in enumerate(query.order):
            p.out += ", " if index else ""
            p.order_suffix(_order_item(p, query, key), key.descending, key.nulls_first, key.lt)
    if query.offset is not None:
        p.keyword(" OFFSET ", -INDENT_STEP, INDENT_STEP, 0)
        p.expr(query.offset, False)
    if query.limit is not None:
        if query.with_ties:
            p.keyword(" FETCH FIRST ", -INDENT_STEP, INDENT_STEP, 0)
            p.out += "("
            p.expr(query.limit, False)
            p.out += ") ROWS WITH TIES"
        else:
            p.keyword(" LIMIT ", -INDENT_STEP, INDENT_STEP, 0)
            if isinstance(query.limit, Const) and query.limit.value is None:
                p.out += "ALL"
            else:
                p.expr(query.limit, False)
    if isinstance(query, Select):
        for mark in query.row_marks:
            if not mark.pushed:
                p.keyword(f" FOR {mark.strength.upper()}", -INDENT_STEP, INDENT_STEP, 0)
                p.out += f" OF {quote_identifier(p.levels[-1].names[mark.range])}"
                p.out += {"block": "", "skip": " SKIP LOCKED", "nowait": " NOWAIT"}[mark.wait]


def _order_item(p: Printer, query: QueryExpr, key: SortKey) -> int:
    """Append what a sort key sorts by; returns its type."""
    if isinstance(query, Select):
        expr = query.targets[key.target].expr
        p.sort_item(expr)
        return expr.type.oid
    p.out += str(key.target + 1)
    return query.columns[key.target].type.oid


def _values(p: Printer, query: Values) -> None:
    p.out += "VALUES "
    for index, row in enumerate(query.rows):
        p.out += ", (" if index else "("
        for position, cell in enumerate(row):
            p.out += "," if position else ""
            p.expr(cell, False)
        p.out += ")"


def _select(p: Printer, query: Select, names_visible: bool, names: Sequence[str]) -> None:
    _indent_query(p)
    p.out += "SELECT"
    if query.distinct is True:
        p.out += " DISTINCT"
    elif query.distinct:
        p.out += " DISTINCT ON ("
        for index, target in enumerate(query.distinct):
            p.out += ", " if index else ""
            p.sort_item(query.targets[target].expr)
        p.out += ")"
    _targets(p, query, names_visible, names)
    for index, item in enumerate(query.from_):
        if index == 0:
            p.keyword(" FROM ", -INDENT_STEP, INDENT_STEP, 2)
            _from_item(p, item, query)
        else:
            p.out += ", "
            _wrapped(p, lambda item=item: _from_item(p, item, query), True)  # type: ignore[misc]
    if query.where is not None:
        p.keyword(" WHERE ", -INDENT_STEP, INDENT_STEP, 1)
        p.expr(query.where, False)
    _group_by(p, query)
    if query.having is not None:
        p.keyword(" HAVING ", -INDENT_STEP, INDENT_STEP, 0)
        p.expr(query.having, False)


def _wrapped(p: Printer, emit: Callable[[], None], wrap: bool) -> bool:
    """Append what ``emit`` prints, on a line of its own unless it begins with one.

    Returns whether it took several lines. (PostgreSQL's wrap column is 0 for views: always wrap.)
    """
    before, p.out = p.out, ""
    emit()
    text, p.out = p.out, before
    if p.indented:
        if text.startswith("\n"):
            p.out = p.out.rstrip(" ")
        elif wrap:
            p.keyword("", -INDENT_STEP, INDENT_STEP, INDENT_COLUMN)
    p.out += text
    return "\n" in text[1:]


def _targets(p: Printer, query: Select, names_visible: bool, names: Sequence[str]) -> None:
    separator = " "
    shown = [target for target in query.targets if not target.junk]
    for index, target in enumerate(shown):
        p.out += separator
        separator = ", "
        wanted = names[index] if index < len(names) else target.name

        def emit(expr: Expr = target.expr, wanted: str = wanted) -> None:
            if isinstance(expr, Var) and expr.attnum != 0:
                have: str | None = p.var(expr)
            else:
                p.expr(expr)
                have = None if names_visible else "?column?"
            if wanted and have != wanted:
                p.out += f" AS {quote_identifier(wanted)}"

        _wrapped(p, emit, index > 0)


def _group_by(p: Printer, query: Select) -> None:
    if not query.group and not query.grouping_sets:
        return
    p.keyword(" GROUP BY ", -INDENT_STEP, INDENT_STEP, 1)
    p.out += "DISTINCT " if query.group_distinct else ""
    if query.grouping_sets is None:
        for index, expr in enumerate(query.group):
            p.out += ", " if index else ""
            p.sort_item(expr)
        return
    full = len(query.group)
    prefixes = tuple(tuple(range(length)) for length in range(full, -1, -1))
    if query.grouping_sets == prefixes:
        p.out += "ROLLUP("
        _grouped(p, query, prefixes[0])
        p.out += ")"
        return
    p.out += "GROUPING SETS ("
    for number, members in enumerate(query.grouping_sets):
        p.out += ", (" if number else "("
        _grouped(p, query, members)
        p.out += ")"
    p.out += ")"


def _grouped(p: Printer, query: Select, members: Sequence[int]) -> None:
    for index, member in enumerate(members):
        p.out += ", " if index else ""
        p.sort_item(query.group[member])


_JOIN_WORDS = {
    JoinKind.INNER: " JOIN ",
    JoinKind.LEFT: " LEFT JOIN ",
    JoinKind.RIGHT: " RIGHT JOIN ",
    JoinKind.FULL: " FULL JOIN ",
}


def _from_item(p: Printer, item: FromItem, query: Select) -> None:
    if isinstance(item, RangeRef):
        _range(p, query.ranges[item.range], p.levels[-1].names[item.range])
        return
    p.open()
    _from_item(p, item.left, query)
    cross = item.kind == JoinKind.INNER and item.on is None
    word = " CROSS JOIN " if cross else _JOIN_WORDS[item.kind]
    p.keyword(word, -INDENT_STEP, INDENT_STEP, INDENT_JOIN)
    right_paren = p.pretty and isinstance(item.right, Join)
    p.out += "(" if right_paren else ""
    _from_item(p, item.right, query)
    p.out += ")" if right_paren else ""
    if item.using:
        p.out += f" USING ({', '.join(quote_identifier(name) for name in item.using)})"
    elif item.on is not None:
        p.out += " ON "
        p.open()
        p.expr(item.on, False)
        p.close()
    elif not cross:
        p.out += " ON TRUE"
    p.close()


def _range(p: Printer, item: Range, name: str) -> None:
    columns = ""
    shown = quote_identifier(name)
    listed = ", ".join(quote_identifier(c.name) for c in item.columns)
    if isinstance(item, RelationRange):
        p.out += _relation(p, item.schema, item.name)
        alias = name != item.name
    elif isinstance(item, SubqueryRange) and item.view is not None:
        _, schema, view = item.view
        p.out += _relation(p, schema, view)
        alias = name != view
    elif isinstance(item, SubqueryRange):
        p.out += "LATERAL (" if item.lateral else "("
        print_query(p, item.query, True)
        p.out += ")"
        alias = True
        if tuple(c.name for c in item.columns) != tuple(c.name for c in item.query.columns):
            columns = listed
    elif isinstance(item, CteRange):
        p.out += quote_identifier(item.name)
        alias = name != item.name
    elif isinstance(item, FunctionRange):
        p.out += "LATERAL " if item.lateral else ""
        alias, columns = True, listed
        if len(item.functions) == 1 and not (item.ordinality and item.defined):
            _function(p, item.functions[0])
            if item.defined:
                columns = _definitions(p, item.defined[0])
                shown = shown if name else "AS "
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
    if alias and name:
        p.out += f" {shown}"
    if columns:
        p.out += f"({columns})"


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
    """Append a function of FROM; what does not look like a call goes into CAST(...)."""
    if isinstance(expr, FuncExpr) and expr.cast in ("implicit", "explicit"):
        p.out += "CAST("
        p.expr(expr.args[0], False)
        p.out += f" AS {p.type_name(*expr.type)})"
        return
    p.expr(expr)


def _relation(p: Printer, schema: str, name: str) -> str:
    hidden = any(name in level.ctes for level in p.levels)
    if hidden or p.qualify(schema, name):
        return f"{quote_identifier(schema)}.{quote_identifier(name)}"
    return quote_identifier(name)


def _operands(query: QueryExpr) -> bool:
    """Tell whether an operand of a set operation needs parentheses of its own."""
    return bool(query.ctes or query.order or query.limit is not None or query.offset is not None)


def _set_operation(p: Printer, query: SetOp, names_visible: bool, names: Sequence[str]) -> None:
    left, right = query.left, query.right
    left_set = isinstance(left, SetOp) and not _operands(left)
    same = isinstance(left, SetOp) and (left.op, left.all) == (query.op, query.all)
    paren = left_set and not same
    step = INDENT_STEP if paren else 0
    if paren:
        p.out += "("
        p.keyword("", step, 0, 0)
    _operand(p, left, names_visible, names)
    if paren:
        p.keyword(") ", -step, 0, 0)
    elif p.indented:
        p.keyword("", -step, 0, 0)
    else:
        p.out += " "
    p.out += f"{query.op.upper()} " + ("ALL " if query.all else "")
    paren = isinstance(right, SetOp) and not _operands(right)
    step = INDENT_STEP if paren else 0
    p.out += "(" if paren else ""
    p.keyword("", step, 0, 0)
    _operand(p, right, False, names)
    if p.indented:
        p.indent -= step
    if paren:
        p.keyword(")", 0, 0, 0)


def _operand(p: Printer, query: QueryExpr, names_visible: bool, names: Sequence[str]) -> None:
    if isinstance(query, SetOp) and not _operands(query):
        _set_operation(p, query, names_visible, names)
        return
    paren = _operands(query)
    p.out += "(" if paren else ""
    print_query(p, query, names_visible, names)
    p.out += ")" if paren else ""
