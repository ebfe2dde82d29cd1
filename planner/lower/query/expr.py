"""Expressions: one function per node class of the Query tree.

NULL and three-valued logic are the engines' own, which agree with SQL; what differs (equality of char(n), numerics
of varying scale, intervals, row comparison) is compared by *keys*: engine values that are equal and ordered exactly
as PostgreSQL's values are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pgwire.codecs.errors import DataError
from pgwire.give_way import give_way, paced, size_of
from planner import facts as f
from planner import query as q
from planner.base.errors import Span, SqlError, not_supported
from planner.evaluate import evaluate_constant
from planner.facts import facts
from planner.functions import load
from planner.lower.kit import build as b
from planner.lower.kit import coercion, numeric, varying
from planner.lower.kit.build import Node
from planner.lower.kit.constants import column_form, constant
from planner.lower.kit.dialect import Dialect, error_text
from planner.lower.kit.value import (
    GEOMETRIC,
    Fixed,
    Floating,
    Num,
    Val,
    element_of,
    kind_of,
)
from planner.lower.query import callouts, sublinks
from planner.lower.query.samples import sample_test
from planner.rules.foldable import LEFT, immutable_text, in_budget, never
from planner.types import SqlType
from planner.types.facts import format_type

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext

BOOL = SqlType(f.BOOL)
MOST_FOLDED = 1 << 16
"""Bytes of constants whose value the engine is given, instead of the call."""


def lower(lw: LoweringContext, expr: q.Expr) -> Val:
    """Return the lowered expression.

    Raises:
        SqlError: 0A000 naming what this engine cannot run.
    """
    give_way()
    known = lw.substituted(expr)
    if known is not None:
        return known
    try:
        folded = _folded(expr)
    except DataError as error:
        if error.sqlstate != "0A000":
            # Raised only if evaluation gets there; an engine would fold the call and raise too early.
            # Of a type, for DuckDB takes an operation over what has none for NULL, and never gets there.
            num = Fixed(1, 0) if expr.type.oid == f.NUMERIC else None
            failing = b.cast(lw.d.error(error.sqlstate, error_text(error)), lw.d.engine_type(expr.type, num))
            return Val(failing, expr.type, num)
        folded = None
    if folded is not None:
        return constant(lw.d, folded.value, folded.type)
    try:
        handler = _HANDLERS.get(type(expr))
        if handler is None:
            raise not_supported(f"{_REFUSED[type(expr)]} in this executor", span=expr.span)
        return handler(lw, expr)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        return callouts.call(lw, expr, error)


# What has no form in an engine, as its refusal names it.
_REFUSED: dict[type[q.Expr], str] = {
    q.ArrayCoerce: "a cast of an array's elements",
    q.ArrayAssign: "an assignment to a part of a value",
    q.ComposeRow: "a row as a composite value",
    q.DecomposeRow: "a composite value as a row",
    q.RowExpr: "a row value",
    q.FieldSelect: "a field of a row value",
    q.Subscript: "a subscript",
    q.CurrentSetting: "a value of the session",
    q.CursorValue: "a column of a cursor's row",
    q.SampleKey: "what TABLESAMPLE chooses by",
    q.SqlCall: "a call of an SQL function",
}


_FOLDED = (q.FuncExpr, q.OpExpr, q.CoerceViaIO, q.CoerceTypmod, q.RelabelType)


def _folded(expr: q.Expr) -> q.Const | None:
    """Return an immutable call of constants as a constant, or None; raises what the call raises."""
    if not isinstance(expr, _FOLDED):
        return None
    args = expr.args if isinstance(expr, q.FuncExpr | q.OpExpr) else (expr.arg,)
    inner = [a if isinstance(a, q.Const) else _folded(a) for a in args]
    if any(a is None for a in inner):
        return None
    if isinstance(expr, q.FuncExpr | q.OpExpr):
        fact = facts().procs.get(expr.proc)
        row = load().functions.get(expr.proc)
        if (
            fact is None
            or fact.volatility != "i"
            or fact.returns_set
            or (row is not None and row.form_for(expr.args)[1])
        ):
            return None  # some that are called immutable ask for the time zone
        if never(expr.proc):
            return None
    elif isinstance(expr, q.CoerceViaIO) and not immutable_text(expr):
        return None
    constants = [a.value for a in inner if a is not None]
    if size_of(constants) > MOST_FOLDED:
        return None
    value = in_budget(lambda: evaluate_constant(expr))
    return None if value is LEFT else q.Const(type=expr.type, value=value)


def boolean(node: Node) -> Val:
    """Return a boolean value."""
    return Val(node, BOOL)


def _const(lw: LoweringContext, expr: q.Const) -> Val:
    return constant(lw.d, expr.value, expr.type)


def _param(lw: LoweringContext, expr: q.Param) -> Val:
    return lw.d.parameter(expr.number, expr.type, lw.values)


def _var(lw: LoweringContext, expr: q.Var) -> Val:
    return lw.variable(expr)


def _call(lw: LoweringContext, proc: int, args: Sequence[Val], result: SqlType, span: Span | None) -> Val:
    row = lw.registry.functions.get(proc)
    form = None if row is None else (row.duckdb if lw.d.name == "duckdb" else row.spark)
    if form is None:
        raise not_supported(f"function {facts().signature(proc)} in this executor", span=span)
    made = form(lw.d, args, result)
    if isinstance(made, Val):
        return Val(made.node, result, made.num, made.constant, made.padded)
    return Val(made, result)


def call(lw: LoweringContext, proc: int, args: Sequence[Val], result: SqlType) -> Val:
    """Apply the engine form of function ``proc``."""
    return _call(lw, proc, args, result, None)


def _func(lw: LoweringContext, expr: q.FuncExpr) -> Val:
    if expr.returns_set:
        raise not_supported("a set-returning function in the select list in this executor", span=expr.span)
    if expr.variadic:
        raise not_supported("VARIADIC in this executor", span=expr.span)
    return _call(lw, expr.proc, [lower(lw, a) for a in expr.args], expr.type, expr.span)


def _operator(lw: LoweringContext, expr: q.OpExpr) -> Val:
    return _call(lw, expr.proc, [lower(lw, a) for a in expr.args], expr.type, expr.span)


def _collate(lw: LoweringContext, expr: q.CollateExpr) -> Val:
    return lower(lw, expr.arg)


def _relabel(lw: LoweringContext, expr: q.RelabelType) -> Val:
    value = lower(lw, expr.arg)
    source, target = kind_of(value.type.oid), kind_of(expr.type.oid)
    padded = value.padded if expr.type.oid == f.BPCHAR else 0
    if (
        source == "int32" and target == "int64" and expr.type.oid != f.INT8
    ):  # an oid: the same bits without a sign
        return Val(lw.d.repeat([lw.d.as_kind(value.node, target)], _unsigned), expr.type)
    if source == "int64" and target == "int32":
        return Val(lw.d.as_kind(lw.d.repeat([value.node], _signed), target), expr.type)
    if source != target:
        return Val(lw.d.as_kind(value.node, target), expr.type, value.num)
    return Val(value.node, expr.type, value.num, value.constant, padded)


_WORD, _HALF_WORD = b.string(str(2**32)), b.string(str(2**31))


def _unsigned(x: Node) -> Node:
    return b.case([(b.op("<", x, b.integer(0)), b.op("+", x, b.cast(_WORD, "BIGINT")))], x)


def _signed(x: Node) -> Node:
    return b.case([(b.op(">=", x, b.cast(_HALF_WORD, "BIGINT")), b.op("-", x, b.cast(_WORD, "BIGINT")))], x)


def _via_io(lw: LoweringContext, expr: q.CoerceViaIO) -> Val:
    return coercion.via_text(lw.d, lower(lw, expr.arg), expr.type)


def _to_domain(lw: LoweringContext, expr: q.CoerceToDomain) -> Val:
    raise not_supported(f"a cast to domain {format_type(expr.domain)} in this executor", span=expr.span)


def _typmod(lw: LoweringContext, expr: q.CoerceTypmod) -> Val:
    return coercion.typmod(lw.d, lower(lw, expr.arg), expr.type, expr.explicit)


def _bool_expr(lw: LoweringContext, expr: q.BoolExpr) -> Val:
    nodes = [lower(lw, a).node for a in expr.args]
    if expr.kind == "and":
        return boolean(b.and_(*nodes))
    if expr.kind == "or":
        return boolean(b.or_(*nodes))
    return boolean(b.not_(nodes[0]))


def _null_test(lw: LoweringContext, expr: q.NullTest) -> Val:
    if isinstance(expr.arg, q.RowExpr) and not expr.whole:
        return boolean(b.and_(*(b.is_null(lower(lw, field).node, expr.negated) for field in expr.arg.fields)))
    if expr.arg.type.oid == f.RECORD:
        raise not_supported("IS NULL of a row value in this executor", span=expr.span)
    return boolean(b.is_null(lower(lw, expr.arg).node, expr.negated))


def _boolean_test(lw: LoweringContext, expr: q.BooleanTest) -> Val:
    node = lower(lw, expr.arg).node
    if expr.test == "unknown":
        return boolean(b.is_null(node, expr.negated))
    value = node if expr.test == "true" else b.not_(node)
    test = b.fn("coalesce", value, b.boolean(False))
    return boolean(b.not_(test) if expr.negated else test)


# --- keys ---------------------------------------------------------------------------------------


_KEYED = ("interval", "timetz", "tailed")  # kinds of values that are compared by keys


def is_plain(value: Val) -> bool:
    """Return whether the engine's own equality and order are PostgreSQL's."""
    if isinstance(value.num, Floating):
        return False
    if value.type.oid == f.JSONB:
        raise not_supported("comparison of jsonb in this executor")
    if value.type.oid in GEOMETRIC:  # by area, length or nearness, whatever their bytes are
        raise not_supported("comparison of geometric values in this executor")
    if value.type.oid == f.BPCHAR:
        return False
    kind = kind_of(value.type.oid)
    if kind == "list":
        element = SqlType(element_of(value.type.oid))
        return element.oid not in (f.NUMERIC, f.BPCHAR, f.JSONB) and kind_of(element.oid) not in _KEYED
    return kind not in _KEYED


def is_plain_for_equality(value: Val) -> bool:
    """Like ``is_plain``, where only equality counts: char(n) values of one length are plain."""
    if value.type.oid == f.BPCHAR:
        return value.padded > 0
    if value.type.oid == f.JSONB:
        return False
    return is_plain(value)


def groups_as_is(d: Dialect, value: Val) -> bool:
    """Like ``is_plain_for_equality``, where besides the engine shows a value of the group itself as its key."""
    return is_plain_for_equality(value) and d.groups_as_is(kind_of(value.type.oid))


def sort_key(d: Dialect, value: Val) -> Node:
    """Return an engine value that orders and equals as PostgreSQL's value does."""
    if is_plain(value):
        if kind_of(value.type.oid) == "list" and not d.orders_lists():
            return d.list_key(value.node)
        return value.node
    if isinstance(value.num, Floating):
        return varying.key(d, value)
    if value.type.oid == f.BPCHAR:
        return b.fn("rtrim", value.node, b.string(" ")) if d.name == "duckdb" else b.fn("rtrim", value.node)
    kind = kind_of(value.type.oid)
    if kind == "interval":
        return interval_key(d, value.node)
    if kind == "timetz":
        return d.let([value.node], lambda x: _timetz_key(d, x))
    if kind == "tailed":
        return d.let([value.node], lambda x: _without_tail(d, x))
    raise not_supported("comparison of arrays of this element type in this executor")


