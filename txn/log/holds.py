"""Read holds: who still reads at which timestamp, and what may therefore be forgotten (A30, C40, D71, U16).

One registry for each timeline. A hold at ``ts`` promises that every version visible at ``ts`` stays readable
and that every part file captured while it is held stays on disk. The *low watermark* is the lowest timestamp
anyone may still read; versions superseded at or below it may go.

A *durable* hold is one that its owner takes again after a restart (a named subscription's). Manifests then keep
history from it on (``kept_from``), which they do for nobody else.
"""

from __future__ import annotations

from collections.abc import Callable

from txn.base.errors import ReadBelowSince
from txn.base.types import Timestamp


class Hold:
    """One promise. ``serial`` orders holds by when they were taken. Release it once.

    ``lost``: a durable hold that kept too much and was taken away (``Coordinator.take_away``).
    """

    __slots__ = ("_home", "durable", "lost", "serial", "ts")

    def __init__(self, home: HoldRegistry, serial: int, ts: Timestamp, *, durable: bool = False) -> None:
        self._home = home
        self.serial = serial
        self.ts = ts
        self.durable = durable
        self.lost = False

    def release(self) -> None:
        """Give it up in the registry that it was taken in. Idempotent."""
        self._home.release(self)


class Serials:
    """Numbers holds in the order in which they are taken, in whichever timeline of a store."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        """None was taken yet."""
        self.last = 0


class HoldRegistry:
    """All holds of a timeline.

    ``since`` is the lowest readable timestamp; it only grows, and never past a hold.
    """

    def __init__(
        self,
        read_ts: Callable[[], Timestamp],
        since: Timestamp,
        retention_ms: int = 0,
        serials: Serials | None = None,
    ) -> None:
        """``retention_ms``: how far into the past reads stay possible without a hold. ``serials``: shared ones."""
        self._read_ts = read_ts
        self._retention = retention_ms << 16
        self._holds: dict[int, Hold] = {}
        self.serials = Serials() if serials is None else serials
        self.since = since

    def acquire(self, ts: Timestamp | None = None, *, durable: bool = False) -> Hold:
        """Hold ``ts`` (default: now). Raises ReadBelowSince when it is not readable any more."""
        if ts is None:
            ts = self._read_ts()
        elif ts < self.since:
            raise ReadBelowSince(ts, self.since)
        serials = self.serials
        serial = serials.last = serials.last + 1
        hold = Hold(self, serial, ts, durable=durable)
        self._holds[serial] = hold
        return hold

    def release(self, hold: Hold) -> None:
        """Give a hold up. Idempotent."""
        self._holds.pop(hold.serial, None)

    def all(self) -> list[Hold]:
        """Return the holds, oldest first."""
        return list(self._holds.values())

    def __len__(self) -> int:
        """Number of holds."""
        return len(self._holds)

    def restart(self, floor: Timestamp, *, whole: bool = False) -> Timestamp:
        """After recovery: nothing below ``floor`` is readable, nor beyond retention unless ``whole``. Returns
        ``since``.
        """
        now = self._read_ts()
        self.since = Timestamp(max(min(floor, now), 1 if whole else now - self._retention, 1))
        return self.since

    def durable(self) -> list[Hold]:
        """Return the durable holds, oldest first."""
        return [hold for hold in self._holds.values() if hold.durable]

    def kept_from(self, cut: Timestamp) -> Timestamp:
        """Return from where on a manifest made at ``cut`` has to know history: the lowest durable hold, else
        ``cut``.
        """
        return min([cut, *(hold.ts for hold in self.durable())])

    @property
    def retained(self) -> Timestamp:
        """From where on retention keeps history by itself."""
        return Timestamp(self._read_ts() - self._retention)

    @property
    def latest_serial(self) -> int:
        """The serial of the newest hold ever taken, in any timeline."""
        return self.serials.last

    def oldest_serial(self) -> int:
        """Return the serial of the oldest hold, or one above the newest ever taken."""
        return min(self._holds, default=self.serials.last + 1)

    def low_watermark(self, beyond_retention: int = 0) -> Timestamp:
        """Advance ``since`` as far as holds and retention allow, and return it.

        ``beyond_retention``: up to there retention does not count (memory for history has a bound).
        """
        now = self._read_ts()
        lowest = Timestamp(max(now - self._retention, min(beyond_retention, now)))
        for hold in self._holds.values():
            if hold.ts < lowest:
                lowest = hold.ts
        if lowest > self.since:
            self.since = lowest
        return self.since
