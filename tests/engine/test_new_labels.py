"""A label that is added to an enum is not used before its transaction has ended (55P04), as in PostgreSQL."""

from __future__ import annotations

import pytest

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

USES = (
    "SELECT 'c'::e",
    "INSERT INTO t VALUES ('c')",
    "INSERT INTO t SELECT x::e FROM (VALUES ('c')) v(x)",
    "UPDATE t SET v = 'c'",
    "SELECT count(*) FROM t WHERE v = 'c'",
    "SELECT enum_last(NULL::e)",
    "SELECT enum_range(NULL::e)",
    "SELECT '{a,c}'::e[]",
    "CREATE TABLE u (v e DEFAULT 'c')",
    "ALTER TABLE t ALTER v SET DEFAULT 'c'",
    "DO $$ BEGIN PERFORM 'c'::e; END $$",
    "SAVEPOINT s; ALTER TYPE e RENAME VALUE 'a' TO 'x'; SELECT 'c'::e",
)
MAY = (
    ("SELECT 'a'::e < 'b'::e", "t"),
    ("SELECT enum_first(NULL::e)", "a"),
    ("SELECT enum_range(NULL, 'b'::e)", "{a,b}"),
    ("SELECT count(*) FROM pg_enum WHERE enumlabel = 'c'", "1"),
    ("ALTER TYPE e RENAME VALUE 'b' TO 'bb'; SELECT 'bb'::e", "bb"),
    ("CREATE TYPE f AS ENUM ('c'); SELECT 'c'::f", "c"),
)


def test_a_new_label_waits_for_the_commit() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        session, other = Session(database, 1), Session(database, 2)
        await session.run(
            "CREATE TYPE e AS ENUM ('a', 'b'); CREATE TABLE t (v e); INSERT INTO t VALUES ('a')"
        )
        for use in USES:
            await session.run("BEGIN; ALTER TYPE e ADD VALUE 'c'")
            with pytest.raises(Failed) as refused:
                await session.run(use)
            assert refused.value.report.sqlstate == "55P04", use
            assert refused.value.report.message == 'unsafe use of new value "c" of enum type e'
            await session.run("ROLLBACK")
        for use, answer in MAY:
            await session.run("BEGIN; ALTER TYPE e ADD VALUE 'c'")
            assert await session.run(use) == [(answer,)], use
            await session.run("ROLLBACK")
        await session.run("BEGIN; ALTER TYPE e ADD VALUE 'c'; COMMIT")
        await session.run("BEGIN; INSERT INTO t VALUES ('c'); COMMIT")
        assert await other.run("SELECT v FROM t WHERE v = 'c'") == [("c",)]
        assert await other.run("SELECT enum_range(NULL::e)") == [("{a,b,c}",)]
        await database.close()

    run(main)
