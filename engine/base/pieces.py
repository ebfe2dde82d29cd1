"""Results cut by bytes: what gathers on the way to a client is a few megabytes, however long the values are.

batch of 1,024 rows, 1 GB ──> 1,024 parts of one row        batch of 1,024 rows, 50 kB ──> itself
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.base.rows import RowBatch, RowTuple
from pgwire.codecs.rows import LONG_BYTES
from pgwire.codecs.sizes import Measure
from pgwire.give_way import openly

PART_BYTES: Final = LONG_BYTES
"""Tuples of more than that are cut, rows of more than that are long."""
PART_ROWS: Final = 1024
"""Rows that are encoded between two turns of the loop: a millisecond, where they are short."""
FEW_BYTES: Final = 8 << 20
"""Rows that a statement writes are written as parts, however few they are, where they are larger together."""
ARROW_BYTES: Final = 4 << 20
"""As ``PART_BYTES``, for Arrow batches: the engines' are as large (``engine.executors.local.executor``)."""


def cut_rows(rows: Sequence[RowTuple], measure: Measure | None) -> Iterator[tuple[Sequence[RowTuple], bool]]:
    """Yield the rows in parts of at most ``PART_ROWS`` and ``PART_BYTES``, and whether a part is one long row."""
    for start in range(0, len(rows), PART_ROWS):
        some = rows[start : start + PART_ROWS]
        if measure is None:
            yield some, False
        else:
            yield from _cut_long(some, measure)


def _cut_long(rows: Sequence[RowTuple], measure: Measure) -> Iterator[tuple[Sequence[RowTuple], bool]]:
    todo = [rows]
    while todo:
        part = todo.pop()
        if openly(measure, part) <= PART_BYTES:
            yield part, False
        elif len(part) == 1:
            yield part, True
        else:
            middle = len(part) // 2
            todo += [part[middle:], part[:middle]]


def cut_arrow(batch: Any) -> Iterator[tuple[Any, bool]]:
    """Yield a RecordBatch in slices of at most ``ARROW_BYTES``, and whether a slice is one long row."""
    todo = [batch]
    while todo:
        part = todo.pop()
        if part.nbytes <= ARROW_BYTES:
            yield part, False
        elif part.num_rows == 1:
            yield part, True
        else:
            middle = part.num_rows // 2
            todo += [part.slice(middle), part.slice(0, middle)]


def cut(batch: RowBatch, measure: Measure | None) -> Iterator[tuple[RowBatch, bool]]:
    """Yield a batch in parts, and whether a part is one long row."""
    if batch.rows is not None:
        for rows, long in cut_rows(batch.rows, measure):
            yield RowBatch(rows=rows), long
    else:
        for arrow, long in cut_arrow(batch.arrow):
            yield RowBatch(arrow=arrow), long
