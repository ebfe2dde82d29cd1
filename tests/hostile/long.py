"""The long form: a row at its full size against a server as users start it, on an idle machine, in wall time.

    hostile client ── the row ──────────────► cancel after PATIENCE_S ──► ended       cancel_ms
                   ── statement_timeout ────► ended                                   timeout_ms (beyond TIMEOUT_MS)
    watcher        ── pg_stat_activity, from then on ───────────────────► ended
    observer       ── SELECT 1, SELECT 1, SELECT 1 …                                  longest_ms
    sampler        ── memory of the server and its helpers                            peak_mb
    machine        ── a fixed loop and fresh pages, before and after                   loop_ms, page_us

What a row has to come to is in ``judge``. The observer is a process of its own. Rows that are not within the bounds are measured again once the
table is through, by a new server and up to ``TRIES`` times in all, since a machine that others share stands still by itself now and then; the figures
with the fewest problems are kept.

A statement has ended when its client hears so. A client that has still to read what was sent before (sockets hold some megabytes, PostgreSQL's
as well, which Python reads for a second or more where rows are short) hears of it behind that: past ``BACKLOG`` it is the watcher who says when the
statement has ended, for which the client need not read.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from engine.base.config import parse_bytes
from sqllogictest.client import ServerError
from tests.hostile.machine import speed
from tests.hostile.row import RUNS, Row, at_size
from tests.hostile.short import TABLES, read_answer, send
from tests.hostile.talk import Talk
from tests.support.fields import FieldsClient, connect
from tests.support.server import ROOT, ServerProcess

PATIENCE_S: Final = 3.0
TIMEOUT_MS: Final = 300
WAIT_BOUND_MS: Final = 50.0
CANCEL_BOUND_MS: Final = 100.0
MEMORY_FACTOR: Final = 1.2
SAMPLE_S: Final = 0.1
GROWN_BYTES: Final = 4 << 20
TRIES: Final = 3
WATCH_S: Final = 0.002
WATCHED_S: Final = 30.0
LOG_CHARACTERS: Final = 20_000
LOGGED_S: Final = 0.5
"""After which what has happened is in the log."""
WRONGLY_SAID: Final = "it said"
BACKLOG: Final = 64 << 10
"""Bytes that a client reads in no time worth naming."""
BOUNDED: Final = ("53200", "54000", "54001", "53400", "57014")
"""What a row at its full size may end with besides what it ends with at its short one."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a row came to. Times are wall times in milliseconds; -1 where the row has ended before.

    ``loop_ms`` and ``page_us``: what the machine took meanwhile (``machine.Speed``). ``tries``: how often the row was measured.
    ``commit``: what was measured. ``log``: the end of what the server logged meanwhile, of a row that said what none should or lost its server.
    """

    kind: str
    name: str
    said: str
    seconds: float
    longest_ms: float
    statements: int
    cancel_ms: float
    timeout_ms: float
    peak_mb: int
    problem: str
    loop_ms: float
    page_us: float
    tries: int = 1
    log: str = ""
    commit: str = ""

    def better(self, other: Figures) -> Figures:
        """Return the figures with fewer problems, these if both have as many, counting the tries of both.

        A log is kept whichever is chosen: what a server said wrongly once is a fault of it, however well it did the next time.
        """
        chosen = min(self, other, key=lambda one: one.problem.count(";") + bool(one.problem))
        return replace(chosen, tries=self.tries + other.tries, log=self.log or other.log)


class Sampler(threading.Thread):
    """Looks at the memory of a process and those below it; ``peak``: at most so many bytes, exactly where they are more than ``bound``.

    To tell the proportional set the system walks all pages of a process, and keeps it from getting or giving back memory meanwhile
    (50 ms and more for a gigabyte), which would be what others wait for. The resident set is a counter, and counts twice what two processes
    share: only where the sum of all is over the bound, and has grown, are the proportional sets looked at.
    """

    def __init__(self, pid: int, bound: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._bound = bound
        self._over = threading.Event()
        self.peak = 0

    def run(self) -> None:
        walked = 0
        while not self._over.wait(SAMPLE_S):
            resident = sum(map(_resident, tree(self._pid)))
            if resident <= self._bound:
                self.peak = max(self.peak, resident)
            elif resident >= walked + GROWN_BYTES:
                walked = resident
                self.peak = max(self.peak, tree_bytes(self._pid))

    def stop(self) -> None:
        self._over.set()
        self.join()
        self.peak = max(self.peak, tree_bytes(self._pid))


def tree_bytes(root: int) -> int:
    """Return the proportional set of a process and all below it, a JVM's apart."""
    return sum(map(_pss, tree(root)))


