"""The cache of local copies: what stays, what goes, and when."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from txn.base.errors import OutOfSpace
from txn.persist.blobs.file_cache import FileCache


def writer(size: int, calls: list[str] | None = None):  # type: ignore[no-untyped-def]
    def fetch(path: str) -> None:
        if calls is not None:
            calls.append(path)
        with open(path, "xb") as file:
            file.write(b"x" * size)

    return fetch


def there(cache: FileCache) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), cache.root)
        for folder, _, names in os.walk(cache.root)
        for name in names
    }


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 30)
    for name in ("7/a", "7/b", "7/c"):
        cache.hold(name, writer(10))
    assert cache.open("7/a") is not None  # used: b is the oldest now
    cache.hold("7/d", writer(10))
    assert there(cache) == {"7/a", "7/c", "7/d"}
    assert (cache.bytes, cache.fetched, cache.evicted) == (30, 4, 1)


def test_what_is_held_stays_and_goes_when_it_is_let_go(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 10)
    first, again = cache.hold("a", writer(10)), cache.hold("a", writer(10))
    second = cache.hold("b", writer(10))
    last = cache.hold("c", writer(10))
    assert there(cache) == {"a", "b", "c"}
    del first
    assert there(cache) == {"a", "b", "c"}
    del again
    assert there(cache) == {"b", "c"}
    del second, last
    assert there(cache) == {"c"}
    assert cache.bytes == 10


def test_what_is_kept_stays_until_it_is_dropped(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 5)
    cache.hold("7/a.sys", writer(10), keep=True)
    path = cache.new_file()
    writer(10)(path)
    cache.adopt("7/b.sys", path, keep=True)
    cache.hold("7/a.parquet", writer(10))
    cache.hold("7/b.parquet", writer(10))
    assert there(cache) == {"7/a.sys", "7/b.sys", "7/b.parquet"}
    cache.drop("7/a.sys")
    assert there(cache) == {"7/b.sys", "7/b.parquet"}
    assert cache.bytes == 20


def test_one_fetches_and_others_wait(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 100)
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []
    holds: list[object] = []

    def slow(path: str) -> None:
        begun.set()
        assert go_on.wait(30)
        writer(10, calls)(path)

    threads = [threading.Thread(target=lambda: holds.append(cache.hold("a", slow))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    assert cache.open("a") is None  # half a file is nobody's
    go_on.set()
    for thread in threads:
        thread.join()
    assert (len(calls), len(holds), cache.fetched) == (1, 4, 1)


def test_a_fetch_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 100)

    def fail(error: Exception):  # type: ignore[no-untyped-def]
        def fetch(path: str) -> None:
            writer(5)(path)
            raise error

        return fetch

    with pytest.raises(ValueError, match="stop"):
        cache.hold("a", fail(ValueError("stop")))
    with pytest.raises(OutOfSpace, match="could not keep a copy of a: full"):
        cache.hold("a", fail(OSError(errno.ENOSPC, "full")))
    assert there(cache) == set()
    held = cache.hold("a", writer(10))
    assert there(cache) == {"a"}
    del held


def test_a_copy_that_is_replaced_has_its_own_holders(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path / "c"), 5)
    old = cache.hold("a", writer(10))
    cache.drop("a")
    new = cache.hold("a", writer(20))
    del old  # of the copy that is gone: the new one is still held
    other = cache.hold("b", writer(10))
    assert there(cache) == {"a", "b"}
    del new
    assert there(cache) == {"b"}
    del other


def test_opening_empties_the_directory(tmp_path: Path) -> None:
    FileCache(str(tmp_path / "c"), 100).hold("7/a", writer(10))
    (tmp_path / "c" / "tmp" / "9").write_bytes(b"half")
    cache = FileCache(str(tmp_path / "c"), 100)
    assert there(cache) == set()
    assert cache.bytes == 0
