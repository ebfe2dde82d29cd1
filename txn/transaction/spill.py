"""Intents become parts while their statement still runs, so that it may write more rows than memory holds.

    own.rows   7: new (a)   8: new (b)   31: (c) for what began at 40   44: gone, began at 12
                 |            |            |                                |
    own part   7: a         8: b        912: c                              |
    own ends                              31                               44           by part and position (``txn.transaction.bulk_ends``)

A statement that writes row by row (a trigger looks at each, ON CONFLICT asks for each) stages intents; once
it has many it has them ``spilled``. What it and others see stays: the part is its statement's, as the intents
were. New rows keep their ids; what replaces a row comes under a new id, as from ``bulk.replace``, and who
remembers which rows it has changed is told these.

Promises and what they rest on
    the table is locked X         nobody else has a row of it locked, and none of its parts changes
    savepoints                    none that may yet be gone back to lies behind ``mark``; what is spilled is undone as one then
    keys                          unique ones were looked at when the intents were staged, but where that is put off (``check_loaded``)

Intents stay that a later statement looks for by id (``changed_within``: what a nested one has changed), of
rows that have several, and of rows of own parts, whose ends are no bits.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.slices import Slice, in_turns
from txn.base.types import Row, RowId
from txn.mvcc.intents import OwnWrites
from txn.mvcc.parts import PartState
from txn.transaction.bulk import adopt, check_new
from txn.transaction.bulk_ends import end_rows
from txn.transaction.journal import undo_load
from txn.transaction.ports import Intents
from txn.transaction.view import View
from txn.values.columns import rows_to_table_slowly

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

LOOK_ROWS: Final = 2000
"""Entries of the journal that are looked at, or taken out, between two turns of the loop."""
TABLE_ROWS: Final = 4000
"""Rows that become columns together."""


class _Gone:
    """Stands in the journal for the writes that its entries were of: there is nothing to take back, and
    nothing to count.
    """

    @property
    def rows(self) -> Mapping[RowId, Any]:
        """No intents."""
        return {}

    def pop(self, row_id: RowId) -> None:
        """Take nothing back."""


GONE: Final[tuple[Intents, RowId]] = (_Gone(), RowId(0))


async def spill(txn: TransactionState, view: View, mark: int) -> range:
    """Make a part of a shard's intents whose journal entries lie behind ``mark``; returns the new ids of rows
    that were replaced. The caller holds table X.

    Raises what writing a part raises; then the statement must not go on, and is undone to ``mark`` or before.
    """
    own = view.own
    if own is None or not own.rows:
        return range(0)
    for _ in txn.core.locks.drop_covered(txn.owner, view.shard):
        await asyncio.sleep(0)
    places = await _chosen(txn, own, mark)
    new: list[tuple[RowId, Row]] = []
    replacing: list[Row] = []
    ended = array("q")
    pause = Slice(LOOK_ROWS)
    journal = txn.journal
    for place, row_id in places:
        intent = own.rows[row_id]
        if intent.base:
            ended.append(row_id)
            if intent.values is not None:
                replacing.append(intent.values)
        elif intent.values is not None:
            new.append((row_id, intent.values))
        own.pop(row_id)
        journal[place] = GONE
        del intent
        if pause.over():
            await asyncio.sleep(0)
    while len(journal) > mark and journal[-1] is GONE:
        journal.pop()
    for _ in own.drop_indexes():
        await asyncio.sleep(0)
    start = txn.savepoint()
    try:
        if len(ended) and await end_rows(txn, view, ended) != len(ended):
            raise AssertionError(f"a row of shard {view.shard} with an intent has gone")
        new.sort(key=lambda one: one[0])
        ids = array("q", [row_id for row_id, _row in new])
        rows = [row for _row_id, row in new]
        new.clear()
        first = int(view.generation.take_row_ids(len(replacing)))
        made = range(first, first + len(replacing))
        ids.extend(made)
        rows += replacing
        replacing.clear()
        if rows:
            await _write(txn, view, rows, ids)
    except BaseException as error:
        await undo_load(txn, start, error)
        raise
    return made


async def _chosen(txn: TransactionState, own: OwnWrites, mark: int) -> list[tuple[int, RowId]]:
    """Return the places in the journal of the intents that may be spilled, and their rows."""
    places: list[tuple[int, RowId]] = []
    fresh: list[tuple[int, RowId]] = []
    journal, rows, now = txn.journal, own.rows, txn.statement
    pause = Slice(LOOK_ROWS)
    for place in range(mark, len(journal)):
        entry = journal[place]
        if type(entry) is tuple and entry[0] is own:
            intent = rows.get(entry[1])
            if intent is not None and intent.older is None:
                if intent.base:
                    if intent.statement == now:
                        places.append((place, entry[1]))
                elif intent.values is not None and intent.statement >= now:
                    fresh.append((place, entry[1]))
        if pause.over():
            await asyncio.sleep(0)
    if own.parts and fresh:
        parts = [part for _statement, part in own.parts]
        ids = pa.array([row_id for _place, row_id in fresh], pa.int64())
        known = await txn.core.offload(partial(_in_parts, ids, parts))
        fresh = [one for one, there in zip(fresh, known, strict=True) if not there]
    places += fresh
    return places


def _in_parts(ids: Any, parts: list[PartState]) -> list[bool]:
    """Tell of each id whether a part has it. In a thread."""
    found = pa.repeat(pa.scalar(False), len(ids))
    for part in parts:
        found = pc.or_(found, pc.is_in(ids, value_set=part.file.row_ids()))
    values: list[bool] = found.to_pylist()
    return values


async def _write(txn: TransactionState, view: View, rows: list[Row], ids: array[int]) -> None:
    """Make a part of rows, under their ids."""
    spec = view.spec
    width = view.padding.width
    tables: list[Any] = []
    for start in range(0, len(rows), TABLE_ROWS):
        some = [
            row if len(row) >= width else view.padding.pad(row) for row in rows[start : start + TABLE_ROWS]
        ]
        numbers = ids[start : start + TABLE_ROWS]
        tables.append(
            await in_turns(rows_to_table_slowly(spec, some, numbers, array("q", bytes(8 * len(some)))))
        )
        await asyncio.sleep(0)
    txn.core.let_go(rows)
    whole = [pa.concat_tables(tables)]
    tables.clear()
    ref = await txn.core.log.write_part(view.shard, spec, whole[0])
    await txn.core.offload(whole.clear)  # giving memory back to the system takes milliseconds
    await adopt(txn, view, ref)


async def check_loaded(txn: TransactionState, view: View, changed: frozenset[int]) -> None:
    """Look for keys that rows of the running statement have twice, where ``changed`` columns are of a unique
    index; the caller holds table X.

    Raises DuplicateKey.
    """
    own = view.own
    if own is not None:
        parts = [part for statement, part in own.parts if statement == txn.statement]
        await check_new(txn, view, parts, changed)
