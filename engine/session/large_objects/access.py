"""One large object, read and written by a transaction: its row, its pages, its rights.

    exists, owner    a row of ``objects``; ``lock`` takes it for who changes the object: two writers come one after the other
    read, write      pages of the range alone, some at a time
    unlink           the row, the pages, and what the catalog says of it: comment, rights

``number`` of a statement (``Transaction.statement``): reads see own changes of earlier ones, so a descriptor
that was opened for reading keeps seeing what was there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from engine.base.eager import settle
from engine.catalog.storage.stored import CATALOG_SHARD, PG_LARGEOBJECT_OID, StoredKey
from engine.session.large_objects import pages as page
from engine.session.large_objects.shards import (
    CHUNK_ROWS,
    OBJECTS,
    OBJECTS_INDEX,
    PAGES,
    PAGES_INDEX,
    SHARDS,
    in_chunks,
)
from planner.base.errors import SqlError
from planner.catalog.acl import default_acl, held
from planner.catalog.acl_items import AclItem
from planner.catalog.rights import Rights
from txn.api import Transaction
from txn.base.types import KeyRange, RowId, ShardId, StoredRow, Timestamp

if TYPE_CHECKING:
    from engine.session.session import Session

MAX_READ: Final = (1 << 30) - 5
"""Bytes of one value at most, as in PostgreSQL."""
_CHUNK_BYTES: Final = CHUNK_ROWS * page.PAGE_BYTES


def unknown(number: int) -> SqlError:
    """Return 42704."""
    return SqlError("42704", f"large object {number} does not exist")


async def find(session: Session, number: int, *, lock: bool = False) -> StoredRow | None:
    """Return the row of a large object, if there is one; ``lock``: for who is going to change the object."""
    key = (session.database_oid, number)
    txn = session.block.ensure_txn()
    rows = await settle(txn.lookup(OBJECTS, OBJECTS_INDEX, [key], for_update=lock))
    return rows[0] if rows else None


async def existing(session: Session, number: int, *, lock: bool = False) -> StoredRow:
    """As ``find``. Raises SqlError 42704."""
    row = await find(session, number, lock=lock)
    if row is None:
        raise unknown(number)
    return row


def acl_of(session: Session, row: StoredRow) -> tuple[AclItem, ...]:
    """Return the access control list of a large object that is there today, by the row that it has now."""
    items = session.today.acl(PG_LARGEOBJECT_OID, row.values[1])
    return default_acl("large object", row.values[2]) if items is None else items


async def check_right(session: Session, row: StoredRow, letters: str) -> None:
    """Raise SqlError 42501 unless the user has all of some privileges (r, w), or ``lo_compat_privileges`` is on.

    ``row``: the object as the transaction sees it. Rights are today's, on the same object; of one that is
    gone, be there another under its number, they are its last owner's alone, also within functions of others
    (docs/guide/time-travel.md).
    """
    rights = Rights(session.today, session.role)
    if rights.superuser or session.settings.get("lo_compat_privileges") == "on":
        return
    now = await _as_it_is(session, row)
    if now is None:
        allowed = Rights(session.today, session.asker).owns(await _last_owner(session, row))
    else:
        allowed = set(letters) <= set(held(acl_of(session, now), rights.roles))
    if not allowed:
        raise SqlError("42501", f"permission denied for large object {row.values[1]}")


async def _as_it_is(session: Session, row: StoredRow) -> StoredRow | None:
    """Return the row that a large object has now, whatever time the transaction reads at; None: the object is gone."""
    if not row.begin:
        return row  # the transaction's own
    return await _the_same(session.db.store.begin(read_only=True, session=session.pid), row)


async def _last_owner(session: Session, row: StoredRow) -> int:
    """Return the role that a large object which is gone belonged to when it went.

    It was there from when the transaction reads to when it went, without a break: halving the time between
    finds its last moment.
    """
    txn = session.block.ensure_txn()
    store, timeline = session.db.store, txn.timeline_name
    owner: int = row.values[2]
    there, gone = txn.read_ts, store.read_ts(timeline)
    while gone - there > 1:
        between = Timestamp((there + gone) // 2)
        found = await _the_same(
            store.begin(read_only=True, session=session.pid, at=between, timeline=timeline), row
        )
        if found is None:
            gone = between
        else:
            there, owner = between, found.values[2]
    return owner


async def _the_same(reader: Transaction, row: StoredRow) -> StoredRow | None:
    """Return a large object's row as a transaction sees it, which ends then; None where the object is not
    there, be there another under its number.
    """
    try:
        rows = await settle(reader.lookup(OBJECTS, OBJECTS_INDEX, [row.values[:2]]))
    finally:
        reader.rollback()
    return next((found for found in rows if found.row_id == row.row_id), None)


def check_owner(session: Session, row: StoredRow) -> None:
    """Raise SqlError 42501 unless the user owns a large object."""
    if not Rights(session.today, session.role).owns(row.values[2]):
        raise SqlError("42501", f"must be owner of large object {row.values[1]}")


async def begin_change(session: Session, what: str) -> None:
    """Have the transaction write large objects. Raises SqlError 25006, and txn's errors."""
    txn = session.block.ensure_txn()
    if txn.read_only:
        raise SqlError("25006", f"cannot execute {what} in a read-only transaction")
    session.block.wrote = True
    await settle(txn.begin_write(SHARDS))


