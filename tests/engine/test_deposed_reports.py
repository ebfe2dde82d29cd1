"""What a client is told when a file is gone: that the server was deposed where that is the reason, else which file."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from engine.server.database import Database
from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from txn.base.errors import Fenced
from txn.persist.memory import MemoryDisk


class RunsOut:
    """A lease that is valid when a statement begins and has run out when it meets trouble."""

    def __init__(self, then: Exception | None) -> None:
        self.then = then
        self.asked = self.waited = 0

    def valid(self) -> bool:
        self.asked += 1
        return self.asked == 1

    async def wait_valid(self) -> None:
        self.waited += 1
        if self.then is not None:
            raise self.then


async def with_a_lost_file(check: Callable[[Database, Session, str], object]) -> None:
    disk = MemoryDisk()
    database = await open_database(disk)
    session = Session(database, 1)
    await session.run("CREATE TABLE t (id int PRIMARY KEY, a text)")
    await session.run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 1000) AS g (i)")
    await session.run("CREATE TABLE other (id int PRIMARY KEY)")
    await session.run("INSERT INTO other VALUES (7)")
    await session.run("CHECKPOINT")
    [(oid,)] = await session.run("SELECT 't'::regclass::oid")
    (part,) = database.store.core.log.manifests[int(str(oid))].parts
    os.unlink(part.ref.path)
    [name] = [name for name in disk.blobs if part.ref.path.endswith(f"/{name}")]
    del disk.blobs[name]
    try:
        await check(database, session, part.ref.path)  # type: ignore[misc]
        database.lease = None
        assert await session.run("SELECT id FROM other") == [("7",)]
    finally:
        await database.close()


def test_a_deposed_leader_whose_file_is_gone_says_that_it_was_deposed() -> None:
    async def check(database: Database, session: Session, path: str) -> None:
        lease = RunsOut(Fenced("epoch 1 has been superseded by 2"))
        database.lease = lease  # type: ignore[assignment]
        with pytest.raises(Failed) as caught:
            await session.run("SELECT max(a) FROM t")
        assert caught.value.report.sqlstate == "57P01"
        assert lease.waited == 1

    run(lambda: with_a_lost_file(check))


@pytest.mark.parametrize("leased", [False, True])
def test_a_leader_whose_file_is_gone_names_it(leased: bool) -> None:
    async def check(database: Database, session: Session, path: str) -> None:
        lease = RunsOut(None)
        if leased:
            database.lease = lease  # type: ignore[assignment]
        with pytest.raises(Failed) as caught:
            await session.run("SELECT max(a) FROM t")
        assert caught.value.report.sqlstate == "XX001"
        assert path in caught.value.report.message
        assert bool(lease.waited) == leased

    run(lambda: with_a_lost_file(check))


def test_errors_of_values_wait_for_the_lease_too() -> None:
    """The values are those that a successor may have changed."""

    async def check(database: Database, session: Session, path: str) -> None:
        lease = RunsOut(None)
        database.lease = lease  # type: ignore[assignment]
        with pytest.raises(Failed) as caught:
            await session.run("SELECT id / 0 FROM other")
        assert caught.value.report.sqlstate == "22012"
        assert lease.waited

    run(lambda: with_a_lost_file(check))
