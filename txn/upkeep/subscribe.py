"""``subscribe`` and ``listen``: the changes of shards, transaction by transaction (C8, C36, N6).

    Store.subscribe([t], as_of=40)      Changes(40, snapshot) Progress(40) Changes(57, ...) Changes(60, ...) Progress(60)

                  ┌─ keeps up ──> the feed of recent commits                     (txn.wal.feed)
    position ─────┤
                  └─ is behind ─> the versions that it holds, a window at a time  (txn.upkeep.changes)

A subscription is pulled: nothing is queued for it, so a slow one costs no memory of its own. It holds its position
(U16), which moves as its consumer reads; what it keeps from vacuum are superseded row versions, and past
``TxnOptions.subscription_versions`` of them the one that is furthest behind ends with SubscriptionLapsed.

Promises:

- Changes come in the order of timestamps. All of one commit's changes carry its timestamp, and none of another's does
  (U11): what is known when ``Progress(ts)`` arrives is the database at ``ts``, never half a transaction.
- A commit is one ``Changes``, unless it has more than ``PIECE_ROWS`` rows; then several follow each other.
- ``subscribe(as_of=ts, snapshot=False)`` after ``Progress(ts)`` goes on with exactly what had not been seen.
- It takes no locks, and nobody waits for it. Cancelling ``__anext__`` loses nothing: the next call goes on.

TRUNCATE and rewrites are changes like others: every old row -1, every new row +1. DROP, and ALTER of columns, end a
subscription with SubscriptionEnded once everything before has been delivered; indexes may come and go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.errors import CrossesTimelines, SubscriptionEnded, SubscriptionLapsed, TxnError
from txn.base.records import RowOp, ShardWrites, WriteSet
from txn.base.time import timestamp_ms
from txn.base.types import RowId, ShardColumn, ShardId, ShardSpec, Timestamp
from txn.log.holds import Hold
from txn.mvcc.generation import StoreCorrupted
from txn.mvcc.version import Version
from txn.transaction.snapshot import Capture, capture_at, scan_captured
from txn.transaction.view import View
from txn.upkeep.changes import PIECE_ROWS, Change, Place, Window

if TYPE_CHECKING:
    from txn.transaction.coordinator import Coordinator

WINDOW_ROWS: Final = 20_000
"""Changes of history that are put in order at once."""
BUSY_S: Final = 0.005
TURN_S: Final = 1.0
"""How often a subscription without changes moves its hold, and says so."""


class Changes(NamedTuple):
    """Rows that came and went at ``ts``: all of that commit's, or a piece. Never empty."""

    ts: Timestamp
    rows: Sequence[Change]


class Progress(NamedTuple):
    """Everything at or below ``ts`` has been delivered; ``ts`` only grows."""

    ts: Timestamp


Event: TypeAlias = Changes | Progress


