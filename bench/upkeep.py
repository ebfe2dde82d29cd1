"""Index builds and merges, by the server and by Spark's tasks: ``python -m bench.upkeep [--rows 1000000,10000000] [--merge-rows 250000]``.

    index     CREATE INDEX over parts of a table           SET executor = local | spark, in turn, after one that does not count
    merge     eight parts become one                       by two servers: one that has Spark merge everything, one that does not

Prints for each the time on the clock and the processor time of the server and of what it started (JVM and Python workers): who
computes is the point, for the server's own processor time is everybody's. A merge counts from the last part's commit until it
has been swapped in. What both ways have made is compared.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.peers import compile_modules
from tests.support.server import ServerProcess

TABLE = "id bigint PRIMARY KEY, k bigint NOT NULL, amount numeric(15,2) NOT NULL, word text NOT NULL"
FILL = (
    "INSERT INTO {table} SELECT g, (g * 7919) % 1000003, (g % 100000)::numeric(15,2) / 4, 'word ' || g % 1000 || '-' || g "
    "FROM generate_series({first}::bigint, {last}) g"
)
INDEXES = {"bigint": "k", "text, unique": "word"}
PARTS = 8
PATIENCE_S = 120.0
NEVER = str(1 << 60)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True)
class Cost:
    """Seconds: on the clock, of the server's processor time, of that of its children."""

    seconds: float
    server_s: float
    others_s: float


def _processor_s(pid: int) -> float:
    """Return what a process has used so far, and those of its children that have ended."""
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    )
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) * _TICK_S


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            with contextlib.suppress(OSError):
                yield from _below(int(child))


class Meter:
    """Measures from its making to ``stop``."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = self._used()
        self._begun = time.perf_counter()

    def _used(self) -> tuple[float, float]:
        others = 0.0
        for child in list(_below(self._pid)):
            with contextlib.suppress(OSError):
                others += _processor_s(child)
        return _processor_s(self._pid), others

    def stop(self) -> Cost:
        """Return what there was since the beginning."""
        seconds = time.perf_counter() - self._begun
        server, others = self._used()
        return Cost(seconds, server - self._before[0], others - self._before[1])


def _shown(what: str, way: str, costs: Sequence[Cost]) -> str:
    def median(name: str) -> float:
        return statistics.median([getattr(cost, name) for cost in costs])

    return (
        f"| {what} | {way} | {median('seconds'):.2f} | {median('server_s'):.2f} | {median('others_s'):.2f} |"
    )


def indexes(folder: Path, rows: int, rounds: int, memory: str) -> None:
    """Build each index of ``INDEXES`` both ways in turn."""
    server = ServerProcess(folder / f"index-{rows}", "--spark-start", "background", "--memory", memory)
    try:
        with psycopg.connect(server.url, autocommit=True) as c:
            c.execute(f"CREATE TABLE t ({TABLE})")
            c.execute(FILL.format(table="t", first=1, last=rows))
            c.execute("CHECKPOINT")
            c.execute("SET executor = spark")
            c.execute("SELECT count(*), max(word) FROM t")  # it is up
            for what, columns in INDEXES.items():
                costs: dict[str, list[Cost]] = {"server": [], "Spark": []}
                for number in range(rounds + 1):
                    for way, executor in (("server", "local"), ("Spark", "spark")):
                        c.execute(f"SET executor = {executor}")
                        meter = Meter(server.process.pid)
                        c.execute(
                            f"CREATE {'UNIQUE ' if 'unique' in what else ''}INDEX made ON t ({columns})"
                        )
                        cost = meter.stop()
                        if number:
                            costs[way].append(cost)
                        c.execute("DROP INDEX made")
                for way, found in costs.items():
                    print(_shown(f"index, {what}, {rows:,} rows", way, found), flush=True)
    finally:
        server.stop()


def merges(folder: Path, rows: int, rounds: int, memory: str) -> bool:
    """Have eight parts of ``rows`` rows together merged both ways; return whether the tables are the same."""
    answers = set()
    for way, least in (("server", NEVER), ("Spark", "1")):
        options = ("--spark-start", "background", "--memory", memory, "--merge-spark-min-bytes", least)
        server = ServerProcess(folder / f"merge-{rows}-{way}", *options)
        costs = []
        try:
            with psycopg.connect(server.url, autocommit=True) as c:
                c.execute("SET executor = spark")
                c.execute("SELECT count(*) FROM generate_series(1, 100000)")  # it is up
                c.execute("SET executor = local")
                for number in range(rounds + 1):
                    table = f"t{number}"
                    c.execute(f"CREATE TABLE {table} ({TABLE})")
                    c.execute(f"CREATE INDEX ON {table} (k)")
                    cost = _merge(c, server, table, rows)
                    if number:
                        costs.append(cost)
                    answers.add(str(c.execute(f"SELECT count(*), sum(k), sum(amount), max(word) FROM {table}").fetchone()))  # fmt: skip
                    c.execute(f"DROP TABLE {table}")
        finally:
            server.stop()
        print(_shown(f"merge, {rows:,} rows", way, costs), flush=True)
    return len(answers) == 1


def _merge(c: Connection, server: ServerProcess, table: str, rows: int) -> Cost:
    [oid] = c.execute(f"SELECT '{table}'::regclass::oid::text").fetchone() or ("",)
    files = server.data_dir / "blobs" / str(oid)
    step = rows // PARTS
    for part in range(PARTS):
        c.execute(FILL.format(table=table, first=part * step + 1, last=(part + 1) * step))
    meter = Meter(server.process.pid)
    end = time.perf_counter() + PATIENCE_S
    while len(list(files.glob("*.parquet"))) > 1:
        if time.perf_counter() > end:
            raise TimeoutError(f"eight parts of {rows} rows together are not merged: too many for one part?")
        time.sleep(0.01)
    return meter.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.upkeep")
    parser.add_argument("--rows", default="1000000,10000000", help="of the tables that are indexed")
    parser.add_argument("--merge-rows", default="250000,1000000", help="that eight parts have together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    compile_modules()
    print("| | by | seconds | server's processor | Spark's |\n| --- | --- | --- | --- | --- |", flush=True)
    same = True
    with tempfile.TemporaryDirectory(prefix="holdfast-upkeep-") as name:
        for rows in filter(None, arguments.rows.split(",")):
            indexes(Path(name), int(rows), arguments.rounds, arguments.memory)
        for rows in filter(None, arguments.merge_rows.split(",")):
            same = merges(Path(name), int(rows), arguments.rounds, arguments.memory) and same
    if not same:
        print("what was merged differs")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
