"""What DuckDB and Spark have scanned is watched by what the query asks of each table, as the row executor's scans are (U4).

a: BEGIN, writes a note, asks an engine for the rows of kind 'a'          b: changes a row of some kind, commits
a: COMMIT                                                                 refused where b's row was, or is, of kind 'a'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
ROWS = 400  # in a part; another 100 are hot

QUERIES = {
    "filter": "SELECT count(*), sum(v) FROM groups WHERE kind = 'a'",
    "join": "SELECT count(*) FROM groups g JOIN kinds k ON k.kind = g.kind WHERE k.good AND g.kind = 'a'",
    "insert": "INSERT INTO notes SELECT count(*) FROM groups WHERE kind = 'a'",
}
ELSEWHERE = "UPDATE groups SET v = v + 1 WHERE id = 2"  # of kind b
CONFLICTS = {
    "update": "UPDATE groups SET v = v + 1 WHERE id = 1",
    "insert": "INSERT INTO groups VALUES (1000, 'a', 1)",
    "delete": "DELETE FROM groups WHERE id = 3",
    "becomes": "UPDATE groups SET kind = 'a' WHERE id = 2",
    "was": "UPDATE groups SET kind = 'b' WHERE id = 1",
    "hot": "UPDATE groups SET v = v + 1 WHERE id = 451",
}


@pytest.fixture(
    scope="module",
    params=["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.timeout(900)])],
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
        start = "background" if request.param == "spark" else "off"
        running = ServerProcess(tmp_path_factory.mktemp("watched") / "data", "--spark-start", start)
    running.executor = request.param  # type: ignore[attr-defined]
    running.sql("CREATE TABLE groups (id int PRIMARY KEY, kind text, v int)")
    running.sql("CREATE TABLE kinds (kind text, good bool)")
    running.sql("CREATE TABLE notes (n bigint)")
    running.sql("INSERT INTO kinds VALUES ('a', true), ('b', false)")
    yield running
    assert running.stop() == 0


@pytest.fixture
def pair(server: ServerProcess) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """One that reads with the engine, and one that writes; odd ids are of kind a."""
    with (
        psycopg.connect(server.url, autocommit=True) as a,
        psycopg.connect(server.url, autocommit=True) as b,
    ):
        b.execute("TRUNCATE groups, notes")
        kinds = "SELECT g, CASE g % 2 WHEN 1 THEN 'a' ELSE 'b' END, 0 FROM generate_series({}, {}) g"
        b.execute("INSERT INTO groups " + kinds.format(1, ROWS))
        b.execute("CHECKPOINT")
        b.execute("INSERT INTO groups " + kinds.format(ROWS + 1, ROWS + 100))
        a.execute(f"SET executor = {server.executor}")  # type: ignore[attr-defined]
        plan = a.execute("EXPLAIN " + QUERIES["filter"]).fetchall()
        assert (f"Route: {server.executor}",) in plan  # type: ignore[attr-defined]
        yield a, b


@pytest.mark.parametrize("query", QUERIES)
def test_a_change_of_other_rows_is_nothing_to_it(
    pair: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], query: str
) -> None:
    a, b = pair
    a.execute("BEGIN")
    a.execute("INSERT INTO notes VALUES (0)")
    a.execute(QUERIES[query])
    b.execute(ELSEWHERE)
    b.execute("INSERT INTO groups VALUES (1002, 'b', 1)")
    b.execute("DELETE FROM groups WHERE id = 452")
    a.execute("INSERT INTO notes VALUES (1)")
    a.execute("COMMIT")
    assert a.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert b.execute("SELECT count(*) FROM notes WHERE n < 2").fetchone() == (2,)


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_a_change_of_what_it_read_refuses_it(
    pair: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], conflict: str
) -> None:
    a, b = pair
    a.execute("BEGIN")
    a.execute("INSERT INTO notes VALUES (0)")
    a.execute(QUERIES["filter"])
    b.execute(CONFLICTS[conflict])
    with pytest.raises(psycopg.errors.SerializationFailure, match="serialize"):
        a.execute("COMMIT")
    assert b.execute("SELECT count(*) FROM notes").fetchone() == (0,)


@pytest.mark.parametrize("query", ["join", "insert"])
def test_other_queries_are_refused_alike(
    pair: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], query: str
) -> None:
    a, b = pair
    a.execute("BEGIN")
    a.execute("INSERT INTO notes VALUES (0)")
    a.execute(QUERIES[query])
    b.execute(CONFLICTS["update"])
    with pytest.raises(psycopg.errors.SerializationFailure, match="serialize"):
        a.execute("COMMIT")


def test_what_was_scanned_before_the_first_write_is_compared_then(
    pair: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
) -> None:
    a, b = pair
    for change, refused in ((ELSEWHERE, False), (CONFLICTS["update"], True)):
        a.execute("BEGIN")
        a.execute(QUERIES["filter"])
        b.execute(change)
        if refused:
            with pytest.raises(psycopg.errors.SerializationFailure, match="serialize"):
                a.execute("INSERT INTO notes VALUES (1)")
            a.execute("ROLLBACK")
        else:
            a.execute("INSERT INTO notes VALUES (1)")
            a.execute("COMMIT")
