"""Leases in virtual time: two servers, one store, clocks that run unevenly, stores that stall and lie."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.support.virtual_loop import VirtualLoop, run_virtual
from txn.base.errors import Fenced, LeaderAlive
from txn.base.time import SystemRng
from txn.log.lease import LEASE_KEY, Lease, LeaseOptions, _decode, _encode, _Stored, take_lease
from txn.persist.faulty import FaultRates, FaultyConsensus
from txn.persist.location import Consensus, Indeterminate, Pulse, Versioned
from txn.persist.memory import MemoryConsensus, MemoryDisk

LEASE_S = 5.0


class MachineClock:
    """A machine's own seconds: another zero and another rate than its neighbour's."""

    def __init__(self, *, rate: float = 1.0, start: float = 0.0) -> None:
        self.rate, self.start = rate, start

    def boottime(self) -> float:
        loop = asyncio.get_running_loop()
        return self.start + loop.time() * self.rate

    def monotonic(self) -> float:
        return self.boottime()

    def now_ms(self) -> int:
        return int(self.boottime() * 1000)


class Gate(MemoryConsensus):
    """A way to the store that can be blocked before an operation and, apart from that, before its answer.

    A blocked machine is what a stopped process looks like from outside: nothing it does takes effect.
    """

    def __init__(self, disk: MemoryDisk, rng: SystemRng | None = None) -> None:
        super().__init__(disk)
        self.open = asyncio.Event()
        self.open.set()
        self.answers = asyncio.Event()
        self.answers.set()
        self.rng = rng

    async def _delay(self) -> None:
        if self.rng is not None:
            await asyncio.sleep(self.rng.random() * 0.5)
            if self.rng.random() < 0.1:
                await asyncio.sleep(self.rng.random() * 2 * LEASE_S)
        await self.open.wait()

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        await self._delay()
        done = await super().compare_and_set(key, expected, data, epoch=epoch)
        await self.answers.wait()
        return done

    async def head(self, key: str) -> Versioned | None:
        await self._delay()
        return await super().head(key)

    async def pulse(self) -> Pulse:
        await self._delay()
        found = await super().pulse()
        if self.rng is not None:
            await self._delay()
        return found

    async def acquire_epoch(self, at: Pulse | None = None) -> int | None:
        await self._delay()
        return await super().acquire_epoch(at)


def options(holder: str, duration_s: float = LEASE_S) -> LeaseOptions:
    return LeaseOptions(holder=holder, duration_ms=int(duration_s * 1000))


async def lead(
    consensus: Consensus, holder: str, *, standby: bool = False, clock: MachineClock | None = None
) -> Lease:
    return await take_lease(consensus, clock or MachineClock(), options(holder), standby=standby)


def test_the_first_leader_of_a_store_does_not_wait() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        lease = await lead(MemoryConsensus(MemoryDisk()), "a")
        assert loop.time() < 0.1
        assert lease.valid()
        assert lease.epoch == 1
        await lease.release()

    run_virtual(body)


def test_a_lease_is_kept_for_as_long_as_its_holder_lives() -> None:
    async def body() -> None:
        lease = await lead(MemoryConsensus(MemoryDisk()), "a")
        for _ in range(100):
            await asyncio.sleep(1)
            assert lease.valid()
        await lease.release()

    run_virtual(body)


def test_a_lease_counts_from_before_the_renewal_was_sent() -> None:
    async def body() -> None:
        gate = Gate(MemoryDisk())
        clock = MachineClock()
        lease = Lease(gate, await gate.acquire_epoch() or 0, clock, options("a"))
        gate.answers.clear()
        renewal = asyncio.ensure_future(lease.renew())
        await asyncio.sleep(2)
        gate.answers.set()
        await renewal
        assert lease.remaining_s() == pytest.approx(LEASE_S - 2)

    run_virtual(body)


def test_a_renewal_whose_answer_comes_too_late_gives_nothing() -> None:
    async def body() -> None:
        gate = Gate(MemoryDisk())
        lease = Lease(gate, await gate.acquire_epoch() or 0, MachineClock(), options("a"))
        gate.answers.clear()
        renewal = asyncio.ensure_future(lease.renew())
        await asyncio.sleep(LEASE_S + 0.1)
        gate.answers.set()
        await renewal
        assert not lease.valid()

    run_virtual(body)


def test_a_lease_that_ran_out_is_waited_for_and_comes_back_under_its_own_epoch() -> None:
    async def body() -> None:
        gate = Gate(MemoryDisk())
        lease = await lead(gate, "a")
        gate.open.clear()
        await asyncio.sleep(LEASE_S + 0.01)
        assert not lease.valid()
        waiting = asyncio.ensure_future(lease.wait_valid())
        await asyncio.sleep(60)
        assert not waiting.done()
        gate.open.set()
        await asyncio.wait_for(waiting, LEASE_S)
        assert lease.valid()
        assert gate.disk.epoch == lease.epoch == 1
        await lease.release()

    run_virtual(body)


def test_a_standby_takes_over_when_the_lease_is_over_and_not_before() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        disk = MemoryDisk()
        gate = Gate(disk)
        old = await lead(gate, "a")
        standby = asyncio.ensure_future(lead(MemoryConsensus(disk), "b", standby=True))
        await asyncio.sleep(60)
        assert not standby.done()
        gate.open.clear()  # the leader stalls
        stalled = loop.time()
        new = await standby
        assert new.epoch > old.epoch
        assert not old.valid()
        assert loop.time() - stalled <= 1.02 * LEASE_S + 1
        gate.open.set()
        with pytest.raises(Fenced):
            await old.wait_valid()
        assert not old.valid()
        await asyncio.sleep(60)
        assert new.valid()
        await new.release()

    run_virtual(body)


def test_the_holder_learns_that_it_lost_without_being_asked() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        gate = Gate(disk)
        old = await lead(gate, "a")
        told: list[Exception] = []
        old.on_lost = told.append
        gate.open.clear()
        new = await lead(MemoryConsensus(disk), "b", standby=True)
        gate.open.set()
        await asyncio.sleep(LEASE_S)
        assert [type(e) for e in told] == [Fenced]
        await new.release()

    run_virtual(body)


def test_a_released_lease_is_not_waited_for() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        disk = MemoryDisk()
        old = await lead(MemoryConsensus(disk), "a")
        standby = asyncio.ensure_future(lead(MemoryConsensus(disk), "b", standby=True))
        await asyncio.sleep(7)
        await old.release()
        assert not old.valid()
        with pytest.raises(Fenced):
            await old.wait_valid()
        released = loop.time()
        new = await standby
        assert loop.time() - released <= LEASE_S / 9
        await new.release()

    run_virtual(body)


def test_a_server_that_is_no_standby_says_who_leads() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        old = await lead(MemoryConsensus(disk), "pid 7 on here")
        with pytest.raises(LeaderAlive, match="pid 7 on here"):
            await lead(MemoryConsensus(disk), "b")
        assert old.valid()
        assert disk.epoch == 1
        await old.release()

    run_virtual(body)


def test_a_server_that_is_no_standby_waits_out_the_lease_of_one_that_died() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        disk = MemoryDisk()
        old = await lead(MemoryConsensus(disk), "a")
        assert old._task is not None
        old._task.cancel()
        died = loop.time()
        new = await lead(MemoryConsensus(disk), "b")
        assert LEASE_S <= loop.time() - died <= 1.1 * LEASE_S + 0.5
        await new.release()

    run_virtual(body)


def test_of_two_standbys_one_leads() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        first = await lead(MemoryConsensus(disk), "a")
        tasks = [asyncio.ensure_future(lead(MemoryConsensus(disk), h, standby=True)) for h in "bcd"]
        await asyncio.sleep(1)
        await first.release()
        await asyncio.sleep(60)
        done = [t for t in tasks if t.done()]
        assert len(done) == 1
        assert done[0].result().valid()
        for task in tasks:
            task.cancel()
        await done[0].result().release()

    run_virtual(body)


def test_a_holder_with_a_longer_lease_is_waited_out_by_its_own_measure() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        disk = MemoryDisk()
        old = await take_lease(MemoryConsensus(disk), MachineClock(), options("a", 30))
        assert old._task is not None
        old._task.cancel()
        new = await take_lease(MemoryConsensus(disk), MachineClock(), options("b", 1), standby=True)
        assert loop.time() >= 30
        assert not old.valid()
        await new.release()

    run_virtual(body)


class Broken(MemoryConsensus):
    """A store whose client has a bug, from ``broken`` on."""

    broken: BaseException | None = None

    async def compare_and_set(
        self, key: str, expected: int | None, data: bytes | None, *, epoch: int
    ) -> int | None:
        if self.broken is not None:
            raise self.broken
        return await super().compare_and_set(key, expected, data, epoch=epoch)


@pytest.mark.parametrize("bug", [KeyError("a bug"), asyncio.CancelledError()])
def test_a_leader_that_cannot_renew_for_a_bug_of_its_own_stops_leading_loudly(
    bug: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        consensus = Broken(MemoryDisk())
        lease = await lead(consensus, "a")
        told: list[Exception] = []
        lease.on_lost = told.append
        waiting = asyncio.ensure_future(wait_until_invalid(lease))
        consensus.broken = bug
        await waiting
        await asyncio.sleep(1)
        assert loop.time() < 2 * LEASE_S + 1
        assert [type(error) for error in told] == [Fenced]
        assert lease.lost is told[0]
        with pytest.raises(Fenced, match=r"a bug|cancelled"):
            await lease.wait_valid()
        assert isinstance(bug, asyncio.CancelledError) or "could not renew the lease" in caplog.text
        consensus.broken = None
        await lease.release()

    async def wait_until_invalid(lease: Lease) -> None:
        while lease.valid():
            await asyncio.sleep(0.1)

    run_virtual(body)


def test_a_bug_that_passes_costs_nothing() -> None:
    async def body() -> None:
        consensus = Broken(MemoryDisk())
        lease = await lead(consensus, "a")
        consensus.broken = KeyError("a bug")
        await asyncio.sleep(LEASE_S / 2)
        consensus.broken = None
        for _ in range(100):
            assert lease.valid()
            await asyncio.sleep(0.1)
        await lease.release()

    run_virtual(body)


def test_an_unknown_format_of_the_lease_is_refused() -> None:
    async def body() -> None:
        from txn.base.errors import DamagedFile, UnknownFormat

        consensus = MemoryConsensus(MemoryDisk())
        epoch = await consensus.acquire_epoch()
        assert epoch is not None
        seq = await consensus.compare_and_set(LEASE_KEY, None, b"\x09whatever", epoch=epoch)
        with pytest.raises(UnknownFormat, match="register leader in memory"):
            await lead(consensus, "a")
        good = _encode(_Stored(epoch, 1000, "somebody", 7))
        for at in range(len(good)):
            data = (
                good[:at] + bytes((good[at] ^ 3,)) + good[at + 1 :]
            )  # at 0: format 1, which had no checksum
            if at == 0:
                assert _decode("it", data) == _decode("it", good)
                continue
            seq = await consensus.compare_and_set(LEASE_KEY, seq, data, epoch=epoch)
            with pytest.raises(DamagedFile, match="register leader in memory"):
                await lead(consensus, "a")
        old = b"\x01" + good[5:]
        assert _decode("it", old) == _decode("it", good)

    run_virtual(body)


class _World:
    """Servers that campaign, lead, stall and give up at random; a clock each."""

    def __init__(self, seed: int) -> None:
        self.rng = SystemRng(seed)
        self.disk = MemoryDisk()
        self.leases: list[Lease] = []
        self.takeovers = 0

    async def server(self, name: str) -> None:
        rng = self.rng
        clock = MachineClock(rate=1.0 + (rng.random() - 0.5) * 0.018, start=rng.random() * 1e6)
        rates = FaultRates(fail=0.05, timeout=0.05)
        while True:
            gate = Gate(self.disk, SystemRng(rng.randrange(2**31)))
            consensus = FaultyConsensus(gate, SystemRng(rng.randrange(2**31)), rates)
            lease = await take_lease(consensus, clock, options(name), standby=True)
            self.takeovers += 1
            self.leases.append(lease)
            while lease.lost is None:
                await asyncio.sleep(rng.random() * 4 * LEASE_S)
                draw = rng.random()
                if draw < 0.3:  # stalls: nothing it sends gets through
                    gate.open.clear()
                    await asyncio.sleep(rng.random() * 4 * LEASE_S)
                    gate.open.set()
                elif draw < 0.4:
                    await lease.release()

    async def run(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        tasks = [asyncio.ensure_future(self.server(name)) for name in "abc"]
        while loop.time() < seconds:
            await asyncio.sleep(0.01)
            valid = [lease for lease in self.leases if lease.valid()]
            if len(valid) > 1:
                raise AssertionError(f"leases of epochs {[v.epoch for v in valid]} are valid at once")
            if valid:
                # A valid lease means: nobody has raised the epoch since.
                assert valid[0].epoch == self.disk.epoch
            for task in tasks:
                if task.done():
                    task.result()
        for task in tasks:
            task.cancel()
        for lease in self.leases:
            if lease._task is not None:
                lease._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)


@pytest.mark.parametrize("seed", range(12))
def test_never_are_two_leases_valid_at_once(seed: int) -> None:
    world = _World(seed)
    run_virtual(lambda: world.run(300))
    assert world.takeovers >= 5


def test_a_failed_release_leaves_a_lease_to_wait_out() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        faulty = FaultyConsensus(MemoryConsensus(disk), SystemRng(1), FaultRates())
        old = await lead(faulty, "a")
        faulty.rates = FaultRates(fail=1.0)
        await old.release()
        assert not old.valid()
        loop = asyncio.get_running_loop()
        before = loop.time()
        new = await lead(MemoryConsensus(disk), "b")
        assert loop.time() - before > LEASE_S / 2
        await new.release()

    run_virtual(body)


def test_a_store_that_cannot_be_reached_stops_a_plain_start_but_not_a_standby() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        faulty = FaultyConsensus(MemoryConsensus(disk), SystemRng(1), FaultRates(fail=1.0))
        with pytest.raises(Indeterminate):
            await lead(faulty, "a")
        standby = asyncio.ensure_future(lead(faulty, "a", standby=True))
        await asyncio.sleep(100)
        assert not standby.done()
        faulty.rates = FaultRates()
        lease = await standby
        assert lease.valid()
        await lease.release()

    run_virtual(body)
