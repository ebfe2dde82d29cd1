"""Point reads and commits while Spark is busy: ``python -m bench --only isolation-of-load``.

    idle     nobody else
    Spark    a sort of generated rows under a window, again and again, on every core that Spark has

One connection reads an account by its key, another inserts one row per transaction; each times every answer. Spark's JVM is
nicer than the server (``spark_nice``), so on few cores it takes what these leave.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random

from bench.peers import holdfast
from bench.readers import ACCOUNTS, Latency
from bench.tpch.compare import connect
from sqllogictest.client import Client, ServerError

HEAVY = (
    "SELECT count(*), max(x) FROM (SELECT (g::bigint * 7919) % 1000003 AS x, row_number() OVER (ORDER BY (g::bigint * 7919) % 1000003) AS n "
    "FROM generate_series(1, 3000000) g) s WHERE n % 2 = 0"
)


def timed(work: Callable[[int], object], seconds: float) -> Latency:
    """Time ``work``, called with 0, 1, 2 ..., for so many seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        work(len(times))
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    return Latency(times[len(times) // 2], times[int(len(times) * 0.99)], len(times))


def both(url: str, seconds: float, run: int) -> dict[str, Latency]:
    """Measure reads and commits at the same time, from a connection each."""
    found: dict[str, Latency] = {}
    reader, writer = connect(url), connect(url)
    rng = Random(run)

    def read(_: int) -> None:
        reader.run(f"SELECT balance FROM accounts WHERE id = {rng.randrange(ACCOUNTS) + 1}")

    def commit(number: int) -> None:
        writer.run(f"INSERT INTO notes VALUES ({run * 10_000_000 + number}, 'a note')")

    threads = [
        threading.Thread(target=lambda n=name, w=work: found.__setitem__(n, timed(w, seconds)))
        for name, work in (("point read", read), ("commit", commit))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader.close()
    writer.close()
    return found


class Load:
    """A connection that keeps Spark busy until it is stopped."""

    def __init__(self, url: str) -> None:
        self._client: Client = connect(url)
        self._client.run("SET executor = spark")
        self._client.run(HEAVY)  # warm
        self._stopped = threading.Event()
        self.queries = 0
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._go)
        self._thread.start()

    def _go(self) -> None:
        try:
            while not self._stopped.is_set():
                self._client.run(HEAVY)
                self.queries += 1
        except (ServerError, OSError) as error:
            self.error = error

    def stop(self) -> None:
        """Let the query that runs be the last one."""
        self._stopped.set()
        self._thread.join()
        self._client.close()
        if self.error is not None:
            raise self.error


def report(seconds: int, rounds: int) -> None:
    """Measure idle and busy in turn; print medians over rounds."""
    runs: dict[str, list[dict[str, Latency]]] = {"idle": [], "Spark": []}
    queries = 0
    with holdfast("--spark-start", "background", "--memory", "3GB") as us:
        client = connect(us.url)
        client.run("CREATE TABLE accounts (id int PRIMARY KEY, balance int)")
        client.run(f"INSERT INTO accounts SELECT g, 0 FROM generate_series(1, {ACCOUNTS}) g")
        client.run("CREATE TABLE notes (id bigint PRIMARY KEY, t text)")
        client.close()
        Load(us.url).stop()  # the JVM is up and warm
        for number in range(rounds):
            runs["idle"].append(both(us.url, seconds, 2 * number))
            load = Load(us.url)
            runs["Spark"].append(both(us.url, seconds, 2 * number + 1))
            load.stop()
            queries += load.queries
    print(
        f"\n| beside Spark ({queries} queries done), ms | idle p50 | p99 | Spark busy p50 | p99 | p99 / idle |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for what in ("point read", "commit"):
        cells = {
            case: [
                sorted(getattr(run[what], name) for run in runs[case])[rounds // 2] for name in ("p50", "p99")
            ]
            for case in runs
        }
        (idle50, idle99), (busy50, busy99) = cells["idle"], cells["Spark"]
        print(
            f"| {what} | {idle50:.2f} | {idle99:.2f} | {busy50:.2f} | {busy99:.2f} | {busy99 / idle99:.2f}x |",
            flush=True,
        )
