"""Which connections give way to readers: those whose running or last transaction writes (``pgwire.turns``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pgwire.turns import Turns
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
