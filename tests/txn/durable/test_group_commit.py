"""Group commit: order, timestamps, validation, failures that stay with their batch (A25-A27, L9-L11, U11)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from tests.support.durable import START_MS, ManualClock, run, write
from txn.base.errors import Cause, CommitUnknown, Fenced, OutOfSpace, TxnError, WriteConflict
from txn.base.records import Batch, PartSwap
from txn.base.time import SystemRng, make_timestamp
from txn.base.types import ShardId, Timestamp
from txn.log.group_commit import MAX_BATCH_MEMBERS, Committer
from txn.log.oracle import DurableOracle
from txn.persist.faulty import FaultRates, FaultyConsensus
from txn.persist.location import Consensus
from txn.persist.memory import MemoryConsensus, MemoryDisk
from txn.values.encoding import decode_batch
from txn.wal.cache import LogMap
from txn.wal.txns import TxnsLog


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn.wal.txns._RETRY_S", 0.0)


class Rig:
    """A committer whose applied batches are kept."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.clock = ManualClock()
        self.applied: list[tuple[int, Batch]] = []
        self.failures: list[Exception] = []

    async def start(self, consensus: Consensus | None = None) -> Committer:
        store = consensus or MemoryConsensus(self.disk)
        epoch = await store.acquire_epoch()
        self.oracle = await DurableOracle.open(store, "t", epoch, self.clock, log_upper=Timestamp(0))
        self.committer = Committer(TxnsLog(store, epoch, LogMap(1)), self.oracle)
        self.committer.applier = lambda batch, seq: self.applied.append((seq, batch))
        self.committer.on_failure = self.failures.append
        self.committer.start()
        return self.committer

    def logged(self) -> list[int]:
        """Transactions in log order."""
        return [w.txn for _, data in sorted(self.disk.log.items()) for w in decode_batch(data).writes]

    def stamps(self) -> list[int]:
        return [w.ts for _, b in self.applied for w in b.writes]


def test_each_transaction_gets_its_own_timestamp_in_queue_order() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        stamps = await asyncio.gather(*(committer.submit(write(i, (i, (i,)))) for i in range(50)))
        assert stamps == sorted(set(stamps)) == rig.stamps()
        assert rig.logged() == list(range(50))
        assert rig.oracle.read_ts() == stamps[-1]
        assert [seq for seq, _ in rig.applied] == list(range(1, committer.applied_seq + 1))
        await committer.close()

    run(body)


def test_what_is_queued_during_an_append_goes_together() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        first = committer.submit(write(0, (0, (0,))))
        while committer._queue:
            await asyncio.sleep(0)
        rest = [committer.submit(write(i, (i, (i,)))) for i in range(1, 20)]
        await asyncio.gather(first, *rest)
        assert [len(b.writes) for _, b in rig.applied] == [1, 19]
        await committer.close()

    run(body)


def test_the_next_batch_is_being_appended_when_the_one_before_is_answered() -> None:
    """The disk has work while answers are written; otherwise the two take turns, and neither is ever busy."""

    async def body() -> None:
        rig = Rig()
        store = MemoryConsensus(rig.disk)
        committer = await rig.start(store)
        appends: list[int] = []
        append = store.append

        def counted(epoch: int, seq: int, payload: bytes) -> Awaitable[None]:
            appends.append(seq)
            return append(epoch, seq, payload)

        store.append = counted  # type: ignore[method-assign]
        first = committer.submit(write(0, (0, (0,))))
        while not appends:
            await asyncio.sleep(0)
        when_answered: list[int] = []
        first.add_done_callback(lambda _: when_answered.append(len(appends)))
        second = committer.submit(write(1, (1, (1,))))
        await asyncio.gather(first, second)
        assert when_answered == [2]
        await committer.close()

    run(body)


def test_a_commit_is_readable_when_its_future_resolves_and_not_before_it_is_durable() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        seen: list[tuple[bool, bool]] = []

        def apply(batch: Batch, seq: int) -> None:
            durable = seq in rig.disk.log
            seen.append((durable, rig.oracle.read_ts() < batch.writes[-1].ts))

        after: list[bool] = []
        committer.applier = apply
        committer.after_apply = lambda b: after.append(rig.oracle.read_ts() == b.writes[-1].ts)
        ts = await committer.submit(write(1, (1, (1,))))
        assert seen == [(True, True)]
        assert after == [True]
        assert rig.oracle.read_ts() >= ts
        await committer.close()

    run(body)


