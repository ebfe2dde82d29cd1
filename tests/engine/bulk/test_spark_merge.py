"""Compaction whose parts are merged elsewhere, without a JVM: by pickled jobs, or by the server if that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.changes.bulk.spark_merge import SparkMerges
from engine.server.database import Database
from tests.engine.bulk.elsewhere import opened
from tests.support.durable import run
from tests.support.engine import Session
from txn.mvcc.compaction import FANOUT


async def fill(session: Session, database: Database, table: str) -> None:
    """Make a table of as many parts of a size as become one."""
    await session.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v int, s text UNIQUE, a int[])")
    for part in range(FANOUT):
        low, high = part * 100 + 1, part * 100 + 100
        await session.run(
            f"INSERT INTO {table} (id, v, s, a) SELECT i, i % 7, 'text ' || i, array[i, 1] "
            f"FROM generate_series({low}, {high}) i"
        )
        await database.store.flush()
        if part == 1:
            await session.run(f"ALTER TABLE {table} ADD COLUMN late numeric DEFAULT 1.5")
    await session.run(f"DELETE FROM {table} WHERE id % 10 = 1")
    await session.run(f"UPDATE {table} SET v = -v, late = 2 WHERE id % 10 = 2")


def parts_of(folder: Path, oid: str | None) -> int:
    return len(list((folder / "data" / "blobs" / str(oid)).glob("*.parquet")))


def test_a_part_made_elsewhere_takes_the_place_of_many(tmp_path: Path, caplog: Any) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (database, session, tasks):
            store = database.store
            spark: Any = database.spark
            merges = SparkMerges(spark, 1, 1 << 24)
            store.merge_elsewhere(merges)
            for table, fails in (("there", False), ("here", True)):
                tasks.calls, tasks.fail_at = 0, 1 if fails else None
                await fill(session, database, table)
                expected = await session.run(f"SELECT * FROM {table} ORDER BY id")
                [[oid]] = await session.run(f"SELECT '{table}'::regclass::oid")
                await store._flusher._look()
                await store.idle()
                assert tasks.calls == 1
                assert fails == ("Spark has not merged parts (a worker is gone)" in caplog.text)
                assert fails == (not merges.wants(1 << 30))
                await store.flush()
                await store.flush()
                assert parts_of(tmp_path, oid) <= 2  # one, and one of what was hot
                assert tasks.calls == 1
                await session.run("SET executor = local")
                assert await session.run(f"SELECT * FROM {table} ORDER BY id") == expected
                await session.run("SET executor = index")
                assert await session.run(f"SELECT * FROM {table} ORDER BY id") == expected
                found = await session.run(f"SELECT id, late FROM {table} WHERE s = 'text 142'")
                assert found == [("142", "2")]
                assert await session.run(f"SELECT id FROM {table} WHERE s = 'text 141'") == []

    run(go)


def test_what_spark_wants(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (database, _, _tasks):
            spark: Any = database.spark
            merges = SparkMerges(spark, 1000, 1 << 20)
            assert merges.max_bytes == 1 << 21
            assert merges.wants(1000)
            assert not merges.wants(999)
            spark.ready = False
            assert not merges.wants(1000)

    run(go)
