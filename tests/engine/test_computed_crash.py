"""A crash within CREATE INDEX of an expression, or ALTER TABLE ADD of a generated column: all of it is there, or nothing."""

from __future__ import annotations

import random
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.store import tear_away, tiny_limits
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions


@pytest.mark.parametrize("seed", range(10))
def test_hidden_and_generated_columns_survive_a_crash(seed: int) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int PRIMARY KEY, a text)")
        await session.run("INSERT INTO t SELECT i, 'A' || i FROM generate_series(1, 9) i")
        await session.run("CHECKPOINT")
        done = 0
        disk.crash_at_step = disk.steps + rng.randrange(1, 60)
        generation = disk.generation
        try:
            await session.run("ALTER TABLE t ADD b int GENERATED ALWAYS AS (id * 2) STORED")
            done = 1
            await session.run("CREATE UNIQUE INDEX ti ON t (lower(a)) WHERE id < 9")
            done = 2
            await session.run("UPDATE t SET a = 'B' || id WHERE id = 5")
            done = 3
        except Failed:
            assert disk.generation != generation, "no crash: the statement was refused"
        await tear_away(database.store, disk)
        database = await open_database(disk, TxnOptions())
        database.store.validate()
        session = Session(database, 2)
        columns = [n for (n,) in await session.run("SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass "
                                                   "AND attnum > 0 AND NOT attisdropped ORDER BY attnum")]  # fmt: skip
        indexes = [n for (n,) in await session.run("SELECT indexname FROM pg_indexes WHERE indexname = 'ti'")]
        rows = sorted(await session.run("SELECT * FROM t"))
        assert len(rows) == 9
        assert ("b" in columns) or done == 0
        assert ("ti" in indexes) or done < 2
        if "b" in columns:
            assert all(int(str(row[2])) == 2 * int(str(row[0])) for row in rows)
        if indexes:
            assert "b" in columns, "the column was committed before the index"
            plan = await session.run("EXPLAIN SELECT id FROM t WHERE lower(a) = 'a3' AND id < 9")
            assert any("using ti" in str(line) for line in plan)
            found = [await session.run(f"SELECT id FROM t WHERE lower(a) = lower('{a}') AND id < 9")
                     for _id, a, *_ in rows[:8]]  # fmt: skip
            assert [row for [row] in found] == [(row[0],) for row in rows[:8]]
            with pytest.raises(Failed):
                await session.run("UPDATE t SET a = 'a3' WHERE id = 4")
        await database.close()

    with tiny_limits(), mock.patch("txn.wal.txns._RETRY_S", 0.0001):
        run(go)
