"""The wall clock of a real server set back and ahead by an hour, while it runs and between two starts (A11, A22, L4).

Nothing that was committed is missed, timestamps rise, and no commit waits for the clock to catch up: one that did would wait
for most of an hour, and the test would run into its limit.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.__main__ import main
from tests.support.server import ServerProcess

HOUR_S = 3600
MS = 1 << 16  # of a timestamp


class Clocked:
    """One data directory, served with a wall clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "clock"
        self.data = folder / "data"
        self.running: ServerProcess | None = None
        self.committed: list[int] = []
        self.last = 0
        self.set(0)

    def set(self, seconds: int) -> None:
        self.file.with_suffix(".new").write_text(str(seconds))
        self.file.with_suffix(".new").rename(self.file)

    def start(self) -> ServerProcess:
        odd = {"HFTEST_CLOCK": str(self.file)}
        self.running = ServerProcess(self.data, "--flush-rows", "200", odd=odd)
        return self.running

    def write(self, count: int = 20) -> int:
        """Commit; every commit is seen by the next statement, and timestamps rise. Returns the last timestamp."""
        assert self.running is not None
        client = self.running.connect()
        try:
            for _ in range(count):
                number = len(self.committed)
                client.run(f"INSERT INTO t VALUES ({number}, {number} % 7)")
                self.committed.append(number)
                (row,) = client.run("SELECT count(*), max(id) FROM t").rows
                assert row == (str(len(self.committed)), str(number))
                ((ts,),) = client.run("SELECT read_ts FROM holdfast_oracle").rows
                assert int(ts or 0) > self.last
                self.last = int(ts or 0)
        finally:
            client.close()
        return self.last

    def look(self) -> None:
        """Everything is there, by scan and by index."""
        assert self.running is not None
        rows = self.running.sql("SELECT id FROM t ORDER BY id")
        assert [int(row[0] or 0) for row in rows] == self.committed
        ((count,),) = self.running.sql("SELECT count(*) FROM t WHERE b = 3")
        assert int(count or 0) == sum(n % 7 == 3 for n in self.committed)

    def skew_ms(self) -> int:
        assert self.running is not None
        ((skew,),) = self.running.sql("SELECT clock_skew_ms FROM holdfast_oracle")
        return int(skew or 0)


@pytest.fixture
def clocked(tmp_path: Path) -> Iterator[Clocked]:
    found = Clocked(tmp_path)
    server = found.start()
    server.sql("CREATE TABLE t (id int PRIMARY KEY, b int)")
    server.sql("CREATE INDEX t_b ON t (b)")
    yield found
    if found.running is not None and found.running.process.poll() is None:
        found.running.kill()


def doctor(clocked: Clocked) -> str:
    """Return what ``holdfast doctor`` says of the clock (this process's is the true one)."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["doctor", "--data-dir", str(clocked.data), "--port", "0"])
    (line,) = [line for line in out.getvalue().splitlines() if "timestamps" in line]
    return line


def test_a_clock_set_back_by_an_hour_changes_nothing(clocked: Clocked) -> None:
    server = clocked.running
    assert server is not None
    clocked.write()
    clocked.set(-HOUR_S)  # while it runs
    clocked.write()
    clocked.look()
    assert clocked.skew_ms() > 0.9 * HOUR_S * 1000
    server.sql("CHECKPOINT")
    clocked.write()
    assert "behind the timestamps in use" in server.log()
    server.kill()
    for how in ("kill", "stop"):  # and it stays there
        server = clocked.start()
        clocked.look()
        clocked.write(60)
        assert clocked.skew_ms() > 0.9 * HOUR_S * 1000
        assert "behind the timestamps in use" in server.log()
        server.kill() if how == "kill" else server.stop()
    clocked.set(0)
    server = clocked.start()
    clocked.look()
    clocked.write()
    assert clocked.skew_ms() < 0.1 * HOUR_S * 1000
    server.stop()


@pytest.mark.long
def test_a_clock_an_hour_ahead_and_back_again_changes_nothing(clocked: Clocked) -> None:
    server = clocked.running
    assert server is not None
    before = clocked.write()
    clocked.set(HOUR_S)
    deadline = time.monotonic() + 120
    while clocked.write(1) < before + HOUR_S * 1000 * MS:  # it is believed once it has stayed
        assert time.monotonic() < deadline, "timestamps do not follow the clock"
        time.sleep(0.1)
    assert "leapt forward" in server.log()
    clocked.set(0)
    clocked.write()
    clocked.look()
    server.kill()
    assert doctor(clocked).startswith("FAIL")
    for _ in range(2):
        server = clocked.start()
        clocked.look()
        clocked.write(60)
        assert clocked.last > before + HOUR_S * 1000 * MS
        assert clocked.skew_ms() > 0.9 * HOUR_S * 1000
        server.kill()
    assert "behind the timestamps" in doctor(clocked)


def test_the_doctor_reads_the_timestamps_and_changes_nothing(clocked: Clocked) -> None:
    server = clocked.running
    assert server is not None
    clocked.write(3)
    assert doctor(clocked).startswith("ok")
    server.kill()
    names = ("log.sqlite", "log.sqlite-wal")
    before = [(clocked.data / name).read_bytes() for name in names]
    assert doctor(clocked).startswith("ok")
    assert [(clocked.data / name).read_bytes() for name in names] == before
