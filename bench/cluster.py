"""``python -m bench.cluster``: TPC-H on a standalone Spark cluster of one worker, then of two; seconds and their ratio.

    for each number of workers:  master + workers (one core each) on loopback, a server that uses them, the same data
                                 every query ``--rounds`` times; the best counts; answers are compared between clusters

Everything is on this machine, so two workers need two free cores beside the server's: on a smaller or busy machine
the ratio says more about that than about Spark. ``bench.tpch`` compares the answers with PostgreSQL's.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.peers import compile_modules
from bench.tpch import compare, data
from tests.support.server import ServerProcess
from tests.support.spark_cluster import spark_cluster

Answers = dict[int, tuple[list[tuple[str | None, ...]], tuple[int, ...]]]


def measure(
    data_dir: Path, folder: Path, workers: int, arguments: argparse.Namespace, *, load: Path | None
) -> tuple[dict[int, float], Answers]:
    """Return the best seconds and the answer of every query with ``workers`` workers; ``load``: data to load first."""
    seconds: dict[int, float] = {}
    answers: Answers = {}
    with spark_cluster(
        folder / f"workers{workers}", workers=workers, memory_mb=arguments.memory_mb
    ) as cluster:
        server = ServerProcess(data_dir, *cluster.options, "--spark-start", "background", "--memory", "1GB")
        try:
            if load is not None:
                data.load(server.url, load)
            client = compare.connect(server.url, "spark")
            client.run("SELECT count(*) FROM nation")  # Spark is up, its executors too
            for _ in range(arguments.rounds):
                for number in arguments.query:
                    started = time.perf_counter()
                    answers[number] = compare.answer(client, data.query(number, arguments.scale))
                    took = time.perf_counter() - started
                    seconds[number] = min(took, seconds.get(number, took))
                    print(f"{workers} workers q{number:02d} {took:.2f} s", flush=True)
            client.close()
        finally:
            server.stop()
    return seconds, answers


def main() -> int:
    """Run; returns 1 when two clusters answer differently."""
    parser = argparse.ArgumentParser(prog="bench.cluster", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--query", type=int, action="append", choices=data.QUERIES)
    parser.add_argument("--memory-mb", type=int, default=900, help="of each worker")
    arguments = parser.parse_args()
    arguments.query = arguments.query or list(data.QUERIES)
    source = data.generate(arguments.scale, Path(tempfile.gettempdir()) / "holdfast-tpch")
    compile_modules()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-cluster-") as name:
        folder = Path(name)
        one, first = measure(folder / "data", folder, 1, arguments, load=source)
        two, second = measure(folder / "data", folder, 2, arguments, load=None)
    bad = 0
    for number in arguments.query:
        differ = compare.differences(first[number][0], second[number][0])
        bad += bool(differ)
        print(
            f"q{number:02d} {one[number]:8.2f} s {two[number]:8.2f} s {one[number] / two[number]:5.2f} {'; '.join(differ)}"
        )
    ratios = [one[number] / two[number] for number in arguments.query]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"from 1 to 2 workers: {mean:.2f} times (geometric mean of {len(ratios)} queries)")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
