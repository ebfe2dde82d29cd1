"""The join with a catalog relation by the value of one column, a batch of left rows at a time.

left rows      (.., 16384, ..)  (.., 16384, ..)  (.., 11, ..)
values              16384            16384           11            computed for the batch
right rows       found once                       found once       kept by value while the join runs, filter applied
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.index.joins import DependentJoin
from engine.index.nodes import Node
from engine.index.state import BATCH, Pipe, Rows, evaluate_rows
from engine.index.virtual_sources import VirtualLookup
from planner.evaluate import Env
from planner.query import Expr, JoinKind

KEPT_VALUES = 16_384


class CatalogJoin(DependentJoin):
    """For each left row, the rows of a catalog relation with its value; INNER or LEFT."""

    def __init__(self, left: Node, right: VirtualLookup, kind: JoinKind, conjuncts: Sequence[Expr]) -> None:
        super().__init__(left, right, kind, conjuncts)
        self.lookup = right

    def pipe(self, e: Env) -> Pipe:
        """Join."""
        lookup, test = self.lookup, self.test
        yield from lookup.prepare(e)
        find = lookup.finder(e)
        outer_join = self.kind is JoinKind.LEFT
        empty = (None,) * lookup.width
        kept: dict[Any, Rows] = {}
        out: Rows = []
        for item in self.inputs[0].pipe(e):
            if item.__class__ is not list:
                yield item
                continue
            for left, (value,) in zip(item, lookup.values(item, e), strict=True):
                found = kept.get(value)
                if found is None:
                    if len(kept) >= KEPT_VALUES:
                        kept.clear()
                    found = kept[value] = lookup.passing(value, find, e)
                matched = False
                if len(found) == 1 and test is None:
                    out.append(left + found[0])
                    matched = True
                else:
                    for i in range(0, len(found), BATCH):
                        rows = [left + right for right in found[i : i + BATCH]]
                        if test is not None:
                            rows = yield from evaluate_rows(test, rows, e)
                        if rows:
                            matched = True
                            out += rows
                        if len(out) >= BATCH:
                            yield out
                            out = []
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
