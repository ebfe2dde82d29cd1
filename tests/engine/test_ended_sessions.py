"""Temporary objects go when their session ends, whatever the session had set, and however long others hold the catalog."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress

import psycopg
import pytest

from pgwire.server import Server, ServerConfig
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


SPOKEN = (
    "SELECT 1",
    "CREATE TABLE IF NOT EXISTS t (a int)",
    "INSERT INTO t VALUES (1)",
    "BEGIN; DECLARE c CURSOR FOR SELECT * FROM t; FETCH c; COMMIT",
    "PREPARE x AS SELECT * FROM t; EXECUTE x",
    "SET work_mem = '5MB'; LISTEN a; NOTIFY a; SELECT pg_advisory_lock(1)",
    "DO 'BEGIN PERFORM 1; END'",
    "CREATE TEMP TABLE u (a int); INSERT INTO u VALUES (2)",
    "SELECT no_such_column",
    "BEGIN; SELECT * FROM t FOR UPDATE",
)


@pytest.mark.parametrize("said", [(), SPOKEN])
def test_nothing_of_a_closed_session_waits_for_a_collection(said: tuple[str, ...]) -> None:
    """Its parts refer to one another while it lives; once it is closed they are free without a search for cycles."""

    def talk(port: int) -> None:
        with psycopg.connect(
            f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True
        ) as c:
            for text in said:
                with suppress(psycopg.Error):
                    c.execute(text)

    async def main() -> list[str]:
        database = await open_database(MemoryDisk())
        server = Server(database, ServerConfig(host="127.0.0.1", port=0))
        database.terminate = server.terminate
        await server.start()
        for _ in range(2):  # the first one makes what stays
            gc.collect()
            await asyncio.to_thread(talk, server.port)
            while server._sockets or database.sessions:
                await asyncio.sleep(0)
            while server._closing_tasks:
                await asyncio.wait(server._closing_tasks)
        await asyncio.sleep(0)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        found = [type(x) for x in gc.garbage]
        gc.garbage.clear()
        await server.drain(0)
        await database.close()
        return sorted(
            {kind.__name__ for kind in found if kind.__module__.partition(".")[0] in ("engine", "pgwire")}
        )

    gc.disable()
    try:
        assert asyncio.run(main()) == []
    finally:
        gc.enable()
