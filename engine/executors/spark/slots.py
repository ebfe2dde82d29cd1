"""Who may run Spark jobs now: ``spark_max_queries`` statements at a time, the others wait in the order they came.

    statement --enter--> [ free slot? ] --yes--> job runs in a thread --it ends--> leave: the first that waits goes on
                              `--no--> waits: pg_stat_activity shows Extension / SparkQueue; cancel and
                                       statement_timeout take it out of the queue

All sessions of a role together have as many slots as their own ``spark_max_queries`` says (``ALTER ROLE …
SET``); who waits for that alone is passed by others. A slot is held exactly while a job of the statement
runs, not while its client reads: what a job has made lies in files (``engine.executors.spark.spool``), so a
cursor nobody fetches from costs no slot. Jobs of one connection share one of Spark's FAIR pools, so
connections share the cores alike however many cursors each has open.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from engine.session.session import Session
    from planner.functions.session import EvalSession

QUEUE: Final = "SparkQueue"
JOB: Final = "SparkJob"
START: Final = "SparkStart"
POOL_PROPERTY: Final = "spark.scheduler.pool"
"""The local property of a thread that names its jobs' pool."""


class Waits:
    """What sessions wait for, as wait events of pg_stat_activity. Keys are the sessions' ids (``id(session)``)."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._events: dict[int, list[str]] = {}

    def enter(self, session: int, event: str) -> None:
        """Note that the session waits for ``event``, maybe besides others."""
        self._events.setdefault(session, []).append(event)

    def leave(self, session: int, event: str) -> None:
        """Undo one ``enter``."""
        events = self._events[session]
        events.remove(event)
        if not events:
            del self._events[session]

    def of(self, session: int) -> str | None:
        """Return what the session waits for, the latest it has met: a result's job may wait for a slot; or None."""
        events = self._events.get(session)
        return events[-1] if events else None


@dataclass(frozen=True, slots=True)
class Client:
    """Who runs jobs.

    Attributes:
        session: its ``id``, or that of what the server does by itself.
        role: oid of who logged in; 0 for the server.
        most: how many slots the role's sessions may have together, at least 1; 0: any number.
    """

    session: int
    role: int = 0
    most: int = 0


def client_of(session: EvalSession) -> Client:
    """Return a session as who runs jobs."""
    own = cast("Session", session)
    return Client(id(own), own.identity.login, own.settings.integer("spark_max_queries"))


class Slots:
    """FIFO admission. Use from the event loop."""

    def __init__(self, limit: int) -> None:
        """Let ``limit`` (at least 1) statements run jobs at once."""
        self._limit = max(limit, 1)
        self._running: Counter[int] = Counter()  # by role
        self._queue: deque[tuple[asyncio.Future[None], Client]] = deque()

    @property
    def limit(self) -> int:
        """How many may run at once."""
        return self._limit

    @property
    def running(self) -> int:
        """How many run."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(not turn.done() for turn, _client in self._queue)

    def wanted(self, client: Client) -> bool:
        """Whether somebody waits who could have the slot of ``client``."""
        return any(
            not turn.done() and (other.role == client.role or self._allows(other))
            for turn, other in self._queue
        )

    def _allows(self, client: Client) -> bool:
        return not client.most or self._running[client.role] < client.most

    async def enter(self, client: Client) -> None:
        """Wait for a slot and take it; cancelling the wait gives up the place in the queue."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (turn, client)
        self._queue.append(entry)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(client)  # its turn came in the moment it was cancelled
            else:
                self._queue.remove(entry)
            raise

    def leave(self, client: Client) -> None:
        """Give the slot back; the first that waits and may take it does."""
        self._running[client.role] -= 1
        if not self._running[client.role]:
            del self._running[client.role]
        self._next()

    def _next(self) -> None:
        """Give free slots to those who wait."""
        for entry in tuple(self._queue):
            if self.running >= self._limit:
                return
            turn, client = entry
            if not turn.done() and self._allows(client):
                self._queue.remove(entry)
                self._running[client.role] += 1
                turn.set_result(None)


class FairPools:
    """Names of Spark's scheduler pools: one for each session with running jobs, used again by later ones.

    Spark keeps every pool it has seen, so there are never more names than sessions were busy at once.
    """

    def __init__(self) -> None:
        """No session is busy."""
        self._used: dict[int, tuple[int, int]] = {}  # session -> its number, its running jobs
        self._free: list[int] = []
        self._made = 0

    def enter(self, session: int) -> str:
        """Return the pool's name for a job of the session."""
        found = self._used.get(session)
        if found is None:
            if self._free:
                number = heapq.heappop(self._free)
            else:
                self._made += 1
                number = self._made
            found = number, 0
        self._used[session] = found[0], found[1] + 1
        return f"connection_{found[0]}"

    def leave(self, session: int) -> None:
        """A job of the session has ended."""
        number, jobs = self._used[session]
        if jobs > 1:
            self._used[session] = number, jobs - 1
        else:
            del self._used[session]
            heapq.heappush(self._free, number)
