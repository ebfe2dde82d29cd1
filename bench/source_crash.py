"""The crash proof of sources: ``python -m bench.source_crash [--rounds 100] [--seed 1]``.

    upstream PostgreSQL ──publication──┐
    a directory of files, kept ────────┤                     every round, at a random moment, kill -9 of the server or of
    another one, files moved ──────────┼──► Holdfast         Spark's JVM, crash of upstream, its connections cut, a pause,
    a third, large files ──Spark───────┤                     or two of these at once
    RATE ──────────────────────────────┘

Clients change upstream, and write files, all the time. The large files are read by Spark's tasks, the others by the server. The
JVM is killed while it reads one (or, where none came for a while, between two). What must hold whenever the server answers:

    transactions of several tables are whole: the books balance
    no row is twice: not in a table without a key, not from a file, no number of RATE is missing
    a large file is whole, or not there
    property 1: what the slot has been advanced past, and files that were put away, are here when one looks after that
    what upstream has been told is here after every restart, and nothing that was here is gone

At the end everything is compared with upstream and the files, row by row.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from bench.upstream import PrivatePostgres
from tests.support.server import ServerProcess

ACCOUNTS = 20
FUNDS = 1000
LINES = 40  # of a file
BACKLOG = 40  # files that wait
LARGE_LINES = 6000
LARGE_BYTES = 50_000  # a file of so many lines is larger
LARGE_BACKLOG = 2
LOADING_S = 120.0  # how long a kill of the JVM waits for a load
CATCH_UP_S = 900.0  # a JVM that starts beside other work may take minutes
KINDS = {
    "server": 5, "jvm": 4, "upstream": 4, "server and upstream": 2, "jvm and upstream": 1, "connections": 2, "pause": 2,
}  # fmt: skip
SCHEMA = f"""
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, body text);
ALTER TABLE account ALTER body SET STORAGE EXTERNAL;
CREATE TABLE ledger (id bigserial PRIMARY KEY, debit int NOT NULL, credit int NOT NULL, amount int NOT NULL);
CREATE TABLE journal (entry bigint, note text);
CREATE TABLE scratch (id int PRIMARY KEY, n int);
INSERT INTO account SELECT g, {FUNDS}, repeat('b', 3000) FROM generate_series(1, {ACCOUNTS}) g;
CREATE PUBLICATION everything FOR TABLE account, ledger, journal, scratch;
"""
SOURCES = ("pg", "kept", "moved", "large", "ticks")
TABLES = {
    "account": "SELECT id, balance, length(body) FROM account",
    "ledger": "SELECT id, debit, credit, amount FROM ledger",
    "journal": "SELECT entry, note FROM journal",
    "scratch": "SELECT id, n FROM scratch",
}


class Proof:
    """One run: the servers, who works on them, and what was wrong."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.problems: list[str] = []
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-source-crash-"))
        for name in ("kept", "inbox", "done", "large"):
            (self.folder / name).mkdir()
        self.upstream = PrivatePostgres()
        self.server = self._start()
        self.stop = threading.Event()
        self.written = 0  # files in each directory
        self.large = 0  # large files
        self.struck = Counter[str]()
        self.committed: list[tuple[int, int]] = []  # (log position just after the commit, ledger id)
        self.checks = Counter[str]()
        with psycopg.connect(self.upstream.url, autocommit=True) as c:
            c.execute(SCHEMA)
        self.sql(
            f"CREATE SOURCE pg FROM POSTGRES (connection = '{self.upstream.url}', publication = everything, slot = proof,"
            " poll_interval_ms = 20, max_batch_rows = 200)",
            f"CREATE SOURCE kept (n bigint, line int) FROM FILES (path = '{self.folder}/kept', format = csv, settle_ms = 0,"
            " poll_interval_ms = 30, max_batch_rows = 30)",
            f"CREATE SOURCE moved (n bigint, line int) FROM FILES (path = '{self.folder}/inbox', format = json,"
            f" settle_ms = 0, poll_interval_ms = 30, max_batch_rows = 70, after = move, move_to = '{self.folder}/done')",
            f"CREATE SOURCE large (n bigint, line int, body text) FROM FILES (path = '{self.folder}/large', format = csv,"
            f" settle_ms = 0, poll_interval_ms = 30, after = delete, spark_min_bytes = {LARGE_BYTES})",
            "CREATE SOURCE ticks FROM RATE (rows_per_second = 100, poll_interval_ms = 20)",
        )

    def _start(self) -> ServerProcess:
        return ServerProcess(
            self.folder / "data",
            "--server-files",
            str(self.folder),
            "--flush-rows",
            "2000",
            "--memory",
            "1GB",
            "--spark-start",
            "background",
            "--spark-nice",
            "0",
        )

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements here; return the rows of the last."""
        with psycopg.connect(self.server.url, autocommit=True, connect_timeout=30) as c:
            for text in statements:
                cursor = c.execute(text)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    # -- who works ---------------------------------------------------------------------------------

    def work_upstream(self, seed: int) -> None:
        """Move money, note it, change keys, truncate, until told to stop; upstream may go away at any moment."""
        rng = random.Random(seed)
        while not self.stop.is_set():
            try:
                with psycopg.connect(self.upstream.url, autocommit=True, connect_timeout=5) as c:
                    while not self.stop.is_set():
                        self._transaction(c, rng)
                        time.sleep(rng.random() * 0.1)
            except psycopg.Error:
                time.sleep(0.1)

    def _transaction(self, c: psycopg.Connection[Any], rng: random.Random) -> None:
        debit, credit = rng.sample(range(1, ACCOUNTS + 1), 2)
        amount = rng.randrange(50)
        with c.transaction():
            for account, change in sorted([(debit, -amount), (credit, amount)]):
                c.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (change, account))
            row = c.execute(
                "INSERT INTO ledger (debit, credit, amount) VALUES (%s, %s, %s) RETURNING id",
                (debit, credit, amount),
            ).fetchone()
            assert row is not None
            c.execute("INSERT INTO journal VALUES (%s, %s)", (row[0], f"{debit} to {credit}"))
            kind = rng.random()
            if kind < 0.2:
                c.execute(
                    "INSERT INTO scratch VALUES (%s, 1) ON CONFLICT (id) DO UPDATE SET n = scratch.n + 1",
                    (debit,),
                )
            elif kind < 0.3:
                c.execute("DELETE FROM scratch WHERE id = %s", (debit,))
            elif kind < 0.35:
                c.execute("UPDATE scratch SET id = id + 100 WHERE id = %s AND NOT EXISTS"
                          " (SELECT FROM scratch WHERE id = %s)", (debit, debit + 100))  # fmt: skip
            elif kind < 0.37:
                c.execute("TRUNCATE scratch")
            elif kind < 0.4:
                c.execute("INSERT INTO journal SELECT -%s, 'many' FROM generate_series(1, 300)", (row[0],))
        lsn = c.execute("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn").fetchone()
        assert lsn is not None
        self.committed.append((int(lsn[0]), row[0]))

    def write_files(self) -> None:
        """Write files of lines, under hidden names first."""
        while not self.stop.wait(0.2):
            self._write_large()
            number = self.written
            if len(list((self.folder / "inbox").iterdir())) > BACKLOG:
                continue
            for directory, line in (("kept", "{0},{1}\n"), ("inbox", '{{"n": {0}, "line": {1}}}\n')):
                hidden = self.folder / directory / f".{number}"
                hidden.write_text("".join(line.format(number, i) for i in range(LINES)))
                hidden.rename(self.folder / directory / f"f{number:06}")
            self.written += 1

    def _write_large(self) -> None:
        directory = self.folder / "large"
        if len(list(directory.iterdir())) >= LARGE_BACKLOG:
            return
        hidden = directory / f".{self.large}"
        hidden.write_text("".join(f"{self.large},{i},line {i}\n" for i in range(LARGE_LINES)))
        hidden.rename(directory / f"f{self.large:06}")
        self.large += 1

    def watch(self) -> None:
        """Property 1: read how far the slot has been advanced, then look here."""
        while not self.stop.is_set():
            try:
                with (
                    psycopg.connect(self.upstream.url, autocommit=True, connect_timeout=5) as up,
                    psycopg.connect(self.server.url, autocommit=True, connect_timeout=5) as here,
                ):
                    while not self.stop.is_set():
                        self._watch_once(up, here)
                        self._watch_files(here)
                        time.sleep(0.05)
            except psycopg.Error:
                time.sleep(0.1)

    def _watch_once(self, up: psycopg.Connection[Any], here: psycopg.Connection[Any]) -> None:
        known = list(self.committed)
        slot = up.execute("SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots").fetchone()
        if slot is None:
            return
        told = {entry for lsn, entry in known if lsn <= int(slot[0])}
        # ids are not in the order of commits: look for the latest ones one by one
        latest = sorted(told)[-50:]
        found = {row[0] for row in here.execute("SELECT id FROM ledger WHERE id = ANY (%s)", (latest,))}
        if not set(latest) <= found:
            self.problems.append(
                f"property 1: {sorted(set(latest) - found)} of the ledger were acknowledged, not visible"
            )
        self.checks["property 1"] += len(latest)

    def _watch_files(self, here: psycopg.Connection[Any]) -> None:
        """Property 1 of files: what has been moved or deleted is here."""
        large = self.large - 1
        waits = {path.name.lstrip(".") for path in (self.folder / "large").iterdir()}
        gone = [n for n in range(max(large - 5, 0), large) if f"f{n:06}" not in waits and str(n) not in waits]
        moved = sorted(int(path.name[1:7]) for path in (self.folder / "done").iterdir())[-20:]
        for table, numbers, lines in (("large", gone, LARGE_LINES), ("moved", moved, LINES)):
            found = dict(
                here.execute(
                    f"SELECT n, count(*) FROM {table} WHERE n = ANY (%s) GROUP BY n",  # type: ignore[arg-type]
                    (numbers,),
                )
            )
            if found != dict.fromkeys(numbers, lines):
                self.problems.append(
                    f"property 1: of files {numbers} that were put away, {table} has {found}"
                )
            self.checks["property 1 of files"] += len(numbers)

    # -- what must hold ----------------------------------------------------------------------------

    def check(self) -> None:
        """Note what does not hold at one moment."""
        queries = {
            "the books": f"SELECT sum(balance) = {ACCOUNTS * FUNDS} AND count(*) = {ACCOUNTS} AND min(length(body)) = 3000"
            " FROM account",
            "whole transactions": "SELECT (SELECT count(*) FROM ledger) ="
            " (SELECT count(*) FROM journal WHERE entry > 0)",
            "the journal": "SELECT count(*) = count(DISTINCT entry) FROM journal WHERE entry > 0",
            "files kept": "SELECT count(*) = count(DISTINCT n * 1000 + line) FROM kept",
            "files moved": "SELECT count(*) = count(DISTINCT n * 1000 + line) FROM moved",
            "large files": "SELECT count(*) = 0 FROM (SELECT n FROM large GROUP BY n HAVING count(*) <>"
            f" {LARGE_LINES} OR count(DISTINCT line) <> {LARGE_LINES}) t",
            "ticks": "SELECT count(*) = coalesce(max(value) + 1, 0) FROM ticks",
        }
        if not self.sql("SELECT 1 FROM account LIMIT 1"):
            queries.pop("the books")  # the snapshot is not here yet
        for name, query in queries.items():
            if self.sql(query) != [(True,)]:
                self.problems.append(f"{name}: {query} does not hold")
            self.checks[name] += 1
        for name, error in self.sql("SELECT name, last_error FROM holdfast_sources WHERE state = 'stopped'"):
            self.problems.append(f"source {name} has stopped: {error}")

    def strike(self) -> str:
        """Kill something at a random moment, start it again; return what."""
        [what] = self.rng.choices(list(KINDS), list(KINDS.values()))
        if "jvm" in what and self._loading():
            self.struck["jvm in a load"] += 1
        time.sleep(self.rng.random() * (0.5 if "jvm" in what else 1.5))
        before = [] if what in ("upstream", "connections") else self._seen()
        if "server" in what:
            self.server.kill()
        if "jvm" in what:
            self.struck["no jvm to kill"] += not self._kill_jvm()
        if "upstream" in what:
            self.upstream.crash()
            self.upstream.start()
        if "server" in what:
            self.server = self._start()
        self.struck[what] += 1
        if what == "connections":
            with psycopg.connect(self.upstream.url, autocommit=True) as c:
                c.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast source'"
                )
        if what == "pause":
            self.sql(*(f"ALTER SOURCE {name} PAUSE" for name in SOURCES))
            self.sql(*(f"ALTER SOURCE {name} RESUME" for name in SOURCES))
        after = self._seen() if before else []
        if any(b > a for b, a in zip(before, after, strict=True)):
            self.problems.append(f"after {what}: {before} rows were here, {after} are")
        return what

    def _seen(self) -> list[int]:
        tables = ("ledger", "journal", "kept", "moved", "large", "ticks")
        return [self.sql(f"SELECT count(*) FROM {table}")[0][0] for table in tables]

    def _loading(self) -> bool:
        """Wait until Spark reads a file; returns False if it does not for ``LOADING_S``."""
        end = time.monotonic() + LOADING_S
        while time.monotonic() < end:
            if self.sql("SELECT state FROM holdfast_sources WHERE name = 'large'") == [("loading",)]:
                return True
            time.sleep(0.02)
        return False

    def _kill_jvm(self) -> bool:
        """Kill the server's JVM; returns False if it has none just now."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.server.process.pid), "-f", "java"],
            capture_output=True,
            text=True,
            check=False,
        )
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        return bool(found.stdout)

    def compare(self) -> None:
        """Wait until everything has come, and compare it with where it came from."""
        self.sql("ALTER SOURCE ticks PAUSE")
        with psycopg.connect(self.upstream.url, autocommit=True) as c:
            expected = {name: Counter(c.execute(query).fetchall()) for name, query in TABLES.items()}  # type: ignore[arg-type]
        files = Counter({(n, line): 1 for n in range(self.written) for line in range(LINES)})
        for name in ("kept", "moved"):
            expected[name] = files
        for name, rows in expected.items():
            query = TABLES.get(name, f"SELECT n, line FROM {name}")
            count = f"SELECT count(*) FROM {name}"
            self._until(lambda count=count: self.sql(count)[0][0], rows.total())  # type: ignore[misc]
            found = self._until(lambda query=query: Counter(self.sql(query)), rows)  # type: ignore[misc]
            if found != rows:
                lost, repeated = rows - found, found - rows
                self.problems.append(
                    f"{name}: {lost.total()} rows lost, {repeated.total()} too many, of {rows.total()}"
                )
            self.checks[f"rows of {name}"] = rows.total()
        whole = (
            "SELECT n, count(*), count(DISTINCT line), min(line), max(line) FROM large GROUP BY n ORDER BY n"
        )
        large = [(n, LARGE_LINES, LARGE_LINES, 0, LARGE_LINES - 1) for n in range(self.large)]
        if (seen := self._until(lambda: self.sql(whole), large)) != large:
            self.problems.append(f"large files: {seen} instead of {large}")
        self.checks["rows of large"] = self.large * LARGE_LINES
        self._until(lambda: len(list((self.folder / "inbox").iterdir())), 0)
        if len(list((self.folder / "done").iterdir())) != self.written:
            self.problems.append("not every file has been moved")
        if len(list((self.folder / "kept").iterdir())) != self.written:
            self.problems.append("files are gone that were to be kept")
        self.checks["rows of ticks"] = self.sql("SELECT count(*) FROM ticks")[0][0]

    @staticmethod
    def _until(look: Callable[[], Any], expected: Any) -> Any:
        end = time.monotonic() + CATCH_UP_S
        while (found := look()) != expected and time.monotonic() < end:
            time.sleep(0.2)
        return found

    def run(self, rounds: int) -> list[str]:
        """Run so many rounds, printing a line for each; return what was wrong."""
        seeds = [self.rng.random() for _ in range(2)]
        workers = [threading.Thread(target=self.work_upstream, args=(int(s * 1e9),)) for s in seeds]
        workers += [threading.Thread(target=self.write_files), threading.Thread(target=self.watch)]
        for worker in workers:
            worker.start()
        try:
            for number in range(1, rounds + 1):
                what = self.strike()
                self.check()
                print(
                    f"round {number}: {what}; {self._seen()} rows; {len(self.problems)} problems", flush=True
                )
                if self.problems:
                    break
        finally:
            self.stop.set()
            for worker in workers:
                worker.join()
        if not self.problems:
            self.compare()
            self.check()
        print(f"struck: {dict(self.struck)}")
        print(f"checked: {dict(self.checks)}; {len(self.committed)} transactions upstream")
        return self.problems

    def end(self) -> None:
        """End the servers, and remove what they left if all was well."""
        if self.server.process.poll() is None:
            self.server.kill()
        self.upstream.remove()
        if not self.problems:
            shutil.rmtree(self.folder)


def run(rounds: int, seed: int) -> list[str]:
    """Run the proof; return what was wrong."""
    proof = Proof(seed)
    try:
        return proof.run(rounds)
    finally:
        proof.end()


def main() -> int:
    """Run from the command line; status 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="kill server, JVM and upstream while sources run")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    problems = run(arguments.rounds, arguments.seed)
    for problem in problems:
        print(problem)
    print("nothing lost, nothing repeated" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
