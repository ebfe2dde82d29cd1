"""``python -m bench.stream --rows N``: a large result of Spark through a portal and through a cursor, and what memory it takes.

    series     one bigint a row           Spark makes the rows
    wide       ten columns a row          ids, numerics, timestamps and texts

A client reads in steps (Execute with a row limit, or FETCH) and looks at nothing but the number of rows. Printed are seconds
until the first row and until the last, rows per second, and the most that server and JVM had resident at any time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from bench.peers import holdfast

QUERIES = {
    "series": "SELECT * FROM generate_series(1, {rows}::bigint) g",
    "wide": (
        "SELECT g AS id, g % 1000 AS k, g * 2 AS v, (g % 100000)::numeric(12,2) AS amount, "
        "timestamp '2024-01-01' + (g % 100000) * interval '1 second' AS at, date '2024-01-01' + (g % 1000)::int AS day, "
        "'name ' || g AS name, g::text AS t, g % 2 = 0 AS even, g::float8 / 3 AS f "
        "FROM generate_series(1, {rows}::bigint) g"
    ),
}
STEP = 50_000


def resident(pid: int) -> int:
    """Return a process's resident bytes, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return found


@contextmanager
def watched(server: int) -> Iterator[dict[str, int]]:
    """Note the most that server and JVM have resident, in bytes, looking every tenth of a second."""
    most = {"server": 0, "jvm": 0}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.1):
            most["server"] = max(most["server"], resident(server))
            most["jvm"] = max(most["jvm"], *(resident(child) for child in children(server)), 0)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        ended.set()
        watcher.join()


@dataclass(slots=True)
class Read:
    """What a client has seen: seconds to the first row and to the last, and the number of rows."""

    first: float
    seconds: float
    rows: int


async def through_portal(url: str, sql: str) -> Read:
    """Execute a portal ``STEP`` rows at a time."""
    connection = await asyncpg.connect(url)
    await connection.execute("SET executor = spark")
    started = time.perf_counter()
    first, count = 0.0, 0
    async with connection.transaction():
        cursor = await connection.cursor(sql)
        while found := await cursor.fetch(STEP):
            first = first or time.perf_counter() - started
            count += len(found)
    seconds = time.perf_counter() - started
    await connection.close()
    return Read(first, seconds, count)


async def through_cursor(url: str, sql: str) -> Read:
    """FETCH ``STEP`` rows at a time from a cursor."""
    connection = await asyncpg.connect(url)
    await connection.execute("SET executor = spark")
    started = time.perf_counter()
    first, count = 0.0, 0
    async with connection.transaction():
        await connection.execute(f"DECLARE big NO SCROLL CURSOR FOR {sql}")
        while found := await connection.fetch(f"FETCH {STEP} FROM big"):
            first = first or time.perf_counter() - started
            count += len(found)
    seconds = time.perf_counter() - started
    await connection.close()
    return Read(first, seconds, count)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.stream", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--only", choices=list(QUERIES))
    parser.add_argument("--memory", default="3GB", help="of the server; a third of it is the JVM's heap")
    arguments = parser.parse_args()
    print("| result | through | first row, s | all, s | rows/s | server MB | JVM MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with holdfast("--spark-start", "background", "--memory", arguments.memory) as us:
        asyncio.run(through_portal(us.url, "SELECT count(*) FROM generate_series(1, 20000)"))  # the JVM is up
        for name, text in QUERIES.items():
            if arguments.only not in (None, name):
                continue
            sql = text.format(rows=arguments.rows)
            for way, read in (("portal", through_portal), ("cursor", through_cursor)):
                with watched(us.process.pid) as most:
                    found = asyncio.run(read(us.url, sql))
                if found.rows != arguments.rows:
                    raise RuntimeError(f"{name} through a {way}: {found.rows} rows")
                print(
                    f"| {name}, {found.rows:,} rows | {way} | {found.first:.1f} | {found.seconds:.1f} "
                    f"| {found.rows / found.seconds:,.0f} | {most['server'] >> 20:,} | {most['jvm'] >> 20:,} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
