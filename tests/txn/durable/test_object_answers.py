"""Every operation on blobs in an object store, with everything that a store may answer.

once      answered, where asking again may help and pyarrow has not done so by itself
always    the SQLSTATE of what is short, a message with the store's words; nothing is remembered, nothing half written
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest

from engine.session.errors import report_of
from planner.catalog import Catalog
from tests.support.durable import run
from tests.support.stand_in_store import StandInStore, stand_in_blob
from txn.base.errors import DamagedFile, OutOfSpace, StorageError
from txn.persist import trouble
from txn.persist.blobs import objects
from txn.persist.blobs.answers import answer_of
from txn.persist.blobs.objects import ObjectBlob
from txn.persist.location import StoreUnavailable


@dataclass(frozen=True, slots=True)
class Kind:
    """What pyarrow says (``text``), and what comes of it; ``writing``: the SQLSTATE of a write, where it differs."""

    text: str
    state: str
    passing: bool
    said: str
    number: int = 0

    def error(self) -> OSError:
        return OSError(self.number, self.text) if self.number else OSError(self.text)


_HEAD: Final = "When reading information for key 'db/7/a' in bucket 'bucket': AWS Error "
_UNREAD: Final = "AWS Error UNKNOWN (HTTP status {}) during PutObject operation: Unable to parse ExceptionName: {} Message: no"
KINDS: Final = {
    "429": Kind(_UNREAD.format(429, "TooManyRequests"), "53000", True, "TooManyRequests"),
    "429, HEAD": Kind(f"{_HEAD}UNKNOWN (HTTP status 429) during HeadObject operation: No response body.", "53000", False, "429"),
    "slow down": Kind("AWS Error SLOW_DOWN during PutObject operation: SlowDown", "53000", False, "SLOW_DOWN"),
    "503, HEAD": Kind(f"{_HEAD}UNKNOWN (HTTP status 503) during HeadObject operation: No response body.", "53000", False, "503"),
    "500": Kind("AWS Error INTERNAL_FAILURE during GetObject operation: InternalError", "58030", False, "INTERNAL_FAILURE"),
    "507": Kind(_UNREAD.format(507, "InsufficientStorage"), "53100", False, "InsufficientStorage"),
    "507, HEAD": Kind(f"{_HEAD}UNKNOWN (HTTP status 507) during HeadObject operation: No response body.", "53100", False, "507"),
    "quota": Kind(_UNREAD.format(403, "QuotaExceeded"), "53100", False, "QuotaExceeded"),
    "409": Kind(_UNREAD.format(409, "OperationAborted"), "58030", True, "OperationAborted"),
    "403": Kind("AWS Error ACCESS_DENIED during GetObject operation: AccessDenied", "58030", False, "ACCESS_DENIED"),
    "412": Kind(_UNREAD.format(412, "PreconditionFailed"), "58030", False, "PreconditionFailed"),
    "no bucket": Kind("AWS Error NO_SUCH_BUCKET during PutObject operation: NoSuchBucket", "58030", False,
                      "the bucket bucket does not exist"),
    "cut": Kind("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 52, Server returned nothing", "58030", False,
                "NETWORK_CONNECTION"),
    "half": Kind("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 18, Transferred a partial file", "58030", False,
                 "partial"),
    "time-out": Kind("AWS Error REQUEST_TIMEOUT during GetObject operation: RequestTimeout", "58030", False, "REQUEST_TIMEOUT"),
    "no descriptors": Kind("Too many open files", "53000", True, "Too many", errno.EMFILE),
    "no memory": Kind("Cannot allocate memory", "53200", True, "Cannot allocate", errno.ENOMEM),
    "I/O": Kind("Input/output error", "58030", True, "Input/output", errno.EIO),
    "local disk": Kind("No space left on device", "53100", False, "No space", errno.ENOSPC),
    "unheard of": Kind("the moon is in the wrong phase", "58030", False, "moon"),
}  # fmt: skip

Operation = Callable[[ObjectBlob], Awaitable[object]]


async def _source(blob: ObjectBlob) -> object:
    with blob.source("7/1-a.parquet") as file:
        return file.read(5)


OPERATIONS: Final[dict[str, tuple[tuple[str, ...], Operation]]] = {
    "get": (("HEAD", "GET"), lambda blob: blob.get("7/1-a.parquet")),
    "hold": (("HEAD", "GET"), lambda blob: blob.hold("7/1-a.parquet")),
    "source": (("HEAD", "GET"), _source),
    "keep": (("LIST", "HEAD", "GET"), lambda blob: blob.keep("7/1-a")),
    "list": (("LIST",), lambda blob: blob.list("7/")),
    "put": (("HEAD", "PUT"), lambda blob: blob.put("7/1-b.sys", b"new")),
    "publish": (("HEAD", "PUT"), lambda blob: blob.publish("7/1-b.parquet", lambda file: cast(None, file.write(b"new")))),
    "delete": (("HEAD", "DELETE"), lambda blob: blob.delete("7/1-a.parquet")),
    "grant": (("HEAD", "PUT"), lambda blob: blob.grant("job")),
    "revoke": (("HEAD", "DELETE"), lambda blob: blob.revoke("there")),
    "claim": (("HEAD", "GET"), lambda blob: blob.claim("one", fresh=False)),
}  # fmt: skip
STEPS: Final = [(name, request) for name, (requests, _) in OPERATIONS.items() for request in requests]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PAUSE_S", 0.0)
    monkeypatch.setattr(trouble, "_may_wait", lambda: True)


async def filled(folder: Path) -> tuple[StandInStore, ObjectBlob]:
    store = StandInStore()
    blob = stand_in_blob(str(folder), store)
    assert await blob.claim("one", fresh=True) == "one"
    for name in ("7/1-a.parquet", "7/1-a.sys", "7/1-a.x2"):
        await blob.put(name, b"there and more")
    await blob.grant("there")
    return store, blob


def reported(error: Exception) -> Any:
    found = report_of(error, cast(Catalog, None))
    assert found is not None, repr(error)
    return found


@pytest.mark.parametrize(("operation", "request_"), STEPS)
def test_what_a_store_answers_is_told_and_not_remembered(
    operation: str, request_: str, tmp_path: Path
) -> None:
    _, work = OPERATIONS[operation]

    async def body() -> None:
        for at, (name, kind) in enumerate(KINDS.items()):
            for times in (1, 1000):
                store, blob = await filled(tmp_path / f"{at}-{times}")
                before = dict(store.objects)
                left = times

                def fail(request: str, kind: Kind = kind) -> None:
                    nonlocal left
                    if request == request_ and left:
                        left -= 1
                        raise kind.error()

                store.faults = fail
                store.asked.clear()
                if times == 1 and kind.passing:
                    await work(blob)
                    continue
                with pytest.raises((StorageError, OutOfSpace)) as met:
                    await work(blob)
                report = reported(met.value)
                assert report.sqlstate == kind.state, (name, report)
                assert kind.said in f"{report.message} {report.detail}" or isinstance(
                    met.value, OutOfSpace
                ), (name, report)
                assert kind.said in str(met.value)
                assert store.asked.count(request_) <= trouble.TRIES + 1  # and one to take an upload back
                store.faults = lambda request: None
                if request_ != "PUT" or operation in ("get", "hold"):
                    assert store.objects == before, name
                await work(blob)
                assert not os.listdir(os.path.join(blob.cache.root, "tmp"))

    run(body)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_bucket_that_is_gone_is_no_missing_file(operation: str, tmp_path: Path) -> None:
    async def body() -> None:
        store, blob = await filled(tmp_path / "cache")
        store.bucket_is_there = False
        if operation in ("put", "publish", "grant"):  # a store says so to what is written
            text = "AWS Error NO_SUCH_BUCKET during PutObject operation: NoSuchBucket"

            def refuse(request: str) -> None:
                if request == "PUT":
                    raise OSError(text)

            store.faults = refuse
        with pytest.raises(StoreUnavailable, match="the bucket bucket does not exist"):
            await OPERATIONS[operation][1](blob)
        store.bucket_is_there = True
        store.faults = lambda request: None
        await OPERATIONS[operation][1](blob)

    run(body)


def test_an_object_that_is_gone_is_missing(tmp_path: Path) -> None:
    async def body() -> None:
        store, blob = await filled(tmp_path / "cache")
        del store.objects["bucket/db/7/1-a.parquet"]
        assert await blob.get("7/1-a.parquet") is None
        for read in (blob.hold, lambda name: _source(blob)):
            with pytest.raises(FileNotFoundError):
                await read("7/1-a.parquet")
        await blob.delete("7/1-a.parquet")

    run(body)


def test_an_upload_that_could_not_be_taken_back_is_not_tried_again(tmp_path: Path) -> None:
    """Its removal may come late, and would remove what a second try has written."""

    async def body() -> None:
        store, blob = await filled(tmp_path / "cache")

        def fail(request: str) -> None:
            if request == "PUT":
                raise OSError(_UNREAD.format(409, "OperationAborted"))
            if store.asked.count("PUT"):
                raise OSError(
                    "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 28, Timeout was reached"
                )

        store.faults = fail
        store.asked.clear()
        with pytest.raises(StoreUnavailable, match="OperationAborted"):
            await blob.put("7/1-b.sys", b"new")
        assert store.asked.count("PUT") == 1

    run(body)


def test_what_is_published_is_made_once(tmp_path: Path) -> None:
    async def body() -> None:
        store, blob = await filled(tmp_path / "cache")
        made = 0

        def write(file: Any) -> None:
            nonlocal made
            made += 1
            file.write(b"new")

        left = 2

        def fail(request: str) -> None:
            nonlocal left
            if request == "PUT" and left:
                left -= 1
                raise OSError(_UNREAD.format(429, "TooManyRequests"))

        store.faults = fail
        assert await blob.publish("7/1-b.parquet", write) == 3
        assert (made, left) == (1, 0)
        assert await blob.get("7/1-b.parquet") == b"new"

    run(body)


def test_a_cache_directory_that_is_gone_is_no_missing_object(tmp_path: Path) -> None:
    async def body() -> None:
        _, blob = await filled(tmp_path / "cache")
        os.rmdir(tmp_path / "cache" / "tmp")
        await blob.hold("7/1-a.parquet")
        assert Path(blob.local_path("7/1-a.parquet")).read_bytes() == b"there and more"

    run(body)


def test_answers_of_other_stores() -> None:
    for text, meaning in (
        ("google::cloud::Status(RESOURCE_EXHAUSTED: rateLimitExceeded) reason=rateLimitExceeded", "busy"),
        (
            "AWS Error UNKNOWN (HTTP status 507) during PutObject operation: Unable to parse ExceptionName: XMinioStorageFull",
            "full",
        ),
        ("AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: no", "denied"),
        ("AWS Error UNKNOWN (HTTP status 599) during GetObject operation: no", "away"),
        ("Couldn't resolve host name", "away"),
    ):
        assert answer_of(OSError(text)).meaning == meaning, text
    assert not issubclass(StoreUnavailable, DamagedFile)
