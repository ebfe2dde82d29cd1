"""One suite for every Consensus: memory, SQLite, and both behind a delaying delegate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.durable import CONSENSUS_KINDS, ConsensusOpener, consensus_opener_of, run
from tests.support.postgres import postgres  # noqa: F401 - a fixture
from txn.base.errors import Fenced
from txn.persist.location import Indeterminate, SequenceConflict


@pytest.fixture(params=CONSENSUS_KINDS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> ConsensusOpener:
    return consensus_opener_of(request, tmp_path)


def test_a_new_log_is_empty_and_starts_at_one(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            assert await c.log_bounds() == (1, 1)
            assert await c.read_log(1) == []
            assert await c.head("x") is None
            assert await c.keys("") == []

    run(body)


def test_appends_are_read_back_in_order_by_another_handle(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            for seq in range(1, 6):
                await c.append(epoch, seq, b"entry %d" % seq)
        async with opener() as c:
            assert await c.log_bounds() == (1, 6)
            assert await c.read_log(3) == [(s, b"entry %d" % s) for s in (3, 4, 5)]
            assert await c.read_log(1, max_bytes=1) == [(1, b"entry 1")]
            assert await c.read_log(6) == []

    run(body)


def test_an_append_at_another_place_than_the_end_is_refused(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            await c.append(epoch, 1, b"a")
            for seq in (1, 3):
                with pytest.raises(SequenceConflict) as raised:
                    await c.append(epoch, seq, b"b")
                assert raised.value.next_seq == 2
            assert await c.read_log(1) == [(1, b"a")]

    run(body)


def test_a_deposed_leader_changes_nothing(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as old, opener() as new:
            first = await old.acquire_epoch()
            await old.append(first, 1, b"a")
            register = await old.compare_and_set("r", None, b"1", epoch=first)
            second = await new.acquire_epoch()
            assert second > first
            with pytest.raises(Fenced):
                await old.append(first, 2, b"late")
            with pytest.raises(Fenced):
                await old.compare_and_set("r", register, b"2", epoch=first)
            with pytest.raises(Fenced):
                await old.truncate(2, epoch=first)
            await new.append(second, 2, b"b")
            assert await new.read_log(1) == [(1, b"a"), (2, b"b")]
            head = await new.head("r")
            assert head is not None
            assert head.data == b"1"

    run(body)


def test_an_epoch_is_checked_even_where_the_handle_is_the_same(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            with pytest.raises(Fenced):
                await c.append(epoch + 1, 1, b"from the future")
            assert await c.log_bounds() == (1, 1)

    run(body)


def test_compare_and_set_lets_one_of_two_win(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            first = await c.compare_and_set("r", None, b"1", epoch=epoch)
            assert first is not None
            assert await c.compare_and_set("r", None, b"again", epoch=epoch) is None
            results = await asyncio.gather(
                *(c.compare_and_set("r", first, b"%d" % i, epoch=epoch) for i in range(5))
            )
            won = [i for i, seq in enumerate(results) if seq is not None]
            assert len(won) == 1
            head = await c.head("r")
            assert head is not None
            assert head.data == b"%d" % won[0]
            assert head.seq == results[won[0]]
            assert head.seq > first

    run(body)


def test_a_deleted_register_comes_back_with_a_new_sequence_number(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            first = await c.compare_and_set("a/1", None, b"1", epoch=epoch)
            await c.compare_and_set("a/2", None, b"1", epoch=epoch)
            await c.compare_and_set("b/1", None, b"1", epoch=epoch)
            assert await c.keys("a/") == ["a/1", "a/2"]
            assert await c.compare_and_set("a/1", first, None, epoch=epoch) == 0
            assert await c.keys("a/") == ["a/2"]
            assert await c.head("a/1") is None
            second = await c.compare_and_set("a/1", None, b"2", epoch=epoch)
            assert second is not None
            assert first is not None
            assert second > first

    run(body)


def test_truncation_keeps_the_end_and_never_reuses_numbers(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            epoch = await c.acquire_epoch()
            for seq in range(1, 6):
                await c.append(epoch, seq, b"%d" % seq)
            await c.truncate(4, epoch=epoch)
            await c.truncate(2, epoch=epoch)
            assert await c.log_bounds() == (4, 6)
            assert await c.read_log(1) == [(4, b"4"), (5, b"5")]
            await c.truncate(100, epoch=epoch)
            assert await c.log_bounds() == (6, 6)
        async with opener() as c:
            assert await c.log_bounds() == (6, 6)
            with pytest.raises(SequenceConflict):
                await c.append(epoch, 1, b"x")
            await c.append(epoch, 6, b"6")
            assert await c.read_log(1) == [(6, b"6")]

    run(body)


def test_the_pulse_changes_with_every_register_and_with_the_epoch(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            seen = [await c.pulse()]
            assert seen[0].epoch == 0
            epoch = await c.acquire_epoch()
            assert epoch is not None
            seen.append(await c.pulse())
            assert seen[-1].epoch == epoch
            register = await c.compare_and_set("r", None, b"1", epoch=epoch)
            seen.append(await c.pulse())
            register = await c.compare_and_set("r", register, b"2", epoch=epoch)
            seen.append(await c.pulse())
            await c.compare_and_set("r", register, None, epoch=epoch)
            seen.append(await c.pulse())
            assert len(set(seen)) == 5
            await c.append(epoch, 1, b"an append is no sign of life")
            await c.head("r")
            assert await c.pulse() == seen[-1]
            with pytest.raises(Fenced):
                await c.compare_and_set("r", None, b"3", epoch=epoch + 1)
            assert await c.pulse() == seen[-1]

    run(body)


def test_an_epoch_is_raised_only_at_the_pulse_that_was_seen(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as leader, opener() as standby:
            epoch = await leader.acquire_epoch()
            assert epoch is not None
            seen = await standby.pulse()
            await leader.compare_and_set("r", None, b"alive", epoch=epoch)
            assert await standby.acquire_epoch(seen) is None
            await leader.append(epoch, 1, b"still leading")
            seen = await standby.pulse()
            results = await asyncio.gather(*(c.acquire_epoch(seen) for c in (standby, leader)))
            assert sorted(r is None for r in results) == [False, True]
            assert max(r or 0 for r in results) == epoch + 1
            with pytest.raises(Fenced):
                await leader.append(epoch, 2, b"late")

    run(body)


def test_a_closed_handle_answers_nothing(opener: ConsensusOpener) -> None:
    async def body() -> None:
        async with opener() as c:
            await c.close()
            with pytest.raises(Indeterminate):
                await c.log_bounds()

    run(body)
