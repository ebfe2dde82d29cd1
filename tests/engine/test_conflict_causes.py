"""Every 40001 and 40P01 has a cause, and holdfast_conflicts counts by it."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

import engine
from engine.base.limits import KeepsChanging
from tests.support.server import ServerProcess
from txn.base.errors import Cause

ROOT = Path(engine.__file__).parent.parent
STATES = ("40001", "40P01")
MAKERS = {
    "pgwire/sqlstate.py",
    "engine/session/errors.py",
    "engine/base/limits.py",
    "engine/base/losses.py",
}
"""Of what has a cause: reports of ``Lost``, and ``KeepsChanging``."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("conflict_causes"))
    running.sql("CREATE TABLE t (id int PRIMARY KEY, kind text, v int)")
    running.sql("INSERT INTO t SELECT g, 'a', 0 FROM generate_series(1, 4) g")
    yield running
    assert running.stop() == 0


def sources() -> Iterator[tuple[str, str]]:
    for package in ("txn", "engine", "planner", "pgwire"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text()


def test_no_source_makes_these_errors_without_a_cause() -> None:
    used: set[str] = set()
    for name, text in sources():
        if name not in MAKERS and any(state in text for state in STATES):  # in comments, too
            for node in ast.walk(ast.parse(text)):
                assert not (isinstance(node, ast.Constant) and node.value in STATES), f"{name}:{node.lineno}"
        if name != "engine/base/losses.py":
            used.update(re.findall(r"\bCause\.([A-Z_]+)\b", text))
    assert used == set(Cause.__members__)
    assert KeepsChanging.__init__.__annotations__["cause"] == "Cause"


RACES = [
    ("key_read", ["SELECT v FROM t WHERE id = 1"], "UPDATE t SET v = v + 1 WHERE id = 1", ["INSERT INTO t VALUES (9, 'z', 0)"]),
    ("range_read", ["SELECT v FROM t WHERE id > 3 ORDER BY id"], "INSERT INTO t VALUES (7, 'b', 0)", ["INSERT INTO t VALUES (9, 'z', 0)"]),
    ("scan_read", ["SELECT v FROM t WHERE kind = 'a'"], "UPDATE t SET v = v + 1 WHERE id = 2", ["INSERT INTO t VALUES (9, 'z', 0)"]),
    ("table_read", ["SELECT sum(v) FROM t"], "UPDATE t SET v = v + 1 WHERE id = 2", ["INSERT INTO t VALUES (9, 'z', 0)"]),
    ("scan_watched", ["UPDATE t SET v = 5 WHERE kind = 'a'"], "INSERT INTO t VALUES (0, 'a', 0)", ["SELECT 1"]),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "first", "other", "then"), RACES, ids=[race[0] for race in RACES])
def test_a_race_that_the_client_hears_of_is_counted(
    server: ServerProcess, cause: str, first: list[str], other: str, then: list[str]
) -> None:
    async def main() -> None:
        a, b = [await asyncpg.connect(server.url) for _ in range(2)]
        try:
            before = await counted(b)
            await a.execute("BEGIN")
            for text in first:
                await a.execute(text)
            await b.execute(other)
            with pytest.raises(asyncpg.SerializationError):
                await a.execute("; ".join([*then, "COMMIT"]))
            await a.execute("ROLLBACK")
            after = await counted(b)
            key = (cause, "40001", "t")
            assert after.pop(key) == (0, before.pop(key, (0, 0))[1] + 1)
            assert after == before
        finally:
            await b.execute("DELETE FROM t WHERE id NOT BETWEEN 1 AND 4")
            await a.close()
            await b.close()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_deadlock_is_counted_and_a_statement_that_runs_again(server: ServerProcess) -> None:
    async def main() -> None:
        a, b = [await asyncpg.connect(server.url) for _ in range(2)]
        try:
            before = await counted(b)
            await a.execute("BEGIN; UPDATE t SET v = 1 WHERE id = 1")
            await b.execute("BEGIN; UPDATE t SET v = 1 WHERE id = 2")
            both = [
                asyncio.ensure_future(c.execute(f"UPDATE t SET v = 2 WHERE id = {other}"))
                for c, other in ((a, 2), (b, 1))
            ]
            failed = [
                e for e in await asyncio.gather(*both, return_exceptions=True) if isinstance(e, Exception)
            ]
            assert [type(e) for e in failed] == [asyncpg.DeadlockDetectedError]
            for connection in (a, b):
                with suppress(asyncpg.PostgresError):
                    await connection.execute("ROLLBACK")
            key = ("deadlock_changes", "40P01", "t")
            assert (await counted(b))[key] == (0, before.get(key, (0, 0))[1] + 1)

            # an UPDATE by itself that scans waits for a row, which is another one then: it runs again
            retried = sum(n for n, _failed in (await counted(b)).values())
            await a.execute("BEGIN; UPDATE t SET kind = 'b' WHERE id = 3")
            again = asyncio.ensure_future(b.execute("UPDATE t SET v = v + 1 WHERE kind = 'a' AND v < 100"))
            while not await a.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
            await a.execute("COMMIT")
            await again
            assert sum(n for n, _failed in (await counted(b)).values()) == retried + 1
        finally:
            await a.close()
            await b.close()

    asyncio.run(asyncio.wait_for(main(), 30))


async def counted(connection: asyncpg.Connection) -> dict[tuple[str, str, str], tuple[int, int]]:
    rows = await connection.fetch("SELECT cause, sqlstate, relname, retried, failed FROM holdfast_conflicts")
    return {(r[0], r[1], r[2]): (r[3], r[4]) for r in rows}
