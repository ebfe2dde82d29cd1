"""COPY of files on the server, as clients see it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[Connection]:
    with psycopg.connect(server.url, autocommit=True) as made:
        made.execute("SET copy_progress_interval = 0")
        made.execute("DROP TABLE IF EXISTS t")
        made.execute(
            "CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL DEFAULT 'none', c numeric(6,2) CHECK (c < 100))"
        )
        yield made


def rows(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT a, b, c::text FROM t ORDER BY a").fetchall()


def copy_in(connection: Connection, statement: str, data: str) -> int:
    cursor = connection.cursor()
    with cursor.copy(statement) as copy:
        copy.write(data)
    return cursor.rowcount


def told(connection: Connection) -> list[str]:
    said: list[str] = []
    connection.add_notice_handler(lambda diag: said.append(str(diag.message_primary)))
    return said


def test_files_need_a_superuser_and_a_directory(
    connection: Connection, server: ServerProcess, tmp_path: Path
) -> None:
    connection.execute("DROP ROLE IF EXISTS ann")
    connection.execute("CREATE ROLE ann LOGIN")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to COPY from file"):
        connection.execute("COPY t FROM '/etc/passwd'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to COPY to file"):
        connection.execute("COPY t TO '/etc/never'")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="PROGRAM"):
        connection.execute("COPY t FROM PROGRAM 'true'")
    with psycopg.connect(server.url.replace("postgres@", "ann@"), autocommit=True) as ann:
        ann.execute("CREATE TEMP TABLE mine (a int)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            ann.execute(f"COPY mine FROM '{tmp_path}/x'")
        assert caught.value.diag.message_primary == (
            "must be superuser or have privileges of the pg_read_server_files role to COPY from a file"
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="pg_write_server_files"):
            ann.execute(f"COPY mine TO '{tmp_path}/x'")
        ann.execute("DROP TABLE mine")
    connection.execute("DROP ROLE ann")


def test_rows_that_do_not_read_are_left_out_on_demand(connection: Connection) -> None:
    said = told(connection)
    data = "1,one,1\nx,two,2\n3,three,y\n4,four,4\n5,five,1e9\n"
    assert (
        copy_in(connection, "COPY t FROM STDIN (FORMAT csv, ON_ERROR ignore, LOG_VERBOSITY verbose)", data)
        == 2
    )
    assert rows(connection) == [(1, "one", "1.00"), (4, "four", "4.00")]
    assert said == [
        'skipping row due to data type incompatibility at line 2 for column "a": "x"',
        'skipping row due to data type incompatibility at line 3 for column "c": "y"',
        'skipping row due to data type incompatibility at line 5 for column "c": "1e9"',
        "3 rows were skipped due to data type incompatibility",
    ]
    said.clear()
    copy_in(connection, "COPY t FROM STDIN (ON_ERROR ignore)", "6\tsix\t\\N\nz\tz\t1\n")
    assert said == ["1 row was skipped due to data type incompatibility"]
    said.clear()
    copy_in(connection, "COPY t FROM STDIN (ON_ERROR ignore, LOG_VERBOSITY silent)", "z\tz\t1\n")
    assert said == []


@pytest.mark.parametrize(
    ("data", "state", "context"),
    [
        ("x,1,1\ny,1,1\nz,1,1\n", "22P02", 'COPY t, line 3, column a: "z"'),
        ("x,1,1\n1,1,100\n", "23514", 'COPY t, line 2: "1,1,100"'),
        ("x,1,1\n1,,1\n", "23502", 'COPY t, line 2: "1,,1"'),
        ("x,1,1\n1,1\n", "22P04", 'COPY t, line 2: "1,1"'),
    ],
)
def test_what_on_error_does_not_forgive(connection: Connection, data: str, state: str, context: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        copy_in(connection, "COPY t FROM STDIN (FORMAT csv, ON_ERROR ignore, REJECT_LIMIT 2)", data)
    assert caught.value.sqlstate == state
    assert caught.value.diag.context == context
    if "z" in data:
        assert caught.value.diag.message_primary == (
            "skipped more than REJECT_LIMIT (2) rows due to data type incompatibility"
        )
    assert rows(connection) == []


@pytest.mark.parametrize(
    ("options", "state", "message"),
    [
        ("ON_ERROR unsupported", "22023", 'COPY ON_ERROR "unsupported" not recognized'),
        ("FORMAT binary, ON_ERROR ignore", "42601", "only ON_ERROR STOP is allowed in BINARY mode"),
        ("REJECT_LIMIT 10", "22023", "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE"),
        ("ON_ERROR ignore, REJECT_LIMIT 0", "22023", "REJECT_LIMIT (0) must be greater than zero"),
        ("LOG_VERBOSITY unsupported", "22023", 'COPY LOG_VERBOSITY "unsupported" not recognized'),
        ("ON_ERROR stop, ON_ERROR ignore", "42601", "conflicting or redundant options"),
        ("FORMAT json, DELIMITER ','", "42601", "cannot specify DELIMITER in JSON mode"),
        ("FORMAT json, HEADER", "0A000", "cannot specify HEADER in JSON mode"),
        ("FORMAT json, QUOTE ''''", "0A000", "COPY quote available only in CSV mode"),
    ],
)
def test_options_are_checked(connection: Connection, options: str, state: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(f"COPY t FROM STDIN ({options})")
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (state, message)


def test_the_first_bad_row_is_the_one_that_is_named(connection: Connection) -> None:
    """A later row that is bad in an earlier column, or cannot even be split, does not come first."""
    for data, state in (
        ("1,a,1\n2,b,x\ny,c,1\n", "22P02"),
        ("1,a,1\n2,b,100\ny,c,1\n", "23514"),
        ("1,a,1\n2,b,x\n3\n", "22P02"),
    ):
        with pytest.raises(psycopg.Error) as caught:
            copy_in(connection, "COPY t FROM STDIN (FORMAT csv)", data)
        assert caught.value.sqlstate == state
        assert "line 2" in str(caught.value.diag.context)


def test_json_lines(connection: Connection) -> None:
    connection.execute("DROP TABLE t")
    connection.execute("CREATE TABLE t (a int, b text, c numeric, d text[], e json, f bool, g timestamptz)")
    data = (
        '{"a": 1, "b": "x\\n\\"y\\"", "c": 1.50, "d": ["p", null, "q\\"\\\\"], "e": {"k": [1.0, 2]}, "f": true}\n'
        "\n"
        '{"b": 12, "a": "2", "e": null, "d": [[1,2],[3,4]], "c": 123456789012345678901234567890, "g": "2024-01-02 03:04:05Z"}\n'
        '{"e": "s"}'
    )
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match="type json"):
        copy_in(connection, "COPY t FROM STDIN (FORMAT json)", data)
    assert copy_in(connection, "COPY t FROM STDIN (FORMAT json)", data.replace('{"e": "s"}', "{}")) == 3
    found = connection.execute(
        "SELECT a, b, c::text, d::text, e::text, f, g::text FROM t ORDER BY a"
    ).fetchall()
    assert found == [
        (1, 'x\n"y"', "1.50", '{p,NULL,"q\\"\\\\"}', '{"k": [1.0, 2]}', True, None),
        (2, "12", "123456789012345678901234567890", "{{1,2},{3,4}}", None, None, "2024-01-02 03:04:05+00"),
        (None, None, None, None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("line", "state", "message"),
    [
        ('{"a": 1, "z": 2}', "22P04", 'key "z" is not a copied column'),
        ("[1]", "22P04", "line is not a JSON object"),
        ('{"a": 1', "22P02", "invalid input syntax for type json"),
        ('{"a": "x"}', "22P02", 'invalid input syntax for type integer: "x"'),
        ('{"a": 1.5}', "22P02", 'invalid input syntax for type integer: "1.5"'),
        ('{"a": 1, "b": "\\u0000"}', "22P05", "unsupported Unicode escape sequence"),
    ],
)
def test_bad_json(connection: Connection, line: str, state: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        copy_in(connection, "COPY t FROM STDIN (FORMAT json)", '{"a": 0, "b": ""}\n' + line + "\n")
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (state, message)
    assert str(caught.value.diag.context).startswith("COPY t, line 2")


def test_several_files_and_parquet_are_read_here(connection: Connection, tmp_path: Path) -> None:
    """Without Spark; one file fails at its third line and takes the others with it."""
    connection.execute("DROP TABLE t")
    connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text, s serial, r float DEFAULT random())")
    for n in range(3):
        (tmp_path / f"{n}.csv").write_text("".join(f"{i},{n}\n" for i in range(n * 9000, n * 9000 + 9000)))
    assert connection.execute(f"COPY t (a, b) FROM '{tmp_path}/*.csv' (FORMAT csv)").rowcount == 27_000
    found = connection.execute(
        "SELECT count(*), count(DISTINCT s), max(s), count(DISTINCT r) > 26000, sum(a) FROM t"
    )
    assert found.fetchone() == (27_000, 27_000, 27_000, True, sum(range(27_000)))
    (tmp_path / "3.csv").write_text("-1,x\n-2,x\nbad,x\n")
    connection.execute("DELETE FROM t")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught:
        connection.execute(f"COPY t (a, b) FROM '{tmp_path}' (FORMAT csv)")
    assert caught.value.diag.context == f'COPY t, line 3, column a: "bad"\nfile "{tmp_path}/3.csv"'
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    said: list[str] = []
    connection.add_notice_handler(lambda diag: said.append(f"{diag.message_primary} {diag.message_detail}"))
    copy = f"COPY t (a, b) FROM '{tmp_path}' (FORMAT csv, ON_ERROR ignore, LOG_VERBOSITY verbose)"
    assert connection.execute(copy).rowcount == 27_002
    assert said == [
        f'skipping row due to data type incompatibility at line 3 for column "a": "bad" file "{tmp_path}/3.csv"',
        "1 row was skipped due to data type incompatibility None",
    ]
    connection.execute(f"COPY t TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    connection.execute("DELETE FROM t")
    assert (
        connection.execute(f"COPY t (a, b) FROM '{tmp_path}/t.parquet' (FORMAT parquet)").rowcount == 27_002
    )
    assert connection.execute("SELECT count(DISTINCT s), min(a) FROM t").fetchone() == (27_002, -2)


def test_progress_is_told(connection: Connection, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{i},text,1\n" for i in range(200_000)))
    said: list[str] = []
    connection.add_notice_handler(lambda diag: said.append(str(diag.message_primary)))
    connection.execute(f"COPY t FROM '{path}' (FORMAT csv)")
    assert said == []
    connection.execute("TRUNCATE t")
    connection.execute("SET copy_progress_interval = 1")
    connection.execute(f"COPY t FROM '{path}' (FORMAT csv)")
    assert said
    form = re.compile(r'COPY FROM "/.*/rows\.csv": \d+ rows, \d MB( of \d MB \(\d+ %\))?')
    assert [line for line in said if form.fullmatch(line) is None] == []
    connection.execute("SET copy_progress_interval = 0")
