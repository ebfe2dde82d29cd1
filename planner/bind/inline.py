"""Users' functions: the body takes the place of the call, so that every executor can run it.

    price(o.n)           body SELECT $1 * 3                       ->  o.n * 3
    newest(o.n)          body SELECT max(x) FROM t WHERE k = $1   ->  (SELECT max(t.x) FROM t WHERE t.k = o.n)
    FROM since(o.n) s    body SELECT ... WHERE at > $1            ->  LATERAL (SELECT ... WHERE at > o.n) s
    SELECT since(5)      a set in the select list                 ->  SELECT s FROM LATERAL (...) s

A body is bound with ``$n`` for its inputs, which are then replaced by the arguments; an argument that must be evaluated once
(it is volatile, or long and used often) becomes a column of a range of one row beside the body. STRICT is a CASE around an
expression, a condition of a set. A function that returns one value gives that of its first row (LIMIT 1).

What is kept as text (views) keeps the call: this is done to what is about to run, once more for every plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from planner import ast
from planner.bind.calls import row_relation
from planner.bind.context import BindContext
from planner.bind.query import bind_query
from planner.bind.stored import without_spans
from planner.casts import CastContext, try_coerce
from planner.catalog import FunctionDef
from planner.classify import is_volatile
from planner.errors import SqlError, not_supported
from planner.exprs import free_levels
from planner.facts import BOOL, INT4, INT8, RECORD, VOID
from planner.parse import parse
from planner.query import (
    BoolExpr,
    CaseExpr,
    CaseWhen,
    Const,
    Expr,
    FieldSelect,
    FuncExpr,
    FunctionRange,
    Join,
    JoinKind,
    NullTest,
    OutputColumn,
    Param,
    QueryBase,
    QueryExpr,
    Range,
    RangeColumn,
    RangeRef,
    RelabelType,
    RelationRange,
    RowExpr,
    Select,
    SqlCall,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
    Values,
    Var,
)
from planner.rewrite import replace_children, shift_levels, shift_query
from planner.typefacts import format_type
from planner.types import SqlType
from planner.walk import children, walk

MAX_INLINED: Final = 1000
"""So many calls a statement may come to hold; more is 54001."""

_LONG: Final = 12  # nodes: a longer argument that is used more than once is evaluated once, beside the body


def inline_calls(context: BindContext, node: Any) -> Any:
    """Return a query or statement with the bodies of users' functions in the place of their calls.

    Raises SqlError 0A000 (what cannot be inlined), 54001 (calls without end), 42P13 (a body that no longer fits its function).
    """
    return _Inliner(context).visit(node)


# --- bodies ---------------------------------------------------------------------------------------


def bind_body(
    context: BindContext,
    function: FunctionDef,
    types: Sequence[int],
    columns: Sequence[OutputColumn] | SqlType | None,
) -> QueryExpr:
    """Bind a function's body for inputs of ``types``; its output is of the types of ``columns``, of that one type, or (None) as it is.

    Raises SqlError 42P13 where it does not fit, 0A000 for bodies of several statements or that change data.
    """
    inner = context.for_function(function, types)
    try:
        statements = [parsed.statement for parsed in parse(inner.text)]
        query = _query(inner, function, statements, columns)
        made: QueryExpr = without_spans(_fitted(inner, function, query, columns))
    except SqlError as error:
        if error.where is None:
            when = "inlining" if function.returns_set or function.result != RECORD else "startup"
            error.where = f'SQL function "{function.name}" during {when}'
        raise
    return made


def check_body(function: FunctionDef) -> None:
    """Check what can be known of the body of a polymorphic function before it is called. Raises SqlError 42601, 0A000."""
    statements = parse(function.source)
    if len(statements) > 1:
        raise not_supported("an SQL function of more than one statement")


def _query(
    context: BindContext,
    function: FunctionDef,
    statements: Sequence[ast.Node],
    columns: Sequence[OutputColumn] | SqlType | None,
) -> QueryExpr:
    if not statements and isinstance(columns, SqlType) and columns.oid == VOID:
        return Select(
            columns=(OutputColumn(name="", type=columns),),
            targets=(Target(expr=Const(type=columns, value=None), name=""),),
        )
    if len(statements) > 1:
        raise not_supported("an SQL function of more than one statement")
    if not statements or not isinstance(statements[0], ast.Select | ast.SetOp | ast.Values):
        if statements and isinstance(statements[0], ast.Insert | ast.Update | ast.Delete | ast.Merge):
            raise not_supported("an SQL function that changes data")
        shown = _result_name(context, function)
        raise SqlError(
            "42P13",
            f"return type mismatch in function declared to return {shown}",
            detail="Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.",
        )
    from planner.bind.changes import runs_in_parts

    if runs_in_parts(statements[0]):
        raise not_supported("an SQL function that changes data")
    query = bind_query(context, statements[0])
    if any(isinstance(node, Select) and node.row_marks for node in walk(query)):
        raise not_supported("an SQL function that locks rows")
    return query


def _fitted(
    context: BindContext,
    function: FunctionDef,
    query: QueryExpr,
    columns: Sequence[OutputColumn] | SqlType | None,
) -> QueryExpr:
    """Return the body with its output converted to what the function returns. Raises SqlError 42P13."""
    if columns is None:
        return query
    shown = _result_name(context, function)
    message = f"return type mismatch in function declared to return {shown}"
    if isinstance(columns, SqlType):
        if columns.oid == VOID:
            return query
        if len(query.columns) != 1:
            raise SqlError("42P13", message, detail="Final statement must return exactly one column.")
        wanted = [columns]
    else:
        if len(query.columns) < len(columns):
            raise SqlError("42P13", message, detail="Final statement returns too few columns.")
        if len(query.columns) > len(columns):
            raise SqlError("42P13", message, detail="Final statement returns too many columns.")
        wanted = [column.type for column in columns]
    if [column.type for column in query.columns] == wanted:
        return query
    inside: Select = (
        query if isinstance(query, Select) and not query.distinct and not query.order else _wrapped(query)
    )
    shown_targets = [target for target in inside.targets if not target.junk]
    made: list[Target] = []
    for number, (target, type_) in enumerate(zip(shown_targets, wanted, strict=True), 1):
        expr = try_coerce(target.expr, type_, CastContext.ASSIGNMENT, context.env)
        if expr is None:
            actual = format_type(target.expr.type.oid)
            detail = (
                f"Actual return type is {actual}."
                if isinstance(columns, SqlType)
                else f"Final statement returns {actual} instead of {format_type(type_.oid)} at column {number}."
            )
            raise SqlError("42P13", message, detail=detail)
        made.append(replace(target, expr=_of_type(expr, type_)))
    targets = (*made, *(target for target in inside.targets if target.junk))
    columns_now = tuple(replace(c, type=t) for c, t in zip(query.columns, wanted, strict=True))
    return replace(inside, targets=targets, columns=columns_now)


def _result_name(context: BindContext, function: FunctionDef) -> str:
    relation = row_relation(context.catalog, function.result)
    return format_type(function.result) if relation is None else relation.name


def _of_type(expr: Expr, type_: SqlType) -> Expr:
    return expr if expr.type == type_ else RelabelType(type=type_, arg=expr)


def _range_columns(columns: Sequence[OutputColumn]) -> tuple[RangeColumn, ...]:
    return tuple(RangeColumn(name=c.name, type=c.type, attnum=i) for i, c in enumerate(columns, 1))


def _wrapped(query: QueryExpr) -> Select:
    """Return ``SELECT * FROM (query)``."""
    columns = _range_columns(query.columns)
    return Select(
        columns=query.columns,
        targets=tuple(
            Target(expr=Var(type=c.type, range=0, attnum=c.attnum, name=c.name), name=c.name) for c in columns
        ),
        ranges=(SubqueryRange(alias="body", columns=columns, query=shift_query(query, 1)),),
        from_=(RangeRef(range=0),),
    )


def _simple(query: QueryExpr) -> bool:
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


def _one_row(query: QueryExpr) -> bool:
    """Tell whether a query gives one row, whatever it reads."""
    if isinstance(query, Values):
        return len(query.rows) == 1 and query.limit is None and query.offset is None
    if _simple(query):
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


def _invoked(node: Any) -> Any:
    """Mark what a body reads as read by whoever calls; a view's insides stay the affair of its owner."""
    if isinstance(node, SubqueryRange) and node.view is not None:
        return replace(node, invoker=True)
    if isinstance(node, RelationRange):
        return replace(node, invoker=True)
    return replace_children(node, _invoked)


