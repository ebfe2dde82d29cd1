"""What survives: crashes at every step of storage, kill and reopen, trimming, sweeping (P2, C27, C40, U2)."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.durable import ManualClock, kind, run, two_column_spec
from tests.txn.durable.shadow import NO_TS, Shadow
from txn.base.errors import (
    Cause,
    CommitUnknown,
    DataDirectoryInUse,
    Fenced,
    OutOfSpace,
    TxnError,
    UnknownFormat,
    WriteConflict,
)
from txn.base.records import PartSwap, SchemaChange, ShardWrites, WriteSet
from txn.base.time import SequentialIdGen, SystemClock, SystemIdGen, SystemRng
from txn.base.types import IndexId, Row, ShardColumn, ShardId, ShardIndex, ShardSpec, TxnId
from txn.log.durable import DurableLog, StorageConfig
from txn.persist.faulty import FaultRates, FaultyBlob, FaultyConsensus
from txn.persist.location import Indeterminate, inline
from txn.persist.memory import MemoryBlob, MemoryConsensus, MemoryDisk
from txn.persist.parts.manifest import Manifest
from txn.values.columns import rows_to_table

SPEC = two_column_spec()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crashed store answers every retry in the same way: do not wait between them."""
    monkeypatch.setattr("txn.wal.txns._RETRY_S", 0.0)


async def on_disk(disk: MemoryDisk, clock: ManualClock | None = None) -> DurableLog:
    return await DurableLog.assemble(
        MemoryConsensus(disk),
        MemoryBlob(disk),
        clock or ManualClock(),
        SequentialIdGen(f"g{disk.generation}s{disk.steps}x"),
        offload=inline,
    )


async def in_folder(path: Path) -> DurableLog:
    return await DurableLog.open(StorageConfig(path=path), SystemClock(), SystemRng(1), SystemIdGen())


# -- crash at every step ---------------------------------------------------------------------------


class Workload:
    """Ten transactions, two flushes, a compaction; remembers what was acknowledged."""

    def __init__(self) -> None:
        self.submitted: list[tuple[int, dict[int, Row | None]]] = []
        self.acked: set[int] = set()

    async def commit(self, shadow: Shadow, txn: int, changes: dict[int, Row | None]) -> None:
        self.submitted.append((txn, changes))
        await shadow.log.committer.submit(shadow.writes(txn, *changes.items()))
        self.acked.add(txn)

    async def run(self, log: DurableLog) -> None:
        shadow = await Shadow.start(log)
        await shadow.create(SPEC)
        self.acked.add(1)
        await self.commit(shadow, 10, {1: (1, "a"), 2: (2, "b")})
        await self.commit(shadow, 11, {1: (1, "a2"), 3: (3, "c")})
        await shadow.flush()
        await self.commit(shadow, 12, {2: None, 4: (4, "d")})
        flush = asyncio.ensure_future(shadow.flush())
        await self.commit(shadow, 13, {4: (4, "d2"), 1: (1, "a3")})
        await flush
        await asyncio.gather(
            self.commit(shadow, 14, {5: (5, "e"), 6: (6, "f")}), self.commit(shadow, 15, {3: None})
        )
        await shadow.flush(compact=True)
        await self.commit(shadow, 16, {6: (6, "f2")})
        await log.close()

    def states(self) -> list[dict[int, Row]]:
        """The state after each prefix of what was submitted."""
        state: dict[int, Row] = {}
        found = [dict(state)]
        for _, changes in self.submitted:
            for i, row in changes.items():
                if row is None:
                    state.pop(i, None)
                else:
                    state[i] = row
            found.append(dict(state))
        return found


