"""Steps of matching: counted, so that whoever else waits comes in between.

A step is about a character looked at, some fifty nanoseconds; ``spend`` is called with many at once.
"""

from __future__ import annotations

from typing import Final

from pgwire.give_way import give_way

QUANTUM: Final = 10_000
"""Steps after which others are let in: half a millisecond."""


class _Steps:
    """How many steps have been taken since others were let in."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = 0


_STEPS: Final = _Steps()


def spend(steps: int) -> None:
    """Count steps, and let others in where they are many. Whatever interrupts the statement is raised from here."""
    _STEPS.taken += steps
    if _STEPS.taken >= QUANTUM:
        _STEPS.taken = 0
        give_way()
