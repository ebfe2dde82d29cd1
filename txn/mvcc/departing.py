"""Rows of very many keys that leave memory: what inverted indexes have of them is taken out a slice at a time.

    vacuum, eviction ──► leave(generation, row, values)
                           short values     their entries go at once
                           long ones        the row is *leaving*: turns of the loop make its keys and take out some in each

An entry that is still there while its row is leaving says nothing: who looks a key up goes through the keys
of the version that it may see, as where a row has several (``Generation.judge``). A row may come back
meanwhile, with a new version: what that has stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from txn.base.slices import Slice
from txn.base.types import Row, RowId
from txn.mvcc.generation import Departure, Generation
from txn.mvcc.index import HotIndex
from txn.mvcc.keys import IndexKey, but
from txn.mvcc.many_keys import PARTS, in_parts, is_long


def leave(generation: Generation, row_id: RowId, values: Row) -> None:
    """Take the last version that a row has had in memory out of the indexes."""
    for index in generation.indexes.values():
        if index.make.long is None:
            index.discard(index.make.of_row(values), row_id)
    leave_inverted(generation, row_id, values)


def leave_inverted(generation: Generation, row_id: RowId, values: Row, kept: Sequence[Row] = ()) -> None:
    """Take a version that has left its chain out of the inverted indexes, but for the keys that other
    versions, ``kept``, have. Rows are padded.
    """
    slow: list[HotIndex] = []
    for index in generation.indexes.values():
        make = index.make
        if make.long is None:
            continue
        at = make.long.position
        value = values[at]
        if value is None or any(other[at] is value for other in kept):
            continue
        if is_long(value) or any(other[at] is not None and is_long(other[at]) for other in kept):
            slow.append(index)
        else:
            index.discard(but(make.of_row(values), [make.of_row(other) for other in kept]), row_id)
    if slow:
        _depart(generation, Departure(row_id, values, slow))


def _depart(generation: Generation, row: Departure) -> None:
    for index in row.indexes:
        index.leaving[row.row_id] = index.leaving.get(row.row_id, 0) + 1
    generation.departing.append(row)
    if len(generation.departing) > 1:
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        for _ in _departures(generation):
            pass
        return
    loop.call_soon(_turn, _departures(generation))


def _turn(steps: Iterator[None]) -> None:
    for _ in steps:
        asyncio.get_running_loop().call_soon(_turn, steps)
        return


def _departures(generation: Generation) -> Iterator[None]:
    queue = generation.departing
    while queue:
        row = queue[0]
        for index in row.indexes:
            yield from _take_out(generation, index, row.row_id, row.values)
            left = index.leaving[row.row_id] - 1
            if left:
                index.leaving[row.row_id] = left
            else:
                del index.leaving[row.row_id]
        queue.popleft()
        yield


def _take_out(generation: Generation, index: HotIndex, row_id: RowId, values: Row) -> Iterator[None]:
    long = index.make.long
    if long is None:
        raise AssertionError("an index of short keys departs as one of long keys")
    at = long.position
    keys = yield from long.keys(values)
    kept: list[tuple[Any, frozenset[IndexKey]]] = []
    """The values of versions that the row has, and their keys."""
    pause = Slice(PARTS, look=1)
    for part in in_parts(keys):
        while True:
            there = [v.values for v in generation.chain(row_id) if v.values is not None]
            now = [row[at] for row in map(generation.padded, there)]
            kept = [(value, its) for value, its in kept if any(value is one for one in now)]
            new = [row for row in there if not any(generation.padded(row)[at] is value for value, _ in kept)]
            if not new:
                break
            for row in new:
                padded = generation.padded(row)
                kept.append((padded[at], (yield from long.keys(padded))))
        index.discard(but(part, [its for _, its in kept]), row_id)
        if pause.over():
            yield
