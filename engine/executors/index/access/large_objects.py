"""pg_largeobject_metadata and pg_largeobject as sources: catalog relations whose rows are stored, and read as
those of tables.

    WHERE loid = 16500    the pages of one object, in order
    otherwise             object by object

They come some at a time, and may have to be waited for; what the transaction may see of them is the store's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.executors.index.access.virtual_sources import CatalogSource
from engine.executors.index.state import Pipe, Rows, waited
from engine.session.large_objects.rows import (
    FEW,
    PG_LARGEOBJECT_METADATA_OID,
    ObjectsSession,
    objects,
    one_object,
    pages,
)
from planner.evaluate import Env, Layout, compile_expr, flat
from planner.query import Expr, RelationRange

NUMBER = 1
"""The attnum of an object's number in both."""


class LargeObjectSource(CatalogSource):
    """All rows, or (``value``) those of one number, or of those in an array (``is_list``)."""

    def __init__(
        self, item: RelationRange, index: int, needed: Sequence[int], narrow: bool, value: Expr | None,
        is_list: bool, outer: Layout,
    ) -> None:  # fmt: skip
        super().__init__(item, index, needed, narrow)
        self.value = None if value is None else compile_expr(value, outer)
        self.is_list = is_list

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Give the rows in batches."""
        session = e.shared.ctx.session
        of_objects = self.item.oid == PG_LARGEOBJECT_METADATA_OID
        if self.value is not None:
            given = self.value(outer, e)
            numbers = flat(given) if self.is_list and given is not None else (given,)
            for number in dict.fromkeys(n for n in numbers if n is not None):
                if of_objects:
                    found = yield from waited(one_object(session, number))
                    yield self._extended(found)
                else:
                    yield from self._pages(session, number)
            return
        start: int | None = 0
        while start is not None:
            batch = yield from waited(objects(session, start))
            start = _following(batch, 0)
            if of_objects:
                yield self._extended(batch)
            else:
                for row in batch:
                    yield from self._pages(session, row[0])

    def _pages(self, session: ObjectsSession, number: int) -> Pipe:
        start: int | None = 0
        while start is not None:
            batch = yield from waited(pages(session, number, start))
            start = _following(batch, 1)
            yield self._extended(batch)

    def _extended(self, rows: Rows) -> Rows | None:
        if self.extend is not None:
            rows = self.extend(rows)
        return rows or None


def _following(rows: Rows, place: int) -> int | None:
    """Return where the next batch begins; None: there is none. ``place``: of what the rows are in order by."""
    return None if len(rows) < FEW else int(rows[-1][place]) + 1
