"""Names of array types are chosen, and make room: also where somebody else takes the name, or the type goes, in the meantime."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

NAMES = "SELECT typname, count(*) FROM pg_type WHERE typtype IN ('e', 'd', 'c') AND typname IN ('foo', '_foo', 'bar') GROUP BY 1 ORDER BY 1"


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize(
    ("before", "first", "second"),
    [
        ("", "CREATE TYPE foo AS ENUM ('a')", "CREATE TABLE _foo (a int)"),
        ("", "CREATE TABLE _foo (a int)", "CREATE TYPE foo AS ENUM ('a')"),
        ("", "CREATE TYPE _foo AS ENUM ('a')", "CREATE TYPE foo AS ENUM ('a')"),
        ("", "CREATE VIEW _foo AS SELECT 1 AS a", "CREATE DOMAIN foo AS int"),
        ("", "CREATE TYPE foo AS (a int)", "CREATE VIEW _foo AS SELECT 1 AS a"),
        ("", "CREATE TYPE _foo AS (a int)", "CREATE TYPE foo AS RANGE (SUBTYPE = int)"),
        ("CREATE TYPE foo AS ENUM ('a')", "CREATE TABLE _foo (a int)", "ALTER TYPE foo ADD VALUE 'b'"),
        ("CREATE TYPE foo AS ENUM ('a')", "CREATE TABLE _foo (a int)", "DROP TYPE foo"),
        ("CREATE TYPE foo AS ENUM ('a')", "ALTER TYPE foo RENAME TO bar", "CREATE TABLE _foo (a int)"),
        ("CREATE TYPE foo AS ENUM ('a')", "DROP TYPE foo", "CREATE TABLE _foo (a int)"),
        ("CREATE TYPE foo AS ENUM ('a'); CREATE TABLE bar ()", "ALTER TABLE bar RENAME TO _foo", "ALTER TYPE foo OWNER TO postgres"),
    ],
)  # fmt: skip
def test_who_takes_a_name_waits_for_who_has_it(before: str, first: str, second: str, end: str) -> None:
    async def body() -> None:
        database = await open_database(MemoryDisk())
        one, other = Session(database, 1), Session(database, 2)
        if before:
            await one.run(before)
        await one.run("BEGIN")
        await one.run(first)
        meets = asyncio.create_task(other.run(second))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not meets.done()
        await one.run(end)
        await meets
        assert all(count == "1" for _, count in await one.run(NAMES))
        await one.run("DROP SCHEMA public CASCADE")
        assert await other.run(NAMES) == []
        await database.close()

    asyncio.run(body())
