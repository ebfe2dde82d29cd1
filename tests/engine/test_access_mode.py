"""READ ONLY and READ WRITE (manual, SET TRANSACTION): switching modes neither shares locks nor leaves them behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from tests.support.server import ServerProcess

Connections = tuple[asyncpg.Connection, asyncpg.Connection]
LOCKS = "SELECT count(*) FROM pg_locks WHERE relation IN ('modes'::regclass, 'others'::regclass)"


def two(server: ServerProcess, work: Callable[[Connections], Awaitable[None]]) -> None:
    async def main() -> None:
        connections = await asyncpg.connect(server.url), await asyncpg.connect(server.url)
        await connections[0].execute(
            "DROP TABLE IF EXISTS modes, others;"
            "CREATE TABLE modes (id int PRIMARY KEY, v int); CREATE TABLE others (id int PRIMARY KEY);"
            "INSERT INTO modes VALUES (1, 0)"
        )
        try:
            await asyncio.wait_for(work(connections), 20)
        finally:
            for connection in connections:
                await connection.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "start",
    [
        "SELECT v FROM modes; BEGIN READ WRITE",
        "SELECT v FROM modes; SET default_transaction_read_only = off; BEGIN",
    ],
)
def test_a_transaction_that_began_as_read_only_stays_so(server: ServerProcess, start: str) -> None:
    """It owns no locks of its own: two of them would both update the row, and one update would be lost."""

    async def work(connections: Connections) -> None:
        for connection in connections:
            await connection.execute("SET default_transaction_read_only = on")
            with pytest.raises(asyncpg.PostgresError) as error:
                await connection.execute(f"{start}; UPDATE modes SET v = v + 1 WHERE id = 1")
            assert error.value.sqlstate == ("25001" if start.endswith("WRITE") else "25006")
            await connection.execute("ROLLBACK")
        assert await connections[0].fetchval(LOCKS) == 0
        assert await connections[0].fetchval("SELECT v FROM modes") == 0

    two(server, work)


def test_a_block_that_gives_up_writing_gives_up_its_locks(server: ServerProcess) -> None:
    """What it had read was locked for a write that then failed; to read only from then on does not keep those locks."""

    async def work(connections: Connections) -> None:
        one, other = connections
        await other.execute("BEGIN; UPDATE modes SET v = 10 WHERE id = 1")
        await one.execute("BEGIN")
        assert await one.fetchval("SELECT v FROM modes WHERE id = 1") == 0
        await one.execute("SAVEPOINT s; SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await one.execute("INSERT INTO others VALUES (5)")
        await one.execute("ROLLBACK TO s; SET TRANSACTION READ ONLY; COMMIT")
        await other.execute("ROLLBACK")
        assert await one.fetchval(LOCKS) == 0

    two(server, work)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_read_only_after_a_write(server: ServerProcess, end: str) -> None:
    async def work(connections: Connections) -> None:
        one, other = connections
        await one.execute("BEGIN; INSERT INTO others VALUES (1); SET TRANSACTION READ ONLY")
        assert await one.fetchval("SELECT count(*) FROM others") == 1
        await one.execute("SAVEPOINT s")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await one.execute("INSERT INTO others VALUES (2)")
        await one.execute(f"ROLLBACK TO s; {end}")
        assert await other.fetchval(LOCKS) == 0
        assert await other.fetchval("SELECT count(*) FROM others") == (end == "COMMIT")
        await one.execute("INSERT INTO others VALUES (3); BEGIN READ ONLY; SELECT 1; COMMIT")
        assert await other.fetchval(LOCKS) == 0
        assert await other.fetchval("SELECT count(*) FROM others WHERE id = 3") == 1

    two(server, work)


def test_on_commit_works_after_read_only(server: ServerProcess) -> None:
    async def work(connections: Connections) -> None:
        one, _other = connections
        await one.execute("CREATE TEMP TABLE emptied (i int) ON COMMIT DELETE ROWS")
        await one.execute("BEGIN; INSERT INTO emptied VALUES (1); SET TRANSACTION READ ONLY; COMMIT")
        assert await one.fetchval("SELECT count(*) FROM emptied") == 0

    two(server, work)
