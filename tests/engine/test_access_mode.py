"""READ ONLY and READ WRITE (manual, SET TRANSACTION): switching modes neither shares locks nor leaves them behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import psycopg
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


TEMPORARY_READ_ONLY = (
    ("insert into own values (1, 'x'), (2, 'y')", "INSERT 0 2"),
    ("update own set b = 'z' where a = 1", "UPDATE 1"),
    ("select b from own where a = 1 for update", "SELECT 1"),
    ("insert into own values (1, 'q') on conflict (a) do update set b = excluded.b", "INSERT 0 1"),
    ("merge into own using (values (3)) v(a) on own.a = v.a when not matched then insert values (v.a, 'm')", "MERGE 1"),
    ("with i as (insert into own values (4, 'w') returning a) select * from i", "SELECT 1"),
    ("do $$ begin insert into own values (5, 'd'); end $$", "DO"),
    ("insert into own_view values (6, 'v')", "INSERT 0 1"),
    ("insert into own select a + 10, b from shared", "INSERT 0 1"),
    ("insert into parted values (1)", "INSERT 0 1"),
    ("update parted set a = 12", "UPDATE 1"),
    ("delete from own where a = 5", "DELETE 1"),
    ("insert into emptied select generate_series(1, 30000)", "INSERT 0 30000"),
    ("insert into shared values (7, 'no')", "25006"),
    ("update shared set b = b", "25006"),
    ("insert into shared_view values (7, 'no')", "25006"),
    ("do $$ begin insert into shared values (7, 'no'); end $$", "25006"),
    ("with d as (delete from own returning *) insert into shared select * from d", "25006"),
    ("truncate own", "25006"),
    ("create temp table another (a int)", "25006"),
    ("drop table own", "25006"),
    ("set transaction read write", "25001"),
)  # fmt: skip


def test_temporary_tables_are_changed_in_read_only_transactions(server: ServerProcess) -> None:
    with psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", autocommit=True
    ) as client:
        client.execute("CREATE TABLE shared (a int PRIMARY KEY, b text); INSERT INTO shared VALUES (1, 's')")
        client.execute("CREATE TEMP TABLE own (a int PRIMARY KEY, b text)")
        client.execute("CREATE TEMP VIEW own_view AS SELECT * FROM own")
        client.execute("CREATE TEMP VIEW shared_view AS SELECT * FROM shared")
        client.execute("CREATE TEMP TABLE parted (a int) PARTITION BY RANGE (a)")
        client.execute("CREATE TEMP TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10)")
        client.execute("CREATE TEMP TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (20)")
        client.execute("CREATE TEMP TABLE emptied (a int) ON COMMIT DELETE ROWS")
        try:
            client.execute("BEGIN READ ONLY")
            assert client.execute("SELECT count(*) FROM shared").fetchone() == (1,)
            for statement, expected in TEMPORARY_READ_ONLY:
                client.execute("SAVEPOINT before")
                try:
                    found = client.execute(statement).statusmessage
                except psycopg.Error as error:
                    found = error.sqlstate
                    client.execute("ROLLBACK TO before")
                assert found == expected, statement
            client.execute("COMMIT")
            rows = client.execute("SELECT a, b FROM own ORDER BY a").fetchall()
            assert rows == [(1, "q"), (2, "y"), (3, "m"), (4, "w"), (6, "v"), (11, "s")]
            assert client.execute("SELECT * FROM emptied").fetchall() == []
            client.execute("SET default_transaction_read_only = on; INSERT INTO own VALUES (20, 'd')")
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                client.execute("INSERT INTO shared VALUES (20, 'd')")
        finally:
            client.execute("SET default_transaction_read_only = off; DROP TABLE shared CASCADE")


def test_what_a_read_only_block_has_read_is_current_when_it_writes(server: ServerProcess) -> None:
    where = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with psycopg.connect(where, autocommit=True) as client, psycopg.connect(where, autocommit=True) as other:
        client.execute("CREATE TABLE seen (a int PRIMARY KEY, b int); INSERT INTO seen VALUES (1, 1)")
        client.execute("CREATE TEMP TABLE own (a int)")
        try:
            client.execute("BEGIN READ ONLY")
            assert client.execute("SELECT b FROM seen WHERE a = 1").fetchone() == (1,)
            other.execute("UPDATE seen SET b = 2 WHERE a = 1")
            assert client.execute("SELECT b FROM seen WHERE a = 1").fetchone() == (1,)
            with pytest.raises(psycopg.errors.SerializationFailure):
                client.execute("INSERT INTO own SELECT b FROM seen")
            client.execute("ROLLBACK")
        finally:
            client.execute("ROLLBACK; DROP TABLE seen")
