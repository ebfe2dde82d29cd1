"""LISTEN and NOTIFY: what commits is heard, once, in order, and outside of transaction blocks only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import psycopg
import pytest

from engine.session import channels
from engine.session.channels import Channels, SessionChannels
from engine.session.transaction.block_state import BlockState
from planner.base.errors import SqlError
from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def pair(server: ServerProcess) -> Iterator[tuple[Connection, Connection]]:
    url = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with psycopg.connect(url, autocommit=True) as a, psycopg.connect(url, autocommit=True) as b:
        yield a, b


def heard(connection: Connection, count: int) -> list[tuple[str, str]]:
    """Return ``count`` messages, waiting for them."""
    return [(n.channel, n.payload) for n in connection.notifies(timeout=30, stop_after=count)]


def heard_so_far(connection: Connection) -> list[tuple[str, str]]:
    """Return what came with the answers up to now: a message that is due comes before the end of the next answer."""
    connection.execute("SELECT 1")
    return [(n.channel, n.payload) for n in connection.notifies(timeout=0)]


def test_what_a_transaction_says_counts_when_it_commits(pair: tuple[Connection, Connection]) -> None:
    a, b = pair
    a.execute("LISTEN one")
    b.execute("BEGIN")
    b.execute("NOTIFY one, 'first'")
    b.execute("SAVEPOINT s")
    b.execute("NOTIFY one, 'undone'")
    b.execute("ROLLBACK TO s")
    b.execute("NOTIFY one")
    b.execute("NOTIFY one, 'first'")
    b.execute("NOTIFY deaf, 'nobody listens'")
    assert heard_so_far(a) == []
    b.execute("COMMIT")
    b.execute("BEGIN; NOTIFY one, 'never'; ROLLBACK")
    b.execute("SELECT pg_notify('one', n::text) FROM generate_series(1, 3) AS n")
    assert heard(a, 5) == [("one", "first"), ("one", ""), ("one", "1"), ("one", "2"), ("one", "3")]


def test_a_block_hears_nothing_until_it_ends(pair: tuple[Connection, Connection]) -> None:
    a, b = pair
    a.execute("LISTEN two")
    a.execute("BEGIN")
    b.execute("BEGIN; NOTIFY two, 'second'")
    a.execute("NOTIFY two, 'own'")
    b.execute("NOTIFY two, 'third'")
    c = b.__class__.connect(b.info.dsn, autocommit=True)
    c.execute("NOTIFY two, 'first'")
    c.close()
    b.execute("COMMIT")
    assert heard_so_far(a) == []
    a.execute("COMMIT")
    assert heard(a, 4) == [("two", "first"), ("two", "second"), ("two", "third"), ("two", "own")]


def test_who_speaks_hears_itself_before_its_next_statement(pair: tuple[Connection, Connection]) -> None:
    a, _b = pair
    a.execute("BEGIN")
    a.execute("LISTEN three")
    a.execute("NOTIFY three, 'me'")
    assert a.execute("SELECT pg_listening_channels()").fetchall() == []
    a.execute("COMMIT")
    assert [(n.channel, n.payload, n.pid == a.info.backend_pid) for n in a.notifies(timeout=0)] == [
        ("three", "me", True)
    ]
    assert a.execute("SELECT pg_listening_channels()").fetchall() == [("three",)]


@pytest.mark.parametrize("end", ["UNLISTEN four", "UNLISTEN *", "DISCARD ALL"])
def test_listening_ends(pair: tuple[Connection, Connection], end: str) -> None:
    a, b = pair
    a.execute("LISTEN four")
    a.execute("BEGIN; UNLISTEN four; ROLLBACK")
    b.execute("NOTIFY four, 'heard'")
    assert heard(a, 1) == [("four", "heard")]
    a.execute(end)
    b.execute("NOTIFY four, 'not heard'")
    assert heard_so_far(a) == []
    assert a.execute("SELECT pg_listening_channels()").fetchall() == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT pg_notify('', 'x')", "channel name cannot be empty"),
        ("SELECT pg_notify(NULL, 'x')", "channel name cannot be empty"),
        ("SELECT pg_notify(repeat('c', 64), 'x')", "channel name too long"),
        ("SELECT pg_notify('c', repeat('x', 8000))", "payload string too long"),
    ],
)
def test_what_is_refused(pair: tuple[Connection, Connection], sql: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        pair[0].execute(sql)  # type: ignore[call-overload]


# -- a client that does not read ---------------------------------------------------------------------


@dataclass
class Out:
    paused: bool = False
    lost: bool = False
    sent: list[str] = field(default_factory=list)

    def notification(self, pid: int, channel: str, payload: str) -> None:
        self.sent.append(payload)


class Txn:
    def on_undo(self, callback: Callable[[], object]) -> None:
        pass


class Block:
    def __init__(self) -> None:
        self.state = BlockState.BLOCK
        self.on_end: list[Callable[[bool], None]] = []
        self.txn = Txn()

    def ensure_txn(self) -> Txn:
        return self.txn


class Session:
    def __init__(self, db: Any, pid: int) -> None:
        self.db, self.pid, self.out, self.block, self.activity = (
            db,
            pid,
            Out(),
            Block(),
            "idle in transaction",
        )
        self.database_oid = 5


def test_what_runs_again_says_it_once_and_who_has_gone_is_told_nothing() -> None:
    db = type("Db", (), {"channels": Channels()})()
    hears, gone, loud = Session(db, 1), Session(db, 2), Session(db, 3)
    listeners = [SessionChannels(cast(Any, session)) for session in (hears, gone)]
    for session, listener in zip((hears, gone), listeners, strict=True):
        listener.listen("c", on=True)
        session.block.on_end[0](True)
    listeners[1].close()
    speaker = SessionChannels(cast(Any, loud))
    speaker.notify("c", "lost a race")
    loud.block.txn = Txn()  # it was dropped, and its statement runs again
    speaker.notify("c", "counts")
    loud.block.on_end[0](True)
    for session, listener in zip((hears, gone), listeners, strict=True):
        session.block.state = BlockState.IDLE
        listener.flush()
    assert hears.out.sent == ["counts"]
    assert gone.out.sent == []


@pytest.mark.parametrize("length", [0, 60])
def test_what_waits_for_one_connection_is_bounded(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """Messages without a payload take room, too."""
    monkeypatch.setattr(channels, "QUEUE_BYTES", channels.MESSAGE_BYTES + 100)
    db = type("Db", (), {"channels": Channels()})()
    slow, loud = Session(db, 1), Session(db, 2)
    listener, speaker = SessionChannels(cast(Any, slow)), SessionChannels(cast(Any, loud))
    for channel in ("c", "d", "e"):
        listener.listen(channel, on=True)
    slow.block.on_end[0](True)
    sent = 0

    def say() -> None:
        nonlocal sent
        for channel in ("c", "d", "e"):
            speaker.notify(channel, "x" * length)
            loud.block.on_end[0](True)
            sent += 1

    with pytest.raises(SqlError) as caught:
        say()
    assert caught.value.sqlstate == "54000"
    assert 0 < sent < 3
    assert slow.out.sent == []
    slow.block.state = BlockState.IDLE
    listener.flush()
    assert slow.out.sent == ["x" * length] * sent
    speaker.notify("c", "y" * length)
