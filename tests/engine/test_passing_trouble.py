"""What the system says to a read is told as PostgreSQL tells it, tried again where it may pass, and never remembered.

every way to a file  x  every number of errno      once: answered;   always: 53000, 53100, 53200, 58030 or XX001 for a file that is gone
                                                   and answered as soon as the system says nothing any more
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from engine.__main__ import _hint
from engine.base import kept_rows
from engine.base.rows import RowBatch
from engine.base.server_files import file_error
from engine.base.troubles import file_state
from engine.executors.local.errors import missing_part, to_sql_error
from engine.executors.local.executor import LocalExecutor, _streamed
from engine.executors.spark.errors import from_text
from planner.base.errors import SqlError
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from txn.base.errors import DamagedFile, FileTrouble, OutOfSpace, StorageError, anew
from txn.persist import checksum, mapping, trouble
from txn.persist.blobs import files as blobfs
from txn.persist.blobs.files import Files, LocalBlob
from txn.persist.location import Indeterminate
from txn.persist.memory import MemoryDisk
from txn.persist.parts import part, sidecar
from txn.persist.regular import NotRegularFile
from txn.wal.read import DamagedLog

STATES: Final = {"io": "58030", "files": "53000", "memory": "53200", "space": "53100"}


def test_every_number_is_in_the_table() -> None:
    assert set(trouble.KINDS) == set(errno.errorcode)
    assert {n for n, meant in trouble.KINDS.items() if meant.kind == "files"} == {errno.EMFILE, errno.ENFILE}
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR, errno.EAGAIN, errno.ESTALE,
                   errno.ETIMEDOUT):  # fmt: skip
        assert trouble.KINDS[number].passing
    for number in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT):
        assert not trouble.KINDS[number].passing
    assert trouble.said(99_999) == trouble.said(None) == trouble.Said("io", False)


class Refusing:
    """Stands for a function that opens or reads; raises ``number`` for the next ``times`` calls."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.real = real
        self.number, self.times, self.asked = 0, 0, 0
        self.libraries = False  # raise as Arrow does, with the number in the text alone

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        if self.times:
            self.times -= 1
            text = os.strerror(self.number)
            if self.libraries:
                raise OSError(f"Failed to open local file '{args[0]}'. Detail: [errno {self.number}] {text}")
            raise OSError(self.number, text, "refused")
        return self.real(*args, **kwargs)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSE_S", 0.0)


SCAN: Final = "SELECT max(a) FROM t"
BY_KEY: Final = "SELECT a FROM t WHERE id = 5"
WAYS: Final = {
    "Parquet file, scan": (part.pq, "ParquetFile", SCAN),
    "Parquet file, by key": (part.pq, "ParquetFile", BY_KEY),
    "sidecar, looked at": (sidecar.os, "fstat", BY_KEY),
    "sidecar, mapped": (mapping, "map_file", BY_KEY),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_system_says_to_a_read_is_not_damage(
    way: str, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name, sql = WAYS[way]
    refusing = Refusing(getattr(module, name))
    monkeypatch.setattr(module, name, refusing, raising=True)

    async def main() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int PRIMARY KEY, a text)")
        await session.run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 1000) AS g (i)")
        await session.run("CHECKPOINT")
        [(oid,)] = await session.run("SELECT 't'::regclass::oid")
        [found] = database.store.core.shards[int(str(oid))].latest.generation.parts  # type: ignore[union-attr, index]
        file = found.file

        async def ask() -> str:
            """Return the first value, or the SQLSTATE; nothing that was read before is at hand."""
            file.close()
            try:
                return str((await session.run(sql))[0][0])
            except Failed as failed:
                return failed.report.sqlstate

        assert await ask() == "x"
        for number in errno.errorcode:
            meant = trouble.said(number)
            named = number in trouble._NAMED
            for libraries in (False, True) if named else (False,):
                refusing.number, refusing.libraries = number, libraries
                refusing.times, refusing.asked = 1, 0
                once = await ask()
                assert refusing.asked, "this way does not come by"
                if number == errno.ENOENT:  # that the file is gone is known for good
                    assert once in ("x", "XX001")
                    file.damage = None
                    continue
                # A read by key that its short way cannot answer is answered the general way, which asks once more.
                assert once == "x" if meant.passing else once in ("x", STATES[meant.kind]), errno.errorcode[
                    number
                ]
                if not named and number not in (errno.EACCES, errno.EROFS):
                    continue  # as those
                refusing.times = 1000
                assert await ask() == STATES[meant.kind], errno.errorcode[number]
                assert refusing.times >= 1000 - 2 * trouble.TRIES
                refusing.times = 0
                assert file.damage is None
                assert await ask() == "x", errno.errorcode[number]
        await database.close()

    run(main)


