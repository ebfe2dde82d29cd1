"""COPY by the process beside the server: what comes of a load is what comes of it in the server, and a lost process harms none."""

from __future__ import annotations

import asyncio
import functools
import io
import os
import pickle
import signal
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.base.accounts import Statements
from engine.catalog.physical import shard_spec
from engine.changes.bulk import load_worker
from engine.changes.bulk.stream_task import StreamTask
from engine.changes.bulk.worker_pool import PROCESS_BYTES, WAITING_BYTES, WorkerPool
from engine.session.progress import CopyProgress
from pgwire.codecs.copy import CopyOptions
from tests.engine.bulk.loads import INT4, TEXT, spec
from tests.support.server import ServerProcess
from txn.base.errors import OutOfSpace, StorageError
from txn.base.resident import private_bytes_of
from txn.persist.location import Blob, Indeterminate, StoreUnavailable
from txn.persist.parts.job import PartJob
from txn.values.encoding import encode_spec

Connection = psycopg.Connection[tuple[Any, ...]]
SPEC = spec(CopyOptions(), INT4, TEXT)
ROWS = 21_000  # past engine.statements.copy.BULK_ROWS

STATEMENTS = Statements(1 << 40, 1 << 40)


@pytest.fixture
def connection(server: ServerProcess) -> Iterator[Connection]:
    with psycopg.connect(server.url, autocommit=True) as made:
        made.execute("DROP TABLE IF EXISTS beside")
        yield made


def workers(server: ServerProcess) -> set[int]:
    """Return the processes that load for a server."""
    found = set()
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        for child in (thread / "children").read_text(encoding="ascii").split():
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if load_worker.__name__.encode() in command:
                found.add(int(child))
    return found


def begin(connection: Connection, statement: str = "COPY beside FROM STDIN") -> None:
    """Begin a COPY whose data ``put`` sends."""
    connection.pgconn.nonblocking = 0
    connection.pgconn.send_query(statement.encode())
    result = connection.pgconn.get_result()
    assert result is not None
    assert result.status == psycopg.pq.ExecStatus.COPY_IN


def put(connection: Connection, data: bytes) -> None:
    for at in range(0, len(data), 50_000):
        connection.pgconn.put_copy_data(data[at : at + 50_000])


def end(connection: Connection, failure: bytes | None = None) -> tuple[str | None, ...]:
    """End a COPY; return SQLSTATE, message and CONTEXT of its error, or its command tag."""
    connection.pgconn.put_copy_end(failure)
    said: tuple[str | None, ...] = ()
    while (result := connection.pgconn.get_result()) is not None:
        fields = (psycopg.pq.DiagnosticField.SQLSTATE, psycopg.pq.DiagnosticField.MESSAGE_PRIMARY,
                  psycopg.pq.DiagnosticField.CONTEXT)  # fmt: skip
        error = [result.error_field(field) for field in fields]
        if error[0] is not None:
            said = tuple(None if one is None else one.decode() for one in error)
        elif not said:
            said = ((result.command_status or b"").decode(),)
    connection.pgconn.nonblocking = 1
    return said


def texts(row: Callable[[int], str], rows: int = ROWS) -> bytes:
    return "".join(map(row, range(rows))).encode()


def with_line(data: bytes, line: bytes, at: int = 20_900) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[at] = line
    return b"".join(lines)


PLAIN = texts(lambda i: f"{i}\tname {i}\t{i % 100}.50\n")
CSV = texts(lambda i: f'{i},"a ""{i}""\n,",1.5\n' if i % 50 == 0 else f"{i},b{i},\n")
COLUMNS = "id int PRIMARY KEY, t text NOT NULL, n numeric(6,2) CHECK (n < 500)"
DERIVED = (
    "id int, t text, n numeric(6,2), d date DEFAULT '2020-02-02', g int GENERATED ALWAYS AS (id * 2) STORED"
)


