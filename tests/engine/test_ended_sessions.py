"""Temporary objects go when their session ends, whatever the session had set, and however long others hold the catalog."""

from __future__ import annotations

import asyncio
import gc
import re
from contextlib import suppress

import psycopg
import pytest

from engine.session.session import Session as Ended
from pgwire.server import Server, ServerConfig
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
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


OVER_TEMPORARIES = (
    "CREATE TABLE u (x int, y pg_temp_2.d)",
    "CREATE TABLE u (x int, y pg_temp_2.d[])",
    "CREATE TABLE u OF pg_temp_2.c",
    "CREATE TABLE u (x int, y pg_temp_2.t)",
    "CREATE TABLE u (x int, y int GENERATED ALWAYS AS (pg_temp_2.f(x)) STORED)",
    "CREATE MATERIALIZED VIEW u AS SELECT NULL::pg_temp_2.d AS y",
)
IN_A_SCHEMA = (
    "CREATE DOMAIN {0}.d AS int",
    "CREATE TYPE {0}.c AS (x int, y {0}.d)",
    "CREATE TABLE {0}.t (x int)",
    "CREATE FUNCTION {0}.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
)


@pytest.mark.parametrize("ends", [True, False])
def test_what_hangs_on_a_schema_may_be_dropped_by_another_meanwhile(*, ends: bool) -> None:
    """A session's end, and DROP SCHEMA, wait for who drops it, and then have nothing to do with it."""

    async def main() -> None:
        database = await open_database(MemoryDisk())
        other, session = Session(database, 1), Session(database, 2)
        for over in OVER_TEMPORARIES:
            if ends:
                session = Session(database, 2)
            name = "pg_temp_2" if ends else "s"
            made = [each.format("pg_temp" if ends else "s") for each in IN_A_SCHEMA]
            await session.run("; ".join([*([] if ends else ["CREATE SCHEMA s"]), *made]))
            await session.run(
                over.replace("pg_temp_2", name) + "; INSERT INTO u DEFAULT VALUES" * ("TABLE" in over)
            )
            kind = "MATERIALIZED VIEW" if "MATERIALIZED" in over else "TABLE"
            await other.run(f"BEGIN; DROP {kind} u")
            ending = session.connection.close() if ends else session.run("DROP SCHEMA s CASCADE")
            assert ending is not None
            ended = asyncio.ensure_future(ending)
            await asyncio.sleep(0.02)
            assert not ended.done(), over
            await other.run("COMMIT")
            await ended
            left = f"SELECT relname FROM pg_class WHERE relname = 'u' UNION SELECT nspname FROM pg_namespace WHERE nspname = '{name}'"
            assert await other.run(left) == [], over
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


KEPT_FOR = """
    CREATE TABLE p (id int PRIMARY KEY, a int, s text) PARTITION BY RANGE (id);
    CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (id);
    CREATE TABLE p00 PARTITION OF p0 FOR VALUES FROM (0) TO (500);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1000) TO (9000);
    CREATE TABLE h (k text, v int CHECK (v > 0)) PARTITION BY LIST (lower(k));
    CREATE TABLE h1 PARTITION OF h FOR VALUES IN ('a');
    CREATE TABLE t (id int PRIMARY KEY, o regclass, n int CHECK (n > 0), g int GENERATED ALWAYS AS (n * 2) STORED);
    CREATE TABLE c (id serial, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE VIEW v AS SELECT * FROM t WHERE n < 1000 WITH CHECK OPTION;
    CREATE FUNCTION f(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN INSERT INTO p VALUES (i, 1); RETURN i; END';
    CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM f(new.id + 2000); RETURN new; END';
    CREATE TABLE d (id int); CREATE TRIGGER d BEFORE INSERT ON d FOR EACH ROW EXECUTE FUNCTION g();
    CREATE TABLE r (id int, o text DEFAULT current_user); ALTER TABLE r ENABLE ROW LEVEL SECURITY;
    CREATE POLICY r ON r USING (o = current_user) WITH CHECK (id > 0); CREATE ROLE joe; GRANT ALL ON r TO joe
"""
KEPT = {
    "INSERT INTO p VALUES ({n}, 1, 's'), ({n} + 100, 2, 't')": "",
    "INSERT INTO p (id) VALUES ({n} + 1000) RETURNING *": "",
    "INSERT INTO p VALUES ({n}, 1) ON CONFLICT (id) DO UPDATE SET a = p.a + 1": "",
    "INSERT INTO p SELECT i, i FROM generate_series({n} + 200, {n} + 201) i": "",
    "INSERT INTO p VALUES ({n} + 9000)": "Partition key of the failing row contains (id) = (#).",
    "INSERT INTO p VALUES ({n} + 800)": "Partition key of the failing row contains (id) = (#).",
    "INSERT INTO p0 VALUES ({n} + 1000)": "Failing row contains (#, null, null).",
    "UPDATE p SET id = id + 3000 WHERE id = {n}": "",
    "DELETE FROM p WHERE a = {n}": "",
    "INSERT INTO h VALUES ('A', {n})": "",
    "INSERT INTO h VALUES ('z', {n})": "Partition key of the failing row contains (lower(k)) = (z).",
    "MERGE INTO p USING (VALUES ({n} + 300)) s(i) ON p.id = s.i WHEN NOT MATCHED THEN INSERT VALUES (i)": "",
    "INSERT INTO t VALUES ({n}, 't', 1)": "",
    "INSERT INTO t VALUES ({n} + 100, 't', -1)": "Failing row contains (#, t, #, #).",
    "UPDATE t SET n = -1 WHERE id = {n} + 1": "Failing row contains (#, t, #, #).",
    "INSERT INTO t VALUES (NULL, 't', {n})": "Failing row contains (null, t, #, #).",
    "INSERT INTO v VALUES ({n} + 200, 't', {n} + 1000)": "Failing row contains (#, t, #, #).",
    "INSERT INTO c (t) VALUES ({n} + 3)": "",
    "UPDATE t SET id = id + 4000 WHERE id = {n} + 4": "",
    "SELECT f({n} + 400)": "",
    "INSERT INTO d VALUES ({n} + 3)": "",
    "SET ROLE joe; INSERT INTO r VALUES ({n}); SELECT * FROM r WHERE id = {n}; RESET ROLE": "",
    "WITH x AS (INSERT INTO p VALUES ({n} + 430) RETURNING id) INSERT INTO c SELECT id, NULL FROM x": "",
    "SELECT 't'::regclass, count(*) FROM p JOIN t USING (id) WHERE id > {n}": "",
}


def test_what_is_kept_of_a_statement_serves_sessions_that_come_after_its_own() -> None:
    """Plans outlive the session that made them: they keep nothing of it, and the next one meets the same answers and errors."""

    async def main() -> None:
        database = await open_database(MemoryDisk())
        root = Session(database, 1)
        await root.run(KEPT_FOR + "; INSERT INTO t SELECT i, 't', 1 FROM generate_series(40, 90) i")
        await root.run("DELETE FROM t WHERE id % 5 = 0")
        pid = 1
        for text, detail in KEPT.items():
            for number in (40, 45, 50, 55):
                pid += 1
                session = Session(database, pid)
                told = None
                try:
                    await session.run(text.format(n=number))
                except Failed as failed:
                    told = failed.report.detail or failed.report.message
                assert re.sub(r"-?\d+", "#", told or "") == detail, (text, number)
                ending = session.connection.close()
                if ending is not None:
                    await ending
        del session
        gc.collect()
        alive = [one for one in gc.get_objects() if isinstance(one, Ended) and one.db is database]
        assert alive == [root.connection.session]
        await database.close()

    run(main)
