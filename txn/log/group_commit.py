"""Group commit: one queue, one durable append per batch, one total order (A25, A27, L9, L15, U9-U11).

    submit ─┐                 ┌─ validate ─ timestamp ─┐
    submit ─┼─> queue ─> form ┤  (one loop tick)       ├─> append ──> apply, apply_write ──> futures
    swap   ─┘      ^          └────────────────────────┘  durable      (one loop tick)
                   '── the next batch gathers meanwhile ──'  point       (a large batch: rows before, in slices)

- Commits, part swaps, register and forget (schema changes of a write set) share the queue, and its order is
  the log's. Each transaction of a batch gets a counter value of its own (U11).
- A batch that has gathered is formed, and its append begun, in the turn that applies the one before: its answers
  (a callback per transaction) are written while the disk works.
- Every earlier batch is applied when a batch is formed, so ``validate`` sees the latest state plus what it
  remembers of earlier members of its own batch.
- A member takes its timestamp from the oracle of its timeline. One that happens everywhere (``txn.log.timeline``) takes
  one that is above all that any oracle has handed out, and each of them knows of it before the next member.
- The committer never waits for locks: whoever submits holds what it needs.
- A large write set is encoded piece by piece, so that it does not hold up the loop, and past ``SPILL_BYTES`` it
  is written to a blob before it joins the queue; the log entry then carries the blob's name (C18).
- A failed append fails its batch and nothing else, unless the outcome is unknown or the epoch is old: then the
  server must stop, and every later submit says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from txn.base.errors import CommitUnknown, Fenced, OutOfSpace, TimestampPassed, TxnError, anew
from txn.base.huge_values import SHARED_BYTES
from txn.base.records import Batch, PartSwap, WriteSet
from txn.base.types import ShardId, Timestamp, TxnId
from txn.log.oracle import TimestampOracle
from txn.persist.reserve import Reserve, makes_room, small_change
from txn.values.encoding import (  # fmt: skip
    FEW_OPS,
    Piece,
    encode_at_once,
    encode_entry,
    encode_write_set,
    encode_write_set_slowly,
    is_short,
    stamp_parts,
    written_shards,
)
from txn.wal.txns import TxnsLog

MAX_BATCH_MEMBERS = 2048
MAX_BATCH_BYTES = 4 << 20
STAGE_BYTES = 64 << 10  # an entry beyond this is applied in slices
STAGE_ENTRIES = 4000  # likewise, rows and entries of indexes
_COPIED: Final = frozenset((str, bytes))
SPILL_BYTES = 1 << 20  # an encoded write set beyond this goes into a blob of its own

_NO_TS = Timestamp(0)
# Memory is no longer what the log says: only a restart can serve it.
_BROKEN = "a durable commit could not be applied to memory"
_log = logging.getLogger(__name__)
_replace = msgspec.structs.replace

Validate = Callable[[], Exception | None]
Applier = Callable[[Batch, int], None]


@dataclass(slots=True, eq=False)
class _Member:
    """A queued transaction or swap. The queue is bounded by sessions: each waits for its own commit."""

    validate: Validate | None
    writes: WriteSet | None
    oracle: TimestampOracle | None  # of its timeline; None: it happens everywhere
    data: bytes | str  # encoded, or the name of the blob that holds it
    committed: asyncio.Future[Timestamp] | None
    refused: Callable[[], None] | None = None
    swap: PartSwap | None = None
    swapped: asyncio.Future[int] | None = None
    ts: Timestamp = _NO_TS
    at: Timestamp | None = None  # the timestamp it wants
    reach: bool = False  # commits nothing: ``ts`` is to become readable
    spilled: int = 0  # bytes in a blob
    entries: int = 0  # rows and entries of indexes that applying it makes, above STAGE_ENTRIES where that takes long anyhow
    withdrawn: Exception | None = None  # while it was being encoded

    def fail(self, error: BaseException) -> None:
        if self.refused is not None:
            self.refused()
        for future in (self.committed, self.swapped):
            if future is not None and not future.done():
                future.set_exception(error)


class Committer:
    """The one writer of the log. Call ``start`` once, on the loop that submits; all methods run on it."""

    def __init__(self, log: TxnsLog, oracle: TimestampOracle) -> None:
        """Set ``applier`` before ``start``."""
        self._txns = log
        self._oracle = oracle
        self.others: list[TimestampOracle] = []
        """Oracles of the timelines beside the default one."""
        self._upper = _NO_TS  # the highest timestamp committed, of any timeline
        self._wanting: tuple[TimestampOracle, Timestamp] = (oracle, _NO_TS)  # what the queue waits for
        self._queue: deque[_Member] = deque()
        self._forming: list[_Member] = []
        self._under_way: list[_Member] = []  # formed and not yet decided
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._closing = False  # nothing more is accepted
        self._last = False  # nothing more will come: end when the queue is empty
        self._preparing: set[asyncio.Task[None]] = set()
        self._encoding: dict[TxnId, _Member] = {}
        self.spill: Callable[[list[Piece]], Awaitable[str]] | None = None
        """Writes the pieces of an encoded write set to a blob, durably; returns its name. None: all go inline."""
        self.unspill: Callable[[str], Awaitable[None]] | None = None
        """Removes such a blob again: its transaction was refused."""
        self.met_huge: Callable[[], bool] = lambda: True
        """Whether there may be a huge value in a row at all: most servers never have one."""
        self.yield_to_readers: Callable[[], None] = lambda: None
        """Called between the steps of a turn that together take long; whoever is served then only reads."""
        self.reserve: Reserve | None = None
        """Space for what makes room, where there is one."""
        self.own_shards: frozenset[ShardId] = frozenset()
        """Those that say what there is, so that rows are added to them also by what makes room."""
        self.told: set[TxnId] = set()
        """Transactions that have not ended and whose rows show their ids (``txn.base.writers``)."""
        self.failed: Exception | None = None
        """Why nothing can be committed any more (Fenced, CommitUnknown, or a broken invariant)."""
        self.refusal: TxnError | None = None
        """Why no transaction is committed, if none is: what is stored cannot be told for sure."""
        self.on_failure: Callable[[Exception], None] | None = None
        self.applier: Applier | None = None
        """``applier(batch, seq)`` applies a durable batch to memory, on the loop; it must not raise."""
        self.stager: Callable[[Batch], Iterator[None]] | None = None
        self.weigh: Callable[[WriteSet], int] | None = None
        """Applies part of a large durable batch before that, in slices; nothing of it may be readable yet."""
        self.noted: Callable[[Batch, int, list[str]], None] | None = None
        """Told of every durable batch, and the blobs that it names, before the applier."""
        self.after_apply: Callable[[Batch], None] | None = None
        """Runs in the same tick, when ``read_ts`` already covers the batch."""
        self.applied_seq = log.next_seq - 1
        """Sequence number of the last entry applied."""
        self.start_seq = self.applied_seq
        """That of the last one before ``start``."""
        self._start_bytes = 0  # noted by then

    def start(self) -> None:
        """Begin to commit. Needs a running loop."""
        if self.applier is None:
            raise AssertionError("the committer has no applier")
        self._loop = asyncio.get_running_loop()
        self.start_seq = self.applied_seq = self._txns.next_seq - 1
        self._start_bytes = self._txns.map.noted
        self._task = self._loop.create_task(self._run(), name="holdfast-committer")

    @property
    def new_bytes(self) -> int:
        """Bytes of the entries since ``start``."""
        return self._txns.map.noted - self._start_bytes

    def submit(
        self,
        writes: WriteSet,
        validate: Validate | None = None,
        refused: Callable[[], None] | None = None,
        *,
        at: Timestamp | None = None,
        oracle: TimestampOracle | None = None,
    ) -> asyncio.Future[Timestamp]:
        """Queue a transaction; the future gives its commit timestamp once it is durable, applied and readable.

        ``oracle``: that of the one timeline that it concerns; None: it happens everywhere.

        ``validate`` runs on the loop when the batch is formed, in queue order; an exception that it returns
        comes out of the future, and the other members go on. Bulk parts whose ``max_begin`` is 0 get the
        commit timestamp. Cancelling the future does not take the transaction back. ``refused`` is called just before
        the future gets an exception: nothing was applied, and nothing will be. ``at``: commit at exactly that timestamp
        or not at all (C9, C31).

        Raises (at once): TypeError for values outside the value domain; what made the committer stop.
        Raises (from the future): OutOfSpace, StorageError, CommitUnknown, Fenced, or what ``validate`` returned;
        with ``at`` TimestampPassed, or ValueError if that lies beyond the oracle's reservation.
        For large write sets TypeError too comes from the future.
        """
        self._accepting()
        if self.refusal is not None:
            raise anew(self.refusal)
        reserve = self.reserve
        if reserve is not None and reserve.short and not self._goes_on(writes):
            reserve.check(0)
        future: asyncio.Future[Timestamp] = self._loop.create_future()
        size, staged, huge = 0, False, False
        met_huge = self.met_huge()
        for shard in writes.shards:
            ops = shard.ops
            size += len(ops)
            if shard.ended:
                staged = True
            for op in ops if met_huge and size <= FEW_OPS else ():
                for value in op.values or ():
                    if value.__class__ in _COPIED and len(value) >= SHARED_BYTES:
                        huge = True  # which takes long to be copied
        entries = STAGE_ENTRIES + 1 if staged else 0
        if size > FEW_OPS and self.weigh is not None:
            entries += self.weigh(writes)
        member = _Member(validate, writes, oracle, b"", future, refused, at=at, entries=entries)
        if not huge and ((size <= FEW_OPS and not writes.schema) or is_short(writes)):
            data = encode_at_once(writes)
            if data is not None and (len(data) <= SPILL_BYTES or self.spill is None):
                member.data = data
                self._enqueue(member)
                return future
            del data  # there are huge values, which are copied no more than this once, or long arrays
        self._encoding[writes.txn] = member  # before its first step: it may be withdrawn at once
        task = self._loop.create_task(self._prepare(member, writes))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)
        return future

    def _goes_on(self, writes: WriteSet) -> bool:
        """Tell whether a commit is tried while space is short: one that makes room, or a small change of the
        catalog.
        """
        if makes_room(writes, self.own_shards):
            return True
        return is_short(writes) and small_change(writes, self.own_shards, len(encode_write_set(writes)))

    def withdraw(self, txn: TxnId, error: Exception) -> bool:
        """Take a transaction out of the queue; its future gets ``error``. False: it is too late, or it is not here.

        Too late is once its batch is formed: from then on only the log can tell whether it has happened.
        """
        encoding = self._encoding.get(txn)
        if encoding is not None:
            encoding.withdrawn = error
            return True
        for member in self._queue:
            if member.writes is not None and member.writes.txn == txn:
                self._queue.remove(member)
                self._refuse(member, error)
                return True
        return False

    async def _prepare(self, member: _Member, writes: WriteSet) -> None:
        """Encode a large write set, put it into a blob if need be, and queue it."""
        try:
            pieces: list[Piece] = []
            for piece in encode_write_set_slowly(writes):
                pieces.append(piece)
                await asyncio.sleep(0)
                if member.withdrawn is not None:
                    break
            if member.withdrawn is not None:
                self._refuse(member, member.withdrawn)
                return
            size = sum(map(len, pieces))
            if size > SPILL_BYTES and self.spill is not None:
                member.spilled = size
                member.entries = STAGE_ENTRIES + 1
                member.data = await self.spill(pieces)
            else:
                member.data = b"".join(pieces)
        except Exception as error:
            member.fail(error)
            return
        finally:
            del self._encoding[writes.txn]
        if member.withdrawn is not None:
            self._refuse(member, member.withdrawn)
            return
        self._enqueue(member)

    def reach(self, ts: Timestamp, oracle: TimestampOracle | None = None) -> asyncio.Future[Timestamp]:
        """Make ``ts`` readable in the timeline of ``oracle`` (None: the default), which the clock has
        reached: no commit at or below it is to come (A15, A16, L6).

        The future is done when those there are have been applied. Nothing is written, unless timestamps have to be
        reserved. Raises (at once, or from the future): what made the committer stop; OutOfSpace where nothing can be
        reserved.
        """
        self._accepting()
        future: asyncio.Future[Timestamp] = self._loop.create_future()
        self._enqueue(_Member(None, None, oracle or self._oracle, b"", future, ts=ts, reach=True))
        return future

    def submit_swap(self, swap: PartSwap, validate: Validate | None = None) -> asyncio.Future[int]:
        """Queue a change of parts; the future gives the log sequence number of its entry, once applied."""
        self._accepting()
        future: asyncio.Future[int] = self._loop.create_future()
        self._enqueue(_Member(validate, None, None, b"", None, None, swap, future))
        return future

    def _accepting(self) -> None:
        if self.failed is not None:
            raise self.failed
        if self._closing:
            raise CommitUnknown("the server is shutting down")

    def _enqueue(self, member: _Member) -> None:
        if self.failed is not None:
            member.fail(self.failed)
            return
        self._queue.append(member)
        wake = self._wake
        if wake is not None:
            self._wake = None
            if not wake.done():
                wake.set_result(None)

    # -- the loop ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        queue = self._queue
        try:
            while True:
                if not queue:
                    if self._last:
                        return
                    self._wake = self._loop.create_future()
                    await self._wake
                    continue
                await self._commit_some()
                self._under_way = []
        except Exception as error:
            self._give_up(error)
        except asyncio.CancelledError:
            self._give_up(CommitUnknown("the committer was cancelled"), logging.INFO)
            raise

    async def _commit_some(self) -> None:
        """Form a batch, append it, apply it."""
        members = self._form()
        self._forming = []
        if members is None:
            try:
                oracle, beyond = self._wanting
                await oracle.wait_ready(beyond)
            except (Fenced, CommitUnknown):
                raise
            except TxnError as error:
                # No timestamp can be reserved now (no space): who waits is told, the next may succeed.
                if not isinstance(error, OutOfSpace) or not self._find_room(self._queue):
                    self._fail_queue(error)
            return
        if not members:
            return
        if members[-1].reach and all(m.reach for m in members):
            self._reached(members)
            return
        writes: list[WriteSet] = []
        encoded: list[tuple[Timestamp, bytes | str]] = []
        swaps: list[PartSwap] = []
        shards: set[ShardId] = set()
        spilled = entries = 0
        for member in members:
            spilled += member.spilled
            entries += member.entries
            if member.writes is not None:
                stamped = stamp_parts(_replace(member.writes, ts=member.ts))
                writes.append(stamped)
                encoded.append((member.ts, member.data))
                shards.update(written_shards(stamped))
            elif member.swap is not None:
                swaps.append(member.swap)
        upper = self._upper
        if writes:
            upper = max(upper, writes[-1].ts) if not self.others else max(upper, *[w.ts for w in writes])
        told: tuple[TxnId, ...] = ()
        if self.told:
            told = tuple([w.txn for w in writes if w.txn in self.told])
            payload = encode_entry(self._txns.epoch, encoded, tuple(swaps), shards, upper, told)
        else:
            payload = encode_entry(self._txns.epoch, encoded, tuple(swaps), shards, upper)
        size = len(payload) + spilled
        self.yield_to_readers()
        batch = Batch(epoch=self._txns.epoch, writes=tuple(writes), swaps=tuple(swaps), bytes=size)
        if told:
            batch = _replace(batch, told=told)
        try:
            try:
                seq = await self._txns.append(payload)  # <-- the durable point
            except OutOfSpace as error:
                seq = await self._append_again(payload, members, error)
        except (Fenced, CommitUnknown):
            raise
        except TxnError as error:
            for member in members:
                if not member.reach:
                    self._refuse(member, error)
            self._reached([m for m in members if m.reach])  # what was refused will never be
            return
        self._upper = upper
        stager = self.stager
        if stager is not None and (len(payload) > STAGE_BYTES or entries > STAGE_ENTRIES):
            await self._stage(stager(batch))
        self.yield_to_readers()
        self._apply(members, batch, seq, len(payload), shards)
        self.yield_to_readers()

    async def _append_again(self, payload: bytes, members: list[_Member], error: OutOfSpace) -> int:
        """Append an entry that there was no space for: if it makes room, with that of the reserve. Raises
        OutOfSpace.
        """
        while self._find_room(members):
            try:
                return await self._txns.append(payload)
            except OutOfSpace as again:
                error = again
        if self.reserve is not None and error.lacking is None:
            raise self.reserve.refusal(len(payload)) from error
        raise error

    def _find_room(self, members: Iterable[_Member]) -> bool:
        """Give up as much of the reserve as one of the members may have; tell whether that has made any room."""
        reserve, own = self.reserve, self.own_shards
        if reserve is None:
            return False
        for member in members:
            if member.writes is None:
                continue
            if makes_room(member.writes, own):
                return reserve.give_some("a commit makes room")
            if small_change(member.writes, own, len(member.data)):
                return reserve.give_up("the catalog is changed")
        return False

    async def _stage(self, steps: Iterator[None]) -> None:
        """Apply a large batch in slices; no other batch is formed meanwhile."""
        try:
            for _ in steps:
                await asyncio.sleep(0)
        except Exception as error:
            raise CommitUnknown(_BROKEN) from error

    def _form(self) -> list[_Member] | None:
        """Take members from the queue, validated and timestamped, in one tick. None: no timestamp is ready."""
        queue = self._queue
        members: list[_Member] = []
        self._forming = self._under_way = members
        size = 0
        while queue and len(members) < MAX_BATCH_MEMBERS:
            member = queue[0]
            if members and size + len(member.data) > MAX_BATCH_BYTES:
                break
            if member.at is not None:
                error = self._claim(member)
                if error is not None:
                    queue.popleft()
                    self._refuse(member, error)
                    continue
            elif member.reach:
                reached = member.oracle or self._oracle
                if not reached.pass_by(member.ts):
                    self._wanting = (reached, member.ts)
                    return members or None
            elif member.writes is not None:
                oracle = member.oracle
                ts = self._common_ts() if oracle is None else oracle.try_write_ts()
                if ts is None:
                    if oracle is not None:
                        self._wanting = (oracle, _NO_TS)
                    return members or None
                member.ts = ts  # wasted if the member is refused, which is harmless (L4)
            if member.validate is not None:
                refused = member.validate()
                if refused is not None:
                    queue.popleft()
                    self._refuse(member, refused)
                    continue
            queue.popleft()
            size += len(member.data)
            members.append(member)
        return members

    def _common_ts(self) -> Timestamp | None:
        """Return a timestamp above all that any oracle has handed out, and have each hand it out. None: wait."""
        first = self._oracle.try_write_ts()
        if not self.others or first is None:
            self._wanting = (self._oracle, _NO_TS)
            return first
        oracles, taken = [self._oracle], [first]
        for oracle in self.others:
            ts = oracle.try_write_ts()
            if ts is None:
                self._wanting = (oracle, _NO_TS)
                return None
            oracles.append(oracle)
            taken.append(ts)
        common = max(taken)
        for oracle, ts in zip(oracles, taken, strict=True):
            if ts != common:
                try:
                    oracle.claim(common)
                except ValueError:
                    self._wanting = (oracle, common)
                    return None
        return common

    def _claim(self, member: _Member) -> Exception | None:
        """Give a member the timestamp it wants, or return why it cannot have it."""
        if member.at is None:
            raise AssertionError("the member of a group wants no timestamp")
        oracles = [self._oracle, *self.others] if member.oracle is None else [member.oracle]
        upper = max(oracle.peek_write_ts() for oracle in oracles)
        if member.at < upper:
            return TimestampPassed(member.at, upper)
        try:
            for oracle in oracles:
                oracle.claim(member.at)
        except ValueError as error:
            return error
        member.ts = member.at
        return None

    def forming(self) -> Iterator[WriteSet]:
        """Yield the transactions that precede a member in its batch; for use by its ``validate``."""
        for member in self._forming:
            if member.writes is not None:
                yield member.writes

    def _apply(self, members: list[_Member], batch: Batch, seq: int, size: int, shards: set[ShardId]) -> None:
        """Make a durable batch readable: memory, then the oracle, then whoever waits. One tick."""
        spilled = [m.data for m in members if type(m.data) is str]
        self._txns.map.note(seq, size + sum([m.spilled for m in members]), shards)
        applier = self.applier
        if applier is None:
            raise AssertionError("the committer has no applier")
        try:
            if self.noted is not None:
                self.noted(batch, seq, spilled)
            applier(batch, seq)
            self.applied_seq = seq
            if self.others:
                self._apply_each(members)
            elif batch.writes:
                self._oracle.apply_write(batch.writes[-1].ts)
            if len(members) > len(batch.writes) + len(batch.swaps):
                self._reached([m for m in members if m.reach])
            if self.after_apply is not None:
                self.after_apply(batch)
        except Exception as error:
            raise CommitUnknown(_BROKEN) from error
        for member in members:
            if member.committed is not None:
                if not member.committed.done():
                    member.committed.set_result(member.ts)
            elif member.swapped is not None and not member.swapped.done():
                member.swapped.set_result(seq)

    def _apply_each(self, members: list[_Member]) -> None:
        """Make each commit readable in its timeline, or in all."""
        for member in members:
            if member.writes is None:
                continue
            if member.oracle is not None:
                member.oracle.apply_write(member.ts)
                continue
            for oracle in (self._oracle, *self.others):
                oracle.apply_write(member.ts)

    def _reached(self, members: list[_Member]) -> None:
        """All that was handed out before is decided and applied."""
        for member in members:
            (member.oracle or self._oracle).apply_write(member.ts)
            if member.committed is not None and not member.committed.done():
                member.committed.set_result(member.ts)

    def _refuse(self, member: _Member, error: Exception) -> None:
        """Tell a member that its transaction did not happen, and never will."""
        if type(member.data) is str and self.unspill is not None:
            task = self._loop.create_task(_quietly(self.unspill(member.data)))
            self._preparing.add(task)
            task.add_done_callback(self._preparing.discard)
        member.fail(error)

    def _fail_queue(self, error: Exception) -> None:
        while self._queue:
            self._refuse(self._queue.popleft(), error)

    def fail(self, error: TxnError) -> None:
        """Commit nothing any more: leadership is lost (Fenced). What is being appended finds out by itself."""
        if self.failed is None:
            self._stop(error, logging.WARNING)

    def _give_up(self, error: Exception, level: int = logging.ERROR) -> None:
        """End for good. Whatever was under way is told, too: it may or may not have become durable."""
        if not isinstance(error, TxnError):
            _log.error("the committer failed", exc_info=error)
            error = CommitUnknown(f"the committer failed: {error!r}")
        self._stop(error, level)
        for member in self._under_way:
            member.fail(error)

    def _stop(self, error: TxnError, level: int = logging.ERROR) -> None:
        _log.log(level, "nothing can be committed any more: %s", error)
        first = self.failed is None
        if self.failed is None:
            self.failed = error
        self._fail_queue(error)
        if first and self.on_failure is not None:
            self.on_failure(error)

    async def close(self) -> None:
        """Finish what is queued and refuse more. Idempotent."""
        self._closing = True
        if self._task is None:
            return
        while self._preparing:
            await asyncio.wait(self._preparing)
        self._last = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
            self._wake = None
        await asyncio.wait([self._task])
        while self._preparing:
            await asyncio.wait(self._preparing)


async def _quietly(work: Awaitable[None]) -> None:
    try:
        await work
    except TxnError as error:
        _log.info("a blob was left behind: %s", error)  # the next start sweeps it away
