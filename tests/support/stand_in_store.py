"""A stand-in for pyarrow's file system of an object store: objects in a dictionary, and any operation can be made to fail.

``faults`` is asked before each request, with its name (HEAD, GET, PUT, DELETE, LIST, BUCKET): it raises, or lets it pass. ``spoil``
is handed the bytes of each GET. What is raised has the words that pyarrow has for the answers of real stores.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from pyarrow.fs import FileType

from txn.persist.blobs.file_cache import FileCache
from txn.persist.blobs.object_url import parse_object_url
from txn.persist.blobs.objects import ObjectBlob
from txn.persist.location import inline


class _Info:
    def __init__(self, path: str, kind: Any) -> None:
        self.path, self.type = path, kind


class _Reader(io.BytesIO):
    def __init__(self, store: StandInStore, key: str) -> None:
        data, self._kind = store.objects[key]
        super().__init__(data)
        self._store, self._length = store, len(data)

    def metadata(self) -> dict[str, bytes]:
        return {"Content-Type": self._kind.encode(), "Content-Length": str(self._length).encode()}

    def size(self) -> int:
        return self._length

    def read(self, size: int | None = -1) -> bytes:
        self._store.ask("GET")
        return self._store.spoil(super().read(size))

    def read_at(self, size: int, at: int) -> bytes:
        self.seek(at)
        return self.read(size)


class _Writer(io.BytesIO):
    def __init__(self, store: StandInStore, key: str, kind: str) -> None:
        super().__init__()
        self._store, self._key, self._kind = store, key, kind

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._store.ask("PUT")
            self._store.objects[self._key] = (data, self._kind)


class StandInStore:
    """Has the methods that ``ObjectBlob`` uses of pyarrow's file systems."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.asked: list[str] = []
        self.bucket_is_there = True
        self.faults: Callable[[str], None] = lambda request: None
        self.spoil: Callable[[bytes], bytes] = lambda data: data

    def ask(self, request: str) -> None:
        self.asked.append(request)
        self.faults(request)

    def _head(self, key: str) -> None:
        self.ask("HEAD")
        if key not in self.objects or not self.bucket_is_there:
            raise FileNotFoundError(f"[Errno 2] Path does not exist '{key}'")

    def open_input_stream(self, key: str) -> _Reader:
        self._head(key)
        return _Reader(self, key)

    open_input_file = open_input_stream

    def open_output_stream(self, key: str, metadata: dict[str, str]) -> _Writer:
        return _Writer(self, key, metadata["Content-Type"])

    def delete_file(self, key: str) -> None:
        self._head(key)
        self.ask("DELETE")
        del self.objects[key]

    def get_file_info(self, what: Any) -> Any:
        if not isinstance(what, str):
            self.ask("LIST")
            if not self.bucket_is_there:
                return []
            return [_Info(key, FileType.File) for key in self.objects if key.startswith(f"{what.base_dir}/")]
        if "/" not in what:
            self.ask("BUCKET")
            return _Info(what, FileType.Directory if self.bucket_is_there else FileType.NotFound)
        self.ask("HEAD")
        return _Info(what, FileType.File if what in self.objects else FileType.NotFound)


def stand_in_blob(folder: str, store: StandInStore | None = None, cache_bytes: int = 1 << 30) -> ObjectBlob:
    """Return blobs in a stand-in store; ``folder``: of the cache. Work is done on the loop."""
    url = parse_object_url("s3://bucket/db?region=us-east-1")
    return ObjectBlob(url, store or StandInStore(), FileCache(folder, cache_bytes), inline)
