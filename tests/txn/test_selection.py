"""Every small input of the timestamp solver against what it promises, property by property (L5, L7, L8, N14, N17).

The seven properties, each checked over all combinations of since, read_ts, clock, level, AS OF, minimum, session:

    1  bounds        never below since, never above the limit
    2  real time     strict is never below the newest commit (A16), and equal to it unless a minimum demands more
    3  monotone      session never goes back before what it has seen
    4  soundness     what is answered without waiting is applied; what waits asks for it
    5  completeness  it is refused only where no timestamp satisfies all
    6  extremal      no other allowed timestamp is better: fresher without waiting, or a shorter wait
    7  independence  AS OF is exact, and nothing else has a say in it (A2)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from txn.base.errors import ReadBelowSince, ReadInFuture
from txn.base.types import Timestamp
from txn.transaction import selection
from txn.transaction.selection import Bound, Level, Readable, Request, Selection, choose, limit_of

LEVELS: tuple[Level, ...] = ("strict", "session", "bounded", "serializable")
DOMAIN = range(1, 5)


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A millisecond is one timestamp, and the future two of them."""
    monkeypatch.setattr(selection, "COUNTER_BITS", 0)
    monkeypatch.setattr(selection, "FUTURE_MS", 2)


def ts(value: int) -> Timestamp:
    return Timestamp(value)


def windows() -> Iterator[Readable]:
    for one, two, read_ts, ahead, behind in itertools.product(DOMAIN, DOMAIN, DOMAIN, (0, 1), (0, 2)):
        if max(one, two) <= read_ts:  # since never passes the newest commit
            since = (Bound(ts(one), "since of one"), Bound(ts(two), "since of two"))
            yield Readable(since=since, read_ts=ts(read_ts), present=ts(read_ts + ahead), behind_ms=behind)


def requests() -> Iterator[Request]:
    for level, staleness, observed, minimum in itertools.product(
        LEVELS, (0, 1, 3), (0, 2, 4), (0, 1, 5, 7, 9)
    ):
        for as_of in (None, *range(10)):
            yield Request(
                level=level,
                staleness_ms=staleness,
                observed=ts(observed),
                as_of=None if as_of is None else ts(as_of),
                min_read_ts=ts(minimum),
            )


def allowed(asked: Request, window: Readable) -> list[int]:
    """Return all timestamps that satisfy every demand, from the definitions."""
    low = max(bound.ts for bound in window.since)
    high = limit_of(window)
    if asked.as_of is not None:
        return [t for t in (asked.as_of,) if low <= t <= high]
    found = []
    for t in range(low, high + 1):
        if t < asked.min_read_ts:
            continue
        if asked.level == "strict" and t < window.read_ts:
            continue
        # what a session has seen is applied; a value above it comes from another server and is min_read_ts's business
        if asked.level == "session" and t < min(asked.observed, window.read_ts):
            continue
        if asked.level == "bounded" and t < window.read_ts - asked.staleness_ms:
            continue
        found.append(t)
    return found


def attempt(asked: Request, window: Readable) -> Selection | None:
    try:
        return choose(asked, window)
    except (ReadBelowSince, ReadInFuture):
        return None


def test_all_small_inputs_keep_the_seven_properties() -> None:
    count = 0
    for window, asked in itertools.product(windows(), requests()):
        count += 1
        choices = allowed(asked, window)
        found = attempt(asked, window)
        said = (asked, window, found)
        if found is None:
            assert not choices, said  # 5
            continue
        assert found.ts in choices, said  # 1, 2, 3, 5, 7
        assert found.wait == (found.ts > window.read_ts), said  # 4
        if asked.as_of is not None:
            assert found.ts == asked.as_of, said  # 7
        else:
            applied = [t for t in choices if t <= window.read_ts]
            assert found.ts == (max(applied) if applied else min(choices)), said  # 6
        if asked.level == "strict" and asked.as_of is None:
            assert found.lead, said  # 2
            assert found.ts == max(window.read_ts, asked.min_read_ts), said
        assert found.decided_by.ts == found.ts, said
        assert all(bound.ts <= found.ts for bound in found.lower), said
        assert all(bound.ts >= found.ts for bound in found.upper), said
    assert count > 100_000


def test_a_stale_leader_answers_what_the_level_allows_and_no_more() -> None:
    window = Readable(since=(Bound(ts(1), "since"),), read_ts=ts(5), present=ts(6), behind_ms=7)
    assert choose(Request(level="strict"), window).lead
    assert not choose(Request(level="serializable"), window).lead
    assert not choose(Request(level="session", observed=ts(4)), window).lead
    assert choose(Request(level="bounded", staleness_ms=6), window).lead
    assert not choose(Request(level="bounded", staleness_ms=7), window).lead
    assert not choose(Request(as_of=ts(5)), window).lead, "below the newest commit the past is fixed"
    assert choose(Request(as_of=ts(6)), window).lead
    assert choose(Request(level="serializable", min_read_ts=ts(6)), window).lead, (
        "who waits waits for the leader"
    )


def test_errors_name_the_nearest_readable_timestamp_and_what_limits_it() -> None:
    window = Readable(
        since=(Bound(ts(2), "since of t"), Bound(ts(4), "since of u")), read_ts=ts(5), present=ts(6)
    )
    with pytest.raises(ReadBelowSince) as below:
        choose(Request(as_of=ts(3)), window)
    assert (below.value.since, below.value.reason) == (4, "since of u")
    for asked in (Request(as_of=ts(9)), Request(min_read_ts=ts(9))):
        with pytest.raises(ReadInFuture) as above:
            choose(asked, window)
        assert above.value.latest == 8
