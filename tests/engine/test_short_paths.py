"""Statements that take a shorter way (a point read or a change of one row alone in its transaction) mean the same.

Every case runs as a prepared statement, whose first execution takes the general way and later ones the short one; changes also
by text, whose literals are parameters from the third time on, and which go the short way from the fourth.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from engine.server.database import Database
from engine.statements import run
from pgwire import give_way
from pgwire import messages as m
from tests.engine.test_sync_commit import Client, keys, served
from tests.support.server import ServerProcess

Use = Callable[[asyncpg.Connection, asyncpg.Connection], Awaitable[None]]


def both(server: ServerProcess, table: str, use: Use) -> None:
    """Run ``use`` with two connections and a fresh table (k int primary key, v text not null, check v <> '')."""

    async def main() -> None:
        one, two = await asyncpg.connect(server.url), await asyncpg.connect(server.url)
        try:
            await one.execute(f"DROP TABLE IF EXISTS {table} CASCADE")
            await one.execute(
                f"CREATE TABLE {table} (k int PRIMARY KEY, v text NOT NULL CHECK (v <> ''), d int DEFAULT 7)"
            )
            await use(one, two)
        finally:
            await one.close()
            await two.close()

    asyncio.run(main())


class ByText:
    """A statement sent as a Query with its values as literals; looks like asyncpg's prepared one."""

    def __init__(self, connection: asyncpg.Connection, sql: str) -> None:
        self.connection, self.sql, self.tag = connection, sql, ""

    async def fetch(self, *values: object) -> list[object]:
        sql = self.sql
        for number, value in enumerate(values, 1):
            literal = "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
            sql = sql.replace(f"${number}", literal)
        self.tag = await self.connection.execute(sql)
        return []

    def get_statusmsg(self) -> str:
        return self.tag


async def prepare(connection: asyncpg.Connection, sql: str, by_text: bool) -> Any:
    """Return a statement to run again and again."""
    return ByText(connection, sql) if by_text else await connection.prepare(sql)


by_text = pytest.mark.parametrize("by_text", [False, True], ids=["prepared", "text"])


def test_a_point_read_sees_every_acknowledged_write_and_no_other(server: ServerProcess) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        read = await two.prepare("SELECT v FROM short_read WHERE k = $1")
        assert await read.fetch(1) == []
        await one.execute("INSERT INTO short_read VALUES (1, 'a')")
        for step in range(5):
            assert [r["v"] for r in await read.fetch(1)] == ["a" * (step + 1)]
            changing = one.transaction()
            await changing.start()
            await one.execute("UPDATE short_read SET v = v || 'a' WHERE k = 1")
            assert [r["v"] for r in await read.fetch(1)] == ["a" * (step + 1)]
            await changing.commit()
        await one.execute("DELETE FROM short_read WHERE k = 1")
        assert await read.fetch(1) == []

    both(server, "short_read", use)


def test_inside_a_block_a_point_read_keeps_to_its_snapshot(server: ServerProcess) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        read = await two.prepare("SELECT v FROM short_block WHERE k = $1")
        await one.execute("INSERT INTO short_block VALUES (1, 'old')")
        assert [r["v"] for r in await read.fetch(1)] == ["old"]
        async with two.transaction(readonly=True):
            assert [r["v"] for r in await read.fetch(1)] == ["old"]
            await one.execute("UPDATE short_block SET v = 'new' WHERE k = 1")
            assert [r["v"] for r in await read.fetch(1)] == ["old"]
        assert [r["v"] for r in await read.fetch(1)] == ["new"]

    both(server, "short_block", use)


def test_a_point_read_notices_that_its_table_changed(server: ServerProcess) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        await one.execute("INSERT INTO short_schema VALUES (1, 'a')")
        read = await two.prepare("SELECT v FROM short_schema WHERE k = $1")
        assert len(await read.fetch(1)) == len(await read.fetch(1)) == 1
        await one.execute("TRUNCATE short_schema")
        assert await read.fetch(1) == []
        await one.execute("DROP TABLE short_schema")
        with pytest.raises(asyncpg.UndefinedTableError):
            await read.fetch(1)

    both(server, "short_schema", use)


