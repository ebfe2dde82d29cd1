"""What statements gather goes in slices when they have succeeded, too: no turn of the event loop frees much at once.

Blocks of memory are counted before and after each turn: rows of changes and of RETURNING, parse trees and plans of long texts, cursors, rows that
are read from partitions and through a store's indexes, commits. (Nodes of the row executor: tests/engine/index/test_letting_go.py.)
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sys import getallocatedblocks
from typing import Any, Final

import pytest

import engine.changes.writes.spilling
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk

MANY: Final = 12_000
SMALL: Final = 35_000
"""Blocks of memory that one turn may free: less than those of ``MANY`` rows or locks. How many go in a turn is a matter of time, so a fast machine frees more."""

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
CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t);
CREATE TABLE cascaded (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE);
CREATE TABLE late (id int PRIMARY KEY, t int REFERENCES t DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (7000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (7000) TO (100000);
CREATE FUNCTION seen(x int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN x; END';
CREATE TABLE fired (id int PRIMARY KEY);
CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER told AFTER INSERT ON fired REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION told();
CREATE TRIGGER told_of_rows AFTER DELETE ON fired FOR EACH ROW EXECUTE FUNCTION told();
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
    "FOR UPDATE": "SELECT id, n FROM t FOR UPDATE",
    "FOR SHARE": "SELECT id, n FROM t FOR SHARE",
    "locks in a block": "BEGIN; SELECT id FROM t FOR NO KEY UPDATE; COMMIT",
    "locks that are rolled back": "BEGIN; SELECT id FROM t FOR KEY SHARE; ROLLBACK",
    "MERGE that updates": "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 5000",
    "MERGE that inserts": f"MERGE INTO t USING {SERIES.replace(' i', ' s(i)')} ON t.id = i + 20000 WHEN NOT MATCHED THEN INSERT VALUES (i + 20000, i)",
    "a key that is referred to": "UPDATE t SET id = id + 100000 WHERE id > 20000",
    "MERGE that deletes": "MERGE INTO t USING t AS s ON t.id = s.id AND s.id > 20000 WHEN MATCHED THEN DELETE",
    "a foreign key": "INSERT INTO child SELECT id, id FROM t",
    "a foreign key, RETURNING": "UPDATE child SET t = CASE WHEN t < 2000 THEN t + 1 ELSE t - 1 END RETURNING *",
    "a cascade": "INSERT INTO t SELECT i + 200000, i FROM generate_series(1001, 13000) i;"
    " INSERT INTO cascaded SELECT id, id FROM t WHERE id > 200000; DELETE FROM t WHERE id > 200000",
    "a foreign key at COMMIT": "INSERT INTO late SELECT id, id FROM t",
    "DELETE RETURNING": "INSERT INTO child SELECT id, id FROM t ON CONFLICT DO NOTHING; DELETE FROM child RETURNING *",
    "INSERT RETURNING": f"INSERT INTO u SELECT i, i + 9 FROM {SERIES} RETURNING *",
    "ON CONFLICT": "INSERT INTO t SELECT id, n FROM t ON CONFLICT (id) DO UPDATE SET n = excluded.n + 5000 RETURNING n",
    "ON CONFLICT DO NOTHING": "INSERT INTO t SELECT id, n FROM t ON CONFLICT DO NOTHING",
    "INSERT of partitions": f"INSERT INTO parted SELECT i, i + 7 FROM {SERIES} RETURNING *",
    "UPDATE of partitions": "UPDATE parted SET n = n + 5000 RETURNING *",
    "UPDATE that moves rows": "UPDATE parted SET id = CASE WHEN id < 7000 THEN id + 50000 ELSE id - 6500 END",
    "MERGE of partitions": "MERGE INTO parted USING t ON parted.id = t.id WHEN MATCHED THEN UPDATE SET n = t.n WHEN NOT MATCHED THEN INSERT VALUES (t.id, t.n)",
    "DELETE of partitions": "DELETE FROM parted RETURNING *",
    "ROLLBACK TO": "BEGIN; SAVEPOINT a; UPDATE t SET n = n + 5000; ROLLBACK TO a; COMMIT",
    "ROLLBACK": "BEGIN; UPDATE t SET n = n + 5000; INSERT INTO u SELECT id, n FROM t; ROLLBACK",
    "COMMIT": "BEGIN; UPDATE t SET n = n + 5000; INSERT INTO u SELECT id, n FROM t; COMMIT",
    "reads of a block": "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT id, n FROM t WHERE id IN (SELECT id FROM t); SELECT s FROM t; INSERT INTO u VALUES (1, 1); COMMIT",
    "triggers": f"INSERT INTO fired SELECT i FROM {SERIES}; DELETE FROM fired",
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


async def _all(names: Sequence[str]) -> dict[str, int]:
    """Return how many blocks a turn of each statement frees at most."""
    database = await open_database(MemoryDisk())
    session = Session(database, 1)
    await session.run(SETUP)
    most = {}
    for name in names:
        sql = STATEMENTS[name]
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


@pytest.mark.parametrize("third", range(3))
def test_no_turn_frees_much(third: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the statements have gathered, in memory: nothing is spilled. Later ones change what earlier ones have stored."""
    monkeypatch.setattr(engine.changes.writes.spilling, "SHARES", 1)
    size = -(-len(STATEMENTS) // 3)
    names = list(STATEMENTS)[third * size : third * size + size]
    gc.collect()
    gc.disable()
    try:
        most = asyncio.run(_all(names))
    finally:
        gc.enable()
    assert {name: count for name, count in most.items() if count > SMALL} == {}
