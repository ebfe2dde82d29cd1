"""Bugs planted on purpose: what the simulation must find.

Each is a context manager that breaks one rule of ``txn`` while it is open. ``python -m tests.sim.mutations NAME...``
looks for the first seed that finds it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

import msgspec

import txn.locks.mode
import txn.locks.table
import txn.locks.validate
import txn.transaction.coordinator
import txn.transaction.next_key
import txn.transaction.promotion
import txn.transaction.transaction
import txn.transaction.writes
from tests.sim import plants
from tests.sim.checker.feeds import NAMES as OF_FEEDS
from tests.sim.run import Result, run_seed
from txn.base.errors import OutOfSpace
from txn.base.types import Timestamp
from txn.locks.mode import IX, NAMES, S, X
from txn.locks.policy import Detect
from txn.locks.table import LockTable
from txn.log.group_commit import Committer
from txn.log.holds import HoldRegistry
from txn.log.lease import Lease
from txn.log.oracle import DurableOracle
from txn.mvcc.generation import Generation
from txn.persist.memory import MemoryBlob, MemoryConsensus
from txn.transaction.coordinator import Coordinator
from txn.transaction.read_set import ReadSet
from txn.transaction.transaction import StoreTransaction
from txn.wal.read import Uncovered
from txn.wal.txns import TxnsLog

Plant = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One bug. ``expected``: names of anomalies that it may show as; "" for a broken invariant or an exception."""

    rule: str
    what: str
    plant: Plant
    expected: tuple[str, ...]


def _matrix(*pairs: tuple[int, int]) -> Plant:
    """Lock modes that exclude each other become compatible."""

    @contextmanager
    def plant() -> Iterator[None]:
        mode = txn.locks.mode
        compatible = [list(row) for row in mode.COMPATIBLE]
        for one, other in pairs:
            compatible[one][other] = compatible[other][one] = True
        field = (1 << mode._BITS) - 1
        conflicts = tuple(
            sum(field << (mode._BITS * held) for held in range(len(NAMES)) if not compatible[held][asked])
            for asked in range(len(NAMES))
        )
        with (
            mock.patch.object(txn.locks.table, "COMPATIBLE", tuple(map(tuple, compatible))),
            mock.patch.object(txn.locks.table, "CONFLICTS", conflicts),
            mock.patch.object(txn.locks.validate, "COMPATIBLE", tuple(map(tuple, compatible))),
            mock.patch.object(txn.locks.validate, "CONFLICTS", conflicts),
        ):
            yield

    return plant


def _replace(owner: Any, name: str, value: Any) -> Plant:
    return lambda: mock.patch.object(owner, name, value)


def _unlocked(skip: Callable[[Any, int], bool]) -> Plant:
    """Some locks are not taken."""
    acquire = LockTable.acquire

    def careless(self: LockTable, owner: Any, granule: Any, mode: int) -> Any:
        return None if skip(granule, mode) else acquire(self, owner, granule, mode)

    return _replace(LockTable, "acquire", careless)


def _is_row(granule: Any) -> bool:
    return isinstance(granule, tuple) and len(granule) == 2


def _is_key(granule: Any) -> bool:
    return isinstance(granule, tuple) and len(granule) == 3


def _gap_ignored() -> AbstractContextManager[Any]:
    """An insert locks its key, wherever it lies."""

    def careless(txn: Any, view: Any, index_id: Any, ikey: Any, row: Any, mode: int) -> Any:
        wait = txn.core.locks.acquire(txn.owner, (view.shard, index_id, ikey), mode)
        if wait is not None:
            yield wait

    return mock.patch.object(txn.transaction.writes, "lock_new_key", careless)


def _nothing_beyond() -> AbstractContextManager[Any]:
    """A range read locks the keys it meets, not the first one beyond."""
    traverse = txn.transaction.next_key.traverse

    def short(*args: Any, **more: Any) -> Any:
        met = traverse(*args, **more)
        return met and met._replace(boundaries=met.boundaries[:-1])

    return mock.patch.object(txn.transaction.next_key, "traverse", short)


def _release_early() -> AbstractContextManager[Any]:
    commit = StoreTransaction.commit

    def hasty(self: StoreTransaction) -> Any:
        answer = commit(self)
        if isinstance(answer, asyncio.Future):
            self.core.locks.release_all(self.owner)
        return answer

    return mock.patch.object(StoreTransaction, "commit", hasty)


