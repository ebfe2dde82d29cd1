"""A statement, also one that fails, leaves nothing to the collector: errors have frames, and frames have the texts and values of the statement.

A cycle of those waits until the process has grown (``engine.loop.collector``), and is never found where it has grown by much: some errors of ten
megabytes a second would fill it. So whoever hands on an error keeps none (``engine.loop.strands.Failed``).
"""

from __future__ import annotations

import asyncio
import gc
import types
from typing import Any, cast

import pytest

from bench.wire_loop import CountingTransport
from pgwire import messages as m
from pgwire.encode import encode_frontend
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