async def crash_run(step: int | None) -> int:
    """Run the workload, crash at ``step``, recover, check; return how many steps there were."""
    disk = MemoryDisk()
    disk.crash_at_step = step
    workload = Workload()
    before = set(asyncio.all_tasks())
    with contextlib.suppress(TxnError):
        await workload.run(await on_disk(disk))
    steps = disk.steps
    for task in set(asyncio.all_tasks()) - before:
        task.cancel()
    disk.crash()
    disk.crash_at_step = None

    log = await on_disk(disk)
    shadow = await Shadow.start(log)
    acked = [i for i, (txn, _) in enumerate(workload.submitted) if txn in workload.acked]
    if 7 not in shadow.tables:
        assert not workload.acked, "an acknowledged CREATE is gone"
        await log.close()
        return steps
    rows = await shadow.rows()
    states = workload.states()
    allowed = states[max(acked, default=-1) + 1 :]
    assert rows in allowed, f"crash at step {step}: {rows} after {len(acked)} acknowledged commits"
    # The recovered server goes on: commits, flushes, restarts.
    await log.committer.submit(shadow.writes(99, (99, (99, "z"))))
    await shadow.flush(compact=True)
    await log.close()
    again = await Shadow.start(await on_disk(disk))
    assert await again.rows() == {**rows, 99: (99, "z")}
    await again.log.close()
    names = {n for n in disk.blobs if n.endswith(".parquet")}
    live = {f"{p.ref.name}.parquet" for m in again.log.manifests.values() for p in m.parts}
    assert names == live, "files that nothing refers to were not swept away"
    return steps


def test_a_crash_at_any_step_of_storage_loses_nothing_acknowledged_and_tears_nothing() -> None:
    async def body() -> None:
        steps = await crash_run(None)
        assert steps > 100
        for step in range(1, steps + 1):
            await crash_run(step)

    run(body)


def test_failing_stores_lose_nothing_acknowledged() -> None:
    async def body() -> None:
        for seed in range(60):
            disk = MemoryDisk()
            consensus = FaultyConsensus(MemoryConsensus(disk), SystemRng(seed), FaultRates())
            blob = FaultyBlob(MemoryBlob(disk), SystemRng(seed + 1), FaultRates())
            log = await DurableLog.assemble(consensus, blob, ManualClock(), SequentialIdGen(), offload=inline)
            consensus.rates = FaultRates(fail=0.05, timeout=0.1, full=0.05, max_delay_steps=3)
            blob.rates = FaultRates(fail=0.05, timeout=0.05, full=0.05)
            workload = Workload()
            before = set(asyncio.all_tasks())
            with contextlib.suppress(TxnError):
                await workload.run(log)
            for task in set(asyncio.all_tasks()) - before:
                task.cancel()
            disk.crash()
            log = await on_disk(disk)
            shadow = await Shadow.start(log)
            if 7 in shadow.tables:
                acked = [i for i, (txn, _) in enumerate(workload.submitted) if txn in workload.acked]
                # A refused commit is absent, and the ones after it are not built on it in this workload.
                rows = await shadow.rows()
                for i in acked:
                    for row_id, row in workload.submitted[i][1].items():
                        later = [s[1][row_id] for s in workload.submitted[i + 1 :] if row_id in s[1]]
                        assert rows.get(row_id) in [row, *later]
            else:
                assert not workload.acked
            await log.close()

    run(body)


# -- fencing ---------------------------------------------------------------------------------------


def test_a_deposed_leader_cannot_commit_flush_or_trim() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        old = await Shadow.start(await on_disk(disk))
        await old.create(SPEC)
        await old.log.committer.submit(old.writes(10, (1, (1, "a"))))
        new = await Shadow.start(await on_disk(disk))
        with pytest.raises(Fenced):
            await old.log.committer.submit(old.writes(11, (2, (2, "late"))))
        with pytest.raises(Fenced):
            old.log.committer.submit(old.writes(12, (2, (2, "later"))))
        with pytest.raises(Fenced):
            await old.checkpoint(7, old.log.committer.applied_seq)
        assert await new.rows() == {1: (1, "a")}
        await new.log.close()
        await old.log.close()

    run(body)


def test_a_second_server_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    async def body() -> None:
        log = await in_folder(tmp_path / "db")
        with pytest.raises(DataDirectoryInUse, match=f"pid {os.getpid()}"):
            await in_folder(tmp_path / "db")
        async for _ in log.replay():
            pass
        await log.close()
        await (await in_folder(tmp_path / "db")).close()

    run(body)


