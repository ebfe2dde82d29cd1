"""pg_largeobject_metadata and pg_largeobject as sources: catalog relations whose rows are stored, and read as those of tables.

    WHERE loid = 16500    the pages of one object, in order
    otherwise             object by object

They come some at a time, and may have to be waited for; what the transaction may see of them is the store's affair.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from engine.index.state import Pipe, Rows, Wait
from engine.index.virtual_sources import CatalogSource
from engine.large_objects.rows import FEW, PG_LARGEOBJECT_METADATA_OID, objects, one_object, pages
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
                    wait = Wait(one_object(session, number))
                    yield wait
                    yield self._extended(wait.value)
                else:
                    yield from self._pages(session, number)
            return
        for batch in _batches(lambda start: objects(session, start), 0):
            if isinstance(batch, Wait):
                yield batch
            elif of_objects:
                yield self._extended(batch)
            else:
                for row in batch:
                    yield from self._pages(session, row[0])

    def _pages(self, session: Any, number: int) -> Pipe:
        for batch in _batches(lambda start: pages(session, number, start), 1):
            yield batch if isinstance(batch, Wait) else self._extended(batch)

    def _extended(self, rows: Rows) -> Rows | None:
        if self.extend is not None:
            rows = self.extend(rows)
        return rows or None


def _batches(read: Callable[[int], Awaitable[Rows]], place: int) -> Iterator[Wait | Rows]:
    """Yield what has to be waited for, then its rows, until there are no more; ``place``: of what the rows are in order by."""
    start = 0
    while True:
        wait = Wait(read(start))
        yield wait
        rows: Rows = wait.value
        yield rows
        if len(rows) < FEW:
            return
        start = rows[-1][place] + 1
