"""Users' functions: where it can, the body takes the place of the call, so that every executor can run it.

    price(o.n)           body SELECT $1 * 3                       ->  o.n * 3
    newest(o.n)          body SELECT max(x) FROM t WHERE k = $1   ->  (SELECT max(t.x) FROM t WHERE t.k = o.n)
    digest(o.s, 'md5')   an extension's, without a body           ->  the built-in function it stands for
    FROM since(o.n) s    body SELECT ... WHERE at > $1            ->  LATERAL (SELECT ... WHERE at > o.n) s
    SELECT since(5)      a set in the select list                 ->  SELECT s FROM LATERAL (...) s

A body is bound with ``$n`` for its inputs, which are then replaced by the arguments; an argument that must be
evaluated once (it is volatile, or long and used often) becomes a column of a range of one row beside the
body. STRICT is a CASE around an expression, a condition of a set. A function that returns one value gives
that of its first row (LIMIT 1).

A call stays where its body cannot take its place (``planner.bind.stored.bodies``), where it would call itself
without end, and where it would be evaluated once although it is volatile and stands beside rows. The row
executor then runs it (``engine.programs.routines``).

What is kept as text (views) keeps the call: this is done to what is about to run, once more for every plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.expression.aggregate_steps import is_own, with_steps
from planner.bind.expression.calls import result_row
from planner.bind.stored.bodies import (
    bind_body,
    bind_called,
    fields_of,
    gives_one_row,
    is_called,
    is_simple,
    range_columns,
    wrapped,
)
from planner.bind.stored.readers import as_caller
from planner.catalog import FunctionDef
from planner.facts import BOOL, INT4, INT8, RECORD, VOID, facts
from planner.query import (
    BoolExpr,
    CaseExpr,
    CaseWhen,
    Const,
    Delete,
    Expr,
    FieldSelect,
    FuncExpr,
    FunctionRange,
    Insert,
    Join,
    JoinKind,
    Merge,
    NullTest,
    OutputColumn,
    Param,
    QueryBase,
    QueryExpr,
    Range,
    RangeRef,
    RelationRange,
    RowExpr,
    Select,
    SqlCall,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Target,
    Update,
    Var,
)
from planner.query.exprs import free_levels, reads_own_columns
from planner.query.rewrite import replace_children, shift_levels, shift_query
from planner.query.walk import children, walk
from planner.statements.classify import is_volatile
from planner.types import SqlType
from planner.types.domains import base_oid

MAX_INLINED: Final = 1000
"""So many calls a statement may come to hold; more is 54001."""

_LONG: Final = 12  # nodes: a longer argument that is used more than once is evaluated once, beside the body


def inline_calls(context: BindContext, node: object) -> Any:
    """Return a query or statement with the bodies of users' functions in the place of their calls.

    Raises SqlError 0A000 (what cannot be inlined), 54001 (calls without end), 42P13 (a body that no longer
    fits its function).
    """
    return Inliner(context, changing=isinstance(node, Insert | Update | Delete | Merge)).visit(node)


# --- calls ----------------------------------------------------------------------------------------


class Inliner:
    """Puts the bodies of users' functions in the place of their calls, in what is about to run."""

    def __init__(self, context: BindContext, changing: bool = False) -> None:
        """``context`` is told which functions are called; ``changing``: the statement changes tables, which
        volatile functions see.
        """
        self.changing = changing
        self.context = context
        self.open: list[int] = []  # the functions whose bodies are being visited
        self.count = 0
        self.once = False  # what is visited is evaluated once: it stands in a SELECT without FROM

    def visit(self, node: object) -> Any:
        """Return a node with calls in it replaced."""
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
        if is_own(node):
            self.context.functions.add(node.proc)
            return with_steps(self.context, node, self._step)
        return node

    def _step(self, call: Expr) -> Expr:
        """Return the call of an aggregate's function as it is made for each row: an expression of its inputs,
        or a call that stays.
        """
        before, self.once = self.once, False
        try:
            made: Expr = self.visit(call)
        finally:
            self.once = before
        if any(isinstance(item, SubLink) for item in walk(made)):
            made = self._kept_step(call)
        return made

    def _kept_step(self, node: object) -> Any:
        if isinstance(node, SqlCall):
            self._note_call(self._function(node), node)
            return self._kept(node, None)
        return replace_children(node, self._kept_step)

    def _body(self, call: SqlCall) -> tuple[FunctionDef, QueryExpr | None]:
        """Return the body of a call, calls in it replaced by their bodies, ``$n`` for its inputs; None if the
        call stays.
        """
        function = self._function(call)
        self.count += 1
        if self.count > MAX_INLINED:
            raise SqlError(
                "54001",
                "stack depth limit exceeded",
                hint=f"A statement may hold {MAX_INLINED} calls of SQL functions, those in their bodies included.",
            )
        if call.proc in self.open or call.proc in self.context.running or is_called(function):
            self._note_call(function, call)
            return function, None
        wanted = call.outputs or None if call.type.oid == RECORD else call.type
        depth = self.context.view_depth
        self.open.append(call.proc)
        self.context.view_depth += 1
        try:
            types = [arg.type.oid for arg in call.args]
            body = bind_body(self.context, function, types, wanted)
            if body is not None:
                body = self.visit(body)
        except SqlError as error:
            error.span = None  # it stands in another text
            raise
        finally:
            self.open.pop()
            self.context.view_depth = depth
        if body is None:
            self._note_call(function, call)
            return function, None
        return function, as_caller(body, looked_up=bool(function.body_sql))

    def _function(self, call: SqlCall) -> FunctionDef:
        function = self.context.catalog.function_by_oid(call.proc)
        if function is None:
            raise SqlError("42883", f"function {call.name} does not exist")
        self.context.functions.add(call.proc)
        return function

    def _note_call(self, function: FunctionDef, call: SqlCall) -> None:
        """Note that a call stays, and what it may do."""
        flags = self.context.flags
        flags.add("calls")
        if call.proc in self.open or call.proc in self.context.running:
            return  # what it does is noted where it was called first
        if is_called(function):
            # bound under its own rights and settings, when it runs
            from planner.plpgsql.check import may_change  # which binds

            if function.volatility == "v" and may_change(self.context, function):
                flags.add("changes")
            return
        wanted = call.outputs or None if call.type.oid == RECORD else call.type
        try:
            bind_called(self.context, function, [arg.type.oid for arg in call.args], wanted)
        except SqlError as error:
            error.span = None
            raise

    def _kept(self, call: SqlCall, field: int | None) -> Expr:
        call = replace(call, stays=True)
        if field is None:
            return call
        return FieldSelect(type=call.outputs[field].type, arg=call, index=field)

    def _kept_range(self, node: FunctionRange, functions: Sequence[Expr]) -> FunctionRange:
        """Return a FROM item whose calls stay."""
        kept = tuple(replace(f, stays=True) if isinstance(f, SqlCall) else f for f in functions)
        return replace(node, functions=kept)

    def _built_in(self, call: SqlCall) -> FuncExpr | None:
        """Return the call of the built-in function that an extension's function stands for. Raises SqlError 0A000."""
        function = self._function(call)
        if not function.internal:
            return None
        proc = facts().proc_by_signature.get(function.internal)
        if proc is None:
            raise not_supported(f"function {call.name} of this version of its extension")
        return FuncExpr(
            type=call.type, proc=proc, args=call.args, variadic=call.variadic, returns_set=call.returns_set
        )

    # -- expressions -------------------------------------------------------------------------------

    def _scalar(self, call: SqlCall, field: int | None = None) -> Expr:
        built_in = self._built_in(call)
        if built_in is not None:
            return built_in
        function, body = self._body(call)
        if body is None:
            return self._kept(call, field)
        if call.returns_set or (call.type.oid == RECORD and not call.outputs):
            self._note_call(function, call)
            return self._kept(call, field)
        if is_simple(body) and isinstance(body, Select) and not self._once(function, body, call.args, 0):
            exprs = [substituted(t.expr, call.args, 0) for t in body.targets if not t.junk]
            return self._strict(function, call, self._value(call, exprs, field))
        query = body if gives_one_row(body) else _first_row(body)
        if self.changing and function.volatility == "v" and not self.open and _reads_tables(query):
            self._note_call(function, call)
            return self._kept(call, field)
        once = self._once(function, query, call.args, 1)
        if not self.once and (is_volatile(query) or any(map(is_volatile, call.args))):
            # a sub-select that reads nothing of the row around it would be evaluated once for all rows
            self._note_call(function, call)
            return self._kept(call, field)
        query = _beside(query, call.args) if once else substituted(query, call.args, 0)
        if call.type.oid == RECORD or call.type.oid == VOID:
            inner = wrapped(query)
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

    def _rows(self, call: SqlCall) -> QueryExpr | None:
        """Return the rows of a call as a query that stands one level below it; None if the call stays."""
        function, body = self._body(call)
        if body is None:
            return None
        if not call.returns_set and not gives_one_row(body):
            body = _first_row(body)
        once = self._once(function, body, call.args, 1)
        query = _beside(body, call.args) if once else substituted(body, call.args, 0)
        if not function.strict:
            return query
        tests = _null_tests(call.args)
        if tests == ():
            return query
        outer = wrapped(query)
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
        functions = tuple(replace_children(f, self.visit) for f in node.functions)
        functions = tuple((isinstance(f, SqlCall) and self._built_in(f)) or f for f in functions)
        if not any(isinstance(f, SqlCall) for f in functions):
            return replace(node, functions=functions)
        if len(functions) > 1 or node.ordinality:
            for one in functions:
                if isinstance(one, SqlCall):
                    self._note_call(self._function(one), one)
            return self._kept_range(node, functions)
        call = functions[0]
        if not isinstance(call, SqlCall):
            raise AssertionError(f"a function in FROM is {type(call).__name__}, not a call")
        if call.type.oid == RECORD and not call.outputs:
            # the query says which columns there are
            outputs = tuple(OutputColumn(name=c.name, type=c.type) for c in node.columns)
            call = replace(call, outputs=outputs)
        if call.type.oid == VOID and not call.returns_set:
            value = self._scalar(call)
            if isinstance(value, SqlCall):
                return self._kept_range(node, (call,))
            value = shift_levels(value, 1)
            columns = (OutputColumn(name=call.name, type=call.type),)
            query: QueryExpr = Select(columns=columns, targets=(Target(expr=value, name=call.name),))
            return SubqueryRange(
                alias=node.alias, columns=node.columns, query=query, lateral=_reads_outside(query)
            )
        nothing = call.type.oid == VOID  # SETOF void: its statements run, and give no rows
        if nothing:
            self._note_call(self._function(call), call)
        made = None if nothing else self._rows(call)
        if made is None:
            return self._kept_range(node, (call,))
        query = made
        if not call.returns_set and not gives_one_row(query):
            query = _padded(query)
        if node.slots and (row := result_row(self.context.catalog, base_oid(call.type.oid))):
            query = fields_of(query, row)  # a domain over a composite type: its one column is the row
        return SubqueryRange(
            alias=node.alias, columns=node.columns, query=query, lateral=node.lateral or _reads_outside(query)
        )

    def _lifted(self, select: Select) -> Select:
        """Return a SELECT whose list calls sets with these in FROM, where that is the same."""
        calls: list[SqlCall] = []
        own = [node for target in select.targets for node in _own(target.expr)]
        for node in own:
            if isinstance(node, SqlCall) and node.returns_set and node not in calls:
                calls.append(node)
        if not calls:
            return select
        call = calls[0]
        others = any(isinstance(n, FuncExpr) and n.returns_set and n != call for n in own)
        bare = call.type.oid == RECORD and not call.outputs
        if others or bare or select.grouped or select.windows or select.row_marks:
            return select  # called for each row of what is around it
        if select.from_ and not reads_own_columns(call) and self._varies(call):
            return select  # in FROM it would be called once
        columns = range_columns(call.outputs or (OutputColumn(name=call.name, type=call.type),))
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

        if call.type.oid == RECORD:
            fields = tuple(column(i) for i in range(len(columns)))
            whole: Expr = RowExpr(type=call.type, fields=fields, names=tuple(c.name for c in columns))
        else:
            whole = column(0)
        targets = tuple(
            replace(target, expr=_with_columns(target.expr, call, whole, column)) for target in select.targets
        )
        return replace(
            select,
            targets=targets,
            ranges=(*select.ranges, made),
            from_=(*select.from_, RangeRef(range=number)),
        )

    def _varies(self, call: SqlCall) -> bool:
        """Tell whether a call may give other rows each time."""
        function, body = self._body(call)
        if body is None:
            return function.volatility == "v"
        return is_volatile(body) or any(map(is_volatile, call.args))


