"""A query that begins when its first row is fetched: a cursor's, or a loop's.

OPEN c FOR SELECT f(a) FROM t      rights, locks and what tables hold are those of now
FETCH c INTO n                     the query begins: errors, notices and what f does are those of FETCH
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from engine.base.executor import Result
from engine.base.rows import ReadyRows, RowBatch, RowStream, Wanted
from planner.query import OutputColumn


def begun_later(columns: tuple[OutputColumn, ...], start: Callable[[Wanted], Awaitable[Result]]) -> RowStream:
    """Return the rows of what ``start`` begins, which is called when they are first asked for, told how many
    that are.
    """
    wanted = Wanted()
    batches = _Later(wanted, start)
    return RowStream(columns, batches, batches.close, wanted=wanted)


class _Later(AsyncIterator[RowBatch]):
    """The batches of a result that is not there yet. ``close`` is idempotent."""

    __slots__ = ("_batches", "_result", "_start", "_wanted")

    def __init__(self, wanted: Wanted, start: Callable[[Wanted], Awaitable[Result]]) -> None:
        self._wanted = wanted
        self._start: Callable[[Wanted], Awaitable[Result]] | None = start
        self._result: RowStream | None = None
        self._batches: AsyncIterator[RowBatch] | None = None

    async def __anext__(self) -> RowBatch:
        start, self._start = self._start, None
        if start is not None:
            result = await start(self._wanted)
            if isinstance(result, ReadyRows):
                if result.rows:
                    return RowBatch(rows=result.rows)
            else:
                self._result, self._batches = result, aiter(result.batches)
        if self._batches is None:
            raise StopAsyncIteration
        if self._result is not None and self._result.wanted is not None:
            self._result.wanted.rows = self._wanted.rows
        return await anext(self._batches)

    def close(self) -> None:
        """Nobody asks for more."""
        self._start = self._batches = None
        result, self._result = self._result, None
        if result is not None:
            result.close()
