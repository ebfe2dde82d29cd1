"""The target ``server``: a conversation with the whole server, in this process and without a socket.

    input   0: bit 0 a start-up packet goes first, bits 1-3 size of the pieces, bit 4 the executor      1...: frontend bytes
    ──► pgwire.server ──► engine (row executor, DuckDB) ──► store in memory
    then the client vanishes, whatever was going on

Promises: what is sent is a stream of backend messages; no error is an internal one (XX000) or logged as a bug; once the
client has gone nothing of it is left: session, locks, read holds, tasks.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

from engine.executors.local.executor import LocalExecutor
from engine.session.statement_log import log as statement_log
from pgwire.messages import decode
from pgwire.messages.decode import BACKEND_KINDS
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from tests.fuzz.corpus import PRELUDE, startup
from tests.fuzz.targets import POSTGRES_INTERNAL, Broken
from tests.support import engine
from txn.persist.memory import MemoryDisk

INPUTS_PER_DATABASE = 200  # then it is opened anew: inputs may drop what others need
PATIENCE_S = 60.0  # for what an input has begun to end, once the client has gone: far beyond any grace period
STATEMENT_MS = 300
MAX_MESSAGE = 1 << 20
_SIZES = (1 << 30, 1, 5, 64, 1000, 1 << 30, 1 << 30, 1 << 30)
_TRACEBACK = re.compile(r"Traceback \(most recent|File \"/|0x[0-9a-f]{8,}>|<[a-z_.]+ object at")


class Peer(asyncio.Transport):
    """The server's side of a connection: keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:  # type: ignore[override]
        self.written += data

    def writelines(self, pieces: Any) -> None:
        for piece in pieces:
            self.written += piece

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


