"""Bodies that change schemas, and those that write under whatever schema there is: DDL against DML."""

from __future__ import annotations

import asyncio
import dataclasses

from tests.sim.checker.history import Op
from tests.sim.session import GivenUp, Session, now
from tests.sim.tables import CELLS, DDL, EVENTS, EXTRA, LISTS, NAME_OF, PK, REFS, extra, parse
from txn.base.types import IndexId, KeyRange, PhysicalType, ShardColumn, ShardId, ShardIndex, StoredRow
from txn.transaction.index_build import IndexBuild


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
        s.record.ops.append(Op("clear", "ddl", None))
        s.record.write(("ddl", "marker"), (epoch + 1, tag))
        return
    await now(txn.lock_table(DDL, "X"))
    old = txn.spec(DDL)
    s.record.read(("schema", "ddl"), old.version)
    version = s.recorder.value()
    indexes, columns = old.indexes, old.columns
    if draw < 0.75:
        there = extra(old)
        if there is not None:
            indexes = tuple(i for i in indexes if i is not there)
        else:
            indexes = (*indexes, ShardIndex(index=EXTRA, attnums=(2,), unique=False))
    elif len(columns) < 8:
        added = ShardColumn(attnum=len(columns) + 1, type=PhysicalType(kind="int64"), missing_value=version)
        columns = (*columns, added)
    await now(txn.alter_shard(dataclasses.replace(old, version=version, indexes=indexes, columns=columns)))
    s.record.write(("schema", "ddl"), version)
    if rng.random() < 0.5:
        await append_under_schema(s, await marker(s))


async def marker(s: Session) -> int:
    """Read the row that TRUNCATE leaves, and the schema; return the epoch."""
    (row,) = await now(s.txn.lookup(DDL, PK, [(0,)]))
    s.record.read(("schema", "ddl"), s.txn.spec(DDL).version)  # after the lookup, which has locked the table
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
    if (there := extra(spec)) is not None:
        by_index = await now(s.txn.lookup(DDL, there.index, [(epoch,)]))
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


async def build(s: Session) -> None:
    """CREATE INDEX: built while the table goes on being changed, then adopted under its lock. Or DROP INDEX.

    Now and then it is a unique one over values that need not be: with duplicates it must be refused.
    """
    rng, txn = s.rng, s.txn
    shard = rng.choice((LISTS, CELLS, EVENTS, DDL))
    impossible = rng.random() < 0.3
    if impossible:
        shard = REFS  # few rows: often there are no duplicates yet when the build begins
    await s.statement()
    old = txn.spec(shard)
    there = extra(old)
    if there is None and txn.has_changed(shard):
        return
    definition = ShardIndex(
        index=IndexId(1000 + s.recorder.value()),
        attnums=(2,) if impossible or shard == DDL else (3,),
        unique=impossible or (shard != DDL and rng.random() < 0.5),
        kind="hash" if shard != DDL and rng.random() < 0.5 else "sorted",
    )
    building: IndexBuild | None = None
    try:
        if there is None:
            new = dataclasses.replace(old, version=s.recorder.value(), indexes=(*old.indexes, definition))
            building = s.store.build_index(new, definition.index)
            await building.run()
            await asyncio.sleep(rng.expovariate(100) if impossible else 0)
            await s.pause()
        else:
            rest = tuple(i for i in old.indexes if i is not there)
            new = dataclasses.replace(old, version=s.recorder.value(), indexes=rest)
        await s.statement(shard)
        await now(txn.lock_table(shard, "X"))
        if txn.spec(shard) != old:
            raise GivenUp("the schema has changed meanwhile")
        key = ("schema", NAME_OF[shard])
        s.record.read(key, old.version)
        await now(txn.alter_shard(new))
        s.record.write(key, new.version)
    finally:
        if building is not None:
            building.close()
    txn.next_statement()
    if there is None:
        await check_index(s, shard, definition)
        if impossible:
            raise GivenUp("there were no duplicates")


async def check_index(s: Session, shard: ShardId, index: ShardIndex) -> None:
    """An index that can be read has all rows of its table and no others; a unique one no two under a key."""
    rows = [row.values async for chunk in s.txn.scan(shard) for row in chunk]
    attnum = index.attnums[0]
    keys = sorted({row[attnum - 1] for row in rows}, key=str)
    if index.unique and len(keys) < len(rows):
        raise AssertionError(f"a unique index over duplicates: {rows}")
    if index.kind == "sorted":
        found = await now(s.txn.range(shard, index.index, KeyRange()))
    else:
        found = await now(s.txn.lookup(shard, index.index, [(key,) for key in keys]))
    expected, seen = sorted(map(str, rows)), sorted(str(row.values) for row in found)
    if expected != seen:
        raise AssertionError(f"index {index.index} of {NAME_OF[shard]} has {seen}, the table {expected}")


async def check_indexes(s: Session) -> None:
    """Look at every index that was built."""
    for shard in (LISTS, CELLS, EVENTS):
        index = extra(s.txn.spec(shard))
        if index is not None:
            await check_index(s, shard, index)
