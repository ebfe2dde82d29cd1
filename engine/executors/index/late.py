"""Volatile columns of a SELECT are computed behind ORDER BY, for the rows that LIMIT and OFFSET let come out.

    SELECT id, nextval('s') FROM t ORDER BY id LIMIT 2

    rows of t ──> Early (id) ──> Sort, at most 2 ──> Arrange (id, nextval) ──> Limit

As in PostgreSQL: numbers are drawn in the order of the result, and none for rows that nobody sees. A volatile
column that ORDER BY looks at is computed before. DISTINCT and FOR UPDATE compute all columns first.

Beside set-returning functions volatile columns are computed for each row of theirs, and once more at their end
(``compute_beside``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from engine.executors.expressions import has_sublink
from engine.executors.index.nodes import Beside, InTurn, Node, Sort
from engine.executors.index.sorting import order_items
from engine.executors.index.state import Pipe, evaluate
from planner.evaluate import Env, Layout, compile_row, walk
from planner.facts import facts
from planner.query import Expr, FuncExpr, OpExpr, QueryBase, Select, SqlCall, SubLink, Var
from planner.query.walk import children
from planner.statements.classify import is_volatile

Expand: TypeAlias = Callable[[Node, Sequence[Expr], Sequence[Beside], bool], Node]
"""Puts the nodes of expressions' set-returning functions above a node, the last with what is computed beside
them (``ProjectSet``)."""


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
    """Values of rows by their places, and of expressions; the layout knows outputs only by position, as
    behind Project.
    """

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
    if any(_depth(t.expr, query.group) for t in query.targets):
        return []
    keys = {key.target for key in query.order}
    cut = query.limit is not None or query.offset is not None
    return [i for i, t in enumerate(query.targets) if i not in keys and _is_volatile(t.expr, cut)]


def has_volatile(exprs: Sequence[Expr]) -> bool:
    """Tell whether a volatile function is called in ``exprs``, in sub-selects, too."""
    return any(is_volatile(x) for x in exprs)


def compute_beside(
    node: Node, query: Select, expanded: Sequence[Expr], expand: Expand, *, sort: bool, late: bool
) -> Node:
    """Return what gives the targets' values, some volatile, some sets that are not in ``expanded``; sorted
    where ``sort``.

    ``late``: what ORDER BY does not look at comes behind it, as in PostgreSQL: volatile targets, and the sets
    if it looks at none.
    """
    exprs = [target.expr for target in query.targets]
    depths = [_depth(x, expanded) for x in exprs]
    keys = {key.target for key in query.order}
    seen = any(_is_seen(x) for x in exprs)
    sets_late = not any(depths[i] for i in keys)
    early: list[int] = []
    if late and query.order:
        early = [
            i
            for i, x in enumerate(exprs)
            if i in keys or not (sets_late if depths[i] else _is_volatile(x, True))
        ]
    position: dict[int, int] = {}
    if early:
        node, values = _stage(node, [exprs[i] for i in early], [depths[i] for i in early], expand, seen)
        width = node.width
        position = {target: width + n for n, target in enumerate(early)}
        node = Early(node, [*range(width), *values], _knowing(node.layout, exprs, position), ())
        node = _ordered(query, node, position, sort=sort, capped=not sets_late)
    if query.in_turn:
        node = InTurn(node, query.in_turn)
    last = [i for i in range(len(exprs)) if i not in position]
    node, values = _stage(node, [exprs[i] for i in last], [depths[i] for i in last], expand, seen)
    placed: dict[int, Expr | int] = {**position, **dict(zip(last, values, strict=True))}
    return Arrange(node, [placed[i] for i in range(len(exprs))], [t.name for t in query.targets])


def _stage(
    node: Node, exprs: Sequence[Expr], depths: Sequence[int], expand: Expand, seen: bool
) -> tuple[Node, list[Expr | int]]:
    """Expand the sets in ``exprs``, and return where the values of these stand then, or what computes them.

    Where an expression looks at the last sets, it comes behind these with all volatile ones, once for each
    row. ``seen``: one can see how often these are computed.
    """
    values: list[Expr | int] = list(exprs)
    deepest = max(depths, default=0)
    if not deepest:
        return node, values
    above = any(d == deepest and not _gives_set(x) for x, d in zip(exprs, depths, strict=True))
    beside: dict[int, Beside] = {}
    sets: list[Expr] = []
    for i, x in enumerate(exprs):
        if _gives_set(x):
            if depths[i] == deepest and x not in sets:
                sets.append(x)
        elif not above and is_volatile(x):
            beside[i] = len(sets), x
    node = expand(node, exprs, list(beside.values()), seen)
    for n, i in enumerate(beside):
        values[i] = node.width - len(beside) + n
    return node, values


def _ordered(query: Select, node: Node, position: Mapping[int, int], *, sort: bool, capped: bool) -> Node:
    """Return ``node`` sorted by the targets' values, which are at their ``position``, and cut to LIMIT where
    ``capped`` allows it.
    """
    counts = [x for x in (query.limit, query.offset) if x is not None]
    capped = capped and query.limit is not None and not query.with_ties
    if sort and query.order:
        types = [target.expr.type for target in query.targets]
        items = [
            (position[target], oid, descending, first)
            for target, oid, descending, first in order_items(query.order, types)
        ]
        node = Sort(node, items, counts if capped else ())
    return Head(node, counts) if capped else node


def _knowing(layout: Layout, exprs: Sequence[Expr], position: dict[int, int]) -> Layout:
    """Return ``layout`` with the places of volatile values that have been computed: what equals one is not
    computed again, as in PostgreSQL.
    """
    known = {exprs[i]: place for i, place in reversed(position.items()) if _is_volatile(exprs[i], True)}
    return replace(layout, exprs={**layout.exprs, **known})


def _gives_set(node: object) -> bool:
    return isinstance(node, FuncExpr) and node.returns_set


def _depth(node: object, expanded: Sequence[Expr]) -> int:
    """Return how deep set-returning functions outside of ``expanded`` and of sub-selects are nested in ``node``."""
    if isinstance(node, QueryBase) or node in expanded:
        return 0
    below = max([_depth(child, expanded) for child in children(node)], default=0)
    return below + _gives_set(node)


_UNSEEN: Final = frozenset(
    proc.oid
    for proc in list(facts().procs.values())
    if proc.name in ("random", "gen_random_uuid", "clock_timestamp", "timeofday")
)
"""Volatile, but nobody can tell how often they have been called."""


def _is_seen(node: object) -> bool:
    """Tell whether a volatile function is called that others may see called, in sub-selects, too."""
    if isinstance(node, SqlCall) and node.stays:
        return True
    if isinstance(node, FuncExpr | OpExpr) and node.proc not in _UNSEEN:
        fact = facts().procs.get(node.proc)
        if fact is not None and fact.volatility == "v":
            return True
    return any(_is_seen(child) for child in children(node))


_SIZES: Final = frozenset(
    proc.oid
    for proc in list(facts().procs.values())
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
    """Return what gives the targets' values in order, with ``late`` ones computed at the end; ``sort``: they
    need sorting.
    """
    kept, layout = _read_late(node, [query.targets[i].expr for i in late])
    early = [i for i in range(len(query.targets)) if i not in late]
    position = {target: len(kept) + n for n, target in enumerate(early)}
    exprs = [target.expr for target in query.targets]
    node = Early(node, kept, _knowing(layout, exprs, position), [exprs[i] for i in early])
    node = _ordered(query, node, position, sort=sort, capped=True)
    if query.in_turn:
        node = InTurn(node, query.in_turn)
    values = [position.get(i, x) for i, x in enumerate(exprs)]
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