def _reads_tables(query: QueryExpr) -> bool:
    return any(isinstance(item, RelationRange) for item in walk(query))


def _with_columns(node: object, call: SqlCall, whole: Expr, column: Callable[[int], Expr]) -> Any:
    """Return a node with ``whole`` in place of a call, and ``column`` of its field's number in place of a
    field; sub-selects stay.
    """
    if isinstance(node, FieldSelect) and node.arg == call:
        return column(node.index)
    if node == call:
        return whole
    if isinstance(node, QueryBase):
        return node
    return replace_children(node, lambda child: _with_columns(child, call, whole, column))


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


def substituted(node: object, args: Sequence[Expr], depth: int = 0) -> Any:
    """Return a body with the arguments in the place of ``$n``; ``depth``: query levels around it since the call."""
    if isinstance(node, Param):
        if not 1 <= node.number <= len(args):
            return node
        return shift_levels(args[node.number - 1], depth)
    inner = depth + 1 if isinstance(node, QueryBase) else depth
    return replace_children(node, lambda child: substituted(child, args, inner))


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
    inner = substituted(body, names, 0)
    columns = range_columns(body.columns)
    return Select(
        columns=body.columns,
        targets=tuple(
            Target(expr=Var(type=c.type, range=1, attnum=c.attnum, name=c.name), name=c.name) for c in columns
        ),
        ranges=(
            SubqueryRange(alias="arguments", columns=range_columns(inputs), query=first, lateral=True),
            SubqueryRange(alias="body", columns=columns, query=inner, lateral=True),
        ),
        from_=(RangeRef(range=0), RangeRef(range=1)),
    )


def _first_row(query: QueryExpr) -> QueryExpr:
    one = Const(type=SqlType(INT8), value=1)
    if query.limit is None and not query.with_ties:
        return replace(query, limit=one)
    return replace(wrapped(query), limit=one)


def _padded(query: QueryExpr) -> Select:
    """Return ``SELECT b.* FROM (SELECT 1) LEFT JOIN (query) b ON true``: a row of NULLs where there is none."""
    columns = range_columns(query.columns)
    inputs = (OutputColumn(name="one", type=SqlType(INT4)),)
    one = Select(columns=inputs, targets=(Target(expr=Const(type=SqlType(INT4), value=1), name="one"),))
    return Select(
        columns=query.columns,
        targets=tuple(
            Target(expr=Var(type=c.type, range=1, attnum=c.attnum, name=c.name), name=c.name) for c in columns
        ),
        ranges=(
            SubqueryRange(alias="one", columns=range_columns(inputs), query=one),
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