def test_a_refused_member_leaves_and_the_rest_go_on() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        calls: list[str] = []

        def passes(name: str) -> None:
            calls.append(name)

        def refuses() -> Exception:
            calls.append("b")
            return WriteConflict(Cause.SCAN_READ, ShardId(7))

        a = committer.submit(write(1, (1, (1,))), lambda: passes("a"))
        b = committer.submit(write(2, (2, (2,))), refuses)
        c = committer.submit(write(3, (3, (3,))), lambda: passes("c"))
        await asyncio.gather(a, c)
        with pytest.raises(WriteConflict):
            await b
        assert calls == ["a", "b", "c"]
        assert rig.logged() == [1, 3]
        await committer.close()

    run(body)


def test_validation_sees_every_earlier_batch_applied() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        first = committer.submit(write(1, (1, (1,))))
        while committer._queue:
            await asyncio.sleep(0)
        applied_then: list[int] = []
        second = committer.submit(write(2, (2, (2,))), lambda: applied_then.append(len(rig.applied)))
        await asyncio.gather(first, second)
        assert applied_then == [1]
        await committer.close()

    run(body)


def test_swaps_keep_their_place_between_commits() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        swap = PartSwap(shard=ShardId(7), removed=("7/1-a",), added=())
        a = committer.submit(write(1, (1, (1,))))
        s = committer.submit_swap(swap)
        _, seq = await asyncio.gather(a, s)
        assert seq == 1
        assert rig.applied[0][1].swaps == (swap,)
        alone = await committer.submit_swap(swap)
        assert alone == 2
        assert rig.applied[1][1].writes == ()
        await committer.close()

    run(body)


def test_a_long_queue_goes_in_bounded_batches() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        count = MAX_BATCH_MEMBERS + 5
        await asyncio.gather(*(committer.submit(write(i, (i, (i,)))) for i in range(count)))
        assert [len(b.writes) for _, b in rig.applied] == [MAX_BATCH_MEMBERS, 5]
        big = "x" * (3 << 20)
        await asyncio.gather(*(committer.submit(write(i, (i, (big,)))) for i in range(3)))
        assert [len(b.writes) for _, b in rig.applied[2:]] == [1, 1, 1]
        await committer.close()

    run(body)


def test_an_unencodable_write_set_fails_alone() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        with pytest.raises(TypeError):
            committer.submit(write(1, (1, (object(),))))
        await committer.submit(write(2, (2, (2,))))
        assert rig.logged() == [2]
        await committer.close()

    run(body)


def test_without_space_a_batch_fails_and_the_next_succeeds() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        rig.disk.capacity = rig.disk.used() + 20
        failed = await asyncio.gather(
            *(committer.submit(write(i, (i, ("x" * 50,)))) for i in range(3)), return_exceptions=True
        )
        assert [type(e) for e in failed] == [OutOfSpace] * 3
        assert not rig.applied
        rig.disk.capacity = None
        await committer.submit(write(9, (9, (9,))))
        assert rig.logged() == [9]
        assert committer.failed is None
        # The same where it is the reservation that finds no space.
        rig.clock.pass_ms(60_000)
        rig.disk.capacity = rig.disk.used()
        with pytest.raises(OutOfSpace):
            await committer.submit(write(10, (10, (10,))))
        rig.disk.capacity = None
        await committer.submit(write(11, (11, (11,))))
        assert rig.logged() == [9, 11]
        await committer.close()

    run(body)


def test_a_fenced_committer_stops_and_says_so() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        await committer.submit(write(1, (1, (1,))))
        await MemoryConsensus(rig.disk).acquire_epoch()
        queued = [committer.submit(write(i, (i, (i,)))) for i in range(2, 5)]
        for future in queued:
            with pytest.raises(Fenced):
                await future
        with pytest.raises(Fenced):
            committer.submit(write(5, (5, (5,))))
        assert isinstance(committer.failed, Fenced)
        assert rig.failures == [committer.failed]
        assert rig.logged() == [1]
        await committer.close()

    run(body)


def test_an_outcome_that_stays_unknown_stops_the_committer() -> None:
    async def body() -> None:
        rig = Rig()
        faulty = FaultyConsensus(MemoryConsensus(rig.disk), SystemRng(1), FaultRates())
        committer = await rig.start(faulty)
        faulty.rates = FaultRates(timeout=1.0)
        with pytest.raises(CommitUnknown):
            await committer.submit(write(1, (1, (1,))))
        with pytest.raises(CommitUnknown):
            committer.submit(write(2, (2, (2,))))
        assert rig.failures
        assert not rig.applied

    run(body)


def test_open_outcomes_are_resolved_and_every_commit_is_logged_exactly_once() -> None:
    async def body() -> None:
        unknown = 0
        for seed in range(80):
            rig = Rig()
            faulty = FaultyConsensus(MemoryConsensus(rig.disk), SystemRng(seed), FaultRates())
            committer = await rig.start(faulty)
            faulty.rates = FaultRates(fail=0.2, timeout=0.25, full=0.1, max_delay_steps=2)
            acked: list[int] = []
            refused: list[int] = []
            for i in range(20):
                try:
                    await committer.submit(write(i, (i, (i,))))
                    acked.append(i)
                except OutOfSpace:
                    refused.append(i)
                except TxnError:
                    unknown += 1
                    break
            logged = rig.logged()
            assert logged == sorted(set(logged))
            assert set(acked) <= set(logged)
            assert not set(refused) & set(logged), "a commit that was refused is in the log"
            assert [w.txn for _, b in rig.applied for w in b.writes] == acked
        assert unknown < 40

    run(body)


