"""The short form: a row at its small size against a server whose loop is timed (``tests.hostile.meter``).

    longest turn of the loop while the row ran   <= BOUND_MS x FACTOR, in processor time, the collector's apart
    peak of the resident set                     <= before + BYTES
    what the server said                         as the row expects
    afterwards                                   a newcomer is answered

FACTOR is what a processor's neighbours cost: caches and cores are shared with whatever else runs on the machine, which makes the
same instructions take two to three times the time. A row's work is five times the bound at least. A turn that is too long counts if it is so
in each of TRIES, since the server's own upkeep (a flush, a page of its heap) may fall into any of them.
"""

from __future__ import annotations

import os
import signal
import struct
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.hostile import meter
from tests.hostile.row import RUNS, Row, at_size
from tests.hostile.talk import SYNC, Talk, bind, execute, frame, parse
from tests.support.fields import FieldsClient, fields_of
from tests.support.server import ServerProcess

BOUND_MS: Final = 10.0
FACTOR: Final = 4.0
LIMIT_MS: Final = BOUND_MS * FACTOR
TRIES: Final = 3
HELD_MS: Final = 2000.0  # a turn that has taken so much is not waited for: the server is killed
MEMORY: Final = "512MB"
BYTES: Final = 154 << 20  # a statement's share, a quarter of MEMORY, and 20 %
GIVEN_MS: Final = 100.0  # processor time that a statement that does not end gets before it is cancelled
GIVEN_S: Final = 0.4  # or so much time: what waits uses no processor
POLL_S: Final = 0.004


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one try.

    ``said`` is "done" or a SQLSTATE, ``answer`` the first column of the last row, ``held`` whether the server had to be killed, ``wrong``
    what an exchange of messages asserted.
    """

    said: str
    answer: str | None
    longest_ms: float
    collector_ms: float
    turn: str
    bytes: int
    held: bool
    stack: str
    wrong: str = ""


class TimedServer:
    """A server with a timed loop that is started again when a row has killed it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-hostile-")
        self._runs = 0
        self._server: ServerProcess | None = None
        self._stacks = Path(self._folder.name) / "stacks"
        self._stacks.touch()
        self.gauge = meter.Gauge(Path(self._folder.name) / "page")

    def port(self) -> int:
        """Return the port of a server that runs."""
        if self._server is None:
            self._runs += 1
            folder = Path(self._folder.name)
            self._server = ServerProcess(
                folder / f"data{self._runs}",
                "--memory",
                MEMORY,
                timed=(str(folder / "page"), str(self._stacks)),
            )
            self.gauge.pid = self._server.process.pid
            _prepare(self._server.port)
        return self._server.port

    @property
    def pid(self) -> int:
        """Of the server that runs."""
        return self.gauge.pid

    def show_stacks(self) -> str:
        """Return where all threads of the server stand."""
        at = self._stacks.stat().st_size
        os.kill(self.pid, signal.SIGUSR1)
        for _ in range(50):
            time.sleep(0.002)
            if self._stacks.stat().st_size > at:
                time.sleep(0.01)
                break
        with self._stacks.open("rb") as handle:
            handle.seek(at)
            text = handle.read().decode("utf-8", "replace")
        current = text.find("Current thread")
        return text[max(current, 0) :]

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    def close(self) -> None:
        """End it and remove what it left."""
        self.kill()
        self._folder.cleanup()


TABLES: Final = (
    "CREATE TABLE numbers (id int PRIMARY KEY, n int, s text)",
    "INSERT INTO numbers SELECT g, g % 100, 'row ' || g FROM generate_series(1, 3000) g",
    "CREATE EXTENSION hstore",
    "CREATE EXTENSION pgcrypto",
    "CREATE EXTENSION pg_trgm",
)
"""What rows of the table may read: three thousand rows, of the kinds 0 to 99."""


def _prepare(port: int) -> None:
    talk = Talk(port)
    client = talk.client()
    for sql in TABLES:
        client.run(sql)
    client.close()


class _Watch(threading.Thread):
    """Looks at turns that do not end, and kills the server in the end."""

    def __init__(self, server: TimedServer) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._over = threading.Event()
        self.stack = ""
        self.held = False

    def run(self) -> None:
        while not self._over.wait(POLL_S):
            held = self._server.gauge.held_ms
            if held > LIMIT_MS and not self.stack:
                self.stack = self._server.show_stacks()
            if held > HELD_MS:
                self.held = True
                os.kill(self._server.pid, signal.SIGKILL)
                return

    def stop(self) -> None:
        self._over.set()
        self.join()


