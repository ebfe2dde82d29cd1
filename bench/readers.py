"""Point reads beside writers: how much later a lock-free reader is answered when others write.

    idle      nobody else                              the measure of the others
    10 %      TPC-B, 8 clients, at a tenth of what they reach at full speed; and so on at 25 and 50 %
    full      TPC-B, 8 clients, as fast as they can
    COPY      three times 1M rows with a primary key, one after the other

One connection reads one account after the other and times each answer. A reader never waits for a lock or a writer
(P5), but it shares the processors and the server's loop with them; PostgreSQL's figures of the same minutes say what the
machine itself adds. The clients that write run nicer than the reader and the servers: elsewhere they have machines of their
own, and here, on few processors, what they take from the reader's client would be measured as the server's. A round measures both
servers, each idle before and after every case: a machine that others share changes its speed within seconds. A ratio is that of one case to
the idle minutes around it, and what is printed is the median over rounds, with the extremes.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import IO

from bench.tpch.compare import connect

ACCOUNTS = 100_000
COPY_ROWS = 1_000_000
COPIES = 3
SNAPSHOT = "SET default_transaction_isolation = 'repeatable read'"
"""For PostgreSQL's reader: at SERIALIZABLE it soon has no memory left for what was read."""
SHARES = {"10 %": 0.1, "25 %": 0.25, "50 %": 0.5}
NICER = ["nice", "-n", "10"]
"""Before the commands of clients that write."""
TPS = re.compile(r"tps = ([\d.]+)")


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the reads of one run, in milliseconds."""

    p50: float
    p99: float
    count: int


def read(url: str, until: Callable[[], bool], setting: str = "") -> Latency:
    """Read accounts at random until told to stop, after ``setting``."""
    client = connect(url)
    if setting:
        client.run(setting)
    rng = Random(1)
    times: list[float] = []
    while not until() or len(times) < 200:
        sql = f"SELECT abalance FROM pgbench_accounts WHERE aid = {rng.randrange(ACCOUNTS) + 1}"
        started = time.perf_counter()
        client.run(sql)
        times.append((time.perf_counter() - started) * 1000)
    client.close()
    times.sort()
    return Latency(times[len(times) // 2], times[int(len(times) * 0.99)], len(times))


def host_options(url: str) -> list[str]:
    """Return what tells pgbench where the server is."""
    host, port = url.split("@")[1].split("/")[0].split(":")
    return ["-h", host, "-p", port, "-U", "postgres"]


def _beside(command: list[str], url: str, setting: str, data: IO[bytes] | None = None) -> tuple[Latency, str]:
    """Read while a command runs, with ``data`` as its input; returns its output, too."""
    with subprocess.Popen(command, stdin=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as load:
        found = read(url, lambda: load.poll() is not None, setting)
        assert load.stdout is not None
        said = load.stdout.read().decode()
    if load.returncode:
        raise RuntimeError(f"{command[0]} failed: {said[-300:]}")
    return found, said


def _tpcb(url: str, setting: str, seconds: int, *options: str) -> tuple[Latency, float]:
    command = [
        *NICER,
        "pgbench",
        *host_options(url),
        "-n",
        "-c",
        "8",
        "-T",
        str(seconds),
        "--max-tries",
        "0",
        *options,
        "postgres",
    ]
    found, said = _beside(command, url, setting)
    match = TPS.search(said)
    return found, float(match.group(1)) if match else 0.0


def copy_lines() -> bytes:
    """Return the rows of the load, as text."""
    return "".join(f"{i}\t{i % 1000}\tname {i}\n" for i in range(COPY_ROWS)).encode("ascii")


def _copy(url: str, setting: str) -> Latency:
    client = connect(url)
    commands = []
    for number in range(COPIES):
        client.run(f"DROP TABLE IF EXISTS loaded{number}")
        client.run(f"CREATE TABLE loaded{number} (id int PRIMARY KEY, k int, name text)")
        commands += ["-c", f"COPY loaded{number} FROM STDIN"]
    client.close()
    with tempfile.TemporaryFile() as data:  # not fed from here: the process that measures does nothing else
        for _ in range(COPIES):
            data.write(copy_lines() + b"\\.\n")
        data.seek(0)
        return _beside([*NICER, "psql", "-X", "-q", url, *commands], url, setting, data)[0]


@dataclass(frozen=True, slots=True)
class Case:
    """Reads beside one load, and those of the idle server right before and after it."""

    latency: Latency
    idle: tuple[Latency, Latency]

    @property
    def ratio(self) -> float:
        """p99 beside the load to the mean of the two idle ones."""
        return self.latency.p99 / (sum(idle.p99 for idle in self.idle) / 2)


def measure(url: str, setting: str, seconds: int, rates: list[float]) -> dict[str, Case]:
    """Measure one server once; pgbench's tables are there at scale 1. Appends its transactions per second to ``rates``."""

    def idle() -> Latency:
        stop = time.monotonic() + seconds / 2
        return read(url, lambda: time.monotonic() > stop, setting)

    def beside_tpcb(*options: str) -> Latency:
        found, rate = _tpcb(url, setting, seconds, *options)
        if not options:
            rates.append(rate)
        return found

    def at(share: float) -> Callable[[], Latency]:
        return lambda: beside_tpcb("-R", str(max(1, int(rates[-1] * share))))

    loads = {"full": beside_tpcb, **{case: at(share) for case, share in SHARES.items()}}
    out = {}
    before = idle()
    for case, load in (*loads.items(), ("COPY", lambda: _copy(url, setting))):
        latency = load()
        after = idle()
        out[case] = Case(latency, (before, after))
        before = after
    return out


