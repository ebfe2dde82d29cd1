"""Volatile columns of a SELECT are computed behind ORDER BY, for the rows that LIMIT and OFFSET let come out.

    SELECT id, nextval('s') FROM t ORDER BY id LIMIT 2

    rows of t ──> Early (id) ──> Sort, at most 2 ──> Arrange (id, nextval) ──> Limit

As in PostgreSQL: numbers are drawn in the order of the result, and none for rows that nobody sees. A volatile column that ORDER BY
looks at is computed before. DISTINCT, set-returning functions and FOR UPDATE compute all columns first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.index.access import has_sublink, returns_set
from engine.index.nodes import InTurn, Node, Sort
from engine.index.sorting import order_items
from engine.index.state import Pipe, evaluate
from planner.evaluate import Env, Layout, compile_row, walk
from planner.facts import facts
from planner.query import Expr, FuncExpr, OpExpr, Select, SqlCall, SubLink, Var
from planner.walk import children


class Early(Node):
    """What late expressions read of a row, and the values of the other ones behind it."""

    def __init__(
        self, child: Node, kept: Sequence[Expr | int], layout: Layout, exprs: Sequence[Expr]
    ) -> None:
        super().__init__(layout, len(kept) + len(exprs), child)
        self.function = child.mapping([*kept, *exprs])

    def pipe(self, e: Env) -> Pipe:
        """Compute, batch by batch."""
        return self.inputs[0].mapped(self.function, e)


class Head(Node):
    """The rows that LIMIT and OFFSET read: as many as their sum."""

    def __init__(self, child: Node, counts: Sequence[Expr]) -> None:
        super().__init__(child.layout, child.width, child)
        self.counts = compile_row(counts, Layout(outer=child.layout.outer, subplan=child.layout.subplan))

    def pipe(self, e: Env) -> Pipe:
        """Stop early; what is wrong with the counts is Limit's to say."""
        counts = self.counts
        values = (yield from evaluate(counts, (), e)) if counts.may_suspend else counts((), e)
        if values[0] is None:
            yield from self.inputs[0].pipe(e)
            return
        left = sum(int(v) for v in values if v is not None)
        source = self.inputs[0].pipe(e)
        try:
            if left <= 0:
                return
            for item in source:
                if item.__class__ is not list:
                    yield item
                    continue
                head = item[:left]
                item = None
                left -= len(head)
                yield head
                del head
                if left == 0:
                    return
        finally:
            source.close()


class Arrange(Node):
    """Values of rows by their places, and of expressions; the layout knows outputs only by position, as behind Project."""

    def __init__(self, child: Node, values: Sequence[Expr | int], names: Sequence[str]) -> None:
        layout = Layout(outer=child.layout.outer, subplan=child.layout.subplan)
        super().__init__(layout, len(values), child)
        self.names = names
        self.function = child.mapping(values)

    def pipe(self, e: Env) -> Pipe:
        """Compute, batch by batch."""
        return self.inputs[0].mapped(self.function, e)


def late_targets(query: Select) -> list[int]:
    """Return which targets are computed behind ORDER BY; none where that would make no difference."""
    if query.distinct or query.row_marks or not (query.order or query.limit is not None):
        return []
    if any(returns_set(t.expr) for t in query.targets):
        return []
    keys = {key.target for key in query.order}
    cut = query.limit is not None or query.offset is not None
    return [i for i, t in enumerate(query.targets) if i not in keys and _is_volatile(t.expr, cut)]


_SIZES: Final = frozenset(
    proc.oid
    for proc in facts().procs.values()
    if proc.name in ("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size")
)
"""Volatile as others may change what they tell; how often and in which order they are called does not."""


def _is_volatile(node: object, cut: bool) -> bool:
    """Tell whether a volatile function is called outside of sub-selects, into which PostgreSQL does not look here.

    ``cut``: some rows will not come out, for which then nothing should be computed.
    """
    if isinstance(node, SubLink):
        return False
    if isinstance(node, SqlCall) and node.stays and node.volatility == "v":
        return True
    if isinstance(node, FuncExpr | OpExpr):
        fact = facts().procs.get(node.proc)
        if fact is not None and fact.volatility == "v" and (cut or node.proc not in _SIZES):
            return True
    return any(_is_volatile(child, cut) for child in children(node))


def compute_late(node: Node, query: Select, late: Sequence[int], sort: bool) -> Node:
    """Return what gives the targets' values in order, with ``late`` ones computed at the end; ``sort``: they need sorting."""
    kept, layout = _read_late(node, [query.targets[i].expr for i in late])
    early = [i for i in range(len(query.targets)) if i not in late]
    position = {target: len(kept) + n for n, target in enumerate(early)}
    counts = [x for x in (query.limit, query.offset) if x is not None]
    capped = query.limit is not None and not query.with_ties
    node = Early(node, kept, layout, [query.targets[i].expr for i in early])
    if sort and query.order:
        items = [
            (position[target], oid, descending, first)
            for target, oid, descending, first in order_items(
                query.order, [t.expr.type for t in query.targets]
            )
        ]
        node = Sort(node, items, counts if capped else ())
    if capped:
        node = Head(node, counts)
    if query.in_turn:
        node = InTurn(node)
    values = [position.get(i, target.expr) for i, target in enumerate(query.targets)]
    return Arrange(node, values, [t.name for t in query.targets])


def _read_late(node: Node, exprs: Sequence[Expr]) -> tuple[list[Expr | int], Layout]:
    """Return what ``exprs`` read of the rows of ``node``, and where that stands in a row of nothing else.

    Sub-selects may read anything, and values that are there already are read as they are.
    """
    layout = node.layout
    if layout.exprs or any(has_sublink(x) for x in exprs):
        return list(range(node.width)), layout
    read = {
        (x.range, x.attnum): x
        for expr in exprs
        for x in walk(expr)
        if isinstance(x, Var) and x.level == 0 and x.range >= 0  # -1 stands for an array's element
    }
    columns = {key: place for place, key in enumerate(read)}
    return list(read.values()), Layout(columns=columns, outer=layout.outer, subplan=layout.subplan)
