"""Client encodings beside PostgreSQL 15, byte by byte: libpq hands over what was sent, unread.

Rows that precede one with a character that the encoding lacks are not compared: PostgreSQL sends them one by one, we in batches.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from pgwire.codecs.text.encodings import NAMES, convertible, encoding
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

FIELDS = (
    pq.DiagnosticField.SEVERITY, pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY,
    pq.DiagnosticField.MESSAGE_DETAIL, pq.DiagnosticField.MESSAGE_HINT, pq.DiagnosticField.STATEMENT_POSITION,
    pq.DiagnosticField.CONTEXT, pq.DiagnosticField.TABLE_NAME, pq.DiagnosticField.CONSTRAINT_NAME,
)  # fmt: skip
SO = b"\x83\x5c"  # in SJIS, the kana whose second byte is a backslash
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


class Client:
    """A connection that reads and writes bytes."""

    def __init__(self, dsn: str, **options: str) -> None:
        self._conn = pq.PGconn.connect(psycopg.conninfo.make_conninfo(dsn, **options).encode())
        self.greeting = b"" if self._conn.status == pq.ConnStatus.OK else self._conn.error_message
        self.said: list[object] = []
        self._conn.notice_handler = lambda notice: self.said.append(fields(notice))

    def close(self) -> None:
        self._conn.finish()

    def query(self, sql: bytes, *data: bytes) -> list[object]:
        """Run a simple Query; ``data``: what COPY FROM STDIN gets. Returns all that was said."""
        self._conn.send_query(sql)
        return self._results(data)

    def extended(self, sql: bytes, params: list[bytes], format_: int = 0, name: bytes = b"") -> list[object]:
        """Prepare and run with parameters and results in one format."""
        said: list[object] = []
        self._conn.send_prepare(name, sql)
        said += self._results(())
        self._conn.send_query_prepared(name, params, [format_] * len(params), format_)
        return said + self._results(())

    def _results(self, data: tuple[bytes, ...]) -> list[object]:
        conn = self._conn
        while result := conn.get_result():
            self.said.append(shown(result))
            if result.status == pq.ExecStatus.COPY_IN:
                for piece in data:
                    conn.put_copy_data(piece)
                conn.put_copy_end()
            if result.status == pq.ExecStatus.COPY_OUT:
                while (row := conn.get_copy_data(0))[0] > 0:
                    self.said.append(bytes(row[1]))
        conn.consume_input()
        while notification := conn.notifies():
            self.said.append((notification.relname, notification.extra))
        self.said.append(conn.parameter_status(b"client_encoding"))
        said, self.said = self.said, []
        return said


def fields(result: pq.abc.PGresult) -> list[bytes | None]:
    return [result.error_field(field) for field in FIELDS]


def shown(result: pq.abc.PGresult) -> object:
    if result.status == pq.ExecStatus.FATAL_ERROR:
        return fields(result)
    columns = range(result.nfields)
    rows = [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
    return result.command_status, [result.fname(column) for column in columns], rows


@pytest.fixture
def dsns(postgres: str, server: ServerProcess) -> tuple[str, str]:
    return (f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", postgres)


class Pair:
    """The same conversation with both."""

    def __init__(self, dsns: tuple[str, str], **options: str) -> None:
        self._clients = [Client(dsn, **options) for dsn in dsns]
        assert [client.greeting for client in self._clients] == [b"", b""]

    def query(self, sql: bytes, *data: bytes) -> list[object]:
        mine, other = (client.query(sql, *data) for client in self._clients)
        assert mine == other, sql
        return mine

    def extended(self, sql: bytes, params: list[bytes], format_: int = 0, name: bytes = b"") -> list[object]:
        mine, other = (client.extended(sql, params, format_, name) for client in self._clients)
        assert mine == other, sql
        return mine

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def pair(dsns: tuple[str, str]) -> Iterator[Pair]:
    both = Pair(dsns, client_encoding="LATIN1")
    yield both
    both.close()


def test_texts_names_and_errors(pair: Pair) -> None:
    said = pair.query(b"SELECT 'caf\xe9' AS \"\xe9t\xe9\", length('\xe9'), 'x' AS \"\xe8\"")
    assert said[0] == (b"SELECT 1", [b"\xe9t\xe9", b"length", b"\xe8"], [[b"caf\xe9", b"1", b"x"]])
    for sql in (
        b"SELECT '\xe9'::int", b"SELECT '\xe9\xe9', nosuch", b"SELECT \"\xe9\" FROM nosuch", b"SELECT 1 '\xe9'",
        b"DROP TABLE IF EXISTS \"\xe9\"", b"LISTEN \"\xe9\"; NOTIFY \"\xe9\", '\xe8'",
        b"CREATE TEMP TABLE \"\xe9\" (\"\xe8\" int CONSTRAINT \"\xea\" CHECK (\"\xe8\" > 0)); INSERT INTO \"\xe9\" VALUES (-1)",
        b"SELECT * FROM \"\xe9\"", b"SHOW client_encoding",
        b"SELECT pg_client_encoding(), current_setting('client_encoding'), getdatabaseencoding()",
    ):  # fmt: skip
        pair.query(sql)


@pytest.mark.parametrize(
    "sql",
    [
        b"SELECT 1, chr(8364)", b'SELECT 1 AS U&"\\20ac"', b"SELECT U&'\\20ac'::int", b'DROP TABLE IF EXISTS U&"\\20ac"',
        b"SELECT ARRAY[chr(8364)]", b"SELECT ROW(1, chr(8364))", b"SELECT to_json(chr(8364))",
        b"BEGIN; SELECT chr(8364); SELECT 1", b"COPY (SELECT 1, chr(8364)) TO STDOUT",
    ],
)  # fmt: skip
def test_characters_that_the_client_lacks(pair: Pair, sql: bytes) -> None:
    said = pair.query(sql)
    assert b'0xe2 0x82 0xac in encoding "UTF8" has no equivalent in encoding "LATIN1"' in repr(said).encode()
    pair.query(b"SELECT 1")
    pair.query(b"ROLLBACK")


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        b"INSERT INTO lacks VALUES (1, chr(8364)) RETURNING b", b'INSERT INTO lacks VALUES (1, NULL) RETURNING a AS U&"\\20ac"',
        b"UPDATE lacks SET b = chr(8364) WHERE a = 0 RETURNING b", b"DELETE FROM lacks RETURNING chr(8364)",
        b"INSERT INTO lacks SELECT g, chr(8364) FROM generate_series(1, 3) g RETURNING *",
    ],
)  # fmt: skip
def test_what_cannot_be_answered_does_not_happen(pair: Pair, sql: bytes, extended: bool) -> None:
    pair.query(b"SET client_min_messages = error; DROP TABLE IF EXISTS lacks")
    pair.query(b"CREATE TABLE lacks (a int PRIMARY KEY, b text); INSERT INTO lacks VALUES (0, 'x')")
    said = pair.extended(sql, []) if extended else pair.query(sql)
    assert any(isinstance(one, list) and one[1] == b"22P05" for one in said)
    assert pair.query(b"SELECT a, b FROM lacks")[0] == (b"SELECT 1", [b"a", b"b"], [[b"0", b"x"]])
    pair.query(b"DROP TABLE lacks")


def test_changes_count_at_once(pair: Pair) -> None:
    said = pair.query(
        b"SELECT '\xe9'; SET client_encoding = 'utf8'; SELECT '\xe9'; SET NAMES 'win1252'; SELECT chr(8364)"
    )
    assert [row for _, _, [*row] in (said[0], said[2], said[4])] == [
        [[b"\xe9"]],
        [[b"\xc3\xa9"]],
        [[b"\x80"]],
    ]
    for sql in (
        b"SET NAMES 'utf8'",
        b"BEGIN; SET LOCAL client_encoding = latin1; SELECT chr(233); COMMIT; SELECT chr(233)",
        b"BEGIN; SET client_encoding = latin1; SELECT chr(233); ROLLBACK; SELECT chr(233)",
        b"BEGIN; SET client_encoding = latin1; SAVEPOINT a; SET client_encoding = koi8r; SELECT chr(1078)",
        b"ROLLBACK TO a; SELECT chr(233); COMMIT; SELECT chr(233)",
        b"SELECT set_config('client_encoding', 'ISO-8859-15', false), chr(8364)",
        b"SELECT chr(8364)", b"RESET client_encoding", b"SELECT chr(233)", b"SET client_encoding = 'foo'",
        b"SET client_encoding = mule_internal", b"SET client_encoding TO DEFAULT", b"DISCARD ALL",
        b"SET client_encoding = sql_ascii", b"SELECT 'caf\xc3\xa9', pg_client_encoding()", b"SELECT 'caf\xe9'",
        b"SET client_encoding = utf8; SELECT '\xe9'",
    ):  # fmt: skip
        pair.query(sql)


def test_second_bytes_that_look_like_ascii(pair: Pair) -> None:
    pair.query(b"SET client_encoding = 'SJIS'")
    said = pair.query(
        b"SELECT '"
        + SO
        + b"', E'"
        + SO
        + b"', '\xb1', length('"
        + SO
        + b"'), \""
        + SO
        + b'" FROM (SELECT 1 AS "'
        + SO
        + b'") t'
    )
    assert said[0] == (
        b"SELECT 1",
        [b"?column?", b"?column?", b"?column?", b"length", SO],
        [[SO, SO, b"\xb1", b"1", b"1"]],
    )
    for sql in (
        b"SELECT '\x83'",
        b"SELECT '\xa0\x40'",
        b"SELECT chr(165), chr(8254), U&'\\00a2'",
        b"SELECT '" + SO + b"'::int",
    ):
        pair.query(sql)


def test_the_extended_protocol(pair: Pair) -> None:
    pair.query(b"SET client_encoding = 'SJIS'")
    all_types = (
        b"SELECT $1::text, $1::varchar, $1::bpchar, $1::name, ARRAY[$1::text], ROW($1::text, 1), to_json($1::text),"
        b" to_jsonb($1::text), '$.\""
        + SO
        + b"\"'::jsonpath, $1::text::bytea, 'x'::bytea, 1.5, now() - now(), NULL::text"
    )
    for format_ in (0, 1):
        said = pair.extended(all_types, [SO], format_)
        assert SO in said[2][2][0]  # type: ignore[index]
        pair.extended(b"SELECT $1::text", [b"\xa0\x40"], format_)
        pair.extended(b"SELECT $1::jsonb", [b'\x01"' + SO + b'"' if format_ else b'"' + SO + b'"'], format_)
    pair.extended(b"SELECT $1::int", [SO])
    pair.extended(b"SELECT 1", [], 0, SO)
    pair.query(b'DEALLOCATE "' + SO + b'"')
    pair.extended(b"SELECT 1", [], 0, b"\xa0\x40")
    pair.extended(b"SELECT '\xa0\x40'", [])


def test_copy(pair: Pair) -> None:
    pair.query(b"CREATE TEMP TABLE ct (a int, b text)")
    pair.query(b"COPY ct FROM STDIN", b"1\tcaf\xe9\n2\t\\", b"\xe8\n")
    pair.query(b"COPY ct FROM STDIN (ENCODING 'utf8')", b"3\tcaf\xc3", b"\xa9\n")
    pair.query(b"COPY ct FROM STDIN (ENCODING 'sjis', DELIMITER '|')", b"4|" + SO + b"\x83", b"\x7c\n")
    one = b"\0\1\0\0\0\1\xe9\xff\xff"
    pair.query(b"COPY ct (b) FROM STDIN (FORMAT binary, ENCODING 'utf8')", COPY_HEADER + one)
    pair.query(b"SET client_encoding = utf8; SELECT * FROM ct ORDER BY a; SET client_encoding = latin1")
    pair.query(b"DELETE FROM ct WHERE a = 4")
    for sql in (
        b"COPY (SELECT * FROM ct ORDER BY a) TO STDOUT",
        b"COPY (SELECT * FROM ct ORDER BY a) TO STDOUT (ENCODING 'utf8')",
        b"COPY (SELECT a, b AS \"\xe9\" FROM ct ORDER BY a) TO STDOUT (FORMAT csv, HEADER, ENCODING 'win1252')",
        b"COPY (SELECT b FROM ct ORDER BY a) TO STDOUT (FORMAT binary)",
        b"COPY (SELECT b FROM ct ORDER BY a) TO STDOUT (FORMAT binary, ENCODING 'utf8')",
        b"COPY (SELECT chr(165) || 'a', U&'\\30bd|', chr(8254)) TO STDOUT (ENCODING 'sjis', DELIMITER '|')",
        b"COPY (SELECT chr(165) || 'a', U&'\\30bd~', chr(8254)) TO STDOUT (ENCODING 'sjis', DELIMITER '~', FORMAT csv, ESCAPE '\\')",
        b"COPY (SELECT null) TO STDOUT (NULL '\xe9')", b"COPY ct TO STDOUT (ENCODING 'foo')",
        b"COPY ct FROM STDIN (ENCODING 'mule_internal')",
    ):  # fmt: skip
        pair.query(sql)
    for options, data in (
        (b"", b"3\tx\n4\t" + SO + b"\n5\tab\xa0\x40\n6\tx\n"), (b"", b"5\tab\x83\n6\tx\n"), (b"", b"x\t1\n5\tab\x83\n"),
        (b", FORMAT csv", b'3,x\n4,"a\nb"\n5,ab\xa0\x40\n6,x\n'), (b", FORMAT csv", b"3,x\n4,\x83"),
        (b"", b"3\tx\n\x83\tx\n"),
    ):  # fmt: skip
        pair.query(b"COPY ct FROM STDIN (ENCODING 'sjis'" + options + b")", data)
    pair.query(b"COPY ct FROM STDIN (ENCODING 'win1252', FORMAT csv)", b"3,x\n4,\x81\n")
    pair.query(b"COPY ct FROM STDIN (ENCODING 'sjis')", b"3\tx\n" + SO + b"\t1\n")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"client_encoding": "koi8"}, b"KOI8R"), ({"options": "-c client_encoding=Windows-1252"}, b"WIN1252"),
        ({"client_encoding": "SQL_ASCII"}, b"SQL_ASCII"),
    ],
)  # fmt: skip
def test_from_the_start(dsns: tuple[str, str], options: dict[str, str], wanted: bytes) -> None:
    both = Pair(dsns, **options)
    said = both.query(b"SELECT chr(1078)") if wanted != b"WIN1252" else both.query(b"SELECT chr(8364)")
    assert said[-1] == wanted
    both.close()


def test_unknown_from_the_start(dsns: tuple[str, str]) -> None:
    clients = [Client(dsn, client_encoding="foo") for dsn in dsns]
    for client in clients:
        assert b'FATAL:  invalid value for parameter "client_encoding": "foo"' in client.greeting
        client.close()


def test_settings_of_roles(dsns: tuple[str, str]) -> None:
    owner = Pair(dsns)
    owner.query(b"CREATE ROLE speaks_latin LOGIN; ALTER ROLE speaks_latin SET client_encoding = 'latin1'")
    try:
        owner.query(b"ALTER ROLE speaks_latin SET client_encoding = 'foo'")
        its = Pair(dsns, user="speaks_latin")
        assert its.query(b"SELECT chr(233)")[0] == (b"SELECT 1", [b"chr"], [[b"\xe9"]])
        its.close()
    finally:
        owner.query(b"DROP ROLE speaks_latin")
        owner.close()


# -- the maps --------------------------------------------------------------------------------------------------

_CONVERTED = """
CREATE FUNCTION pg_temp.converted(units bytea[], source name, target name)
RETURNS TABLE (result bytea, code text, message text) LANGUAGE plpgsql AS $$
DECLARE unit bytea;
BEGIN
  FOREACH unit IN ARRAY units LOOP
    BEGIN
      result := convert(unit, source, target); code := NULL; message := NULL;
    EXCEPTION WHEN data_exception THEN
      result := NULL; code := sqlstate; message := sqlerrm;
    END;
    RETURN NEXT;
  END LOOP;
