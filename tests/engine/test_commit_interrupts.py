"""What is said of a commit is what became of it, whatever interrupts the statement and at whichever moment (L39).

    the statement       queued          appending        appended        applied        answered
    waits for a lock    behind others   log entry        durable         readable
    ─────────────────────────────────┼─────────────────────────────────────────────────────────
    an interrupt ends it: an error,  │ nothing does: success is answered, and a session that is to end ends behind that,
    and nothing is there             │ in either protocol

Every form of commit meets every interrupt at every stage. The stages are held by gates around the log's append and the apply; timers
are fired by hand, so that no time passes.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest

import pgwire.session
from engine.base import accounts
from engine.connection import extended as extended_protocol
from engine.connection import simple
from engine.connection.backend import COMMITTED
from engine.server.database import Database
from engine.statements import output
from pgwire import messages as m
from pgwire.client import NEED_DATA
from pgwire.codecs import long_rows
from pgwire.server import Server, ServerConfig
from planner.base.errors import SqlError
from tests.support.engine import open_database
from tests.support.sessions import Client
from txn.persist.memory import MemoryDisk

BEFORE: Final = ("waiting", "queued")
AFTER: Final = ("appending", "appended", "applied", "applied +1", "applied +2", "applied +3")
ENDING: Final = ("terminate", "terminate and no grace")


@dataclass(frozen=True)
class Form:
    """A way to commit a row.

    ``before``: messages answered ahead. ``sent``: what commits. ``tag``: the CommandComplete that says so; ``then``: error
    of a cancel that came past the durable point, where more follows the commit.
    """

    sent: tuple[str | tuple[m.FrontendMessage, ...], ...]
    tag: str
    before: tuple[str, ...] = ()
    then: str = ""
    repeat: int = field(default=1)  # times it is run before it counts, so that plans and templates are there


def extended(*sqls: str, rows: int = 0) -> tuple[m.FrontendMessage, ...]:
    out: list[m.FrontendMessage] = []
    for sql in sqls:
        out += [m.Parse("", sql, ()), m.Bind("", "", (), (), ()), m.Execute("", rows)]
    return (*out, m.Sync())


INSERT: Final = "INSERT INTO t VALUES ({k})"
SCANS: Final = "INSERT INTO t SELECT {k} + count(*) FROM seen RETURNING k"
"""What may still lose a race at its commit, and so commits before it sends a row."""
FORMS: Final = {
    "autocommit": Form((INSERT,), "INSERT 0 1"),
    "autocommit, known": Form((INSERT,), "INSERT 0 1", repeat=3),
    "autocommit, rows": Form((INSERT + " RETURNING k, repeat('x', 9)",), "INSERT 0 1"),
    "autocommit, rows, scans": Form((SCANS,), "INSERT 0 1"),
    "block in a query": Form(("BEGIN; " + INSERT + "; COMMIT",), "COMMIT"),
    "block in a query, and more": Form(
        ("BEGIN; " + INSERT + "; COMMIT; SELECT pg_sleep(3600)",), "COMMIT", then="57014"
    ),
    "several without a block": Form(("SELECT 1; " + INSERT,), "INSERT 0 1"),
    "commit": Form(("COMMIT",), "COMMIT", before=("BEGIN", INSERT)),
    "commit, known": Form(("COMMIT",), "COMMIT", before=("BEGIN", INSERT), repeat=3),
    "end by chain": Form(("COMMIT AND CHAIN",), "COMMIT", before=("BEGIN", INSERT)),
    "commit among others": Form(("SELECT 1; COMMIT",), "COMMIT", before=("BEGIN", INSERT)),
    "definition": Form(("CREATE TABLE d{k} (); " + INSERT,), "INSERT 0 1"),
    "definition in a block": Form(("BEGIN; " + INSERT + "; CREATE TABLE d{k} (); COMMIT",), "COMMIT"),
    "procedure": Form(("CALL ends({k})",), "CALL"),
    "procedure that goes on": Form(("CALL goes_on({k})",), "CALL", then="57014"),
    "do": Form(("DO $$ BEGIN INSERT INTO t VALUES ({k}); COMMIT; END $$",), "DO"),
    "copy": Form(("COPY t FROM STDIN", (m.CopyData(b"{k}\n"), m.CopyDone())), "COPY 1"),
    "extended": Form((extended(INSERT),), "INSERT 0 1"),
    "extended, rows": Form((extended(INSERT + " RETURNING k"),), "INSERT 0 1"),
    "extended, scans": Form((extended(SCANS),), "INSERT 0 1"),
    "extended, first rows, scans": Form((extended(SCANS, rows=1),), "suspended"),
    "extended, first rows": Form((extended(INSERT + " RETURNING k", rows=1),), "suspended"),
    "extended commit": Form((extended("COMMIT"),), "COMMIT", before=("BEGIN", INSERT)),
    "pipeline": Form((extended(INSERT, "INSERT INTO t VALUES ({k} + 1000000)"),), "INSERT 0 1"),
    "function call": Form((), "function"),
}
INTERRUPTS: Final = (
    "cancel", "statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout",
    "disconnect", *ENDING,
)  # fmt: skip


class Gate:
    """Holds commits at a stage; ``reached`` is set when one is there."""

    def __init__(self, database: Database) -> None:
        self.committer = database.store.core.log.committer
        self.log = self.committer._txns
        self.append, self.apply = self.log.append, self.committer._apply
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    def hold(self, stage: str, interrupt: Callable[[], None]) -> None:
        """Hold the next commits at a stage, or ``interrupt`` there at once."""

        async def append(payload: bytes) -> int:
            if stage in ("appending", "queued"):
                self.reached.set()
                await self.go_on.wait()
            seq = await self.append(payload)
            if stage == "appended":
                self.reached.set()
                await self.go_on.wait()
            return seq

        def apply(*args: Any) -> None:
            self.apply(*args)
            if stage.startswith("applied"):
                after(int(stage[8:] or 0), interrupt)
                self.reached.set()
                self.release()

        self.log.append = append
        self.committer._apply = apply  # type: ignore[method-assign]

    def release(self) -> None:
        self.log.append = self.append
        self.committer._apply = self.apply  # type: ignore[method-assign]
        self.go_on.set()


def after(turns: int, call: Callable[[], None]) -> None:
    """Call something that many turns of the loop later; 0: now."""
    if turns:
        asyncio.get_running_loop().call_soon(after, turns - 1, call)
    else:
        call()


def fire(timer: asyncio.TimerHandle | None) -> None:
    """Let a timer that runs be due now."""
    if timer is not None:
        timer._run()
        timer.cancel()


def interrupt(server: Server, database: Database, client: Client, how: str) -> None:
    session = client.session
    if not session.busy:
        return  # it has been answered
    conn = database.sessions[session.pid]
    if how in ("cancel", "statement_timeout") and not database.store.core.committing:
        session.responder.set_paused(True)  # an answer that waits for the client is not interrupted either
        after(9, lambda: session.responder.set_paused(False))
    match how:
        case "cancel":
            session.cancel()
        case "statement_timeout":
            if conn.session.cancelled.deadline_s:
                conn.session.cancelled.deadline_s = 1e-9
            fire(conn.interrupts._timer)
        case "transaction_timeout":
            txn = conn.session.block.txn
            fire(conn.session.block._limit._timer)
            if txn is not None:
                fire(txn.life._timer)  # type: ignore[attr-defined]
        case "idle_in_transaction_session_timeout" | "idle_session_timeout":
            fire(conn._idle_limit.timer)
        case "disconnect":
            session.connection_lost()
        case _:
            server.terminate(session.pid)
            if how != "terminate":
                after(2, lambda: fire(session._grace_timer))  # the task that it cuts short has begun by then


def filled(message: Any, key: int) -> Any:
    """Put the key into what is sent."""
    if isinstance(message, str):
        return m.Query(message.replace("{k}", str(key)))
    if isinstance(message, m.Parse):
        return m.Parse(message.statement, message.sql.replace("{k}", str(key)), message.param_oids)
    if isinstance(message, m.CopyData):
        return m.CopyData(bytes(message.data).replace(b"{k}", b"%d" % key))
    return message


async def heard(client: Client) -> list[Any]:
    """Return what a session answers until nothing more is under way."""
    out: list[Any] = []
    for _ in range(3):
        while client.session.busy:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
    while (event := client.socket.client.next_event()) is not NEED_DATA:
        out.append(event)
    return out


def said(events: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Return what was completed, and the errors, of one message or pipeline."""
    done, errors = [], []
    for event in events:
        if isinstance(event, m.CommandComplete):
            done.append(event.tag)
        elif isinstance(event, m.PortalSuspended):
            done.append("suspended")
        elif isinstance(event, m.FunctionCallResponse):
            done.append("function")
        elif isinstance(event, m.ErrorResponse):
            errors.append(event.report.sqlstate)
        elif isinstance(event, m.ReadyForQuery):
            done.append("Z")
    return done, errors


