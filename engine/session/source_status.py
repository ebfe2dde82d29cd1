"""What there is to tell of a source: how far it has got, how far it is behind, what went wrong (holdfast_sources)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from txn.base.types import Timestamp

if TYPE_CHECKING:
    pass


@dataclass(slots=True, kw_only=True)
class Lag:
    """What is there upstream and not here, None where that cannot be known; ``unit``: rows, files, bytes."""

    amount: int | None = None
    unit: str = ""


State = Literal["starting", "snapshot", "loading", "running", "retrying", "stopped", "paused", "done"]


@dataclass(slots=True)
class PartitionStatus:
    """What holdfast_sources shows of a partition. Times in microseconds since 1970, None: not since this start."""

    position: str
    rows: int
    ts: Timestamp | None = None
    committed_us: int | None = None
    acknowledged_position: str | None = None
    acknowledged_ts: Timestamp | None = None
    acknowledged_us: int | None = None


@dataclass(slots=True)
class Status:
    """What holdfast_sources shows of a source."""

    state: State = "starting"
    partitions: dict[str, PartitionStatus] = field(default_factory=dict)
    lag: Lag = field(default_factory=Lag)
    last_error: str | None = None
    last_error_us: int | None = None
