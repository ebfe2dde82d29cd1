"""Bulk load: Arrow batches become parts by reference (C18).

The table is locked X. Batches gather into parts of about a million rows, written and synced before the commit's
log entry names them; the entry itself stays small. Duplicates are looked for once, over whole columns: among the
new rows, against older parts whose key range overlaps, and against hot rows and own intents through the new
parts' sidecars. A table that this transaction created or truncated has no old rows to look at.

The parts belong to the transaction like intents: later statements of it read them, a rollback forgets them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.columns import RowPlan, table_rows, table_schema
from txn.errors import DuplicateKey
from txn.index_build import merge_parts
from txn.locks.mode import IX
from txn.mvcc.parts import PartState
from txn.mvcc.version import INFINITY
from txn.types import KeyRange, Row, RowId, ShardId, ShardIndex, ShardSpec
from txn.view import View

if TYPE_CHECKING:
    from txn.transaction import StoreTransaction

PART_ROWS: Final = 1 << 20
CHUNK_ROWS: Final = 1000

_ARROW_KEYS: Final = frozenset(
    (
        "bool",
        "int16",
        "int32",
        "int64",
        "text",
        "bytes",
        "uuid",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "decimal",
    )
)
"""Kinds whose equality is the same in Arrow's hash tables as in an index."""


def let_go(txn: StoreTransaction, shard: ShardId) -> None:
    """Give up IX on a table that is about to be locked X, where that has protected nothing yet.

    Two loads that both hold it, as COPY does while it gathers its first rows, would wait for each other. The caller
    looks whether the schema is still the same once it has X.
    """
    owner = txn.owner
    if owner.held.get(shard) != IX or shard in txn.own or shard in txn.schema_states:
        return
    if any(type(granule) is tuple and granule[0] == shard for granule in owner.held):
        return
    txn.forget_view(shard)
    txn.core.locks.demote(owner, shard, None)


async def insert(txn: StoreTransaction, view: View, batches: AsyncIterator[Any]) -> int:
    """Write batches to parts of the transaction; returns the number of rows. The caller holds table X.

    Raises DuplicateKey, and what ended the transaction meanwhile; then, and when ``batches`` fails, nothing of the load
    remains.
    """
    own = txn.own_writes(view)
    mark = txn.savepoint()
    new_parts: list[PartState] = []
    keys = {i.index: list[Any]() for i in view.spec.indexes if i.unique and _in_arrow(view.spec, i)}
    schema = table_schema(view.spec.columns)
    names = schema.names[:-2]
    gathered: list[Any] = []
    rows = size = total = 0

    async def write() -> None:
        nonlocal gathered, rows, size
        table = pa.concat_tables(gathered)
        gathered, rows, size = [], 0, 0
        ref = await txn.core.log.write_part(view.shard, view.spec, table)
        try:
            file = await txn.core.log.open_part(ref)
            txn.life.check_active()  # else nobody would undo what follows
        except BaseException:
            txn.core.discard_later(ref.name)
            raise
        part = txn.core.announce_part(file, ref)
        new_parts.append(part)
        own.parts.append((txn.statement, part))

        def undo() -> None:
            own.parts.remove((statement, part))
            txn.core.forget_announced(ref.name)
            txn.core.discard_later(ref.name)

        statement = txn.statement
        txn.journal.append(undo)

    try:
        async for batch in batches:
            txn.life.check_active()
            count = batch.num_rows
            if not count:
                continue
            first = view.generation.take_row_ids(count)
            columns = [batch.column(name) for name in names]
            columns.append(_count_up(first, count))
            columns.append(pa.repeat(pa.scalar(0, pa.int64()), count))
            table = pa.Table.from_arrays(columns, schema=schema)
            for definition in view.spec.indexes:
                if definition.index in keys:
                    keys[definition.index].append(table.select([f"c{a}" for a in definition.attnums]))
            gathered.append(table)
            rows += count
            total += count
            size += table.nbytes
            if rows >= PART_ROWS or size >= txn.core.options.part_bytes:
                await write()
        if gathered:
            await write()
        for definition in view.spec.indexes:
            if definition.unique and new_parts:
                await _check(txn, view, definition, keys.get(definition.index), tuple(new_parts))
        txn.life.check_active()
    except BaseException:
        txn.undo_to(mark)
        raise
    return total


