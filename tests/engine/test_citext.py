"""citext on every executor, on the wire, over restarts and into copies; what statements give is beside PostgreSQL's in extensions/citext.sql."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg.types import TypeInfo

from pgwire.codecs.text import citext
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

ASKED = (
    "SELECT count(*), count(DISTINCT name), count(DISTINCT name::text) FROM names",
    "SELECT lower(name::text), count(*), lower(min(name)::text), lower(max(name)::text) FROM names GROUP BY name ORDER BY name",
    "SELECT id FROM names WHERE name = 'NAME 7' ORDER BY id",
    "SELECT id, name FROM names WHERE name > 'Name 5' AND name < 'nAME 6' ORDER BY id",
    "SELECT id FROM names WHERE name IN ('NAME 7', 'name 8') ORDER BY id",
    "SELECT id, name FROM names ORDER BY name DESC, id LIMIT 20",
    "SELECT a.id, b.id FROM names a JOIN names b ON a.name = b.name AND a.id < b.id WHERE a.id < 40 ORDER BY 1, 2",
    "SELECT id, name::text || '!' FROM names WHERE length(name) > 6 ORDER BY id LIMIT 10",
    "SELECT id, rank() OVER (ORDER BY name) FROM names ORDER BY id LIMIT 20",
)


@pytest.fixture(scope="module")
def names(server: ServerProcess) -> Iterator[FieldsClient]:
    client = connect(server.port)
    client.run("CREATE EXTENSION IF NOT EXISTS citext")
    client.run("CREATE TABLE names (id int PRIMARY KEY, name citext, tags citext[])")
    client.run(
        "INSERT INTO names SELECT g, (CASE g % 3 WHEN 0 THEN 'Name ' WHEN 1 THEN 'NAME ' ELSE 'name ' END) || g % 70,"
        " ARRAY['Tag ' || g % 5, 'ÄÖ'] FROM generate_series(1, 3000) g"
    )
    yield client
    client.run("DROP EXTENSION citext CASCADE")
    client.run("DROP TABLE names")
    client.close()


def test_every_executor_compares_without_regard_to_case(names: FieldsClient) -> None:
    for asked in ASKED:
        found = {}
        for route in ("index", "local"):
            names.run(f"SET executor = {route}")
            found[route] = names.run(asked).rows
        assert found["index"], asked
        assert found["index"] == found["local"], asked
    names.run("RESET executor")
    names.run("SET verify_executors = on")
    for asked in ASKED:
        names.run(asked)
    names.run("RESET verify_executors")
    assert names.run(ASKED[0]).rows == [("3000", "70", "210")]


def test_patterns_have_no_regard_to_case_either(names: FieldsClient) -> None:
    asked = "SELECT count(*) FROM names WHERE name LIKE 'n%7'"
    for route in ("index", "local"):
        names.run(f"SET executor = {route}")
        assert names.run(asked).rows == [("300",)]
    names.run("RESET executor")


def test_an_index_serves_equality_and_ranges(names: FieldsClient) -> None:
    names.run("CREATE INDEX names_name ON names (name)")
    for condition in ("name = 'NAME 7'", "name IN ('a', 'NAME 7')", "name = 'x' AND id > 3"):
        shown = str(names.run(f"EXPLAIN SELECT id FROM names WHERE {condition}").rows)
        assert "names_name" in shown, condition
    for condition in ("name = 'NAME 7'::text", "name LIKE 'n%'"):
        assert "names_name" not in str(names.run(f"EXPLAIN SELECT id FROM names WHERE {condition}").rows)
    names.run("DROP INDEX names_name")


def test_drivers_read_and_write_it(names: FieldsClient, server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        info = TypeInfo.fetch(connection, "citext")
        assert info is not None
        assert info.oid
        assert info.array_oid
        info.register(connection)
        connection.execute("CREATE TEMP TABLE wire (a citext UNIQUE, b citext[])")
        connection.execute("INSERT INTO wire VALUES (%s, %s)", ("Ab", ["X", "Ärger"]))
        asked = "SELECT a, b FROM wire WHERE a = %s"
        assert connection.execute(asked, ("AB",)).fetchone() == ("Ab", ["X", "Ärger"])
        in_binary = connection.cursor(binary=True).execute(asked, ("AB",)).fetchone()
        assert in_binary == (b"Ab", [b"X", "Ärger".encode()])
        with connection.cursor().copy("COPY wire FROM STDIN") as copy:
            copy.write_row(("Cd", None))
        with connection.cursor().copy("COPY wire TO STDOUT (FORMAT binary)") as copy:
            data = b"".join(copy)
        with connection.cursor().copy("COPY wire (a) FROM STDIN") as copy:
            copy.write_row(("new",))
        assert b"Ab" in data
        assert b"Cd" in data
        with pytest.raises(psycopg.errors.UniqueViolation) as refused:
            connection.execute("INSERT INTO wire VALUES ('CD')")
        assert "(a)=(CD)" in str(refused.value.diag.message_detail)
        connection.execute("CREATE TEMP TABLE wire_too (LIKE wire)")
        with connection.cursor().copy("COPY wire_too FROM STDIN (FORMAT binary)") as copy:
            copy.write(data)
        assert connection.execute("SELECT count(*) FROM wire_too WHERE a = 'AB'").fetchone() == (1,)

    async def by_asyncpg() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="postgres", database="postgres"
        )
        try:
            found = await connection.fetch(
                "SELECT name, tags FROM names WHERE name = $1 AND id < 80", "NAME 7"
            )
            assert [tuple(row) for row in found] == [("NAME 7", ["Tag 2", "ÄÖ"]), ("name 7", ["Tag 2", "ÄÖ"])]
        finally:
            await connection.close()

    asyncio.run(by_asyncpg())


def test_it_outlasts_a_crash_and_goes_into_copies(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.sql(
        "CREATE SCHEMA s; CREATE EXTENSION citext SCHEMA s; CREATE TABLE t (a s.citext PRIMARY KEY, b s.citext DEFAULT 'D');"
        "INSERT INTO t VALUES ('One'), ('two'); CREATE VIEW v AS SELECT a OPERATOR(s.=) 'TWO' AS is_two, b FROM t; CHECKPOINT"
    )
    server.sql("CREATE DATABASE copied TEMPLATE postgres")
    server.kill()
    server = ServerProcess(tmp_path / "data")
    try:
        for database in ("postgres", "copied"):
            url = server.url.rsplit("/", 1)[0] + "/" + database
            with psycopg.connect(url, autocommit=True) as connection:
                with pytest.raises(psycopg.errors.UniqueViolation):
                    connection.execute("INSERT INTO t VALUES ('TWO')")
                assert connection.execute("SELECT is_two, b::text FROM v ORDER BY is_two").fetchall() == [
                    (False, "D"),
                    (True, "D"),
                ]
                made = connection.execute("CREATE TABLE u (a int); SELECT 'u'::regclass::oid::int")
                assert made.nextset()
                assert made.fetchall()[0][0] < 100_000
        with psycopg.connect(server.url.rsplit("/", 1)[0] + "/copied", autocommit=True) as copied:
            copied.execute("DROP EXTENSION citext CASCADE")
            with pytest.raises(psycopg.errors.UndefinedObject):
                copied.execute("SELECT 'a'::s.citext")
        assert server.sql("SELECT a FROM t WHERE a OPERATOR(s.=) 'ONE'") == [("One",)]
    finally:
        server.stop()


@pytest.mark.parametrize("text", ["", "a", "A", "aB c", "ÄÖ", "İi", "x" * 5000 + "Y", "ß", "\U0001f600Z"])
def test_a_value_is_its_text_and_compares_by_small_letters(text: str) -> None:
    value = citext.pack(text)
    assert citext.unpack(value) == text
    assert citext.key(value).decode() == citext.lower(text)
    assert citext.receive(citext.send(value)) == value
