"""What executors read: a shard at one timestamp as parts minus hidden rows plus one Arrow table of hot rows.

A snapshot is captured in one loop tick (``_capture``): the tuple of parts, the segments of the columnar log and
how far they go, and up to where hot versions are in parts already. After that nothing can disturb it: parts and
segments are never changed in a way a held timestamp could see. Work that takes long is then done in pieces.

    hot = for each segment: entries with begin <= ts < end, except those that are in a part
          minus rows the reader has written itself, plus its own
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.errors import anew
from txn.base.slices import steps_of
from txn.base.types import (
    Row,
    RowId,
    ShardId,
    ShardSpec,
    ShardStats,
    Snapshot,
    SnapshotPart,
    StoredRow,
    Timestamp,
)
from txn.mvcc.generation import Cold
from txn.mvcc.hotlog import Segment
from txn.mvcc.intents import OwnWrites
from txn.mvcc.parts import PartState
from txn.mvcc.version import Version
from txn.transaction.reads import fetch, stored
from txn.transaction.view import Steps, View
from txn.values.columns import int64_array, rows_to_table_slowly, table_schema
from txn.values.exact import concatenated

if TYPE_CHECKING:
    from txn.transaction.state import TransactionState

CHUNK_ROWS: Final = 2000
"""Rows converted or scanned between two turns of the event loop: two to five milliseconds."""
MASKED_FROM: Final = 256
"""Entries of a segment from which on it pays to find the visible ones by columns: many may be history."""


class Capture(NamedTuple):
    """A shard at one moment."""

    ts: int
    parts: tuple[PartState, ...]
    segments: tuple[tuple[Segment, int], ...]
    resident: int
    resident_history: bool
    hidden: frozenset[RowId]
    own_rows: list[tuple[RowId, Row]]


def capture_at(view: View, ts: Timestamp) -> Capture:
    """Capture the committed rows of a shard at ``ts``, which the caller holds."""
    generation = view.generation
    return Capture(
        ts,
        generation.parts_at(ts),
        generation.log.capture(),
        generation.resident,
        generation.resident_history,
        frozenset(),
        [],
    )


OwnRows = tuple[frozenset[RowId], list[tuple[RowId, Row]]]
"""Rows whose committed version own writes hide, and own rows, as a statement sees them."""


def _own(own: OwnWrites, statement: int) -> OwnRows:
    if not own.rows:
        return frozenset(), []
    return own.hidden_ids(statement), list(own.visible_rows(statement))


def _own_in_steps(own: OwnWrites, statement: int) -> Steps[OwnRows]:
    """As ``_own``, of many: nobody else changes them, nor the rows that they hide."""
    hidden: list[RowId] = []
    rows: list[tuple[RowId, Row]] = []
    for done, row_id in enumerate(own.rows, 1):
        intent = own.seen(row_id, statement)
        if intent is not None:
            hidden.append(row_id)
            if intent.values is not None:
                rows.append((row_id, intent.values))
        if done % CHUNK_ROWS == 0:
            yield asyncio.sleep(0)
    return frozenset(hidden), rows


def _captured(txn: TransactionState, view: View) -> Steps[Capture]:
    """Return ``_capture``; what is to be looked through of own writes before it in steps, where it is much."""
    own = view.own
    if own is None or len(own.rows) <= CHUNK_ROWS:
        return _capture(txn, view)
    return _capture(txn, view, (yield from _own_in_steps(own, txn.statement)))


def _capture(txn: TransactionState, view: View, seen: OwnRows | None = None) -> Capture:
    generation = view.generation
    own = view.own
    ts = txn.core.domain_of(view.shard).read_ts() if txn.writing else txn.read_ts
    hidden, own_rows = seen or ((frozenset(), []) if own is None else _own(own, txn.statement))
    return Capture(
        ts,
        view.parts(txn.statement, ts),
        generation.log.capture(),
        generation.resident,
        generation.resident_history,
        hidden,
        own_rows,
    )


def take(txn: TransactionState, view: View) -> Steps[Snapshot]:
    """Make the snapshot of a shard at the transaction's timestamp, own intents included."""
    at = yield from _captured(txn, view)
    spec = view.spec
    tables: list[Any] = []
    converted = 0
    for segment, length in at.segments:
        mask = _mask(segment, length, at.ts, at.resident, at.resident_history)
        if mask is False:
            continue
        if segment.arrow is None or segment.arrow_spec is not spec or segment.arrow.num_rows < length:
            converted += length
            if converted > CHUNK_ROWS:
                yield asyncio.sleep(0)
                converted = length
            table = yield from steps_of(
                rows_to_table_slowly(
                    spec,
                    [v.values or () for v in segment.versions[:length]],
                    segment.row_ids[:length],
                    segment.begins[:length],
                )
            )
            segment.arrow, segment.arrow_spec = table, spec
        else:
            table = segment.arrow if segment.arrow.num_rows == length else segment.arrow.slice(0, length)
        tables.append(table if mask is True else table.filter(mask))
    hot = concatenated(tables) if tables else table_schema(spec.columns).empty_table()
    if at.hidden:
        if hot.num_rows:
            ids = pa.array(at.hidden, pa.int64())
            hot = hot.filter(pc.invert(pc.is_in(hot.column("s_row_id"), value_set=ids)))
        own_tables = [hot]
        for start in range(0, len(at.own_rows), CHUNK_ROWS):
            if start:
                yield asyncio.sleep(0)
            chunk = at.own_rows[start : start + CHUNK_ROWS]
            table = rows_to_table_slowly(
                spec, [v for _r, v in chunk], [r for r, _v in chunk], [0] * len(chunk)
            )
            own_tables.append((yield from steps_of(table)))
        hot = concatenated(own_tables)
    held: object = None
    if any(part.file.remote for part in at.parts):
        held = yield asyncio.gather(*(part.file.hold() for part in at.parts))
    unread = [part.file for part in at.parts if not part.file.verified]
    if unread:
        yield asyncio.gather(*(file.verify() for file in unread))
    extra = yield from _own_positions(at)
    parts: list[SnapshotPart] = []
    for part in at.parts:
        begins = None
        if part.needs_begins(at.ts):
            begins = (yield part.file.read_arrow([])).column("s_begin").combine_chunks()
        hiding = part.hiding(at.ts, extra.get(part.ref.name, ()), begins)
        hidden = (yield txn.core.offload(hiding)) if hiding.large else hiding()
        parts.append(SnapshotPart(part.ref, hidden, part.file.row_bytes, part.file.exact))
    return Snapshot(spec, Timestamp(at.ts), tuple(parts), hot, held)