def try_row(server: TimedServer, row: Row) -> Found:
    """Run ``row`` once at its short size."""
    talk = Talk(server.port(), lambda: _wait(server))
    client = talk.client()
    try:
        for sql in row.setup:
            client.run(at_size(sql, row.short))
        if row.executor:
            client.run(f"SET executor = '{row.executor}'")
        gauge = server.gauge
        gauge.reset()
        meter.reset_peak(server.pid)
        before = meter.peak_bytes(server.pid)
        watch = _Watch(server)
        watch.start()
        said, answer, wrong = "", None, ""
        try:
            if row.talk is not None:
                row.talk(talk, row.short)
                said = "done"
            else:
                said, answer = _ask(server, client, row)
            if not talk.serves():
                wrong = "a newcomer is not answered"
        except AssertionError as error:
            wrong = f"wrong: {error}"
        except OSError as error:
            said = f"lost: {error}"
        finally:
            watch.stop()
        longest = gauge.longest_ms
        peak = 0
        if watch.held or said.startswith("lost"):
            longest = max(longest, HELD_MS if watch.held else 0.0)
            server.kill()
        else:
            peak = meter.peak_bytes(server.pid) - before
        return Found(
            said,
            answer,
            longest,
            gauge.collector_ms,
            gauge.longest_name,
            peak,
            watch.held,
            watch.stack,
            wrong,
        )
    finally:
        talk.close()


def _ask(server: TimedServer, client: FieldsClient, row: Row) -> tuple[str, str | None]:
    """Send the statement; return what came of it, and the first column of its last row."""
    send(client, row, row.short)
    if row.unread or row.expect == RUNS:
        _wait(server)
        client.cancel()
    return read_answer(client)


def send(client: FieldsClient, row: Row, size: int) -> None:
    """Send a row's statement."""
    sql = row.statement(size)
    if row.values or row.prepared:
        values = [at_size(value, size).encode() for value in row.values]
        client.send_raw(parse(sql) + bind(values) + frame(b"D", b"P\0") + execute() + SYNC)
    else:
        client.send_raw(frame(b"Q", sql.encode() + b"\0"))


def read_answer(client: FieldsClient) -> tuple[str, str | None]:
    """Read up to ReadyForQuery: "done" or the SQLSTATE, and the first column of the last row."""
    said, answer = "done", None
    while True:
        kind, body = client.answer()
        if kind == b"E":
            said = fields_of(body)["sqlstate"]
        elif kind == b"D" and body[:2] != b"\0\0":
            (size,) = struct.unpack_from("!i", body, 2)
            answer = None if size < 0 else body[6 : 6 + size].decode("utf-8", "replace")
        elif kind == b"G":
            client.send(b"f", b"no data\0")
        elif kind == b"Z":
            return said, answer


def _wait(server: TimedServer) -> None:
    began, until = process_ms(server.pid), time.monotonic() + GIVEN_S
    while process_ms(server.pid) - began < GIVEN_MS and time.monotonic() < until:
        time.sleep(POLL_S)


def process_ms(pid: int) -> float:
    """Return the processor time that all threads of a process have used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return float("inf")
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def judge(row: Row, tries: list[Found]) -> str:
    """Return what is wrong with a row after its tries; empty: nothing."""
    last = tries[-1]
    if last.held:
        return f"one turn took over {HELD_MS:.0f} ms of processor time: the server was killed\n{last.stack}"
    if last.wrong:
        return last.wrong
    if row.talk is None:
        expected = "57014" if row.expect == RUNS else row.expect
        if last.said not in expected.split():
            return f"it said {last.said}, not {expected}"
        if row.answer is not None and last.said == "done" and last.answer != row.answer:
            return f"it answered {last.answer!r:.200}, not {row.answer!r:.200}"
    best = min(tries, key=lambda one: one.longest_ms)
    if best.longest_ms > LIMIT_MS:
        figures = ", ".join(f"{one.longest_ms:.1f}" for one in tries)
        return f"the longest turn took {figures} ms of processor time, over {LIMIT_MS:.0f}: {best.turn}\n{last.stack}"
    least = min(one.bytes for one in tries)
    if least > BYTES:
        return f"the resident set grew by {least >> 20} MiB, over {BYTES >> 20}"
    return ""
