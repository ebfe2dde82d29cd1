"""lo_import and lo_export: between large objects and files of the server, under the conditions of COPY
(docs/guide/copy.md).
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from engine.base.regular_files import open_regular, read_regular
from engine.base.server_files import permitted
from engine.base.troubles import file_state
from engine.session.large_objects import access
from planner.base.errors import SqlError
from planner.catalog.acl import READ_SERVER_FILES, WRITE_SERVER_FILES
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.session.session import Session

_PIECE_BYTES: Final = 1 << 20


def check_allowed(session: Session, function: str) -> None:
    """Raise SqlError 42501 unless the user may read files of the server (lo_import), or write them (lo_export)."""
    wanted = READ_SERVER_FILES if function == "lo_import" else WRITE_SERVER_FILES
    if not Rights(session.today, session.role).owns(wanted):
        raise SqlError("42501", f"permission denied for function {function}")


def _path(session: Session, name: str, verb: str) -> str:
    """Return the resolved path of a file. SqlError 42501 unless the server permits it."""
    try:
        return permitted(name, session.db.server_files.directories, "from" if verb == "read" else "to")
    except SqlError as error:
        raise SqlError(
            "42501",
            f'permission denied to {verb} server file "{name}"',
            detail=error.detail,
            hint="The setting server_files of the server lists the directories that lo_import and lo_export may use.",
        ) from None


def _refused(error: OSError, name: str, verb: str) -> SqlError:
    return SqlError(file_state(error), f'could not {verb} server file "{name}": {error.strerror}')


async def import_file(session: Session, name: str, number: int) -> int:
    """Make a large object of a file and return its number (0: a free one). SqlError 42501, 58P01, 42809,
    58030, 23505.
    """
    path = await asyncio.to_thread(_path, session, name, "read")
    try:
        file = await asyncio.to_thread(read_regular, path)
    except OSError as error:
        raise _refused(error, name, "open") from None
    try:
        made = await access.create(session, number)
        at = 0
        while True:
            try:
                piece = await asyncio.to_thread(file.read, _PIECE_BYTES)
            except OSError as error:
                raise _refused(error, name, "read") from None
            if not piece:
                return made
            await access.write(session, made, at, piece)
            at += len(piece)
    finally:
        file.close()


async def export_file(session: Session, number: int, name: str) -> None:
    """Write a large object into a file, which it replaces. SqlError 42501, 58P01, 42809, 58030."""
    path = await asyncio.to_thread(_path, session, name, "write")
    try:
        file = await asyncio.to_thread(_emptied, path)
    except OSError as error:
        raise _refused(error, name, "create") from None
    try:
        at = 0
        while piece := await access.read(session, number, at, _PIECE_BYTES):
            try:
                await asyncio.to_thread(_write_all, file, piece)
            except OSError as error:
                raise _refused(error, name, "write") from None
            at += len(piece)
    finally:
        os.close(file)


def _emptied(path: str) -> int:
    """Open a file to be written from its beginning. Raises OSError."""
    file = open_regular(path, os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.ftruncate(file, 0)
    except OSError:
        os.close(file)
        raise
    return file


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
