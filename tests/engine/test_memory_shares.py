"""Memory by owner: what a statement may have, all together, a session; counted by the server's own accounts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import engine.statements.run
from engine.base import accounts
from engine.base.accounts import Account, Held, Sessions, Statements
from engine.base.eager import settle
from engine.base.loop.threads import beside
from engine.base.memory import MemoryPlan
from engine.executors.spark.slots import client_of
from engine.session.transaction.own_rows import FEW, ROW_BYTES, STEP_BYTES
from pgwire.errors import ErrorReport
from pgwire.give_way import give_way
from planner.base.errors import SqlError
from planner.base.large import METER, foresee, made
from tests.support.engine import Failed, Session, open_database
from txn.base.resident import resident_bytes
from txn.persist.memory import MemoryDisk

MEMORY = 1 << 28  # as tests.support.engine has it
SHARE = MemoryPlan.of(MEMORY).statement


pytestmark = pytest.mark.timeout(60)


def run(tmp_path: Path, body: Callable[[Session, Session], Awaitable[None]]) -> None:
    async def whole() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        try:
            await body(Session(database, 1), Session(database, 2))
        finally:
            await database.close()

    asyncio.run(whole())


TOO_MUCH = [
    "DO $$ DECLARE s text := 'x'; BEGIN LOOP s := s || s; END LOOP; END $$",
    "DO $$ DECLARE s bytea := '\\x00'; BEGIN LOOP s := s || s; END LOOP; END $$",
    "DO $$ DECLARE a text[]; BEGIN LOOP a := a || repeat('x', 1000000 + coalesce(cardinality(a), 0)); END LOOP; END $$",
    "SELECT repeat('x', 100000000)",
    "SELECT lpad('x', 100000000)",
    "SELECT rpad('x', 100000000, 'ab')",
    "SELECT replace(repeat('x', 1000000), 'x', repeat('y', 1000))",
    "SELECT replace(repeat('x', 1000000 + g), 'x', repeat('y', 1000)) FROM generate_series(1, 3) g",
    "SELECT concat(a, a, a, a, a, a, a, a) FROM (SELECT repeat('x', 20000000 + g) AS a FROM generate_series(1, 2) g) t",
    "SELECT a || a || a || a || a || a || a || a FROM (SELECT repeat('x', 20000000 + g) AS a FROM generate_series(1, 2) g) t",
    "SELECT format('%s%s%s%s%s%s', a, a, a, a, a, a) FROM (SELECT repeat('x', 20000000 + g) AS a FROM generate_series(1, 2) g) t",
    "SELECT format('%1000000000s', 'x')",
    "SELECT string_agg(repeat('x', 1000000 + g), '') FROM generate_series(1, 1000) g",
    "SELECT array_agg(repeat('x', 1000000 + g)) FROM generate_series(1, 1000) g",
    "SELECT jsonb_agg(repeat('x', 1000000 + g)) FROM generate_series(1, 1000) g",
    "SELECT json_agg(repeat('x', 1000000 + g)) FROM generate_series(1, 1000) g",
    "SELECT array_to_string(array_fill(repeat('x', 1000000), ARRAY[1000]), ',')",
    "SELECT convert_to(repeat('x', 60000000), 'UTF8') || convert_to(repeat('y', 60000000), 'UTF8')",
    "SELECT g::text::char(10000000) FROM generate_series(1, 100) g ORDER BY 1",
    "SELECT repeat('x', 1000000 + g) FROM generate_series(1, 1000) g ORDER BY 1",
    "SELECT DISTINCT repeat('x', 1000000 + g) FROM generate_series(1, 1000) g",
    "SELECT max(length(s)) FROM (SELECT repeat('x', 1000000 + g) AS s, g FROM generate_series(1, 1000) g OFFSET 0) t JOIN"
    " generate_series(1, 1000) h ON t.g = h GROUP BY s",
    "WITH w AS MATERIALIZED (SELECT repeat('x', 1000000 + g) AS s FROM generate_series(1, 1000) g) SELECT count(*) FROM w a, w b",
    "SELECT lag(s) OVER (ORDER BY s) FROM (SELECT repeat('x', 1000000 + g) AS s FROM generate_series(1, 1000) g) t",
    "SELECT string_to_array(repeat('x,', 10000000), ',')",
    "SELECT regexp_replace(repeat('x', 1000000), 'x', repeat('y', 1000), 'g')",
    "SELECT encode(convert_to(repeat('x', 60000000), 'UTF8'), 'hex')",
    "SELECT array_fill(0, ARRAY[100000000])",
]
GATHERED_IN_ONE_CALL = [
    "SELECT array_replace(array_fill(1.5, ARRAY[6000000]), 2.5, 3.5)",
    "SELECT array_positions(array_fill('x'::text, ARRAY[4000000]), 'x')",
]
"""Nobody foresees how much: what the process grows by is all that tells."""
WITHIN_A_SLICE = 32 << 20
"""Bytes that a loop may touch between two looks, 5 ms, at a microsecond a page and a few that it had free."""


@pytest.mark.parametrize("sql", TOO_MUCH)
def test_a_statement_has_its_share_and_no_more(sql: str, tmp_path: Path) -> None:
    has_its_share_and_no_more(sql, tmp_path)


@pytest.mark.parametrize("sql", GATHERED_IN_ONE_CALL)
def test_one_call_has_two_shares_and_no_more(sql: str, tmp_path: Path) -> None:
    """In a process of its own: one that has run other tests has memory free within it, and grows by less, or not at all."""
    words = [sys.executable, "-m", "tests.engine.test_memory_shares", sql, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stderr


def has_its_share_and_no_more(sql: str, tmp_path: Path) -> None:
    """Run a statement that gathers too much; AssertionError where it may, or has much more for a moment."""

    async def body(session: Session, other: Session) -> None:
        await session.run("SELECT 1")
        session.connection.db.statements.ceiling = 1 << 40  # what the tests before have left is none of its
        with pytest.raises(Failed) as caught:
            await session.run(sql)
        report = caught.value.report
        assert (report.sqlstate, report.message) == ("53200", "out of memory"), report
        assert "64 MB are allowed" in (report.detail or "")
        account = session.connection.session.account
        assert account.most < 2 * SHARE + WITHIN_A_SLICE
        assert not account.used
        assert await other.run("SELECT 1") == [("1",)]
        rows = await session.run("SELECT bytes FROM holdfast_memory WHERE owner = 'statements'")
        assert int(rows[0][0] or 0) < 8 << 20  # this one's

    run(tmp_path, body)


WITHIN = [
    # of constants alone, and too long to be computed ahead: each row makes it anew
    "SELECT count(length(s)) FROM (SELECT repeat('x', 1000000) AS s FROM generate_series(1, 300) OFFSET 0) t",
    # much is made, little is there at a time
    "SELECT count(length(repeat('x', 1000000 + g))) FROM generate_series(1, 500) g",
    "DO $$ DECLARE s text; BEGIN FOR i IN 1..500 LOOP s := repeat('x', 1000000 + i); END LOOP; END $$",
    "SELECT length(repeat('x', 30000000))",
]


@pytest.mark.parametrize("sql", WITHIN)
def test_what_is_dropped_at_once_is_not_counted(sql: str, tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        await session.run(sql)

    run(tmp_path, body)


def test_what_no_value_may_be_is_said_as_postgresql_says_it(tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        for sql in ("SELECT repeat('x', 1100000000)", "SELECT lpad('x', 300000000)"):
            with pytest.raises(Failed) as caught:
                await session.run(sql)
            assert (caught.value.report.sqlstate, caught.value.report.message) == (
                "54000",
                "requested length too large",
            )

    run(tmp_path, body)


def test_sessions_keep_what_they_may(tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        each = MemoryPlan.of(MEMORY).session
        for n in range(33):
            await session.run(f"SELECT set_config('my.s{n}', repeat('x', 1000000), false)")
        with pytest.raises(Failed) as caught:
            await session.run("SELECT set_config('my.s34', repeat('x', 1000000), false)")
        assert caught.value.report.sqlstate == "53200"
        assert "32 MB are allowed" in (caught.value.report.detail or "")
        held = session.connection.session.held
        assert each - (2 << 20) < held.bytes <= each
        await session.run("SELECT set_config('my.s0', '', false)")
        rows = await other.run("SELECT bytes FROM holdfast_memory WHERE owner = 'session' AND pid = 1")
        assert int(rows[0][0] or 0) == held.bytes < each - 900_000
        with pytest.raises(Failed):  # old values can come back as long as the transaction may fail
            await other.run(
                "BEGIN; DO $$ BEGIN FOR i IN 1..100 LOOP PERFORM set_config('my.a', repeat('x', 1000000 + i), false); END LOOP; END $$"
            )
        await other.run("ROLLBACK")
        assert other.connection.session.held.bytes < 10_000
        await other.run("PREPARE p AS SELECT 1")
        before = other.connection.session.held.bytes
        await other.run(f"PREPARE q AS SELECT '{'x' * 100_000}'")
        assert other.connection.session.held.bytes > before + 100_000
        await other.run("DEALLOCATE q")
        assert other.connection.session.held.bytes == before
        await other.run("DEALLOCATE ALL")
        assert other.connection.session.held.bytes < before
        database = session.connection.db
        await settle(session.connection.close())
        assert database.kept.bytes == other.connection.session.held.bytes

    run(tmp_path, body)


def test_a_role_s_share_is_less_where_its_settings_say_so(tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        await session.run("SET statement_memory = '10MB'")
        assert session.connection.session.derived.statement_memory == 10 << 20
        with pytest.raises(Failed) as caught:
            await session.run("SELECT repeat('x', 20000000)")
        assert "10 MB are allowed" in (caught.value.report.detail or "")
        assert await session.run("SELECT length(repeat('x', 5000000))") == [("5000000",)]
        await session.run("SET statement_memory = '10GB'")
        with pytest.raises(Failed) as caught:
            await session.run("SELECT repeat('x', 100000000)")
        assert "64 MB are allowed" in (caught.value.report.detail or "")
        await session.run("CREATE ROLE r")
        await session.run("ALTER ROLE r SET statement_memory = '1MB'")
        await session.run("SET ROLE r")
        with pytest.raises(Failed) as caught:
            await session.run("SET statement_memory = 0")
        assert caught.value.report.sqlstate == "42501"

    run(tmp_path, body)


REFUSED = [
    "SET {} = 4",
    "RESET {}",
    "SELECT set_config('{}', '4', false)",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET {} = 4 AS 'SELECT 1'",
    "ALTER ROLE r SET {} = 4",
    "ALTER ROLE r RESET {}",
    "ALTER ROLE r IN DATABASE theirs SET {} = 4",
    "ALTER DATABASE theirs SET {} = 4",
    "ALTER DATABASE theirs RESET {}",
]


@pytest.mark.parametrize("name", ["statement_memory", "spark_max_queries"])
def test_what_bounds_a_role_it_cannot_change(name: str, tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        database = session.connection.db
        for sql in (
            "CREATE ROLE r LOGIN", "CREATE ROLE maker LOGIN CREATEROLE", "GRANT CREATE ON SCHEMA public TO r",
            "CREATE DATABASE theirs OWNER r", f"ALTER ROLE r SET {name} = 1", "ALTER ROLE r SET datestyle = 'ISO, DMY'",
            f"ALTER DATABASE theirs SET {name} = 1",
        ):  # fmt: skip
            await session.run(sql)
        bound, maker = Session(database, 3, "r"), Session(database, 4, "maker")
        for sql in REFUSED:
            for who in (bound, maker):
                with pytest.raises(Failed) as caught:
                    await who.run(sql.format(name))
                assert caught.value.report.sqlstate == "42501", sql
        await bound.run("ALTER ROLE r RESET ALL")
        await bound.run("ALTER DATABASE theirs RESET ALL")
        await maker.run("ALTER ROLE r RESET ALL")
        rows = await session.run("SELECT setconfig FROM pg_db_role_setting ORDER BY 1")
        assert rows == [(f"{{{name}=1}}",), (f"{{{name}=1}}",)]
        client = client_of(bound.connection.session)
        assert (client.role, client.most) == (
            bound.connection.session.role_oid,
            1 if "spark" in name else 4,
        )

    run(tmp_path, body)


# --- the accounts by themselves ---------------------------------------------------------------------


def test_all_statements_together_have_a_bound() -> None:
    async def body() -> None:
        statements = Statements(limit=100, each=80)
        statements.taken = 90
        account = Account(statements)
        with pytest.raises(SqlError) as caught:
            account.charge(20, True)
        assert caught.value.sqlstate == "53200"
        assert "All statements together" in (caught.value.detail or "")
        assert not statements.crowded
        statements.taken = 101
        assert statements.crowded
        waiting = asyncio.ensure_future(statements.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        statements.taken = 50
        statements.freed()
        await waiting

    asyncio.run(body())


def test_messages_and_statements_have_one_ceiling(tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        database = session.connection.db
        size = database.messages.limit // 2
        assert database.messages.take(size)
        database.messages.give(size)
        database.statements.ceiling = 0
        assert not database.messages.take(size)

    run(tmp_path, body)


def test_what_others_left_inside_the_process_counts_up_to_its_ceiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Statements one after the other would each take their share on top of what the allocators have kept of the last."""
    process, kept = 0, 0

    def give_back() -> None:
        nonlocal process, kept
        process, kept = process - kept, 0

    monkeypatch.setattr(accounts, "resident_bytes", lambda: (process, 0))
    monkeypatch.setattr(accounts, "give_back", give_back)
    statements = Statements(limit=200, each=80, ceiling=500)
    account = Account(statements)
    process = 480
    account.begins()
    process = 490
    account.check()
    process = 505  # 25 of its own: more than a little
    with pytest.raises(SqlError) as caught:
        account.check()
    assert (caught.value.sqlstate, caught.value.detail) == (
        "53200",
        "The server has 0 kB; 0 kB are allowed.",
    )
    with pytest.raises(SqlError):
        account.charge(1, True)
    kept = 10  # by allocators: given back before anybody is refused
    account.check()
    account.clear()
    process = 600
    little = Account(statements)
    little.begins()
    process = 608
    little.check()
    statements.taken += statements.each // 4 - 16  # by many others, a little each; 8 are its own
    little.check()
    statements.taken += 1
    with pytest.raises(SqlError):
        little.check()


