"""What a batch does to tables, as the net effect of its changes, and how a transaction stages it.

    put 1 a, put 2 b, delete 1, put 2 c        ──>   1: gone, 2: c        one look-up and one change per key
    append x, append y                         ──>   x, y                 tables without upserts

A table is truncated first, if at all: what came before in the same batch is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.base.eager import settle
from engine.base.slices import SLICE_ROWS
from planner.base.errors import SqlError
from planner.catalog import IndexDef, RelationDef
from txn.api import PartJob, Transaction, WrittenPart
from txn.base.types import IndexId, Key, Row, RowId, ShardId

LOOKUP_KEYS: Final = 1000


class _Unchanged:
    """What stands for a value that an update did not carry, because it is as it was."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged()


def primary_key(relation: RelationDef) -> IndexDef | None:
    """Return the index of a table's primary key."""
    return next((index for index in relation.indexes if index.primary), None)


@dataclass(slots=True)
class TableChanges:
    """The net effect of a batch on one table; row tuples by ``attnum - 1``.

    ``net``: the row that each key has in the end, None if none; cells may be UNCHANGED. ``origin``: the key
    that the row under a key had before the batch, where that differs. ``bulk``: rows to append as Arrow
    batches of the shard's columns. ``parts``: what has rows to append written as parts elsewhere
    (``Transaction.bulk_insert_parts``).
    """

    oid: int
    truncated: bool = False
    appended: list[Row] = field(default_factory=list)
    net: dict[Key, Row | None] = field(default_factory=dict)
    origin: dict[Key, Key] = field(default_factory=dict)
    bulk: Callable[[], AsyncIterator[Any]] | None = None
    parts: Callable[[PartJob], Awaitable[Sequence[WrittenPart]]] | None = None

    def truncate(self) -> None:
        """Forget all rows."""
        self.truncated = True
        self.appended.clear()
        self.net.clear()
        self.origin.clear()

    def append(self, rows: Iterable[Row]) -> None:
        """Add new rows."""
        self.appended.extend(rows)

    def put(self, key: Key, row: Row, old_key: Key | None = None) -> None:
        """The row under ``key``, which was under ``old_key`` before if that is given, becomes ``row``."""
        came_from = key if old_key is None else old_key
        before = self.net.get(came_from)
        if before is not None and UNCHANGED in row:
            row = tuple(b if cell is UNCHANGED else cell for b, cell in zip(before, row, strict=True))
        origin = self.origin.pop(came_from, came_from)
        if old_key is not None and old_key != key:
            self.net[old_key] = None
        self.net[key] = row
        if origin != key:
            self.origin[key] = origin
        else:
            self.origin.pop(key, None)

    def delete(self, key: Key) -> None:
        """No row is under ``key`` any more."""
        self.net[key] = None
        self.origin.pop(key, None)


async def stage(txn: Transaction, relation: RelationDef, changes: TableChanges) -> None:
    """Stage a table's changes in a writing transaction.

    Raises txn's errors (DuplicateKey where rows are appended); SqlError 55000 where an update left out values of a row
    that is not there. Suspends now and then, so that others are served.
    """
    shard = ShardId(relation.oid)
    if changes.truncated:
        await settle(txn.truncate(shard))
        txn.next_statement()
    if changes.bulk is not None:
        await txn.bulk_insert(shard, changes.bulk())
    if changes.parts is not None:
        await txn.bulk_insert_parts(shard, changes.parts)
    for start in range(0, len(changes.appended), SLICE_ROWS):
        await settle(txn.insert(shard, changes.appended[start : start + SLICE_ROWS]))
        await asyncio.sleep(0)
    if changes.net:
        index = primary_key(relation)
        if index is None:
            raise AssertionError(f"changes by key of {relation.name}, which has none")
        await _stage_by_key(txn, relation, index, changes)


async def _stage_by_key(
    txn: Transaction, relation: RelationDef, index: IndexDef, changes: TableChanges
) -> None:
    """Look all keys up first, then delete, update, insert: a key that one row gives up may be another's."""
    shard = ShardId(relation.oid)
    positions = [attnum - 1 for attnum in index.attnums]
    wanted = list({*changes.net, *changes.origin.values()})
    stored: dict[Key, tuple[RowId, Row]] = {}
    for start in range(0, len(wanted), LOOKUP_KEYS):
        keys = wanted[start : start + LOOKUP_KEYS]
        for old in await settle(txn.lookup(shard, IndexId(index.oid), keys, for_update=True)):
            stored[tuple([old.values[i] for i in positions])] = (old.row_id, old.values)
        await asyncio.sleep(0)
    inserts: list[Row] = []
    updates: list[tuple[RowId, Row]] = []
    deletes: list[RowId] = []
    for key, row in changes.net.items():
        found = stored.get(key)
        if row is None:
            if found is not None:
                deletes.append(found[0])
            continue
        if UNCHANGED in row:
            before = stored.get(changes.origin.get(key, key))
            if before is None:
                raise SqlError(
                    "55000",
                    f'table "{relation.name}" has no row that a change of the source refers to',
                    detail=f"Its key is {_shown(changes.origin.get(key, key))}.",
                )
            row = tuple(b if cell is UNCHANGED else cell for b, cell in zip(before[1], row, strict=True))
        if found is None:
            inserts.append(row)
        else:
            updates.append((found[0], row))
    for start in range(0, len(deletes), SLICE_ROWS):
        await settle(txn.delete(shard, deletes[start : start + SLICE_ROWS]))
        await asyncio.sleep(0)
    for start in range(0, len(updates), SLICE_ROWS):
        await settle(txn.update(shard, updates[start : start + SLICE_ROWS]))
        await asyncio.sleep(0)
    for start in range(0, len(inserts), SLICE_ROWS):
        await settle(txn.insert(shard, inserts[start : start + SLICE_ROWS]))
        await asyncio.sleep(0)


def _shown(key: Sequence[Any]) -> str:
    return f"({', '.join(map(str, key))})"
