"""What DuckDB opens is taken from the process's descriptors first: nobody meets EMFILE because of a query over many files."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import pytest

from engine.base import kept_rows
from engine.base.eager import eager
from engine.base.loop import descriptors
from engine.base.loop.descriptors import FILES, OPENED, Descriptors
from engine.base.rows import RowBatch
from engine.executors.local import instance
from engine.executors.local.instance import opened_at_most
from pgwire.session.lobby import STAY
from planner.base.errors import SqlError
from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

PARTITIONS = 60
LIMIT = 560  # of which the server itself has some 60
TO_TAKE = LIMIT - 20 - STAY - (FILES - OPENED)


def of(limit: int, monkeypatch: pytest.MonkeyPatch, connections: int = 20) -> Descriptors:
    """Return the descriptors of a process that has so many to take."""
    soft = limit + connections + STAY + FILES - OPENED
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    made = Descriptors(connections)
    assert made.limit == max(limit, OPENED)
    return made


def test_they_are_had_in_the_order_of_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        shared = of(200, monkeypatch)
        assert await shared.take(150)
        got: list[int] = []

        async def ask(count: int) -> None:
            assert await shared.take(count)
            got.append(count)

        asked = [asyncio.ensure_future(ask(count)) for count in (120, 10, 60)]
        await asyncio.sleep(0)
        assert not shared.take_now(1)  # it would pass those who wait
        shared.give(20)
        await asyncio.sleep(0)
        assert got == []  # 130 are taken
        shared.give(100)
        await asyncio.gather(*asked[:2])
        assert got == [120, 10]
        assert shared.taken == 160
        shared.give(120)
        await asked[2]
        shared.give(100)
        assert shared.taken == 0

    asyncio.run(main())


def test_the_wait_is_bounded_and_what_nobody_wants_any_more_stays_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(descriptors, "ROOM_S", 0.05)

    async def main() -> None:
        shared = of(200, monkeypatch)
        assert not await shared.take(201)
        assert await shared.take(200)
        begun = time.monotonic()
        assert not await shared.take(1)
        assert 0.04 < time.monotonic() - begun < 5
        for given_before in (False, True):  # the cancel, and what it waits for, in one turn
            gone, next_one = (asyncio.ensure_future(shared.take(count)) for count in (150, 20))
            await asyncio.sleep(0)
            if given_before:
                shared.give(160)
            gone.cancel()
            if not given_before:
                shared.give(160)
            with pytest.raises(asyncio.CancelledError):
                await gone
            assert await next_one
            assert shared.taken == 60
            shared.give(20)
            assert await shared.take(160)
        shared.give(200)
        assert not shared._waiting

    asyncio.run(main())


def test_waiting_begins_without_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement's first steps are the socket's."""

    async def main() -> None:
        shared = of(200, monkeypatch)
        assert shared.take_now(200)
        begun: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: begun.set_result(eager(shared.take(50))))
        waiting = await begun
        shared.give(100)
        assert await waiting
        assert shared.taken == 150

    asyncio.run(main())


