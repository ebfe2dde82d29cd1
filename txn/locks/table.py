"""The lock table: granules, holders, queues (D46-D49).

A granule is any hashable value; ``txn.transaction.coordinator`` uses

    shard                        a table
    (shard, row id)              a row
    (shard, index, key)          an index key, whether a row has it or not
    (shard, index, key, RANGE)   the gap below a key of a sorted index, and the key (txn.locks.ranges)
    Advisory                     a number that an application locks (txn.locks.advisory)

A request that cannot be granted waits in its granule's queue. Order is fair: a newcomer waits behind whoever
it conflicts with, also behind those that only wait; an owner that already holds the granule and asks for more
(an upgrade) goes before all newcomers, because they cannot be served before it anyway.

    holders  t1:S t2:S      queue  [t2 S->X upgrade] [t5 IX] [t6 S]

Locks are held until ``release_all`` (strict two-phase locking, D39). All calls are made on the event loop. An
owner of very many is *gone* then: nobody waits for it any more, and whoever meets its locks strikes them out;
turns of the loop forget the rest, some in each.

Bounds: one waiting request per owner; at most 2**20 - 1 holders of one granule per mode.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from txn.base.errors import Deadlock, LockNotAvailable, LockTarget, LockTimeout, TxnError, WaitCancelled
from txn.base.types import IndexId, ShardId
from txn.locks.entry import NO_SPANS, Entry, LockOwner, LockRow, Request, waiting_row
from txn.locks.granule import RANGE, Advisory, Granule, IndexKey, describe, key_of
from txn.locks.mode import COMPATIBLE, CONFLICTS, IS, NAMES, ONE, SUPREMUM, S, X
from txn.locks.policy import POLICIES, Policy, Waiter
from txn.locks.ranges import IndexRanges
from txn.locks.reports import explain, in_the_way
from txn.locks.validate import validate

AT_ONCE: Final = 2000
"""Locks that are forgotten in one turn of the loop: about a millisecond."""


class LockTable:
    """Grants, queues and releases locks."""

    def __init__(self, policy: Policy | str = "detect") -> None:
        self.policy = POLICIES[policy] if isinstance(policy, str) else policy
        self.entries: dict[Granule, Entry] = {}
        self.waiting: dict[LockOwner, Request] = {}
        self.ranges: dict[tuple[int, int], IndexRanges] = {}
        """The indexes of which ranges are locked."""
        self.advisory: dict[int, LockOwner] = {}
        """The owners of sessions' advisory locks, by session."""
        self.escalations = 0
        """How often many locks were traded for one on their table."""
        self.describe: Callable[[Granule], LockTarget] = describe
        """Turns a granule into what errors say; the coordinator knows how to turn keys back into values."""
        self.deadlocks = 0  # ended by this table so far
        self._leaving: deque[LockOwner] = deque()
        """Owners that are gone and have locks in the table."""

    def __len__(self) -> int:
        """Number of granules held or waited for."""
        return len(self.entries)

    # -- acquiring ---------------------------------------------------------------------------------

    def acquire(self, owner: LockOwner, granule: Granule, mode: int) -> Awaitable[None] | None:
        """Lock ``granule`` in at least ``mode``: None when granted at once, else an awaitable.

        Idempotent for what is already held. The awaitable (or this call) raises Deadlock, LockTimeout or
        WaitCancelled; nothing is held then beyond what was held before.
        """
        if self.try_acquire(owner, granule, mode):
            return None
        held = owner.held.get(granule)
        target = mode if held is None else SUPREMUM[held][mode]
        return self._wait(owner, self.entries[granule], target, upgrade=held is not None)

    def try_acquire(self, owner: LockOwner, granule: Granule, mode: int) -> bool:
        """Lock without waiting (NOWAIT, SKIP LOCKED): False when it would have to wait. Idempotent.

        Raises what an owner that was chosen as a victim is ``doomed`` with, unless it holds a lock on the granule.
        """
        held = owner.held.get(granule)
        if held is not None:
            target = SUPREMUM[held][mode]
            if target != held:
                entry = self.entries[granule]
                if (entry.counts - ONE[held]) & CONFLICTS[target]:
                    return self._strike_gone(entry) and self.try_acquire(owner, granule, mode)
                entry.counts += ONE[target] - ONE[held]
                entry.holders[owner] = owner.held[granule] = target
            return True
        if owner.doomed is not None:
            raise owner.doomed
        found = self.entries.get(granule)
        if found is None:
            self.entries[granule] = found = Entry(granule)
            if self.ranges:
                self._note(granule)
        elif found.counts & CONFLICTS[mode] or (
            found.queue and not all(COMPATIBLE[waiting.mode][mode] for waiting in found.queue)
        ):
            return self._strike_gone(found) and self.try_acquire(owner, granule, mode)
        found.counts += ONE[mode]
        found.holders[owner] = owner.held[granule] = mode
        return True

    def not_available(self, owner: LockOwner, granule: Granule, mode: int) -> LockNotAvailable:
        """Return the error of a request that may not wait."""
        return LockNotAvailable(self.describe(granule), in_the_way(self, owner, granule, mode))

    def is_blocked(self, owner: LockOwner, granule: Granule, mode: int) -> bool:
        """Tell whether somebody else holds ``granule`` in a mode that conflicts with ``mode``."""
        entry = self.entries.get(granule)
        if entry is None:
            return False
        held = owner.held.get(granule)
        if not (entry.counts - (0 if held is None else ONE[held])) & CONFLICTS[mode]:
            return False
        return not self._leaving or bool(self.holders(granule, mode, owner))

    def demote(self, owner: LockOwner, granule: Granule, mode: int | None) -> None:
        """End an instant lock: hold ``granule`` in ``mode`` again as before, or not at all (None)."""
        held = owner.held.get(granule)
        if held is None or held == mode or owner.gone:
            return  # the owner has ended meanwhile
        entry = self.entries[granule]
        entry.counts -= ONE[held]
        if mode is None:
            del entry.holders[owner], owner.held[granule]
        else:
            entry.counts += ONE[mode]
            entry.holders[owner] = owner.held[granule] = mode
        self._grant(entry)

    def hand_over(self, owner: LockOwner, to: LockOwner, granule: Granule, mode: int | None) -> None:
        """Have ``to``, which does not hold it, hold a granule in ``mode``, in the place of ``owner``, which
        held it in that mode or a stronger one.
        """
        self.demote(owner, granule, mode)
        entry = self.entries.get(granule)
        if mode is not None and entry is not None and entry.holders.pop(owner, None) is not None:
            del owner.held[granule]
            entry.holders[to] = to.held[granule] = mode

    def drop_covered(self, owner: LockOwner, shard: ShardId) -> Iterator[None]:
        """Release the locks within a table that the owner's lock on the table makes needless (S or more);
        others may run between two of its steps.
        """
        table = owner.held[shard]
        for count, (granule, mode) in enumerate(list(owner.held.items()), 1):
            if count % AT_ONCE == 0:
                yield
            if type(granule) is tuple and granule[0] == shard and (table == X or mode in (IS, S)):
                self.demote(owner, granule, None)
        for granule in [g for g in owner.ranges or () if g[0] == shard and g not in owner.held]:
            if owner.ranges is None:
                raise AssertionError("an owner holds ranges, and has none")
            del owner.ranges[granule]
            owner.spans.pop((shard, granule[1]), None)
            self._unregister_one(granule)

    # -- ranges ------------------------------------------------------------------------------------

    def register_range(self, owner: LockOwner, shard: ShardId, index: IndexId, key: IndexKey) -> None:
        """Announce a range lock that ends with ``key``, which is a boundary of the index now. Idempotent."""
        granule = (shard, index, key, RANGE)
        if owner.ranges is None:
            owner.ranges, owner.spans = {}, {}
        if granule in owner.ranges:
            return
        owner.ranges[granule] = None
        where = (shard, index)
        found = self.ranges.get(where)
        if found is None:
            locked = (key_of(granule) for granule in self.entries)
            found = IndexRanges(key[1] for key in locked if key is not None and key[0] == where)
            self.ranges[where] = found
        found.register(key)

    def _note(self, granule: Granule) -> None:
        """A granule has got an entry: list it if it is a key of an index of which ranges are locked."""
        key = key_of(granule)
        if key is not None and key[0] in self.ranges:
            self.ranges[key[0]].keys.add(key[1])

    def _unnote(self, granule: Granule) -> None:
        key = key_of(granule)
        if key is not None and key[0] in self.ranges:
            self.ranges[key[0]].keys.remove(key[1])

    def _unregister_one(self, granule: tuple[ShardId, IndexId, IndexKey, str]) -> None:
        shard, index, key, _range = granule
        ranges = self.ranges[shard, index]
        ranges.unregister(key)
        if not ranges:
            del self.ranges[shard, index]

    def _unregister(self, owner: LockOwner) -> None:
        """The owner's range locks are gone."""
        for granule in owner.ranges or ():
            self._unregister_one(granule)
        owner.ranges, owner.spans = None, NO_SPANS

    def holders(self, granule: Granule, mode: int, but: LockOwner | None = None) -> list[LockOwner]:
        """Return the owners whose lock on ``granule`` conflicts with ``mode``."""
        entry = self.entries.get(granule)
        if entry is None:
            return []
        fits = COMPATIBLE[mode]
        return [o for o, held in entry.holders.items() if o is not but and not fits[held] and not o.gone]

    def blockers(self, session: int) -> list[int]:
        """Return the sessions that a session's wait is for, each once."""
        out: dict[int, None] = {}
        for owner in self.waiting:
            if owner.session == session:
                for other in self._waits_for(owner):
                    out[other.session] = None
        return list(out)

    # -- waiting -----------------------------------------------------------------------------------

    def _wait(self, owner: LockOwner, entry: Entry, mode: int, *, upgrade: bool) -> Awaitable[None]:
        if owner.waiting is not None:
            raise AssertionError("a transaction may wait for one lock at a time")
        if owner.doomed is not None:
            raise owner.doomed
        if owner.lock_timeout_ms < 0:
            raise self.not_available(owner, entry.granule, mode)
        request = Request(owner, entry, mode, upgrade)
        queue = entry.queue
        if queue is None:
            queue = entry.queue = []
        if upgrade:
            at = next((i for i, other in enumerate(queue) if not other.upgrade), len(queue))
            queue.insert(at, request)
        else:
            queue.append(request)
        owner.waiting = request
        self.waiting[owner] = request
        for policy in self._policies(entry.granule):
            for victim, cycle in policy.victims(owner, self._waits_for):
                if not isinstance(victim, LockOwner):
                    raise AssertionError(f"{type(victim).__name__} waits for a lock")
                waits = explain(self, cycle)
                error = Deadlock(waits, in_cycle=len(waits) == len(cycle))
                self.deadlocks += 1
                if victim is owner:
                    self._abandon(request)
                    try:
                        raise error
                    finally:
                        del error  # else it and this frame would keep each other
                if victim.waiting is not None:
                    self._fail(victim.waiting, error)
                else:
                    victim.doomed = error
        if not request.future.done() and owner.lock_timeout_ms > 0:
            request.timer = asyncio.get_running_loop().call_later(
                owner.lock_timeout_ms / 1000, self._time_out, request
            )
        return self._await(request)

    def _policies(self, granule: Granule) -> tuple[Policy, ...]:
        """Return what is asked for victims, in order.

        Who holds an advisory lock is no transaction that could give up, so age cannot order such waits: cycles
        through them are searched for, whatever the policy says of other locks.
        """
        if not self.advisory or self.policy.name in ("detect", "timeout"):
            return (self.policy,)
        detect = POLICIES["detect"]
        return (detect,) if isinstance(granule, Advisory) else (self.policy, detect)

    async def _await(self, request: Request) -> None:
        try:
            await request.future
        except BaseException:
            # The task was cancelled, or dropped: leave the queue, unless the lock was granted in the meantime.
            if request.owner.waiting is request:
                self._abandon(request)
            raise

    def _waits_for(self, waiter: Waiter) -> Iterator[LockOwner]:
        """Yield those a waiting owner waits for: conflicting holders and conflicting earlier requests."""
        if not isinstance(waiter, LockOwner):
            raise AssertionError(f"{type(waiter).__name__} waits for a lock")
        request = waiter.waiting
        if request is None:
            return
        fits = COMPATIBLE[request.mode]
        for owner, held in list(request.entry.holders.items()):
            if owner is not waiter and not fits[held]:
                yield self._acting(owner)
        for other in list(request.entry.queue or ()):
            if other is request:
                break
            if not fits[other.mode]:
                yield other.owner

    def _acting(self, owner: LockOwner) -> LockOwner:
        """Return the owner that waits on behalf of a holder's session, the holder if none does.

        A session with advisory locks has two owners, of which either may wait while the other one holds.
        """
        mine = self.advisory.get(owner.session) if self.advisory else None
        if mine is None or owner.waiting is not None:
            return owner
        if mine.waiting is not None:
            return mine
        if owner is mine:
            return next((other for other in self.waiting if other.session == owner.session), owner)
        return owner

    def _time_out(self, request: Request) -> None:
        waits = in_the_way(self, request.owner, request.entry.granule, request.mode)
        self._fail(request, LockTimeout(waits))

    def _fail(self, request: Request, error: TxnError) -> None:
        """End a wait with ``error``; nothing happens if it has ended already."""
        if request.owner.waiting is not request:
            return
        self._abandon(request)
        if not request.future.done():
            request.future.set_exception(error)

    def _abandon(self, request: Request) -> None:
        """Take a request out of its queue and serve whom it held up."""
        self._forget(request)
        entry = request.entry
        if entry.queue is not None:
            entry.queue.remove(request)
            self._grant(entry)

    def _forget(self, request: Request) -> None:
        request.owner.waiting = None
        self.waiting.pop(request.owner, None)
        if request.timer is not None:
            request.timer.cancel()
            request.timer = None

    def _grant(self, entry: Entry) -> None:
        """Serve the queue: in order, each request that fits the holders and all requests left before it."""
        queue = entry.queue
        if queue:
            left: list[Request] = []
            for request in queue:
                owner = request.owner
                held = entry.holders.get(owner)
                others = entry.counts - (0 if held is None else ONE[held])
                if others & CONFLICTS[request.mode] or not all(
                    COMPATIBLE[before.mode][request.mode] for before in left
                ):
                    left.append(request)
                    continue
                entry.counts = others + ONE[request.mode]
                entry.holders[owner] = request.mode
                owner.held[entry.granule] = request.mode
                self._forget(request)
                if not request.future.done():
                    request.future.set_result(None)
            entry.queue = left or None
        if not entry.holders and not entry.queue:
            del self.entries[entry.granule]
            if self.ranges:
                self._unnote(entry.granule)

    # -- ending ------------------------------------------------------------------------------------

    def cancel(self, session: int) -> int:
        """Make the waits of a session raise WaitCancelled; returns how many there were."""
        requests = [r for r in self.waiting.values() if r.owner.session == session]
        for request in requests:
            self._fail(request, WaitCancelled("canceled while waiting for a lock"))
        return len(requests)

    def fail_wait(self, owner: LockOwner, error: TxnError) -> None:
        """End the owner's wait, if it waits, with ``error``."""
        if owner.waiting is not None:
            self._fail(owner.waiting, error)

    def release_all(self, owner: LockOwner) -> None:
        """Release everything, latest first, end a wait, and serve the queues. Idempotent."""
        if owner.waiting is not None:
            self._fail(owner.waiting, WaitCancelled("the transaction ended"))
        if len(owner.held) + len(owner.ranges or ()) > AT_ONCE:
            self._leave(owner)
            return
        entries = self.entries
        held = owner.held
        ranged = bool(self.ranges)
        for granule, mode in reversed(held.items()):
            entry = entries[granule]
            if len(entry.holders) == 1 and entry.queue is None:
                del entries[granule]
                if ranged:
                    self._unnote(granule)
                continue
            del entry.holders[owner]
            entry.counts -= ONE[mode]
            if entry.queue is not None:
                self._grant(entry)
        owner.held = {}
        owner.doomed = None
        if owner.ranges is not None:
            self._unregister(owner)

    def _leave(self, owner: LockOwner) -> None:
        """Let an owner of many locks go: serve whoever waits for it now, forget its locks in turns to come."""
        if owner.gone:
            return
        owner.gone, owner.doomed = True, None
        for request in list(self.waiting.values()):
            if owner in request.entry.holders:
                self._strike_gone(request.entry)
                self._grant(request.entry)
        self._leaving.append(owner)
        if len(self._leaving) == 1:
            asyncio.get_running_loop().call_soon(self._forget_some)

    def _strike_gone(self, entry: Entry) -> bool:
        """Take owners that are gone out of a granule's holders; tell whether there were any. Nobody waits for
        a granule that has some.
        """
        gone = [owner for owner in entry.holders if owner.gone]
        for owner in gone:
            entry.counts -= ONE[entry.holders.pop(owner)]
        return bool(gone)

    def _forget_some(self) -> None:
        left = AT_ONCE
        while self._leaving and left > 0:
            owner = self._leaving[0]
            held = owner.held
            while held and left > 0:
                left -= 1
                granule, _mode = held.popitem()
                entry = self.entries.get(granule)
                if entry is None or owner not in entry.holders:
                    continue  # somebody has met it
                entry.counts -= ONE[entry.holders.pop(owner)]
                if not entry.holders and not entry.queue:
                    del self.entries[granule]
                    if self.ranges:
                        self._unnote(granule)
            while not held and owner.ranges and left > 0:
                left -= 1
                self._unregister_one(owner.ranges.popitem()[0])
            if not held and not owner.ranges:
                owner.ranges, owner.spans = None, NO_SPANS
                self._leaving.popleft()
        if self._leaving:
            asyncio.get_running_loop().call_soon(self._forget_some)

    # -- looking -----------------------------------------------------------------------------------

    def waits(self) -> Iterator[LockRow]:
        """Yield the requests that wait, at most one for each owner."""
        for request in self.waiting.values():
            yield waiting_row(request)

    def rows(self) -> Iterator[LockRow]:
        """Yield the table's content, holders before waiters, for ``pg_locks`` and dumps.

        It may change meanwhile: what is yielded of a granule is of one moment, of those there were at first.
        """
        for entry in list(self.entries.values()):
            yield from [
                *(
                    LockRow(entry.granule, owner.session, owner.id, NAMES[mode], True)
                    for owner, mode in entry.holders.items()
                    if not owner.gone
                ),
                *map(waiting_row, entry.queue or ()),
            ]

    def validate(self) -> None:
        """Raise AssertionError unless all promises hold (``txn.locks.validate``)."""
        validate(self.entries, self.ranges)
