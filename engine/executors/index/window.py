"""Window functions: partitions, frames of every mode with exclusion, windowed aggregates.

All input rows are kept. Per window they are sorted by partition and order; each function writes one value per row:

    partition   |  peers  |    frame of row i: positions [start, end) minus what is excluded
    a a a b b b b c                ROWS counts rows, GROUPS counts peer groups, RANGE compares order values

An aggregate whose frame starts at the partition's start and has no exclusion is accumulated once; other frames are
computed row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from engine.executors.index.aggregate import aggregate_row
from engine.executors.index.nodes import Node
from engine.executors.index.own_aggregate import Steps
from engine.executors.index.own_window import over_frames, steps_over
from engine.executors.index.sorting import OrderItem, compare_key, sort_rows
from engine.executors.index.state import BATCH, Item, Pipe, Rows, evaluate, evaluate_rows, gather
from pgwire.give_way import PACE, give_way, paced
from pgwire.release import release
from planner.base.errors import SqlError, not_supported
from planner.evaluate import Env, Layout, compile_map, compile_row
from planner.evaluate.aggregates import state_maker
from planner.functions import load
from planner.query import Expr, FrameBound, SortBy, Window, WindowFunc
from planner.query.exprs import aggregate_name
from planner.query.guards import under_filter


class Partition:
    """Sorted work rows of one partition with their peer groups."""

    def __init__(self, rows: Rows, order: Sequence[OrderItem]) -> None:
        self.rows = rows
        n = len(rows)
        self.group_of = [0] * n
        self.groups: list[tuple[int, int]] = []
        if not order:
            self.groups = [(0, n)]
            return
        peers = compare_key(order)
        start = 0
        last = peers(rows[0])
        for i in paced(range(1, n)):
            key = peers(rows[i])
            if key != last:
                self.groups.append((start, i))
                start, last = i, key
            self.group_of[i] = len(self.groups)
        self.groups.append((start, n))


Bound = Callable[[Partition, int], int]


def _search(low: int, high: int, true_from: Callable[[int], bool]) -> int:
    """Return the first position in [low, high) from which the predicate is true."""
    while low < high:
        middle = (low + high) // 2
        if true_from(middle):
            high = middle
        else:
            low = middle + 1
    return low


class Frames:
    """The frame of each row of a partition."""

    def __init__(self, window: Window, order: Sequence[OrderItem], start: Any, end: Any, e: Env) -> None:
        self.window = window
        self.order = order
        self.start_offset = self._offset(window.start, start, "starting")
        self.end_offset = self._offset(window.end, end, "ending")
        self.in_range: Callable[..., bool] | None = None
        if window.in_range:
            row = load().functions.get(window.in_range)
            if row is None or row.python is None:
                raise not_supported("RANGE with an offset of this type")
            form = row.python
            session = e.session
            self.in_range = (lambda *args: form(session, *args)) if row.needs_session else form
        self.from_start = window.start.kind == "unbounded_preceding"

    def _offset(self, bound: FrameBound, value: Any, which: str) -> Any:
        if bound.offset is None:
            return None
        if value is None:
            raise SqlError("22004", f"frame {which} offset must not be null")
        if self.window.mode != "range" and value < 0:
            raise SqlError("22013", f"frame {which} offset must not be negative")
        return value

    def bounds(self, p: Partition, i: int) -> tuple[int, int]:
        """Return [start, end) of row ``i``, before exclusion."""
        start = self._bound(p, i, self.window.start.kind, self.start_offset, True)
        end = self._bound(p, i, self.window.end.kind, self.end_offset, False)
        return start, max(start, end)

    def _bound(self, p: Partition, i: int, kind: str, offset: Any, is_start: bool) -> int:
        n = len(p.rows)
        if kind == "unbounded_preceding":
            return 0
        if kind == "unbounded_following":
            return n
        mode = self.window.mode
        if kind == "current":
            if mode == "rows":
                return i if is_start else i + 1
            return p.groups[p.group_of[i]][0 if is_start else 1]
        sign = -1 if kind == "preceding" else 1
        if mode == "rows":
            return int(min(max(i + sign * offset + (0 if is_start else 1), 0), n))
        if mode == "groups":
            g = int(p.group_of[i] + sign * offset)
            if g < 0:
                return 0
            if g >= len(p.groups):
                return n
            return p.groups[g][0 if is_start else 1]
        return self._by_value(p, i, kind == "preceding", offset, is_start)

    def _by_value(self, p: Partition, i: int, preceding: bool, offset: Any, is_start: bool) -> int:
        position, _, descending, _ = self.order[0]
        base = p.rows[i][position]
        if base is None:
            return p.groups[p.group_of[i]][0 if is_start else 1]
        test = self.in_range
        if test is None:
            raise LookupError("RANGE with an offset needs in_range")
        low, high = 0, len(p.rows)
        while low < high and p.rows[low][position] is None:
            low = p.groups[p.group_of[low]][1]
        while high > low and p.rows[high - 1][position] is None:
            high = p.groups[p.group_of[high - 1]][0]
        sub = preceding != descending
        less = (not is_start) != descending
        if is_start:
            return _search(low, high, lambda j: test(p.rows[j][position], base, offset, sub, less))
        return _search(low, high, lambda j: not test(p.rows[j][position], base, offset, sub, less))

    def positions(self, p: Partition, i: int) -> list[int] | range:
        """Return the positions in the frame of row ``i``, exclusion applied."""
        start, end = self.bounds(p, i)
        exclude = self.window.exclude
        if exclude == "none":
            return range(start, end)
        if exclude == "current":
            return [j for j in paced(range(start, end)) if j != i]
        first, after = p.groups[p.group_of[i]]
        keep_self = exclude == "ties"
        return [j for j in paced(range(start, end)) if not first <= j < after or (keep_self and j == i)]


class Function:
    """One window function: its inputs in a work row, and how it fills the results of a partition."""

    def __init__(self, call: WindowFunc, window: Window, add: Callable[[Expr], int]) -> None:
        self.call = call
        self.name = aggregate_name(call)
        self.positions = [add(under_filter(x, call.filter)) for x in call.args]
        self.filter = add(call.filter) if call.filter is not None else -1
        self.own: Steps | None = None
        own = call.own
        if own is not None and own.steps is not None:
            chosen = steps_over(call, own.steps, own.moving, window)
            self.own = Steps(chosen, len(call.args))
        elif call.is_aggregate:
            row = aggregate_row(own.stands_for if own is not None else call.proc)
            self.skip_nulls = row.skip_nulls and not call.star
            self.make = state_maker(row, tuple(x.type.oid for x in call.args))
        elif self.name not in _FUNCTIONS:
            raise not_supported(f"window function {self.name}", span=call.span)

    def fill(self, p: Partition, frames: Frames, e: Env) -> list[Any]:
        """Return one value per row of the partition."""
        if self.call.is_aggregate:
            return self._aggregate(p, frames, e)
        return _FUNCTIONS[self.name](p, frames, self.positions)

    def fill_own(self, p: Partition, frames: Frames, e: Env) -> Generator[Item, None, list[Any]]:
        """As ``fill``, for a user's aggregate."""
        if self.own is None:
            raise AssertionError("the window function is no user's aggregate")
        test, positions = self.filter, self.positions
        rows = [
            None if test >= 0 and row[test] is not True else tuple([row[x] for x in positions])
            for row in paced(p.rows)
        ]
        whole = frames.window.exclude == "none"

        def frame(i: int) -> Sequence[int]:
            return range(*frames.bounds(p, i)) if whole else frames.positions(p, i)

        return (yield from over_frames(self.own, rows, frame, whole, e))

    def _step(self, state: Any, row: tuple[Any, ...]) -> None:
        if self.filter >= 0 and row[self.filter] is not True:
            return
        values = [row[x] for x in self.positions]
        if self.skip_nulls and None in values:
            return
        state.step(*values)

    def _aggregate(self, p: Partition, frames: Frames, e: Env) -> list[Any]:
        out: list[Any] = []
        if frames.from_start and frames.window.exclude == "none":
            state = self.make(e, None)
            done = 0
            result: Any = state.result()
            for i in paced(range(len(p.rows)), 16):
                _, end = frames.bounds(p, i)
                if end > done:
                    for row in paced(p.rows[done:end], 16):
                        self._step(state, row)
                    done = end
                    result = state.result()
                out.append(result)
            return out
        last: Any = None
        for i in range(len(p.rows)):
            give_way()
            positions = frames.positions(p, i)
            if positions != last:
                state = self.make(e, None)
                for j in paced(positions, 16):
                    self._step(state, p.rows[j])
                result = state.result()
                last = positions
            out.append(result)
        return out


