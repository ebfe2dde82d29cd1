"""The folders of FILES sources in object stores: which ones they may use, what lies in them, and what becomes of it.

    server_files = s3://bucket/landing?region=eu-north-1      permits, and says where the store is
    path = 's3://bucket/landing/orders'                       the objects directly below, as for COPY (``engine.base.stored_objects``)

An object appears whole, so none is ever seen half written. It is known by its size and the time the store
gives it, in whole seconds. Moving is copying and deleting: after a crash in between, a copy that is there
already is recognised by the store's ETag. Everything here blocks, or raises.
"""

from __future__ import annotations

from typing import Any, Final

from engine.base.server_files import Roots, ServerFile
from engine.base.stored_objects import (
    StoredObject,
    exists,
    filesystem,
    open_bytes,
    remove,
    split_name,
    upload,
    words_of,
)
from engine.feeds.sources.files_directory import Found, counts
from engine.feeds.sources.reader import Temporary
from planner.base.errors import SqlError

COPY_BYTES: Final = 5 << 30
"""No store copies more in one request; what is larger passes through the server."""
_ETAG: Final = "ETag"


class ObjectFolder:
    """A folder of an object store that a source reads. See ``files_folder.Folder``."""

    stored = True

    def __init__(self, url: str, roots: Roots) -> None:
        """Look whether it can be read.

        Raises:
            SqlError: 22023, 42501, 58P01 (no such bucket), 42809 (an object).
            Temporary: the store does not answer.
        """
        self._roots = roots
        self._at = _permitted(url, roots)
        self.name = self._at.name
        try:
            if "/" in self._at.key and exists(self._at):
                raise SqlError("42809", f'"{self.name}" is an object, not a folder')
            self._check_bucket()
        except OSError as error:
            raise self._refused("open", self.name, error) from None

    def listed(self, pattern: str) -> list[Found]:
        """See Folder."""
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self._at.key, recursive=False, allow_not_found=True)
        try:
            entries = self._store.get_file_info(selector)
            if not entries:
                self._check_bucket()  # which looks the same when it has gone
        except OSError as error:
            raise self._refused("list", self.name, error) from None
        return sorted(
            Found(entry.mtime_ns, entry.base_name, entry.size)
            for entry in entries
            if entry.type == FileType.File and counts(entry.base_name, pattern)
        )

    def shown(self, name: str) -> str:
        """See Folder."""
        return self._at.below(name).name

    def file(self, found: Found) -> ServerFile:
        """See Folder."""
        at = self._at.below(found.name)
        return ServerFile(at.name, at, found.size)

    def is_other(self, found: Found) -> bool:
        """See Folder."""
        there = self._there(found.name)
        return there is not None and there != found

    def put_away(self, found: Found, move_to: str | None) -> None:
        """See Folder."""
        if self._there(found.name) != found:
            return  # another one of that name; or it was put away before a crash
        at = self._at.below(found.name)
        try:
            if move_to is not None:
                self._copy(at, found, _permitted(move_to, self._roots).below(found.name))
            remove(at)
        except OSError as error:
            raise self._refused("put away", at.name, error) from None

    def _copy(self, at: StoredObject, found: Found, to: StoredObject) -> None:
        if exists(to):
            tag = self._tag(at)
            if tag is not None and self._tag(to) == tag:
                return  # copied before a crash, and not yet deleted
            to = StoredObject(to.store, f"{to.key}.{found.mtime_ns}")
        if found.size < COPY_BYTES:
            self._store.copy_file(at.key, to.key)
            return
        with open_bytes(at) as file:
            upload(to, file)

    def _tag(self, at: StoredObject) -> bytes | None:
        with self._store.open_input_stream(at.key) as stream:
            tag: bytes | None = stream.metadata().get(_ETAG)
            return tag

    def _there(self, name: str) -> Found | None:
        """Return what an object is now, None if it is gone."""
        from pyarrow.fs import FileType

        at = self._at.below(name)
        try:
            info = self._store.get_file_info(at.key)
        except OSError as error:
            raise self._refused("look at", at.name, error) from None
        return Found(info.mtime_ns, name, info.size) if info.type == FileType.File else None

    def _check_bucket(self) -> None:
        from pyarrow.fs import FileType

        bucket = self._at.store.bucket
        if self._store.get_file_info(bucket).type == FileType.NotFound:
            raise SqlError("58P01", f'bucket "{bucket}" does not exist')

    @property
    def _store(self) -> Any:
        return filesystem(self._at.store)

    @staticmethod
    def _refused(doing: str, name: str, error: OSError) -> Exception:
        """Return what a store's error means: access that is denied stays so, all else may pass."""
        state, words = words_of(error)
        text = f'could not {doing} "{name}": {words}'
        return SqlError(state, text) if state == "42501" else Temporary(text)


def check_same_store(path: str, move_to: str, roots: Roots) -> None:
    """Raise SqlError 22023 where objects cannot be copied within one store, and what ``ObjectFolder`` does."""
    one, other = _permitted(path, roots).store, _permitted(move_to, roots).store
    if (one.scheme, one.options) != (other.scheme, other.options):
        raise SqlError("22023", 'the options "path" and "move_to" name different object stores')


def _permitted(url: str, roots: Roots) -> StoredObject:
    at = split_name(url, roots.stores)
    if at is None:
        raise SqlError(
            "42501",
            f'permission denied for a source to use "{url}"',
            detail="It is not below any bucket of the server_files setting."
            if roots.stores
            else "The server_files setting lists no bucket.",
            hint="The setting server_files of the server lists the directories and buckets that sources may use.",
        )
    return at