class Short:
    """Stands for ``trouble.opened`` or ``os.pread``; what it gives is short for the next ``times`` files."""

    def __init__(self, real: Callable[..., Any], gives: bytes | None) -> None:
        self.real, self.gives, self.times, self.asked = real, gives, 0, 0
        self.given: list[Any] = []

    def __call__(self, *args: Any) -> Any:
        self.asked += 1
        found = self.real(*args)
        if not self.times:
            return found
        self.times -= 1
        if isinstance(found, bytes):
            return self.gives
        size = os.fstat(found.fileno()).st_size

        class Odd(io.BytesIO):
            name = "odd"

            def fileno(self) -> int:
                return found.fileno()

            def read(_, size: int | None = -1, /) -> Any:
                return self.gives

            def close(self) -> None:
                found.close()
                super().close()

        self.given.append(found)
        return Odd(bytes(size))


SHORT: Final = {
    "Parquet file, footer, nothing yet": (part, "opened", None),
    "Parquet file, footer, too little": (part, "opened", b"x"),
    "Parquet file, whole, nothing yet": (checksum, "opened", None),
    "Parquet file, whole, too little": (checksum, "opened", b"x"),
    "small sidecar": (mapping.os, "pread", b""),
    "blob, too little": (blobfs, "opened", b"x"),
}


@pytest.mark.parametrize("way", SHORT)
def test_a_read_that_gives_too_little_passes_and_is_not_damage(
    way: str, quick: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, name, gives = SHORT[way]
    short = Short(getattr(module, name), gives)

    async def main() -> None:
        disk = LocalBlob(str(tmp_path / "blob"))
        await disk.put("t/1", b"content")
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int PRIMARY KEY, a text)")
        await session.run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 10) AS g (i)")
        await session.run("CHECKPOINT")
        [(oid,)] = await session.run("SELECT 't'::regclass::oid")
        [found] = database.store.core.shards[int(str(oid))].latest.generation.parts  # type: ignore[union-attr, index]
        file = found.file
        monkeypatch.setattr(module, name, short)

        async def ask() -> object:
            if module is blobfs:
                return await disk.get("t/1")
            if module is checksum:
                file.verified = False
                return await file.verify()
            opened = await part.open_part(file.ref, file._blob, file._offload, file._cache)
            return opened.spec

        for times in (1, 1000):
            short.times, short.asked = times, 0
            if times == 1:
                await ask()
                assert short.asked >= 2
            else:
                with pytest.raises(FileTrouble) as told:
                    await ask()
                assert told.value.kind == "io"
                assert short.asked in (2, trouble.TRIES)  # on the loop, in a thread
            assert file.damage is None
        assert all(given.closed for given in short.given), "a descriptor stays with a read that failed"
        short.times = 0
        await ask()
        await database.close()

    run(main)


