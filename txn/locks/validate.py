"""The promises of the lock table, checked as a whole (tests and simulation do so at random moments)."""

from __future__ import annotations

from collections.abc import Mapping

from txn.locks.entry import Entry, Request
from txn.locks.granule import Granule, key_of
from txn.locks.mode import COMPATIBLE, CONFLICTS, IX, NAMES, ONE
from txn.locks.ranges import IndexRanges


def validate(entries: Mapping[Granule, Entry], ranges_of: Mapping[tuple[int, int], IndexRanges]) -> None:
    """Raise AssertionError unless all promises hold.

    Granted modes are pairwise compatible (D47); counts agree with holders; owners and entries agree; nobody waits
    who could be served; what is listed for ranges is what is locked.
    """
    for where, ranges in ranges_of.items():
        _check(bool(ranges), f"{where!r}: ranges are kept that nobody has locked")
        locked = (key_of(granule) for granule in entries)
        keys = sorted(key[1] for key in locked if key is not None and key[0] == where)
        _check(list(ranges.keys) == keys, f"{where!r}: the list of locked keys is wrong")
    for granule, entry in entries.items():
        if type(granule) is tuple and len(granule) == 4:
            for owner, mode in entry.holders.items():
                registered = owner.ranges is not None and granule in owner.ranges
                _check(registered or mode == IX, f"{granule!r}: a range lock is not registered")
        holders = list(entry.holders.items())
        _check(bool(holders or entry.queue), f"{granule!r}: an empty entry was kept")
        _check(sum(ONE[m] for _o, m in holders) == entry.counts, f"{granule!r}: counts are wrong")
        for i, (owner, mode) in enumerate(holders):
            _check(owner.held.get(granule) == mode, f"{granule!r}: owner and entry disagree")
            _check(not (owner.gone and entry.queue), f"{granule!r}: somebody waits for an owner that is gone")
            for other, theirs in () if owner.gone else holders[:i]:
                fits = other.gone or COMPATIBLE[mode][theirs]
                _check(fits, f"{granule!r}: {NAMES[mode]} beside {NAMES[theirs]}")
        before: list[Request] = []
        for request in entry.queue or ():
            _check(request.owner.waiting is request, f"{granule!r}: a waiter does not know it waits")
            held = entry.holders.get(request.owner)
            others = entry.counts - (0 if held is None else ONE[held])
            served = not others & CONFLICTS[request.mode] and all(
                COMPATIBLE[b.mode][request.mode] for b in before
            )
            _check(not served, f"{granule!r}: {NAMES[request.mode]} could be granted but waits")
            before.append(request)


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