def _readable_too_soon() -> AbstractContextManager[Any]:
    try_write_ts = DurableOracle.try_write_ts

    def eager(self: DurableOracle) -> Timestamp | None:
        ts = try_write_ts(self)
        if ts is not None:
            self._read = ts
        return ts

    return mock.patch.object(DurableOracle, "try_write_ts", eager)


def _half_way() -> AbstractContextManager[Any]:
    apply = Committer._apply

    def early(self: Committer, members: Any, batch: Any, *rest: Any) -> None:
        if batch.writes and not self.others:
            self._oracle.apply_write(batch.writes[-1].ts)
            self.yield_to_readers()
        apply(self, members, batch, *rest)

    return mock.patch.object(Committer, "_apply", early)


@contextmanager
def _forgotten_reservation() -> Iterator[None]:
    """A restart begins at the clock, whatever was reserved or committed before."""
    with (
        mock.patch("txn.log.oracle.unseal_number", return_value=Timestamp(0)),
        mock.patch("txn.log.durable._log_upper", _nothing),
    ):
        yield


async def _nothing(_consensus: Any, _end: int) -> Timestamp:
    return Timestamp(0)


def _covered_again() -> AbstractContextManager[Any]:
    """Recovery applies the last entry that a manifest covers once more."""
    init = Uncovered.__init__

    def off_by_one(self: Uncovered, *args: Any) -> None:
        init(self, *args)
        self._through = {shard: seq - 1 for shard, seq in self._through.items()}
        self._highest -= 1

    return mock.patch.object(Uncovered, "__init__", off_by_one)


def _ends_once() -> AbstractContextManager[Any]:
    """A row of a part that has ended cannot be ended again: what recovery meets again is refused."""
    end = Generation._end_part_row

    def strict(self: Generation, row_id: Any, begin: int, ts: int) -> bool:
        for part in self.parts:
            for position in part.file.positions(row_id):
                if part.begin(position) == begin and part.end_of(position):
                    return False
        return end(self, row_id, begin, ts)

    return mock.patch.object(Generation, "_end_part_row", strict)


def _acknowledged_too_soon() -> AbstractContextManager[Any]:
    append = TxnsLog.append

    async def careless(self: TxnsLog, payload: bytes) -> int:
        seq = self.map.next
        task = asyncio.get_running_loop().create_task(append(self, payload))
        await asyncio.sleep(0)
        del task
        return seq

    return mock.patch.object(TxnsLog, "append", careless)


async def _assume_failure(self: TxnsLog, seq: int, payload: bytes, error: Exception) -> None:
    raise OutOfSpace(f"entry {seq} is taken for lost: {error}")


def _unsynced_blobs() -> AbstractContextManager[Any]:
    """Parts are announced, and read by who wrote them, some time before they are durable."""

    async def hasty(self: MemoryBlob, name: str, data: bytes) -> None:
        async def later() -> None:
            await asyncio.sleep(0.05)
            if self.disk.blobs.get(name) is None:
                self.disk.blobs[name] = data

        path = self.local_path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        asyncio.get_running_loop().create_task(later())

    return mock.patch.object(MemoryBlob, "put", hasty)


def _lost_ends() -> AbstractContextManager[Any]:
    """What ends while a flush is under way is forgotten."""
    swap = Generation.swap

    def forgetful(self: Generation, *args: Any) -> Any:
        self.flush_ended.clear()
        return swap(self, *args)

    return mock.patch.object(Generation, "swap", forgetful)


def _torn_recovery() -> AbstractContextManager[Any]:
    """Recovery applies only the first table of each transaction."""
    apply_writes = Coordinator.apply_writes

    def torn(self: Coordinator, writes: Any) -> None:
        if writes.txn not in self.committing and len(writes.shards) > 1 and not writes.schema:
            writes = msgspec.structs.replace(writes, shards=writes.shards[:1])
        apply_writes(self, writes)

    return mock.patch.object(Coordinator, "apply_writes", torn)


def _no_undo() -> AbstractContextManager[Any]:
    """ROLLBACK TO SAVEPOINT undoes nothing."""
    return mock.patch.object(StoreTransaction, "rollback_to", return_value=None)


LOST = (
    "lost update",
    "lost acknowledged write",
    "stale read",
    "split transaction",
    "G-single read skew",
    "non-repeatable read",
    "duplicate unique key",
    "against timestamps",
    "broken invariant",
    *OF_FEEDS,
)
SKEW = (
    "write skew (G2-item)",
    "phantom (G2)",
    "G2 anti-dependency cycle",
    "lost update",
    "G-single read skew",
    "against timestamps",
)