@pytest.mark.parametrize(
    ("columns", "options", "data"),
    [
        (COLUMNS, "", PLAIN),
        (COLUMNS, "", PLAIN[:-1].replace(b"\n", b"\r\n")),
        (COLUMNS, "", with_line(PLAIN, b"\\.\n", 20_500)),
        (COLUMNS, "", with_line(PLAIN, b"-1\ta\\tb\\\nc\\101\t1.005\n")),
        (COLUMNS, "(FORMAT csv, HEADER match)", b"id,t,n\n" + CSV),
        (COLUMNS, "(FORMAT json)", texts(lambda i: f'{{"id": {i}, "t": "ä{i}", "n": 1.5}}\n')),
        ("id int[], t interval, n float8", "", texts(lambda i: f"{{{i},NULL}}\t{i} days 02:03\t{i}.25\n")),
        (DERIVED, "(id, t, n) FROM STDIN WHERE id % 3 = 1", PLAIN),
        ("id serial, t text, n numeric DEFAULT random() * 0", "(t) FROM STDIN", texts(lambda i: f"n{i}\n")),
        (COLUMNS, "(ON_ERROR ignore, LOG_VERBOSITY verbose)", with_line(PLAIN, b"x\ta\t1\n")),
        (COLUMNS, "(ON_ERROR ignore, REJECT_LIMIT 1)", with_line(with_line(PLAIN, b"x\ta\t1\n"), b"y\ta\t1\n", 20_990)),
        (COLUMNS, "", with_line(PLAIN, b"1\t\\N\t1\n")),
        (COLUMNS, "", with_line(PLAIN, b"-1\ta\t999\n")),
        (COLUMNS, "", with_line(PLAIN, b"\xff\ta\t1\n")),
        (COLUMNS, "", with_line(PLAIN, b"7\ta\t1\n")),
        (COLUMNS, "(ENCODING latin1)", with_line(PLAIN, b"-1\t\xe4\t1\n")),
        (COLUMNS, "(ENCODING euc_jp)", with_line(PLAIN, b"-1\t\xff\t1\n")),
        (COLUMNS, "(FORMAT csv)", CSV + b'1,"open'),
        ("id int, t varchar(12), n numeric, PRIMARY KEY (id), CHECK (length(t) < 12)", "(FORMAT csv)", CSV),
    ],
)  # fmt: skip
def test_a_load_comes_to_the_same_in_the_server_and_beside_it(
    connection: Connection, server: ServerProcess, columns: str, options: str, data: bytes
) -> None:
    told: list[str] = []
    connection.add_notice_handler(lambda diag: told.append(f"{diag.message_primary} {diag.context}"))
    found = []
    for how in ("off", "on"):
        connection.execute("DROP TABLE IF EXISTS beside")
        connection.execute(f"CREATE TABLE beside ({columns})")
        connection.execute(f"SET copy_worker = {how}")
        told.clear()
        begin(connection, "COPY beside " + (options if "FROM" in options else f"FROM STDIN {options}"))
        put(connection, data)
        said = end(connection)
        rows = sorted(map(repr, connection.execute("SELECT * FROM beside").fetchall()))
        found.append((said, rows, list(told)))
    assert found[0] == found[1]
    assert workers(server)


def test_a_client_that_gives_up_is_told_the_line_and_keeps_the_process(
    connection: Connection, server: ServerProcess
) -> None:
    connection.execute("CREATE TABLE beside (id int, t text)")
    data = texts(lambda i: f"{i}\tname\n", 30_000)
    begin(connection)
    put(connection, data)
    assert end(connection) == ("COPY 30000",)
    before = workers(server)
    begin(connection)
    put(connection, data)
    said = ("57014", "COPY from stdin failed: enough", "COPY beside, line 30001")
    assert end(connection, b"enough") == said
    begin(connection)
    put(connection, with_line(data, b"x\ta\n", 29_000))
    said = ("22P02", 'invalid input syntax for type integer: "x"', 'COPY beside, line 29001, column id: "x"')
    assert end(connection, b"enough") == said
    begin(connection)
    put(connection, data)
    assert end(connection) == ("COPY 30000",)
    assert workers(server) == before
    assert connection.execute("SELECT count(*) FROM beside").fetchall() == [(60_000,)]


