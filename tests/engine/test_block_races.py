"""UPDATE, DELETE and INSERT … SELECT by scan within blocks: who waits, who runs again, who is refused (U4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import asyncpg
import pytest

from engine.session.transaction.races import MAX_LOST_BLOCKS, PATIENT_BLOCKS
from tests.support.server import ServerProcess

Connections = tuple[asyncpg.Connection, asyncpg.Connection, asyncpg.Connection]
WAIT_S = 20
BLOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'groups'::regclass"


@pytest.fixture(scope="module", params=["auto", "local"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("block_races"))
    running.sql("CREATE TABLE groups (id int PRIMARY KEY, kind text, v int)")
    running.sql("CREATE TABLE kinds (kind text, good bool)")
    running.sql("CREATE TABLE notes (n bigint)")
    running.executor = request.param  # type: ignore[attr-defined]
    yield running
    assert running.stop() == 0


def three(server: ServerProcess, work: Callable[[Connections], Awaitable[None]]) -> None:
    """Run ``work`` with three connections over groups a and b of two rows each; nothing may take long."""

    async def main() -> None:
        connections = [await asyncpg.connect(server.url) for _ in range(3)]
        first = connections[0]
        await first.execute("TRUNCATE groups, kinds, notes")
        await first.execute(
            "INSERT INTO groups VALUES (1, 'a', 0), (2, 'b', 0), (3, 'a', 0), (4, 'b', 0);"
            "INSERT INTO kinds VALUES ('a', true), ('b', false)"
        )
        for connection in connections:
            await connection.execute(f"SET executor = {server.executor}")  # type: ignore[attr-defined]
        try:
            await asyncio.wait_for(work((connections[0], connections[1], connections[2])), WAIT_S)
        finally:
            for connection in connections:
                await connection.close()

    asyncio.run(main())


async def blocked(observer: asyncpg.Connection) -> None:
    while not await observer.fetchval(BLOCKED):
        await asyncio.sleep(0.01)


async def values(connection: asyncpg.Connection) -> dict[int, int]:
    return {row["id"]: row["v"] for row in await connection.fetch("SELECT id, v FROM groups")}


@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ("UPDATE groups SET v = v + 1 WHERE kind = 'a'", "UPDATE groups SET v = v + 1 WHERE kind = 'b'"),
        ("DELETE FROM groups WHERE kind = 'a' AND v < 5", "DELETE FROM groups WHERE kind = 'b' AND v < 5"),
        (
            "UPDATE groups g SET v = 1 FROM kinds k WHERE g.kind = k.kind AND k.good AND g.kind = 'a'",
            "UPDATE groups g SET v = 1 FROM kinds k WHERE g.kind = k.kind AND NOT k.good AND g.kind = 'b'",
        ),
        (
            "INSERT INTO groups SELECT id + 10, 'c', v FROM groups WHERE kind = 'a'",
            "INSERT INTO groups SELECT id + 20, 'c', v FROM groups WHERE kind = 'b'",
        ),
    ],
    ids=["update", "delete", "join", "insert"],
)
def test_blocks_that_want_different_rows_do_not_meet(server: ServerProcess, mine: str, others: str) -> None:
    async def work(connections: Connections) -> None:
        a, b, _ = connections
        for connection, key, text in ((a, 100, mine), (b, 200, others)):
            await connection.execute("BEGIN")
            await connection.execute(f"INSERT INTO groups VALUES ({key}, 'other', 0)")
            await connection.execute(text)
        await a.execute("COMMIT")
        await b.execute("COMMIT")

    three(server, work)


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_statement_that_waited_for_a_row_sees_what_became_of_it(server: ServerProcess, first: bool) -> None:
    """It has been overtaken, and runs again: with its transaction, or within it, without losing what came before."""

    async def work(connections: Connections) -> None:
        a, b, c = connections
        await a.execute("BEGIN")
        await a.execute("UPDATE groups SET v = 10 WHERE id = 1")
        await b.execute("BEGIN")
        if not first:
            await b.execute("UPDATE groups SET v = 7 WHERE id = 2")
        update = asyncio.ensure_future(b.execute("UPDATE groups SET v = v + 1 WHERE kind = 'a'"))
        await blocked(c)
        await c.execute("INSERT INTO groups VALUES (5, 'a', 0)")
        await a.execute("COMMIT")
        assert await update == "UPDATE 3"
        await b.execute("COMMIT")
        assert await values(c) == {1: 11, 2: 0 if first else 7, 3: 1, 4: 0, 5: 1}

    three(server, work)


def test_what_a_statement_has_answered_is_not_changed_behind_its_back(server: ServerProcess) -> None:
    async def work(connections: Connections) -> None:
        a, b, _ = connections
        await a.execute("BEGIN")
        await a.execute("INSERT INTO notes VALUES (1)")
        assert await a.execute("UPDATE groups SET v = v + 1 WHERE kind = 'a'") == "UPDATE 2"
        await b.execute("INSERT INTO groups VALUES (6, 'b', 0)")  # is nothing to it
        await a.execute("INSERT INTO notes VALUES (2)")
        await b.execute("INSERT INTO groups VALUES (5, 'a', 0)")
        with pytest.raises(asyncpg.SerializationError, match=r"groups"):
            await a.execute("COMMIT")
        assert await values(b) == {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}

    three(server, work)


def test_an_earlier_scan_is_not_forgiven_because_a_later_statement_could_run_again(
    server: ServerProcess,
) -> None:
    async def work(connections: Connections) -> None:
        a, b, c = connections
        await a.execute("BEGIN")
        await a.execute("UPDATE groups SET v = 10 WHERE id = 2")
        await b.execute("BEGIN")
        await b.execute("INSERT INTO notes SELECT count(*) FROM groups WHERE kind = 'a'")
        update = asyncio.ensure_future(b.execute("UPDATE groups SET v = v + 1 WHERE kind = 'b'"))
        await blocked(c)
        await c.execute("INSERT INTO groups VALUES (5, 'a', 0)")
        await a.execute("COMMIT")
        with pytest.raises(asyncpg.SerializationError):
            await update

    three(server, work)


def test_who_has_lost_too_often_locks_the_table(server: ServerProcess) -> None:
    async def work(connections: Connections) -> None:
        a, b, c = connections
        for lost in range(MAX_LOST_BLOCKS):
            await a.execute("BEGIN")
            await a.execute("UPDATE groups SET v = v + 1 WHERE kind = 'a'")
            await b.execute(f"INSERT INTO groups VALUES ({10 + lost}, 'a', 0)")
            with pytest.raises(asyncpg.SerializationError):
                await a.execute("COMMIT")
        await a.execute("BEGIN")
        await a.execute("UPDATE groups SET v = v + 1 WHERE kind = 'a'")
        insert = asyncio.ensure_future(b.execute("INSERT INTO groups VALUES (20, 'a', 0)"))
        await blocked(c)
        await a.execute("COMMIT")
        await insert
        for _ in range(PATIENT_BLOCKS - 1):
            await a.execute("BEGIN; UPDATE groups SET v = v + 1 WHERE kind = 'a'; COMMIT")
        await a.execute("BEGIN")  # it got through often enough: no need to lock any more
        await a.execute("UPDATE groups SET v = v + 1 WHERE kind = 'a'")
        await b.execute("INSERT INTO groups VALUES (21, 'b', 0)")
        await a.execute("COMMIT")

    three(server, work)


@pytest.mark.parametrize(
    "text",
    ["UPDATE groups SET v = v + 1", "INSERT INTO notes SELECT sum(v) FROM groups"],
    ids=["update", "insert"],
)
def test_in_a_block_a_table_of_which_every_row_matters_is_locked(server: ServerProcess, text: str) -> None:
    async def work(connections: Connections) -> None:
        a, b, c = connections
        await a.execute("BEGIN")
        await a.execute(text)
        insert = asyncio.ensure_future(b.execute("INSERT INTO groups VALUES (5, 'a', 0)"))
        await blocked(c)
        await a.execute("COMMIT")
        await insert

    three(server, work)


def test_the_row_that_an_outer_join_misses_matters(server: ServerProcess) -> None:
    """WHERE keeps only groups without a kind, yet a kind that comes changes the answer."""

    async def work(connections: Connections) -> None:
        a, b, _ = connections
        await b.execute("DELETE FROM kinds WHERE kind = 'b'")
        await a.execute("BEGIN")
        await a.execute("INSERT INTO notes VALUES (1)")
        count = await a.fetchval(
            "SELECT count(*) FROM groups g LEFT JOIN kinds k ON k.kind = g.kind AND k.good IS NOT NULL"
            " WHERE k.good IS NULL AND g.v = 0"
        )
        assert count == 2
        await b.execute("INSERT INTO kinds VALUES ('c', NULL)")  # no part in the join
        await a.execute("INSERT INTO notes VALUES (2)")
        await b.execute("INSERT INTO kinds VALUES ('b', true)")
        with pytest.raises(asyncpg.SerializationError):
            await a.execute("COMMIT")

    three(server, work)


@pytest.mark.parametrize("read_first", [True, False], ids=["read first", "written first"])
def test_a_select_of_a_block_that_has_lost_often_locks(server: ServerProcess, read_first: bool) -> None:
    """Somebody changes what it has read, each time: it would lose for ever. In the end the other one has to wait."""
    change = "UPDATE groups SET v = v + 1 WHERE id = 1"
    steps = ["SELECT count(*), sum(v) FROM groups", "INSERT INTO notes VALUES (1)"]
    before, after = ([steps[0]], [steps[1]]) if read_first else ([steps[1], steps[0]], [])

    async def finish(connection: asyncpg.Connection) -> None:
        for step in [*after, "COMMIT"]:
            await connection.execute(step)

    async def work(connections: Connections) -> None:
        a, b, c = connections
        for _ in range(MAX_LOST_BLOCKS):
            await a.execute("BEGIN")
            for step in before:
                await a.execute(step)
            await b.execute(change)
            with pytest.raises(asyncpg.SerializationError):
                await finish(a)
            await a.execute("ROLLBACK")
        await a.execute("BEGIN")
        for step in before:
            await a.execute(step)
        waiting = asyncio.ensure_future(b.execute(change))
        await blocked(c)
        await finish(a)
        await waiting
        # Once it has got through often enough, it keeps nobody away any more.
        for _ in range(PATIENT_BLOCKS - 1):
            await a.execute("BEGIN")
            for step in before:
                await a.execute(step)
            await finish(a)
        await a.execute("BEGIN")
        for step in before:
            await a.execute(step)
        await b.execute(change)
        await a.execute("ROLLBACK")

    three(server, work)


def test_what_comes_behind_the_first_rows_of_a_queue_does_not_matter(server: ServerProcess) -> None:
    """Celery's broker: one takes the first message, others put more behind it. One that comes before it, or equal, matters."""
    take = "SELECT id FROM groups WHERE kind = 'a' AND v = 0 ORDER BY v, id DESC LIMIT 1 FOR UPDATE"

    async def work(connections: Connections) -> None:
        a, b, _ = connections
        await a.execute("SET executor = auto")  # DuckDB locks no rows
        for other, matters in (
            ("2, 'a', 0", False),
            ("0, 'a', 0", False),
            ("4, 'a', 1", False),
            ("9, 'a', 0", True),
        ):
            await b.execute("DELETE FROM groups WHERE id NOT IN (1, 3)")
            await a.execute("BEGIN")
            assert await a.fetchval(take) == 3
            await b.execute(f"INSERT INTO groups VALUES ({other})")
            if matters:
                with pytest.raises(asyncpg.SerializationError):
                    await a.execute("COMMIT")
            else:
                await a.execute("UPDATE groups SET v = 0 WHERE id = 3")
                await a.execute("COMMIT")
        await b.execute("DELETE FROM groups")
        await a.execute("BEGIN")
        assert await a.fetchval(take) is None  # fewer than wanted: all rows matter
        await b.execute("INSERT INTO groups VALUES (1, 'a', 0)")
        with pytest.raises(asyncpg.SerializationError):
            await a.execute("COMMIT")

    three(server, work)


