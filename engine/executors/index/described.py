"""Plans of the row executor as EXPLAIN shows them.

Node      one of ``_FORMS`` says which of PostgreSQL's nodes it is; projections and the like are none: they change the node below
Source    what FROM reads, a node of PostgreSQL's, too
block     a node that is the whole plan of a query: its ranges have names below it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from engine.base.explain.estimated_cost import width_of_types
from engine.base.explain.texts import Texts
from engine.base.explain.tree import PlanNode, Role
from engine.executors.index.access.by_ctid import CtidScan
from engine.executors.index.access.candidates import CandidateScan
from engine.executors.index.access.large_objects import LargeObjectSource
from engine.executors.index.access.virtual_sources import VirtualLookup, VirtualScan
from engine.executors.index.aggregate import AggregateNode
from engine.executors.index.computed import CteSource, FunctionSource, StepSource, SubquerySource
from engine.executors.index.joins import DependentJoin, HashJoin, LoopJoin
from engine.executors.index.late import Arrange, Early, Head
from engine.executors.index.lock_rows import LockRows
from engine.executors.index.nodes import (
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
from engine.executors.index.partitions import PartitionsSource
from engine.executors.index.samples import SampleScan, VirtualSample
from engine.executors.index.setops import RecursiveUnion, SetOpNode, With
from engine.executors.index.sources import IndexSource, Source, SourceNode, TableScan
from engine.executors.index.window import WindowNode
from planner.facts import facts
from planner.query import Const, Expr, FuncExpr, JoinKind, RelationRange, Select, Var
from planner.types import SqlType

_GROUPS = 200.0  # groups that are guessed
_JOINS = {JoinKind.INNER: "Inner", JoinKind.LEFT: "Left", JoinKind.RIGHT: "Right", JoinKind.FULL: "Full"}


class Describer:
    """Describes one plan."""

    def __init__(self, texts: Texts) -> None:
        """Write expressions by ``texts``."""
        self.texts = texts

    def node(self, node: Node) -> PlanNode:
        """Describe a node and all below it."""
        with nullcontext() if node.block is None or isinstance(node, With) else self.texts.inside(node.block):
            form = next(_FORMS[kind] for kind in type(node).__mro__ if kind in _FORMS)
            made = form(self, node)
            self._sub_plans(made)
        made.actual = node.measured
        return made

    def _sub_plans(self, made: PlanNode) -> None:
        for name, plan in self.texts.taken():
            made.add(self.node(plan), "SubPlan", name)

    def _over(self, node: Node, kind: str, heading: str = "", **facts_: Any) -> PlanNode:
        """Return a node above its inputs."""
        made = PlanNode(kind, heading or kind, dict(facts_))
        roles: list[Role] = ["Outer", "Inner"] if len(node.inputs) == 2 else ["Outer"] * len(node.inputs)
        for below, role in zip(node.inputs, roles, strict=True):
            made.add(self.node(below), role)
        self.texts.guess(made)
        return made

    def outputs(self, made: PlanNode) -> PlanNode:
        """Say that a node gives what the query selects; sub-selects in that are plans below."""
        if not isinstance(self.texts.query, Select):
            return made
        written = [target.expr for target in self.texts.query.targets if not target.junk]
        shown = [self.texts.output(expr) for expr in written]
        if self.texts.verbose:
            made.details = {"Output": shown, **{k: v for k, v in made.details.items() if k != "Output"}}
        if made.rows is not None:
            made.width = width_of_types([expr.type for expr in written])
        return made

    # --- nodes that are a property of the one below ---------------------------------------------

    def below(self, node: Node) -> PlanNode:
        """Describe what a node that shows nothing of itself is above."""
        return self.node(node.inputs[0])

    def project(self, node: Project) -> PlanNode:
        """A projection: outputs of the node below."""
        return self.outputs(self.below(node))

    def late(self, node: Arrange) -> PlanNode:
        """What is computed behind ORDER BY or LIMIT: a node of its own, as in PostgreSQL; beside sets it is theirs."""
        below = node.inputs[0]
        if isinstance(below, ProjectSet) and below.first is not None:
            return self.outputs(self.below(node))
        return self.outputs(self._over(node, "Result"))

    def filter(self, node: Filter) -> PlanNode:
        """A filter: a condition of the node below."""
        made = self.below(node)
        made.filtered(self.texts.all_of(node.conjuncts), node.measured)
        return made

    def one_time(self, node: OneTime) -> PlanNode:
        """Conditions looked at once."""
        made = self._over(node, "Result")
        made.details["One-Time Filter"] = self.texts.all_of(node.conjuncts)
        return made

    # --- nodes ----------------------------------------------------------------------------------

    def result(self, _node: Node) -> PlanNode:
        """One row that is read of nothing."""
        made = PlanNode("Result", "Result")
        if self.texts.estimator is not None:
            made.rows, made.cost = 1.0, 0.01
            made.width = width_of_types([column.type for column in self.texts.query.columns])
        return made

    def values(self, node: ValuesNode) -> PlanNode:
        """VALUES."""
        if node.count == 1:
            return self.result(node)
        made = PlanNode("Values Scan", 'Values Scan on "*VALUES*"', {"Alias": "*VALUES*"})
        if self.texts.estimator is not None:
            made.rows, made.cost = float(node.count), node.count / 100
            made.width = width_of_types([column.type for column in self.texts.query.columns])
        return made

    def sort(self, node: Sort) -> PlanNode:
        """ORDER BY, or what DISTINCT ON needs."""
        made = self._over(node, "Sort")
        query = self.texts.query
        made.details["Sort Key"] = self.texts.keys(
            query.row_order if isinstance(query, Select) else query.order
        )
        return made

    def distinct(self, node: Distinct) -> PlanNode:
        """DISTINCT: by hash; DISTINCT ON: the first of sorted rows."""
        query = self.texts.query
        chosen = query.distinct if isinstance(query, Select) else False
        if isinstance(query, Select) and chosen is True:
            made = self._over(node, "Aggregate", "HashAggregate", Strategy="Hashed")
            made.details["Group Key"] = self.texts.grouping([t.expr for t in query.targets if not t.junk])
            self.texts.guess(made, lambda rows: min(rows, _GROUPS))
            return made
        made = self._over(node, "Unique")
        self.texts.guess(made, lambda rows: min(rows, _GROUPS))
        return made

    def limit(self, node: Limit) -> PlanNode:
        """LIMIT and OFFSET."""
        made = self._over(node, "Limit")
        limit = self.texts.query.limit
        if isinstance(limit, Const) and isinstance(limit.value, int):
            most = float(limit.value)
            self.texts.guess(made, lambda rows: min(rows, most))
        return made

    def aggregate(self, node: AggregateNode) -> PlanNode:
        """Aggregates, by hash where there are groups."""
        plain, several = not node.group, len(node.sets) != 1
        heading = "Aggregate" if plain else "MixedAggregate" if several else "HashAggregate"
        strategy = {"Aggregate": "Plain", "MixedAggregate": "Mixed", "HashAggregate": "Hashed"}[heading]
        made = self._over(node, "Aggregate", heading, Strategy=strategy)
        if several:
            sets = [", ".join(self.texts.grouping([node.group[i] for i in found])) for found in node.sets]
            made.details["Hash Keys"] = [f"({found})" for found in sets]
        elif node.group:
            made.details["Group Key"] = self.texts.grouping(node.group)
        self.texts.guess(made, (lambda rows: 1.0) if plain else (lambda rows: min(rows, _GROUPS)))
        return made

    def window(self, node: WindowNode) -> PlanNode:
        """Window functions."""
        return self._over(node, "WindowAgg")

    def lock_rows(self, node: LockRows) -> PlanNode:
        """FOR UPDATE and its kin."""
        return self._over(node, "LockRows")

    def project_set(self, node: ProjectSet) -> PlanNode:
        """Set-returning functions of the select list."""
        return self._over(node, "ProjectSet")

    def head(self, node: Head) -> PlanNode:
        """The rows that LIMIT reads, before what is computed of them alone."""
        return self._over(node, "Limit")

    def set_operation(self, node: SetOpNode) -> PlanNode:
        """UNION is an Append, by hash where it has no ALL; the others are by hash."""
        if node.op == "union":
            made = self._over(node, "Append")
            for below in made.inputs:
                below.role = "Member"
            if made.rows is not None:
                made.rows = sum(below.rows or 1.0 for below in made.inputs)
            if node.keep_all:
                return made
            above = PlanNode("Aggregate", "HashAggregate", {"Strategy": "Hashed"})
            above.details["Group Key"] = [column.name for column in self.texts.query.columns]
            made.actual = None
            above.add(made, "Outer")
            self.texts.guess(above)
            return above
        command = node.op.capitalize() + (" All" if node.keep_all else "")
        return self._over(node, "SetOp", f"HashSetOp {command}", Strategy="Hashed", Command=command)

    def recursive_union(self, node: RecursiveUnion) -> PlanNode:
        """A recursive WITH item."""
        return self._over(node, "Recursive Union")

    def with_items(self, node: With) -> PlanNode:
        """A query with WITH items: these stand first below its plan."""
        made = self.node(node.inputs[0])
        plans = dict([*node.items, *node.alone])
        around = node.inputs[0].block or node.block
        items = []
        with nullcontext() if around is None else self.texts.inside(around):
            for name in node.names:
                item = self.node(plans[name])
                item.role, item.name = "InitPlan", f"CTE {name}"
                items.append(item)
        made.inputs = [*items, *made.inputs]
        return made

    # --- joins ----------------------------------------------------------------------------------

    def _join(self, made: PlanNode, kind: JoinKind, name: str, conjuncts: Sequence[Expr]) -> PlanNode:
        made.facts = {"Join Type": _JOINS[kind]}
        between = "" if kind is JoinKind.INNER else f" {_JOINS[kind]}"
        made.heading = f"{name}{between} Join" if name != "Nested Loop" or between else name
        if conjuncts:
            made.details["Join Filter"] = self.texts.all_of(conjuncts)
        if made.rows is not None:
            sizes = [below.rows or 1.0 for below in made.inputs if below.role in ("Outer", "Inner")]
            tied = bool(conjuncts) or name == "Hash"
            made.rows = max(sizes) if tied else sizes[0] * sizes[-1]
            made.width = sum(below.width for below in made.inputs if below.role in ("Outer", "Inner"))
        return made

    def _pair(self, node: Node, kind: str, kept: str) -> PlanNode:
        """Return a join of two inputs, of which the right one is gathered first, as ``kept``."""
        left, right = self.node(node.inputs[0]), self.node(node.inputs[1])
        gathered = PlanNode(kept, kept, actual=right.actual)
        made = PlanNode(kind, kind)
        gathered.add(right, "Outer")
        self.texts.guess(gathered)
        made.add(left, "Outer")
        made.add(gathered, "Inner")
        self.texts.guess(made)
        return made

    def hash_join(self, node: HashJoin) -> PlanNode:
        """A join by a hash table over its right side."""
        made = self._pair(node, "Hash Join", "Hash")
        pairs = [f"({self.texts.of(a)} = {self.texts.of(b)})" for a, b in node.keys]
        made.details["Hash Cond"] = pairs[0] if len(pairs) == 1 else "(" + " AND ".join(pairs) + ")"
        return self._join(made, node.kind, "Hash", node.conjuncts)

    def loop_join(self, node: LoopJoin) -> PlanNode:
        """A join of pairs; the right side is kept."""
        return self._join(
            self._pair(node, "Nested Loop", "Materialize"), node.kind, "Nested Loop", node.conjuncts
        )

    def dependent_join(self, node: DependentJoin) -> PlanNode:
        """For each left row what a source finds."""
        made = PlanNode("Nested Loop", "Nested Loop")
        made.add(self.node(node.inputs[0]), "Outer")
        right = self.source(node.right)
        made.add(right, "Inner")
        self.texts.guess(made)
        made = self._join(made, node.kind, "Nested Loop", node.conjuncts)
        if made.rows is not None and not node.conjuncts:
            made.rows = max(made.inputs[0].rows or 1.0, right.rows or 1.0)
        return made

    # --- sources --------------------------------------------------------------------------------

    def source_node(self, node: SourceNode) -> PlanNode:
        """A range that depends on nothing."""
        return self.source(node.source)

    def source(self, source: Source) -> PlanNode:
        """Describe what FROM reads."""
        made = next(_SOURCES[kind] for kind in type(source).__mro__ if kind in _SOURCES)(self, source)
        made.actual = source.measured
        tested = source.conjuncts
        if isinstance(source, CtidScan):  # bounds are tested again where all rows were read
            tested = tuple(c for c in tested if not any(c is said for said in source.access.served))
        if tested:
            made.details["Filter"] = self.texts.all_of(tested)
            if source.measured is not None and source.unfiltered is not None:
                made.removed = source.unfiltered.rows - source.measured.rows
        query = self.texts.query
        types: list[SqlType] = []
        if isinstance(query, Select) and 0 <= source.number < len(query.ranges):
            read = {attnum for _, attnum in source.columns}
            types = [c.type for c in query.ranges[source.number].columns if c.attnum in read]
        self.texts.guess_range(made, source.number, types)
        self._sub_plans(made)
        return made

    def _scan(self, kind: str, item: RelationRange, number: int, using: str = "", **facts_: Any) -> PlanNode:
        about, known = self.texts.about(item, number)
        between = f" using {using}" if using else ""
        back = " Backward" if facts_.get("Scan Direction") == "Backward" else ""
        return PlanNode(kind, f"{kind}{back}{between} on {about}", {**facts_, **known})

    def table_scan(self, source: TableScan) -> PlanNode:
        """All rows of a table."""
        return self._scan("Seq Scan", source.item, source.number)

    def sample_scan(self, source: SampleScan | VirtualSample) -> PlanNode:
        """A sample of a table."""
        made = self._scan("Sample Scan", source.item, source.number)
        if source.item.sample is None:
            raise AssertionError("a sample is scanned of a range without TABLESAMPLE")
        made.details["Sampling"] = self.texts.sampling(source.item.sample)
        return made

    def ctid_scan(self, source: CtidScan) -> PlanNode:
        """Rows by their ctids."""
        made = self._scan("Tid Scan" if source.access.keys else "Tid Range Scan", source.item, source.number)
        made.details["TID Cond"] = self.texts.all_of(source.access.served)
        return made

    def index_scan(self, source: IndexSource) -> PlanNode:
        """Rows by keys or a range of an index."""
        direction = "Backward" if source.reverse else "Forward"
        named = {"Scan Direction": direction, "Index Name": source.index_name}
        made = self._scan("Index Scan", source.item, source.number, source.index_name, **named)
        if source.access.served:
            made.details["Index Cond"] = self.texts.all_of(source.access.served)
        return made

    def candidate_scan(self, source: CandidateScan) -> PlanNode:
        """Rows that entries of a gin or gist index name, or a scan where these are many."""
        made = self._scan(
            "Index Scan", source.item, source.number, source.index_name, **{"Index Name": source.index_name}
        )
        made.details["Index Cond"] = self.texts.all_of(source.served)
        return made

    def catalog_scan(self, source: VirtualScan) -> PlanNode:
        """All rows of a catalog relation."""
        return self._scan("Seq Scan", source.item, source.number)

    def catalog_lookup(self, source: VirtualLookup) -> PlanNode:
        """Rows of a catalog relation by the values of a column."""
        made = self._scan("Index Scan", source.item, source.number)
        column = next(c for c in source.item.columns if c.attnum == source.attnum)
        name = self.texts.of(
            Var(type=column.type, range=source.number, attnum=column.attnum, name=column.name)
        )
        value = self.texts.of(source.key)
        made.details["Index Cond"] = f"({name} = ANY ({value}))" if source.is_list else f"({name} = {value})"
        return made

    def large_objects(self, source: LargeObjectSource) -> PlanNode:
        """Large objects, all or by their numbers."""
        return self._scan("Seq Scan" if source.value is None else "Index Scan", source.item, source.number)

    def function_scan(self, source: FunctionSource) -> PlanNode:
        """Functions in FROM."""
        alias = self.texts.alias(source.number)
        first = source.item.functions[0]
        fact = facts().procs.get(first.proc) if isinstance(first, FuncExpr) else None
        several = len(source.item.functions) > 1 or fact is None
        name = "" if fact is None or several else fact.name
        heading = f"Function Scan on {alias if several or name == alias else f'{name} {alias}'}"
        made = PlanNode(
            "Function Scan", heading, ({"Function Name": name} if name else {}) | {"Alias": alias}
        )
        calls = [self.texts.of(call) for call in source.item.functions]
        if self.texts.verbose:
            made.details["Function Call"] = ", ".join(calls)
        return made

    def subquery_scan(self, source: SubquerySource) -> PlanNode:
        """A sub-select of FROM."""
        if not source.conjuncts:
            return self.node(source.plan)  # as in PostgreSQL, where nothing is done to its rows
        alias = self.texts.alias(source.number)
        made = PlanNode("Subquery Scan", f"Subquery Scan on {alias}", {"Alias": alias})
        made.add(self.node(source.plan), "Subquery")
        return made

    def cte_scan(self, source: CteSource) -> PlanNode:
        """A WITH item; within a recursive one what the last round added."""
        name, alias = source.item.name, self.texts.alias(source.number)
        kind = "WorkTable Scan" if source.item.recursive_ref else "CTE Scan"
        shown = name if name == alias else f"{name} {alias}"
        return PlanNode(kind, f"{kind} on {shown}", {"CTE Name": name, "Alias": alias})

    def step_scan(self, source: StepSource) -> PlanNode:
        """What a part of the statement that changes rows has returned."""
        name, alias = source.item.name, self.texts.alias(source.number)
        shown = name if name == alias else f"{name} {alias}"
        return PlanNode("CTE Scan", f"CTE Scan on {shown}", {"CTE Name": name, "Alias": alias})

    def partitions(self, source: PartitionsSource) -> PlanNode:
        """Partitions side by side."""
        made = PlanNode("Append", "Append")
        for plan in source.plans.values():
            _take_names(plan)
            made.add(self.node(plan), "Member")
        if source.gate is not None:
            made.details["Partitions"] = "those that the values leave"
        return made


def _take_names(plan: Node) -> None:
    """Have a partition's plan that was made from another one's (``engine.executors.index.partitions``) named
    after its own table.
    """
    node, block = plan, plan.block
    while node.inputs:
        node = node.inputs[0]
    if (
        isinstance(node, SourceNode)
        and isinstance(node.source, TableScan | IndexSource)
        and isinstance(block, Select)
    ):
        own = node.source.item
        if block.ranges[node.source.number].alias != own.alias:
            ranges = list(block.ranges)
            ranges[node.source.number] = own
            plan.block = replace(block, ranges=tuple(ranges))


Form = Callable[[Describer, Any], PlanNode]
_FORMS: dict[type[Node], Form] = {
    Project: Describer.project,
    Arrange: Describer.late,
    Early: Describer.below,
    Cut: Describer.below,
    InTurn: Describer.below,
    Filter: Describer.filter,
    OneTime: Describer.one_time,
    OneRow: Describer.result,
    ValuesNode: Describer.values,
    Sort: Describer.sort,
    Distinct: Describer.distinct,
    Limit: Describer.limit,
    Head: Describer.head,
    AggregateNode: Describer.aggregate,
    WindowNode: Describer.window,
    LockRows: Describer.lock_rows,
    ProjectSet: Describer.project_set,
    SetOpNode: Describer.set_operation,
    RecursiveUnion: Describer.recursive_union,
    With: Describer.with_items,
    HashJoin: Describer.hash_join,
    LoopJoin: Describer.loop_join,
    DependentJoin: Describer.dependent_join,
    SourceNode: Describer.source_node,
}
_SOURCES: dict[type[Source], Form] = {
    TableScan: Describer.table_scan,
    SampleScan: Describer.sample_scan,
    VirtualSample: Describer.sample_scan,
    CtidScan: Describer.ctid_scan,
    IndexSource: Describer.index_scan,
    CandidateScan: Describer.candidate_scan,
    VirtualScan: Describer.catalog_scan,
    VirtualLookup: Describer.catalog_lookup,
    LargeObjectSource: Describer.large_objects,
    FunctionSource: Describer.function_scan,
    SubquerySource: Describer.subquery_scan,
    CteSource: Describer.cte_scan,
    StepSource: Describer.step_scan,
    PartitionsSource: Describer.partitions,
}
