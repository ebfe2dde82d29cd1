"""The process that appends to an SQLite log: it takes over, refuses as the thread does, and can be lost at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.durable import run
from txn.base.errors import Fenced
from txn.persist.location import Indeterminate, SequenceConflict
from txn.persist.logs import appender as log_appender
from txn.persist.logs import process as log_process
from txn.persist.logs.appender import LARGEST, LogAppender, spawn
from txn.persist.logs.sqlite import _SCHEMAS, SqliteConsensus
from txn.wal.cache import LogMap
from txn.wal.txns import TxnsLog


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[SqliteConsensus, int]]:
    """Open a log whose third append is the process's; also its epoch. Two entries are there."""
    consensus = await SqliteConsensus.open(str(folder / "log.sqlite"), process_after=2)
    try:
        epoch = await consensus.acquire_epoch()
        assert epoch is not None
        await consensus.append(epoch, 1, b"1")
        await consensus.append(epoch, 2, b"2")
        assert consensus._starting is not None
        await consensus._starting
        assert consensus._appender is not None
        yield consensus, epoch
    finally:
        await consensus.close()


def process_of(consensus: SqliteConsensus) -> int:
    assert consensus._appender is not None
    return consensus._appender.process.pid


def test_a_process_appends_once_there_is_much_to_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with opened(tmp_path) as (consensus, epoch):
            process = consensus._appender
            assert process is not None
            monkeypatch.setattr(consensus, "_append_here", None)  # the thread is not asked
            for seq in range(3, 40):
                await consensus.append(epoch, seq, b"%d" % seq * seq)
                assert await consensus.log_bounds() == (1, seq + 1), (
                    "durable, and readable, when it is answered"
                )
            monkeypatch.undo()
            await consensus.append(epoch, 40, large := os.urandom(LARGEST + 1))
            assert await consensus.read_log(40) == [(40, large)], "one that the socket cannot take at once"
            await consensus.append(epoch, 41, b"x" * LARGEST)
            found = await consensus.read_log(1)
            assert [seq for seq, _ in found] == list(range(1, 42))
            assert found[2][1] == b"333"
            assert await consensus.compare_and_set("r", None, b"1", epoch=epoch) == 1, (
                "the thread writes, too"
            )
            await consensus.truncate(40, epoch=epoch)
            await consensus.append(epoch, 42, b"after")
            assert await consensus.log_bounds() == (40, 43)
        assert process.process.returncode == 0, "it ended by itself"
        assert not os.path.exists(tmp_path / "log.sqlite-wal"), "and left the last checkpoint to the server"

    run(body)


def test_what_it_refuses_is_explained(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as (consensus, epoch):
            with pytest.raises(SequenceConflict):
                await consensus.append(epoch, 2, b"again")
            with pytest.raises(SequenceConflict):
                await consensus.append(epoch, 4, b"a gap")
            with pytest.raises(Fenced):
                await consensus.append(epoch + 1, 3, b"of another leader")
            await consensus.append(epoch, 3, b"3")
            assert consensus._appender is not None, "a refusal does not end it"
            assert await consensus.acquire_epoch() == epoch + 1
            with pytest.raises(Fenced):
                await consensus.append(epoch, 4, b"of the leader before")
            assert await consensus.read_log(1) == [(1, b"1"), (2, b"2"), (3, b"3")]

    run(body)


@pytest.mark.parametrize("at_work", [False, True])
def test_it_can_be_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture, at_work: bool) -> None:
    """``at_work``: while it has an entry that it has not answered; else between two."""

    async def body() -> None:
        async with opened(tmp_path) as (consensus, epoch):
            pid = process_of(consensus)
            if at_work:
                os.kill(pid, signal.SIGSTOP)
                appending = asyncio.ensure_future(consensus.append(epoch, 3, b"3"))
                await asyncio.sleep(0)
                assert consensus._appender is not None
                assert not consensus._appender.takes(b"")
                os.kill(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)
                appending = asyncio.ensure_future(consensus.append(epoch, 3, b"3"))
            with pytest.raises(Indeterminate):
                await appending
            assert consensus._appender is None
            assert "a thread of the server goes on" in caplog.text
            await consensus.append(epoch, 3, b"3")
            assert await consensus.read_log(1) == [(1, b"1"), (2, b"2"), (3, b"3")]

    run(body)


