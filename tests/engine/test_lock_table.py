"""LOCK TABLE's eight modes on five: nothing that PostgreSQL keeps apart may go together, and little else waits."""

from __future__ import annotations

from engine.transaction.lock_table import LOCKS
from txn.locks.mode import COMPATIBLE, MODES

NAMES = (
    "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE", "ACCESS EXCLUSIVE",
)  # fmt: skip
CONFLICTS = (  # the manual's table 13.2: mode -> numbers of the modes it conflicts with
    {8},
    {7, 8},
    {5, 6, 7, 8},
    {4, 5, 6, 7, 8},
    {3, 4, 6, 7, 8},
    {3, 4, 5, 6, 7, 8},
    {2, 3, 4, 5, 6, 7, 8},
    {1, 2, 3, 4, 5, 6, 7, 8},
)
STRONGER = {
    ("ACCESS SHARE", "EXCLUSIVE"),  # a transaction that only reads takes no lock at all
    ("ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE"),
}


def test_the_modes_conflict_at_least_as_postgres_does() -> None:
    stronger = set()
    for a, conflicts in enumerate(CONFLICTS, 1):
        for b in range(1, 9):
            apart = not COMPATIBLE[MODES[LOCKS[a]]][MODES[LOCKS[b]]]
            if b in conflicts:
                assert apart, (NAMES[a - 1], NAMES[b - 1])
            elif apart:
                stronger.add((NAMES[min(a, b) - 1], NAMES[max(a, b) - 1]))
    assert stronger == STRONGER
