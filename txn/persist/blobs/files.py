"""Blobs as files of a local directory, durable when a call returns.

    write  tmp/<n>   ->  fsync file  ->  rename to its name  ->  fsync the directory

A crash leaves at most files in ``tmp``, which the next opening removes. Other processes write by a grant,
which is a folder in ``tmp``: what they have begun there cannot get its name once the folder has been renamed
away. Folders that somebody has removed under a running server are made again, but for those whose absence
says that one may write no more, and where they are is not where they were (the data directory was renamed, a
file system unmounted): a file that is not below what was opened would be missing after the next start. System
calls go through a ``Files`` object, so that tests can make each of them fail (no space, I/O error). Names are
never overwritten.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar, cast

from txn.base.errors import Displaced, FileTrouble
from txn.persist.location import Indeterminate, Offload, in_thread
from txn.persist.regular import regular
from txn.persist.sized import Sized, not_written
from txn.persist.trouble import again, number_of, opened, reading, reason_of, refused, said, whole

T = TypeVar("T")
_NAME = re.compile(r"[0-9a-z._-]+(/[0-9a-z._-]+)*\Z")


class Files:
    """The system calls that a blob store makes; a test replaces them."""

    def open_new(self, path: str) -> BinaryIO:
        """Create a file for writing; it must not exist."""
        return open(path, "xb", buffering=1 << 20)

    def read(self, path: str) -> bytes:
        """Return what a file holds."""
        with opened(path) as file:
            return whole(file)

    def sync(self, file: BinaryIO) -> None:
        """Flush Python's buffer and fsync."""
        file.flush()
        os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        """Rename within a file system."""
        os.rename(source, target)

    def sync_directory(self, path: str) -> None:
        """Fsync a directory, which makes names in it durable."""
        fd = again(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_durably(path: str, text: str) -> None:
    """Write a small text file whole or not at all; it and its directory's name are durable on return."""
    files = Files()
    try:
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        _discard(path + ".new")
        raise
    files.rename(path + ".new", path)
    folder = os.path.dirname(os.path.abspath(path))
    files.sync_directory(folder)
    files.sync_directory(os.path.dirname(folder))


class LocalBlob:
    """Blob over the directory ``root``, which is created if need be. One owner at a time (see leadership)."""

    remote = False

    def __init__(
        self,
        root: str,
        *,
        writer: str = "",
        leads: Callable[[], bool] | None = None,
        files: Files | None = None,
        offload: Offload = in_thread,
        owned: Callable[[], None] | None = None,
    ) -> None:
        """Removes what an earlier owner left in ``tmp``.

        ``writer``: this owner's folder in there, where owners share the directory. One that was deposed and
        does not know it yet finds its own removed, and can publish nothing more. ``leads``: tells, in any
        thread, that no other can have removed it yet, so that it is made again; None: nobody can tell that
        where there is a ``writer``, and without one it always holds. ``owned``: raises Displaced, in any
        thread, if the directory around it is not the one that it was.
        """
        self._root = os.path.abspath(root)
        self._files = files or Files()
        self._offload = offload
        self._tmp = os.path.join(self._root, "tmp")
        self._counter = 0
        self._known_directories = {self._root}
        self._leads = leads or (lambda: not writer)
        self._owned = owned
        os.makedirs(self._tmp, exist_ok=True)
        for name in os.listdir(self._tmp):
            path = os.path.join(self._tmp, name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)  # its owner may be adding to it this moment
            else:
                _unlink_quietly(path)
        self._own_tmp = os.path.join(self._tmp, writer) if writer else self._tmp
        os.makedirs(self._own_tmp, exist_ok=True)
        self._files.sync_directory(self._root)
        self._files.sync_directory(os.path.dirname(self._root))
        self._device: int | None = os.stat(self._root).st_dev

    async def put(self, name: str, data: bytes) -> None:
        """See Blob."""
        await self.publish(name, lambda file: _write_all(file, data))

    async def publish(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """See Blob."""
        path = self.local_path(name)
        self._counter += 1
        tmp = os.path.join(self._own_tmp, str(self._counter))
        return await self._offload(lambda: self._publish(tmp, path, write))

    def _publish(self, tmp: str, path: str, write: Callable[[BinaryIO], None]) -> int:
        if os.path.exists(path):
            raise FileExistsError(path)
        renamed = False
        sized: Sized | None = None
        try:
            with self._made_again(lambda: again(lambda: self._files.open_new(tmp))) as file:
                sized = Sized(file)
                write(cast(BinaryIO, sized))
                sized.check()
                self._files.sync(file)
                size = file.tell()
            self._rename(tmp, path)
            renamed = True
            self._files.sync_directory(os.path.dirname(path))
            self.check_place()
        except OSError as error:
            if renamed:  # under its name it may or may not outlast a power failure: nobody may refer to it
                raise Indeterminate(f"could not write a data file: {error}") from error
            _discard(tmp)
            raise not_written(error, sized, self._root) from error
        except BaseException:
            if not renamed:
                _discard(tmp)
            raise
        return size

    def check_place(self) -> None:
        """Raise Displaced unless ``root`` is where it was opened, whether or not somebody has removed it there."""
        if self._owned is not None:
            self._owned()
        for path in (self._root, os.path.dirname(self._root)):
            try:
                device = os.stat(path).st_dev
            except FileNotFoundError:
                continue
            except OSError:
                return  # nothing is known of it
            if self._device not in (None, device):
                raise Displaced(self._root, "was unmounted or replaced by another")
            return

    def _made_again(self, work: Callable[[], T]) -> T:
        """Do ``work`` in this owner's folder; where somebody has removed that, once more, unless a successor
        may have.
        """
        try:
            return work()
        except FileNotFoundError:
            if os.path.isdir(self._own_tmp) or not self._leads():
                raise
            self.check_place()
            os.makedirs(self._own_tmp, exist_ok=True)
            self._known_directories = {os.path.dirname(self._root)}
            if not self._leads():  # a successor may have looked by now, and relies on it that there is none
                with suppress(OSError):
                    os.rmdir(self._own_tmp)
                raise
        return work()

    def _rename(self, tmp: str, path: str) -> None:
        """Give a finished file its name; a directory that somebody has removed is made again."""
        folder = os.path.dirname(path)
        self._make_directory(folder)
        try:
            self._files.rename(tmp, path)
        except FileNotFoundError:
            if os.path.isdir(folder):
                raise  # it is the file that is gone
            self.check_place()
            self._known_directories = {os.path.dirname(self._root)}
            self._make_directory(folder)
            self._files.rename(tmp, path)

    def _make_directory(self, path: str) -> None:
        """Create a directory and its parents up to one that is known, each name durable in its parent."""
        if path in self._known_directories:
            return
        parent = os.path.dirname(path)
        self._make_directory(parent)
        os.makedirs(path, exist_ok=True)
        self._files.sync_directory(parent)
        self._known_directories.add(path)

    async def get(self, name: str) -> bytes | None:
        """See Blob."""
        path = self.local_path(name)

        def read() -> bytes | None:
            try:
                return self._files.read(path)
            except FileNotFoundError:
                return None

        return await self._offload(lambda: reading(path, read))

    async def list(self, prefix: str) -> list[str]:
        """See Blob."""
        return await self._offload(lambda: reading(self._root, lambda: _walk(self._root, self._tmp, prefix)))

    async def delete(self, name: str) -> None:
        """See Blob."""
        path = self.local_path(name)

        def unlink() -> None:
            try:
                again(lambda: _unlink_quietly(path))
            except OSError as error:
                number = number_of(error)
                raise FileTrouble(path, "delete", reason_of(error, number), said(number).kind) from error

        await self._offload(unlink)

    async def grant(self, job: str) -> LocalGrant:
        """See Blob."""
        folder = os.path.join(self._own_tmp, f"grant-{job}")

        def make() -> None:
            try:
                self._made_again(lambda: os.mkdir(folder))
                self.check_place()
            except OSError as error:
                raise refused("a data file", error) from error

        await self._offload(make)
        return LocalGrant(self._root, folder)

    async def revoke(self, job: str) -> None:
        """See Blob."""
        folder = os.path.join(self._own_tmp, f"grant-{job}")

        def end() -> None:
            try:
                self._files.rename(folder, f"{folder}-ended")
            except FileNotFoundError:
                pass  # revoked before
            except OSError as error:
                raise Indeterminate(f"could not end a grant: {error}") from error
            shutil.rmtree(f"{folder}-ended", ignore_errors=True)

        await self._offload(end)

    def local_path(self, name: str) -> str:
        """See Blob."""
        return os.path.join(self._root, checked_name(name))

    async def hold(self, name: str) -> object:
        """See Blob: it is here."""
        return None

    def source(self, name: str) -> Any:
        """See Blob. Raises OSError: it is missing, or is no file."""
        return regular(self.local_path(name))

    def renew(self, name: str) -> object | None:
        """See Blob: there is nothing else to read."""
        return None

    async def keep(self, part: str) -> None:
        """See Blob: they are here."""


def checked_name(name: str) -> str:
    """Return a blob's name. Raises ValueError if it is none."""
    if not _NAME.match(name) or ".." in name or name.startswith("tmp/"):
        raise ValueError(f"not a blob name: {name!r}")
    return name


class _LentBlob(LocalBlob):
    """The blobs as a worker writes them by a grant: nothing of others in ``tmp`` is touched."""

    def __init__(self, root: str, folder: str, worker: str) -> None:
        self._root = root
        self._files = Files()
        self._offload = in_thread
        self._tmp = os.path.join(root, "tmp")
        self._own_tmp = os.path.join(folder, worker)
        self._counter = 0
        self._known_directories = {root}
        self._leads = _never  # that its folder is gone is how it learns that the grant has ended, or that it is elsewhere
        self._owned = self._device = None
        try:
            os.mkdir(self._own_tmp)
        except OSError as error:
            raise refused("a data file", error) from error


@dataclass(frozen=True, slots=True)
class LocalGrant:
    """A folder in ``tmp`` to write in; see BlobGrant. Workers see ``root`` under the same path."""

    root: str
    folder: str

    def open(self, worker: str) -> LocalBlob:
        """See BlobGrant."""
        return _LentBlob(self.root, self.folder, worker)


def _never() -> bool:
    return False


def _walk(root: str, skip: str, prefix: str) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(root, onerror=_unless_gone):
        if folder == skip:
            continue
        relative = os.path.relpath(folder, root)
        for name in names:
            full = name if relative == "." else f"{relative}/{name}"
            if full.startswith(prefix):
                found.append(full)
    return sorted(found)


def _unless_gone(error: OSError) -> None:
    """Raise what a directory's listing met, unless it has just been removed."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _write_all(file: BinaryIO, data: bytes) -> None:
    file.write(data)


def _discard(path: str) -> None:
    """Remove what could not be written, if that is possible: the next start clears the directory, and why it
    was not written counts.
    """
    with suppress(OSError):
        os.unlink(path)


def _unlink_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
