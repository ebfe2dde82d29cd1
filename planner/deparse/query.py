"""A query tree as text, clause by clause: the SELECT of views, of bodies of functions and of what pg_get_viewdef shows.

    print_query   WITH, the body (select, values, set operation), ORDER BY, LIMIT, FOR UPDATE
    Level         one query level: what its ranges are called (``planner.deparse.expr``)

Expressions print through ``planner.deparse.expr``; ``planner.deparse`` makes the printer and says for whom it prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from planner.base.quoting import quote_identifier
from planner.deparse.expr import INDENT_COLUMN, INDENT_STEP, Printer, stored_function
from planner.deparse.from_ import from_item, level_of, values
from planner.deparse.names import CONVERTED_NAME, VALUES_NAME
from planner.facts import BOOL, INT4, NUMERIC, UNKNOWN
from planner.query import (
    ArrayCoerce,
    CaseExpr,
    CoerceTypmod,
    CoerceViaIO,
    Const,
    Cte,
    Expr,
    FromItem,
    FuncExpr,
    GroupingItem,
    Insert,
    ItemChange,
    KeptChange,
    QueryBase,
    QueryExpr,
    RangeColumn,
    RangeRef,
    RelabelType,
    Select,
    SetOp,
    SortKey,
    SubqueryRange,
    Target,
    Values,
    Var,
)
from planner.query.rewrite import shift_query


def print_query(p: Printer, query: QueryExpr, names_visible: bool, names: Sequence[str] = ()) -> None:
    """Append a query. ``names_visible``: its output column names matter (not inside EXISTS, IN ...)."""
    outer_indent, outer_prefix = p.indent, p.prefix
    p.prefix = True
    query = _named_values(p, query, names)
    level = level_of(p, query)
    p.levels.append(level)
    print_with(p, query)
    if isinstance(query, SetOp):
        _set_operation(p, query, names_visible, names)
    elif isinstance(query, Values):
        _indent_query(p)
        values(p, query)
    else:
        _select(p, query, names_visible, names)
    _tail(p, query)
    p.levels.pop()
    p.indent, p.prefix = outer_indent, outer_prefix


def _named_values(p: Printer, query: QueryExpr, names: Sequence[str]) -> QueryExpr:
    """Return VALUES whose columns a view calls otherwise as the SELECT over them that PostgreSQL shows."""
    own = [column.name for column in query.columns]
    if not isinstance(query, Values) or p.function_name is stored_function or list(names) in ([], own):
        return query
    columns = [
        RangeColumn(name=column.name, type=column.type, attnum=number)
        for number, column in enumerate(query.columns, 1)
    ]
    rows = replace(query, ctes=(), order=(), limit=None, offset=None, with_ties=False, limit_all=False)
    return Select(
        columns=query.columns,
        ctes=query.ctes,
        order=query.order,
        limit=query.limit,
        offset=query.offset,
        with_ties=query.with_ties,
        limit_all=query.limit_all,
        targets=tuple(
            [
                Target(expr=Var(type=c.type, range=0, attnum=c.attnum, name=c.name), name=c.name)
                for c in columns
            ]
        ),
        ranges=(SubqueryRange(alias=VALUES_NAME, columns=tuple(columns), query=shift_query(rows, 1)),),
        from_=(RangeRef(range=0),),
    )


def _indent_query(p: Printer) -> None:
    if p.indented:
        p.indent += INDENT_STEP
        p.out += " "


def print_with(p: Printer, query: QueryBase) -> None:
    """Append WITH, if there is one."""
    if not query.ctes:
        return
    if p.indented:
        p.indent += INDENT_STEP
        p.out += " "
    p.out += "WITH RECURSIVE " if any(cte.recursive or cte.in_recursive for cte in query.ctes) else "WITH "
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
        if cte.change is None:
            print_query(p, body, True)
        else:
            _print_item(p, cte.change)
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


def _print_item(p: Printer, change: ItemChange) -> None:
    """Append an item that changes data."""
    from planner.deparse.changes import print_changes  # which print queries

    if not isinstance(change, Insert | KeptChange):
        raise AssertionError(f"an item of WITH is {type(change).__name__}")
    outer_indent, outer_prefix = p.indent, p.prefix
    print_changes(p, change)
    p.indent, p.prefix = outer_indent, outer_prefix


def _written(cte: Cte) -> tuple[SetOp, int] | None:
    """Return the body of an item with SEARCH or CYCLE as it was before these added columns
    (``planner.bind.query.search_cycle``), and how many they are.

    None: the item has neither clause.
    """
    added = (cte.search is not None) + 2 * (cte.cycle is not None)
    if not added or not isinstance(cte.query, SetOp):
        return None
    made = cte.query
    width = len(made.columns) - added
    terms: list[QueryExpr] = []
    for side in (made.left, made.right):
        if not isinstance(side, Select):
            raise AssertionError(f"a side of a recursion is {type(side).__name__}")
        (term,) = side.ranges
        if not isinstance(term, SubqueryRange):
            raise AssertionError(f"a side of a recursion reads {type(term).__name__}")
        terms.append(shift_query(term.query, -1))
    right = terms[1]
    if not isinstance(right, Select):
        raise AssertionError(f"the recursive term is {type(right).__name__}")
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
    if not isinstance(query, SetOp):
        raise AssertionError(f"a query with CYCLE is {type(query).__name__}")
    if not isinstance(query.right, Select):
        raise AssertionError(f"the recursive term is {type(query.right).__name__}")
    case = next(target.expr for target in query.right.targets if target.name == name)
    if not isinstance(case, CaseExpr):
        raise AssertionError(f"the mark of a circle is {type(case).__name__}")
    return case.whens[0].result, case.default


def _mark(p: Printer, expr: Expr) -> None:
    """Append a mark: for readers with the cast that PostgreSQL shows, which its own grammar does not take
    there, in stored texts without.
    """
    if p.function_name is not stored_function:
        p.expr(expr, False)
        return
    while isinstance(expr, FuncExpr):  # what makes both marks one type is found anew
        expr = expr.args[0]
    while isinstance(expr, CoerceTypmod | RelabelType | CoerceViaIO):
        expr = expr.arg
    if not isinstance(expr, Const):
        raise AssertionError(f"the mark of a circle is {type(expr).__name__}, not a constant")
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
    print_targets(p, query, names_visible, names)
    print_from(p, query.from_, query, " FROM ")
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


def print_from(p: Printer, items: Sequence[FromItem], query: Select, keyword: str) -> None:
    """Append entries of FROM, or of USING in DELETE, if there are any."""
    for index, item in enumerate(items):
        if index == 0:
            p.keyword(keyword, -INDENT_STEP, INDENT_STEP, 2)
            from_item(p, item, query)
        else:
            p.out += ", "
            _wrapped(p, partial(from_item, p, item, query), True)


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


def print_targets(p: Printer, query: Select, names_visible: bool, names: Sequence[str]) -> None:
    """Append what a SELECT, or RETURNING, gives."""
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
                have = None if names_visible or _is_named_anew(p, expr) else "?column?"
            if wanted and have != wanted:
                p.out += f" AS {quote_identifier(wanted)}"

        _wrapped(p, emit, index > 0)


def _is_named_anew(p: Printer, expr: Expr) -> bool:
    """Tell whether a stored text has a literal with a type, for which it is called when the text is read again."""
    literal = isinstance(expr, Const) and expr.type.oid not in (INT4, NUMERIC, UNKNOWN)
    return literal and p.function_name is stored_function


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


def _operands(query: QueryExpr) -> bool:
    """Tell whether an operand of a set operation needs parentheses of its own."""
    return bool(query.ctes or query.order or query.limit is not None or query.offset is not None)


def _set_operation(p: Printer, query: SetOp, names_visible: bool, names: Sequence[str]) -> None:
    left, right = _as_written(query.left), _as_written(query.right)
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
    # a stored text keeps the names of its own, which nobody but a reader of the tree sees
    _operand(p, right, False, () if p.function_name is stored_function else names)
    if p.indented:
        p.indent -= step
    if paren:
        p.keyword(")", 0, 0, 0)


def _as_written(query: QueryExpr) -> QueryExpr:
    """Return an operand of a set operation without what makes its columns of the operation's types
    (``planner.bind.query.set_operations.coerce_output``).
    """
    if not isinstance(query, Select):
        return query
    first = query.ranges[0] if len(query.ranges) == 1 else None
    if isinstance(first, SubqueryRange) and first.alias == CONVERTED_NAME and not first.written.aliased:
        return shift_query(first.query, -1)
    targets = [t if t.junk else replace(t, expr=_without_implicit(t.expr)) for t in query.targets]
    return replace(query, targets=tuple(targets))


def _without_implicit(expr: Expr) -> Expr:
    if isinstance(expr, FuncExpr) and expr.cast == "implicit":
        arg = expr.args[0]
    elif isinstance(expr, RelabelType | CoerceViaIO | ArrayCoerce) and not expr.explicit:
        arg = expr.arg
    else:
        return expr
    # a literal without a type has been given one, for good
    return expr if isinstance(arg, Const) and arg.type.oid == UNKNOWN else _without_implicit(arg)


def _operand(p: Printer, query: QueryExpr, names_visible: bool, names: Sequence[str]) -> None:
    if isinstance(query, SetOp) and not _operands(query):
        _set_operation(p, query, names_visible, names)
        return
    paren = _operands(query)
    p.out += "(" if paren else ""
    print_query(p, query, names_visible, names)
    p.out += ")" if paren else ""
