"""Choosing a read timestamp: bounds with reasons, then the one that satisfies all and is best (L5, L8, N14).

    lower bounds   since of what is read, what the level demands, what this session has seen, a demanded minimum
    upper bounds   AS OF, and how far ahead a read may wait

            since        must be seen       read_ts          clock         limit
    ----------|----------------|----------------|---------------|--------------|---->
              '-- history -----+--- answered at once -----------+- waited for -'

The best is the freshest that needs no waiting; where the bounds leave none of those, the stalest, so that the wait
is short. ``Request`` and ``Readable`` are plain values and ``choose`` is a pure function of them;
``tests/txn/test_selection.py`` tries all small ones. The same bounds feed EXPLAIN (TIMESTAMP): every one is kept, and
the answer says which decided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from txn.base.errors import ReadBelowSince, ReadInFuture
from txn.base.time import COUNTER_BITS
from txn.base.types import Timestamp

FUTURE_MS: Final = 10_000
"""How far ahead of the clock a read may ask to be; it is answered when the clock gets there."""

NONE: Final = Timestamp(0)
"""No demand."""

Level: TypeAlias = Literal["strict", "session", "bounded", "serializable"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the read timestamp, inclusive, and why it holds."""

    ts: Timestamp
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a reader asks for.

    ``level`` strict: not older than any commit acknowledged before (A16). session: not older than what the session has
    read or committed (``observed``). bounded: at most ``staleness_ms`` behind the newest commit, whatever the wall
    clock says (L8). serializable: any readable state.
    ``as_of``: that timestamp and no other, whatever the level, and it binds no other read (A2).
    ``min_read_ts``: not older than this; 0 for no demand (N4).
    """

    level: Level = "strict"
    staleness_ms: int = 0
    observed: Timestamp = NONE
    as_of: Timestamp | None = None
    min_read_ts: Timestamp = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """What there is to read.

    ``since``: lower bounds of the objects concerned, at least one. ``read_ts``: the newest commit that is applied.
    ``present``: the clock of the timestamps. ``behind_ms``: for how long another server may have been committing;
    0 while this one is sure to lead.
    """

    since: tuple[Bound, ...]
    read_ts: Timestamp
    present: Timestamp
    behind_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The chosen timestamp; ``decided_by`` is the bound it lies on.

    ``wait``: read_ts has to get there first. ``lead``: nothing may be answered before it is sure that this
    server leads.
    """

    ts: Timestamp
    decided_by: Bound
    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]
    preference: Literal["freshest", "stalest"]
    wait: bool = False
    lead: bool = True

    def explain(self) -> list[str]:
        """Return one line per bound, the deciding one marked."""
        lines = [f"timestamp: {self.ts} ({self.preference})"]
        for sign, bounds in ((">=", self.lower), ("<=", self.upper)):
            for bound in bounds:
                mark = " *" if bound is self.decided_by else ""
                lines.append(f"  {sign} {bound.ts}  {bound.reason}{mark}")
        return lines


def select(
    lower: tuple[Bound, ...],
    upper: tuple[Bound, ...],
    preference: Literal["freshest", "stalest"] = "freshest",
) -> Selection:
    """Return the extreme timestamp in [max(lower), min(upper)] on the preferred side.

    ``upper`` must not be empty when the freshest is wanted, nor ``lower`` when the stalest is.

    Raises:
        ReadBelowSince: no timestamp satisfies all; ``since`` is the highest lower bound, the nearest
            timestamp that the readable side allows.
    """
    low = max(lower, key=lambda b: b.ts, default=None)
    high = min(upper, key=lambda b: b.ts, default=None)
    if low is not None and high is not None and low.ts > high.ts:
        raise ReadBelowSince(high.ts, low.ts, low.reason)
    decided = high if preference == "freshest" else low
    if decided is None:
        raise ValueError(f"no bound on the {preference} side")
    return Selection(ts=decided.ts, decided_by=decided, lower=lower, upper=upper, preference=preference)


def limit_of(readable: Readable) -> Timestamp:
    """Return the highest timestamp that a read may ask for."""
    return Timestamp(max(readable.present, readable.read_ts) + (FUTURE_MS << COUNTER_BITS))


def choose(request: Request, readable: Readable) -> Selection:
    """Choose the timestamp of a read.

    Raises:
        ReadBelowSince: AS OF is older than what is readable.
        ReadInFuture: AS OF or the demanded minimum is further ahead than a read may wait for.
    """
    limit = limit_of(readable)
    asked = request.min_read_ts if request.as_of is None else request.as_of
    if asked > limit:
        raise ReadInFuture(asked, limit)
    ahead = Bound(limit, f"at most {FUTURE_MS // 1000} s ahead of the clock")
    now = Bound(readable.read_ts, "newest commit that is applied")
    if request.as_of is not None:
        exact = Bound(request.as_of, "AS OF SYSTEM TIME")
        found = select(readable.since, (exact, ahead))
        ahead_of_all = request.as_of > readable.read_ts
        return replace(found, wait=ahead_of_all, lead=ahead_of_all)
    lower = [*readable.since, *_demands(request, readable)]
    if request.min_read_ts:
        lower.append(Bound(request.min_read_ts, "min_read_ts"))
    lead = request.level == "strict" or (
        request.level == "bounded" and readable.behind_ms > request.staleness_ms
    )
    if max(bound.ts for bound in lower) <= readable.read_ts:
        return replace(select(tuple(lower), (now, ahead)), wait=False, lead=lead)
    return replace(select(tuple(lower), (ahead,), "stalest"), wait=True, lead=True)


def _demands(request: Request, readable: Readable) -> list[Bound]:
    """Return what the level asks for."""
    match request.level:
        case "strict":
            return [Bound(readable.read_ts, "consistency = strict: the newest commit acknowledged")]
        case "session":
            seen = Timestamp(min(request.observed, readable.read_ts))
            return [Bound(seen, "consistency = session: what this session has seen")]
        case "bounded":
            oldest = max(readable.read_ts - (request.staleness_ms << COUNTER_BITS), 0)
            reason = f"consistency = bounded: {request.staleness_ms} ms before the newest commit"
            return [Bound(Timestamp(oldest), reason)]
        case "serializable":
            return []
