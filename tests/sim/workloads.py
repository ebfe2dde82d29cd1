"""What simulated clients do. Each body is one transaction over a ``Session``.

    append      read and append to lists (Elle's list-append)                          all cycles
    cells       read some registers, replace some; look up a group by a secondary index
    skew        read a pair of registers, replace one of them                          write skew
    regroup     look at a group by a scan that is not locked, replace a register       write skew, phantoms
    transfer    move money between two accounts                                        lost update
    audit       add up all accounts                                                    split transactions
    events      count a range or a group, then add a row                               phantoms
    sweep       replace a group found by an optimistic scan                            phantoms
    load        bulk load into the same table
    queue       lock some rows that nobody has locked (SKIP LOCKED), replace one       lost update
    names       claim, rename, release, swap, upsert under a unique index (names.py)   unique races
    refer       insert or change what refers to a name, FOR KEY SHARE                  write skew
    ddl         add or drop an index, add a column, TRUNCATE (schemas.py)              DDL against DML
    build       build an index while the table changes, drop it                        DDL against DML
    ddl_rows    read and append under whatever schema there is
    tide        read and append to lists in another timeline
    everything  read several tables at one moment
    past        the same at an older timestamp

READERS may run read-only. A body may be followed by another one in the same transaction, or be undone by a savepoint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pyarrow as pa

from tests.sim.checker.history import Op
from tests.sim.names import list_names, names, orphans, refer
from tests.sim.schemas import build, check_indexes, ddl, ddl_rows
from tests.sim.session import Session, now
from tests.sim.tables import BANK, BY_V, CELLS, EVENTS, LISTS, OPENING, PK, TIDE, families
from txn.api import RowWait
from txn.base.errors import DuplicateKey
from txn.base.types import KeyRange, Row, ShardId, StoredRow
from txn.locks.mode import RowLock

Body = Callable[[Session], Awaitable[None]]


async def append(s: Session) -> None:
    rng = s.rng
    for _ in range(rng.randrange(1, 4)):
        k = rng.randrange(s.sizes.lists)
        if s.txn.read_only or rng.random() < 0.4:
            await s.statement()
            keys = [k] if rng.random() < 0.7 else sorted(rng.sample(range(s.sizes.lists), 2))
            await s.read(LISTS, keys, for_update=s.txn.writing and rng.random() < 0.2)
            continue
        await append_to(s, k, note=rng.random() < 0.3)


async def append_to(s: Session, k: int, *, note: bool, shard: ShardId = LISTS) -> None:
    """Append to a list by reading and replacing it; what was read is noted or not."""
    value = s.recorder.value()
    await s.statement(shard)
    rows = await s.rows(shard, [k], "key", for_update=s.rng.random() < 0.6)
    old = rows.get(k)
    if note:
        s.note(shard, k, old, "key")
    text = str(value) if old is None or not old.values[2] else f"{old.values[2]} {value}"
    await s.put(shard, k, (k, 0, text), old)
    (family,) = families(shard)
    s.record.ops.append(Op("append", (family, k), value))


async def tide(s: Session) -> None:
    """The same in another timeline; nothing else can be read or written there."""
    for _ in range(s.rng.randrange(1, 4)):
        k = s.rng.randrange(s.sizes.lists)
        if s.txn.read_only or s.rng.random() < 0.4:
            await s.statement()
            await s.read(TIDE, range(s.sizes.lists) if s.rng.random() < 0.3 else [k])
        else:
            await append_to(s, k, note=s.rng.random() < 0.3, shard=TIDE)


async def final_tide(s: Session) -> None:
    """Read all of it."""
    s.txn.next_statement()
    await s.read(TIDE, range(s.sizes.lists), "scan")


async def cells(s: Session) -> None:
    rng = s.rng
    for _ in range(rng.randrange(1, 4)):
        k = rng.randrange(s.sizes.cells)
        draw = rng.random()
        if draw < 0.15:
            await s.statement()
            for row in await group_of_cells(s, rng.randrange(3)):
                s.note(CELLS, row.values[0], row, "key")
        elif draw < 0.45 or s.txn.read_only:
            await s.statement()
            await s.read(CELLS, [k])
        else:
            await s.statement(CELLS)
            rows = await s.read(CELLS, [k], "key", for_update=rng.random() < 0.5)
            if k in rows and rng.random() < 0.2 and not await lock_row(s, k, rows[k]):
                continue
            if k in rows and rng.random() < 0.05:
                await now(s.txn.delete(CELLS, [rows[k].row_id]))
                s.record.write(("cells", k), None)
            else:
                await s.write(CELLS, k, rows.get(k))


async def group_of_cells(s: Session, group: int) -> list[StoredRow]:
    """Find the cells of a group, by the index or by a scan that asks for nothing else."""
    if s.rng.random() < 0.4:
        return await now(s.txn.lookup(CELLS, BY_V, [(group,)]))

    def wanted(row: Row) -> bool:
        return bool(row[1] == group)

    return [row async for rows in s.txn.scan(CELLS, predicate=wanted) for row in rows if wanted(row.values)]


async def lock_row(s: Session, k: int, row: StoredRow) -> bool:
    """SELECT ... FOR some lock of a row that was read; False: skipped, because others have locked it."""
    mode: RowLock = s.rng.choice(("key share", "share", "no key update", "update"))
    wait: RowWait = s.rng.choice(("block", "nowait", "skip"))
    (locked,) = await now(s.txn.lock_rows(CELLS, [row.row_id], mode, wait))
    if locked is None:
        if wait != "skip":
            raise AssertionError("a locked cell has vanished")
        return False
    s.note(CELLS, k, locked, "key")
    return True


async def queue(s: Session) -> None:
    """SELECT ... FOR UPDATE SKIP LOCKED LIMIT n, then replace one of the rows or remove it."""
    rng, txn = s.rng, s.txn
    await s.statement(CELLS)
    if rng.random() < 0.5:
        seen = [row async for chunk in txn.scan(CELLS, for_update=True, peek=True) for row in chunk]
    else:
        seen = await now(txn.lookup(CELLS, BY_V, [(rng.randrange(3),)], for_update=True, peek=True))
    limit = rng.randrange(1, 3)
    taken: list[StoredRow] = []
    for row in seen:
        (locked,) = await now(txn.lock_rows(CELLS, [row.row_id], "update", "skip"))
        if locked is not None:
            s.note(CELLS, locked.values[0], locked, "key")
            taken.append(locked)
            if len(taken) == limit:
                break
    if not taken:
        return
    await s.pause()
    s.txn.next_statement()
    k = taken[0].values[0]
    if rng.random() < 0.2:
        await now(txn.delete(CELLS, [taken[0].row_id]))
        s.record.write(("cells", k), None)
    else:
        await s.write(CELLS, k, taken[0])


async def skew(s: Session) -> None:
    rng = s.rng
    first = rng.randrange(s.sizes.cells // 2) * 2
    await s.statement()
    pair = [first, first + 1]
    await s.read(CELLS, pair, rng.choices(("key", "scan", ""), (60, 25, 15))[0])
    k = rng.choice(pair)
    await s.statement(CELLS)
    rows = await s.read(CELLS, [k], "key")
    await s.write(CELLS, k, rows.get(k))


async def regroup(s: Session) -> None:
    """Look at a group without locks, as an UPDATE does that scans, and replace one cell, which may leave or join it."""
    await s.statement(CELLS)
    found = await group_of_cells(s, s.rng.randrange(3))
    for row in found:
        s.note(CELLS, row.values[0], row, "scan")
    await s.statement(CELLS)
    k = s.rng.choice([*(row.values[0] for row in found), s.rng.randrange(s.sizes.cells)])
    rows = await s.read(CELLS, [k], "key", for_update=True)
    await s.write(CELLS, k, rows.get(k))


async def transfer(s: Session) -> None:
    rng = s.rng
    accounts = rng.sample(range(s.sizes.bank), 2)
    amount = rng.randrange(1, 20)
    if rng.random() < 0.5:
        await s.statement()
        await s.read(BANK, sorted(accounts), "key")
    for k, change in zip(accounts, (-amount, amount), strict=True):
        await s.statement(BANK)
        rows = await s.read(BANK, [k], "key", for_update=rng.random() < 0.7)
        if k not in rows:
            raise AssertionError("an account has vanished")
        await s.write(BANK, k, rows[k], rows[k].values[1] + change)


async def audit(s: Session) -> None:
    await s.statement()
    keys = range(s.sizes.bank)
    rows = await s.read(BANK, keys)
    s.record.ops.append(
        Op("total", "bank", (OPENING * s.sizes.bank, sum(r.values[1] for r in rows.values())))
    )


async def events(s: Session) -> None:
    rng = s.rng
    count = s.sizes.events
    if not s.txn.read_only and rng.random() < 0.5:
        await s.statement(EVENTS)  # what is counted then is locked, not compared
    for _ in range(rng.randrange(1, 3)):
        await s.statement()
        await count_events(s)
    if s.txn.read_only:
        return
    await s.statement(EVENTS, [EVENTS] if rng.random() < 0.1 else [])
    k = rng.randrange(count)
    if rng.random() < 0.5:
        rows = await s.read(EVENTS, [k], "key", for_update=rng.random() < 0.5)
        await s.write(EVENTS, k, rows.get(k))
        return
    mark = s.txn.savepoint()
    try:
        await s.write(EVENTS, k, None)
    except DuplicateKey:
        s.txn.rollback_to(mark)
        return
    # The unique index has looked for us: there was nothing.
    s.record.ops.insert(-1, Op("read", ("events", k), None, "unique"))


async def sweep(s: Session) -> None:
    """UPDATE of whatever satisfies a condition, by an optimistic scan (U4)."""
    group = s.rng.randrange(4)

    def wanted(row: Row) -> bool:
        return bool(row[1] == group)

    await s.statement()
    await now(s.txn.begin_write([EVENTS]))
    s.wrote = True
    found = [
        row async for chunk in s.txn.scan(EVENTS, predicate=wanted) for row in chunk if wanted(row.values)
    ]
    s.check_unique(EVENTS, found)
    rows = {row.values[0]: row for row in found}
    for k in range(group, s.sizes.events, 4):
        s.note(EVENTS, k, rows.get(k), "scan")
    await s.pause()
    tags = {k: s.recorder.value() for k in rows}
    done = await now(
        s.txn.update(EVENTS, [(row.row_id, (k, group, str(tags[k]))) for k, row in rows.items()])
    )
    # Validated at commit: only then it must be true.
    s.record.ops.append(Op("total", "rows swept", (len(rows), done.count(True))))
    for k, tag in tags.items():
        s.record.write(("events", k), tag)


async def load(s: Session) -> None:
    """COPY some new events by parts; all of it or nothing."""
    rng = s.rng
    keys = sorted(rng.sample(range(s.sizes.events), min(s.sizes.events, rng.randrange(1, 5))))
    await s.statement(EVENTS)
    tags = [s.recorder.value() for _ in keys]
    columns = [
        pa.array(keys, pa.int64()),
        pa.array([k % 4 for k in keys], pa.int64()),
        pa.array([str(tag) for tag in tags], pa.string()),
    ]

    async def batches() -> AsyncIterator[Any]:
        yield pa.record_batch(columns, names=["c1", "c2", "c3"])

    mark = s.txn.savepoint()
    try:
        await s.txn.bulk_insert(EVENTS, batches())
    except DuplicateKey:
        s.txn.rollback_to(mark)
        return
    for k, tag in zip(keys, tags, strict=True):
        s.record.read(("events", k), None, "unique")
        s.record.write(("events", k), tag)


async def count_events(s: Session) -> None:
    """Read a group, or a range from either end with or without a limit; every key covered is noted."""
    rng = s.rng
    count = s.sizes.events
    if rng.random() < 0.3:
        group = rng.randrange(4)
        rows = await now(s.txn.lookup(EVENTS, BY_V, [(group,)], for_update=rng.random() < 0.1))
        keys = range(group, count, 4)
        via = "index"
    elif s.is_sorted(EVENTS, PK):
        low = rng.randrange(count)
        high = min(count - 1, low + rng.randrange(12))
        reverse = rng.random() < 0.4
        limit = rng.randrange(1, 4) if rng.random() < 0.4 else None
        bounds = KeyRange(has_lower=True, lower=low, has_upper=True, upper=high)
        rows = await now(
            s.txn.range(EVENTS, PK, bounds, reverse=reverse, limit=limit, for_update=rng.random() < 0.1)
        )
        keys = range(low, high + 1)
        if limit is not None and len(rows) == limit:
            last = rows[-1].values[0]
            keys = range(last, high + 1) if reverse else range(low, last + 1)
        via = "range"
    else:
        rows = [row async for chunk in s.txn.scan(EVENTS) for row in chunk]
        keys = range(count)
        via = "scan"
    s.check_unique(EVENTS, rows)
    found = {row.values[0]: row for row in rows}
    for k in keys:
        s.note(EVENTS, k, found.get(k), via)


# -- large reads -----------------------------------------------------------------------------------


async def everything(s: Session) -> None:
    rng = s.rng
    reads = [
        lambda: s.read(LISTS, range(s.sizes.lists)),
        lambda: s.read(CELLS, range(s.sizes.cells)),
        lambda: audit(s),
        lambda: s.read(EVENTS, range(s.sizes.events)),
        lambda: list_names(s),
        lambda: ddl_rows(s) if s.txn.read_only else count_events(s),
        lambda: orphans(s),
    ]
    rng.shuffle(reads)
    for work in reads[: rng.randrange(2, 8)]:
        await s.statement()
        await work()


async def final(s: Session) -> None:
    """Read all of every table."""
    s.txn.next_statement()
    await s.read(LISTS, range(s.sizes.lists), "scan")
    await s.read(CELLS, range(s.sizes.cells), "scan")
    await audit(s)
    await s.read(EVENTS, range(s.sizes.events), "scan")
    await list_names(s)
    await orphans(s)
    await ddl_rows(s)
    await check_indexes(s)


BODIES: Final[dict[str, tuple[Body, int, bool]]] = {
    "append": (append, 24, True),
    "cells": (cells, 14, True),
    "skew": (skew, 10, False),
    "regroup": (regroup, 6, False),
    "transfer": (transfer, 12, False),
    "audit": (audit, 4, True),
    "events": (events, 20, True),
    "sweep": (sweep, 3, False),
    "load": (load, 1, False),
    "queue": (queue, 5, False),
    "names": (names, 16, True),
    "refer": (refer, 9, False),
    "ddl": (ddl, 4, False),
    "build": (build, 3, False),
    "ddl_rows": (ddl_rows, 8, True),
    "everything": (everything, 3, True),
    "tide": (tide, 10, True),
}
"""Name -> (body, weight, may be read-only). Subscribers run beside them (``subscribers``)."""