# -- formats ---------------------------------------------------------------------------------------


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    async def body() -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "precious.txt").write_text("not ours")
        with pytest.raises(UnknownFormat):
            await in_folder(other)
        assert (other / "precious.txt").exists()

        path = tmp_path / "db"
        shadow = await Shadow.start(await in_folder(path))
        await shadow.create(SPEC)
        await shadow.log.committer.submit(shadow.writes(10, (1, (1, "a"))))
        await shadow.flush()
        await shadow.log.close()

        (path / "FORMAT").write_text("holdfast data directory, format 2\n")
        with pytest.raises(UnknownFormat):
            await in_folder(path)
        (path / "FORMAT").write_text("holdfast data directory, format 1\n")

        with contextlib.closing(sqlite3.connect(path / "log.sqlite")) as db:
            db.execute("PRAGMA user_version = 9")
        with pytest.raises(UnknownFormat):
            await in_folder(path)
        with contextlib.closing(sqlite3.connect(path / "log.sqlite")) as db:
            db.execute("PRAGMA user_version = 2")
            db.execute(
                "UPDATE register SET data = CAST(X'63' || substr(data, 3) AS BLOB) WHERE name LIKE 'manifest/%'"
            )
            db.commit()
        with pytest.raises(UnknownFormat, match="manifest"):
            await in_folder(path)
        (path / "log.sqlite").write_bytes(b"this is not a database" * 100)
        for name in ("log.sqlite-wal", "log.sqlite-shm"):
            (path / name).unlink(missing_ok=True)
        with pytest.raises(UnknownFormat):
            await in_folder(path)

    run(body)


def test_a_log_entry_of_another_format_is_refused() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        await shadow.create(SPEC)
        await shadow.log.close()
        disk.log[max(disk.log)] = b"\x63" + disk.log[max(disk.log)][2:]
        with pytest.raises(UnknownFormat):
            await on_disk(disk)

    run(body)


# -- trimming --------------------------------------------------------------------------------------


def test_the_log_is_trimmed_to_what_some_shard_still_needs() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        log = shadow.log
        await shadow.create(SPEC)
        await shadow.create(two_column_spec(9), txn=2)
        for i in range(200):
            await log.committer.submit(shadow.writes(100 + i, (1, (1, f"v{i}"))))
        assert log.pressure().entries == 202
        assert log.pressure().laggards == (7, 9)
        await shadow.flush(7)
        assert log.pressure().entries > 190, "shard 9 was never flushed: its CREATE is in entry 2"
        assert log.pressure().laggards == (9,)
        await shadow.flush(9)
        assert log.pressure().entries == 0
        assert log.pressure().bytes == 0
        assert not disk.log
        await log.close()
        again = await Shadow.start(await on_disk(disk))
        assert await again.rows() == {1: (1, "v199")}
        assert await again.rows(9) == {}
        await again.log.close()

    run(body)


def test_an_idle_shard_does_not_hold_the_log() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        await shadow.create(SPEC)
        await shadow.create(two_column_spec(9), txn=2)
        await shadow.flush(7)
        await shadow.flush(9)
        for i in range(150):
            await shadow.log.committer.submit(shadow.writes(100 + i, (1, (1, f"v{i}")), shard=9))
        await shadow.flush(9)
        assert shadow.log.pressure().entries < 64
        assert shadow.log.pressure().laggards == ()
        await shadow.log.close()

    run(body)


def test_a_forgotten_shard_stays_forgotten_and_its_register_goes() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        log = shadow.log
        await shadow.create(SPEC)
        await log.committer.submit(shadow.writes(10, (1, (1, "a"))))
        await shadow.flush()
        table = shadow.tables[7]
        await log.committer.submit(shadow.writes(11, (2, (2, "b"))))
        await log.committer.submit(shadow.writes(12, schema=(SchemaChange(shard=ShardId(7), forget=True),)))
        tombstone = Manifest(
            shard=ShardId(7), spec=SPEC, generation=0, flushed_through=log.committer.applied_seq,
            next_row_id=table.next_row_id, since=NO_TS, forgotten=True,
        )  # fmt: skip
        await log.checkpoint(tombstone)
        await log.discard(table.parts)
        assert not [n for n in disk.blobs if n.startswith("7/")]
        await log.close()
        assert not [k for k in disk.registers if k.startswith("manifest/")]
        again = await Shadow.start(await on_disk(disk))
        assert not again.tables
        await again.log.close()

    run(body)


