"""The memory proof: ``python -m bench.big [--rows 10000000] [--memory 2GB]``.

Loads a table with a primary key through COPY, changes some of it, reads it in several ways, kills the server with
SIGKILL and asks for one row. What must hold:

    the server's resident memory never exceeds ``--memory``       (VmHWM, the kernel's own high-water mark)
    the first answer comes within 5 s of the restart              (process start included)

Resident memory counts mapped files, too, so the figures are on the safe side. Prints one line per step.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.peers import compile_modules
from engine.base.config import parse_bytes
from tests.support.server import ServerProcess

RESTART_S = 5.0
CHUNK = 20_000


def resident(pid: int) -> tuple[int, int]:
    """Return (now, peak since the start or the last ``reset_peak``) of a process in bytes."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    )
    now, peak = (int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))
    return now, peak


def reset_peak(pid: int) -> None:
    """Let the high-water mark begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def load(url: str, rows: int) -> None:
    """Send ``rows`` rows of about 90 bytes through psql's COPY, made as they are sent."""
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url, "-c", "COPY big FROM STDIN"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as psql:
        assert psql.stdin is not None
        for first in range(0, rows, CHUNK):
            lines = [
                f"{i}\t{i % 1000}\t{i * 7919 % 1000003}.25\tname of row {i:<44}\n"
                for i in range(first, min(first + CHUNK, rows))
            ]
            psql.stdin.write("".join(lines).encode("ascii"))
        psql.stdin.close()
    if psql.returncode:
        raise RuntimeError("COPY failed")


class Proof:
    """The steps, with the peak of each."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.worst = 0

    def step(self, server: ServerProcess, name: str, started: float) -> None:
        """Report a step that has ended."""
        took = time.perf_counter() - started
        now, peak = resident(server.process.pid)
        self.worst = max(self.worst, peak)
        print(f"{name:<42} {took:8.1f} s   resident {now >> 20:5} MB, peak {peak >> 20:5} MB", flush=True)
        reset_peak(server.process.pid)

    def timed(self, server: ServerProcess, name: str, sql: str) -> None:
        """Run SQL as a step."""
        started = time.perf_counter()
        client = server.connect(timeout_s=1200)
        client.run(sql)
        client.close()
        self.step(server, name, started)


def run(rows: int, memory: int, folder: Path) -> int:
    compile_modules()
    options = ("--memory", str(memory))
    proof = Proof(memory)
    started = time.perf_counter()
    server = ServerProcess(folder, *options)
    proof.step(server, "start", started)
    server.sql("CREATE TABLE big (id bigint PRIMARY KEY, k int, amount numeric(12,2), name text)")
    started = time.perf_counter()
    load(server.url, rows)
    proof.step(server, f"COPY of {rows:,} rows", started)
    proof.timed(server, "count and sum", "SELECT count(*), sum(amount), count(DISTINCT k) FROM big")
    proof.timed(server, "group and sort", "SELECT k, sum(amount) FROM big GROUP BY k ORDER BY 2 DESC")
    some = rows // 50
    proof.timed(server, f"UPDATE of {some:,} rows", f"UPDATE big SET amount = amount + 1 WHERE id < {some}")
    started = time.perf_counter()
    client = server.connect()
    rng = random.Random(1)
    for _ in range(2000):
        client.run(f"SELECT name FROM big WHERE id = {rng.randrange(rows)}")
    client.close()
    proof.step(server, "2,000 point reads at random", started)
    proof.timed(server, "CHECKPOINT", "CHECKPOINT")
    server.kill()
    started = time.perf_counter()
    server = ServerProcess(folder, *options)
    found = server.sql(f"SELECT name FROM big WHERE id = {rows // 2}")
    restart = time.perf_counter() - started
    proof.step(server, "kill -9, start, one row", started)
    counted = server.sql("SELECT count(*) FROM big")
    server.stop()
    problems = []
    if found != [(f"name of row {rows // 2:<44}",)] or counted != [(str(rows),)]:
        problems.append(f"wrong answers after the restart: {found}, {counted}")
    if proof.worst > memory:
        problems.append(f"{proof.worst >> 20} MB resident, more than {memory >> 20} MB")
    if restart > RESTART_S:
        problems.append(f"the first answer came after {restart:.1f} s")
    print(f"{rows:,} rows, memory {memory >> 20} MB: peak {proof.worst >> 20} MB, restart {restart:.1f} s")
    for problem in problems:
        print("PROBLEM:", problem)
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.big", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", type=parse_bytes, default=2 << 30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-big-") as folder:
        return run(arguments.rows, arguments.memory, Path(folder) / "data")


if __name__ == "__main__":
    sys.exit(main())
