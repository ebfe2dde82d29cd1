"""Very long statements: an answer or a clean refusal, planned beside the event loop, in steps that grow with their length."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine.index.executor import IndexExecutor
from engine.index.from_plan import FromPlanner
from engine.reads.planning import LONG_TEXT
from sqllogictest.client import ServerError
from tests.support.engine import Session, open_database
from tests.support.fields import connect
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk


def joined(tables: int, how: str = " JOIN hub h{} USING (id)") -> str:
    return "SELECT count(*) FROM hub h0" + "".join(how.format(n) for n in range(1, tables))


MANY: dict[str, tuple[str, object]] = {
    "1,000 joins": (joined(1000), "1"),
    "1,000 lateral items": (joined(1000, ", LATERAL (SELECT h0.id) l{}"), "1"),
    "10,000 joins": (joined(10_000), "54001"),
    "5,000 expressions in IN": (f"SELECT count(*) FROM hub WHERE id IN ({','.join(f'{n}+0' for n in range(5000))})", "1"),
    "100,000 numbers in IN": (f"SELECT count(*) FROM hub WHERE id IN ({','.join(map(str, range(100_000)))})", "1"),
    "1,600 columns": (f"CREATE TEMP TABLE wide ({','.join(f'c{n} int' for n in range(1600))})", None),
    "1,601 columns": (f"CREATE TEMP TABLE wider ({','.join(f'c{n} int' for n in range(1601))})", "54011"),
    "1,665 columns of a result": (f"SELECT {','.join('1' for _ in range(1665))}", "54011"),
    "10,000 parentheses": (f"SELECT {'(' * 10_000}1{')' * 10_000}", "1"),
    "10,000 sub-selects": (f"SELECT {'(SELECT ' * 10_000}1{')' * 10_000}", "54001"),
    "10,000 CASEs in each other": (f"SELECT {'CASE WHEN true THEN ' * 10_000}1{' END' * 10_000}", "54001"),
    "100,000 NOTs": (f"SELECT {'NOT ' * 100_000}true", "54001"),
    "100,000 arrays in each other": (f"SELECT {'ARRAY[' * 100_000}1{']' * 100_000}", "54001"),
    "10,000 brackets of a jsonb": (f"SELECT '{'[' * 10_000}{']' * 10_000}'::jsonb", "54001"),
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_it_is_answered_or_refused_and_the_next_one_runs(server: ServerProcess, name: str) -> None:
    sql, expected = MANY[name]
    client = connect(server.port, timeout_s=280)
    client.run("CREATE TEMP TABLE hub (id int PRIMARY KEY)")
    client.run("INSERT INTO hub VALUES (1)")
    got: object
    try:
        rows = client.run(sql).rows
        got = rows[0][0] if rows else None
    except ServerError as error:
        got = error.sqlstate
    assert got in (expected, "54001")  # how deep is too deep depends on the platform
    assert client.run("SELECT count(*) FROM hub").rows == [("1",)]
    client.close()


def test_a_long_statement_is_compiled_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    prepare = IndexExecutor.prepare

    def watched(self: IndexExecutor, *args: Any) -> Any:
        threads.append(threading.get_ident())
        return prepare(self, *args)

    monkeypatch.setattr(IndexExecutor, "prepare", watched)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE hub (id int PRIMARY KEY, n int)")
        numbers = ",".join(map(str, range(LONG_TEXT)))
        for sql in (
            f"SELECT count(*) FROM hub WHERE id IN ({numbers})",
            f"INSERT INTO hub SELECT n, n FROM unnest(ARRAY[{numbers}]) n WHERE n < 3",
            f"UPDATE hub SET n = 0 WHERE id IN ({numbers})",
        ):
            threads.clear()
            await session.run(sql)
            assert threads, sql
            assert threading.get_ident() not in threads, sql
        assert await session.run("SELECT count(*), sum(n) FROM hub") == [("3", "0")]
        await database.close()

    asyncio.run(main())


@pytest.mark.parametrize("how", [" JOIN hub h{} USING (id)", ", hub h{}", ", LATERAL (SELECT h0.id) l{}"])
def test_ordering_joins_looks_at_each_table_a_few_times(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    rank: Callable[..., Any] = FromPlanner._rank

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return rank(*args)

    monkeypatch.setattr(FromPlanner, "_rank", counted)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE hub (id int PRIMARY KEY)")
        await session.run("SET executor = index")
        await session.run("INSERT INTO hub VALUES (1)")
        assert await session.run(joined(80, how)) == [("1",)]
        await database.close()

    asyncio.run(main())
    assert looks < 80 * 5
