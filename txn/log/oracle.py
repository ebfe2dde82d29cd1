"""The timestamp oracle: one source of timestamps per timeline, durable ahead of use.

Four calls (L1)::

    read_ts()        latest commit that is durable and applied; no side effect
    peek_write_ts()  at or below what the next write would get; no side effect
    write_ts         above everything handed out or applied so far, never behind the clock
    apply_write(ts)  "the write at ts is readable": high-water mark that raises both

The durable bound (Percolator, A22)::

    time ---->   ...... read_ts ... last write_ts ............ bound
                 '--- applied ---'  '-- in flight --'  '- ours, unused -'  nobody may hand these out

Nothing at or above the bound is handed out; the bound is raised in the background while more than half of the
reservation is left, so a commit normally never waits for it. A restart begins above max(bound, log upper) (U2).

Clock (A11, A24-A29, L4): timestamps follow the highest wall clock seen, so a clock that steps back stops
nothing: timestamps go on by their counter. When they run ahead of that by more than ``max_ahead_ms``, commits
wait in steps of at most a second; reads never do. A clock that leaps forward is not believed until it has kept
its new time for ``CONFIRM_S`` seconds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from txn.base.errors import TxnError
from txn.base.time import COUNTER_BITS, MAX_TIMESTAMP, Clock, make_timestamp, timestamp_ms
from txn.base.types import Timestamp
from txn.persist.checksum import seal_number, unseal_number
from txn.persist.location import Consensus, Indeterminate, register_name

RESERVE_MS = 3_000  # a reservation reaches this far beyond the present
RENEW_MS = 1_500  # less than this left: renew in the background
MAX_AHEAD_MS = 10_000  # how far timestamps may outrun the clock before commits wait
MAX_LEAP_MS = 10_000  # a forward step of the wall clock beyond this is doubted
CONFIRM_S = 5.0  # and believed after so long
MAX_THROTTLE_S = 1.0  # the longest single wait
_SKEW_WARN_MS = 10_000
_CAS_ATTEMPTS = 5
_NO_TS = Timestamp(0)
ORACLE_PREFIX = "oracle/"  # of the registers, before the name of the timeline

_log = logging.getLogger(__name__)


class TimestampOracle(Protocol):
    """What a timeline's users see of its oracle."""

    def read_ts(self) -> Timestamp:
        """Return the timestamp of the latest commit that is durable and applied. No side effect."""

    def peek_write_ts(self) -> Timestamp:
        """Return a timestamp no higher than the next write's and above all handed out. No side effect."""

    def try_write_ts(self) -> Timestamp | None:
        """Return a timestamp above all handed out before, or None: ``await wait_ready()``, then again."""

    def claim(self, ts: Timestamp) -> bool:
        """Hand out exactly ``ts``; False if it is not above all handed out before (C31).

        Raises ValueError where that cannot be promised yet: at or above the durable bound.
        """

    def present(self) -> Timestamp:
        """Return a timestamp at or below the next write's and never behind the clock. No side effect."""

    def pass_by(self, ts: Timestamp) -> bool:
        """Hand out nothing at or below ``ts`` any more, because it is read at (A16, L6).

        False where a restart could not know of it: not below the durable bound. Then ``await wait_ready()``, and again.
        """

    async def wait_ready(self, beyond: Timestamp = _NO_TS) -> None:
        """Wait until ``try_write_ts`` can answer, and ``claim(beyond)``. Raises Fenced, OutOfSpace."""

    def apply_write(self, ts: Timestamp) -> None:
        """Make ``ts`` readable: no later read_ts is below it, all later write timestamps are above it."""


