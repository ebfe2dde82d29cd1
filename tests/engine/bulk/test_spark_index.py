"""CREATE INDEX whose sidecars are written elsewhere, without a JVM: the same bytes as the server's, or nothing at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.engine.bulk.elsewhere import opened, refused
from tests.support.durable import run
from tests.support.engine import Session
from txn.base.errors import TxnError

PARTS = 3
ROWS = 400


async def fill(session: Session) -> None:
    """Make ``t`` of three parts: with a column that the first has not, rows that have ended, and hot ones."""
    await session.run("CREATE TABLE t (id int PRIMARY KEY, v int, s text)")
    for part in range(PARTS):
        low = part * ROWS
        values = ", ".join(f"({i}, {(i * 7919) % 1201}, 'text {i % 97}')" for i in range(low, low + ROWS))
        await session.run(f"INSERT INTO t (id, v, s) VALUES {values}")
        await session.run("CHECKPOINT")
        if part == 0:
            await session.run("ALTER TABLE t ADD COLUMN late int DEFAULT 5")
    await session.run("UPDATE t SET v = v + 5000, late = 6 WHERE id % 50 = 0")
    await session.run("INSERT INTO t VALUES (100000, NULL, NULL, NULL)")


def sidecars(folder: Path, oid: str | None) -> dict[str, bytes]:
    """Return the sidecars of an index, by the part's name."""
    found = (folder / "data" / "blobs").rglob(f"*.x{oid}")
    return {path.name.rpartition(".")[0]: path.read_bytes() for path in found}


def names(folder: Path) -> set[str]:
    """Return the names of all sidecars."""
    return {path.name for path in (folder / "data" / "blobs").rglob("*.x*")}


def unfinished(folder: Path) -> list[Path]:
    return list((folder / "data" / "blobs" / "tmp").iterdir())


async def oid_of(session: Session, name: str) -> str | None:
    [[oid]] = await session.run(f"SELECT '{name}'::regclass::oid")
    return oid


