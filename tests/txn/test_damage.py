"""Bytes that flip and files that are cut short: the error names the file, other tables go on, nothing is replaced."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.durable import run
from tests.support.store import BY_K, SHARD, make_table, now, open_memory_store, spec
from txn.base.errors import DamagedEntry, DamagedFile
from txn.base.types import KeyRange, ShardId
from txn.mvcc.generation import StoreCorrupted
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.values.encoding import decode_batch, shards_of

OTHER = ShardId(2)
ROWS = [(k, k % 3, f"text {k}") for k in range(300)]


def flip(data: bytes, at: int, bit: int = 3) -> bytes:
    return data[:at] + bytes((data[at] ^ (1 << bit),)) + data[at + 1 :]


async def everything(store: ShardStore, shard: ShardId) -> list[tuple[Any, ...]]:
    """Read a table in every way: by key, in order, by scan, as engines do."""
    txn = store.begin(read_only=True)
    try:
        await now(txn.snapshot(shard))
        ordered = [r.values for r in await now(txn.range(shard, BY_K, KeyRange()))]
        for row in ordered:
            assert [r.values for r in await now(txn.lookup(shard, BY_K, [row[:1]]))] == [row]
        assert sorted([r.values async for chunk in txn.scan(shard) for r in chunk]) == ordered
        return ordered
    finally:
        txn.rollback()


async def put(store: ShardStore, shard: ShardId, row: tuple[Any, ...]) -> None:
    txn = store.begin()
    try:
        await now(txn.begin_write([shard]))
        await now(txn.insert(shard, [row]))
        await now(txn.commit())
    finally:
        txn.rollback()


async def two_tables(disk: MemoryDisk, *, many_ends: bool = False) -> None:
    """Leave two tables behind, each with a part, ends of it, and changes that only the log has."""
    store = await open_memory_store(disk)
    for shard in (SHARD, OTHER):
        await make_table(store, ROWS, spec(shard))
        await store.flush(shard)
        hold = store.hold()  # merging must not drop the rows that end below
        txn = store.begin()
        await now(txn.begin_write([shard]))
        wanted = KeyRange(has_lower=True, lower=0 if many_ends else 290)
        rows = await now(txn.range(shard, BY_K, wanted, for_update=True))
        gone = rows[: 280 if many_ends else 5]
        await now(txn.delete(shard, [r.row_id for r in gone]))
        await now(txn.commit())
        if many_ends:
            await put(store, shard, (2000, 1, "flushed"))
            await store.flush(shard)
        store.release(hold)
    for shard in (SHARD, OTHER):
        await put(store, shard, (1000, 1, "in the log"))
    disk.crash()


def last_of(disk: MemoryDisk, shard: ShardId) -> int:
    """The newest log entry that writes to a shard alone."""
    return max(seq for seq, data in disk.log.items() if shards_of(decode_batch(data)) == {shard})


def left(*, many_ends: bool = False) -> list[tuple[Any, ...]]:
    if many_ends:
        return [*ROWS[280:], (1000, 1, "in the log"), (2000, 1, "flushed")]
    return [*ROWS[:290], *ROWS[295:], (1000, 1, "in the log")]


async def with_damage(disk: MemoryDisk, name: str, at: int | None, *, expected: list[Any]) -> bool:
    """Damage one byte of a blob of SHARD (or cut it), restart, look. Returns whether anybody noticed."""
    good = disk.blobs[name]
    bad = disk.blobs[name] = good[: len(good) // 2] if at is None else flip(good, at)
    before = dict(disk.blobs)
    store = await open_memory_store(disk)
    noticed = False
    try:
        try:
            assert await everything(store, SHARD) == expected, f"{name} {at}"
        except DamagedFile as error:
            noticed = name in str(error)
        assert await everything(store, OTHER) == expected
        await put(store, OTHER, (5000, 0, "goes on"))
        await store.flush()
        await store.idle()
        if noticed:
            assert disk.blobs[name] == bad
            lost = {n for n in before if n not in disk.blobs and not n.startswith(f"{OTHER}/")}
            assert not lost, "nothing of the damaged table is removed"
            with pytest.raises(DamagedFile):
                await everything(store, SHARD)
    finally:
        await store.close()
    # Restored from a backup, all is there again.
    disk.blobs[name] = good
    store = await open_memory_store(disk)
    assert await everything(store, SHARD) == expected
    assert await everything(store, OTHER) == [*expected, (5000, 0, "goes on")]
    await store.close()
    return noticed


@pytest.mark.parametrize("suffix", [".parquet", ".sys", ".x10", ".ends"])
def test_a_flipped_byte_anywhere_in_a_file_is_noticed(suffix: str) -> None:
    async def go() -> None:
        many = suffix == ".ends"
        template = MemoryDisk()
        await two_tables(template, many_ends=many)
        (name, *_rest) = sorted(n for n in template.blobs if n.startswith(f"{SHARD}/") and suffix in n)
        size = len(template.blobs[name])
        rng = random.Random(7)
        places: list[int | None] = [None, 0, size - 1, size // 2, *(rng.randrange(size) for _ in range(12))]
        for at in places:
            disk = MemoryDisk()
            await two_tables(disk, many_ends=many)
            (name, *_rest) = sorted(n for n in disk.blobs if n.startswith(f"{SHARD}/") and suffix in n)
            noticed = await with_damage(disk, name, at, expected=left(many_ends=many))
            assert noticed or (suffix == ".ends" and at == 0), (
                f"{suffix} at {at}"
            )  # the format byte can be told

    run(go)


def test_a_damaged_manifest_takes_its_table_alone() -> None:
    async def go() -> None:
        for at in (1, 5, 40, -1):  # a flipped format byte does no harm
            disk = MemoryDisk()
            await two_tables(disk)
            (key,) = [k for k in disk.registers if k.startswith("manifest/") and k.endswith("1")]
            good = disk.registers[key]
            data = good.data
            disk.registers[key] = type(good)(seq=good.seq, data=flip(data, at % len(data)))
            blobs = {n for n in disk.blobs if n.startswith(f"{SHARD}/")}
            store = await open_memory_store(disk)
            with pytest.raises(DamagedFile, match=key):
                await everything(store, SHARD)
            assert await everything(store, OTHER) == left()
            await put(store, OTHER, (5000, 0, "goes on"))
            await store.flush()
            await store.close()
            assert blobs <= set(disk.blobs), "its files are not swept"
            disk.registers[key] = good
            store = await open_memory_store(disk)
            assert await everything(store, SHARD) == left()
            await store.close()

    run(go)


def test_a_damaged_log_entry_takes_the_tables_that_it_writes_to() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await two_tables(disk)
        mine = last_of(disk, SHARD)
        good = disk.log[mine]
        for at in (len(good) // 2, len(good) - 1, 9):  # the body, or its checksum
            disk.log[mine] = flip(good, at)
            store = await open_memory_store(disk)
            assert await everything(store, OTHER) == left()
            with pytest.raises(DamagedFile, match=f"log entry {mine}"):
                await everything(store, SHARD)
            with pytest.raises(DamagedFile):
                await put(store, SHARD, (6000, 0, "no"))
            await store.flush()
            await store.close()
            assert disk.log[mine] == flip(good, at), "the log keeps it"
        disk.log[mine] = good
        store = await open_memory_store(disk)
        assert await everything(store, SHARD) == left(), "restored"
        await store.close()

    run(go)


def test_a_log_entrys_head_and_lengths_can_be_done_without() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await two_tables(disk)
        good = disk.log[last_of(disk, SHARD)]
        expected = decode_batch(good)
        for at in range(26):  # format, lengths, checksum of the head, head
            if not 9 <= at < 13:
                assert decode_batch(flip(good, at)) == expected, at

    run(go)


def test_a_log_entry_of_which_nothing_can_be_told_stops_the_start() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await two_tables(disk)
        mine = last_of(disk, SHARD)
        good = disk.log[mine]
        disk.log[mine] = flip(flip(good, 18), len(good) - 1)
        before = dict(disk.log), dict(disk.blobs)
        with pytest.raises(DamagedEntry, match=f"log entry {mine} in memory"):
            await open_memory_store(disk)
        assert (dict(disk.log), dict(disk.blobs)) == before
        disk.log[mine] = good
        store = await open_memory_store(disk)
        assert await everything(store, SHARD) == left()
        await store.close()

    run(go)


async def _truncate(store: ShardStore) -> None:
    txn = store.begin()
    await now(txn.truncate(SHARD))
    await now(txn.commit())


async def _drop(store: ShardStore) -> None:
    txn = store.begin()
    await now(txn.drop_shard(SHARD))
    await now(txn.commit())


@pytest.mark.parametrize("way", [_truncate, _drop])
def test_a_damaged_table_can_be_given_up(way: Callable[[ShardStore], Awaitable[None]]) -> None:
    async def go() -> None:
        disk = MemoryDisk()
        await two_tables(disk)
        (name,) = [n for n in disk.blobs if n.startswith(f"{SHARD}/") and n.endswith(".sys")]
        disk.blobs[name] = flip(disk.blobs[name], 70)
        store = await open_memory_store(disk)
        with pytest.raises(DamagedFile):
            await everything(store, SHARD)
        await way(store)
        for _ in range(2):
            if way is _truncate:
                await put(store, SHARD, (1, 1, "new"))
                assert await everything(store, SHARD) == [(1, 1, "new")]
                txn = store.begin()
                await now(txn.truncate(SHARD))
                await now(txn.commit())
            else:
                with pytest.raises(KeyError):
                    await everything(store, SHARD)
            await store.flush()
            await store.idle()
            await store.close()
            store = await open_memory_store(disk)
            assert await everything(store, OTHER) == left()
        await store.close()
        store = await open_memory_store(disk)
        await store.idle()
        assert not [n for n in disk.blobs if n.startswith(f"{SHARD}/")], "and its files go"
        await store.close()

    run(go)


def test_a_part_that_is_damaged_while_it_is_served_is_not_merged_away() -> None:
    async def go() -> None:
        disk = MemoryDisk()
        store = await open_memory_store(disk)
        await make_table(store, ROWS)
        await store.flush()
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        (part,) = generation.parts
        with open(part.ref.path, "r+b") as file:
            file.seek(100)
            byte = file.read(1)[0]
            file.seek(100)
            file.write(bytes((byte ^ 1,)))
        with pytest.raises(DamagedFile, match=part.ref.name):
            await everything(store, SHARD)
        for n in range(12):  # enough small parts to merge
            await put(store, SHARD, (1000 + n, 0, "more"))
            await store.flush()
        assert part in generation.parts, "still there, beside the merged ones"
        assert len(generation.parts) < 10
        await store.close()

    run(go)


@pytest.mark.parametrize("cold", [False, True])
def test_a_retraction_without_its_row_is_refused_before_it_is_logged(
    cold: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        store = await open_memory_store()
        await make_table(store, ROWS[:3])
        if cold:
            await store.flush()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        (row,) = await now(txn.lookup(SHARD, BY_K, [(1,)], for_update=True))
        await now(txn.delete(SHARD, [row.row_id]))
        txn.own[SHARD].rows[row.row_id].base -= 1  # the bug
        logged = store.core.log.committer.applied_seq
        with pytest.raises(StoreCorrupted, match="no current version"):
            await now(txn.commit())
        assert store.core.log.committer.applied_seq == logged
        assert "this is a bug" in caplog.text
        assert await everything(store, SHARD) == ROWS[:3], "the server goes on"
        await put(store, SHARD, (7, 7, "too"))
        store.validate()
        await store.close()

    run(go)
