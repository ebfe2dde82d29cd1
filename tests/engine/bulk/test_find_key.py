"""Duplicate keys of a load are named with the line that PostgreSQL would have stopped at, on every way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.changes.bulk import copy_files, find_key
from tests.engine.bulk.elsewhere import opened, refused
from tests.support.engine import Session

MANY = 21_000  # more than are staged as an INSERT's


async def where(session: Session, copy: str) -> str | None:
    report = (await refused(session, copy)).report
    assert report.sqlstate == "23505"
    return report.where


@pytest.mark.parametrize("rows", [100, MANY])
@pytest.mark.parametrize("executor", ["local", "auto"])
def test_the_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, executor: str) -> None:
    monkeypatch.setattr(copy_files, "MIN_TASK_BYTES", (1 << 10) if rows < MANY else (64 << 10))
    path = tmp_path / "rows.csv"
    file = f'\nfile "{path}"' if executor == "auto" else ""

    def write(*odd: tuple[int, str]) -> None:
        lines = [f'{i},"name\n{i}"\n' for i in range(rows)]
        lines[0] = "0,zero\n"  # PostgreSQL does not count line ends in quotes of the very first row
        for at, line in odd:
            lines[at] = line
        path.write_text("".join(lines))

    async def scenario() -> None:
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run(f"SET executor = {executor}")
            await session.run("CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE, c int)")
            copy = f"COPY t (a, b) FROM '{path}' (FORMAT csv)"
            write((rows - 3, '7,"x"\n'))
            assert await where(session, copy) == f"COPY t, line {2 * (rows - 3)}{file}"
            write((rows - 5, f'{rows - 5},"name\n{rows - 7}"\n'))
            assert await where(session, copy) == f"COPY t, line {2 * (rows - 5) + 1}{file}"
            # Behind rows that WHERE leaves out, the third with the key is the second.
            write((20, "7,x\n"), (rows - 3, "7,y\n"))
            left_out = f"{copy} WHERE b <> 'x'"
            assert await where(session, left_out) == f"COPY t, line {2 * (rows - 3) - 1}{file}"
            # The table has it: the first is one too many.
            await session.run("INSERT INTO t VALUES (30, 'old')")
            write()
            assert await where(session, copy) == f"COPY t, line 61{file}"
            await session.run("BEGIN")
            await session.run("DELETE FROM t")
            await session.run("INSERT INTO t VALUES (-1, NULL), (31, NULL)")
            assert await where(session, copy) == f"COPY t, line 63{file}"
            await session.run("ROLLBACK")
            assert await session.run("SELECT count(*) FROM t") == [("1",)]

    asyncio.run(scenario())


@pytest.mark.parametrize("executor", ["local", "auto"])
def test_several_files_other_formats_and_other_keys(tmp_path: Path, executor: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("".join(f"{i},n{i}\n" for i in range(50)))
    (folder / "2.csv").write_text("".join(f"{i},n{i}\n" for i in range(50, 100)) + "1000,N3\n")
    json = tmp_path / "rows.json"
    json.write_text("".join(f'{{"a": {i % 60}, "b": "{i}"}}\n' for i in range(100)))
    parquet = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table({"a": pa.array([*range(500), 3], pa.int32()), "b": [f"b{i}" for i in range(501)]}),
        parquet,
        row_group_size=200,
    )

    async def scenario() -> None:
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run(f"SET executor = {executor}")
            await session.run("CREATE TABLE t (a int, b text)")
            await session.run("CREATE UNIQUE INDEX low ON t (lower(b))")
            assert await where(session, f"COPY t FROM '{folder}' (FORMAT csv)") == (
                f'COPY t, line 51\nfile "{folder}/2.csv"'
            )
            await session.run("DROP INDEX low")
            await session.run("ALTER TABLE t ADD PRIMARY KEY (a)")
            for path, format_, line in ((json, "json", 61), (parquet, "parquet", 501)):
                found = await where(session, f"COPY t FROM '{path}' (FORMAT {format_})")
                assert found is not None
                assert found.splitlines()[0] == f"COPY t, line {line}"

    asyncio.run(scenario())


@pytest.mark.parametrize("executor", ["local", "auto"])
@pytest.mark.parametrize("rows", [100, MANY])
@pytest.mark.parametrize("where_sql", ["", "WHERE b <> -1"])
def test_nulls_that_are_equal_are_named_as_other_keys(
    tmp_path: Path, executor: str, rows: int, where_sql: str
) -> None:
    path = tmp_path / "rows.csv"

    def write(*nulls: tuple[int, int]) -> None:
        of = dict(nulls)
        path.write_text("".join(f"{'' if i in of else i},{of.get(i, i)}\n" for i in range(rows)))

    async def scenario() -> None:
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run(f"SET executor = {executor}")
            await session.run("CREATE TABLE t (a int, b int)")
            await session.run(f"CREATE UNIQUE INDEX ta ON t (a) NULLS NOT DISTINCT {where_sql}")
            copy = f"COPY t FROM '{path}' (FORMAT csv)"
            write((20, 20), (70, 70))
            assert str(await where(session, copy)).startswith("COPY t, line 71")
            if where_sql:
                write((20, -1), (70, 70), (71, -1))
                assert await session.run(copy) == []
            else:
                await session.run("INSERT INTO t VALUES (NULL, 1)")
            write((50, 50), (60, 60))
            line = 1 if where_sql else 51  # the lowest of the keys that are there twice
            assert str(await where(session, copy)).splitlines()[0] == f"COPY t, line {line}"

    asyncio.run(scenario())


def test_files_that_have_gone_meanwhile_leave_the_key_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{i}\n" for i in range(MANY)) + "5\n")
    look = find_key._known_before

    async def gone(*args: object) -> bool:
        path.unlink()
        return await look(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(find_key, "_known_before", gone)

    async def scenario() -> None:
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run("SET executor = local; CREATE TABLE t (a int PRIMARY KEY)")
            report = (await refused(session, f"COPY t FROM '{path}'")).report
            assert (report.detail, report.where) == ("Key (a)=(5) already exists.", None)

    asyncio.run(scenario())
