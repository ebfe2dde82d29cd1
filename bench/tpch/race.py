"""``make bench-tpch SF=1``: TPC-H on several routes in turn, in one run, with ratios and geometric means.

    auto, local, spark    Holdfast with the executor pinned (auto: the router's choice)
    postgres              a private PostgreSQL 15 as shipped
    plain                 plain Spark SQL over the very part files that were loaded (bench/tpch/plain.py)

Before the race 1 % of lineitem is updated and flushed, then ``--hot`` rows of it are updated and stay in memory, here
and in PostgreSQL; plain Spark reads the files as they were loaded, which are as many rows, and has to find rows where
the others do. Every query runs once on each route uncounted,
where Holdfast's answers are compared with PostgreSQL's to the digit (which gets an index for 17 and 20: without it they take it
hours); then ``--rounds`` times on each route in turn, so
that a machine which slows down slows all of them. Figures are medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.big import reset_peak, resident
from bench.peers import holdfast, postgres
from bench.tpch import compare, data, plain

ROUTES = ("auto", "local", "spark", "postgres", "plain")
OURS = ("auto", "local", "spark")
RATIOS = (("auto", "postgres"), ("local", "postgres"), ("spark", "plain"))
CHANGED = "l_orderkey % 100 = 7"
"""Which orders' lines are updated: 1 %, spread over all parts."""
HOT = 50_000

Runner = Callable[[str], tuple[float, int]]
"""Runs a query; returns seconds and rows."""


def main() -> int:
    """Run; returns 1 when an answer differs or a query fails."""
    arguments = _arguments()
    folder = data.generate(arguments.scale, Path(tempfile.gettempdir()) / "holdfast-tpch")
    with ExitStack() as stack:
        options = ["--memory", arguments.memory, "--flush-rows", str(2 * arguments.hot + 100_000)]
        spark = "background" if {"spark", "auto"} & set(arguments.route) else "off"
        us = stack.enter_context(holdfast("--spark-start", spark, *options))
        data.load(us.url, folder)
        keep = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="tpch-plain-", dir=us.data_dir.parent))
        )
        oids = {t: int(us.sql(f"SELECT '{t}'::regclass::oid")[0][0] or 0) for t in data.TABLES}
        views = plain.parts_of(us.data_dir, oids, data.columns(), keep)
        _change(us.url, arguments.hot)
        theirs = None
        if "postgres" in arguments.route or not arguments.no_compare:
            them = stack.enter_context(postgres())
            data.load(them, folder)
            _change(them, arguments.hot)
            theirs = compare.connect(them)
            theirs.run("CREATE INDEX ON lineitem (l_partkey, l_suppkey)")
        runners: dict[str, Runner] = {}
        answers: dict[str, compare.Client] = {}
        for route in arguments.route:
            if route == "plain":
                other = plain.PlainSpark(views, heap_bytes=arguments.plain_heap_mb << 20)
                stack.callback(other.stop)
                runners[route] = _plain(other)
            elif route == "postgres":
                assert theirs is not None
                runners[route] = _timed(theirs)
            else:
                answers[route] = compare.connect(us.url, route)
                runners[route] = _timed(answers[route])
        print(f"The server's peak until here: {_peak(us.process.pid)}.")
        reset_peak(us.process.pid)
        bad = 0
        medians: dict[int, dict[str, float]] = {}
        print(_head(arguments.route), flush=True)
        for number in arguments.query:
            sql = data.query(number, arguments.scale)
            failed = (
                set()
                if arguments.cold
                else _warm(number, sql, runners, answers, None if arguments.no_compare else theirs)
            )
            bad += len(failed)
            medians[number] = _race(
                sql, [r for r in arguments.route if r not in failed], runners, arguments.rounds
            )
            print(_line(f"{number}", arguments.route, medians[number]), flush=True)
        _summary(arguments.route, medians)
        print(f"The server's peak while the queries ran: {_peak(us.process.pid)}.")
        for client in (*answers.values(), *([theirs] if theirs is not None else [])):
            client.close()
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.tpch.race", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--route", action="append", choices=ROUTES, help="repeat for several; default: all")
    parser.add_argument("--query", action="append", type=int, help="repeat for several; default: all 22")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--hot", type=int, default=HOT, help="rows of lineitem that are hot (default: %(default)s)"
    )
    parser.add_argument(
        "--memory", default="4GB", help="the server's; its JVM gets a quarter (default: %(default)s)"
    )
    parser.add_argument(
        "--plain-heap-mb", type=int, default=1024, help="plain Spark's heap (default: %(default)s)"
    )
    parser.add_argument("--cold", action="store_true", help="no uncounted run before (for large scales)")
    parser.add_argument("--no-compare", action="store_true", help="do not compare answers with PostgreSQL's")
    arguments = parser.parse_args()
    arguments.route = arguments.route or list(ROUTES)
    arguments.query = arguments.query or list(data.QUERIES)
    return arguments