class SteadyClock:
    """The highest believable wall clock seen: never goes back, follows a leap only when it persists."""

    def __init__(self, clock: Clock) -> None:
        """Starts at the clock's present."""
        self._clock = clock
        self._high_ms = clock.now_ms()
        self._seen_at = clock.monotonic()
        self._leap_since: float | None = None
        self._warned_skew = False

    def now_ms(self) -> int:
        """Return milliseconds that never decrease."""
        wall = self._clock.now_ms()
        if self._high_ms < wall <= self._high_ms + 1000 and self._leap_since is None:
            # The usual case; the monotonic clock is only asked where something is odd.
            self._high_ms = wall
            self._seen_at = self._clock.monotonic()
            return wall
        if wall <= self._high_ms:
            if self._high_ms - wall > _SKEW_WARN_MS and not self._warned_skew:
                self._warned_skew = True
                _log.warning("the clock is %d ms behind the timestamps in use", self._high_ms - wall)
            self._leap_since = None
            return self._high_ms
        mono = self._clock.monotonic()
        expected = self._high_ms + int((mono - self._seen_at) * 1000)
        if wall <= expected + MAX_LEAP_MS:
            self._leap_since = None
        elif self._leap_since is None:
            self._leap_since = mono
            _log.warning("the clock leapt forward by %d ms; waiting to see if it stays", wall - expected)
        if self._leap_since is not None:
            if mono - self._leap_since < CONFIRM_S:
                self._high_ms = max(self._high_ms, expected)
                self._seen_at = mono
                return self._high_ms
            self._leap_since = None
        self._high_ms = wall
        self._seen_at = mono
        self._warned_skew = False
        return wall

    def raise_to(self, ms: int) -> None:
        """Timestamps of an earlier run reach to ``ms``: time does not start below."""
        if ms > self._high_ms:
            self._high_ms = ms
            self._seen_at = self._clock.monotonic()

    def skew_ms(self) -> int:
        """Return how far the wall clock is behind (>= 0)."""
        return max(0, self._high_ms - self._clock.now_ms())


def bound_key(timeline: str) -> str:
    """Return the name of the register with a timeline's bound."""
    return ORACLE_PREFIX + timeline


