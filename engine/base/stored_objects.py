"""Objects of S3 and Google Cloud Storage as COPY and FILES sources name, find, read and write them.

    server_files = /srv/in, s3://bucket/landing?region=eu-north-1        the second entry permits, and says where the store is

    's3://bucket/landing/a.csv'              an object
    's3://bucket/landing/day=*/part-?.csv'   all that match, in order of their names
    's3://bucket/landing/day'                all objects directly below but hidden ones (.x) and markers (_SUCCESS)

A key is taken literally: no %-escapes. Credentials come from the standard chain of the process that reads, as for blobs
(``txn.persist.blobs.objects``). All but ``beside`` blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final, ParamSpec, TypeAlias, TypeVar, cast

from engine.base.regular_files import open_regular, read_regular, reopened
from planner.base.errors import SqlError
from txn.persist.blobs.object_url import ObjectUrl
from txn.persist.blobs.objects import open_filesystem

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 8
READ_BYTES: Final = 8 << 20
"""Bytes of one request: it takes some 20 ms before the first comes."""
PIECE_BYTES: Final = 8 << 20
PATTERN: Final = re.compile(r"[*?\[]")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_REFUSED: Final = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|SIGNATURE|HTTP status 40[13]|[Pp]ermission"
)
_STORE: Final = re.compile(r"AWS Error|google::cloud|GcsFileSystem|curl")
_FULL: Final = re.compile(r"QuotaExceeded|StorageFull|InsufficientStorage|ServiceQuota")

_threads: Final = ThreadPoolExecutor(THREADS, "copy-objects")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object, or a folder of them. Can be pickled.

    ``store``: the entry of server_files that permits it. ``key``: with its bucket, as pyarrow names it.
    """

    store: ObjectUrl
    key: str

    @property
    def name(self) -> str:
        """The URL, as people write it."""
        return f"{self.store.scheme}://{self.key}"

    def below(self, name: str) -> StoredObject:
        """Return an object of this folder."""
        return StoredObject(self.store, f"{self.key.rstrip('/')}/{name}")


FilePath: TypeAlias = str | StoredObject
"""What is opened: a resolved path, or an object."""


