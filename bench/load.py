"""Bulk load beside PostgreSQL: ``python -m bench.load [--rows 1000000] [--rounds 3] [--file PATH] [--peer URL]``.

One CSV file of about 75 bytes a row is loaded into the same table, with a primary key, in turn by

    postgres   COPY FROM of the file by PostgreSQL
    here       COPY FROM by the server                         SET executor = local
    spark      COPY FROM by Spark's executors                  SET executor = spark

after one round that does not count. PostgreSQL is a private one with its shipped settings, or that at URL. ``--file``: where the
file is kept, which is written only if it is not there. Prints rows per second of each round, the medians, and their ratios to PostgreSQL's. What
was loaded is compared by aggregates. The server's resident memory is shown: with Spark, rows do not pass through it.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from bench.big import resident
from bench.peers import compile_modules, postgres
from tests.support.server import ServerProcess

TABLE = "CREATE TABLE loaded (id int PRIMARY KEY, k int NOT NULL, price numeric(10,2), d date, c text)"
SUM = "SELECT count(*), sum(k::bigint), sum(price), min(d), max(d), min(c), max(c) FROM loaded"
CHUNK = 10_000
WARM_ROWS = 20_000


def write(path: Path, rows: int) -> None:
    """Write the file."""
    draw = random.Random(7)
    with path.open("w", encoding="ascii") as file:
        for first in range(0, rows, CHUNK):
            file.write("".join([_line(draw, i) for i in range(first, min(first + CHUNK, rows))]))


def _line(draw: random.Random, i: int) -> str:
    return (
        f"{i},{draw.randrange(10**6)},{draw.randrange(10**8) / 100:.2f},2024-{draw.randrange(1, 13):02}-"
        f'{draw.randrange(1, 29):02},"comment {draw.getrandbits(64):x} of row {i}"\n'
    )


def load(connection: psycopg.Connection[tuple[object, ...]], path: Path) -> float:
    """Load the file into a new table; return the seconds it took."""
    connection.execute("DROP TABLE IF EXISTS loaded")
    connection.execute(TABLE)
    begun = time.perf_counter()
    connection.execute(f"COPY loaded FROM '{path}' (FORMAT csv)")
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--peer")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--ways", default="postgres,here,spark")
    arguments = parser.parse_args()
    compile_modules()
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-load-"))
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL's server reads it, too
        path, few = arguments.file or folder / "rows.csv", folder / "few.csv"
        if not path.exists():
            write(path, arguments.rows)
        write(few, WARM_ROWS)
        if "postgres" in arguments.ways and arguments.peer is None:
            arguments.peer = stack.enter_context(postgres())
        roots = f"{name},{path.parent.resolve()}"
        options = ("--memory", arguments.memory, "--spark-start", "background", "--server-files", roots)
        server = ServerProcess(folder / "data", *options)
        try:
            return run(server, path, few, arguments)
        finally:
            server.stop()


def run(server: ServerProcess, path: Path, few: Path, arguments: argparse.Namespace) -> int:
    """Load by each way in turn and print what it took."""
    ways = arguments.ways.split(",")
    connections = {}
    for way in ways:
        url = arguments.peer if way == "postgres" else server.url
        made = connections[way] = psycopg.connect(url, autocommit=True)
        if way != "postgres":
            made.execute("SET executor = " + ("spark" if way == "spark" else "local"))
            made.execute("SET copy_progress_interval = 0")
        load(made, few)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    sums = set()
    for number in range(arguments.rounds):
        for way in ways:
            seconds[way].append(load(connections[way], path))
            if way == "spark":
                connections[way].execute("SET executor = auto")
            sums.add(str(connections[way].execute(SUM).fetchone()))
            if way == "spark":
                connections[way].execute("SET executor = spark")
        shown = "  ".join(f"{way} {arguments.rows / seconds[way][-1]:,.0f}" for way in ways)
        print(
            f"round {number + 1}: rows/s  {shown}  (server {resident(server.process.pid)[0] >> 20} MB)",
            flush=True,
        )
    for way in ways:
        median = statistics.median(seconds[way])
        ratio = f"  {statistics.median(seconds['postgres']) / median:.2f}x" if "postgres" in ways else ""
        print(f"{way:9} {median:7.2f} s  {arguments.rows / median:10,.0f} rows/s{ratio}")
    for made in connections.values():
        made.execute("DROP TABLE IF EXISTS loaded")
        made.close()
    print(f"{path.stat().st_size >> 20} MB; peak of the server {resident(server.process.pid)[1] >> 20} MB")
    if len(sums) != 1:
        print("what was loaded differs:", *sums, sep="\n  ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
