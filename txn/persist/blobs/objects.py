"""Blobs as objects of an S3 or Google Cloud Storage bucket, with copies of what is read in a local cache.

    publish   write to <cache>/tmp  ->  upload, whole, with its checksum  ->  the copy stays in the cache
    hold      in the cache? else download -> checksum -> cache            whole files, for engines
    source    in the cache? that, else ranges of the object               single row groups, footers
    keep      a part's sidecars into the cache for good                   mapped, and looked up without waiting

An object appears under its name when its upload is complete, never in parts, and its bytes never change. Its checksum
(CRC-32) is a parameter of its Content-Type, since pyarrow stores no other metadata: ``application/octet-stream;
crc32=01abcdef``. Objects that others wrote without one are checked by their formats alone.

Credentials come from AWS's (Google's) standard chain: environment, configuration files, the machine's role. A URL that
contains some is refused. Requests are made in threads of this object's own: a store that does not answer holds up
those who wait for it, nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import re
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, BinaryIO, Final, TypeVar, cast
from zlib import crc32

from txn.base.errors import DamagedFile, OutOfSpace
from txn.persist.blobs.answers import answer_of
from txn.persist.blobs.file_cache import FileCache
from txn.persist.blobs.files import checked_name
from txn.persist.blobs.object_url import ObjectUrl
from txn.persist.location import Indeterminate, Offload, StoreUnavailable
from txn.persist.scratch import Scratch
from txn.persist.sized import Sized, not_written
from txn.persist.trouble import TRIES, again, exactly, opened

T = TypeVar("T")
Names = list[str]

CLUSTER_OBJECT: Final = "CLUSTER"
CONNECT_TIMEOUT_S: Final = 5.0
REQUEST_TIMEOUT_S: Final = 30.0
PAUSE_S: Final = 0.1
"""Before what a store has refused for the moment is asked again; doubled before each further try, of
``trouble.TRIES``."""
THREADS: Final = 8
WARM_READS: Final = 8
"""Ranges read from one object before it is fetched whole."""
_TAIL_BYTES: Final = 1 << 16  # where Parquet's footer is, mostly
_PIECE_BYTES: Final = 8 << 20
_GRANTS: Final = "tmp/"
_CHECKSUM: Final = re.compile(rb"crc32=([0-9a-f]{8})")


def open_filesystem(url: ObjectUrl) -> Any:
    """Return pyarrow's file system of a store. Connects nowhere yet, but may look for credentials: in a thread."""
    from pyarrow import fs

    options = dict(url.options)
    if url.scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_TIMEOUT_S), **options)
    return fs.S3FileSystem(
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        # A piece that fails is then remembered, and the end refuses to complete the object without it.
        background_writes=True,
        allow_delayed_open=True,
        **options,
    )


class _Sums:
    """What one transfer of an object brought, beside what the store says of the object."""

    __slots__ = ("crc", "right", "whole")

    def __init__(self) -> None:
        self.crc = 0
        self.whole = self.right = False

    def take(self, stream: Any, size: int, crc: int) -> None:
        """``stream``: pyarrow's; ``size`` and ``crc``: of the bytes that came."""
        said = stream.metadata() or {}
        length, expected = said.get("Content-Length"), _checksum(stream)
        self.crc = crc
        self.whole = length is None or size == int(length)
        self.right = self.whole and expected in (None, crc)


