"""Query tree -> tree of plan nodes.

    FROM and WHERE   ranges are joined in an order found greedily: what is reached by a constant key first, then what
                     is reached by key from there, then hash joins, pairs last; conjuncts are used where their
                     columns are known, and not above the outer join they belong under
    then             Aggregate, HAVING, Window, ProjectSet, Project, Distinct, Sort, Limit (volatile columns: ``late``)

Planning raises SqlError 0A000 for what has no Python form, so that the router can look further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from engine.executors.index.access.candidates import CandidateScan
from engine.executors.index.access.choice import Access, is_fixed, outer_levels
from engine.executors.index.access.extremes import from_index_ends
from engine.executors.index.aggregate import AggregateNode
from engine.executors.index.from_plan import FromPlanner
from engine.executors.index.late import compute_beside, compute_late, has_volatile, late_targets
from engine.executors.index.lock_rows import LockRows, with_row_ids
from engine.executors.index.nodes import (
    Beside,
    Cut,
    Distinct,
    Filter,
    InTurn,
    Limit,
    Node,
    OneRow,
    Project,
    ProjectSet,
    Sort,
    ValuesNode,
)
from engine.executors.index.one_time import OneTime
from engine.executors.index.partitions import PartitionsSource, Parts
from engine.executors.index.setops import RecursiveUnion, SetOpNode, With
from engine.executors.index.sorting import order_items
from engine.executors.index.subplan import compile_sublink
from engine.executors.index.window import WindowNode
from pgwire.give_way import give_way
from planner.base.errors import not_supported
from planner.catalog import Catalog
from planner.evaluate import Layout
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    Aggregate,
    Cte,
    CteRange,
    Expr,
    FuncExpr,
    GroupingFunc,
    QueryBase,
    QueryExpr,
    Range,
    Select,
    SetOp,
    SubLink,
    Target,
    Values,
    Var,
    WindowFunc,
)
from planner.query.rewrite import shift_levels
from planner.query.walk import children, walk
from planner.rules.occurrences import told_apart


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAccess:
    """How one stored table is reached: ``index`` oid (0 = full scan) and the access found.

    ``peeked``: it is read past all locks (SKIP LOCKED).
    """

    table: int
    alias: str
    index: int
    kind: str
    unique: bool
    bounded: bool
    peeked: bool = False

    def of(self, table: int, alias: str, index: int) -> RangeAccess:
        """Return the same for a table that is alike."""
        return RangeAccess(
            table=table, alias=alias, index=index, kind=self.kind, unique=self.unique, bounded=self.bounded,
            peeked=self.peeked,
        )  # fmt: skip


class _Ended:
    """Stands for the catalog of a planning that has ended: who asks it for anything has a bug."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"the planning has ended, and the catalog is asked for {name}")


_ENDED: Final[Any] = _Ended()


