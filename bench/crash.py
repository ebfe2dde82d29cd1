"""The crash proof: ``python -m bench.crash [--rounds 50] [--consensus postgresql://... [--takeover]]``.

Each round starts the server, checks what the round before left, runs writers that count what was acknowledged, and
kills the server with SIGKILL at a random moment. What must hold after every restart:

    every acknowledged transfer is there                      (P2, first half)
    no transfer is there in part: the accounts sum to zero    (P2, second half)
    a transfer whose answer was cut off is there completely or not at all

With ``--consensus`` the log is in PostgreSQL (a schema of its own, dropped at the end), the files in a directory that
the servers share. With ``--takeover`` a standby waits in every round and takes over; the leader is killed, or stopped
(SIGSTOP) until the standby leads and then resumed, upon which it must end by itself.

Writers move amounts between accounts of a table and note each transfer in a second table, in one transaction; some
use COPY and multi-row inserts past the flush size, so that parts and manifests are caught in the middle too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess

ACCOUNTS = 50
WRITERS = 6
MAX_RUN_S = 3.0
BULK_ROWS = 3000
LEASE_MS = 1000
# The outcome is unknown, or the server ended while the commit was under way.
OPEN_OUTCOMES = ("08007", "57P01")


@dataclass
class Ledger:
    """What the writers know: transfers acknowledged, and those whose answer never came."""

    acknowledged: set[int] = field(default_factory=set)
    uncertain: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    next_id: int = 1

    def take(self) -> int:
        """Return a number for a new transfer."""
        with self.lock:
            self.next_id += 1
            return self.next_id - 1


def set_up(client: Client) -> None:
    client.run("CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)")
    client.run("CREATE TABLE transfer (id bigint PRIMARY KEY, source int, target int, amount bigint)")
    client.run("CREATE TABLE bulk (batch bigint, n int, PRIMARY KEY (batch, n))")
    client.run(f"INSERT INTO account SELECT i, 0 FROM generate_series(1, {ACCOUNTS}) AS g (i)")


def write(server: ServerProcess, ledger: Ledger, seed: int, stop: threading.Event) -> None:
    rng = random.Random(seed)
    try:
        client = server.connect(timeout_s=30)
    except (OSError, ServerError):
        return
    while not stop.is_set():
        number = ledger.take()
        source, target = rng.sample(range(1, ACCOUNTS + 1), 2)
        amount = rng.randrange(1, 1000)
        if rng.random() < 0.05:
            script = f"INSERT INTO bulk SELECT {number}, i FROM generate_series(1, {BULK_ROWS}) AS g (i)"
        else:
            script = (
                f"BEGIN; UPDATE account SET balance = balance - {amount} WHERE id = {source}; "
                f"UPDATE account SET balance = balance + {amount} WHERE id = {target}; "
                f"INSERT INTO transfer VALUES ({number}, {source}, {target}, {amount}); COMMIT"
            )
        try:
            client.run(script)
        except ServerError as error:
            if error.sqlstate in OPEN_OUTCOMES:
                with ledger.lock:
                    ledger.uncertain.add(number)
                return
            try:
                client.run("ROLLBACK")
            except (OSError, ServerError):
                return
            continue
        except OSError:
            with ledger.lock:
                ledger.uncertain.add(number)
            return
        with ledger.lock:
            ledger.acknowledged.add(number)


def check(client: Client, ledger: Ledger) -> list[str]:
    """Return what does not hold."""
    problems = []
    present = {int(row[0] or 0) for row in client.run("SELECT id FROM transfer").rows}
    batches = {
        int(row[0] or 0): int(row[1] or 0)
        for row in client.run("SELECT batch, count(*) FROM bulk GROUP BY batch").rows
    }
    there = present | set(batches)
    lost = ledger.acknowledged - there
    if lost:
        problems.append(f"{len(lost)} acknowledged commits are lost, e.g. {sorted(lost)[:5]}")
    unknown = there - ledger.acknowledged - ledger.uncertain
    if unknown:
        problems.append(f"{len(unknown)} commits were refused and are there, e.g. {sorted(unknown)[:5]}")
    torn = {batch for batch, count in batches.items() if count != BULK_ROWS}
    if torn:
        problems.append(f"{len(torn)} bulk inserts are there in part")
    expected: dict[int, int] = dict.fromkeys(range(1, ACCOUNTS + 1), 0)
    for row in client.run("SELECT source, target, amount FROM transfer").rows:
        source, target, amount = (int(cell or 0) for cell in row)
        expected[source] -= amount
        expected[target] += amount
    actual = {int(r[0] or 0): int(r[1] or 0) for r in client.run("SELECT id, balance FROM account").rows}
    if actual != expected:
        wrong = {k: (expected[k], actual.get(k)) for k in expected if actual.get(k) != expected[k]}
        problems.append(f"{len(wrong)} balances do not match the transfers: {dict(list(wrong.items())[:3])}")
    return problems


class Fleet:
    """The servers of a run: one after the other over one data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leader(self) -> ServerProcess:
        """Return a server that accepts connections."""
        return ServerProcess(self.folder / "data", "--flush-rows", "2000")

    def strike(self, server: ServerProcess, rng: random.Random) -> str:
        """End the server's rule; return how."""
        server.kill()
        return "killed"

    def end(self, server: ServerProcess) -> None:
        """Stop everything in order."""
        server.stop()


