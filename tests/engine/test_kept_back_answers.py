"""What was waiting when the lease ran out is answered only once this server is sure to lead again, else never (A41).

statement   arrives ── waits ─────────────── has what it waited for ── answer
lease       valid ────────── run out ─────────────────────────────────┬─ renewed: the answer leaves
                                                                      └─ lost: 57P01, nothing else
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from engine.server.database import Database
from pgwire import messages as m
from pgwire.client import NEED_DATA
from pgwire.server import Server, ServerConfig
from tests.support.engine import open_database
from tests.support.sessions import Client
from txn.base.errors import Fenced, TxnError
from txn.persist.memory import MemoryDisk


class FakeLease:
    """Runs out, and is renewed or lost, as it is told."""

    def __init__(self) -> None:
        self.is_valid = True
        self.lost: TxnError | None = None
        self._changed = asyncio.Event()

    def valid(self) -> bool:
        return self.is_valid

    async def wait_valid(self) -> None:
        while not self.is_valid:
            if self.lost is not None:
                raise self.lost
            await self._changed.wait()

    def run_out(self) -> None:
        self.is_valid = False
        self._changed.clear()

    def renew(self) -> None:
        self.is_valid = True
        self._changed.set()

    def lose(self) -> None:
        self.lost = Fenced("epoch 1 has been superseded by 2")
        self._changed.set()


@dataclass(frozen=True)
class Case:
    """A message that waits, and what lets it go on.

    ``before``: what the waiting connection sends ahead, ``held``: what the other one sends. ``released``: what the other one sends
    to let it go on. ``told``: a row or tag of the answer.
    """

    sent: tuple[m.FrontendMessage, ...]
    told: bytes
    before: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    released: str = "ROLLBACK"


def query(sql: str) -> tuple[m.FrontendMessage, ...]:
    return (m.Query(sql),)


def extended(sql: str) -> tuple[m.FrontendMessage, ...]:
    return m.Parse("", sql, ()), m.Bind("", "", (), (), ()), m.Execute("", 0), m.Sync()


ADVISORY: Final = ("BEGIN", "SELECT pg_advisory_xact_lock(1)")
CHANGED: Final = ("BEGIN", "UPDATE t SET v = v + 1 WHERE k = 1")
LOCKED: Final = ("BEGIN", "LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
CASES: Final = {
    "advisory lock": Case(query("SELECT pg_advisory_lock(1)"), b"SELECT 1", held=ADVISORY),
    "advisory lock, extended": Case(extended("SELECT pg_advisory_lock(1)"), b"SELECT 1", held=ADVISORY),
    "for update": Case(query("SELECT v FROM t WHERE k = 1 FOR UPDATE"), b"10", held=CHANGED),
    "update, returning": Case(query("UPDATE t SET v = v * 2 WHERE k = 1 RETURNING v"), b"20", held=CHANGED),
    "update in a block": Case(
        query("UPDATE t SET v = 0 WHERE k = 1"), b"UPDATE 1", before=("BEGIN",), held=CHANGED
    ),
    "several": Case(query("SELECT 7; SELECT v FROM t WHERE k = 1 FOR UPDATE"), b"10", held=CHANGED),
    "read of a locked table": Case(
        query("SELECT count(*) FROM t, pg_advisory_lock(1)"), b"2", held=ADVISORY
    ),
    "extended, for update": Case(extended("SELECT v FROM t WHERE k = 1 FOR UPDATE"), b"10", held=CHANGED),
    "fetch": Case(
        query("FETCH ALL FROM c"), b"10", before=("BEGIN", "DECLARE c CURSOR FOR SELECT v, pg_advisory_lock(1) FROM t"),
        held=ADVISORY,
    ),
    "copy out": Case(query("COPY (SELECT v, pg_advisory_xact_lock(1) FROM t) TO STDOUT"), b"10", held=ADVISORY),
    "sequence": Case(query("SELECT pg_advisory_lock(1), nextval('s')"), b"1", held=ADVISORY),
    "catalog": Case(
        query("SELECT relname, pg_advisory_lock(1) FROM pg_class WHERE relname = 't'"), b"t", held=ADVISORY
    ),
    "snapshot": Case(
        query("SELECT pg_advisory_xact_lock(1), pg_export_snapshot() IS NOT NULL"), b"t", before=("BEGIN",), held=ADVISORY
    ),
    "function": Case(query("SELECT f()"), b"10", held=ADVISORY),
    "duplicate key": Case(
        query("INSERT INTO t VALUES (3, 0)"), b"23505", held=("BEGIN", "INSERT INTO t VALUES (3, 1)"),
        released="COMMIT",
    ),
    "notification": Case((), b"n", before=("LISTEN n",), held=("BEGIN", "NOTIFY n"), released="COMMIT"),
}  # fmt: skip


def pieces(client: Client) -> list[Any]:
    """Take what has been sent."""
    out = []
    while (event := client.socket.client.next_event()) is not NEED_DATA:
        out.append(event)
    return out


def texts(events: list[Any]) -> list[bytes]:
    """Return every value, tag and SQLSTATE that was sent, and whatever else tells of one."""
    out: list[bytes] = []
    for event in events:
        if isinstance(event, m.DataRow):
            out += [value or b"" for value in event.values]
        elif isinstance(event, m.CommandComplete):
            out.append(event.tag.encode())
        elif isinstance(event, m.ErrorResponse):
            out.append(event.report.sqlstate.encode())
        elif isinstance(event, m.CopyData):
            out += bytes(event.data).split()
        elif isinstance(event, m.NotificationResponse):
            out.append(event.channel.encode())
    return out


async def some_turns(count: int = 60) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(told: Callable[[], bool]) -> None:
    for _ in range(5000):
        if told():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come")


def played(case: Case, end: Callable[[Client, FakeLease], Awaitable[None]]) -> None:
    """Play a case up to where its answer is there and kept back; ``end`` says what becomes of it.

    Where others had their turn before the lease ran out, as on a slow machine, it was answered in time: then once more.
    """

    async def main() -> bool:
        database: Database = await open_database(MemoryDisk())
        lease = FakeLease()
        database.lease = lease  # type: ignore[assignment]
        server = Server(database, ServerConfig())
        database.terminate = server.terminate
        one, two = Client(server), Client(server)
        for client in (one, two):
            await client.answers()
        for sql in (
            "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20); CREATE SEQUENCE s",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_advisory_lock(1); RETURN (SELECT v FROM t WHERE k = 1); END $$",
            *case.held,
        ):
            said = await two.run(m.Query(sql))
            assert not [event for event in said if isinstance(event, m.ErrorResponse)], said
        for sql in case.before:
            await one.run(m.Query(sql))
        one.send(*case.sent)
        await some_turns()
        before = texts(pieces(one))
        assert case.told not in before
        assert one.session.busy == bool(case.sent)
        server.sessions[two.session.pid].responder.standing = None  # who lets it go on is told at once
        committer = database.store.core.log.committer
        apply = committer._apply

        early: list[bytes] = []

        def applied(members: list[Any], *args: Any) -> None:
            apply(members, *args)
            if len(members) > 1:
                early.append(b"")  # its own commit is in the batch, as on a slow machine: told whoever leads
            lease.run_out()

        def idle() -> None:
            ended()
            lease.run_out()

        other = database.sessions[two.session.pid]
        ended = other._idle
        other._idle = idle  # type: ignore[method-assign]
        committer._apply = applied  # type: ignore[method-assign]
        write = one.socket.write

        def written(data: bytes) -> None:
            if lease.valid():
                early.append(bytes(data))
            write(data)

        one.socket.write = written
        two.send(m.Query(case.released))
        await two.answers()
        committer._apply = apply  # type: ignore[method-assign]
        assert not lease.valid()
        await some_turns()
        answered = case.told in texts(pieces(one))
        assert not answered or early, "it was answered while the lease had run out"
        if not answered:
            await end(one, lease)
        lease.renew()
        await database.close()
        return not answered

    assert any(asyncio.run(main()) for _ in range(9)), "the lease never ran out in time"


@pytest.mark.parametrize("name", CASES)
def test_an_answer_leaves_when_the_lease_is_renewed(name: str) -> None:
    async def end(client: Client, lease: FakeLease) -> None:
        lease.renew()
        got: list[bytes] = []

        def told() -> bool:
            got.extend(texts(pieces(client)))
            return CASES[name].told in got

        await until(told)
        assert not client.socket.closed

    played(CASES[name], end)


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_dropped_when_another_server_leads(name: str) -> None:
    async def end(client: Client, lease: FakeLease) -> None:
        lease.lose()
        got: list[bytes] = []

        def ended() -> bool:
            got.extend(texts(pieces(client)))
            return bool(client.socket.closed)

        await until(ended)
        assert got == [b"57P01"]

    played(CASES[name], end)


def test_who_waits_for_the_lease_can_be_cancelled_and_what_rests_on_nothing_is_answered() -> None:
    async def main() -> None:
        database: Database = await open_database(MemoryDisk())
        lease = FakeLease()
        database.lease = lease  # type: ignore[assignment]
        server = Server(database, ServerConfig())
        one = Client(server)
        await one.answers()
        await one.run(m.Query("CREATE TABLE t (k int PRIMARY KEY)"))
        lease.run_out()
        assert b"SET" in texts(await one.run(m.Query("SET work_mem = '1MB'")))
        assert b"ROLLBACK" in texts(await one.run(m.Query("ROLLBACK")))
        for message in (
            query("SELECT count(*) FROM t"),
            query("SELECT k FROM t WHERE k = 1"),
            extended("TABLE t"),
        ):
            one.send(*message)
            await some_turns()
            assert texts(pieces(one)) == []
            one.session.cancel()
            assert texts(await one.answers()) == [b"57014"]
        one.send(m.Query("SELECT 1"))
        await some_turns()
        one.session.terminate()
        await until(lambda: bool(one.socket.closed))
        assert texts(pieces(one)) == [b"57P01"]
        lease.renew()
        await database.close()

    asyncio.run(main())


def test_what_a_leader_has_committed_is_answered() -> None:
    """Its entry could be written under this server's epoch, so it has led then."""

    async def main() -> None:
        database: Database = await open_database(MemoryDisk())
        lease = FakeLease()
        database.lease = lease  # type: ignore[assignment]
        server = Server(database, ServerConfig())
        one = Client(server)
        await one.answers()
        await one.run(m.Query("CREATE TABLE t (k int PRIMARY KEY)"))
        log = database.store.core.log.committer._txns
        append = log.append

        async def late(payload: bytes) -> int:
            seq = await append(payload)
            lease.run_out()
            return seq

        log.append = late  # type: ignore[method-assign]
        for number, sql in enumerate(
            ("INSERT INTO t VALUES ({})", "BEGIN; INSERT INTO t VALUES ({}); COMMIT")
        ):
            lease.renew()
            said = texts(await one.run(m.Query(sql.format(number))))
            assert said[-1] in (b"INSERT 0 1", b"COMMIT")
        lease.renew()
        await database.close()

    asyncio.run(main())
