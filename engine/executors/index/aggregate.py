"""Grouping: hash aggregation with grouping sets, DISTINCT, FILTER, ordered and hypothetical-set aggregates.

Input rows are mapped once to *work rows*: the grouping expressions, then each aggregate's arguments, order keys and
filter. Each grouping set keeps its groups in first-seen order.

    output row    group values (NULL when not in the set), aggregate results, GROUPING() masks,
                  then columns that depend on the grouped ones (their value in the group's first row)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from engine.executors.index.keyed import KeySet, KeyTable
from engine.executors.index.nodes import Node, chunks, records_among, row_key
from engine.executors.index.own_aggregate import Done, Held, Steps
from engine.executors.index.sorting import OrderItem, compare_key, sort_rows
from engine.executors.index.state import Pipe, Rows, evaluate, evaluate_rows
from pgwire.give_way import give_way, paced
from pgwire.release import LARGE, release, release_all
from planner.base.errors import not_supported
from planner.evaluate import Env, Layout, compile_map, compile_row
from planner.evaluate.aggregates import state_maker
from planner.facts import ANY, facts
from planner.functions import load
from planner.functions.aggregates.ordered import HYPOTHETICAL
from planner.functions.registry import AggregateBuiltin
from planner.functions.values.compare import hash_key, sort_key
from planner.functions.values.record_keys import meet
from planner.query import Aggregate, Expr, GroupingFunc, SortBy, Var
from planner.query.guards import under_filter
from planner.statements.classify import is_volatile


def aggregate_row(proc: int) -> AggregateBuiltin:
    """Return the registry row of an aggregate; 0A000 when it has no Python form."""
    row = load().aggregates.get(proc)
    if row is None or row.python is None:
        label = facts().signature(proc) if proc in facts().procs else f"aggregate {proc}"
        raise not_supported(f"aggregate {label} in the row executor")
    return row


class Call:
    """One aggregate call: where its inputs stand in a work row, and how its state is made."""

    def __init__(self, aggregate: Aggregate, add: Callable[[Expr], int]) -> None:
        self.aggregate = aggregate
        own = aggregate.own
        computed = own is not None and not own.stands_for
        proc = own.stands_for if own is not None and own.stands_for else aggregate.proc
        kind = own.kind if own is not None else facts().aggregates[proc].kind
        name = "" if computed else facts().procs[proc].name
        self.hypothetical = name if kind == "h" and name in HYPOTHETICAL else ""
        inputs: tuple[Expr, ...] = aggregate.args
        if kind in "oh" and aggregate.order:
            inputs = tuple(s.expr for s in aggregate.order)
        condition = aggregate.filter
        self.positions = [add(under_filter(x, condition)) for x in inputs]
        self.types = tuple(x.type.oid for x in inputs)
        self.filter = add(condition) if condition is not None else -1
        ordered = () if computed and kind != "n" else aggregate.order  # it is the aggregate that may sort
        self.order = [_order_item(s, add(under_filter(s.expr, condition))) for s in ordered]
        self.direct = [add(x) for x in aggregate.direct]
        self.has_direct = kind in "oh" and not self.hypothetical
        self.distinct = aggregate.distinct
        self.distinct_key = row_key([x.type for x in inputs], range(len(inputs)))
        self.steps: Steps | None = None
        self.shares = -1  # the call whose state this one looks at, too
        if own is not None and own.steps is not None:
            self.skip_nulls = False
            self.steps = Steps(own.steps, len(inputs), len(self.direct))
            self.buffered = bool(aggregate.distinct or self.order)
            return
        row = aggregate_row(proc)
        self.skip_nulls = row.skip_nulls and not aggregate.star
        self.make = state_maker(row, self.types)
        self.buffered = bool(aggregate.distinct or self.order or self.direct)
        fact = facts().procs[proc]
        if fact.variadic == ANY and not self.hypothetical and len(fact.arg_types) > 1:
            raise not_supported(f"aggregate {fact.name} with variadic arguments")

    def one_state(self, other: Call) -> bool:
        """Tell whether two users' aggregates go on from state to state alike, so that one state serves both."""
        mine, theirs = (c.aggregate.own.steps if c.aggregate.own is not None else None for c in (self, other))
        return (
            mine is not None
            and theirs is not None
            and "w" not in (mine.modify, theirs.modify)
            and (mine.transition, mine.initial, mine.strict)
            == (theirs.transition, theirs.initial, theirs.strict)
            and (self.positions, self.filter, self.order, self.distinct)
            == (other.positions, other.filter, other.order, other.distinct)
            and not is_volatile(replace(self.aggregate, own=None))
        )

    def fresh(self, e: Env) -> Any:
        """Return the state of a new group, None where its rows are kept."""
        if self.buffered:
            return None
        return Held() if self.steps is not None else self.make(e, None)

    def values(self, rows: Rows) -> Rows:
        """Return what rows of a group have for the arguments."""
        if self.filter >= 0:
            test = self.filter
            rows = [row for row in rows if row[test] is True]
        positions = self.positions
        return [tuple([row[p] for p in positions]) for row in rows]

    def kept(self, rows: Rows) -> Iterator[list[Any]]:
        """Yield what the kept rows of a group have for the arguments, in order, each once if it is DISTINCT."""
        own: Rows = []  # not the group's
        seen = KeySet()
        if self.order:
            rows = own = sort_rows(list(rows), self.order)
        elif self.distinct:
            # PostgreSQL sorts to find duplicates, so the values come in order
            items = [(p, t, False, False) for p, t in zip(self.positions, self.types, strict=True)]
            rows = own = sort_rows(list(rows), items)
        new = seen.add_one if self.distinct else None
        try:
            for row in paced(rows, 16):
                values = [row[p] for p in self.positions]
                if self.skip_nulls and None in values:
                    continue
                if new is None or new(self.distinct_key(tuple(values))):
                    yield values
        finally:
            seen.release()
            release(own)

    def feed(self, state: Any, rows: Rows) -> None:
        """Step a state with the rows of one group, at once where the state takes batches."""
        if self.filter >= 0:
            test = self.filter
            rows = [row for row in rows if row[test] is True]
        if len(self.positions) == 1:
            p = self.positions[0]
            values = (
                [row[p] for row in rows if row[p] is not None]
                if self.skip_nulls
                else [row[p] for row in rows]
            )
            if not values:
                return
            many = getattr(state, "many", None)
            if many is not None:
                many(values)
                return
            step = state.step
            for value in paced(values, 16):
                step(value)
            return
        if not self.positions:
            state.many(rows)
            return
        positions = self.positions
        skip = self.skip_nulls
        for row in paced(rows, 16):
            several = [row[p] for p in positions]
            if not (skip and None in several):
                state.step(*several)


