"""Temporary objects go when their session ends, whatever the session had set, and however long others hold the catalog."""

from __future__ import annotations

import asyncio

from tests.support.durable import run
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

SETTINGS = (
    "SET lock_timeout = '1ms'",
    "SET transaction_timeout = '1ms'",
    "SET default_transaction_read_only = on",
    "SET ROLE poor",
    "SET search_path = ''",
    "SET consistency = 'bounded'",
)
LEFT = """SELECT relname FROM pg_class WHERE relname IN ('t', 'v') UNION ALL SELECT typname FROM pg_type WHERE typname = 'd'
    UNION ALL SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp_%'"""


def test_nothing_is_left_of_a_session_that_had_limits_and_modes_of_its_own() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        root = Session(database, 1)
        await root.run("CREATE ROLE poor; CREATE TYPE e AS ENUM ('a')")
        for pid, setting in enumerate(SETTINGS, start=2):
            session = Session(database, pid)
            await session.run("CREATE TEMP TABLE t (a int PRIMARY KEY, b serial)")
            await session.run("CREATE DOMAIN public.d AS t; CREATE VIEW v AS SELECT * FROM t")
            await session.run(setting)
            await root.run("BEGIN; DROP TYPE e")  # holds all of the catalog
            ending = session.connection.close()
            assert ending is not None
            ended = asyncio.ensure_future(ending)
            await asyncio.sleep(0.02)
            assert not ended.done()
            await root.run("ROLLBACK")
            await ended
            assert await root.run(LEFT) == [], setting
        await database.close()

    run(main)