def report(us: str, them: str, seconds: int, rounds: int) -> None:
    """Measure both in turn and print medians over rounds, with the ratio of p99 to the idle one."""
    for url in (us, them):
        subprocess.run(
            ["pgbench", *host_options(url), "-i", "-q", "-s", "1", "postgres"],
            check=True,
            capture_output=True,
        )
    runs: dict[str, list[dict[str, Case]]] = {us: [], them: []}
    rates: dict[str, list[float]] = {us: [], them: []}
    for _ in range(rounds):
        for url in (us, them):
            runs[url].append(measure(url, SNAPSHOT if url == them else "", seconds, rates[url]))
    print("\n| point reads, ms | Holdfast p50 | p99 | p99 / idle | PostgreSQL p50 | p99 | p99 / idle |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(f"| idle | {' | '.join(_idle(runs[url]) for url in (us, them))} |")
    for case in (*SHARES, "full", "COPY"):
        print(f"| {case} | {' | '.join(_beside_case(runs[url], case) for url in (us, them))} |", flush=True)
    fewest = min(case.latency.count for run in runs[us] for case in run.values())
    print(
        f"\nFull speed: {median(rates[us]):.0f} transactions per second, PostgreSQL {median(rates[them]):.0f}."
    )
    print(f"{rounds} rounds; at least {fewest} reads of Holdfast per case and round")


def _idle(runs: list[dict[str, Case]]) -> str:
    found = [idle for run in runs for case in run.values() for idle in case.idle]
    p99 = [idle.p99 for idle in found]
    return f"{median(idle.p50 for idle in found):.2f} | {median(p99):.2f} | ({min(p99):.2f}–{max(p99):.2f})"


def _beside_case(runs: list[dict[str, Case]], case: str) -> str:
    found = [run[case] for run in runs]
    p50, p99 = median(f.latency.p50 for f in found), median(f.latency.p99 for f in found)
    ratios = [f.ratio for f in found]
    return f"{p50:.2f} | {p99:.2f} | {median(ratios):.2f}x ({min(ratios):.2f}–{max(ratios):.2f})"