@by_text
def test_a_one_row_insert_fills_defaults_and_keeps_constraints(server: ServerProcess, by_text: bool) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        insert = await prepare(one, "INSERT INTO short_insert (k, v) VALUES ($1, $2)", by_text)
        for key in range(3):
            assert await insert.fetch(key, f"v{key}") == []
            assert insert.get_statusmsg() == "INSERT 0 1"
        for key, value, error in (
            (1, "again", asyncpg.UniqueViolationError),
            (9, "", asyncpg.CheckViolationError),
            (9, None, asyncpg.NotNullViolationError),
        ):
            with pytest.raises(error):
                await insert.fetch(key, value)
        rows = await two.fetch("SELECT k, v, d FROM short_insert ORDER BY k")
        assert [tuple(r) for r in rows] == [(0, "v0", 7), (1, "v1", 7), (2, "v2", 7)]
        skip = await prepare(one, "INSERT INTO short_insert VALUES ($1, 'x') ON CONFLICT DO NOTHING", by_text)
        tags = []
        for key in (2, 3, 3):
            await skip.fetch(key)
            tags.append(skip.get_statusmsg())
        assert tags == ["INSERT 0 0", "INSERT 0 1", "INSERT 0 0"]

    both(server, "short_insert", use)


@by_text
def test_a_one_row_insert_in_a_block_is_undone_with_it(server: ServerProcess, by_text: bool) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        insert = await prepare(one, "INSERT INTO short_undo VALUES ($1, 'x')", by_text)
        await insert.fetch(1)
        block = one.transaction()
        await block.start()
        await insert.fetch(2)
        await insert.fetch(3)
        assert await two.fetchval("SELECT count(*) FROM short_undo") == 1
        await block.rollback()
        assert await two.fetchval("SELECT count(*) FROM short_undo") == 1
        async with one.transaction(readonly=True):
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await insert.fetch(4)

    both(server, "short_undo", use)


@by_text
def test_a_one_row_insert_notices_what_has_changed_since_it_was_prepared(
    server: ServerProcess, by_text: bool
) -> None:
    """The default, the table, a lock on it, rights, and whether the session may write at all."""

    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        insert = await prepare(one, "INSERT INTO short_stale (k, v) VALUES ($1, 'x')", by_text)
        for key in (1, 2):
            await insert.fetch(key)
        await two.execute("ALTER TABLE short_stale ALTER d SET DEFAULT 8")
        await insert.fetch(3)
        await two.execute("ALTER TABLE short_stale ADD CHECK (k < 5)")
        await insert.fetch(4)
        with pytest.raises(asyncpg.CheckViolationError):
            await insert.fetch(5)
        async with two.transaction():
            await two.execute("LOCK TABLE short_stale IN SHARE MODE")
            waiting = asyncio.create_task(insert.fetch(-1))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await two.execute("DELETE FROM short_stale WHERE k = 1")
        await waiting
        await one.execute("SET default_transaction_read_only = on")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await insert.fetch(-2)
        await one.execute("SET default_transaction_read_only = off; CREATE ROLE short_guest")
        for key in (-3, -4):
            await insert.fetch(key)
        await one.execute("SET ROLE short_guest")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await insert.fetch(-5)
        await one.execute("RESET ROLE; DROP ROLE short_guest")
        rows = await two.fetch("SELECT k, d FROM short_stale ORDER BY k DESC")
        assert [tuple(r) for r in rows] == [(4, 8), (3, 8), (2, 7), (-1, 8), (-3, 8), (-4, 8)]

    both(server, "short_stale", use)


@by_text
def test_a_one_row_insert_keeps_to_a_demanded_timestamp(server: ServerProcess, by_text: bool) -> None:
    """The short way chooses no timestamp, so where the session's settings do (min_read_ts, consistency) it is not taken."""

    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        insert = await prepare(one, "INSERT INTO short_demand VALUES ($1, 'x')", by_text)
        for key in range(3):
            await insert.fetch(key)
        for key in (10, 11):
            ahead = int(time.time() * 1000) + 150
            await one.execute(f"SET min_read_ts = '{ahead << 16}'")
            if key == 11:
                await one.execute("BEGIN")
            await insert.fetch(key)
            assert time.time() * 1000 >= ahead - 1, "it was stored below the timestamp that was demanded"
        await one.execute("COMMIT")
        await one.execute(f"SET min_read_ts = '{int(time.time() * 1000) + 3_600_000 << 16}'")
        with pytest.raises(asyncpg.PostgresError) as refused:
            await insert.fetch(12)
        assert refused.value.sqlstate == "22023"
        await one.execute("SET min_read_ts = '0'; SET consistency = 'session'")
        await insert.fetch(13)
        assert insert.get_statusmsg() == "INSERT 0 1"
        rows = await two.fetch("SELECT k FROM short_demand ORDER BY k")
        assert [r["k"] for r in rows] == [0, 1, 2, 10, 11, 13]

    both(server, "short_demand", use)


