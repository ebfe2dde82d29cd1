"""SUBSCRIBE through the wire: whole transactions only, resumable, and nobody waits for who reads slowly (N6)."""

from __future__ import annotations

import asyncio
import io
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.support.server import ServerProcess

ACCOUNTS, EACH = 20, 100
HOLDERS = "SELECT count(*) FROM holdfast_holds WHERE holder = 'subscription'"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("subscribe"), "--flush-rows", "5000")
    yield running
    assert running.stop() == 0


def connect(server: ServerProcess) -> psycopg.Connection[Any]:
    return psycopg.connect(server.url, autocommit=True)


def run(server: ServerProcess, body: Callable[[asyncpg.Connection], Awaitable[None]]) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        try:
            await body(connection)
        finally:
            await connection.close()

    asyncio.run(main())


def wait_for(server: ServerProcess, sql: str, wanted: str) -> None:
    for _ in range(200):
        if server.sql(sql) == [(wanted,)]:
            return
        time.sleep(0.05)
    raise AssertionError(f"{sql} never gave {wanted}, but {server.sql(sql)}")


def bank(server: ServerProcess, name: str) -> None:
    with connect(server) as c:
        c.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, balance int)")
        c.execute(f"INSERT INTO {name} SELECT i, {EACH} FROM generate_series(1, {ACCOUNTS}) i")


def transfer(c: psycopg.Connection[Any], name: str, rng: random.Random) -> None:
    """Move money between two accounts in one transaction; losing a race is fine."""
    a, b = rng.sample(range(1, ACCOUNTS + 1), 2)
    amount = rng.randrange(1, 20)
    try:
        with c.transaction():
            c.execute(f"UPDATE {name} SET balance = balance - %s WHERE id = %s", (amount, a))
            c.execute(f"UPDATE {name} SET balance = balance + %s WHERE id = %s", (amount, b))
    except psycopg.OperationalError:
        return