def tree(root: int) -> list[int]:
    """Return a process and all below it."""
    found = [root]
    for pid in found:  # which grows meanwhile
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def _resident(pid: int) -> int:
    try:
        if _is_jvm(pid):
            return 0
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _pss(pid: int) -> int:
    try:
        if _is_jvm(pid):
            return 0
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def _is_jvm(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().strip() == "java"


class Stand:
    """A server, an observer beside it, and rows one after the other."""

    def __init__(self, memory: str) -> None:
        self.memory = memory
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-hostile-")
        self._server: ServerProcess | None = None
        self._observer: subprocess.Popen[str] | None = None
        self._runs = 0

    def _start(self) -> ServerProcess:
        if self._server is None:
            self._runs += 1
            self._server = ServerProcess(
                Path(self._folder.name) / f"data{self._runs}", "--memory", self.memory
            )
            talk = Talk(self._server.port)
            for sql in TABLES:
                talk.client().run(sql)
            talk.close()
            self._observer = subprocess.Popen(
                [sys.executable, "-m", "tests.hostile.observer", str(self._server.port)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            )  # fmt: skip
        return self._server

    def _tell(self, word: str) -> str:
        assert self._observer is not None
        assert self._observer.stdin is not None
        assert self._observer.stdout is not None
        self._observer.stdin.write(word + "\n")
        self._observer.stdin.flush()
        return self._observer.stdout.readline()

    def close(self) -> None:
        """End what was started."""
        if self._observer is not None:
            self._observer.kill()
            self._observer.communicate()
            self._observer = None
        if self._server is not None:
            self._server.kill()
            self._server = None

    def run(self, kind: str, row: Row) -> Figures:
        """Run a row at its full size; a server that does not serve afterwards is replaced."""
        server = self._start()
        logged = len(server.log())
        before = speed()
        sampler = Sampler(server.process.pid, _bound(self.memory))
        self._tell("reset")
        sampler.start()
        began = time.perf_counter()
        said, cancel_ms, timeout_ms, wrong = "lost", -1.0, -1.0, ""
        seen = {"longest_ms": float("inf"), "statements": 0.0}
        try:
            said, cancel_ms = self._first(server.port, row)
            if row.talk is None and row.limited:
                timeout_ms = self._second(server.port, row)
            seen = json.loads(self._tell("report"))
        except (AssertionError, ServerError) as error:
            wrong = f"wrong: {error}"
            seen = json.loads(self._tell("report"))
        except (OSError, ValueError) as error:
            wrong = f"lost: {error}"
        seconds = time.perf_counter() - began
        sampler.stop()
        machine = speed().slower(before)
        found = Figures(
            kind, row.name, said, round(seconds, 2), round(seen["longest_ms"], 1), int(seen["statements"]),
            round(cancel_ms, 1), round(timeout_ms, 1), sampler.peak >> 20, wrong,
            machine.loop_ms, machine.page_us,
        )  # fmt: skip
        if not wrong:
            found = replace(found, problem=judge(row, found, self.memory))
        if wrong or WRONGLY_SAID in found.problem:
            time.sleep(LOGGED_S)
            found = replace(found, log=server.log()[logged:][-LOG_CHARACTERS:])
        if wrong.startswith("lost") or not self._serves(server.port):
            self.close()
        return found

    def _serves(self, port: int) -> bool:
        talk = Talk(port)
        try:
            return talk.serves()
        except OSError:
            return False
        finally:
            talk.close()

    def _first(self, port: int, row: Row) -> tuple[str, float]:
        talk = Talk(port, lambda: time.sleep(PATIENCE_S))
        try:
            if row.talk is not None:
                row.talk(talk, row.full)
                return "done", -1.0
            client = _prepared(talk, row)
            ending = Ending(client, port, client.cancel)
            send(client, row, row.full)
            said = ending.read(PATIENCE_S, unread=row.unread)
            return said, ending.took_ms if said == "57014" else -1.0
        finally:
            talk.close()

    def _second(self, port: int, row: Row) -> float:
        """Return by how much a statement outlived statement_timeout, in milliseconds; -1 where it has ended by itself."""
        talk = Talk(port)
        try:
            client = _prepared(talk, row)
            client.run(f"SET statement_timeout = {TIMEOUT_MS}")
            ending = Ending(client, port)
            send(
                client, row, row.full
            )  # what sending takes is the client's, and a message of 200 MB is not heard before
            said = ending.read(TIMEOUT_MS / 1000)
            return ending.took_ms if said == "57014" else -1.0
        finally:
            talk.close()


class Counted:
    """A socket that counts what is read from it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.bytes = 0

    def recv(self, size: int) -> bytes:
        data = self._sock.recv(size)
        self.bytes += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class Ending:
    """How a statement ends that is to end at some moment: the client reads, and somebody else looks whether it runs.

    ``took_ms``: how long it ran on after that moment; 0 where it had ended before.
    """

    def __init__(self, client: FieldsClient, port: int, cancel: Callable[[], None] = lambda: None) -> None:
        """``cancel``: what has it end."""
        self._client = client
        self._counted = Counted(client._socket)
        client._socket = self._counted  # type: ignore[assignment]
        self._watcher = connect(port)
        self._cancel = cancel
        self._due = self._ended = 0.0
        self._read = 0
        self.took_ms = 0.0

    def _watch(self) -> None:
        self._due, self._read = time.perf_counter(), self._counted.bytes
        self._cancel()
        sql = f"SELECT 1 FROM pg_stat_activity WHERE pid = {self._client.key[0]} AND state = 'active'"
        until = self._due + WATCHED_S
        while self._watcher.run(sql).rows and time.perf_counter() < until:
            time.sleep(WATCH_S)
        self._ended = time.perf_counter()

    def read(self, after_s: float, *, unread: bool = False) -> str:
        """Have it end after a while and read its answer; ``unread``: not before it has ended. Return what it said."""
        timer = threading.Timer(after_s, self._watch)
        timer.start()
        if unread:
            timer.join()
        said, _ = read_answer(self._client)
        heard = time.perf_counter()
        timer.cancel()
        timer.join()
        self._watcher.close()
        if self._due:
            backlog = self._counted.bytes - self._read
            end = heard if backlog <= BACKLOG else min(heard, self._ended)
            self.took_ms = max(end - self._due, 0.0) * 1000
        return said


def _prepared(talk: Talk, row: Row) -> FieldsClient:
    client = talk.client()
    for sql in row.setup:
        client.run(at_size(sql, row.full))
    if row.executor:
        client.run(f"SET executor = '{row.executor}'")
    return client


def judge(row: Row, found: Figures, memory: str) -> str:
    """Return what is wrong with a row's figures; empty: nothing."""
    problems = []
    expected = () if row.expect == RUNS else tuple(row.expect.split())
    if row.talk is None and found.said not in (*expected, *BOUNDED):
        problems.append(f"{WRONGLY_SAID} {found.said}")
    if found.longest_ms > WAIT_BOUND_MS:
        problems.append(f"others waited {found.longest_ms:.0f} ms")
    if found.cancel_ms > CANCEL_BOUND_MS:
        problems.append(f"it was cancelled after {found.cancel_ms:.0f} ms")
    if found.timeout_ms > CANCEL_BOUND_MS:
        problems.append(f"it outlived statement_timeout by {found.timeout_ms:.0f} ms")
    bound = _bound(memory) >> 20
    if found.peak_mb > bound:
        problems.append(f"{found.peak_mb} MB, over {bound}")
    return "; ".join(problems)


def _bound(memory: str) -> int:
    """Return the bytes that a server of that memory and its helpers may have."""
    return int(parse_bytes(memory) * MEMORY_FACTOR)