def _peak(pid: int) -> str:
    return f"{resident(pid)[1] >> 20} MB resident"


def _change(url: str, hot: int) -> None:
    """Update 1 % of lineitem and have it flushed, then ``hot`` rows."""
    client = compare.connect(url)
    try:
        client.run(f"UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE {CHANGED}")
        client.run("VACUUM lineitem")
        rows = int(client.run("SELECT count(*) FROM lineitem").rows[0][0] or 0)
        every = max(rows // max(hot, 1), 1)
        if hot:
            client.run(f"UPDATE lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey % {every} = 5 % {every}")
    finally:
        client.close()


def _timed(client: compare.Client) -> Runner:
    def run(sql: str) -> tuple[float, int]:
        started = time.perf_counter()
        rows = len(client.run(sql).rows)
        return time.perf_counter() - started, rows

    return run


def _plain(other: plain.PlainSpark) -> Runner:
    return lambda sql: other.run(data.padded(sql))


def _warm(
    number: int,
    sql: str,
    runners: dict[str, Runner],
    answers: dict[str, compare.Client],
    theirs: compare.Client | None,
) -> set[str]:
    """Run a query once on each route and compare the answers; return the routes that fail."""
    failed: set[str] = set()
    expected = compare.answer(theirs, sql) if theirs is not None else None
    found: dict[str, int] = {}
    for route, run in runners.items():
        try:
            if route in answers and expected is not None:
                rows, types = compare.answer(answers[route], sql)
                found[route] = len(rows)
                differ = compare.differences(expected[0], rows)
                if types != expected[1]:
                    differ.append(f"types {types} instead of {expected[1]}")
                if differ:
                    failed.add(route)
                    print(f"q{number} {route}: {'; '.join(differ)}", file=sys.stderr)
            else:
                found[route] = run(sql)[1]
        except (compare.ServerError, RuntimeError) as error:
            failed.add(route)
            print(f"q{number} {route}: {error}", file=sys.stderr)
    # Its rows are not quite theirs, which were updated; but none at all would be another query.
    if not found.get("plain", 1) and any(found.values()):
        failed.add("plain")
        print(f"q{number} plain: no rows", file=sys.stderr)
    return failed


def _race(sql: str, routes: Sequence[str], runners: dict[str, Runner], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {route: [] for route in routes}
    for turn in range(rounds):
        start = turn % max(len(routes), 1)  # nobody is always first
        for route in (*routes[start:], *routes[:start]):
            times[route].append(runners[route](sql)[0])
    return {route: statistics.median(found) for route, found in times.items()}


def _pairs(routes: Sequence[str]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in RATIOS if a in routes and b in routes]


def _head(routes: Sequence[str]) -> str:
    words = ["query", *(f"{route} s" for route in routes), *(f"{a} / {b}" for a, b in _pairs(routes))]
    return f"| {' | '.join(words)} |\n|{' --- |' * len(words)}"


def _line(name: str, routes: Sequence[str], found: dict[str, float]) -> str:
    words = [name, *(f"{found[r]:.3f}" if r in found else "failed" for r in routes)]
    words += [f"{found[a] / found[b]:.2f}" if a in found and b in found else "-" for a, b in _pairs(routes)]
    return f"| {' | '.join(words)} |"


def _summary(routes: Sequence[str], medians: dict[int, dict[str, float]]) -> None:
    """Print geometric means over the queries that every route answered."""
    whole = [found for found in medians.values() if len(found) == len(routes)]
    if not whole:
        print("no query was answered by every route")
        return
    means = {route: statistics.geometric_mean([found[route] for found in whole]) for route in routes}
    print(_line(f"geometric mean of {len(whole)}", routes, means))


if __name__ == "__main__":
    sys.exit(main())
