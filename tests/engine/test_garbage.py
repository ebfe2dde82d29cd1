"""A statement, also one that fails, leaves nothing to the collector: errors have frames, and frames have the texts and values of the statement.

A cycle of those waits until the process has grown (``engine.base.loop.collector``), and is never found where it has grown by much: some errors of ten
megabytes a second would fill it. So whoever hands on an error keeps none (``engine.base.loop.strands.Failed``).
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import types
from time import monotonic
from typing import Any, cast

import pytest

from bench.wire_loop import CountingTransport
from engine.base.loop import collector
from engine.statements.output import MAX_ENCODERS
from pgwire import messages as m
from pgwire import release
from pgwire.backend import FieldDescription
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from tests.support.engine import open_database
from txn.persist.memory import MemoryDisk

LONG = "x" * 100_000
STATEMENTS = {
    "bind": f"SELECT '{LONG}' + nothing",
    "syntax": f"SELECT '{LONG}' FROM FROM",
    "run": f"SELECT 1 / length(substr('{LONG}', 1, 0))",
    "cast": f"SELECT '{LONG}'::int",
    "rows": f"SELECT 1 / (g - 5000) FROM generate_series(1, 10000) g WHERE '{LONG}' > ''",
    "insert": f"INSERT INTO t VALUES (1, '{LONG}'), (1, 'again')",
    "check": f"INSERT INTO t VALUES (-1, '{LONG}')",
    "update": "UPDATE t SET id = NULL",
    "ddl": f"CREATE TABLE u (a int DEFAULT length('{LONG}') + nothing)",
    "copy": "COPY t FROM STDIN (nothing)",
    "do": f"DO $$ BEGIN PERFORM 1 / length(substr('{LONG}', 1, 0)); END $$",
    "caught": f"DO $$ BEGIN PERFORM '{LONG}'::int; EXCEPTION WHEN others THEN NULL; END $$",
    "raised": f"DO $$ BEGIN BEGIN RAISE '%', '{LONG}'; EXCEPTION WHEN others THEN RAISE; END; END $$",
    "function": "SELECT f(0)",
    "local": f"SET executor = local; SELECT 1 / (id - 1) FROM t WHERE '{LONG}' > ''",
    "several": f"BEGIN; SELECT '{LONG}' + nothing; COMMIT",
    "sub-select": f"SELECT id, (SELECT max(g) FROM generate_series(1, t.id) g WHERE '{LONG}' > '') FROM t",
    "second opinion": f"SELECT v::int FROM t WHERE id > 5 AND '{LONG}' > ''",
    "record": "DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r; r.a := 2; PERFORM r.b; END $$",
    "early record": "DO $$ DECLARE r record; BEGIN LOOP EXIT WHEN r.a; END LOOP; END $$",
    "absent": "DROP OPERATOR IF EXISTS nowhere.@@@ (int, nope), nowhere.@@@ (int, int)",
}


CASES = [(name, "simple") for name in STATEMENTS] + [
    (name, "extended")
    for name in STATEMENTS
    if name not in ("local", "several")  # these are several statements
]


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_a_statement_leaves_no_cycle_of_frames(name: str, protocol: str) -> None:
    found = asyncio.run(_left(STATEMENTS[name], protocol))
    assert [str(one)[:200] for one in found] == []


async def _left(sql: str, protocol: str) -> list[Any]:
    database = await open_database(MemoryDisk())
    session = Session(Server(database, ServerConfig()), cast("Any", CountingTransport()), "127.0.0.1")

    async def send(*messages: Any) -> None:
        session.data_received(b"".join(map(encode_frontend, messages)))
        while session.busy:
            await asyncio.sleep(0.001)

    async def run() -> None:
        if protocol == "simple":
            await send(m.Query(sql))
        else:
            await send(
                m.Parse("", sql, ()), m.Bind("", "", (), (), ()), m.Describe("P"), m.Execute(), m.Sync()
            )
        await send(m.Query("ROLLBACK; RESET executor"))

    await send(m.StartupMessage({"user": "postgres", "database": "postgres"}))
    await send(m.Query("CREATE TABLE t (id int PRIMARY KEY CHECK (id > 0), v text)"))
    await send(m.Query("INSERT INTO t VALUES (1, 'one')"))
    await send(m.Query("CREATE FUNCTION f(n int) RETURNS int LANGUAGE sql AS 'SELECT 1 / n'"))
    await run()  # modules are loaded, plans made
    gc.collect()
    gc.freeze()  # what is there by now is alive; walking it again would take most of the test's time
    gc.disable()
    try:
        await run()
        await asyncio.sleep(0.01)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return [one for one in gc.garbage if isinstance(one, types.FrameType | BaseException)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        await database.close()


KINDS = {
    "row": "SELECT v FROM t WHERE id = 5",
    "rows": "SELECT # + id FROM t WHERE id < # AND v <> '#' ORDER BY 1 LIMIT 3",
    "insert": "INSERT INTO t VALUES (#, 'x', 1) RETURNING id + #",
    "conflict": "INSERT INTO t VALUES (1, '#') ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    "update": "BEGIN; UPDATE t SET n = n + # WHERE id = 3 RETURNING n, (SELECT max(id) FROM t); ROLLBACK",
    "update from": "UPDATE t SET n = # FROM p WHERE p.a = t.id RETURNING p.a",
    "delete": "DELETE FROM t WHERE id = # + 1000",
    "merge": "MERGE INTO t USING p ON t.id = p.a WHEN MATCHED THEN UPDATE SET n = #",
    "aggregates": "SELECT count(*), max(n), string_agg(v, '#') FROM t GROUP BY id % 7 HAVING count(*) > #",
    "least index": "SELECT min(id), max(id) + # FROM t",
    "join": "SELECT * FROM t a JOIN t b USING (id) WHERE a.id < # % 50 ORDER BY 2 LIMIT 3",
    "correlated": "SELECT (SELECT max(id) + # FROM t b WHERE b.id < a.id) FROM t a WHERE id < 4",
    "window": "SELECT row_number() OVER (ORDER BY id), # FROM t LIMIT 2",
    "recursive": "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < # % 5) SELECT * FROM r",
    "recursive limit": "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i + # FROM r LIMIT 3",
    "recursive error": "WITH RECURSIVE r (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r) SELECT # / (3 - i) FROM r",
    "items": "WITH w AS MATERIALIZED (SELECT id + # AS i FROM t, generate_series(1, 9)) SELECT * FROM w a, w b WHERE a.i > 1 LIMIT 2",
    "items within": "SELECT id, (WITH w AS MATERIALIZED (SELECT t.id + g AS i FROM generate_series(1, 9) g) SELECT a.i + # FROM w a, w b LIMIT 1) "
        "FROM t WHERE id < 5",
    "union": "SELECT id FROM t UNION SELECT # EXCEPT SELECT 1 ORDER BY 1 LIMIT 1",
    "helpers": "SELECT greatest(id, #, 3), least(n, #), id::numeric = ANY (ARRAY[#, 2.5]) FROM t WHERE id < 3",
    "deep": "SELECT " + " + ".join(["id"] * 200) + " + # FROM t WHERE id < 3",
    "arrays": "SELECT ARRAY[[#, 1], [2, 3]], '{1.55,2}'::numeric(5,1)[], to_json(ARRAY[[1, #]])",
    "json": "SELECT jsonb_build_object('a', #) ->> 'a', '[1,2]'::jsonb @> '1'",
    "patterns": "SELECT 'abc#' ~ 'b[cd]#', 'a#' LIKE 'a%#'",
    "wide": "SELECT " + ", ".join(["v"] * 300) + ", # FROM t WHERE id < 3",
    "partitions": "INSERT INTO p VALUES (1); SELECT a + # FROM p WHERE a = 1",
    "catalog": "SELECT relname, # FROM pg_class WHERE relkind = 'r' LIMIT 2",
    "definitions": "CREATE TABLE d# (a int PRIMARY KEY, b text DEFAULT 'x'); ALTER TABLE d# ADD c int; CREATE INDEX ON d# (b); DROP TABLE d#",
    "domain": "CREATE DOMAIN o# AS int CHECK (VALUE > 0); SELECT '{1,2}'::o#[]; DROP DOMAIN o#",
    "temporary": "CREATE TEMP TABLE e# AS SELECT 1 AS a; DROP TABLE e#",
    "view": "CREATE VIEW w# AS SELECT * FROM t; SELECT count(*) FROM w#; DROP VIEW w#",
    "cursor": "BEGIN; DECLARE c CURSOR FOR SELECT *, # FROM t; FETCH 5 FROM c; CLOSE c; COMMIT",
    "prepared": "PREPARE a# AS SELECT $1::int; EXECUTE a#(1); DEALLOCATE a#",
    "setting": "SET work_mem = '4MB'; SHOW work_mem; RESET work_mem",
    "explain": "EXPLAIN SELECT * FROM t WHERE id = #",
    "block": "DO 'DECLARE r record;BEGIN FOR r IN SELECT id FROM t LIMIT 2 LOOP PERFORM r.id + #;END LOOP;END'",
    "function": "CREATE OR REPLACE FUNCTION g(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + #;END'; SELECT g(1)",
    "errors": "SELECT 1 / (# - #)",
    "savepoint": "BEGIN; SAVEPOINT s; UPDATE t SET n = # WHERE id = 2; ROLLBACK TO s; RELEASE s; COMMIT",
}  # fmt: skip


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_kinds_of_statements_leave_nothing_at_all(protocol: str) -> None:
    assert asyncio.run(_left_of_kinds(protocol)) == {}


async def _left_of_kinds(protocol: str) -> dict[str, list[str]]:
    """Return what is left in cycles by the statements of each kind; "#" in them is another number each time, "; " stands between them."""
    database = await open_database(MemoryDisk())
    session = Session(Server(database, ServerConfig()), cast("Any", CountingTransport()), "127.0.0.1")
    number = 5000

    async def send(*messages: Any) -> None:
        session.data_received(b"".join(map(encode_frontend, messages)))
        while session.busy:
            await asyncio.sleep(0)

    async def run(text: str) -> None:
        nonlocal number
        number += 1
        sql = text.replace("#", str(number))
        if protocol == "simple":
            await send(m.Query(sql))
            return
        for one in sql.split("; "):
            await send(
                m.Parse("", one, ()), m.Bind("", "", (), (), ()), m.Describe("P"), m.Execute(), m.Sync()
            )

    await send(m.StartupMessage({"user": "postgres", "database": "postgres"}))
    await send(m.Query("CREATE TABLE t (id int PRIMARY KEY, v text, n numeric)"))
    await send(m.Query("INSERT INTO t SELECT g, 'v' || g, g FROM generate_series(1, 100) g"))
    await send(m.Query("CREATE TABLE p (a int) PARTITION BY LIST (a)"))
    await send(m.Query("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)"))
    left: dict[str, list[str]] = {}
    for text in KINDS.values():  # modules are loaded
        await run(text)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for name, text in KINDS.items():
            for _ in range(3):  # the second time what may be a parameter is looked into
                await run(text)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            if gc.garbage:
                left[name] = [str(one)[:100] for one in gc.garbage[:20]]
            gc.set_debug(0)
            gc.garbage.clear()
        return left
    finally:
        gc.enable()
        await database.close()


BEGINNINGS: dict[str, dict[str, str]] = {
    "as most": {"application_name": "x", "client_encoding": "UTF8", "DateStyle": "ISO", "extra_float_digits": "2"},
    "options": {"options": "-c search_path=pg_catalog -c work_mem=8MB -c default_text_search_config=simple"},
    "other encoding": {"client_encoding": "LATIN1", "TimeZone": "Europe/Berlin"},
    "of a role": {"user": "ann"},
    "refused setting": {"work_mem": "none"},
    "refused database": {"database": "nowhere"},
}  # fmt: skip
ENDS: dict[str, tuple[str, ...]] = {
    "idle": ("SELECT 1",),
    "in a transaction": ("BEGIN; INSERT INTO t VALUES (5, 'five')", "SELECT count(*) FROM t"),
    "failed": ("BEGIN; SELECT 1 / 0", "ROLLBACK TO nothing"),
    "with a cursor": ("BEGIN", "DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 10000)", "FETCH 5 FROM c"),
    "with what it keeps": ("PREPARE p AS SELECT $1::int", "EXECUTE p(1)", "CREATE TEMP TABLE e (i int)", "LISTEN a", "SET my.own = 'x'"),
    "a block": ("DO 'DECLARE r record; BEGIN FOR r IN SELECT id FROM t LOOP PERFORM r.id; END LOOP; END'",),
    "at work": ("SELECT count(*) FROM generate_series(1, 1000000000)",),
}  # fmt: skip


def test_sessions_that_end_leave_nothing_at_all() -> None:
    assert asyncio.run(_left_of_sessions()) == {}


async def _left_of_sessions() -> dict[str, list[str]]:
    database = await open_database(MemoryDisk())
    server = Server(database, ServerConfig())

    async def session(beginning: dict[str, str], texts: tuple[str, ...]) -> None:
        one = Session(server, cast("Any", CountingTransport()), "127.0.0.1")

        async def send(message: Any) -> None:
            one.data_received(encode_frontend(message))
            for _ in range(200):  # "at work" does not end by itself
                if not one.busy:
                    break
                await asyncio.sleep(0)

        await send(m.StartupMessage({"user": "postgres", "database": "postgres", **beginning}))
        for text in texts:
            await send(m.Query(text))
        one.connection_lost()
        while server.sessions or database.sessions:
            await asyncio.sleep(0)

    cases = [(name, beginning, ENDS["idle"]) for name, beginning in BEGINNINGS.items()]
    cases += [(name, BEGINNINGS["as most"], texts) for name, texts in ENDS.items()]
    left: dict[str, list[str]] = {}
    try:
        await session({}, ("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE ROLE ann LOGIN"))
        await session(
            {},
            ("ALTER ROLE ann SET default_text_search_config = simple", "ALTER ROLE ann SET work_mem = '8MB'"),
        )
        for _, beginning, texts in cases:  # modules are loaded, plans made
            await session(beginning, texts)
        gc.collect()
        gc.freeze()
        gc.disable()
        for name, beginning, texts in cases:
            await session(beginning, texts)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            if gc.garbage:
                left[name] = [str(one)[:100] for one in gc.garbage[:20]]
            gc.set_debug(0)
            gc.garbage.clear()
        return left
    finally:
        gc.enable()
        await database.close()


def test_columns_are_described_as_long_as_their_plan_is_kept() -> None:
    """Clients choose the format of each column; what is kept for that is bounded, and goes with the plan."""
    kept, left = asyncio.run(_described(width=200, ways=3 * MAX_ENCODERS))
    assert 0 < kept <= 200 * MAX_ENCODERS
    assert left == 0


async def _described(width: int, ways: int) -> tuple[int, int]:
    """Return how many columns are described by a plan that was used in some ways, and once it was forgotten."""
    database = await open_database(MemoryDisk())
    session = Session(Server(database, ServerConfig()), cast("Any", CountingTransport()), "127.0.0.1")

    async def send(*messages: Any) -> None:
        session.data_received(b"".join(map(encode_frontend, messages)))
        while session.busy:
            await asyncio.sleep(0)

    def described() -> int:
        return sum(type(one) is FieldDescription for one in gc.get_objects())

    try:
        await send(m.StartupMessage({"user": "postgres", "database": "postgres"}))
        before = described()
        sql = "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(width))
        for way in range(ways):
            formats = (0,) * way + (1,) * (width - way)
            bind = m.Bind("", "", (), (), formats)
            await send(m.Parse("", sql, ()), bind, m.Describe("P"), m.Execute(), m.Sync())
        kept = described() - before
        await send(m.Close("S"), m.Close("P"), m.Sync())
        await send(m.Query("SELECT 1"))
        database.plans.clear()
        while release.freeing():
            await asyncio.sleep(0)
        return kept, described() - before - 1  # the last statement's
    finally:
        await database.close()


def test_counting_what_is_new_does_not_disturb_other_threads() -> None:
    """Statements of a thousand characters and more are bound in a thread, where tuples are made of generators."""
    failed: list[SystemError] = []
    over = threading.Event()

    def make() -> None:
        while not over.is_set():
            try:
                tuple(i for i in range(40))
            except SystemError as error:
                failed.append(error)

    interval = sys.getswitchinterval()
    gc.disable()
    gc.freeze()
    thread = threading.Thread(target=make)
    try:
        sys.setswitchinterval(1e-6)
        thread.start()
        until = monotonic() + 1
        while monotonic() < until:
            collector._few()
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
        gc.unfreeze()
        gc.enable()
    assert failed == []