def test_what_is_freed_between_the_slices_of_a_statement_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """COPY of large rows: a thread writes each and frees it, while the loop has nothing to do."""
    process = 100
    monkeypatch.setattr(accounts, "resident_bytes", lambda: (process, 0))
    statements = Statements(limit=200, each=80)
    account, other = Account(statements), Account(statements)
    for _ in range(5):
        account.begins()
        process += 60
        account.check()
        account.ends()
        process -= 60
    account.begins()
    assert (account.taken, statements.taken) == (0, 0)
    process += 60
    account.ends()
    other.begins()  # it may be what has freed that
    process -= 30
    other.ends()
    process -= 30
    account.begins()
    assert (account.taken, statements.taken) == (60, 60)
    account.clear()
    assert (statements.taken, statements.last) == (0, None)


def test_many_statements_with_a_little_each_do_not_go_past_the_ceiling_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts, "resident_bytes", lambda: (100, 0))
    monkeypatch.setattr(accounts, "give_back", lambda: None)
    statements = Statements(limit=200 << 20, each=100 << 20, ceiling=1)
    accounts_, charged = [Account(statements) for _ in range(100)], 0
    for one in accounts_:
        try:
            for _ in range(20):
                one.charge(1 << 20, True)
                one.taken += 1 << 20  # as if it were measured
                statements.taken += 1 << 20
                charged += 1
        except SqlError:
            continue
    assert charged == 25
    assert statements.little(100 << 20) == (100 << 20) // 512


