"""Where large objects are stored: two shards of the server's own, for all its databases.

    objects   (database, number, owner)                 pg_largeobject_metadata; rights and comments are the catalog's
    pages     (database, number, page number, bytes)    pg_largeobject

They are shards as those of tables, so that the log, crashes, snapshots, time travel, locks and savepoints
need nothing new; all timelines have them (docs/decisions/0017-large-objects.md). Whoever changes an object
locks its row of ``objects`` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from txn.api import Transaction
from txn.base.types import (
    IndexId,
    KeyRange,
    Kind,
    PhysicalType,
    Row,
    RowId,
    ShardColumn,
    ShardId,
    ShardIndex,
    ShardSpec,
    StoredRow,
)

if TYPE_CHECKING:
    from txn.store import ShardStore

OBJECTS: Final = ShardId(7)
PAGES: Final = ShardId(8)
OBJECTS_INDEX: Final = IndexId(8)
PAGES_INDEX: Final = IndexId(9)
CHUNK_ROWS: Final = 64
"""Rows handled in one turn of the event loop."""


def _column(attnum: int, kind: Kind) -> ShardColumn:
    return ShardColumn(attnum=attnum, type=PhysicalType(kind=kind))


SPECS: Final = (
    ShardSpec(
        shard=OBJECTS,
        version=1,
        columns=(_column(1, "int64"), _column(2, "int64"), _column(3, "int64")),
        indexes=(ShardIndex(index=OBJECTS_INDEX, attnums=(1, 2), unique=True, primary=True),),
    ),
    ShardSpec(
        shard=PAGES,
        version=1,
        columns=(_column(1, "int64"), _column(2, "int64"), _column(3, "int64"), _column(4, "bytes")),
        indexes=(ShardIndex(index=PAGES_INDEX, attnums=(1, 2, 3), unique=True, primary=True),),
    ),
)
SHARDS: Final = (OBJECTS, PAGES)
NAMES: Final = {OBJECTS: "pg_largeobject_metadata", PAGES: "pg_largeobject"}
"""Of the catalog relations that show them, which errors name."""


async def create_shards(store: ShardStore) -> None:
    """Make the shards of a server that has none yet; ``store`` is the database's."""
    there = {shard for shard, _spec in store.shards()}
    missing = [s for s in SPECS if s.shard not in there and store.damage_of(s.shard) is None]
    if missing:
        txn = store.begin()
        for spec in missing:
            txn.create_shard(spec)
        await settle(txn.commit())


async def in_chunks(
    txn: Transaction, shard: ShardId, prefix: tuple[int, ...], start: int = 0, *, for_update: bool = False
) -> AsyncIterator[list[StoredRow]]:
    """Yield the rows under a prefix of a shard's key, in order, with turns for others in between.

    ``prefix``: a database, or of pages (database, number); the next column begins at ``start``.
    """
    index = OBJECTS_INDEX if shard == OBJECTS else PAGES_INDEX
    width = len(prefix)
    if shard == PAGES and width == 1:
        async for chunk in in_chunks(txn, OBJECTS, prefix, start):
            for row in chunk:
                async for pages in in_chunks(txn, PAGES, row.values[:2], for_update=for_update):
                    yield pages
        return
    while True:
        wanted = KeyRange(prefix=prefix, lower=start, has_lower=True)
        rows = await settle(txn.range(shard, index, wanted, limit=CHUNK_ROWS, for_update=for_update))
        if rows:
            yield rows
        if len(rows) < CHUNK_ROWS:
            return
        start = rows[-1].values[width] + 1
        await asyncio.sleep(0)


async def copy_database(txn: Transaction, template: int, database: int) -> None:
    """Stage the template's large objects for a new database: the same numbers, owners and pages."""
    for shard in SHARDS:
        await settle(txn.lock_table(shard, "IX"))
        async for chunk in in_chunks(txn, shard, (template,)):
            made: list[Row] = [(database, *row.values[1:]) for row in chunk]
            await settle(txn.insert(shard, made))


async def drop_database(txn: Transaction, database: int) -> None:
    """Stage the end of all large objects of a database."""
    for shard in reversed(SHARDS):  # an object's row tells which pages there are
        gone: list[RowId] = []
        async for chunk in in_chunks(txn, shard, (database,)):
            gone += [row.row_id for row in chunk]
        for at in range(0, len(gone), CHUNK_ROWS):
            await settle(txn.delete(shard, gone[at : at + CHUNK_ROWS]))
            await asyncio.sleep(0)
