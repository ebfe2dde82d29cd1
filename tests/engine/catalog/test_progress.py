"""pg_stat_progress_copy, looked at while a COPY is held up by its client; other progress views have no rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

VIEW = (
    "SELECT relid::regclass::text, command, type, bytes_processed, bytes_total, tuples_processed, tuples_excluded"
    " FROM pg_stat_progress_copy WHERE pid = %s"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(
        tmp_path_factory.mktemp("progress"), "--server-files", str(tmp_path_factory.getbasetemp())
    )
    running.sql("CREATE TABLE loaded (a int, b text)")
    yield running
    assert running.stop() == 0


def looked_at(other: psycopg.Connection[Any], pid: int) -> tuple[Any, ...]:
    """Wait until rows have been counted (libpq keeps the last kilobytes back) and return what the view says then."""
    for _ in range(2000):
        seen = other.execute(VIEW, (pid,)).fetchone()
        if seen is not None and seen[5]:
            return seen
        time.sleep(0.01)
    raise AssertionError(f"nothing was counted: {other.execute(VIEW, (pid,)).fetchall()}")


@pytest.mark.parametrize("rows", [6000, 60_000], ids=["by row", "in bulk"])
def test_copy_from(server: ServerProcess, rows: int) -> None:
    line = b"1\tsomething\n"
    with (
        psycopg.connect(server.url, autocommit=True) as c,
        psycopg.connect(server.url, autocommit=True) as other,
    ):
        pid = c.info.backend_pid
        assert other.execute(VIEW, (pid,)).fetchall() == []
        with c.cursor().copy("COPY loaded FROM STDIN") as copy:
            copy.write(line * rows)
            seen = looked_at(other, pid)
            assert seen[:3] == ("loaded", "COPY FROM", "PIPE")
            assert 0 < seen[5] <= rows
            assert len(line) * seen[5] <= seen[3] <= len(line) * rows
            assert seen[4] == seen[6] == 0
        assert other.execute(VIEW, (pid,)).fetchall() == []


def test_copy_from_with_where(server: ServerProcess) -> None:
    with (
        psycopg.connect(server.url, autocommit=True) as c,
        psycopg.connect(server.url, autocommit=True) as other,
        c.cursor().copy("COPY loaded FROM STDIN WHERE a > 1") as copy,
    ):
        copy.write(b"1\tno\n2\tyes\n3\tyes\n" * 3000)
        seen = looked_at(other, c.info.backend_pid)
        assert abs(seen[5] - 2 * seen[6]) <= 2


def test_copy_to(server: ServerProcess) -> None:
    """A client that does not read holds it up."""
    with (
        psycopg.connect(server.url, autocommit=True) as c,
        psycopg.connect(server.url, autocommit=True) as other,
        c.cursor().copy(
            "COPY (SELECT g, repeat('x', 1000) FROM generate_series(1, 100000) g) TO STDOUT"
        ) as copy,
    ):
        first = copy.read()
        assert first
        seen = other.execute(VIEW, (c.info.backend_pid,)).fetchone()
        assert seen is not None
        assert seen[:3] == ("-", "COPY TO", "PIPE")
        assert 0 < seen[5] <= 100_000
        assert seen[3] >= seen[5] * 1000
        for _ in copy:
            pass


def test_a_file_has_a_size(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"1\tx\n" * 10)
    with psycopg.connect(server.url, autocommit=True) as c:
        assert c.execute(f"COPY loaded FROM '{path}'").rowcount == 10
        for view in ("copy", "vacuum", "analyze", "cluster", "basebackup", "create_index"):
            assert c.execute(f"SELECT * FROM pg_stat_progress_{view}").fetchall() == []