@by_text
def test_a_one_row_insert_waits_for_the_key_and_then_decides(server: ServerProcess, by_text: bool) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        insert = await prepare(two, "INSERT INTO short_wait VALUES ($1, 'two')", by_text)
        await insert.fetch(0)
        for key, commit in ((1, True), (2, False)):
            block = one.transaction()
            await block.start()
            await one.execute("INSERT INTO short_wait VALUES ($1, 'one')", key)
            waiting = asyncio.create_task(insert.fetch(key))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            if commit:
                await block.commit()
                with pytest.raises(asyncpg.UniqueViolationError):
                    await waiting
            else:
                await block.rollback()
                await waiting
        rows = await one.fetch("SELECT k, v FROM short_wait ORDER BY k")
        assert [tuple(r) for r in rows] == [(0, "two"), (1, "one"), (2, "two")]

    both(server, "short_wait", use)


@by_text
def test_a_one_row_insert_that_loses_a_deadlock_runs_again(server: ServerProcess, by_text: bool) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        await one.execute("ALTER TABLE short_lost ADD UNIQUE (d)")
        insert = await prepare(
            two, "INSERT INTO short_lost VALUES ($1, 'two', $2) ON CONFLICT (k) DO NOTHING", by_text
        )
        await insert.fetch(0, 0)
        block = one.transaction()
        await block.start()
        await one.execute("INSERT INTO short_lost VALUES (1, 'one', 10)")
        waiting = asyncio.create_task(insert.fetch(2, 10))  # has its key 2, waits for the other one
        while not await one.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        await one.execute("INSERT INTO short_lost VALUES (2, 'one', 20)")
        await block.rollback()
        await waiting
        assert insert.get_statusmsg() == "INSERT 0 1"
        rows = await one.fetch("SELECT k, v, d FROM short_lost ORDER BY k")
        assert [tuple(r) for r in rows] == [(0, "two", 0), (2, "two", 10)]

    both(server, "short_lost", use)


@by_text
def test_updates_by_key_keep_every_rule(server: ServerProcess, by_text: bool) -> None:
    """Constraints, a view's CHECK OPTION, rows that are not there, many rows under one key, a table that has changed."""

    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        await one.execute("INSERT INTO short_update VALUES (1, 'a'), (2, 'b')")
        put = await prepare(one, "UPDATE short_update SET v = $1 WHERE k = $2", by_text)
        for _ in range(2):
            await put.fetch("c", 1)
            assert put.get_statusmsg() == "UPDATE 1"
            await put.fetch("c", 77)
            assert put.get_statusmsg() == "UPDATE 0"
            await put.fetch("c", None)
            assert put.get_statusmsg() == "UPDATE 0"
        with pytest.raises(asyncpg.NotNullViolationError):
            await put.fetch(None, 1)
        with pytest.raises(asyncpg.CheckViolationError):
            await put.fetch("", 1)
        move = await prepare(one, "UPDATE short_update SET k = $1 WHERE k = $2", by_text)
        for key in (11, 12):
            await move.fetch(key, key - 1 if key == 12 else 1)
        with pytest.raises(asyncpg.UniqueViolationError):
            await move.fetch(2, 12)
        assert [tuple(r) for r in await two.fetch("SELECT k, v FROM short_update ORDER BY k")] == [
            (2, "b"),
            (12, "c"),
        ]

        await one.execute(
            "CREATE VIEW short_update_view AS SELECT k, d FROM short_update WHERE d < 100 WITH CHECK OPTION"
        )
        through = await prepare(one, "UPDATE short_update_view SET d = $1 WHERE k = 2", by_text)
        for value in (8, 9):
            await through.fetch(value)
        with pytest.raises(asyncpg.PostgresError) as refused:
            await through.fetch(100)
        assert refused.value.sqlstate == "44000"

        await one.execute("CREATE INDEX ON short_update (d)")
        await one.execute("INSERT INTO short_update SELECT i, 'many', 50 FROM generate_series(100, 2599) i")
        shift = await prepare(one, "UPDATE short_update SET d = d + 1 WHERE d = $1", by_text)
        for value in (50, 51):
            await shift.fetch(value)
            assert shift.get_statusmsg() == "UPDATE 2500"
        assert await two.fetchval("SELECT count(*) FROM short_update WHERE d = 52") == 2500

        await one.execute("ALTER TABLE short_update ADD CONSTRAINT low CHECK (d < 60)")
        await shift.fetch(52)
        with pytest.raises(asyncpg.CheckViolationError):
            await (await prepare(one, "UPDATE short_update SET d = $1 WHERE k = 2", by_text)).fetch(60)
        raise_to = await prepare(one, "UPDATE short_update SET d = $1 WHERE k = 2", by_text)
        for value in (10, 11):
            await raise_to.fetch(value)
        with pytest.raises(asyncpg.CheckViolationError):
            await raise_to.fetch(61)
        async with one.transaction(readonly=True):
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await raise_to.fetch(12)
        await two.execute("SET executor = 'local'")
        local = await prepare(two, "UPDATE short_update SET d = $1 WHERE k = 2", by_text)
        for value in (13, 14):
            await local.fetch(value)
        assert await one.fetchval("SELECT d FROM short_update WHERE k = 2") == 14

    both(server, "short_update", use)