def _order_item(item: SortBy, position: int) -> OrderItem:
    return position, item.expr.type.oid, item.descending, item.nulls_first


class Group:
    """A group: its first work row, aggregate states, and rows kept for buffered aggregates."""

    __slots__ = ("buffers", "first", "states")

    def __init__(self, first: tuple[Any, ...], states: list[Any], buffers: list[Rows]) -> None:
        self.first = first
        self.states = states
        self.buffers = buffers


class AggregateNode(Node):
    """GROUP BY and aggregates."""

    def __init__(
        self,
        child: Node,
        group: Sequence[Expr],
        sets: Sequence[tuple[int, ...]] | None,
        aggregates: Sequence[Aggregate],
        groupings: Sequence[GroupingFunc],
        carried: Sequence[Var],
        group_distinct: bool = False,
    ) -> None:
        exprs: list[Expr] = list(group)
        seen: dict[Expr, int] = {}

        def adder() -> Callable[[Expr], int]:
            """Return what places expressions; equal ones are one, volatile ones only within a call, or where
            they are grouped by.
            """
            mine: dict[Expr, int] = {}

            def add(expr: Expr) -> int:
                try:
                    place = seen.get(expr, -1)
                    if place >= len(group) and is_volatile(expr):
                        place = mine.get(expr, -1)
                    if place >= 0:
                        return place
                    seen[expr] = mine[expr] = len(exprs)
                except TypeError:
                    pass
                exprs.append(expr)
                return len(exprs) - 1

            return add

        for i, expr in enumerate(group):
            seen.setdefault(expr, i)
        self.calls = [Call(a, adder()) for a in aggregates]
        own = [(i, call) for i, call in enumerate(self.calls) if call.steps is not None]
        for i, call in own:
            call.shares = next((j for j, other in own if j < i and call.one_state(other)), -1)
        self.carried = list(map(adder(), carried))
        self.group = tuple(group)
        plain = tuple(range(len(group)))
        self.sets = [plain] if sets is None else list(dict.fromkeys(sets)) if group_distinct else list(sets)
        self.always = not group and sets is None
        self.groupings = list(groupings)
        columns: dict[tuple[int, int], int] = {}
        layout_exprs: dict[Expr, int] = {}
        for i, expr in enumerate(group):
            if isinstance(expr, Var) and expr.level == 0:
                columns.setdefault((expr.range, expr.attnum), i)
            else:
                layout_exprs.setdefault(expr, i)
        position = len(group)
        for a in aggregates:
            layout_exprs[a] = position
            position += 1
        for g in groupings:
            layout_exprs[g] = position
            position += 1
        for v in carried:
            columns.setdefault((v.range, v.attnum), position)
            position += 1
        layout = Layout(
            columns=columns, exprs=layout_exprs, outer=child.layout.outer, subplan=child.layout.subplan
        )
        super().__init__(layout, position, child)
        self.whole = not self.group
        self.work = compile_map(exprs, child.layout)
        self.keys = [row_key([group[i].type for i in s], s) for s in self.sets]
        self.records = [records_among([group[i].type for i in s]) for s in self.sets]

    def pipe(self, e: Env) -> Pipe:
        """Collect groups, then finish them."""
        calls = self.calls
        tables = [KeyTable() for _ in self.sets]
        groups: list[list[Group]] = [[] for _ in self.sets]  # as they came
        out: Rows = []
        read = 0
        any_buffered = any(c.buffered for c in calls)
        any_direct = any(c.direct for c in calls)
        any_own = any(c.steps is not None for c in calls)
        work = self.work
        fed = [(i, c) for i, c in enumerate(calls) if c.shares < 0]
        simple = [(i, c) for i, c in fed if not c.buffered]
        called = [(i, c) for i, c in simple if c.steps is not None and c.steps.transition.may_suspend]
        if len(called) > 1:  # what their functions do is seen: row by row they take turns
            simple = [one for one in simple if one not in called]
        else:
            called = []
        buffered = [(i, c) for i, c in fed if c.buffered]

        def fresh(row: tuple[Any, ...]) -> Group:
            states = [c.fresh(e) for c in calls]
            return Group(row, states, [[] for _ in calls] if any_buffered else [])

        try:
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                read += len(item)
                rows = yield from evaluate_rows(work, item, e)
                for table, order, key in zip(tables, groups, self.keys, strict=True):
                    find = table.finder()
                    buckets: dict[Any, Rows] = {}
                    if self.whole:
                        buckets[()] = rows
                    else:
                        for row in paced(rows):
                            k = key(row)
                            if k in buckets:
                                buckets[k].append(row)
                            else:
                                buckets[k] = [row]
                    for k, bucket in buckets.items():
                        give_way()
                        found = find(k)
                        if found is None:
                            found = fresh(bucket[0])
                            table.put(k, found)
                            order.append(found)
                        for i, call in paced(simple, 16):
                            if call.steps is None:
                                call.feed(found.states[i], bucket)
                            else:
                                yield from found.states[i].feed(call.steps, call.values(bucket), e)
                        for row in bucket if called else ():
                            for i, call in called:
                                if call.steps is None:
                                    raise AssertionError(
                                        "an aggregate that is folded step by step has no steps"
                                    )
                                yield from found.states[i].feed(call.steps, call.values([row]), e)
                        for i, call in paced(buffered, 16):
                            test = call.filter
                            found.buffers[i].extend(
                                bucket if test < 0 else [row for row in bucket if row[test] is True]
                            )
                yield None
            for table, records in zip(tables, self.records, strict=True):
                if records:
                    meet(table, records)
            for index, order in enumerate(groups):
                by_keys = any_direct and len(self.sets[index]) < len(self.group)
                if not order and (self.always or not self.sets[index]):
                    # no rows: a grand total has one group all the same; direct arguments have no row to stand in
                    width = len(self.group) + sum(len(c.positions) + len(c.order) + 2 for c in calls) + 64
                    order.append(fresh((None,) * width))
                    by_keys = any_direct
                for found in order:
                    give_way()
                    if by_keys:
                        yield from self._fill_direct(found, self.sets[index], e)
                    if any_own:
                        yield from self._end_own(found, e)
                    out.append(self._finish(found, self.sets[index], e))
                yield None
            yield from chunks(out)
        finally:
            release(out)
            if read * len(self.sets) * (1 + len(calls)) > LARGE:  # an aggregate may keep each row
                release_all(groups)
                for table in tables:
                    table.release()

    def _fill_direct(self, group: Group, set_: tuple[int, ...], e: Env) -> Pipe:
        """Compute direct arguments from the keys of a grouping set, NULL where they are not in it, instead of
        from a row.
        """
        first = group.first
        keys = [first[i] if i in set_ else None for i in range(len(self.group))]
        blank = [None] * (len(self.calls) + len(self.groupings))
        row = (*keys, *blank, *(first[p] for p in self.carried))
        values = list(first)
        for call in self.calls:
            if call.direct:
                function = compile_row(call.aggregate.direct, self.layout)
                got = (yield from evaluate(function, row, e)) if function.may_suspend else function(row, e)
                for position, value in zip(call.direct, got, strict=True):
                    values[position] = value
        group.first = tuple(values)

    def _end_own(self, group: Group, e: Env) -> Pipe:
        """Put the results of users' aggregates in the place of their states."""
        states: dict[int, Any] = {}
        own = [(i, call, call.steps) for i, call in enumerate(self.calls) if call.steps is not None]
        for i, call, steps in own:
            if call.shares < 0:
                held = group.states[i] or Held()
                rows = list(call.kept(group.buffers[i])) if call.buffered else []
                yield from held.feed(steps, rows, e)
                states[i] = held.state
        for i, call, steps in own:
            state = states[i if call.shares < 0 else call.shares]
            direct = [group.first[p] for p in call.direct]
            group.states[i] = Done((yield from steps.result(state, direct, e)))

    def _finish(self, group: Group, set_: tuple[int, ...], e: Env) -> tuple[Any, ...]:
        first = group.first
        out = [first[i] if i in set_ else None for i in range(len(self.group))]
        for i, call in enumerate(self.calls):
            state = group.states[i]
            if state is None:
                rows = group.buffers[i] if group.buffers else []
                state = self._buffered(call, rows, first, e)
                out.append(state.result())
                if len(rows) > LARGE:
                    release_all([state])
            else:
                out.append(state.result())
        for grouping in self.groupings:
            mask = 0
            for index in grouping.indexes:
                mask = mask * 2 + (index not in set_)
            out.append(mask)
        out.extend(first[p] for p in self.carried)
        return tuple(out)

    def _buffered(self, call: Call, rows: Rows, first: tuple[Any, ...], e: Env) -> Any:
        if call.hypothetical:
            return _hypothetical(call, rows, first, e)
        state = call.make(e, tuple(first[p] for p in call.direct) if call.has_direct else None)
        for values in call.kept(rows):
            state.step(*values)
        return state


