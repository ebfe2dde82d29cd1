"""What the kinds of sources have in common: a reader hands out batches, and is told when each may be acknowledged.

    poll ──batch──> one transaction: rows and offsets ──readable──> acknowledge ──> poll ...

A reader keeps nothing that matters: whatever goes wrong, it is thrown away, and another begins at the stored offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from engine.feeds.sources.changes import TableChanges
from engine.session.source_status import Lag


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one transaction is to apply.

    ``changes``: by table; ``offsets``: what becomes of each partition's offset, None: forgotten; ``rows``:
    how many rows or changes there were, by partition; ``positions``: the offsets as people read them;
    ``context``: where its rows are from.
    """

    changes: Mapping[int, TableChanges]
    offsets: Mapping[str, bytes | None]
    rows: Mapping[str, int]
    positions: Mapping[str, str]
    context: str = ""


@dataclass(slots=True, kw_only=True)
class Place:
    """How far a partition has got: ``rows`` since the source exists."""

    position: str
    rows: int


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a reader tells about itself. ``done``: there will never be more. ``activity``: loading: Spark
    reads for it.
    """

    lag: Lag = field(default_factory=Lag)
    done: bool = False
    activity: Literal["running", "snapshot", "loading"] = "running"


class Reader(Protocol):
    """One kind of source, being read. Methods raise SqlError or DataError for what stays wrong, others for
    what may pass.
    """

    progress: Progress

    async def open(self, offsets: Mapping[str, bytes]) -> Mapping[str, Place]:
        """Begin behind stored offsets; return where each partition is. What they cover is acknowledged again
        if need be.
        """

    async def poll(self) -> Batch | None:
        """Return what comes next, None if there is nothing now. The batch before has been acknowledged."""

    async def acknowledge(self, batch: Batch) -> None:
        """Tell upstream that ``batch`` is durable and readable here. Idempotent."""

    async def close(self) -> None:
        """Give up what is open. Idempotent; called in any state."""


class Reread(Exception):
    """While a batch was staged its reader learned that it has to be another one: roll back, and poll again."""


class Temporary(Exception):
    """What is wrong may pass: the source tries again. ``args[0]`` says what it is."""
