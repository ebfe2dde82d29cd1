"""What pg_read_file and pg_stat_file are told of files of the server, and which these may be (docs/guide/copy.md).

    contents            below a directory of ``server_files``, as for COPY: the data directory has everybody's rows in it
    size and times      there, and of what is in the data directory

Paths are relative to the data directory. Links and ``..`` are resolved first. Everything that blocks is done
in threads.
"""

from __future__ import annotations

import asyncio
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from engine.base.regular_files import NotRegularFile, read_regular
from engine.base.server_files import permitted
from engine.base.troubles import file_state
from pgwire.codecs.invalid import quoting
from pgwire.long.values import joined_bytes
from planner.base.errors import SqlError
from planner.base.large import foresee
from planner.catalog.acl import READ_SERVER_FILES
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.base.config import Config
    from engine.base.server_files import Roots
    from engine.catalog.state import CatalogSnapshot
    from planner.catalog import RoleDef


class HasFiles(Protocol):
    """A server, as far as its files are read. ``server_files``: the directories that it lists."""

    config: Config
    server_files: Roots


class ReadsFiles(Protocol):
    """A session that reads files of its server."""

    @property
    def db(self) -> HasFiles:
        """The server."""

    @property
    def today(self) -> CatalogSnapshot:
        """The catalog whose roles and rights count."""

    @property
    def role(self) -> RoleDef:
        """The current user."""


_PIECE_BYTES: Final = 1 << 20
_LONGEST_PATH: Final = 4096
_HINT: Final = "The setting server_files of the server lists the directories whose files functions may read."


def _asked(session: ReadsFiles, path: str) -> str:
    """Return the absolute path that a function names. Raises SqlError 42501 for one that the user may not name."""
    if len(path) > _LONGEST_PATH or "\0" in path:
        raise SqlError("58P01", quoting("could not open file ", path, " for reading: File name too long"))
    if Rights(session.today, session.role).owns(READ_SERVER_FILES):
        return os.path.join(os.path.realpath(session.db.config.data_dir), path)
    if os.path.isabs(path):
        raise SqlError("42501", "absolute path not allowed")
    if ".." in path.split("/"):
        raise SqlError("42501", "path must be in or below the data directory")
    return os.path.join(os.path.realpath(session.db.config.data_dir), path)


def _resolved(session: ReadsFiles, path: str, name: str, *, data: bool) -> str:
    """Return what a path resolves to; ``data``: it may be in the data directory. Raises SqlError 42501."""
    roots = session.db.server_files.directories
    allowed = (*roots, os.path.realpath(session.db.config.data_dir)) if data else roots
    try:
        return permitted(path, allowed, "from")
    except SqlError as error:
        raise SqlError(
            "42501", quoting("permission denied to read server file ", name), detail=error.detail, hint=_HINT
        ) from None


async def file_bytes(
    session: ReadsFiles, name: str, offset: int, length: int, *, missing_ok: bool
) -> bytes | None:
    """Return bytes of a file, ``length`` below 0: to its end; ``offset`` below 0 counts from that. None where
    it is missing and may be.

    Raises SqlError 42501, 58P01, 42809, 58030; 54000 and 53200 for too many bytes.
    """
    path = _asked(session, name)
    resolved = await asyncio.to_thread(_resolved, session, path, name, data=False)
    try:
        file = await asyncio.to_thread(read_regular, resolved)
    except FileNotFoundError as error:
        if missing_ok:
            return None
        raise _not_opened(error, name) from None
    except NotRegularFile:
        what = "Is a directory" if os.path.isdir(resolved) else "not a regular file"
        raise SqlError("42809", quoting("could not read file ", name, f": {what}")) from None
    except OSError as error:
        raise _not_opened(error, name) from None
    try:
        left = await asyncio.to_thread(_seek, file, name, offset)
        wanted = left if length < 0 else min(length, left)
        foresee(2 * wanted)  # its pieces, and what is made of them
        pieces: list[bytes] = []
        while wanted:
            piece = await asyncio.to_thread(file.read, min(wanted, _PIECE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
    except OSError as error:
        raise SqlError(
            file_state(error), quoting("could not read file ", name, f": {error.strerror}")
        ) from None
    finally:
        file.close()
    return joined_bytes(pieces)


def _seek(file: BinaryIO, name: str, offset: int) -> int:
    """Go to a place in a file and return how many bytes come behind it. Raises SqlError 22023 for one before
    its beginning.
    """
    size = os.fstat(file.fileno()).st_size
    if size + offset < 0:
        raise SqlError("22023", quoting("could not seek in file ", name, ": Invalid argument"))
    at = size + offset if offset < 0 else min(offset, size)
    file.seek(at)
    return size - at


def _not_opened(error: OSError, name: str) -> SqlError:
    return SqlError(
        file_state(error), quoting("could not open file ", name, f" for reading: {error.strerror}")
    )


async def file_status(
    session: ReadsFiles, name: str, *, missing_ok: bool
) -> tuple[int, int, int, int, bool] | None:
    """Return bytes, times of the last read, write and change (microseconds since 1970), and whether it is a
    directory. Raises SqlError 42501, 58P01.
    """
    path = _asked(session, name)
    resolved = await asyncio.to_thread(_resolved, session, path, name, data=True)
    try:
        found = await asyncio.to_thread(os.stat, resolved)
    except OSError as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            return None
        raise SqlError(
            file_state(error), quoting("could not stat file ", name, f": {error.strerror}")
        ) from None
    times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
    read_us, written_us, changed_us = (nanoseconds // 1_000_000_000 * 1_000_000 for nanoseconds in times)
    return found.st_size, read_us, written_us, changed_us, stat.S_ISDIR(found.st_mode)