def loading(connection: Connection, watcher: Connection) -> None:
    """Begin a load, and return when the process has told of rows."""
    begin(connection)
    look = "SELECT tuples_processed FROM pg_stat_progress_copy WHERE pid = %s"
    first = 0
    while True:
        found = watcher.execute(look, [connection.info.backend_pid]).fetchall()
        assert found, end(connection)
        if found[0][0] > 20_500:
            return
        put(connection, b"".join(b"%d\tname\n" % i for i in range(first, first + 1000)))
        first += 1000


def ended(worker: int) -> bool:
    """Whether a process has ended with all its threads: its parent is told only then."""
    process = Path(f"/proc/{worker}")
    try:
        state = (process / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
        return state == "Z" and len(list((process / "task").iterdir())) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def the_busy(server: ServerProcess, connection: Connection, watcher: Connection) -> int:
    """Begin a load and return the process that has it, the server's only one."""
    for worker in workers(server):
        os.kill(worker, signal.SIGKILL)
        wait_for(functools.partial(ended, worker))
    loading(connection, watcher)
    (found,) = (worker for worker in workers(server) if not ended(worker))
    return found


@pytest.fixture
def watcher(server: ServerProcess) -> Iterator[Connection]:
    with psycopg.connect(server.url, autocommit=True) as made:
        yield made


def test_a_load_fails_with_its_process_and_the_next_one_does_not(
    connection: Connection, server: ServerProcess, watcher: Connection
) -> None:
    connection.execute("CREATE TABLE beside (id int PRIMARY KEY, t text)")
    connection.execute("INSERT INTO beside VALUES (-1)")
    worker = the_busy(server, connection, watcher)
    os.kill(worker, signal.SIGKILL)
    said = end(connection)
    assert said == (
        "58000",
        "the process that reads the rows of COPY was terminated by signal 9: Killed",
        None,
    )
    assert watcher.execute("SELECT count(*), sum(id) FROM beside").fetchall() == [(1, -1)]
    begin(connection)
    put(connection, texts(lambda i: f"{i}\tname\n"))
    assert end(connection) == (f"COPY {ROWS}",)
    assert watcher.execute("SELECT count(*) FROM beside").fetchall() == [(ROWS + 1,)]
    assert worker not in workers(server)


def test_a_load_that_is_cancelled_or_cut_off_takes_its_process_along(
    connection: Connection, server: ServerProcess, watcher: Connection
) -> None:
    connection.execute("CREATE TABLE beside (id int PRIMARY KEY, t text)")
    worker = the_busy(server, connection, watcher)
    watcher.execute("SELECT pg_cancel_backend(%s)", [connection.info.backend_pid])
    said = end(connection)
    assert said[:2] == ("57014", "canceling statement due to user request")
    wait_for(lambda: ended(worker))
    worker = the_busy(server, connection, watcher)
    at_once = struct.pack("ii", 1, 0)  # close resets the connection: the server hears that nobody is there
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), connection.pgconn.socket)
    connection.close()
    wait_for(lambda: ended(worker))
    assert watcher.execute("SELECT count(*) FROM beside").fetchall() == [(0,)]


@pytest.mark.parametrize("said", [True, False], ids=["Terminate", "end of input"])
def test_a_client_that_leaves_gives_its_process_back(
    connection: Connection, server: ServerProcess, watcher: Connection, said: bool
) -> None:
    """Its load fails; the next one finds nothing of it."""
    connection.execute("CREATE TABLE beside (id int PRIMARY KEY, t text)")
    worker = the_busy(server, connection, watcher)
    pid = connection.info.backend_pid
    if not said:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as peer:
            peer.shutdown(socket.SHUT_WR)
    connection.close()
    wait_for(lambda: not watcher.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchall())
    assert watcher.execute("SELECT count(*) FROM beside").fetchall() == [(0,)]
    begin(watcher)
    put(watcher, texts(lambda i: f"{i}\tname\n", 30_000))
    assert end(watcher) == ("COPY 30000",)
    assert workers(server) == {worker}
    assert watcher.execute("SELECT count(*), sum(id) FROM beside").fetchall() == [(30_000, 449_985_000)]