def test_a_read_that_would_wait_says_so() -> None:
    read, write = os.pipe2(os.O_NONBLOCK)
    with trouble.opened(read) as file:
        for ask in (lambda: file.read(8), lambda: file.read(), lambda: trouble.exactly(file, 8)):
            with pytest.raises(BlockingIOError) as told:
                ask()
            assert trouble.is_passing(told.value)
        os.write(write, b"12345678")
        assert trouble.exactly(file, 8) == b"12345678"
        os.write(write, b"1234")
        os.close(write)
        with pytest.raises(OSError, match="Short read") as cut:
            trouble.exactly(file, 8)
        assert trouble.is_passing(cut.value)


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENOMEM, errno.EACCES])
def test_what_the_system_says_to_the_file_of_a_cursor_is_told_by_its_kind(
    number: int, quick: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows that moved out of memory: they were XX000 where they could not be read, and any trouble of writing was a full disk."""
    state = STATES[trouble.said(number).kind]
    reading, making = Refusing(kept_rows.exactly), Refusing(kept_rows.tempfile.TemporaryFile)
    reading.number = making.number = number
    monkeypatch.setattr(kept_rows, "exactly", reading)
    monkeypatch.setattr(kept_rows.tempfile, "TemporaryFile", making)

    async def main() -> None:
        kept = kept_rows.KeptRows(tmp_path, list, most=lambda: 1)
        making.times = 1
        with pytest.raises(SqlError) as refused:
            await kept.add(RowBatch(rows=[(i,) for i in range(10)]))
        assert refused.value.sqlstate == state
        kept = kept_rows.KeptRows(tmp_path, list, most=lambda: 1)
        for start in (0, 10, 20):
            await kept.add(RowBatch(rows=[(i,) for i in range(start, start + 10)]))
        if trouble.said(number).passing:
            reading.times = 1
            assert await kept.rows(3, 5) == [(3,), (4,)]
        reading.times = 1000
        with pytest.raises(SqlError) as refused:
            await kept.rows(3, 5)
        assert refused.value.sqlstate == state
        reading.times = 0
        assert await kept.rows(3, 5) == [(3,), (4,)]
        kept.close()

    run(main)


class OddFiles(Files):
    """A file system that refuses one of its calls."""

    def __init__(self) -> None:
        self.call, self.number, self.times = "", 0, 0
        self.asked: list[str] = []

    def _meet(self, call: str) -> None:
        self.asked.append(call)
        if call == self.call and self.times:
            self.times -= 1
            raise OSError(self.number, os.strerror(self.number))

    def open_new(self, path: str) -> Any:
        self._meet("open_new")
        return super().open_new(path)

    def read(self, path: str) -> bytes:
        self._meet("read")
        return super().read(path)

    def sync(self, file: Any) -> None:
        self._meet("sync")
        super().sync(file)

    def rename(self, source: str, target: str) -> None:
        self._meet("rename")
        super().rename(source, target)

    def sync_directory(self, path: str) -> None:
        self._meet("sync_directory")
        super().sync_directory(path)


@pytest.mark.parametrize("call", ["open_new", "read", "sync", "rename", "sync_directory"])
def test_blobs_are_read_again_and_never_synced_again(call: str, tmp_path: Path, quick: None) -> None:
    files = OddFiles()
    blob = LocalBlob(str(tmp_path / "blob"), files=files)

    async def main() -> None:
        await blob.put("a/first", b"content")
        for count, number in enumerate(errno.errorcode):
            meant = trouble.said(number)
            files.call, files.number, files.times = call, number, 1
            files.asked = []
            name = f"a/{count}"
            error: Exception | None = None
            try:
                if call == "read":
                    answer = await blob.get("a/first")
                    assert answer == (None if number == errno.ENOENT else b"content")
                else:
                    await blob.put(name, b"x")
            except (StorageError, OutOfSpace, DamagedFile) as met:
                error = met
            if error is None:
                assert call in ("read", "open_new")
                assert meant.passing or number == errno.ENOENT
            else:
                assert not isinstance(error, DamagedFile)
                assert not (meant.passing and call in ("read", "open_new"))
                assert files.asked.count(call) == 1, "asked again"
                assert isinstance(error, OutOfSpace) == (meant.kind == "space" and call != "sync_directory")
                if isinstance(error, StorageError) and call != "sync_directory":  # a file of unknown fate
                    assert error.kind == meant.kind
                assert call == "read" or isinstance(error, OutOfSpace | Indeterminate)
            files.times = 0
            assert await blob.get("a/first") == b"content"
            if call not in ("read", "sync_directory") and await blob.get(name) is None:
                await blob.put(name, b"x")
                assert await blob.get(name) == b"x"
        assert not [n for n in os.listdir(tmp_path / "blob" / "tmp") if n.isdigit()]

    run(main)


def test_what_cannot_be_deleted_is_trouble_of_its_kind(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = LocalBlob(str(tmp_path / "blob"))

    async def main() -> None:
        for number in errno.errorcode:
            tried = 0

            def refuse(path: str, number: int = number) -> None:
                nonlocal tried
                tried += 1
                raise OSError(number, os.strerror(number))

            await blob.put("a/b", b"x")
            with monkeypatch.context() as patch:
                patch.setattr(os, "unlink", refuse)
                if number == errno.ENOENT:
                    await blob.delete("a/b")
                else:
                    with pytest.raises(FileTrouble) as met:
                        await blob.delete("a/b")
                    assert met.value.kind == trouble.said(number).kind
                    assert (tried > 1) == trouble.said(number).passing
            await blob.delete("a/b")
            assert await blob.get("a/b") is None

    run(main)


def test_what_a_statement_names_is_told_as_postgres_tells_it() -> None:
    """elog.c of PostgreSQL 15, ``errcode_for_file_access``; its XX000 is 58030 here."""
    states = {
        "42501": (errno.EPERM, errno.EACCES, errno.EROFS), "58P01": (errno.ENOENT,), "58P02": (errno.EEXIST,),
        "42809": (errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY), "53000": (errno.ENFILE, errno.EMFILE),
        "53100": (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "53200": (errno.ENOMEM, errno.ENOBUFS),
    }  # fmt: skip
    told = {number: state for state, numbers in states.items() for number in numbers}
    for number in errno.errorcode:
        error = OSError(number, os.strerror(number))
        expected = told.get(number, "58030")
        assert file_state(error) == expected
        for what in ("reading", "writing"):
            assert file_error(error, "/a", what).sqlstate == expected
    assert file_state(NotRegularFile.at("/a")) == "42809"


def test_who_cannot_start_a_server_is_told_what_to_do() -> None:
    for error, told in (
        (FileTrouble("/a", "read", "Permission denied", "io"), "start again"),
        (OutOfSpace("full"), "Free space"),
        (DamagedFile("/a", "it is wrong"), "backup"),
        (DamagedLog("it ends too early"), "backup"),
        (NotRegularFile.at("/a"), "Put the file back"),
    ):
        assert told in str(_hint(error))
    assert _hint(OSError(errno.EADDRINUSE, "Address already in use")) is None


def test_duckdb_tells_of_a_missing_part_and_its_folder_is_made_again(tmp_path: Path) -> None:
    executor = LocalExecutor(blob_dir=tmp_path, spill=tmp_path / "spill")
    cursor = executor.cursor()
    part_file = str(tmp_path / "1.parquet")
    with pytest.raises(duckdb.IOException) as met:
        cursor.sql("SELECT * FROM read_parquet(?)", params=[part_file])
    missing = missing_part(met.value)
    assert missing is not None
    assert missing.file == part_file
    assert missing_part(_streamed(str(met.value))) is not None
    assert missing_part(duckdb.IOException("IO Error: something else")) is None
    for _ in range(2):
        shutil.rmtree(tmp_path / "spill", ignore_errors=True)
        assert executor.made_spill_again()
        assert (tmp_path / "spill").is_dir()
        assert not executor.made_spill_again()
    cursor.close()
    asyncio.run(executor.close())


def test_a_remembered_error_does_not_grow() -> None:
    damage = DamagedFile("a", "it is wrong")

    def meet() -> None:
        try:
            raise ValueError
        except ValueError as error:
            raise anew(damage) from error

    for _ in range(100):
        with pytest.raises(DamagedFile):
            meet()
    frames = 0
    at = damage.__traceback__
    while at is not None:
        frames, at = frames + 1, at.tb_next
    assert frames < 10
    assert isinstance(damage.__cause__, ValueError)  # of the last time


def test_a_library_that_tells_no_number_tells_of_no_damage(tmp_path: Path) -> None:
    for number in set(errno.errorcode) - {errno.ENOENT}:
        words = f"Memory mapping file failed: {os.strerror(number)}"
        with pytest.raises((FileTrouble, OutOfSpace)), trouble.telling(str(tmp_path)):
            raise OSError(words)


def test_errors_of_streamed_results_keep_their_kind() -> None:
    for words, state in (
        ("IO Error: Could not read from file: Input/output error", "58030"),
        ("IO Error: Cannot open file: Too many open files", "53000"),
        ("Out of Memory Error: failed to allocate", "53200"),
        ("Out of Range Error: Overflow in addition of INT32", "22003"),
        ("INTERRUPT Error: Interrupted!", "57014"),
    ):
        assert to_sql_error(_streamed(words)).sqlstate == state


def test_other_executors_tell_what_the_system_said() -> None:
    for number, meant in trouble.KINDS.items():
        if meant == trouble.Said("io", False):
            continue
        words = f'Cannot open file "/data/1.parquet": {os.strerror(number)}'
        if number in trouble._NAMED:
            assert to_sql_error(duckdb.IOException(f"IO Error: {words}")).sqlstate == STATES[meant.kind]
    assert to_sql_error(duckdb.IOException("IO Error: something else")).sqlstate == "58030"
    for words, state in (
        ("Too many open files", "53000"),
        ("Cannot allocate memory", "53200"),
        ("No space left on device", "53100"),
    ):
        assert from_text(f"java.io.FileNotFoundException: /x ({words})").sqlstate == state
    assert blobfs.refused("it", OSError(errno.EMFILE, "")).kind == "files"  # type: ignore[union-attr]
