"""The aggregating stage of a grouped SELECT, and calls of aggregates.

    SELECT a + 1, sum(b) FROM t GROUP BY a + 1 HAVING count(*) > 2

becomes ``(SELECT a + 1 AS g1, sum(b) AS a1, count(*) AS a2 FROM t GROUP BY a + 1) AS s``, and the scope then knows
that ``a + 1`` is s.g1, ``sum(b)`` s.a1 and ``count(*)`` s.a2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner import facts as f
from planner import query as q
from planner.base.errors import SqlError, not_supported
from planner.facts import facts
from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import FLOATING, Floating, Val
from planner.lower.query import expr as expressions
from planner.lower.query.stages import Stages
from planner.query.rewrite import shift_levels
from planner.query.walk import children, placed
from planner.statements.classify import is_volatile
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.lower.query.context import LoweringContext
    from planner.lower.query.scope import Scope


@dataclass(slots=True)
class AggregateCall:
    """How an aggregate is called: DISTINCT, FILTER, ORDER BY or OVER. Forms build calls with ``call``.

    Attributes:
        d: the dialect.
        star: ``count(*)``.
        is_distinct: DISTINCT before the arguments.
        condition: the FILTER condition, or None.
        order: the keys of ORDER BY inside the call, as engine ORDER BY items; with DISTINCT at least the argument, by
            which PostgreSQL sorts.
        is_ordered: whether the call has an ORDER BY.
        within: the arguments of WITHIN GROUP with their direction (descending).
        direct: direct arguments of ordered-set aggregates.
        over: turns a call into a window call, or None.
        unframed: the same without the frame, for functions that look at the whole partition.
        stage: makes a value of the arguments a column of the rows, or None (``stages``).
    """

    d: Dialect
    star: bool = False
    is_distinct: bool = False
    condition: Node | None = None
    order: Sequence[Node] = ()
    is_ordered: bool = False
    within: Sequence[tuple[Val, bool]] = ()
    direct: Sequence[Val] = ()
    over: Callable[[Node], Node] | None = None
    unframed: Callable[[Node], Node] | None = None
    stage: Callable[[Node], Node] | None = None

    def call(self, function: str, *args: Node, ordered: bool = False) -> Node:
        """Return the engine aggregate with FILTER, DISTINCT and OVER applied; ``ordered`` adds ORDER BY."""
        items = list(args)
        condition = self.condition
        if condition is not None and self.over is not None and self.d.name == "spark":
            # Spark takes no FILTER on windows: rows that fail it count as NULL.
            first = items[0] if items else b.integer(1)
            items = [b.case([(condition, first)]), *items[1:]]
            condition = None
        if self.is_distinct and items:
            items[0] = b.distinct(items[0])
        if ordered and self.order and items:
            items[-1] = b.ordered_argument(items[-1], self.order)
        made = b.fn(function, *items)
        if function == "count" and not items:
            made = b.count_rows()
        if condition is not None:
            made = b.filtered(made, condition)
        made = made if self.over is None else self.over(made)
        return b.of_query(made) if b.has_query(made) else made


def lower_call(
    lw: LoweringContext, call: AggregateCall, proc: int, args: Sequence[Val], result: SqlType
) -> Val:
    """Apply the engine form of aggregate or window function ``proc``."""
    row = lw.registry.aggregates.get(proc)
    form = None if row is None else (row.duckdb if lw.d.name == "duckdb" else row.spark)
    if form is None:
        raise not_supported(f"aggregate {facts().signature(proc)} in this executor")
    made = form(call, args, result)
    return (
        Val(made.node, result, made.num, padded=made.padded) if isinstance(made, Val) else Val(made, result)
    )


def lower_aggregate(lw: LoweringContext, expr: q.Aggregate, stages: Stages) -> Val:
    """Return an aggregate call over the rows of the innermost query level.

    Args:
        lw: the statement's lowering.
        expr: the call.
        stages: where arguments go that are computed once for several uses.
    """
    from planner.lower.query import gathered  # which are called as aggregates are

    order = [] if expr.direct or _is_ordered_set(expr.proc) else list(expr.order)
    condition = None if expr.filter is None else lw.condition(expr.filter)
    keys = [under_filter(lw, lw.expr(s.expr), condition) for s in expr.order]
    items = [
        b.ordered(expressions.sort_key(lw.d, key), s.descending, s.nulls_first)
        for s, key in zip(order, keys, strict=False)
    ]
    within = [(key, s.descending) for s, key in zip(expr.order, keys, strict=True)] if not order else []
    values = [under_filter(lw, lw.expr(a), condition) for a in expr.args]
    args = [_staged(lw, stages, value, (a, expr.filter)) for a, value in zip(expr.args, values, strict=True)]
    if expr.distinct and args and not items:
        items = [b.ordered(expressions.sort_key(lw.d, args[0]), False, False)]
    call = AggregateCall(
        lw.d,
        star=expr.star,
        is_distinct=expr.distinct,
        condition=condition,
        order=items,
        is_ordered=bool(order),
        within=within,
        direct=[lw.expr(a) for a in expr.direct],
        stage=_stage(lw, stages, (expr.args, expr.filter)),
    )
    try:
        return lower_call(lw, call, expr.proc, args, expr.type)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
        return gathered.aggregate(lw, expr.proc, call, args, expr.type, error)


def _stage(lw: LoweringContext, stages: Stages, key: Hashable) -> Callable[[Node], Node] | None:
    """Return what makes a value computed from the arguments, one for each ``key``, a column; None: Spark
    finds it itself.
    """
    return (lambda node: stages.put(node, 1, ("of", key))) if lw.d.name == "duckdb" else None


def under_filter(lw: LoweringContext, value: Val, condition: Node | None) -> Val:
    """Return a value that is not computed for rows that FILTER leaves out: they may be those that would fail.

    DuckDB computes arguments of all rows first; Spark looks at the condition first.
    """
    if condition is None or lw.d.name != "duckdb" or b.is_column(value.node):
        return value
    return replace(value, node=b.case([(condition.copy(), value.node)]))


def _staged(lw: LoweringContext, stages: Stages, value: Val, key: Hashable) -> Val:
    """Return as a column what is to be computed before the call: in DuckDB an argument of varying scale,
    which aggregates use several times, in Spark one with a sub-select, which would take the call into a query
    of its own (``SparkDialect.let``).
    """
    if lw.d.name == "spark" and b.has_query(value.node):
        return replace(value, node=stages.put(value.node, 0, key))
    if lw.d.name != "duckdb" or not isinstance(value.num, Floating) or b.is_column(value.node):
        return value
    return replace(value, node=stages.put(b.cast(value.node, lw.d.types["numeric"]), 0, key), num=FLOATING)


def _is_ordered_set(proc: int) -> bool:
    fact = facts().aggregates.get(proc)
    return fact is not None and fact.kind != "n"


class _Collector:
    """Finds what the outer stage needs of the inner one."""

    def __init__(self, group: Sequence[q.Expr]) -> None:
        self.group = set(group)
        self.aggregates: dict[q.Expr, None] = {}
        self.groupings: dict[int, None] = {}
        self.variables: dict[q.Expr, None] = {}

    def visit(self, node: object, depth: int) -> None:
        if depth == 0 and isinstance(node, q.Expr) and node in self.group:
            return
        if isinstance(node, q.Aggregate) and node.level == depth:
            own = shift_levels(node, -depth)
            if own in self.aggregates and is_volatile(own):  # engines compute equal ones once
                raise not_supported("equal aggregates with volatile arguments in this executor")
            self.aggregates[own] = None
            return
        if isinstance(node, q.Var) and node.range >= 0:
            if node.level == depth:
                variable = replace(node, level=0)
                if variable not in self.group:
                    self.variables[variable] = None
            return
        if isinstance(node, q.GroupingFunc) and depth == 0:
            for index in node.indexes:
                self.groupings[index] = None
            return
        inner = depth + 1 if isinstance(node, q.QueryBase) else depth
        for child in children(node):
            self.visit(child, inner)


def aggregate(
    lw: LoweringContext, select: q.Select, scope: Scope, source: Node | None, where: Node | None
) -> Node:
    """Build the inner SELECT of a grouped query, and let ``scope`` know its columns.

    Returns:
        The stage as a FROM item.
    """
    found = _Collector(select.group)
    for target in select.targets:
        found.visit(target.expr, 0)
    if select.having is not None:
        found.visit(select.having, 0)
    for window in select.windows:
        found.visit(window, 0)

    label, stages = lw.d.fresh("s"), Stages(lw.d)
    targets: list[Node] = []
    known: dict[q.Expr, Val] = {}

    def publish(expr: q.Expr, name: str, value: Val) -> None:
        value = lw.column_value(value)
        targets.append(b.alias(lw.typed(value), name))
        known[expr] = Val(b.col(label, name), value.type, value.num, padded=value.padded)

    group: list[Node] = []
    for index, expr in enumerate(select.group):
        value = lw.column_value(lw.expr(expr))
        if expressions.groups_as_is(lw.d, value):
            group.append(value.node)
            targets.append(b.alias(value.node, f"g{index + 1}"))
        else:
            key = expressions.equality_key(lw.d, value)
            group.append(key)
            some = lw.d.any_value(value.node)
            if select.grouping_sets is not None:
                some = b.case([(b.op("=", lw.d.grouping(key), b.integer(0)), some)])
            targets.append(b.alias(some, f"g{index + 1}"))
        known[expr] = Val(b.col(label, f"g{index + 1}"), value.type, value.num, padded=value.padded)
    for number, expr in enumerate(found.aggregates):
        if not isinstance(expr, q.Aggregate):
            raise AssertionError(f"an aggregate is {type(expr).__name__}")
        publish(expr, f"a{number + 1}", lower_aggregate(lw, expr, stages))
    for number, expr in enumerate(found.variables):
        value = lw.expr(expr)
        publish(expr, f"d{number + 1}", replace(value, node=lw.d.any_value(value.node)))
    bits = {}
    for index in found.groupings:
        name = f"h{index + 1}"
        bit = lw.d.grouping(group[index]) if select.grouping_sets is not None else b.integer(0)
        targets.append(b.alias(b.cast(bit, lw.d.types["int32"]), name))
        bits[index] = b.col(label, name)
    if not found.aggregates and not group:
        targets.append(b.alias(b.count_rows(), "a0"))
    own = {
        table for r in scope.ranges.values() for table, _ in b.columns_of(v.node for v in r.values.values())
    }
    source, where, columns = stages.below(source, where, [*targets, *group], own)
    targets, group = ([b.renamed(node, columns) for node in nodes] for nodes in (targets, group))
    sets = None
    if select.grouping_sets is not None:
        if len(set(group)) < len(group):
            raise not_supported("GROUP BY of equal expressions, one by one, in this executor")
        chosen = list(select.grouping_sets)
        if select.group_distinct:
            chosen = list(dict.fromkeys(tuple(sorted(s)) for s in chosen))
        sets = [[group[i] for i in items] for items in chosen]
    node = b.select(targets, source=source, where=where, group=group, grouping_sets=sets)
    if lw.d.name == "spark" and sets is not None and source is not None and [] in sets:
        shapes = {f"g{i + 1}": known[expr] for i, expr in enumerate(select.group)}
        of_nothing = _total_of_nothing(lw, targets, shapes, source, where)
        for _ in range(sets.count([])):
            node = b.set_operation("union", node, b.copied(of_nothing), keep_all=True)
    for call in _grouping_calls(select):
        total: Node = b.integer(0)
        for index in call.indexes:
            total = b.op("+", b.op("*", total, b.integer(2)), bits[index])
        known[call] = Val(total, SqlType(f.INT4))
    scope.known = known
    return b.derived(node, label)


def _total_of_nothing(
    lw: LoweringContext, targets: Sequence[Node], group: dict[str, Val], source: Node, where: Node | None
) -> Node:
    """Return the row of the grouping set () where there are no input rows: Spark has none there.

    ``SELECT the aggregates FROM source WHERE false`` is that row and reads nothing; it counts if not a single row
    is found.
    """
    label = lw.d.fresh("s")
    none: list[Node] = []
    for target in targets:
        name = b.label_of(target)
        if name in group:
            shape = group[name]
            target = b.alias(lw.d.typed_null(shape.type, shape.num), name)
        elif name.startswith("h"):
            target = b.alias(b.cast(b.integer(1), lw.d.types["int32"]), name)
        none.append(b.copied(target))
    # an aggregate, though nobody may read one: without any it would have no row
    none.append(b.alias(b.count_rows(), lw.d.fresh("n")))
    empty = b.select(none, source=b.copied(source), where=b.boolean(False))
    some = b.select([b.integer(1)], source=b.copied(source), where=None if where is None else b.copied(where))
    names = [b.col(label, b.label_of(target)) for target in targets]
    return b.select(names, source=b.derived(empty, label), where=b.not_(b.exists(some)))


def _grouping_calls(select: q.Select) -> list[q.GroupingFunc]:
    """Return the calls of this query's GROUPING; those of sub-selects are their own (``lower_query`` refuses
    others).
    """
    roots: list[Any] = [*select.targets, *select.windows]
    if select.having is not None:
        roots.append(select.having)
    found = [at for root in roots for at in placed(root, frozenset((q.GroupingFunc,)))]
    return [call for call, depth in found if depth == -1]
