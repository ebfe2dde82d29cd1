"""SQL functions in defaults, checks, generated columns, indexes and domains: what is stored and found is right whatever becomes of them."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sqllogictest.client import Client, ServerError, Target
from tests.support.server import ServerProcess

FUNCTIONS = """
CREATE SCHEMA kc;
SET search_path = kc, public;
CREATE FUNCTION low(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE FUNCTION fine(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$SELECT low($1) <> 'bad'$$;
CREATE FUNCTION reads(text) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM pg_class WHERE relname = $1';
CREATE TABLE words (id int PRIMARY KEY, w text CHECK (fine(w)), g text GENERATED ALWAYS AS (low(w)) STORED, d text DEFAULT low('DEF'));
CREATE INDEX words_low ON words (low(d || w));
INSERT INTO words (id, w) SELECT n, 'W' || n FROM generate_series(1, 3000) n;
"""


@pytest.fixture
def words(server: ServerProcess) -> ServerProcess:
    server.sql("DROP SCHEMA IF EXISTS kc CASCADE")
    server.sql(FUNCTIONS)
    return server


def ids(server: ServerProcess, key: str, executor: str) -> list[tuple[str | None, ...]]:
    client = server.connect()
    client.run("SET search_path = kc, public")
    client.run(f"SET executor = {executor}")
    rows = [tuple(row) for row in client.run(f"SELECT id FROM words WHERE low(d || w) = '{key}'").rows]
    client.close()
    return rows


def refused(server: ServerProcess, sql: str) -> ServerError:
    with pytest.raises(ServerError) as caught:
        server.sql(f"SET search_path = kc, public; {sql}")
    return caught.value


def test_every_executor_finds_by_what_a_function_gives_also_after_it_was_replaced(
    words: ServerProcess,
) -> None:
    plan = words.sql("EXPLAIN SELECT id FROM kc.words WHERE kc.low(d || w) = 'defw77'")
    assert any("words_low" in str(line) for line in plan)
    for executor in ("auto", "index", "local"):
        assert ids(words, "defw77", executor) == [("77",)]
    words.sql(
        "CREATE OR REPLACE FUNCTION kc.low(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT reverse(lower($1))'"
    )
    plan = words.sql("EXPLAIN SELECT id FROM kc.words WHERE kc.low(d || w) = '77wfed'")
    assert any("words_low" in str(line) for line in plan)
    for executor in ("auto", "index", "local"):
        assert ids(words, "77wfed", executor) == [("77",)]
        assert ids(words, "defw77", executor) == []
    # values that are stored stay what they are
    assert words.sql("SELECT g FROM kc.words WHERE id = 77") == [("w77",)]
    # through a function that calls it
    words.sql("CREATE INDEX words_fine ON kc.words (kc.fine(w), id)")
    words.sql(
        "CREATE OR REPLACE FUNCTION kc.low(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT 'bad'$$"
    )
    client = words.connect()
    client.run("SET search_path = kc, public")
    for condition, count in {"NOT fine(w)": "9", "fine(w)": "0"}.items():
        found = client.run(f"SELECT count(*) FROM words WHERE {condition} AND id < 10").rows
        assert [tuple(row) for row in found] == [(count,)]
    client.close()
    assert refused(words, "INSERT INTO words (id, w) VALUES (9000, 'x')").sqlstate == "23514"


def test_bodies_do_not_depend_on_who_stores(words: ServerProcess) -> None:
    # fine() calls low() by name: it is found wherever the session looks
    words.sql("SET search_path = pg_catalog; INSERT INTO kc.words (id, w) VALUES (4000, 'Four')")
    assert words.sql("SELECT g, d FROM kc.words WHERE id = 4000") == [("four", "def")]
    error = refused(words, "INSERT INTO words (id, w) VALUES (4001, 'BAD')")
    assert (error.sqlstate, "words_w_check" in error.message) == ("23514", True)


def test_a_replacement_waits_for_rows_that_were_checked_by_the_old_body(words: ServerProcess) -> None:
    writer, other = words.connect(), words.connect()
    writer.run("BEGIN")
    writer.run("INSERT INTO kc.words (id, w) VALUES (5000, 'Five')")
    changing = "CREATE OR REPLACE FUNCTION kc.low(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1'"
    with pytest.raises(ServerError) as caught:
        other.run(f"SET lock_timeout = 300; {changing}")
    assert caught.value.sqlstate == "55P03"
    other.run("RESET lock_timeout")
    thread = threading.Thread(target=other.run, args=(changing,))
    thread.start()
    writer.run("COMMIT")
    thread.join()
    assert words.sql("SELECT id FROM kc.words WHERE kc.low(d || w) = 'defFive'") == [("5000",)]
    writer.close()
    other.close()


def test_what_cannot_be_evaluated_row_by_row_is_refused(words: ServerProcess) -> None:
    for sql in (
        "CREATE TABLE n (a text CHECK (reads(a) = 0))",
        "CREATE DOMAIN n AS text CHECK (reads(VALUE) = 0)",
        "ALTER TABLE words ADD CHECK (reads(w) = 0)",
        "COPY words (id, w) FROM STDIN WHERE reads(w) > 0",
        "CREATE OR REPLACE FUNCTION low(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT max(w) FROM words'",
        "CREATE OR REPLACE FUNCTION low(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT max(w) FROM words; SELECT $1'",
    ):
        error = refused(words, sql)
        assert (error.sqlstate, "SQL function" in error.message) == ("0A000", True), sql
    assert ids(words, "defw77", "auto") == [("77",)]


def test_whoever_stores_a_row_may_call_its_functions(words: ServerProcess) -> None:
    words.sql("DROP ROLE IF EXISTS kc_writer; CREATE ROLE kc_writer; GRANT USAGE ON SCHEMA kc TO kc_writer")
    words.sql("GRANT INSERT, SELECT, UPDATE ON kc.words TO kc_writer")
    words.sql("SET ROLE kc_writer; INSERT INTO kc.words (id, w) VALUES (6000, 'Six')")
    words.sql("REVOKE EXECUTE ON FUNCTION kc.fine(text) FROM public")
    for sql in (
        "INSERT INTO kc.words (id, w, d) VALUES (6001, 'x', 'y')",
        "UPDATE kc.words SET w = 'z' WHERE id = 1",
    ):
        error = refused(words, f"SET ROLE kc_writer; {sql}")
        assert (error.sqlstate, error.message) == ("42501", "permission denied for function fine")
    words.sql(
        "GRANT EXECUTE ON FUNCTION kc.fine(text) TO public; REVOKE EXECUTE ON FUNCTION kc.low(text) FROM public"
    )
    error = refused(words, "SET ROLE kc_writer; INSERT INTO kc.words (id, w) VALUES (6001, 'x')")
    assert (error.sqlstate, error.message) == ("42501", "permission denied for function low")


def test_functions_and_range_types_outlast_kill_9_and_are_copied(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--spark-start", "off")
    try:
        server.sql(FUNCTIONS)
        server.sql("CREATE DOMAIN kc.word AS text DEFAULT kc.low('DOM') CHECK (kc.fine(VALUE))")
        server.sql("CREATE TABLE kc.of_domain (a kc.word, b int)")
        server.sql("CREATE TYPE span AS RANGE (subtype = float8)")
        server.sql(
            "CREATE TABLE t (id int, r span DEFAULT span(1, 2), m span_multirange, CHECK (r <> span(0, 0)))"
        )
        server.sql("CREATE INDEX ON t (r); INSERT INTO t VALUES (1, '[1,3]', '{[1,2)}')")
        server.kill()
        server = ServerProcess(tmp_path / "data", "--spark-start", "off")
        server.sql(
            "INSERT INTO kc.words (id, w) VALUES (7000, 'Seven'); INSERT INTO kc.of_domain (b) VALUES (1)"
        )
        assert refused(server, "INSERT INTO of_domain VALUES ('BAD')").sqlstate == "23514"
        assert ids(server, "defseven", "auto") == [("7000",)]
        server.sql("INSERT INTO t (id) VALUES (2)")
        both = [("1", "[1,3]", "{[1,2)}"), ("2", "[1,2)", None)]
        assert server.sql("SELECT * FROM t WHERE r <= '[1,3]' ORDER BY id") == both
        server.sql("CREATE TYPE later AS ENUM ('a')")  # its oids are free ones
        server.sql("CREATE DATABASE kc_copy TEMPLATE postgres")
        server.sql("DROP TYPE span CASCADE")
        # the copy calls functions of its own
        server.sql(
            "CREATE OR REPLACE FUNCTION kc.low(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT 'bad'$$"
        )
        copy = Client(replace(Target.from_url(server.url), database="kc_copy"), timeout_s=60)
        copy.run("INSERT INTO kc.words (id, w) VALUES (7001, 'Copy')")
        copy.run("INSERT INTO kc.of_domain (b) VALUES (2)")
        found = copy.run("SELECT g, d FROM kc.words WHERE kc.low(d || w) = 'defcopy'").rows
        assert [tuple(row) for row in found] == [("copy", "def")]
        assert [tuple(row) for row in copy.run("SELECT a FROM kc.of_domain ORDER BY b").rows] == [
            ("dom",)
        ] * 2
        with pytest.raises(ServerError) as caught:
            copy.run("DROP FUNCTION kc.low(text)")
        assert caught.value.sqlstate == "2BP01"
        copy.run("DROP FUNCTION kc.low(text) CASCADE")
        assert [tuple(row) for row in copy.run("SELECT * FROM kc.words WHERE id = 7001").rows] == [
            ("7001", "Copy", "def")
        ]
        copy.run("INSERT INTO t (id, m) VALUES (3, span_multirange(span(5, 6)))")
        found = copy.run("SELECT * FROM t ORDER BY id").rows
        assert [tuple(row) for row in found] == [*both, ("3", "[1,2)", "{[5,6)}")]
        with pytest.raises(ServerError) as caught:
            copy.run("INSERT INTO t VALUES (4, 'empty')")
        assert caught.value.sqlstate == "23514"
        copy.close()
    finally:
        server.stop()
