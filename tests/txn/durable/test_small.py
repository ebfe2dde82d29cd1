"""The small pieces: log map, manifests, timestamp selection, timelines, timestamps."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.durable import ManualClock, run, two_column_spec
from txn.base.errors import Fenced, ReadBelowSince
from txn.base.time import (
    SequentialIdGen,
    SystemClock,
    SystemIdGen,
    SystemRng,
    make_timestamp,
    timestamp_counter,
    timestamp_ms,
)
from txn.base.types import PartRef, ShardId, Timestamp
from txn.persist.faulty import FaultRates, FaultyConsensus
from txn.persist.location import Indeterminate
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk
from txn.persist.parts.manifest import Ends, Manifest, ManifestPart, ManifestStore
from txn.transaction.selection import Bound, select
from txn.wal.cache import LogMap

# -- log map ---------------------------------------------------------------------------------------

_STEP = st.one_of(
    st.tuples(st.just("note"), st.sets(st.integers(1, 3)), st.integers(1, 40)),
    st.tuples(st.just("flush"), st.integers(1, 3), st.integers(0, 100)),
    st.tuples(st.just("trim"), st.none(), st.none()),
)


@given(st.integers(1, 200), st.lists(_STEP, max_size=40))
def test_the_trim_point_never_passes_an_entry_that_a_shard_needs(first: int, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    log = LogMap(first)
    entries: dict[int, set[int]] = {}
    flushed: dict[int, int] = {}
    for kind, a, b in steps:
        if kind == "note":
            for _ in range(b):
                entries[log.next] = a
                log.note(log.next, 10, [ShardId(s) for s in a])
        elif kind == "flush":
            through = first - 1 + (log.next - first) * b // 100
            flushed[a] = max(through, flushed.get(a, 0))
            log.flushed(ShardId(a), through)
        else:
            log.trimmed(log.trim_point())
        needed = [seq for seq, shards in entries.items() if any(seq > flushed.get(s, 0) for s in shards)]
        point = log.trim_point()
        assert point <= min(needed, default=log.next)
        assert log.first <= point <= log.next
        assert min(needed, default=log.next) - point < 64
        if not needed:
            assert point == log.next
            assert log.laggards() == ()
        assert set(log.laggards()) == {s for s in (1, 2, 3) if any(s in entries[seq] for seq in needed
                                       if seq > flushed.get(s, 0))}  # fmt: skip
    log.trimmed(log.trim_point())
    assert log.bytes <= (log.next - log.first + 64) * 10
    if log.first == log.next:
        assert log.bytes == 0


# -- manifests -------------------------------------------------------------------------------------


def manifest(through: int, *ends: int, parts: int = 1, since: int = 0) -> Manifest:
    """A manifest whose parts (1000 rows each) have the given positions ended."""
    refs = [
        PartRef(
            name=f"7/1-p{i}", path="", rows=1000, bytes=10, schema_version=1, columns=(1, 2),
            min_begin=Timestamp(1), max_begin=Timestamp(2),
        )
        for i in range(parts)
    ]  # fmt: skip
    return Manifest(
        shard=ShardId(7),
        spec=two_column_spec(),
        generation=0,
        flushed_through=through,
        next_row_id=5,
        since=Timestamp(since),
        parts=tuple(ManifestPart(ref=r, ends=Ends.of((p, 100 + p) for p in ends)) for r in refs),
    )


async def manifest_store(disk: MemoryDisk, epoch: int | None = None) -> ManifestStore:
    consensus = MemoryConsensus(disk)
    epoch = await consensus.acquire_epoch() if epoch is None else epoch
    store = ManifestStore(consensus, MemoryBlob(disk), SequentialIdGen(f"e{epoch}"), epoch)
    await store.load()
    return store


def without_paths(m: Manifest) -> tuple[object, ...]:
    return (m.flushed_through, m.next_row_id, m.since, m.spec, [(p.ref.name, p.ends) for p in m.parts])


def test_manifests_come_back_with_few_ends_and_with_many() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        store = await manifest_store(disk)
        for through, ends in enumerate([(), (3, 1), tuple(range(0, 1000, 2))]):
            wanted = manifest(through, *ends, parts=2)
            await store.store(wanted)
            again = await manifest_store(disk)
            assert without_paths(again.current[ShardId(7)]) == without_paths(wanted)
            assert again.current[ShardId(7)].parts[0].ref.path.endswith("7/1-p0.parquet")
            store = again
        assert len(disk.blobs) == 2
        many = list(disk.blobs)
        await store.store(manifest(3, *range(0, 1000, 2), parts=2))
        assert list(disk.blobs) == many, "unchanged ends were written again"
        await store.store(manifest(4, *range(0, 1000, 3), parts=2))
        assert len(disk.blobs) == 2
        assert not set(disk.blobs) & set(many)
        await store.store(manifest(5))
        assert not disk.blobs

    run(body)


def test_manifests_survive_open_outcomes() -> None:
    async def body() -> None:
        for seed in range(40):
            disk = MemoryDisk()
            faulty = FaultyConsensus(MemoryConsensus(disk), SystemRng(seed), FaultRates())
            store = ManifestStore(faulty, MemoryBlob(disk), SequentialIdGen(), await faulty.acquire_epoch())
            faulty.rates = FaultRates(fail=0.2, timeout=0.3)
            stored = -1
            for through in range(10):
                try:
                    await store.store(manifest(through, *range(through)))
                    stored = through
                except Indeterminate:
                    continue
            again = await manifest_store(disk)
            found = again.current.get(ShardId(7))
            assert (found.flushed_through if found else -1) >= stored

    run(body)


def test_a_deposed_leader_stores_no_manifest() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        old = await manifest_store(disk)
        await old.store(manifest(1))
        await manifest_store(disk)
        with pytest.raises(Fenced):
            await old.store(manifest(2))

    run(body)


@given(st.dictionaries(st.integers(0, 999), st.integers(1, 2**62), max_size=30), st.booleans())
def test_ends_are_sorted_by_position(pairs: dict[int, int], many: bool) -> None:
    if many:
        pairs |= {p: p for p in range(300, 0, -1)}
    ends = Ends.of(pairs.items())
    ends.validate(1000)
    assert list(zip(ends.positions, ends.timestamps, strict=True)) == sorted(pairs.items())
    assert len(ends) == len(pairs)


def test_ends_are_checked() -> None:
    for bad in ([5, 4], [5, 5], [-1], [1000]):
        ends = Ends.of([])
        ends.positions.extend(bad)
        ends.timestamps.extend([1] * len(bad))
        with pytest.raises(AssertionError):
            ends.validate(1000)
    Ends.of([(999, 1), (0, 5)]).validate(1000)


# -- selection -------------------------------------------------------------------------------------


def test_selection_is_sound_and_extreme_over_all_small_inputs() -> None:
    domain = range(1, 5)
    sides = [s for n in range(3) for s in itertools.product(domain, repeat=n)]
    for low, high in itertools.product(sides, sides):
        lower = tuple(Bound(Timestamp(t), f"since of {i}") for i, t in enumerate(low))
        upper = tuple(Bound(Timestamp(t), f"upper of {i}") for i, t in enumerate(high))
        allowed = [t for t in domain if all(t >= x for x in low) and all(t <= x for x in high)]
        for preference, pick, side in (("freshest", max, high), ("stalest", min, low)):
            if not allowed:
                with pytest.raises(ReadBelowSince) as raised:
                    select(lower, upper, preference)  # type: ignore[arg-type]
                assert raised.value.since == max(low)
            elif side:
                chosen = select(lower, upper, preference)  # type: ignore[arg-type]
                assert chosen.ts == pick(allowed) == chosen.decided_by.ts
                marked = [line for line in chosen.explain() if line.endswith(" *")]
                assert len(marked) == 1
                assert chosen.decided_by.reason in marked[0]
            else:
                with pytest.raises(ValueError, match="no bound"):
                    select(lower, upper, preference)  # type: ignore[arg-type]


# -- time ------------------------------------------------------------------------------------------


def test_timestamps_hold_milliseconds_and_counter() -> None:
    ts = make_timestamp(1_700_000_000_123, 65_535)
    assert timestamp_ms(ts) == 1_700_000_000_123
    assert timestamp_counter(ts) == 65_535
    assert make_timestamp(1_700_000_000_124) == ts + 1
    assert 0 < make_timestamp(4_102_444_800_000) < 2**63  # the year 2100 fits bigint


def test_the_systems_clock_randomness_and_ids() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - 1000 * 2**31) < 10**12
    assert clock.monotonic() <= clock.monotonic()
    assert [SystemRng(5).randrange(100) for _ in range(3)] == [SystemRng(5).randrange(100)] * 3
    assert 0 <= SystemRng().random() < 1
    ids = {SystemIdGen().next_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(i) >= 16 and i.isalnum() and i == i.lower() for i in ids)
    assert ManualClock().now_ms() > 0
