"""A load whose tasks run elsewhere, without a JVM: each task and its answer are pickled, tasks end in any order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.changes.bulk import copy_files
from tests.engine.bulk.elsewhere import opened, refused
from tests.support.engine import Session


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_files, "MIN_TASK_BYTES", 1 << 10)


def parts(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "data").rglob("*.parquet"))


def test_files_become_one_table(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = tmp_path / "in"
        folder.mkdir()
        for n in range(3):
            lines = [f'{i},"name ""{i}""\nof {n}",{i}.5\n' for i in range(n * 1000, n * 1000 + 1000)]
            (folder / f"{n}.csv").write_text("a,b,c\n" + "".join(lines))
        async with opened(tmp_path) as (_database, session, tasks):
            await session.run(
                "CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL, c numeric(8,2) CHECK (c >= 0), d int DEFAULT 7)"
            )
            await session.run(f"COPY t (a, b, c) FROM '{folder}' (FORMAT csv, HEADER match)")
            assert tasks.calls > 10
            assert await session.run("SELECT count(*), count(DISTINCT a), sum(c), sum(d) FROM t") == [
                ("3000", "3000", "4500000.00", "21000")
            ]
            assert await session.run("SELECT b FROM t WHERE a = 2001") == [('name "2001"\nof 2',)]
            await session.run("UPDATE t SET d = 8 WHERE a = 1")
            error = await refused(session, f"COPY t (a, b, c) FROM '{folder}' (FORMAT csv, HEADER)")
            assert error.report.sqlstate == "23505"
            assert await session.run("SELECT count(*), sum(d) FROM t") == [("3000", "21001")]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("bad", "state", "context"),
    [
        ("x,b,1\n", "22P02", 'COPY t, line 701, column a: "x"'),
        ("1,,1\n", "23502", 'COPY t, line 701: "1,,1"'),
        ("1,b,-1\n", "23514", 'COPY t, line 701: "1,b,-1"'),
        ("1,b\n", "22P04", 'COPY t, line 701: "1,b"'),
        ("5,b,1\n", "23505", "COPY t, line 701"),
    ],
)
def test_the_first_bad_row_ends_a_load_and_leaves_nothing(
    tmp_path: Path, bad: str, state: str, context: str
) -> None:
    async def scenario() -> None:
        lines = [f"{i},name {i},{i}\n" for i in range(3000)]
        lines[700] = bad
        if state != "23505":  # which is looked for once all rows have been read
            lines[2500] = "worse\n"
        path = tmp_path / "rows.csv"
        path.write_text("".join(lines))
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run("CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL, c int CHECK (c >= 0))")
            before = parts(tmp_path)
            error = await refused(session, f"COPY t FROM '{path}' (FORMAT csv)")
            assert error.report.sqlstate == state
            assert error.report.where == f'{context}\nfile "{path}"'
            assert await session.run("SELECT count(*) FROM t") == [("0",)]
            await asyncio.sleep(0)
            while parts(tmp_path) != before:  # what is not kept is deleted in the background
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_rows_left_out_are_counted_over_all_tasks(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "rows.csv"
        path.write_text("".join(f"{'x' if i % 100 == 99 else i},{i}\n" for i in range(3000)))
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run("CREATE TABLE t (a int, b int)")
            error = await refused(
                session, f"COPY t FROM '{path}' (FORMAT csv, ON_ERROR ignore, REJECT_LIMIT 20)"
            )
            assert error.report.message == (
                "skipped more than REJECT_LIMIT (20) rows due to data type incompatibility"
            )
            assert error.report.where == f'COPY t, line 2100, column a: "x"\nfile "{path}"'
            await session.run(f"COPY t FROM '{path}' (FORMAT csv, ON_ERROR ignore, REJECT_LIMIT 30)")
            assert await session.run("SELECT count(*), sum(b) FROM t") == [
                ("2970", str(sum(i for i in range(3000) if i % 100 != 99)))
            ]

    asyncio.run(scenario())


def test_parts_of_a_load_belong_to_its_transaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "rows.parquet"
        pq.write_table(
            pa.table({"a": range(3000), "b": [str(i) for i in range(3000)]}), path, row_group_size=500
        )
        async with opened(tmp_path) as (database, session, _tasks):
            other = Session(database, 2)
            await session.run("CREATE TABLE t (a int PRIMARY KEY, b text)")
            await session.run("INSERT INTO t VALUES (-1, 'before')")
            await session.run("BEGIN")
            await session.run("INSERT INTO t VALUES (-2, 'mine')")
            await session.run(f"COPY t FROM '{path}' (FORMAT parquet)")
            await session.run("DELETE FROM t WHERE a = 17")
            assert await session.run("SELECT count(*) FROM t") == [("3001",)]
            assert await other.run("SELECT count(*) FROM t") == [("1",)]
            await session.run("ROLLBACK")
            assert await session.run("SELECT count(*) FROM t") == [("1",)]
            await session.run("BEGIN")
            await session.run(f"COPY t FROM '{path}' (FORMAT parquet)")
            await session.run("COMMIT")
            assert await other.run("SELECT count(*), max(a) FROM t") == [("3001", "2999")]

    asyncio.run(scenario())


def test_a_task_that_is_lost_ends_the_load_and_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "rows.csv"
        path.write_text("".join(f"{i}\n" for i in range(5000)))
        async with opened(tmp_path) as (_database, session, tasks):
            await session.run("CREATE TABLE t (a int)")
            before = parts(tmp_path)
            await refused(session, "COPY t FROM '/nowhere/x'")
            tasks.calls = 0
            await session.run("BEGIN")
            await session.run(f"COPY t FROM '{path}'")
            calls = tasks.calls
            assert calls > 8
            await session.run("ROLLBACK")
            tasks.calls, tasks.fail_at = 0, calls - 1
            await refused(session, f"COPY t FROM '{path}'")
            assert await session.run("SELECT count(*) FROM t") == [("0",)]
            while parts(tmp_path) != before:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_what_only_a_session_knows_stays_with_the_server(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "rows.csv"
        path.write_text("".join(f"{i}\n" for i in range(100)))
        async with opened(tmp_path) as (_database, session, tasks):
            await session.run("CREATE TABLE t (a int, b float DEFAULT random(), c timestamptz DEFAULT now())")
            await session.run(f"COPY t (a) FROM '{path}'")
            assert tasks.calls == 0
            assert await session.run("SELECT count(DISTINCT b) > 90, count(DISTINCT c) FROM t") == [
                ("t", "1")
            ]
            await session.run("SET executor = spark")
            error = await refused(session, f"COPY t (a) FROM '{path}'")
            assert error.report.sqlstate == "0A000"
            assert 'the default of column "b"' in error.report.message
            (tmp_path / "two.csv").write_text("1,2\n3,4\n")
            await session.run(f"COPY t (a, b) FROM '{tmp_path}/two.csv' (FORMAT csv)")
            assert tasks.calls == 1
            await session.run("SET executor = auto")
            assert await session.run("SELECT count(DISTINCT c) FROM t") == [("2",)]

    asyncio.run(scenario())
