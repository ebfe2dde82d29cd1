"""Space kept for a full disk, so that what makes room can still be written, and the server still starts.

    held        a file of ``size`` bytes that the file system has allocated: everything may be written
    given up    it is cut down to ``last`` bytes for a flush or a small change of the catalog (``give_up``), and those, a little at a time, for
                commits that make room, for trimming the log, and for a start (``give_some``): nothing else is
                written any more (``short``)
    held again  as soon as there is space for a quarter of it, and some to write

What makes room: DELETE, TRUNCATE, DROP (``makes_room``), CHECKPOINT and VACUUM. Small changes of the catalog
(DROP INDEX, GRANT, COMMENT: ``small_change``) go on as long as there is more than the last bytes. Other
commits are refused while space is ``short``, whether or not theirs would fit, with how much is missing.
"""

from __future__ import annotations

import logging
import os
import resource
import stat
from contextlib import suppress
from typing import Final

from txn.base.errors import OutOfSpace
from txn.base.records import WriteSet
from txn.base.types import ShardId
from txn.persist.logs.space import free_bytes, no_more_files
from txn.persist.regular import NotRegularFile, open_regular
from txn.persist.trouble import number_of, reason_of

NAME: Final = "reserve"
START_BYTES: Final = 1 << 20
"""What a start may write."""
STEPS: Final = 8
"""In how many steps the last bytes are given up."""
MAX_LAST: Final = 4 << 20
SMALL_CHANGE_BYTES: Final = 64 << 10
"""What a change of the catalog may hold and still be a small one."""

_log = logging.getLogger(__name__)


class Reserve:
    """The reserve of one data directory. ``size`` 0: there is none, and nothing is ever ``short``."""

    _met: str | None = None
    """Why it could not be allocated, the last time."""

    def __init__(self, folder: str, size: int) -> None:
        """Allocate it, or what there is space for; without any, only what makes room is written.

        Raises OSError: NotRegularFile, if something else has its name: that is not a full disk.
        """
        self._folder = folder
        self._path = os.path.join(folder, NAME)
        longest, _hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.size = size = size if longest == resource.RLIM_INFINITY else min(size, longest)
        self.short = False
        if not size:
            self._resize(0)
            return
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(self._path).st_mode):
                raise NotRegularFile.at(self._path)
        if not self._take():
            self.give_some("the server starts")

    @property
    def last(self) -> int:
        """How many bytes only what makes room, trimming and starting may have."""
        return min(self.size // 4, MAX_LAST)

    @property
    def wanted(self) -> int:
        """How many bytes have to be free before everything may be written again: for a quarter of the
        reserve, and some to write.
        """
        return max(self.size // 4 - self._held(), 0) + START_BYTES

    @property
    def tight(self) -> bool:
        """Whether what is asked to make room has to: space is short, or will be with the next few commits, or
        no other file can be made.
        """
        return bool(self.size) and (self.short or self.free() < START_BYTES or self.crowded())

    def crowded(self) -> bool:
        """Tell whether no other file can be made, however many bytes are free."""
        return no_more_files(self._folder)

    def free(self) -> int:
        """Return how many bytes the server could write, besides the reserve."""
        return free_bytes(self._folder)

    def give_up(self, why: str) -> bool:
        """Make the space of the reserve free, but for its last bytes. False: there are none beside those."""
        return self._cut(why, self.last)

    def give_some(self, why: str) -> bool:
        """Make some space free for what makes room: all but the last bytes, then a part of these. False:
        there is nothing any more.
        """
        held = self._held()
        return self._cut(why, self.last if held > self.last else max(held - self.last // STEPS, 0))

    def give_to_flush(self) -> bool:
        """Make some space free for a flush: all but the last bytes; of these a step, for manifests, as long
        as less than that is free.
        """
        why = "what is in memory is written to parts"
        return self.give_up(why) or (self.free() < self.last // STEPS and self.give_some(why))

    def _cut(self, why: str, to: int) -> bool:
        """Leave ``to`` bytes of the file; tell whether it had more."""
        if not self.size:
            return False
        given = self._held() - to
        if given > 0:
            self._resize(to)
        if not self.short:
            _log.warning("the disk is full: %s, with %d bytes that were kept for that", why, max(given, 0))
        self.short = True
        return given > 0

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
        needed, free = max(bytes_needed, self.wanted if self.short else 0), self.free()
        if free >= needed and self._met is not None:  # what is free is not the server's to have
            error.lacking = self._met
        else:
            error.needed, error.free = needed, free
        return error

    def _resize(self, size: int) -> None:
        """Make the file smaller."""
        shrink(self._path, size)

    def _take(self) -> bool:
        """Allocate the file, as much of it as there is space for, a quarter at least; tell whether it is there.

        What the log has let go of within its own file does not count as free, so that little may be free for good.
        """
        held, free = self._held(), self.free()
        size = min(self.size, held + max(free - START_BYTES, 0))
        if size < self.size // 4 or (self.short and free < START_BYTES):
            return False
        while held < size and not self._allocate(size, held):
            size //= 2  # a quota may leave less than is free
            if size < self.size // 4:
                return False
        self._met = None
        return True

    def _held(self) -> int:
        """Return the size of the file, 0 if there is none."""
        try:
            return os.stat(self._path).st_size
        except FileNotFoundError:
            return 0

    def _allocate(self, size: int, held: int) -> bool:
        try:
            fd = open_regular(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            self._met = f"its reserve cannot be opened ({reason_of(error, number_of(error)).lower()})"
            return False
        try:
            os.posix_fallocate(fd, 0, size)
            return True
        except OSError as error:
            os.ftruncate(fd, held)
            self._met = reason_of(error, number_of(error)).lower()
            return False
        finally:
            os.close(fd)


def shrink(path: str, size: int) -> None:
    """Leave at most ``size`` bytes of a file, if it is there; without any it goes."""
    try:
        if not size:
            os.unlink(path)
        elif os.stat(path).st_size > size:
            os.truncate(path, size)
    except FileNotFoundError:
        pass


def make_way(folder: str, size: int) -> None:
    """Give the reserve (of ``size`` bytes when it is whole) up, some of it, where not even a start would find
    space. Of a locked directory.
    """
    if not size:
        return
    path = os.path.join(folder, NAME)
    try:
        free = free_bytes(folder)
        held = os.stat(path).st_size
    except FileNotFoundError:
        return
    if free < START_BYTES:
        last = min(size // 4, MAX_LAST)
        shrink(path, last if held > last else max(held - last // STEPS, 0))


def makes_room(changes: WriteSet, own: frozenset[ShardId]) -> bool:
    """Tell whether a commit only takes rows away: from tables, or, as it drops or empties one, from the
    catalog (``own``), too.
    """
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


def small_change(changes: WriteSet, own: frozenset[ShardId], size: int) -> bool:
    """Tell whether a commit changes the catalog (``own``) alone, little of it (``size``: of its encoded form,
    bytes), and makes no table.
    """
    return (
        size <= SMALL_CHANGE_BYTES
        and all(shard.shard in own and not shard.parts for shard in changes.shards)
        and not any(change.forget or change.truncate for change in changes.schema)
    )
