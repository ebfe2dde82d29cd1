"""Who may write: one process per data directory, one epoch per process (A38-A41, L10, U2).

Three fences:

- ``DirectoryLock``: an ``flock`` on ``<data>/lock`` for the life of the process, and one on the directory
  itself, which stays when somebody removes the file. A second server on the same machine fails at once, with
  the holder's name. The kernel releases both however the process ends. It also tells when the directory
  itself is not where it was any more (``check``): then the server stops, because what has a path is written
  elsewhere.
- the epoch: raised in consensus at every start and checked *inside* every append and compare-and-set, which
  is what holds if the first fence does not (network file systems, a store shared by machines).
- the lease (``txn.log.lease``), where servers share a consensus store: it makes local what is no write, namely that
  a leader's reads are not stale.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from txn.base.errors import DataDirectoryInUse, Displaced, TxnError, UnknownFormat
from txn.base.time import Clock
from txn.log.lease import Lease, LeaseOptions, Waiting, take_lease
from txn.persist.blobs.files import write_durably
from txn.persist.location import Consensus, in_thread
from txn.persist.regular import open_regular
from txn.persist.trouble import small_text

DIRECTORY_FORMAT = 1
DATA = "data"
SCRATCH = "server"
"""Kinds of directories: one with a database in it, one of a server whose database is elsewhere."""
LOOK_S = 1.0
"""How often a server looks whether its data directory is still there."""


class DirectoryLock:
    """Ownership of a data directory. Held from ``acquire`` to ``release`` or the end of the process."""

    def __init__(self, path: str, fd: int, directory: int) -> None:
        """Use ``acquire``."""
        self.path = path
        self._fd: int | None = fd
        self._directory = directory
        self._locked = os.fstat(directory)

    @classmethod
    def acquire(
        cls, path: str, clock: Clock, kind: str = DATA, room: Callable[[], None] | None = None
    ) -> DirectoryLock:
        """Create the directory if need be, lock it, check its format and that it is of ``kind``.

        ``room``: makes space, where there is none, for what is written in it; called once the directory is locked.

        Raises:
            DataDirectoryInUse: another process (or another lock of this one) holds it.
            UnknownFormat: it belongs to a newer server, or holds something else.
        """
        path = os.path.abspath(path)
        os.makedirs(path, mode=0o700, exist_ok=True)
        fd = open_regular(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        directory = -1
        try:
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if not _locked(fd):
                holder = os.read(fd, 4096).decode(errors="replace").strip()
                raise DataDirectoryInUse(path, holder or "an unknown process")
            with suppress(
                OSError
            ):  # a network file system may not lock directories: then the file alone counts
                if not _locked(directory):
                    raise DataDirectoryInUse(path, "a process whose lock file was removed")
            if room is not None:
                room()
            text = f"pid {os.getpid()} on {socket.gethostname()}, started at Unix ms {clock.now_ms()}\n"
            os.ftruncate(fd, 0)
            os.pwrite(fd, text.encode(), 0)
            _check_format(path, kind)
        except BaseException:
            os.close(fd)
            if directory >= 0:
                os.close(directory)
            raise
        return cls(path, fd, directory)

    def check(self) -> None:
        """Compare what is at the path with what was locked. In any thread; what the system will not tell is
        not taken for a change.

        Raises Displaced: it was renamed, removed or unmounted, or something is in its place. Open files are
        still in the one that was locked, and what is opened from now on is not.
        """
        try:
            there = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise Displaced(self.path, "was renamed, removed or unmounted") from None
        except OSError:
            return
        if not os.path.samestat(there, self._locked):
            raise Displaced(self.path, "was replaced by another")

    def release(self) -> None:
        """Give the directory up. Idempotent."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            os.close(self._directory)
            self._fd = None


async def watch(check: Callable[[], None], lost: Callable[[TxnError], None]) -> None:
    """Do ``check``, which blocks, every ``LOOK_S`` until it raises Displaced, and tell ``lost``."""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            await in_thread(check)
        except Displaced as error:
            lost(error)
            return


def _locked(fd: int) -> bool:
    """Lock what is open, and tell whether nobody else has. Raises OSError: it cannot be locked."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_format(path: str, kind: str) -> None:
    """Write the format file of a new directory, or check it. Durable on return."""
    name = os.path.join(path, "FORMAT")
    try:
        text = small_text(name).strip()
    except FileNotFoundError:
        if set(os.listdir(path)) - {"lock", "FORMAT.new"}:
            raise UnknownFormat(f"{path} is not empty and is not a holdfast data directory") from None
        write_durably(name, f"holdfast {kind} directory, format {DIRECTORY_FORMAT}\n")
        return
    except UnicodeDecodeError:
        text = "not text"
    other = DATA if kind == SCRATCH else SCRATCH
    if text.startswith(f"holdfast {other} directory,"):
        what = (
            "the directory of a server with a shared consensus store; name that (--consensus)"
            if kind == DATA
            else "a data directory with a database in it; a server with --consensus needs another"
        )
        raise UnknownFormat(f"{path} is {what}")
    if text != f"holdfast {kind} directory, format {DIRECTORY_FORMAT}":
        raise UnknownFormat(f"{path}: {text[:80]!r}; this server knows format {DIRECTORY_FORMAT}")


@dataclass(frozen=True, slots=True)
class Leadership:
    """The epoch that this process writes under, and the lease that its reads rest on (None: an flock does)."""

    epoch: int
    lease: Lease | None = None


async def take_leadership(
    consensus: Consensus,
    clock: Clock,
    lease: LeaseOptions | None = None,
    *,
    standby: bool = False,
    waiting: Waiting | None = None,
) -> Leadership:
    """Raise the epoch: from its return on, no older leader can change anything durable (A40).

    What an older leader has appended before is in the log; what it appends later is refused. So the log's end
    read *after* this call is the end of all earlier epochs.

    ``lease``: first wait until no earlier leader's lease can be valid, and hold one (see ``take_lease`` for the
    errors, ``standby`` and ``waiting``). None: nobody else can be reading, raise the epoch at once.
    """
    if lease is not None:
        held = await take_lease(consensus, clock, lease, standby=standby, waiting=waiting)
        return Leadership(held.epoch, held)
    epoch = await consensus.acquire_epoch()
    if epoch is None:
        raise AssertionError("an unconditional acquire_epoch gave no epoch")
    return Leadership(epoch)
