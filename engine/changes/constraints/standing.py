"""INSERT ... ON CONFLICT DO NOTHING and exclusion constraints: whether a row may come in.

    EXCLUDE USING gist (room WITH =, during WITH &&)
      proposed (7, [3,9)) ──> keys that room 7 has, read at its first row ──> [5,6): the row is left out
      proposed (7, [9,12)) ──────────────────────────────────────────────> none: inserted, its key is added

The statement holds the table as every writer of one with such a constraint does
(``engine.changes.constraints.exclusion``), so what has been read stays as it is, but for the statement's own
rows and what its BEFORE ROW triggers do: where there are any, all is read anew for each row. Who arbitrates
is never deferrable (55000), so rows that are there do not conflict with each other.
"""

from __future__ import annotations

import asyncio
from bisect import bisect, insort
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.changes.constraints.exclusion import SLICE_PAIRS, Exclusion, candidates
from planner.evaluate import Env, Shared
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session


class Standing:
    """The keys that rows of a table have, by the first part of the key, read as far as they were asked for."""

    def __init__(self, session: Session, exclusion: Exclusion) -> None:
        """Begin with nothing read."""
        self._session = session
        self._exclusion = exclusion
        self._env = Env((), session, shared=Shared())
        self._groups: dict[Row, list[Row]] = {}
        self._whole = False
        self._pairs = 0

    async def excludes(self, row: Row) -> bool:
        """Tell whether a row of the table conflicts with this one."""
        exclusion = self._exclusion
        key = exclusion.key(row, self._env)
        if key is None:
            return False
        prefix = key[: exclusion.prefix]
        if not self._whole and prefix not in self._groups:
            await self._read(key, prefix)
        group = self._groups.get(prefix, [])
        if exclusion.sweeps:  # ranges that do not overlap, in order: only those beside a place may reach it
            at = bisect(group, key)
            group = group[max(at - 1, 0) : at + 1]
        for other in group:
            self._pairs += 1
            if self._pairs % SLICE_PAIRS == 0:
                self._session.cancelled.check()
                await asyncio.sleep(0)
            if exclusion.conflict(key, other, self._env):
                return True
        return False

    def add(self, row: Row) -> None:
        """Note a row that the statement has inserted."""
        key = self._exclusion.key(row, self._env)
        if key is not None:
            group = self._groups.setdefault(key[: self._exclusion.prefix], [])
            if self._exclusion.sweeps:
                insort(group, key)
            else:
                group.append(key)

    async def _read(self, key: Row, prefix: Row) -> None:
        exclusion = self._exclusion
        txn = self._session.block.ensure_txn()
        number = txn.statement
        txn.next_statement()  # what the statement has inserted is to be seen
        try:
            found = await candidates(self._session, exclusion, {key})
        finally:
            txn.resume_statement(number)
        self._whole = not exclusion.by_index
        self._groups[prefix] = []
        for stored in found:
            other = exclusion.key(stored.values, self._env)
            if other is not None:
                self._groups.setdefault(other[: exclusion.prefix], []).append(other)
        if exclusion.sweeps:
            for group in self._groups.values() if self._whole else [self._groups[prefix]]:
                group.sort()


async def excluded(standing: Sequence[Standing], row: Row) -> bool:
    """Tell whether any of some constraints keeps a row out."""
    for one in standing:
        if await one.excludes(row):
            return True
    return False