def equality_key(d: Dialect, value: Val) -> Node:
    """Return an engine value that equals as PostgreSQL's value does, whatever its order."""
    return d.same_document(value.node) if value.type.oid == f.JSONB else sort_key(d, value)


def sort_keys(d: Dialect, value: Val) -> list[Node]:
    """Return what to order by for the order of ``value``, most significant first; quicker than one key."""
    return varying.sort_keys(d, value) if isinstance(value.num, Floating) else [sort_key(d, value)]


def compare(d: Dialect, symbol: str, left: Val, right: Val) -> Node:
    """Return the comparison ``left symbol right``."""
    if left.num is not None and right.num is not None and Floating in (type(left.num), type(right.num)):
        return varying.compare(d, symbol, left, right)
    if symbol in ("=", "<>"):
        return b.op(symbol, *equality_keys(d, left, right))
    return b.op(symbol, *keys(d, left, right))


def interval_key(d: Dialect, node: Node) -> Node:
    """Return an interval's length in microseconds with months of 30 days, as DECIMAL(38, 0)."""
    wide = d.decimal(38, 0)

    def body(x: Node) -> Node:
        days = b.op(
            "+", b.op("*", b.cast(b.field(x, "m"), wide), b.integer(30)), b.cast(b.field(x, "d"), wide)
        )
        return b.cast(
            b.op(
                "+",
                b.op("*", b.cast(days, wide), b.cast(b.string("86400000000"), wide)),
                b.cast(b.field(x, "u"), wide),
            ),
            wide,
        )

    return d.let([node], body)


