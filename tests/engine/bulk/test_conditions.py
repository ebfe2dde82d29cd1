"""WHERE, CHECK and generated columns over batches: the same rows, values and errors as row by row."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from engine.changes.bulk import copy_files
from engine.changes.writes.copy_conditions import Conditions
from tests.engine.bulk.elsewhere import opened
from tests.support.engine import Failed, Session

ROWS = 800
TABLE = """CREATE TABLE t (a int, b text, n numeric, p numeric(8,2), d date, ts timestamptz, i interval, r int[], j jsonb,
    k int DEFAULT 7, twice int GENERATED ALWAYS AS (a * 2) STORED, up text GENERATED ALWAYS AS (upper(b)) STORED,
    CONSTRAINT positive CHECK (p >= 0 OR b IS NULL), CONSTRAINT short CHECK (cardinality(r) < 4), CHECK (k = 7))"""
COLUMNS = {"csv": "a, b, n, p, d, ts, i, r, j", "parquet": "a, b, n, p, d, ts"}
"""Of Parquet files those that are read by column."""
CONDITIONS = [
    "a % 3 <> 0",
    "n > 1.5 AND d < '2024-06-01'",
    "b LIKE 'name 1%' OR i > '2 hours' OR r[1] = 5",
    "(j->>'k')::int > 3 AND ts >= '2024-03-01 00:00+00'",
    "k = 7 AND p = 1.50",
    "b IS NULL",
    "a < 0",
    "10 / (a - 500) <> 1",
    "a <> 500 AND 10 / (a - 500) <> 1",
]


def line(draw: random.Random, i: int, bad: dict[int, str]) -> str:
    if i in bad:
        return bad[i]
    cells = [
        f'"{i}"', f"name {i}", f"{draw.randrange(300) / 100}", f"{draw.randrange(4) / 2:.2f}", f"2024-{draw.randrange(1, 13):02}-01",
        f"2024-{draw.randrange(1, 13):02}-01 00:00:00+02", f"{draw.randrange(4)}:30:00",
        f'"{{{draw.randrange(9)},NULL}}"', f'"{{""k"": {draw.randrange(7)}}}"',
    ]  # fmt: skip
    return ",".join("" if at and draw.random() < 0.1 else cell for at, cell in enumerate(cells))


def write(path: Path, bad: dict[int, str]) -> None:
    draw = random.Random(3)
    path.write_text("".join(f"{line(draw, i, bad)}\n" for i in range(ROWS)))


def as_parquet(path: Path) -> Path:
    names = COLUMNS["csv"].split(", ")
    convert = pcsv.ConvertOptions(
        column_types=dict.fromkeys(names[1:], "string"),
        strings_can_be_null=True,
        include_columns=COLUMNS["parquet"].split(", "),
    )
    table = pcsv.read_csv(path, read_options=pcsv.ReadOptions(column_names=names), convert_options=convert)
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=200)
    return path.with_suffix(".parquet")


async def outcome(session: Session, copy: str) -> Any:
    await session.run("TRUNCATE t")
    try:
        await session.run(copy)
    except Failed as error:
        report = error.report
        return report.sqlstate, report.message, report.detail, report.where
    return await session.run("SELECT * FROM t ORDER BY a")


BAD = {
    "check": {400: "400,x,1,-1,2024-01-01,,,,", 700: "700,x,1,-1,2024-01-01,,,,"},
    "left out": {400: "-400,x,1,-1,2024-01-01,,,,"},
    "value": {400: "400,x,1,-1,2024-01-01,,,,", 300: "300,x,1,1,2024-13-01,,,,"},
    "generated": {600: "2000000000,x,1,1,2024-01-01,,,,"},
    "none": {},
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_batches_agree_with_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(copy_files, "MIN_TASK_BYTES", 32 << 10)
    applied: list[bool] = []
    apply, serves = Conditions.apply, Conditions.serves

    def counted(self: Conditions, rows: int, read: dict[str, Any]) -> Any:
        made = apply(self, rows, read)
        applied.append(made is not None)
        return made

    monkeypatch.setattr(Conditions, "apply", counted)

    async def scenario() -> None:
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run(TABLE)
            for name, bad in BAD.items():
                path = tmp_path / "rows.csv"
                write(path, bad)
                if kind == "parquet":
                    path = as_parquet(path)
                for condition in ["", *CONDITIONS] if name == "none" else ["", "a > 0"]:
                    if kind == "parquet" and ("i >" in condition or "j->" in condition):
                        continue
                    copy = f"COPY t ({COLUMNS[kind]}) FROM '{path}' (FORMAT {kind})" + (
                        f" WHERE {condition}" if condition else ""
                    )
                    applied.clear()
                    found = await outcome(session, copy)
                    assert applied, copy
                    if name == "none" and "a - 500" not in condition:
                        assert all(applied), copy
                    monkeypatch.setattr(Conditions, "serves", staticmethod(lambda spec: False))
                    applied.clear()
                    assert found == await outcome(session, copy), (name, copy)
                    assert not applied
                    monkeypatch.setattr(Conditions, "serves", staticmethod(serves))

    asyncio.run(scenario())


def test_rows_left_out_are_counted_and_the_server_reads_so_too(tmp_path: Path) -> None:
    """A load by the server itself, past the bound of its bulk path; WHERE over a default, and NOT NULL behind WHERE."""
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{i if i % 5 else ''},{i % 3}\n" for i in range(60_000)))

    async def scenario() -> None:
        async with opened(tmp_path) as (_database, session, _tasks):
            await session.run("SET executor = local")
            await session.run("CREATE TABLE t (a int NOT NULL, b int CHECK (b < 3), k int DEFAULT 4)")
            await session.run(
                f"COPY t (a, b) FROM '{path}' (FORMAT csv) WHERE a IS NOT NULL AND k > 3 AND b <> 1"
            )
            assert await session.run("SELECT count(*), count(a), sum(b), min(k) FROM t") == [
                ("32000", "32000", "32000", "4")
            ]
            with pytest.raises(Failed) as caught:
                await session.run(f"COPY t (a, b) FROM '{path}' (FORMAT csv) WHERE a IS NULL OR a < 50000")
            assert caught.value.report.where == 'COPY t, line 1: ",0"'
            with pytest.raises(Failed) as caught:
                await session.run(f"COPY t (b, a) FROM '{path}' (FORMAT csv) WHERE b IS NOT NULL AND a < 3")
            assert caught.value.report.sqlstate == "23514"

    asyncio.run(scenario())
