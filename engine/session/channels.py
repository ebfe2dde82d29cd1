"""LISTEN and NOTIFY (manual, those commands): messages between connections, sent by transactions that commit.

    a: LISTEN jobs               at commit: a listens from here on
    b: BEGIN; NOTIFY jobs, '7'   kept with b's transaction
    b: COMMIT                    ──> a: at once where a is idle, else before the ReadyForQuery that ends its transaction

What a transaction says, LISTEN and UNLISTEN too, counts when it commits, and is forgotten with it or with the
savepoint it is undone to. Messages come in the order of the commits, those of one transaction in the order in
which they were sent, each pair of channel and payload once. They are not stored: who is not connected misses
them, as in PostgreSQL.

What waits for one connection is bounded by ``QUEUE_BYTES``; past that NOTIFY on its channels fails. So is
what one transaction says. Many messages are handed over ``AT_ONCE`` at a time, so that a large transaction
holds nobody up; others' keep their order behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from engine.session.transaction.block_state import IDLE
from engine.session.transaction.work import Working
from pgwire.release import release
from planner.base.errors import SqlError
from txn.transaction.journal import OneOfMany

if TYPE_CHECKING:
    from pgwire.backend import Responder
    from txn.api import Transaction

MAX_NAME: Final = 63  # bytes of a channel's name
MAX_PAYLOAD: Final = 7999  # bytes
QUEUE_BYTES: Final = 16 * 2**20
MESSAGE_BYTES: Final = 256  # what a message that waits takes beside its payload
MAX_CHANNELS: Final = 10_000  # that one connection listens to
AT_ONCE: Final = 500  # messages that are handed over in one turn: a millisecond or two

Message = tuple[int, str, str]
"""Process id of the sender, channel, payload."""


class Channels:
    """Who listens to what, for the whole server; channels belong to databases."""

    def __init__(self) -> None:
        """Nobody listens."""
        self._listeners: dict[tuple[int, str], dict[SessionChannels, None]] = {}
        self._posted: deque[tuple[tuple[int, int], Sequence[tuple[str, str]]]] = deque()
        self._posting: asyncio.Task[None] | None = None

    def post(self, database: int, pid: int, said: Sequence[tuple[str, str]]) -> None:
        """Hand over what a transaction of connection ``pid`` has said; in this turn if that is little and
        nothing is under way.
        """
        if self._posting is None and len(said) <= AT_ONCE:
            self._deliver(database, pid, said)
            return
        self._posted.append(((database, pid), said))
        if self._posting is None:
            self._posting = asyncio.get_running_loop().create_task(self._post())

    async def _post(self) -> None:
        try:
            while self._posted:
                (database, pid), said = self._posted.popleft()
                for start in range(0, len(said), AT_ONCE):
                    await asyncio.sleep(0)
                    self._deliver(database, pid, said[start : start + AT_ONCE])
        finally:
            self._posting = None

    def _deliver(self, database: int, pid: int, said: Sequence[tuple[str, str]]) -> None:
        for channel, payload in said:
            for listener in self.listeners((database, channel)):
                listener.deliver((pid, channel, payload))

    def listeners(self, channel: tuple[int, str]) -> Iterator[SessionChannels]:
        """Yield who listens to a channel (database, name), in the order in which they began to."""
        return iter(tuple(self._listeners.get(channel, ())))

    @property
    def usage(self) -> float:
        """How much of what may wait for one connection does so, for the one for which it is most: 0 to 1."""
        waiting = [one._waiting_bytes for all_ in self._listeners.values() for one in all_]
        return max(waiting, default=0) / QUEUE_BYTES

    def add(self, channel: tuple[int, str], listener: SessionChannels) -> None:
        """A connection listens."""
        self._listeners.setdefault(channel, {})[listener] = None

    def remove(self, channel: tuple[int, str], listener: SessionChannels) -> None:
        """A connection listens no more."""
        listeners = self._listeners.get(channel)
        if listeners is not None:
            listeners.pop(listener, None)
            if not listeners:
                del self._listeners[channel]


class HasChannels(Protocol):
    """A server whose sessions tell one another."""

    channels: Channels


class Listening(Working, Protocol):
    """A session that may listen. ``activity``: what it does, as pg_stat_activity shows it; ``out``: where it
    is told.
    """

    activity: str
    out: Responder

    @property
    def db(self) -> HasChannels:
        """The server that it is of."""


class SessionChannels:
    """One connection: what it listens to, what its transaction will say, and what waits for it."""

    __slots__ = (
        "_actions",
        "_draining",
        "_listening",
        "_said",
        "_said_bytes",
        "_session",
        "_txn",
        "_waiting",
        "_waiting_bytes",
    )

    def __init__(self, session: Listening) -> None:
        """It listens to nothing."""
        self._session = session
        self._listening: dict[str, None] = {}
        self._txn: Transaction | None = None  # whose ``_said`` and ``_actions`` are
        self._said: dict[tuple[str, str], None] = {}
        self._said_bytes = 0
        self._actions: list[tuple[str, bool]] = []  # channel ("" = all) and whether to listen
        self._waiting: list[Message] = []
        self._waiting_bytes = 0
        self._draining: asyncio.Task[None] | None = None

    @property
    def listening(self) -> tuple[str, ...]:
        """The channels listened to, as of the last commit."""
        return tuple(self._listening)

    @property
    def queue_usage(self) -> float:
        """See ``Channels.usage``."""
        return self._session.db.channels.usage

    # -- what a transaction says -------------------------------------------------------------------

    def _begin(self) -> Transaction:
        """Return the running transaction, with nothing said by one that was dropped to run again."""
        session = self._session
        txn = session.block.ensure_txn()
        if self._txn is not txn:
            if self._txn is None and self._ended not in session.block.on_end:
                session.block.on_end.append(self._ended)
            self._said.clear()
            self._said_bytes = 0
            self._actions.clear()
            self._txn = txn
        return txn

    def listen(self, channel: str, *, on: bool) -> None:
        """LISTEN, or UNLISTEN ("" = all), once the transaction commits. Raises SqlError 22023, 53400 for more
        than ``MAX_CHANNELS``.
        """
        txn = self._begin()
        if len(self._actions) + (len(self._listening) if on else 0) >= MAX_CHANNELS:
            raise SqlError("53400", f"more than {MAX_CHANNELS} channels are listened to")
        self._actions.append((_checked(channel), on))
        txn.on_undo(self._actions.pop)

    def notify(self, channel: str, payload: str) -> None:
        """NOTIFY once the transaction commits.

        Raises SqlError 22023 for a payload that is too long, 54000 where too much waits for somebody who
        listens, or the transaction has said too much.
        """
        channel = _checked(channel)
        if len(payload.encode()) > MAX_PAYLOAD:
            raise SqlError("22023", "payload string too long")
        size = _size(payload)
        session = self._session
        for listener in session.db.channels.listeners((session.database_oid, channel)):
            if listener._waiting_bytes + size > QUEUE_BYTES:
                raise SqlError(
                    "54000",
                    "too many notifications in the NOTIFY queue",
                    detail=f"The server process with PID {listener._session.pid} has not taken those sent to it.",
                )
        txn = self._begin()
        message = channel, payload
        if message not in self._said:
            if self._said_bytes + size > QUEUE_BYTES:
                raise SqlError(
                    "54000",
                    "too many notifications in the NOTIFY queue",
                    detail=f"One transaction may send {QUEUE_BYTES} bytes.",
                )
            self._said[message] = None
            self._said_bytes += size
            txn.on_undo(OneOfMany(self, message))

    def undo(self, message: tuple[str, str]) -> None:
        """The transaction has not said this (``txn.transaction.journal.Many``)."""
        if message in self._said:
            del self._said[message]
            self._said_bytes -= _size(message[1])

    def undo_all(self) -> None:
        """It has said nothing."""
        said, self._said = self._said, {}
        self._said_bytes = 0
        release(said)

    def _ended(self, committed: bool) -> None:
        """The transaction is over: what it said counts now, or never."""
        if self._txn is None:
            return
        self._txn = None
        said, self._said = self._said, {}
        actions, self._actions = self._actions, []
        if not committed:
            release(said)
            return
        for channel, on in actions:
            self._apply(channel, on=on)
        session = self._session
        if said:
            session.db.channels.post(session.database_oid, session.pid, tuple(said))

    def _apply(self, channel: str, *, on: bool) -> None:
        channels = self._session.db.channels
        if on:
            self._listening[channel] = None
            channels.add((self._session.database_oid, channel), self)
            return
        for name in [channel] if channel else list(self._listening):
            self._listening.pop(name, None)
            channels.remove((self._session.database_oid, name), self)

    # -- what comes --------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        """Hand over a message: at once if the connection is idle, else when its transaction is over."""
        self._waiting.append(message)
        self._waiting_bytes += _size(message[2])
        if self._session.activity == "idle":
            self.flush()

    def flush(self) -> None:
        """Hand over what has come, unless a transaction block goes on or the client does not read."""
        if not self._waiting or self._session.block.state is not IDLE:
            return
        out = self._session.out
        sent = 0
        for pid, channel, payload in self._waiting:
            if out.paused or out.lost or sent == AT_ONCE:
                break
            out.notification(pid, channel, payload)
            self._waiting_bytes -= _size(payload)
            sent += 1
        del self._waiting[:sent]
        if self._waiting and self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        """Wait until the client reads again, and others have had their turn."""
        try:
            await asyncio.sleep(0)
            await self._session.out.drain()
        except ConnectionError:
            self._waiting.clear()
        finally:
            self._draining = None
        self.flush()

    def close(self) -> None:
        """The connection ends."""
        self._apply("", on=False)
        self._waiting.clear()


def _size(payload: str) -> int:
    return MESSAGE_BYTES + len(payload)


def _checked(channel: str) -> str:
    if len(channel) > MAX_NAME or len(channel.encode()) > MAX_NAME:
        raise SqlError("22023", "channel name too long")
    return channel