class _Bugs(logging.Handler):
    """Collects what the server logs as its own mistakes."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == statement_log.name:
            return  # the errors of clients, with their statements
        self.found.append(logging.Formatter().format(record))


class World:
    """A server in this process; ``play`` is the target."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.loop = asyncio.new_event_loop()
        self.bugs = _Bugs()
        logging.getLogger().addHandler(self.bugs)
        self._spill = tempfile.TemporaryDirectory(prefix="holdfast-fuzz-")
        self._played = 0
        self._server: Server | None = None
        self._database: Any = None
        self.answers: dict[str, int] = {}
        """How often each SQLSTATE, and each kind of backend message, was answered."""

    def play(self, data: bytes) -> None:
        """Run one conversation. Raises Broken."""
        self.loop.run_until_complete(self._play(data))

    def close(self) -> None:
        """End the server."""
        self.loop.run_until_complete(self._close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self._spill.cleanup()
        logging.getLogger().removeHandler(self.bugs)

    async def _close(self) -> None:
        if self._server is not None:
            await self._server.drain(0)
            await self._database.close()
            self._server = self._database = None

    async def _open(self) -> None:
        await self._close()
        database = await engine.open_database(MemoryDisk(), local_queries=2)
        await database.sequences.open([])
        await database.named.open()
        database.executors["local"] = LocalExecutor(
            blob_dir=Path(self._spill.name),
            spill=Path(self._spill.name) / "spill",
            memory_bytes=1 << 28,
            threads=1,
        )
        self._database = database
        self._server = Server(
            database,
            ServerConfig(port=0, max_message_bytes=MAX_MESSAGE, authentication_timeout_s=20.0),
            random_bytes=bytes,
        )
        database.terminate = self._server.terminate
        session = engine.Session(database, 1_000_000)
        for sql in PRELUDE:
            await session.run(sql)
        closing = session.connection.close()
        if closing is not None:
            await closing
        await asyncio.sleep(0)
        self._holds = self._held()
        self._tasks = set(asyncio.all_tasks())

    def _held(self) -> tuple[int, int]:
        core = self._database.store.core
        named = sum(found.hold is not None for found in self._database.named)  # they outlive who made them
        return len(core.locks), sum(len(timeline.holds) for timeline in core.timelines) - named

    async def _play(self, data: bytes) -> None:
        if self._server is None or self._played % INPUTS_PER_DATABASE == 0:
            await self._open()
        self._played += 1
        server = self._server
        assert server is not None
        self.bugs.found.clear()
        choice = data[0] if data else 0
        stream = data[1:]
        if choice & 1:
            executor = ("auto", "index", "local", "auto")[choice >> 4 & 3]
            options = (
                f"-c statement_timeout={STATEMENT_MS} -c transaction_timeout=2000 -c executor={executor}"
            )
            stream = startup(user="postgres", database="postgres", options=options) + stream
        peer = Peer()
        session = server.accept(peer)
        assert session is not None
        size = _SIZES[choice >> 1 & 7]
        for at in range(0, len(stream), size):
            session.data_received(stream[at : at + size])
            if peer.closed:
                break
            await asyncio.sleep(0)
        for turn in range(40):
            if not session.busy or peer.closed:
                break
            await asyncio.sleep(0 if turn < 20 else 0.002)
        session.connection_lost()
        await self._gone(server)
        self._judge(bytes(peer.written))

    async def _gone(self, server: Server) -> None:
        """Wait until nothing is left of the client; a task that has not ended by ``patience_s`` hangs."""
        deadline = self.loop.time() + self.patience_s
        pause = 0.0
        while True:
            tasks = [t for t in asyncio.all_tasks() if t not in self._tasks and not _is_ours(t)]
            held = self._held()
            if not tasks and held == self._holds and not server._sockets and not self._database.sessions:
                return
            if self.loop.time() > deadline:
                raise Broken(
                    f"left behind: tasks {tasks!r:.1500}, locks and holds {held} instead of {self._holds}, "
                    f"{len(server._sockets)} sockets, {len(self._database.sessions)} sessions"
                )
            await asyncio.sleep(pause)
            pause = min(0.05, pause + 0.0005)

    def _judge(self, written: bytes) -> None:
        for found in self.bugs.found:
            raise Broken(f"logged as a bug: {found}")
        for kind, body in frames(written):
            name = chr(kind)
            if kind in b"EN":
                report = decode.report(body)
                name = report.sqlstate
                if not report.severity or not report.message or len(report.sqlstate) != 5:
                    raise Broken(f"an error without its fields: {body!r:.300}")
                texts = " ".join(filter(None, (report.message, report.detail, report.hint, report.where)))
                internal = report.sqlstate.startswith("XX") and not report.message.startswith(
                    POSTGRES_INTERNAL
                )
                if internal or _TRACEBACK.search(texts):
                    raise Broken(f"an internal error: {body!r:.500}")
            self.answers[name] = self.answers.get(name, 0) + 1


def _is_ours(task: asyncio.Task[Any]) -> bool:
    """Tell whether it is this one, or the inner half of a wait_for: its outer half, a service's, was there before."""
    return task is asyncio.current_task() or getattr(task.get_coro(), "__qualname__", "") == "Event.wait"


def frames(written: bytes) -> list[tuple[int, bytes]]:
    """Return what the server sent as messages, each of which can be decoded. Raises Broken."""
    found, at = [], 0
    while at < len(written):
        kind = written[at]
        if at == 0 and kind in b"NS" and (len(written) == 1 or written[1] in b"NSERv"):
            while at < len(written) and written[at] in b"NS" and written[at + 1 : at + 2] not in (b"\0",):
                at += 1  # answers to requests for encryption
            continue
        if kind not in BACKEND_KINDS or at + 5 > len(written):
            raise Broken(f"no backend message at {at}: {written[at : at + 40]!r}")
        (length,) = struct.unpack_from("!I", written, at + 1)
        body = written[at + 5 : at + 1 + length]
        if len(body) != length - 4:
            raise Broken(f"a message of {length} bytes is cut short at {at}")
        decode.backend(kind, body)
        found.append((kind, body))
        at += 1 + length
    return found


def sessions_in_memory() -> int:
    """Return how many sessions the collector cannot free."""
    gc.collect()
    return sum(isinstance(found, Session) for found in gc.get_objects())


def open_descriptors() -> int:
    """Return how many file descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))