async def send(client: Client, form: Form, key: int, function: int) -> None:
    """Send what commits; a COPY's data once it is asked for."""
    if form.tag == "function":
        value = str(key).encode()
        client.send(m.FunctionCall(struct.pack("!Ihhi", function, 0, 1, len(value)) + value + b"\0\0"))
    for part in form.sent:
        messages = (part,) if isinstance(part, str) else part
        client.send(*(filled(message, key) for message in messages))


async def lock(client: Client, key: int) -> None:
    await client.run(m.Query("BEGIN"))
    await client.run(m.Query(INSERT.replace("{k}", str(key))))


@pytest.mark.parametrize("name", FORMS)
def test_what_is_said_of_a_commit_is_so(name: str) -> None:
    walk(FORMS[name])


@pytest.mark.parametrize(
    "name", [name for name in FORMS if name.startswith(("extended", "pipeline", "copy"))]
)
def test_what_is_said_of_a_commit_is_so_where_others_have_their_turn_between_messages(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it happens where a message has taken more than its slice of time."""
    monkeypatch.setattr(pgwire.session, "SLICE_S", -1.0)
    monkeypatch.setattr(pgwire.session, "LOOKS_AT_CLOCK", 1)
    walk(FORMS[name])


def walk(form: Form) -> None:
    """Commit in this form, at every stage under every interrupt."""

    async def main() -> None:
        database = await open_database(MemoryDisk())
        server = Server(database, ServerConfig())
        database.terminate = server.terminate
        two, three = Client(server), Client(server)
        for client in (two, three):
            await client.answers()
        for sql in (
            "CREATE TABLE t (k int PRIMARY KEY)",
            "CREATE TABLE other (k int)",
            "CREATE TABLE seen (k int)",
            "CREATE PROCEDURE ends(k int) LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO t VALUES (k); COMMIT; END $$",
            "CREATE PROCEDURE goes_on(k int) LANGUAGE plpgsql AS "
            "$$ BEGIN INSERT INTO t VALUES (k); COMMIT; PERFORM pg_sleep(3600); END $$",
            "CREATE FUNCTION puts(k int) RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (k) RETURNING k'",
        ):
            assert said(await two.run(m.Query(sql)))[1] == []
        row = await two.run(m.Query("SELECT 'puts'::regproc::oid"))
        [function] = [int(event.values[0] or b"") for event in row if isinstance(event, m.DataRow)]
        key = 0
        for how in INTERRUPTS:
            one = Client(server)
            await one.answers()
            for stage in (*BEFORE, *AFTER):
                if stage == "waiting" and form.before:
                    continue  # COMMIT waits for nothing before it is queued
                if one.socket.closed or one.session.responder.lost:
                    one = Client(server)
                    await one.answers()
                if "timeout" in how:
                    await one.run(m.Query(f"SET {how} = '1h'"))
                for again in range(form.repeat):
                    key += 1
                    for sql in form.before:
                        await one.run(filled(sql, key))
                    if again < form.repeat - 1:
                        await send(one, form, key, function)
                        await heard(one)
                if stage == "waiting":
                    await lock(three, key)
                gate = Gate(database)
                call = partial(interrupt, server, database, one, how)
                if stage == "waiting":
                    await send(one, form, key, function)
                    while not database.store.core.locks.waiting:
                        await asyncio.sleep(0)
                    call()
                else:
                    gate.hold(stage, call)
                    if stage == "queued":
                        two.send(m.Query("INSERT INTO other VALUES (1)"))
                        await gate.reached.wait()
                    await send(one, form, key, function)
                    if stage == "queued":
                        while len(database.store.core.committing) < 2:
                            await asyncio.sleep(0)
                        call()
                    else:
                        await gate.reached.wait()
                        if not stage.startswith("applied"):
                            call()
                for _ in range(9):
                    await asyncio.sleep(0)  # what was interrupted may answer before the gate opens
                gate.release()
                if stage == "queued":
                    await two.answers()
                if stage == "waiting":
                    await three.run(m.Query("ROLLBACK"))
                if form.then:
                    for _ in range(99):
                        await asyncio.sleep(0)
                    if one.session.busy:
                        one.session.cancel()  # what follows the commit sleeps, and no interrupt was due
                events = await heard(one)
                there = await two.run(m.Query(f"SELECT count(*) FROM t WHERE k = {key}"))
                [applied] = [event.values[0] == b"1" for event in there if isinstance(event, m.DataRow)]
                check(form, how, stage, said(events), applied)
                assert not database.store.core.committing
                if form.tag == "COMMIT" and not one.socket.closed and not one.session.responder.lost:
                    await one.run(m.Query("ROLLBACK"))
        await database.close()

    asyncio.run(main())


def check(form: Form, how: str, stage: str, answer: tuple[list[str], list[str]], applied: bool) -> None:
    where = f"{how} while {stage}: {answer}, {applied=}"
    done, errors = answer
    ready = done.index("Z") if "Z" in done else len(done)
    told = form.tag in done[:ready] and not (errors and "FATAL" in errors)
    if how == "disconnect":
        assert applied or stage in BEFORE, where
        return
    ends = stage in BEFORE and how in ("cancel", "statement_timeout", *ENDING)
    if how == "transaction_timeout":
        ends = stage == "waiting"
    if how == "statement_timeout" and stage == "queued":
        ends = bool(errors) and not form.then  # of what a Sync commits it does not count any more
    if form.then and not ends:
        if stage == "queued" and not applied:
            assert errors == ["57014"], where
            return
        assert applied, where
        assert errors in ([form.then], ["57P01"], ["25P04"]), where
        if form.tag == "COMMIT":
            assert told, where
        return
    if ends:
        assert errors, where
        assert not applied, where
        assert errors[0] in {"cancel": ("57014",), "statement_timeout": ("57014",), "transaction_timeout": ("25P04",)}.get(
            how, ("57P01",)
        ), where  # fmt: skip
        return
    assert applied, where
    assert told, where
    assert "Z" in done, where
    if how in ENDING and not stage.startswith("applied +"):  # else it may have been answered before
        assert errors == ["57P01"], where
    assert set(errors) <= {"57P01"}, where


@pytest.mark.parametrize("sent", [m.Query(SCANS.replace("{k}", "1")), extended(SCANS.replace("{k}", "1"))])
def test_an_answer_that_fails_behind_the_commit_is_no_error_of_the_statement(
    monkeypatch: pytest.MonkeyPatch, sent: Any
) -> None:
    """The session ends instead, and says why."""

    async def too_long(*_args: Any) -> None:
        raise SqlError("53200", "out of memory")

    async def main() -> None:
        database = await open_database(MemoryDisk())
        server = Server(database, ServerConfig())
        one, two = Client(server), Client(server)
        for client in (one, two):
            await client.answers()
        await two.run(m.Query("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE seen (k int)"))
        with monkeypatch.context() as patch:
            for module in (extended_protocol, simple):
                patch.setattr(module, "send_ready", too_long)
            one.send(*(sent if isinstance(sent, tuple) else (sent,)))
            events = await heard(one)
        [report] = [event.report for event in events if isinstance(event, m.ErrorResponse)]
        assert (report.severity, report.sqlstate, report.detail) == ("FATAL", "53200", COMMITTED)
        assert one.socket.closed
        there = await two.run(m.Query("SELECT k FROM t"))
        assert [event.values for event in there if isinstance(event, m.DataRow)] == [(b"1",)]
        await database.close()

    asyncio.run(main())


async def told(client: Client, *messages: m.FrontendMessage) -> list[Any]:
    """Return what a session answers, also where it ends."""
    client.send(*messages)
    return await heard(client)


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_what_cannot_be_answered_is_not_committed(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    """A row of RETURNING that is longer than a message may be: that is known before the commit, in either protocol."""
    monkeypatch.setattr(long_rows, "MAX_MESSAGE_BYTES", 3 << 20)
    returning = SCANS.replace("{k}", "1") + ", repeat('x', {}::int)"

    def sent(size: int) -> tuple[m.FrontendMessage, ...]:
        sql = returning.replace("{}", str(size))
        return (m.Query(sql),) if protocol == "simple" else extended(sql)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        client = Client(Server(database, ServerConfig()))
        await client.answers()
        await client.run(m.Query("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE seen (k int)"))
        events = await told(client, *sent(4 << 20))
        [report] = [event.report for event in events if isinstance(event, m.ErrorResponse)]
        assert (report.severity, report.sqlstate) == ("ERROR", "54000")
        assert not any(isinstance(event, m.DataRow) for event in events)
        there = await told(client, m.Query("SELECT k FROM t"))
        assert not [event for event in there if isinstance(event, m.DataRow)]
        events = await told(client, *sent(2 << 20))
        assert [len(event.values[1] or b"") for event in events if isinstance(event, m.DataRow)] == [2 << 20]
        await database.close()

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_nobody_is_refused_memory_for_the_answer_to_what_is_committed(
    monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    async def crowded(*given: Any) -> None:
        account = accounts.running()
        assert account is not None
        limit, account.limit = account.limit, -1
        try:
            accounts.check()
        finally:
            account.limit = limit
        await output.send_ready(*given)

    def sent(sql: str) -> tuple[m.FrontendMessage, ...]:
        return (m.Query(sql),) if protocol == "simple" else extended(sql)

    async def main() -> None:
        database = await open_database(MemoryDisk())
        client = Client(Server(database, ServerConfig()))
        await client.answers()
        await client.run(m.Query("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE seen (k int)"))
        for module in (extended_protocol, simple):
            monkeypatch.setattr(module, "send_ready", crowded)
        assert said(await told(client, *sent(SCANS.replace("{k}", "1")))) == (["INSERT 0 1", "Z"], [])
        # what has committed nothing is refused
        assert said(await told(client, *sent("SELECT count(*) FROM generate_series(1, 10)"))) == (
            ["Z"],
            ["53200"],
        )
        await database.close()

    asyncio.run(main())
