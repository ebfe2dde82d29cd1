"""Exported snapshots: pg_export_snapshot() and SET TRANSACTION SNAPSHOT (manual 9.27.5 and SET TRANSACTION).

    exporter   BEGIN; SELECT pg_export_snapshot()  ──> id: its read timestamp, and a hold that ends with it
    importer   BEGIN; SET TRANSACTION SNAPSHOT id  ──> begins at that timestamp, with a hold of its own

An importer may outlive the exporter and may write; what it has read must then be unchanged, as in every transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.session.transaction.block_state import IDLE, IMPLICIT
from engine.session.transaction.timelines import gone
from planner.base.errors import SqlError
from txn.base.types import Timestamp
from txn.log.holds import Hold

if TYPE_CHECKING:
    from engine.session.session import Session

_IMPORTING = ("serializable", "repeatable read")


@dataclass(frozen=True, slots=True)
class Exported:
    """One snapshot that can be imported now: a timestamp for each timeline that the exporter can be in."""

    points: Mapping[str, Timestamp]
    holds: tuple[Hold, ...]
    isolation: str
    read_only: bool
    database: int


class SnapshotRegistry:
    """The exported snapshots of one server, by id."""

    def __init__(self) -> None:
        """There are none."""
        self._exported: dict[str, Exported] = {}

    def add(self, name: str, snapshot: Exported) -> None:
        """Make a snapshot known."""
        self._exported[name] = snapshot

    def find(self, name: str) -> Exported | None:
        """Return the snapshot called ``name`` if its transaction still runs."""
        return self._exported.get(name)

    def remove(self, name: str) -> tuple[Hold, ...]:
        """Forget a snapshot; returns its holds, to be released."""
        return self._exported.pop(name).holds


def export(session: Session) -> str:
    """Export what the session's transaction sees and return the snapshot's id. SqlError 25001 below a savepoint.

    A transaction that has written sees the latest commits; that is what it exports, without its own writes.
    """
    if session.block.savepoints:
        raise SqlError("25001", "cannot export a snapshot from a subtransaction")
    txn, store = session.block.root, session.db.store
    if txn.timeline_name is not None and not store.has_timeline(txn.timeline_name):
        raise gone(txn.timeline_name)
    points = {name: ts for name, ts in txn.read_points().items() if store.has_timeline(name)}
    holds = tuple([store.hold(ts, timeline=timeline) for timeline, ts in points.items()])
    number = len(session.block.exported) + 1
    name = f"{session.pid:08X}-{txn.id & 0xFFFFFFFF:08X}-{number}"
    settings = session.settings
    session.db.snapshots.add(
        name,
        Exported(points, holds, settings.get("transaction_isolation"), txn.read_only, session.database_oid),
    )
    session.block.exported.append(name)
    return name


def withdraw(session: Session) -> None:
    """The exporting transaction has ended: its snapshots can no longer be imported."""
    for name in session.block.exported:
        for hold in session.db.snapshots.remove(name):
            session.db.store.release(hold)
    session.block.exported.clear()


def import_(session: Session, name: str) -> None:
    """SET TRANSACTION SNAPSHOT. SqlError 25001, 0A000, 22023 as PostgreSQL raises them."""
    in_block = session.block.state not in (IDLE, IMPLICIT)
    if not in_block:
        session.warning("SET TRANSACTION can only be used in transaction blocks", "25P01")
    elif session.block.txn is not None or session.block.savepoints:
        raise SqlError("25001", "SET TRANSACTION SNAPSHOT must be called before any query")
    isolation = session.settings.get("transaction_isolation")
    if isolation not in _IMPORTING:
        raise SqlError(
            "0A000",
            "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ",
        )
    found = session.db.snapshots.find(name)
    if found is None:
        raise SqlError("22023", f'invalid snapshot identifier: "{name}"')
    if found.database != session.database_oid:
        raise SqlError("0A000", "cannot import a snapshot from a different database")
    if isolation == "serializable":
        if found.isolation != "serializable":
            raise SqlError(
                "0A000",
                "a serializable transaction cannot import a snapshot from a non-serializable transaction",
            )
        if found.read_only and session.settings.get("transaction_read_only") == "off":
            raise SqlError(
                "0A000",
                "a non-read-only serializable transaction cannot import a snapshot from a read-only transaction",
            )
    if in_block:
        session.block.import_snapshot(found.points)
