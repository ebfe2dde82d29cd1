"""Bodies of SQL functions: which may take the place of a call, and which are run by it, statement by statement.

    SELECT $1 * 3                              one query                       bind_body ──> a query over $n
    INSERT INTO log VALUES ($1) RETURNING n    changes data, locks rows        bind_called ──> bound statements,
    UPDATE ...; SELECT ...                     several statements                              the last one gives the result
    TRUNCATE log; SELECT ...                   a definition, or any other that is no query     bind_utility, when its turn comes

Both convert what the last statement returns to what the function is declared to return. A function that has
SECURITY DEFINER or SET runs under other rights or settings than the statement around it, so it is called in
any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgwire.give_way import give_way, paced
from pgwire.release import release
from planner import ast
from planner import query as qt
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.change.changing_items import runs_in_parts
from planner.bind.context import BindContext
from planner.bind.expression.calls import result_row
from planner.bind.recursion import ENVELOPE, QUERY, STATEMENT
from planner.bind.stored import without_spans
from planner.catalog import FunctionDef, RowType
from planner.conversion.casts import try_coerce
from planner.conversion.composite import decompose, is_row_of
from planner.conversion.pathways import CastContext
from planner.facts import RECORD, VOID
from planner.parse import Parsed, parse
from planner.query import (
    Const,
    Expr,
    FieldSelect,
    FuncExpr,
    OutputColumn,
    QueryExpr,
    RangeColumn,
    RangeRef,
    RelabelType,
    RowExpr,
    Select,
    SubqueryRange,
    Target,
    Values,
    Var,
)
from planner.query.rewrite import shift_query
from planner.query.walk import walk
from planner.statements.parsed import command_tag
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import format_type

Wanted = Sequence[OutputColumn] | SqlType | None
"""What a body has to give: columns of these types, one of that type, or (None) what it gives."""

_QUERIES = ast.Select | ast.SetOp | ast.Values
_CHANGES = ast.Insert | ast.Update | ast.Delete | ast.Merge


def is_called(function: FunctionDef) -> bool:
    """Tell whether a function is never put in the place of its call, whatever its body is."""
    return function.definer or bool(function.settings) or function.kind == "p" or function.language != "sql"


def bind_body(
    context: BindContext, function: FunctionDef, types: Sequence[int], columns: Wanted
) -> QueryExpr | None:
    """Bind a function's body for inputs of ``types`` if it is one query that can take the place of a call,
    else return None.

    Raises SqlError 42P13 where it does not fit ``columns``, and what binding it raises.
    """
    inner = context.for_function(function, types)
    body: list[Parsed] = []
    try:
        body = parse(inner.text)
        for parsed in paced(body):
            _check_statement(parsed, defining=True)
        if not body and isinstance(columns, SqlType) and columns.oid == VOID:
            return _nothing(columns)
        first = body[0].statement if len(body) == 1 else None
        if not isinstance(first, _QUERIES) or runs_in_parts(first) or is_called(function):
            return None
        query = QUERY.call(inner, first)
        if any(isinstance(node, Select) and node.row_marks for node in walk(query)):
            return None
        made: QueryExpr = without_spans(_fitted(inner, function, query, columns))
    except SqlError as error:
        if error.where is None:
            of_rows = function.result == RECORD or result_row(context.catalog, function.result) is not None
            inlines = not of_rows or (function.returns_set and function.volatility != "v")
            when = "inlining" if inlines else "startup"
            error.where = f'SQL function "{function.name}" during {when}'
        raise
    finally:
        release(body)
    return made


def bind_called(
    context: BindContext,
    function: FunctionDef,
    types: Sequence[int],
    columns: Wanted,
    *,
    defining: bool = False,
) -> tuple[st.BoundStatement | Parsed, ...]:
    """Bind the queries and changes of a body that a call runs, in order; ``$n`` are its inputs. Others are
    returned as they are written.

    What they are bound against is noted in ``context``, and in its flags ``volatile`` (they call volatile
    functions) and ``changes`` (they write, or are no queries).

    Raises SqlError 42P13 where the last one does not fit ``columns``; 0A000 for statements that cannot be in
    a function, and (unless ``defining``) for those that write in one that is not VOLATILE; what binding
    raises.
    """
    inner = context.for_function(function, types)
    inner = replace(
        inner, reads=set(), versions={}, flags=set(), functions=set(), running=inner.running | {function.oid}
    )
    parsed: list[Parsed] = []
    try:
        parsed = parse(inner.text)
        if not _is_void(columns) and not (parsed and isinstance(parsed[-1].statement, _QUERIES | _CHANGES)):
            raise _no_result(context, function)
        made: list[st.BoundStatement | Parsed] = []
        for number, one in enumerate(parsed, 1):
            _check_statement(one, defining=defining)
            if not isinstance(one.statement, _QUERIES | _CHANGES):
                if not defining and function.volatility != "v":
                    raise _not_volatile(command_tag(one.statement))
                inner.flags.add("changes")
                made.append(one)
                continue
            own = replace(inner, text=one.text, reads=set(), flags=set(), functions=set(), versions={})
            bound = STATEMENT.call(own, one.statement)
            if number == len(parsed):
                bound = _fitted_statement(own, function, bound, columns)
            done = ENVELOPE.call(one.statement, one.text, own, bound)
            if not defining and function.volatility != "v" and done.class_ is not st.StatementClass.READ_ONLY:
                raise _not_volatile(done.tag)
            inner.versions.update(own.versions)
            inner.flags |= own.flags & {"volatile", "changes"}
            if done.class_ is not st.StatementClass.READ_ONLY:
                inner.flags.add("changes")
            made.append(done)
            give_way()
    except SqlError as error:
        if error.where is None:
            error.where = f'SQL function "{function.name}" during startup'
        raise
    finally:
        release(parsed)
    context.versions.update(inner.versions)
    context.flags |= inner.flags
    return tuple(made)


def bind_utility(
    context: BindContext, function: FunctionDef, types: Sequence[int], parsed: Parsed
) -> st.BoundStatement:
    """Bind a statement of a body that is no query, as the statements before it have left the catalog. Raises
    what binding raises.
    """
    inner = replace(context.for_function(function, types), text=parsed.text)
    return ENVELOPE.call(parsed.statement, parsed.text, inner, STATEMENT.call(inner, parsed.statement))


def check_body(function: FunctionDef) -> None:
    """Check what can be known of the body of a polymorphic function before it is called. Raises SqlError
    42601, 0A000.
    """
    body = parse(function.source)
    for parsed in paced(body):
        _check_statement(parsed, defining=True)
    release(body)


def _check_statement(parsed: Parsed, *, defining: bool) -> None:
    """Raise SqlError 0A000 for what cannot stand in a body or, unless ``defining``, cannot run in one."""
    node = parsed.statement
    if parsed.as_of is not None:
        raise not_supported("AS OF SYSTEM TIME in an SQL function")
    if defining:
        return
    if isinstance(node, ast.Transaction):
        raise SqlError("0A000", f"{command_tag(node)} is not allowed in an SQL function")
    if isinstance(node, ast.Copy) and node.filename is None:
        raise SqlError("0A000", "cannot COPY to/from client in an SQL function")


def _not_volatile(tag: str) -> SqlError:
    return SqlError("0A000", f"{tag} is not allowed in a non-volatile function")


def _nothing(type_: SqlType) -> Select:
    """Return the query of an empty body."""
    return Select(
        columns=(OutputColumn(name="", type=type_),),
        targets=(Target(expr=Const(type=type_, value=None), name=""),),
    )


def _is_void(columns: Wanted) -> bool:
    return isinstance(columns, SqlType) and columns.oid == VOID


# --- what the last statement returns --------------------------------------------------------------


def _fitted_statement(
    context: BindContext, function: FunctionDef, bound: st.Statement, columns: Wanted
) -> st.Statement:
    """Return the last statement with its output converted to what the function returns. Raises SqlError 42P13."""
    if _is_void(columns):
        return bound
    if isinstance(bound, st.WithChanges):
        return replace(bound, body=_fitted_statement(context, function, bound.body, columns))  # type: ignore[arg-type]
    if isinstance(bound, st.QueryStatement):
        return replace(bound, query=_fitted(context, function, bound.query, columns))
    if not isinstance(bound, qt.Insert | qt.Update | qt.Delete) or not bound.returning:
        raise _no_result(context, function)
    if columns is None:
        return bound
    wanted = _wanted_types(context, function, bound.columns, columns)
    shown = [target for target in bound.returning if not target.junk]
    made = _converted(context, function, shown, wanted, columns)
    now = tuple(replace(c, type=t) for c, t in zip(bound.columns, wanted, strict=True))
    junk = tuple(target for target in bound.returning if target.junk)
    return replace(bound, returning=(*made, *junk), columns=now)


def _fitted(context: BindContext, function: FunctionDef, query: QueryExpr, columns: Wanted) -> QueryExpr:
    """Return the body with its output converted to what the function returns. Raises SqlError 42P13."""
    if columns is None or _is_void(columns):
        return query
    row = result_row(context.catalog, function.result)
    if row is not None and len(query.columns) == 1:
        given = query.columns[0].type.oid
        if given == function.result or is_row_of(given, function.result):
            return fields_of(query, result_row(context.catalog, given) or row)  # the one column is the row
    query = _spread(context, query, columns)
    wanted = _wanted_types(context, function, query.columns, columns)
    if [column.type for column in query.columns] == wanted:
        return query
    inside: Select = (
        query if isinstance(query, Select) and not query.distinct and not query.order else wrapped(query)
    )
    made = _converted(context, function, [t for t in inside.targets if not t.junk], wanted, columns)
    targets = (*made, *(target for target in inside.targets if target.junk))
    columns_now = tuple(replace(c, type=t) for c, t in zip(query.columns, wanted, strict=True))
    return replace(inside, targets=targets, columns=columns_now)


def _spread(context: BindContext, query: QueryExpr, columns: Sequence[OutputColumn] | SqlType) -> QueryExpr:
    """Return ``SELECT ROW(a, b)`` or ``SELECT x``, a row whose fields are of the types of several OUT parameters, as
    ``SELECT a, b``; else what is given.
    """
    if isinstance(columns, SqlType) or len(query.columns) != 1 or len(columns) == 1:
        return query
    row = result_row(context.catalog, base_oid(query.columns[0].type.oid))
    if row is not None and [c.type.oid for c in row.live] == [c.type.oid for c in columns]:
        return fields_of(query, row)
    if not isinstance(query, Select) or query.distinct or query.order:
        return query
    made = [target for target in query.targets if not target.junk]
    written = made[0].expr
    if not isinstance(written, RowExpr) or [f.type.oid for f in written.fields] != [
        c.type.oid for c in columns
    ]:
        return query
    return replace(
        query,
        columns=tuple(replace(c, type=f.type) for c, f in zip(columns, written.fields, strict=True)),
        targets=tuple(Target(expr=f, name=c.name) for c, f in zip(columns, written.fields, strict=True)),
    )


def fields_of(query: QueryExpr, row: RowType) -> QueryExpr:
    """Return a query of one column, whose values are of a composite type, as one of its attributes."""
    inside = wrapped(query)
    parts = decompose(inside.targets[0].expr, row)
    names = [c.name for c in row.live]
    types = [c.type for c in row.live]
    return replace(
        inside,
        columns=tuple(OutputColumn(name=n, type=t) for n, t in zip(names, types, strict=True)),
        targets=tuple(
            Target(expr=FieldSelect(type=t, arg=parts, index=i), name=n)
            for i, (n, t) in enumerate(zip(names, types, strict=True))
        ),
    )


def _mismatch(context: BindContext, function: FunctionDef, detail: str) -> SqlError:
    shown = format_type(function.result)
    return SqlError("42P13", f"return type mismatch in function declared to return {shown}", detail=detail)


def _no_result(context: BindContext, function: FunctionDef) -> SqlError:
    detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING."
    return _mismatch(context, function, detail)


def _wanted_types(
    context: BindContext,
    function: FunctionDef,
    given: Sequence[OutputColumn],
    columns: Sequence[OutputColumn] | SqlType,
) -> list[SqlType]:
    if isinstance(columns, SqlType):
        if len(given) != 1:
            raise _mismatch(context, function, "Final statement must return exactly one column.")
        return [columns]
    return [column.type for column in columns]


def _converted(
    context: BindContext,
    function: FunctionDef,
    targets: Sequence[Target],
    wanted: Sequence[SqlType],
    columns: Sequence[OutputColumn] | SqlType,
) -> list[Target]:
    made: list[Target] = []
    for number, (target, type_) in enumerate(zip(targets, wanted, strict=False), 1):
        expr = try_coerce(target.expr, type_, CastContext.ASSIGNMENT, context.env)
        if expr is None:
            actual = format_type(target.expr.type.oid)
            detail = (
                f"Actual return type is {actual}."
                if isinstance(columns, SqlType)
                else f"Final statement returns {actual} instead of {_declared(context, function, number, type_)} at column {number}."
            )
            raise _mismatch(context, function, detail)
        made.append(replace(target, expr=_of_type(expr, type_)))
    if len(targets) != len(wanted):
        how = "few" if len(targets) < len(wanted) else "many"
        raise _mismatch(context, function, f"Final statement returns too {how} columns.")
    return made


def _declared(context: BindContext, function: FunctionDef, number: int, type_: SqlType) -> str:
    """Return what a column of the result is declared as: of a row, its domain."""
    row = None if len(function.outputs) > 1 else result_row(context.catalog, function.result)
    return format_type(type_.oid if row is None else row.live[number - 1].declared.oid)


def _of_type(expr: Expr, type_: SqlType) -> Expr:
    return expr if expr.type == type_ else RelabelType(type=type_, arg=expr)


# --- shapes of queries ----------------------------------------------------------------------------


def range_columns(columns: Sequence[OutputColumn]) -> tuple[RangeColumn, ...]:
    """Return the columns of a range whose rows a query with these columns gives."""
    return tuple(RangeColumn(name=c.name, type=c.type, attnum=i) for i, c in enumerate(columns, 1))


def wrapped(query: QueryExpr) -> Select:
    """Return ``SELECT * FROM (query)``."""
    columns = range_columns(query.columns)
    return Select(
        columns=query.columns,
        targets=tuple(
            Target(expr=Var(type=c.type, range=0, attnum=c.attnum, name=c.name), name=c.name) for c in columns
        ),
        ranges=(SubqueryRange(alias="body", columns=columns, query=shift_query(query, 1)),),
        from_=(RangeRef(range=0),),
    )


def is_simple(query: QueryExpr) -> bool:
    """Tell whether a query is nothing but a list of expressions: it gives one row, which needs no query."""
    return (
        isinstance(query, Select)
        and not (
            query.ranges or query.grouped or query.windows or query.distinct or query.ctes or query.order
        )
        and query.where is None
        and query.limit is None
        and query.offset is None
        and not any(isinstance(n, FuncExpr) and n.returns_set for t in query.targets for n in walk(t.expr))
    )


def gives_one_row(query: QueryExpr) -> bool:
    """Tell whether a query gives one row, whatever it reads."""
    if isinstance(query, Values):
        return len(query.rows) == 1 and query.limit is None and query.offset is None
    if is_simple(query):
        return True
    return (
        isinstance(query, Select)
        and query.grouped
        and not query.group
        and query.grouping_sets is None
        and query.having is None
        and query.limit is None
        and query.offset is None
    )