class DurableOracle:
    """A TimestampOracle whose bound is a register in consensus. Made by ``open``; synchronous but for waits."""

    def __init__(self, consensus: Consensus, timeline: str, epoch: int, clock: Clock | SteadyClock) -> None:
        """Use ``open``."""
        self._consensus = consensus
        self._key = bound_key(timeline)
        self._epoch = epoch
        self._clock = clock if isinstance(clock, SteadyClock) else SteadyClock(clock)
        self._register_seq: int | None = None
        self._bound = Timestamp(0)  # durable; exclusive
        self._last = Timestamp(0)  # highest handed out or applied
        self._read = Timestamp(0)
        self._renewal: asyncio.Task[None] | None = None
        self._closed = self._removed = False
        self.max_ahead_ms = MAX_AHEAD_MS

    @classmethod
    async def open(
        cls,
        consensus: Consensus,
        timeline: str,
        epoch: int,
        clock: Clock | SteadyClock,
        *,
        log_upper: Timestamp,
    ) -> DurableOracle:
        """Start above max(stored bound, ``log_upper`` - 1) with a first reservation made (A23, A40).

        ``clock``: a SteadyClock where several oracles follow one.

        Raises:
            Fenced: ``epoch`` is not the current one.
            UnknownFormat: the register was written by a newer server.
            DamagedFile: it is damaged, so nothing is known of what was handed out.
        """
        self = cls(consensus, timeline, epoch, clock)
        head = await consensus.head(self._key)
        stored = Timestamp(0)
        if head is not None:
            self._register_seq = head.seq
            stored = Timestamp(unseal_number(register_name(self._key, consensus), head.data))
        start = Timestamp(max(stored, log_upper, 1))
        self._clock.raise_to(timestamp_ms(start))
        self._last = self._read = start
        self._bound = stored
        await self._reserve()
        return self

    # -- the four calls ----------------------------------------------------------------------------

    def read_ts(self) -> Timestamp:
        """See TimestampOracle."""
        return self._read

    def peek_write_ts(self) -> Timestamp:
        """See TimestampOracle."""
        return Timestamp(self._last + 1)

    def try_write_ts(self) -> Timestamp | None:
        """See TimestampOracle."""
        now_ms = self._clock.now_ms()
        ts = max(self._last + 1, now_ms << COUNTER_BITS)
        left = self._bound - ts
        if left < RENEW_MS << COUNTER_BITS:
            if left <= 0:
                return None
            self._renew_soon()
        if ts >> COUNTER_BITS > now_ms + self.max_ahead_ms:
            return None
        self._last = Timestamp(ts)
        return self._last

    def apply_write(self, ts: Timestamp) -> None:
        """See TimestampOracle."""
        if ts > self._read:
            self._read = ts
        if ts > self._last:
            self._last = ts

    def present(self) -> Timestamp:
        """See TimestampOracle."""
        return Timestamp(max(self._last + 1, self._clock.now_ms() << COUNTER_BITS))

    def claim(self, ts: Timestamp) -> bool:
        """See TimestampOracle."""
        if ts <= self._last:
            return False
        if ts >= self._bound:
            raise ValueError(f"timestamp {ts} is beyond the reservation, which ends at {self._bound}")
        self._last = ts
        return True

    def pass_by(self, ts: Timestamp) -> bool:
        """See TimestampOracle."""
        if ts > self._last:
            if ts >= self._bound:
                return False
            self._last = ts
        return True

    # -- waits -------------------------------------------------------------------------------------

    async def wait_ready(self, beyond: Timestamp = _NO_TS) -> None:
        """See TimestampOracle. Waits for the clock in steps of at most ``MAX_THROTTLE_S``."""
        while (lead := ((self._last + 1) >> COUNTER_BITS) - self._clock.now_ms() - self.max_ahead_ms) > 0:
            await asyncio.sleep(min(lead / 1000, MAX_THROTTLE_S))
        if self._renewal is not None:
            await asyncio.wait([self._renewal])
        if self._bound <= max(self._last + 1, self._clock.now_ms() << COUNTER_BITS, beyond):
            await self._reserve(beyond)

    def _renew_soon(self) -> None:
        if self._renewal is None and not self._closed:
            self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._reserve()
        except TxnError as error:
            # A commit that finds the reservation used up tries again itself and reports the error.
            _log.warning("could not extend the timestamp reservation: %s", error)
        finally:
            self._renewal = None

    async def _reserve(self, beyond: Timestamp = _NO_TS) -> None:
        present = max(timestamp_ms(self._last), self._clock.now_ms(), timestamp_ms(beyond))
        await self._write_bound(make_timestamp(present + RESERVE_MS))

    async def _write_bound(self, bound: Timestamp) -> None:
        """Store ``bound`` and use it once it is known to be durable."""
        if not 0 < bound < MAX_TIMESTAMP:
            raise OverflowError(f"timestamp bound {bound} is out of range")
        data = seal_number(bound)
        for _ in range(_CAS_ATTEMPTS):
            if self._removed:
                return
            try:
                seq = await self._consensus.compare_and_set(
                    self._key, self._register_seq, data, epoch=self._epoch
                )
            except Indeterminate:
                seq = None
            if seq is None:
                seq = await self._read_back(data)
            if seq is not None:
                self._register_seq = seq
                self._bound = MAX_TIMESTAMP if self._removed else bound
                return
        raise Indeterminate("the timestamp reservation could not be stored")

    async def _read_back(self, data: bytes) -> int | None:
        """Return the register's sequence number if it holds ``data``; None: try again.

        Another value is one of ours from an attempt whose outcome was never learnt: a newer leader would
        have made the compare-and-set fail with Fenced.
        """
        try:
            head = await self._consensus.head(self._key)
        except Indeterminate:
            return None
        self._register_seq = None if head is None else head.seq
        return head.seq if head is not None and head.data == data else None

    async def close(self) -> None:
        """Give unused timestamps back, so that a restart does not begin ahead of the clock. Idempotent.

        Nothing may be handed out any more. Failure is harmless: the bound stays where it is.
        """
        if self._closed:
            return
        self._closed = True
        if self._renewal is not None:
            await asyncio.wait([self._renewal])
        lowered = Timestamp(self._last + 1)
        self._bound = Timestamp(0)
        try:
            await self._write_bound(lowered)
        except TxnError as error:
            _log.info("the timestamp bound was not lowered at the end: %s", error)
        self._bound = Timestamp(0)

    async def remove(self) -> None:
        """Delete the register: the timeline was dropped. Leave that of a new timeline of the same name.

        What is still waiting for a timestamp gets one that nobody will ask about: nothing is in the timeline.
        Idempotent. Raises Fenced, OutOfSpace, Indeterminate: it may be there still.
        """
        self._closed = self._removed = True
        self._bound = MAX_TIMESTAMP
        if self._renewal is not None:
            await asyncio.wait([self._renewal])
        if self._register_seq is not None:
            await self._consensus.compare_and_set(self._key, self._register_seq, None, epoch=self._epoch)

    @property
    def last_ts(self) -> Timestamp:
        """The highest timestamp handed out or applied."""
        return self._last

    @property
    def bound(self) -> Timestamp:
        """The durable reservation: nothing at or above it is handed out."""
        return self._bound

    def skew_ms(self) -> int:
        """Return how far the wall clock is behind the clock of the timestamps (>= 0)."""
        return self._clock.skew_ms()

    def validate(self) -> None:
        """Check the invariants (A16-A22)."""
        if self._read > self._last:
            raise AssertionError(f"read_ts {self._read} is above the last timestamp {self._last}")
        if not self._closed and self._last > self._bound:
            raise AssertionError(f"timestamp {self._last} is above the durable bound {self._bound}")
