"""Rows on their way from an executor to a client: the one form in which all executors give results.

index    tuples, often ready at once ──> ReadyRows ─┐
local    Arrow batches ────────────────> RowStream ─┼──> portal ──> ``output`` encodes ──> DataRow
spark    Arrow batches ────────────────> RowStream ─┘
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from pgwire.codecs.sizes import row_bytes
from planner.query import OutputColumn

RowTuple: TypeAlias = tuple[Any, ...]


@dataclass(slots=True)
class RowBatch:
    """Some rows of a result, in one of two shapes: ``rows`` (tuples in the value domain) or ``arrow``.

    ``arrow`` is a pyarrow.RecordBatch whose columns are in the engines' physical form: the same kinds as
    ``txn.base.types`` documents for parts (numeric as decimal128 or struct, interval as struct, uuid as 16 bytes).
    Exactly one is set.
    """

    rows: Sequence[RowTuple] | None = None
    arrow: Any = None

    def __len__(self) -> int:
        """Number of rows."""
        if self.rows is not None:
            return len(self.rows)
        return int(self.arrow.num_rows)

    @property
    def nbytes(self) -> int:
        """About how many bytes its values take: of tuples, judged by the first and the last."""
        if self.rows is None:
            return int(self.arrow.nbytes)
        return max(row_bytes(self.rows[0]), row_bytes(self.rows[-1])) * len(self.rows) if self.rows else 0


MANY_ROWS: Final = 1024
"""So many rows are computed at a time where all are wanted."""


@dataclass(slots=True)
class Wanted:
    """How many rows who reads a result is going to ask for before anything else happens."""

    rows: int = MANY_ROWS


def _nothing() -> None:
    return None


@dataclass(slots=True)
class RowStream:
    """A result being produced. Iterate ``batches`` once; ``close`` cancels what still runs (idempotent).

    ``live``: it waits for what others do (SUBSCRIBE), so rows are handed on as they come. ``wanted``: where
    who reads says how many rows come next, so that no others are computed.
    """

    columns: tuple[OutputColumn, ...]
    batches: AsyncIterator[RowBatch]
    close: Callable[[], None] = field(default=_nothing)
    live: bool = False
    wanted: Wanted | None = None


@dataclass(slots=True)
class ReadyRows:
    """A result that is complete at once (point reads, constants): no task switch needed."""

    columns: tuple[OutputColumn, ...]
    rows: Sequence[RowTuple]


class Source(Protocol):
    """Where the rows of a subscription come from."""

    async def poll(self, timeout_s: float | None) -> list[RowTuple] | None:
        """Return the next rows (maybe none), or None if no commit brought any within ``timeout_s`` (None: no limit).

        May be cancelled without losing rows. Raises StopAsyncIteration at the end.
        """

    def close(self) -> None:
        """Give everything up; idempotent."""
