"""The soak proof: ``python -m bench.soak [--seconds 900] [--history-retention 600]``.

pgbench's TPC-B (scale 1, 8 clients) for a quarter of an hour, with the history of ten minutes kept readable: two
updates of a handful of rows and one of a random account per transaction, so nearly every version is superseded soon. What
must hold:

    no transaction fails
    resident memory is flat      from when the retention is full: the mean of the second half of that time is at most
                                 ``--growth`` times that of the first half

Prints resident memory twenty times, then the verdict.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.big import resident
from tests.support.server import ServerProcess

SAMPLE_S = 1.0
LINES = 20


def run(seconds: int, retention_s: int, memory: str, growth: float, folder: Path) -> int:
    server = ServerProcess(folder, "--memory", memory, "--history-retention", str(retention_s))
    host = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
    subprocess.run(["pgbench", *host, "-i", "-q", "-s", "1", "postgres"], check=True, capture_output=True)
    command = ["pgbench", *host, "-n", "-c", "8", "-T", str(seconds), "postgres"]
    started = time.monotonic()
    samples: list[int] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as load:
        while load.poll() is None:
            samples.append(resident(server.process.pid)[0])
            if len(samples) % max(1, int(seconds / LINES / SAMPLE_S)) == 0:
                print(f"{time.monotonic() - started:6.0f} s  {samples[-1] / (1 << 20):7.1f} MB", flush=True)
            time.sleep(SAMPLE_S)
        assert load.stdout is not None
        said = load.stdout.read()
    parts = server.sql("SELECT sum(parts), sum(hot_rows), sum(bytes) FROM holdfast_shards")
    peak = resident(server.process.pid)[1]
    server.stop()
    full = samples[int(len(samples) * min(retention_s / seconds, 0.8)) :]
    first, last = statistics.mean(full[: len(full) // 2]), statistics.mean(full[len(full) // 2 :])
    print(
        "\n".join(
            line for line in said.splitlines() if "tps" in line or "failed" in line or "processed" in line
        )
    )
    print(f"parts, hot rows, bytes at the end: {parts}")
    print(
        f"retention full {first / (1 << 20):.1f} MB, later {last / (1 << 20):.1f} MB, peak {peak / (1 << 20):.1f} MB"
    )
    problems = []
    if load.returncode or "number of failed transactions: 0 " not in said:
        problems.append(f"pgbench: {said[-400:]}")
    if last > growth * first:
        problems.append(f"memory grew by {last / first - 1:.0%} after the retention was full")
    for problem in problems:
        print("PROBLEM:", problem)
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__)
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--history-retention", type=int, default=600)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--growth", type=float, default=1.1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-soak-") as folder:
        return run(
            arguments.seconds,
            arguments.history_retention,
            arguments.memory,
            arguments.growth,
            Path(folder) / "data",
        )


if __name__ == "__main__":
    sys.exit(main())
