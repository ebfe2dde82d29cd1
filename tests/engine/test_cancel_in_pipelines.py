"""A cancel that comes while a pipeline is worked off ends the batch it came at, and no later one (L39).

    P B E  P B E  │ P B E  S      P B E  S       57014 in place of the message that comes next, skipped to the Sync
    P B E  P B E  │ S             P B E  S       nothing: what was asked for has been done
    Q  Q          │ Q  Q                         57014 in place of the next Query, the others are run

Others have their turn between any two messages here, and the cancel comes at each turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pytest

import pgwire.session
from engine.server.database import Database
from pgwire import messages as m
from pgwire.client import NEED_DATA
from pgwire.messages.encode import READY_FOR_QUERY
from pgwire.server import Server, ServerConfig
from pgwire.session import REFUSED
from tests.support.engine import open_database
from tests.support.sessions import Client
from txn.persist.memory import MemoryDisk

Batch = tuple[m.FrontendMessage, ...]

INSERT: Final = "INSERT INTO t VALUES ({k})"
KEY: Final = "SELECT k FROM seen WHERE k = 1"


def executed(*sqls: str, rows: int = 0, behind: Batch = ()) -> Batch:
    out: list[m.FrontendMessage] = []
    for sql in sqls:
        out += [m.Parse("", sql, ()), m.Bind("", "", (), (), ()), m.Execute("", rows), *behind]
    return tuple(out)


FORMS: Final[dict[str, Batch]] = {
    "texts": (*executed(*["SELECT 1"] * 4), m.Sync()),
    "reads by key": (*executed(*[KEY] * 4), m.Sync()),
    "Parse alone": (*[m.Parse("", "SELECT 1", ())] * 9, m.Sync()),
    "with Flush and Close": (
        *executed(KEY, INSERT, KEY, behind=(m.Flush(), m.Close("P"), m.Describe("S"))),
        m.Sync(),
    ),
    "a transaction": (*executed(INSERT, INSERT, KEY), m.Sync()),
    "blocks": (*executed("BEGIN", INSERT, "COMMIT", KEY, "BEGIN", INSERT, "COMMIT", KEY), m.Sync()),
    "a block that stays": (*executed("BEGIN", INSERT, KEY, INSERT), m.Sync()),
    "many batches": (*executed(KEY, INSERT), m.Sync()) * 2,
    "Query": (m.Query(KEY), m.Query(INSERT)) * 3,
    "Query of several": (m.Query("; ".join(["SELECT 1"] * 17)), m.Query(INSERT)),
    "both protocols": (*executed(KEY), m.Query(INSERT), *executed(INSERT), m.Sync(), m.Query(KEY)),
    "cursor": (
        *executed(
            "BEGIN", "DECLARE c CURSOR FOR SELECT k FROM seen", "FETCH 1 FROM c", INSERT, "MOVE 1 IN c", "COMMIT"
        ),
        m.Sync(),
    ),
    "portal in pieces": (
        *executed("SELECT k FROM seen", rows=1, behind=(m.Execute("", 1), m.Execute("", 0))),
        m.Sync(),
    ),
    "PL/pgSQL": (*executed("SELECT puts({k})", "CALL ends({k})", "SELECT puts({k})"), m.Sync()),
    "COPY": (
        m.Query("COPY t FROM STDIN"), m.CopyData(b"{k}\n"), m.CopyDone(), m.Query("COPY seen TO STDOUT"), m.Query(KEY),
        *executed("COPY t FROM STDIN"), m.CopyData(b"{k}\n"), m.CopyDone(), *executed(KEY), m.Sync(),
    ),
}  # fmt: skip


def filled(form: Batch, keys: Iterator[int]) -> list[m.FrontendMessage]:
    """Give each change a key of its own."""
    out: list[m.FrontendMessage] = []
    for message in form:
        match message:
            case m.Query(sql) if "{k}" in sql:
                message = m.Query(sql.replace("{k}", str(next(keys))))
            case m.Parse(name, sql, oids) if "{k}" in sql:
                message = m.Parse(name, sql.replace("{k}", str(next(keys))), oids)
            case m.CopyData():
                message = m.CopyData(b"%d\n" % next(keys))
        out.append(message)
    return out


def taken(client: Client) -> list[Any]:
    events = []
    while (event := client.socket.client.next_event()) is not NEED_DATA:
        events.append(event)
    return events


def answered(client: Client, heard: list[Any]) -> int:
    """Return how many batches have been answered, sent or not."""
    queued = [bytes(piece) for piece in client.session.connection.out]
    return sum(isinstance(e, m.ReadyForQuery) for e in heard) + sum(
        p in READY_FOR_QUERY.values() for p in queued
    )


async def cancelled_after(
    client: Client, turns: int, messages: list[m.FrontendMessage]
) -> tuple[list[Any], int, bool]:
    """Send and cancel some turns later; return the answers, the batch that was worked off then, and whether more of it was there.

    -1: all had been done.
    """
    session = client.session
    client.send(*messages)
    for _ in range(turns):
        await asyncio.sleep(0)
    heard = taken(client)
    at = answered(client, heard) if session.busy else -1
    more = session.busy and session.connection.upcoming in REFUSED
    session.cancel()
    while session.busy:
        await asyncio.sleep(0)
    return heard + taken(client), at, more


def batches(events: list[Any]) -> list[list[Any]]:
    out: list[list[Any]] = [[]]
    for event in events:
        out[-1].append(event)
        if isinstance(event, m.ReadyForQuery):
            out.append([])
    return out[:-1]


def changes(answers: list[list[Any]]) -> int:
    """Return how many changes have been answered with success, and committed."""
    done = pending = 0
    for batch in answers:
        for event in batch:
            tag = getattr(event, "tag", "")
            rows = [bytes(v[0] or b"") for e in [event] if isinstance(e, m.DataRow) for v in [e.values]]
            pending += tag in ("INSERT 0 1", "COPY 1", "CALL") or rows == [b"put"]
            if tag in ("COMMIT", "CALL"):
                done, pending = done + pending, 0
        if any(isinstance(event, m.ErrorResponse) for event in batch):
            pending = 0
        elif batch[-1].status == "I":
            done, pending = done + pending, 0
    return done


def test_a_cancel_ends_the_batch_that_is_worked_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgwire.session, "SLICE_S", -1.0)
    monkeypatch.setattr(pgwire.session, "LOOKS_AT_CLOCK", 1)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        server = Server(database, ServerConfig())
        one, two = Client(server), Client(server)
        for client in (one, two):
            await client.answers()
        for sql in (
            "CREATE TABLE t (k int PRIMARY KEY)",
            "CREATE TABLE seen (k int PRIMARY KEY)",
            "INSERT INTO seen VALUES (1), (2), (3)",
            "CREATE FUNCTION puts(k int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. 3 LOOP PERFORM i; END LOOP; "
            "INSERT INTO t VALUES (k); RETURN 'put'; END $$",
            "CREATE PROCEDURE ends(k int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (k); COMMIT; END $$",
        ):
            assert not [e for e in await two.run(m.Query(sql)) if isinstance(e, m.ErrorResponse)], sql
        keys = count(1)
        for number, (name, form) in enumerate(FORMS.items()):
            await one.run(m.Query(f"SET statement_timeout = {number % 2 * 3_600_000}"))
            await check(database, one, two, name, form, keys)
        await database.close()

    asyncio.run(main())


async def check(
    database: Database, one: Client, two: Client, name: str, form: Batch, keys: Iterator[int]
) -> None:
    hits = 0
    rows = await rows_of(two)
    for turns in count():
        events, at, more = await cancelled_after(one, turns, filled(form, keys))
        answers = batches(events)
        where = f"{name}, after {turns} turns, in batch {at}: {answers}"
        failed = [n for n, batch in enumerate(answers) for e in batch if isinstance(e, m.ErrorResponse)]
        states = {e.report.sqlstate for batch in answers for e in batch if isinstance(e, m.ErrorResponse)}
        assert not one.socket.closed, where
        assert states <= {"57014"}, where
        assert failed in ([], [at]), where
        assert failed or not more, f"lost: {where}"
        hits += len(failed)
        if answers[-1][-1].status != "I":
            await one.run(m.Query("ROLLBACK"))
        rows += changes(answers)
        assert await rows_of(two) == rows, where
        then = await one.run(*executed(KEY), m.Sync())
        assert not [e for e in then if isinstance(e, m.ErrorResponse)], where
        assert not database.store.core.committing
        if at < 0:
            break
    assert hits, name


async def rows_of(client: Client) -> int:
    [row] = [e for e in await client.run(m.Query("SELECT count(*) FROM t")) if isinstance(e, m.DataRow)]
    return int(row.values[0] or b"")
