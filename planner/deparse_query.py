"""A query tree as text, clause by clause: the SELECT of views, of bodies of functions and of what pg_get_viewdef shows.

    print_query   WITH, the body (select, values, set operation), ORDER BY, LIMIT, FOR UPDATE
    Level         one query level: what its ranges are called (``planner.deparse_expr``)

Expressions print through ``planner.deparse_expr``; ``planner.deparse`` makes the printer and says for whom it prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from planner.deparse_expr import (
    INDENT_COLUMN,
    INDENT_JOIN,
    INDENT_STEP,
    Level,
    Printer,
    quote_identifier,
    stored_function,
)
from planner.deparse_names import VALUES_NAME, Names, is_called_otherwise, names_of, unlike
from planner.facts import BOOL, INT4, NUMERIC, UNKNOWN, facts
from planner.query import (
    CaseExpr,
    CoerceTypmod,
    CoerceViaIO,
    Const,
    Cte,
    CteRange,
    Expr,
    FromItem,
    FuncExpr,
    FunctionRange,
    GroupingItem,
    Join,
    JoinKind,
    QueryBase,
    QueryExpr,
    Range,
    RangeRef,
    RelabelType,
    RelationRange,
    Select,
    SetOp,
    SortKey,
    SqlCall,
    SubqueryRange,
    Values,
)
from planner.rewrite import shift_query
from planner.types import SqlType


def print_query(p: Printer, query: QueryExpr, names_visible: bool, names: Sequence[str] = ()) -> None:
    """Append a query. ``names_visible``: its output column names matter (not inside EXISTS, IN ...)."""
    outer_indent, outer_prefix = p.indent, p.prefix
    p.prefix = True
    level = level_of(p, query)
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


def level_of(p: Printer, query: QueryExpr) -> Level:
    """Return the level that a query is below those of ``p``: its ranges under names that none of these has."""
    outer = {name for level in p.levels for name in level.all_names()}
    ranges: Sequence[Range] = query.ranges if isinstance(query, Select) else ()
    made = names_of(ranges, query.from_ if isinstance(query, Select) else (), outer)
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
        written = _written(cte)
        body, added = (cte.query, 0) if written is None else written
        columns = cte.columns[: len(cte.columns) - added]
        named = [c.name for c in columns[: cte.named]]
        if [*named, *(c.name for c in body.columns[cte.named :])] != [c.name for c in columns]:
            named = [c.name for c in columns]
        if named:
            p.out += "(" + ", ".join(map(quote_identifier, named)) + ")"
        p.out += " AS "
        if cte.materialized is not None:
            p.out += "MATERIALIZED " if cte.materialized else "NOT MATERIALIZED "
        p.out += "("
        if p.indented:
            p.keyword("", 0, 0, 0)
        print_query(p, body, True)
        if p.indented:
            p.keyword("", 0, 0, 0)
        p.out += ")"
        if written is not None:
            _search_and_cycle(p, cte)
    if p.indented:
        p.indent -= INDENT_STEP
        p.keyword("", 0, 0, 0)
    else:
        p.out += " "


def _written(cte: Cte) -> tuple[SetOp, int] | None:
    """Return the body of an item with SEARCH or CYCLE as it was before these added columns (``planner.bind.search_cycle``), and how many they are.

    None: the item has neither clause.
    """
    added = (cte.search is not None) + 2 * (cte.cycle is not None)
    if not added or not isinstance(cte.query, SetOp):
        return None
    made = cte.query
    width = len(made.columns) - added
    terms: list[QueryExpr] = []
    for side in (made.left, made.right):
        assert isinstance(side, Select)
        (term,) = side.ranges
        assert isinstance(term, SubqueryRange)
        terms.append(shift_query(term.query, -1))
    right = terms[1]
    assert isinstance(right, Select)
    own = [target for target in right.targets if not target.junk][:width]
    junk = [target for target in right.targets if target.junk]
    right = replace(right, columns=right.columns[:width], targets=(*own, *junk))
    return replace(made, columns=made.columns[:width], left=terms[0], right=right), added


def _search_and_cycle(p: Printer, cte: Cte) -> None:
    search, cycle = cte.search, cte.cycle
    if search is not None:
        listed = ", ".join(map(quote_identifier, search.columns))
        way = "BREADTH" if search.breadth else "DEPTH"
        p.out += f" SEARCH {way} FIRST BY {listed} SET {quote_identifier(search.sequence)}"
    if cycle is None:
        return
    listed = ", ".join(map(quote_identifier, cycle.columns))
    p.out += f" CYCLE {listed} SET {quote_identifier(cycle.mark)}"
    value, default = _marks(cte.query, cycle.mark)
    if not (_is_bool(value, True) and _is_bool(default, False)):
        p.out += " TO "
        _mark(p, value)
        p.out += " DEFAULT "
        _mark(p, default)
    p.out += f" USING {quote_identifier(cycle.path)}"


def _marks(query: QueryExpr, name: str) -> tuple[Expr, Expr]:
    """Return what a row that closes a circle, and any other, is marked by."""
    assert isinstance(query, SetOp)
    assert isinstance(query.right, Select)
    case = next(target.expr for target in query.right.targets if target.name == name)
    assert isinstance(case, CaseExpr)
    return case.whens[0].result, case.default


def _mark(p: Printer, expr: Expr) -> None:
    """Append a mark: for readers with the cast that PostgreSQL shows, which its own grammar does not take there, in stored texts without."""
    if p.function_name is not stored_function:
        p.expr(expr, False)
        return
    while isinstance(expr, FuncExpr):  # what makes both marks one type is found anew
        expr = expr.args[0]
    while isinstance(expr, CoerceTypmod | RelabelType | CoerceViaIO):
        expr = expr.arg
    assert isinstance(expr, Const)
    if expr.value is not None and expr.type.oid not in (BOOL, INT4, NUMERIC, UNKNOWN):
        p.out += f"{p.type_name(*expr.type)} "
    p.const(expr, -1)


def _is_bool(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Const) and expr.type.oid == BOOL and expr.value is value


def _tail(p: Printer, query: QueryExpr) -> None:
    if query.order:
        p.keyword(" ORDER BY ", -INDENT_STEP, INDENT_STEP, 1)
        for index, key in enumerate(query.order):
            p.out += ", " if index else ""
            p.order_suffix(_order_item(p, query, key), key.descending, key.nulls_first, key.lt)
    if query.offset is not None:
        p.keyword(" OFFSET ", -INDENT_STEP, INDENT_STEP, 0)
        p.expr(query.offset, False)
    if query.limit_all:
        p.keyword(" LIMIT ALL", -INDENT_STEP, INDENT_STEP, 0)
    if query.limit is not None:
        if query.with_ties:
            p.keyword(" FETCH FIRST ", -INDENT_STEP, INDENT_STEP, 0)
            p.out += "("
            p.expr(query.limit, False)
            p.out += ") ROWS WITH TIES"
        else:
            p.keyword(" LIMIT ", -INDENT_STEP, INDENT_STEP, 0)
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
    if isinstance(query, Values) and p.function_name is not stored_function:
        p.out += f"{quote_identifier(p.levels[-1].values)}.{quote_identifier(query.columns[key.target].name)}"
    else:
        p.out += str(key.target + 1)
    return query.columns[key.target].type.oid


def _values(p: Printer, query: Values) -> None:
    p.out += "VALUES "
    for index, row in enumerate(query.rows):
        p.out += ", (" if index else "("
        for position, cell in enumerate(row):
            p.out += "," if position else ""
            p.value(cell, False)
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
            _wrapped(p, partial(_from_item, p, item, query), True)
    if query.where is not None:
        p.keyword(" WHERE ", -INDENT_STEP, INDENT_STEP, 1)
        p.expr(query.where, False)
    _group_by(p, query)
    if query.having is not None:
        p.keyword(" HAVING ", -INDENT_STEP, INDENT_STEP, 0)
        p.expr(query.having, False)
    separator = ""
    for window in query.windows:
        if window.name:
            if separator:
                p.out += separator
            else:
                p.keyword(" WINDOW ", -INDENT_STEP, INDENT_STEP, 1)
            separator = ", "
            p.out += f"{quote_identifier(window.name)} AS "
            p.window(window, query.windows)


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
            have = p.reference(expr)
            if have is None:
                p.value(expr)
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
    if query.grouping:
        for index, item in enumerate(query.grouping):
            p.out += ", " if index else ""
            _grouping(p, query, item, bare=True)
        return
    if all(not members for members in query.grouping_sets):
        groups = ", ".join("()" for _ in query.grouping_sets)
        p.out += groups if len(query.grouping_sets) == 1 else f"GROUPING SETS ({groups})"
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


_GROUPING_WORDS = {"rollup": "ROLLUP(", "cube": "CUBE(", "sets": "GROUPING SETS ("}


def _grouping(p: Printer, query: Select, item: GroupingItem, *, bare: bool) -> None:
    """Append an entry of GROUP BY; ``bare``: a single expression goes without parentheses."""
    if item.kind == "simple":
        bare = bare and len(item.members) == 1
        p.out += "" if bare else "("
        _grouped(p, query, item.members)
        p.out += "" if bare else ")"
        return
    p.out += _GROUPING_WORDS.get(item.kind, "(")
    for index, one in enumerate(item.items):
        p.out += ", " if index else ""
        _grouping(p, query, one, bare=item.kind != "sets")
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
    made = p.levels[-1].made
    assert made is not None
    if isinstance(item, RangeRef):
        _range(p, p.levels[-1].ranges[item.range], made.ranges[item.range])
        return
    written, names = item.written, made.joins[item.written.number]
    p.out += "(" if not p.pretty or written.alias else ""
    _from_item(p, item.left, query)
    cross = item.kind == JoinKind.INNER and item.on is None
    word = " CROSS JOIN " if cross else _JOIN_WORDS[item.kind]
    p.keyword(word, -INDENT_STEP, INDENT_STEP, INDENT_JOIN)
    right_paren = p.pretty and isinstance(item.right, Join) and not item.right.written.alias
    p.out += "(" if right_paren else ""
    _from_item(p, item.right, query)
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
    """Return the list of columns of an alias; stored texts name no more of them than they have to, so that the others follow their tables."""
    if p.function_name is stored_function:
        shown = names.visible[: names.needed]
    else:
        shown = names.visible if names.listed else []
    return f"({', '.join(quote_identifier(name) for name, _ in shown)})" if shown else ""


def _range(p: Printer, item: Range, names: Names) -> None:
    columns = _listed(p, names)
    shown = quote_identifier(names.name)
    if isinstance(item, RelationRange):
        p.out += "ONLY " if item.written.only else ""
        p.out += _relation(p, item.schema, item.name)
    elif isinstance(item, SubqueryRange) and item.view is not None:
        _, schema, view = item.view
        p.out += "ONLY " if item.written.only else ""
        p.out += _relation(p, schema, view)
    elif isinstance(item, SubqueryRange):
        p.out += "LATERAL (" if item.lateral else "("
        print_query(p, item.query, True)
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
