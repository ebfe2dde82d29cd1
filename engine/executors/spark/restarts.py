"""When the next JVM may start after one has ended by itself.

lived STEADY_S or more     at once
ended sooner               after 1, 2, 4 ... LONGEST_S seconds, so that a JVM which cannot live does not take the machine
"""

from __future__ import annotations

from typing import Final

STEADY_S: Final = 60.0
FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0


class Restarts:
    """Counts early ends. Times are of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        """None has ended early."""
        self._early = 0
        self._up_at = 0.0
        self._next_at = 0.0
        self.wanted = False
        """Whether one was up, so that there is something to start again."""

    def came_up(self, now: float) -> None:
        """A JVM is ready."""
        self._up_at = now
        self.wanted = True

    def ended(self, now: float) -> None:
        """It has ended by itself."""
        if now - self._up_at >= STEADY_S:
            self._early = 0
            self._next_at = now
        else:
            self.failed(now)

    def failed(self, now: float) -> None:
        """It ended early, or did not come up again."""
        self._next_at = now + min(FIRST_S * 2.0 ** min(self._early, 32), LONGEST_S)
        self._early += 1

    def wait_s(self, now: float) -> float:
        """Return how long the next start has to wait."""
        return max(self._next_at - now, 0.0)
