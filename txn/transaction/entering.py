"""Which timeline a transaction is in, while it may still choose.

    begin       holds in every timeline the state of one moment        ``others``: the holds outside its own
    enter(b)    what it first touches is in b: the hold there stays, the others go       ``others`` None
    enter(c)    refused: the transaction is in b

A transaction that was begun for one timeline has no others from the start. Reads in whatever timeline it
enters are of the moment at which it began, or, once it writes, of now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from txn.base.types import Timestamp
from txn.locks.entry import NOBODY

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

T = TypeVar("T", bound="TransactionState")


def enter(txn: TransactionState, name: str) -> str | None:
    """Enter a timeline; see ``txn.api``. KeyError if there is none of this name."""
    if txn.timeline.name == name:
        leave_others(txn)
        return None
    if txn.others is None:
        return txn.timeline.name
    timeline = txn.core.timelines.by_name.get(name)
    if timeline is None:
        raise KeyError(name)
    hold = txn.others.pop(timeline, None)
    if hold is None:
        hold = timeline.holds.acquire(None if txn.writing else txn.read_ts)
    txn.hold.release()
    txn.timeline, txn.hold, txn.read_ts = timeline, hold, hold.ts
    leave_others(txn)
    return None


def split(txn: T) -> dict[str, T] | None:
    """Return a transaction for each timeline; see ``txn.api``."""
    if txn.owner is not NOBODY or not txn.others:
        return None
    found = {txn.timeline.name: txn}
    for timeline, hold in txn.others.items():
        found[timeline.name] = beside = txn.beside(timeline, hold.ts)
        txn.at_end.append(beside.rollback)
    return found


def leave_others(txn: TransactionState) -> None:
    """Stay in the timeline where it is, for good."""
    release_others(txn)
    txn.others = None


def release_others(txn: TransactionState) -> None:
    """Give the holds up that are for timelines it has not entered."""
    for hold in (txn.others or {}).values():
        hold.release()


def read_points(txn: TransactionState) -> dict[str, Timestamp]:
    """Return what it reads at, by timeline, in all that it is in or may enter."""
    points = {txn.timeline.name: txn.timeline.read_ts() if txn.writing else txn.read_ts}
    for timeline, hold in (txn.others or {}).items():
        points[timeline.name] = timeline.read_ts() if txn.writing else hold.ts
    return points