def _timetz_key(d: Dialect, x: Node) -> Node:
    utc = b.op(
        "+", b.field(x, "t"), b.op("*", b.cast(b.field(x, "z"), d.types["int64"]), b.integer(1_000_000))
    )
    made = d.struct(d.types["timetz"], ("t", utc), ("z", b.field(x, "z")))
    return b.case([(b.is_null(x, True), made)], b.null())


def _without_tail(d: Dialect, x: Node) -> Node:
    """Return what of a range of numerics is compared; its last four bytes say how many before them are not."""
    size = b.fn("octet_length", x)
    count = d.number_of_hex(b.fn("hex", d.bytes_of(x, b.op("-", size, b.integer(3)), b.integer(4))))
    return d.bytes_of(x, b.integer(1), b.op("-", size, b.op("+", count, b.integer(4))))


def keys(d: Dialect, left: Val, right: Val) -> tuple[Node, Node]:
    """Return two engine values that compare as ``left`` and ``right`` do."""
    if isinstance(left.num, Fixed) and isinstance(right.num, Fixed):
        return left.node, right.node
    if left.num is not None and right.num is not None:
        return varying.key(d, left), varying.key(d, right)
    return sort_key(d, left), sort_key(d, right)


def equality_keys(d: Dialect, left: Val, right: Val) -> tuple[Node, Node]:
    """Return two engine values that are equal exactly when ``left`` and ``right`` are."""
    if left.type.oid == f.BPCHAR and right.type.oid == f.BPCHAR:
        padded = left.padded or right.padded
        if padded:
            sides = []
            for side in (left, right):
                if side.is_constant and isinstance(side.constant, str):
                    sides.append(d.literal(side.constant.rstrip(" ").ljust(padded), "text"))
                elif side.padded == padded:
                    sides.append(side.node)
            if len(sides) == 2:
                return sides[0], sides[1]
    if left.type.oid == f.JSONB and right.type.oid == f.JSONB:
        return equality_key(d, left), equality_key(d, right)
    return keys(d, left, right)


