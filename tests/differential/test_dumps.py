"""What scripts leave, dumped: PostgreSQL 15's text, restored with PostgreSQL's errors, and dumped again as there.

    script --psql--> database --pg_dump -s--> text --psql--> an empty database --pg_dump -s--> text

Each script of ``scripts/`` goes this way on both servers; after every step both have the same. A restore has no errors, but for what
PostgreSQL could not restore either (a body that names a table without its schema). Some scripts are in ``make test``; ``make dumps`` takes
all and keeps figures (``HOLDFAST_EVIDENCE``).
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.differential.test_scripts import SCRIPTS, name_of, skip_on_older
from tests.engine.catalog.test_dump import PG_DUMP, needs_pg_dump
from tests.engine.catalog.test_psql import PSQL
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]
pytestmark = needs_pg_dump

EVIDENCE = os.environ.get("HOLDFAST_EVIDENCE", "")
TIMEOUT_S = 120
SAMPLE = (
    "partitions-definitions", "statements-generated_columns", "statements-storage_options", "triggers-definitions", "types-printed_rows",
)  # fmt: skip
"""Those of ``make test``."""
DIFFERENT = {
    "constraints-exclusion": "exclusion constraints over scalars need no btree_gist, and outlast it",
    "search-configurations": "comments of extensions are in words of the project's own",
    "statements-alter_forms": "storage, compression and statistics targets of columns are taken and not kept; actions of an ALTER TABLE run as written",
    "statements-gist_shapes": "LIKE INCLUDING INDEXES names an index by its columns' present names",
    "statements-kept_queries": "a view's list of columns keeps no names of before ALTER TABLE … RENAME",
    "types-composite_forms": "defaults of rows are kept as values, fields of row constructors as expressions",
    "types-definitions_in_styles": "information_schema's columns have base types",
}
"""Scripts whose dump is another, and why. The list can only shrink: whatever is on it has to differ."""
RUNS = [
    pytest.param(path, marks=() if name_of(path) in SAMPLE else pytest.mark.long, id=name_of(path))
    for path in SCRIPTS
]


@pytest.fixture(scope="module")
def figures() -> Iterator[Counter[str]]:
    """Yield what is counted, to be kept at the end."""
    found: Counter[str] = Counter()
    yield found
    if EVIDENCE:
        what = "pg_dump -s after each script of tests/differential, a restore of it and pg_dump again, beside PostgreSQL 15 (make dumps)"
        made = {"what": what, **dict(sorted(found.items())), "dumps that differ": DIFFERENT}
        Path(EVIDENCE).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("path", RUNS)
def test_a_script_s_dump(path: Path, postgres: str, server: ServerProcess, figures: Counter[str]) -> None:
    ours, theirs = (
        f"host=127.0.0.1 port={server.port} user=postgres dbname=",
        postgres.replace("dbname=postgres", "dbname="),
    )
    with psycopg.connect(f"{theirs}postgres") as connection:
        skip_on_older(path, connection.info.server_version)
    figures["scripts"] += 1
    first, second = (dumped(at, path.read_text()) for at in (ours, theirs))
    if name_of(path) in DIFFERENT:
        figures["scripts whose dump differs"] += 1
        assert first != second, "the dump is PostgreSQL's: this script can go from the list"
        return
    same(first, second)
    figures["lines of dumps that are equal"] += len(first)
    made, again = (restored(at, first) for at in (ours, theirs))
    assert made == again
    figures["restores with PostgreSQL's errors" if made else "restores without an error"] += 1
    same(*(dump(f"{at}restored") for at in (ours, theirs)))
    figures["second dumps that are equal"] += 1


def dumped(at: str, script: str) -> list[str]:
    """Return the dump of a new database after a script, whatever in it fails."""
    create(at, "dumped")
    psql(f"{at}dumped", script)
    return dump(f"{at}dumped")


def restored(at: str, lines: list[str]) -> list[str]:
    """Restore a dump into a new database; returns the errors."""
    create(at, "restored")
    done = psql(f"{at}restored", "\n".join(lines))
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]


def create(at: str, database: str) -> None:
    with psycopg.connect(f"{at}postgres", autocommit=True) as root:
        root.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)".encode())
        root.execute(f"CREATE DATABASE {database}".encode())


def psql(dsn: str, script: str) -> subprocess.CompletedProcess[str]:
    return run(PSQL, "-X", "-q", "-d", dsn, stdin=script)


def dump(dsn: str) -> list[str]:
    """Return the lines of a dump, without the key drawn for each and the versions."""
    done = run(PG_DUMP, "-s", "-d", dsn)
    assert done.returncode == 0, done.stderr
    drawn = ("\\restrict ", "\\unrestrict ", "-- Dumped ")
    return [line for line in done.stdout.splitlines() if not line.startswith(drawn)]


def run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PGTZ": "UTC"}
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False
    )


def same(ours: list[str], theirs: list[str]) -> None:
    assert ours == theirs, "\n".join(difflib.unified_diff(theirs, ours, "theirs", "ours", n=1, lineterm=""))


def test_what_is_listed_is_there() -> None:
    assert {*SAMPLE, *DIFFERENT} <= {name_of(path) for path in SCRIPTS}