# --- calls ----------------------------------------------------------------------------------------


class _Inliner:
    def __init__(self, context: BindContext) -> None:
        self.context = context
        self.open: list[int] = []  # the functions whose bodies are being visited
        self.count = 0
        self.once = False  # what is visited is evaluated once: it stands in a SELECT without FROM

    def visit(self, node: Any) -> Any:
        if isinstance(node, Const | Param | Var):
            return node
        if isinstance(node, Select):
            before, self.once = self.once, not node.from_ and not self.open
            try:
                return self._visit(self._lifted(node))
            finally:
                self.once = before
        return self._visit(node)

    def _visit(self, node: Any) -> Any:
        if isinstance(node, FunctionRange) and any(isinstance(f, SqlCall) for f in node.functions):
            return self._range(node)
        if isinstance(node, FieldSelect) and isinstance(node.arg, SqlCall):
            call = replace_children(node.arg, self.visit)
            return self._scalar(call, field=node.index)
        node = replace_children(node, self.visit)
        if isinstance(node, SqlCall):
            return self._scalar(node)
        return node

    def _body(self, call: SqlCall) -> tuple[FunctionDef, QueryExpr]:
        """Return the body of a call, calls in it replaced by their bodies, ``$n`` for its inputs."""
        function = self.context.catalog.function_by_oid(call.proc)
        if function is None:
            raise SqlError("42883", f"function {call.name} does not exist")
        if call.proc in self.open:
            raise not_supported(
                f"recursion of SQL function {call.name}",
                hint="WITH RECURSIVE may serve instead.",
                span=call.span,
            )
        self.count += 1
        if self.count > MAX_INLINED:
            raise SqlError(
                "54001",
                "stack depth limit exceeded",
                hint=f"A statement may hold {MAX_INLINED} calls of SQL functions, those in their bodies included.",
            )
        self.context.functions.add(call.proc)
        wanted = call.outputs if call.type.oid == RECORD else call.type
        depth = self.context.view_depth
        self.open.append(call.proc)
        self.context.view_depth += 1
        try:
            types = [arg.type.oid for arg in call.args]
            body = self._bound(function, types, wanted)
            body = self.visit(body)
        finally:
            self.open.pop()
            self.context.view_depth = depth
        return function, _invoked(body)

    def _bound(
        self, function: FunctionDef, types: Sequence[int], wanted: Sequence[OutputColumn] | SqlType
    ) -> QueryExpr:
        try:
            return bind_body(self.context, function, types, wanted)
        except SqlError as error:
            error.span = None  # it stands in another text
            raise

    # -- expressions -------------------------------------------------------------------------------

    def _scalar(self, call: SqlCall, field: int | None = None) -> Expr:
        if call.returns_set:
            raise not_supported(
                f"set-returning SQL function {call.name} in this place",
                hint="Call it in FROM.",
                span=call.span,
            )
        if call.type.oid == RECORD and not call.outputs:
            raise not_supported(
                f"SQL function {call.name}, which returns record, outside of FROM", span=call.span
            )
        function, body = self._body(call)
        if _simple(body) and isinstance(body, Select) and not self._once(function, body, call.args, 0):
            exprs = [_substituted(t.expr, call.args, 0) for t in body.targets if not t.junk]
            return self._strict(function, call, self._value(call, exprs, field))
        query = body if _one_row(body) else _first_row(body)
        once = self._once(function, query, call.args, 1)
        if not self.once and (is_volatile(query) or any(map(is_volatile, call.args))):
            # a sub-select that reads nothing of the row around it is evaluated once for all rows
            raise not_supported(
                f"a volatile call of SQL function {call.name} for every row",
                hint="What is volatile would be evaluated once for all rows.",
                span=call.span,
            )
        query = _beside(query, call.args) if once else _substituted(query, call.args, 0)
        if call.type.oid == RECORD or call.type.oid == VOID:
            inner = _wrapped(query)
            exprs = [target.expr for target in inner.targets]
            value = self._value(call, exprs, field)
            query = replace(
                inner,
                columns=(OutputColumn(name=call.name, type=value.type),),
                targets=(Target(expr=value, name=call.name),),
            )
        link = SubLink(type=query.columns[0].type, kind=SubLinkKind.SCALAR, query=query)
        return self._strict(function, call, link)

    def _value(self, call: SqlCall, exprs: Sequence[Expr], field: int | None) -> Expr:
        """Return the value of a call whose row has these fields."""
        if call.type.oid == VOID:
            null = Const(type=call.type, value=None)
            if not exprs or isinstance(exprs[0], Const):
                return null
            # evaluated for what it does
            seen = CaseWhen(condition=NullTest(type=SqlType(BOOL), arg=exprs[0]), result=null)
            return CaseExpr(type=call.type, whens=(seen,), default=null)
        if call.type.oid != RECORD:
            return exprs[0]
        if field is not None:
            return exprs[field]
        names = tuple(column.name for column in call.outputs)
        return RowExpr(type=call.type, fields=tuple(exprs), names=names)

    def _strict(self, function: FunctionDef, call: SqlCall, value: Expr) -> Expr:
        if not function.strict:
            return value
        tests = _null_tests(call.args)
        if tests is None:
            return Const(type=value.type, value=None)
        if not tests:
            return value
        condition = tests[0] if len(tests) == 1 else BoolExpr(type=SqlType(BOOL), kind="or", args=tests)
        null = Const(type=value.type, value=None)
        return CaseExpr(type=value.type, whens=(CaseWhen(condition=condition, result=null),), default=value)

    def _once(self, function: FunctionDef, body: Any, args: Sequence[Expr], floor: int) -> bool:
        """Tell whether an argument has to be evaluated once, apart from the body."""
        uses = [0] * len(args)
        for node in walk(body):
            if isinstance(node, Param) and 1 <= node.number <= len(args):
                uses[node.number - 1] += 1
        for arg, count in zip(args, uses, strict=True):
            if isinstance(arg, Const | Param | Var):
                continue
            if is_volatile(arg) and (count != 1 or floor or function.strict):
                return True
            nodes = list(walk(arg))
            if count > 1 and (len(nodes) > _LONG or any(isinstance(n, SubLink) for n in nodes)):
                return True
        return False

    # -- sets --------------------------------------------------------------------------------------

    def _rows(self, call: SqlCall) -> QueryExpr:
        """Return the rows of a call as a query that stands one level below it."""
        function, body = self._body(call)
        if not call.returns_set and not _one_row(body):
            body = _first_row(body)
        once = self._once(function, body, call.args, 1)
        query = _beside(body, call.args) if once else _substituted(body, call.args, 0)
        if not function.strict:
            return query
        tests = _null_tests(call.args)
        if tests == ():
            return query
        outer = _wrapped(query)
        if tests is None:
            return replace(outer, where=Const(type=SqlType(BOOL), value=False))
        wanted = tuple(
            NullTest(type=SqlType(BOOL), arg=shift_levels(test.arg, 1), negated=True)
            for test in tests
            if isinstance(test, NullTest)
        )
        where = wanted[0] if len(wanted) == 1 else BoolExpr(type=SqlType(BOOL), kind="and", args=wanted)
        return replace(outer, where=where)

    def _range(self, node: FunctionRange) -> Range:
        """Return a FROM item that is a call as the sub-select it stands for."""
        call = node.functions[0]
        if len(node.functions) > 1 or node.ordinality:
            what = "WITH ORDINALITY" if node.ordinality else "ROWS FROM"
            named = next(f.name for f in node.functions if isinstance(f, SqlCall))
            raise not_supported(f"{what} of SQL function {named}")
        assert isinstance(call, SqlCall)
        call = replace_children(call, self.visit)
        if call.type.oid == RECORD and not call.outputs:
            # the query says which columns there are
            outputs = tuple(OutputColumn(name=c.name, type=c.type) for c in node.columns)
            call = replace(call, outputs=outputs)
        if call.type.oid == VOID and not call.returns_set:
            value = shift_levels(self._scalar(call), 1)
            columns = (OutputColumn(name=call.name, type=call.type),)
            query: QueryExpr = Select(columns=columns, targets=(Target(expr=value, name=call.name),))
            return SubqueryRange(
                alias=node.alias, columns=node.columns, query=query, lateral=_reads_outside(query)
            )
        query = self._rows(call)
        if not call.returns_set and not _one_row(query):
            query = _padded(query)
        return SubqueryRange(
            alias=node.alias, columns=node.columns, query=query, lateral=node.lateral or _reads_outside(query)
        )

    def _lifted(self, select: Select) -> Select:
        """Return a SELECT whose list calls sets with these in FROM. Raises 0A000 where that would be something else."""
        calls: list[SqlCall] = []
        own = [node for target in select.targets for node in _own(target.expr)]
        for node in own:
            if isinstance(node, SqlCall) and node.returns_set and node not in calls:
                calls.append(node)
        if not calls:
            return select
        call = calls[0]
        others = any(isinstance(n, FuncExpr) and n.returns_set and n != call for n in own)
        if others or select.grouped or select.windows or select.row_marks:
            raise not_supported(
                f"set-returning SQL function {call.name} in this place",
                hint="Call it in FROM.",
                span=call.span,
            )
        if call.type.oid == RECORD and not call.outputs:
            raise not_supported(
                f"SQL function {call.name}, which returns record, outside of FROM", span=call.span
            )
        columns = _range_columns(call.outputs or (OutputColumn(name=call.name, type=call.type),))
        number = len(select.ranges)
        made = FunctionRange(
            alias=call.name,
            columns=columns,
            functions=(call,),
            widths=(len(columns),),
            lateral=bool(select.ranges),
        )

        def column(position: int) -> Var:
            found = columns[position]
            return Var(type=found.type, range=number, attnum=found.attnum, name=found.name)

        def changed(node: Any) -> Any:
            if isinstance(node, FieldSelect) and node.arg == call:
                return column(node.index)
            if node == call:
                if call.type.oid != RECORD:
                    return column(0)
                fields = tuple(column(i) for i in range(len(columns)))
                return RowExpr(type=call.type, fields=fields, names=tuple(c.name for c in columns))
            return node if isinstance(node, QueryBase) else replace_children(node, changed)

        targets = tuple(replace(target, expr=changed(target.expr)) for target in select.targets)
        return replace(
            select,
            targets=targets,
            ranges=(*select.ranges, made),
            from_=(*select.from_, RangeRef(range=number)),
        )


