"""AS OF SYSTEM TIME through the server: data and catalog of one moment, on every route and by every protocol (A2, L5)."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from decimal import Decimal

import asyncpg
import psycopg
import pytest

from tests.support.server import ServerProcess


def connect(server: ServerProcess) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(server.url, autocommit=True)


def commit_ts(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    value = connection.info.parameter_status("holdfast.commit_ts")
    assert value is not None
    return int(value)


def refused(connection: psycopg.Connection[tuple[object, ...]], sql: str) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as error:
        connection.execute(sql)
    return error.value.diag


def test_dropped_tables_and_old_columns_come_back(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE travel (a int PRIMARY KEY, b text)")
        c.execute("INSERT INTO travel VALUES (1, 'x'), (2, 'y')")
        first = commit_ts(c)
        c.execute("UPDATE travel SET b = 'z' WHERE a = 1")
        second = commit_ts(c)
        c.execute("ALTER TABLE travel ADD COLUMN c int DEFAULT 7")
        c.execute("ALTER TABLE travel RENAME TO journey")
        third = commit_ts(c)
        c.execute("DROP TABLE journey")
        assert first < second < third < commit_ts(c)

        def at(ts: int, sql: str) -> list[tuple[object, ...]]:
            return c.execute(sql.replace("@", f"AS OF SYSTEM TIME {ts}")).fetchall()

        for executor in ("auto", "index", "local"):
            c.execute(f"SET executor = {executor}")
            assert at(first, "SELECT * FROM travel @ ORDER BY a") == [(1, "x"), (2, "y")]
            assert at(first, "SELECT b FROM travel @ WHERE a = 1") == [("x",)]
            assert at(second, "SELECT * FROM travel @ ORDER BY a") == [(1, "z"), (2, "y")]
            assert at(third, "SELECT * FROM journey @ ORDER BY a") == [(1, "z", 7), (2, "y", 7)]
            assert at(second, "SELECT sum(x.a) FROM travel x JOIN travel y USING (a) @") == [(3,)]
        c.execute("RESET executor")
        names = "SELECT relname FROM pg_class @ WHERE relname IN ('travel', 'journey')"
        assert [at(ts, names) for ts in (first, third)] == [[("travel",)], [("journey",)]]
        assert c.execute(names.replace("@", "")).fetchall() == []
        assert refused(c, f"SELECT * FROM journey AS OF SYSTEM TIME {first}").sqlstate == "42P01"
        assert refused(c, f"SELECT c FROM travel AS OF SYSTEM TIME {second}").sqlstate == "42703"
        # what the past looked like leaves no trace in plans of the present
        c.execute("CREATE TABLE travel (other text)")
        assert c.execute("SELECT * FROM travel").fetchall() == []
        assert at(first, "SELECT * FROM travel @ ORDER BY a") == [(1, "x"), (2, "y")]
        assert c.execute("SELECT * FROM travel").fetchall() == []
        c.execute("DROP TABLE travel")


def _is_there_200_ms_before(c: psycopg.Connection[tuple[object, ...]], value: str, row: int) -> bool:
    """Delete a row, ask for it as of 200 ms before the question, and see that the answer is right; return what it is."""
    c.execute(f"DELETE FROM moments WHERE a = {row}")
    deleted_ms = commit_ts(c) >> 16
    asked = f"SELECT count(*), extract(epoch FROM now()) * 1000 - 200 FROM moments AS OF SYSTEM TIME {value} WHERE a = {row}"
    ((count, then_ms),) = c.execute(asked).fetchall()
    assert isinstance(then_ms, Decimal)
    if abs(int(then_ms) - deleted_ms) > 1:  # else it may be either
        assert count == (then_ms < deleted_ms), value
    return count == 1


def test_a_time_an_interval_or_a_constant_expression_say_when(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE moments (a int)")
        c.execute("INSERT INTO moments SELECT generate_series(1, 40)")
        time.sleep(0.25)
        (between,) = c.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
        time.sleep(0.25)
        left = iter(range(2, 41))
        for value in ("'-200ms'", "interval '-200 ms'", "now() - interval '0.2 s'", "current_timestamp + '-200 milliseconds'::interval"):  # fmt: skip
            was_there = any(_is_there_200_ms_before(c, value, row) for row in left)
            assert was_there, f"{value}: the machine is too slow to ask within 200 ms, in any of many tries"
        c.execute("DELETE FROM moments")
        for value in (f"'{between}'", f"'{between}'::timestamptz", f"timestamptz '{between}' + interval '0'"):
            past = f"SELECT a FROM moments AS OF SYSTEM TIME {value} WHERE a = 1"
            assert c.execute(past).fetchall() == [(1,)], value
        assert c.execute("SELECT a FROM moments AS OF SYSTEM TIME now()").fetchall() == []
        c.execute("SET TimeZone = 'Asia/Tokyo'")
        past = f"SELECT a FROM moments AS OF SYSTEM TIME '{between}' WHERE a = 1"
        assert c.execute(past).fetchall() == [(1,)]
        for value, state in (
            ("'soon'", "22023"), ("true", "42804"), ("NULL", "22004"), ("random()", "0A000"), ("a", "42703"),
            ("(SELECT 1)", "0A000"), ("'infinity'", "22023"), ("0", "22023"), ("-5", "22023"), ("1/0", "22012"),
        ):  # fmt: skip
            assert refused(c, f"SELECT a FROM moments AS OF SYSTEM TIME {value}").sqlstate == state, value
        c.execute("DROP TABLE moments")


def test_errors_name_the_nearest_readable_timestamp(server: ServerProcess) -> None:
    with connect(server) as c:
        below = refused(c, "SELECT 1 AS OF SYSTEM TIME '2001-01-01'")
        assert below.sqlstate == "72000"
        # a server that has run for longer than history_retention has moved on from where its history began
        assert re.search("history begins there|history_retention = 10min", below.message_detail or "")
        nearest = re.search(r"timestamp is (\d+)", below.message_hint or "")
        assert nearest is not None
        assert c.execute(f"SELECT 1 AS OF SYSTEM TIME {nearest[1]}").fetchall() == [(1,)]
        assert refused(c, f"SELECT 1 AS OF SYSTEM TIME {int(nearest[1]) - 1}").sqlstate == "72000"
        above = refused(c, "SELECT 1 AS OF SYSTEM TIME '1 hour'")
        assert above.sqlstate == "22023"
        assert "can be read at now is" in (above.message_hint or "")
        assert c.execute("SELECT 1 AS OF SYSTEM TIME '300 ms'").fetchall() == [(1,)]


def test_what_was_read_at_a_moment_stays_true(server: ServerProcess) -> None:
    """Readers ask for the present while others commit: nobody slips in at or below it afterwards."""
    with connect(server) as c:
        c.execute("CREATE TABLE streams (n int)")
    stop = threading.Event()

    def write() -> None:
        with connect(server) as w:
            while not stop.is_set():
                w.execute("INSERT INTO streams VALUES (1)")

    writers = [threading.Thread(target=write) for _ in range(3)]
    for thread in writers:
        thread.start()
    try:
        with connect(server) as c:
            seen = []
            for _ in range(40):
                c.execute("BEGIN AS OF SYSTEM TIME now()")
                (count,) = c.execute("SELECT count(*) FROM streams").fetchone() or (0,)
                explained = c.execute("EXPLAIN (TIMESTAMP) SELECT 1").fetchall()
                c.execute("COMMIT")
                ts = re.match(r"Timestamp: (\d+)", str(explained[0][0]))
                assert ts is not None
                seen.append((ts[1], count))
            for at, count in seen:
                again = c.execute(f"SELECT count(*) FROM streams AS OF SYSTEM TIME {at}").fetchone()
                assert again == (count,)
            assert seen[0][1] != seen[-1][1]
    finally:
        stop.set()
        for thread in writers:
            thread.join()
    with connect(server) as c:
        c.execute("DROP TABLE streams")


def test_bodies_of_sql_functions_do_not_travel(server: ServerProcess) -> None:
    with connect(server) as c:
        for body in ("SELECT 1 AS OF SYSTEM TIME '-1s'", "SELECT 1; SELECT 2 AS OF SYSTEM TIME '-1s'"):
            made = f"CREATE FUNCTION travels() RETURNS int LANGUAGE sql AS $$ {body} $$"
            error = refused(c, made)
            assert (error.sqlstate, error.message_primary) == (
                "0A000",
                "AS OF SYSTEM TIME in an SQL function is not supported",
            )
            with c.transaction(force_rollback=True):
                c.execute("SET LOCAL check_function_bodies = off")
                c.execute(made)  # type: ignore[call-overload]
                assert refused(c, "SELECT travels()").sqlstate == "0A000"


def test_blocks_read_at_one_moment_and_only_read(server: ServerProcess) -> None:
    with connect(server) as c, connect(server) as other:
        c.execute("CREATE TABLE blocks (a int)")
        c.execute("INSERT INTO blocks VALUES (1)")
        ts = commit_ts(c)
        c.execute("INSERT INTO blocks VALUES (2)")
        for begin in (
            [f"BEGIN AS OF SYSTEM TIME {ts}"],
            [f"START TRANSACTION AS OF SYSTEM TIME '{ts}', ISOLATION LEVEL SERIALIZABLE"],
            ["BEGIN", f"SET TRANSACTION AS OF SYSTEM TIME {ts}"],
        ):
            for statement in begin:
                c.execute(statement)
            other.execute("INSERT INTO blocks VALUES (3)")
            assert c.execute("SELECT a FROM blocks").fetchall() == [(1,)]
            assert c.execute("SHOW transaction_read_only").fetchall() == [("on",)]
            assert c.execute(f"SELECT a FROM blocks AS OF SYSTEM TIME {ts}").fetchall() == [(1,)]
            assert refused(c, "INSERT INTO blocks VALUES (4)").sqlstate == "25006"
            c.execute("ROLLBACK")
        c.execute("BEGIN")
        c.execute("SELECT 1")
        assert refused(c, f"SET TRANSACTION AS OF SYSTEM TIME {ts}").sqlstate == "25001"
        c.execute("ROLLBACK")
        c.execute("BEGIN")
        c.execute("SELECT 1")
        assert refused(c, f"SELECT a FROM blocks AS OF SYSTEM TIME {ts}").sqlstate == "25001"
        c.execute("ROLLBACK")
        assert refused(c, "BEGIN AS OF SYSTEM TIME '2001-01-01'").sqlstate == "72000"
        assert c.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert refused(c, f"BEGIN AS OF SYSTEM TIME {ts}, READ WRITE").sqlstate == "25006"
        for statement in (
            "INSERT INTO blocks SELECT * FROM blocks {}", "CREATE TABLE x AS SELECT relname FROM pg_class {}", "COMMIT {}",
            "CREATE VIEW x AS SELECT * FROM blocks {}", "SELECT * FROM blocks {} FOR UPDATE", "DELETE FROM blocks {}",
            "SET SESSION CHARACTERISTICS AS TRANSACTION {}",
        ):  # fmt: skip
            assert refused(c, statement.format(f"AS OF SYSTEM TIME {ts}")).sqlstate == "0A000", statement
        c.execute("DROP TABLE blocks")


def test_a_table_is_made_of_what_was_there(server: ServerProcess) -> None:
    """CREATE TABLE AS ... AS OF SYSTEM TIME: rows that were deleted, a column and a table that were dropped."""
    with connect(server) as c:
        c.execute("CREATE TABLE lost (a int PRIMARY KEY, b text)")
        c.execute("INSERT INTO lost SELECT g, 'row ' || g FROM generate_series(1, 30000) g")
        ts = int(c.execute("SHOW holdfast.commit_ts").fetchone()[0])  # type: ignore[index]
        c.execute("DELETE FROM lost WHERE a > 10")
        c.execute("ALTER TABLE lost DROP COLUMN b")
        past = f"AS OF SYSTEM TIME {ts}"
        assert c.execute(f"CREATE TABLE found AS SELECT * FROM lost {past} WHERE a = 20000").rowcount == 1
        assert c.execute("SELECT * FROM found").fetchall() == [(20000, "row 20000")]
        c.execute("DROP TABLE lost")
        assert c.execute(f"CREATE TABLE again AS SELECT * FROM lost {past}").rowcount == 30000
        with c.transaction():
            c.execute("INSERT INTO found VALUES (1, 'own')")
            c.execute(f"CREATE TABLE one AS SELECT b FROM lost {past} WHERE a = 7")
            c.execute("INSERT INTO one VALUES ('written now')")
        assert c.execute("SELECT b FROM one ORDER BY b").fetchall() == [("row 7",), ("written now",)]
        assert refused(c, f"CREATE TABLE found AS SELECT * FROM lost {past}").sqlstate == "42P07"
        assert refused(c, "CREATE TABLE y AS SELECT 1 AS OF SYSTEM TIME '2001-01-01'").sqlstate == "72000"
        c.execute("CREATE ROLE mallory")
        c.execute("CREATE SCHEMA mine AUTHORIZATION mallory")
        c.execute("SET ROLE mallory")
        assert refused(c, f"CREATE TABLE mine.y AS SELECT * FROM lost {past}").sqlstate == "42501"
        c.execute("RESET ROLE")
        c.execute("DROP TABLE found, again, one")
        c.execute("DROP SCHEMA mine")


def test_parameters_choose_the_moment(server: ServerProcess) -> None:
    """``$1`` in the clause, by asyncpg, psycopg and EXECUTE; the catalog is that of each value."""
    with connect(server) as c:
        c.execute("CREATE TABLE moved (a int PRIMARY KEY, b text)")
        c.execute("INSERT INTO moved VALUES (1, 'first')")
        first = int(c.execute("SHOW holdfast.commit_ts").fetchone()[0])  # type: ignore[index]
        c.execute("UPDATE moved SET b = 'second'")
        second = int(c.execute("SHOW holdfast.commit_ts").fetchone()[0])  # type: ignore[index]
        for value in (first, str(first), f"{first}"):
            row = c.execute("SELECT b FROM moved AS OF SYSTEM TIME %s WHERE a = %s", (value, 1)).fetchone()
            assert row == ("first",)
        assert c.execute("SELECT b FROM moved AS OF SYSTEM TIME %s::interval", ("0 s",)).fetchone() in (
            ("first",), ("second",),
        )  # fmt: skip
        c.execute("PREPARE q(int8, int) AS SELECT b FROM moved AS OF SYSTEM TIME $1 WHERE a = $2")
        assert c.execute(f"EXECUTE q({first}, 1)").fetchone() == ("first",)
        assert c.execute(f"EXECUTE q({second - 1} + 1, 1)").fetchone() == ("second",)
        c.execute("BEGIN")
        assert c.execute(f"EXECUTE q({first}, 1)").fetchone() == ("first",)
        assert refused(c, f"EXECUTE q({second}, 1)").sqlstate == "25001"
        c.execute("ROLLBACK")
        c.execute("DEALLOCATE q")
        assert refused(c, "SELECT 1 AS OF SYSTEM TIME $1").sqlstate == "42P02"
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            c.execute("SELECT b FROM moved AS OF SYSTEM TIME %s", (None,))
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            c.execute("CREATE TABLE y AS SELECT * FROM moved AS OF SYSTEM TIME %s", (first,))

    async def main() -> None:
        c = await asyncpg.connect(server.url)
        statement = await c.prepare("SELECT b FROM moved AS OF SYSTEM TIME $1::int8 WHERE a = $2")
        assert [p.name for p in statement.get_parameters()] == ["int8", "int4"]
        assert [await statement.fetchval(ts, 1) for ts in (first, second, first)] == [
            "first",
            "second",
            "first",
        ]
        everything = await c.prepare("SELECT * FROM moved AS OF SYSTEM TIME $1::int8")
        await c.execute("ALTER TABLE moved ADD COLUMN c int DEFAULT 5")
        third = int(await c.fetchval("SHOW holdfast.commit_ts"))
        assert await statement.fetchval(first, 1) == "first"
        assert await statement.fetchval(third, 1) == "second"
        # as asyncpg calls 0A000, "cached plan must not change result type"
        with pytest.raises(asyncpg.InvalidCachedStatementError):
            await everything.fetch(third)
        assert tuple(await c.fetchrow("SELECT * FROM moved AS OF SYSTEM TIME $1::int8", third)) == (
            1,
            "second",
            5,
        )
        with pytest.raises(asyncpg.InvalidCachedStatementError):
            await c.fetch("SELECT * FROM moved AS OF SYSTEM TIME $1::int8", first)
        assert await c.fetchval("SELECT c FROM moved AS OF SYSTEM TIME $1::int8 LIMIT 1", third) == 5
        await c.close()

    asyncio.run(main())
    server.sql("DROP TABLE moved")


def test_prepared_statements_cursors_and_copy_travel(server: ServerProcess) -> None:
    async def main() -> None:
        c = await asyncpg.connect(server.url)
        await c.execute("CREATE TABLE prep (a int PRIMARY KEY, b int)")
        await c.execute("INSERT INTO prep SELECT g, g FROM generate_series(1, 10) g")
        ts = int(await c.fetchval("SHOW holdfast.commit_ts"))
        statement = await c.prepare(f"SELECT b FROM prep AS OF SYSTEM TIME {ts} WHERE a = $1")
        await asyncio.sleep(0.4)
        relative = await c.prepare(
            "SELECT count(*), extract(epoch FROM now()) * 1000 - 300 FROM prep AS OF SYSTEM TIME '-300ms'"
        )
        deleted_ms: list[int] = []

        async def delete(where: str) -> None:
            await c.execute(f"DELETE FROM prep {where}")
            deleted_ms.append(int(await c.fetchval("SHOW holdfast.commit_ts")) >> 16)

        async def look() -> int:
            """Return how many rows there were 300 ms ago, by the clock of the statement, and see that it is right."""
            count, then_ms = await relative.fetchrow()
            gone = [ms for ms in deleted_ms if ms < then_ms]
            if all(abs(ms - then_ms) > 1 for ms in deleted_ms):  # else it may be either
                assert count == (10, 5, 0)[len(gone)]
            return int(count)

        assert await statement.fetchval(3) == 3
        await c.execute("UPDATE prep SET b = -b")
        await delete("WHERE a > 5")
        assert [await statement.fetchval(k) for k in (3, 9)] == [3, 9]
        await look()
        await asyncio.sleep(0.4)
        assert await look() == 5
        await delete("")
        await look()
        await asyncio.sleep(0.4)
        assert await look() == 0
        await c.execute(f"PREPARE q(int) AS SELECT b FROM prep AS OF SYSTEM TIME {ts} WHERE a = $1")
        assert await c.fetchval("EXECUTE q(1 + 1)") == 2
        async with c.transaction():
            await c.execute(f"SET TRANSACTION AS OF SYSTEM TIME {ts}")
            await c.execute(f"DECLARE cur CURSOR FOR SELECT a FROM prep AS OF SYSTEM TIME {ts} ORDER BY a")
            assert [r["a"] for r in await c.fetch("FETCH 3 FROM cur")] == [1, 2, 3]
        lines: list[bytes] = []

        async def collect(data: bytes) -> None:
            lines.append(data)

        await c.copy_from_query(
            f"SELECT a FROM prep AS OF SYSTEM TIME {ts} ORDER BY a LIMIT 2", output=collect
        )
        assert b"".join(lines) == b"1\n2\n"
        await c.execute("ALTER TABLE prep DROP COLUMN b")
        assert await statement.fetchval(4) == 4
        await c.execute("DROP TABLE prep")
        await c.close()

    asyncio.run(main())


def test_explain_timestamp_gives_every_bound_with_its_reason(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE bounds (a int)")
        ts = commit_ts(c)
        lines = [str(row[0]) for row in c.execute("EXPLAIN (TIMESTAMP) SELECT * FROM bounds").fetchall()]
        assert lines[0].startswith(f"Timestamp: {ts} (")
        assert "Consistency: strict" in lines
        assert any(line.startswith(f"  >= {ts}  since of table public.bounds") for line in lines)
        assert f"  <= {ts}  newest commit that is applied *" in lines
        sql = f"EXPLAIN (TIMESTAMP) SELECT * FROM bounds AS OF SYSTEM TIME {ts}"
        assert f"  <= {ts}  AS OF SYSTEM TIME *" in [str(row[0]) for row in c.execute(sql).fetchall()]
        c.execute("DROP TABLE bounds")