async def create(session: Session, number: int) -> int:
    """Make an empty large object of the user's and return its number; 0: a free one. Raises SqlError 23505, 53000."""
    chosen = number
    while not chosen or (not number and await find(session, chosen) is not None):
        await session.db.oids_ready(1)
        chosen = session.db.allocate_oids(1)
    if number and await find(session, number, lock=True) is not None:
        raise SqlError(
            "23505",
            'duplicate key value violates unique constraint "pg_largeobject_metadata_oid_index"',
            detail=f"Key (oid)=({number}) already exists.",
            schema="pg_catalog",
            table="pg_largeobject_metadata",
            constraint="pg_largeobject_metadata_oid_index",
        )
    row = (session.database_oid, chosen, session.role.oid)
    await settle(session.block.ensure_txn().insert(OBJECTS, [row]))
    return chosen


async def size(session: Session, number: int) -> int:
    """Return where a large object ends, in bytes."""
    wanted = KeyRange(prefix=(session.database_oid, number))
    txn = session.block.ensure_txn()
    last = await settle(txn.range(PAGES, PAGES_INDEX, wanted, reverse=True, limit=1))
    return last[0].values[2] * page.PAGE_BYTES + len(last[0].values[3]) if last else 0


async def read(session: Session, number: int, offset: int, count: int) -> bytes:
    """Return up to ``count`` bytes from ``offset`` on. SqlError 54000 for more than a value holds, 57014."""
    end = await size(session, number)
    count = max(min(count, end - offset), 0)
    if count > MAX_READ:
        raise SqlError("54000", "large object read request is too large")
    out = []
    while count > 0:
        part = min(count, _CHUNK_BYTES - offset % page.PAGE_BYTES)
        first = offset // page.PAGE_BYTES
        rows = await _pages(session, number, first, (offset + part - 1) // page.PAGE_BYTES)
        found = [(row.values[2], row.values[3]) for row in rows]
        found.append((end // page.PAGE_BYTES + 1, b""))  # what is missing before the end is zeros
        out.append(page.read(found, offset, part))
        offset += part
        count -= part
        session.cancelled.check()
        if count:
            await asyncio.sleep(0)
    return b"".join(out)


async def _pages(session: Session, number: int, first: int, last: int) -> list[StoredRow]:
    wanted = KeyRange(
        prefix=(session.database_oid, number), lower=first, has_lower=True, upper=last, has_upper=True
    )
    return await settle(session.block.ensure_txn().range(PAGES, PAGES_INDEX, wanted))


async def write(session: Session, number: int, offset: int, data: bytes) -> None:
    """Put ``data`` at ``offset`` of an object that is locked. SqlError 22023 beyond the largest size, 57014."""
    if data and offset + len(data) > page.MAX_BYTES:
        raise SqlError("22023", f"invalid large object write request size: {len(data)}")
    at = 0
    while at < len(data):
        part = data[at : at + _CHUNK_BYTES - (offset + at) % page.PAGE_BYTES]
        first = (offset + at) // page.PAGE_BYTES
        rows = await _pages(session, number, first, (offset + at + len(part) - 1) // page.PAGE_BYTES)
        there = {row.values[2]: row for row in rows}
        changed = page.written({n: row.values[3] for n, row in there.items()}, offset + at, part)
        await _put(session, number, there, changed)
        at += len(part)
        session.cancelled.check()
        if at < len(data):
            await asyncio.sleep(0)


async def _put(session: Session, number: int, there: dict[int, StoredRow], changed: dict[int, bytes]) -> None:
    txn = session.block.ensure_txn()
    whole = {n: (session.database_oid, number, n, data) for n, data in changed.items()}
    replaced = [(there[n].row_id, row) for n, row in whole.items() if n in there]
    if replaced:
        await settle(txn.update(PAGES, replaced, keys_kept=True))
    added = [row for n, row in whole.items() if n not in there]
    if added:
        await settle(txn.insert(PAGES, added))


async def truncate(session: Session, number: int, length: int) -> None:
    """Have an object that is locked end at ``length`` bytes, be it shorter or longer. SqlError 22023, 57014."""
    if not 0 <= length <= page.MAX_BYTES:
        raise SqlError("22023", f"invalid large object truncation target: {length}")
    last, within = divmod(length, page.PAGE_BYTES)
    rows = await _pages(session, number, last, last)
    there = {row.values[2]: row for row in rows}
    await _put(session, number, there, {last: page.cut(rows[0].values[3] if rows else None, within)})
    await _delete_pages(session, number, last + 1)


async def _delete_pages(session: Session, number: int, first: int) -> None:
    txn = session.block.ensure_txn()
    gone: list[list[RowId]] = []
    async for chunk in in_chunks(txn, PAGES, (session.database_oid, number), first):
        gone.append([row.row_id for row in chunk])
        session.cancelled.check()
    await _delete(session, PAGES, gone)


async def _delete(session: Session, shard: ShardId, chunks: Iterable[list[RowId]]) -> None:
    for chunk in chunks:
        await settle(session.block.ensure_txn().delete(shard, chunk))
        await asyncio.sleep(0)


async def unlink(session: Session, row: StoredRow) -> None:
    """Remove an object that is locked, with its comment and rights."""
    number = row.values[1]
    await _delete_pages(session, number, 0)
    await _delete(session, OBJECTS, [[row.row_id]])
    await forget(session, number)


async def forget(session: Session, number: int) -> None:
    """Remove what the catalog says of a large object."""
    session.view.renew()  # others may have said it until the object was locked
    said: tuple[StoredKey, ...] = (
        (f"acl/{PG_LARGEOBJECT_OID}", number, 0),
        (f"comment/{PG_LARGEOBJECT_OID}", number, 0),
    )
    keys = [key for key in said if key in session.catalog.items]
    if keys:
        await settle(session.block.ensure_txn().begin_write([ShardId(CATALOG_SHARD)]))
        await session.view.change([], keys)
