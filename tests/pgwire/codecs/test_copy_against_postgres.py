"""COPY reads and writes what PostgreSQL's does: rows, errors and their CONTEXT."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from pgwire.codecs.copy import CopyOptions, copy_context, with_context
from pgwire.codecs.copy.reading import copy_decoder
from pgwire.codecs.copy.writing import copy_header, copy_row_encoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import DEFAULT, text_input, text_output
from tests.support.postgres import postgres

__all__ = ["postgres"]

TEXT = [
    b"1\ta\n2\tb\n", b"1\ta\r\n2\tb\r\n", b"1\ta\r2\tb\r", b"1\ta", b"1\ta\n2", b"1\ta\tx\n", b"\\N\t\\N\n", b"1\t\\n\\t\\\\\\b\\x41\\101\\q\n", b"1\ta\\\nb\n", b"1\ta\n\\.\n9\tz\n", b"1\ta\n\\.", b"1\ta\\.",
    b"1\ta\n\\.x\n", b"x\ta\n", b"", b"1\t\\\n", b"1\ta\r\n2\tb\n", b"1\ta\n2\tb\r\n", b"1\ta\rb\n2\tc\n", b"99999999999\ta\n", b"1\t\xc3\xa9\n", b"1\t\xff\n", b"1\t\\xc3\\xa9\n", b"1\t\\xff\n", b"1\t\\0\n",
    b"1\t\\N\\N\n", b"1\ta\\\tb\n", b"1\t" + b"x" * 150 + b"\tz\n", b"y" * 150 + b"\tz\n", b"1\t\\\\N\n", b"1\ta\\.b\n", b"1\ta\\", b"1\t\\\r\n", b"12\t\\.\n",
]  # fmt: skip
CSV = [
    b"1,a\n2,b\n", b'1,"a"\n', b'1,"a,b"\n', b'1,"a""b"\n', b'1,"a\nb"\n2,c\n', b'1,"a\r\nb"\r\n2,c\r\n', b"1,\n,x\n", b'"",""\n', b'1,a"b"c\n', b'1,"a"b\n', b'1,"abc\n', b"1\n", b"1,a,b\n", b"x,a\n", b"1,a\n\\.\n9,z\n",
    b"1,\\N\n", b"\n", b"", b"1,a", b"1,a\r\n2,b\n", b"1,a\n2,b\r\n", b"1,a\rb\n", b'1,"a\rb"\n', b' 1 ,"a" \n', b'1,"\\."\n', b'1,""""\n', b'1,"""\n', b'"1","a"\n', b"1,a\\.\n", b'1, "a"\n', b'1,"a\n\\.\nb"\n2,x\n3\n', b'\xff,"\n',
]  # fmt: skip
OPTIONS: list[tuple[str, CopyOptions, list[bytes]]] = [
    ("", CopyOptions(), TEXT),
    ("DELIMITER '|', NULL ''", CopyOptions(delimiter="|", null=""), [b"1|a\n|\n", b"1|\\|\n", b"1|a\\n|\n", b"|\\N\n"]),
    ("HEADER", CopyOptions(header=True), [b"x\ty\n1\ta\n", b"", b"a\n", b"a\tb", b"a\\777\tb\n1\ta\n", b"\\xff\n1\ta\n"]),
    ("HEADER MATCH", CopyOptions(header="match"), [b"a\tb\n1\ta\n", b"a\tc\n", b"a\n", b"a\t\\N\n", b"a\tb\tc\n"]),
    ("FORMAT csv", CopyOptions(format="csv"), CSV),
    ("FORMAT csv, HEADER MATCH", CopyOptions(format="csv", header="match"), [b'a,"b"\n1,x\n', b"b,a\n", b"a,\n"]),
    ("FORMAT csv, NULL 'N', QUOTE '''', ESCAPE '\\'", CopyOptions(format="csv", null="N", quote="'", escape="\\"),
     [b"1,N\n", b"1,'N'\n", b"1,'a\\'b'\n", b"1,'a\\b'\n", b"1,'a\\\\'\n", b"1,'a''b'\n", b"1,\\\n", b"1,'\\\n'\n2,x\n"]),
    ("FORMAT csv, FORCE_NULL (b)", CopyOptions(format="csv", force_null=frozenset({1})), [b'1,""\n', b"1,\n"]),
    ("FORMAT csv, FORCE_NOT_NULL (b)", CopyOptions(format="csv", force_not_null=frozenset({1})), [b'1,""\n', b"1,\n"]),
]  # fmt: skip


def theirs(connection: Any, options: str, data: bytes) -> Any:
    connection.execute("TRUNCATE t")
    try:
        with (
            connection.cursor() as cur,
            cur.copy(f"COPY t FROM STDIN ({options})" if options else "COPY t FROM STDIN") as copy,
        ):
            for at in range(0, len(data), 3):
                copy.write(data[at : at + 3])
    except psycopg.Error as error:
        diag = error.diag
        return diag.sqlstate, diag.message_primary, diag.context
    return connection.execute("SELECT a, b FROM t").fetchall()


def ours(options: CopyOptions, data: bytes) -> Any:
    decoder = copy_decoder(options, "t", ("a", "b"))
    rows = []
    try:
        batches = [decoder.feed(data[at : at + 3]) for at in range(0, len(data), 3)]
        for batch in [*batches, decoder.finish()]:
            for row, line in zip(batch.rows, batch.lines, strict=True):
                try:
                    a = None if row[0] is None else text_input(23, row[0])
                except DataError as error:
                    raise with_context(error, copy_context("t", line, "a", row[0])) from None
                rows.append((a, row[1]))
    except DataError as error:
        return error.sqlstate, error.message, error.where
    return rows