@by_text
def test_changes_by_key_wait_for_the_row_and_see_what_became_of_it(
    server: ServerProcess, by_text: bool
) -> None:
    async def use(one: asyncpg.Connection, two: asyncpg.Connection) -> None:
        await one.execute("INSERT INTO short_row SELECT g, 'a', 0 FROM generate_series(1, 5) g")
        add = await prepare(two, "UPDATE short_row SET d = d + 1 WHERE k = $1", by_text)
        drop = await prepare(two, "DELETE FROM short_row WHERE k = $1", by_text)
        for key in (1, 2, 3):
            await add.fetch(key)
            await drop.fetch(key + 100)
            assert (add.get_statusmsg(), drop.get_statusmsg()) == ("UPDATE 1", "DELETE 0")
        for statement, change, tag in (
            (add, "UPDATE short_row SET d = 10 WHERE k = 1", "UPDATE 1"),
            (add, "DELETE FROM short_row WHERE k = 2", "UPDATE 0"),
            (drop, "UPDATE short_row SET d = 20 WHERE k = 3", "DELETE 1"),
            (drop, "DELETE FROM short_row WHERE k = 4", "DELETE 0"),
        ):
            block = one.transaction()
            await block.start()
            await one.execute(change)
            waiting = asyncio.create_task(statement.fetch(int(change[-1])))
            await asyncio.sleep(0.02)
            assert not waiting.done()
            await block.commit()
            await waiting
            assert statement.get_statusmsg() == tag
        assert [tuple(r) for r in await one.fetch("SELECT k, d FROM short_row ORDER BY k")] == [
            (1, 11),
            (5, 0),
        ]
        async with one.transaction():
            await one.execute("UPDATE short_row SET d = 1 WHERE k = 5")
            await two.execute("SET statement_timeout = '500ms'")
            with pytest.raises(asyncpg.QueryCanceledError):
                await add.fetch(5)
            await two.execute("SET statement_timeout = 0; BEGIN; SET LOCAL lock_timeout = '20ms'")
            with pytest.raises(asyncpg.LockNotAvailableError):
                await drop.fetch(5)
            await two.execute("ROLLBACK")
        other = await prepare(one, "UPDATE short_row SET d = d + 1 WHERE k = $1", by_text)

        async def many(statement: Any) -> None:
            for _ in range(20):
                await statement.fetch(5)

        await asyncio.gather(many(add), many(other))
        assert await one.fetchval("SELECT d FROM short_row WHERE k = 5") == 41

    both(server, "short_row", use)


