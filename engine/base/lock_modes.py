"""PostgreSQL's names of the modes of locks, as pg_locks and the reports of deadlocks have them.

    table  IX   RowExclusiveLock          row  X   AccessExclusiveLock

Of rows they are the table-level names that PostgreSQL uses for its row locks.
"""

from __future__ import annotations

from typing import Final

_TABLE_MODES: Final = {
    "IS": "AccessShareLock", "IX": "RowExclusiveLock", "S": "ShareLock", "SIX": "ShareRowExclusiveLock",
    "X": "AccessExclusiveLock",
}  # fmt: skip
# the table-level names that PostgreSQL uses for its row locks: key share, share, no key update, update
_ROW_MODES: Final = {
    "IS": "AccessShareLock", "S": "RowShareLock", "SIX": "ExclusiveLock", "X": "AccessExclusiveLock",
}  # fmt: skip
_KEY_MODES: Final = {"IX": "RowExclusiveLock", "S": "ShareLock", "X": "ExclusiveLock"}


def mode_name(kind: str, mode: str) -> str:
    """Return PostgreSQL's name for a lock mode on a granule of ``kind`` (table, row, key, range)."""
    names = {"table": _TABLE_MODES, "row": _ROW_MODES}.get(kind, _KEY_MODES)
    return names.get(mode, mode)