def test_one_that_is_silent_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_appender, "SILENT_S", 0.1)

    async def body() -> None:
        async with opened(tmp_path) as (consensus, epoch):
            os.kill(process_of(consensus), signal.SIGSTOP)
            async with asyncio.timeout(20):
                with pytest.raises(Indeterminate):
                    await consensus.append(epoch, 3, b"3")
            await consensus.append(epoch, 3, b"3")
            assert await consensus.read_log(1) == [(1, b"1"), (2, b"2"), (3, b"3")]

    run(body)


def test_a_commit_outlives_the_process(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as (consensus, epoch):
            log = TxnsLog(consensus, epoch, LogMap(3))
            os.kill(process_of(consensus), signal.SIGKILL)
            assert await log.append(b"of a client that waits") == 3
            assert await consensus.read_log(3) == [(3, b"of a client that waits")]

    run(body)


def test_signals_for_the_server_do_not_end_it(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as (consensus, epoch):
            os.kill(process_of(consensus), signal.SIGTERM)
            os.kill(process_of(consensus), signal.SIGINT)
            await consensus.append(epoch, 3, b"3")
            assert consensus._appender is not None

    run(body)


def test_it_ends_with_the_server(tmp_path: Path) -> None:
    """A server that is killed closes the socket and nothing else: what is in the write-ahead file stays there."""
    path = tmp_path / "log.sqlite"
    db = _log(path)
    process, ours = spawn(f"file:{path}?mode=rw")
    assert ours.recv(1) == log_process.READY
    ours.sendall(log_process.HEAD.pack(3, 0, 1) + b"one")
    assert ours.recv(1) == log_process.DONE
    db.close()
    ours.close()
    assert process.wait(60) == 0
    assert os.path.getsize(f"{path}-wal") > 0
    db = sqlite3.connect(path)
    assert db.execute("SELECT seq, data FROM log").fetchall() == [(1, b"one")]
    db.close()


def test_one_that_cannot_begin_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        appender = LogAppender(*spawn(f"file:{tmp_path / 'nothing'}?mode=rw"))
        assert not await appender.ready()
        assert not appender.takes(b"")
        assert not (tmp_path / "nothing").exists()
        await appender.close()

    run(body)


def test_the_thread_goes_on_where_no_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_url: str) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("txn.persist.logs.sqlite.spawn", refuse)

    async def body() -> None:
        consensus = await SqliteConsensus.open(str(tmp_path / "log.sqlite"), process_after=1)
        epoch = await consensus.acquire_epoch()
        assert epoch is not None
        for seq in range(1, 5):
            await consensus.append(epoch, seq, b"x")
        assert consensus._starting is not None
        await consensus._starting
        await consensus.append(epoch, 5, b"x")
        await consensus.close()
        assert "no more processes" in caplog.text

    run(body)


def test_answers_say_whether_an_entry_may_have_happened(tmp_path: Path) -> None:
    db = _log(tmp_path / "log.sqlite")
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    assert log_process.append(db, 0, 1, b"x" * 100_000) == log_process.REFUSED, "the disk is full"
    db.execute(f"PRAGMA max_page_count = {pages + 100}")
    assert log_process.append(db, 0, 1, b"x" * 100_000) == log_process.DONE, "there is space again"
    assert log_process.append(db, 0, 1, b"") == log_process.REFUSED
    assert log_process.append(db, 1, 2, b"") == log_process.REFUSED
    db.execute("PRAGMA query_only = 1")
    assert log_process.append(db, 0, 2, b"") == log_process.FAILED, "whatever else SQLite says"
    db.close()


def test_an_idle_moment_is_used_for_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_process, "IDLE_CHECKPOINT_WRITES", 2)
    monkeypatch.setattr(log_process, "IDLE_S", 0.001)
    db = _log(tmp_path / "log.sqlite")
    seen: list[int] = []

    def made(of: sqlite3.Connection) -> None:
        seen.append(1)
        ours.sendall(log_process.HEAD.pack(1, 0, 3) + b"3")
        ours.shutdown(socket.SHUT_WR)
        checkpoint(of)

    checkpoint = log_process.checkpoint
    monkeypatch.setattr(log_process, "checkpoint", made)
    ours, theirs = socket.socketpair()

    def ask() -> None:
        for seq in (1, 2):
            assert ours.recv(1) in (log_process.READY, log_process.DONE)
            ours.sendall(log_process.HEAD.pack(1, 0, seq) + b"%d" % seq)

    asking = threading.Thread(target=ask)
    asking.start()
    log_process.serve(theirs, db)
    asking.join()
    assert seen == [1]
    assert [data for (data,) in db.execute("SELECT data FROM log ORDER BY seq")] == [b"1", b"2", b"3"]
    db.close()
    ours.close()
    theirs.close()


