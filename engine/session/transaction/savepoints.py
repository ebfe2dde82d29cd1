"""Savepoints: what a transaction may go back to, and how.

    mark ──> Savepoint     txn's own mark, and how far settings, catalog changes and deferred checks had come
    go_back(Savepoint)     all of them as they were; locks stay until the transaction ends

SAVEPOINT keeps one under its name (``engine.session.transaction.block``), a block of PL/pgSQL with EXCEPTION
for as long as it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.catalog.storage.stored import Stored, StoredKey
from engine.session.transaction.own_rows import Written
from engine.session.transaction.timing import Mark
from planner.base.errors import SqlError
from txn.api import Transaction

if TYPE_CHECKING:
    from engine.session.session import Session


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The marks of txn, settings and deferred checks, the rows counted and the catalog changes until then.
    ``name``: "" has none.

    ``read_only``: whether the transaction was then, which SET TRANSACTION behind a savepoint changes for as
    long as that stands.
    """

    name: str
    handle: int
    settings: int
    changes: Mapping[StoredKey, Stored | None]
    timing: Mark
    written: Written
    read_only: bool


def mark(session: Session, txn: Transaction, name: str = "") -> Savepoint:
    """Return where the running transaction stands."""
    handle = txn.savepoint()
    settings, changes, timing = session.settings.mark(), session.view.own_changes, session.timing.mark()
    return Savepoint(
        name, handle, settings, changes, timing, session.block.own_rows.written, session.block.is_read_only
    )


async def go_back(session: Session, txn: Transaction, point: Savepoint) -> None:
    """Undo what came after ``mark``. Raises why the transaction has ended, if it has."""
    undoing = txn.rollback_to(point.handle)
    if undoing is not None:
        await undoing
    session.settings.undo_to(point.settings)
    session.view.go_back(point.changes)
    session.timing.go_back(point.timing)
    session.block.own_rows.go_back(point.written)
    session.block.set_read_only(point.read_only)


def position_of(points: Sequence[Savepoint], name: str) -> int:
    """Return the position of the newest savepoint called ``name``. Raises SqlError 3B001."""
    for position in range(len(points) - 1, -1, -1):
        if points[position].name == name:
            return position
    raise SqlError("3B001", f'savepoint "{name}" does not exist')
