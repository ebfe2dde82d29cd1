"""The process beside the server that appends to the log: ``python -m txn.persist.logs.process``.

    socket   HEAD, payload ──>│ INSERT, commit = fdatasync │──> DONE, REFUSED or FAILED, one byte each
    its end  ends the process, and nothing else does

The server alone starts it, by ``txn.persist.logs.appender``. Entries come one at a time, each when the one
before is answered. It has a connection of its own to the server's SQLite file; who may write is between the
two connections, and the statement that appends checks epoch and sequence number itself. An entry that is not
durable is not explained here: the server repeats it where it can tell why.

Checkpoints, of this process and of the server's thread alike, are made while nobody can write
(``checkpoint``), after much was written or in an idle moment. SQLite's own, after a commit, are switched off:
they let another connection write at the same time, and up to SQLite 3.51.2 a commit that starts the
write-ahead file anew at that moment may be lost (sqlite.org/wal.html, "The WAL-Reset Bug").
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import struct
import sys
from typing import Final

from txn.persist.logs.space import PAGE_BYTES, no_space

HEAD: Final = struct.Struct("=IQQ")
"""Before each entry: how many bytes follow, epoch, sequence number."""
READY: Final = b"+"
DONE: Final = b"D"
REFUSED: Final = b"R"  # it has not happened: another epoch, another sequence number, or no space
FAILED: Final = b"F"  # it may have happened

NEXT: Final = (
    "coalesce((SELECT max(seq) FROM log), (SELECT value FROM meta WHERE name = 'log_first') - 1) + 1"
)
APPEND: Final = (
    "INSERT INTO log (seq, data) SELECT ?1, ?2 WHERE (SELECT value FROM meta WHERE name = 'epoch') = ?3 "
    f"AND {NEXT} = ?1"
)
BUSY_TIMEOUT_S: Final = 10.0
CHECKPOINT_BUSY_S: Final = 1.0  # a checkpoint waits so long for a writer and for those who read older states
CHECKPOINT_BYTES: Final = 32 << 20  # written by one connection: not left to an idle moment
IDLE_CHECKPOINT_WRITES: Final = 512  # after so many writes an idle moment is used for a checkpoint
IDLE_S: Final = 0.05
_BUFFER_BYTES: Final = 128 << 10


class Written:
    """What a connection has written since its last checkpoint, about: when the next one is due."""

    __slots__ = ("_bytes", "_writes")

    def __init__(self) -> None:
        """Nothing."""
        self._bytes = self._writes = 0

    def note(self, size: int) -> None:
        """Note a write of ``size`` bytes: the pages that it fills, one that points to them, one for what is
        beside it.
        """
        self._writes += 1
        self._bytes += (size // PAGE_BYTES + 2) * PAGE_BYTES

    @property
    def much(self) -> bool:
        """Whether a checkpoint is due even if nobody is idle."""
        return self._bytes >= CHECKPOINT_BYTES

    @property
    def worth_it(self) -> bool:
        """Whether an idle moment is to be used for a checkpoint."""
        return self._writes >= IDLE_CHECKPOINT_WRITES

    def clear(self) -> None:
        """A checkpoint was made, or tried."""
        self._bytes = self._writes = 0


def settle(db: sqlite3.Connection) -> None:
    """Have each commit synced before it is acknowledged, and no checkpoint made but those of ``checkpoint``.

    What is deleted is not written over (``secure_delete``, which some builds of SQLite have by default):
    trimming the log would write as much as the log is long.
    """
    db.execute("PRAGMA secure_delete = OFF").fetchall()
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 0").fetchall()


def checkpoint(db: sqlite3.Connection) -> None:
    """Take the write-ahead file into the other one; nobody can write meanwhile, who reads is not held up.

    Without effect where another connection makes one at this moment. Whoever reads an older state for longer
    than ``CHECKPOINT_BUSY_S`` leaves the rest to the next one. Nor where there is no space for what the file
    would grow by: it would take what there is, and end in the middle.
    """
    try:
        if not fits(db):
            return
        db.execute(f"PRAGMA busy_timeout = {CHECKPOINT_BUSY_S * 1000:.0f}").fetchall()
        db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    except sqlite3.Error:
        pass  # harmless: the file stays longer, and a real fault shows at the next append
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}").fetchall()


def path_of(db: sqlite3.Connection) -> str:
    """Return the path of the file a connection is to. Raises sqlite3.Error."""
    (path,) = (row[2] for row in db.execute("PRAGMA database_list") if row[1] == "main")
    return str(path)


def fits(db: sqlite3.Connection) -> bool:
    """Tell whether there is space for the file with all that is in the write-ahead file. Raises sqlite3.Error."""
    path = path_of(db)
    size = int(db.execute("PRAGMA page_count").fetchone()[0]) * int(
        db.execute("PRAGMA page_size").fetchone()[0]
    )
    try:
        found = os.statvfs(path)
        return size - os.stat(path).st_size <= found.f_bavail * found.f_frsize
    except OSError:
        return True  # SQLite tells


def append(db: sqlite3.Connection, epoch: int, seq: int, payload: bytes | memoryview) -> bytes:
    """Append an entry; return what is to be answered."""
    try:
        return DONE if db.execute(APPEND, (seq, payload, epoch)).rowcount == 1 else REFUSED
    except sqlite3.Error as error:
        failed = error
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # SQLite had rolled back by itself
    try:
        return REFUSED if no_space(path_of(db), failed, len(payload)) else FAILED
    except sqlite3.Error:
        return FAILED


def serve(sock: socket.socket, db: sqlite3.Connection) -> None:
    """Append what comes until the other end of the socket is closed."""
    sock.sendall(READY)
    buffer = bytearray(_BUFFER_BYTES)
    view = memoryview(buffer)
    written = Written()
    waits_idle = False
    while True:
        if written.worth_it and not waits_idle:
            sock.settimeout(IDLE_S)
            waits_idle = True
        try:
            have = sock.recv_into(buffer)
        except TimeoutError:
            checkpoint(db)
            written.clear()
            sock.settimeout(None)
            waits_idle = False
            continue
        size, epoch, seq = 0, 0, 0
        while have:
            if have >= HEAD.size:
                size, epoch, seq = HEAD.unpack_from(buffer)
                if have >= HEAD.size + size:
                    break
            if waits_idle:  # the rest of an entry that has begun comes, however late
                sock.settimeout(None)
                waits_idle = False
            some = sock.recv_into(view[have:])
            have = have + some if some else 0
        if not have:
            return
        sock.sendall(append(db, epoch, seq, view[HEAD.size : HEAD.size + size]))
        written.note(size)
        if written.much:
            checkpoint(db)
            written.clear()


def main() -> None:
    """Serve the socket whose descriptor is the first argument, over the file whose URL is the second."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the server is to finish first
        signal.signal(number, signal.SIG_IGN)
    sock = socket.socket(fileno=int(sys.argv[1]))
    db = sqlite3.connect(sys.argv[2], uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    settle(db)
    try:
        serve(sock, db)
    except ConnectionError:
        pass  # the server has ended
    os._exit(0)  # closing the last connection would make a checkpoint, while the next server starts


if __name__ == "__main__":
    main()
