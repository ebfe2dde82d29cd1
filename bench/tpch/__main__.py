"""``make tpch``: all 22 queries against a private PostgreSQL 15, on one or several executors; digits compared."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.peers import holdfast, postgres
from bench.tpch import compare, data
from tests.support.spark_cluster import spark_cluster


def main() -> int:
    """Run; returns 1 when an answer differs."""
    parser = argparse.ArgumentParser(prog="bench.tpch", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--executor", action="append", choices=["auto", "index", "local", "spark"])
    parser.add_argument(
        "--workers", type=int, default=0, help="Spark is a standalone cluster of so many workers"
    )
    parser.add_argument("--no-compare", action="store_true", help="only run (large scales)")
    arguments = parser.parse_args()
    executors = arguments.executor or ["local", "spark"]
    folder = data.generate(arguments.scale, Path(tempfile.gettempdir()) / "holdfast-tpch")
    bad = 0
    spark = "lazy" if "spark" in executors else "off"
    with ExitStack() as stack:
        options = ["--spark-start", spark]
        if arguments.workers:
            folder_of_cluster = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="holdfast-bench-cluster-")
            )
            cluster = spark_cluster(Path(folder_of_cluster), workers=arguments.workers)
            options += [*stack.enter_context(cluster).options, "--memory", "1GB"]
        us, them = stack.enter_context(holdfast(*options)), stack.enter_context(postgres())
        data.load(us.url, folder)
        theirs = None
        if not arguments.no_compare:
            data.load(them, folder)
            theirs = compare.connect(them)
        for executor in executors:
            client = compare.connect(us.url, executor)
            for number in data.QUERIES:
                sql = data.query(number, arguments.scale)
                started = time.perf_counter()
                try:
                    actual, types = compare.answer(client, sql)
                except compare.ServerError as error:
                    print(f"{executor} q{number:02d} FAIL {error}")
                    bad += 1
                    continue
                took = time.perf_counter() - started
                differ: list[str] = []
                if theirs is not None:
                    expected, expected_types = compare.answer(theirs, sql)
                    differ = compare.differences(expected, actual)
                    if types != expected_types:
                        differ.append(f"types {types} instead of {expected_types}")
                bad += bool(differ)
                print(
                    f"{executor} q{number:02d} {'FAIL ' + '; '.join(differ) if differ else 'ok'} {took * 1000:.0f} ms",
                    flush=True,
                )
            client.close()
        if theirs is not None:
            theirs.close()
    print(f"{len(executors) * len(data.QUERIES) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