Fill = Callable[[Partition, Frames, list[int]], list[Any]]


def _row_number(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    return list(range(1, len(p.rows) + 1))


def _rank(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    return [p.groups[g][0] + 1 for g in p.group_of]


def _dense_rank(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    return [g + 1 for g in p.group_of]


def _percent_rank(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    n = len(p.rows)
    return [p.groups[g][0] / (n - 1) if n > 1 else 0.0 for g in p.group_of]


def _cume_dist(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    n = len(p.rows)
    return [p.groups[g][1] / n for g in p.group_of]


def _ntile(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    n = len(p.rows)
    # The first row that tells a number tells it for all that follow; those before it are in no bucket, and yet counted.
    begins = next((i for i, row in enumerate(paced(p.rows)) if row[args[0]] is not None), n)
    if begins == n:
        return [None] * n
    buckets = p.rows[begins][args[0]]
    if buckets <= 0:
        raise SqlError("22014", "argument of ntile must be greater than zero")
    size, extra = divmod(n, buckets)
    out: list[Any] = [None] * begins
    bucket = 0
    while len(out) < n:
        give_way()
        bucket += 1
        out.extend([bucket] * (size + (bucket <= extra)))
    return out[:n]


def _shifted(direction: int) -> Fill:
    def fill(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
        out: list[Any] = []
        n = len(p.rows)
        for i, row in enumerate(paced(p.rows)):
            offset = row[args[1]] if len(args) > 1 else 1
            if offset is None:
                out.append(None)
                continue
            j = i + direction * offset
            if 0 <= j < n:
                out.append(p.rows[j][args[0]])
            else:
                out.append(row[args[2]] if len(args) > 2 else None)
        return out

    return fill


def _first_value(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    out = []
    for i in paced(range(len(p.rows)), 16):
        positions = frames.positions(p, i)
        out.append(p.rows[positions[0]][args[0]] if positions else None)
    return out


def _last_value(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    out = []
    for i in paced(range(len(p.rows)), 16):
        positions = frames.positions(p, i)
        out.append(p.rows[positions[-1]][args[0]] if positions else None)
    return out


def _nth_value(p: Partition, frames: Frames, args: list[int]) -> list[Any]:
    out: list[Any] = []
    for i, row in enumerate(paced(p.rows, 16)):
        nth = row[args[1]]
        if nth is None:
            out.append(None)
            continue
        if nth <= 0:
            raise SqlError("22016", "argument of nth_value must be greater than zero")
        positions = frames.positions(p, i)
        out.append(p.rows[positions[nth - 1]][args[0]] if len(positions) >= nth else None)
    return out


_FUNCTIONS: dict[str, Fill] = {
    "row_number": _row_number, "rank": _rank, "dense_rank": _dense_rank, "percent_rank": _percent_rank,
    "cume_dist": _cume_dist, "ntile": _ntile, "lag": _shifted(-1), "lead": _shifted(1),
    "first_value": _first_value, "last_value": _last_value, "nth_value": _nth_value,
}  # fmt: skip


Plan = tuple[Window, list[OrderItem], list[OrderItem], list[tuple[int, Function]], Any]
"""A window: what rows are divided by, their order, its functions by their numbers, and what its offsets are."""


class WindowNode(Node):
    """Appends the values of window functions to each row; rows come out in the last window's order."""

    def __init__(self, child: Node, windows: Sequence[Window], calls: Sequence[WindowFunc]) -> None:
        base = child.width
        layout = Layout(
            columns=child.layout.columns,
            exprs={**child.layout.exprs, **{c: base + i for i, c in enumerate(calls)}},
            outer=child.layout.outer,
            subplan=child.layout.subplan,
        )
        super().__init__(layout, base + len(calls), child)
        self.calls = list(calls)
        exprs: list[Expr] = []

        def add(expr: Expr) -> int:
            exprs.append(expr)
            return len(exprs)  # position 0 of a work row holds the row's number

        def item(s: SortBy) -> OrderItem:
            return add(s.expr), s.expr.type.oid, s.descending, s.nulls_first

        self.plans: list[Plan] = []
        for number, window in enumerate(windows):
            mine = [(i, c) for i, c in enumerate(calls) if c.window == number]
            if not mine:
                continue
            partition = [item(s) for s in window.partition]
            order = [item(s) for s in window.order]
            functions = [(i, Function(c, window, add)) for i, c in mine]
            empty = Layout(outer=child.layout.outer, subplan=child.layout.subplan)
            offsets = compile_row(
                [b.offset for b in (window.start, window.end) if b.offset is not None], empty
            )
            self.plans.append((window, partition, order, functions, offsets))
        self.work = compile_map(exprs, child.layout)

    def pipe(self, e: Env) -> Pipe:
        """Collect all rows, compute, give out."""
        rows = yield from gather(self.inputs[0].pipe(e))
        work: Rows = []
        results: list[list[Any]] = []
        ordered = work
        try:
            if not rows:
                return
            for at in range(0, len(rows), BATCH):
                mapped = yield from evaluate_rows(self.work, rows[at : at + BATCH], e)
                work += [(number, *values) for number, values in enumerate(mapped, at)]
                yield None
            for _ in paced(self.calls, 1):
                results.append([None] * len(rows))
            for plan in self.plans:
                before, ordered = ordered, (yield from self._computed(plan, ordered, results, e))
                release(before)
            out: Rows = []
            for row in ordered:
                number = row[0]
                out.append((*rows[number], *[column[number] for column in results]))
                if len(out) >= BATCH:
                    yield out
                    out = []
            if out:
                yield out
        finally:
            release(rows, work, ordered, *results)

    def _computed(
        self, plan: Plan, rows: Rows, results: list[list[Any]], e: Env
    ) -> Generator[Item, None, Rows]:
        """Put the values of one window's functions into ``results``, by row; return the work rows in its order."""
        window, partition, order, functions, offset_row = plan
        got = (yield from evaluate(offset_row, (), e)) if offset_row.may_suspend else offset_row((), e)
        values = iter(got)
        start = next(values) if window.start.offset is not None else None
        end = next(values) if window.end.offset is not None else None
        frames = Frames(window, order, start, end, e)
        ordered = sort_rows(list(rows), [*partition, *order])
        yield None
        same = compare_key(partition)
        first = 0
        while first < len(ordered):
            key = same(ordered[first])
            last = first + 1
            while last < len(ordered) and same(ordered[last]) == key:
                last += 1
                if not last % PACE:
                    give_way()
            part = Partition(ordered[first:last], order)
            for i, function in functions:
                column = results[i]
                if function.own is not None:
                    filled = yield from function.fill_own(part, frames, e)
                else:
                    filled = function.fill(part, frames, e)
                for row, value in zip(paced(part.rows), filled, strict=True):
                    column[row[0]] = value
                release(filled)
            release(part.rows, part.group_of, part.groups)
            first = last
            yield None
        return ordered
