"""A client that does not read: what it is sent waits for it, in a bounded amount, whatever sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.base.eager import settle
from pgwire.errors import ErrorReport
from planner.base.large import METER
from tests.support.engine import Recorder, Session, open_database
from txn.persist.memory import MemoryDisk

LIMIT = 1 << 20
"""What a transport holds before it says that it is full."""
NOTICE_BYTES = 4000
"""Counted for each notice at least, so that few of them fill it."""


class Unread(Recorder):
    """Counts what it is sent and is full past ``LIMIT``; then nobody reads on until ``reading``."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.most = 0
        self.reading = asyncio.Event()
        self.full = asyncio.Event()

    @property
    def paused(self) -> bool:
        return self.held > LIMIT

    def take(self, size: int) -> None:
        self.held += size
        self.most = max(self.most, self.held)

    def data_rows(self, encoded: bytes | bytearray | memoryview, count: int) -> None:
        self.take(len(encoded))

    def copy_rows(self, framed: bytes | bytearray | memoryview) -> None:
        self.take(len(framed))

    def notice(self, report: ErrorReport) -> None:
        self.take(max(len(report.message), NOTICE_BYTES))

    async def long_message(self, kind: int, pieces: Iterator[bytes | memoryview]) -> None:
        for piece in pieces:
            self.take(len(piece))
            await self.drain()

    async def drain(self) -> None:
        if self.paused:
            self.full.set()
            await self.reading.wait()
            self.held = 0


SENT = [
    # (statements before, what is sent, how often)
    ("", "SELECT repeat('x', 1000000 + g) FROM generate_series(1, 40) g", 40_000_000),
    (
        "",
        "SELECT CASE WHEN g > 20 THEN repeat('x', 1000000 + g) END FROM generate_series(1, 60) g",
        40_000_000,
    ),
    ("", "SELECT repeat('x', 1000000 + g), (SELECT g) FROM generate_series(1, 40) g", 40_000_000),
    ("", "SELECT lpad('x', 1000000 + g) FROM generate_series(1, 40) g ORDER BY g", 40_000_000),
    ("", "SELECT convert_to(repeat('x', 500000 + g), 'UTF8') FROM generate_series(1, 40) g", 40_000_000),
    ("", "SELECT repeat('x', 40000000)", 40_000_000),
    ("", "COPY (SELECT repeat('x', 1000000 + g) FROM generate_series(1, 40) g) TO STDOUT", 40_000_000),
    ("", "COPY (SELECT repeat('x', 40000000)) TO STDOUT (FORMAT csv)", 40_000_000),
    (
        "BEGIN; DECLARE c CURSOR FOR SELECT repeat('x', 1000000 + g) FROM generate_series(1, 40) g",
        "FETCH ALL FROM c",
        40_000_000,
    ),
    (
        "BEGIN; DECLARE c CURSOR FOR SELECT repeat('x', 1000000 + g) FROM generate_series(1, 40) g",
        "FETCH 40 FROM c",
        40_000_000,
    ),
    (
        "",
        "DO $$ BEGIN FOR i IN 1..40 LOOP RAISE NOTICE '%', repeat('x', 1000000 + i); END LOOP; END $$",
        40_000_000,
    ),
    (
        "",
        "DO $$ BEGIN FOR i IN 1..10000 LOOP RAISE NOTICE '%', repeat('x', 1000); END LOOP; END $$",
        40_000_000,
    ),
    (
        "",
        "DO $$ BEGIN FOR i IN 1..2000 LOOP EXECUTE 'DROP TABLE IF EXISTS ' || repeat('x', 60); END LOOP; END $$",
        8_000_000,
    ),
    # what functions and the input of types say beside their results, row by row
    *[
        (
            "SET executor = index; CREATE TABLE said (a int, q tsquery); INSERT INTO said SELECT g FROM generate_series(1, 2000) g",
            sql,
            8_000_000,
        )
        for sql in (
            "SELECT count(to_tsquery('english', CASE WHEN g > 0 THEN 'the' END)) FROM generate_series(1, 2000) g",
            "SELECT a FROM said WHERE CASE WHEN a > 0 THEN '' END::tsquery IS NOT NULL ORDER BY a",
            "UPDATE said SET q = CASE WHEN a > 0 THEN '' END::tsquery",
            "INSERT INTO said SELECT g, CASE WHEN g > 0 THEN '' END::tsquery FROM generate_series(1, 2000) g",
            "DO $$ DECLARE q tsquery; BEGIN FOR i IN 1..2000 LOOP q := CASE WHEN i > 0 THEN '' END::text; END LOOP; END $$",
        )
    ],
]


@pytest.mark.parametrize(("before", "sql", "size"), SENT, ids=[sql[:70] for _, sql, _ in SENT])
def test_what_is_not_read_waits(before: str, sql: str, size: int, tmp_path: Path) -> None:
    async def body() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        try:
            session = Session(database, 1)
            if before:
                await session.run(before)
            out = Unread()
            before_it = METER.made
            session.connection.session.out = out  # type: ignore[assignment]
            running = asyncio.ensure_future(_run(session, sql, out))
            waiting = asyncio.ensure_future(out.full.wait())
            await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
            assert not running.done(), out.error_report
            for _ in range(100):
                await asyncio.sleep(0)
            assert out.most < 4 * LIMIT
            if not any(
                word in sql for word in ("40000000", "ORDER BY", "FETCH")
            ):  # whose rows are kept, or in a file
                assert METER.made - before_it < 20 * LIMIT, "rows were made that wait for nobody"
            held = out.held
            out.reading.set()
            await running
            assert out.error_report is None
            assert held + out.held <= size + 8 * LIMIT
        finally:
            await database.close()

    asyncio.run(body())


async def _run(session: Session, sql: str, out: Unread) -> None:
    work = session.connection.query(sql, out)  # type: ignore[arg-type]
    await settle(work)