class ObjectBlob:
    """Blob over the objects below ``url``. Made by ``open``; one owner at a time (see leadership)."""

    remote = True

    def __init__(
        self, url: ObjectUrl, filesystem: Any, cache: FileCache, offload: Offload | None = None
    ) -> None:
        """``filesystem``: pyarrow's. ``offload``: None: in threads of its own."""
        self.url = url
        self.cache = cache
        self._fs = filesystem
        self._threads = None if offload is not None else ThreadPoolExecutor(THREADS, "object-store")
        self._given_offload = offload
        self._names: dict[str, set[str]] = {}  # of folders that were listed: nobody else writes into them
        self._reads: dict[str, int] = {}  # ranges of objects that are not in the cache

    @classmethod
    async def open(cls, url: ObjectUrl, cache_dir: str, cache_bytes: int) -> ObjectBlob:
        """Connect, and empty the cache directory.

        Raises:
            StoreUnavailable: no such bucket, no access, no answer.
        """
        blob = await asyncio.to_thread(
            lambda: cls(url, open_filesystem(url), FileCache(cache_dir, cache_bytes))
        )
        await blob._run("look at", "", lambda: blob._check_bucket())
        return blob

    def _check_bucket(self) -> None:
        from pyarrow.fs import FileType

        if self._fs.get_file_info(self.url.bucket).type == FileType.NotFound:
            raise FileNotFoundError(f"the bucket {self.url.bucket} does not exist")

    # -- Blob --------------------------------------------------------------------------------------

    async def put(self, name: str, data: bytes) -> None:
        """See Blob."""
        key = self._key(name)
        await self._run("write", name, lambda: self._upload(key, io.BytesIO(data), crc32(data)))
        self._note(name)

    async def publish(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """See Blob. Needs space in the cache directory (OutOfSpace)."""
        key = self._key(name)
        return await self._offload(lambda: self._publish(name, key, write))

    def _publish(self, name: str, key: str, write: Callable[[BinaryIO], None]) -> int:
        path = self.cache.new_file()
        sized: Sized | None = None
        try:
            try:
                with open(path, "x+b", buffering=1 << 20) as file:
                    sized = Sized(file)
                    write(cast(BinaryIO, sized))
                    sized.check()
                    left = size = file.seek(0, os.SEEK_END)
                    file.seek(0)
                    crc = 0
                    while left:
                        piece = exactly(file, min(left, _PIECE_BYTES))
                        crc = crc32(piece, crc)
                        left -= len(piece)
            except OSError as error:
                raise not_written(error, sized, self.cache.root) from error
            self._asked("write", name, lambda: self._upload_file(key, path, crc))
            self._note(name)
            if not name.startswith("txn/"):  # a large write set is read at the next start only
                with contextlib.suppress(OSError):  # then it is fetched when it is needed
                    self.cache.adopt(name, path, keep=_is_sidecar(name))
        finally:
            self.cache.discard(path)
        return size

    def _upload_file(self, key: str, path: str, crc: int) -> None:
        with opened(path) as file:
            self._upload(key, file, crc)

    def _upload(self, key: str, file: BinaryIO, crc: int) -> None:
        """Write an object. What goes wrong half-way leaves nothing under its name, or what ``_withdraw`` removes."""
        file.seek(0)
        self._check_grant(key)
        if self._exists(key):
            raise FileExistsError(key)
        stream: Any = None
        try:
            kind = f"application/octet-stream; crc32={crc:08x}"
            stream = self._fs.open_output_stream(key, metadata={"Content-Type": kind})
            while piece := file.read(_PIECE_BYTES):
                stream.write(piece)
            stream.close()
            self._check_grant(key)
        except BaseException as error:
            # What may be removed late, by a request whose answer was lost, must not be written again under this name.
            if not self._withdraw(key, stream) and isinstance(error, OSError):
                raise self.trouble("write", key.removeprefix(self.url.root), error) from error
            raise

    def _withdraw(self, key: str, stream: Any) -> bool:
        """See to it that nothing is there; return whether that is so. What cannot be removed has a name that
        nobody will refer to.
        """
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()  # here, not by the collector, which would stop all threads meanwhile
        try:
            self._fs.delete_file(key)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    def _exists(self, key: str) -> bool:
        from pyarrow.fs import FileType

        return bool(self._fs.get_file_info(key).type == FileType.File)

    async def get(self, name: str) -> bytes | None:
        """See Blob. Raises StoreUnavailable, DamagedFile."""
        key = self._key(name)

        def read() -> bytes | None:
            for sums in self._transfers(name):
                with self._fs.open_input_stream(key) as stream:
                    data: bytes = stream.read()
                    sums.take(stream, len(data), crc32(data))
            return data

        try:
            return await self._run("read", name, read)
        except FileNotFoundError:
            return None

    async def list(self, prefix: str) -> list[str]:
        """See Blob. Always asks the store; other databases below the prefix are left out."""
        return await self._run("list", prefix, lambda: self._list(prefix))

    def _list(self, prefix: str) -> Names:
        from pyarrow.fs import FileSelector, FileType

        folder = prefix.rpartition("/")[0]
        selector = FileSelector(self.url.root + folder, recursive=True, allow_not_found=True)
        start = len(self.url.root)
        found = [info.path[start:] for info in self._fs.get_file_info(selector) if info.type == FileType.File]
        if not found:
            self._check_bucket()  # of one that is gone the same is said
        # A database below this one's prefix has an identity of its own, and its objects are not ours to sweep.
        others = tuple(n.removesuffix(CLUSTER_OBJECT) for n in found if n.endswith(f"/{CLUSTER_OBJECT}"))
        skipped = (CLUSTER_OBJECT, _GRANTS, *others)
        return sorted(name for name in found if name.startswith(prefix) and not name.startswith(skipped))

    async def delete(self, name: str) -> None:
        """See Blob."""
        key = self._key(name)
        self.cache.drop(name)
        self._names.get(name.rpartition("/")[0], set()).discard(name)
        self._reads.pop(name, None)
        await self._delete(name, key)

    async def _delete(self, name: str, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # the object; a missing bucket is told
            await self._run("delete", name, lambda: self._fs.delete_file(key))

    def _remove(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(key)

    def local_path(self, name: str) -> str:
        """See Blob: where the copy is while it is held or kept."""
        return self.cache.path(checked_name(name))

    async def hold(self, name: str) -> object:
        """See Blob."""
        return await self._offload(lambda: self._hold(name))

    def _hold(self, name: str, *, keep: bool = False) -> object:
        key = self._key(name)
        held = self._asked(
            "read", name, lambda: self.cache.hold(name, lambda p: self._download(name, key, p), keep=keep)
        )
        self._reads.pop(name, None)
        return held

    def _download(self, name: str, key: str, path: str) -> None:
        for sums in self._transfers(name):
            crc = size = 0
            with self._fs.open_input_stream(key) as stream, open(path, "wb") as file:
                while piece := stream.read(_PIECE_BYTES):
                    crc = crc32(piece, crc)
                    size += len(piece)
                    file.write(piece)
                sums.take(stream, size, crc)

    def _transfers(self, name: str) -> Iterator[_Sums]:
        """Yield for each transfer of an object what takes its checksum, until one is as it was written.

        Raises:
            DamagedFile: two transfers are alike, whole, and not what was written.
            StoreUnavailable: all differ: it is the way that spoils them.
        """
        wrong = set[int]()
        for _ in range(TRIES):
            sums = _Sums()
            yield sums
            if sums.right:
                return
            if sums.whole and sums.crc in wrong:
                raise DamagedFile(f"{self.url.name}/{name}", "the checksum of the object is wrong")
            if sums.whole:
                wrong.add(sums.crc)
        where = f"{self.url.name}/{name}"
        raise StoreUnavailable(
            self.url.name, f"could not read {where}: it came {TRIES} times, each time damaged in another way"
        )

    def renew(self, name: str) -> object | None:
        """See Blob."""
        key = self._key(name)
        held = self._asked(
            "read", name,
            lambda: self.cache.renew(name, lambda p: self._download(name, key, p), keep=_is_sidecar(name)),
        )  # fmt: skip
        self._reads.pop(name, None)
        return held

    def source(self, name: str) -> Any:
        """See Blob: the copy in the cache if there is one, else the object."""
        found = self.cache.open(name)
        if found is not None:
            return found
        reads = self._reads[name] = self._reads.get(name, 0) + 1
        if reads > WARM_READS:
            self._hold(name)
            found = self.cache.open(name)
            if found is not None:
                return found
        key = self._key(name)
        return ObjectFile(self, name, self._asked("read", name, lambda: self._fs.open_input_file(key)))

    async def keep(self, part: str) -> None:
        """See Blob."""
        folder = part.rpartition("/")[0]
        if f"{part}.sys" not in self._names.get(folder, ()):
            self._names[folder] = set(await self.list(f"{folder}/"))
        wanted = [n for n in self._names[folder] if n.rpartition(".")[0] == part and _is_sidecar(n)]

        def fetch() -> None:
            damaged: DamagedFile | None = None
            for name in wanted:
                try:
                    self._hold(name, keep=True)
                except FileNotFoundError:
                    pass  # it is missing to whoever opens it
                except DamagedFile as error:
                    damaged = damaged or error
            if damaged is not None:
                raise damaged

        await self._offload(fetch)

    async def grant(self, job: str) -> ObjectGrant:
        """See Blob. Workers need credentials of their own, from the standard chain.

        Nothing makes a store refuse an object that comes late: a worker that finds the grant ended removes what it has
        just written. What one leaves that dies at that moment, nobody refers to; the next start sweeps it.
        """
        key = self._grant_key(job)
        await self._run("write", f"{_GRANTS}{job}", lambda: self._upload(key, io.BytesIO(b""), 0))
        return ObjectGrant(self.url, job)

    async def revoke(self, job: str) -> None:
        """See Blob, and ``grant``."""
        await self._delete(f"{_GRANTS}{job}", self._grant_key(job))

    def _grant_key(self, job: str) -> str:
        return f"{self.url.root}{_GRANTS}{checked_name(job)}"

    def _check_grant(self, key: str) -> None:
        """Raise Indeterminate if the blobs were lent, and are no more."""

    def _end_grants(self) -> None:
        """Remove what earlier owners left in ``tmp``."""
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self.url.root + _GRANTS, recursive=True, allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            if info.type == FileType.File:
                self._remove(info.path)

    # -- errors ------------------------------------------------------------------------------------

    async def _run(self, verb: str, name: str, work: Callable[[], T]) -> T:
        """Do ``work`` in a thread, and again while what it meets may pass; what the store says comes as
        StoreUnavailable.
        """
        return await self._offload(lambda: self._asked(verb, name, work))

    async def _offload(self, work: Callable[[], T]) -> T:
        if self._given_offload is not None:
            return await self._given_offload(work)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _asked(self, verb: str, name: str, work: Callable[[], T]) -> T:
        """Do ``work``, which has no effect where it fails, again while what it meets may pass; see ``trouble``."""
        try:
            return again(work, _may_pass, lambda: PAUSE_S)
        except FileExistsError:
            raise
        except (OSError, MemoryError) as error:
            raise self.trouble(verb, name, error) from error

    def trouble(self, verb: str, name: str, error: OSError | MemoryError) -> Exception:
        """Return what to raise for an error of the store, or of the file that its bytes go to.

        FileNotFoundError is left alone where the bucket is there: the store has no such object.
        """
        if isinstance(error, MemoryError):
            return StoreUnavailable(
                self.url.name, f"could not {verb} {name}: Cannot allocate memory", "memory"
            )
        if isinstance(error, FileNotFoundError):
            return self._missing(verb, name, error)
        answer = answer_of(error)
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        where = f"{self.url.name}/{name}".rstrip("/")
        if answer.meaning == "no bucket":
            text = f"the bucket {self.url.bucket} does not exist"
        if answer.meaning == "no object" and verb == "read":
            return self._missing(verb, name, FileNotFoundError(f"{where} does not exist"))
        if answer.kind == "space" and answer.meaning == "full" and verb == "write":
            full = OutOfSpace(f"could not write {where}: {text}")
            full.store = self.url.name
            return full
        if answer.kind == "space" and answer.meaning == "system":
            return OutOfSpace(f"could not keep a copy of {name}: {text}")
        return StoreUnavailable(self.url.name, f"could not {verb} {where}: {text}", answer.kind)

    def _missing(self, verb: str, name: str, error: FileNotFoundError) -> Exception:
        """Tell a missing object from a missing bucket, which a HEAD request answers alike, and from a missing
        cache directory.
        """
        where = f"{self.url.name}/{name}".rstrip("/")
        if error.filename is not None:
            return StoreUnavailable(self.url.name, f"could not keep a copy of {where}: {error}")
        try:
            again(self._check_bucket, _may_pass, lambda: PAUSE_S)
        except FileNotFoundError as gone:
            return StoreUnavailable(self.url.name, f"could not {verb} {where}: {gone}")
        except OSError as refused:
            return self.trouble(verb, name, refused)
        if verb in ("read", "delete"):
            return error
        return StoreUnavailable(self.url.name, f"could not {verb} {where}: {error}")

    def _key(self, name: str) -> str:
        return self.url.root + checked_name(name)

    def _note(self, name: str) -> None:
        known = self._names.get(name.rpartition("/")[0])
        if known is not None:
            known.add(name)

    # -- whose it is -------------------------------------------------------------------------------

    async def claim(self, cluster: str, *, fresh: bool) -> str | None:
        """Write the store's identity where there is none and it is empty; return what was there instead.

        Returns ``cluster`` if it is, or was made, this database's; None: there are objects but no identity, or
        (``fresh`` False: the database has a history) there is nothing at all.
        """
        key = self.url.root + CLUSTER_OBJECT

        def look() -> str | None:
            try:
                with self._fs.open_input_stream(key) as stream:
                    return bytes(stream.read(200)).decode(errors="replace").strip()
            except FileNotFoundError:
                self._check_bucket()
                if not fresh or self._list(""):
                    return None
            data = f"{cluster}\n".encode()
            self._upload(key, io.BytesIO(data), crc32(data))
            return cluster

        found = await self._run("open", CLUSTER_OBJECT, look)
        if found == cluster:
            await self._run("delete", _GRANTS, self._end_grants)
        return found


class _LentObjects(ObjectBlob):
    """The blobs as a worker writes them by a grant."""

    def __init__(self, url: ObjectUrl, job: str, cache: FileCache) -> None:
        super().__init__(url, open_filesystem(url), cache)
        self._grant = self._grant_key(job)

    def _check_grant(self, key: str) -> None:
        if not self._exists(self._grant):
            raise Indeterminate("the grant has ended")


@dataclass(frozen=True, slots=True)
class ObjectGrant:
    """Leave to write objects below ``url`` while the marker of ``job`` is there; see BlobGrant."""

    url: ObjectUrl
    job: str

    def open(self, worker: str) -> ObjectBlob:
        """See BlobGrant. What is written passes through a temporary directory, which goes with the object."""
        scratch = Scratch(worker)
        blob = _LentObjects(self.url, self.job, FileCache(scratch.path, 0))
        weakref.finalize(blob, scratch.remove)
        return blob


class ObjectFile(io.RawIOBase):
    """An object as a file to read at positions. The end, where Parquet has its footer, is read once.

    What the store refuses comes as StoreUnavailable, so that it is not taken for damage.
    """

    def __init__(self, blob: ObjectBlob, name: str, file: Any) -> None:
        """``file``: pyarrow's."""
        self._blob, self._name, self._file = blob, name, file
        self._position = 0
        self._size: int = self._ask(file.size)
        self._tail = b""
        self._tail_at = self._size

    def _ask(self, work: Callable[[], T]) -> T:
        return self._blob._asked("read", self._name, work)

    def readable(self) -> bool:
        """See io."""
        return True

    def seekable(self) -> bool:
        """See io."""
        return True

    def tell(self) -> int:
        """See io."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """See io."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """See io; never short but at the end."""
        start = min(self._position, self._size)
        stop = self._size if size is None or size < 0 else min(start + size, self._size)
        data = self._range(start, stop)
        self._position = stop
        return data

    def readinto(self, buffer: Any) -> int:
        """See io."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _range(self, start: int, stop: int) -> bytes:
        if start >= stop:
            return b""
        if stop - start <= _TAIL_BYTES and start >= self._size - _TAIL_BYTES and not self._tail:
            at = max(self._size - _TAIL_BYTES, 0)
            self._tail = self._ask(lambda: self._piece(self._size - at, at))
            self._tail_at = at
        if start >= self._tail_at:
            return self._tail[start - self._tail_at : stop - self._tail_at]
        return self._ask(lambda: self._piece(stop - start, start))

    def _piece(self, size: int, at: int) -> bytes:
        data = bytes(self._file.read_at(size, at))
        if len(data) != size:
            raise ConnectionResetError(errno.ECONNRESET, f"{len(data)} bytes came of {size}")
        return data


def _is_sidecar(name: str) -> bool:
    """Return whether a blob is mapped while its part is open (``txn.persist.parts.sidecar``)."""
    return name.rpartition(".")[2].startswith(("sys", "x"))


def _may_pass(error: BaseException) -> bool:
    """Tell whether to ask a store again: it may answer, and pyarrow has not asked three times already."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, OSError) or isinstance(error, FileNotFoundError | FileExistsError):
        return False
    answer = answer_of(error)
    return answer.passing and not answer.repeated


def _checksum(stream: Any) -> int | None:
    kind = (stream.metadata() or {}).get("Content-Type") or b""
    found = _CHECKSUM.search(kind if isinstance(kind, bytes) else kind.encode())
    return None if found is None else int(found.group(1), 16)
