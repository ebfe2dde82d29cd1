"""Indexes that CONCURRENTLY leaves behind where it fails: by time-outs as by errors, across a restart, and without a part in any answer.

What they are and what may be done with them is compared with PostgreSQL (tests/differential/scripts/statements/indexes_left_invalid.sql).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess

INDEXES = "SELECT indexrelid::regclass, indisvalid, indisready FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1"


@contextmanager
def running(path: Path) -> Iterator[Callable[[], Client]]:
    """Run a server; yields what connects to it."""
    server = ServerProcess(path / "data")
    with ExitStack() as clients:
        yield lambda: clients.enter_context(closing(server.connect()))
    assert server.stop() == 0


def test_left_behind_by_errors_and_kept_across_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as connect:
        client = connect()
        client.run("CREATE TABLE t (a int, b int)")
        client.run("INSERT INTO t VALUES (1, 1), (1, 2), (2, 0)")
        for sql, sqlstate in (
            ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "23505"),
            ("CREATE INDEX CONCURRENTLY j ON t ((1 / b)) WHERE a > 0", "22012"),
        ):
            with pytest.raises(ServerError) as caught:
                client.run(sql)
            assert caught.value.sqlstate == sqlstate
    with running(tmp_path) as connect:
        client = connect()
        assert client.run(INDEXES).rows == [("i", "f", "f"), ("j", "f", "f")]
        client.run("INSERT INTO t VALUES (1, 3)")
        assert not any("Index" in row[0] for row in client.run("EXPLAIN SELECT * FROM t WHERE a = 1").rows)
        client.run("DELETE FROM t WHERE b <> 2")
        client.run("REINDEX TABLE t")
        assert client.run(INDEXES).rows == [("i", "t", "t"), ("j", "t", "t")]
        with pytest.raises(ServerError, match="i") as caught:
            client.run("INSERT INTO t VALUES (1, 4)")
        assert caught.value.sqlstate == "23505"
        assert any(
            "Index" in row[0] for row in client.run("EXPLAIN SELECT * FROM t WHERE 1 / b = 0 AND a > 0").rows
        )
        assert client.run("SELECT * FROM t WHERE 1 / b = 0 AND a > 0").rows == [("1", "2")]


def test_left_behind_by_a_timeout(tmp_path: Path) -> None:
    """Of a table that others keep locked nothing is left, and who has given up gets an answer all the same."""
    with running(tmp_path) as connect:
        client, other = connect(), connect()
        client.run("CREATE TABLE t (a int)")
        client.run("INSERT INTO t SELECT generate_series(1, 100000)")
        client.run(
            "CREATE FUNCTION slow(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN a * a; END'"
        )
        client.run("SET statement_timeout = 200")
        with pytest.raises(ServerError) as caught:
            client.run("CREATE INDEX CONCURRENTLY i ON t (slow(a))")
        assert caught.value.sqlstate == "57014"
        assert client.run(INDEXES).rows == [("i", "f", "f")]
        other.run("BEGIN")
        other.run("INSERT INTO t VALUES (0)")
        with pytest.raises(ServerError) as caught:
            client.run("CREATE INDEX CONCURRENTLY j ON t (a)")
        assert caught.value.sqlstate == "57014"
        other.run("ROLLBACK")
        assert client.run(INDEXES).rows == [("i", "f", "f")]
        client.run("DROP INDEX CONCURRENTLY i")
        assert client.run(INDEXES).rows == []
