"""What simulated clients do. Each body is one transaction over a ``Session``.

    append      read and append to lists (Elle's list-append)                          all cycles
    cells       read some registers, replace some; look up a group by a secondary index
    skew        read a pair of registers, replace one of them                          write skew
    transfer    move money between two accounts                                        lost update
    audit       add up all accounts                                                    split transactions
    events      count a range or a group, then add a row                               phantoms
    sweep       replace a group found by an optimistic scan                            phantoms
    load        bulk load into the same table
    names       claim, rename, release, swap, upsert under a unique index              unique races
    ddl         add or drop an index, add a column, TRUNCATE                           DDL against DML
    ddl_rows    read and append under whatever schema there is
    everything  read several tables at one moment
    past        the same at an older timestamp

READERS may run read-only. A body may be followed by another one in the same transaction, or be undone by a savepoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pyarrow as pa

from tests.sim.checker.history import Op
from tests.sim.session import Session, now
from tests.sim.tables import (
    BANK,
    BY_V,
    CELLS,
    DDL,
    EVENTS,
    EXTRA,
    LISTS,
    NAMES,
    OPENING,
    PK,
    parse,
)
from txn.api import RowWait
from txn.errors import DuplicateKey
from txn.locks.mode import RowLock
from txn.types import KeyRange, PhysicalType, Row, ShardColumn, ShardIndex, StoredRow

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


async def append_to(s: Session, k: int, *, note: bool) -> None:
    """Append to a list by reading and replacing it; what was read is noted or not."""
    value = s.recorder.value()
    await s.statement(LISTS)
    rows = await s.rows(LISTS, [k], "key", for_update=s.rng.random() < 0.6)
    old = rows.get(k)
    if note:
        s.note(LISTS, k, old, "key")
    text = str(value) if old is None or not old.values[2] else f"{old.values[2]} {value}"
    await s.put(LISTS, k, (k, 0, text), old)
    s.record.ops.append(Op("append", ("list", k), value))


async def cells(s: Session) -> None:
    rng = s.rng
    for _ in range(rng.randrange(1, 4)):
        k = rng.randrange(s.sizes.cells)
        draw = rng.random()
        if draw < 0.15:
            await s.statement()
            for row in await now(s.txn.lookup(CELLS, BY_V, [(rng.randrange(3),)])):
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


async def skew(s: Session) -> None:
    rng = s.rng
    first = rng.randrange(s.sizes.cells // 2) * 2
    await s.statement()
    pair = [first, first + 1]
    await s.read(CELLS, pair, "key" if rng.random() < 0.8 else "")
    k = rng.choice(pair)
    await s.statement(CELLS)
    rows = await s.read(CELLS, [k], "key")
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
    columns = [pa.array(keys), pa.array([k % 4 for k in keys]), pa.array([str(tag) for tag in tags])]

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
    elif s._is_sorted(EVENTS, PK):
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


async def names(s: Session) -> None:
    rng = s.rng
    if s.txn.read_only or rng.random() < 0.15:
        await s.statement()
        await list_names(s)
        return
    draw = rng.random()
    u = rng.randrange(s.sizes.names)
    if draw < 0.35:
        await claim(s, u)
    elif draw < 0.5:
        await upsert(s, u)
    else:
        await s.statement(NAMES)
        held = await now(s.txn.lookup(NAMES, BY_V, [(u,)], for_update=rng.random() < 0.6))
        note_holder(s, u, held)
        if not held:
            await claim(s, u)
        elif draw < 0.7:
            await now(s.txn.delete(NAMES, [held[0].row_id]))
            s.record.write(("u", u), None)
            s.record.write(("id", held[0].values[0]), None)
        elif draw < 0.9:
            await rename(s, held[0], rng.randrange(s.sizes.names))
        else:
            await swap(s, held[0], rng.randrange(s.sizes.names))


def note_holder(s: Session, u: int, rows: list[StoredRow], via: str = "key") -> None:
    """Note who holds a name."""
    if len(rows) > 1:
        s.record.ops.append(Op("unique", "names.u", tuple(r.values[1] for r in rows)))
    row = rows[0].values if rows else None
    s.record.read(("u", u), None if row is None else (row[0], int(row[2])), via)
    if row is not None:
        s.record.read(("id", row[0]), (row[1], int(row[2])), via)


def hold(s: Session, row_id: int, u: int, tag: int) -> None:
    """Note that a row holds a name now."""
    s.record.write(("u", u), (row_id, tag))
    s.record.write(("id", row_id), (u, tag))


async def list_names(s: Session) -> None:
    """Read all names by one of the ways there are."""
    if s._is_sorted(NAMES, BY_V) and s.rng.random() < 0.5:
        rows = await now(s.txn.range(NAMES, BY_V, KeyRange()))
        via = "range"
    else:
        rows = [row async for chunk in s.txn.scan(NAMES) for row in chunk]
        via = "scan"
    s.record.ops.append(Op("unique", "names.u", tuple(r.values[1] for r in rows)))
    s.check_unique(NAMES, rows)
    for u in range(s.sizes.names):
        note_holder(s, u, [r for r in rows if r.values[1] == u], via)


async def claim(s: Session, u: int) -> None:
    """Insert a new row with a name, which somebody may have."""
    await s.statement(NAMES)
    row_id, tag = s.recorder.value(), s.recorder.value()
    mark = s.txn.savepoint()
    try:
        await now(s.txn.insert(NAMES, [(row_id, u, str(tag))]))
    except DuplicateKey:
        s.txn.rollback_to(mark)
        return
    s.record.read(("u", u), None, "unique")
    hold(s, row_id, u, tag)


async def upsert(s: Session, u: int) -> None:
    """INSERT ... ON CONFLICT (u) DO UPDATE."""
    await s.statement(NAMES)
    row_id, tag = s.recorder.value(), s.recorder.value()
    row = (row_id, u, str(tag))
    other = await now(s.txn.find_conflicts(NAMES, row, [BY_V]))
    note_holder(s, u, [] if other is None else [other])
    if other is None:
        await now(s.txn.insert(NAMES, [row]))
        hold(s, row_id, u, tag)
    else:
        await now(s.txn.update(NAMES, [(other.row_id, (other.values[0], u, str(tag)))]))
        hold(s, other.values[0], u, tag)


async def rename(s: Session, row: StoredRow, u: int) -> None:
    """Give a row another name, which somebody may have."""
    row_id, old, _ = row.values
    if u == old:
        return
    tag = s.recorder.value()
    mark = s.txn.savepoint()
    try:
        done = await now(s.txn.update(NAMES, [(row.row_id, (row_id, u, str(tag)))]))
    except DuplicateKey:
        s.txn.rollback_to(mark)
        return
    if done != [True]:
        raise AssertionError("a locked name has vanished")
    s.record.read(("u", u), None, "unique")
    s.record.write(("u", old), None)
    hold(s, row_id, u, tag)


async def swap(s: Session, row: StoredRow, u: int) -> None:
    """Two rows exchange their names in one statement."""
    row_id, old, _ = row.values
    others = [] if u == old else await now(s.txn.lookup(NAMES, BY_V, [(u,)], for_update=True))
    if not others:
        return
    note_holder(s, u, others)
    other = others[0]
    s.txn.next_statement()
    tag, other_tag = s.recorder.value(), s.recorder.value()
    changes = [(row.row_id, (row_id, u, str(tag))), (other.row_id, (other.values[0], old, str(other_tag)))]
    await now(s.txn.update(NAMES, changes))
    hold(s, row_id, u, tag)
    hold(s, other.values[0], old, other_tag)


# -- schema changes --------------------------------------------------------------------------------


async def ddl(s: Session) -> None:
    rng = s.rng
    txn = s.txn
    await s.statement(DDL)
    draw = rng.random()
    if draw < 0.45:
        await now(txn.lock_table(DDL, "X"))
        tag = s.recorder.value()
        epoch = await marker(s)
        await now(txn.truncate(DDL))
        txn.next_statement()
        row = (0, epoch + 1, str(tag))
        await now(txn.insert(DDL, [row + (None,) * (len(txn.spec(DDL).columns) - 3)]))
        s.record.write(("ddl", "marker"), (epoch + 1, tag))
        return
    await now(txn.lock_table(DDL, "X"))
    old = txn.spec(DDL)
    s.record.read(("ddl", "schema"), old.version)
    version = s.recorder.value()
    indexes, columns = old.indexes, old.columns
    if draw < 0.75:
        if any(i.index == EXTRA for i in indexes):
            indexes = tuple(i for i in indexes if i.index != EXTRA)
        else:
            indexes = (*indexes, ShardIndex(index=EXTRA, attnums=(2,), unique=False))
    elif len(columns) < 8:
        added = ShardColumn(attnum=len(columns) + 1, type=PhysicalType(kind="int64"), missing_value=version)
        columns = (*columns, added)
    await now(txn.alter_shard(dataclasses.replace(old, version=version, indexes=indexes, columns=columns)))
    s.record.write(("ddl", "schema"), version)
    if rng.random() < 0.5:
        await append_under_schema(s, await marker(s))


async def marker(s: Session) -> int:
    """Read the row that TRUNCATE leaves, and the schema; return the epoch."""
    (row,) = await now(s.txn.lookup(DDL, PK, [(0,)]))
    s.record.read(("ddl", "schema"), s.txn.spec(DDL).version)  # after the lookup, which has locked the table
    s.record.read(("ddl", "marker"), (row.values[1], int(row.values[2])))
    return int(row.values[1])


async def ddl_rows(s: Session) -> None:
    rng = s.rng
    await s.statement()
    epoch = await marker(s)
    await s.statement()
    if rng.random() < 0.5:
        rows = {r.values[0]: r async for chunk in s.txn.scan(DDL) for r in chunk}
        via = "scan"
    else:
        found = await now(s.txn.lookup(DDL, PK, [(k,) for k in range(s.sizes.ddl)]))
        rows = {r.values[0]: r for r in found}
        via = "key"
    spec = s.txn.spec(DDL)
    for k in range(1, s.sizes.ddl):
        row = rows.get(k)
        if row is not None:
            check_row(row, epoch, spec.columns)
        s.record.ops.append(Op("list", ("ddl", epoch, k), () if row is None else parse(row.values[2]), via))
    if any(i.index == EXTRA for i in spec.indexes):
        by_index = await now(s.txn.lookup(DDL, EXTRA, [(epoch,)]))
        s.check_unique(DDL, by_index)
        # Only of a transaction that commits: a scan is no lock, what it saw is validated at the end.
        by_scan = sorted(r.values for k, r in rows.items() if k < s.sizes.ddl)
        s.record.ops.append(
            Op("total", "ddl by index", (str(by_scan), str(sorted(r.values for r in by_index))))
        )
    if not s.txn.read_only:
        await s.statement(DDL)
        await append_under_schema(s, await marker(s))


def check_row(row: StoredRow, epoch: int, columns: tuple[ShardColumn, ...]) -> None:
    """A row has as many columns as its schema, and is no older than the last TRUNCATE."""
    if len(row.values) != len(columns) or row.values[1] != epoch:
        raise AssertionError(f"row {row.values} under {len(columns)} columns in epoch {epoch}")


async def append_under_schema(s: Session, epoch: int) -> None:
    """Append to a list of the table whose schema changes."""
    rng = s.rng
    k = rng.randrange(1, s.sizes.ddl)
    value = s.recorder.value()
    rows = await now(s.txn.lookup(DDL, PK, [(k,)], for_update=rng.random() < 0.5))
    columns = s.txn.spec(DDL).columns
    more = tuple(value if rng.random() < 0.5 else None for _ in columns[3:])
    if rows:
        check_row(rows[0], epoch, columns)
        row = (k, epoch, f"{rows[0].values[2]} {value}", *more)
        await now(s.txn.update(DDL, [(rows[0].row_id, row)]))
    else:
        await now(s.txn.insert(DDL, [(k, epoch, str(value), *more)]))
    s.record.ops.append(Op("append", ("ddl", epoch, k), value))


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
    ]
    rng.shuffle(reads)
    for work in reads[: rng.randrange(2, 7)]:
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
    await ddl_rows(s)


BODIES: Final[dict[str, tuple[Body, int, bool]]] = {
    "append": (append, 24, True),
    "cells": (cells, 14, True),
    "skew": (skew, 10, False),
    "transfer": (transfer, 12, False),
    "audit": (audit, 4, True),
    "events": (events, 20, True),
    "sweep": (sweep, 3, False),
    "load": (load, 1, False),
    "names": (names, 14, True),
    "ddl": (ddl, 4, False),
    "ddl_rows": (ddl_rows, 8, True),
    "everything": (everything, 3, True),
}
"""Name -> (body, weight, may be read-only). A SUBSCRIBE body joins them when the store has one."""
