"""The crash proof: ``python -m bench.crash [--rounds 50] [--consensus postgresql://... [--takeover]]``.

Each round starts the server, checks what the round before left, lets clients work (``bench.crash.workloads``) and kills
the server with SIGKILL at a random moment. What must hold after every restart:

    every acknowledged change is there                                          (P2, first half)
    a change whose answer was cut off is there completely or not at all         (P2, second half)
    tables have the shape and the rows that the acknowledged DDL and data made  (U10)
    every index has what its table has, every constraint holds, the catalog refers to nothing that is not there
    at the end: every file is named by a manifest or the log, and every name has its file

With ``--consensus`` the log is in PostgreSQL (a schema of its own, dropped at the end), the files in a directory that
the servers share. With ``--takeover`` a standby waits in every round and takes over; the leader is killed, or stopped
(SIGSTOP) until the standby leads and then resumed, upon which it must end by itself.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.crash import audit
from bench.crash.fleet import Fleet, SharedFleet
from bench.crash.workloads import RETRIED, RETRIED_SHARED, CutOff, Workload, everything
from sqllogictest.client import Client, ServerError
from tests.support.server import ServerProcess

MAX_RUN_S = 3.0


def _client(server: ServerProcess, workload: Workload, seed: int, stop: threading.Event) -> None:
    rng = random.Random(seed)
    try:
        client = server.connect(timeout_s=60)
    except (OSError, ServerError):
        return
    try:
        workload.work(client, rng, stop)
    except CutOff:
        pass  # what it means the workload has noted
    except Exception as error:
        workload.problems.append(f"{type(workload).__name__} failed: {error!r}")
    finally:
        client.close()


def check(client: Client, workloads: list[tuple[Workload, int]]) -> list[str]:
    """Return what does not hold."""
    problems = [problem for workload, _ in workloads for problem in workload.check(client)]
    return [*problems, *audit.indexes(client), *audit.catalog(client)]


def run(rounds: int, seed: int, fleet: Fleet, run_s: float = MAX_RUN_S) -> list[str]:
    """Run so many rounds of up to ``run_s`` seconds and print a line for each; return what was wrong at the end of the last."""
    rng = random.Random(seed)
    workloads = everything(RETRIED_SHARED if isinstance(fleet, SharedFleet) else RETRIED)
    started = time.perf_counter()
    slowest = 0.0
    problems: list[str] = []
    for number in range(1, rounds + 2):
        server = fleet.leader()
        slowest = max(slowest, server.start_seconds)
        client = server.connect()
        if number == 1:
            for workload, _ in workloads:
                workload.set_up(client)
        else:
            problems += check(client, workloads)
        client.close()
        if problems or number > rounds:
            break
        stop = threading.Event()
        threads = [
            threading.Thread(target=_client, args=(server, workload, rng.randrange(2**31), stop), daemon=True)
            for workload, count in workloads
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.05, run_s))
        how = fleet.strike(server, rng)
        stop.set()
        for thread in threads:
            thread.join(90)
            if thread.is_alive():
                problems.append("a client got no answer, and no end of its connection")
        problems += [problem for workload, _ in workloads for problem in workload.problems]
        told = sum(workload.acknowledged for workload, _ in workloads)
        print(
            f"round {number}/{rounds}: {how}, {told} acknowledged, ready after {server.start_seconds:.1f} s",
            flush=True,
        )
        if problems:
            print(server.said[-4000:])
            server = fleet.leader()
            break
    fleet.end(server)
    problems += audit.files(fleet.storage())
    counts = ", ".join(
        f"{type(w).__name__} {sum(v.acknowledged for v, _ in workloads if type(v) is type(w))}"
        for w in {type(w): w for w, _ in workloads}.values()
    )
    print(
        f"{rounds} rounds, seed {seed}, {time.perf_counter() - started:.0f} s: {len(problems)} problems, "
        f"slowest start {slowest:.1f} s; acknowledged: {counts}"
    )
    for problem in problems:
        print(problem)
    return problems


def main() -> int:
    """Run the proof; 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="bench.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--consensus", metavar="URL", help="keep the log in this PostgreSQL database")
    parser.add_argument("--takeover", action="store_true", help="a standby takes over; needs --consensus")
    parser.add_argument("--keep", metavar="DIRECTORY", help="work there and leave it behind")
    parser.add_argument(
        "--seconds", type=float, default=MAX_RUN_S, help="a round's at most; more where the machine is busy"
    )
    arguments = parser.parse_args()
    if arguments.takeover and not arguments.consensus:
        parser.error("--takeover needs --consensus")
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as folder:
        place = Path(arguments.keep or folder)
        place.mkdir(exist_ok=True)
        fleet = Fleet(place)
        if arguments.consensus:
            fleet = SharedFleet(place, arguments.consensus, arguments.takeover)
        try:
            return 1 if run(arguments.rounds, arguments.seed, fleet, arguments.seconds) else 0
        finally:
            fleet.remove()


if __name__ == "__main__":
    sys.exit(main())
