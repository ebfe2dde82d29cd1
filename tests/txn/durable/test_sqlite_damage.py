"""Bytes that flip in the SQLite log file or in its write-ahead file, and files of the format before: noticed, named, kept."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.support.durable import run
from txn.base.errors import DamagedFile, UnknownFormat
from txn.persist.checksum import seal, seal_number, unseal_number
from txn.persist.logs.sqlite import _SCHEMAS, SqliteConsensus

ENTRIES = 40
Found = tuple[list[tuple[int, bytes]], dict[str, bytes], int]


async def fill(path: Path) -> None:
    """Write a log and registers, trim a little."""
    consensus = await SqliteConsensus.open(str(path))
    epoch = await consensus.acquire_epoch()
    assert epoch is not None
    seqs: dict[str, int | None] = {}
    for n in range(1, ENTRIES + 1):
        await consensus.append(epoch, n, bytes((n,)) * 90)
        key = f"manifest/{n % 7:010d}"
        seqs[key] = await consensus.compare_and_set(key, seqs.get(key), seal(bytes((n,)) * 40), epoch=epoch)
    await consensus.compare_and_set("manifest/0000000003", seqs["manifest/0000000003"], None, epoch=epoch)
    await consensus.truncate(5, epoch=epoch)
    await consensus.close()


async def read(path: Path) -> Found:
    consensus = await SqliteConsensus.open(str(path), expected=True)
    try:
        pulse = await consensus.pulse()
        first, _end = await consensus.log_bounds()
        registers = {}
        for key in await consensus.keys(""):
            head = await consensus.head(key)
            assert head is not None
            registers[key] = head.data
        return await consensus.read_log(first), registers, pulse.epoch
    finally:
        await consensus.close()


def without_checkpoint(source: Path, target: Path) -> None:
    """Copy a log whose writer is still there: its last writes are in the write-ahead file only."""
    for name in ("log.sqlite", "log.sqlite-wal"):
        shutil.copy(source / name, target / name)


def test_a_flipped_byte_anywhere_in_the_file_is_noticed_or_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    run(lambda: fill(path))
    good = path.read_bytes()
    expected = run(lambda: read(path))
    rng = random.Random(5)
    noticed = content = 0
    for _ in range(500):
        at = rng.randrange(len(good))
        bad = good[:at] + bytes((good[at] ^ (1 << rng.randrange(8)),)) + good[at + 1 :]
        for name in tmp_path.iterdir():
            name.unlink()
        path.write_bytes(bad)
        try:
            log, registers, epoch = run(lambda: read(path))
        except (DamagedFile, UnknownFormat) as error:
            said = str(error)
        else:
            said = ""
        if said:
            assert str(path) in said
            assert path.read_bytes() == bad, "nothing is written over"
            noticed += 1
            continue
        # What has a checksum of its own may differ, one value in all: its reader notices.
        assert epoch == expected[2]
        assert [seq for seq, _ in log] == [seq for seq, _ in expected[0]]
        assert registers.keys() == expected[1].keys()
        differ = sum(a != b for a, b in zip(log, expected[0], strict=True))
        differ += sum(registers[key] != expected[1][key] for key in registers)
        assert differ <= 1
        content += differ
    assert noticed > 10
    assert content > 10


@pytest.mark.parametrize("table", ["meta", "register"])
def test_each_row_of_the_small_tables_is_missed_and_each_value_checked(tmp_path: Path, table: str) -> None:
    path = tmp_path / "log.sqlite"
    run(lambda: fill(path))
    good = path.read_bytes()

    def names() -> list[str]:
        with contextlib.closing(sqlite3.connect(path)) as db:
            return [name for (name,) in db.execute(f"SELECT name FROM {table}")]

    changes = ["DELETE FROM {t} WHERE name = '{n}'", "UPDATE {t} SET name = 'x' || name WHERE name = '{n}'",
               "UPDATE {t} SET crc = crc + 1 WHERE name = '{n}'"]  # fmt: skip
    changes.append(
        "UPDATE meta SET value = value + 1 WHERE name = '{n}'"
        if table == "meta"
        else "UPDATE register SET seq = seq + 1 WHERE name = '{n}'"
    )
    listed = names()
    assert len(listed) >= 4
    for name in listed:
        for change in changes:
            for file in tmp_path.iterdir():
                file.unlink()
            path.write_bytes(good)
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
                db.execute(change.format(t=table, n=name))
            with pytest.raises(DamagedFile, match=r"log\.sqlite is damaged"):
                run(lambda: read(path))


def test_a_flipped_byte_among_synced_commits_of_the_write_ahead_file_is_noticed(tmp_path: Path) -> None:
    live, copy = tmp_path / "live", tmp_path / "copy"
    live.mkdir()
    path = copy / "log.sqlite"

    async def go() -> None:
        consensus = await SqliteConsensus.open(str(live / "log.sqlite"))
        epoch = await consensus.acquire_epoch()
        assert epoch is not None
        for n in range(1, ENTRIES + 1):
            await consensus.append(epoch, n, bytes((n,)) * 700)
        copy.mkdir()
        without_checkpoint(live, copy)
        await consensus.close()

    run(go)
    good = {name: (copy / name).read_bytes() for name in ("log.sqlite", "log.sqlite-wal")}

    def entries(wal: bytes) -> int:
        for file in copy.iterdir():
            file.unlink()
        path.write_bytes(good["log.sqlite"])
        path.with_name("log.sqlite-wal").write_bytes(wal)
        return len(run(lambda: read(path))[0])

    whole = good["log.sqlite-wal"]
    assert entries(whole) == ENTRIES
    assert entries(whole[:-100]) == ENTRIES - 1, "a commit that was not finished"
    rng = random.Random(6)
    last_two = len(whole) - 5 * 4120
    for at in [*range(0, 32, 3), *(rng.randrange(32, last_two) for _ in range(60))]:
        bad = whole[:at] + bytes((whole[at] ^ 0x10,)) + whole[at + 1 :]
        with pytest.raises(DamagedFile, match=r"log\.sqlite-wal is damaged"):
            entries(bad)
        assert path.with_name("log.sqlite-wal").read_bytes() == bad, "it is kept"
        assert path.read_bytes() == good["log.sqlite"]


def test_a_log_that_is_missing_or_empty_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    for make in (lambda: None, path.touch):
        make()
        with pytest.raises(DamagedFile, match=r"log\.sqlite"):
            run(lambda: read(path))


def test_a_file_of_format_1_is_brought_to_format_2(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    run(lambda: fill(path))
    expected = run(lambda: read(path))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for table, columns in (("meta", "name, value"), ("register", "name, seq, data")):
            rows = db.execute(f"SELECT {columns} FROM {table} WHERE name <> 'registers'").fetchall()
            db.execute(f"DROP TABLE {table}")
            db.execute(_SCHEMAS[1][table])
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        db.execute("PRAGMA user_version = 1")
    for _ in range(2):
        assert run(lambda: read(path)) == expected
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


def test_numbers_in_registers_are_checked_and_those_without_checksum_still_read() -> None:
    import msgspec

    for number in (0, 1, 127, 1 << 40, (1 << 63) - 1):
        assert unseal_number("it", b"\x01" + msgspec.msgpack.encode(number)) == number
        good = seal_number(number)
        assert unseal_number("it", good) == number
        for at in range(len(good)):
            for bit in range(8):
                bad = good[:at] + bytes((good[at] ^ (1 << bit),)) + good[at + 1 :]
                if at == 0:
                    assert unseal_number("it", bad) == number
                    continue
                with pytest.raises(DamagedFile, match="it is damaged"):
                    unseal_number("it", bad)