@pytest.fixture(scope="module")
def connection(postgres: str) -> Any:
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("CREATE TEMP TABLE t (a int, b text)")
        yield conn


@pytest.mark.parametrize(("spelled", "options", "samples"), OPTIONS, ids=[o[0] or "text" for o in OPTIONS])
def test_copy_from(connection: Any, spelled: str, options: CopyOptions, samples: list[bytes]) -> None:
    differences = []
    for data in samples:
        want, got = theirs(connection, spelled, data), ours(options, data)
        if want != got:
            differences.append(f"{data!r}\n  theirs {want}\n  ours   {got}")
    assert not differences, "\n".join(differences)


VALUES = [
    "",
    "a",
    "a,b",
    'a"b',
    "a\tb",
    "a\nb",
    "a\rb",
    "\\N",
    "\\.",
    "a\\b",
    "N",
    "é",
    " a ",
    "\b\f\v\x1b",
    "|",
    "'",
    None,
]


@pytest.mark.parametrize(
    ("spelled", "options"),
    [
        ("FORMAT text", CopyOptions()),
        ("FORMAT text, HEADER", CopyOptions(header=True)),
        ("DELIMITER '|', NULL 'N'", CopyOptions(delimiter="|", null="N")),
        ("FORMAT csv", CopyOptions(format="csv")),
        ("FORMAT csv, HEADER, NULL 'N'", CopyOptions(format="csv", header=True, null="N")),
        ("FORMAT csv, QUOTE '''', ESCAPE '\\'", CopyOptions(format="csv", quote="'", escape="\\")),
        ("FORMAT csv, FORCE_QUOTE (a, b)", CopyOptions(format="csv", force_quote=frozenset({0, 1}))),
        ("FORMAT binary", CopyOptions(format="binary")),
    ],
)
@pytest.mark.parametrize("columns", [1, 2])
def test_copy_to(connection: Any, spelled: str, options: CopyOptions, columns: int) -> None:
    rows: list[tuple[Any, ...]] = [(v,) if columns == 1 else (v, i) for i, v in enumerate(VALUES)]
    if columns == 1:
        spelled, options = spelled.replace("(a, b)", "(a)"), options
    cells = ", ".join(
        "(" + ", ".join("NULL" if c is None else f"E'{_escape(c)}'" if isinstance(c, str) else str(c) for c in row) + ")"
        for row in rows
    )  # fmt: skip
    names = ["a", "b"][:columns]
    query = f"SELECT * FROM (VALUES {cells}) AS v({', '.join(names)})"
    with connection.cursor() as cur, cur.copy(f"COPY ({query}) TO STDOUT ({spelled})".encode()) as copy:
        chunks = [bytes(chunk) for chunk in copy]
    oids = (25, 23)[:columns]
    header = copy_header(options, names, DEFAULT)
    body = copy_row_encoder(oids, options, DEFAULT)(rows)[0]
    end = b"\xff\xff" if options.format == "binary" else b""
    assert b"".join(chunks) == header + body + end


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def test_context_of_a_null_input() -> None:
    assert copy_context("t", 3, "b") == "COPY t, line 3, column b: null input"
    assert text_output(25, "x") == "x"


@pytest.mark.parametrize(
    ("spelled", "options", "direction"),
    [
        ("FORMAT binary, DELIMITER ','", CopyOptions(format="binary", delimiter=","), "from"),
        ("FORMAT binary, NULL ''", CopyOptions(format="binary", null=""), "from"),
        ("FORMAT binary, HEADER", CopyOptions(format="binary", header=True), "from"),
        ("DELIMITER 'ab'", CopyOptions(delimiter="ab"), "from"),
        ("DELIMITER E'\\n'", CopyOptions(delimiter="\n"), "from"),
        ("NULL E'a\\n'", CopyOptions(null="a\n"), "from"),
        ("DELIMITER 'a'", CopyOptions(delimiter="a"), "from"),
        ("QUOTE '\"'", CopyOptions(quote='"'), "from"),
        ("FORMAT csv, QUOTE 'ab'", CopyOptions(format="csv", quote="ab"), "from"),
        ("FORMAT csv, QUOTE ','", CopyOptions(format="csv", quote=","), "from"),
        ("ESCAPE '\"'", CopyOptions(escape='"'), "from"),
        ("FORMAT csv, ESCAPE 'ab'", CopyOptions(format="csv", escape="ab"), "from"),
        ("FORMAT csv, FORCE_QUOTE (a)", CopyOptions(format="csv", force_quote=frozenset({0})), "from"),
        ("FORCE_QUOTE (a)", CopyOptions(force_quote=frozenset({0})), "to"),
        ("FORMAT csv, FORCE_NULL (a)", CopyOptions(format="csv", force_null=frozenset({0})), "to"),
        ("FORCE_NOT_NULL (a)", CopyOptions(force_not_null=frozenset({0})), "from"),
        ("NULL E'\\t'", CopyOptions(null="\t"), "from"),
        ("FORMAT csv, NULL '\"'", CopyOptions(format="csv", null='"'), "from"),
        ("HEADER MATCH", CopyOptions(header="match"), "to"),
    ],
)
def test_bad_options(connection: Any, spelled: str, options: CopyOptions, direction: Any) -> None:
    where = "FROM STDIN" if direction == "from" else "TO STDOUT"
    with (
        pytest.raises(psycopg.Error) as want,
        connection.cursor() as cur,
        cur.copy(f"COPY t {where} ({spelled})"),
    ):
        pass
    with pytest.raises(DataError) as got:
        options.check(direction)
    assert (got.value.sqlstate, got.value.message) == (
        want.value.diag.sqlstate,
        want.value.diag.message_primary,
    )
