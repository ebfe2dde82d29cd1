"""READ ONLY blocks that read tables of several timelines: pg_dump's. One moment for each timeline, all taken when the block begins."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.engine.catalog.test_dump import PG_DUMP, needs_pg_dump, restore
from tests.engine.catalog.test_psql import PSQL
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk

MADE: Final = (
    "CREATE TIMELINE sensors", "CREATE TIMELINE other", "CREATE TABLE here (a int PRIMARY KEY, b text)", "INSERT INTO here VALUES (1, 'h')",
    "CREATE TABLE there (a int PRIMARY KEY, s serial) WITH (timeline = 'sensors')", "INSERT INTO there VALUES (1)",
    "CREATE TABLE third (a int) WITH (timeline = 'other')", "INSERT INTO third VALUES (1)",
    "CREATE FUNCTION both_of() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM here) + (SELECT count(*) FROM there); END'",
    "CREATE FUNCTION in_two() RETURNS bigint LANGUAGE plpgsql AS "
    "'DECLARE n bigint; m bigint; BEGIN SELECT count(*) INTO n FROM here; SELECT count(*) INTO m FROM there; RETURN n + m; END'",
)  # fmt: skip
HOLDS: Final = "SELECT timeline, holds FROM holdfast_timelines ORDER BY 1"
SPANNING: Final = (
    "ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE",
)


async def state(session: Session, sql: str) -> str:
    with pytest.raises(Failed) as caught:
        await session.run(sql)
    return caught.value.report.sqlstate


@pytest.mark.parametrize("modes", SPANNING)
def test_each_timeline_is_read_as_of_the_beginning(modes: str) -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        writer, reader = Session(database, 1), Session(database, 2)
        for statement in MADE:
            await writer.run(statement)
        held = await writer.run(HOLDS)
        await reader.run("BEGIN")
        await reader.run(f"SET TRANSACTION {modes}")
        await reader.run("LOCK TABLE here, there, third IN ACCESS SHARE MODE")
        told = await reader.run("SELECT txid_current(), txid_current_snapshot()")
        exported = (await reader.run("SELECT pg_export_snapshot()"))[0][0]
        for table in ("here", "there", "third"):
            await writer.run(f"INSERT INTO {table} VALUES (2)")
        assert await reader.run("SELECT a FROM here") == [("1",)]
        await reader.run("DECLARE c CURSOR FOR SELECT a FROM here")
        await reader.run("SAVEPOINT s")
        assert await reader.run("SELECT a FROM there") == [("1",)]
        assert await reader.run("FETCH ALL FROM c") == [("1",)], "it reads on where it began"
        assert await reader.run("SELECT a FROM third") == [("1",)]
        assert "other" in str(await reader.run("EXPLAIN (TIMESTAMP) SELECT a FROM third"))
        assert await reader.run("SELECT a, b FROM here") == [("1", "h")]
        assert await reader.run("SELECT txid_current(), txid_current_snapshot()") == told
        assert await state(reader, "SELECT * FROM here, there") == "0A000"
        await reader.run("ROLLBACK TO s")
        assert await reader.run("SELECT a FROM there") == [("1",)]
        assert await state(reader, "INSERT INTO here VALUES (3)") == "25006"
        await reader.run("ROLLBACK TO s")

        third = Session(database, 3)
        await third.run(f"BEGIN {modes}")
        await third.run(f"SET TRANSACTION SNAPSHOT '{exported}'")
        for table in ("third", "here", "there"):
            assert await third.run(f"SELECT count(*) FROM {table}") == [("1",)]
        await third.run("COMMIT")
        await reader.run("COMMIT")
        assert await writer.run(HOLDS) == held, "nothing is held any more"
        assert await reader.run("SELECT count(*) FROM there") == [("2",)]
        await database.close()

    run(go)


def test_other_transactions_keep_to_one() -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        for statement in MADE:
            await session.run(statement)
        held = await session.run(HOLDS)
        for modes in (
            "",
            "READ ONLY",
            "ISOLATION LEVEL REPEATABLE READ",
            "ISOLATION LEVEL SERIALIZABLE, READ ONLY",
        ):
            await session.run(f"BEGIN {modes}")
            await session.run("SELECT a FROM here")
            assert await state(session, "SELECT a FROM there") == "25000", modes
            await session.run("ROLLBACK")
        await session.run("BEGIN")
        assert await state(session, "LOCK TABLE here, there IN ACCESS SHARE MODE") == "0A000"
        await session.run("ROLLBACK")
        await session.run(f"BEGIN {SPANNING[0]}")
        assert await state(session, "SELECT both_of()") == "0A000"
        await session.run("ROLLBACK")
        await session.run(f"BEGIN {SPANNING[0]}")
        assert await state(session, "SELECT in_two()") == "25000", "one statement reads one moment"
        await session.run("ROLLBACK")
        await session.run(f"BEGIN {SPANNING[0]}")
        await session.run("SELECT a FROM here")
        await session.run("SELECT a FROM there")
        assert await state(session, "SELECT 1/0") == "22012"
        await session.run("ROLLBACK")
        assert await session.run(HOLDS) == held
        await database.close()

    run(go)


@needs_pg_dump
def test_a_database_of_several_timelines_is_dumped_and_restored(tmp_path: Path) -> None:
    first, second = ServerProcess(tmp_path / "a"), ServerProcess(tmp_path / "b")

    def dump(port: int, *options: str) -> str:
        command = [PG_DUMP, "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", *options, "postgres"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        # \restrict carries a key drawn anew each time
        return "\n".join(line for line in done.stdout.split("\n") if "restrict " not in line)

    try:
        for statement in MADE:
            first.sql(statement)
        plain = dump(first.port)
        assert plain == dump(first.port, "--serializable-deferrable")
        assert "INSERT INTO" in dump(first.port, "--inserts")
        second.sql(MADE[0])
        second.sql(MADE[1])
        assert restore(second.port, plain.split("\n")) == ""
        assert dump(second.port) == plain
        assert second.sql("SELECT timeline FROM holdfast_shards WHERE relname = 'there'") == [("sensors",)]
        dump(first.port, "-Fd", "-j2", "-f", str(tmp_path / "parallel"))
        second.sql("CREATE DATABASE again")
        command = [
            str(Path(PSQL).with_name("pg_restore")),
            "-h",
            "127.0.0.1",
            "-p",
            str(second.port),
            "-U",
            "postgres",
            "-d",
            "again",
        ]
        done = subprocess.run(
            [*command, "-j2", str(tmp_path / "parallel")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        assert first.stop() == 0
        assert second.stop() == 0
