"""Who waits for whom, in pg_locks, pg_blocking_pids and pg_stat_activity: five scenes, compared with PostgreSQL 15 by hand.

Only what is waited for has another name: PostgreSQL waits for the other transaction's end (transactionid, ShareLock) where
here the row or the key is locked. And a third waiter names the holder and the waiter before it, PostgreSQL that waiter alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from tests.support.server import ServerProcess

UPDATE = "UPDATE t SET v = v + 1 WHERE id = 1"
ROW, KEY, TABLE = ("tuple", "ExclusiveLock"), ("object", "ExclusiveLock"), "relation"
SCENES = {
    "row": ([UPDATE, UPDATE, UPDATE], [("A", *ROW), ("AB", *ROW)]),
    "duplicate key": (["INSERT INTO t VALUES (9, 0)", "INSERT INTO t VALUES (9, 1)"], [("A", *KEY)]),
    "LOCK TABLE": (
        [f"LOCK TABLE t IN {mode} MODE" for mode in ("EXCLUSIVE", "ROW EXCLUSIVE", "SHARE")],
        [("A", TABLE, "RowExclusiveLock"), ("AB", TABLE, "ShareLock")],
    ),
    "FOR SHARE": (
        [f"SELECT * FROM t WHERE id = 1 FOR {mode}" for mode in ("SHARE", "UPDATE", "SHARE")],
        [("A", *KEY), ("B", "object", "ShareLock")],  # PostgreSQL lets the third one pass the second
    ),
    "DDL": (
        [UPDATE, "ALTER TABLE t ADD COLUMN x int", "UPDATE t SET v = 5 WHERE id = 2"],
        [("A", TABLE, "AccessExclusiveLock"), ("B", TABLE, "RowExclusiveLock")],
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("waits"))
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize("scene", SCENES)
def test_waits_are_shown(server: ServerProcess, scene: str) -> None:
    statements, expected = SCENES[scene]

    async def main() -> None:
        observer = await asyncpg.connect(server.url)
        await observer.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, v int)")
        await observer.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
        clients = [await asyncpg.connect(server.url) for _ in statements]
        names = {c.get_server_pid(): "ABC"[i] for i, c in enumerate(clients)}
        for client in clients:
            await client.execute("BEGIN")
        await clients[0].execute(statements[0])
        waiting = []
        for client, sql, (holders, locktype, mode) in zip(clients[1:], statements[1:], expected, strict=True):
            pid = client.get_server_pid()
            waiting.append(asyncio.ensure_future(client.execute(sql)))
            while not await observer.fetchval("SELECT pg_blocking_pids($1)", pid):
                await asyncio.sleep(0.01)
            blocking = await observer.fetchval("SELECT pg_blocking_pids($1)", pid)
            assert "".join(sorted(names[p] for p in blocking)) == holders
            [lock] = await observer.fetch(
                "SELECT locktype, relation::regclass::text, mode, waitstart <= clock_timestamp() AS since"
                " FROM pg_locks WHERE pid = $1 AND NOT granted",
                pid,
            )
            assert tuple(lock) == (locktype, "t", mode, True)
            event = await observer.fetchrow(
                "SELECT wait_event_type, wait_event, state FROM pg_stat_activity WHERE pid = $1", pid
            )
            assert tuple(event) == ("Lock", locktype, "active")
        await clients[0].execute("ROLLBACK")
        for client, statement in zip(clients[1:], waiting, strict=True):
            await statement
            assert await observer.fetchval("SELECT pg_blocking_pids($1)", client.get_server_pid()) == []
            await client.execute("ROLLBACK")
        assert await observer.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0
        for client in (*clients, observer):
            await client.close()

    asyncio.run(asyncio.wait_for(main(), 60))
