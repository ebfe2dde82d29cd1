"""Which connections give way to readers: those whose running or last transaction writes (``pgwire.session.turns``)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.base.eager import settle
from pgwire.session.turns import Turns
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk


@pytest.mark.parametrize(
    ("statements", "wrote"),
    [
        (["SELECT 1"], False),
        (["INSERT INTO t VALUES (2)"], True),
        (["INSERT INTO t VALUES (2)", "BEGIN"], True),
        (["INSERT INTO t VALUES (2)", "BEGIN", "SELECT count(*) FROM t"], False),
        (["INSERT INTO t VALUES (2)", "SELECT k FROM t WHERE k = 1"], False),
        (["INSERT INTO t VALUES (2)", "SELECT k FROM t WHERE k = NULL"], False),
        (["INSERT INTO t VALUES (2)", "SELECT count(*) FROM t"], False),
        (["BEGIN", "SELECT count(*) FROM t"], False),
        (["BEGIN", "SELECT count(*) FROM t", "DELETE FROM t WHERE k = 1"], True),
        (["BEGIN", "UPDATE t SET k = 3", "COMMIT"], True),
        (["BEGIN", "UPDATE t SET k = 3", "ROLLBACK"], True),
        (["SELECT k FROM t WHERE k = 1 FOR UPDATE"], True),
        (["CREATE TABLE u (k int)"], True),
    ],
)
def test_a_connection_gives_way_after_a_transaction_that_writes(statements: list[str], wrote: bool) -> None:
    async def main() -> bool:
        database = await open_database(MemoryDisk())
        setup, session = Session(database, 1), Session(database, 2)
        await setup.run("CREATE TABLE t (k int PRIMARY KEY)")
        await setup.run("INSERT INTO t VALUES (1)")
        await session.run("SELECT k FROM t WHERE k = 1")
        for statement in statements:
            await session.run(statement)
        found = session.connection.wrote
        await database.close()
        return found

    assert asyncio.run(main()) is wrote


class Middle(Turns):
    """Lets ``reader`` go first once, wherever somebody gives way."""

    reader: Callable[[], None] | None = None

    def yield_to_readers(self) -> None:
        reader, self.reader = self.reader, None
        if reader is not None:
            self.preempting = True
            reader()
            self.preempting = False


def test_in_the_middle_of_a_writer_s_turn_only_reads_by_key_run() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        database.turns = turns = Middle()
        writer, other = Session(database, 1), Session(database, 2)
        await writer.run("CREATE TABLE t (k int PRIMARY KEY, v int)")
        await writer.run("INSERT INTO t VALUES (1, 10), (2, 20)")
        by_key, change = "SELECT v FROM t WHERE k = 1", "UPDATE t SET v = v + 1 WHERE k = 1"
        for _ in range(3):  # the plan is kept, and how it is run
            await other.run(by_key)
            await writer.run(change)
        seen: list[Any] = []
        out: Any = other.connection.session.out

        def ask(sql: str) -> None:
            out.rows = []
            work = other.connection.query(sql, out)
            seen.append(out.rows if work is None else work)

        def between() -> None:
            assert other.connection.db.turns.preempting
            for sql in (by_key, "SELECT v FROM t WHERE k = 1 FOR UPDATE"):
                ask(sql)

        turns.reader = between
        await writer.run("BEGIN")
        await writer.run(change)
        assert turns.reader is None, "nobody gave way"
        read, locking = seen
        assert read == [("13",)]
        assert isinstance(locking, Awaitable)
        waits = asyncio.ensure_future(locking)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waits.done()
        await writer.run("COMMIT")
        await waits
        assert out.rows == [("14",)]
        await database.close()

    asyncio.run(main())


def test_in_the_middle_of_a_writer_s_turn_execute_runs_only_reads_by_key() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        database.turns = turns = Middle()
        writer, other = Session(database, 1), Session(database, 2)
        await writer.run("CREATE TABLE t (k int PRIMARY KEY, v int)")
        await writer.run("INSERT INTO t VALUES (1, 10), (2, 20)")
        connection = other.connection
        for name, sql in (
            ("point", "SELECT v FROM t WHERE k = $1"),
            ("change", "UPDATE t SET v = v + 1 WHERE k = $1 RETURNING v"),
            ("insert", "INSERT INTO t VALUES ($1, 0)"),
            ("random", "SELECT random() FROM t WHERE k = $1"),
        ):
            await settle(connection.parse(name, sql, ()))
        out: Any = connection.session.out

        def execute(name: str, value: bytes) -> Any:
            out.rows = []
            connection.bind("", name, (), (value,), ())
            return connection.execute("", 0, out)

        async def sync() -> None:
            work = connection.sync()
            if isinstance(work, asyncio.Future):  # a commit, of which the connection wants to hear
                await asyncio.wait([work])
                connection.synced(work)
            else:
                await settle(work)

        for name, key in [("insert", b"3"), *[(name, b"1") for name in ("point", "change", "random")] * 2]:
            await settle(execute(name, key))  # the plans are kept, and how they are run
            await sync()
        seen: list[Any] = []

        def between() -> None:
            work = execute("point", b"1")
            seen.append(out.rows if work is None else work)
            assert connection.sync() is None
            seen.append(execute(change, key))

        for change, key, after in (
            ("change", b"2", [("21",)]),
            ("insert", b"4", [("0",)]),
            ("random", b"4", [("0",)]),
        ):
            seen.clear()
            turns.reader = between
            await writer.run("BEGIN")
            await writer.run("UPDATE t SET v = v WHERE k = 3")
            assert turns.reader is None, "nobody gave way"
            read, deferred = seen
            assert read == [("12",)]
            assert isinstance(deferred, Awaitable), f"{change} has to wait for a turn of its own"
            waits = asyncio.ensure_future(deferred)
            await writer.run("COMMIT")
            await waits
            await sync()
            assert await writer.run(f"SELECT v FROM t WHERE k = {int(key)}") == after
        await database.close()

    asyncio.run(main())


def test_where_there_is_no_epoll_readers_wait_for_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("select.epoll")
    turns = Turns(clock=lambda: 0.0)
    turns.has_read()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"read")
        turns.watch(ours.fileno(), lambda: pytest.fail("went first"))
        turns.yield_to_readers()
        turns.unwatch(ours.fileno())


def test_nobody_is_watched_once_the_server_has_ended() -> None:
    turns = Turns(clock=lambda: 0.0)
    turns.close()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"read")
        turns.watch(ours.fileno(), lambda: pytest.fail("went first"))
        turns.has_read()
        turns.yield_to_readers()
        turns.unwatch(ours.fileno())
    turns.close()
