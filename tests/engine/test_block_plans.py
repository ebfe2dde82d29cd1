"""BEGIN and its kin are planned once and mean the same every time, also in a failed block."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from engine.base.eager import settle
from engine.plans import planning
from engine.server.database import Database
from engine.session.plans.plan import _names
from pgwire.errors import BackendError
from planner.parse import Parsed
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk


def run(work: Callable[[Database], Awaitable[None]]) -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        await work(database)
        await database.close()

    asyncio.run(main())


async def state_after(session: Session, sql: str) -> str:
    """Run a statement; return the SQLSTATE it fails with, else its tag."""
    try:
        await session.run(sql)
    except Failed as failed:
        return failed.report.sqlstate
    return session._out.tag


def test_a_block_costs_no_parsing_once_its_statements_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(database: Database) -> None:
        one, two = Session(database, 1), Session(database, 2)
        statements = (
            "BEGIN",
            "SAVEPOINT s",
            "ROLLBACK TO s",
            "COMMIT",
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "ROLLBACK",
        )
        for sql in statements:
            await one.run(sql)
        monkeypatch.setattr(planning, "parse", lambda text: pytest.fail(f"parsed again: {text}"))
        monkeypatch.setattr(
            "engine.connection.simple.parse", lambda text: pytest.fail(f"parsed again: {text}")
        )
        for sql in statements:
            await two.run(f"{sql};")
        assert two.connection.status() == "I"

    run(work)


def test_the_modes_of_a_known_begin_are_those_of_its_text() -> None:
    async def work(database: Database) -> None:
        session = Session(database, 1)
        for _ in range(2):
            for modes, level, read_only in (
                ("ISOLATION LEVEL REPEATABLE READ, READ ONLY", "repeatable read", "on"),
                ("", "serializable", "off"),
            ):
                await session.run(f"BEGIN {modes}")
                assert await session.run("SHOW transaction_isolation") == [(level,)]
                assert await session.run("SHOW transaction_read_only") == [(read_only,)]
                await session.run("COMMIT")
            await session.run("SET default_transaction_read_only = on")
            await session.run("BEGIN")
            assert await session.run("SHOW transaction_read_only") == [("on",)]
            await session.run("COMMIT")
            await session.run("RESET default_transaction_read_only")

    run(work)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_failed_block_refuses_known_statements_but_its_end(prepared: bool) -> None:
    async def work(database: Database) -> None:
        session = Session(database, 1)
        for sql in ("BEGIN", "SAVEPOINT s", "RELEASE s", "COMMIT"):
            await session.run(sql)
            plan = session.connection.planning.plan_text(sql, ())
            assert plan is not None
            assert plan.cacheable
        await session.run("BEGIN")
        assert await state_after(session, "SELECT 1/0") == "22012"
        for sql in ("BEGIN", "SAVEPOINT s", "RELEASE s"):
            if prepared:
                with pytest.raises(Exception, match="current transaction is aborted"):
                    session.connection.planning.plan_text(sql, ())
            else:
                assert await state_after(session, sql) == "25P02"
        assert session.connection.status() == "E"
        assert await state_after(session, "COMMIT") == "ROLLBACK"
        assert session.connection.status() == "I"

    run(work)


def test_what_a_session_derives_from_its_settings_outlives_a_block_but_not_a_setting() -> None:
    async def work(database: Database) -> None:
        session = Session(database, 1)
        derived = session.connection.session.derived
        for sql in ("BEGIN READ ONLY", "ROLLBACK", "BEGIN ISOLATION LEVEL READ COMMITTED", "COMMIT"):
            await session.run(sql)
            assert session.connection.session.derived is derived
        await session.run("SET TimeZone = 'Asia/Tokyo'")
        assert session.connection.session.derived.codec.time_zone == "Asia/Tokyo"
        await session.run("BEGIN")
        await session.run("SET LOCAL lock_timeout = 77")
        assert session.connection.session.derived.lock_timeout_ms == 77
        await session.run("COMMIT")
        assert session.connection.session.derived.lock_timeout_ms == 0

    run(work)


def test_a_read_that_waits_for_its_turn_keeps_to_what_was_described() -> None:
    """Between Bind and Execute of a statement others may define its table anew: others' reads by key let the first wait."""
    table = "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 2)"
    changes = ("ALTER TABLE t ADD c int DEFAULT 3", "ALTER TABLE t DROP b, ADD c text", "DROP TABLE t")

    async def check(one: Session, two: Session, sql: str, change: str, *, block: bool) -> None:
        await one.run(f"DROP TABLE IF EXISTS t; {table}")
        if block:
            await one.run("BEGIN")
        connection, out = one.connection, one._out
        await settle(connection.parse("", sql, ()))
        await settle(connection.bind("", "", (), (), ()))
        out.rows, out.error_report = [], None
        await two.run(change)
        with pytest.raises(BackendError) as raised:
            await settle(connection.execute("", 0, out))
        assert raised.value.report.sqlstate in ("0A000", "42P01"), raised.value.report
        assert out.rows == []
        connection.session.block.fail()
        await one.run("ROLLBACK")

    async def work(database: Database) -> None:
        one, two = Session(database, 1), Session(database, 2)
        for sql in ("SELECT * FROM t WHERE a = 1", "SELECT * FROM t"):
            for change in changes:
                for block in (False, True):
                    await check(one, two, sql, change, block=block)

    run(work)


