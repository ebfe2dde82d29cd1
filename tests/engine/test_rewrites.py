"""Statements that compute something of every row of a table: few rows are written anew as rows, many as parts, and nobody can tell which."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.store import tiny_limits
from txn.persist.memory import MemoryDisk

SETUP = (
    "CREATE SEQUENCE q",
    "CREATE TABLE t (id int PRIMARY KEY, a int CHECK (a < 1000), s text)",
    "CREATE FUNCTION twice(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1 || $1'",
    "CREATE INDEX by_a ON t (a)",
    "CREATE TYPE pair AS (x int, y text)",
    "CREATE TABLE other (id int PRIMARY KEY, p pair)",
    "INSERT INTO t SELECT g, g % 10, 'row ' || g FROM generate_series(1, 20) g",
    "CHECKPOINT",
    "INSERT INTO t SELECT g, g % 10, repeat('x', g) FROM generate_series(21, 40) g",
    "UPDATE t SET a = 11 WHERE id IN (3, 33)",
    "INSERT INTO other SELECT id, ROW(a, s)::pair FROM t",
)
OWN = ("INSERT INTO t VALUES (50, 50, 'of the block')", "DELETE FROM t WHERE id IN (7, 27)")
KINDS = (
    "CREATE INDEX ON t (md5(s))",
    "CREATE INDEX ON t (twice(s)) WHERE a > 3",
    "CREATE UNIQUE INDEX ON t ((a % 7))",
    "ALTER TABLE t ADD v int DEFAULT nextval('q')",
    "ALTER TABLE t ADD v int UNIQUE DEFAULT nextval('q'), ADD w int UNIQUE DEFAULT nextval('q') % 30",
    "ALTER TABLE t ADD v int NOT NULL DEFAULT nullif(nextval('q'), 31)",
    "ALTER TABLE t ADD v int CHECK (v < 31) DEFAULT nextval('q')",
    "ALTER TABLE t ADD v int GENERATED ALWAYS AS (a * 2) STORED",
    "ALTER TABLE t ADD v serial",
    "ALTER TABLE t ALTER a TYPE text USING a || twice(s)",
    "ALTER TABLE t ALTER s TYPE int USING length(s)",
    "ALTER TABLE t ALTER s TYPE int USING s::int",
    "ALTER TABLE t ALTER id TYPE bigint USING id * 3",
    "ALTER TABLE t ALTER id TYPE bigint USING id / 2",
    "ALTER TABLE t ALTER a TYPE numeric(10, 2) USING a * 100",
    "ALTER TYPE pair DROP ATTRIBUTE x",
    "REINDEX TABLE t",
)
LOOK = "SELECT * FROM t ORDER BY id"


async def _found(session: Session) -> list[object]:
    """Return all rows, as scanned and through the key; and those of a table beside it."""
    rows = await session.run(LOOK)
    through = [(await session.run(f"SELECT * FROM t WHERE id = {row[0]}"))[0] for row in rows[::9]]
    assert through == rows[::9]
    return [rows, await session.run("SELECT * FROM other ORDER BY id")]


async def _tell(session: Session, sql: str) -> str:
    try:
        await session.run(sql)
    except Failed as failed:
        return str(failed).split(" Key (")[0]  # whichever of the keys that are there twice
    return "done"


async def _outcome(session: Session, reader: Session, kind: str) -> list[object]:
    """Return what a statement says that was rolled back, and again in the same block, and what is there then."""
    for sql in SETUP:
        await session.run(sql)
    await reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    before = await reader.run(LOOK)
    await session.run("BEGIN")
    for sql in OWN:
        await session.run(sql)
    own = await _found(session)
    await session.run("SAVEPOINT here")
    told: list[object] = [await _tell(session, kind)]
    if told == ["done"]:
        told += await _found(session)
    await session.run("ROLLBACK TO here")
    assert await _found(session) == own, kind
    await session.run("SELECT setval('q', 1, false)")
    told.append(await _tell(session, kind))
    if told[-1] != "done":
        await session.run("ROLLBACK TO here")
    await session.run("COMMIT")
    assert await reader.run(LOOK) == before, "who reads the past sees nothing of it"
    await reader.run("COMMIT")
    return [told, *await _found(session)]


def test_rows_written_anew_are_the_same_as_parts_and_as_rows() -> None:
    outcomes: list[list[list[object]]] = []

    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session, reader = Session(database, 1), Session(database, 2)
        found = []
        for number, kind in enumerate(KINDS):
            await session.run(f"CREATE SCHEMA s{number}")
            for one in (session, reader):
                await one.run(f"SET search_path = s{number}")
            found.append(await _outcome(session, reader, kind))
        await database.close()
        database = await open_database(disk)
        session = Session(database, 1)
        for number, kind in enumerate(KINDS):
            await session.run(f"SET search_path = s{number}")
            assert await _found(session) == found[number][1:], f"after a restart: {kind}"
        database.store.validate()
        await database.close()
        outcomes.append(found)

    for bulk_rows in (3, 20_000):
        with tiny_limits(), mock.patch("engine.definitions.table.rewrite.BULK_ROWS", bulk_rows):
            run(go)
    for kind, as_parts, as_rows in zip(KINDS, *outcomes, strict=True):
        assert as_parts == as_rows, kind


@pytest.mark.parametrize("bulk_rows", [3, 20_000])
def test_a_view_refreshed_beside_its_readers_has_only_other_rows_replaced(
    tmp_path: Path, bulk_rows: int
) -> None:
    """Rows go through files; those that are there several times (they have a NULL) are counted."""

    async def go() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        session = Session(database, 1)
        for sql in (
            "CREATE TABLE t (id int, s text, n numeric)",
            "INSERT INTO t SELECT g, 'row ' || g, g / 4.0 FROM generate_series(1, 30) g",
            "INSERT INTO t SELECT NULL, 'twice', NULL FROM generate_series(1, 9)",
            "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
            "CREATE UNIQUE INDEX ON m (id)",
            "CREATE INDEX ON m (lower(s))",
            "DELETE FROM t WHERE id IN (1, 5, 6, 7, 29)",
            "DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE id IS NULL LIMIT 4)",
            "UPDATE t SET s = 'Other' WHERE id BETWEEN 10 AND 17",
            "INSERT INTO t SELECT g, 'new', g FROM generate_series(40, 47) g",
        ):
            await session.run(sql)
        before = await session.run("SELECT ctid, * FROM m")
        await session.run("REFRESH MATERIALIZED VIEW CONCURRENTLY m")
        after = await session.run("SELECT ctid, * FROM m")
        key = ("id", "s", "n")
        assert await session.run(f"SELECT * FROM m ORDER BY {', '.join(key)}") == await session.run(
            f"SELECT * FROM t ORDER BY {', '.join(key)}"
        )
        assert len(set(before) & set(after)) == 17 + 5, "rows that are the same are where they were"
        assert len(await session.run("SELECT id FROM m WHERE lower(s) = 'other'")) == 8
        await session.run("INSERT INTO t SELECT * FROM t WHERE id = 20")
        with pytest.raises(Failed, match=r"duplicate rows without any null columns Row: \(20,"):
            await session.run("REFRESH MATERIALIZED VIEW CONCURRENTLY m")
        assert set(await session.run("SELECT ctid, * FROM m")) == set(after)
        await database.close()

    with (
        tiny_limits(),
        mock.patch("engine.definitions.table.rewrite.BULK_ROWS", bulk_rows),
        mock.patch("engine.changes.bulk.changes.BULK_ROWS", bulk_rows),
        mock.patch("engine.definitions.table.materialized.KEPT_BYTES", 0),
        mock.patch("engine.definitions.table.materialized.TAIL_BYTES", 1),
        mock.patch("engine.definitions.table.materialized.SLICE_ROWS", 7),
        mock.patch("engine.definitions.table.materialized.PIECE", 4),
    ):
        run(go)
