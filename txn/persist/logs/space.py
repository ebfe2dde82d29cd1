"""Whether a write of the log failed for want of space: a full device, an exceeded quota, a limit on the size of files.

SQLite tells the first alone apart (SQLITE_FULL). The others are an error of writing like any other, so it is
tried whether as much could be written now, beside the log and behind its end. Neither has happened then:
SQLite writes what commits last, and rolls the rest back.

For the process that appends, too, which imports little (``log_process``).
"""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import tempfile
from typing import Final

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PAGE_BYTES: Final = 4096  # SQLite's, unless the file says otherwise
_SPARE_BYTES: Final = (
    16 * PAGE_BYTES
)  # pages of the tree above an entry, and their heads in the write-ahead file
_WRITES: Final = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)


def free_bytes(folder: str) -> int:
    """Return how many bytes the file system of a directory has for us."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def no_more_files(folder: str) -> bool:
    """Tell whether the file system of a directory has no room for another file, however many bytes it has."""
    found = os.statvfs(folder)
    return bool(found.f_files) and not found.f_favail


def no_space(path: str, error: sqlite3.Error, size: int) -> bool:
    """Tell whether an append of ``size`` bytes to the log at ``path`` failed because they have no room."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return True
    return code in _WRITES and not _room(path, size + _SPARE_BYTES)


def _room(path: str, size: int) -> bool:
    longest, _hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if longest != resource.RLIM_INFINITY and os.stat(f"{path}-wal").st_size + size > longest:
            return False
        with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as probe:
            os.posix_fallocate(probe.fileno(), 0, size)
    except OSError as error:
        return error.errno not in NO_SPACE
    return True
