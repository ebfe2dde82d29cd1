"""The oracle's contract over every Consensus: L1's scenarios, bounds, restarts, clocks (A16-A29, A46, L4)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.durable import (
    CONSENSUS_KINDS,
    START_MS,
    ConsensusOpener,
    ManualClock,
    consensus_opener_of,
    run,
)
from tests.support.postgres import postgres  # noqa: F401 - a fixture
from txn.base.errors import Fenced, OutOfSpace
from txn.base.time import COUNTER_BITS, SystemRng, make_timestamp, timestamp_ms
from txn.base.types import Timestamp
from txn.log import oracle as oracle_module
from txn.log.oracle import MAX_LEAP_MS, ORACLE_PREFIX, RESERVE_MS, DurableOracle, SteadyClock, bound_key
from txn.persist.faulty import FaultRates, FaultyConsensus
from txn.persist.location import Consensus, Indeterminate
from txn.persist.memory import MemoryConsensus, MemoryDisk


@pytest.fixture(params=CONSENSUS_KINDS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> ConsensusOpener:
    return consensus_opener_of(request, tmp_path)


async def start(c: Consensus, clock: ManualClock, log_upper: int = 0) -> DurableOracle:
    epoch = await c.acquire_epoch()
    return await DurableOracle.open(c, "t", epoch, clock, log_upper=Timestamp(log_upper))


async def write_ts(oracle: DurableOracle) -> Timestamp:
    while (ts := oracle.try_write_ts()) is None:
        await oracle.wait_ready()
    oracle.validate()
    return ts


def test_apply_write_at_the_timestamp_handed_out_makes_it_readable(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            oracle = await start(c, ManualClock())
            ts = await write_ts(oracle)
            assert oracle.read_ts() < ts
            oracle.apply_write(ts)
            assert oracle.read_ts() == ts
            assert await write_ts(oracle) > ts
            await oracle.close()

    run(body)


def test_apply_write_above_everything_raises_both(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            oracle = await start(c, ManualClock())
            ahead = Timestamp(oracle.peek_write_ts() + 1000)
            oracle.apply_write(ahead)
            assert oracle.read_ts() == ahead
            assert await write_ts(oracle) > ahead
            await oracle.close()

    run(body)


def test_apply_write_below_read_ts_changes_nothing(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            oracle = await start(c, ManualClock())
            first, second = await write_ts(oracle), await write_ts(oracle)
            oracle.apply_write(second)
            oracle.apply_write(first)
            oracle.apply_write(second)
            assert oracle.read_ts() == second
            assert oracle.peek_write_ts() > second
            await oracle.close()

    run(body)


def test_reading_and_peeking_have_no_effect(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            oracle = await start(c, ManualClock())
            before = (oracle.read_ts(), oracle.peek_write_ts())
            for _ in range(3):
                assert (oracle.read_ts(), oracle.peek_write_ts()) == before
            assert await write_ts(oracle) >= before[1]
            await oracle.close()

    run(body)


def test_timestamps_follow_the_clock_and_never_repeat(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            clock = ManualClock()
            oracle = await start(c, clock)
            seen = [await write_ts(oracle) for _ in range(5)]
            clock.pass_ms(400)
            seen.append(await write_ts(oracle))
            assert timestamp_ms(seen[-1]) == START_MS + 400
            clock.pass_ms(60_000)  # far beyond the reservation
            seen.append(await write_ts(oracle))
            assert timestamp_ms(seen[-1]) == START_MS + 60_400
            assert seen == sorted(set(seen))
            await oracle.close()

    run(body)


def test_a_restart_begins_above_everything_handed_out(opener: ConsensusOpener) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with opener() as c:
            oracle = await start(c, clock)
            handed = max([await write_ts(oracle) for _ in range(10)])
        # Not closed: as after kill -9. Meanwhile the clock has even gone back.
        clock.ms -= 3_600_000
        async with opener() as c:
            oracle = await start(c, clock)
            assert oracle.read_ts() > handed
            assert await write_ts(oracle) > oracle.read_ts()
            await oracle.close()

    run(body)


def test_a_clean_stop_gives_the_reservation_back(opener: ConsensusOpener) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with opener() as c:
            oracle = await start(c, clock)
            last = await write_ts(oracle)
            await oracle.close()
        async with opener() as c:
            oracle = await start(c, clock)
            assert last < oracle.read_ts() <= last + 2
            await oracle.close()

    run(body)


def test_a_restart_begins_above_the_log_even_if_the_bound_were_lost(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            upper = make_timestamp(START_MS + 50_000, 9)
            oracle = await start(c, ManualClock(), upper)
            assert oracle.read_ts() >= upper
            assert await write_ts(oracle) > upper
            await oracle.close()

    run(body)


def test_timelines_have_oracles_of_their_own(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            clock = ManualClock()
            one = await DurableOracle.open(c, "one", epoch, clock, log_upper=Timestamp(0))
            ahead = ManualClock(START_MS + 10**9)
            two = await DurableOracle.open(c, "two", epoch, ahead, log_upper=Timestamp(0))
            await write_ts(two)
            assert timestamp_ms(await write_ts(one)) == START_MS
            await one.close()
            await two.close()

    run(body)


def test_a_removed_oracle_leaves_its_successors_register(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            clock = ManualClock()
            old = await DurableOracle.open(c, "gone", epoch, clock, log_upper=Timestamp(0))
            last = await write_ts(old)
            new = await DurableOracle.open(c, "gone", epoch, clock, log_upper=Timestamp(last + 1))
            await old.remove()
            assert await c.keys(ORACLE_PREFIX) == [bound_key("gone")]
            assert await write_ts(new) > last
            ahead = Timestamp(new.bound + (60_000 << 16))
            await new.wait_ready(ahead)
            assert new.bound > ahead
            assert new.claim(ahead)
            await new.remove()
            await new.remove()
            assert await c.keys(ORACLE_PREFIX) == []
            other = await DurableOracle.open(c, "gone", epoch, clock, log_upper=Timestamp(0))
            await c.acquire_epoch()
            with pytest.raises(Fenced):
                await other.remove()

    run(body)


def test_a_deposed_oracle_stops_when_its_reservation_ends(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as old_store, opener() as new_store:
            clock = ManualClock()
            old = await start(old_store, clock)
            highest = await write_ts(old)
            new = await start(new_store, clock)
            assert await write_ts(new) > make_timestamp(START_MS + RESERVE_MS) - 1
            highest = max(highest, await write_ts(old))  # within its own reservation: the log refuses it
            assert highest < await write_ts(new)
            clock.pass_ms(RESERVE_MS)
            with pytest.raises(Fenced):
                await write_ts(old)
            await new.close()

    run(body)


# -- clocks ----------------------------------------------------------------------------------------


def memory_oracle(clock: ManualClock) -> tuple[MemoryDisk, MemoryConsensus]:
    disk = MemoryDisk()
    return disk, MemoryConsensus(disk)


def test_a_clock_that_goes_back_neither_lowers_nor_stops_timestamps() -> None:
    async def body() -> None:
        clock = ManualClock()
        _, c = memory_oracle(clock)
        oracle = await start(c, clock)
        before = await write_ts(oracle)
        clock.ms -= 86_400_000
        after = [await write_ts(oracle) for _ in range(1000)]
        assert after == list(range(before + 1, before + 1001))
        await oracle.close()

    run(body)


def test_a_leap_of_the_clock_is_followed_only_when_it_stays() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    clock.ms += MAX_LEAP_MS * 100
    assert steady.now_ms() == START_MS
    clock.pass_ms(2000)
    assert steady.now_ms() == START_MS + 2000  # time goes on meanwhile
    clock.ms -= MAX_LEAP_MS * 100  # it was a mistake
    assert steady.now_ms() == START_MS + 2000
    clock.ms += MAX_LEAP_MS * 100
    steady.now_ms()
    clock.pass_ms(int(oracle_module.CONFIRM_S * 1000))
    assert steady.now_ms() == clock.ms


def test_a_long_idle_time_is_no_leap() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    clock.pass_ms(86_400_000)
    assert steady.now_ms() == START_MS + 86_400_000
    assert steady.skew_ms() == 0
    clock.ms -= 500
    assert steady.skew_ms() == 500


def test_commits_wait_when_timestamps_outrun_the_clock_and_reads_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oracle_module, "MAX_THROTTLE_S", 0.001)

    async def body() -> None:
        clock = ManualClock()
        _, c = memory_oracle(clock)
        oracle = await start(c, clock)
        oracle.max_ahead_ms = 10
        ahead = make_timestamp(START_MS + 12)
        oracle.apply_write(ahead)
        assert oracle.try_write_ts() is None
        waiting = asyncio.ensure_future(write_ts(oracle))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        assert oracle.read_ts() == ahead
        clock.pass_ms(2)
        assert await waiting == ahead + 1
        await oracle.close()

    run(body)


def test_counters_run_over_into_the_next_millisecond() -> None:
    async def body() -> None:
        clock = ManualClock()
        _, c = memory_oracle(clock)
        oracle = await start(c, clock)
        oracle.apply_write(make_timestamp(START_MS, 65_535))
        assert await write_ts(oracle) == (START_MS + 1) << COUNTER_BITS
        await oracle.close()

    run(body)


# -- reservations ----------------------------------------------------------------------------------


def test_the_reservation_is_renewed_in_the_background() -> None:
    async def body() -> None:
        clock = ManualClock()
        disk, c = memory_oracle(clock)
        oracle = await start(c, clock)
        for _ in range(50):
            clock.pass_ms(500)
            assert oracle.try_write_ts() is not None, "a commit had to wait for a reservation"
            for _ in range(10):
                await asyncio.sleep(0)
        assert disk.register_seq < 30
        await oracle.close()

    run(body)


def test_unknown_outcomes_of_a_reservation_are_resolved() -> None:
    async def body() -> None:
        for seed in range(40):
            clock = ManualClock()
            disk = MemoryDisk()
            faulty = FaultyConsensus(MemoryConsensus(disk), SystemRng(seed), FaultRates())
            oracle = await start(faulty, clock)
            last = await write_ts(oracle)
            faulty.rates = FaultRates(fail=0.2, timeout=0.3)
            for _ in range(10):
                clock.pass_ms(5000)
                try:
                    ts = await write_ts(oracle)
                except Indeterminate:
                    continue  # and the next one finds out
                assert ts > last
                last = ts
            faulty.rates = FaultRates()
            disk.crash()
            again = await start(MemoryConsensus(disk), clock)
            assert again.read_ts() > last

    run(body)


def test_without_space_a_commit_is_told_and_a_later_one_succeeds() -> None:
    async def body() -> None:
        clock = ManualClock()
        disk, c = memory_oracle(clock)
        oracle = await start(c, clock)
        clock.pass_ms(60_000)
        disk.capacity = disk.used()
        with pytest.raises(OutOfSpace):
            await write_ts(oracle)
        disk.capacity = None
        assert timestamp_ms(await write_ts(oracle)) == START_MS + 60_000
        await oracle.close()

    run(body)
