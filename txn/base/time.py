"""Timestamps, and the three things a core may not take from the world by itself: clock, randomness, ids.

A timestamp is 64 bits, positive, and fits PostgreSQL's ``bigint`` (U1, A46)::

     63            16 15         0
    +----------------+------------+
    |  Unix ms       |  counter   |     65,536 timestamps per millisecond
    +----------------+------------+

``Clock``, ``Rng`` and ``IdGen`` are given by the composition root; ``txn`` never calls ``time``, ``random`` or
``uuid`` anywhere but in the ``System...`` classes below. Simulation gives seeded ones.
"""

from __future__ import annotations

import random  # noqa: TID251 - the system implementation of Rng
import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from txn.base.types import Timestamp

COUNTER_BITS = 16
COUNTER_MASK = (1 << COUNTER_BITS) - 1
MIN_TIMESTAMP = Timestamp(1)
# Elsewhere than on Linux, CLOCK_MONOTONIC itself includes suspend (macOS).
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_TIMESTAMP = Timestamp((1 << 63) - 1)


def make_timestamp(unix_ms: int, counter: int = 0) -> Timestamp:
    """Return the timestamp of ``unix_ms`` (>= 0) and ``counter`` (0 .. 65535)."""
    return Timestamp(unix_ms << COUNTER_BITS | counter)


def timestamp_ms(ts: Timestamp) -> int:
    """Return the Unix milliseconds of a timestamp."""
    return ts >> COUNTER_BITS


def timestamp_counter(ts: Timestamp) -> int:
    """Return the counter (0 .. 65535) of a timestamp."""
    return ts & COUNTER_MASK


def moment_text(ts: Timestamp) -> str:
    """Return a timestamp's time in UTC, as messages show it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms(ts))
    except OverflowError:
        return "after the year 9999"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "+00")


class Clock(Protocol):
    """Wall time, which may jump either way, and monotonic time, which only grows."""

    def now_ms(self) -> int:
        """Return Unix milliseconds. May go backwards."""

    def monotonic(self) -> float:
        """Return seconds since some moment; never decreases."""

    def boottime(self) -> float:
        """Return seconds since some moment; never decreases, and goes on while the machine is suspended."""


class Rng(Protocol):
    """Randomness that a seed repeats."""

    def random(self) -> float:
        """Return a float, uniform in [0, 1)."""

    def randrange(self, stop: int) -> int:
        """Return an int, uniform in [0, stop)."""


class IdGen(Protocol):
    """Names that nobody else gives (blobs, jobs)."""

    def next_id(self) -> str:
        """Return 16 or more characters of [0-9a-z], never the same twice."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Return Unix milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()  # noqa: TID251 - the system implementation of Clock

    def boottime(self) -> float:
        """Return seconds since the machine was started, suspended or not; the same for all its processes."""
        return time.clock_gettime(_BOOTTIME)


class SystemRng:
    """Python's generator, seeded by the operating system or by ``seed``."""

    def __init__(self, seed: int | None = None) -> None:
        """``seed`` None: from the operating system."""
        self._random = random.Random(seed)

    def random(self) -> float:
        """Return a float, uniform in [0, 1)."""
        return self._random.random()

    def randrange(self, stop: int) -> int:
        """Return an int, uniform in [0, stop)."""
        return self._random.randrange(stop)


class SystemIdGen:
    """80 random bits per id."""

    def next_id(self) -> str:
        """Return 20 hexadecimal digits."""
        return secrets.token_hex(10)


class SequentialIdGen:
    """Ids 1, 2, 3 ... after a prefix: for tests and simulation, where names must repeat."""

    def __init__(self, prefix: str = "") -> None:
        """``prefix`` tells generators apart; only [0-9a-z]."""
        self._prefix = prefix
        self._next = 0

    def next_id(self) -> str:
        """Return the next id, zero-padded to 16 digits after the prefix."""
        self._next += 1
        return f"{self._prefix}{self._next:016d}"
