"""Consistency levels, the commit token and min_read_ts through the server (N4, N14, L7, L8)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from engine.server.database import Database
from pgwire import messages as m
from tests.engine.test_sync_commit import Client, served
from tests.support.server import ServerProcess


def token(c: psycopg.Connection[Any]) -> int:
    return int(c.info.parameter_status("holdfast.commit_ts") or 0)


def test_every_commit_that_writes_tells_its_timestamp_and_no_other(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as c:
        assert token(c) == 0
        last = 0
        for sql in ("CREATE TABLE tok (a int PRIMARY KEY)", "INSERT INTO tok VALUES (1)", "UPDATE tok SET a = 2",
                    "BEGIN; INSERT INTO tok VALUES (3); INSERT INTO tok VALUES (4); COMMIT", "DELETE FROM tok"):  # fmt: skip
            c.execute(sql)
            assert token(c) > last, sql
            last = token(c)
            assert c.execute("SHOW holdfast.commit_ts").fetchone() == (str(last),)
        for sql in ("SELECT * FROM tok", "UPDATE tok SET a = 1", "BEGIN; SELECT 1; COMMIT", "SHOW ALL",
                    "BEGIN; INSERT INTO tok VALUES (9); ROLLBACK"):  # fmt: skip
            c.execute(sql)
            assert token(c) == last, sql
        assert c.execute("SELECT read_ts FROM holdfast_oracle").fetchone() == (last,)
        c.execute("SET holdfast.report_commit_ts = off")
        c.execute("INSERT INTO tok VALUES (5)")
        assert token(c) == last
        assert int((c.execute("SHOW holdfast.commit_ts").fetchone() or ("",))[0]) > last
        with pytest.raises(psycopg.Error) as refused:
            c.execute("SET holdfast.commit_ts = '7'")
        assert refused.value.diag.sqlstate == "55P02"
        c.execute("DROP TABLE tok")


def test_asyncpg_keeps_the_token(server: ServerProcess) -> None:
    async def main() -> None:
        c = await asyncpg.connect(server.url)
        await c.execute("CREATE TABLE tok2 (a int)")
        await c.executemany("INSERT INTO tok2 VALUES ($1)", [(1,), (2,)])
        assert int(getattr(c.get_settings(), "holdfast.commit_ts")) == int(
            await c.fetchval("SHOW holdfast.commit_ts")
        )
        await c.execute("DROP TABLE tok2")
        await c.close()

    asyncio.run(main())


def test_a_demanded_timestamp_is_waited_for_or_refused(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as c, psycopg.connect(server.url, autocommit=True) as d:
        c.execute("CREATE TABLE demand (a int PRIMARY KEY)")
        c.execute("INSERT INTO demand VALUES (1)")
        d.execute(f"SET min_read_ts = '{token(c)}'")
        assert d.execute("SELECT a FROM demand WHERE a = 1").fetchall() == [(1,)]
        for sql in (
            "SELECT a FROM demand WHERE a = 1",
            "BEGIN; SELECT a FROM demand",
            "INSERT INTO demand SELECT 7",
        ):
            d.execute("SET min_read_ts = '0'")
            ahead = int(time.time() * 1000) + 300 << 16
            d.execute(f"SET min_read_ts = '{ahead}'")
            d.execute(sql)
            assert time.time() * 1000 >= (ahead >> 16) - 1, (
                "the read did not wait for what it must not be older than"
            )
            lines = [str(row[0]) for row in d.execute("EXPLAIN (TIMESTAMP) SELECT 1").fetchall()]
            if sql.startswith("BEGIN"):
                assert f"  >= {ahead}  min_read_ts *" in lines
                d.execute("COMMIT")
        d.execute(f"SET min_read_ts = '{int(time.time() * 1000) + 3_600_000 << 16}'")
        with pytest.raises(psycopg.Error) as refused:
            d.execute("SELECT a FROM demand WHERE a = 1")
        assert refused.value.diag.sqlstate == "22023"
        assert d.execute(f"SELECT a FROM demand AS OF SYSTEM TIME {token(c)} WHERE a = 1").fetchall() == [
            (1,)
        ]
        for bad in ("x", "-1", "9" * 30):
            with pytest.raises(psycopg.Error) as refused:
                d.execute(f"SET min_read_ts = '{bad}'")
            assert refused.value.diag.sqlstate == "22023"
        d.execute("RESET min_read_ts")
        d.execute("SET statement_timeout = '100ms'")
        d.execute(f"SET min_read_ts = '{int(time.time() * 1000) + 5000 << 16}'")
        with pytest.raises(psycopg.Error) as refused:
            d.execute("SELECT a FROM demand")
        assert refused.value.diag.sqlstate == "57014"
        c.execute("DROP TABLE demand")


@pytest.mark.parametrize("level", ["session", "bounded", "serializable"])
def test_weaker_levels_see_what_their_session_wrote_and_writers_read_the_newest(
    server: ServerProcess, level: str
) -> None:
    with psycopg.connect(server.url, autocommit=True) as c, psycopg.connect(server.url, autocommit=True) as d:
        c.execute(f"SET consistency = {level}")
        c.execute("CREATE TABLE weak (a int PRIMARY KEY, n int)")
        c.execute("INSERT INTO weak VALUES (1, 0)")
        for round_ in range(20):
            assert c.execute("SELECT n FROM weak WHERE a = 1").fetchall() == [(round_ * 2,)]
            d.execute("UPDATE weak SET n = n + 1")
            c.execute("UPDATE weak SET n = n + 1")  # must not undo the other's (L7)
        lines = [str(row[0]) for row in c.execute("EXPLAIN (TIMESTAMP) SELECT * FROM weak").fetchall()]
        assert f"Consistency: {level}" in lines
        c.execute("DROP TABLE weak")


class DoubtfulLease:
    """A lease that ran out ``ago_s`` ago, and is renewed when somebody waits for that."""

    def __init__(self, ago_s: float) -> None:
        self.ago_s = ago_s
        self.waited = 0
        self.renewed = False

    def valid(self) -> bool:
        return self.renewed

    def remaining_s(self) -> float:
        return 1.0 if self.renewed else -self.ago_s

    async def wait_valid(self) -> None:
        await asyncio.sleep(0)
        self.waited += 1
        self.renewed = True


def test_only_what_the_level_allows_is_answered_by_a_leader_in_doubt(tmp_path: Path) -> None:
    """While the consensus store does not answer, strict reads wait for it and weaker ones need not (N14)."""

    async def use(database: Database, one: Client, _two: Client) -> None:
        ts = database.store.read_ts()
        read = "SELECT k FROM t WHERE k = 0"
        for setup, sql, waits in (
            ("RESET consistency", read, 1),
            ("SET consistency = serializable", read, 0),
            ("SET consistency = session", read, 0),
            ("SET consistency = bounded; SET max_staleness = '2s'", read, 1),
            ("SET max_staleness = '4s'", read, 0),
            ("SET consistency = serializable", "INSERT INTO t VALUES (7)", 1),
            ("SET consistency = serializable", "UPDATE t SET k = 8 WHERE k = 7", 1),
            ("SET consistency = serializable", "SELECT k FROM t WHERE k = 8 FOR UPDATE", 1),
            ("RESET consistency", f"SELECT k FROM t AS OF SYSTEM TIME {ts} WHERE k = 0", 0),
            ("RESET consistency", "SELECT k FROM t AS OF SYSTEM TIME now() WHERE k = 0", 1),
        ):
            database.lease = None
            await one.run(m.Query(setup))
            database.lease = lease = DoubtfulLease(3.0)  # type: ignore[assignment]
            said = await one.run(m.Query(sql))
            assert not any(isinstance(event, m.ErrorResponse) for event in said), (sql, said)
            assert lease.waited == waits, (setup, sql)
        database.lease = None

    served(tmp_path, use)


def test_a_clock_set_back_an_hour_changes_nothing_for_readers(tmp_path: Path) -> None:
    """Timestamps go on ahead of the clock (A11, L4): what is read, and when -1s is, follows them."""

    async def use(database: Database, one: Client, _two: Client) -> None:
        oracle = database.store.core.log.oracle
        before = database.store.read_ts()
        oracle._clock.raise_to((before >> 16) + 3_600_000)  # as if it had been that late, and set back since
        assert database.store.skew_ms() > 3_500_000
        await one.run(m.Query("INSERT INTO t VALUES (41)"))
        await one.run(m.Query("INSERT INTO t VALUES (42)"))
        # On a slow machine statements begin some time before their clause is worked out.
        begun_us = database.clock_us() - 20_000
        database.clock_us = lambda: begun_us  # type: ignore[method-assign]
        for when, count in (("interval '0 s'", b"3"), ("'-1 min'", b"1"), (str(before), b"1")):
            said = await one.run(m.Query(f"SELECT count(*) FROM t AS OF SYSTEM TIME {when}"))
            assert [event.values for event in said if isinstance(event, m.DataRow)] == [(count,)], (
                when,
                said,
            )

    served(tmp_path, use)