def test_an_entry_may_come_in_pieces_while_it_waits_for_an_idle_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_process, "IDLE_CHECKPOINT_WRITES", 1)
    monkeypatch.setattr(log_process, "IDLE_S", 0.01)
    db = _log(tmp_path / "log.sqlite")
    ours, theirs = socket.socketpair()
    answers: list[bytes] = []

    def ask() -> None:
        answers.append(ours.recv(1))
        ours.sendall(log_process.HEAD.pack(1, 0, 1) + b"1")
        answers.append(ours.recv(1))
        ours.sendall(log_process.HEAD.pack(2, 0, 2) + b"2")
        time.sleep(0.1)  # the server's thread did not get a processor
        ours.sendall(b"2")
        answers.append(ours.recv(1))
        ours.close()

    asking = threading.Thread(target=ask)
    asking.start()
    log_process.serve(theirs, db)
    asking.join()
    assert answers == [log_process.READY, log_process.DONE, log_process.DONE]
    assert [data for (data,) in db.execute("SELECT data FROM log ORDER BY seq")] == [b"1", b"22"]
    db.close()
    theirs.close()


def test_nobody_writes_during_a_checkpoint(tmp_path: Path) -> None:
    """Else a commit that starts the write-ahead file anew may be lost, up to SQLite 3.51.2."""
    path = tmp_path / "log.sqlite"
    db = _log(path)
    log_process.settle(db)
    assert db.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,), "SQLite makes none of its own"
    assert log_process.append(db, 0, 1, b"1") == log_process.DONE
    happened: list[str] = []
    writing = threading.Event()

    def write() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO log VALUES (2, 'of another connection')")
        writing.set()
        time.sleep(0.2)
        happened.append("written")
        other.execute("COMMIT")
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    writing.wait()
    log_process.checkpoint(db)
    happened.append("checkpoint")
    writer.join()
    assert happened == ["written", "checkpoint"]
    assert _without_wal(path) == [1, 2]
    assert db.execute("PRAGMA busy_timeout").fetchone() == (log_process.BUSY_TIMEOUT_S * 1000,)
    db.close()


def test_a_reader_does_not_hold_a_checkpoint_up_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_process, "CHECKPOINT_BUSY_S", 0.01)
    path = tmp_path / "log.sqlite"
    db = _log(path)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM log").fetchall()
    assert log_process.append(db, 0, 1, b"1") == log_process.DONE
    log_process.checkpoint(db)
    assert log_process.append(db, 0, 2, b"2") == log_process.DONE
    assert reader.execute("SELECT * FROM log").fetchall() == []
    reader.close()
    log_process.checkpoint(db)
    assert _without_wal(path) == [1, 2]
    db.close()


@pytest.mark.parametrize("beside", [False, True])
def test_who_has_written_much_makes_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """``beside``: by the process, else by the thread."""
    monkeypatch.setattr(log_process, "CHECKPOINT_BYTES", 1 << 20)
    path = tmp_path / "log.sqlite"
    db = _log(path)
    log_process.settle(db)
    if beside:
        ours, theirs = socket.socketpair()
        serving = threading.Thread(target=_serve, args=(theirs, path))
        serving.start()
        assert ours.recv(1) == log_process.READY
        for seq in range(1, 21):
            ours.sendall(log_process.HEAD.pack(60_000, 0, seq) + bytes(60_000))
            assert ours.recv(1) == log_process.DONE
        ours.close()
        serving.join()
        theirs.close()
        assert _without_wal(path), "most of it"
        db.close()
        return
    db.close()

    async def body() -> None:
        consensus = await SqliteConsensus.open(str(tmp_path / "thread.sqlite"))
        epoch = await consensus.acquire_epoch()
        assert epoch is not None
        for seq in range(1, 21):
            await consensus.append(epoch, seq, bytes(60_000))
        await consensus.pulse()  # behind the checkpoint
        assert _without_wal(tmp_path / "thread.sqlite"), "most of it"
        await consensus.close()

    run(body)


def _serve(sock: socket.socket, path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    log_process.settle(db)
    log_process.serve(sock, db)
    db.close()


def _without_wal(path: Path) -> list[int]:
    """Return the entries that a checkpoint has taken into the file itself."""
    db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return [seq for (seq,) in db.execute("SELECT seq FROM log ORDER BY seq")]
    finally:
        db.close()


def _log(path: Path) -> sqlite3.Connection:
    """Make a log at epoch 0."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    for statement in _SCHEMAS[2].values():
        db.execute(statement)
    db.execute("INSERT INTO meta VALUES ('epoch', 0, 0), ('log_first', 1, 0)")
    return db
