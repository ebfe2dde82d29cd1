"""``make bench``: Holdfast beside PostgreSQL 15 in the same minutes, in interleaved rounds; prints ratios.

A figure alone says little on a shared machine; the ratio of two medians measured in turn says more. Every line is
"work per second of Holdfast / of PostgreSQL" (or the inverse ratio of times), with the budget it is held against.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import isolation, readers
from bench.peers import holdfast, postgres
from bench.tpch import compare, data
from sqllogictest.client import Client
from tests.support.server import ServerProcess

TPS = re.compile(r"tps = ([\d.]+)")
INSERT_SCRIPT = (
    "\\set id random(1, 9000000000000)\nINSERT INTO ins VALUES (:id, 'some text') ON CONFLICT DO NOTHING;\n"
)


@dataclass
class Line:
    """One comparison: medians and the budget ("" where there is none)."""

    name: str
    ours: float
    theirs: float
    unit: str
    budget: str
    higher_is_better: bool = True

    def show(self) -> str:
        """Return the line as a row of a Markdown table."""
        ratio = self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours
        return (
            f"| {self.name} | {self.ours:,.1f} {self.unit} | {self.theirs:,.1f} {self.unit} "
            f"| {ratio:.2f}x | {self.budget} |"
        )


def pgbench(url: str, seconds: int, *options: str) -> float:
    """Run pgbench and return its successful transactions per second.

    PostgreSQL at SERIALIZABLE refuses many of TPC-B's; a refused one is tried again, as an application would.
    """
    host, port = url.split("@")[1].split("/")[0].split(":")
    done = subprocess.run(
        ["pgbench", "-h", host, "-p", port, "-U", "postgres", "-n", "-T", str(seconds), "--max-tries", "0", *options, "postgres"],
        capture_output=True, text=True, timeout=seconds + 120, check=False,
    )  # fmt: skip
    match = TPS.search(done.stdout)
    if done.returncode or match is None:
        raise RuntimeError(f"pgbench {' '.join(options)} failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return float(match.group(1))


def psql(url: str, script: str, timeout: float = 3600) -> None:
    """Run a psql script, stopping at the first error."""
    done = subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", url],
        input=script, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip())


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Measure in turn; return the two medians."""
    mine, others = [], []
    for _ in range(rounds):
        mine.append(ours())
        others.append(theirs())
    return statistics.median(mine), statistics.median(others)


def transactions(us: ServerProcess, them: str, seconds: int, rounds: int) -> list[Line]:
    """Measure pgbench's scripts and single-row inserts."""
    for url in (us.url, them):
        host, port = url.split("@")[1].split("/")[0].split(":")
        subprocess.run(
            ["pgbench", "-h", host, "-p", port, "-U", "postgres", "-i", "-q", "-s", "10", "postgres"],
            check=True, capture_output=True, timeout=600,
        )  # fmt: skip
        psql(url, "CREATE TABLE ins (id bigint PRIMARY KEY, t text)")
    lines = []
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(INSERT_SCRIPT)
        script.flush()
        cases = [
            ("pgbench -S prepared, 4 clients", ["-S", "-M", "prepared", "-c", "4"], "0.25x, then 0.5x"),
            ("pgbench -S simple, 4 clients", ["-S", "-M", "simple", "-c", "4"], ""),
            ("pgbench TPC-B, 8 clients", ["-c", "8"], "0.5x, then 1x"),
            ("pgbench TPC-B prepared, 8 clients", ["-c", "8", "-M", "prepared"], ""),
            (
                "single-row INSERT, 16 clients",
                ["-c", "16", "-M", "prepared", "-f", script.name],
                "0.5x, then 1x",
            ),
        ]
        for name, options, budget in cases:
            ours, theirs = interleaved(
                lambda o=options: pgbench(us.url, seconds, *o),  # type: ignore[misc]
                lambda o=options: pgbench(them, seconds, *o),  # type: ignore[misc]
                rounds,
            )
            lines.append(Line(name, ours, theirs, "tps", budget))
            print(lines[-1].show(), flush=True)
    return lines