# -- bulk loads ------------------------------------------------------------------------------------


async def load(shadow: Shadow, txn: int, rows: list[Row], first_id: int) -> str:
    ids = range(first_id, first_id + len(rows))
    table = rows_to_table(SPEC, rows, ids, [0] * len(rows))
    ref = await shadow.log.write_part(ShardId(7), SPEC, table)
    writes = ShardWrites(shard=ShardId(7), parts=(ref,))
    await shadow.log.committer.submit(WriteSet(txn=TxnId(txn), ts=NO_TS, shards=(writes,)))
    return ref.name


def test_a_bulk_load_is_in_the_log_by_reference_until_a_manifest_covers_it() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        await shadow.create(SPEC)
        name = await load(shadow, 10, [(i, f"v{i}") for i in range(100)], 1)
        rows = await shadow.rows()
        assert len(rows) == 100
        begin = shadow.begin_of(7, 1)
        assert begin == shadow.tables[7].parts[name].max_begin > 0
        await shadow.log.committer.submit(shadow.writes(11, (1, None), (2, (2, "new"))))
        with pytest.raises(ValueError, match="not flushed"):
            await shadow.log.discard([name])
        disk.crash()
        again = await Shadow.start(await on_disk(disk))
        expected = {**rows, 2: (2, "new")}
        del expected[1]
        assert await again.rows() == expected
        assert again.begin_of(7, 3) == begin, "the part's timestamp is the commit's, also after recovery"
        await again.flush(compact=True)
        assert await again.rows() == expected
        assert f"{name}.parquet" not in disk.blobs
        disk.crash()
        assert await (await Shadow.start(await on_disk(disk))).rows() == expected

    run(body)


def test_a_manifest_must_cover_the_entry_of_a_loaded_part_that_was_replaced() -> None:
    async def body() -> None:
        shadow = await Shadow.start(await on_disk(MemoryDisk()))
        await shadow.create(SPEC)
        before = shadow.log.committer.applied_seq
        name = await load(shadow, 10, [(1, "a")], 1)
        await shadow.open_pending()
        table = rows_to_table(SPEC, [(1, "a")], [1], [shadow.begin_of(7, 1)])
        merged = await shadow.log.write_part(ShardId(7), SPEC, table)
        swap = PartSwap(shard=ShardId(7), removed=(name,), added=(merged,))
        await shadow.log.committer.submit_swap(swap)
        with pytest.raises(ValueError, match="must cover"):
            await shadow.checkpoint(7, before)
        await shadow.checkpoint(7, shadow.log.committer.applied_seq)
        await shadow.log.close()

    run(body)


def test_parts_of_transactions_that_never_committed_are_swept_at_the_next_start() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        await shadow.create(SPEC)
        await shadow.log.write_part(ShardId(7), SPEC, rows_to_table(SPEC, [(1, "a")], [1], [0]))
        assert disk.blobs
        disk.crash()
        log = (await Shadow.start(await on_disk(disk))).log
        await log.close()
        assert not disk.blobs

    run(body)


