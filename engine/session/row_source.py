"""Where the rows of a subscription come from, as the cursors know it that read them."""

from __future__ import annotations

from typing import Protocol

from engine.base.rows import RowTuple


class Source(Protocol):
    """Where the rows of a subscription come from."""

    async def poll(self, timeout_s: float | None) -> list[RowTuple] | None:
        """Return the next rows (maybe none), or None if no commit brought any within ``timeout_s`` (None: no limit).

        May be cancelled without losing rows. Raises StopAsyncIteration at the end.
        """

    def close(self) -> None:
        """Give everything up; idempotent."""
