"""``make restart``: after every script, a killed server starts with what it had.

    scripts ──> a database each ──> pg_dump ──> kill -9 ──> start, pg_dump, CHECKPOINT ──> kill -9 ──> start, pg_dump
                                       └────────────── equal ──────────────┴────────────────── equal ────────┘

Scripts: ``bench.restart_scripts``. Several databases share a kill (``--batch``) and the dump of what is of all databases (roles, pg_dumpall).
Sequences may skip a block in a crash, and nothing else may. A session with temporary objects is open when the server is killed. Nothing
may be unreadable after a start.
``--journal FILE`` has a line for each script that ran: a run that was cut off, by ``--minutes`` too, goes on with the first that is not in it,
and the figures are of all its lines. ``--keep`` writes them to ``docs/evidence/restart.json``. What pg_dump could not read before the kill
says nothing about the start, and is told apart from what is equal.

Needs psql, pg_dump and pg_dumpall of PostgreSQL 15. Exit status 1 where a dump differs or could not be made.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import difflib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench.restart_scripts import ROOT, SUITES, Script, regress_variables, scripts
from tests.support.random_ddl import SETUP, RandomDdl
from tests.support.server import ServerProcess

EVIDENCE = ROOT / "docs" / "evidence" / "restart.json"
SCRIPT_S = 120
RANDOM_STATEMENTS = 300
DUMPS = 4
GLOBALS = ""  # no database's name: roles, their settings, members and rights, tablespaces
_RESTRICT = re.compile(r"^\\(un)?restrict \w+$", re.MULTILINE)  # its key is random
_NOT_IN_DUMPS = """
SELECT object, reason FROM holdfast_unreadable_objects;
SELECT format('SELECT %1$L, count(*), md5(string_agg(t::text, '','' ORDER BY t::text COLLATE "C")) FROM %1$s t', oid::regclass)
FROM pg_class WHERE relkind = 'm' AND relispopulated ORDER BY oid \\gexec
"""
_SET = re.compile(r"(SELECT pg_catalog\.setval\('[^']*', )-?\d+, \w+\);")


class Failed(Exception):
    """A tool ended with an error or not in time; its output."""


class Place(NamedTuple):
    """Where the proof runs: a data directory, an empty folder for what scripts write, the folder of suites."""

    data: Path
    built: Path
    suites: Path

    def start(self) -> ServerProcess:
        """Start a server that may read what the suites load."""
        return ServerProcess(self.data, "--server-files", f"{self.suites},{self.built}")


def _tool(place: Place, server: ServerProcess, database: str, *command: str, text: str | None = None) -> str:
    """Return what a tool prints. Failed: it ended with an error, as psql with a script does not for one in the script."""
    environment = (
        os.environ
        | regress_variables(place.suites, place.built)
        | {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(server.port),
            "PGUSER": "postgres",
            "PGDATABASE": database,
        }
    )
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            cwd=place.built,
            env=environment,
            timeout=SCRIPT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed("timed out") from None
    if done.returncode != 0:
        raise Failed(done.stderr)
    return _RESTRICT.sub("", done.stdout)


def dump(place: Place, server: ServerProcess, database: str) -> str:
    """Return a database as pg_dump writes it, the rows of each COPY in order, what of it could not be read, and the rows of materialized views."""
    lines: list[str] = []
    rows: list[str] | None = (
        None  # of the COPY that was begun; in which order a table is read is nobody's promise
    )
    for line in _tool(place, server, database, "pg_dump", "--no-sync", "--create").split("\n"):
        if rows is not None and line != "\\.":
            rows.append(line)
            continue
        lines += sorted(rows or ())
        rows = [] if line.startswith("COPY ") and line.endswith("FROM stdin;") else None
        lines.append(_SET.sub(r"\1...);", line))
    text = "\n".join(lines)
    lost = _tool(place, server, database, "psql", "-XAtqvON_ERROR_STOP=1", text=_NOT_IN_DUMPS)
    return text + lost


def random_ddl(place: Place, server: ServerProcess, database: str, seed: int) -> None:
    """Run random DDL in two sessions, and end them; a block of one ends before the other goes on."""
    url = f"host=127.0.0.1 port={server.port} user=postgres dbname={database}"
    ddl = RandomDdl(seed)
    sessions = [psycopg.connect(url, autocommit=True) for _ in range(2)]
    for statement in SETUP:
        sessions[0].execute(statement.encode())
    for _ in range(RANDOM_STATEMENTS):
        busy = [s for s in sessions if s.info.transaction_status != psycopg.pq.TransactionStatus.IDLE]
        session = busy[0] if busy else sessions[ddl.chance(0.4)]
        statement = ddl.statement()
        if session.info.transaction_status == psycopg.pq.TransactionStatus.INERROR and ddl.chance(0.7):
            statement = "ROLLBACK"
        try:
            session.execute(statement.encode())
        except psycopg.Error:
            ddl.told(succeeded=False)
        else:
            ddl.told(succeeded=True)
    for session in sessions:
        session.close()
    left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp%'"
    for _ in range(200):  # until what was theirs is gone
        if _tool(place, server, database, "psql", "-XAtc", left).strip() == "0":
            return
        time.sleep(0.05)


class Outcome(NamedTuple):
    """Of a script: the commit it ran on, what pg_dump said before the kill if it failed, and the first lines of what differed after it."""

    kind: str
    name: str
    commit: str
    undumped: str = ""
    different: tuple[str, ...] = ()


def _dumped(place: Place, server: ServerProcess, database: str) -> tuple[str, str]:
    """Return a dump and nothing, or nothing and the error. ``GLOBALS``: what all databases share."""
    try:
        if database == GLOBALS:
            return _tool(place, server, "postgres", "pg_dumpall", "--globals-only"), ""
        return dump(place, server, database), ""
    except Failed as failed:
        return "", str(failed)


def _all_dumped(place: Place, server: ServerProcess, databases: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the dump of each database; ``DUMPS`` at a time, so that the server has work while a pg_dump reads what it asked for."""
    with ThreadPoolExecutor(DUMPS) as pool:
        named = list(databases)
        return dict(zip(named, pool.map(partial(_dumped, place, server), named), strict=True))


