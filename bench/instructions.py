"""Instructions per transaction of the short OLTP statements, both protocols: ``python -m bench.instructions``.

    child, under callgrind            parent
    start, tables, indexes            not instrumented
    warm up a workload
    getloadavg()  ──dump 1──►         what came before: thrown away
    run it COUNT times
    getloadavg()  ──dump 2──►         its instructions / COUNT

Processor time differs by a third from minute to minute on a shared machine; instructions do not. The server runs in this process over a store
in memory and a transport that swallows output, one session, asyncio's own loop: no sockets, no disk, no threads. Two runs of one
commit agree to a thousandth, whatever else the machine does: the clocks of the loop and of what gives way go on by steps, so that what upkeep does
by time, and how often a session gives way, is the same in each: under callgrind everything takes fifty times as long.
What the kernel and the disk cost is not in it (``bench.statements`` measures that). The collector is off while a workload is counted.

``--json FILE`` keeps the figures, ``--against FILE`` compares with kept ones and says which rose by more than ``--within`` percent.
valgrind has to be installed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from bench.wire_loop import CountingTransport
from pgwire import messages as m
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from pgwire.session.turns import Turns
from tests.support.engine import open_database
from txn.persist.memory import MemoryDisk

WARM = 150
COUNT = 300
ROWS = 1000
CLOCK_STEP_S = 20e-6
"""Of the loop's clock: it is looked at some five times for an INSERT."""
SETUP = (
    "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88))",
    "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))",
    "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
    "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    "CREATE TABLE ins (id bigint PRIMARY KEY, t text)",
    "INSERT INTO pgbench_branches SELECT i, 0, '' FROM generate_series(1, 10) i",
    "INSERT INTO pgbench_tellers SELECT i, i % 10 + 1, 0, '' FROM generate_series(1, 100) i",
    f"INSERT INTO pgbench_accounts SELECT i, i % 10 + 1, 0, '' FROM generate_series(1, {ROWS}) i",
)
Part = tuple[str, tuple[object, ...]]

_counter = iter(range(1, 1 << 40))


def _tpcb(draw: Random) -> list[Part]:
    aid, bid, tid = draw.randint(1, ROWS), draw.randint(1, 10), draw.randint(1, 100)
    delta = draw.randint(-5000, 5000)
    return [
        ("BEGIN", ()),
        ("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2", (delta, aid)),
        ("SELECT abalance FROM pgbench_accounts WHERE aid = $1", (aid,)),
        ("UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2", (delta, tid)),
        ("UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2", (delta, bid)),
        (
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
            (tid, bid, aid, delta),
        ),
        ("END", ()),
    ]


WORKLOADS: dict[str, Callable[[Random], list[Part]]] = {
    "point read": lambda draw: [
        ("SELECT abalance FROM pgbench_accounts WHERE aid = $1", (draw.randint(1, ROWS),))
    ],
    "one-row INSERT": lambda draw: [
        ("INSERT INTO ins VALUES ($1, $2)", (next(_counter), f"text {draw.randint(1, 999)}"))
    ],
    "UPDATE by key": lambda draw: [
        (
            "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2",
            (draw.randint(-9, 9), draw.randint(1, ROWS)),
        )
    ],
    "TPC-B": _tpcb,
}
PROTOCOLS = ("simple", "prepared")


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


class Sender:
    """One client without a socket: sends a message, lets the loop run until the session rests."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: dict[str, str] = {}

    async def send(self, data: bytes) -> None:
        """Send messages that end in a Query or a Sync, and wait for what they cause."""
        self._session.data_received(data)
        while self._session.busy:
            await asyncio.sleep(0)

    async def simple(self, sql: str, values: tuple[object, ...]) -> None:
        """Send a Query whose values are literals."""
        text = re.sub(r"\$(\d)", lambda found: _literal(values[int(found[1]) - 1]), sql)
        await self.send(encode_frontend(m.Query(text)))

    async def prepared(self, sql: str, values: tuple[object, ...]) -> None:
        """Send Bind, Describe, Execute and Sync of a statement that is parsed the first time it comes."""
        if sql not in self._names:
            self._names[sql] = name = f"P{len(self._names)}"
            await self.send(encode_frontend(m.Parse(name, sql, ())) + encode_frontend(m.Sync()))
        params = tuple(str(value).encode() for value in values)
        bind = encode_frontend(m.Bind("", self._names[sql], (), params, (0,)))
        await self.send(bind + b"".join(map(encode_frontend, (m.Describe("P"), m.Execute(), m.Sync()))))


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose clock goes on by a step with each look at it, however long that takes: what tasks do by time is the same in each run."""

    _now = 0.0

    def time(self) -> float:
        """Return seconds."""
        self._now += CLOCK_STEP_S
        return self._now