class SharedFleet(Fleet):
    """Servers over PostgreSQL; with ``takeover`` the next one is waiting already."""

    def __init__(self, folder: Path, url: str, takeover: bool) -> None:
        super().__init__(folder)
        self.url, self.takeover = url, takeover
        self.schema = f"holdfast_crash_{os.getpid()}"
        self._count = 0
        self._standby: ServerProcess | None = None

    def _start(self, *more: str, wait: bool) -> ServerProcess:
        self._count += 1
        return ServerProcess(
            self.folder / f"server{self._count % 3}", "--flush-rows", "2000", "--consensus", self.url,
            "--consensus-schema", self.schema, "--blob", str(self.folder / "blob"), "--lease-ms", str(LEASE_MS),
            *more, wait=wait,
        )  # fmt: skip

    def leader(self) -> ServerProcess:
        """See Fleet; the next one starts to wait."""
        server, self._standby = self._standby, None
        if server is None:
            server = self._start(wait=True)
        if self.takeover:
            self._standby = self._start("--standby", wait=False)
        return server

    def strike(self, server: ServerProcess, rng: random.Random) -> str:
        """See Fleet; returns when the next one leads."""
        if self._standby is None or rng.random() < 0.5:
            struck = time.perf_counter()
            server.kill()
            if self._standby is not None:
                self._standby.wait_ready()
                self._standby.start_seconds = time.perf_counter() - struck
            return "killed"
        server.pause()
        struck = time.perf_counter()
        self._standby.wait_ready()
        self._standby.start_seconds = time.perf_counter() - struck
        server.resume()
        status, said = server.wait_end()
        if status != 1 or "superseded" not in said:
            raise RuntimeError(f"a deposed leader ended with {status}:\n{said}")
        return "stopped and resumed"

    def end(self, server: ServerProcess) -> None:
        """See Fleet; drops the schema as well."""
        server.stop()
        if self._standby is not None:
            self._standby.wait_ready()
            self._standby.stop()
        asyncio.run(self._drop())

    async def _drop(self) -> None:
        connection = await asyncpg.connect(self.url)
        await connection.execute(f"DROP SCHEMA {self.schema} CASCADE")
        await connection.close()


def run(rounds: int, seed: int, fleet: Fleet) -> int:
    rng = random.Random(seed)
    ledger = Ledger()
    started = time.perf_counter()
    slowest = 0.0
    for number in range(1, rounds + 1):
        server = fleet.leader()
        slowest = max(slowest, server.start_seconds)
        client = server.connect()
        problems = check(client, ledger) if number > 1 else []
        if number == 1:
            set_up(client)
        client.close()
        if problems:
            print(f"round {number} (seed {seed}): " + "; ".join(problems))
            server.kill()
            return 1
        # what is there now was decided: an uncertain transfer that is absent stays absent
        stop = threading.Event()
        threads = [
            threading.Thread(target=write, args=(server, ledger, rng.randrange(2**31), stop), daemon=True)
            for _ in range(WRITERS)
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.05, MAX_RUN_S))
        how = fleet.strike(server, rng)
        stop.set()
        for thread in threads:
            thread.join(60)
        print(
            f"round {number}/{rounds}: {how}, {len(ledger.acknowledged)} acknowledged, "
            f"{len(ledger.uncertain)} cut off, it had been ready after {server.start_seconds:.1f} s",
            flush=True,
        )
    server = fleet.leader()
    client = server.connect()
    problems = check(client, ledger)
    client.close()
    fleet.end(server)
    took = time.perf_counter() - started
    print(
        f"{rounds} rounds, seed {seed}, {took:.0f} s: {len(ledger.acknowledged)} acknowledged commits, "
        f"{len(problems)} problems, slowest start {slowest:.1f} s"
    )
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--consensus", metavar="URL", help="keep the log in this PostgreSQL database")
    parser.add_argument("--takeover", action="store_true", help="a standby takes over; needs --consensus")
    arguments = parser.parse_args()
    if arguments.takeover and not arguments.consensus:
        parser.error("--takeover needs --consensus")
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as folder:
        fleet = Fleet(Path(folder))
        if arguments.consensus:
            fleet = SharedFleet(Path(folder), arguments.consensus, arguments.takeover)
        return run(arguments.rounds, arguments.seed, fleet)


if __name__ == "__main__":
    sys.exit(main())