def _distinct(lw: LoweringContext, expr: q.DistinctExpr) -> Val:
    if f.RECORD in (expr.left.type.oid, expr.right.type.oid):
        raise not_supported("IS DISTINCT FROM of row values in this executor", span=expr.span)
    left, right = equality_keys(lw.d, lower(lw, expr.left), lower(lw, expr.right))
    symbol = "is not distinct from" if expr.negated else "is distinct from"
    return boolean(b.op(symbol, left, right))


def _null_if(lw: LoweringContext, expr: q.NullIf) -> Val:
    value = lower(lw, expr.left)
    equal = _call(lw, expr.proc, [value, lower(lw, expr.right)], BOOL, expr.span)
    node = b.case([(equal.node, b.null())], value.node)
    return Val(node, expr.type, value.num, padded=value.padded)


# --- choices ------------------------------------------------------------------------------------


def unify(
    lw: LoweringContext, items: Sequence[Val], type_: SqlType, combine: Callable[[list[Node]], Node]
) -> Val:
    """Bring alternatives to one form and combine them; a varying display scale goes the same way."""
    padding = {v.padded for v in items if not (v.is_constant and v.constant is None)}
    padded = padding.pop() if len(padding) == 1 else 0
    if type_.oid != f.NUMERIC:
        return Val(combine([v.node for v in items]), type_, padded=padded)
    nodes, num, scales = numeric.unify(lw.d, items)
    if scales is not None and isinstance(num, Fixed):
        num = Fixed(num.precision, num.scale, combine(scales))
    return Val(combine(nodes), type_, num)