async def beside(stored: bool, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Do ``work`` in a thread; in one of those for object stores, so that one that does not answer holds up
    nobody else.
    """
    if not stored:
        return await asyncio.to_thread(work, *args, **more)
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: work(*args, **more))


@lru_cache(maxsize=16)
def filesystem(store: ObjectUrl) -> Any:
    """Return pyarrow's file system of a store, one for each in this process. May look for credentials."""
    return open_filesystem(store)


def split_name(name: str, stores: Sequence[ObjectUrl]) -> StoredObject | None:
    """Return what an object's URL names; None: no entry of server_files permits it. Raises SqlError 22023."""
    scheme, _, rest = name.partition("://")
    bucket, _, key = rest.partition("/")
    folders = key.split("/")
    # Names that some client on the way might take for other folders than they say are refused.
    odd = "" in folders[:-1] or not {".", ".."}.isdisjoint(folders) or "\0" in key
    if odd or not _BUCKET.fullmatch(bucket):
        raise SqlError("22023", "invalid URL of an object", hint=f"Write {scheme}://bucket/folder/name.")
    for store in stores:
        if (store.scheme, store.bucket) == (scheme, bucket) and f"{key}/".startswith(store.prefix):
            return StoredObject(store, f"{bucket}/{key}".rstrip("/"))
    return None


def words_of(error: OSError) -> tuple[str, str]:
    """Return (SQLSTATE, text) for what a store says."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, FileNotFoundError):
        return "58P01", "No such object"
    if _FULL.search(text):
        return "53100", text
    return ("42501" if _REFUSED.search(text) else "58030"), text


def says_store(path: FilePath, error: OSError) -> bool:
    """Return whether an error is of an object's store, rather than of what the object contains."""
    return isinstance(path, StoredObject) and (
        isinstance(error, FileNotFoundError | PermissionError) or _STORE.search(str(error)) is not None
    )


# -- reading -------------------------------------------------------------------------------------------


def found_objects(at: StoredObject) -> list[tuple[StoredObject, int]]:
    """Return the objects that a name stands for, with their sizes, in the order of their names. Raises OSError."""
    from pyarrow.fs import FileSelector, FileType

    system = filesystem(at.store)
    info = system.get_file_info(at.key)
    if info.type == FileType.File:
        return [(at, info.size)]
    if info.type == FileType.Directory:
        entries = system.get_file_info(FileSelector(at.key, recursive=False))
        listed = [e for e in entries if not e.base_name.startswith((".", "_"))]
    else:
        match = PATTERN.search(at.key)
        if match is None:
            raise FileNotFoundError(at.name)
        folder = at.key[: at.key.rindex("/", 0, match.start())]
        deep = "/" in at.key[match.start() :]
        entries = system.get_file_info(FileSelector(folder, recursive=deep, allow_not_found=True))
        listed = [e for e in entries if _matches(e.path, at.key)]
    files = sorted((e.path, e.size) for e in listed if e.type == FileType.File)
    return [(StoredObject(at.store, path), size) for path, size in files]


def _matches(path: str, pattern: str) -> bool:
    """Return whether each part of a path matches that of the pattern; hidden ones only if the pattern says so."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(
        fnmatch.fnmatchcase(part, wanted) and (not part.startswith(".") or wanted.startswith("."))
        for part, wanted in zip(parts, patterns, strict=True)
    )


def open_bytes(path: FilePath, start: int = 0, end: int | None = None) -> BinaryIO:
    """Open a file at ``start``. The caller reads no further than ``end`` (None: the file's end). Raises OSError."""
    if isinstance(path, str):
        file = read_regular(path)
        file.seek(start)
        return file
    raw = _Range(filesystem(path.store).open_input_file(path.key), start, end)
    return io.BufferedReader(raw, READ_BYTES)


def fetch(at: StoredObject, path: str) -> None:
    """Copy an object to a new local file. Raises OSError."""
    with filesystem(at.store).open_input_file(at.key) as source, open(path, "xb") as file:
        while piece := source.read(READ_BYTES):
            file.write(piece)


def open_parquet(path: FilePath) -> Any:
    """Return what pyarrow reads a Parquet file from. Raises OSError."""
    if not isinstance(path, str):
        return filesystem(path.store).open_input_file(path.key)
    import pyarrow as pa

    descriptor = open_regular(path)
    try:
        return pa.OSFile(reopened(descriptor, path))
    finally:
        os.close(descriptor)


class _Range(io.RawIOBase):
    """Bytes of an object, each read a request."""

    def __init__(self, file: Any, start: int, end: int | None) -> None:
        self._file = file
        self._at = start
        self._end = file.size() if end is None else end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._end - self._at)
        if size <= 0:
            return 0
        data = self._file.read_at(size, self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        pieces = []
        while piece := self._file.read_at(min(READ_BYTES, self._end - self._at), self._at):
            pieces.append(piece)
            self._at += len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


# -- writing -------------------------------------------------------------------------------------------


def upload(to: StoredObject, file: BinaryIO) -> None:
    """Write a local file as an object. It comes into being, or replaces another, whole, or not at all. Raises
    OSError.
    """
    system = filesystem(to.store)
    stream = system.open_output_stream(to.key)
    try:
        while piece := file.read(PIECE_BYTES):
            stream.write(piece)
    except BaseException:
        # A piece that the store has refused keeps it from completing the object at the end.
        with contextlib.suppress(OSError):
            stream.close()
        raise
    stream.close()


def exists(at: StoredObject) -> bool:
    """Return whether there is an object of that name."""
    from pyarrow.fs import FileType

    return bool(filesystem(at.store).get_file_info(at.key).type == FileType.File)


def remove(at: StoredObject) -> None:
    """Delete an object, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        filesystem(at.store).delete_file(at.key)


def all_below(folder: StoredObject) -> Iterator[StoredObject]:
    """Yield all objects of a folder and its folders."""
    from pyarrow.fs import FileSelector, FileType

    selector = FileSelector(folder.key, recursive=True, allow_not_found=True)
    for info in filesystem(folder.store).get_file_info(selector):
        if info.type == FileType.File:
            yield StoredObject(folder.store, cast(str, info.path))