def test_a_process_does_not_outlive_its_server_and_leaves_nothing(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    one, two = (psycopg.connect(server.url, autocommit=True) for _ in range(2))
    try:
        one.execute("CREATE TABLE beside (id int PRIMARY KEY, t text)")
        worker = the_busy(server, one, two)
    finally:
        server.kill()
        one.close()
        two.close()
    wait_for(lambda: ended(worker))
    server = ServerProcess(tmp_path / "data")
    try:
        assert server.sql("SELECT count(*) FROM beside") == [("0",)]
        assert not list((tmp_path / "data").rglob("*.parquet"))
    finally:
        server.stop()


def test_idle_processes_end_and_the_dead_are_not_handed_out() -> None:
    async def scenario() -> None:
        pool = WorkerPool(STATEMENTS, most=1, idle_s=0.01)
        first = await pool.take()
        assert first is not None
        assert await pool.take() is None  # there are enough
        pool.give(first)
        await asyncio.to_thread(first.process.wait)
        assert first.process.returncode == -signal.SIGKILL
        pool = WorkerPool(STATEMENTS, most=1)
        second = await pool.take()
        assert second is not None
        pool.give(second)
        second.process.kill()
        os.waitid(os.P_PID, second.process.pid, os.WEXITED | os.WNOWAIT)
        third = await pool.take()
        assert third is not None
        assert third.alive
        assert third is not second
        await pool.close()
        assert not third.alive
        assert await pool.take() is None

    asyncio.run(scenario())


def test_none_is_started_where_memory_is_short_and_those_not_used_end() -> None:
    async def scenario() -> None:
        statements = Statements(1 << 40, 1 << 40)
        pool = WorkerPool(statements, most=1)
        statements.ceiling = statements.has() + PROCESS_BYTES // 2
        assert await pool.take() is None
        statements.ceiling = statements.has() + 2 * PROCESS_BYTES
        worker = await pool.take()
        assert worker is not None
        pool.end_idle()
        assert worker.alive  # it is somebody's
        assert private_bytes_of(worker.process.pid) < PROCESS_BYTES
        pool.give(worker)
        pool.end_idle()
        await asyncio.to_thread(worker.process.wait)
        await pool.close()

    asyncio.run(scenario())


def test_a_client_waits_for_a_process_that_does_not_read() -> None:
    async def scenario() -> None:
        pool = WorkerPool(STATEMENTS, most=1)
        worker = await pool.take()
        assert worker is not None
        os.kill(worker.process.pid, signal.SIGSTOP)
        sent = 0

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                await asyncio.sleep(0)
                sent += 1 << 16
                yield bytes(1 << 16)

        task = StreamTask(None, None, (), 0)  # type: ignore[arg-type]
        load = asyncio.create_task(worker.load(task, chunks(), CopyProgress("COPY FROM", 0, "PIPE")))
        for _turn in range(5000):
            await asyncio.sleep(0)
        load.cancel()
        await asyncio.wait((load,))
        assert WAITING_BYTES <= sent < 2 * WAITING_BYTES
        pool.drop(worker)
        await pool.close()
        assert not worker.alive

    asyncio.run(scenario())


def test_a_disk_that_refuses_is_told() -> None:
    class Refusing:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def open(self, worker: str) -> Blob:
            raise self.error

    for error, kind in (
        (Indeterminate("no"), StorageError),
        (StoreUnavailable("s3://x", "gone"), StoreUnavailable),
        (OutOfSpace("full"), OutOfSpace),
    ):
        job = PartJob(
            prefix="1/1-1", grant=Refusing(error), spec=encode_spec(shard_spec(SPEC.relation)), first_row_id=1,
            part_rows=10, part_bytes=1 << 20,
        )  # fmt: skip
        answer = StreamTask(job, SPEC, (), 0).run(io.BytesIO(b"1\ta\n"), lambda rows, excluded: None)
        with pytest.raises(kind, match=str(error)):
            pickle.loads(pickle.dumps(answer)).written()
