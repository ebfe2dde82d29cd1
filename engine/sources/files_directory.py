"""The directories of FILES sources: which ones they may use, and what lies in them. Everything here blocks, or raises."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bulk.server_files import local_path, permitted
from engine.sources.reader import Temporary
from planner.errors import SqlError, not_supported


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A file in the directory of a source."""

    mtime_ns: int
    name: str
    size: int


def directory(path: str, roots: Sequence[str]) -> Path:
    """Return a directory that a source may use, resolved. Raises SqlError 42602, 0A000, 22023, 42501, 58P01, 42809."""
    try:
        local = local_path(path, "from")
    except SqlError as error:  # in words that are not COPY's
        if error.sqlstate == "0A000":
            raise not_supported(
                f'a FILES source of "{path}"', hint="It reads a directory of the server."
            ) from None
        if error.sqlstate == "42602":
            raise SqlError(
                "42602", f'the directory of a FILES source must be an absolute path, not "{path}"'
            ) from None
        raise
    resolved = Path(below(local, roots))
    if not resolved.exists():
        raise missing(path)
    if not resolved.is_dir():
        raise SqlError("42809", f'"{path}" is not a directory')
    return resolved


def below(path: str, roots: Sequence[str]) -> str:
    """Return a path without links and ``..``. Raises SqlError 42501 unless it is below one of ``roots``."""
    try:
        return permitted(path, roots, "from")
    except SqlError as error:
        raise SqlError(
            error.sqlstate,
            f'permission denied for a source to use "{path}"',
            detail=error.detail,
            hint="The setting server_files of the server lists the directories that sources may use.",
        ) from None


def listed(path: Path, pattern: str) -> list[Found]:
    """Return the files of a directory that a source looks at, in its order. Raises SqlError 58P01, 42501; OSError."""
    found = []
    try:
        listing = os.scandir(path)
    except FileNotFoundError:
        raise missing(path) from None
    except PermissionError as error:
        raise SqlError("42501", f'could not open directory "{path}": {error.strerror}') from None
    with listing as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")) or not fnmatch.fnmatchcase(entry.name, pattern):
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found.append(Found(status.st_mtime_ns, entry.name, status.st_size))
    return sorted(found)


def missing(path: Path | str) -> SqlError:
    """Return the error for a directory that is not there."""
    return SqlError("58P01", f'directory "{path}" does not exist')


def changing(path: Path) -> Temporary:
    """Return the error for a file that somebody still writes."""
    return Temporary(f'file "{path}" changed while it was read')


def changed(path: Path) -> SqlError:
    """Return the error for a file that is not any more what rows were taken from."""
    return SqlError(
        "55000",
        f'file "{path}" changed after the source had read from it',
        hint="Files are written once: under a name that begins with a dot, and renamed when they are complete.",
    )
