"""Files of the data directory, as pg_ls_dir and its kin list them: names, sizes, times of change.

    pg_ls_waldir    log.sqlite and what SQLite keeps beside it       (a log elsewhere has no files here)
    pg_ls_tmpdir    what DuckDB spills, what Spark hands over        (files of cursors and of COPY have no name)
    pg_ls_dir       any directory of the data directory

Only names and figures are shown, never contents. The directories are the server's own, and on its own disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple

from engine.base.troubles import file_state
from pgwire.codecs.invalid import quoting
from pgwire.give_way import give_way
from planner.base.errors import SqlError

_LOG: Final = "log.sqlite"
_SPILLED: Final = ("duckdb-spill", "spark/spool")


class DirectoryFile(NamedTuple):
    """A regular file: ``size`` in bytes, when it was changed last in microseconds since 1970."""

    name: str
    size: int
    modified_us: int


def log_files(data_dir: Path) -> Iterator[DirectoryFile]:
    """Yield the files of the log; none where it is kept elsewhere."""
    return (file for file in _files(data_dir) if file.name.startswith(_LOG))


def temporary_files(data_dir: Path) -> Iterator[DirectoryFile]:
    """Yield the files with rows that did not fit into memory, or are on their way between processes."""
    for folder in _SPILLED:
        yield from _files(data_dir / folder)
    for own in (data_dir / _SPILLED[0]).glob("*/"):  # of queries whose spilled data has a bound of its own
        yield from _files(own)


def _files(folder: Path) -> Iterator[DirectoryFile]:
    """Yield the regular files of a directory; none where there is no such directory. What goes meanwhile is
    passed over.
    """
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            give_way()
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if S_ISREG(found.st_mode):
                yield DirectoryFile(entry.name, found.st_size, found.st_mtime_ns // 1000)


_LONGEST_PATH: Final = 4096
"""Characters of a path: Linux takes no longer ones."""


def names(data_dir: Path, path: str, *, missing_ok: bool, dots: bool) -> Sequence[str]:
    """Return what is in a directory, named from the data directory or absolutely; ``dots``: ``.`` and ``..``, too.

    Raises SqlError 42501 for a directory elsewhere, 58P01 where there is none unless ``missing_ok``, 42809 for a file.
    """
    if len(path) > _LONGEST_PATH:  # the system does not know it, but each step to it takes as long as it is
        raise _not_opened(path, OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)))
    base = os.path.realpath(data_dir)
    found = os.path.realpath(os.path.join(base, path))
    if os.path.commonpath((base, found)) != base:
        raise SqlError("42501", "path must be in or below the data directory")
    listed = [".", ".."] if dots else []
    try:
        with os.scandir(found) as entries:
            for entry in entries:
                give_way()
                listed.append(entry.name)
    except OSError as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            return ()
        raise _not_opened(path, error) from None
    return listed


def _not_opened(path: str, error: OSError) -> SqlError:
    return SqlError(file_state(error), quoting("could not open directory ", path, f": {error.strerror}"))