def _case(lw: LoweringContext, expr: q.CaseExpr) -> Val:
    conditions = [lower(lw, w.condition).node for w in expr.whens]
    results = [lower(lw, w.result) for w in expr.whens]
    results.append(lower(lw, expr.default))

    def combine(nodes: list[Node]) -> Node:
        return b.case(list(zip(conditions, nodes[:-1], strict=True)), nodes[-1])

    return unify(lw, results, expr.type, combine)


def _coalesce(lw: LoweringContext, expr: q.CoalesceExpr) -> Val:
    items = [lower(lw, a) for a in expr.args]
    if expr.type.oid == f.NUMERIC:
        # The scale follows the item chosen, so the choice is written out.
        def combine(nodes: list[Node]) -> Node:
            arms = [(b.is_null(v.node, True), n) for v, n in zip(items[:-1], nodes[:-1], strict=True)]
            return b.case(arms, nodes[-1]) if arms else nodes[-1]

        _nodes, num, scales = numeric.unify(lw.d, items)
        if scales is not None or isinstance(num, Floating):
            return unify(lw, items, expr.type, combine)
    return unify(lw, items, expr.type, lambda nodes: b.fn("coalesce", *nodes))


def _min_max(lw: LoweringContext, expr: q.MinMaxExpr) -> Val:
    items = [lower(lw, a) for a in expr.args]
    in_order = kind_of(expr.type.oid) != "list" or lw.d.orders_lists()
    if in_order and all(is_plain(v) for v in items):
        nodes, num, scales = (
            numeric.unify(lw.d, items)
            if expr.type.oid == f.NUMERIC
            else ([v.node for v in items], None, None)
        )
        if scales is None and not isinstance(num, Floating):  # a Floating form has no order of its own
            return Val(b.fn("greatest" if expr.greatest else "least", *nodes), expr.type, num)
    if expr.type.oid == f.NUMERIC:
        items = [numeric.floating(lw.d, v) for v in items]
    best = items[0]
    for item in items[1:]:
        best = _better(lw.d, best, item, expr.greatest)
    return Val(best.node, expr.type, best.num)


def _better(d: Dialect, left: Val, right: Val, greatest: bool) -> Val:
    def body(x: Node, y: Node) -> Node:
        first, second = (Val(n, v.type, v.num) for n, v in ((x, left), (y, right)))
        lk, rk = keys(d, first, second)
        keep = b.or_(b.is_null(y), b.op(">=" if greatest else "<=", lk, rk))
        return b.case([(keep, x)], y)

    return Val(d.let([left.node, right.node], body), left.type, left.num)


# --- rows and arrays ----------------------------------------------------------------------------


def _row_compare(lw: LoweringContext, expr: q.RowCompare) -> Val:
    strict = {"<": "<", "<=": "<", ">": ">", ">=": ">"}[expr.kind]
    pairs = [(lower(lw, x), lower(lw, y)) for x, y in zip(expr.lefts, expr.rights, strict=True)]
    return boolean(row_comparison(lw.d, strict, expr.kind in ("<=", ">="), pairs))


def row_comparison(d: Dialect, strict: str, or_equal: bool, pairs: Sequence[tuple[Val, Val]]) -> Node:
    """Return a lexicographic comparison: the first unequal pair decides, a NULL met before it gives NULL."""
    result: Node = b.boolean(or_equal)
    for left, right in reversed(pairs):
        equal = b.op("=", *equality_keys(d, left, right))
        result = b.case(
            [(b.is_null(equal), b.cast(b.null(), d.types["bool"])), (equal, result)],
            b.op(strict, *keys(d, left, right)),
        )
    return result


def _scalar_array(lw: LoweringContext, expr: q.ScalarArrayOp) -> Val:
    scalar = lower(lw, expr.scalar)
    operator = facts().operators[expr.op]
    items = _array_items(lw, expr.array)
    if items is None:
        return _array_search(lw, expr, scalar)
    if not items:
        return boolean(b.boolean(not expr.use_any))
    wanted = "=" if expr.use_any else "<>"
    if operator.name == wanted:
        pairs = [equality_keys(lw.d, scalar, item) for item in items]
        if all(
            b.text_of(left, lw.d.name) == b.text_of(pairs[0][0], lw.d.name) for left, _ in paced(pairs[1:])
        ):
            found = b.in_(pairs[0][0], [right for _, right in pairs])
            return boolean(found if expr.use_any else b.not_(found))
    terms = [_call(lw, expr.proc, [scalar, item], BOOL, expr.span).node for item in items]
    return boolean(b.or_(*terms) if expr.use_any else b.and_(*terms))


