"""Idle connections: what each costs in memory and time, what a reader beside them notices, and what happens past the limit.

    python -m bench.idle --connections 1000

    reader alone ──> N connections open, one after the other, each answers a statement ──> reader beside them
        ──> one more than max_connections (53300) ──> all leave ──> reader alone again

The reader reads one row by its key after the other. Memory is the server's resident set; the same is done with PostgreSQL 15 in
the same minutes, whose memory is the proportional set of all its processes (shared pages counted once).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from bench.peers import holdfast, postgres
from bench.tpch.compare import ServerError, connect
from sqllogictest.client import Client

ROWS = 10_000
FIRST = "SELECT v FROM idle WHERE k = 1"


def quantiles(times_ms: Iterable[float]) -> tuple[float, float]:
    """Return median and 99th percentile."""
    ordered = sorted(times_ms)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]


def read(client: Client, seconds: float) -> tuple[float, float]:
    """Read rows by key for a while; returns p50 and p99 in milliseconds."""
    rng = Random(1)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end or len(times) < 1000:
        client.run(f"SELECT v FROM idle WHERE k = {rng.randrange(ROWS) + 1}")
        times.append((time.perf_counter() - now) * 1000)
    return quantiles(times)


def _of_process(pid: int, key: str, file: str = "status") -> int:
    for line in Path(f"/proc/{pid}/{file}").read_text(encoding="ascii").splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    return 0


def resident_kib(pid: int) -> int:
    """Return the resident set of a process."""
    return _of_process(pid, "VmRSS:")


def _postmaster(url: str) -> int:
    client = connect(url)
    (pid,) = client.run("SELECT pg_backend_pid()").rows[0]
    client.close()
    return _of_process(int(pid or 0), "PPid:")


def tree_kib(root: int) -> int:
    """Return the proportional set of a process and its children."""
    total = _of_process(root, "Pss:", "smaps_rollup")
    for status in Path("/proc").glob("[0-9]*/status"):
        pid = int(status.parent.name)
        try:
            if _of_process(pid, "PPid:") == root:
                total += _of_process(pid, "Pss:", "smaps_rollup")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def measure(name: str, url: str, memory: Callable[[], int], count: int, seconds: float) -> None:
    """Run one server through it and print a row for each step."""
    reader = connect(url)
    reader.run("CREATE TABLE idle (k int PRIMARY KEY, v text)")
    reader.run(f"INSERT INTO idle SELECT g, 'row ' || g FROM generate_series(1, {ROWS}) g")
    read(reader, 1)
    before = memory()
    print(f"| {name} | alone | {_pair(read(reader, seconds))} | {before / 1024:.0f} MiB |")
    idle: list[Client] = []
    opening: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        idle.append(connect(url))
        opening.append((time.perf_counter() - started) * 1000)
        idle[-1].run(FIRST)
    after = memory()
    print(
        f"| {name} | beside {count} | {_pair(read(reader, seconds))} | {after / 1024:.0f} MiB, "
        f"{(after - before) / count:.1f} KiB each; connecting {_pair(quantiles(opening))} |"
    )
    try:
        connect(url)
        raise RuntimeError("one more than max_connections got in")
    except ServerError as error:
        print(f"| {name} | one more | {error.sqlstate} {error} | |")
    for client in idle:
        client.close()
    while reader.run("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").rows != [
        ("1",)
    ]:
        time.sleep(0.05)
    print(f"| {name} | alone again | {_pair(read(reader, seconds))} | {memory() / 1024:.0f} MiB |")
    reader.close()


def _pair(times: tuple[float, float]) -> str:
    return f"{times[0]:.3f} / {times[1]:.3f} ms"


def main() -> int:
    """Measure Holdfast and PostgreSQL; prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5, help="that the reader reads at each step")
    arguments = parser.parse_args()
    limit = arguments.connections + 1
    print("| server | step | reader p50 / p99 | memory |\n| --- | --- | --- | --- |")
    with holdfast("--max-connections", str(limit)) as server:
        pid = server.process.pid
        measure("Holdfast", server.url, lambda: resident_kib(pid), arguments.connections, arguments.seconds)
    with postgres(f"max_connections={limit}") as url:
        root = _postmaster(url)
        measure("PostgreSQL", url, lambda: tree_kib(root), arguments.connections, arguments.seconds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
