"""Joins: a source run for each row so far, or a hash table over the right side.

    Dependent   right side is a Source that uses the left row: index lookups, LATERAL, functions; INNER and LEFT
    Hash        equality on both sides: INNER, LEFT, FULL; the right side is the hash table
    Loop        anything else: the right side is kept and every pair is tested; INNER, LEFT, FULL

A joined row is left + right. RIGHT joins are planned as LEFT joins with the sides changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from engine.executors.index.keyed import KeySet, KeyTable
from engine.executors.index.nodes import Filter, Node, OneRow, projection, records_among
from engine.executors.index.sources import Source
from engine.executors.index.state import BATCH, Pipe, Rows, evaluate, evaluate_rows, gather
from pgwire.give_way import give_way, paced
from pgwire.long.hashes import LONG, hashed
from pgwire.release import LARGE, release
from planner.evaluate import Env, Layout, compile_filter
from planner.functions.values.compare import hash_key, may_be_long
from planner.functions.values.record_keys import meet
from planner.query import Expr, JoinKind


def joined_layout(left: Layout, left_width: int, columns: dict[tuple[int, int], int]) -> Layout:
    """Return the layout of left + right."""
    return Layout(
        columns={**left.columns, **{k: v + left_width for k, v in columns.items()}},
        exprs=left.exprs,
        outer=left.outer,
        subplan=left.subplan,
    )


class DependentJoin(Node):
    """For each left row, the rows of a source; INNER or LEFT.

    ``once``: what the join asks that is the same for all rows; where it is not met, nothing of the source is read.
    """

    def __init__(
        self, left: Node, right: Source, kind: JoinKind, conjuncts: Sequence[Expr], once: Sequence[Expr] = ()
    ) -> None:
        layout = joined_layout(left.layout, left.width, right.columns)
        super().__init__(layout, left.width + right.width, left)
        self.right = right
        self.kind = kind
        self.conjuncts = (*once, *conjuncts)
        self.test = compile_filter(conjuncts, layout) if conjuncts else None
        self.gate = Filter(OneRow(layout.outer, layout.subplan), once) if once else None

    def pipe(self, e: Env) -> Pipe:
        """Join."""
        fetch = self.right.fetch
        outer_join = self.kind is JoinKind.LEFT
        test = self.test
        empty = (None,) * self.right.width
        out: Rows = []
        met = self.gate is None
        for item in () if self.gate is None else self.gate.pipe(e):
            if item.__class__ is list:
                met = True
            else:
                yield item
        for item in self.inputs[0].pipe(e):
            if item.__class__ is not list:
                yield item
                continue
            for left in item:
                matched = False
                for batch in fetch(left, e) if met else ():
                    if batch.__class__ is not list:
                        if batch is not None:
                            yield batch
                        continue
                    rows = [left + right for right in batch]
                    if test is not None:
                        rows = yield from evaluate_rows(test, rows, e)
                    if rows:
                        matched = True
                        out.extend(rows)
                        if len(out) >= BATCH:
                            yield out
                            out = []
                    give_way()
                if outer_join and not matched:
                    out.append(left + empty)
                if len(out) >= BATCH:
                    yield out
                    out = []
            if out:
                yield out
                out = []
            else:
                yield None


class HashJoin(Node):
    """Equality join by a hash table over the right side. NULL keys match nothing."""

    def __init__(
        self,
        left: Node,
        right: Node,
        kind: JoinKind,
        left_keys: Sequence[Expr],
        right_keys: Sequence[Expr],
        conjuncts: Sequence[Expr],
    ) -> None:
        layout = joined_layout(left.layout, left.width, right.layout.columns)
        super().__init__(layout, left.width + right.width, left, right)
        self.kind = kind
        self.keys = list(zip(left_keys, right_keys, strict=True))
        self.conjuncts = conjuncts
        self.left_key = _row_keys(left_keys, left.layout)
        self.right_key = _row_keys(right_keys, right.layout)
        self.records = records_among([x.type for x in left_keys])
        self.test = compile_filter(conjuncts, layout) if conjuncts else None

    def pipe(self, e: Env) -> Pipe:
        """Build, then probe."""
        table = KeyTable()
        rest: Rows = []  # right rows whose key is NULL (FULL join)
        used: set[int] = set()
        probed = KeySet()  # the left keys, where there are records in them
        built = 0
        full = self.kind is JoinKind.FULL
        try:
            for item in self.inputs[1].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                built += len(item)
                keys = yield from self.right_key(item, e)
                for key, row in zip(keys, paced(item), strict=True):
                    if key is None:
                        rest.append(row)
                        continue
                    part = table.part(key)
                    if key in part:
                        part[key].append(row)
                    else:
                        part[key] = [row]
                table.grown()
                yield None
            find = table.finder()
            test = self.test
            outer_join = self.kind is not JoinKind.INNER
            empty_right = (None,) * self.inputs[1].width
            if not table and not outer_join:
                return
            out: Rows = []
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                keys = yield from self.left_key(item, e)
                if self.records:
                    probed.new([key for key in keys if key is not None], _itself)
                for key, left in zip(keys, item, strict=True):
                    same = find(key) if key is not None else None
                    matched = False
                    for found in () if same is None else (same,) if len(same) <= BATCH else _parts(same):
                        give_way()
                        rows = [left + right for right in found]
                        if test is not None:
                            if full:
                                kept = []
                                for right, row in zip(found, rows, strict=True):
                                    passed = (
                                        (yield from evaluate(test, [row], e))
                                        if test.may_suspend
                                        else test([row], e)
                                    )
                                    if passed:
                                        kept.append(row)
                                        used.add(id(right))
                                rows = kept
                            else:
                                rows = yield from evaluate_rows(test, rows, e)
                        elif full:
                            used.update(map(id, found))
                        if rows:
                            matched = True
                            out.extend(rows)
                            if len(out) >= BATCH:
                                yield out
                                out = []
                    if outer_join and not matched:
                        out.append(left + empty_right)
                if out:
                    yield out
                    out = []
                else:
                    yield None
            if self.records:
                self._meet(chain(probed, table))
            if full:
                empty_left = (None,) * self.inputs[0].width
                for bucket in (rest, *table.values()):
                    for row in bucket:
                        if id(row) not in used:
                            out.append(empty_left + row)
                        if len(out) >= BATCH:
                            yield out
                            out = []
                    give_way()
                if out:
                    yield out
        finally:
            release(rest, used)
            probed.release()
            if built > LARGE:
                table.release()

    def _meet(self, keys: Iterable[Any]) -> None:
        meet(keys if len(self.keys) > 1 else ((key,) for key in keys), self.records)


def _itself(key: Any) -> Any:
    return key


def _row_keys(exprs: Sequence[Expr], layout: Layout) -> Callable[[Any, Env], Any]:
    """Return a generator function from a batch to its list of keys (None where a column is NULL)."""
    keys = [hash_key(x.type.oid) for x in exprs]
    plain = all(k is None for k in keys)
    longs = [i for i, x in enumerate(exprs) if may_be_long(x.type.oid)]
    function = projection(exprs, layout)

    def run(rows: Any, e: Env) -> Any:
        found = yield from evaluate_rows(function, rows, e)
        if len(keys) == 1:
            first = keys[0]
            made = (
                [r[0] for r in found]
                if first is None
                else [None if r[0] is None else first(r[0]) for r in found]
            )
            for value in made if longs else ():
                if value is not None and len(value) >= LONG:
                    hashed(value)
            return made
        if plain:
            made = [None if None in r else r for r in found]
        else:
            made = [
                None if None in r else tuple(v if k is None else k(v) for k, v in zip(keys, r, strict=True))
                for r in found
            ]
        for i in longs:
            for r in made:
                if r is not None and len(r[i]) >= LONG:
                    hashed(r[i])
        return made

    return run


def _parts(rows: Rows) -> Iterator[Rows]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))


class LoopJoin(Node):
    """Every pair of a left row and a kept right row, tested."""

    def __init__(self, left: Node, right: Node, kind: JoinKind, conjuncts: Sequence[Expr]) -> None:
        layout = joined_layout(left.layout, left.width, right.layout.columns)
        super().__init__(layout, left.width + right.width, left, right)
        self.kind = kind
        self.conjuncts = conjuncts
        self.test = compile_filter(conjuncts, layout) if conjuncts else None

    def pipe(self, e: Env) -> Pipe:
        """Join."""
        kept = yield from gather(self.inputs[1].pipe(e))
        used: set[int] = set()
        try:
            outer_join = self.kind is not JoinKind.INNER
            full = self.kind is JoinKind.FULL
            test = self.test
            if not kept and not outer_join:
                return
            empty_right = (None,) * self.inputs[1].width
            out: Rows = []
            for item in self.inputs[0].pipe(e):
                if item.__class__ is not list:
                    yield item
                    continue
                for left in item:
                    matched = False
                    for i in range(0, len(kept), BATCH):
                        part = kept[i : i + BATCH]
                        rows = [left + right for right in part]
                        if test is not None:
                            if full:
                                passed: Rows = []
                                for number, row in enumerate(rows, i):
                                    one = (
                                        (yield from evaluate(test, [row], e))
                                        if test.may_suspend
                                        else test([row], e)
                                    )
                                    if one:
                                        passed.append(row)
                                        used.add(number)
                                rows = passed
                            else:
                                rows = yield from evaluate_rows(test, rows, e)
                        elif full:
                            used.update(range(i, i + len(part)))
                        if rows:
                            matched = True
                            out.extend(rows)
                            if len(out) >= BATCH:
                                yield out
                                out = []
                        give_way()
                    if outer_join and not matched:
                        out.append(left + empty_right)
                    if len(out) >= BATCH:
                        yield out
                        out = []
                    elif len(kept) > BATCH:
                        yield None
                if out:
                    yield out
                    out = []
                else:
                    yield None
            if full:
                empty_left = (None,) * self.inputs[0].width
                for i in range(0, len(kept), BATCH):
                    rows = [
                        empty_left + row
                        for number, row in enumerate(kept[i : i + BATCH], i)
                        if number not in used
                    ]
                    yield rows or None
        finally:
            release(kept, used)
