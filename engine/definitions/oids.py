"""Oids of new objects: reserved ahead of use in blocks, so that none is given twice, whatever crashes or is dropped.

A shard, its files and the sidecars of an index (``<part>.x<oid>``) are named by oids. Those of a dropped
table stay for as long as somebody may read it, also past a restart; and what a deposed leader still writes
for an index that it was about to make must not meet a file of its successor's. A restart wastes the rest of a
block, as PostgreSQL's does after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from planner.base.errors import SqlError
from txn.base.errors import TxnError

BLOCK: Final = 8192

Reserve = Callable[[str, int, int], Awaitable[tuple[int, int]]]

log = logging.getLogger("holdfast")


class OidSource:
    """Gives each oid once. ``reserve``: see ``txn.log.durable.DurableLog.reserve``."""

    def __init__(self, reserve: Reserve) -> None:
        """Call ``open`` before ``allocate``."""
        self._reserve = reserve
        self._next = 0
        self._end = 0
        self._extending: asyncio.Task[None] | None = None

    async def open(self, floor: int) -> None:
        """Begin at ``floor`` or above it. Raises what ``reserve`` raises."""
        self._next, self._end = await self._reserve("oid", floor, BLOCK)

    def allocate(self, count: int) -> int:
        """Return the first of ``count`` consecutive oids. SqlError 53000 when the reservation is used up."""
        first = self._next
        if first + count > self._end:
            self._extend_soon()
            raise SqlError("53000", "object identifiers are being reserved", hint="Try again.")
        self._next = first + count
        if self._end - self._next < BLOCK / 2:
            self._extend_soon()
        return first

    async def ready(self, count: int) -> None:
        """Wait until ``count`` consecutive ones can be had, for who needs more than a block. SqlError 53000:
        they cannot.
        """
        while self._next + count > self._end:
            before = self._end
            self._extend_soon()
            if self._extending is not None:
                await asyncio.shield(self._extending)
            if self._end == before:
                self.allocate(count)

    def _extend_soon(self) -> None:
        if self._extending is None:
            self._extending = asyncio.get_running_loop().create_task(self._extend())

    async def _extend(self) -> None:
        try:
            first, end = await self._reserve("oid", self._end, BLOCK)
            if first != self._end:
                self._next = first  # numbers in between went to an attempt whose outcome was never learnt
            self._end = end
        except TxnError as error:
            log.warning("could not reserve object identifiers: %s", error)  # the next allocation tries again
        finally:
            self._extending = None
