"""What the event loop did while a reader waited: every piece of its work in processor time, laid against point reads.

    reader   send ───────────────────────────────────────────────► answer
    loop      ▲ idle or in the kernel ▲ piece ▲ piece ▲ the read ▲
                                       └──── waited for ─┘

``python -m bench.turns --load tpcb`` runs a server whose loop times what it runs (``time.thread_time``: what other processes
take of the machine makes no piece longer), one reader, and a load beside it. It prints

- the pieces by kind: how many, their processor time at the median, the 99th percentile and at most, and the sum;
- of the reads, and of the slowest hundredth: where the time between sending and answer went. *Pieces* and *kernel* are
  processor time of the loop before the read was begun, *not running* is time in which the loop's thread had no processor or not
  the interpreter, or had not been woken;
- which pieces the slowest reads had waited for;
- pauses of the collector.

Timing costs about 2 µs per piece. Both clocks of the comparison are the machine's monotonic one.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from bench.readers import ACCOUNTS, copy_lines, host_options
from bench.tpch.compare import connect
from tests.support.timed_loop import TimedLoop

READ = "a read"
LOADS = ("idle", "tpcb", "paced", "insert", "copy")
INSERT = (
    "\\set id random(1, 9000000000000)\nINSERT INTO ins VALUES (:id, 'some text') ON CONFLICT DO NOTHING;\n"
)


# ---------------------------------------------------------------------- in the server


class Recorder:
    """Times pieces of work: wall and processor clock at the beginning and at the end, and what it was."""

    def __init__(self) -> None:
        self.times = array("d")  # four per piece
        self.kinds = array("i")
        self.names: dict[str, int] = {}
        self.pauses: list[tuple[int, float, float]] = []  # of the collector: generation, begin, seconds
        self._inside = False
        self._paused_at = 0.0
        gc.callbacks.append(self._collector)

    def run(self, name: Callable[[], str], work: Callable[..., object], args: Sequence[object]) -> None:
        """Run and time ``work``, unless it is part of a piece that is being timed."""
        if self._inside:
            work(*args)
            return
        self._inside = True
        called = name()
        wall, spent = time.monotonic(), time.thread_time()
        try:
            work(*args)
        finally:
            self.times.extend((wall, time.monotonic(), spent, time.thread_time()))
            self.kinds.append(self.names.setdefault(called, len(self.names)))
            self._inside = False

    def _collector(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._paused_at = time.monotonic()
        else:
            self.pauses.append((info["generation"], self._paused_at, time.monotonic() - self._paused_at))

    def write(self, folder: Path) -> None:
        """Leave what was found for the report."""
        (folder / "times").write_bytes(self.times.tobytes())
        (folder / "kinds").write_bytes(self.kinds.tobytes())
        (folder / "names").write_text(json.dumps([list(self.names), self.pauses]))


def _serve(folder: Path, options: Sequence[str]) -> int:
    """Run the server with a timed loop until SIGTERM, then write what was found to ``folder``."""
    from engine.__main__ import serve_forever
    from engine.base.config import add_arguments, load
    from pgwire.server import WireProtocol

    recorder = Recorder()
    received = WireProtocol.data_received

    def data_received(self: WireProtocol, data: bytes) -> None:
        session = self._session
        reads = session is not None and session.opened and not session.backend.wrote
        recorder.run(lambda: READ if reads else "a message of a writer", received, (self, data))

    WireProtocol.data_received = data_received  # type: ignore[method-assign]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    config = load(parser.parse_args(list(options)), os.environ)
    loop = TimedLoop()
    loop.meter = recorder
    asyncio.set_event_loop(loop)
    loop.run_until_complete(serve_forever(config))
    recorder.write(folder)
    sys.stdout.flush()
    os._exit(0)


# ---------------------------------------------------------------------- beside it


def _read(url: str, until: Callable[[], bool]) -> list[tuple[float, float]]:
    client = connect(url)
    rng = Random(1)
    found = []
    while not until():
        sql = f"SELECT abalance FROM pgbench_accounts WHERE aid = {rng.randrange(ACCOUNTS) + 1}"
        sent = time.monotonic()
        client.run(sql)
        found.append((sent, time.monotonic()))
    client.close()
    return found


def _load(url: str, kind: str, seconds: int, rate: int, folder: Path) -> subprocess.Popen[bytes]:
    pgbench = ["pgbench", *host_options(url), "-n", "-T", str(seconds), "--max-tries", "0"]
    if kind == "idle":
        command = ["sleep", str(seconds)]
    elif kind == "copy":
        (folder / "rows").write_bytes(copy_lines())
        client = connect(url)
        client.run("CREATE TABLE loaded (id int PRIMARY KEY, k int, name text)")
        client.close()
        command = ["psql", "-X", "-q", url, "-c", f"\\copy loaded FROM '{folder}/rows'"]
    elif kind == "insert":
        (folder / "script").write_text(INSERT)
        client = connect(url)
        client.run("CREATE TABLE ins (id bigint PRIMARY KEY, t text)")
        client.close()
        command = [*pgbench, "-c", "16", "-M", "prepared", "-f", str(folder / "script"), "postgres"]
    else:
        command = [*pgbench, "-c", "8", *(["-R", str(rate)] if kind == "paced" else []), "postgres"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _percentiles(values: list[float]) -> str:
    ordered = sorted(values) or [0.0]
    picked = (ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], ordered[-1])
    return " ".join(f"{value * 1000:8.3f}" for value in picked)


def _report(folder: Path, reads: list[tuple[float, float]]) -> None:
    times, kinds = array("d"), array("i")
    times.frombytes((folder / "times").read_bytes())
    kinds.frombytes((folder / "kinds").read_bytes())
    names, pauses = json.loads((folder / "names").read_text())
    begins = times[0::4]
    first, last = bisect.bisect_left(begins, reads[0][0]), bisect.bisect_left(begins, reads[-1][1])
    by_kind: dict[str, list[float]] = defaultdict(list)
    for at in range(first, last):
        by_kind[names[kinds[at]]].append(times[4 * at + 3] - times[4 * at + 2])
    print(f"{'pieces, ms of processor time':<78} {'count':>8} {'p50':>8} {'p99':>8} {'max':>8} {'sum s':>7}")
    for name, spent in sorted(by_kind.items(), key=lambda item: -sum(item[1]))[:40]:
        print(f"{name[:78]:<78} {len(spent):8} {_percentiles(spent)} {sum(spent):7.2f}")
    split = [_split(begins, times, kinds, names, *read) for read in reads]
    found = [one for one in split if one is not None]
    slow = sorted(found, key=lambda one: -one["all"])[: max(1, len(found) // 100)]
    for title, some in (("reads", found), ("slowest hundredth", slow)):
        print(f"\n{title}: {len(some)} of {len(reads)}; ms                   p50      p99      max     mean")
        for what in (
            "all",
            "processor",
            "pieces",
            "kernel",
            "not running",
            "the read",
            "the read, not running",
            "answer",
        ):
            values = [one[what] for one in some]
            print(f"  {what:<40} {_percentiles(values)} {sum(values) / len(values) * 1000:8.3f}")
    waited: dict[str, list[float]] = defaultdict(list)
    for one in slow:
        for name, spent_here in one["for"]:
            waited[name].append(spent_here)
    print(
        "\nthe slowest hundredth waited for                                 count      p50      p99      max"
    )
    for name, spent in sorted(waited.items(), key=lambda item: -sum(item[1]))[:15]:
        print(f"  {name[:60]:<60} {len(spent):7} {_percentiles(spent)}")
    for generation in (0, 1, 2):
        lengths = [p[2] for p in pauses if p[0] == generation and reads[0][0] <= p[1] <= reads[-1][1]]
        print(f"collector, generation {generation}: {len(lengths):6} {_percentiles(lengths)}")


def _split(
    begins: array[float],
    times: array[float],
    kinds: array[int],
    names: list[str],
    sent: float,
    answered: float,
) -> dict[str, Any] | None:
    """Say where the time of one read went; None if its piece is not found."""
    at = bisect.bisect_left(begins, sent)
    if at and times[4 * (at - 1) + 1] > sent:
        at -= 1  # this one was under way
    handled = at
    while handled < len(kinds) and (names[kinds[handled]] != READ or begins[handled] < sent):
        handled += 1
    if handled == len(kinds) or begins[handled] > answered:
        return None
    waited = []
    pieces = kernel = 0.0
    for piece in range(at, handled):
        begin, end, spent, spent_at_end = times[4 * piece : 4 * piece + 4]
        share = min(1.0, (end - sent) / (end - begin)) if end > begin else 1.0
        took = (spent_at_end - spent) * share
        pieces += took
        waited.append((names[kinds[piece]], took))
        kernel += times[4 * piece + 6] - spent_at_end
    begin, end, spent, spent_at_end = times[4 * handled : 4 * handled + 4]
    return {
        "all": answered - sent,
        "processor": pieces + kernel + spent_at_end - spent,
        "pieces": pieces,
        "kernel": kernel,
        "not running": begin - sent - pieces - kernel,
        "the read": spent_at_end - spent,
        "the read, not running": end - begin - (spent_at_end - spent),
        "answer": answered - end,
        "for": waited,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.turns", description=__doc__)
    parser.add_argument("--load", choices=LOADS, default="tpcb")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rate", type=int, default=250, help="transactions per second of --load paced")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments, rest = parser.parse_known_args()
    if arguments.serve is not None:
        return _serve(arguments.serve, rest)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-turns-") as name:
        folder = Path(name)
        command = [
            sys.executable,
            "-m",
            "bench.turns",
            "--serve",
            name,
            "--port",
            "0",
            "--spark-start",
            "off",
        ]
        command += ["--data-dir", f"{name}/data", *rest]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = server.stdout.readline().split(":")[1].split(",")[0]
            url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
            subprocess.run(
                ["pgbench", *host_options(url), "-i", "-q", "-s", "1", "postgres"],
                check=True,
                capture_output=True,
            )
            time.sleep(2)  # what initialising has left to do is not the load's
            with _load(url, arguments.load, arguments.seconds, arguments.rate, folder) as load:
                reads = _read(url, lambda: load.poll() is not None)
            server.send_signal(signal.SIGTERM)
            server.wait(60)
        _report(folder, reads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
