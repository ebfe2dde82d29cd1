"""Rows of a stored table by their ctids: one, those of an array, or those between two.

ctid = x, ctid = ANY (…), ctid IN (SELECT …), ctid > x AND ctid <= y ──> row ids ──> the rows, of hot ones and of parts

Which conditions say so is ``engine.executors.index.access.choice.rows_by_ctid``'s to find; bounds are tested
again on the rows found, for a long range is read as all rows. What others do to other rows does not matter to
who reads by ctid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.catalog.tids import row_id_of, row_ids_between
from engine.executors.index.access.choice import Access
from engine.executors.index.sources import TableScan
from engine.executors.index.state import Pipe, evaluate
from planner.catalog import RelationDef
from planner.evaluate import Env, Layout, compile_row, flat
from planner.query import RelationRange


class CtidScan(TableScan):
    """Rows of a stored table by their ctids."""

    def __init__(
        self,
        item: RelationRange,
        relation: RelationDef,
        index: int,
        needed: Sequence[int],
        narrow: bool,
        access: Access,
        outer: Layout,
    ) -> None:
        super().__init__(item, relation, index, needed, narrow)
        self.access = access
        self.keyed = access.bounded
        self.values = compile_row(
            [*access.keys, *(bound[0] for bound in (access.lower, access.upper) if bound)], outer
        )

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Compute the ctids and read."""
        may_suspend = self.values.may_suspend
        values = (yield from evaluate(self.values, outer, e)) if may_suspend else self.values(outer, e)
        if None in values:
            return
        yield from self.scanned(e, self._ids(values))

    def _ids(self, values: Sequence[Any]) -> Sequence[int]:
        access = self.access
        if access.keys:
            named = flat(values[0]) if access.lists[0] else values
            ids = {row_id_of(tid) for tid in named if tid is not None}
            return sorted(row_id for row_id in ids if row_id)
        bounds = iter(values)
        low = next(bounds) if access.lower else None
        high = next(bounds) if access.upper else None
        return row_ids_between(
            low,
            high,
            low_inclusive=access.lower is not None and access.lower[1],
            high_inclusive=access.upper is not None and access.upper[1],
        )
