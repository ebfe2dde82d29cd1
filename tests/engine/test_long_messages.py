"""What ends a statement ends it while its message of megabytes is still read, and nothing of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from engine.base.eager import settle
from pgwire.errors import BackendError
from tests.support.durable import run
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

MESSAGES = ["long_query", "long_parse", "long_bind", "long_call"]


async def begun(session: Session, name: str, reading: asyncio.Future[Any]) -> asyncio.Task[str]:
    """Begin with a message that is not read yet; the task returns the SQLSTATE that it ends with."""
    out = session.connection.session.out
    more = (out,) if name in ("long_query", "long_call") else ()

    async def body() -> str:
        try:
            await settle(getattr(session.connection, name)(reading, *more))
        except BackendError as error:
            return error.report.sqlstate
        report = session._out.error_report
        return "" if report is None else report.sqlstate

    task = asyncio.get_running_loop().create_task(body())
    await asyncio.sleep(0)
    return task


def ended(how: Callable[[Session], None], setting: str) -> None:
    """All kinds of messages are ended by ``how`` while they are read; the connection serves afterwards."""

    async def body() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run(setting)
        for name in MESSAGES:
            reading: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            task = await begun(session, name, reading)
            how(session)
            assert await task == "57014", name
            assert reading.cancelled(), name
            await settle(session.connection.failed())
            await settle(session.connection.sync())
            assert not session.connection.prepared.all(), name
            assert not session.connection.portals, name
            session._out.error_report = None
            assert await session.run("SELECT 1") == [("1",)], name

    run(body)


def test_a_cancel_ends_the_reading() -> None:
    ended(lambda session: session.connection.cancel(), "SET statement_timeout = 0")


def test_the_timeout_ends_the_reading() -> None:
    """A millisecond is enough for what answers at once, as all else here does."""
    ended(lambda session: None, "SET statement_timeout = '20ms'")


def test_the_timeout_of_a_statement_before_does_not_end_a_bind() -> None:
    """Its time has passed while nothing ran."""

    async def body() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("SET statement_timeout = '1s'")
        await session.run("SELECT 1")
        session.connection.prepared.prepare("s", "SELECT $1::text", (25,))
        session.connection.session.cancelled.deadline_s -= 10
        session.connection.session.cancelled.reason = "of a statement before"
        reading: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        task = await begun(session, "long_bind", reading)
        for _ in range(3):
            await asyncio.sleep(0)
        reading.set_result(("p", "s", (), [b"value"], ()))
        assert await task == ""
        assert list(session.connection.portals) == ["p"]

    run(body)