def test_the_limit_follows_the_system_and_leaves_some_always(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = of(500, monkeypatch)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert shared.limit == OPENED
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert shared.limit > 1_000_000


def test_a_file_of_a_cursor_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "ROOM_S", 0.01)

    async def main() -> None:
        assert shared.take_now(OPENED - 1)
        made = [kept_rows.KeptRows(tmp_path, list, most=lambda: 1, descriptors=shared) for _ in range(2)]
        for _ in range(3):
            await made[0].add(RowBatch(rows=[(1,)]))
        assert shared.taken == OPENED
        with pytest.raises(SqlError, match=f"{OPENED} of {OPENED} file descriptors") as refused:
            await made[1].add(RowBatch(rows=[(1,)]))
        assert refused.value.sqlstate == "53000"
        await closed(made[0])
        await made[1].add(RowBatch(rows=[(1,)]))
        assert await made[1].rows(0, 1) == [(1,)]
        await closed(made[1])

    async def closed(one: kept_rows.KeptRows) -> None:
        """Close it; its file is, too, in a thread, as that frees what is in it, and its descriptor is free then."""
        threads: list[int] = []
        file, real = one._file, one._file.close  # type: ignore[union-attr]
        monkeypatch.setattr(
            one, "_file", SimpleNamespace(close=lambda: (threads.append(get_ident()), real()))
        )
        one.close()
        assert shared.taken == OPENED
        async with asyncio.timeout(60):
            while shared.taken == OPENED:
                await asyncio.sleep(0.001)
        assert shared.taken == OPENED - 1
        assert file.closed  # type: ignore[union-attr]
        assert threads != [get_ident()]

    shared = of(OPENED, monkeypatch)
    asyncio.run(main())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of few descriptors, with partitions in a part each, some with hidden rows and some with rows in memory."""
    made = ServerProcess(
        tmp_path_factory.mktemp("descriptors") / "data", "--max-connections", "20", "--local-threads", "2"
    )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE, (LIMIT, hard))
    made.sql("CREATE TABLE p (k int, v int, words text[]) PARTITION BY RANGE (k)")
    made.sql(
        f"DO $$ BEGIN FOR i IN 0..{PARTITIONS - 1} LOOP EXECUTE format('CREATE TABLE p%s PARTITION OF p "
        "FOR VALUES FROM (%s) TO (%s)', i, i * 10, i * 10 + 10); END LOOP; END $$"
    )
    made.sql(f"INSERT INTO p SELECT i, i, ARRAY['w' || i] FROM generate_series(0, {PARTITIONS * 10 - 1}) i")
    made.sql("CHECKPOINT")
    made.sql("DELETE FROM p WHERE k % 20 = 3")  # of every second partition
    made.sql("ALTER TABLE p ADD COLUMN added int DEFAULT 7")
    made.sql("INSERT INTO p SELECT k, -1, NULL, 8 FROM (VALUES (3), (103), (105)) h (k)")
    yield made
    made.stop()


KEPT = [k for k in range(PARTITIONS * 10) if k % 20 != 3]


def test_partitions_are_read_alike_and_told_apart(server: ServerProcess) -> None:
    texts = (
        "SELECT count(*), sum(v), sum(added) FROM p",
        "SELECT tableoid::regclass, count(*), sum(k), min(v) FROM p GROUP BY 1 ORDER BY 1",
        "SELECT tableoid::regclass, k, v, words, added FROM p WHERE k BETWEEN 98 AND 112 ORDER BY k, v",
        "SELECT a.k, b.tableoid::regclass FROM p a JOIN p b ON b.k = a.k + 100 WHERE a.tableoid = 'p3'::regclass ORDER BY 1, 2",
        "SELECT tableoid::regclass, count(*) FROM p WHERE tableoid IN ('p10'::regclass, 'p59'::regclass) GROUP BY 1 ORDER BY 1",
        "WITH c AS NOT MATERIALIZED (SELECT k, v FROM p) SELECT count(*) FROM c x JOIN c y ON x.k = y.v",
    )  # fmt: skip
    found = {
        executor: [server.sql(f"SET executor = {executor}; {text}") for text in texts]
        for executor in ("index", "local")
    }
    assert found["local"] == found["index"]
    total, of_v, of_added = (
        len(KEPT) + 3, sum(KEPT) - 3, 7 * len(KEPT) + 24
    )  # fmt: skip
    assert found["local"][0] == [(str(total), str(of_v), str(of_added))]
    assert len(found["local"][1]) == PARTITIONS


def test_queries_over_many_parts_leave_descriptors_to_the_others(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Four at once of a query that reads every part twice; beside them point reads and new connections."""
    expected = [(str(len(KEPT) + 5),)]  # of the three rows that came back, one is another of its key
    problems: list[str] = []
    most = 0
    end = time.monotonic() + 4

    def work(*texts: str) -> None:
        client = server.connect(timeout_s=60)
        try:
            client.run("SET executor = 'local'")
            while time.monotonic() < end:
                for text in texts:
                    try:
                        client.run(text)
                    except (
                        ServerError
                    ) as error:  # on a busy machine room may come later than a query waits for it
                        if error.sqlstate != "53000" or "files at once" not in error.message:
                            raise
        except Exception as error:
            problems.append(repr(error))
        finally:
            client.close()

    heavy = "SELECT count(*) FROM p x JOIN p y USING (k)"
    assert server.sql(f"SET executor = 'local'; {heavy}") == expected
    others = ("SET executor = 'auto'", "SELECT v FROM p WHERE k = 77", "SELECT v FROM p WHERE k = 477")
    threads = [threading.Thread(target=work, args=(heavy,)) for _ in range(4)]
    threads += [threading.Thread(target=work, args=others) for _ in range(2)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        assert server.sql("SELECT 1") == [("1",)]
        most = max(most, len(os.listdir(f"/proc/{server.process.pid}/fd")))
    for thread in threads:
        thread.join()
    assert problems == []
    assert most < LIMIT - 20


def test_what_would_open_too_much_goes_another_way_or_tells_both_figures(server: ServerProcess) -> None:
    each = opened_at_most([PARTITIONS // 2] * 2, 2)
    scans = TO_TAKE // each + 1
    text = "SELECT sum(n) FROM (" + " UNION ALL ".join(["SELECT count(*) n FROM p"] * scans) + ") x"
    expected = [(str(scans * (len(KEPT) + 3)),)]
    with pytest.raises(ServerError) as refused:
        server.sql(f"SET executor = 'local'; {text}")
    assert refused.value.sqlstate == "53000"
    assert f"may open {each * scans} files at once" in refused.value.message
    assert f"there are {TO_TAKE} " in refused.value.message
    assert server.sql(f"SET executor = 'index'; {text}") == expected
    assert server.sql(f"SET executor = 'auto'; {text}") == expected


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_scan_opens_no_more_than_is_taken_for_it(threads: int, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = [tmp_path / f"{n}.parquet" for n in range(150)]
    for file in files:
        pq.write_table(pa.table({"a": list(range(50))}), file)
    connection = instance.open_instance(tmp_path, memory_bytes=2**27, threads=threads)
    cursor = connection.cursor()
    try:
        names = ", ".join(f"'{file}'" for file in files)
        scan = f"read_parquet([{names}], file_row_number = true)"
        cursor.sql(f"SELECT count(*) FROM read_parquet(['{files[0]}'])").fetchall()
        before = len(os.listdir("/proc/self/fd"))
        for text, scans in (
            (f"SELECT a FROM {scan}", 1),
            (f"SELECT x.a + y.a FROM {scan} x JOIN {scan} y USING (a, file_row_number) LIMIT 9000", 2),
            (" UNION ALL ".join(f"SELECT a FROM read_parquet('{file}')" for file in files), None),
        ):
            counts = [1] * len(files) if scans is None else [len(files)] * scans
            most, done = 0, threading.Event()

            def watch(done: threading.Event = done) -> None:
                nonlocal most
                while not done.is_set():
                    most = max(most, len(os.listdir("/proc/self/fd")) - before - 1)

            watcher = threading.Thread(target=watch)
            watcher.start()
            for turn in range(3):
                reader = cursor.sql(text).to_arrow_reader(2048)
                for number, _ in enumerate(reader):
                    if turn == 2 and number > 2:  # the client leaves
                        break
                del reader
            done.set()
            watcher.join()
            assert 0 < most <= opened_at_most(counts, threads)
            cursor.execute("SELECT 1").fetchall()
            assert len(os.listdir("/proc/self/fd")) == before
    finally:
        cursor.close()
        connection.close()
