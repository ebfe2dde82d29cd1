"""TABLESAMPLE in the row executor: all rows are read, and the sample's go on.

What it is chosen by is made as a scan begins (``planner.query.sampling``), for each row of an outer query
that its arguments name. Rows of catalog relations have no ids: they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from engine.executors.index.access.virtual_sources import VirtualScan
from engine.executors.index.sources import TableScan
from engine.executors.index.state import Pipe, evaluate
from planner.catalog import RelationDef
from planner.evaluate import Env, Layout, compile_expr
from planner.query import RelationRange, Sample
from planner.query.sampling import picker

Picked = Callable[[Sequence[Any]], Sequence[Any]]


class _Numbered(NamedTuple):
    row_id: int
    row: Any


class _Choice:
    """What a scan chooses by, once it begins."""

    def __init__(self, sample: Sample, outer: Layout) -> None:
        self.method = sample.method
        self.key = compile_expr(sample.key, outer)

    def start(self, outer: Any, e: Env) -> Any:
        """Evaluate the key; return the picker (``planner.query.sampling.picker``)."""
        key = (yield from evaluate(self.key, outer, e)) if self.key.may_suspend else self.key(outer, e)
        return picker(self.method, key)


class SampleScan(TableScan):
    """A sample of a stored table's visible rows."""

    def __init__(
        self,
        item: RelationRange,
        sample: Sample,
        relation: RelationDef,
        index: int,
        needed: Sequence[int],
        narrow: bool,
        outer: Layout,
    ) -> None:
        super().__init__(item, relation, index, needed, narrow)
        self.choice = _Choice(sample, outer)

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Scan, and leave out what is not chosen."""
        yield from self.scanned(e, None, (yield from self.choice.start(outer, e)))


class VirtualSample(VirtualScan):
    """A sample of a catalog relation's rows, numbered as they come."""

    def __init__(
        self,
        item: RelationRange,
        sample: Sample,
        index: int,
        needed: Sequence[int],
        narrow: bool,
        outer: Layout,
    ) -> None:
        super().__init__(item, index, needed, narrow)
        self.choice = _Choice(sample, outer)

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Read all, and leave out what is not chosen."""
        picked: Picked | None = yield from self.choice.start(outer, e)
        seen = 0
        for batch in super().rows(outer, e):
            if picked is None or batch.__class__ is not list:
                yield batch
                continue
            numbered = [_Numbered(number, row) for number, row in enumerate(batch, seen + 1)]
            seen += len(batch)
            yield [chosen.row for chosen in picked(numbered)] or None