def bulk(us: ServerProcess, them: str, rounds: int) -> list[Line]:
    """A million rows in (COPY with a primary key) and out."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        with file.open("w", encoding="ascii") as out:
            out.writelines(
                f"{i},{i % 1000},name {i},{i}.25,2024-01-{i % 28 + 1:02d}\n" for i in range(1_000_000)
            )
        create = (
            "DROP TABLE IF EXISTS big; CREATE TABLE big (id int PRIMARY KEY, k int, name text, "
            "amount numeric(12,2), day date);\n"
        )
        load = f"\\copy big FROM '{file}' WITH (FORMAT csv)\n"

        def copy_in(url: str) -> float:
            psql(url, create)
            return timed(lambda: psql(url, load))

        cases = [
            ("COPY FROM, 1M rows, primary key", copy_in, "0.5x"),
            (
                "SELECT of 1M rows",
                lambda url: timed(lambda: psql(url, "SELECT * FROM big;")),
                "0.3x, then 0.5x",
            ),
            (
                "COPY TO, 1M rows",
                lambda url: timed(lambda: psql(url, "\\copy big TO '/dev/null'\n")),
                "0.3x, then 0.5x",
            ),
        ]
        for name, work, budget in cases:
            ours, theirs = interleaved(lambda w=work: w(us.url), lambda w=work: w(them), rounds)  # type: ignore[misc]
            lines.append(Line(name, ours, theirs, "s", budget, higher_is_better=False))
            print(lines[-1].show(), flush=True)
    return lines


def small(us: ServerProcess, them: str, rounds: int) -> list[Line]:
    """Latencies of small statements over one connection."""
    lines = []
    for name, sql, budget in [
        ("SELECT 1", "SELECT 1", "1 ms"),
        ("aggregate over 1,000 rows", "SELECT k % 10, sum(v) FROM thousand GROUP BY 1", "3 ms local"),
    ]:
        latencies = []
        for url in (us.url, them):
            client = compare.connect(url)
            client.run("DROP TABLE IF EXISTS thousand")
            client.run("CREATE TABLE thousand (k int PRIMARY KEY, v int)")
            client.run("INSERT INTO thousand SELECT i, i FROM generate_series(1, 1000) AS g (i)")
            for _ in range(20):
                client.run(sql)
            times = [_seconds(client, sql) * 1000 for _ in range(50 * rounds)]
            client.close()
            latencies.append(statistics.median(times))
        lines.append(Line(name, latencies[0], latencies[1], "ms", budget, higher_is_better=False))
        print(lines[-1].show(), flush=True)
    return lines


def _seconds(client: Client, sql: str) -> float:
    return timed(partial(client.run, sql))


def tpch(us: ServerProcess, them: str, scale: float, rounds: int) -> list[Line]:
    """The 22 queries; the figure is the geometric mean of their medians."""
    folder = data.generate(scale, Path(tempfile.gettempdir()) / "holdfast-tpch")
    loads = [timed(lambda u=url: data.load(u, folder)) for url in (us.url, them)]  # type: ignore[misc]
    lines = [Line(f"TPC-H SF {scale:g} load", loads[0], loads[1], "s", "", higher_is_better=False)]
    print(lines[-1].show(), flush=True)
    for url in (us.url, them):
        # Without it PostgreSQL needs minutes for queries 17 and 20 already at a tenth of SF 1.
        psql(url, "CREATE INDEX ON lineitem (l_partkey, l_suppkey); ANALYZE lineitem")
    mine, others = compare.connect(us.url), compare.connect(them)
    medians: list[tuple[float, float]] = []
    for number in data.QUERIES:
        sql = data.query(number, scale)
        expected, _ = compare.answer(others, sql)
        actual, _ = compare.answer(mine, sql)
        differ = compare.differences(expected, actual)
        if differ:
            raise RuntimeError(f"TPC-H query {number} differs: {differ}")
        ours, theirs = (partial(_seconds, client, sql) for client in (mine, others))
        medians.append(interleaved(ours, theirs, rounds))
    means = [statistics.geometric_mean([pair[i] for pair in medians]) * 1000 for i in (0, 1)]
    lines.append(
        Line(
            f"TPC-H SF {scale:g}, geometric mean",
            means[0],
            means[1],
            "ms",
            "5x at SF 1",
            higher_is_better=False,
        )
    )
    print(lines[-1].show(), flush=True)
    mine.close()
    others.close()
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="of each pgbench run")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds; medians are compared")
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor")
    parser.add_argument(
        "--only",
        choices=["transactions", "bulk", "small", "tpch", "readers", "isolation-of-load"],
        help="one part",
    )
    arguments = parser.parse_args()
    if arguments.only == "isolation-of-load":
        isolation.report(arguments.seconds, arguments.rounds)
        return 0
    print("| what | Holdfast | PostgreSQL 15 | ratio | budget |\n| --- | --- | --- | --- | --- |", flush=True)
    with holdfast() as us, postgres("default_transaction_isolation=serializable") as them:
        parts: dict[str, Callable[[], list[Line]]] = {
            "transactions": lambda: transactions(us, them, arguments.seconds, arguments.rounds),
            "bulk": lambda: bulk(us, them, arguments.rounds),
            "small": lambda: small(us, them, arguments.rounds),
            "tpch": lambda: tpch(us, them, arguments.scale, arguments.rounds),
        }
        for name, part in parts.items():
            if arguments.only in (None, name):
                part()
        if arguments.only in (None, "readers"):
            readers.report(us.url, them, arguments.seconds, arguments.rounds)
    if arguments.only is None:
        isolation.report(arguments.seconds, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
