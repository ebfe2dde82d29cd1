"""How often a statement is planned or run again before its client has to do something about it, and what it
is told then.
"""

from __future__ import annotations

from typing import Final

from planner.base.errors import SqlError
from txn.base.errors import Cause

MAX_REPLANS: Final = 10
"""Of one statement whose plan the catalog has moved under."""
MAX_RERUNS: Final = 1000
"""Of one statement whose rows to be locked had changed; each run holds the locks of those before."""

AUTOCOMMIT_RETRIES: Final = 50
"""Of one statement that has lost a race, with its transaction or within it: on busy processors four clients
whose function changes two rows each have lost ten in a row, and a statement by itself that PostgreSQL answers
should not fail for that."""


class KeepsChanging(SqlError):
    """A statement that was planned or run in vain too often (40001). ``cause``: of which."""

    def __init__(self, cause: Cause, message: str, *, hint: str | None = None) -> None:
        super().__init__("40001", message, hint=hint)
        self.cause = cause


def definitions_keep_changing() -> KeepsChanging:
    """Return 40001 for a statement that was planned ``MAX_REPLANS`` times in vain."""
    return KeepsChanging(Cause.REPLANNED, "the tables of this statement keep changing their definition")


def rows_keep_changing() -> KeepsChanging:
    """Return 40001 for a statement that was run ``MAX_RERUNS`` times in vain."""
    return KeepsChanging(
        Cause.ROWS_TO_LOCK,
        "could not serialize access: the rows to be locked keep changing",
        hint="The transaction might succeed if retried.",
    )