@dataclass(slots=True)
class Planning:
    """State of planning one statement: the catalog, the accesses chosen so far, and the sources of those by
    candidates.
    """

    catalog: Catalog
    accesses: list[RangeAccess] = field(default_factory=list)
    candidates: list[CandidateScan] = field(default_factory=list)
    partitioned: list[PartitionsSource] = field(default_factory=list)
    subplans: list[tuple[SubLink, Node]] = field(default_factory=list)

    def end(self) -> None:
        """Everything is planned. Nodes and expressions have layouts that refer to this: it lets go of the
        catalog, which they would keep as long as they are kept, and of the nodes.
        """
        self.subplans.clear()
        self.catalog = _ENDED

    def note(self, range_: Range, table: int, access: Access | None, *, peeked: bool = False) -> None:
        """Record how a stored table is reached."""
        index = access.index.oid if access is not None and access.index is not None else 0
        self.accesses.append(
            RangeAccess(
                table=table, alias=range_.alias, index=index, kind=access.kind if access is not None else "scan",
                unique=access.unique if access is not None else False,
                bounded=access.bounded if access is not None else False,
                peeked=peeked,
            )
        )  # fmt: skip

    # -- queries

    def query(self, query: QueryExpr, outer: Layout | None, parts: Parts | None = None) -> Node:
        """Plan a query whose env's row has layout ``outer``; ``parts``: it reads one partition of a table."""
        if isinstance(query, Select):
            body = self.select(query, outer, parts)
        elif isinstance(query, SetOp):
            body = self.set_operation(query, outer)
            body.block = query
        else:
            body = self.values(query, outer)
            body.block = query
        if query.ctes:
            inner = Layout(outer=outer, subplan=self.sublink)
            body = With(
                body, [(cte.name, self.cte(cte, inner)) for cte in query.ctes], alone=_alone(query.ctes)
            )
        return body

    def sublink(self, link: SubLink, layout: Layout) -> Any:
        """Compile a sub-select of an expression (``Layout.subplan``)."""

        def plan(query: QueryExpr, outer: Layout | None) -> Node:
            node = self.query(query, outer)
            self.subplans.append((link, node))
            return node

        return compile_sublink(link, layout, plan)

    def cte(self, cte: Cte, outer: Layout) -> Node:
        """Plan a WITH item."""
        body = cte.query
        if not cte.recursive or not isinstance(body, SetOp) or not _refers_to_itself(body, cte.name):
            return self.query(body, outer)
        if body.order or body.limit is not None or body.offset is not None:
            raise not_supported("ORDER BY or LIMIT in a recursive query")
        inner = Layout(outer=outer, subplan=self.sublink)
        node: Node = RecursiveUnion(
            cte.name,
            self.query(body.left, inner),
            self.query(body.right, inner),
            body.all,
            [c.type for c in body.columns],
            Layout(outer=outer, subplan=self.sublink),
        )
        if body.ctes:
            deeper = Layout(outer=outer, subplan=self.sublink)
            node = With(node, [(c.name, self.cte(c, deeper)) for c in body.ctes], frozenset())
        return node

    def finish(
        self,
        node: Node,
        query: QueryBase,
        types: Sequence[Any],
        outer: Layout | None,
        *,
        sort: bool,
        lock: Callable[[Node], Node] | None = None,
    ) -> Node:
        """Add ORDER BY and LIMIT, and between them what ``lock`` makes of the sorted rows."""
        items = order_items(query.order, types)
        if items and sort:
            counts = [x for x in (query.limit, query.offset) if x is not None]
            # a row that is locked by others may be left out, and then one beyond the limit comes in
            capped = query.limit is not None and not query.with_ties and lock is None
            node = Sort(node, items, counts if capped else ())
        if lock is not None:
            node = lock(node)
        if query.limit is not None or query.offset is not None:
            ties = items if query.with_ties else None
            node = Limit(node, query.limit, query.offset, ties, outer, self.sublink)
        return node

    def set_operation(self, query: SetOp, outer: Layout | None) -> Node:
        """Plan UNION, INTERSECT, EXCEPT."""
        inner = Layout(outer=outer, subplan=self.sublink)
        types = [c.type for c in query.columns]
        node: Node = SetOpNode(
            self.query(query.left, inner), self.query(query.right, inner), query.op, query.all, types,
            Layout(outer=outer, subplan=self.sublink),
        )  # fmt: skip
        return self.finish(node, query, types, outer, sort=True)

    def values(self, query: Values, outer: Layout | None) -> Node:
        """Plan VALUES."""
        rows: list[Sequence[Expr]] = []
        for row in query.rows:
            if any(cell is None for cell in row):
                raise not_supported("DEFAULT in VALUES here")
            rows.append(row)
        node: Node = ValuesNode(rows, len(query.columns), outer, self.sublink, bool(query.in_turn))
        return self.finish(node, query, [c.type for c in query.columns], outer, sort=True)

    def select(self, query: Select, outer: Layout | None, parts: Parts | None = None) -> Node:
        """Plan a SELECT block."""
        query = told_apart(from_index_ends(query, self.catalog) or query)
        visible = len(query.targets)
        if query.row_marks:
            query = replace(query, targets=query.targets + with_row_ids(query))
        node: Node
        planner: FromPlanner | None = None
        in_order = False  # an index gives the rows in the query's order
        if query.from_:
            planner = FromPlanner(self, query, outer, parts)
            node = planner.plan()
            in_order = planner.ordered is not None
        else:
            node = OneRow(outer, self.sublink)
            where = conjuncts_of(query.where)
            node = Filter(node, where) if where else node
        exprs = [t.expr for t in query.targets]
        found = planner.found if planner is not None else Parts()
        if query.grouped:
            node = self._grouped(query, node)
        calls = [x for x in _own(exprs, WindowFunc) if isinstance(x, WindowFunc)]
        expanded = list(query.group)
        if calls:
            keys = [key.expr for window in query.windows for key in (*window.partition, *window.order)]
            node = self._sets(keys, node, expanded)
            expanded += keys
            node = WindowNode(node, query.windows, calls)
        late = late_targets(query)
        sets = [] if late else self._sets_in(exprs, expanded)
        arranged = bool(late)  # the rows come in order
        if late:
            node = compute_late(node, query, late, sort=not in_order)
        elif sets and has_volatile(exprs):
            arranged = bool(query.order) and not query.distinct and visible == len(query.targets)
            node = compute_beside(
                node,
                query,
                expanded,
                lambda below, of, beside, one_by_one: self._sets(of, below, expanded, beside, one_by_one),
                sort=not in_order,
                late=arranged,
            )
        else:
            if sets:
                node = self._sets(exprs, node, expanded)
            if query.in_turn == "found" or (query.in_turn and (in_order or not query.order)):
                node = InTurn(node, query.in_turn)
            node = Project(node, exprs, [t.name for t in query.targets])
        types = [t.expr.type for t in query.targets]
        output = sum(not t.junk for t in query.targets)
        _check_junk_last(query.targets)
        if query.distinct is True:
            node = Distinct(node, types, range(output))
        elif query.distinct:
            node = Sort(node, order_items(query.row_order, types))
            node = Distinct(node, [types[i] for i in query.distinct], query.distinct)
        sort = not in_order and not arranged and (query.distinct is True or not query.distinct)
        lock = None
        if visible < len(query.targets):

            def lock(child: Node) -> Node:
                return LockRows(child, query, visible, found.ordered, found.scouts, outer, self.sublink)

        node = self.finish(node, query, types, outer, sort=sort, lock=lock)
        if output != len(query.targets):
            node = Cut(node, output)
        node.block = query
        return node

    def _grouped(self, query: Select, node: Node) -> Node:
        node = self._sets(query.group, node)
        used: list[Any] = [t.expr for t in query.targets]
        if query.having is not None:
            used.append(query.having)
        used.append(query.windows)
        aggregates = _distinct(_own(used, Aggregate))
        groupings = _distinct(_own(used, GroupingFunc))
        carried = _ungrouped(used, query.group)
        node = AggregateNode(
            node, query.group, query.grouping_sets, aggregates, groupings, carried, query.group_distinct
        )
        if query.having is not None:
            having = conjuncts_of(query.having)
            fixed = [
                c for c in having if is_fixed(c) and not (_own([c], Aggregate) or _own([c], GroupingFunc))
            ]
            rest = [c for c in having if not any(c is one for one in fixed)]
            node = Filter(node, rest) if rest else node
            node = OneTime(node, fixed) if fixed else node
        return node

    def _sets(
        self,
        exprs: Sequence[Expr],
        node: Node,
        keys: Sequence[Expr] = (),
        beside: Sequence[Beside] = (),
        one_by_one: bool = False,
    ) -> Node:
        """Expand set-returning functions of the select list or of GROUP BY, inner ones first; those in
        ``keys`` have been.

        ``beside``: what the last of these nodes computes, too.
        """
        pending = self._sets_in(exprs, keys)
        while pending:
            ready = [
                x for x in pending if not any(y is not x and y in _own(x.args, FuncExpr) for y in pending)
            ]
            pending = [x for x in pending if x not in ready]
            node = ProjectSet(node, ready, () if pending else beside, one_by_one)
        return node

    @staticmethod
    def _sets_in(exprs: Sequence[Expr], keys: Sequence[Expr]) -> list[FuncExpr]:
        """Return the set-returning functions of this query in ``exprs``, not those in ``keys``."""
        return _distinct(
            [x for x in _own(exprs, FuncExpr, keys) if isinstance(x, FuncExpr) and x.returns_set]
        )