MUTATIONS: Final[dict[str, Mutation]] = {
    "matrix S-IX": Mutation("lock matrix (D47)", "S and IX are compatible", _matrix((S, IX)), (*SKEW, *LOST)),
    "matrix S-X": Mutation("lock matrix (D47)", "S and X are compatible", _matrix((S, X)), (*SKEW, *LOST)),
    "matrix X-X": Mutation("lock matrix (D47)", "X and X are compatible", _matrix((X, X)), (*LOST, "")),
    "no row locks": Mutation("row locks (D39)", "rows are not locked", _unlocked(lambda g, _m: _is_row(g)), (*SKEW, *LOST, "")),
    "no key locks": Mutation(
        "key locks (D50)", "keys are not locked S", _unlocked(lambda g, m: _is_key(g) and m == S), (*SKEW, *LOST)
    ),
    "no unique keys": Mutation(
        "unique keys (D51)", "unique keys are not locked X", _unlocked(lambda g, m: _is_key(g) and m == X),
        ("duplicate unique key", *LOST, ""),
    ),
    "gap": Mutation("next-key rule (D52, D54)", "an insert does not look at the range it goes to", _gap_ignored, SKEW),
    "beyond": Mutation("next-key rule (D53)", "a range read does not lock the next key", _nothing_beyond, SKEW),
    "scans": Mutation("scan validation (transactions.md)", "scans are not compared with later commits",
                      _replace(txn.transaction.coordinator, "notice", lambda *args: None), (*SKEW, *LOST)),
    "scans in batch": Mutation("scan validation (transactions.md)", "scans are not compared within a batch", _replace(
        Committer, "forming", lambda self: ()), (*SKEW, *LOST)),
    "promotion": Mutation("promotion check (transactions.md)", "what was read is locked, not compared", _replace(
        ReadSet, "check", lambda self, core, read_ts: None), (*SKEW, *LOST, "non-repeatable read")),
    "renewal": Mutation("renewal (transactions.md)", "a transaction goes on in the present whatever it has read", _replace(
        txn.transaction.promotion, "is_current", lambda txn: True), (*SKEW, *LOST)),
    "schema check": Mutation("schema versions (D77)", "promotion does not compare schemas", _replace(
        txn.transaction.promotion, "check_schemas", lambda txn: None), (*SKEW, *LOST, "")),
    "early release": Mutation("locks until durable (D39)", "locks go when the commit is queued", _release_early, (*LOST, "")),
    "read_ts": Mutation("oracle (A27)", "read_ts covers what is not applied yet", _readable_too_soon, (*LOST, "")),
    "half-way": Mutation("turns (pgwire.md)", "readers go first where a commit is half done", _half_way, (*LOST, "")),
    "reservation": Mutation("oracle reservation (A22, A40)", "a restart begins at the clock", _forgotten_reservation,
                            (*LOST, "incompatible order", "")),
    "covered entries": Mutation("apply idempotence (C27)", "a covered entry is applied again", _covered_again,
                                (*LOST, "write applied twice", "")),
    "ends again": Mutation("apply idempotence (C27)", "ends may not be met again", _ends_once, ("",)),
    "epoch": Mutation("epoch check (L10)", "consensus does not check the epoch", _replace(
        MemoryConsensus, "_check_epoch", lambda self, epoch: None), (*LOST, "")),
    "lease": Mutation("lease (A41)", "a lease never runs out", _replace(Lease, "valid", lambda self: True), LOST),
    "durable point": Mutation("durable point (P2)", "commits are acknowledged before they are durable",
                              _acknowledged_too_soon, (*LOST, "")),
    "indeterminate": Mutation("unknown outcomes (P2)", "an unknown append is taken for failed", _replace(
        TxnsLog, "_resolve", _assume_failure), ("G1a aborted read", "")),
    "blob": Mutation("blobs before names (P2)", "a part is named before it is durable", _unsynced_blobs, (*LOST, "")),
    "flush ends": Mutation("flush (storage.md)", "what ends during a flush is forgotten", _lost_ends, (*LOST, "")),
    "atomic recovery": Mutation("atomicity (C22)", "recovery applies one table of each transaction", _torn_recovery,
                                ("split transaction", *LOST, "incompatible order", "")),
    "holds": Mutation("read holds (U16)", "old versions go whoever reads them", _replace(
        HoldRegistry, "low_watermark", lambda self, beyond_retention=0: self._read_ts()), (*LOST, "")),
    "savepoint": Mutation("savepoints (D36)", "ROLLBACK TO undoes nothing", _no_undo, ("G1a aborted read",)),
    "delivered again": Mutation("subscriptions (C8)", "after a timestamp comes the commit at it, again",
                                plants.delivered_again, LOST),
    "resumed below": Mutation("subscriptions (C8)", "one that resumes begins just below its timestamp",
                              plants.resumed_below, LOST),
    "split commit": Mutation("subscriptions (U11)", "of a commit only the first table is delivered",
                             plants.split_commit, LOST),
    "cut window": Mutation("subscriptions (U11)", "history is cut within a commit", plants.cut_window, LOST),
    "early progress": Mutation("subscriptions (C8)", "progress passes commits that are under way",
                               plants.progress_too_early, (*LOST, "")),
    "position": Mutation("subscriptions (U16)", "what a subscription has yet to read is not held",
                         plants.position_not_held, (*LOST, "")),
    "history parts": Mutation("history parts (C36)", "versions that have left memory are not found",
                              plants.no_history_parts, (*LOST, "")),
    "reach": Mutation("oracle (A16, L6)", "a timestamp is read at before what is below it is there",
                          plants.reached_at_once, (*LOST, "")),
    "claim": Mutation("commit_at (C9, C31)", "a commit gets a timestamp that has passed",
                      plants.claimed_in_the_past, (*LOST, "")),
    "timeline oracle": Mutation("timelines (A12)", "another timeline's commits take the default oracle's timestamps",
                                plants.other_oracle, (*LOST, "")),
    "staged scans": Mutation("scan validation (transactions.md)", "what a large commit replaces is not compared",
                             plants.staged_is_current, (*SKEW, *LOST)),
    "key share": Mutation("row locks (D39)", "FOR KEY SHARE locks nothing", plants.no_key_share, (*SKEW, *LOST)),
    "skip locked": Mutation("row locks (D39)", "SKIP LOCKED and NOWAIT take rows that are locked", plants.skips_nothing,
                            (*SKEW, *LOST, "")),
    "building index": Mutation("index build (N10)", "an index being built does not hear of commits",
                               plants.not_kept_up, (*LOST, "")),
    "unique build": Mutation("index build (L33)", "keys entered while a unique index is built are not compared",
                             plants.not_noted, (*LOST, "")),
    "deferred check": Mutation("deferred unique keys", "the check at the end does nothing", _replace(
        StoreTransaction, "check_unique", lambda self, shard, index: None), ("duplicate unique key", *LOST, "")),
    "deadlock": Mutation("deadlock detection (D58)", "cycles of waits are not found", _replace(
        Detect, "victims", lambda self, requester, waits_for: []), ("",)),
}  # fmt: skip


