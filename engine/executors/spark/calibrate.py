"""``holdfast calibrate``: queries on DuckDB and on Spark, index builds by the server and by Spark, over a
table that grows.

A server of its own runs on a scratch directory with this configuration's memory, cores and Spark, so what is
measured is what statements take through the wire. Times are the least of ``ROUNDS``, of queries after one
that is not counted.
"""

from __future__ import annotations

import datetime
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from engine.base.config import Config
from engine.base.memory import MemoryPlan
from engine.executors.spark.calibration import (
    Calibration,
    IndexPoint,
    Point,
    recommend,
    recommend_index,
    store,
)
from sqllogictest.client import Client, ServerError, Target
from txn.persist.scratch import Scratch

ROUNDS: Final = 3
SHARES: Final = (16, 4, 1)
"""The table is measured at a sixteenth, a quarter and all of its rows."""
FORMAT_FILE: Final = "FORMAT"  # what a data directory begins with (txn.log.leadership)
DEFAULT_ROWS: Final = 4_000_000
MIN_ROWS: Final = 16_000
TIMEOUT_S: Final = 3600.0
_READY: Final = re.compile(r"ready on \S+:(\d+)")
_TABLE: Final = (
    "CREATE TABLE calibration (id bigint PRIMARY KEY, other bigint NOT NULL, day date NOT NULL, "
    "amount numeric(15,2) NOT NULL, word text NOT NULL)"
)
_FILL: Final = (
    "INSERT INTO calibration SELECT g, (g * 7919) % {rows} + 1, date '2000-01-01' + (g % 3650)::int, "
    "(g % 100000)::numeric(15,2) / 4, 'word ' || g % 1000 FROM generate_series({first}, {rows}) g"
)
QUERIES: Final = (
    "SELECT word, count(*), sum(amount), min(day) FROM calibration WHERE day >= date '2003-01-01' GROUP BY word ORDER BY word",
    "SELECT count(*), sum(b.amount) FROM calibration a JOIN calibration b ON b.id = a.other WHERE a.day < date '2005-01-01'",
)
INDEXES: Final = ("other", "word, day")


def run(config: Config, *, rows: int, keep: bool) -> int:
    """Measure, print the times and the recommendation; with ``keep`` store it in the data directory. Returns
    the exit status.
    """
    if config.spark_start == "off":
        print("holdfast: spark_start is off: there is nothing to compare", file=sys.stderr)
        return 2
    if keep and not (Path(config.data_dir) / FORMAT_FILE).exists():
        print(f"holdfast: {config.data_dir} is no data directory yet: start the server once", file=sys.stderr)
        return 2
    try:
        with (
            Scratch("calibrate") as folder,
            _server(config, Path(folder)) as port,
        ):
            points, builds = _measure(port, rows)
    except (OSError, ServerError, RuntimeError) as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 1
    found, because = recommend(points, MemoryPlan.of(config.memory).duckdb)
    print(f"local_executor_max_bytes = {found}")
    print(f"{because}.")
    least, why = recommend_index(builds)
    print(f"index_spark_min_rows = {least}")
    print(f"{why}.")
    if keep:
        made = Calibration(
            found, because, datetime.datetime.now(datetime.UTC).date().isoformat(), config.spark_master,
            os.cpu_count() or 1, points, least, builds,
        )  # fmt: skip
        try:
            print(f"stored in {store(Path(config.data_dir), made)}; the server uses it from its next start")
        except OSError as error:
            print(f"holdfast: cannot store it: {error}", file=sys.stderr)
            return 1
    return 0


def _measure(port: int, rows: int) -> tuple[tuple[Point, ...], tuple[IndexPoint, ...]]:
    client = Client(Target.from_url(f"postgresql://postgres@127.0.0.1:{port}/postgres"), timeout_s=TIMEOUT_S)
    try:
        client.run(_TABLE)
        points = []
        builds = []
        first = 1
        print(f"{'rows':>12} {'bytes':>14} {'local':>10} {'spark':>10}   {'index, local':>12} {'spark':>10}")
        for share in SHARES:
            last = rows // share
            client.run(_FILL.format(first=first, rows=last))
            client.run("VACUUM")
            first = last + 1
            size = int(client.run("SELECT bytes FROM holdfast_shards WHERE relname = 'calibration'").rows[0][0] or 0)  # fmt: skip
            point = Point(size, _seconds(client, "local"), _seconds(client, "spark"))
            build = IndexPoint(last, _build_seconds(client, "local"), _build_seconds(client, "spark"))
            print(
                f"{last:>12} {size:>14} {point.local_s:>8.3f} s {point.spark_s:>8.3f} s   {build.local_s:>10.3f} s "
                f"{build.spark_s:>8.3f} s",
                flush=True,
            )
            points.append(point)
            builds.append(build)
        return tuple(points), tuple(builds)
    finally:
        client.close()


def _seconds(client: Client, executor: str) -> float:
    client.run(f"SET executor = {executor}")
    total = 0.0
    for sql in QUERIES:
        client.run(sql)
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            client.run(sql)
            times.append(time.perf_counter() - started)
        total += min(times)
    return total


def _build_seconds(client: Client, executor: str) -> float:
    client.run(f"SET executor = {executor}")
    total = 0.0
    for columns in INDEXES:
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            client.run(f"CREATE INDEX calibration_index ON calibration ({columns})")
            times.append(time.perf_counter() - started)
            client.run("DROP INDEX calibration_index")
        total += min(times)
    return total


@contextmanager
def _server(config: Config, folder: Path) -> Iterator[int]:
    """Run a server with the configuration's resources; yields its port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    # By the environment: a property may be a secret, and a command line is public.
    environment["HOLDFAST_SPARK_CONF"] = "\n".join(f"{key}={value}" for key, value in config.spark_conf)
    command = [
        sys.executable, "-m", "engine", "serve", "--host", "127.0.0.1", "--port", "0", "--data-dir", str(folder / "data"),
        "--memory", str(config.memory), "--local-threads", str(config.local_threads),
        "--spark-master", config.spark_master, "--spark-start", "lazy",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
    if process.stdout is None:
        raise AssertionError("the process was started without a pipe from it")
    try:
        for line in process.stdout:
            if match := _READY.search(line):
                yield int(match[1])
                break
        else:
            raise RuntimeError(f"the server did not start: {(folder / 'log').read_text()[-500:]}")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