def _array_items(lw: LoweringContext, array: q.Expr) -> list[Val] | None:
    """Return the items of an array known at plan time, else None; a NULL array is not known."""
    while isinstance(array, q.RelabelType):
        array = array.arg
    if isinstance(array, q.ArrayExpr) and not array.nested:
        return [lower(lw, e) for e in array.elements]
    if isinstance(array, q.Param) and lw.values is not None:
        array = q.Const(type=array.type, value=lw.values[array.number - 1])
    if isinstance(array, q.Const) and isinstance(array.value, tuple):
        element = SqlType(element_of(array.type.oid))
        return [constant(lw.d, item, element) for item in array.value]
    return None


def _array_search(lw: LoweringContext, expr: q.ScalarArrayOp, scalar: Val) -> Val:
    """``scalar op ANY (array)`` over an array value: a search among its items."""
    element = SqlType(element_of(expr.array.type.oid))
    array = lower(lw, expr.array)
    if lw.d.name != "duckdb" or element.oid in (f.NUMERIC, f.BPCHAR):
        raise not_supported("ANY or ALL over an array value in this executor", span=expr.span)

    def body(items: Node, left: Node) -> Node:
        variable = lw.d.fresh("x")
        item = Val(b.bare(variable), element)
        test = _call(
            lw, expr.proc, [Val(left, scalar.type, scalar.num, padded=scalar.padded), item], BOOL, expr.span
        )
        results = b.fn("list_transform", items, b.lambda_(variable, test.node))
        decisive = b.boolean(expr.use_any)
        decided = b.fn("list_contains", results, decisive)
        unknown = b.op("<", b.fn("list_count", results), b.fn("len", results))
        return b.case(
            [
                (b.is_null(items), b.null()),
                (decided, decisive),
                (unknown, b.null()),
            ],
            b.boolean(not expr.use_any),
        )

    return boolean(b.cast(lw.d.let([array.node, scalar.node], body), "BOOLEAN"))


def _array_expr(lw: LoweringContext, expr: q.ArrayExpr) -> Val:
    if expr.nested:
        raise not_supported("an array of several dimensions in this executor", span=expr.span)
    items = [column_form(lw.d, lower(lw, e)).node for e in expr.elements]
    return Val(b.cast(b.array(*items), lw.d.engine_type(expr.type)), expr.type)


def _grouping(lw: LoweringContext, expr: q.GroupingFunc) -> Val:
    raise not_supported("GROUPING outside a grouped query", span=expr.span)


def _sublink(lw: LoweringContext, expr: q.SubLink) -> Val:
    return sublinks.lower_sublink(lw, expr)


def _aggregate(lw: LoweringContext, expr: q.Aggregate) -> Val:
    raise not_supported("an aggregate in this place in this executor", span=expr.span)


def _window(lw: LoweringContext, expr: q.WindowFunc) -> Val:
    return lw.window_function(expr)


_HANDLERS: dict[type, Callable[[LoweringContext, Any], Val]] = {
    q.Const: _const,
    q.Param: _param,
    q.Var: _var,
    q.SampleTest: sample_test,
    q.FuncExpr: _func,
    q.OpExpr: _operator,
    q.RelabelType: _relabel,
    q.CollateExpr: _collate,
    q.CoerceToDomain: _to_domain,
    q.CoerceViaIO: _via_io,
    q.CoerceTypmod: _typmod,
    q.BoolExpr: _bool_expr,
    q.NullTest: _null_test,
    q.BooleanTest: _boolean_test,
    q.DistinctExpr: _distinct,
    q.NullIf: _null_if,
    q.CaseExpr: _case,
    q.CoalesceExpr: _coalesce,
    q.MinMaxExpr: _min_max,
    q.RowCompare: _row_compare,
    q.ScalarArrayOp: _scalar_array,
    q.ArrayExpr: _array_expr,
    q.GroupingFunc: _grouping,
    q.SubLink: _sublink,
    q.Aggregate: _aggregate,
    q.WindowFunc: _window,
}

__all__ = [
    "Num",
    "call",
    "constant",
    "equality_key",
    "equality_keys",
    "is_plain",
    "keys",
    "lower",
    "sort_key",
]