HINTS: Final = {
    "blob": 15,
    "history parts": 18,
    "position": 53,
    "durable point": 2,
    "matrix X-X": 6,
    "gap": 14,
    "beyond": 15,
    "scans in batch": 24,
    "renewal": 4,
    "schema check": 15,
    "ends again": 4,
    "lease": 8,
    "indeterminate": 12,
    "flush ends": 8,
    "no key locks": 12,
    "epoch": 2,  # the first finds it, too, in a minute
    "split commit": 13,
    "cut window": 3,
    "staged scans": 111,
    "key share": 42,
    "skip locked": 6,
    "reach": 53,
    "timeline oracle": 2,
    "building index": 3,
    "unique build": 108,
}
"""Where the first seed that finds a bug was, when last looked for: tests begin there to be quick."""


def find(mutation: Mutation, seeds: Iterable[int]) -> Result | None:
    """Return the first seed that finds the planted bug."""
    with ExitStack() as stack:
        stack.enter_context(mutation.plant())
        for seed in seeds:
            result = run_seed(seed)
            if result.failed:
                return result
    return None


def main() -> int:
    """Look for planted bugs from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutations", description="Find planted bugs.")
    parser.add_argument("names", nargs="*", choices=[[], *MUTATIONS])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--table", action="store_true", help="print rows of docs/internals/testing.md")
    options = parser.parse_args()
    missed = 0
    for name in options.names or MUTATIONS:
        mutation = MUTATIONS[name]
        result = find(mutation, range(1, options.seeds + 1))
        if result is None:
            missed += 1
            print(f"{name}: NOT FOUND in {options.seeds} seeds", flush=True)
            continue
        names = list(dict.fromkeys(a.name for a in result.anomalies)) or result.problems[:1]
        if options.table:
            print(
                f"| {mutation.rule} | {mutation.what} | {result.seed} | {', '.join(names[:2])[:110]} |",
                flush=True,
            )
            continue
        print(f"{name}: seed {result.seed}: {', '.join(names)[:150]}", flush=True)
        if options.verbose:
            print(result.explain())
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