def _own(expr: Any) -> Iterator[Any]:
    """Yield an expression and what is below it, sub-selects left out."""
    yield expr
    for child in children(expr):
        if not isinstance(child, QueryBase):
            yield from _own(child)


def _null_tests(args: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """Return what asks whether any of the arguments is NULL; None where one is for certain."""
    tests: list[Expr] = []
    for arg in args:
        if isinstance(arg, Const):
            if arg.value is None:
                return None
            continue
        tests.append(NullTest(type=SqlType(BOOL), arg=arg))
    return tuple(tests)


def _substituted(node: Any, args: Sequence[Expr], depth: int) -> Any:
    """Return a body with the arguments in the place of ``$n``; ``depth``: query levels around it since the call."""
    if isinstance(node, Param):
        if not 1 <= node.number <= len(args):
            return node
        return shift_levels(args[node.number - 1], depth)
    inner = depth + 1 if isinstance(node, QueryBase) else depth
    return replace_children(node, lambda child: _substituted(child, args, inner))


def _beside(body: QueryExpr, args: Sequence[Expr]) -> Select:
    """Return ``SELECT b.* FROM (SELECT args) a, LATERAL (body) b``, where the body reads its inputs from a."""
    inputs = tuple(OutputColumn(name=f"a{i}", type=arg.type) for i, arg in enumerate(args, 1))
    first = Select(
        columns=inputs,
        targets=tuple(
            Target(expr=shift_levels(arg, 2), name=c.name) for arg, c in zip(args, inputs, strict=True)
        ),
    )
    names = [Var(type=c.type, range=0, attnum=i, name=c.name) for i, c in enumerate(inputs, 1)]
    # below the call: the outer SELECT, then the body, in which level 1 is that outer SELECT
    inner = _substituted(body, names, 0)
    columns = _range_columns(body.columns)
    return Select(
        columns=body.columns,
        targets=tuple(
            Target(expr=Var(type=c.type, range=1, attnum=c.attnum, name=c.name), name=c.name) for c in columns
        ),
        ranges=(
            SubqueryRange(alias="arguments", columns=_range_columns(inputs), query=first, lateral=True),
            SubqueryRange(alias="body", columns=columns, query=inner, lateral=True),
        ),
        from_=(RangeRef(range=0), RangeRef(range=1)),
    )


def _first_row(query: QueryExpr) -> QueryExpr:
    one = Const(type=SqlType(INT8), value=1)
    if query.limit is None and not query.with_ties:
        return replace(query, limit=one)
    return replace(_wrapped(query), limit=one)


def _padded(query: QueryExpr) -> Select:
    """Return ``SELECT b.* FROM (SELECT 1) LEFT JOIN (query) b ON true``: a row of NULLs where there is none."""
    columns = _range_columns(query.columns)
    inputs = (OutputColumn(name="one", type=SqlType(INT4)),)
    one = Select(columns=inputs, targets=(Target(expr=Const(type=SqlType(INT4), value=1), name="one"),))
    return Select(
        columns=query.columns,
        targets=tuple(
            Target(expr=Var(type=c.type, range=1, attnum=c.attnum, name=c.name), name=c.name) for c in columns
        ),
        ranges=(
            SubqueryRange(alias="one", columns=_range_columns(inputs), query=one),
            SubqueryRange(alias="body", columns=columns, query=shift_query(query, 1), lateral=True),
        ),
        from_=(
            Join(
                kind=JoinKind.LEFT,
                left=RangeRef(range=0),
                right=RangeRef(range=1),
                on=Const(type=SqlType(BOOL), value=True),
            ),
        ),
    )


def _reads_outside(query: QueryExpr) -> bool:
    """Tell whether a query reads columns of the query around it (not of one further out)."""
    return 0 in free_levels(query)[0]