def test_an_applier_that_raises_stops_the_committer() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()

        def broken(batch: Batch, seq: int) -> None:
            raise RuntimeError("memory is broken")

        committer.applier = broken
        with pytest.raises(CommitUnknown):
            await committer.submit(write(1, (1, (1,))))
        assert committer.failed is not None

    run(body)


def test_closing_finishes_what_is_queued() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        futures = [committer.submit(write(i, (i, (i,)))) for i in range(10)]
        await committer.close()
        assert all(f.done() and f.exception() is None for f in futures)
        with pytest.raises(CommitUnknown):
            committer.submit(write(11, (11, (11,))))
        await committer.close()

    run(body)


def test_a_cancelled_waiter_does_not_take_its_transaction_back() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        future = committer.submit(write(1, (1, (1,))))
        future.cancel()
        await committer.submit(write(2, (2, (2,))))
        assert rig.logged() == [1, 2]
        await committer.close()

    run(body)


def test_a_reservation_that_ends_within_a_batch_loses_nobody() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        # Three timestamps are left. The clock stands still, so the next ones need a new reservation.
        rig.oracle._bound = Timestamp(make_timestamp(START_MS) + 3)
        stamps = await asyncio.gather(*(committer.submit(write(i, (i, (i,)))) for i in range(8)))
        assert stamps == sorted(set(stamps))
        assert [len(b.writes) for _, b in rig.applied] == [3, 5]
        assert rig.logged() == list(range(8))
        await committer.close()

    run(body)


def test_an_entry_of_another_server_is_not_taken_for_ones_own() -> None:
    async def body() -> None:
        rig = Rig()
        faulty = FaultyConsensus(MemoryConsensus(rig.disk), SystemRng(1), FaultRates())
        committer = await rig.start(faulty)
        faulty.rates = FaultRates(fail=1.0)
        other = MemoryConsensus(rig.disk)
        future = committer.submit(write(1, (1, (1,))))
        while committer._queue:
            await asyncio.sleep(0)
        # Its first attempt has failed without effect; before the next one, a successor takes the place.
        await other.append(await other.acquire_epoch(), 1, b"the successor's")
        faulty.rates = FaultRates()
        with pytest.raises(Fenced):
            await future
        assert not rig.applied
        await committer.close()

    run(body)


class Broken(MemoryConsensus):
    """A store with a bug: it raises what no store may raise, after it has stored the entry if ``late``."""

    late = False

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def append(self, epoch: int, seq: int, payload: bytes) -> None:
        self.begun.set()
        await self.go_on.wait()
        if self.late:
            await super().append(epoch, seq, payload)
        raise RuntimeError("a bug")


@pytest.mark.parametrize("late", [False, True])
def test_an_unexpected_error_leaves_nobody_waiting(late: bool) -> None:
    """Whoever is in the batch is told that the outcome is unknown, as are those behind it; nobody hangs."""

    async def body() -> None:
        rig = Rig()
        store = Broken(rig.disk)
        store.late = late
        committer = await rig.start(store)
        gone: list[str] = []
        first = committer.submit(write(0, (0, (0,))), refused=lambda: gone.append("first"))
        left = committer.submit(write(1, (1, (1,))), refused=lambda: gone.append("left"))
        left.cancel()  # its client has gone; its locks have to go, too
        await store.begun.wait()
        behind = committer.submit(write(2, (2, (2,))), refused=lambda: gone.append("behind"))
        store.go_on.set()
        for waiting in (first, behind):
            with pytest.raises(CommitUnknown):
                await waiting
        assert sorted(gone) == ["behind", "first", "left"]
        assert len(rig.failures) == 1
        with pytest.raises(CommitUnknown):
            committer.submit(write(3, (3, (3,))))
        await committer.close()
        assert len(gone) == 3

    run(body)


def test_a_later_failure_does_not_take_back_what_was_committed() -> None:
    async def body() -> None:
        rig = Rig()
        committer = await rig.start()
        gone: list[str] = []
        await committer.submit(write(0, (0, (0,))), refused=lambda: gone.append("first"))
        await asyncio.sleep(0)
        assert committer._task is not None
        committer._task.cancel()
        await asyncio.wait([committer._task])
        assert isinstance(committer.failed, CommitUnknown)
        assert not gone

    run(body)
