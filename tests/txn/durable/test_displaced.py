"""A server whose directory is renamed, removed, replaced or unmounted writes nothing that the next start would not find: it stops."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from unittest.mock import ANY

import pytest

from sqllogictest.client import ServerError
from tests.support.durable import ManualClock, run
from tests.support.server import ServerProcess
from txn.base.errors import Displaced, TxnError
from txn.log import leadership
from txn.log.leadership import DirectoryLock, watch
from txn.persist.blobs.files import LocalBlob
from txn.persist.location import Indeterminate, inline


def _displace(path: Path, how: str) -> None:
    path.rename(f"{path}.old")
    if how == "removed":
        shutil.rmtree(f"{path}.old")
    elif how == "replaced":
        shutil.copytree(f"{path}.old", path)
    elif how == "a file":
        path.write_text("")


@pytest.mark.parametrize("how", ["renamed", "removed", "replaced", "a file"])
def test_nothing_is_written_where_the_directory_is_no_more(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "LOOK_S", 0.0)

    async def body() -> None:
        data = tmp_path / "data"
        lock = DirectoryLock.acquire(str(data), ManualClock())
        blob = LocalBlob(str(data / "blobs"), offload=inline, owned=lock.check)
        await blob.put("7/1-a.sys", b"a")
        blob.check_place()
        _displace(data, how)
        before = sorted(tmp_path.rglob("*.sys"))
        for work in (blob.put("7/1-b.sys", b"b"), blob.put("8/1-c.sys", b"c"), blob.grant("job")):
            with pytest.raises(Indeterminate if how == "a file" else Displaced):
                await work
        assert how == "replaced" or sorted(tmp_path.rglob("*.sys")) == before  # no folder was made for it
        told: list[TxnError] = []
        await watch(blob.check_place, told.append)
        assert [type(one) for one in told] == [Displaced]
        lock.release()

    run(body)


def test_a_file_system_that_is_unmounted_is_not_written_around(tmp_path: Path) -> None:
    async def body() -> None:
        blob = LocalBlob(str(tmp_path), offload=inline)
        await blob.put("7/1-a.sys", b"a")
        blob._device = os.stat("/proc").st_dev  # what is mounted there now is another
        with pytest.raises(Displaced, match="unmounted"):
            await blob.put("7/1-b.sys", b"b")
        shutil.rmtree(tmp_path / "tmp")
        with pytest.raises(Displaced, match="unmounted"):
            await blob.put("7/1-c.sys", b"c")
        assert not (tmp_path / "tmp").exists()

    run(body)


def test_a_server_whose_directory_is_renamed_stops_and_has_lost_nothing(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    server = ServerProcess(data)
    client = server.connect()
    client.run("CREATE TABLE t (a int PRIMARY KEY)")
    client.run("INSERT INTO t SELECT * FROM generate_series(1, 100)")
    client.run("CHECKPOINT")
    data.rename(other)
    acknowledged = 100
    try:
        while True:
            client.run(f"INSERT INTO t VALUES ({acknowledged + 1})")
            acknowledged += 1
            client.run("CHECKPOINT")
    except (ServerError, OSError):
        pass
    client.close()
    assert server.wait_end() == (1, ANY)
    assert not data.exists()
    other.rename(data)
    server = ServerProcess(data)
    try:
        assert int(server.sql("SELECT count(*) FROM t")[0][0] or 0) >= acknowledged
    finally:
        server.stop()