def _step_clocks() -> None:
    """Have what gives way by time look at a clock of steps, too."""
    now = count(0.0, CLOCK_STEP_S).__next__
    for module in ("pgwire.session", "pgwire.give_way"):
        import_module(module).perf_counter = now


async def _child() -> None:
    _step_clocks()
    database = await open_database(MemoryDisk())
    transport: Any = CountingTransport()
    server = Server(database, ServerConfig())
    server.turns = Turns(spent=count(0.0, CLOCK_STEP_S).__next__)
    session = Session(server, transport, "127.0.0.1")
    session.data_received(encode_frontend(m.StartupMessage({"user": "postgres", "database": "postgres"})))
    while session.busy:
        await asyncio.sleep(0)
    sender = Sender(session)
    for sql in SETUP:
        await sender.simple(sql, ())
    # what came before need not be counted, which takes ten times as long
    subprocess.run(
        ["callgrind_control", "--instr=on", str(os.getpid())], check=True, stdout=subprocess.DEVNULL
    )
    for name in WORKLOADS:
        for protocol in PROTOCOLS:
            send = sender.simple if protocol == "simple" else sender.prepared
            draw = Random(7)
            for counted, times in ((False, WARM), (True, COUNT)):
                work = [WORKLOADS[name](draw) for _ in range(times)]
                gc.collect()
                gc.disable()
                if counted:
                    os.getloadavg()
                for parts in work:
                    for sql, values in parts:
                        await send(sql, values)
                if counted:
                    os.getloadavg()
                gc.enable()
    sys.stdout.flush()
    os._exit(0)


def measure() -> dict[str, int]:
    """Return instructions per transaction by workload and protocol."""
    if shutil.which("valgrind") is None:
        raise SystemExit("bench.instructions needs valgrind (apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--dump-before=getloadavg"]
        command.append(f"--callgrind-out-file={out}")
        subprocess.run(
            [*command, sys.executable, "-m", "bench.instructions", "--child"],
            check=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            stderr=subprocess.DEVNULL,
        )
        dumps = [int(path.suffix[1:]) for path in Path(folder).iterdir() if path.suffix[1:].isdigit()]
        totals = [_total(Path(f"{out}.{number}")) for number in sorted(dumps)]
    names = [f"{name}, {protocol}" for name in WORKLOADS for protocol in PROTOCOLS]
    return {name: totals[2 * i + 1] // COUNT for i, name in enumerate(names)}


def _total(path: Path) -> int:
    found = re.search(r"^(?:totals|summary): (\d+)", path.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{path.name} has no total")
    return int(found[1])


def main() -> None:
    """Measure, print, keep, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--commit", default="", help="what was measured, for the figures that are kept")
    parser.add_argument("--against", type=Path, help="figures to compare with")
    parser.add_argument("--within", type=float, default=2.0, help="percent that a figure may rise")
    args = parser.parse_args()
    if args.child:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            runner.run(_child())
        return
    figures = measure()
    before = json.loads(args.against.read_text())["figures"] if args.against else {}
    risen = []
    for name, figure in figures.items():
        change = (figure / before[name] - 1) * 100 if name in before else None
        print(f"{name:28} {figure:10,}" + ("" if change is None else f"  {change:+6.2f} %"))
        if change is not None and change > args.within:
            risen.append(name)
    if args.json:
        kept = {"commit": args.commit, "unit": "instructions per transaction", "figures": figures}
        args.json.write_text(json.dumps(kept, indent=1) + "\n")
    if risen:
        raise SystemExit(f"more than {args.within} % above: {', '.join(risen)}")


if __name__ == "__main__":
    main()