def test_a_part_stays_while_a_manifest_that_names_it_may_be_stored() -> None:
    """Stored, and reported as a time-out: a start finds that manifest, whatever the server believes."""

    async def body() -> None:
        disk = MemoryDisk()
        store = FaultyConsensus(MemoryConsensus(disk), SystemRng(1), FaultRates())
        log = await DurableLog.assemble(
            store, MemoryBlob(disk), ManualClock(), SequentialIdGen("g"), offload=inline
        )
        shadow = await Shadow.start(log)
        await shadow.create(SPEC)
        await log.committer.submit(shadow.writes(10, (1, (1, "a"))))
        checkpoint = shadow.checkpoint

        async def lost(shard: int, cut: int) -> None:
            store.rates = FaultRates(timeout=1.0)
            try:
                await checkpoint(shard, cut)
            finally:
                store.rates = FaultRates()

        shadow.checkpoint = lost  # type: ignore[method-assign]
        with pytest.raises(Indeterminate):
            await shadow.flush()
        (name,) = shadow.tables[7].parts
        with pytest.raises(Indeterminate):
            await shadow.flush(compact=True)  # it takes the part's rows over
        assert name not in shadow.tables[7].parts
        shadow.checkpoint = checkpoint  # type: ignore[method-assign]
        for part in (name, *shadow.tables[7].parts):
            with pytest.raises(ValueError, match="in a manifest"):
                await log.discard([part])
        disk.crash()
        again = await Shadow.start(await on_disk(disk))
        assert await again.rows() == {1: (1, "a")}
        parts = set(again.tables[7].parts)
        await again.flush(compact=True)
        assert not parts & set(again.tables[7].parts)
        await again.log.discard(parts)
        await again.log.close()

    run(body)


def test_a_part_is_one_object_whoever_asks_for_it_at_whatever_moment() -> None:
    async def body() -> None:
        log = await on_disk(MemoryDisk())
        await Shadow.start(log)
        ref = await log.write_part(ShardId(7), SPEC, rows_to_table(SPEC, [(1, "a")], [1], [5]))
        first = asyncio.ensure_future(log.open_part(ref))
        await asyncio.sleep(0)
        while ref.name in log._opening:
            await asyncio.sleep(0)
        assert not first.done(), "it is open, and its asker has not been told yet"
        second = await log.open_part(ref)
        assert await first is second
        await log.close()

    run(body)


# -- sidecars of new indexes -----------------------------------------------------------------------


def test_a_new_indexs_sidecar_replaces_one_that_was_left_behind() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        log = shadow.log
        await shadow.create(SPEC)
        await log.committer.submit(shadow.writes(10, *((i, (i, f"v{i % 2}")) for i in range(1, 7))))
        await shadow.flush()
        ((name, ref),) = shadow.tables[7].parts.items()
        part = shadow.tables[7].open[name]

        def with_index(*attnums: int) -> ShardSpec:
            index = ShardIndex(index=IndexId(3), attnums=attnums, unique=False)
            column = ShardColumn(attnum=3, type=kind("int32"), missing_value=8)
            return dataclasses.replace(
                SPEC, version=2, columns=(*SPEC.columns, column), indexes=(*SPEC.indexes, index)
            )

        await log.build_sidecar(ref, with_index(2), IndexId(3))
        assert part.lookup(IndexId(3), ("v0",)) == [1, 3, 5]
        # That index was rolled back; another one with the same id is made.
        await log.build_sidecar(ref, with_index(3, 1), IndexId(3))
        assert part.lookup(IndexId(3), (8, 4)) == [3]
        await log.close()
        again = await Shadow.start(await on_disk(disk))
        assert again.tables[7].open[name].lookup(IndexId(3), (8, 4)) == [3]
        await again.log.close()

    run(body)


def test_the_sweep_spares_ends_that_are_written_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        await shadow.create(SPEC)
        await shadow.log.committer.submit(shadow.writes(10, *((i, (i, "v")) for i in range(600))))
        await shadow.flush()
        await shadow.log.close()
        shadow = await Shadow.start(await on_disk(disk))
        log = shadow.log
        before = log._referenced(), log._store.blob_names()
        await log.committer.submit(shadow.writes(11, *((i, None) for i in range(500))))
        await shadow.checkpoint(7, log.committer.applied_seq)
        # A sweep that began before the checkpoint lists the blobs after it.
        with monkeypatch.context() as patch:
            patch.setattr(log._store, "blob_names", lambda: before[1])
            await log._sweep(before[0])
        await shadow.log.close()
        assert [n for n in disk.blobs if ".ends" in n]
        again = await Shadow.start(await on_disk(disk))
        assert sorted(await again.rows()) == list(range(500, 600))
        await again.log.close()

    run(body)


# -- large transactions ----------------------------------------------------------------------------


