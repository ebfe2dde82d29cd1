"""The directories of FILES sources: which ones they may use, what lies in them, and what becomes of it.

Everything here blocks, or raises.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.base.server_files import Roots, ServerFile, local_path, permitted
from engine.feeds.sources.reader import Temporary
from planner.base.errors import SqlError, not_supported


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A file in the directory of a source, or an object in its folder."""

    mtime_ns: int
    name: str
    size: int


class Directory:
    """A directory that a source reads. See ``files_folder.Folder``."""

    stored = False

    def __init__(self, path: str, roots: Roots) -> None:
        """Resolve it. Raises what ``directory`` does."""
        self._roots = roots.directories
        self._path = directory(path, self._roots)
        self.name = str(self._path)

    def listed(self, pattern: str) -> list[Found]:
        """See Folder. Raises OSError, too."""
        found = []
        try:
            listing = os.scandir(self._path)
        except FileNotFoundError:
            raise missing(self.name) from None
        except PermissionError as error:
            raise SqlError("42501", f'could not open directory "{self._path}": {error.strerror}') from None
        with listing as entries:
            for entry in entries:
                if not counts(entry.name, pattern):
                    continue
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    found.append(Found(status.st_mtime_ns, entry.name, status.st_size))
        return sorted(found)

    def shown(self, name: str) -> str:
        """See Folder."""
        return str(self._path / name)

    def file(self, found: Found) -> ServerFile:
        """See Folder: links are followed. Raises SqlError 42501 where that leads outside."""
        path = below(self.shown(found.name), self._roots)
        return ServerFile(path, path, found.size)

    def is_other(self, found: Found) -> bool:
        """See Folder."""
        try:
            status = (self._path / found.name).stat()
        except FileNotFoundError:
            return False
        return (status.st_size, status.st_mtime_ns) != (found.size, found.mtime_ns)

    def put_away(self, found: Found, move_to: str | None) -> None:
        """See Folder."""
        path = self._path / found.name
        try:
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) != (found.size, found.mtime_ns):
                return  # another one of that name
            if move_to is None:
                path.unlink()
                return
            target = directory(move_to, self._roots) / found.name
            if target.exists():
                target = target.with_name(f"{found.name}.{found.mtime_ns}")
            path.rename(target)
        except FileNotFoundError:
            return  # it was put away before a crash


def directory(path: str, roots: Sequence[str]) -> Path:
    """Return a directory that a source may use, resolved. Raises SqlError 42602, 0A000, 22023, 42501, 58P01, 42809."""
    try:
        local = local_path(path, "from")
    except SqlError as error:  # in words that are not COPY's
        if error.sqlstate == "0A000":
            raise not_supported(
                f'a FILES source of "{path}"',
                hint="It reads a directory of the server, or a folder of an object store (s3://, gs://).",
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


def counts(name: str, pattern: str) -> bool:
    """Return whether a name is one that a source looks at: neither hidden nor a marker, and it matches."""
    return not name.startswith((".", "_")) and fnmatch.fnmatchcase(name, pattern)


def missing(path: str) -> SqlError:
    """Return the error for a directory that is not there."""
    return SqlError("58P01", f'directory "{path}" does not exist')


def changing(shown: str) -> Temporary:
    """Return the error for a file that somebody still writes."""
    return Temporary(f'file "{shown}" changed while it was read')


def changed(shown: str) -> SqlError:
    """Return the error for a file that is not any more what rows were taken from."""
    return SqlError(
        "55000",
        f'file "{shown}" changed after the source had read from it',
        hint="Files are written once: under a name that begins with a dot, and renamed when they are complete.",
    )
