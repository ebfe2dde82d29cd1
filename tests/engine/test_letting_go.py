"""What statements gather goes in slices when they have succeeded, too: no turn of the event loop frees much at once.

Blocks of memory are counted before and after each turn: rows of changes and of RETURNING, parse trees and plans of long texts, cursors, rows that
are read from partitions and through a store's indexes, commits. (Nodes of the row executor: tests/engine/index/test_letting_go.py.)
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from sys import getallocatedblocks
from typing import Any, Final

from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

MANY: Final = 12_000
SMALL: Final = 30_000
"""Blocks of memory that one turn may free: about those of 10,000 rows. How many go in a turn is a matter of time, so a fast machine frees more."""

SETUP = f"""
SET executor = index;
CREATE TABLE t (id int PRIMARY KEY, n int, s text);
CREATE TABLE u (id int, n int);
CREATE TABLE p (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (7000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (7000) TO (100000);
CREATE TABLE words (id int PRIMARY KEY, w int[], r int4range);
CREATE INDEX ON words USING gin (w);
CREATE INDEX ON words USING gist (r);
CREATE FUNCTION seen(x int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN x; END';
INSERT INTO t SELECT i, i + 7, 'x' || i FROM generate_series(1001, {MANY + 1000}) i;
INSERT INTO p SELECT i, i + 3 FROM generate_series(1001, {MANY + 1000}) i;
INSERT INTO words SELECT i, ARRAY[i % 9], int4range(i, i + 1) FROM generate_series(1001, 3000) i;
"""
SERIES = f"generate_series(1001, {MANY + 1000}) i"
NUMBERS = ", ".join(str(n) for n in range(1000, 1000 + 2 * MANY))

STATEMENTS = {
    "INSERT SELECT": f"INSERT INTO u SELECT i, i + 7 FROM {SERIES}",
    "UPDATE": "UPDATE t SET n = n + 5000",
    "UPDATE RETURNING": "UPDATE t SET n = n + 5000 RETURNING id, n, s",
    "changes in turn": "UPDATE t SET n = seen(n)",
    "changes in WITH": f"WITH x AS (INSERT INTO u SELECT i, i + 9 FROM {SERIES} RETURNING *) SELECT * FROM x",
    "a range": "SELECT id, s FROM t WHERE id > 1002",
    "partitions": "SELECT * FROM p ORDER BY n",
    "elements": "SELECT id FROM words WHERE w @> ARRAY[3]",
    "ranges": "SELECT id FROM words WHERE r && int4range(1500, 1700)",
    "SKIP LOCKED": "SELECT id FROM t ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED",
    "a prepared one": f"PREPARE x AS SELECT count(*) FROM u WHERE n IN ({NUMBERS[:60_000]}0); EXECUTE x; DEALLOCATE x",
    "a syntax error at the end": f"SELECT * FROM u WHERE n IN ({NUMBERS}) AND (",
    "a name that is not there": f"SELECT * FROM u WHERE n IN ({NUMBERS}) AND q = 1",
    "a cursor": "BEGIN; DECLARE c CURSOR FOR SELECT id, n FROM t ORDER BY n; FETCH ALL FROM c; CLOSE c; COMMIT",
    "a cursor that stays": "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id, n FROM t ORDER BY n; COMMIT; CLOSE c",
    "a table made": "CREATE TABLE made AS SELECT id, n FROM t; DROP TABLE made",
}


@contextmanager
def _watched(freed: list[int]) -> Iterator[None]:
    """Note how many blocks each turn of the event loop frees."""
    whole = asyncio.Handle._run

    def run(handle: Any) -> Any:
        before = getallocatedblocks()
        try:
            return whole(handle)
        finally:
            freed.append(before - getallocatedblocks())

    asyncio.Handle._run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        asyncio.Handle._run = whole  # type: ignore[method-assign]


async def _all() -> dict[str, int]:
    """Return how many blocks a turn of each statement frees at most."""
    database = await open_database(MemoryDisk())
    session = Session(database, 1)
    await session.run(SETUP)
    most = {}
    for name, sql in STATEMENTS.items():
        freed: list[int] = []
        rows = session._out.rows  # which nobody frees meanwhile
        with _watched(freed):
            await asyncio.ensure_future(_answered(session, sql))
            for _ in range(100):
                await asyncio.sleep(0)
        most[name] = max(freed)
        del rows
    await database.close()
    return most


async def _answered(session: Session, sql: str) -> None:
    try:
        await session.run(sql)
    except Failed as failure:
        assert failure.report.sqlstate in ("42601", "42703")  # noqa: PT017


def test_no_turn_frees_much() -> None:
    """Whatever the statements have gathered."""
    gc.collect()
    gc.disable()
    try:
        most = asyncio.run(_all())
    finally:
        gc.enable()
    assert {name: count for name, count in most.items() if count > SMALL} == {}
