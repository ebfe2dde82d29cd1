"""Making what a transaction wrote committed versions, a slice at a time: many rows, wide ones, or such as
have very many keys.

    ops ──► Generation.apply, some rows at a time          most tables
        ──► keys made, entered ahead, then the one row     where an inverted index may have very many of them (``many_keys``)

Who applies a large commit lets others run wherever this yields; nobody can see its rows yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from txn.base.records import RowOp
from txn.base.slices import Slice
from txn.base.types import Timestamp
from txn.mvcc.generation import Generation
from txn.mvcc.index import HotIndex
from txn.mvcc.many_keys import held, longs_of

STAGE_ROWS: Final = 1000
"""Rows that are applied between two turns of the loop: 3 to 5 ms."""
SLICE_ENTRIES: Final = 2000
"""Likewise, of rows and their entries in indexes."""
STEP_ROWS: Final = 16
"""Of these are applied between two looks at the clock."""


def apply_in_slices(
    live: Generation, ops: Sequence[RowOp], ts: Timestamp, over_parts: bool = False
) -> Iterator[None]:
    """Apply operations, fewer in a slice where there are many indexes, or rows have many keys in one."""
    rows = max(min(STAGE_ROWS, SLICE_ENTRIES // (1 + len(live.indexes))), 1)
    inverted = [index for index in live.indexes.values() if index.make.long is not None]
    step = 1 if inverted else min(STEP_ROWS, rows)
    pause = Slice(rows // step, look=1)
    for start in range(0, len(ops), step):
        if inverted:
            yield from _apply_keys_first(live, inverted, ops[start], ts, over_parts)
        else:
            live.apply(ops[start : start + step], ts, over_parts)
        if pause.over():
            yield


def _apply_keys_first(
    live: Generation, inverted: Sequence[HotIndex], op: RowOp, ts: Timestamp, over_parts: bool
) -> Iterator[None]:
    """Apply an operation; where it enters a row under very many keys, they are made and entered before, a
    slice between two yields.
    """
    if op.values is None:
        live.apply((op,), ts, over_parts)
        return
    new = live.padded(op.values)
    head = live.rows.get(op.row_id)
    old = () if head is None or head.values is None else (live.padded(head.values),)
    with held(longs_of(inverted), new, *old) as making:
        yield from making
        for index in inverted:
            make = index.make
            if make.long and make.long.has(new) and not (old and make.of_row(new) == make.of_row(old[0])):
                yield from index.enter_ahead(make.of_row(new), op.row_id)
        live.apply((op,), ts, over_parts)
        for index in inverted:
            index.settle()