class Clients:
    """Threads that transfer until told to stop."""

    def __init__(self, server: ServerProcess, name: str, count: int) -> None:
        self.stop = threading.Event()
        self.done = 0
        self._threads = [
            threading.Thread(target=self._run, args=(server, name, random.Random(i)), daemon=True)
            for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, server: ServerProcess, name: str, rng: random.Random) -> None:
        try:
            with connect(server) as c:
                while not self.stop.is_set():
                    transfer(c, name, rng)
                    self.done += 1
        except psycopg.OperationalError:
            return  # the server was killed

    def end(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(30)


@pytest.mark.parametrize("query", ["bank_a", "(SELECT id, balance FROM bank_a WHERE id >= 0 ORDER BY id)"])
def test_the_sum_is_the_same_at_every_timestamp_under_load(server: ServerProcess, query: str) -> None:
    """Row by row and by recomputation: four clients transfer while it is read."""
    if not server.sql("SELECT 1 FROM pg_class WHERE relname = 'bank_a'"):
        bank(server, "bank_a")
    clients = Clients(server, "bank_a", 4)
    total, at, sums = 0, 0, []
    with connect(server) as c, c.cursor().copy(f"COPY (SUBSCRIBE {query} UP TO '4 s') TO STDOUT") as copy:
        copy.set_types(["int8", "int8", "int4", "int4"])
        for ts, diff, _id, balance in copy.rows():
            if ts != at:
                assert ts > at
                if at:
                    sums.append(total)
                at = ts
            total += diff * balance
    clients.end()
    sums.append(total)
    assert len(sums) > 30
    assert set(sums) == {ACCOUNTS * EACH}


def test_a_moment_before_other_columns_is_refused(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE grown (a int)")
        c.execute("INSERT INTO grown VALUES (1)")
        ts = int(c.execute("SHOW holdfast.commit_ts").fetchone()[0])  # type: ignore[index]
        c.execute("ALTER TABLE grown ADD COLUMN b int")
        for query in ("grown", "(SELECT b FROM grown)", "(SELECT max(b) FROM grown)"):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="other columns"):
                c.execute(f"SUBSCRIBE {query} AS OF {ts} UP TO '1 ms'")


def test_going_on_after_kill_9_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Read to random places, remember the last progress mark, kill the server, go on behind the mark."""
    rng = random.Random(7)
    server = ServerProcess(tmp_path, "--history-retention", "600")
    bank(server, "bank")
    rows: Counter[tuple[int, int]] = Counter()
    pending: list[tuple[int, tuple[int, int]]] = []
    token, sure = 0, Counter[tuple[int, int]]()
    for life in range(3):
        clients = Clients(server, "bank", 2)
        rows, pending = Counter(sure), []
        with connect(server) as c:
            c.execute("BEGIN")
            resume = f"AS OF {token} WITH (progress, snapshot = false)" if life else "WITH (progress)"
            c.execute(f"DECLARE c CURSOR FOR SUBSCRIBE bank {resume}")
            seen = 0
            while seen < rng.randrange(100, 300):
                count = rng.randrange(1, 9)
                for ts, progressed, diff, id_, balance in c.execute(
                    f"FETCH {count} FROM c WITH (timeout = '1 s')"
                ):
                    assert ts > token or (progressed and ts == token)
                    seen += 1
                    if not progressed:
                        pending.append((diff, (id_, balance)))
                        continue
                    for change, row in pending:
                        rows[row] += change
                    pending.clear()
                    token, sure = ts, Counter({r: n for r, n in rows.items() if n})
                    assert all(n == 1 for n in sure.values()), "lost or repeated"
                    assert len(sure) == ACCOUNTS
                    assert sum(balance for _, balance in sure) == ACCOUNTS * EACH
        server.kill()
        clients.end()
        server = ServerProcess(tmp_path, "--history-retention", "600")
    with connect(server) as c:
        changes = c.execute(f"SUBSCRIBE bank AS OF {token} UP TO '0 s' WITH (snapshot = false)").fetchall()
        for _ts, diff, id_, balance in changes:
            sure[(id_, balance)] += diff
        assert (
            sorted(r for r, n in sure.items() if n) == c.execute("SELECT * FROM bank ORDER BY id").fetchall()
        )
    assert server.stop() == 0


def _rss_mb(server: ServerProcess) -> float:
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def test_a_client_that_does_not_read_costs_no_memory_and_delays_nobody(server: ServerProcess) -> None:
    """100,000 rows of 300 bytes are written while a subscriber's socket is full; then it reads them all."""
    with connect(server) as c:
        c.execute("CREATE TABLE flood (id int PRIMARY KEY, filler text)")
        idle = socket.create_connection(("127.0.0.1", server.port))
        start = struct.pack("!i", 3 << 16) + b"user\0postgres\0database\0postgres\0\0"
        idle.sendall(struct.pack("!i", len(start) + 4) + start)
        text = b"COPY (SUBSCRIBE flood) TO STDOUT\0"
        idle.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        wait_for(server, HOLDERS, "1")
        before = _rss_mb(server)
        slowest = 0.0
        for first in range(0, 100_000, 2000):
            began = time.perf_counter()
            c.execute(
                "INSERT INTO flood SELECT i, repeat(i::text, 50) FROM generate_series(%s::int, %s::int) i",
                (first, first + 1999),
            )
            slowest = max(slowest, time.perf_counter() - began)
        grown = _rss_mb(server) - before
        assert grown < 220, "its rows alone are 30 MB; what is hot and what flushing needs come on top"
        assert slowest < 10
        idle.settimeout(20)
        stream = idle.makefile("rb")
        seen = 0
        while seen < 100_000:
            kind, length = struct.unpack("!ci", stream.read(5))
            stream.read(length - 4)
            seen += kind == b"d"
        stream.close()
        idle.close()
        wait_for(server, HOLDERS, "0")


def test_cancel_and_disconnect_end_it(server: ServerProcess) -> None:
    server.sql("CREATE TABLE ended (id int PRIMARY KEY)")
    with connect(server) as c:
        c.execute("SET statement_timeout = '100 ms'")  # it does not count for what is meant to go on

        def cancel() -> None:
            wait_for(server, HOLDERS, "1")
            time.sleep(0.3)
            c.cancel()

        cancelling = threading.Thread(target=cancel)
        cancelling.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            c.execute("SUBSCRIBE ended")
        cancelling.join()
        c.execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE ended")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            c.execute("FETCH 1 FROM c")
    wait_for(server, HOLDERS, "0")
    c = connect(server)
    c.execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE ended")
    wait_for(server, HOLDERS, "1")
    c.close()
    wait_for(server, HOLDERS, "0")


def test_a_cancelled_fetch_loses_no_row(server: ServerProcess) -> None:
    server.sql("CREATE TABLE fetched (id int PRIMARY KEY)")
    with connect(server) as c, connect(server) as writer:
        c.execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE fetched")
        seen: list[int] = []
        for i in range(30):
            c.execute("SAVEPOINT s")
            writer.execute("INSERT INTO fetched VALUES (%s)", (i,))
            cancelling = threading.Timer(random.random() * 0.02, c.cancel)
            if i % 3 == 0:
                cancelling.start()
            try:
                seen += [row[2] for row in c.execute("FETCH ALL FROM c").fetchall()]
            except psycopg.errors.QueryCanceled:
                c.execute("ROLLBACK TO s")
            if i % 3 == 0:
                cancelling.join()  # it has come by now, maybe between two statements: then nothing ends by it
                c.execute("SELECT 1")
        while rows := c.execute("FETCH ALL FROM c WITH (timeout = '50 ms')").fetchall():
            seen += [row[2] for row in rows]
        assert seen == list(range(30))


def test_a_portal_gives_rows_as_they_come(server: ServerProcess) -> None:
    """asyncpg's cursors are portals with row limits, in a transaction block, in binary."""

    async def body(c: asyncpg.Connection) -> None:
        await c.execute("CREATE TABLE portal (id int PRIMARY KEY, v numeric, s text)")
        await c.execute("INSERT INTO portal VALUES (1, 1.50, 'a'), (2, NULL, 'b'), (3, 'NaN', NULL)")
        writer = await asyncpg.connect(server.url)
        async with c.transaction():
            cursor = await c.cursor("SUBSCRIBE (SELECT id, v, upper(s) AS s FROM portal WHERE id < $1)", 100)
            first = await cursor.fetch(2) + await cursor.fetch(1)
            assert [tuple(r)[1:3] for r in first] == [(1, 1), (1, 2), (1, 3)]
            assert [r["s"] for r in first] == ["A", "B", None]
            assert first[0]["v"] == Decimal("1.50")
            waiting = asyncio.ensure_future(cursor.fetch(2))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await writer.execute("UPDATE portal SET s = 'A', id = 200 WHERE id = 2")
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await writer.execute("DELETE FROM portal WHERE id = 1")
            rows = await asyncio.wait_for(waiting, 5)
            assert [(r["holdfast_diff"], r["id"]) for r in rows] == [(-1, 2), (-1, 1)]
            assert rows[0]["holdfast_timestamp"] < rows[1]["holdfast_timestamp"]
        await writer.close()

    run(server, body)


@pytest.mark.parametrize("format_", ["text", "csv", "binary"])
def test_copy_in_every_format(server: ServerProcess, format_: str) -> None:
    async def body(c: asyncpg.Connection) -> None:
        await c.execute(f"CREATE TABLE copied_{format_} (id int PRIMARY KEY, s text)")
        writer = await asyncpg.connect(server.url)
        out = io.BytesIO()
        query = f"SUBSCRIBE copied_{format_} UP TO '1500 ms' WITH (progress)"
        copying = asyncio.ensure_future(c.copy_from_query(query, output=out, format=format_))
        while not (await writer.fetchval(HOLDERS)):
            await asyncio.sleep(0.02)
        await writer.execute(f"INSERT INTO copied_{format_} VALUES (1, 'x,y')")
        await copying
        data = out.getvalue()
        if format_ == "binary":
            assert data.startswith(b"PGCOPY\n\xff\r\n\0")
            assert data.endswith(b"\xff\xff")
            assert b"x,y" in data
        else:
            lines = [line.split("," if format_ == "csv" else "\t", 4) for line in data.decode().splitlines()]
            changed = [line for line in lines if line[1] == "f"]
            assert [line[2:] for line in changed] == [["1", "1", '"x,y"' if format_ == "csv" else "x,y"]]
            assert int(lines[-1][0]) >= int(changed[0][0])
            assert lines[-1][1:3] == ["t", "" if format_ == "csv" else "\\N"]
        await writer.close()

    run(server, body)


def test_who_may_not_read_may_not_subscribe(server: ServerProcess) -> None:
    server.sql("CREATE TABLE secret (id int PRIMARY KEY)")
    server.sql("CREATE ROLE nosy LOGIN")
    with psycopg.connect(server.url.replace("postgres@", "nosy@"), autocommit=True) as c:
        for sql in (
            "SUBSCRIBE secret",
            "COPY (SUBSCRIBE secret) TO STDOUT",
            "SUBSCRIBE (SELECT 1 FROM secret)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                c.execute(sql)
        c.execute("BEGIN")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            c.execute("DECLARE c CURSOR FOR SUBSCRIBE secret")