def test_a_large_transaction_lies_in_a_blob_until_the_log_is_trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn.log.group_commit.SPILL_BYTES", 1000)

    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        await shadow.create(SPEC)
        many: dict[int, Row | None] = {i: (i, f"v{i}") for i in range(1, 3000)}
        wide: dict[int, Row | None] = {5000: (5000, "x" * 2000)}
        for txn, changes in ((10, many), (11, wide), (12, {1: None})):
            await shadow.log.committer.submit(shadow.writes(txn, *changes.items()))
        assert len([n for n in disk.blobs if n.startswith("txn/")]) == 2
        assert max(map(len, disk.log.values())) < 1000
        expected = {i: row for i, row in {**many, **wide}.items() if i != 1}
        disk.crash()
        shadow = await Shadow.start(await on_disk(disk))
        assert await shadow.rows() == expected
        assert len([n for n in disk.blobs if n.startswith("txn/")]) == 2, "the sweep took what the log names"
        await shadow.flush()
        await shadow.log.close()
        assert not [n for n in disk.blobs if n.startswith("txn/")]
        again = await Shadow.start(await on_disk(disk))
        assert await again.rows() == expected
        await again.log.close()

    run(body)


def test_a_large_transaction_that_is_refused_leaves_no_blob(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn.log.group_commit.SPILL_BYTES", 1000)

    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        committer = shadow.log.committer
        await shadow.create(SPEC)
        wide = shadow.writes(10, (1, (1, "x" * 2000)))
        with pytest.raises(WriteConflict):
            await committer.submit(wide, lambda: WriteConflict(Cause.SCAN_READ, ShardId(7)))
        while committer._preparing:  # the blob goes in the background
            await asyncio.sleep(0)
        assert not disk.blobs
        disk.capacity = disk.used() + 1000
        with pytest.raises(OutOfSpace):
            await committer.submit(wide)
        disk.capacity = None
        with pytest.raises(TypeError):
            await committer.submit(shadow.writes(11, *((i, (object(),)) for i in range(3000))))
        futures = [committer.submit(shadow.writes(12, (2, (2, "y" * 2000)))), committer.submit(wide)]
        await shadow.log.close()
        assert all(f.done() and f.exception() is None for f in futures)
        assert len([n for n in disk.blobs if n.startswith("txn/")]) == 2
        assert await shadow.rows() == {1: (1, "x" * 2000), 2: (2, "y" * 2000)}

    run(body)


# -- space -----------------------------------------------------------------------------------------


def test_a_full_device_refuses_commits_keeps_reads_and_recovers() -> None:
    async def body() -> None:
        disk = MemoryDisk()
        shadow = await Shadow.start(await on_disk(disk))
        log = shadow.log
        await shadow.create(SPEC)
        await log.committer.submit(shadow.writes(10, (1, (1, "a"))))
        disk.capacity = disk.used() + 10
        with pytest.raises(OutOfSpace):
            await log.committer.submit(shadow.writes(11, (2, (2, "b"))))
        with pytest.raises(OutOfSpace):
            await shadow.flush()
        assert await shadow.rows() == {1: (1, "a")}
        disk.capacity = None
        await log.committer.submit(shadow.writes(12, (3, (3, "c"))))
        await shadow.flush()
        assert await shadow.rows() == {1: (1, "a"), 3: (3, "c")}
        await log.close()
        again = await Shadow.start(await on_disk(disk))
        assert await again.rows() == {1: (1, "a"), 3: (3, "c")}
        await again.log.close()

    run(body)


def test_a_full_sqlite_file_refuses_commits_and_recovers(tmp_path: Path) -> None:
    async def body() -> None:
        shadow = await Shadow.start(await in_folder(tmp_path / "db"))
        log = shadow.log
        await shadow.create(SPEC)
        consensus = log._consensus
        db = consensus._db  # type: ignore[attr-defined]

        async def limit(pages: int) -> None:
            await consensus._call(  # type: ignore[attr-defined]
                lambda: db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
            )

        await limit(1)  # SQLite raises it to the present size

        async def fill() -> None:
            for i in range(100):
                await log.committer.submit(shadow.writes(100 + i, (i, (i, "x" * 2000))))

        with pytest.raises(OutOfSpace):
            await fill()
        survivors = await shadow.rows()
        await limit(1 << 30)
        await log.committer.submit(shadow.writes(300, (300, (300, "after"))))
        await log.close()
        again = await Shadow.start(await in_folder(tmp_path / "db"))
        assert await again.rows() == {**survivors, 300: (300, "after")}
        await again.log.close()

    run(body)


# -- real files ------------------------------------------------------------------------------------


def test_everything_is_there_after_closing_and_reopening(tmp_path: Path) -> None:
    async def body() -> None:
        shadow = await Shadow.start(await in_folder(tmp_path / "db"))
        await shadow.create(SPEC)
        await asyncio.gather(
            *(shadow.log.committer.submit(shadow.writes(100 + i, (i, (i, f"v{i}")))) for i in range(500))
        )
        await shadow.flush()
        await shadow.log.committer.submit(shadow.writes(1000, (3, None), (501, (501, "hot"))))
        before = shadow.log.oracle.read_ts()
        rows = await shadow.rows()
        await shadow.log.close()
        again = await Shadow.start(await in_folder(tmp_path / "db"))
        assert again.log.epoch == shadow.log.epoch + 1
        assert again.log.oracle.read_ts() >= before
        assert await again.rows() == rows
        assert len(rows) == 500
        await again.log.close()

    run(body)


_CHILD = """
import asyncio, sys
from pathlib import Path
from tests.support.durable import two_column_spec
from tests.txn.durable.shadow import Shadow
from tests.txn.durable.test_recovery import in_folder

async def main() -> None:
    shadow = await Shadow.start(await in_folder(Path(sys.argv[1])))
    if 7 not in shadow.tables:
        await shadow.create(two_column_spec())
    first = max(await shadow.rows(), default=0) + 1

    async def one(i: int) -> None:
        await shadow.log.committer.submit(shadow.writes(i, (i, (i, "v"))))
        print(i, flush=True)

    i = first
    while True:
        await asyncio.gather(*(one(i + k) for k in range(8)))
        i += 8
        if i % 64 < 8:
            await shadow.flush(compact=i % 128 < 8)

asyncio.run(main())
"""


def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acked: set[int] = set()
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(tmp_path / "db")],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[3],
            text=True,
        )
        assert child.stdout is not None
        for _ in range(150):
            acked.add(int(child.stdout.readline()))
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines(keepends=True)
        acked.update(int(line) for line in rest if line.endswith("\n"))
        child.wait()
        child.stdout.close()

    async def body() -> None:
        shadow = await Shadow.start(await in_folder(tmp_path / "db"))
        rows = await shadow.rows()
        assert acked <= rows.keys()
        assert all(row == (i, "v") for i, row in rows.items())
        await shadow.log.close()

    run(body)
    assert len(acked) >= 450


# -- order of opening ------------------------------------------------------------------------------


def test_commits_are_refused_before_replay_and_after_close() -> None:
    async def body() -> None:
        log = await on_disk(MemoryDisk())
        with pytest.raises(AssertionError):
            log.start()
        shadow = await Shadow.start(log)
        await shadow.create(SPEC)
        await log.close()
        await log.close()
        with pytest.raises(CommitUnknown):
            log.committer.submit(shadow.writes(10, (1, (1, "a"))))

    run(body)


def test_checkpoints_do_not_go_back_or_ahead() -> None:
    async def body() -> None:
        shadow = await Shadow.start(await on_disk(MemoryDisk()))
        await shadow.create(SPEC)
        await shadow.log.committer.submit(shadow.writes(10, (1, (1, "a"))))
        with pytest.raises(ValueError, match="ahead"):
            await shadow.checkpoint(7, 3)
        await shadow.flush()
        with pytest.raises(ValueError, match="back"):
            await shadow.checkpoint(7, 1)
        part = next(iter(shadow.tables[7].parts))
        with pytest.raises(ValueError, match="manifest"):
            await shadow.log.discard([part])
        await shadow.log.close()

    run(body)
