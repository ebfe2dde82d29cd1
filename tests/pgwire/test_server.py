"""The server over loopback: limits, ends, cancellation, back-pressure, TLS, real clients."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from pgwire import messages as m
from pgwire.auth.scram import make_verifier
from pgwire.backend import FieldDescription, Responder
from pgwire.errors import BackendError, ErrorReport
from pgwire.messages.encode import data_row, encode_frontend
from pgwire.server import ServerConfig
from pgwire.session import lobby
from pgwire.session.lobby import STAY
from tests.support.wire_backend import TinyBackend, TinyDatabase
from tests.support.wire_client import WireClient
from tests.support.wire_server import ServerThread

LOCAL = "127.0.0.1"


def eventually(condition: Callable[[], bool], timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.005)


@pytest.fixture(params=[True, False], ids=["uvloop", "asyncio"])
def serve(request: pytest.FixtureRequest) -> Iterator[Callable[..., ServerThread]]:
    """Return a function that starts a server: serve(database, **config)."""
    running: list[ServerThread] = []

    def start(database: Any, **config: Any) -> ServerThread:
        thread = ServerThread(database, ServerConfig(port=0, **config), use_uvloop=request.param)
        running.append(thread.__enter__())
        return thread

    yield start
    for thread in running:
        thread.__exit__()


def ends(sock: socket.socket) -> bool:
    """Read to the end, however it comes."""
    try:
        while sock.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return True


def report_of(said: list[m.BackendMessage]) -> ErrorReport:
    [found] = [message.report for message in said if isinstance(message, m.ErrorResponse)]
    return found


# ---------------------------------------------------------------------------- limits


def test_too_many_sessions_are_told_and_a_place_becomes_free(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase(), max_connections=2)
    with WireClient(LOCAL, thread.port) as a, WireClient(LOCAL, thread.port) as b:
        a.start()
        b.start()
        with WireClient(LOCAL, thread.port) as c:
            report = report_of(c.start())
            assert (report.severity, report.sqlstate) == ("FATAL", "53300")
            assert c.receive() is None
        a.send(m.Terminate())
        assert a.receive() is None
        eventually(lambda: len(thread.server.sessions) == 1)
        with WireClient(LOCAL, thread.port) as d:
            assert d.start()[-1] == m.ReadyForQuery("I")


def closed(sock: socket.socket) -> bool:
    """Return whether the server has closed its side."""
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_sockets_that_say_nothing_take_no_place_and_the_oldest_makes_room(
    serve: Callable[..., ServerThread],
) -> None:
    thread = serve(TinyDatabase(), max_connections=2)
    silent: list[socket.socket] = []
    try:
        for count in range(1, STAY + 8):
            silent.append(socket.create_connection((LOCAL, thread.port)))
            eventually(lambda count=count: len(thread.server._sockets) >= min(count, STAY))  # type: ignore[misc]
        with WireClient(LOCAL, thread.port) as a, WireClient(LOCAL, thread.port) as b:
            assert a.start()[-1] == m.ReadyForQuery("I")
            assert b.start()[-1] == m.ReadyForQuery("I")
            assert len(thread.server._sockets) <= 2 + STAY
            with WireClient(LOCAL, thread.port) as c:
                assert report_of(c.start()).sqlstate == "53300"
            eventually(lambda: sum(not closed(sock) for sock in silent) <= STAY)
            first_kept = next(n for n, sock in enumerate(silent) if not closed(sock))
            assert first_kept >= 7
            assert not any(closed(sock) for sock in silent[first_kept:])
    finally:
        for sock in silent:
            sock.close()


def test_who_stops_within_the_exchange_takes_no_place_either(serve: Callable[..., ServerThread]) -> None:
    verifier = str(make_verifier("x", b"0" * 16))
    thread = serve(TinyDatabase(verifiers={"ann": verifier}), max_connections=1)
    slow = [WireClient(LOCAL, thread.port) for _ in range(STAY)]
    try:
        for client in slow:
            client.__enter__()
            client.send(m.StartupMessage({"user": "ann"}))
            client.until(m.AuthenticationSASL)
        with WireClient(LOCAL, thread.port) as bob:
            assert bob.start()[-1] == m.ReadyForQuery("I")
            with socket.create_connection((LOCAL, thread.port)):
                report = report_of(slow[0].until(m.ErrorResponse))
                assert (report.severity, report.sqlstate) == ("FATAL", "53300")
                assert slow[0].receive() is None
    finally:
        for client in slow:
            client.__exit__()


@pytest.mark.parametrize("rush_s", [3600.0, 0.05])
def test_many_may_come_at_once_where_places_are_free(
    serve: Callable[..., ServerThread], rush_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "RUSH_S", rush_s)
    thread = serve(TinyDatabase(), max_connections=100)
    crowd = [socket.create_connection((LOCAL, thread.port)) for _ in range(2 * STAY)]
    try:
        stay = crowd if rush_s > 60 else crowd[STAY:]
        eventually(lambda: len(thread.server._sockets) == len(stay))
        eventually(lambda: [not closed(sock) for sock in crowd] == [sock in stay for sock in crowd])
    finally:
        for sock in crowd:
            sock.close()


def test_handshakes_that_are_not_ended_make_room(
    serve: Callable[..., ServerThread], certificate: Path
) -> None:
    thread = serve(TinyDatabase(), tls=server_context(certificate), max_connections=1)
    stuck: list[socket.socket] = []
    with WireClient(LOCAL, thread.port) as client:
        assert client.start()[-1] == m.ReadyForQuery("I")
        for _ in range(STAY + 1):
            stuck.append(sock := socket.create_connection((LOCAL, thread.port)))
            sock.sendall(encode_frontend(m.SSLRequest()))
            assert sock.recv(1) == b"S"
        assert ends(stuck[0])
        eventually(lambda: len(thread.server._sockets) == 1 + STAY)
    for sock in stuck:
        sock.close()
    eventually(lambda: not thread.server._sockets)


def test_authentication_takes_no_longer_than_allowed(serve: Callable[..., ServerThread]) -> None:
    verifier = str(make_verifier("x", b"0" * 16))
    thread = serve(TinyDatabase(verifiers={"ann": verifier}), authentication_timeout_s=0.1)
    with WireClient(LOCAL, thread.port) as silent, WireClient(LOCAL, thread.port) as slow:
        slow.send(m.StartupMessage({"user": "ann"}))
        slow.until(m.AuthenticationSASL)
        assert silent.receive() is None
        report = report_of(slow.until(m.ErrorResponse))
        assert (report.severity, report.sqlstate) == ("FATAL", "57014")
        assert slow.receive() is None
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        time.sleep(0.15)
        assert client.query("SELECT 1")[-1] == m.ReadyForQuery("I"), (
            "the clock stops at the first ReadyForQuery"
        )


# ---------------------------------------------------------------------------- ends


def test_terminate_closes_the_backend_once(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Terminate())
        assert client.receive() is None
    eventually(lambda: database.backends[0].closed == 1)
    assert "cancel" not in database.backends[0].calls
    assert not thread.server.sessions


def test_a_disconnect_is_noticed_while_a_statement_runs(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    client = WireClient(LOCAL, thread.port)
    client.start()
    client.send(m.Query("SELECT pg_sleep(10)"))
    eventually(lambda: "query" in database.backends[0].calls)
    client.close()
    eventually(lambda: database.backends[0].closed == 1, 3)
    calls = database.backends[0].calls
    assert calls.index("cancel") < calls.index("close")


def test_a_disconnect_during_copy_ends_it(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    client = WireClient(LOCAL, thread.port)
    client.start()
    client.send(m.Query("COPY t FROM STDIN"))
    client.until(m.CopyInResponse)
    client.send(m.CopyData(b"1\n"))
    client.close()
    eventually(lambda: database.backends[0].closed == 1, 3)
    assert database.backends[0].table == []


def test_what_was_sent_is_answered_when_the_client_sends_no_more(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Query("COPY t FROM STDIN"), m.CopyData(b"1\n"), m.CopyDone(), m.Query("SELECT 1"))
        client.socket.shutdown(socket.SHUT_WR)
        said = client.until(m.ReadyForQuery, count=2)
        assert [message.tag for message in said if isinstance(message, m.CommandComplete)] == [
            "COPY 1",
            "SELECT 1",
        ]
        assert client.receive() is None
    eventually(lambda: database.backends[0].closed == 1)
    assert "cancel" not in database.backends[0].calls


def test_a_copy_whose_client_sends_no_more_fails(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Query("COPY t FROM STDIN"), m.CopyData(b"1\n"))
        client.socket.shutdown(socket.SHUT_WR)
        said = []
        while (message := client.receive()) is not None:
            said.append(message)
    states = [message.report.sqlstate for message in said if isinstance(message, m.ErrorResponse)]
    assert states == ["08006", "08P01"]
    eventually(lambda: database.backends[0].closed == 1)
    assert database.backends[0].table == []


def test_a_closed_session_is_freed_without_garbage_collection(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    gc.disable()
    try:
        with WireClient(LOCAL, thread.port) as client:
            client.start()
            client.query("SELECT 1")
            freed = weakref.ref(thread.server.sessions[client.pid])
            client.send(m.Terminate())
            assert client.receive() is None
        eventually(lambda: freed() is None)
    finally:
        gc.enable()


def test_a_backend_that_fails_to_close_harms_nobody(
    serve: Callable[..., ServerThread], caplog: pytest.LogCaptureFixture
) -> None:
    class Stubborn(TinyBackend):
        def close(self) -> None:
            raise RuntimeError("stuck")

    database = TinyDatabase()
    database.connect = lambda *args: (Stubborn(), {})  # type: ignore[method-assign]
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
    eventually(lambda: not thread.server.sessions)
    eventually(lambda: "stuck" in caplog.text)
    with WireClient(LOCAL, thread.port) as client:
        assert client.start()[-1] == m.ReadyForQuery("I")


def test_an_unexpected_exception_is_logged_and_its_text_stays_here(
    serve: Callable[..., ServerThread], caplog: pytest.LogCaptureFixture
) -> None:
    thread = serve(TinyDatabase())
    with WireClient(LOCAL, thread.port) as client, caplog.at_level(logging.ERROR, "pgwire"):
        client.start()
        report = report_of(client.query("SELECT boom()"))
    assert report.sqlstate == "XX000"
    assert "secret" not in str(report)
    assert "the secret is 42" in caplog.text
    assert "Traceback" in caplog.text


def test_a_backend_that_forgets_to_end_execute_is_a_bug_not_a_hang(
    serve: Callable[..., ServerThread],
) -> None:
    class Forgetful(TinyBackend):
        def execute(self, portal: str, max_rows: int, out: Responder) -> None:
            return None

    database = TinyDatabase()
    database.connect = lambda *args: (Forgetful(), {})  # type: ignore[method-assign]
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Execute(), m.Sync())
        said = client.until(m.ReadyForQuery)
        assert report_of(said).sqlstate == "XX000"


# ---------------------------------------------------------------------------- draining


def test_draining_tells_idle_sessions_and_waits_for_busy_ones(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    with (
        WireClient(LOCAL, thread.port) as idle,
        WireClient(LOCAL, thread.port) as in_block,
    ):
        idle.start()
        in_block.start()
        in_block.query("BEGIN")
        done = asyncio.run_coroutine_threadsafe(thread.server.drain(5), thread.loop)
        report = report_of(idle.until(m.ErrorResponse))
        assert (report.severity, report.sqlstate) == ("FATAL", "57P01")
        assert idle.receive() is None
        assert m.CommandComplete("SELECT 1") in in_block.query("SELECT 1")
        assert not done.done()
        in_block.send(m.Query("COMMIT"))
        said = in_block.until(m.ErrorResponse)
        assert m.CommandComplete("COMMIT") in said
        assert report_of(said).sqlstate == "57P01"
        done.result(5)
    with pytest.raises(ConnectionRefusedError):
        WireClient(LOCAL, thread.port)


def test_draining_cancels_what_is_left_after_the_timeout(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Query("SELECT pg_sleep(10)"))
        eventually(lambda: "query" in database.backends[0].calls)
        start = time.monotonic()
        thread.run(thread.server.drain(0.1))
        assert 0.1 <= time.monotonic() - start < 3
        states = [e.report.sqlstate for e in client.until(m.BindComplete) if isinstance(e, m.ErrorResponse)]
        assert states == ["57P01"]  # and not first that it was cancelled
    assert database.backends[0].closed == 1


def test_terminate_by_pid_ends_a_session_with_the_given_report(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    report = ErrorReport(severity="FATAL", sqlstate="57P05", message="idle too long")
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        assert thread.call(lambda: thread.server.terminate(client.pid, report))
        assert report_of(client.until(m.ErrorResponse)) == report
        assert client.receive() is None
        eventually(lambda: not thread.server.sessions)
        assert not thread.call(lambda: thread.server.terminate(client.pid, report))


# ---------------------------------------------------------------------------- cancelling


def test_only_the_right_key_cancels(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as a, WireClient(LOCAL, thread.port) as b:
        a.start()
        b.start()
        assert a.pid != b.pid
        assert a.key != b.key
        wrong = bytes([a.key[0] ^ 1]) + a.key[1:]
        none = bytes(4)
        for pid, key in (
            (a.pid, wrong), (a.pid, a.key + b"\0"), (a.pid, a.key[:3]), (a.pid, b.key), (a.pid + 1000, none), (0, none),
        ):  # fmt: skip
            assert not thread.call(lambda pid=pid, key=key: thread.server.cancel(pid, key))
        assert "cancel" not in database.backends[0].calls
        with WireClient(LOCAL, thread.port) as canceller:
            canceller.send(m.CancelRequest(a.pid, a.key))
            assert canceller.receive() is None
        assert database.backends[0].calls.count("cancel") == 1
        assert "cancel" not in database.backends[1].calls


def test_sessions_are_listed_with_what_the_client_said(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    with WireClient(LOCAL, thread.port) as client:
        client.start(user="ann", application_name="x")
        session = thread.server.sessions[client.pid]
        assert session.peer == f"{LOCAL}:{client.socket.getsockname()[1]}"
        assert session.parameters == {"user": "ann", "database": "ann", "application_name": "x"}


# ---------------------------------------------------------------------------- flow control

ROW_BYTES = 10_000


class Flood(TinyBackend):
    """``query`` sends rows, draining after each, until it has sent as many as the text says."""

    sent = 0

    def query(self, sql: str, out: Responder) -> Any:
        async def work() -> None:
            out.row_description((FieldDescription(name="r", type_oid=25, type_size=-1),))
            row = data_row([b"x" * ROW_BYTES])
            for _ in range(int(sql)):
                out.data_rows(row, 1)
                await out.drain()
                self.sent += 1
            out.command_complete(f"SELECT {sql}")

        return work()


def test_a_client_that_does_not_read_stops_the_backend(serve: Callable[..., ServerThread]) -> None:
    flood = Flood()
    database = TinyDatabase()
    database.connect = lambda *args: (flood, {})  # type: ignore[method-assign]
    thread = serve(database, output_limit_bytes=100_000)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Query("5000"))
        last = -1
        while last != flood.sent:
            last = flood.sent
            time.sleep(0.2)
        assert flood.sent < 4000, "50 MB did not fit into any buffer"
        said = client.until(m.ReadyForQuery)
        assert sum(isinstance(message, m.DataRow) for message in said) == 5000


def test_a_drain_ends_when_the_client_leaves(serve: Callable[..., ServerThread]) -> None:
    flood = Flood()
    database = TinyDatabase()
    database.connect = lambda *args: (flood, {})  # type: ignore[method-assign]
    thread = serve(database, output_limit_bytes=100_000)
    client = WireClient(LOCAL, thread.port)
    client.start()
    client.send(m.Query("100000"))
    time.sleep(0.2)
    client.close()
    eventually(lambda: flood.closed == 1)
    assert flood.sent < 100_000


def test_input_behind_a_running_statement_is_limited(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database, input_limit_bytes=10_000)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Query("SELECT pg_sleep(10)"))
        eventually(lambda: "query" in database.backends[0].calls)
        query = encode_frontend(m.Query("SELECT 1" + " " * 10_000))
        client.socket.settimeout(0.3)
        sent = 0
        try:
            while sent < 100_000_000:
                sent += client.socket.send(query[sent % len(query) :])
        except TimeoutError:
            pass
        assert sent < 100_000_000, "somebody kept it all"
        session = thread.server.sessions[client.pid]
        assert session.connection.buffered < 1_000_000
        client.socket.settimeout(10)
        thread.call(session.cancel)
        whole = sent // len(query)
        assert report_of(client.until(m.ReadyForQuery)).sqlstate == "57014"
        said = client.until(m.ReadyForQuery, count=whole)
        assert said.count(m.DataRow((b"1",))) == whole


def test_one_pipelining_client_does_not_hold_the_loop(serve: Callable[..., ServerThread]) -> None:
    order: list[str] = []

    class Watched(TinyBackend):
        def query(self, sql: str, out: Responder) -> Any:
            order.append(sql)
            return super().query(sql, out)

    database = TinyDatabase()
    database.connect = lambda *args: (Watched(), {})  # type: ignore[method-assign]
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as greedy, WireClient(LOCAL, thread.port) as modest:
        greedy.start()
        modest.start()
        packet = encode_frontend(m.Query("SELECT 1")) * 2000
        sessions = [thread.server.sessions[greedy.pid], thread.server.sessions[modest.pid]]

        def both() -> None:  # as if both sockets had been read in one turn of the loop
            sessions[0].data_received(packet)
            sessions[1].data_received(encode_frontend(m.Query("SELECT 2")))

        thread.call(both)
        modest.until(m.ReadyForQuery)
        greedy.until(m.ReadyForQuery, count=2000)
    assert order.index("SELECT 2") < 1000
    assert len(order) == 2001


def test_large_copy_is_not_held_in_memory(serve: Callable[..., ServerThread]) -> None:
    seen = {"bytes": 0, "most": 0}

    class Counting(TinyBackend):
        def query(self, sql: str, out: Responder) -> Any:
            async def work() -> None:
                async for chunk in out.copy_in(0, ()):
                    seen["bytes"] += len(chunk)
                    seen["most"] = max(seen["most"], len(chunk))
                    await asyncio.sleep(0)
                out.command_complete("COPY 0")

            return work()

    database = TinyDatabase()
    database.connect = lambda *args: (Counting(), {})  # type: ignore[method-assign]
    thread = serve(database, input_limit_bytes=100_000)
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        client.send(m.Query("COPY"))
        client.until(m.CopyInResponse)
        piece = encode_frontend(m.CopyData(b"x" * 5_000_000))
        for _ in range(4):
            client.socket.sendall(piece)
        client.send(m.CopyDone())
        assert client.until(m.ReadyForQuery)[-1] == m.ReadyForQuery("I")
    assert seen["bytes"] == 20_000_000
    assert seen["most"] < 2_000_000


def test_a_whole_batch_is_answered_in_one_write(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        session = thread.server.sessions[client.pid]
        client.send(m.Query("SELECT 1"))  # from here on the connection is known to read
        client.until(m.ReadyForQuery)
        writes: list[bytes] = []
        real = session.responder.transport

        class Counting:
            def write(self, data: bytes) -> None:
                writes.append(bytes(data))
                real.write(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        session.responder.transport = Counting()
        client.send(m.Parse("", "SELECT 1"), m.Bind(), m.Describe("P"), m.Execute(), m.Sync())
        client.until(m.ReadyForQuery)
        assert len(writes) == 1


def test_a_remark_between_statements_is_sent_at_once(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        session = thread.server.sessions[client.pid]
        thread.call(lambda: session.responder.notification(7, "news", "hello"))
        assert client.receive() == m.NotificationResponse(7, "news", "hello")
        thread.call(lambda: session.responder.parameter_status("TimeZone", "UTC"))
        assert client.receive() == m.ParameterStatus("TimeZone", "UTC")


# ---------------------------------------------------------------------------- encryption and other sockets


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def test_tls_upgrade(serve: Callable[..., ServerThread], certificate: Path) -> None:
    verifier = str(make_verifier("pw", b"0" * 16))
    thread = serve(TinyDatabase(verifiers={"ann": verifier}), tls=server_context(certificate))
    dsn = f"host={LOCAL} port={thread.port} user=ann password=pw dbname=d sslmode=verify-full"
    with psycopg.connect(f"{dsn} sslrootcert={certificate / 'cert.pem'}", autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        rows = connection.execute("SELECT repeat('x', 1000) AS r FROM generate_series(1, 5000)").fetchall()
        assert len(rows) == 5000
        [session] = thread.server.sessions.values()
        assert session.tls


def test_a_failed_handshake_harms_nobody(serve: Callable[..., ServerThread], certificate: Path) -> None:
    thread = serve(TinyDatabase(), tls=server_context(certificate))
    with WireClient(LOCAL, thread.port) as client:
        client.send(m.SSLRequest())
        assert client.receive() == m.EncryptionReply(True)
        client.socket.sendall(b"this is no ClientHello, not even remotely" * 5)
        assert ends(client.socket)
    with WireClient(LOCAL, thread.port) as client:
        assert client.start()[-1] == m.ReadyForQuery("I"), "and the clear is still open"


@pytest.mark.parametrize("use_uvloop", [True, False])
def test_tls_without_being_asked_for_by_a_message(certificate: Path, use_uvloop: bool) -> None:
    config = ServerConfig(port=0, tls=server_context(certificate))
    with ServerThread(TinyDatabase(), config, use_uvloop=use_uvloop) as thread:
        where = f"host={LOCAL} port={thread.port} user=ann dbname=d sslrootcert={certificate / 'cert.pem'}"
        if psycopg.pq.version() >= 170000:
            dsn = f"{where} sslmode=verify-full sslnegotiation=direct"
            with psycopg.connect(dsn, autocommit=True) as connection:
                assert connection.pgconn.ssl_in_use
                rows = connection.execute("SELECT repeat('x', 1000) AS r FROM generate_series(1, 5000)")
                assert len(rows.fetchall()) == 5000
        for protocols, welcome in (
            (["postgresql"], True),
            (["h2", "postgresql"], True),
            (["h2"], False),
            ([], False),
        ):
            context = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
            if protocols:
                context.set_alpn_protocols(protocols)
            plain = socket.create_connection((LOCAL, thread.port), timeout=30)
            with context.wrap_socket(plain, server_hostname=LOCAL) as client:
                try:
                    client.sendall(b"\0\0\0\x12\0\3\0\0user\0ann\0\0")
                    answer = client.recv(1)
                except OSError:
                    answer = b""  # reset
                assert (answer == b"R") is welcome, protocols
                assert client.selected_alpn_protocol() == ("postgresql" if welcome else None)
        with WireClient(LOCAL, thread.port) as clear:
            assert clear.start()[-1] == m.ReadyForQuery("I")


def test_a_handshake_that_comes_byte_by_byte_is_heard_out(
    serve: Callable[..., ServerThread], certificate: Path
) -> None:
    thread = serve(TinyDatabase(), tls=server_context(certificate))
    context = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    context.set_alpn_protocols(["postgresql"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=LOCAL)
    with socket.create_connection((LOCAL, thread.port), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    client.sendall(bytes([byte]))
                incoming.write(client.recv(1 << 16))
        assert tls.selected_alpn_protocol() == "postgresql"


def test_a_handshake_where_there_is_no_certificate_is_hung_up_on(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    with socket.create_connection((LOCAL, thread.port), timeout=30) as client:
        client.sendall(b"\x16\3\1\2\0\1\0\1\xfc\3\3" + bytes(40))
        assert ends(client)


@pytest.mark.parametrize(
    ("minor", "told", "spoken", "key"),
    [(0, [], 0, 4), (1, [], 1, 4), (2, [], 2, 32), (3, [2], 2, 32), (9999, [2], 2, 32)],
)
def test_the_version_is_negotiated_and_with_it_the_length_of_keys(
    serve: Callable[..., ServerThread], minor: int, told: list[int], spoken: int, key: int
) -> None:
    database = TinyDatabase()
    thread = serve(database)
    with WireClient(LOCAL, thread.port) as client:
        client.send(m.StartupMessage({"user": "ann", "database": "d"}, 3, minor))
        answers = [client.receive()]
        while answers[-1] != m.ReadyForQuery("I"):
            answers.append(client.receive())
        negotiated = [a.version for a in answers if isinstance(a, m.NegotiateProtocolVersion)]
        assert negotiated == [3 << 16 | version for version in told]
        [data] = [a for a in answers if isinstance(a, m.BackendKeyData)]
        assert len(data.key) == key
        [session] = thread.server.sessions.values()
        assert session.minor == spoken
        with WireClient(LOCAL, thread.port) as canceller:
            canceller.send(m.CancelRequest(data.pid, data.key))
            assert canceller.receive() is None
        assert database.backends[0].calls.count("cancel") == 1


@pytest.mark.skipif(psycopg.pq.version() < 180000, reason="libpq speaks 3.2 from version 18 on")
def test_libpq_cancels_with_a_long_key(serve: Callable[..., ServerThread]) -> None:
    database = TinyDatabase()
    thread = serve(database)
    dsn = f"host={LOCAL} port={thread.port} user=u dbname=d min_protocol_version=3.2 max_protocol_version=latest"
    with psycopg.connect(dsn, autocommit=True) as connection:
        [session] = thread.server.sessions.values()
        assert (session.minor, len(session.key)) == (2, 32)
        connection.cancel_safe(timeout=30)
        assert database.backends[0].calls.count("cancel") == 1


def test_unix_socket(serve: Callable[..., ServerThread], tmp_path: Path) -> None:
    thread = serve(TinyDatabase(), unix_directory=str(tmp_path))
    with psycopg.connect(
        f"host={tmp_path} port={thread.port} user=u dbname=d", autocommit=True
    ) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        [session] = thread.server.sessions.values()
        assert session.peer == "local"


# ---------------------------------------------------------------------------- real clients


@pytest.mark.parametrize("late", [False, True], ids=["now", "late"])
def test_psycopg(serve: Callable[..., ServerThread], late: bool) -> None:
    database = TinyDatabase(late=late)
    thread = serve(database)
    with psycopg.connect(f"host={LOCAL} port={thread.port} user=u dbname=d") as connection:
        rows = connection.execute("SELECT generate_series(1, 3) AS n", binary=True).fetchall()
        assert rows == [(1,), (2,), (3,)]
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("SELEC")
        connection.rollback()
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for i in range(1000):
                copy.write_row((i,))
        with connection.cursor().copy("COPY (SELECT generate_series(1, 3)) TO STDOUT") as copy:
            assert b"".join(copy) == b"1\n2\n3\n"
        with connection.pipeline():
            cursors = [connection.execute("SELECT 1") for _ in range(50)]
        assert [cursor.fetchone() for cursor in cursors] == [(1,)] * 50
    assert len(database.backends[0].table) == 1000


@pytest.mark.parametrize("late", [False, True], ids=["now", "late"])
def test_asyncpg(serve: Callable[..., ServerThread], late: bool) -> None:
    thread = serve(TinyDatabase(late=late))

    async def use() -> None:
        connection = await asyncpg.connect(host=LOCAL, port=thread.port, user="u", database="d")
        statement = await connection.prepare("SELECT $1::int4 AS a, $2::text AS b")
        assert [tuple(row) for row in await statement.fetch(-5, "x")] == [(-5, "x")]
        assert tuple(await statement.fetchrow(None, None)) == (None, None)
        async with connection.transaction():
            cursor = await connection.cursor("SELECT generate_series(1, 10) AS n")
            assert [row["n"] for row in await cursor.fetch(4)] == [1, 2, 3, 4]
            assert [row["n"] for row in await cursor.fetch(40)] == [5, 6, 7, 8, 9, 10]
        with pytest.raises(TimeoutError):
            await connection.execute("SELECT pg_sleep(10)", timeout=0.1)
        assert await connection.fetchval("SELECT 7") == 7
        await connection.close()

    asyncio.run(use())


def test_backend_errors_keep_their_fields(serve: Callable[..., ServerThread]) -> None:
    class Strict(TinyBackend):
        def query(self, sql: str, out: Responder) -> None:
            raise BackendError(
                ErrorReport(severity="ERROR", sqlstate="23505", message="duplicate", detail="Key (a)=(1) already exists.",
                            schema="public", table="t", column="a", datatype="int4", constraint="t_pkey")
            )  # fmt: skip

    database = TinyDatabase()
    backend = Strict()
    database.connect = lambda *args: (backend, {})  # type: ignore[method-assign]
    thread = serve(database)
    with psycopg.connect(f"host={LOCAL} port={thread.port} user=u dbname=d", autocommit=True) as connection:
        cursor = psycopg.ClientCursor(connection)
        with pytest.raises(psycopg.errors.UniqueViolation) as caught:
            cursor.execute("x")
        diag = caught.value.diag
        assert diag.message_detail == "Key (a)=(1) already exists."
        named = (
            diag.schema_name,
            diag.table_name,
            diag.column_name,
            diag.datatype_name,
            diag.constraint_name,
        )
        assert named == ("public", "t", "a", "int4", "t_pkey")
    assert "failed" in backend.calls
    assert "sync" in backend.calls


def test_keys_come_from_the_injected_source(serve: Callable[..., ServerThread]) -> None:
    thread = serve(TinyDatabase())
    thread.server.random_bytes = lambda count: b"\xfe" * count
    with WireClient(LOCAL, thread.port) as client:
        client.start()
        assert client.key == b"\xfe" * 4
