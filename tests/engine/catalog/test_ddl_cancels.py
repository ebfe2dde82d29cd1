"""DDL of several real sessions, some of it cancelled at any turn, beside sessions that read: all of it is answered.

Slices of time are as short as can be, so that whatever may give way does so wherever it may. The same few texts come again and again: the
client prepares them, so that they are bound anew after each change of the catalog. If nothing is answered for ``SILENT_S``, the lock
table, the sessions and where each task stands are shown.
"""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
import pytest

from engine.server.database import Database
from pgwire import give_way
from pgwire.server import Server, ServerConfig
from tests.support.engine import open_database
from txn.persist.memory import MemoryDisk

SILENT_S: Final = 10.0
WRITERS: Final = 4
STATEMENTS: Final = 30  # of each
SETUP: Final = (
    "CREATE TABLE t0 (a int PRIMARY KEY, b text CONSTRAINT y CHECK (b <> '')) PARTITION BY LIST (a)",
    "CREATE TABLE t1 (a int PRIMARY KEY, b text)",
)
TEXTS: Final = (
    "CREATE TABLE t0_p PARTITION OF t0 FOR VALUES IN (1)", "DROP TABLE t0_p", "CREATE POLICY po ON t0 USING (a > 0)", "DROP POLICY po ON t0",
    "ALTER TABLE t0 ADD CONSTRAINT x CHECK (a > 0)", "ALTER TABLE t0 DROP CONSTRAINT x", "ALTER TABLE t1 ADD COLUMN c int DEFAULT 1",
    "ALTER TABLE t1 DROP COLUMN c", "CREATE INDEX i ON t1 (b)", "DROP INDEX i", "INSERT INTO t1 VALUES (1, 'x') ON CONFLICT DO NOTHING",
    "CREATE VIEW v AS SELECT a FROM t1", "DROP VIEW v", "SELECT count(*) FROM t1", "SELECT a FROM t0 WHERE a = 1", "TRUNCATE t0, t1",
)  # fmt: skip


class Rig:
    """A server in this loop, and what its clients have been answered."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database = database
        self.server = Server(database, ServerConfig(port=0))
        database.terminate, database.interrupt = self.server.terminate, self.server.interrupt
        database.turns = self.server.turns
        database.store.on_long_turn(self.server.turns.yield_to_readers)
        self.random = random.Random(seed)
        self.asked: dict[int, str] = {}
        self.answered = 0
        self.cancelled = 0

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        url = f"host=127.0.0.1 port={self.server.port} user=postgres dbname=postgres"
        return await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=2)

    async def ask(self, connection: psycopg.AsyncConnection[Any], text: str) -> None:
        """Run a statement, however it ends."""
        pid = connection.info.backend_pid
        self.asked[pid] = text
        try:
            await connection.execute(text.encode())
        except psycopg.errors.QueryCanceled:
            self.cancelled += 1
        except psycopg.Error:
            assert not connection.broken
        del self.asked[pid]
        self.answered += 1

    async def write(self) -> None:
        connection = await self.connect()
        for _ in range(STATEMENTS):
            if self.random.random() < 0.2:
                await self.ask(connection, "BEGIN")
                for text in self.random.choices(TEXTS, k=3):
                    await self.ask(connection, text)
                while connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    await self.ask(connection, self.random.choice(("COMMIT", "ROLLBACK")))
            else:
                await self.ask(connection, self.random.choice(TEXTS))
        await connection.close()

    async def read(self, ended: asyncio.Event) -> None:
        connection = await self.connect()
        while not ended.is_set():
            await self.ask(connection, "SELECT b FROM t1 WHERE a = 1")
            await self.ask(connection, "SELECT relname FROM pg_class WHERE relname LIKE 't%'")
        await connection.close()

    async def cancel(self, ended: asyncio.Event) -> None:
        """Cancel whatever runs, a random number of turns after the last one."""
        while not ended.is_set():
            for _ in range(self.random.randrange(40)):
                await asyncio.sleep(0)
            if self.server.sessions:
                self.server.interrupt(self.random.choice(list(self.server.sessions)))

    async def watch(self, ended: asyncio.Event) -> None:
        """Fail, and show where everything stands, once nothing is answered any more."""
        while not ended.is_set():
            before = self.answered
            try:
                await asyncio.wait_for(ended.wait(), SILENT_S)
            except TimeoutError:
                if self.answered == before or any(self.stuck()):
                    raise AssertionError(self.stands()) from None

    def stuck(self) -> list[str]:
        """Return what has been asked by sessions that do nothing: their message is lost."""
        sessions = self.server.sessions
        return [text for pid, text in self.asked.items() if pid in sessions and not sessions[pid].busy and not sessions[pid].connection.buffered]  # fmt: skip

    def stands(self) -> str:
        """Return the lock table, the sessions and the stacks of all tasks."""
        out = io.StringIO()
        for row in self.database.store.core.locks.rows():
            print(row, file=out)
        for pid, session in self.server.sessions.items():
            print(
                pid,
                session.connection.state,
                "busy" if session.busy else "at rest",
                self.asked.get(pid),
                file=out,
            )
        for task in asyncio.all_tasks():
            task.print_stack(file=out)
        return out.getvalue()


@asynccontextmanager
async def rig(seed: int) -> AsyncIterator[Rig]:
    made = Rig(await open_database(MemoryDisk()), seed)
    await made.server.start()
    try:
        yield made
    finally:
        await made.server.drain(0)
        await made.database.close()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 40))])
def test_whatever_is_cancelled_all_is_answered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with rig(seed) as made:
            keeper = await made.connect()
            for text in SETUP:
                await keeper.execute(text.encode())
            ended = asyncio.Event()
            beside = [asyncio.create_task(work(ended)) for work in (made.read, made.read, made.cancel)]
            watching = asyncio.create_task(made.watch(ended))
            writing = asyncio.gather(*(made.write() for _ in range(WRITERS)))
            await asyncio.wait((writing, watching), return_when=asyncio.FIRST_COMPLETED)
            if not writing.done():
                watching.result()
            writing.result()
            ended.set()
            await asyncio.gather(*beside, watching)
            assert made.cancelled
            assert not list(made.database.store.core.locks.waits())
            await keeper.execute("SET lock_timeout = '1ms'")  # nothing is left locked, so it waits for nobody
            for text in ("DROP TABLE t0, t1 CASCADE", "CREATE TABLE t0 (a int)", "DROP TABLE t0"):
                await keeper.execute(text.encode())
            await keeper.close()

    monkeypatch.setattr(give_way, "SLICE_S", 0.0)
    asyncio.run(main())
