"""What VACUUM and CHECKPOINT have done since the server's start, for pg_stat_bgwriter and pg_stat_*_tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

KEPT: Final = 65_536
"""Tables of which it is remembered; others count as never vacuumed."""


@dataclass(slots=True)
class Upkeep:
    """Of all databases.

    Attributes:
        checkpoints: how many were asked for.
        checkpoint_ms: how long they took together.
        vacuumed: when VACUUM ended on a table last, and how often it has, by oid.
    """

    checkpoints: int = 0
    checkpoint_ms: float = 0.0
    vacuumed: dict[int, tuple[int | None, int]] = field(default_factory=dict)

    def note_checkpoint(self, began_us: int, ended_us: int) -> None:
        """A CHECKPOINT has ended."""
        self.checkpoints += 1
        self.checkpoint_ms += max(ended_us - began_us, 0) / 1000

    def note_vacuum(self, oids: Iterable[int], now_us: int) -> None:
        """A VACUUM of some tables has ended."""
        for oid in oids:
            _, before = self.vacuumed.pop(oid, (None, 0))  # so that it counts as the newest
            self.vacuumed[oid] = (now_us, before + 1)
            if len(self.vacuumed) > KEPT:
                del self.vacuumed[next(iter(self.vacuumed))]
