"""Opening files of the server that others may put there: nobody waits, and what was permitted is what is opened.

    resolved path ──open, without waiting──> descriptor ──what is it, and is it there?──> regular file of that path
                                                                └── NotRegularFile, PermissionError

A few pipes below ``server_files`` would keep every thread there is, so nothing but regular files is opened
(``txn.persist.regular``), and no link: the path may have got another meaning since it was resolved.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import BinaryIO, Final

from txn.persist import regular
from txn.persist.regular import NotRegularFile
from txn.persist.trouble import opened

__all__ = ["NotRegularFile", "open_regular", "read_regular", "reopened"]

_DESCRIPTORS: Final = "/proc/self/fd"
_GONE: Final = " (deleted)"


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor; never waits. ``path``: resolved. ``flags``: without O_TRUNC.

    Raises OSError: NotRegularFile; PermissionError where the path leads elsewhere by now.
    """
    descriptor = regular.open_regular(path, flags | os.O_NOFOLLOW, mode)
    place = _place(descriptor)
    if place is not None and place != path:
        os.close(descriptor)
        raise PermissionError(errno.EACCES, "The path has changed while it was opened", path)
    return descriptor


def _place(descriptor: int) -> str | None:
    """Return the path of an open file as the system knows it; None where it does not tell, or the file has gone."""
    with contextlib.suppress(OSError):
        place = os.readlink(f"{_DESCRIPTORS}/{descriptor}")
        return None if place.endswith(_GONE) else place
    return None


def read_regular(path: str) -> BinaryIO:
    """Return a regular file opened for reading, as ``open`` returns it. Raises OSError as ``open_regular``."""
    return opened(open_regular(path))


def reopened(descriptor: int, path: str) -> str:
    """Return a path by which a library opens once more what a descriptor is: ``path`` itself where the system
    has none.
    """
    again = f"{_DESCRIPTORS}/{descriptor}"
    return again if Path(again).exists() else path
