"""Who is in whose way, for errors (N8): the waits that a refused request would begin with, and those of a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from txn.base.errors import LockWait
from txn.locks.entry import LockOwner
from txn.locks.granule import Granule
from txn.locks.mode import COMPATIBLE, NAMES, SUPREMUM
from txn.locks.policy import Waiter

if TYPE_CHECKING:
    from txn.locks.table import LockTable


def in_the_way(table: LockTable, owner: LockOwner, granule: Granule, mode: int) -> tuple[LockWait, ...]:
    """Return the waits that a request would begin with."""
    entry = table.entries.get(granule)
    if entry is None:
        return ()
    held = owner.held.get(granule)
    target = mode if held is None else SUPREMUM[held][mode]
    others: dict[LockOwner, int | None] = {
        o: m for o, m in entry.holders.items() if o is not owner and not COMPATIBLE[m][target]
    }
    for request in entry.queue or ():
        if request.owner is not owner and not COMPATIBLE[request.mode][target]:
            others.setdefault(request.owner, None)
    return tuple(_edge(table, owner, other, target, m, granule) for other, m in others.items())


def explain(table: LockTable, cycle: Sequence[Waiter]) -> tuple[LockWait, ...]:
    """Return the waits of a cycle, each for the next one."""
    out = []
    for i, waiter in enumerate(cycle):
        holder = cycle[(i + 1) % len(cycle)]
        if not isinstance(waiter, LockOwner):
            raise AssertionError(f"{type(waiter).__name__} waits for a lock")
        if not isinstance(holder, LockOwner):
            raise AssertionError(f"{type(holder).__name__} holds a lock")
        request = waiter.waiting
        if request is not None and holder is not waiter:
            granule = request.entry.granule
            # of the holder itself, or of its session's other owner (LockTable.advisory)
            holders = request.entry.holders
            held = holders.get(holder)
            if held is None and holder.session:
                held = next((m for o, m in holders.items() if o.session == holder.session), None)
            out.append(_edge(table, waiter, holder, request.mode, held, granule))
    return tuple(out)


def _edge(
    table: LockTable, waiter: LockOwner, holder: LockOwner, mode: int, held: int | None, granule: Granule
) -> LockWait:
    return LockWait(
        waiter=waiter.session,
        holder=holder.session,
        waiter_txn=waiter.id,
        holder_txn=holder.id,
        mode=NAMES[mode],
        held=None if held is None else NAMES[held],
        target=table.describe(granule),
    )