class Subscription:
    """An asynchronous iterator of events; made by ``Store.subscribe``. Close it, or read it to its end.

    Attributes:
        shards: what it is about.
        position: everything at or below it has been handed out. It is held.
        session: the connection that reads it, 0 for none.
    """

    def __init__(
        self,
        core: Coordinator,
        shards: Sequence[ShardId],
        as_of: Timestamp | None,
        until: Timestamp | None,
        *,
        snapshot: bool,
        rows: bool,
        session: int = 0,
    ) -> None:
        """See ``Store.subscribe``, also for what is raised."""
        domains = {core.domain_of(shard) for shard in shards}
        if len(domains) > 1:
            raise CrossesTimelines({shard: core.domain_of(shard).name for shard in shards})
        self._domain = domain = domains.pop() if domains else core.timelines.default
        self._holds = domain.holds
        present = domain.read_ts()
        if as_of is not None and as_of > present:
            raise ValueError(f"the timestamp {as_of} is in the future; the latest is {present}")
        self._core = core
        self.session = session
        self._hold = self._holds.acquire(as_of)
        self.position: Timestamp = self._hold.ts
        self.shards = frozenset(shards)
        self._until = until
        self._specs: dict[ShardId, ShardSpec] = {}
        try:
            for shard in shards:
                history = core.shards.get(shard)
                entry = None if history is None else history.at(self.position)
                if entry is None or entry.spec is None:
                    raise KeyError(shard)
                self._specs[shard] = entry.spec
        except KeyError:
            self._holds.release(self._hold)
            raise
        self._rows = rows
        self._captured: list[tuple[View, Capture]] = []
        if snapshot:
            for shard, spec in self._specs.items():
                entry = core.shards[shard].at(self.position)
                if entry is None:
                    raise AssertionError("the shard has no entry at the position")
                if entry.generation is None:
                    raise AssertionError("the entry has no generation")
                view = View(shard, entry.generation, spec, None)
                self._captured.append((view, capture_at(view, self.position)))
        self._guard: Hold | None = (
            None  # keeps what a window of history has captured, wherever the position is
        )
        self._failure: TxnError | None = None
        self._closed = False
        self._woken: asyncio.Future[None] | None = None
        self._events: AsyncIterator[Event] = self._run()
        self._pulling: asyncio.Task[Event | None] | None = None
        # The feed of what is common is the default timeline's, which may be ahead of what all can read.
        domain.feed.join(self, domain.oracle.read_ts())

    # -- what a consumer calls ---------------------------------------------------------------------

    def __aiter__(self) -> Subscription:
        """Return itself."""
        return self

    async def __anext__(self) -> Event:
        """Return the next event, waiting for it. May be cancelled without losing anything.

        Raises:
            StopAsyncIteration: ``until`` is reached, or it was closed.
            SubscriptionLapsed, SubscriptionEnded: see the module.
            Fenced, CommitUnknown, StorageError: the server's troubles.
        """
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise StopAsyncIteration
        if self._pulling is None:
            self._pulling = asyncio.get_running_loop().create_task(self._pull())
        pulling = self._pulling
        if not pulling.done():
            await asyncio.wait([pulling])  # if this is cancelled, it goes on
        self._pulling = None
        try:
            event = pulling.result()
        except asyncio.CancelledError:  # closed before its first step, so it was not there to say why
            self._say_why()
            event = None
        if event is None:
            self.close()
            raise StopAsyncIteration
        return event

    async def poll(self, timeout_s: float | None) -> Event | None:
        """Return the next event, or None if it has to come from a commit that does not come within ``timeout_s``.

        What is known already is returned however long reading it takes. None: wait for ever. Raises as ``__anext__``.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        if self._failure is None and not self._closed and self._pulling is None:
            self._pulling = loop.create_task(self._pull())
            await asyncio.sleep(0)  # its first turn
        while deadline is not None and self._pulling is not None and not self._pulling.done():
            left = deadline - loop.time()
            if self._woken is None or self._woken.done():
                left = max(left, BUSY_S)  # it is reading, not waiting
            elif left <= 0:
                return None
            await asyncio.wait([self._pulling], timeout=min(left, BUSY_S) if self._woken is None else left)
        return await self.__anext__()

    def close(self) -> None:
        """Give up the hold and everything else. Idempotent; may be called at any time."""
        if self._closed:
            return
        self._closed = True
        self._domain.feed.leave(self)
        self._holds.release(self._hold)
        if self._guard is not None:
            self._holds.release(self._guard)
        self._captured.clear()
        pulling = self._pulling
        if pulling is not None and not pulling.done():
            pulling.cancel()
        elif pulling is not None and not pulling.cancelled():
            pulling.exception()  # if nobody has asked for it, nobody will

    # -- what the store calls ----------------------------------------------------------------------

    @property
    def serials(self) -> list[int]:
        """The serials of its holds."""
        return [hold.serial for hold in (self._hold, self._guard) if hold is not None]

    def wake(self) -> None:
        """Something has changed."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def ends_by(self, ts: int) -> bool:
        """Tell whether nothing above ``ts`` is wanted."""
        return self._until is not None and self._until <= ts + 1

    def lapse(self, versions: int) -> None:
        """End it: it kept more history than ``versions``."""
        self._failure = SubscriptionLapsed(self.position, versions)
        self.close()

    # -- reading -----------------------------------------------------------------------------------

    async def _pull(self) -> Event | None:
        try:
            return await anext(self._events)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            self._say_why()
            if self._closed:
                return None
            raise
        except TxnError as error:
            self._failure = error
            self.close()
            raise

    def _say_why(self) -> None:
        """Raise what it has failed with, if it has."""
        if self._failure is not None:
            raise self._failure from None

    async def _run(self) -> AsyncIterator[Event]:
        if self._captured:
            async for changes in self._snapshot():
                yield changes
            self._captured.clear()
        said = self.position
        yield Progress(said)
        loop = asyncio.get_running_loop()
        said_at = loop.time()
        while not self.ends_by(self.position):
            hi = self._readable()
            if hi <= self.position:
                await self._wait()
                continue
            delivered = False
            async for changes in self._between(self.position, hi):
                delivered = True
                yield changes
            if delivered or loop.time() - said_at >= TURN_S or self.ends_by(self.position):
                said, said_at = self.position, loop.time()
                yield Progress(said)
            elif self.position >= self._domain.read_ts():
                await self._wait()

    def _readable(self) -> Timestamp:
        """Return up to where it may read now. Raises SubscriptionEnded when a schema change is next."""
        hi = self._domain.read_ts()
        if self._until is not None:
            hi = Timestamp(min(hi, self._until - 1))
        for shard, spec in self._specs.items():
            history = self._core.shards.get(shard)
            if history is None:
                raise SubscriptionEnded(shard, hi, dropped=True)
            for entry in history.entries:
                if self.position < entry.begin <= hi and (
                    entry.spec is None or _columns(entry.spec) != _columns(spec)
                ):
                    if entry.begin == self.position + 1:
                        raise SubscriptionEnded(shard, Timestamp(entry.begin), dropped=entry.spec is None)
                    hi = Timestamp(entry.begin - 1)
                    break
        return hi

    async def _wait(self) -> None:
        """Wait for a commit that concerns it, ``TURN_S`` at most."""
        domain = self._domain
        turn_s = TURN_S
        if self._until is not None:
            ahead_ms = timestamp_ms(self._until) - timestamp_ms(present := domain.oracle.present())
            if present >= self._until > domain.read_ts() + 1:
                # The clock has passed ``until``, but no commit says so: an empty one does (C16, L13).
                await self._core.advance_upper(domain)
                return
            turn_s = min(turn_s, max(ahead_ms, 1) / 1000)
        woken = self._woken = asyncio.get_running_loop().create_future()
        await asyncio.wait([woken], timeout=turn_s)
        self._woken = None

    def _move(self, ts: Timestamp) -> None:
        """Everything up to ``ts`` has been taken: hold that instead."""
        if ts > self.position and not self._closed:
            before, self._hold = self._hold, self._holds.acquire(ts)
            self._holds.release(before)
            self.position = ts

    async def _snapshot(self) -> AsyncIterator[Changes]:
        ts = self.position
        for view, captured in self._captured:
            async for rows in scan_captured(view, captured):
                yield Changes(ts, [Change(ts, view.shard, r.values, 1, r.row_id) for r in rows])

    async def _between(self, lo: Timestamp, hi: Timestamp) -> AsyncIterator[Changes]:
        """Yield the changes in ``(lo, hi]``; the position follows, and is ``hi`` in the end."""
        recent = self._domain.feed.after(lo)
        if recent is None:
            async for changes in self._from_versions(hi):
                yield changes
            self._unguard()
        else:
            for writes in recent:
                if writes.ts > hi:
                    break
                if self._concerned(writes):
                    async for changes in self._from_commit(writes):
                        yield changes
                    self._move(writes.ts)
        self._move(hi)

    def _concerned(self, writes: WriteSet) -> bool:
        shards = self.shards
        return any(w.shard in shards for w in writes.shards) or any(c.shard in shards for c in writes.schema)

    # -- one recent commit -------------------------------------------------------------------------

    async def _from_commit(self, writes: WriteSet) -> AsyncIterator[Changes]:
        """Yield one commit's changes from its write set, or from versions where that does not tell them all."""
        ts = writes.ts
        mine = [w for w in writes.shards if w.shard in self.shards]
        plain = not any(w.parts or w.ended for w in mine) and not any(
            c.shard in self.shards for c in writes.schema
        )
        if not plain:
            self._move(Timestamp(ts - 1))
            async for changes in self._from_versions(ts):
                yield changes
            self._unguard()
            return
        if not self._rows:
            yield Changes(ts, [Change(ts, w.shard, (), 1, RowId(0)) for w in mine])
            return
        piece: list[Change] = []
        for shard in mine:
            for start in range(0, len(shard.ops), PIECE_ROWS):
                piece += await self._of_ops(shard, shard.ops[start : start + PIECE_ROWS], ts)
                if len(piece) >= PIECE_ROWS:
                    yield Changes(ts, piece)
                    piece = []
        if piece:
            yield Changes(ts, piece)

    async def _of_ops(self, shard: ShardWrites, ops: Sequence[RowOp], ts: Timestamp) -> list[Change]:
        """Return the changes of row operations; what they replaced is looked up just below ``ts``."""
        entry = self._core.shards[shard.shard].at(ts - 1)
        generation = None if entry is None else entry.generation
        window = Window(shard.shard, self._core.shards[shard.shard], self._specs[shard.shard], ts - 1)
        places: list[Place] = []
        for op in ops:
            if op.replaced:
                found = None if generation is None else generation.find_row(op.row_id, ts - 1)
                if found is None:
                    raise StoreCorrupted(
                        f"row {op.row_id} of shard {shard.shard} has lost version {op.replaced}"
                    )
                places.append(Place(ts, -1, op.row_id, found))
            if op.values is not None:
                places.append(Place(ts, 1, op.row_id, Version(ts, op.values, None)))
        return await window.read(places)

    # -- history -----------------------------------------------------------------------------------

    async def _from_versions(self, hi: Timestamp) -> AsyncIterator[Changes]:
        """Yield the changes above the position up to ``hi``, in order, a bounded number at a time."""
        while self.position < hi:
            lo = self.position
            self._guard_now()
            windows = [
                Window(shard, self._core.shards[shard], spec, lo) for shard, spec in self._specs.items()
            ]
            stamps = pa.concat_arrays([await window.timestamps(lo, hi) for window in windows])
            if not len(stamps):
                return
            stamps = stamps.take(pc.array_sort_indices(stamps))
            first = stamps[0].as_py()
            of_first = pc.sum(pc.equal(stamps, stamps[0])).as_py()
            if not self._rows:
                for ts in pc.unique(stamps.slice(0, WINDOW_ROWS)).to_pylist():
                    yield Changes(Timestamp(ts), [Change(Timestamp(ts), min(self.shards), (), 1, RowId(0))])
                    self._move(Timestamp(ts))
            elif of_first > WINDOW_ROWS:
                for window in windows:
                    async for places in window.places(first - 1, first):
                        yield Changes(Timestamp(first), await window.read(places))
                self._move(Timestamp(first))
            else:
                upto = hi if len(stamps) <= WINDOW_ROWS else _whole_commits(stamps, first)
                async for changes in self._in_order(windows, lo, upto):
                    yield changes
                self._move(upto)

    def _unguard(self) -> None:
        if self._guard is not None:
            self._holds.release(self._guard)
            self._guard = None

    def _guard_now(self) -> None:
        """Hold the position for as long as a window over it is in use: holds of later serials do not keep its parts."""
        before, self._guard = self._guard, self._holds.acquire(self.position)
        if before is not None:
            self._holds.release(before)

    async def _in_order(self, windows: list[Window], lo: int, hi: int) -> AsyncIterator[Changes]:
        found: list[tuple[int, int, int, Window, Place]] = []
        for number, window in enumerate(windows):
            async for places in window.places(lo, hi):
                found += [(p.ts, number, p.row_id, window, p) for p in places]
        found.sort(key=lambda f: (f[0], f[1], f[2], f[4].diff))
        start = 0
        while start < len(found):
            ts = found[start][0]
            end = start
            while end < len(found) and found[end][0] == ts:
                end += 1
            while start < end:
                piece = found[start : min(end, start + PIECE_ROWS)]
                start += len(piece)
                rows: list[Change] = []
                for window in windows:
                    rows += await window.read([f[4] for f in piece if f[3] is window])
                yield Changes(Timestamp(ts), rows)
            self._move(Timestamp(ts))


def _columns(spec: ShardSpec) -> tuple[ShardColumn, ...]:
    return spec.columns


def _whole_commits(stamps: pa.Int64Array, first: int) -> Timestamp:
    """Return a timestamp up to which there are at most ``WINDOW_ROWS`` changes, whole commits, at least one."""
    beyond = stamps[WINDOW_ROWS].as_py()  # the commit that does not fit
    return Timestamp(max(beyond - 1, first))