def test_two_that_take_the_highest_number_queue_once_they_have_lost(server: ServerProcess) -> None:
    """DuckLake's writers: max(id), then max(id) + 1. Both read, and neither may write before the other one gives up."""

    async def work(connections: Connections) -> None:
        a, b, c = connections
        highest = "SELECT max(id) FROM groups"
        for _ in range(MAX_LOST_BLOCKS):
            for connection in (a, b):
                await connection.execute("BEGIN")
                await connection.fetchval(highest)
            await c.execute("INSERT INTO groups SELECT max(id) + 1, 'c', 0 FROM groups")
            for connection in (a, b):
                with pytest.raises(asyncpg.SerializationError):
                    await connection.execute("INSERT INTO groups VALUES (0, 'd', 0)")
                await connection.execute("ROLLBACK")
        await a.execute("BEGIN")
        mine = await a.fetchval(highest)
        await b.execute("BEGIN")
        waiting = asyncio.ensure_future(b.fetchval(highest))
        await blocked(c)
        await a.execute(f"INSERT INTO groups VALUES ({mine + 1}, 'c', 0)")
        await a.execute("COMMIT")
        assert await waiting == mine + 1
        await b.execute(f"INSERT INTO groups VALUES ({mine + 2}, 'c', 0)")
        await b.execute("COMMIT")

    three(server, work)