def prove(place: Place, chosen: list[Script], batch: int, until: float = math.inf) -> Iterator[Outcome]:
    """Run scripts, ``batch`` for each kill; no batch begins after ``until`` (of the monotonic clock)."""
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True).strip()
    server = place.start()
    for at in range(0, len(chosen), batch):
        if time.monotonic() > until:
            break
        some = {f"r{at + i}": script for i, script in enumerate(chosen[at : at + batch])}
        held = psycopg.connect(server.url, autocommit=True)
        held.execute("CREATE TEMP TABLE held (a int)")
        held.execute(f"CREATE TABLE over_held_{at} (k int, c held)")
        for database, script in some.items():
            server.sql(f"CREATE DATABASE {database}")
            if script.kind == "random":
                random_ddl(place, server, database, int(script.name))
            for text in filter(None, (script.setup, script.text)):
                with contextlib.suppress(
                    Failed
                ):  # it takes too long, or ends its own session: what it did until then counts
                    _tool(place, server, database, "psql", "-Xq", text=text)
        before = _all_dumped(place, server, (GLOBALS, *some))
        different: dict[str, list[str]] = {}
        for _kill in range(2):
            server.kill()
            server = place.start()
            for database, new in _all_dumped(place, server, before).items():
                if new != (old := before[database]):
                    was, now = ("\n".join(each).splitlines() for each in (old, new))
                    lines = difflib.unified_diff(was, now, lineterm="", n=0)
                    different.setdefault(database, list(itertools.islice(lines, 20)))
            server.sql("CHECKPOINT")
        held.close()
        shared = different.get(GLOBALS, [])  # any of the batch may be the one
        for database, script in some.items():
            server.sql(f"DROP DATABASE {database}")
            told = (*different.get(database, ()), *shared)
            yield Outcome(script.kind, script.name, commit, before[database][1] or before[GLOBALS][1], told)
    server.stop()


def figures(outcomes: list[Outcome], of: int, batch: int) -> dict[str, object]:
    """Return what goes to ``docs/evidence``; ``of``: how many scripts there are."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commits": sorted({outcome.commit for outcome in outcomes}),
        "scripts": dict(Counter(outcome.kind for outcome in outcomes)), "of": of,
        "kills": 2 * -(-len(outcomes) // batch),
        "different": {f"{o.kind} {o.name}": o.different for o in outcomes if o.different},
        "not dumped": {f"{o.kind} {o.name}": o.undumped for o in outcomes if o.undumped},
    }  # fmt: skip


def main() -> int:
    """Run the proof and note its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8, help="databases for each kill")
    parser.add_argument("--every", type=int, default=1, help="take every n-th script")
    parser.add_argument("--only", action="append", metavar="KIND/NAME", help="take this script")
    parser.add_argument("--suites", type=Path, default=SUITES, help="where PostgreSQL's regression tests are")
    parser.add_argument("--keep", action="store_true", help="write the figures to docs/evidence")
    parser.add_argument(
        "--journal", type=Path, help="a line for each script that ran; what is in it is not run"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no batch after that")
    arguments = parser.parse_args()
    every = scripts(arguments.suites)
    outcomes = []
    if arguments.journal and arguments.journal.exists():
        outcomes = [Outcome(*json.loads(line)) for line in arguments.journal.read_text().splitlines()]
    ran = {(outcome.kind, outcome.name) for outcome in outcomes}
    chosen = [script for script in every[:: arguments.every] if (script.kind, script.name) not in ran]
    if arguments.only:
        chosen = [script for script in chosen if f"{script.kind}/{script.name}" in arguments.only]
    until = time.monotonic() + 60 * arguments.minutes
    ServerProcess.forked = True  # a third of the processor time went to imports of three starts a batch
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as files:
        journal = files.enter_context(arguments.journal.open("a", buffering=1)) if arguments.journal else None
        place = Place(Path(folder) / "data", Path(folder) / "built", arguments.suites)
        (place.built / "results").mkdir(parents=True)
        for number, outcome in enumerate(prove(place, chosen, arguments.batch, until), 1):
            outcomes.append(outcome)
            if journal:
                journal.write(json.dumps(outcome) + "\n")
            if number % arguments.batch == 0:
                found = sum(bool(o.different or o.undumped) for o in outcomes)
                print(f"{number} of {len(chosen)} scripts, {found} findings", flush=True)
    told = figures(outcomes, len(every), arguments.batch)
    print(json.dumps(told, indent=1))
    if arguments.keep:
        EVIDENCE.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if told["different"] or told["not dumped"] else 0


if __name__ == "__main__":
    sys.exit(main())
