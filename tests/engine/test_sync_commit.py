"""Commits that a Sync or a Query waits for without a task: refused, taken back, and left by their client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.server.database import Database
from pgwire import messages as m
from tests.support.sessions import Client, opened
from txn.base.errors import OutOfSpace


def insert(key: int) -> tuple[m.FrontendMessage, ...]:
    return m.Bind("", "put", (), (str(key).encode(),), ()), m.Execute(), m.Sync()


def served(folder: Path, use: Callable[[Database, Client, Client], Awaitable[None]]) -> None:
    """Run ``use`` with two clients, the first with the statement ``put`` prepared and run once."""

    async def main() -> None:
        async with opened(folder) as (database, server):
            one, two = Client(server), Client(server)
            await one.answers()
            await two.answers()
            await one.run(m.Query("CREATE TABLE t (k int PRIMARY KEY)"))
            await one.run(m.Parse("put", "INSERT INTO t VALUES ($1)", ()), *insert(0))
            await use(database, one, two)

    asyncio.run(main())


async def keys(client: Client) -> list[str]:
    said = await client.run(m.Query("SELECT k FROM t ORDER BY k"))
    return [event.values[0].decode() for event in said if isinstance(event, m.DataRow)]


def test_a_refused_commit_is_reported_before_ready_and_leaves_nothing(tmp_path: Path) -> None:
    async def use(database: Database, one: Client, two: Client) -> None:
        core = database.store.core
        log = core.log.committer._txns
        append = log.append

        async def full(payload: bytes) -> int:
            await asyncio.sleep(0)
            raise OutOfSpace("could not write the log: the device is full")

        log.append = full  # type: ignore[method-assign]
        said = await one.run(*insert(1))
        errors = [event.report.sqlstate for event in said if isinstance(event, m.ErrorResponse)]
        assert errors == ["53100"]
        assert said[-1] == m.ReadyForQuery("I")
        assert len(core.locks) == 0
        assert not core.committing
        log.append = append  # type: ignore[method-assign]
        assert await keys(two) == ["0"]
        said = await one.run(*insert(1))
        assert not [event for event in said if isinstance(event, m.ErrorResponse)]
        assert await keys(two) == ["0", "1"]

    served(tmp_path, use)


def test_a_commit_whose_client_has_gone_ends_by_itself(tmp_path: Path) -> None:
    async def use(database: Database, one: Client, two: Client) -> None:
        core = database.store.core
        log = core.log.committer._txns
        append = log.append
        go_on = asyncio.Event()

        async def slow(payload: bytes) -> int:
            await go_on.wait()
            return await append(payload)

        log.append = slow  # type: ignore[method-assign]
        one.send(*insert(1))
        while not core.committing:
            await asyncio.sleep(0)
        one.session.connection_lost()
        assert one.session.busy
        assert len(database.sessions) == 2
        assert await keys(two) == ["0"], "nothing is visible before it is durable"
        go_on.set()
        while one.session.busy:
            await asyncio.sleep(0.001)
        assert len(database.sessions) == 1
        assert len(core.locks) == 0
        assert not core.committing
        assert await keys(two) == ["0", "1"]

    served(tmp_path, use)


def test_what_follows_a_sync_waits_for_its_commit(tmp_path: Path) -> None:
    async def use(database: Database, one: Client, two: Client) -> None:
        one.send(*insert(1), *insert(1), *insert(2), m.Query("SELECT count(*) FROM t"))
        said = [event for _ in range(4) for event in await one.answers()]
        kinds = [type(event) for event in said if not isinstance(event, m.RowDescription | m.BindComplete)]
        assert kinds == [
            m.CommandComplete, m.ParameterStatus, m.ReadyForQuery, m.ErrorResponse, m.ReadyForQuery,
            m.CommandComplete, m.ParameterStatus, m.ReadyForQuery, m.DataRow, m.CommandComplete, m.ReadyForQuery,
        ]  # fmt: skip
        [row] = [event for event in said if isinstance(event, m.DataRow)]
        assert row.values == (b"3",)

    served(tmp_path, use)


async def stall(database: Database, first: Client, key: int) -> asyncio.Event:
    """Let the log's next write wait, with the insert of ``key`` in it; returns what lets it go on."""
    log = database.store.core.log.committer._txns
    append = log.append
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def slow(payload: bytes) -> int:
        begun.set()
        await go_on.wait()
        return await append(payload)

    log.append = slow  # type: ignore[method-assign]
    first.send(*insert(key))
    await begun.wait()
    return go_on


def errors_in(said: list[Any]) -> list[str]:
    return [event.report.sqlstate for event in said if isinstance(event, m.ErrorResponse)]


@pytest.mark.parametrize("how", ["timeout", "cancel", "cancel sync", "cancel block"])
def test_a_commit_in_the_queue_can_be_cancelled(tmp_path: Path, how: str) -> None:
    """The one whose log entry is being written cannot: it is decided there. The one behind it is taken back."""

    async def use(database: Database, one: Client, two: Client) -> None:
        core = database.store.core
        pid = two.session.pid
        if how == "timeout":
            await two.run(m.Query("SET statement_timeout = '200ms'"))
        if how == "cancel sync":
            await two.run(m.Parse("put", "INSERT INTO t VALUES ($1)", ()), m.Sync())
        if how == "cancel block":
            await two.run(m.Query("BEGIN"))
            await two.run(m.Query("INSERT INTO t VALUES (2)"))
        go_on = await stall(database, one, 1)
        if how == "cancel sync":
            two.send(*insert(2))
        else:
            two.send(m.Query("COMMIT" if how == "cancel block" else "INSERT INTO t VALUES (2)"))
        while len(core.committing) < 2:
            await asyncio.sleep(0)
        database.sessions[one.session.pid].cancel()
        if how != "timeout":
            database.sessions[pid].cancel()
        said = await two.answers()
        assert errors_in(said) == ["57014"]
        assert said[-1] == m.ReadyForQuery("I")
        assert len(core.committing) == 1
        go_on.set()
        assert errors_in(await one.answers()) == []
        assert await keys(two) == ["0", "1"]
        assert len(core.locks) == 0
        assert errors_in(await two.run(m.Query("INSERT INTO t VALUES (2)"))) == []
        assert await keys(two) == ["0", "1", "2"]

    served(tmp_path, use)


