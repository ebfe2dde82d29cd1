"""Rows of catalog relations that browsing reads whole, made before somebody asks.

    a server of 5,000 tables       the first list of them       0.4 s     made then
                                                                0.05 s    made ahead

The first session of a database begins it, while it has no transaction: what is made goes by what is
committed. It is made in steps of ``engine.catalog.kept.STEP`` relations, and the loop is left to others
between them. Small catalogs are made when they are asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.session.session import Session

log = logging.getLogger("holdfast")

MANY: Final = 1000  # relations: below, what browsing makes takes less than 20 ms
SLICE_S: Final = 0.002
PAUSE_S: Final = 0.001
BUSY_S: Final = 0.02


class RowsAhead:
    """Which databases have been seen to, and who is at it."""

    def __init__(self) -> None:
        """Nothing is made yet."""
        self._made: set[int] = set()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def begin(self, session: Session) -> None:
        """Have the rows of the session's database made, unless they are, or somebody is at it. For a session
        that was just opened.
        """
        oid = session.database_oid
        if oid in self._made or oid in self._tasks:
            return
        if len(session.catalog.relations_by_oid) < MANY:
            return
        self._tasks[oid] = asyncio.get_running_loop().create_task(self._make(session))

    async def _make(self, session: Session) -> None:
        """Make the rows; if the session ends before, the next one goes on."""
        oid = session.database_oid
        try:
            steps = session.db.virtual.ahead(session)
            while session.pid in session.db.sessions:
                if session.block.txn is not None:
                    await asyncio.sleep(BUSY_S)
                    continue
                if _slice(session, steps):
                    self._made.add(oid)
                    return
                await asyncio.sleep(PAUSE_S)
        except Exception:
            log.exception("rows of catalog relations were not made ahead")  # who asks for them has them made
        finally:
            del self._tasks[oid]

    async def close(self) -> None:
        """Give up what is being made."""
        for task in [*self._tasks.values()]:
            task.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks.values()])


def _slice(session: Session, steps: Iterator[None]) -> bool:
    """Take as many steps as a slice has room for; tell whether there are no more. Counting a table's rows
    begins a transaction, which ends with the slice.
    """
    until = perf_counter() + SLICE_S
    try:
        return all(perf_counter() < until for _ in steps)
    finally:
        if session.block.txn is not None:
            session.block.restart()
