"""Local copies of blobs that lie in an object store: files of one directory, bounded in size.

    <root>/tmp/<n>      being fetched or written
    <root>/<name>       a whole blob, checked when it was fetched

    kept     sidecars of open parts: mapped, and opened without waiting, so they stay until they are deleted
    held     part files that an engine is reading: they stay while what ``hold`` returned is referenced
    others   go when the budget is exceeded, the least recently used first

Kept and held files, and the file used last, may exceed the budget; what does is removed as soon as it is let go.
Everything in here is also in the store: the directory is emptied when it is opened. Used from many threads; one fetches
a name, others wait for it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from txn.base.errors import OutOfSpace
from txn.persist.logs.space import NO_SPACE


class Hold:
    """Keeps a file in place while it is referenced."""

    __slots__ = ("_cache", "_entry")

    def __init__(self, cache: FileCache, entry: _Entry) -> None:
        self._cache = cache
        self._entry = entry
        entry.holds += 1

    def __del__(self) -> None:
        self._cache._let_go(self._entry)


class _Entry:
    __slots__ = ("bytes", "holds", "kept")

    def __init__(self, size: int) -> None:
        self.bytes = size
        self.holds = 0
        self.kept = False


class FileCache:
    """The directory ``root``, emptied. ``budget_bytes``: what files that nobody needs right now may take."""

    def __init__(self, root: str, budget_bytes: int) -> None:
        """Raises OSError."""
        self.root = os.path.abspath(root)
        self.budget_bytes = budget_bytes
        self.bytes = 0
        self.fetched = 0
        """Files fetched from the store, so far."""
        self.evicted = 0
        self._lock = threading.RLock()  # a Hold may end, by the collector, inside of any of these methods
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._fetching: dict[str, threading.Event] = {}
        self._counter = 0
        shutil.rmtree(self.root, ignore_errors=True)
        self._tmp = os.path.join(self.root, "tmp")
        os.makedirs(self._tmp, mode=0o700, exist_ok=True)

    def path(self, name: str) -> str:
        """Return where a blob's copy is, or would be."""
        return os.path.join(self.root, name)

    def new_file(self) -> str:
        """Return the path of a new file to write, which ``adopt`` or ``discard`` takes."""
        os.makedirs(self._tmp, mode=0o700, exist_ok=True)  # somebody may have emptied the directory
        with self._lock:
            self._counter += 1
            return os.path.join(self._tmp, str(self._counter))

    def discard(self, path: str) -> None:
        """Remove a file that ``new_file`` named, if it is there."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def adopt(self, name: str, path: str, *, keep: bool = False) -> None:
        """Take a finished file as the copy of ``name``."""
        size = os.path.getsize(path)
        target = self.path(name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with self._lock:
            self.drop(name)
            os.rename(path, target)
            entry = self._entries[name] = _Entry(size)
            entry.kept = keep
            self.bytes += size
            self._evict()

    def open(self, name: str) -> Any:
        """Return the copy as a memory-mapped pyarrow file, None if there is none."""
        with self._lock:
            if name not in self._entries:
                return None
            self._entries.move_to_end(name)
            return pa.memory_map(self.path(name))

    def hold(self, name: str, fetch: Callable[[str], None], *, keep: bool = False) -> Hold:
        """Return what keeps the copy of ``name``; ``fetch(path)`` writes it where there is none. Blocks.

        ``keep``: it stays also when nobody holds it. Raises what ``fetch`` raises, and OutOfSpace.
        """
        while True:
            with self._lock:
                entry = self._entries.get(name)
                if entry is not None:
                    self._entries.move_to_end(name)
                    entry.kept |= keep
                    return Hold(self, entry)
                other = self._fetching.get(name)
                if other is None:
                    self._fetching[name] = threading.Event()
            if other is not None:
                other.wait()
                continue
            try:
                return self._fetch(name, fetch, keep)
            finally:
                with self._lock:
                    self._fetching.pop(name).set()

    def renew(self, name: str, fetch: Callable[[str], None], *, keep: bool = False) -> Hold:
        """Fetch a copy that is damaged, or gone, anew; as ``hold``. Who holds it holds the new one, who has
        it open reads on in the old.
        """
        while True:
            with self._lock:
                other = self._fetching.get(name)
                if other is None:
                    self._fetching[name] = threading.Event()
                    break
            other.wait()
        try:
            return self._fetch(name, fetch, keep)
        finally:
            with self._lock:
                self._fetching.pop(name).set()

    def _fetch(self, name: str, fetch: Callable[[str], None], keep: bool) -> Hold:
        path = self.new_file()
        try:
            fetch(path)
            with self._lock:
                self.fetched += 1
                self._replace(name, path, keep)
                return Hold(self, self._entries[name])
        except OSError as error:
            self.discard(path)
            if error.errno in NO_SPACE:
                raise OutOfSpace(f"could not keep a copy of {name}: {error.strerror}") from error
            raise
        except BaseException:
            self.discard(path)
            raise

    def _replace(self, name: str, path: str, keep: bool) -> None:
        """``adopt``; where there is a copy already, the new one takes its place, holders and all."""
        entry = self._entries.get(name)
        if entry is None:
            self.adopt(name, path, keep=keep)
            return
        size = os.path.getsize(path)
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.rename(path, self.path(name))
        self.bytes += size - entry.bytes
        entry.bytes = size
        entry.kept |= keep
        self._evict()

    def drop(self, name: str) -> None:
        """Remove a copy: the blob is deleted. Who has it open reads on."""
        with self._lock:
            entry = self._entries.pop(name, None)
            if entry is not None:
                self.bytes -= entry.bytes
                self.discard(self.path(name))

    def _let_go(self, entry: _Entry) -> None:
        with self._lock:
            entry.holds -= 1
            self._evict()

    def _evict(self) -> None:
        """Remove the least recently used files that nobody needs; never the last one used."""
        if self.bytes <= self.budget_bytes:
            return
        for name in list(self._entries)[:-1]:
            entry = self._entries.get(name)
            if entry is not None and not entry.holds and not entry.kept:
                del self._entries[name]
                self.bytes -= entry.bytes
                self.evicted += 1
                self.discard(self.path(name))
                if self.bytes <= self.budget_bytes:
                    return
