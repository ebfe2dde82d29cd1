"""The one door through which files are read: what the system says to a read, told from what a file says of itself.

    passing    too many open files, no memory, an I/O error, a time-out ...     tried again, TRIES times in all, with a pause
    final      no such file; no right to it; not a directory ...                at once
    damage     a checksum, a length or a form that is wrong                     DamagedFile, which its part remembers
    at a start what a table needs and cannot be read                            DamagedFile (``unread``) until the next start

A read that says "not now" without an error (``opened``), or gives less than the file has (``exactly``,
``whole``), is one that passes, too.

Nothing the system says is damage, and nothing of it is remembered: the next read asks again. A file that is
not there is damage (MissingFile). ``KINDS`` has every number of ``errno``; what is not named in it passes for
an I/O error, tried once.

Writes are not tried again behind their first byte, and a failed fsync never is: the page may be marked clean,
so that a second one would succeed over data that was lost. ``refused`` says what becomes of them.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeVar

import pyarrow as pa

from txn.base.errors import (
    CopyDamaged,
    DamagedFile,
    FileTrouble,
    MissingFile,
    OutOfSpace,
    StorageError,
    TroubleKind,
)
from txn.persist.location import Indeterminate
from txn.persist.logs.space import NO_SPACE
from txn.persist.regular import NotRegularFile, open_regular

T = TypeVar("T")

TRIES: Final = 4
PAUSE_S: Final = 0.02
"""Before the second try; twice as long before each further one."""
_READ_BYTES: Final = 128 << 10


@dataclass(frozen=True, slots=True)
class Said:
    """What a number of ``errno`` means: what is short (``kind``), and whether it may be over when asked again."""

    kind: TroubleKind
    passing: bool


_IO, _IO_PASSING = Said("io", False), Said("io", True)
_NAMED: Final = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), Said("files", True)),
    **dict.fromkeys((errno.ENOMEM, errno.ENOBUFS), Said("memory", True)),
    **dict.fromkeys(NO_SPACE, Said("space", False)),
    **dict.fromkeys(
        (
            errno.EIO, errno.EINTR, errno.EAGAIN, errno.EBUSY, errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO, errno.ENXIO,
            errno.ECONNRESET, errno.ECONNABORTED, errno.ENOTCONN, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN,
            errno.ENETRESET, errno.ENOLCK, errno.EDEADLK,
        ),
        _IO_PASSING,
    ),
}  # fmt: skip
KINDS: Final[Mapping[int, Said]] = {number: _NAMED.get(number, _IO) for number in errno.errorcode}
_TEXTS: Final = {os.strerror(number).lower(): number for number in errno.errorcode}
_NUMBER = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)


def said(number: int | None) -> Said:
    """Return what a number means; one that nobody knows is an I/O error."""
    return KINDS.get(number or 0, _IO)


def number_in(text: str) -> int | None:
    """Return the number of ``errno`` that a library's message tells of, None if it tells of none."""
    found = _NUMBER.search(text)
    if found is not None:
        return int(found.group(1))
    lowered = text.lower()
    return next((number for words, number in _TEXTS.items() if words in lowered), None)


def number_of(error: OSError) -> int | None:
    """Return what the system said; None where it said nothing, and a library raised the error by itself."""
    return error.errno if error.errno else number_in(str(error))


def reason_of(error: BaseException, number: int | None) -> str:
    """Return the system's words for an error, or the library's where it tells no number."""
    if isinstance(error, NotRegularFile):
        return str(error.strerror)
    return os.strerror(number) if number else str(error)


def _told(path: str, error: OSError | MemoryError) -> FileTrouble | DamagedFile | OutOfSpace:
    """Return what to raise for what a read has met."""
    if isinstance(error, MemoryError):
        return FileTrouble(path, "read", "Cannot allocate memory", "memory")
    if isinstance(error, FileNotFoundError):
        return MissingFile(error.filename if isinstance(error.filename, str) else path)
    number = number_of(error)
    if number is None:  # Arrow and Parquet: what they have read is not what they read
        return DamagedFile(path, str(error))
    if number == errno.ENOENT:
        return MissingFile(path)
    meant = said(number)
    if meant.kind == "space":  # a cache that has to make room
        return OutOfSpace(f"could not read {path}: {reason_of(error, number)}")
    return FileTrouble(path, "read", reason_of(error, number), meant.kind)


