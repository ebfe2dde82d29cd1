"""A block that has only read finds what others have made since, where all that it has read is as it was."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def two(server: ServerProcess) -> Iterator[tuple[Connection, Connection]]:
    """One that keeps a block open, having read ``seen``, and one that makes things beside it."""
    path = "-c search_path=catching_up"
    with (
        psycopg.connect(server.url, autocommit=True, options=path) as a,
        psycopg.connect(server.url, autocommit=True, options=path) as b,
    ):
        b.execute("CREATE SCHEMA catching_up")
        b.execute("CREATE TABLE seen (k int PRIMARY KEY, v int); INSERT INTO seen VALUES (1, 10), (2, 20)")
        b.execute("CREATE TABLE beside (n int)")
        a.execute("BEGIN")
        yield a, b
        a.execute("ROLLBACK")
        b.execute("DROP SCHEMA catching_up CASCADE")


def missing(c: Connection, sql: str) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught:
        c.execute(sql)
    return caught.value.diag.sqlstate, caught.value.diag.message_hint


HINT = "It has been made since this transaction's timestamp. End the transaction and begin another to see it."

READS = {
    "by key": "SELECT v FROM seen WHERE k = 1",
    "by keys": "SELECT v FROM seen WHERE k IN (1, 3)",
    "range": "SELECT v FROM seen WHERE k > 0 ORDER BY k",
    "scan": "SELECT sum(v) FROM seen",
    "condition": "SELECT count(*) FROM seen WHERE v > 5",
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_table_made_since_is_found_and_with_it_the_present(
    two: tuple[Connection, Connection], read: str
) -> None:
    a, b = two
    before = a.execute(read).fetchall()
    b.execute("INSERT INTO beside VALUES (7)")
    b.execute("CREATE TABLE made AS SELECT 5 AS five")
    assert a.execute("SELECT five FROM made").fetchall() == [(5,)]
    assert a.execute("SELECT n FROM beside").fetchall() == [(7,)]
    assert a.execute(read).fetchall() == before
    a.execute("INSERT INTO made VALUES (6)")
    a.execute("COMMIT")
    assert b.execute("SELECT * FROM made ORDER BY 1").fetchall() == [(5,), (6,)]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_not_where_something_it_has_read_has_changed(two: tuple[Connection, Connection], read: str) -> None:
    a, b = two
    before = a.execute(read).fetchall()
    b.execute("UPDATE seen SET v = v + 1 WHERE k = 1")
    b.execute("CREATE TABLE made (n int)")
    a.execute("SAVEPOINT s")
    assert missing(a, "SELECT n FROM made") == ("42P01", HINT)
    a.execute("ROLLBACK TO s")
    assert a.execute(read).fetchall() == before


def test_not_where_a_row_came_that_it_had_looked_for(two: tuple[Connection, Connection]) -> None:
    a, b = two
    assert a.execute("SELECT v FROM seen WHERE k = 3").fetchall() == []
    b.execute("INSERT INTO seen VALUES (3, 30)")
    b.execute("CREATE TABLE made (n int)")
    assert missing(a, "SELECT n FROM made") == ("42P01", HINT)


def test_not_where_a_table_it_has_read_is_another_now(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("SELECT v FROM seen WHERE k = 1")
    b.execute("ALTER TABLE seen ADD COLUMN later int")
    assert missing(a, "SELECT later FROM seen") == ("42703", HINT)


def test_a_column_of_a_table_that_it_has_not_read(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("SELECT v FROM seen WHERE k = 1")
    b.execute("ALTER TABLE beside ADD COLUMN later int DEFAULT 4")
    b.execute("INSERT INTO beside VALUES (1)")
    assert a.execute("SELECT later FROM beside WHERE n = %s", (1,)).fetchall() == [(4,)]


def test_not_while_a_cursor_reads(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("DECLARE c CURSOR FOR SELECT k FROM seen ORDER BY k")
    b.execute("CREATE TABLE made (n int)")
    a.execute("SAVEPOINT s")
    assert missing(a, "SELECT n FROM made") == ("42P01", HINT)
    a.execute("ROLLBACK TO s")
    assert a.execute("FETCH ALL FROM c").fetchall() == [(1,), (2,)]
    a.execute("CLOSE c")
    assert a.execute("SELECT n FROM made").fetchall() == []


def test_not_once_its_moment_was_told(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("SELECT pg_export_snapshot()")
    b.execute("CREATE TABLE made (n int)")
    assert missing(a, "SELECT n FROM made") == ("42P01", HINT)
