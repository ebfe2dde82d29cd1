"""asyncpg: binary both ways, prepared statements, cursors, COPY, transactions, cancel, errors."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import io
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from tests.support.server import ServerProcess

VALUES: list[tuple[str, Any]] = [
    ("bool", True),
    ("int2", -32768),
    ("int4", 2147483647),
    ("int8", -9223372036854775808),
    ("float4", 1.5),
    ("float8", 1e-300),
    ("numeric", decimal.Decimal("-12345678901234567890.012345")),
    ("numeric", decimal.Decimal("-123456789012345678901234567890123456.5")),
    ("numeric", decimal.Decimal("NaN")),
    ("text", "grüße ☃ \\ '"),
    ("varchar", "x" * 300),
    ("bytea", bytes(range(256))),
    ("date", dt.date(1999, 12, 31)),
    ("time", dt.time(23, 59, 59, 999999)),
    ("timetz", dt.time(1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30)))),
    ("timestamp", dt.datetime(2024, 2, 29, 12, 30, 0, 123456)),
    ("timestamptz", dt.datetime(1969, 12, 31, 23, 0, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=3, seconds=5, microseconds=7)),
    ("uuid", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    ("json", '{"a": [1, 2, null]}'),
    ("jsonb", '{"a": [1, 2, null]}'),
    ("int4[]", [1, None, 3]),
    ("text[]", ["a", 'b"c', "", None]),
    ("numeric[]", [decimal.Decimal("1.10"), decimal.Decimal("2")]),
    ("timestamptz[]", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
    ("int4[]", [[1, 2], [3, 4]]),
    ("point", asyncpg.Point(1.5, -2)),
    ("line", asyncpg.Line(1, -1, 0.25)),
    ("lseg", asyncpg.LineSegment((1, 2), (3, 4))),
    ("box", asyncpg.Box((3, 4), (1, 2))),
    ("path", asyncpg.Path((1, 2), (3, 4), (5, 0), is_closed=True)),
    ("path", asyncpg.Path((1, 2), (3, 4), is_closed=False)),
    ("polygon", asyncpg.Polygon((0, 0), (1, 1), (2, 0))),
    ("circle", asyncpg.Circle((1, 2), 3)),
    ("point[]", [asyncpg.Point(1, 2), None]),
    ("box[]", [asyncpg.Box((3, 4), (1, 2)), asyncpg.Box((1, 1), (0, 0))]),
]


def run(server: ServerProcess, body: Callable[[asyncpg.Connection], Awaitable[None]]) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        try:
            await body(connection)
        finally:
            await connection.close()

    asyncio.run(main())


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=lambda v: str(v)[:20])
def test_values_survive_in_binary_both_ways(server: ServerProcess, type_: str, value: Any) -> None:
    async def body(c: asyncpg.Connection) -> None:
        got = await c.fetchval(f"SELECT $1::{type_}", value)
        if isinstance(value, decimal.Decimal) and value.is_nan():
            assert got.is_nan()
        else:
            assert got == value
        assert await c.fetchval(f"SELECT $1::{type_}", None) is None

    run(server, body)


def test_stored_values_come_back(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        # arrays of several dimensions are the row executor's alone (docs/reference/differences.md)
        kinds = [
            (t, v)
            for t, v in VALUES
            if not (isinstance(v, decimal.Decimal) and v.is_nan()) and v != [[1, 2], [3, 4]]
        ]
        columns = ", ".join(f"c{i} {t}" for i, (t, _) in enumerate(kinds))
        await c.execute(f"CREATE TABLE kept ({columns})")
        marks = ", ".join(f"${i + 1}" for i in range(len(kinds)))
        await c.execute(f"INSERT INTO kept VALUES ({marks})", *[v for _, v in kinds])
        for executor in ("index", "local"):
            await c.execute(f"SET executor = {executor}")
            row = await c.fetchrow("SELECT * FROM kept")
            assert row is not None
            assert [v for _, v in kinds] == list(row)
        await c.execute("CHECKPOINT")
        for executor in ("index", "local"):
            await c.execute(f"SET executor = {executor}")
            row = await c.fetchrow("SELECT * FROM kept")
            assert row is not None
            assert [v for _, v in kinds] == list(row), f"from a part, on {executor}"

    run(server, body)


def test_cursor_fetches_in_pieces(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        async with c.transaction():
            seen = [r[0] async for r in c.cursor("SELECT * FROM generate_series(1, 1000) AS g", prefetch=7)]
        assert seen == list(range(1, 1001))

    run(server, body)


def test_prepared_statement_tells_its_types(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        statement = await c.prepare("SELECT $1 + 1.5, $2 || 'x'")
        assert [p.name for p in statement.get_parameters()] == ["numeric", "text"]
        assert [a.type.name for a in statement.get_attributes()] == ["numeric", "text"]
        for n in range(5):
            row = await statement.fetchrow(n, str(n))
            assert row is not None
            assert tuple(row) == (decimal.Decimal(n) + decimal.Decimal("1.5"), f"{n}x")

    run(server, body)


def test_copy_in_and_out(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        await c.execute("CREATE TABLE copied (id int PRIMARY KEY, name text, at timestamptz)")
        stamp = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        records = [(i, f"n{i}" if i % 3 else None, stamp) for i in range(2000)]
        assert await c.copy_records_to_table("copied", records=records) == "COPY 2000"
        out = io.BytesIO()
        await c.copy_from_query("SELECT id, name FROM copied ORDER BY id LIMIT 4", output=out, format="csv")
        assert out.getvalue() == b"0,\n1,n1\n2,n2\n3,\n"
        source = io.BytesIO(b"5000,five,2024-01-01\n")
        await c.copy_to_table("copied", source=source, format="csv")
        assert await c.fetchval("SELECT count(*) FROM copied") == 2001

    run(server, body)


def test_transactions_and_error_classes(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        await c.execute("CREATE TABLE once (id int PRIMARY KEY CHECK (id > 0), n int NOT NULL)")
        async with c.transaction():
            await c.execute("INSERT INTO once VALUES (1, 1)")
            with pytest.raises(asyncpg.UniqueViolationError) as caught:
                async with c.transaction():
                    await c.execute("INSERT INTO once VALUES (1, 2)")
            assert caught.value.constraint_name == "once_pkey"
            assert caught.value.table_name == "once"
            await c.execute("INSERT INTO once VALUES (2, 2)")
        assert await c.fetchval("SELECT count(*) FROM once") == 2
        for sql, error in [
            ("INSERT INTO once VALUES (-1, 1)", asyncpg.CheckViolationError),
            ("INSERT INTO once VALUES (3, NULL)", asyncpg.NotNullViolationError),
            ("SELECT 1/0", asyncpg.DivisionByZeroError),
            ("SELECT nothing", asyncpg.UndefinedColumnError),
            ("SELECT * FROM nowhere", asyncpg.UndefinedTableError),
            ("SELEKT", asyncpg.PostgresSyntaxError),
            ("SELECT 'x'::int", asyncpg.InvalidTextRepresentationError),
        ]:
            with pytest.raises(error):
                await c.fetch(sql)

    run(server, body)


def test_listen_and_notify(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        got: asyncio.Queue[tuple[int, str, str]] = asyncio.Queue()
        await c.add_listener(
            "jobs", lambda _c, pid, channel, payload: got.put_nowait((pid, channel, payload))
        )
        other = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="postgres", database="postgres"
        )
        try:
            pid = await other.fetchval("SELECT pg_backend_pid()")
            async with other.transaction():
                await other.execute("NOTIFY jobs, 'one'")
                await other.execute("NOTIFY jobs, 'one'")
                await other.execute("SELECT pg_notify('jobs', n::text) FROM generate_series(2, 3) AS n")
            assert [await asyncio.wait_for(got.get(), 20) for _ in range(3)] == [
                (pid, "jobs", "one"), (pid, "jobs", "2"), (pid, "jobs", "3"),
            ]  # fmt: skip
        finally:
            await other.close()

    run(server, body)


def test_cancel_ends_a_running_statement(server: ServerProcess) -> None:
    async def body(c: asyncpg.Connection) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(asyncio.TimeoutError):
            await c.fetch("SELECT pg_sleep(30)", timeout=0.5)
        assert loop.time() - started < 5
        assert await c.fetchval("SELECT 1") == 1

    run(server, body)


def test_password_login(server: ServerProcess) -> None:
    async def body() -> None:
        c = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="keeper", password="sesame", database="postgres"
        )
        assert await c.fetchval("SELECT current_user") == "keeper"
        await c.close()

    asyncio.run(body())


def test_ranges(server: ServerProcess) -> None:
    async def body(connection: asyncpg.Connection) -> None:
        one, rest = asyncpg.Range(1, 5), asyncpg.Range(decimal.Decimal("1.50"), None)
        empty: asyncpg.Range = asyncpg.Range(empty=True)
        await connection.execute(
            "CREATE TABLE async_ranges (r int4range, n numrange, m int4multirange, a numrange[])"
        )
        row = (one, rest, [one, asyncpg.Range(7, 9)], [rest, None, empty])
        await connection.execute("INSERT INTO async_ranges VALUES ($1, $2, $3, $4)", *row)
        await connection.copy_records_to_table("async_ranges", records=[row])
        rows = await connection.fetch("SELECT * FROM async_ranges")
        assert [tuple(found) for found in rows] == [row, row]
        assert await connection.fetchval("SELECT r @> $1::int FROM async_ranges LIMIT 1", 3) is True

    run(server, body)


def test_enums(server: ServerProcess) -> None:
    async def body(connection: asyncpg.Connection) -> None:
        await connection.execute("CREATE TYPE async_mood AS ENUM ('sad', 'grüße')")
        assert await connection.fetchval("SELECT $1::async_mood", "grüße") == "grüße"
        rows = await connection.fetch(
            "SELECT unnest($1::async_mood[]) AS m ORDER BY 1 DESC", ["sad", "grüße"]
        )
        assert [row["m"] for row in rows] == ["grüße", "sad"]
        with pytest.raises(asyncpg.InvalidTextRepresentationError):
            await connection.fetchval("SELECT $1::async_mood", "none")

    run(server, body)


def test_composites(server: ServerProcess) -> None:
    async def body(connection: asyncpg.Connection) -> None:
        await connection.execute("CREATE TYPE async_spot AS (x int, label text)")
        await connection.execute("CREATE TABLE async_spots (id int, p async_spot, ps async_spot[])")
        await connection.execute("INSERT INTO async_spots VALUES ($1, $2, $3)", 1, (5, "five"), [(6, None)])
        await connection.copy_records_to_table("async_spots", records=[(2, (8, "h"), [])])
        rows = await connection.fetch("SELECT p, ps, t FROM async_spots t ORDER BY id")
        assert [tuple(row["p"]) for row in rows] == [(5, "five"), (8, "h")]
        assert rows[0]["p"]["label"] == "five"
        assert [tuple(spot) for spot in rows[0]["ps"]] == [(6, None)]
        assert rows[1]["t"]["id"] == 2
        assert tuple(await connection.fetchval("SELECT $1::async_spot", (7, "z"))) == (7, "z")

    run(server, body)


def test_domains(server: ServerProcess) -> None:
    async def body(connection: asyncpg.Connection) -> None:
        await connection.execute("CREATE DOMAIN async_age AS int CHECK (VALUE >= 0)")
        await connection.execute("CREATE TABLE async_ages (id int, a async_age, l async_age[])")
        insert = await connection.prepare("INSERT INTO async_ages VALUES ($1, $2, $3)")
        await insert.fetch(1, 30, [1, 2])
        await connection.copy_records_to_table("async_ages", records=[(2, 40, [3])])
        rows = await connection.fetch("SELECT a, l, $1::async_age AS p FROM async_ages ORDER BY id", 5)
        assert [tuple(row) for row in rows] == [(30, [1, 2], 5), (40, [3], 5)]
        assert [a.type.name for a in insert.get_attributes()] == []
        select = await connection.prepare("SELECT a, l FROM async_ages")
        assert [a.type.name for a in select.get_attributes()] == ["int4", "async_age[]"]
        for values in ((3, -1, None), (3, 1, [-1])):
            with pytest.raises(asyncpg.CheckViolationError) as error:
                await insert.fetch(*values)
            assert (error.value.constraint_name, error.value.data_type_name) == (
                "async_age_check",
                "async_age",
            )
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.fetchval("SELECT $1::async_age", -1)

    run(server, body)


def test_a_statement_whose_columns_changed_is_prepared_again(server: ServerProcess) -> None:
    async def body(connection: asyncpg.Connection) -> None:
        await connection.execute("CREATE TABLE async_kept (a int); INSERT INTO async_kept VALUES (1)")
        assert list(await connection.fetchrow("SELECT * FROM async_kept")) == [1]
        await connection.execute("ALTER TABLE async_kept ALTER a SET DATA TYPE text")
        assert list(await connection.fetchrow("SELECT * FROM async_kept")) == ["1"]
        held = await connection.prepare("SELECT * FROM async_kept")
        await connection.execute("ALTER TABLE async_kept ADD b int")
        with pytest.raises(asyncpg.InvalidCachedStatementError):
            await held.fetch()

    run(server, body)


def test_a_parameter_of_a_type_that_has_gone_says_so(server: ServerProcess) -> None:
    """By this error SQLAlchemy and others forget what they know of types."""

    async def body(c: asyncpg.Connection) -> None:
        await c.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        add = await c.prepare("SELECT $1::mood::text")
        assert await add.fetchval("ok") == "ok"
        await c.execute("ALTER TYPE mood ADD VALUE 'glad'")
        assert await add.fetchval("glad") == "glad"
        await c.execute("DROP TYPE mood")
        await c.execute("CREATE TYPE mood AS ENUM ('bright', 'dark')")
        with pytest.raises(asyncpg.InternalServerError, match=r"cache lookup failed for type \d+"):
            await add.fetchval("dark")
        await c.execute("DROP TYPE mood")

    run(server, body)
