"""Autocommit statements that scan what they change, many at once: no lost update, no phantom, no error (U4, N8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from tests.support.server import ServerProcess

CLIENTS = 6
ROUNDS = 8


def together(
    server: ServerProcess, setup: str, work: Callable[[asyncpg.Connection, int], Awaitable[None]]
) -> None:
    """Run ``work`` ROUNDS times on each of CLIENTS connections."""

    async def client(number: int) -> None:
        connection = await asyncpg.connect(server.url)
        try:
            for _ in range(ROUNDS):
                await work(connection, number)
        finally:
            await connection.close()

    async def main() -> None:
        first = await asyncpg.connect(server.url)
        await first.execute(setup)
        await first.close()
        await asyncio.gather(*(client(n) for n in range(CLIENTS)))

    asyncio.run(main())


@pytest.mark.parametrize("prepared", [False, True], ids=["simple", "extended"])
def test_counters_without_a_key_lose_no_update(server: ServerProcess, prepared: bool) -> None:
    table = f"race_counter_{prepared}".lower()

    async def add(connection: asyncpg.Connection, _number: int) -> None:
        if prepared:
            await connection.fetch(f"UPDATE {table} SET n = n + $1 RETURNING n", 1)
        else:
            await connection.execute(f"UPDATE {table} SET n = n + 1")

    together(server, f"CREATE TABLE {table} (n int); INSERT INTO {table} VALUES (0)", add)
    assert server.sql(f"SELECT n FROM {table}") == [(str(CLIENTS * ROUNDS),)]


@pytest.mark.parametrize("prepared", [False, True], ids=["simple", "extended"])
def test_the_next_number_of_a_table_is_given_once(server: ServerProcess, prepared: bool) -> None:
    """Nothing but the scan protects it: the rows inserted do not meet."""
    table = f"race_numbers_{prepared}".lower()

    async def number(connection: asyncpg.Connection, who: int) -> None:
        text = f"INSERT INTO {table} SELECT count(*), {{}} FROM {table}"
        if prepared:
            await connection.fetch(text.format("$1::int"), who)
        else:
            await connection.execute(text.format(who))

    together(server, f"CREATE TABLE {table} (n bigint, who int)", number)
    rows = server.sql(f"SELECT n FROM {table} ORDER BY n")
    assert [int(n or -1) for (n,) in rows] == list(range(CLIENTS * ROUNDS))


def test_a_scan_keeps_nobody_away_and_misses_nothing(server: ServerProcess) -> None:
    """An UPDATE that waits for one row has not locked the table; what joins its rows meanwhile is updated, too."""

    async def main() -> None:
        a, b, c = [await asyncpg.connect(server.url) for _ in range(3)]
        await a.execute("CREATE TABLE race_kinds (id int PRIMARY KEY, kind text, v int)")
        await a.execute("INSERT INTO race_kinds VALUES (1, 'a', 0), (2, 'b', 0), (3, 'a', 0)")
        await a.execute("BEGIN")
        await a.execute("UPDATE race_kinds SET v = 10 WHERE id = 1")
        update = asyncio.ensure_future(b.execute("UPDATE race_kinds SET v = v + 1 WHERE kind = 'a'"))
        blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'race_kinds'::regclass"
        while not await c.fetchval(blocked):
            await asyncio.sleep(0.01)
        await asyncio.wait_for(c.execute("UPDATE race_kinds SET v = 100 WHERE id = 2"), 20)
        await asyncio.wait_for(c.execute("INSERT INTO race_kinds VALUES (4, 'a', 0)"), 20)
        assert not update.done()
        await a.execute("COMMIT")
        assert await update == "UPDATE 3"
        rows = await c.fetch("SELECT id, v FROM race_kinds ORDER BY id")
        assert [tuple(row) for row in rows] == [(1, 11), (2, 100), (3, 1), (4, 1)]
        for connection in (a, b, c):
            await connection.close()

    asyncio.run(main())
