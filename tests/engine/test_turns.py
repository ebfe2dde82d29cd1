"""Which connections give way to readers: those whose running or last transaction writes (``pgwire.turns``)."""

from __future__ import annotations

import asyncio

import pytest

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