END $$"""


def converted(data: bytes, source: str, target: str) -> tuple[bytes | None, str | None, str | None]:
    from planner.base.errors import DataError
    from planner.functions.text.bytea import convert

    try:
        return convert(data, source, target), None, None
    except DataError as error:
        return None, error.sqlstate, error.message


def test_a_sample_of_all_characters(postgres: str) -> None:
    """``tools/gen_encodings.py --check`` compares all of them."""
    rng = random.Random(15)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(_CONVERTED)
        for name in NAMES:
            if not convertible(name) or name in ("UTF8", "SQL_ASCII"):
                continue
            units = [rng.randbytes(rng.randint(1, 4)) for _ in range(80)]
            units += [bytes((rng.randrange(0x80, 0x100), rng.randrange(0x30, 0x100))) for _ in range(80)]
            points = [rng.randrange(0xA0, 0xD800) for _ in range(80)] + [
                rng.randrange(0x3000, 0xA000) for _ in range(50)
            ]
            texts = [chr(point).encode() for point in points]
            texts += [(chr(point) + "\u309a").encode() for point in points[:20]]
            for source, target, asked in ((name, "UTF8", units), ("UTF8", name, texts)):
                sql = "SELECT * FROM pg_temp.converted(%s::bytea[], %s, %s)"
                theirs = connection.execute(sql, (asked, source, target)).fetchall()
                for unit, (result, code, message) in zip(asked, theirs, strict=True):
                    assert converted(unit, source, target) == (result, code, message), (unit, source, target)


@pytest.mark.long
def test_all_characters(postgres: str) -> None:
    tool = Path(__file__).parents[2] / "tools" / "gen_encodings.py"
    environment = {**os.environ, "PYTHONPATH": str(tool.parents[1])}
    ran = subprocess.run(
        [sys.executable, tool, postgres, "--check"], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


# -- clients ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql")
@pytest.mark.parametrize(
    ("name", "word"),
    [("LATIN1", "déjà"), ("WIN1252", "€ “où”"), ("SJIS", "表ソ①"), ("EUC_JP", "表ソ丂"), ("SQL_ASCII", "x"), ("BIG5", "功許")],
)  # fmt: skip
def test_psql(dsns: tuple[str, str], name: str, word: str) -> None:
    script = f"""
        \\encoding
        CREATE TEMP TABLE "{word}" ("{word}" text, n int); INSERT INTO "{word}" VALUES ('{word}', 1), ('''', 2);
        SELECT *, length("{word}"), "{word}"::bytea FROM "{word}" ORDER BY n;
        SELECT '{word}'::int; SELECT '{word}', nosuch;
        PREPARE "{word}" AS SELECT $1::text || '{word}'; EXECUTE "{word}"('{word}');
        \\copy "{word}" to stdout (format csv, header)
        \\copy "{word}" from stdin
{word}\t3
\\.
        SELECT 'a' AS "{word}", '{word}' AS b \\gset
        \\echo :b
        TABLE "{word}"; LISTEN "{word}"; NOTIFY "{word}", '{word}';
        SELECT chr(1046);
        \\encoding utf8
        TABLE pg_temp.nosuch;
    """
    given = encoding(name).encode(script)
    answers = []
    for dsn in dsns:
        ran = subprocess.run(
            ["psql", "-XqA", "-d", dsn],
            input=given,
            capture_output=True,
            env={**os.environ, "PGCLIENTENCODING": name, "LC_ALL": "C.UTF-8"},
            check=False,
        )
        said = b"\n".join(line for line in ran.stdout.split(b"\n") if b"Asynchronous" not in line)
        answers.append((ran.returncode, said, ran.stderr))
    assert answers[0] == answers[1]
    assert encoding(name).encode(word) in answers[0][1]


ANSI_DRIVER = Path("/usr/lib/x86_64-linux-gnu/odbc/psqlodbca.so")


@pytest.mark.skipif(shutil.which("isql") is None, reason="no isql: install unixodbc")
@pytest.mark.skipif(not ANSI_DRIVER.exists(), reason="no psqlODBC: install odbc-postgresql")
def test_the_ansi_driver_of_odbc(dsns: tuple[str, str]) -> None:
    script = b"""select 'd\xe9j\xe0' as "\xe9", length('\xe9'), current_setting('client_encoding'), chr(8364)
        select 'd\xe9j\xe0' as "\xe9", length('\xe9'), current_setting('client_encoding')
        select '\xe9'::int
        select '\xe9' || x from (values ('\xe8')) v(x)
    """
    answers = []
    for dsn in dsns:
        at = psycopg.conninfo.conninfo_to_dict(dsn)
        line = (
            f"Driver={ANSI_DRIVER};Server={at['host']};Port={at['port']};UID={at['user']};Database={at['dbname']};"
            "ConnSettings=SET client_encoding='LATIN1'"
        )
        ran = subprocess.run(
            ["isql", "-b", "-d;", "-k", line], input=script, capture_output=True, check=False
        )
        answers.append((ran.returncode, ran.stdout, ran.stderr))
    assert answers[0] == answers[1]
    assert b"d\xe9j\xe0;1;LATIN1" in answers[0][1]