def _mask(segment: Segment, length: int, ts: int, resident: int, with_history: bool) -> Any:
    """Return which of a segment's first entries a reader at ``ts`` sees: True (all), False (none) or an array."""
    ends = int64_array(segment.ends[:length])
    limit = pa.scalar(ts, pa.int64())
    mask = pc.greater(ends, limit)
    begins = None
    if segment.max_begin > ts:
        begins = int64_array(segment.begins[:length])
        mask = pc.and_(mask, pc.less_equal(begins, limit))
    if resident:
        # What was current at the flush is in a part; ``with_history``: so is what was superseded.
        if begins is None:
            begins = int64_array(segment.begins[:length])
        cut = pa.scalar(resident, pa.int64())
        only_here = pc.greater(begins, cut)
        if not with_history:
            only_here = pc.or_(only_here, pc.less_equal(ends, cut))
        mask = pc.and_(mask, only_here)
    seen = mask.true_count
    return True if seen == length else mask if seen else False


def _offsets(segment: Segment, length: int, ts: int, resident: int, with_history: bool) -> Sequence[int]:
    """Return the offsets of a segment's first entries that a reader at ``ts`` sees (``_mask``)."""
    if length > MASKED_FROM:
        mask = _mask(segment, length, ts, resident, with_history)
        if mask is False:
            return ()
        if mask is True:
            return range(length)
        seen: list[int] = pc.indices_nonzero(mask).to_pylist()
        return seen
    ends = segment.ends
    return [
        offset
        for offset, begin in enumerate(segment.begins[:length])
        if begin <= ts < (end := ends[offset]) and (begin > resident or not (with_history or end > resident))
    ]


def _own_positions(at: Capture) -> Steps[dict[str, list[int]]]:
    """Return per part the positions that the reader's own intents replace."""
    extra: dict[str, list[int]] = {}
    if not at.hidden or not at.parts:
        return extra
    for done, row_id in enumerate(at.hidden, 1):
        if done % CHUNK_ROWS == 0:
            yield asyncio.sleep(0)
        for part in at.parts:
            for position in part.file.positions(row_id):
                extra.setdefault(part.ref.name, []).append(position)
    return extra


async def _awaited(steps: Steps[Capture]) -> Capture:
    try:
        while True:
            await next(steps)
    except StopIteration as done:
        value: Capture = done.value
        return value


async def scan(txn: TransactionState, view: View) -> AsyncIterator[list[StoredRow]]:
    """Yield the rows of a shard in chunks: hot ones, own ones, then those of parts."""
    async for rows in scan_captured(view, await _awaited(_captured(txn, view))):
        yield rows
        del rows  # before the next ones are read: one may be large


def given_ids(view: View, ids: range) -> range | None:
    """Return those of a range of row ids that have been given out; None where all rows are quicker looked through."""
    generation = view.generation
    held = range(max(ids.start, 1), min(ids.stop, generation.next_row_id))
    return None if len(held) > max(generation.counts()[0], CHUNK_ROWS) else held


async def scan_ids(
    txn: TransactionState, shard: ShardId, ids: Sequence[int]
) -> AsyncIterator[list[StoredRow]]:
    """Yield the rows with some ids in chunks, in the order of ``ids``.

    A transaction that writes reads each chunk as of its moment: a change in between is one of rows that it watches.
    """
    for start in range(0, len(ids), CHUNK_ROWS):
        if start:
            await asyncio.sleep(0)
        found = txn.run(_with_ids(txn, txn.view(shard), ids[start : start + CHUNK_ROWS]))
        rows = await found if isinstance(found, Awaitable) else found
        if rows:
            yield rows
        del found, rows


