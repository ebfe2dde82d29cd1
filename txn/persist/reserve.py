"""Space kept for a full disk, so that what makes room can still be written, and the server still starts.

    held        a file of ``size`` bytes that the file system has allocated: everything may be written
    given up    it is removed, for a commit that makes room, a flush, or a start: nothing else is written any more (``short``)
    held again  as soon as there is space for a quarter of it, and some to write

What makes room: DELETE, TRUNCATE, DROP (``makes_room``), CHECKPOINT and VACUUM. Other commits are refused while space is ``short``,
whether or not theirs would fit, with how much is missing.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from txn.errors import OutOfSpace
from txn.records import WriteSet
from txn.types import ShardId

NAME: Final = "reserve"
START_BYTES: Final = 1 << 20
"""What a start may write."""

_log = logging.getLogger(__name__)


class Reserve:
    """The reserve of one data directory. ``size`` 0: there is none, and nothing is ever ``short``."""

    def __init__(self, folder: str, size: int) -> None:
        """Allocate it, or what there is space for; without any, only what makes room is written."""
        self._folder = folder
        self._path = os.path.join(folder, NAME)
        self.size = size
        self.short = False
        if not size:
            self._remove()
        elif not self._take():
            self.give_up("the server starts")

    @property
    def wanted(self) -> int:
        """How many bytes have to be free before everything may be written again: for a quarter of the reserve, and some to write."""
        return self.size // 4 + START_BYTES

    def free(self) -> int:
        """Return how many bytes the server could write, besides the reserve."""
        found = os.statvfs(self._folder)
        return found.f_bavail * found.f_frsize

    def give_up(self, why: str) -> bool:
        """Make the space of the reserve free, for what makes room. False: there is none any more."""
        if not self.size:
            return False
        had = self._remove()
        if not self.short:
            _log.warning("the disk is full: %s, with the %d bytes that were kept for that", why, self.size)
        self.short = True
        return had

    def check(self, bytes_needed: int) -> None:
        """Raise OutOfSpace while space is short, unless there is enough again."""
        if not self.short:
            return
        if self._take():
            self.short = False
            _log.warning("there is space again: everything may be written")
            return
        raise self.refusal(bytes_needed)

    def refusal(self, bytes_needed: int) -> OutOfSpace:
        """Return the error of a commit of so many bytes."""
        error = OutOfSpace("the device is full")
        error.needed = max(bytes_needed, self.wanted if self.short else 0)
        error.free = self.free()
        return error

    def _remove(self) -> bool:
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return False
        return True

    def _take(self) -> bool:
        """Allocate the file, as much of it as there is space for, a quarter at least; tell whether it is there.

        What the log has let go of within its own file does not count as free, so that little may be free for good.
        """
        held = self._held()
        size = min(self.size, held + max(self.free() - START_BYTES, 0))
        if size < self.size // 4:
            return False
        return held >= size or self._allocate(size)

    def _held(self) -> int:
        """Return the size of the file, 0 if there is none."""
        try:
            return os.stat(self._path).st_size
        except FileNotFoundError:
            return 0

    def _allocate(self, size: int) -> bool:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            os.posix_fallocate(fd, 0, size)
            return True
        except OSError:
            self._remove()
            return False
        finally:
            os.close(fd)


def make_way(folder: str) -> None:
    """Give the reserve of a stopped server up where not even its start would find space."""
    try:
        found = os.statvfs(folder)
        if found.f_bavail * found.f_frsize < START_BYTES:
            os.unlink(os.path.join(folder, NAME))
    except FileNotFoundError:
        pass


def makes_room(changes: WriteSet, own: frozenset[ShardId]) -> bool:
    """Tell whether a commit only takes rows away: from tables, or, as it drops or empties one, from the catalog (``own``), too."""
    ends = any(change.forget or change.truncate for change in changes.schema)
    for change in changes.schema:
        if not (change.forget or change.truncate):
            return False
    for shard in changes.shards:
        if shard.parts:
            return False
        if not (ends and shard.shard in own) and any(op.values is not None for op in shard.ops):
            return False
    return True