def is_passing(error: BaseException) -> bool:
    """Tell whether the same may succeed when it is tried again."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, OSError) and said(number_of(error)).passing


def again(
    work: Callable[[], T],
    passing: Callable[[BaseException], bool] = is_passing,
    pause_s: Callable[[], float] = lambda: PAUSE_S,
) -> T:
    """Do ``work``, which has no effect where it fails, again while what it meets may pass. On the event loop
    it is tried once more, at once.

    ``passing``: tells whether an error may. ``pause_s``: before the second try; doubled before each further one.
    """
    tries = TRIES if _may_wait() else 2
    for number in range(1, tries):
        try:
            return work()
        except (OSError, MemoryError) as error:
            if not passing(error):
                raise
        if tries == TRIES:
            time.sleep(pause_s() * 2 ** (number - 1))
    return work()


def _may_wait() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


@contextmanager
def telling(path: str) -> Iterator[None]:
    """Turn what a read of ``path`` meets into MissingFile, DamagedFile, FileTrouble or OutOfSpace."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise DamagedFile(path, str(error)) from error
    except (OSError, MemoryError) as error:
        raise _told(path, error) from error


class _Aloud(io.FileIO):
    """A file whose reads say EAGAIN: Python's give None for it, and buffered ones then less than was asked
    for, as at the end.
    """

    def readinto(self, buffer: Any) -> int:
        """See io. Raises OSError."""
        found = super().readinto(buffer)
        if found is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), self.name)
        return found

    def readall(self) -> bytes:
        """See io. Raises OSError."""
        pieces = []
        buffer = bytearray(_READ_BYTES)
        while found := self.readinto(buffer):
            pieces.append(bytes(buffer[:found]))
        return b"".join(pieces)


def opened(file: str | int) -> BinaryIO:
    """Open a regular file, or take an open descriptor, for reading: reads raise OSError wherever the system
    gave nothing, and None never.

    Raises OSError: NotRegularFile for a pipe, which would be waited for.
    """
    return io.BufferedReader(_Aloud(file, "rb", opener=_opener), _READ_BYTES)


def _opener(path: str, _flags: int) -> int:
    return open_regular(path)


def exactly(file: BinaryIO, size: int) -> bytes:
    """Read so many bytes, which the file has. Raises OSError (EIO) where fewer come: that passes, and tells
    nothing of the file.
    """
    data = file.read(size)
    if data is None or len(data) < size:
        raise OSError(errno.EIO, "Short read", getattr(file, "name", None))
    return data


def whole(file: BinaryIO) -> bytes:
    """Read a file from its beginning to its end. Raises OSError (EIO) where less comes than it has."""
    return exactly(file, os.fstat(file.fileno()).st_size)


@contextmanager
def starting() -> Iterator[None]:
    """Turn what the system will not read of one file, however often it is asked, into DamagedFile
    (``unread``): a start depends on no single one.

    What is short for all of them (descriptors, memory), and what is being fetched, goes on as it is.
    """
    try:
        yield
    except FileTrouble as error:
        if error.kind != "io" or isinstance(error, CopyDamaged):
            raise
        raise DamagedFile(error.file, error.reason, unread=True) from error


def small_text(path: str) -> str:
    """Return what a small file of text holds, by which a directory says what it is. Raises OSError,
    UnicodeDecodeError.
    """
    with opened(path) as file:
        return file.read(_READ_BYTES).decode()


def reading(path: str, work: Callable[[], T]) -> T:
    """Do ``work``, which reads ``path``: ``again``, and ``telling``."""
    with telling(path):
        return again(work)


def renewing(path: str, work: Callable[[], T], renew: Callable[[], object | None]) -> T:
    """Do ``reading(path, work)``; where it meets damage and ``renew`` (``Blob.renew``) has another copy to
    read, once more.
    """
    try:
        return reading(path, work)
    except DamagedFile:
        with telling(path):
            copy = renew()
        if copy is None:
            raise
    found = reading(path, work)
    del copy  # it is held until now
    return found


def refused(what: str, error: OSError) -> StorageError | OutOfSpace:
    """Return what to raise for a write that has had no effect, or none that counts."""
    number = number_of(error)
    meant = said(number)
    if meant.kind == "space":
        full = OutOfSpace(f"could not write {what}: {reason_of(error, number)}")
        if number != errno.ENOSPC:
            full.lacking = reason_of(error, number).lower()
            full.helped = number != errno.EFBIG
        return full
    made = Indeterminate(f"could not write {what}: {error}")
    made.kind = meant.kind
    return made
