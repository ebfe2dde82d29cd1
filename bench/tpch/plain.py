"""Plain Spark SQL over the part files of the eight tables: what the Spark route is held against.

    parent  {"query": "SELECT …"}          one line of JSON each way
    child   {"seconds": 1.25, "rows": 4}   or {"error": "…"}

A process of its own, with a session as PySpark's users make it, but for what the server's session has too: the same
cores, heap, ANSI mode, time zone and shuffle partitions. The views give the physical columns ``c<attnum>`` their names and nothing else:
no types are changed, no version is hidden, so Spark may do as it likes. Values of char(n) are padded in the files and
texts to Spark, so queries are rewritten by ``data.padded``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.executors.spark.gateway import Gateway, GatewayError, start_gateway
from engine.executors.spark.java import java_command

Views = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Table -> (its files, its column names in order of attnum)."""


class PlainSpark:
    """The child, driven by its parent."""

    def __init__(self, views: Views, *, heap_bytes: int = 2**30, master: str = "local[*]") -> None:
        """Start it; returns once its views are there."""
        command = [
            sys.executable,
            "-m",
            "bench.tpch.plain",
            "--heap-bytes",
            str(heap_bytes),
            "--master",
            master,
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask(views)

    def _ask(self, message: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("plain Spark ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def run(self, sql: str) -> tuple[float, int]:
        """Run a query to its last row; return the seconds it took and how many rows there were."""
        answer = self._ask({"query": sql})
        return float(answer["seconds"]), int(answer["rows"])

    def explain(self, sql: str) -> str:
        """Return Spark's plans of a query."""
        return str(self._ask({"explain": sql})["plan"])

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def _session(heap_bytes: int, master: str, folder: Path) -> tuple[Any, Gateway]:
    cores = os.cpu_count() or 2
    settings = {
        "spark.master": master,
        "spark.app.name": "plain",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "tmp"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(4, 2 * cores)),
    }
    java = java_command()
    if java is None:
        raise GatewayError("there is no Java 17 or later")
    gateway = start_gateway(java, settings, heap_bytes=heap_bytes, work_dir=folder)
    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate(), gateway


def _serve(session: Any, views: dict[str, tuple[Sequence[str], Sequence[str]]]) -> None:
    for table, (paths, columns) in views.items():
        frame = session.read.parquet(*paths)
        names = [f"c{attnum} AS {name}" for attnum, name in enumerate(columns, 1)]
        frame.selectExpr(*names).createOrReplaceTempView(table)
    print("{}", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if "explain" in message:
                plan = session.sql("EXPLAIN EXTENDED " + message["explain"]).collect()[0][0]
                print(json.dumps({"plan": plan}), flush=True)
                continue
            started = time.perf_counter()
            rows = session.sql(message["query"]).toArrow().num_rows
            took = time.perf_counter() - started
            print(json.dumps({"seconds": took, "rows": rows}), flush=True)
        except Exception as error:  # the parent says which query it was
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}), flush=True)


def main() -> None:
    """Be the child."""
    parser = argparse.ArgumentParser(prog="bench.tpch.plain")
    parser.add_argument("--heap-bytes", type=int, default=2**30)
    parser.add_argument("--master", default="local[*]")
    arguments = parser.parse_args()
    views = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        session, gateway = _session(arguments.heap_bytes, arguments.master, Path(folder))
        try:
            _serve(session, views)
        finally:
            gateway.stop()


def parts_of(data_dir: Path, oids: dict[str, int], columns: dict[str, tuple[str, ...]], keep: Path) -> Views:
    """Link the part files of tables below ``keep``, so that they stay when the server replaces them."""
    views: Views = {}
    for table, oid in oids.items():
        folder = keep / table
        folder.mkdir(parents=True)
        paths = []
        for part in sorted((data_dir / "blobs" / str(oid)).glob("*.parquet")):
            os.link(part, folder / part.name)
            paths.append(str(folder / part.name))
        views[table] = (tuple(paths), columns[table])
    return views


if __name__ == "__main__":
    main()
