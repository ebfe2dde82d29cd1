"""pg_read_file, pg_read_binary_file, pg_stat_file: files of the server as values (manual 9.27.9).

    pg_read_file('/in/a.txt', 0, 100)      the first 100 bytes, which have to be text          below server_files
    pg_stat_file('log.sqlite')             size, times, whether it is a directory              there, and in the data directory

Superusers may call them, and whoever was given EXECUTE; absolute paths are for members of
pg_read_server_files. They are read beside the event loop: the row executor waits for them.
"""

from __future__ import annotations

from typing import Any

from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.search.queries import waiting
from planner.functions.session import EvalSession
from planner.functions.system.server import record_of
from planner.functions.text.bytea import convert_from

_TO_END = -1


async def _bytes(session: EvalSession, path: str, offset: int, length: int, missing_ok: bool) -> bytes | None:
    if length < 0:
        raise SqlError("22023", "requested length cannot be negative")
    return await session.system.file_bytes(path, offset, length, missing_ok=missing_ok)


async def _whole(session: EvalSession, path: str) -> bytes | None:
    return await session.system.file_bytes(path, 0, _TO_END, missing_ok=False)


async def read_binary(
    session: EvalSession, path: str, offset: int | None = None, length: int = 0, missing_ok: bool = False
) -> bytes | None:
    """SQL's ``pg_read_binary_file``: from ``offset`` (below 0: from the end) at most ``length`` bytes,
    without them all; NULL where there is none.

    Raises SqlError 22023, 42501, 58P01, 42809, 58030, 54000.
    """
    if offset is None:
        return await _whole(session, path)
    return await _bytes(session, path, offset, length, missing_ok)


async def read_text(session: EvalSession, path: str, *where: Any) -> str | None:
    """SQL's ``pg_read_file``. Raises as ``read_binary``; 22021 for what is no text."""
    found = await read_binary(session, path, *where)
    return None if found is None else convert_from(found, "UTF8")


async def status(session: EvalSession, path: str, missing_ok: bool = False) -> Any:
    """SQL's ``pg_stat_file``: when a file was made is not told here. Raises SqlError 42501, 58P01."""
    found = await session.system.file_status(path, missing_ok=missing_ok)
    if found is None:
        return None
    size, read_us, written_us, changed_us, is_directory = found
    return record_of("pg_stat_file(text)", size, read_us, written_us, changed_us, None, is_directory)


def _register() -> None:
    for arguments in ("text", "text,int8,int8", "text,int8,int8,bool"):
        REGISTRY.python(f"pg_read_file({arguments})", waiting(read_text), needs_session=True)
        REGISTRY.python(f"pg_read_binary_file({arguments})", waiting(read_binary), needs_session=True)
    for arguments in ("text", "text,bool"):
        REGISTRY.python(f"pg_stat_file({arguments})", waiting(status), needs_session=True)


_register()
