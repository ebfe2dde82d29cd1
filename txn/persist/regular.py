"""Opening files without waiting: nothing but regular files, whatever somebody has put in their place.

    path ──open, O_NONBLOCK──> descriptor ──what is it?──> regular file
                                               └── NotRegularFile: a directory, a pipe, a socket, a device

Opening a pipe waits until somebody is at its other end, a read of ``/dev/zero`` ends never, and neither can
be interrupted: a start would hang without a word. It is asked of the descriptor, as the path may have got
another meaning meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Final

_COMMON: Final = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotRegularFile(OSError):
    """A path names a directory, a pipe, a socket or a device."""

    @classmethod
    def at(cls, path: str) -> NotRegularFile:
        """Return the error for a path."""
        return cls(errno.EINVAL, "Not a regular file", path)


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor; never waits. ``flags``: without O_TRUNC. Raises OSError:
    NotRegularFile.
    """
    descriptor = -1
    try:
        descriptor = os.open(path, flags | _COMMON, mode)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularFile.at(path)
        os.set_blocking(descriptor, True)
        made, descriptor = descriptor, -1
        return made
    except OSError as error:
        if not isinstance(error, NotRegularFile) and _is_other(path, flags):  # ENXIO of a socket, EISDIR
            raise NotRegularFile.at(path) from None
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _is_other(path: str, flags: int) -> bool:
    with contextlib.suppress(OSError):
        status = os.stat(path, follow_symlinks=not flags & os.O_NOFOLLOW)
        return not stat.S_ISREG(status.st_mode)
    return False


def regular(path: str) -> str:
    """Return a path, which leads to a regular file: for libraries that open it by themselves. Raises OSError:
    NotRegularFile.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise NotRegularFile.at(path)
    return path