@pytest.mark.parametrize("key_type", ["int", "bigint", "numeric(9,0)", "varchar(9)"])
def test_changes_of_one_row_are_not_dispatched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_type: str
) -> None:
    """A transaction by itself, from the fourth time on by text and the second by a prepared statement; in a block they are."""
    statements = (
        "INSERT INTO kept VALUES ({})",
        "UPDATE kept SET k = k WHERE k = {}",
        "DELETE FROM kept WHERE k = {}",
    )
    shown = "'{}'" if key_type.startswith("varchar") else "{}"

    async def use(database: Database, one: Client, two: Client) -> None:
        async def said(*messages: m.FrontendMessage) -> str:
            return " ".join(e.tag for e in await one.run(*messages) if isinstance(e, m.CommandComplete))

        await said(m.Query(f"CREATE TABLE kept (k {key_type} PRIMARY KEY)"))
        await said(m.Query(f"INSERT INTO kept VALUES ({shown.format(0)})"))
        for number, sql in enumerate(statements):
            await one.run(m.Parse(f"s{number}", sql.format("$1"), ()), m.Sync())
        for key in range(2, 6):
            if key == 5:
                monkeypatch.setattr(run, "run", None)
            for number, sql in enumerate(statements):
                tag = sql[:6] + (" 0 1" if number == 0 else " 1")
                assert await said(m.Query(sql.format(shown.format(key)))) == tag
                if number == 0:
                    await said(m.Query(statements[2].format(shown.format(key))))
                if number == 2:
                    await said(m.Query(statements[0].format(shown.format(key))))
                bind = m.Bind("", f"s{number}", (), (str(key).encode(),), ())
                assert await said(bind, m.Execute(), m.Sync()) == tag
        monkeypatch.undo()
        assert await keys(two) == ["0"]

    served(tmp_path, use)


@pytest.mark.parametrize("by_text", [True, False])
def test_short_statements_in_a_block_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_text: bool
) -> None:
    """What computes little is not opened for giving way, statement by statement: it would be asked for each."""
    statements = (
        "UPDATE kept SET n = n + {} WHERE k = 1",
        "SELECT n FROM kept WHERE k = {}",
        "INSERT INTO log (k, at) VALUES ({}, CURRENT_TIMESTAMP)",
        "DELETE FROM kept WHERE k = 5 + {}",
    )
    opened: list[bool] = []

    def counted(may: bool) -> bool:
        opened.append(may)
        return open_as_ever(may)

    open_as_ever = give_way.opened

    async def use(database: Database, one: Client, two: Client) -> None:
        await one.run(m.Query("CREATE TABLE kept (k int PRIMARY KEY, n int)"))
        await one.run(m.Query("CREATE TABLE log (k int, at timestamp)"))
        await one.run(m.Query("INSERT INTO kept VALUES (1, 0)"))
        for number, sql in enumerate(statements):
            await one.run(m.Parse(f"s{number}", sql.format("$1"), ()), m.Sync())
        for times in range(6):
            await one.run(m.Query("BEGIN"))
            if times == 5:
                monkeypatch.setattr(give_way, "opened", counted)
            for number, sql in enumerate(statements):
                if by_text:
                    events = await one.run(m.Query(sql.format(1)))
                else:
                    events = await one.run(m.Bind("", f"s{number}", (), (b"1",), ()), m.Execute(), m.Sync())
                assert not [event for event in events if isinstance(event, m.ErrorResponse)]
            monkeypatch.undo()
            await one.run(m.Query("COMMIT"))
        assert True not in opened

    served(tmp_path, use)


def test_an_update_of_many_rows_of_a_key_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little it computes for each."""
    opened: list[bool] = []

    def counted(may: bool) -> bool:
        opened.append(may)
        return open_as_ever(may)

    open_as_ever = give_way.opened

    async def use(database: Database, one: Client, two: Client) -> None:
        await one.run(m.Query("CREATE TABLE kept (k int, n int)"))
        await one.run(m.Query("CREATE INDEX ON kept (k)"))
        await one.run(m.Query("INSERT INTO kept SELECT i / 1000, 0 FROM generate_series(0, 1999) i"))
        for _ in range(5):
            await one.run(m.Query("UPDATE kept SET n = n + 1 WHERE k = 1"))
        monkeypatch.setattr(give_way, "opened", counted)
        await one.run(m.Query("UPDATE kept SET n = n + 1 WHERE k = 1"))
        monkeypatch.undo()
        assert True in opened

    served(tmp_path, use)