def test_the_next_statement_waits_and_then_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(session: Session, other: Session) -> None:
        statements = session.connection.db.statements
        statements.taken = statements.limit + 1
        monkeypatch.setattr(accounts, "ROOM_S", 0.01)
        with pytest.raises(Failed) as caught:
            await session.run("SELECT count(*) FROM generate_series(1, 10)")
        assert caught.value.report.sqlstate == "53200"
        assert "128 MB are allowed" in (caught.value.report.detail or "")
        monkeypatch.setattr(accounts, "ROOM_S", 60)
        running = asyncio.ensure_future(session.run("SELECT count(*) FROM generate_series(1, 10)"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not running.done()
        statements.taken = 0
        statements.freed()
        assert await running == [("10",)]

    run(tmp_path, body)


def test_nothing_is_kept_that_is_too_much() -> None:
    sessions = Sessions(limit=150, each=100)
    one, two = Held(sessions), Held(sessions)
    one.hold("a", 60)
    one.hold("b", 30)
    with pytest.raises(SqlError):
        one.hold("a", 80)
    assert (one.bytes, one.parts) == (90, {"a": 60, "b": 30})
    with pytest.raises(SqlError):
        two.hold("a", 70)
    one.hold("a", 0)
    two.hold("a", 70)
    assert sessions.bytes == 100
    one.release()
    assert sessions.bytes == 70


def test_a_value_outside_statements_is_compared_with_a_statement_s_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(METER, "charge", None)
    monkeypatch.setattr(accounts, "_statements", None)
    accounts.install(Statements(1 << 22, 1 << 20))
    foresee(1 << 19)
    with pytest.raises(SqlError):
        foresee(1 << 21)
    assert made("x" * 9000) == "x" * 9000


def test_past_the_ceiling_of_the_process_nothing_large_is_made_by_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(METER, "charge", None)
    monkeypatch.setattr(accounts, "_statements", None)
    ceiling = sum(resident_bytes()) + (64 << 20)
    accounts.install(Statements(1 << 30, 1 << 30, ceiling))
    foresee(100 << 20)  # a little
    with pytest.raises(SqlError, match="out of memory") as caught:
        foresee(200 << 20)
    assert f"{ceiling >> 20} MB are allowed" in (caught.value.detail or "")

    def gather() -> None:
        held = []
        for _ in range(1000):
            held.append(b"x" * (1 << 20))
            sleep(0.006)
            give_way()

    with pytest.raises(SqlError, match="out of memory"):
        asyncio.run(beside(gather))
    assert resident_bytes()[0] < ceiling + (128 << 20) + (32 << 20)


# --- rows that a statement writes -------------------------------------------------------------------


def test_few_rows_of_many_bytes_are_written_as_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COPY, INSERT … SELECT and UPDATE count the bytes of what they gather, not the rows alone."""

    async def body(session: Session, other: Session) -> None:
        written: list[int] = []
        log = session.connection.db.store.core.log
        write_part = log.write_part

        async def counting(shard: object, spec: object, table: Any, **options: object) -> object:
            written.append(table.num_rows)
            return await write_part(shard, spec, table, **options)

        monkeypatch.setattr(log, "write_part", counting)
        await session.run("CREATE TABLE t (id int, d text)")
        await session.run(
            "INSERT INTO t SELECT g, repeat('x', 1000000 + g) FROM generate_series(1, 40) g WHERE random() < 2"
        )
        assert sum(written) == 40
        await session.run("INSERT INTO t SELECT g, 'short' FROM generate_series(1, 40) g WHERE random() < 2")
        assert sum(written) == 40
        rows = await session.run("SELECT count(*), sum(length(d)) FROM t")
        assert rows == [("80", str(sum(range(1000001, 1000041)) + 200))]
        account = session.connection.session.account
        assert account.most < SHARE

    run(tmp_path, body)


# --- rows that are not committed ----------------------------------------------------------------------

LARGE = 1_000_000
ONE_BY_ONE = {
    "INSERT of one row": "INSERT INTO t VALUES ({n}, repeat('x', 1000000 + {n}))",
    "INSERT of several": "INSERT INTO t VALUES ({n}, repeat('x', 500000)), (-{n}, repeat('y', 500000))",
    "INSERT of a query": "INSERT INTO t SELECT {n}, repeat('x', 1000000 + {n})",
    "UPDATE": "UPDATE t SET d = repeat('x', 1000000 + {n}) WHERE id = 0",
    "UPDATE of another column": "UPDATE t SET n = {n} WHERE id = 0",
    "UPDATE of whatever there is": "UPDATE t SET d = repeat('x', 1000000 + {n})",
    "ON CONFLICT": "INSERT INTO t VALUES (0, 'y') ON CONFLICT (id) DO UPDATE SET d = repeat('x', 1000000 + {n})",
    "MERGE": "MERGE INTO t USING (VALUES (0)) v (id) ON t.id = v.id WHEN MATCHED THEN UPDATE SET d = repeat('x', 1000000 + {n})",
    "WITH": "WITH w AS (INSERT INTO t VALUES ({n}, repeat('x', 1000000 + {n})) RETURNING id) SELECT * FROM w",
    "a function": "SELECT f({n})",
    "a loop": "DO $$ BEGIN FOR i IN 1..2 LOOP PERFORM f({n} * 2 + i); END LOOP; END $$",
    "a trigger": "INSERT INTO fires VALUES ({n})",
    "EXECUTE": "EXECUTE p({n}, repeat('x', 1000000 + {n}))",
}


async def until_refused(session: Session, sql: str) -> tuple[int, ErrorReport]:
    """Run a statement with the numbers from 1 on; return the first that is refused, and how."""
    for n in range(1, 100):
        try:
            await session.run(sql.format(n=n))
        except Failed as failed:
            return n, failed.report
    raise AssertionError("never refused")


@pytest.mark.parametrize("sql", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_rows_of_a_transaction_count_until_it_ends(sql: str, tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        for ddl in (
            "CREATE TABLE t (id int PRIMARY KEY, d text, n int)",
            "CREATE TABLE fires (id int)",
            "CREATE FUNCTION f(n int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (n, repeat('x', 1000000 + n)); END $$",
            "CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM f(NEW.id); RETURN NEW; END $$",
            "CREATE TRIGGER g AFTER INSERT ON fires FOR EACH ROW EXECUTE FUNCTION g()",
            "INSERT INTO t VALUES (0, repeat('z', 1000000))",
            "PREPARE p AS INSERT INTO t VALUES ($1, $2)",
        ):
            await session.run(ddl)
        held = session.connection.session.held
        before = held.bytes
        await session.run("BEGIN")
        n, report = await until_refused(session, sql)
        assert report.sqlstate == "53200"
        assert "32 MB are allowed" in (report.detail or "")
        assert 12 < n < 35
        assert held.bytes == before  # the transaction is rolled back already
        await session.run("ROLLBACK")
        assert await session.run("SELECT count(*) FROM t") == [("1",)]

    run(tmp_path, body)


def test_what_a_savepoint_gives_back_counts_no_more(tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        held = session.connection.session.held
        await session.run("CREATE TABLE t (id int, d text)")
        await session.run("BEGIN")
        await session.run("INSERT INTO t VALUES (0, repeat('x', 1000000))")
        one = held.bytes
        for n in range(1, 100):
            await session.run("SAVEPOINT s")
            await session.run(f"INSERT INTO t VALUES ({n}, repeat('x', 1000000 + {n}))")
            assert held.bytes > one + LARGE
            await session.run("ROLLBACK TO s" if n % 2 else "ROLLBACK TO s; RELEASE s")
            assert held.bytes == one
        await session.run("DELETE FROM t")
        assert one <= held.bytes < one + LARGE  # one row, which is less than a step
        await session.run("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g")
        assert one < held.bytes < one + LARGE
        await session.run("COMMIT")
        assert held.bytes < one - LARGE // 2
        # one statement by itself keeps nothing behind it, however many rows it writes
        await session.run("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5000) g")
        assert "rows" not in held.parts
        await session.run("BEGIN; INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5000) g")
        assert held.parts["rows"] > 5000 * 400
        await session.run("ROLLBACK")
        assert "rows" not in held.parts

    run(tmp_path, body)


def test_rows_of_several_statements_without_a_block_count(tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        await session.run("CREATE TABLE t (id int, d text)")
        with pytest.raises(Failed) as caught:
            await session.run(
                ";".join(f"INSERT INTO t VALUES ({n}, repeat('x', 1000000))" for n in range(40))
            )
        assert caught.value.report.sqlstate == "53200"
        assert "rows" not in session.connection.session.held.parts
        assert await session.run("SELECT count(*) FROM t") == [("0",)]

    run(tmp_path, body)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES ({n}, 'x')",
        "UPDATE t SET c = '{n}' WHERE id = 0",
        "DELETE FROM t WHERE id = -{n}",
    ],
)
def test_statements_that_leave_a_small_row_each_are_counted_some_at_a_time(sql: str, tmp_path: Path) -> None:
    async def body(session: Session, other: Session) -> None:
        await session.run("CREATE TABLE t (id int PRIMARY KEY, c varchar(10))")
        await session.run("INSERT INTO t SELECT -g, 'x' FROM generate_series(0, 200) g")
        held = session.connection.session.held
        await session.run("BEGIN")
        for n in range(1, 201):
            await session.run(sql.format(n=n))
        assert held.parts["rows"] > (200 - FEW) * ROW_BYTES - STEP_BYTES
        await session.run("COMMIT")
        assert "rows" not in held.parts

    run(tmp_path, body)


if __name__ == "__main__":
    has_its_share_and_no_more(sys.argv[1], Path(sys.argv[2]))


def test_what_the_machine_has_no_memory_for_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(session: Session, _other: Session) -> None:
        def none_left(*_args: Any) -> Any:
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(engine.statements.run, "run", none_left)
            with pytest.raises(Failed, match=r"53200 out of memory The system has no more for the server\."):
                await session.run("CREATE TABLE t (a int)")
        await session.run("CREATE TABLE t (a int)")

    run(tmp_path, body)
