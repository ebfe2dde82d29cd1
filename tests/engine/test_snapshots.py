"""pg_export_snapshot() and SET TRANSACTION SNAPSHOT: transactions of one moment, with PostgreSQL's refusals."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres import postgres, url_of  # noqa: F401 - a fixture
from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def two(server: ServerProcess) -> Iterator[tuple[Connection, Connection]]:
    with (
        psycopg.connect(server.url, autocommit=True) as a,
        psycopg.connect(server.url, autocommit=True) as b,
    ):
        yield a, b
        for c in (a, b):
            c.execute("ROLLBACK")


def value(c: Connection, sql: str) -> object:
    row = c.execute(sql).fetchone()
    assert row is not None
    return row[0]


def error(c: Connection, sql: str) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught:
        c.execute(sql)
    return caught.value.diag.sqlstate, caught.value.diag.message_primary


def test_an_importer_sees_what_the_exporter_sees(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("CREATE TABLE snap (n int PRIMARY KEY)")
    a.execute("INSERT INTO snap VALUES (1)")
    a.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    name = value(a, "SELECT pg_export_snapshot()")
    b.execute("INSERT INTO snap VALUES (2)")
    b.execute("ALTER TABLE snap ADD COLUMN later int")
    b.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    b.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
    assert value(b, "SELECT count(*) FROM snap") == 1
    a.execute("COMMIT")  # the importer goes on without it
    a.execute("DELETE FROM snap")
    assert b.execute("SELECT * FROM snap").fetchall() == [(1,)]
    b.execute("COMMIT")
    assert value(b, "SELECT count(*) FROM snap") == 0
    b.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert error(b, f"SET TRANSACTION SNAPSHOT '{name}'") == (
        "22023",
        f'invalid snapshot identifier: "{name}"',
    )
    b.execute("ROLLBACK")
    a.execute("DROP TABLE snap")


def test_an_importer_that_writes_must_find_what_it_read_unchanged(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("CREATE TABLE snapw (n int PRIMARY KEY, v int)")
    a.execute("INSERT INTO snapw VALUES (1, 0), (2, 0)")
    for changed, state in ((2, None), (1, "40001")):
        a.execute("BEGIN")
        name = value(a, "SELECT pg_export_snapshot()")
        b.execute(f"UPDATE snapw SET v = v + 1 WHERE n = {changed}")
        b.execute("BEGIN")
        b.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
        assert value(b, "SELECT v FROM snapw WHERE n = 1") == 0
        if state is None:
            b.execute("INSERT INTO snapw VALUES (3, 0)")
            b.execute("COMMIT")
        else:
            assert error(b, "INSERT INTO snapw VALUES (4, 0)")[0] == state
            b.execute("ROLLBACK")
        a.execute("COMMIT")
    a.execute("DROP TABLE snapw")


def test_a_writer_exports_what_is_committed(two: tuple[Connection, Connection]) -> None:
    a, b = two
    a.execute("CREATE TABLE snapx (n int)")
    a.execute("BEGIN")
    a.execute("INSERT INTO snapx VALUES (1)")
    name = value(a, "SELECT pg_export_snapshot()")
    assert value(a, "SELECT pg_export_snapshot()") != name
    b.execute("BEGIN READ ONLY")
    b.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
    a.execute("COMMIT")
    assert value(b, "SELECT count(*) FROM snapx") == 0
    b.execute("COMMIT")
    assert value(b, "SELECT count(*) FROM snapx") == 1
    a.execute("DROP TABLE snapx")


def test_holds_end_with_the_exporter(two: tuple[Connection, Connection]) -> None:
    a, b = two
    holds = "SELECT count(*) FROM holdfast_holds WHERE transaction IS NULL OR transaction = 0"
    before = value(b, holds)
    for end in ("COMMIT", "ROLLBACK", "SELECT 1/0"):
        a.execute("BEGIN")
        a.execute("SELECT pg_export_snapshot()")
        assert value(b, holds) != before
        if end.startswith("SELECT"):
            error(a, end)
        else:
            a.execute(end)
        assert value(b, holds) == before, end
        a.execute("ROLLBACK")


REFUSED = (
    ("BEGIN; SELECT 1", "SET TRANSACTION SNAPSHOT 'x'"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE; SAVEPOINT s", "SET TRANSACTION SNAPSHOT 'x'"),
    ("BEGIN ISOLATION LEVEL READ COMMITTED", "SET TRANSACTION SNAPSHOT 'x'"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION SNAPSHOT 'x'"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION SNAPSHOT '00000003-00000003-1'"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "SET LOCAL TRANSACTION SNAPSHOT 'x'"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE; SAVEPOINT s", "SELECT pg_export_snapshot()"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION SNAPSHOT '{committed}'"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION SNAPSHOT '{read only}'"),
)


def test_refusals_are_postgresqls(server: ServerProcess, postgres: str) -> None:  # noqa: F811
    found = []
    for url in (server.url, url_of(postgres)):
        with (
            psycopg.connect(url, autocommit=True) as a,
            psycopg.connect(url, autocommit=True) as b,
            psycopg.connect(url, autocommit=True) as c,
        ):
            a.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            b.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
            names = {
                "committed": value(a, "SELECT pg_export_snapshot()"),
                "read only": value(b, "SELECT pg_export_snapshot()"),
            }
            errors = []
            for setup, statement in REFUSED:
                c.execute(setup)
                errors.append(error(c, statement.format_map(names)))
                c.execute("ROLLBACK")
            found.append(errors)
    assert found[0] == found[1]


def test_an_error_about_what_was_made_meanwhile_says_so(server: ServerProcess) -> None:
    with (
        psycopg.connect(server.url) as reading,
        psycopg.connect(server.url, autocommit=True) as making,
    ):
        making.execute("CREATE TABLE touched (v int)")
        for missing, made in (
            ("SELECT * FROM made_meanwhile", "CREATE TABLE made_meanwhile (v int)"),
            ("SELECT w FROM made_meanwhile", "ALTER TABLE made_meanwhile ADD w int"),
            ("INSERT INTO meanwhile.t VALUES (1)", "CREATE SCHEMA meanwhile CREATE TABLE t (v int)"),
        ):
            reading.execute("SELECT count(*) FROM touched")
            making.execute("INSERT INTO touched VALUES (1)")  # so the block cannot go on in the present
            making.execute(made)
            with pytest.raises(psycopg.Error) as failed:
                reading.execute(missing)
            assert "made since this transaction's timestamp" in str(failed.value.diag.message_hint)
            reading.rollback()
            reading.execute(missing)
            reading.rollback()
        reading.execute("SELECT count(*) FROM pg_class")
        making.execute("CREATE TABLE made_too (v int)")
        with pytest.raises(psycopg.errors.UndefinedTable) as failed:
            reading.execute("SELECT * FROM never_made")
        assert failed.value.diag.message_hint is None
        reading.rollback()
        making.execute("DROP TABLE touched, made_meanwhile, made_too; DROP SCHEMA meanwhile CASCADE")


# -- pg_current_snapshot() and what became of transactions (manual 9.27.8) ---------------------------


@pytest.fixture
def outbox(two: tuple[Connection, Connection]) -> Iterator[tuple[Connection, Connection]]:
    a, _b = two
    a.execute("CREATE TABLE outbox (n int PRIMARY KEY, txid int8 DEFAULT txid_current())")
    yield two
    for c in two:
        c.execute("ROLLBACK")
    a.execute("DROP TABLE outbox")


ENDED = "SELECT n FROM outbox WHERE txid < txid_snapshot_xmin(txid_current_snapshot()) ORDER BY n"
SEEN = "SELECT n FROM outbox WHERE txid_visible_in_snapshot(txid, txid_current_snapshot()) ORDER BY n"


def numbers(c: Connection, sql: str) -> list[object]:
    return [n for (n,) in c.execute(sql)]


def test_xmin_passes_over_no_row_of_a_transaction_that_runs(outbox: tuple[Connection, Connection]) -> None:
    a, b = outbox
    a.execute("BEGIN")
    a.execute("INSERT INTO outbox VALUES (1)")
    b.execute("INSERT INTO outbox VALUES (2)")  # has a higher number, and is there first
    assert numbers(b, ENDED) == []
    assert numbers(b, SEEN) == [2]
    a.execute("COMMIT")
    assert numbers(b, ENDED) == numbers(b, SEEN) == [1, 2]
    a.execute("BEGIN")
    a.execute("SELECT n FROM outbox WHERE n = 1")  # may write yet, with the number of its beginning
    b.execute("INSERT INTO outbox VALUES (3)")
    assert numbers(b, ENDED) == [1, 2]
    a.execute("INSERT INTO outbox VALUES (4)")
    a.execute("COMMIT")
    assert numbers(b, ENDED) == [1, 2, 3, 4]


def test_a_reader_of_the_past_has_the_snapshot_of_then(outbox: tuple[Connection, Connection]) -> None:
    a, b = outbox
    a.execute("INSERT INTO outbox VALUES (1)")
    b.execute("BEGIN")
    assert numbers(b, "SELECT n FROM outbox") == [1]
    a.execute("INSERT INTO outbox VALUES (2)")
    later = value(a, "SELECT txid FROM outbox WHERE n = 2")
    # it asks only now: what it has not seen counts as running, though it has ended
    then = value(b, "SELECT txid_current_snapshot()::text")
    assert value(b, f"SELECT txid_visible_in_snapshot({later}, '{then}')") is False
    assert value(b, f"SELECT {later} < txid_snapshot_xmin('{then}')") is False
    assert value(b, f"SELECT txid_status({later})") == "committed"
    a.execute("INSERT INTO outbox VALUES (3)")
    assert numbers(b, ENDED) == numbers(b, SEEN) == [1]
    assert value(b, "SELECT pg_current_snapshot()::text") == then
    b.execute("COMMIT")
    assert numbers(b, ENDED) == numbers(b, SEEN) == [1, 2, 3]


def test_what_became_of_transactions(outbox: tuple[Connection, Connection]) -> None:
    a, b = outbox

    def status(number: object) -> object:
        return value(b, f"SELECT pg_xact_status('{number}')")

    a.execute("BEGIN")
    number = value(a, "SELECT pg_current_xact_id()::text::int8")
    assert status(number) == "in progress"
    a.execute("INSERT INTO outbox VALUES (1)")
    a.execute("COMMIT")
    assert status(number) == "committed"
    for begin in ("BEGIN", "BEGIN READ ONLY"):
        a.execute(begin)
        number = value(a, "SELECT txid_current()")
        assert status(number) == "in progress"
        a.execute("ROLLBACK")
        assert status(number) == "aborted", begin
    a.execute("BEGIN")
    a.execute("SAVEPOINT s")
    a.execute("INSERT INTO outbox VALUES (2)")
    number = value(a, "SELECT txid_current_if_assigned()")  # it writes, so it has a number
    a.execute("ROLLBACK TO s")
    a.execute("COMMIT")
    assert status(number) == "committed"
    a.execute("INSERT INTO outbox VALUES (3)")  # by itself
    assert status(value(b, "SELECT txid FROM outbox WHERE n = 3")) == "committed"
    assert status(3) is None  # long ago
    a.execute("BEGIN")
    number = value(a, "SELECT txid_current()")
    assert error(b, f"SELECT txid_status({number} + 1000)") == (
        "22023",
        f"transaction ID {number + 1000} is in the future",  # type: ignore[operator]
    )
