"""What a session keeps has bounds: an error past them, and room again once something has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.session import channels
from engine.session.transaction import block
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk


def with_sessions(work: Callable[[Session, Session], Awaitable[None]]) -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        await work(Session(database, 1), Session(database, 2))
        await database.close()

    asyncio.run(main())


async def state_of(session: Session, sql: str) -> str:
    try:
        await session.run(sql)
    except Failed as error:
        return error.report.sqlstate
    return ""


def test_savepoints_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "MAX_SAVEPOINTS", 3)

    async def work(session: Session, _: Session) -> None:
        await session.run("BEGIN")
        for n in range(3):
            assert await state_of(session, f"SAVEPOINT s{n}") == ""
        await session.run("RELEASE s2")
        assert await state_of(session, "SAVEPOINT s3") == ""
        assert await state_of(session, "SAVEPOINT s4") == "53400"
        await session.run("ROLLBACK TO s1")
        assert await state_of(session, "SAVEPOINT s2") == ""

    with_sessions(work)


def test_channels_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_CHANNELS", 3)

    async def work(session: Session, _: Session) -> None:
        for n in range(3):
            assert await state_of(session, f"LISTEN c{n}") == ""
        assert await state_of(session, "LISTEN c3") == "53400"
        assert await state_of(session, "UNLISTEN c0") == ""
        assert await state_of(session, "LISTEN c3") == ""
        assert sorted(await session.run("SELECT * FROM pg_listening_channels()")) == [
            ("c1",),
            ("c2",),
            ("c3",),
        ]

    with_sessions(work)


def test_what_one_transaction_sends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "QUEUE_BYTES", 2000)

    async def work(session: Session, _: Session) -> None:
        await session.run("BEGIN")
        states = [await state_of(session, f"NOTIFY c, '{'x' * 500}{n}'") for n in range(3)]
        assert states == ["", "", "54000"]
        await session.run("ROLLBACK")
        await session.run("BEGIN")
        await session.run("SAVEPOINT s")
        await session.run(f"NOTIFY c, '{'x' * 1500}'")
        await session.run("ROLLBACK TO s")
        assert await state_of(session, f"NOTIFY c, '{'y' * 1500}'") == ""  # what was undone counts no more
        await session.run("COMMIT")

    with_sessions(work)


def test_many_notifications_come_in_slices_and_in_the_order_of_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "AT_ONCE", 10)
    heard: list[str] = []
    turns: list[int] = []

    async def work(sender: Session, listener: Session) -> None:
        out: Any = listener.connection.session.out
        out.paused = False
        out.notification = lambda pid, channel, payload: heard.append(payload)
        await listener.run("LISTEN c")
        await sender.run("BEGIN")
        for n in range(35):
            await sender.run(f"NOTIFY c, '{n}'")
        await sender.run("COMMIT")
        await sender.run("NOTIFY c, 'behind'")
        for _ in range(100):
            before = len(heard)
            await asyncio.sleep(0)
            turns.append(len(heard) - before)
        assert heard == [*map(str, range(35)), "behind"]
        assert max(turns) <= 20

    with_sessions(work)