def test_statements_between_the_ddl_of_a_migration_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a transaction with DDL of its own: plans by text and by template outlive new tables, and end with it where they must."""
    columns = "SELECT count(*) FROM information_schema.columns WHERE table_name = '{}'"
    texts = (columns, "INSERT INTO log VALUES ('{}')", "SELECT count(*) FROM log WHERE what = '{}'")

    async def work(database: Database) -> None:
        one, two = Session(database, 1), Session(database, 2)
        await one.run("CREATE TABLE log (what text)")
        await two.run("SELECT count(*) FROM log")
        await one.run("BEGIN; CREATE TABLE t0 (a int)")
        for number in range(2):
            for text in texts:
                await one.run(text.format(f"t{number}"))
        known = planning.parse

        def only_ddl(text: str) -> list[Parsed]:
            assert text.startswith(("CREATE", "ROLLBACK", "ALTER")), f"parsed again: {text}"
            return known(text)

        with monkeypatch.context() as patched:
            patched.setattr(planning, "parse", only_ddl)
            patched.setattr("engine.connection.simple.parse", only_ddl)
            for number in range(2, 5):
                await one.run(f"CREATE TABLE t{number} (a int, b int)")
                await one.run(f"CREATE INDEX ON t{number} (a)")
                await one.run(f"ALTER TABLE t{number} ADD c int")
                for text in texts:
                    rows = await one.run(text.format(f"t{number}"))
                assert rows == [("1",)]
                assert await one.run(columns.format(f"t{number}")) == [("3",)]
            # what others have planned stays theirs, too
            assert await two.run("SELECT count(*) FROM log") == [("0",)]
        await one.run("ROLLBACK")
        assert await one.run(columns.format("t3")) == [("0",)]
        assert await one.run("SELECT count(*) FROM log WHERE what = 't3'") == [("0",)]

    run(work)


def test_new_relations_matter_to_plans_only_by_name() -> None:
    async def work(database: Database) -> None:
        session = Session(database, 1)
        bind = session.connection.planning
        await session.run("CREATE TABLE a (x int); CREATE VIEW v AS SELECT x FROM a")
        await session.run(
            "CREATE FUNCTION f() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM a'"
        )
        texts = ("SELECT x FROM a", "SELECT x FROM v", "SELECT f()", 'SELECT x FROM U&"\\0061"', "ALTER TABLE a ADD y int",
                 "SELECT x AS Other FROM a")  # fmt: skip
        plans = [plan for text in texts if (plan := bind.plan_text(text, ())) is not None]

        def fresh() -> list[bool]:
            return [plan.fresh(session.connection.session.catalog) for plan in plans]

        assert fresh() == [True] * 6
        await session.run("CREATE TABLE t (y int)")
        assert fresh() == [True, False, False, False, False, True]
        await session.run("CREATE TABLE other (y int)")
        assert fresh() == [True, False, False, False, False, False]
        await session.run("DROP TABLE t")
        assert fresh() == [False] * 6
        # nor do they in a transaction that did not come of the one they were made in
        await session.run("BEGIN; CREATE TABLE mine (y int)")
        plans[:] = [plan for text in texts[:1] if (plan := bind.plan_text(text, ())) is not None]
        assert fresh() == [True]
        await session.run("ROLLBACK; CREATE TABLE theirs (y int)")
        assert fresh() == [False]

    run(work)


def test_a_name_is_found_where_a_text_may_mean_it() -> None:
    for text, name in (
        ("select * from t", "t"), ("select * from T", "T"), ("select 't'::regclass", "t"), ("select x::_t", "t"), ('from "a b"', "a b"),
        (f"from {'n' * 70}", "n" * 63), ("from x", "ä"), ("from x", 'a"b'), ("from a$b", "a$b"), ("from s.t;", "t"),
    ):  # fmt: skip
        assert _names(text.lower(), name), (text, name)
    for text, name in (("select * from u", "t"), ("select at, t1, t_ from x", "t"), ("select x", "a b")):
        assert not _names(text, name), (text, name)
