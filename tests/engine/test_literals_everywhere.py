"""A literal is what was written, on every executor and wherever it stands.

    nasty text  ×  place in a statement  ×  executor

What the engines below would replace or end a text at: variables (Spark's ``${env:…}``), escapes, quotes, comments, parameter
markers, names of our own placeholders, control characters. ``make check`` asks the row executor and DuckDB, ``make spark`` Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from tests.support.server import ServerProcess

SECRET: Final = "not-for-clients"
NASTY: Final[dict[str, str]] = {
    "environment": "${env:NASTY_SECRET}",
    "environment, old form": "${env.NASTY_SECRET} $NASTY_SECRET %NASTY_SECRET%",
    "system property": "${system:user.home}${system:java.version}",
    "Spark's setting": "${spark.app.id} ${sparkconf:spark.app.name} ${hiveconf:a} ${hivevar:b} ${spark:spark.master}",
    "nested variable": "${env:${system:user.name}}",
    "open variable": "${env:NASTY_SECRET",
    "log4j": "${jndi:ldap://localhost/a} ${sys:user.home} ${java:version}",
    "message parameter": "<errorMessage> <message> {0} {} %s %1$s %(a)s",
    "quotes": "'a''b\"c`d",
    "backslashes": "\\ \\\\ \\' \\\" \\n \\u0041 \\x41 \\101 \\N \\. \\",
    "unicode escape": "U&'\\0041' \\+000041 &#65;",
    "line ends": "a\nb\r\nc\rd\u2028e\u0085f",
    "control characters": "\x01\x08\t\x0b\x0c\x1a\x1b[31m\x1c\x1d\x1e\x1f\x7f\x01" + "1",
    "line comment": "a -- b\nc",
    "block comment": "/* a */ b /* c",
    "hint": "/*+ BROADCAST(t) */ /*+ REPARTITION(1) */",
    "parameter markers": "? ?1 $1 $2 $p1 :a :1 :p1 @a @@b #{c}",
    "dollar quotes": "$$a$$ $x$b$x$",
    "our placeholders": "hf_rel_1 hf_rel_0 hf_hot_1 hf_py_1 'hf_rel_1'",
    "functions": "getenv('HOME') current_setting('x') getvariable('a') IDENTIFIER('t') EXECUTE IMMEDIATE 'x'",
    "files": "read_text('/etc/passwd') /etc/passwd file:///etc/passwd *.parquet [a] {b,c}",
    "our marks": "HF!28000:a\x1eb\x1fc",
    "statements": "'; DROP TABLE nasty; --",
    "patterns": "100% _a_ %% \\% \\_ .* [a-z]+ (?i) ^$ $.a[*] @.b",
    "beyond the BMP": "\U0001f600 e\u0301 \u202eabc\u202c \ufeff \ue000",
    "blanks": "  a\u00a0\u3000  ",
    "JSON": '{"a": "\\u0000", "b": [1]} "',
    "numbers": "1e400 NaN Infinity 0x41 1_000 '1'::int",
    "times": "now today tomorrow epoch infinity",
    "nothing": "",
}

Ask = Callable[[psycopg.Cursor[Any], str], object]


def _one(
    cursor: psycopg.Cursor[Any], statement: sql.Composed | str, params: tuple[Any, ...] | None = None
) -> Any:
    cursor.execute(statement, params)  # type: ignore[arg-type]
    rows = cursor.fetchall()
    assert len(rows) == 1, rows
    return rows[0][0]


def _literal(cursor: psycopg.Cursor[Any], text: str) -> object:
    return _one(cursor, sql.SQL("SELECT {} FROM one").format(text))


def _parameter(cursor: psycopg.Cursor[Any], text: str) -> object:
    return _one(cursor, "SELECT %s::text FROM one", (text,))


def _escaped(cursor: psycopg.Cursor[Any], text: str) -> object:
    """As E'…', each character written by its number."""
    written = "".join(f"\\U{ord(ch):08x}" for ch in text)
    return _one(cursor, sql.SQL(f"SELECT E'{written}' FROM one"))  # type: ignore[arg-type]


def _column(cursor: psycopg.Cursor[Any], text: str) -> object:
    return _one(cursor, sql.SQL("SELECT v FROM nasty WHERE v = {}").format(text))


def _column_by_parameter(cursor: psycopg.Cursor[Any], text: str) -> object:
    return _one(cursor, "SELECT max(v) FROM nasty WHERE v IN (%s, %s)", (text, text + "x"))


def _alias(cursor: psycopg.Cursor[Any], text: str) -> object:
    if not text:
        return text
    cursor.execute(sql.SQL("SELECT {0}.n AS {0} FROM one AS {0}").format(sql.Identifier(text[:20])))
    assert cursor.fetchall() == [(1,)]
    assert cursor.description is not None
    return cursor.description[0].name + text[20:]


def _named_column(cursor: psycopg.Cursor[Any], text: str) -> object:
    if not text:
        return text
    statement = "WITH c AS (SELECT {1} AS {0} FROM one) SELECT {0} FROM c WHERE {0} = {1} GROUP BY {0}"
    return _one(cursor, sql.SQL(statement).format(sql.Identifier(text[:20]), text))


def _like(cursor: psycopg.Cursor[Any], text: str) -> object:
    pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return _one(cursor, sql.SQL("SELECT v FROM nasty WHERE v LIKE {} AND v = {}").format(pattern, text))


def _like_parameter(cursor: psycopg.Cursor[Any], text: str) -> object:
    pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return _one(cursor, "SELECT v FROM nasty WHERE v LIKE %s AND v = %s", (pattern, text))


def _replaced(cursor: psycopg.Cursor[Any], text: str) -> object:
    statement = "SELECT replace('<' || v || '>', {0}, {0} || '!') FROM nasty WHERE v = {0}"
    found = _one(cursor, sql.SQL(statement).format(text))
    assert text == "" or found == f"<{text}!>"
    return text if text else found[1:-1]


def _json_key(cursor: psycopg.Cursor[Any], text: str) -> object:
    document = json.dumps({text: 1, text + "x": 2})
    statement = "SELECT {}::jsonb ->> {} FROM one"
    return text if _one(cursor, sql.SQL(statement).format(document, text)) == "1" else None


def _json_value(cursor: psycopg.Cursor[Any], text: str) -> object:
    document = json.dumps({"a": {"b": text}})
    return _one(cursor, sql.SQL("SELECT {}::jsonb #>> '{{a,b}}' FROM one").format(document))


def _array(cursor: psycopg.Cursor[Any], text: str) -> object:
    return _one(cursor, "SELECT (%s::text[])[2] FROM one", (["a", text],))


def _constant_list(cursor: psycopg.Cursor[Any], text: str) -> object:
    statement = "SELECT x FROM (VALUES ({0}), ('other')) AS c(x) JOIN one ON x IN ({0}, 'third')"
    return _one(cursor, sql.SQL(statement).format(text))


def _choice(cursor: psycopg.Cursor[Any], text: str) -> object:
    statement = "SELECT CASE WHEN n = 1 THEN {0} ELSE {0} || 'x' END FROM one ORDER BY {0} || n"
    return _one(cursor, sql.SQL(statement).format(text))


def _in_error(cursor: psycopg.Cursor[Any], text: str) -> object:
    """As the error about it quotes it."""
    with pytest.raises(psycopg.DataError) as caught:
        cursor.execute("SELECT (v || 'z')::uuid FROM nasty WHERE v = %s", (text,))
    message = str(caught.value.diag.message_primary)
    assert message.startswith('invalid input syntax for type uuid: "'), message
    return message.removeprefix('invalid input syntax for type uuid: "').removesuffix('z"')


PLACES: Final[tuple[Ask, ...]] = (
    _literal, _parameter, _escaped, _column, _column_by_parameter, _alias, _named_column, _like, _like_parameter,
    _replaced, _json_key, _json_value, _array, _constant_list, _choice, _in_error,
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NASTY_SECRET", SECRET)
        running = ServerProcess(Path(tmp_path_factory.mktemp("literals")) / "data", "--spark-start", "lazy")
    with psycopg.connect(running.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE one (n int)")
        connection.execute("INSERT INTO one VALUES (1)")
        connection.execute("CREATE TABLE nasty (id int PRIMARY KEY, v text)")
        for number, text in enumerate(NASTY.values()):
            connection.execute("INSERT INTO nasty VALUES (%s, %s)", (number, text))
            if number == len(NASTY) // 2:
                connection.execute("CHECKPOINT")  # half of them in a part, half in hot rows
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
@pytest.mark.parametrize("executor", ["index", "local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_literal_is_what_was_written(server: ServerProcess, executor: str, place: Ask) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET executor = {executor}")  # type: ignore[call-overload]
        wrong = {}
        for name, text in NASTY.items():
            try:
                found = place(cursor, text)
            except psycopg.Error as error:
                found = error
            if found != text:
                wrong[name] = found
        assert not wrong
