"""Rows that end many at once, named by part and position: one bit per row of a part, in memory and in the log.

    row ids (8 bytes each) ──thread──> part 4-17: 0110 1111 ...   own.ended ──commit──> EndedRows ──apply──> PartState
                              │        part 4-20: 0000 0100 ...
                              └──────> the rest, row by row: hot rows, rows with own intents, rows of own parts

Log entries name rows, not positions, because parts are merged. Here positions serve, for

    in memory      the table is locked X and its generation pinned, so no part of it changes or leaves before the commit
    after a crash  the parts named are in the manifest, or in an entry of the log that brought them; so replaying the
                   entry meets them. Rows of others (a manifest could not be stored yet) go row by row

The caller holds table X. Later statements of the transaction see parts without these rows
(``mvcc.own_ends``); a rollback forgets them.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.records import EndedRows
from txn.base.types import RowId
from txn.mvcc.generation import StoreCorrupted
from txn.mvcc.own_ends import Ended
from txn.mvcc.parts import Hiding, PartState
from txn.mvcc.version import INFINITY
from txn.transaction import writes
from txn.transaction.journal import note, undo_load
from txn.transaction.view import View
from txn.values.columns import int64_array

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

UPKEEP_POLL_S: Final = 0.005
REST_ROWS: Final = 20_000  # row by row: so many at once


async def end_rows(txn: TransactionState, view: View, row_ids: Any) -> int:
    """End rows of a shard; returns how many were there. The caller holds table X.

    ``row_ids``: ``array('q')``, or an Arrow int64 array without NULLs. Each counts once.

    Raises what ended the transaction meanwhile; then nothing is staged.
    """
    core, generation = txn.core, view.generation
    own = txn.own_writes(view)
    mark = txn.savepoint()
    try:
        while generation.upkeep:  # it may be writing parts that no manifest names yet
            await asyncio.sleep(UPKEEP_POLL_S)
        txn.life.check_active()
        txn.pin(generation)
        named = core.log.named_parts(view.shard)
        parts = own.without_ended(tuple(p for p in generation.parts if p.ref.name in named), INFINITY)
        hiding = [part.hiding(INFINITY) for part in parts]
        ids = int64_array(row_ids) if isinstance(row_ids, array) else row_ids
        # Some of the hot rows may be in parts as well: those whose older versions are still read by somebody.
        hot = [*own.rows, *generation.rows]
        ended, rest = await core.offload(partial(_divide, ids, hot, parts, hiding))
        txn.life.check_active()
        if ended:
            own.end_rows(txn.statement, ended)
            note(txn, own.undo_end)
        count = sum(part.rows for part in ended.values())
        for start in range(0, len(rest), REST_ROWS):
            some: list[RowId] = rest.slice(start, REST_ROWS).to_pylist()
            found = txn.run(writes.delete(txn, view.shard, some))
            count += sum(await found if isinstance(found, Awaitable) else found)
    except BaseException as error:
        await undo_load(txn, mark, error)
        raise
    return count


def _divide(
    ids: Any, hot: list[int], parts: Sequence[PartState], hiding: Sequence[Hiding]
) -> tuple[dict[str, Ended], Any]:
    """Return what of ``ids`` ends in which part, and the ids of rows that are in none of them. In a thread.

    ``hot``: rows with versions in memory or own intents, which are not looked for. ``hiding``: per part what
    computes the positions that have ended.
    """
    ids = pc.unique(ids)
    ids = ids.take(pc.array_sort_indices(ids))
    rest = ids.slice(0, 0)
    if hot:
        in_memory = pc.is_in(ids, value_set=pa.array(hot, pa.int64()))
        ids, rest = ids.filter(pc.invert(in_memory)), ids.filter(in_memory)
    ended: dict[str, Ended] = {}
    found: list[Any] = []
    for part, dead in zip(parts, hiding, strict=True):
        there = part.file.row_ids()
        bounds = pc.min_max(there).as_py()
        low = pc.search_sorted(ids, pa.scalar(bounds["min"], pa.int64()), side="left").as_py()
        high = pc.search_sorted(ids, pa.scalar(bounds["max"], pa.int64()), side="right").as_py()
        if low >= high:
            continue
        mask = pc.is_in(there, value_set=ids.slice(low, high - low))
        gone = dead()
        if gone is not None:
            mask = pc.and_not(mask, _bits(gone, len(mask)))
        mask = pa.concat_arrays([mask]) if mask.offset else mask
        rows = mask.true_count
        if rows:
            found.append(there.filter(mask))
            bits = mask.buffers()[1].slice(0, (len(mask) + 7) // 8)
            record = EndedRows(part.ref.name, pa.compress(bits, "zstd", asbytes=True))
            ended[part.ref.name] = Ended(mask, rows, record)
    total = sum(part.rows for part in ended.values())
    if total > len(ids):
        raise StoreCorrupted("a row is current in two parts")
    if total < len(ids):
        missing = pc.invert(pc.is_in(ids, value_set=pa.concat_arrays([rest, *found])))
        rest = pa.concat_arrays([rest, ids.filter(missing)])
    return ended, rest


def _bits(positions: Any, rows: int) -> Any:
    """Return the boolean array of length ``rows`` that is true at ``positions``."""
    marks = pc.scatter(pa.repeat(pa.scalar(True), len(positions)), positions, max_index=rows - 1)
    return pc.fill_null(marks, False)