def test_a_large_commit_can_be_cancelled_before_it_is_queued(tmp_path: Path) -> None:
    async def use(database: Database, one: Client, two: Client) -> None:
        core = database.store.core
        spill = core.log.committer.spill
        assert spill is not None
        writing, go_on = asyncio.Event(), asyncio.Event()

        async def slow(pieces: list[bytes]) -> str:
            writing.set()
            await go_on.wait()
            return await spill(pieces)

        core.log.committer.spill = slow
        await two.run(m.Query("BEGIN"))
        for start in range(100_000, 200_000, 18_000):  # row by row: more at once would go to a part
            await two.run(
                m.Query(f"INSERT INTO t SELECT g FROM generate_series({start}, {start + 17_999}) g")
            )
        two.send(m.Query("COMMIT"))
        await writing.wait()
        database.sessions[two.session.pid].cancel()
        await asyncio.sleep(0)
        go_on.set()
        assert errors_in(await two.answers()) == ["57014"]
        assert await keys(one) == ["0"]
        assert len(core.locks) == 0

    served(tmp_path, use)


@pytest.mark.parametrize("block", [False, True])
def test_a_query_waits_for_its_commit_without_a_task(tmp_path: Path, block: bool) -> None:
    """Refused: the error comes before ReadyForQuery, nothing is left. Then committed; then cancelled while it is queued."""

    async def use(database: Database, one: Client, two: Client) -> None:
        core = database.store.core
        committer = core.log.committer
        log = committer._txns
        append = log.append

        async def write(key: int) -> str:
            """Send what commits a row, all but what asks for the commit; return that."""
            if not block:
                return f"INSERT INTO t VALUES ({key})"
            await one.run(m.Query("BEGIN"))
            await one.run(m.Query(f"INSERT INTO t VALUES ({key})"))
            return "COMMIT"

        for key in (11, 12, 13):  # the first two are parsed, and the second makes a template
            await one.run(m.Query(await write(key)))

        async def full(payload: bytes) -> int:
            await asyncio.sleep(0)
            raise OutOfSpace("could not write the log: the device is full")

        log.append = full  # type: ignore[method-assign]
        one.send(m.Query(await write(1)))
        assert not isinstance(await one.waits(), asyncio.Task)
        said = await one.answers()
        assert [type(event) for event in said] == [m.ErrorResponse, m.ReadyForQuery]
        assert said[0].report.sqlstate == "53100"
        assert said[-1] == m.ReadyForQuery("I")
        assert len(core.locks) == 0
        assert not core.committing

        log.append = append  # type: ignore[method-assign]
        said = await one.run(m.Query(await write(2)))
        tag = "COMMIT" if block else "INSERT 0 1"
        assert [e for e in said if not isinstance(e, m.ParameterStatus)] == [
            m.CommandComplete(tag),
            m.ReadyForQuery("I"),
        ]

        go_on = asyncio.Event()

        async def slow(payload: bytes) -> int:
            await go_on.wait()
            return await append(payload)

        log.append = slow  # type: ignore[method-assign]
        two.send(m.Query("INSERT INTO t VALUES (3)"))
        while not committer._under_way:
            await asyncio.sleep(0)
        one.send(m.Query(await write(4)))
        while len(core.committing) < 2:
            await asyncio.sleep(0)
        one.session.cancel()
        said = await one.answers()
        assert said[0].report.sqlstate == "57014"
        assert said[-1] == m.ReadyForQuery("I")
        go_on.set()
        await two.answers()
        assert await keys(two) == ["0", "2", "3", "11", "12", "13"]

    served(tmp_path, use)


def test_a_query_whose_client_leaves_during_its_commit_is_committed(tmp_path: Path) -> None:
    async def use(database: Database, one: Client, two: Client) -> None:
        core = database.store.core
        log = core.log.committer._txns
        append = log.append
        go_on = asyncio.Event()

        async def slow(payload: bytes) -> int:
            await go_on.wait()
            return await append(payload)

        for key in (11, 12):
            await one.run(m.Query(f"INSERT INTO t VALUES ({key})"))
        log.append = slow  # type: ignore[method-assign]
        one.send(m.Query("INSERT INTO t VALUES (1)"))
        while not core.committing:
            await asyncio.sleep(0)
        one.session.connection_lost()
        go_on.set()
        while one.session.busy:
            await asyncio.sleep(0.001)
        assert await keys(two) == ["0", "1", "11", "12"]
        assert len(database.sessions) == 1

    served(tmp_path, use)


def test_a_query_with_a_time_out_waits_where_that_can_interrupt_it(tmp_path: Path) -> None:
    async def use(database: Database, one: Client, two: Client) -> None:
        for key in (11, 12):
            await one.run(m.Query(f"INSERT INTO t VALUES ({key})"))
        for name in ("statement_timeout", "transaction_timeout"):
            await one.run(m.Query(f"SET {name} = '1h'"))
            one.send(m.Query(f"INSERT INTO t VALUES ({len(name)})"))
            assert isinstance(await one.waits(), asyncio.Task)
            assert (await one.answers())[-1] == m.ReadyForQuery("I")
            await one.run(m.Query(f"SET {name} = 0"))

    served(tmp_path, use)
