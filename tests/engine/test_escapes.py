r"""``standard_conforming_strings = off``: every way a text comes in by, warnings, and that plans of both kinds are kept apart."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.server import ServerProcess

OFF = "SET standard_conforming_strings = off"


@pytest.fixture
def client(server: ServerProcess) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(server.url, autocommit=True)


def test_every_way_in(client: psycopg.Connection[tuple[object, ...]]) -> None:
    assert client.info.parameter_status("standard_conforming_strings") == "on"
    on = client.execute(r"SELECT 'a\\b'", prepare=False).fetchall()
    client.execute(OFF)
    assert client.info.parameter_status("standard_conforming_strings") == "off"
    off = [
        client.execute(r"SELECT 'a\\b'", prepare=False).fetchall(),
        client.execute(r"SELECT 'a\\b'", prepare=True).fetchall(),
        client.execute(r"SELECT 'a\\b' WHERE %s", (True,), prepare=True).fetchall(),
        client.execute(r"SELECT 'a\\b' /* " + "x" * 3_000_000 + " */").fetchall(),
        client.execute(r"SELECT 'a\\b' /* " + "x" * 3_000_000 + " */", prepare=True).fetchall(),
    ]
    client.execute(r"PREPARE p AS SELECT 'a\\b'")
    off.append(client.execute("EXECUTE p").fetchall())
    client.execute(r"CREATE TEMP TABLE kept (t text DEFAULT 'a\\b'); INSERT INTO kept DEFAULT VALUES")
    client.execute(r"CREATE TEMP VIEW looked AS SELECT 'a\\b' AS t")
    off.append(client.execute("SELECT t FROM kept").fetchall())
    off.append(client.execute("SELECT t FROM looked").fetchall())
    client.execute(r"DO $$ BEGIN EXECUTE 'UPDATE kept SET t = ''a\\\\b\\\\'''; END $$")
    client.execute(r"DO $$ BEGIN EXECUTE $q$UPDATE kept SET t = 'a\\b'$q$; END $$")
    off.append(client.execute("SELECT t FROM kept").fetchall())
    with client.cursor().copy(r"COPY (SELECT 'a\\b') TO STDOUT (DELIMITER '\t')") as copy:
        assert b"".join(bytes(piece) for piece in copy) == b"a\\\\b\n"
    assert off == [[("a\\b",)]] * len(off)
    shown = client.execute("SELECT statement FROM pg_prepared_statements WHERE name = 'p'").fetchone()
    assert shown == (r"PREPARE p AS SELECT 'a\\b'",)
    client.execute("SET standard_conforming_strings = on")
    assert client.execute(r"SELECT 'a\\b'", prepare=False).fetchall() == on == [("a\\\\b",)]
    client.close()


def test_warnings_and_errors(client: psycopg.Connection[tuple[object, ...]]) -> None:
    told: list[tuple[str | None, str | None, str | None]] = []
    client.add_notice_handler(lambda d: told.append((d.sqlstate, d.severity, d.statement_position)))
    client.execute(r"SELECT 'a\\b'")
    assert told == []
    client.execute(OFF)
    client.execute(r"SELECT 'a\\b', E'\n', 'c\n'")
    assert told == [("22P06", "WARNING", "8"), ("22P06", "WARNING", "23")]
    client.execute("SET escape_string_warning = off")
    client.execute(r"SELECT 'a\\b'")
    assert len(told) == 2
    for sql, sqlstate in (
        (r"SELECT 'a\u12'", "22025"),
        (r"SELECT 'a\'", "42601"),
        ("SELECT U&'a'", "0A000"),
    ):
        for prepare in (False, True):
            with pytest.raises(psycopg.Error) as caught:
                client.execute(sql, prepare=prepare)
            assert caught.value.sqlstate == sqlstate
    with pytest.raises(psycopg.errors.UndefinedColumn) as undefined:
        client.execute(r"SELECT 'a\'b\'', missing")
    assert undefined.value.diag.statement_position == "18"
    client.close()


def test_set_within_a_message_holds_from_the_next_one(client: psycopg.Connection[tuple[object, ...]]) -> None:
    """A message is read before any of it runs, as in PostgreSQL."""
    cursor = client.execute(OFF + r"; SELECT 'a\\b'")
    cursor.nextset()
    assert cursor.fetchall() == [("a\\\\b",)]
    assert client.execute(r"SELECT 'a\\b'").fetchall() == [("a\\b",)]
    client.close()
