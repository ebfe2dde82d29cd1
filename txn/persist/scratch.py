"""Temporary folders that go with their owner, however it ends.

    process     holdfast-scratch-…, an exclusive lock (flock) on it, held open     made with its first ``Scratch``, removed with its last
                  └─ <kind>-…                                                      a ``Scratch``
    kill -9     the kernel gives up the lock
    a start     ``sweep``: of this user's folders of that name, those that nobody locks are removed

One descriptor serves all of a process. A lock is told from that of another process whatever pids there are,
in another container too. A folder that a sweep finds between its making and its lock may go: whoever made it
sees that, and makes another. Links are not followed, neither to a folder nor in one.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
import weakref
from threading import RLock
from typing import Any, Final

PREFIX: Final = "holdfast-scratch-"
_OPENED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_log = logging.getLogger(__name__)


class _Root:
    """The folder of a process, and how many there are in it."""

    def __init__(self) -> None:
        self.path, self._locked = _make()
        self.pid = os.getpid()
        self.within = tempfile.gettempdir()
        self.count = 0

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)  # what stays is for ``sweep``
        os.close(self._locked)


_root: _Root | None = None
_changes = RLock()  # the collector may end one while another is made
os.register_at_fork(
    before=_changes.acquire, after_in_parent=_changes.release, after_in_child=_changes.release
)


class Scratch:
    """A temporary folder that is removed with this object, at the end of the process or by the next start
    (``sweep``).
    """

    def __init__(self, kind: str) -> None:
        """Make it. Raises OSError."""
        self.path, root = _made_in_root(kind)
        self._remove = weakref.finalize(self, _end, self.path, root)

    def remove(self) -> None:
        """Remove it now. Idempotent."""
        self._remove()

    def __enter__(self) -> str:
        """Return the path."""
        return self.path

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.remove()


def _made_in_root(kind: str) -> tuple[str, _Root]:
    global _root
    with _changes:
        while True:
            root = _root
            if root is None or (root.pid, root.within) != (os.getpid(), tempfile.gettempdir()):
                root = _root = _Root()
            root.count += 1  # before its folder is there: the collector may end others meanwhile
            try:
                return tempfile.mkdtemp(prefix=f"{kind}-", dir=root.path), root
            except FileNotFoundError:  # somebody tidies up the folder of temporary files
                root.count -= 1
                _root = None
            except BaseException:
                root.count -= 1
                raise


def _end(path: str, root: _Root) -> None:
    global _root
    if root.pid != os.getpid():
        return  # a child's copy
    shutil.rmtree(path, ignore_errors=True)  # what stays is for ``sweep``
    with _changes:
        root.count -= 1
        if root.count:
            return
        if root is _root:
            _root = None
    root.remove()


def _make() -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX)
        try:
            locked = os.open(path, _OPENED)
        except FileNotFoundError:
            continue  # swept already
        fcntl.flock(locked, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(locked)):
                return path, locked
        os.close(locked)


def sweep() -> list[str]:
    """Remove the folders whose owners are gone; return their paths. What cannot be removed stays, and the log
    says so. Blocks.
    """
    swept: list[str] = []
    try:
        with os.scandir(tempfile.gettempdir()) as entries:
            found = [entry for entry in entries if entry.name.startswith(PREFIX)]
    except OSError as error:
        _log.warning("temporary files of servers that are gone are not looked for: %s", error)
        return swept
    for entry in found:
        try:
            ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
            if ours and entry.is_dir(follow_symlinks=False) and _take_away(entry.path):
                swept.append(entry.path)
        except FileNotFoundError:
            continue  # its owner, or another sweep, was faster
        except OSError as error:
            _log.warning("a temporary folder of a server that is gone stays: %s", error)
    return swept


def _take_away(path: str) -> bool:
    opened = os.open(path, _OPENED)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        shutil.rmtree(path, onerror=_left)
        return not os.path.lexists(path)
    finally:
        os.close(opened)


def _left(_call: Any, path: str, error: Any) -> None:
    _log.warning("a temporary file of a server that is gone stays: %s: %s", path, error[1])
