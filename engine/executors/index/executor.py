"""The row executor: compiles Query trees to pipelines and runs them.

    prepare   Query tree -> IndexPlan (cached with the statement's plan)
    run       IndexPlan -> ReadyRows when nothing has to be waited for, else a RowStream

The point read ``SELECT c FROM t WHERE key = $1`` has a path of its own (``PointPlan``): one lookup, one projection, no
generators (bench: pgbench -S).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from engine.base.executor import ExecContext, Result
from engine.base.explain.texts import Texts
from engine.base.explain.tree import PlanNode
from engine.base.loop.strands import turn
from engine.base.rows import ReadyRows, RowBatch, RowStream
from engine.executors.index.access.candidates import CandidateScan
from engine.executors.index.described import Describer
from engine.executors.index.joins import DependentJoin, LoopJoin
from engine.executors.index.measured import measure
from engine.executors.index.nodes import Filter, Node, OneRow, Project
from engine.executors.index.one_time import OneTime
from engine.executors.index.partitions import PartitionsSource
from engine.executors.index.plan import Planning, RangeAccess
from engine.executors.index.sources import FIRST_ROWS, IndexSource, Part, SourceNode
from engine.executors.index.state import BATCH, ExecState, Rows, abandon, drive, poll, run_ready
from pgwire.give_way import openly
from planner.catalog import Catalog
from planner.evaluate import Env, RowFunction
from planner.evaluate.short import is_short
from planner.query import OutputColumn, QueryExpr, SubLink
from planner.query.walk import walk

FINISHED_AT_ONCE = 4 * BATCH  # rows that a point read gives in one turn


@dataclass(slots=True)
class IndexPlan:
    """A compiled query.

    ``access``: how each stored table is reached. ``is_small``: every stored table is reached by key or by a
    bounded range, so the row executor is the right one whatever the tables' size, unless one of
    ``candidates`` says that it ``scans``. ``pairs``: some join, or a sub-select in an expression, may look at
    each pair of rows. ``in_turn``: rows are computed as they are asked for (``Select.in_turn``).
    """

    columns: tuple[OutputColumn, ...]
    root: Node
    access: tuple[RangeAccess, ...]
    is_small: bool
    candidates: tuple[CandidateScan, ...] = ()
    point: PointPlan | None = None
    partitioned: tuple[PartitionsSource, ...] = ()
    pairs: bool = True
    subplans: tuple[tuple[SubLink, Node], ...] = ()
    in_turn: Literal["", "found", "asked", "fetched"] = ""

    @property
    def partitions(self) -> int:
        """How many partitions are in it."""
        return sum(len(source.plans) for source in self.partitioned)

    @property
    def tables(self) -> int:
        """How many tables it reads, as often as they are named; one that is partitioned is one."""
        return len(self.access) - self.partitions + len(self.partitioned)

    def left_out(self, params: Sequence[Any]) -> AbstractSet[int]:
        """Return the partitions, by oid, that no part of an execution with these parameters will read."""
        passed = [found for source in self.partitioned if (found := source.passed_by(params))]
        if not passed:
            return frozenset()
        if len(self.partitioned) == 1 and len(self.access) == self.partitions:
            return passed[0]  # nothing else may read them
        times = Counter(oid for found in passed for oid in found)
        read = Counter(access.table for access in self.access)  # in all parts of the query
        return frozenset(oid for oid, count in times.items() if count == read[oid])


@dataclass(slots=True)
class PointPlan:
    """One index lookup, or one empty row where nothing is read (``SELECT 1``), an optional filter, a projection.

    ``short``: all it computes takes no time worth naming, so that it need not be open for giving way
    (``planner.evaluate.short``).
    """

    source: IndexSource | None
    filters: tuple[RowFunction, ...]
    project: RowFunction
    short: bool
    direct: IndexSource | None = field(init=False)
    """The lookup, where it is short, never made in parts, and its rows come as they are found."""
    single: bool = field(init=False)
    """Such a lookup that finds one row at most."""

    def __post_init__(self) -> None:
        source = self.source
        in_order = source is not None and source.following is None and not source.ranged
        told = source is not None and source.tells_xmin
        self.direct = source if self.short and in_order and not told else None
        self.single = self.direct is not None and self.direct.access.unique

    def finish(self, rows: Rows, env: Env) -> Rows:
        """Return what becomes of the rows that were found."""
        for test in self.filters:
            rows = test(rows, env)
        done: Rows = self.project(rows, env)
        return done


class IndexExecutor:
    """The executor ``index`` (``engine.base.executor.Executor``)."""

    name = "index"

    def prepare(self, query: QueryExpr, catalog: Catalog) -> IndexPlan:
        """Compile ``query``. Raises SqlError 0A000 for what has no Python form."""
        planning = Planning(catalog)
        root = planning.query(query, None)
        subplans = tuple(planning.subplans)
        access = tuple(planning.accesses)
        small = all(a.bounded for a in access)
        plan = IndexPlan(
            query.columns,
            root,
            access,
            small,
            tuple(planning.candidates),
            _point_plan(root, is_short(query)),
            tuple(planning.partitioned),
            _by_pairs(root, query) if planning.partitioned else True,
            subplans,
            query.in_turn,
        )
        planning.end()
        return plan

    def run(self, plan: IndexPlan, ctx: ExecContext) -> Result | Awaitable[Result]:
        """Run: at once where possible, else as a stream."""
        state = ExecState(ctx)
        env = Env(ctx.params, ctx.session, (), None, state)
        point = plan.point
        rows: Rows
        if point is not None and (not plan.in_turn or (plan.in_turn != "found" and point.single)):
            source = point.direct
            if source is not None:
                found = source.request((), env, ctx)
                if type(found) is list or not isinstance(found, Awaitable):  # a list it is nearly always
                    rows = point.finish(source.extract(found), env) if found else []
                    return ReadyRows(plan.columns, rows)
                return self._point_later(plan, point, found, env)
            if point.source is None:
                rows = point.finish([()], env) if point.short else openly(point.finish, [()], env)
                return ReadyRows(plan.columns, rows)
            source = point.source
            request = source.request
            if source.following is None or not source.in_parts(ctx):
                found = request((), env, ctx) if point.short else openly(request, (), env, ctx)
                if not isinstance(found, Awaitable):
                    return ReadyRows(plan.columns, _finish(point, found, env))
                return self._point_later(plan, point, found, env)
            found = openly(request, (), env, ctx, part=Part(None, FIRST_ROWS))
            if isinstance(found, Awaitable):
                return self._range_later(plan, point, found, env)
            if len(found) < FIRST_ROWS:
                return ReadyRows(plan.columns, _finish(point, found, env))
        return self._piped(plan, env)

    def _piped(self, plan: IndexPlan, env: Env) -> Result:
        pipe = plan.root.pipe(env)
        rows: Rows = []
        state: ExecState = env.shared
        if plan.in_turn:
            batches = drive(pipe, rows, None, state)
            return RowStream(plan.columns, batches, partial(abandon, pipe, None), wanted=state.ctx.wanted)
        finished = True
        try:
            finished, waiting = run_ready(pipe, rows, outermost=True)
        finally:
            if finished:  # or failed
                state.release()
        if finished:
            return ReadyRows(plan.columns, rows)
        batches = drive(pipe, rows, waiting, state)
        return RowStream(plan.columns, batches, partial(abandon, pipe, waiting))

    async def _range_later(
        self, plan: IndexPlan, point: PointPlan, found: Awaitable[Any], env: Env
    ) -> Result:
        rows = await found
        if len(rows) < FIRST_ROWS:
            return ReadyRows(plan.columns, _finish(point, rows, env))
        del rows, found
        return self._piped(plan, env)

    async def _point_later(
        self, plan: IndexPlan, point: PointPlan, found: Awaitable[Any], env: Env
    ) -> Result:
        rows = await found
        if len(rows) <= FINISHED_AT_ONCE:
            return ReadyRows(plan.columns, _finish(point, rows, env))
        return RowStream(plan.columns, _finish_in_slices(point, rows, env))

    def explain(self, plan: IndexPlan, texts: Texts) -> PlanNode:
        """See ``Executor``: every node."""
        texts.has_plans(plan.subplans)
        return Describer(texts).node(plan.root)

    def measure(self, plan: IndexPlan) -> None:
        """See ``Executor``: every node is."""
        plan.point = None
        measure(plan.root, [node for _, node in plan.subplans])

    async def close(self) -> None:
        """It holds nothing."""


def _finish(point: PointPlan, found: Any, env: Env) -> Rows:
    if not found or point.source is None:
        return []
    rows = point.source.extracting(env)(point.source.arranged(found, env.shared.ctx))
    return point.finish(rows, env) if point.short else openly(point.finish, rows, env)


async def _finish_in_slices(point: PointPlan, found: Any, env: Env) -> AsyncIterator[RowBatch]:
    if point.source is not None:
        found = point.source.arranged(found, env.shared.ctx)
    for start in range(0, len(found), BATCH):
        yield RowBatch(rows=_finish(point, found[start : start + BATCH], env))
        poll(env.shared.ctx)
        await turn()


def _by_pairs(root: Node, query: QueryExpr) -> bool:
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, LoopJoin):
            return True
        if isinstance(node, DependentJoin) and not isinstance(node.right, IndexSource | PartitionsSource):
            return True  # LATERAL
        todo += node.inputs
    return any(isinstance(node, SubLink) for node in walk(query))


def _point_plan(root: Node, short: bool) -> PointPlan | None:
    """Return the short path of a plan that is only lookup, or nothing to look up, filters and projection."""
    if not isinstance(root, Project) or root.function.may_suspend:
        return None
    filters: list[RowFunction] = []
    fixed: list[RowFunction] = []
    node = root.inputs[0]
    while isinstance(node, Filter):
        if node.function.may_suspend:
            return None
        (fixed if isinstance(node, OneTime) else filters).append(node.function)
        node = node.inputs[0]
    if isinstance(node, OneRow):
        return PointPlan(None, (*fixed, *reversed(filters)), root.function, short)
    if not isinstance(node, SourceNode) or not isinstance(node.source, IndexSource):
        return None
    source = node.source
    if not source.access.bounded or source.waiting:
        return None
    if source.filter is not None:
        if source.filter.may_suspend:
            return None
        filters.append(source.filter)
    return PointPlan(source, (*fixed, *reversed(filters)), root.function, short)
