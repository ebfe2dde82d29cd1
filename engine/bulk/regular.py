"""Opening files of the server that others may put there: nobody waits, and what was permitted is what is opened.

    resolved path ──open, without waiting──> descriptor ──what is it, and is it there?──> regular file of that path
                                                                └── NotRegularFile, PermissionError

Opening a pipe waits until somebody is at its other end, and reading ``/dev/zero`` ends never: a few of them below ``server_files`` would
keep every thread there is. So nothing but regular files is opened, which is asked of the descriptor: the path may have got
another meaning since it was resolved.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from txn.persist.trouble import opened

_DESCRIPTORS: Final = "/proc/self/fd"
_GONE: Final = " (deleted)"
_COMMON: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY


class NotRegularFile(OSError):
    """A path names a directory, a pipe, a socket or a device."""


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor; never waits. ``path``: resolved. ``flags``: without O_TRUNC.

    Raises OSError: NotRegularFile; PermissionError where the path leads elsewhere by now.
    """
    descriptor = -1
    try:
        descriptor = os.open(path, flags | _COMMON, mode)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularFile(errno.EINVAL, "Not a regular file", path)
        place = _place(descriptor)
        if place is not None and place != path:
            raise PermissionError(errno.EACCES, "The path has changed while it was opened", path)
        os.set_blocking(descriptor, True)
        made, descriptor = descriptor, -1
        return made
    except OSError as error:
        if not isinstance(error, NotRegularFile) and _is_other(
            path
        ):  # ENXIO of a pipe or a socket, ELOOP of a link, EISDIR
            raise NotRegularFile(errno.EINVAL, "Not a regular file", path) from None
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _place(descriptor: int) -> str | None:
    """Return the path of an open file as the system knows it; None where it does not tell, or the file has gone."""
    with contextlib.suppress(OSError):
        place = os.readlink(f"{_DESCRIPTORS}/{descriptor}")
        return None if place.endswith(_GONE) else place
    return None


def _is_other(path: str) -> bool:
    with contextlib.suppress(OSError):
        return not stat.S_ISREG(os.lstat(path).st_mode)
    return False


def read_regular(path: str) -> BinaryIO:
    """Return a regular file opened for reading, as ``open`` returns it. Raises OSError as ``open_regular``."""
    return opened(open_regular(path))


def reopened(descriptor: int, path: str) -> str:
    """Return a path by which a library opens once more what a descriptor is: ``path`` itself where the system has none."""
    again = f"{_DESCRIPTORS}/{descriptor}"
    return again if Path(again).exists() else path