def test_workers_write_what_the_server_writes(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (_, session, tasks):
            await fill(session)
            for columns in ("v", "late", "s, v", "v, late"):
                await session.run(f"SET index_spark_min_rows = {PARTS * ROWS + 1}; SET executor = auto")
                tasks.calls = 0
                await session.run(f"CREATE INDEX here ON t ({columns})")
                assert tasks.calls == 0
                await session.run(f"SET index_spark_min_rows = {PARTS * ROWS}")
                await session.run(f"CREATE INDEX there ON t ({columns})")
                assert tasks.calls == PARTS
                here = sidecars(tmp_path, await oid_of(session, "here"))
                there = sidecars(tmp_path, await oid_of(session, "there"))
                assert len(here) == PARTS
                assert here == there
                assert unfinished(tmp_path) == []
                await session.run("DROP INDEX here; SET executor = local")
                await session.run(f"CREATE INDEX here ON t ({columns})")
                assert tasks.calls == PARTS
                await session.run("DROP INDEX here; SET executor = index")
                found = await session.run("SELECT count(*), sum(id) FROM t WHERE v >= 5000")
                assert found == await session.run("SELECT count(*), sum(id) FROM t WHERE v + 0 >= 5000")
                await session.run("DROP INDEX there")

    run(go)


def test_a_key_that_is_there_twice_leaves_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (database, session, tasks):
            await fill(session)
            await session.run("SET index_spark_min_rows = 1")
            before = names(tmp_path)
            error = await refused(session, "CREATE UNIQUE INDEX twice ON t (s)")
            assert error.report.sqlstate == "23505"
            assert (error.report.message, tasks.calls) == ('could not create unique index "twice"', PARTS)
            await database.store.core.log.jobs.settled()
            assert names(tmp_path) == before
            assert unfinished(tmp_path) == []
            # both of them in parts
            await session.run("CREATE TABLE w (id int PRIMARY KEY, k int)")
            await session.run("INSERT INTO w SELECT i, i FROM generate_series(1, 300) i")
            await session.run("CHECKPOINT")
            await session.run("INSERT INTO w VALUES (301, 7)")
            await session.run("CHECKPOINT")
            error = await refused(session, "CREATE UNIQUE INDEX ON w (k)")
            assert (error.report.sqlstate, error.report.detail) == ("23505", "Key (k)=(7) is duplicated.")
            await session.run("DELETE FROM w WHERE id = 301")
            await session.run("CREATE UNIQUE INDEX ON w (k)")
            # what has ended is no second one
            await session.run("CREATE TABLE u (id int PRIMARY KEY, k int)")
            await session.run("INSERT INTO u SELECT i, i FROM generate_series(1, 300) i")
            await session.run("CHECKPOINT")
            await session.run("UPDATE u SET k = -k WHERE id <= 100")
            await session.run("CHECKPOINT")
            await session.run("UPDATE u SET k = -k WHERE id <= 100")
            await session.run("CHECKPOINT")
            await session.run("CREATE UNIQUE INDEX once ON u (k)")
            error = await refused(session, "INSERT INTO u VALUES (1000, 100)")
            assert error.report.constraint == "once"

    run(go)


def test_without_its_workers_the_server_goes_on_unless_the_session_is_pinned(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (database, session, tasks):
            await fill(session)
            await session.run("SET index_spark_min_rows = 1")
            before = names(tmp_path)
            tasks.fail_at = 2
            await session.run("SET executor = spark")
            error = await refused(session, "CREATE INDEX whole ON t (v)")
            assert error.report.sqlstate == "58000"
            await database.store.core.log.jobs.settled()
            assert names(tmp_path) == before
            assert unfinished(tmp_path) == []
            await session.run("SET executor = auto")
            tasks.calls = 0
            await session.run("CREATE INDEX whole ON t (v)")
            assert tasks.calls == 2
            await session.run("CREATE INDEX other ON t (v)")
            whole = sidecars(tmp_path, await oid_of(session, "whole"))
            assert len(whole) == PARTS
            assert whole == sidecars(tmp_path, await oid_of(session, "other"))
            assert unfinished(tmp_path) == []

    run(go)


def test_progress_is_seen_and_a_cancelled_build_leaves_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (database, session, tasks):
            await fill(session)
            await session.run("SET index_spark_min_rows = 1")
            before = names(tmp_path)
            reached = asyncio.Event()

            async def hang() -> None:
                if tasks.calls == 3:
                    reached.set()
                    await asyncio.Event().wait()

            database.sessions[1] = session.connection
            other = Session(database, 2)
            tasks.before = hang
            building = asyncio.ensure_future(session.run("CREATE INDEX never ON t (v)"))
            await reached.wait()
            written = names(tmp_path)
            assert len(written - before) == 2
            assert len(unfinished(tmp_path)) == 1
            [progress] = await other.run(
                "SELECT command, phase, tuples_done, tuples_total FROM pg_stat_progress_create_index"
            )
            hot = ROWS * PARTS // 50 + 1
            done, total = str(hot + 2 * ROWS), str(hot + PARTS * ROWS)
            assert progress == ("CREATE INDEX", "building index: scanning table", done, total)
            building.cancel()
            with pytest.raises(asyncio.CancelledError):
                await building
            session.connection.session.ahead.close()
            await database.store.core.log.jobs.settled()
            assert names(tmp_path) == before
            assert unfinished(tmp_path) == []

    run(go)


def test_late_workers_add_nothing_and_replace_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path) as (database, session, _):
            await fill(session)
            store = database.store
            core = store.core
            shard, history = next(
                (s, h) for s, h in core.shards.items() if len(h.latest.generation.parts) == PARTS
            )  # type: ignore[union-attr]
            spec, generation = history.latest.spec, history.latest.generation
            assert spec is not None
            assert generation is not None
            refs = [part.ref for part in generation.parts]
            index = spec.indexes[0].index
            whole = sidecars(tmp_path, str(index))
            job = await core.log.jobs.start_sidecars(spec, index, refs[:1])
            assert job is not None
            assert len(sidecars(tmp_path, str(index))) == PARTS - 1
            await asyncio.to_thread(job.write, refs[0], "0-1")
            with pytest.raises(FileExistsError):
                await asyncio.to_thread(job.write, refs[0], "0-2")
            await core.log.jobs.end_sidecars(job)
            assert sidecars(tmp_path, str(index)) == whole
            core.log.jobs.drop_sidecars(index, [refs[0].name])
            await core.log.jobs.settled()
            with pytest.raises(TxnError):
                await asyncio.to_thread(job.write, refs[0], "0-3")
            assert len(sidecars(tmp_path, str(index))) == PARTS - 1
            await core.log.build_sidecar(refs[0], spec, index)
            assert sidecars(tmp_path, str(index)) == whole
            assert shard == spec.shard

    run(go)
