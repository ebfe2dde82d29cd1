"""``make restart``: after every script, a killed server starts with what it had.

    scripts ──> a database each ──> pg_dump ──> kill -9 ──> start, pg_dump, CHECKPOINT ──> kill -9 ──> start, pg_dump
                                       └────────────── equal ──────────────┴────────────────── equal ────────┘

Scripts: those of ``tests/differential/scripts``, the statements of ``tests/golden/sql``, permanent objects over temporary ones
(``tests.differential.temporaries``), random DDL (``tests.support.random_ddl``, ``RANDOM`` seeds), and PostgreSQL's regression tests where
``../shared/suites`` has them. Several databases share a kill (``--batch``). Sequences may skip a block in a crash, and nothing else may. Sessions with temporary objects are open when the server is killed. Nothing may be unreadable after a start.
The figures go to ``docs/evidence/restart.json``.

Needs psql and pg_dump of PostgreSQL 15. Exit status 1 where a dump differs.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg

from tests.differential.temporaries import lives
from tests.golden.harness import parse
from tests.support.random_ddl import SETUP, RandomDdl
from tests.support.server import ServerProcess

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "docs" / "evidence" / "restart.json"
SUITES = ROOT.parent / "shared" / "suites"
SCRIPT_S = 120
RANDOM = 20
RANDOM_STATEMENTS = 300
_SET = re.compile(r"(SELECT pg_catalog\.setval\('[^']*', )-?\d+, \w+\);")


class Script(NamedTuple):
    """SQL for psql; errors in it are no matter. ``kind``: where it is from. Of random DDL ``name`` is the seed, and there is no text."""

    kind: str
    name: str
    text: str


def scripts(suites: Path) -> Iterator[Script]:
    """Yield all scripts."""
    for path in sorted((ROOT / "tests" / "differential" / "scripts").glob("*/*.sql")):
        yield Script("differential", f"{path.parent.name}/{path.name}", path.read_text())
    for path in sorted((ROOT / "tests" / "golden" / "sql").glob("*.txt")):
        commands = [c for block in parse(path.read_text()) for c in block.commands]
        statements = [
            c.partition(" ")[2] if c.startswith(("one ", "two ", "a ", "b ")) else c for c in commands
        ]
        yield Script("golden", path.name, "\n".join(f"{s.rstrip(';')};" for s in statements))
    for life in lives("t"):
        text = [*life.make, *(s for script in life.scripts for s in script.statements)]
        yield Script("temporary", life.name, "\n".join(f"{s};" for s in text))
    for seed in range(1, RANDOM + 1):
        yield Script("random", str(seed), "")
    for path in sorted(suites.glob("postgres_regress/**/sql/*.sql")):
        yield Script("regress", path.name, path.read_text(errors="replace"))


def _tool(server: ServerProcess, database: str, *command: str, text: str | None = None) -> str:
    environment = os.environ | {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGUSER": "postgres",
        "PGDATABASE": database,
    }
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            env=environment,
            timeout=SCRIPT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timed out"
    return done.stdout if done.returncode == 0 else f"{done.stdout}\n{done.stderr}"


def dump(server: ServerProcess, database: str) -> str:
    """Return a database as pg_dump writes it, the rows of each COPY in order, and what of it could not be read."""
    lines: list[str] = []
    rows: list[str] | None = (
        None  # of the COPY that was begun; in which order a table is read is nobody's promise
    )
    for line in _tool(server, database, "pg_dump", "--no-sync").split("\n"):
        if rows is not None and line != "\\.":
            rows.append(line)
            continue
        lines += sorted(rows or ())
        rows = [] if line.startswith("COPY ") and line.endswith("FROM stdin;") else None
        if not line.startswith(("\\restrict", "\\unrestrict")):
            lines.append(_SET.sub(r"\1...);", line))
    text = "\n".join(lines)
    lost = _tool(server, database, "psql", "-XAtc", "SELECT object, reason FROM holdfast_unreadable_objects")
    return text + lost


def random_ddl(server: ServerProcess, database: str, seed: int) -> None:
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
        if _tool(server, database, "psql", "-XAtc", left).strip() == "0":
            return
        time.sleep(0.05)


class Outcome(NamedTuple):
    """How many scripts of a kind ran, and the first lines of what differed, by script."""

    ran: dict[str, int]
    different: dict[str, list[str]]


def prove(folder: Path, chosen: list[Script], batch: int) -> Outcome:
    """Run scripts, ``batch`` for each kill."""
    ran: dict[str, int] = {}
    different: dict[str, list[str]] = {}
    server = ServerProcess(folder)
    for at in range(0, len(chosen), batch):
        some = [(f"r{at + i}", script) for i, script in enumerate(chosen[at : at + batch])]
        before: dict[str, str] = {}
        held = psycopg.connect(server.url, autocommit=True)
        held.execute("CREATE TEMP TABLE held (a int)")
        held.execute(f"CREATE TABLE over_held_{at} (k int, c held)")
        for database, script in some:
            server.sql(f"CREATE DATABASE {database}")
            if script.kind == "random":
                random_ddl(server, database, int(script.name))
            else:
                _tool(server, database, "psql", "-Xq", text=script.text)
        for database, _script in some:
            before[database] = dump(server, database)
        for _kill in range(2):
            server.kill()
            server = ServerProcess(folder)
            for database, script in some:
                after = dump(server, database)
                if after != before[database]:
                    lines = difflib.unified_diff(
                        before[database].splitlines(), after.splitlines(), lineterm="", n=0
                    )
                    different[f"{script.kind} {script.name}"] = list(lines)[:20]
            server.sql("CHECKPOINT")
        held.close()
        for database, script in some:
            server.sql(f"DROP DATABASE {database}")
            ran[script.kind] = ran.get(script.kind, 0) + 1
        print(f"{at + len(some)} of {len(chosen)} scripts, {len(different)} different", flush=True)
    server.stop()
    return Outcome(ran, different)


def main() -> int:
    """Run the proof and note its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=8, help="databases for each kill")
    parser.add_argument("--every", type=int, default=1, help="take every n-th script")
    parser.add_argument("--suites", type=Path, default=SUITES, help="where PostgreSQL's regression tests are")
    parser.add_argument("--keep", action="store_true", help="write the figures to docs/evidence")
    arguments = parser.parse_args()
    chosen = list(scripts(arguments.suites))[:: arguments.every]
    with tempfile.TemporaryDirectory() as folder:
        outcome = prove(Path(folder) / "data", chosen, arguments.batch)
    figures = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "scripts": outcome.ran, "every": arguments.every,
        "kills": 2 * -(-len(chosen) // arguments.batch), "different": outcome.different,
    }  # fmt: skip
    print(json.dumps(figures, indent=1))
    if arguments.keep:
        EVIDENCE.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if outcome.different else 0


if __name__ == "__main__":
    sys.exit(main())
