"""Many seeds over several processes, with a line of progress.

    python -m tests.sim.sweep --seeds 1000 --first 1 --processes 2

A worker is this module with ``--worker``: it runs every n-th seed and prints a line of JSON for each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from tests.sim.run import TRANSACTIONS, run_seed

PROCESSES = 2


@dataclass(slots=True)
class Summary:
    """What a sweep came to."""

    seeds: int = 0
    transactions: int = 0
    committed: int = 0
    crashes: int = 0
    takeovers: int = 0
    fewest_transactions: int = 1 << 30
    fewest_crashes: int = 1 << 30
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, line: dict[str, Any]) -> None:
        """Add one seed."""
        self.seeds += 1
        self.transactions += line["transactions"]
        self.committed += line["outcomes"].get("ok", 0)
        self.crashes += line["crashes"]
        self.takeovers += line["takeovers"]
        self.fewest_transactions = min(self.fewest_transactions, line["transactions"])
        self.fewest_crashes = min(self.fewest_crashes, line["crashes"])
        self.outcomes.update(line["outcomes"])
        if line["failure"]:
            self.failures[line["seed"]] = line["failure"]

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.seeds} seeds, {self.transactions} transactions ({self.committed} committed), "
            f"{self.crashes} crashes, {self.takeovers} takeovers, {len(self.failures)} failed"
        )


def sweep(
    first: int, seeds: int, processes: int = PROCESSES, progress: Callable[[Summary], None] | None = None
) -> Summary:
    """Run ``seeds`` seeds from ``first`` on. A worker that dies counts as a failure of its next seed."""
    summary = Summary()
    processes = max(1, min(processes, seeds))
    workers = [
        subprocess.Popen(
            [
                sys.executable, "-m", "tests.sim.sweep", "--worker",
                "--first", str(first + n), "--seeds", str(len(range(n, seeds, processes))), "--processes", str(processes),
            ],
            stdout=subprocess.PIPE, text=True,
        )
        for n in range(processes)
    ]  # fmt: skip
    try:
        for line in _interleave([w.stdout for w in workers if w.stdout is not None]):
            summary.add(json.loads(line))
            if progress is not None:
                progress(summary)
        for worker in workers:
            if worker.wait() != 0:
                summary.failures[-1] = f"a worker ended with status {worker.returncode}"
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()
    return summary


def _interleave(streams: list[TextIO]) -> Iterator[str]:
    """Yield lines of all streams, one of each in turn (they run at about the same speed)."""
    while streams:
        for stream in list(streams):
            line = stream.readline()
            if line:
                yield line
            else:
                streams.remove(stream)


def _work(first: int, seeds: int, step: int) -> None:
    for seed in range(first, first + seeds * step, step):
        result = run_seed(seed)
        line = {
            "seed": seed,
            "transactions": result.transactions,
            "crashes": result.servers.kills,
            "takeovers": result.servers.takeovers,
            "outcomes": result.outcomes,
            "failure": result.explain() if result.failed else "",
        }
        print(json.dumps(line), flush=True)


def main() -> int:
    """Sweep from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.sweep", description="Run many simulated seeds."
    )
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.first, options.seeds, options.processes)
        return 0
    began = time.monotonic()
    known: set[int] = set()

    def progress(summary: Summary) -> None:
        for seed in summary.failures.keys() - known:
            known.add(seed)
            print("\n" + summary.failures[seed], flush=True)
        at_terminal = sys.stdout.isatty()
        if at_terminal or summary.seeds % 100 == 0 or summary.seeds == options.seeds:
            rate = summary.seeds / (time.monotonic() - began)
            print(f"{summary} ({rate:.1f} seeds/s)", end="\r" if at_terminal else "\n", flush=True)

    print(f"seeds {options.first} to {options.first + options.seeds - 1}, {TRANSACTIONS} transactions each")
    summary = sweep(options.first, options.seeds, options.processes, progress)
    print(f"\n{summary}\noutcomes: {dict(summary.outcomes.most_common())}")
    return 1 if summary.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
