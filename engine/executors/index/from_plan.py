"""FROM and WHERE: which range is read how, and in which order ranges are joined.

Inner joins are flattened: their ranges are *units*, their conditions go to the pool of WHERE conjuncts. An outer join
is one unit whose sides are planned the same way. Units are joined greedily, cheapest first:

    0  reached by a unique key      from constants or from what is joined already
    1  reached by other keys, a short range, a catalog relation by column
    2  functions, VALUES, sub-selects, WITH items, catalog relations
    3  stored tables by open range or full scan

What is read to be locked, and could be reached by a unique key from other ranges, comes behind 2 and not by a
range of keys.

A unit is tied to those joined so far by lookup (a key from the left row), else by hash on equalities, else by pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.executors.expressions import has_sublink, is_volatile, ranges_used, row_security_of
from engine.executors.index.access.by_ctid import CtidScan
from engine.executors.index.access.candidates import CandidateScan
from engine.executors.index.access.catalog_join import CatalogJoin
from engine.executors.index.access.choice import Access, column_uses, find, is_fixed
from engine.executors.index.access.intervals import IntervalScan, find_intervals
from engine.executors.index.access.inverted import EntriesScan, find_inverted
from engine.executors.index.access.large_objects import NUMBER, LargeObjectSource
from engine.executors.index.access.ordered import enough, is_small, ordered_access
from engine.executors.index.access.virtual_sources import VirtualLookup, VirtualScan
from engine.executors.index.computed import CteSource, FunctionSource, StepSource, SubquerySource
from engine.executors.index.from_needs import (
    catalog_rank,
    columns_named,
    hash_keys,
    implied_by_or,
    needed_columns,
    ranges_of,
    without_unused,
)
from engine.executors.index.joins import DependentJoin, HashJoin, LoopJoin
from engine.executors.index.late import late_targets
from engine.executors.index.nodes import Filter, Node
from engine.executors.index.one_time import OneTime
from engine.executors.index.partitions import (
    PartitionsSource,
    Parts,
    accesses,
    arms_of,
    asked_in_order,
    gate_of,
    keys_from_outside,
    narrowed,
    plans_of,
    reads_ahead,
    with_alike,
)
from engine.executors.index.push_down import pushed_down
from engine.executors.index.reduce_joins import reduced
from engine.executors.index.samples import SampleScan, VirtualSample
from engine.executors.index.sources import IndexSource, Source, SourceNode, TableScan, reading_for
from engine.session.large_objects.rows import RELATIONS as LARGE_OBJECT_RELATIONS
from planner.base.errors import not_supported
from planner.evaluate import Layout, compile_row
from planner.indexing.comparisons import conjuncts_of
from planner.query import (
    ROW_ID,
    CteRange,
    Expr,
    FromItem,
    FunctionRange,
    Join,
    JoinKind,
    RangeRef,
    RelationRange,
    Select,
    StepRange,
    SubqueryRange,
    Var,
)

if TYPE_CHECKING:
    from engine.executors.index.plan import Planning

_LATER = (2, 2)  # behind what is made: its rows have keys of single rows, where a range would lock more


def _dependent(
    left: Node, right: Source, kind: JoinKind, conjuncts: Sequence[Expr], once: Sequence[Expr] = ()
) -> Node:
    """Return the join with a source that uses the left row."""
    if isinstance(right, VirtualLookup) and right.by_batches:
        return CatalogJoin(left, right, kind, [*once, *conjuncts])
    return DependentJoin(left, right, kind, conjuncts, once)


def _without(conjuncts: Sequence[Expr], taken: Sequence[Expr]) -> list[Expr]:
    return [c for c in conjuncts if not any(c is one for one in taken)]


class FromPlanner:
    """Plans FROM and WHERE of one SELECT."""

    def __init__(
        self, planning: Planning, query: Select, outer: Layout | None, parts: Parts | None = None
    ) -> None:
        """Plan ``query``; ``parts``: it reads one partition for the query around."""
        self.planning = planning
        self.query = query = with_alike(query, planning.catalog)
        self.outer = outer
        self.needed = needed_columns(query)
        self.guards = [row_security_of(item, number) for number, item in enumerate(query.ranges)]
        for number, guards in enumerate(self.guards):
            self.needed[number] |= {attnum for guard in guards for attnum in columns_named(guard, number)}
        self.narrow = len(query.ranges) > 1
        self.narrow_catalog = self.narrow or bool(late_targets(query))  # rows are copied on their way
        self.found = Parts() if parts is None else parts
        asked = query if self.found.around is None else asked_in_order(query, self.found.around)
        self.ordered = ordered_access(asked, planning.catalog, conjuncts_of(query.where))
        self.marks = {mark.range: mark for mark in query.row_marks}

    def plan(self) -> Node:
        """Return the node giving the joined and filtered rows."""
        where = conjuncts_of(self.query.where)
        units, pool = self._flatten(list(reduced(self.query.from_, where)))
        pool.extend(where)
        node, left = self._join_units(units, pool)
        return Filter(node, left) if left else node

    def _flatten(self, items: list[FromItem]) -> tuple[list[FromItem], list[Expr]]:
        units: list[FromItem] = []
        pool: list[Expr] = []
        stack = list(reversed(items))
        while stack:
            item = stack.pop()
            if isinstance(item, Join) and item.kind is JoinKind.INNER:
                pool.extend(conjuncts_of(item.on))
                stack.append(item.right)
                stack.append(item.left)
            else:
                units.append(item)
        return units, pool

    def _empty(self) -> Layout:
        return Layout(outer=self.outer, subplan=self.planning.sublink)

    def _join_units(self, units: list[FromItem], pool: list[Expr]) -> tuple[Node, list[Expr]]:
        """Join units greedily; return the node and the conjuncts it has not used."""
        conjuncts = list(pool)
        # A unit's rank changes only when something that shares a condition with it, or that it refers to, is joined.
        used = {id(c): ranges_used(c) for c in pool}
        about: dict[int, list[Expr]] = {}
        for c in pool:
            for index in used[id(c)]:
                about.setdefault(index, []).append(c)
        fixed = [c for c in pool if not used[id(c)] and is_fixed(c)]
        if fixed:
            conjuncts = _without(conjuncts, fixed)
        open_ = set(used)

        def conjuncts_about(ranges: AbstractSet[int]) -> list[Expr]:
            if len(ranges) == 1:
                return about.get(min(ranges), [])
            return list({id(c): c for index in sorted(ranges) for c in about.get(index, ())}.values())

        inside = [ranges_of(unit) for unit in units]
        needs = [self._lateral_needs(unit) for unit in units]
        owner = {index: position for position, ranges in enumerate(inside) for index in ranges}
        after: dict[int, set[int]] = {}
        for position, wanted in enumerate(needs):
            for index in wanted:
                after.setdefault(index, set()).add(position)
        remaining = dict(enumerate(units))
        ranks: dict[int, tuple[int, int] | None] = {}
        stale = set(remaining)
        bound: set[int] = set()
        node: Node | None = None
        while remaining:
            for position in stale & remaining.keys():
                mine = [c for c in conjuncts_about(inside[position]) if not used[id(c)] <= bound]
                rank = self._rank(units[position], mine, bound) if needs[position] <= bound else None
                ranks[position] = rank
            best = min(
                ((rank, position) for position in remaining if (rank := ranks[position]) is not None),
                default=None,
            )
            if best is None:
                raise not_supported("this order of LATERAL references")
            unit = remaining.pop(best[1])
            first = not bound
            mine = [c for c in conjuncts_about(inside[best[1]]) if id(c) in open_]
            node, rest = self._add(node, bound, unit, mine)
            served = {id(c) for c in mine} - {id(c) for c in rest}
            conjuncts = [c for c in conjuncts if id(c) not in served]
            bound |= inside[best[1]]
            ready = [c for c in conjuncts if used[id(c)] <= bound]
            if ready:
                node = Filter(node, ready)
                served |= {id(c) for c in ready}
                conjuncts = [c for c in conjuncts if id(c) not in served]
            open_ -= served
            stale = set(remaining) if first else set()
            for index in inside[best[1]]:
                stale |= after.get(index, set())
                stale |= {
                    owner[other] for c in about.get(index, ()) for other in used[id(c)] if other in owner
                }
        if node is None:
            raise LookupError("FROM without ranges")
        return OneTime(node, fixed) if fixed else node, conjuncts

    def _lateral_needs(self, unit: FromItem) -> set[int]:
        """Return the ranges outside ``unit`` that LATERAL items in it refer to."""
        inside = ranges_of(unit)
        needs: set[int] = set()
        for i in inside:
            item = self.query.ranges[i]
            if isinstance(item, SubqueryRange):
                needs |= ranges_used(item.query, 0) if item.lateral else set()
            elif isinstance(item, FunctionRange):
                needs |= ranges_used(item.functions)
        return needs - inside

    def _rank(self, unit: FromItem, conjuncts: Sequence[Expr], bound: set[int]) -> tuple[int, int]:
        """Return (cost class, 0 if tied to what is joined already); ``conjuncts``: those about the unit."""
        inside = ranges_of(unit)
        tied = not bound or any(
            (used := ranges_used(c)) & inside and used & bound and used <= inside | bound for c in conjuncts
        )
        if not isinstance(unit, RangeRef):
            if self._carried(unit, conjuncts, bound):
                return 1, 0
            return 2 if tied else 3, 0 if tied else 1
        item = self.query.ranges[unit.range]
        if isinstance(item, RelationRange):
            if item.virtual:
                uses = self._virtual_use(unit.range, conjuncts, bound)
                return (1 if uses is not None else 2), 0 if tied else 1
            access = self._access(unit.range, conjuncts, bound)
            if access is None:
                return 3 if tied else 4, 0 if tied else 1
            cost = 0 if access.unique else 1 if access.bounded else 3
            if cost == 1 and self._locks(unit.range):
                better = self._access(unit.range, conjuncts, self._others(unit.range))
                if better is not None and better.unique:
                    return _LATER
            return cost, 0 if tied else 1
        if isinstance(item, SubqueryRange) and item.parent:
            return self._rank_of_partitions(unit.range, item, conjuncts, bound, tied)
        return 2 if tied or not bound else 3, 0 if tied else 1

    def _rank_of_partitions(
        self, index: int, item: SubqueryRange, conjuncts: Sequence[Expr], bound: AbstractSet[int], tied: bool
    ) -> tuple[int, int]:
        arms, catalog = arms_of(item.query), self.planning.catalog
        if keys_from_outside(arms, index, conjuncts, bound, catalog):
            return 1, 0 if tied else 1
        if accesses(arms, catalog) is None:
            return (3, 0) if tied else (4, 1)
        if any(isinstance(t.expr, Var) and t.expr.attnum == ROW_ID for t in arms[0].targets):
            keys = keys_from_outside(arms, index, conjuncts, self._others(index), catalog)
            better = accesses([narrowed(arm, index, keys) for arm in arms], catalog) if keys else None
            if better is not None and all(access.unique for access in better):
                return _LATER
        return 1, 0 if tied else 1

    def _others(self, index: int) -> set[int]:
        return set(range(len(self.query.ranges))) - {index}

    def _locks(self, index: int) -> bool:
        """Tell whether reading a range locks what is read of it: rows to be changed, or named by a locking clause."""
        mark = self.marks.get(index)
        return ROW_ID in self.needed[index] if mark is None else mark.wait != "skip"

    def _carried(self, unit: FromItem, conjuncts: Sequence[Expr], bound: AbstractSet[int]) -> bool:
        """Tell whether an outer join preserves a range that is reached by key from what is joined already.

        A, (B LEFT JOIN C) is then (A, B) LEFT JOIN C.
        """
        if not bound:
            return False
        while isinstance(unit, Join) and unit.kind in (JoinKind.LEFT, JoinKind.RIGHT):
            unit = unit.left if unit.kind is JoinKind.LEFT else unit.right
        if not isinstance(unit, RangeRef):
            return False
        mine = [c for c in conjuncts if unit.range in (used := ranges_used(c)) and used & bound]
        item = self.query.ranges[unit.range]
        if not mine or not isinstance(item, RelationRange):
            return False
        if item.virtual:
            use = self._virtual_use(unit.range, conjuncts, bound)
            return use is not None and bool(ranges_used(use[1]))
        access = self._access(unit.range, conjuncts, bound)
        return access is not None and access.bounded and any(map(ranges_used, access.keys))

    # -- one range

    def _access(self, index: int, conjuncts: Sequence[Expr], bound: AbstractSet[int]) -> Access | None:
        item = self.query.ranges[index]
        if not isinstance(item, RelationRange):
            return None
        relation = self.planning.catalog.relation_by_oid(item.oid)
        if relation is None or item.sample is not None:
            return None
        catalog = self.planning.catalog
        conjuncts = [*self.guards[index], *conjuncts]
        found = find(index, relation, catalog, conjuncts, bound)
        if found is None or found.score > 3:
            found = (
                find_inverted(index, relation, catalog, conjuncts, bound)
                or find_intervals(index, relation, catalog, conjuncts, bound)
                or found
            )
        return found

    def _virtual_use(
        self, index: int, conjuncts: Sequence[Expr], bound: AbstractSet[int]
    ) -> tuple[int, Expr, bool] | None:
        """Return (attnum, value or array, is array) for a catalog relation reached by one column."""
        item = self.query.ranges[index]
        if not isinstance(item, RelationRange) or item.sample is not None:
            return None
        names = {c.attnum: c for c in item.columns}
        best: tuple[int, Expr, bool] | None = None
        lowest = 9
        for attnum, use in column_uses(index, conjuncts, bound).items():
            value = use.equal if use.equal is not None else use.members
            if value is None or has_sublink(value):
                continue
            rank = catalog_rank(item.oid, names[attnum])
            if rank < lowest:
                lowest, best = rank, (attnum, value, use.equal is None)
        return best

    def _source(
        self, index: int, conjuncts: list[Expr], bound: AbstractSet[int], outer: Layout
    ) -> tuple[Source, list[Expr]]:
        """Return the source of a range given the ranges joined so far, and the conjuncts not used by it."""
        item = self.query.ranges[index]
        needed = sorted(self.needed[index])
        source: Source
        if isinstance(item, RelationRange) and not item.virtual:
            stored: TableScan | IndexSource
            relation = self.planning.catalog.relation_by_oid(item.oid)
            if relation is None:
                raise LookupError(f"relation {item.oid} is not in the catalog")
            ordered = self.ordered
            access = self._access(index, conjuncts, bound) if ordered is None else ordered.access
            counts = None
            if ordered is None and access is not None and self.found.around is None:
                counts = enough(self.query, access, conjuncts)
                if counts is not None:
                    access = replace(access, limited=is_small(counts))
            mark = self.marks.get(index)
            self.planning.note(item, relation.oid, access, peeked=mark is not None and mark.wait == "skip")
            if item.sample is not None:
                stored = SampleScan(item, item.sample, relation, index, needed, self.narrow, self._empty())
            elif access is None:
                stored = TableScan(item, relation, index, needed, self.narrow)
            elif access.kind == "rows":
                tids = [*access.keys, *(b[0] for b in (access.lower, access.upper) if b)]
                dependent = any(ranges_used(tid) for tid in tids)
                around = outer if dependent else self._empty()
                stored = CtidScan(item, relation, index, needed, self.narrow, access, around)
                stored.dependent = dependent
                if access.keys:
                    served_by = {id(s) for s in access.served}
                    conjuncts = [c for c in conjuncts if id(c) not in served_by]
            elif access.kind in ("entries", "intervals"):
                dependent = bool(ranges_used(access.keys[0]))
                around = outer if dependent else self._empty()
                make = EntriesScan if access.kind == "entries" else IntervalScan
                candidates: CandidateScan = make(item, relation, index, needed, self.narrow, access, around)
                self.planning.candidates.append(candidates)
                stored = candidates
                stored.dependent = dependent
            else:
                keys: list[Any] = [*access.keys, *(b[0] for b in (access.lower, access.upper) if b)]
                dependent = any(ranges_used(k) for k in keys)
                keyed = IndexSource(
                    item, relation, index, needed, self.narrow, access, outer if dependent else self._empty()
                )
                keyed.dependent = dependent
                if ordered is not None:
                    keyed.reverse = ordered.reverse
                    keyed.counts = compile_row(ordered.counts, self._empty())
                    self.found.ordered.append(keyed)
                elif counts is not None:
                    keyed.enough = compile_row(counts, self._empty())
                stored = keyed
                served_by = {id(s) for s in access.served}
                conjuncts = [c for c in conjuncts if id(c) not in served_by]
            if mark is not None:
                stored.reading = reading_for(mark)
                if isinstance(stored, TableScan) and mark.wait != "skip":
                    stored.scouts = True
                    self.found.scouts.append(stored)
            source = stored
        elif isinstance(item, RelationRange):
            use = self._virtual_use(index, conjuncts, bound)
            if item.sample is not None:
                if item.oid in LARGE_OBJECT_RELATIONS:
                    raise not_supported(f"TABLESAMPLE of {item.name}")
                source = VirtualSample(item, item.sample, index, needed, self.narrow_catalog, self._empty())
            elif item.oid in LARGE_OBJECT_RELATIONS and (use is None or use[0] != NUMBER):
                source = LargeObjectSource(
                    item, index, needed, self.narrow_catalog, None, False, self._empty()
                )
            elif use is None:
                source = VirtualScan(item, index, needed, self.narrow_catalog)
            else:
                attnum, value, is_list = use
                dependent = bool(ranges_used(value))
                around = outer if dependent else self._empty()
                if item.oid in LARGE_OBJECT_RELATIONS:
                    source = LargeObjectSource(
                        item, index, needed, self.narrow_catalog, value, is_list, around
                    )
                else:
                    source = VirtualLookup(
                        item, index, needed, self.narrow_catalog, attnum, value, is_list, around
                    )
                source.dependent = dependent
                found = column_uses(index, conjuncts, bound)[attnum]
                served = found.sources["in" if is_list else "="]
                conjuncts = [c for c in conjuncts if c is not served]
        elif isinstance(item, FunctionRange):
            dependent = bool(ranges_used(item.functions))
            source = FunctionSource(item, index, needed, outer if dependent else self._empty())
            source.dependent = dependent
        elif isinstance(item, SubqueryRange) and item.parent:
            source, conjuncts = self._partitions(index, item, conjuncts, bound, outer)
        elif isinstance(item, SubqueryRange):
            lateral = bool(ranges_used(item.query, 0)) if item.lateral else False
            inner = outer if lateral else self._empty()
            if not item.barrier:
                query, conjuncts = pushed_down(item.query, index, conjuncts)
                item = replace(item, query=query)
            plan = self.planning.query(without_unused(item.query, needed), inner)
            source = SubquerySource(item, index, needed, plan, lateral=lateral, keyed=True)
        elif isinstance(item, CteRange):
            source = CteSource(item, index, needed)
        elif isinstance(item, StepRange):
            source = StepSource(item, index, needed)
        else:
            raise not_supported(f"{type(item).__name__} in FROM")
        own = Layout(columns=source.columns, outer=self.outer, subplan=self.planning.sublink)
        source.guards = tuple(self.guards[index])
        mine = [c for c in conjuncts if ranges_used(c) == {index} and not is_volatile(c)]
        applied = {id(c) for c in mine}
        rest = [c for c in conjuncts if id(c) not in applied]
        implied = [said for c in rest if (said := implied_by_or(c, index)) is not None]
        source.restrict([*mine, *implied], own)
        if self.query.in_turn != "found" and (self.ordered is not None or not self.query.order):
            source.in_turn = self.query.in_turn
        source.number, source.conjuncts = index, (*source.guards, *mine, *implied)
        return source, rest

    def _partitions(
        self,
        index: int,
        item: SubqueryRange,
        conjuncts: list[Expr],
        bound: AbstractSet[int],
        outer: Layout,
    ) -> tuple[Source, list[Expr]]:
        """Return the source of a partitioned table, as ``_source`` does."""
        catalog = self.planning.catalog
        keys = keys_from_outside(arms_of(item.query), index, conjuncts, bound, catalog)
        gate = gate_of(item, index, conjuncts, bound if keys else frozenset(), catalog)
        in_all = len(conjuncts) == len(conjuncts_of(self.query.where))
        query, rest = pushed_down(item.query, index, [c for c in conjuncts if not any(c is k for k in keys)])
        around = self.query if in_all and not rest and reads_ahead(self.query) else None
        parts = Parts(around, self.found.scouts, self.found.ordered)
        layout = outer if keys else self._empty()
        arms = [narrowed(arm, index, keys) for arm in arms_of(query)]
        plans = [plan for arm in arms for plan in plans_of(self.planning, arm, layout, parts)]
        needed = sorted(self.needed[index])
        source = PartitionsSource(item, index, needed, plans, gate, layout, dependent=bool(keys))
        self.planning.partitioned.append(source)
        return source, rest

    # -- joining

    def _add(
        self, node: Node | None, bound: set[int], unit: FromItem, conjuncts: list[Expr]
    ) -> tuple[Node, list[Expr]]:
        """Join ``unit`` to ``node``; return the node and the conjuncts left."""
        if isinstance(unit, RangeRef):
            layout = node.layout if node is not None else self._empty()
            source, rest = self._source(unit.range, conjuncts, bound, layout)
            if node is None:
                own = Layout(columns=source.columns, outer=self.outer, subplan=self.planning.sublink)
                return SourceNode(source, own), rest
            if source.dependent:
                return _dependent(node, source, JoinKind.INNER, ()), rest
            own = Layout(columns=source.columns, outer=self.outer, subplan=self.planning.sublink)
            return self._tie(
                node, bound, SourceNode(source, own), {unit.range}, JoinKind.INNER, rest, keep=True
            )
        if node is not None and (self._lateral_needs(unit) or self._carried(unit, conjuncts, bound)):
            return self._outer_join(unit, conjuncts, bound, node)
        right, rest = self._outer_join(unit, conjuncts, bound, None)
        if node is None:
            return right, rest
        return self._tie(node, bound, right, ranges_of(unit), JoinKind.INNER, rest, keep=True)

    def _tie(
        self,
        left: Node,
        left_ranges: AbstractSet[int],
        right: Node,
        right_ranges: AbstractSet[int],
        kind: JoinKind,
        conjuncts: list[Expr],
        *,
        keep: bool,
    ) -> tuple[Node, list[Expr]]:
        """Join two nodes by hash if a conjunct equates them, else by pairs.

        With ``keep`` conjuncts that are not used come back; else all of them are the join's condition.
        """
        pairs: list[tuple[Expr, Expr]] = []
        rest: list[Expr] = []
        for c in conjuncts:
            found = hash_keys(c, left_ranges, right_ranges)
            if found is not None and not has_sublink(c):
                pairs.append(found)
            else:
                rest.append(c)
        tests = [] if keep else rest
        if pairs:
            node: Node = HashJoin(left, right, kind, [a for a, _ in pairs], [b for _, b in pairs], tests)
        else:
            node = LoopJoin(left, right, kind, tests)
        return node, rest if keep else []

    def _outer_join(
        self, join: FromItem, conjuncts: list[Expr], bound: AbstractSet[int], base: Node | None
    ) -> tuple[Node, list[Expr]]:
        """Plan an outer join; WHERE conjuncts about its preserved side alone go below it.

        With a ``base`` (the ranges ``bound``) the result includes it: A, (B LEFT JOIN C) is planned as
        (A, B) LEFT JOIN C where B refers to A.
        """
        if base is not None and isinstance(join, RangeRef):
            return self._add(base, set(bound), join, conjuncts)
        if base is not None and isinstance(join, Join) and join.kind is JoinKind.INNER:
            node, conjuncts = self._outer_join(join.left, [*conjuncts, *conjuncts_of(join.on)], bound, base)
            bound = bound | ranges_of(join.left)
            return self._outer_join(join.right, conjuncts, bound, node)
        if isinstance(join, RangeRef) or join.kind is JoinKind.INNER:
            units, pool = self._flatten([join])
            inside = ranges_of(join)
            mine = [c for c in conjuncts if ranges_used(c) and ranges_used(c) <= inside]
            node, left = self._join_units(units, pool + mine)
            if left:
                node = Filter(node, left)
            applied = {id(m) for m in mine}
            return node, [c for c in conjuncts if id(c) not in applied]
        if self._lateral_needs(join) and base is None:
            raise not_supported("LATERAL below an outer join that refers to what stands outside of it")
        kind, left_item, right_item = join.kind, join.left, join.right
        if kind is JoinKind.RIGHT:
            kind, left_item, right_item = JoinKind.LEFT, join.right, join.left
        on = conjuncts_of(join.on)
        left_ranges, right_ranges = ranges_of(left_item), ranges_of(right_item)
        if base is not None and (kind is JoinKind.FULL or self._lateral_needs(right_item) - left_ranges):
            raise not_supported("LATERAL below this outer join that refers to what stands outside of it")
        if kind is JoinKind.FULL:
            left_node, _ = self._outer_join(left_item, [], set(), None)
            right_node, _ = self._outer_join(right_item, [], set(), None)
            return self._tie(left_node, left_ranges, right_node, right_ranges, kind, on, keep=False)[
                0
            ], conjuncts
        left_node, conjuncts = self._outer_join(left_item, conjuncts, bound, base)
        if base is not None:
            left_ranges = left_ranges | bound
            ready = [c for c in conjuncts if ranges_used(c) <= left_ranges and not is_volatile(c)]
            if ready:
                left_node = Filter(left_node, ready)
                conjuncts = [c for c in conjuncts if not any(c is done for done in ready)]
        fixed = [c for c in on if is_fixed(c)]  # where they are not met, nothing of the right side is read
        if isinstance(right_item, RangeRef):
            # conditions on the right side alone filter it before the join, as do lookups by the left row
            source, rest = self._source(right_item.range, on, left_ranges, left_node.layout)
            rest = _without(rest, fixed)
            if source.dependent:
                return _dependent(left_node, source, JoinKind.LEFT, rest, fixed), conjuncts
            own = Layout(columns=source.columns, outer=self.outer, subplan=self.planning.sublink)
            right_node = SourceNode(source, own)
            if fixed:
                right_node = OneTime(right_node, fixed)
            return self._tie(left_node, left_ranges, right_node, right_ranges, kind, rest, keep=False)[
                0
            ], conjuncts
        below = [c for c in on if ranges_used(c) and ranges_used(c) <= right_ranges and not is_volatile(c)]
        right_node, unused = self._outer_join(right_item, list(below), set(), None)
        given = {id(b) for b in below}
        on = [c for c in on if id(c) not in given] + unused
        if fixed:
            right_node, on = OneTime(right_node, fixed), _without(on, fixed)
        return self._tie(left_node, left_ranges, right_node, right_ranges, kind, on, keep=False)[0], conjuncts