def _count_up(first: int, count: int) -> Any:
    """Return the int64 array first, first + 1, ... without holding the GIL."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pc.cumulative_sum(ones, start=pa.scalar(first - 1, pa.int64()))


def _in_arrow(spec: ShardSpec, definition: ShardIndex) -> bool:
    """Tell whether duplicates of an index can be found by Arrow."""
    kinds = {c.attnum: c.type.kind for c in spec.columns}
    return definition.nulls_distinct and all(kinds[a] in _ARROW_KEYS for a in definition.attnums)


async def _check(
    txn: StoreTransaction,
    view: View,
    definition: ShardIndex,
    keys: list[Any] | None,
    new_parts: tuple[PartState, ...],
) -> None:
    """Raise DuplicateKey if a unique index would hold a key twice."""
    # Parts and hot rows of one tick: a flush beside the load moves rows from these to those.
    old_parts = tuple(part for part in view.parts(INFINITY) if part not in new_parts)
    hot = _hot_rows(view)
    overwritten = frozenset(view.own.rows) if view.own is not None else frozenset[RowId]()
    if keys is None:
        await _check_by_merge(txn, view, definition, overwritten, old_parts, new_parts)
    else:

        def compare() -> tuple[Any, dict[str, Any] | None]:
            table = pa.concat_tables(keys).drop_null()
            return table, _duplicate_within(table)

        table, duplicate = await txn.core.offload(compare)
        if duplicate is not None:
            raise DuplicateKey(view.shard, definition.index, _values(view, definition, duplicate))
        for part in old_parts:
            if any(_overlap(definition, part, new) for new in new_parts):
                await _check_part(txn, view, definition, overwritten, part, table)
    await _check_hot(view, definition, hot, new_parts)


def _duplicate_within(table: Any) -> dict[str, Any] | None:
    """Return a key that occurs twice in a table of keys, or None."""
    counted = table.group_by(table.column_names, use_threads=False).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), pa.scalar(1, pa.int64())))
    if not twice.num_rows:
        return None
    found: dict[str, Any] = twice.slice(0, 1).to_pylist()[0]
    return found


def _values(view: View, definition: ShardIndex, found: dict[str, Any]) -> tuple[Any, ...]:
    """Turn a row of Arrow's Python values into the value domain, for the error's sake."""
    columns = tuple(c for c in view.spec.columns if c.attnum in definition.attnums)
    schema = table_schema(columns)
    table = pa.Table.from_pylist([{**found, "s_row_id": 0, "s_begin": 0}], schema=schema)
    row = table_rows(table, RowPlan(view.spec, definition.attnums))[0]
    return tuple(row[a - 1] for a in definition.attnums)


def _overlap(definition: ShardIndex, one: PartState, other: PartState) -> bool:
    """Tell whether the key ranges of two parts have anything in common."""
    (low_a, high_a), (low_b, high_b) = _extremes(definition, one), _extremes(definition, other)
    return low_a <= high_b and low_b <= high_a


def _extremes(definition: ShardIndex, part: PartState) -> tuple[bytes, bytes]:
    low, _p = next(iter(part.file.range(definition.index, KeyRange())))
    high, _p = next(iter(part.file.range(definition.index, KeyRange(), reverse=True)))
    return low, high


async def _check_part(
    txn: StoreTransaction,
    view: View,
    definition: ShardIndex,
    overwritten: frozenset[RowId],
    part: PartState,
    keys: Any,
) -> None:
    """Raise DuplicateKey if a live row of a part has one of ``keys``."""
    names = [f"c{a}" for a in definition.attnums]
    stored = (await part.file.read_arrow(definition.attnums)).select(names)

    def meet() -> Any:
        numbered = stored.append_column("position", _count_up(0, stored.num_rows))
        return numbered.join(keys, keys=names, join_type="left semi", use_threads=False)

    met = await txn.core.offload(meet)
    positions = met.column("position").to_pylist()
    for at, position in enumerate(positions):
        if not part.end_of(position) and part.file.row_id(position) not in overwritten:
            found = met.slice(at, 1).to_pylist()[0]
            found.pop("position")
            raise DuplicateKey(view.shard, definition.index, _values(view, definition, found))


async def _check_by_merge(
    txn: StoreTransaction,
    view: View,
    definition: ShardIndex,
    overwritten: frozenset[RowId],
    old_parts: tuple[PartState, ...],
    new_parts: tuple[PartState, ...],
) -> None:
    """As above, through the sidecars' order alone: for kinds whose equality Arrow does not know."""
    merged = merge_parts(old_parts + new_parts, definition, overwritten)
    while (pair := await txn.core.offload(merged.next)) is not None:
        part, position = pair
        row = part.file.row(position, view.spec)
        values: Row = row if isinstance(row, tuple) else await row
        key = tuple(values[a - 1] for a in definition.attnums)
        if not (definition.nulls_distinct and None in key):
            raise DuplicateKey(view.shard, definition.index, key)


def _hot_rows(view: View) -> list[Row]:
    """Return the hot rows and own intents as they are now."""
    own_rows = view.own.rows if view.own is not None else {}
    hot = [h.values for r, h in view.generation.rows.items() if h.values is not None and r not in own_rows]
    hot.extend(i.values for i in own_rows.values() if i.values is not None)
    return hot


async def _check_hot(
    view: View, definition: ShardIndex, hot: list[Row], new_parts: tuple[PartState, ...]
) -> None:
    """Raise DuplicateKey if a hot row or an own intent has a key of the new parts."""
    make = view.generation.indexes[definition.index].make
    padding = view.padding
    own_rows = view.own.rows if view.own is not None else {}
    for count, values in enumerate(hot, 1):
        if count % CHUNK_ROWS == 0:
            await asyncio.sleep(0)
        values = padding.pad(values)
        if definition.nulls_distinct and make.has_null(make.of_row(values)):
            continue
        key = make.raw(values)
        for part in new_parts:
            for position in part.lookup(definition.index, key):
                if part.file.row_id(position) not in own_rows:
                    raise DuplicateKey(view.shard, definition.index, key)