def _with_ids(txn: TransactionState, view: View, ids: Sequence[int]) -> Steps[list[StoredRow]]:
    generation, own, statement = view.generation, view.own, txn.statement
    ts = txn.core.domain_of(view.shard).read_ts() if txn.writing else txn.read_ts
    parts = view.parts(statement, ts)
    out: list[StoredRow | None] = []
    missing: list[tuple[int, RowId, Cold]] = []
    for number in ids:
        row_id = RowId(number)
        intent = own.seen(row_id, statement) if own is not None and own.rows else None
        if intent is not None:
            if intent.values is not None:
                out.append(StoredRow(row_id, view.padding.pad(intent.values), Timestamp(0)))
            continue
        place = generation.find_row(row_id, ts, parts)
        if isinstance(place, Version):
            out.append(stored(view, row_id, place))
        elif place is not None:
            missing.append((len(out), row_id, place))
            out.append(None)
    if missing:
        yield from fetch(view, missing, out)
    return out  # type: ignore[return-value]  # no gap is left


async def scan_captured(view: View, at: Capture) -> AsyncIterator[list[StoredRow]]:
    """Yield the rows of a shard as captured; see ``scan``."""
    spec = view.spec
    padding = view.padding
    width = padding.width
    ts, resident, with_history, hidden = at.ts, at.resident, at.resident_history, at.hidden
    chunk: list[StoredRow] = []
    for segment, length in at.segments:
        # arrays of integers that are row ids and timestamps: said once, not by two calls for each row
        row_ids = cast("Sequence[RowId]", segment.row_ids)
        begins, versions = cast("Sequence[Timestamp]", segment.begins), segment.versions
        offsets = _offsets(segment, length, ts, resident, with_history)
        if hidden:
            offsets = [offset for offset in offsets if row_ids[offset] not in hidden]
        for offset in offsets:
            values = versions[offset].values
            if values is None:
                raise AssertionError("a version with values has none")
            if len(values) < width:
                values = padding.pad(values)
            chunk.append(StoredRow(row_ids[offset], values, begins[offset]))
        if len(chunk) >= CHUNK_ROWS:
            yield chunk
            chunk = []
            await asyncio.sleep(0)
    chunk.extend(StoredRow(row_id, values, Timestamp(0)) for row_id, values in at.own_rows)
    if chunk:
        yield chunk
    del chunk
    for part in at.parts:
        async for rows in scan_part(part, spec, ts, hidden):
            yield rows
            del rows


async def scan_part(
    part: PartState, spec: ShardSpec, ts: int, hidden: frozenset[RowId] = frozenset()
) -> AsyncIterator[list[StoredRow]]:
    """Yield the rows of one part that a reader at ``ts`` sees, in the part's order."""
    plain = not part.ended and not hidden and not part.needs_begins(ts)
    file = part.file

    def seen(rows: Sequence[Row], first: int) -> list[StoredRow]:
        chunk: list[StoredRow] = []
        for position, values in enumerate(rows, first):
            if plain or part.visible(position, ts):
                row_id = file.row_id(position)
                if row_id not in hidden:
                    chunk.append(StoredRow(row_id, values, Timestamp(part.begin(position))))
        return chunk

    async for first, rows in file.scan(spec):
        count = len(rows)
        for start in range(0, count, CHUNK_ROWS):
            chunk = seen(rows[start : start + CHUNK_ROWS], first + start)
            if start + CHUNK_ROWS >= count:
                rows = []
            if chunk:
                yield chunk
            await asyncio.sleep(0)
            del chunk  # in a turn of its own: rows may be wide


def stats(txn: TransactionState, shard: ShardId) -> ShardStats:
    """Return how much a shard has, as the transaction sees it; KeyError if it does not exist, DamagedFile if
    it cannot be served.
    """
    history = txn.core.shards.get(shard)
    if history is not None and not txn.writing and shard not in txn.schema_states:
        # a look at the catalog asks for all tables: views of them would be made and thrown away
        entry = history.latest if history.domain is not txn.timeline else history.at(txn.read_ts)
        if entry is None or entry.generation is None:
            raise KeyError(shard)
        if entry.generation.damage is not None and history.domain is txn.timeline:
            raise anew(entry.generation.damage)
        rows, hot, size = entry.generation.counts()
        return ShardStats(
            rows=rows,
            hot_rows=hot,
            parts=len(entry.generation.parts),
            bytes=size,
            ids=entry.generation.next_row_id - 1,
            live=entry.generation.live_rows(),
        )
    view = txn.view(shard)
    rows, hot, size = view.generation.counts()
    live = view.generation.live_rows()
    if view.own is not None:
        own = len(view.own.rows) + sum(p.ref.rows for _s, p in view.own.parts)
        rows, live = rows + own, live + own
    return ShardStats(
        rows=rows,
        hot_rows=hot,
        parts=len(view.generation.parts),
        bytes=size,
        ids=view.generation.next_row_id - 1,
        live=live,
    )


__all__ = ["ShardStats", "scan", "scan_part", "stats", "take"]