def _alone(ctes: tuple[Cte, ...]) -> frozenset[str]:
    """Return the names of the WITH items that read nothing of the queries around the one that they belong to."""
    alone = []
    reach_of_all = 0
    for cte in ctes:
        levels, with_level = outer_levels(cte.query)
        reach = max(levels | {with_level})
        reach_of_all = max(reach_of_all, reach)
        if not reach or reach_of_all <= 1:  # it and the items before it read these items at most
            alone.append(cte.name)
    return frozenset(alone)


def _check_junk_last(targets: Sequence[Target]) -> None:
    seen = False
    for target in targets:
        if target.junk:
            seen = True
        elif seen:
            raise LookupError("a junk target stands before an output target")


def _distinct(items: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if item not in out:
            out.append(item)
    return out


def _own(nodes: Any, kind: type, keys: Sequence[Expr] = ()) -> list[Any]:
    """Return nodes of ``kind`` that belong to this query, as they read from it; not those within ``keys``.

    Aggregates and GROUPING inside sub-selects belong here when their level says so; they come with levels
    shifted to this query. Nothing below an aggregate found is looked at; below a window function its
    arguments are.
    """
    out: list[Any] = []
    stack: list[tuple[Any, int]] = [(n, 0) for n in reversed(list(nodes))]
    while stack:
        give_way()
        node, depth = stack.pop()
        if isinstance(node, tuple):
            stack.extend((n, depth) for n in reversed(node))
            continue
        if keys and not depth and node in keys:
            continue
        if isinstance(node, QueryBase):
            depth += 1
        if isinstance(node, Aggregate | GroupingFunc):
            if node.level == depth:
                if isinstance(node, kind):
                    out.append(shift_levels(node, -depth) if depth else node)
                continue
        elif isinstance(node, kind) and depth == 0:
            out.append(node)
        stack.extend((child, depth) for child in reversed(children(node)))
    return out


def _ungrouped(nodes: Any, group: Sequence[Expr]) -> list[Var]:
    """Return columns used outside aggregates and grouping expressions: they depend on the grouped ones."""
    out: list[Var] = []
    stack: list[tuple[Any, int]] = [(n, 0) for n in nodes]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, tuple):
            stack.extend((n, depth) for n in node)
            continue
        if isinstance(node, QueryBase):
            depth += 1
        if isinstance(node, Expr):
            try:
                if (node if depth == 0 else shift_levels(node, -depth)) in group:
                    continue
            except TypeError:
                pass
        if isinstance(node, Aggregate) and node.level == depth:
            continue
        if isinstance(node, Var) and node.level == depth and node.range >= 0:
            var = replace(node, level=0)
            if var not in out:
                out.append(var)
            continue
        stack.extend((child, depth) for child in children(node))
    return out


def _refers_to_itself(body: SetOp, name: str) -> bool:
    return any(isinstance(n, CteRange) and n.recursive_ref and n.name == name for n in walk(body.right))
