"""Oids of new objects.

A server that shares its stores reserves them ahead of use, in blocks that no other leader gets: files are named by them
(``<part>.x<oid of the index>``), and what a deposed leader still writes for an index that it was about to make must not
meet a file of its successor's. With a directory of its own (flock) the numbers just follow the highest in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from planner.errors import SqlError
from txn.errors import TxnError

BLOCK: Final = 8192

Reserve = Callable[[str, int, int], Awaitable[tuple[int, int]]]

log = logging.getLogger("holdfast")


class OidSource:
    """Gives each oid once. ``reserve``: see ``txn.durable.DurableLog.reserve``; None: nobody else allocates."""

    def __init__(self, reserve: Reserve | None) -> None:
        """Call ``open`` before ``allocate``."""
        self._reserve = reserve
        self._next = 0
        self._end: float = 0
        self._extending: asyncio.Task[None] | None = None

    async def open(self, floor: int) -> None:
        """Begin at ``floor`` or above it. Raises what ``reserve`` raises."""
        self._next, self._end = floor, float("inf")
        if self._reserve is not None:
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

    def _extend_soon(self) -> None:
        if self._extending is None:
            self._extending = asyncio.get_running_loop().create_task(self._extend())

    async def _extend(self) -> None:
        assert self._reserve is not None
        try:
            first, end = await self._reserve("oid", int(self._end), BLOCK)
            if first != self._end:
                self._next = first  # numbers in between went to an attempt whose outcome was never learnt
            self._end = end
        except TxnError as error:
            log.warning("could not reserve object identifiers: %s", error)  # the next allocation tries again
        finally:
            self._extending = None
