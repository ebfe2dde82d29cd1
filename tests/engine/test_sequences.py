"""Sequences: what is stored lies beyond what was given, through restarts and kill -9; counting ahead is counting."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as s

from engine.session.sequences.values import FIRST_BLOCK, Counter, ahead, step
from planner.base.errors import SqlError
from planner.catalog import SequenceDef
from planner.facts import INT8
from sqllogictest.client import ServerError
from tests.support.engine import Session, open_database
from tests.support.server import ServerProcess
from txn.base.errors import OutOfSpace
from txn.base.types import RowId
from txn.persist.memory import MemoryDisk


@s.composite
def definitions(draw: s.DrawFn) -> SequenceDef:
    low, high = sorted(draw(s.sets(s.integers(-20, 20), min_size=2, max_size=2)))
    increment = draw(s.integers(-25, 25).filter(bool))
    return SequenceDef(
        type_oid=INT8, start=low, increment=increment, minimum=low, maximum=high, cycle=draw(s.booleans())
    )


@given(definitions(), s.integers(1, 70), s.booleans(), s.data())
def test_counting_ahead_is_counting(
    definition: SequenceDef, count: int, called: bool, data: s.DataObject
) -> None:
    value = data.draw(s.integers(definition.minimum, definition.maximum))
    expected = value
    for _ in range(count if called else count - 1):
        try:
            expected = step(definition, expected, "s")
        except SqlError:
            break
    assert ahead(definition, value, called, count) == expected


class SlowStore:
    """Stands for ``Counters``: a row moves only when it is let."""

    def __init__(self) -> None:
        self.stored: list[tuple[int, bool]] = []
        self.asked = asyncio.Event()
        self.allowed = asyncio.Event()
        self.failure: Exception | None = None

    async def store(self, key: object, row: RowId | None, value: int, called: bool) -> RowId:
        self.asked.set()
        await self.allowed.wait()
        if self.failure is not None:
            raise self.failure
        self.stored.append((value, called))
        return RowId(1)


UP = SequenceDef(type_oid=INT8, start=1, increment=1, minimum=1, maximum=2**63 - 1)


def test_what_is_waited_for_lies_beyond_what_was_given() -> None:
    async def main() -> None:
        store = SlowStore()
        counter = Counter(store, (1, 0), UP, None)  # type: ignore[arg-type]
        values = [counter.next(UP, "s") for _ in range(100)]
        assert values == list(range(1, 101))
        assert not counter.is_covered
        waiting = asyncio.ensure_future(counter.wait(counter.given))
        await store.asked.wait()
        assert not waiting.done()
        store.allowed.set()
        await waiting
        assert counter.is_covered
        assert store.stored[-1][0] >= 100
        counter.set(UP, 5, True)
        assert not counter.is_covered  # the row still says that 5 is far behind
        await counter.wait(counter.given)
        assert store.stored[-1][0] == 5 + FIRST_BLOCK
        await counter.close()
        assert store.stored[-1] == (5, True)

    asyncio.run(main())


def test_other_steps_need_another_row() -> None:
    async def main() -> None:
        store = SlowStore()
        store.allowed.set()
        counter = Counter(store, (1, 0), UP, None)  # type: ignore[arg-type]
        counter.next(UP, "s")
        await counter.wait(1)
        wide = SequenceDef(type_oid=INT8, start=1, increment=1000, minimum=1, maximum=2**63 - 1)
        assert counter.next(wide, "s") == 1001
        assert not counter.is_covered
        await counter.wait(counter.given)
        assert store.stored[-1][0] >= 1001

    asyncio.run(main())


@pytest.mark.timeout(60)
def test_who_sets_it_right_behind_a_write_waits_for_the_next_one() -> None:
    """Until the loop has told it that its write has ended, a counter still has that; who waited for it never gave way."""

    async def main() -> None:
        store = SlowStore()
        store.allowed.set()
        counter = Counter(store, (1, 0), UP, None)  # type: ignore[arg-type]
        counter.next(UP, "s")
        while not store.stored:
            await asyncio.sleep(0)
        counter.set(UP, 500, False)
        await counter.wait(counter.given)
        assert store.stored[-1][0] >= 500
        await asyncio.sleep(0)
        counter.next(UP, "s")
        await counter.close()
        assert store.stored[-1] == (500, True)

    asyncio.run(main())


def test_who_waits_learns_that_it_could_not_be_stored() -> None:
    async def main() -> None:
        store = SlowStore()
        store.allowed.set()
        store.failure = OutOfSpace("full")
        counter = Counter(store, (1, 0), UP, None)  # type: ignore[arg-type]
        counter.next(UP, "s")
        with pytest.raises(OutOfSpace):
            await counter.wait(1)
        store.failure = None
        await counter.wait(1)
        assert counter.is_covered

    asyncio.run(main())


@pytest.mark.parametrize("draws", ["nextval('s')", "setval('s', 1000)"])
def test_a_commit_waits_until_what_it_has_drawn_is_stored(draws: str) -> None:
    """A crash just behind the commit, as early as there can be one, finds the sequence beyond what was drawn."""

    async def main() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE SEQUENCE s")
        [(drawn,)] = await session.run(f"SELECT {draws}")
        disk.crash()
        database = await open_database(disk)
        [(following,)] = await Session(database, 1).run("SELECT nextval('s')")
        assert int(following or 0) > int(drawn or 0)
        await database.close()

    asyncio.run(main())


def test_an_orderly_restart_skips_nothing(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE TABLE t (id serial PRIMARY KEY, j int GENERATED ALWAYS AS IDENTITY (START 7))")
        server.sql("INSERT INTO t VALUES (DEFAULT, DEFAULT), (DEFAULT, DEFAULT)")
        server.sql("SELECT setval('t_j_seq', 100, false)")
        assert server.stop() == 0
        server = ServerProcess(tmp_path / "data")
        assert server.sql("INSERT INTO t DEFAULT VALUES RETURNING id, j") == [("3", "100")]
        assert server.sql("SELECT last_value, is_called FROM t_id_seq") == [("3", "t")]
    finally:
        server.stop()


def test_no_committed_value_is_given_again_after_kill_9(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    seen: list[int] = []
    lock = threading.Lock()
    try:
        server.sql("CREATE TABLE t (id serial PRIMARY KEY)")
        for _round in range(3):
            enough = threading.Event()

            def work(current: ServerProcess, enough: threading.Event) -> None:
                client = current.connect()
                try:
                    while True:
                        [(value,)] = client.run("INSERT INTO t DEFAULT VALUES RETURNING id").rows
                        client.run("SELECT nextval('t_id_seq')")
                        with lock:
                            seen.append(int(value or 0))
                            if len(seen) % 60 == 0:
                                enough.set()
                except (OSError, ServerError):
                    pass  # the server was killed
                finally:
                    client.close()

            threads = [threading.Thread(target=work, args=(server, enough)) for _ in range(3)]
            for thread in threads:
                thread.start()
            assert enough.wait(60)
            server.kill()
            for thread in threads:
                thread.join()
            server = ServerProcess(tmp_path / "data")
        assert len(seen) == len(set(seen))
        [(highest,)] = server.sql("SELECT max(id) FROM t")
        assert max(seen) <= int(highest or 0)
        [(following,)] = server.sql("SELECT nextval('t_id_seq')")
        assert int(following or 0) > int(highest or 0)
    finally:
        server.stop()
