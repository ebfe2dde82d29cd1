"""psycopg 3: text and binary, server-side cursors, pipeline, COPY, cancel, errors."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.json import Jsonb
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

from tests.support.server import ServerProcess

VALUES: list[Any] = [
    True,
    -5,
    2**40,
    1.25,
    decimal.Decimal("3.1400"),
    "snow ☃",
    b"\x00\xff",
    dt.date(2000, 1, 1),
    dt.time(1, 2, 3, 4),
    dt.datetime(2001, 2, 3, 4, 5, 6),
    dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    dt.timedelta(days=1, seconds=2),
    uuid.UUID(int=7),
    [1, 2, 3],
]


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.url, autocommit=True) as opened:
        yield opened


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_survive(connection: psycopg.Connection[Any], value: Any, binary: bool) -> None:
    mark = "%b" if binary else "%t"
    query = sql.SQL("SELECT {}".format(mark))  # type: ignore[arg-type]  # noqa: UP032
    got = connection.execute(query, [value], binary=binary).fetchone()
    assert got == (value,)


def test_text_arrays(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("SELECT %s::text[]", [["a", None, 'q"']]).fetchone()
    assert row == (["a", None, 'q"'],)


def test_json_is_adapted(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("SELECT %s::jsonb -> 'a'", [Jsonb({"a": [1, {"b": None}]})]).fetchone()
    assert row == ([1, {"b": None}],)


def test_server_side_cursor(server: ServerProcess) -> None:
    with psycopg.connect(server.url) as c, c.cursor("big") as cursor:
        cursor.itersize = 10
        cursor.execute("SELECT * FROM generate_series(1, 105)")
        assert [row[0] for row in cursor] == list(range(1, 106))


def test_prepared_after_some_executions(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE prep (id int PRIMARY KEY, n int)")
    for i in range(20):
        connection.execute("INSERT INTO prep VALUES (%s, %s)", [i, i * i])
    names = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert names is not None
    assert names[0] >= 1
    assert connection.execute("SELECT n FROM prep WHERE id = %s", [7]).fetchone() == (49,)


def test_pipeline(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE piped (id int PRIMARY KEY)")
    with connection.pipeline():
        for i in range(50):
            connection.execute("INSERT INTO piped VALUES (%s)", [i])
        counted = connection.execute("SELECT count(*) FROM piped")
    assert counted.fetchone() == (50,)


def test_executemany_rolls_back_whole(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as c:
        c.execute("CREATE TABLE many (id int PRIMARY KEY)")
        with pytest.raises(psycopg.errors.UniqueViolation), c.transaction():
            c.cursor().executemany("INSERT INTO many VALUES (%s)", [[1], [2], [1]])
        assert c.execute("SELECT count(*) FROM many").fetchone() == (0,)


@pytest.mark.parametrize("format_", ["text", "binary"])
def test_copy(connection: psycopg.Connection[Any], format_: str) -> None:
    connection.execute("CREATE TEMP TABLE moved (id int, name text, amount numeric(10,2))")
    rows = [(i, None if i % 5 == 0 else f"name\t{i}", decimal.Decimal(i) / 4) for i in range(500)]
    cursor = connection.cursor()
    with cursor.copy(f"COPY moved FROM STDIN (FORMAT {format_})") as copy:  # type: ignore[arg-type]
        if format_ == "binary":
            copy.set_types(["int4", "text", "numeric"])
        for row in rows:
            copy.write_row(row)
    assert cursor.rowcount == 500
    with cursor.copy(f"COPY (SELECT * FROM moved ORDER BY id) TO STDOUT (FORMAT {format_})") as copy:  # type: ignore[arg-type]
        copy.set_types(["int4", "text", "numeric"])
        back = list(copy.rows())
    assert [(i, n, decimal.Decimal(a)) for i, n, a in back] == [
        (i, n, round(a + decimal.Decimal("0.001") / 10, 2)) for i, n, a in rows
    ]
    connection.execute("DROP TABLE moved")


def test_copy_failure_leaves_nothing(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE strict (id int PRIMARY KEY)")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught:  # noqa: SIM117
        with connection.cursor().copy("COPY strict FROM STDIN") as copy:
            copy.write("1\nx\n")
    assert caught.value.diag.context is not None
    assert 'COPY strict, line 2, column id: "x"' in caught.value.diag.context
    assert connection.execute("SELECT count(*) FROM strict").fetchone() == (0,)


def test_cancel(connection: psycopg.Connection[Any]) -> None:
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT count(*) FROM generate_series(1, 100000000)")
    assert time.monotonic() - started < 10
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_statement_timeout(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        connection.execute("SELECT pg_sleep(20)")


def test_error_fields(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE diag (a int, b text NOT NULL, CONSTRAINT small CHECK (a < 10))")
    with pytest.raises(psycopg.errors.NotNullViolation) as null:
        connection.execute("INSERT INTO diag VALUES (1, NULL)")
    assert (null.value.diag.schema_name, null.value.diag.table_name, null.value.diag.column_name) == (
        "public", "diag", "b",
    )  # fmt: skip
    with pytest.raises(psycopg.errors.CheckViolation) as check:
        connection.execute("INSERT INTO diag VALUES (11, 'x')")
    assert check.value.diag.constraint_name == "small"
    assert check.value.diag.message_detail == "Failing row contains (11, x)."
    with pytest.raises(psycopg.errors.UndefinedFunction) as function:
        connection.execute("SELECT nope(1)")
    assert function.value.diag.statement_position == "8"
    assert function.value.diag.message_hint is not None


def test_notices_arrive(connection: psycopg.Connection[Any]) -> None:
    seen: list[str | None] = []
    connection.add_notice_handler(lambda diag: seen.append(diag.message_primary))
    connection.execute("DROP TABLE IF EXISTS never_was")
    assert seen == ['table "never_was" does not exist, skipping']


def test_composites(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TYPE psycopg_spot AS (x int, label text, tags text[])")
    connection.execute("CREATE TABLE psycopg_spots (id int, p psycopg_spot, ps psycopg_spot[])")
    info = CompositeInfo.fetch(connection, "psycopg_spot")
    assert info is not None
    assert list(info.field_names) == ["x", "label", "tags"]
    register_composite(info, connection)
    spot = info.python_type
    assert spot is not None
    one, several = spot(5, 'a "q", \\', ["x", None]), [spot(1, None, []), spot(2, "b", None)]
    for binary in (False, True):
        connection.execute("TRUNCATE psycopg_spots")
        connection.execute("INSERT INTO psycopg_spots VALUES (1, %s, %s)", [one, several], binary=binary)
        found = connection.execute(
            "SELECT p, ps, (p).tags FROM psycopg_spots WHERE p = %s", [one], binary=binary
        ).fetchone()
        assert found == (one, several, ["x", None])
    with connection.cursor().copy("COPY psycopg_spots FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "psycopg_spot", "psycopg_spot[]"])
        copy.write_row((2, spot(9, "nine", None), []))
    assert connection.execute("SELECT p FROM psycopg_spots WHERE id = 2").fetchone() == (
        spot(9, "nine", None),
    )


def test_enums(connection: psycopg.Connection[Any]) -> None:
    class Mood(enum.Enum):
        SAD = "sad"
        HAPPY = "happy"

    connection.execute("CREATE TYPE psycopg_mood AS ENUM ('sad', 'happy')")
    info = EnumInfo.fetch(connection, "psycopg_mood")
    assert info is not None
    assert list(info.labels) == ["sad", "happy"]
    register_enum(info, connection, Mood, mapping={Mood.SAD: "sad", Mood.HAPPY: "happy"})
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            cursor.execute("SELECT %s, %s", [Mood.HAPPY, [Mood.SAD, Mood.HAPPY]])
            assert cursor.fetchone() == (Mood.HAPPY, [Mood.SAD, Mood.HAPPY])


def test_ranges(connection: psycopg.Connection[Any]) -> None:
    day = dt.date(2020, 1, 1)
    values: list[Any] = [
        Range(1, 5), Range(2**40, None), Range(decimal.Decimal("1.50"), decimal.Decimal("2.0"), "[]"),
        Range(day, day + dt.timedelta(9)), Range(None, dt.datetime(2020, 1, 1, 10), "(]"),
        Range(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None), Range(empty=True),
        Multirange([Range(1, 3), Range(5, None)]), Multirange([Range(None, day)]),
    ]  # fmt: skip
    names = "int4range int8range numrange daterange tsrange tstzrange int4range int4multirange datemultirange"
    connection.execute(
        "CREATE TABLE psycopg_ranges ("
        + ", ".join(f"c{i} {name}" for i, name in enumerate(names.split()))
        + ", many numrange[])"
    )
    row = [*values, [Range(decimal.Decimal(1), None), None]]
    for binary in (False, True):
        mark = "%b" if binary else "%t"
        connection.execute(f"INSERT INTO psycopg_ranges VALUES ({', '.join([mark] * len(row))})", row)  # type: ignore[arg-type]
        with connection.cursor(binary=binary) as cursor:
            cursor.execute("SELECT * FROM psycopg_ranges")
            assert all(found == tuple(row) for found in cursor)
    with connection.cursor() as cursor:
        with cursor.copy("COPY psycopg_ranges FROM STDIN (FORMAT binary)") as copy:
            copy.set_types([*names.split(), "numrange[]"])
            copy.write_row(row)
        with cursor.copy("COPY psycopg_ranges TO STDOUT (FORMAT binary)") as copy:
            copy.set_types([*names.split(), "numrange[]"])
            assert list(copy.rows()) == [tuple(row)] * 3