def _hypothetical(call: Call, rows: Rows, first: tuple[Any, ...], e: Env) -> Any:
    """Step with each row's order relative to the hypothetical one.

    Rows are cut to their sort keys first: two of them may be the same column, which then has two direct arguments.
    """
    state = call.make(e, None)
    marker = object()
    keys = [position for position, *_ in call.order]
    order = [(slot, *item[1:]) for slot, item in enumerate(call.order)]
    width = len(order)
    probe = (*(first[direct] for direct in call.direct), marker)
    ordered = sort_rows([*((*(r[k] for k in keys), None) for r in rows), probe], order)
    peers = compare_key(order)
    mine = peers(probe)
    before = True
    last: Any = marker
    for row in paced(ordered, 16):
        if row[width] is marker:
            continue
        key = peers(row)
        if key == mine:
            before = False
            state.step(0, key == last)
        else:
            if before:
                before = _sorts_before(row, probe, order)
            state.step(-1 if before else 1, key == last)
        last = key
    return state


def _sorts_before(row: tuple[Any, ...], probe: tuple[Any, ...], order: Sequence[OrderItem]) -> bool:
    for position, oid, descending, nulls_first in order:
        a, b = row[position], probe[position]
        if a is None or b is None:
            if a is None and b is None:
                continue
            return (a is None) == nulls_first
        same = hash_key(oid)
        if (a if same is None else same(a)) == (b if same is None else same(b)):
            continue
        key = sort_key(oid)
        x, y = (a, b) if key is None else (key(a), key(b))
        return bool(x > y) if descending else bool(x < y)
    return False
