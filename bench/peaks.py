"""What ``bench.memory`` attacks with: a connection that keeps nothing, statements one after the other, peaks of memory.

Attack ──does──> Wire ──messages──> server <──smaps_rollup, every 30 ms── Peak
"""

from __future__ import annotations

import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqllogictest.client import Client
from tests.hostile.long import tree_bytes
from tests.support.server import ServerProcess

SAMPLE_S: Final = 0.03
UNREAD_S: Final = 5.0
ATTACK_S: Final = 120.0
"""After so long a statement is cancelled."""
CHUNK: Final = 1 << 20
RUNS: Final = "runs"
REFUSED: Final = "53200"
EITHER: Final = f"{RUNS} {REFUSED}"


class Peak(threading.Thread):
    """Samples the proportional set of a process and those below it. ``bytes``: the most so far."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        """Sample until ``stop``."""
        while not self._over.wait(SAMPLE_S):
            self.bytes = max(self.bytes, tree_bytes(self._pid))

    def stop(self) -> int:
        """End, and return the most that was seen."""
        self._over.set()
        self.join()
        return self.bytes


class Wire:
    """A connection whose answers are read and thrown away, or not read at all."""

    def __init__(self, server: ServerProcess) -> None:
        self._client: Client = server.connect(ATTACK_S)
        self._socket: socket.socket = self._client._socket

    def close(self) -> None:
        """Leave without a word."""
        self._socket.close()

    def send(self, kind: bytes, body: bytes) -> None:
        """Send one message."""
        self._socket.sendall(kind + struct.pack("!I", len(body) + 4) + body)

    def query(self, sql: str) -> str:
        """Run a Query, read all and keep nothing; return RUNS or the SQLSTATE of its first error."""
        self.send(b"Q", sql.encode() + b"\0")
        return self.read()

    def extended(self, sql: str, *parameters: bytes, binary: bool, answer_binary: bool = False) -> str:
        """Parse, bind and run a statement; return as ``query``."""
        self.send(b"P", b"\0" + sql.encode() + b"\0\0\0")
        bound = struct.pack("!HHH", 1, binary, len(parameters))
        size = 2 + len(bound) + sum(4 + len(value) for value in parameters) + 4
        self._socket.sendall(b"B" + struct.pack("!I", size + 4) + b"\0\0" + bound)
        for value in parameters:
            self._socket.sendall(struct.pack("!i", len(value)))
            self._socket.sendall(value)
        self._socket.sendall(struct.pack("!HH", 1, answer_binary))
        self.send(b"E", b"\0" + bytes(4))
        self.send(b"S", b"")
        return self.read()

    def read(self) -> str:
        """Read up to ReadyForQuery; return as ``query``."""
        said = RUNS
        pending = bytearray()
        buffer = memoryview(bytearray(CHUNK))
        while True:
            while len(pending) >= 5:
                kind, size = pending[0], struct.unpack_from("!I", pending, 1)[0] + 1
                if len(pending) < size:
                    if kind in b"EZN":
                        break
                    left = size - len(pending)
                    pending.clear()
                    while left:
                        left -= self._receive(buffer[: min(left, CHUNK)])
                    continue
                if kind == ord("E") and said == RUNS:
                    fields = bytes(pending[5:size]).split(b"\0")
                    said = next(f[1:].decode() for f in fields if f[:1] == b"C")
                if kind == ord("G"):
                    self.send(b"f", b"no rows\0")
                done = kind == ord("Z")
                del pending[:size]
                if done:
                    return said
            got = self._receive(buffer)
            pending += buffer[:got]

    def _receive(self, into: memoryview) -> int:
        got = self._socket.recv_into(into)
        if not got:
            raise ConnectionError("the server hung up")
        return got

    def copy_in(self, sql: str, lines: Callable[[], bytes], rows: int) -> str:
        """COPY FROM STDIN of ``rows`` lines; return as ``query``."""
        self.send(b"Q", sql.encode() + b"\0")
        try:
            for _ in range(rows):
                self.send(b"d", lines())
            self.send(b"c", b"")
        except (BrokenPipeError, ConnectionError):
            return "lost"
        return self._skip_copy_response()

    def _skip_copy_response(self) -> str:
        header = b""
        while len(header) < 5:
            header += self._socket.recv(5 - len(header))
        size = struct.unpack("!I", header[1:])[0] - 4
        body = b""
        while len(body) < size:
            body += self._socket.recv(size - len(body))
        if header[:1] == b"E":
            self.read()
            return next(f[1:].decode() for f in body.split(b"\0") if f[:1] == b"C")
        return self.read()


Does = Callable[[ServerProcess], str]


def reads(*statements: str | Callable[[], str]) -> Does:
    """Run statements, or what is called for them, one after the other, reading at full speed; the first error ends it."""

    def run(server: ServerProcess) -> str:
        wire = Wire(server)
        try:
            said = RUNS
            for sql in statements:
                said = wire.query(sql if isinstance(sql, str) else sql())
                if said != RUNS:
                    break
            return said
        finally:
            wire.close()

    return run


def binds(sql: str, value: Callable[[], bytes], *, binary: bool, answer_binary: bool = False) -> Does:
    """Run a statement with one parameter."""

    def run(server: ServerProcess) -> str:
        wire = Wire(server)
        try:
            return wire.extended(sql, value(), binary=binary, answer_binary=answer_binary)
        finally:
            wire.close()

    return run


def then(*steps: Does) -> Does:
    """Do one after the other, up to the first that does not run."""

    def run(server: ServerProcess) -> str:
        for step in steps:
            said = step(server)
            if said != RUNS:
                return said
        return RUNS

    return run


def unread(sql: str) -> Does:
    """Send a statement and read nothing of its answer."""

    def run(server: ServerProcess) -> str:
        wire = Wire(server)
        wire.send(b"Q", sql.encode() + b"\0")
        time.sleep(UNREAD_S)
        wire.close()
        return RUNS

    return run


def at_once(clients: int, does: Does) -> Does:
    """Do it in several connections at once; what most of them said, errors first."""

    def run(server: ServerProcess) -> str:
        said: list[str] = []
        threads = [threading.Thread(target=lambda: said.append(does(server))) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(said)

    return run


def fetches(query: str, *moves: str) -> Does:
    """Open a scrollable cursor and move in it."""
    return reads("BEGIN", f"DECLARE c SCROLL CURSOR FOR {query}", *moves, "COMMIT")


def dump_and_restore(table: str) -> Does:
    """pg_dump of a table in the custom format, then pg_restore of it under the same name, and a count."""

    def run(server: ServerProcess) -> str:
        host = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
        with tempfile.TemporaryDirectory(prefix="holdfast-dump-") as folder:
            file = f"{folder}/dump"
            for command in (
                ["pg_dump", *host, "-Fc", "-Z", "1", "-t", table, "-f", file, "postgres"],
                ["psql", *host, "-qc", f"CREATE DATABASE restored_{table}", "postgres"],
                ["pg_restore", *host, "-d", f"restored_{table}", file],
            ):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    return f"{command[0]}: {done.stderr.strip()[-300:]}"
        return RUNS

    return run


@dataclass(frozen=True, slots=True)
class Attack:
    """What is done, and what it may end with: RUNS or SQLSTATEs, separated by spaces."""

    name: str
    does: Does
    expect: str = RUNS


@dataclass(frozen=True, slots=True)
class Group:
    """Attacks on one data directory that ``setup`` has filled, by a server with ``memory``."""

    name: str
    memory: str
    setup: Does
    attacks: Sequence[Attack]
