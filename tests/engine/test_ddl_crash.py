"""DDL and data in one transaction, with the server torn away at a random step of storage, then started again.

A model in plain Python says what every acknowledged transaction left; one whose commit was under way is there completely
or not at all. Every index is compared with a scan after each start.
"""

from __future__ import annotations

import copy
import random
from unittest import mock

import pytest

from engine.server.database import Database
from tests.support.ddl_model import Model, Step, expected
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.proofs import sampled
from tests.support.store import tear_away, tiny_limits
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions


async def dump(database: Database) -> dict[str, object]:
    """Return all tables as they are read, each also through each of its indexes."""
    session = Session(database, 99)
    await session.run("SET executor = 'index'")
    found: dict[str, object] = {}
    tables = await session.run(
        "SELECT relname, oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    for name, oid in tables:
        named = await session.run(
            f"SELECT attname FROM pg_attribute WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped "
            "ORDER BY attnum"
        )
        rows = sorted(await session.run(f"SELECT * FROM {name}"))
        indexed = await session.run(
            "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_attribute a "
            f"ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = {oid}"
        )
        for _index, column in indexed:
            plan = await session.run(f"EXPLAIN SELECT * FROM {name} WHERE {column} > -1")
            assert any("index" in str(line).lower() for line in plan), plan
            through = sorted(await session.run(f"SELECT * FROM {name} WHERE {column} > -1"))
            assert through == rows, f"{name} by {column}"
        assert name is not None
        found[name] = ([c for (c,) in named], rows, sorted(i for i, c in indexed if c != "id"))
    await settle_close(session)
    return found


async def settle_close(session: Session) -> None:
    closing = session.connection.close()
    if closing is not None:
        await closing


async def work(database: Database, step: Step, acknowledged: list[Model], pending: list[Model]) -> None:
    """One client: transactions of several statements with savepoints and errors, now and then a checkpoint."""
    rng = step.rng
    session = Session(database, 1)
    for _ in range(30):
        model = copy.deepcopy(acknowledged[-1])
        alone = rng.random() < 0.3
        if not alone:
            await session.run("BEGIN")
        marks: list[Model] = []
        for _ in range(1 if alone else rng.randrange(1, 6)):
            if not alone and rng.random() < 0.2:
                await session.run(f"SAVEPOINT s{len(marks)}")
                marks.append(copy.deepcopy(model))
            if alone:
                planned = copy.deepcopy(model)
                statement = step.next(planned)
                pending[:] = [planned]
                await session.run(statement)
                model = planned
            else:
                await session.run(step.next(model))
            if marks and rng.random() < 0.3:
                if rng.random() < 0.5:
                    with pytest.raises(Failed):
                        await session.run("CREATE TABLE pg_class.nowhere (a int)")
                at = rng.randrange(len(marks))
                await session.run(f"ROLLBACK TO s{at}")
                model = copy.deepcopy(marks[at])
                del marks[at + 1 :]
        if not alone and rng.random() < 0.2:
            await session.run("ROLLBACK")
            continue
        pending[:] = [model]
        if not alone:
            await session.run("COMMIT")
        acknowledged.append(model)
        pending.clear()
        if rng.random() < 0.3:
            await session.run("CHECKPOINT")


# The first two roll ADD COLUMN back over rows of their own block, and add another column later.
@pytest.mark.parametrize("seed", sampled(10, [1005, 1009, *range(30)]))
def test_ddl_survives_a_crash_at_any_step_completely_or_not_at_all(seed: int) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        step = Step(rng)
        acknowledged: list[Model] = [{}]
        for _life in range(3):
            pending: list[Model] = []
            disk.crash_at_step = disk.steps + rng.randrange(1, 150)
            generation = disk.generation
            try:
                await work(database, step, acknowledged, pending)
            except Failed:
                if disk.generation == generation:
                    raise  # no crash: the statement was refused
            await tear_away(database.store, disk)
            database = await open_database(disk, TxnOptions())
            database.store.validate()
            found = await dump(database)
            possible = [expected(model) for model in (acknowledged[-1], *pending)]
            assert found in possible
            acknowledged.append((acknowledged[-1], *pending)[possible.index(found)])
        await database.close()

    bulk_rows = 3 if seed % 2 else 20_000  # rewritten tables become parts, or hot rows
    with (
        tiny_limits(),
        mock.patch("txn.wal.txns._RETRY_S", 0.0001),
        mock.patch("engine.definitions.table.rewrite.BULK_ROWS", bulk_rows),
    ):
        run(go)


def test_the_number_of_a_dropped_table_is_not_given_again_after_a_restart() -> None:
    """The dropped table's shard is still known then, to readers of the past and to the log."""

    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE t (a int PRIMARY KEY)")
        await session.run("INSERT INTO t VALUES (1)")
        await session.run("CHECKPOINT")
        [(before,)] = await session.run("SELECT 't'::regclass::oid")
        await session.run("DROP TABLE t")
        await database.close()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE t (a int PRIMARY KEY)")
        [(after,)] = await session.run("SELECT 't'::regclass::oid")
        assert int(str(after)) > int(str(before))
        assert await session.run("SELECT * FROM t") == []
        await database.close()

    run(go)
