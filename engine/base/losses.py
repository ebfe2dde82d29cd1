"""How often transactions lost against others, by cause and table: what ``holdfast_conflicts`` shows.

    raised where          by                                     counted as
    txn                   txn.base.errors.Lost, with its ``cause``    retried: the server ran the statement again by itself
    engine.session.transaction    KeepsChanging (``limits``)             failed: the client was told (40001, 40P01)

What user code raises with these SQLSTATEs is not counted: nobody was in its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.base.limits import KeepsChanging
from txn.base.errors import Cause, Deadlock, Lost, SchemaChanged, WriteConflict

MAX_ROWS: Final = 1000
"""Causes and tables that one database counts apart; what comes then is counted without its table."""

MEANINGS: Final[dict[Cause, str]] = {
    Cause.KEY_READ: "a key that was looked up before the first write has other rows",
    Cause.RANGE_READ: "a range of an index that was read before the first write has other rows",
    Cause.SCAN_READ: "a row that a scan before the first write asked for has changed",
    Cause.TABLE_READ: "a table all of which was read, or noted as read, before the first write has changed",
    Cause.SCAN_WATCHED: "a row that a scan of a writing transaction asked for has changed",
    Cause.TABLE_WATCHED: "a table all of which a writing transaction watched has changed",
    Cause.BULK_WATCHED: "a table that a writing transaction scanned was loaded, or rewritten in bulk",
    Cause.DEFINITION: "a table or another object has another definition than when it was used",
    Cause.CATALOG: "a table that was read before the first write has been altered since",
    Cause.NAME_TAKEN: "a name that was chosen for a type was taken meanwhile",
    Cause.REPLANNED: "a statement was planned too often, as definitions kept changing",
    Cause.ROWS_TO_LOCK: "a statement was run too often, as the rows to be locked kept changing",
    Cause.COMMIT_TIMESTAMP: "the timestamp that the commit asked for had passed",
    Cause.DEADLOCK_CHANGES: "a cycle of waits for rows or keys that were changed, or locked to be changed",
    Cause.DEADLOCK_READS: "a cycle of waits through rows or keys that were only read",
    Cause.DEADLOCK_RANGES: "a cycle of waits through ranges of an index",
    Cause.DEADLOCK_TABLES: "a cycle of waits through locks on whole tables",
    Cause.DEADLOCK_ADVISORY: "a cycle of waits through advisory locks",
    Cause.LOCK_POLICY: "the deadlock policy refused a wait",
}
"""What each cause is, for the view and the documentation."""

if MEANINGS.keys() != set(Cause):
    raise AssertionError(f"causes without a meaning: {set(Cause) - MEANINGS.keys()}")


@dataclass(slots=True)
class Tally:
    """Of one cause and table: how often, and when last (microseconds)."""

    sqlstate: str
    retried: int = 0
    failed: int = 0
    last_us: int = 0


class Losses:
    """What one database counts since the server started."""

    __slots__ = ("tallies",)

    def __init__(self) -> None:
        self.tallies: dict[tuple[Cause, int], Tally] = {}
        """By cause and the table's oid, 0 where there is none or ``MAX_ROWS`` are counted."""

    def note(self, error: BaseException, now_us: int, *, retried: bool) -> None:
        """Count an error if it is a lost race."""
        if not isinstance(error, Lost | KeepsChanging):
            return
        key = (error.cause, _table_of(error))
        if key not in self.tallies and len(self.tallies) >= MAX_ROWS:
            key = (error.cause, 0)
        tally = self.tallies.get(key)
        if tally is None:
            self.tallies[key] = tally = Tally("40P01" if isinstance(error, Deadlock) else "40001")
        if retried:
            tally.retried += 1
        else:
            tally.failed += 1
        tally.last_us = now_us


def _table_of(error: Lost | KeepsChanging) -> int:
    if isinstance(error, WriteConflict | SchemaChanged):
        return error.shard
    if isinstance(error, Deadlock):
        return next((wait.target.shard for wait in error.waits if wait.target.kind != "advisory"), 0)
    return 0
