"""DROP TIMELINE beside those who are in it, are about to be, or have told others what they see (A9, A12, U13)."""

from __future__ import annotations

import asyncio
from unittest import mock

import pytest

from engine.server.database import Database
from engine.session.named_subscriptions import SHARD
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.store import now, settle, tear_away
from txn.base.errors import TxnError
from txn.base.types import Timestamp
from txn.persist.memory import MemoryDisk

MAKE = "CREATE TIMELINE side; CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = side)"
REMOVE = "DROP TABLE there; DROP TIMELINE side"


async def opened(disk: MemoryDisk) -> tuple[Database, Session, Session]:
    db = await open_database(disk)
    await db.named.open()
    one, other = Session(db, 1), Session(db, 2)
    await one.run(MAKE)
    await one.run("INSERT INTO there VALUES (1)")
    return db, one, other


async def sqlstate(session: Session, sql: str) -> str:
    with pytest.raises(Failed) as error:
        await session.run(sql)
    return error.value.report.sqlstate


def test_a_snapshot_is_exported_of_the_timelines_that_are_left() -> None:
    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        await one.run("BEGIN")
        await one.run("SELECT count(*) FROM pg_class")
        await other.run(REMOVE)
        [(snapshot,)] = await one.run("SELECT pg_export_snapshot()")
        await other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await other.run(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        assert await other.run("SELECT 1") == [("1",)]
        assert await sqlstate(other, "TABLE there") == "25000", "it is in the one that is left"
        await other.run("ROLLBACK")
        await one.run("ROLLBACK")
        await db.close()

    run(body)


def test_a_snapshot_of_a_dropped_timeline_is_none() -> None:
    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        await one.run("BEGIN")
        assert await one.run("TABLE there") == [("1",)]
        [(snapshot,)] = await one.run("SELECT pg_export_snapshot()")
        await other.run(REMOVE)
        assert await one.run("TABLE there") == [("1",)], "who reads in it goes on"
        await other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert await sqlstate(other, f"SET TRANSACTION SNAPSHOT '{snapshot}'") == "42704"
        await other.run("ROLLBACK")
        assert await sqlstate(one, "SELECT pg_export_snapshot()") == "42704"
        await one.run("ROLLBACK")
        assert len(db.store.core.active) == 0
        await db.close()

    run(body)


def test_a_read_that_waits_for_a_timestamp_finds_its_timeline_gone() -> None:
    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        reached = asyncio.Event()

        async def reach(ts: Timestamp, timeline: str | None = None) -> None:
            await reached.wait()

        ahead = db.store.present("side") + (1 << 16)
        await one.run(f"SET min_read_ts = {ahead}")
        with mock.patch.object(db.store, "reach", reach):
            reading = asyncio.ensure_future(sqlstate(one, "TABLE there"))
            await settle()
            await other.run(REMOVE)
            reached.set()
            assert await reading == "42P01"
        await db.close()

    run(body)


def test_a_query_that_is_subscribed_to_ends_with_its_timeline() -> None:
    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        await one.run("BEGIN")
        await one.run("DECLARE counts CURSOR FOR SUBSCRIBE (SELECT count(*) FROM there)")
        await one.run("DECLARE changes CURSOR FOR SUBSCRIBE there")
        assert [row[1:] for row in await one.run("FETCH 1 counts")] == [("1", "1")]
        assert [row[1:] for row in await one.run("FETCH 1 changes")] == [("1", "1")]
        await other.run("INSERT INTO there VALUES (2)")
        await other.run(REMOVE)
        assert [row[1:] for row in await one.run("FETCH 1 changes")] == [("1", "2")]
        assert await sqlstate(one, "FETCH 1 counts") == "42704"
        await one.run("ROLLBACK")
        await db.close()

    run(body)


@pytest.mark.parametrize(
    "demand",
    ["consistency = session", "min_read_ts = 1", "consistency = bounded", "consistency = serializable"],
)
def test_a_level_is_kept_in_the_timeline_that_is_settled_later(demand: str) -> None:
    """The first statement reads the catalog alone; what was committed in another timeline before it is seen in that."""

    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        await one.run(f"SET {demand}")
        await one.run("INSERT INTO there VALUES (2)")
        assert db.store.read_ts("side") > db.store.read_ts()
        await one.run("BEGIN")
        await one.run("SELECT count(*) FROM pg_class")
        await other.run("INSERT INTO there VALUES (3)")
        assert await one.run("SELECT id FROM there ORDER BY id") == [("1",), ("2",)]
        await one.run("COMMIT")
        await db.close()

    run(body)


def test_a_demanded_timestamp_is_reached_in_every_timeline_that_may_be_settled() -> None:
    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        ahead = db.store.present("side") + (50 << 16)
        await one.run(f"SET min_read_ts = {ahead}")
        await one.run("BEGIN")
        await one.run("SELECT count(*) FROM pg_class")
        assert db.store.read_ts() >= ahead
        assert db.store.read_ts("side") >= ahead
        await other.run("INSERT INTO there VALUES (3)")
        assert await one.run("TABLE there") == [("1",)]
        await one.run("COMMIT")
        await db.close()

    run(body)


@pytest.mark.parametrize("ends_with", ["commit", "failure"])
def test_a_subscription_that_is_being_created_keeps_its_timeline(ends_with: str) -> None:
    async def body() -> None:
        db, one, other = await opened(MemoryDisk())
        await other.run("CREATE SUBSCRIPTION first FOR there")
        await other.run("DROP SUBSCRIPTION first")
        blocker = db.store.begin()
        await now(blocker.begin_write([SHARD]))
        await now(blocker.insert(SHARD, [("feed", b"")]))
        creating = asyncio.ensure_future(one.run("CREATE SUBSCRIPTION feed FOR there"))
        await settle()
        await other.run("DROP TABLE there")
        assert await sqlstate(other, "DROP TIMELINE side") == "2BP01"
        if ends_with == "failure":
            await now(blocker.commit())
            with pytest.raises(Failed, match="42710"):
                await creating
            await other.run("DROP TIMELINE side")
        else:
            blocker.rollback()
            await creating
            assert await sqlstate(other, "DROP TIMELINE side") == "2BP01"
            await other.run("DROP SUBSCRIPTION feed")
            await other.run("DROP TIMELINE side")
        await db.close()

    run(body)


def test_a_subscription_is_not_created_in_a_timeline_that_is_being_dropped() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        db, one, other = await opened(disk)
        await other.run("BEGIN")
        await other.run(REMOVE)
        creating = asyncio.ensure_future(one.run("CREATE SUBSCRIPTION feed FOR there"))
        await settle()
        assert not creating.done()
        await other.run("COMMIT")
        with pytest.raises((Failed, TxnError), match="42704"):
            await creating
        await db.close()
        db = await open_database(disk)
        await db.named.open()
        assert not list(db.named)
        await db.close()

    run(body)


LIVES = (
    "CREATE TIMELINE side",
    "CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = side)",
    "INSERT INTO there VALUES (1)",
    "CHECKPOINT",
    "INSERT INTO here VALUES (1)",
    "BEGIN; DROP TABLE there; DROP TIMELINE side; CREATE TIMELINE side; COMMIT",
    "CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = side)",
    "INSERT INTO there VALUES (2)",
    "BEGIN; CREATE TIMELINE half; CREATE TABLE here2 (a int) WITH (timeline = half); ROLLBACK",
    "DROP TABLE there; DROP TIMELINE side",
    "INSERT INTO here VALUES (2)",
    "CHECKPOINT",
)


async def live(db: Database) -> int:
    """Run ``LIVES`` as far as the disk goes; returns how many statements were acknowledged."""
    session = Session(db, 1)
    for number, sql in enumerate(LIVES):
        try:
            await session.run(sql)
            await settle()
        except (Failed, TxnError):
            return number
    return len(LIVES)


async def state(db: Database) -> tuple[list[str | None], list[tuple[str | None, ...]], list[object]]:
    session = Session(db, 9)
    tables = await session.run("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE '%here%'")
    rows = [await session.run(f"TABLE {name}") for (name,) in sorted(tables, key=str)]
    timelines = await session.run("SELECT timeline FROM holdfast_timelines ORDER BY 1")
    assert {t for (t,) in timelines} == {"epoch_ms", *db.spaces.any.catalog.timelines}
    registers = set(await db.store.core.log._consensus.keys("oracle/"))
    assert registers == {f"oracle/{t}" for (t,) in timelines}, "a register for each, and no other"
    return [t for (t,) in sorted(timelines, key=str)], sorted(tables, key=str), list(rows)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_timelines_come_and_go_completely_or_not_at_all_wherever_a_crash_comes(every: int) -> None:
    """At each fifth step of storage; ``make proofs``: at each."""

    async def body() -> None:
        disk = MemoryDisk()
        db = await open_database(disk)
        await Session(db, 1).run("CREATE TABLE here (id int PRIMARY KEY)")
        first = disk.steps
        after = [await state(db)]
        session = Session(db, 1)
        for sql in LIVES:
            await session.run(sql)
            await settle()
            after.append(await state(db))
        last = disk.steps
        await db.close()
        for step in range(first + 1, last + 1, every):
            disk = MemoryDisk()
            db = await open_database(disk)
            await Session(db, 1).run("CREATE TABLE here (id int PRIMARY KEY)")
            disk.crash_at_step = step
            done = await live(db)
            await tear_away(db.store, disk)
            db = await open_database(disk)
            found = await state(db)
            assert found in after[done : done + 2] or done == len(LIVES), (step, done, found)
            db.store.validate()
            await Session(db, 1).run("INSERT INTO here VALUES (3)")
            await db.close()

    with mock.patch("txn.wal.txns._RETRY_S", 0.0001):
        run(body)
