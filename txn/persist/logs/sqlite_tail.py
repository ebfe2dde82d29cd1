"""What a commit that failed has left behind the valid frames of SQLite's write-ahead file, taken off again.

    valid     1 .. 7 |                   a COMMIT fails at its sync: SQLite takes it back in memory, its frames stay in the file
    in file   1 .. 7 | 8 9 10 commit     after a crash they would be found whole, and be true, although "rolled back" was answered;
                                         a shorter commit over 8 would leave 9 and 10 behind it, as damage
                                         does (``sqlite_check``)

So nothing is read or written after a failed write before the file ends where SQLite says that it does. That
is the only change to the file that is not SQLite's own; it holds the lock of writers meanwhile, and no reader
looks beyond the valid frames.
"""

from __future__ import annotations

import os
import sqlite3

from txn.persist.logs.sqlite_check import frames_end


def cut_tail(db: sqlite3.Connection, path: str) -> None:
    """Cut the write-ahead file of ``path``, which ``db`` has open, behind its last valid frame. Raises
    sqlite3.Error, OSError.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        page_size = int(db.execute("PRAGMA page_size").fetchone()[0])
        wal = f"{path}-wal"
        fd = os.open(wal, os.O_RDWR)
        try:
            end = frames_end(path, page_size)
            if os.fstat(fd).st_size > end:
                os.ftruncate(fd, end)
            os.fsync(fd)
        finally:
            os.close(fd)
    finally:
        db.execute("ROLLBACK")
