"""Choosing a read timestamp: bounds with reasons, then the freshest or the stalest that satisfies all (L5).

    lower bounds   since of each shard, what this session has seen, a demanded minimum
    upper bounds   the oracle's read_ts, the upper of a shard, AS OF

The same values feed EXPLAIN (TIMESTAMP): every bound is kept, and the answer says which one decided. This is a
pure function of its inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from txn.errors import ReadBelowSince
from txn.types import Timestamp


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the read timestamp, inclusive, and why it holds."""

    ts: Timestamp
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The chosen timestamp; ``decided_by`` is the bound it lies on."""

    ts: Timestamp
    decided_by: Bound
    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]
    preference: Literal["freshest", "stalest"]

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
        raise ReadBelowSince(high.ts, low.ts)
    decided = high if preference == "freshest" else low
    if decided is None:
        raise ValueError(f"no bound on the {preference} side")
    return Selection(ts=decided.ts, decided_by=decided, lower=lower, upper=upper, preference=preference)
