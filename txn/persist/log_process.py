"""The process beside the server that appends to the log: ``python -m txn.persist.log_process``.

    socket   HEAD, payload ──>│ INSERT, commit = fdatasync │──> DONE, REFUSED or FAILED, one byte each
    its end  ends the process, and nothing else does

The server alone starts it, by ``txn.persist.log_appender``. Entries come one at a time, each when the one before is answered. It
has a connection of its own to the server's SQLite file; who may write is between the two connections, and the statement
that appends checks epoch and sequence number itself. An entry that is not durable is not explained here: the server repeats it
where it can tell why. Without transactions it makes the checkpoints that the thread would make (``txn.persist.sqlite``).
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import struct
import sys
from typing import Final

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
IDLE_CHECKPOINT_WRITES: Final = 512  # after so many writes an idle moment is used for a checkpoint
IDLE_S: Final = 0.05
_BUFFER_BYTES: Final = 128 << 10


def settle(db: sqlite3.Connection) -> None:
    """Have each commit synced before it is acknowledged, and checkpoints made past 32 MB of write-ahead file."""
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 8192").fetchall()


def checkpoint(db: sqlite3.Connection) -> None:
    """Take the write-ahead file into the other one as far as nobody is in the way."""
    try:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    except sqlite3.Error:
        pass  # harmless: the file stays longer, and a real fault shows at the next append


def append(db: sqlite3.Connection, epoch: int, seq: int, payload: bytes | memoryview) -> bytes:
    """Append an entry; return what is to be answered."""
    try:
        return DONE if db.execute(APPEND, (seq, payload, epoch)).rowcount == 1 else REFUSED
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # SQLite had rolled back by itself
    return REFUSED if code == sqlite3.SQLITE_FULL else FAILED


def serve(sock: socket.socket, db: sqlite3.Connection) -> None:
    """Append what comes until the other end of the socket is closed."""
    sock.sendall(READY)
    buffer = bytearray(_BUFFER_BYTES)
    view = memoryview(buffer)
    writes = 0
    while True:
        try:
            have = sock.recv_into(buffer)
        except TimeoutError:
            checkpoint(db)
            writes = 0
            sock.settimeout(None)
            continue
        size, epoch, seq = 0, 0, 0
        while have:
            if have >= HEAD.size:
                size, epoch, seq = HEAD.unpack_from(buffer)
                if have >= HEAD.size + size:
                    break
            some = sock.recv_into(view[have:])
            have = have + some if some else 0
        if not have:
            return
        sock.sendall(append(db, epoch, seq, view[HEAD.size : HEAD.size + size]))
        writes += 1
        if writes == IDLE_CHECKPOINT_WRITES:
            sock.settimeout(IDLE_S)


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
