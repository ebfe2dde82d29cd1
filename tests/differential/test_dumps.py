"""What scripts leave, dumped: PostgreSQL 15's text, restored with PostgreSQL's errors, and dumped again as there.

    script, up to its last DROPs --psql--> database --pg_dump--> text --psql--> an empty database --pg_dump--> text

Each script of ``scripts/`` goes this way on both servers, and after every step both have the same: definitions after the first dump,
definitions and rows after the second (the rows of the first are what the script's own test compares; both restore ours). A restore has
no errors, but for what PostgreSQL could not restore either (a body that names a table without its schema). Some scripts are in
``make test``; ``make dumps`` takes all and keeps figures (``HOLDFAST_EVIDENCE``).
"""

from __future__ import annotations

import difflib
import itertools
import json
import os
import re
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
CLEARS = re.compile(r"\s*(drop|reset)\b|--|\s*$", re.IGNORECASE)
ROWS = re.compile(
    r"-- (Data for )?Name: (LARGE OBJECT \d+;|.*; Type: (TABLE DATA|SEQUENCE SET|MATERIALIZED VIEW DATA|BLOBS?);)"
)
DIFFERENT = {
    "constraints-exclusion": "exclusion constraints over scalars need no btree_gist, and outlast it",
    "extensions-citext": "comments of extensions are in words of the project's own",
    "extensions-lo": "comments of extensions are in words of the project's own",
    "functions-descriptions": "comments of extensions are in words of the project's own",
    "functions-trigrams": "comments of extensions are in words of the project's own",
    "partitions-computed_bounds": "bounds of keys that are expressions of a domain are printed as of the type below it",
    "partitions-detach_concurrently": "the CHECK that DETACH … CONCURRENTLY leaves has its list as ARRAY, one over several columns is not left",
    "privileges-roles_by_others": "DROP OWNED takes what the role has granted on columns, too, which keeps it from being dropped there",
    "search-configurations": "comments of extensions are in words of the project's own",
    "statements-names_by_oid": "a type that is gone is shown by its oid",
    "statements-kept_queries": "a view's list of columns keeps no names of before ALTER TABLE … RENAME",
}
"""Scripts whose dump is another, and why. The list can only shrink: whatever is on it has to differ."""
RESTORED_OTHERWISE = {
    "functions-called_before_made": "bodies find what is in public, whatever the search path of a restore",
    "privileges-whose_rights": "ATTACH PARTITION computes constants within an index's expressions as whoever attaches it",
    "statements-collations": "a CHECK whose collation nobody can tell is an error before the first row",
    "statements-operands_in_views": "an alias that is called *VALUES* is taken for none",
}
"""Scripts whose dump is PostgreSQL's, its restore another, and why."""
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
        what = "pg_dump after each script of tests/differential, a restore of it and pg_dump again, beside PostgreSQL 15 (make dumps)"
        made = {
            "what": what,
            **dict(sorted(found.items())),
            "dumps that differ": DIFFERENT,
            "restores that differ": RESTORED_OTHERWISE,
        }
        Path(EVIDENCE).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("path", RUNS)
def test_a_script_s_dump(path: Path, postgres: str, server: ServerProcess, figures: Counter[str]) -> None:
    ours = f"host=127.0.0.1 port={server.port} user=postgres dbname="
    theirs = postgres.replace("dbname=postgres", "dbname=")
    with psycopg.connect(f"{theirs}postgres") as connection:
        skip_on_older(path, connection.info.server_version)
    figures += compared(ours, theirs, path)


def compared(ours: str, theirs: str, path: Path) -> Counter[str]:
    """Take a script both ways; returns what was counted. Raises AssertionError for a difference that is not listed."""
    found = Counter({"scripts": 1})
    first, second = (dumped(at, before_its_end(path.read_text())) for at in (ours, theirs))
    if name_of(path) in DIFFERENT:
        found["scripts whose dump differs"] += 1
        assert definitions(first) != definitions(second), (
            "the dump is PostgreSQL's: this script can go from the list"
        )
        return found
    same(definitions(first), definitions(second))
    found["lines of definitions that are equal"] += len(definitions(first))
    made, again = (restored(at, first) for at in (ours, theirs))
    one, other = (dump(f"{at}restored") for at in (ours, theirs))
    if name_of(path) in RESTORED_OTHERWISE:
        found["scripts whose restore differs"] += 1
        assert (made, rows_in_order(one)) != (again, rows_in_order(other)), "this script can go from the list"
        return found
    same(made, again)
    found["restores with PostgreSQL's errors" if made else "restores without an error"] += 1
    same(rows_in_order(one), rows_in_order(other))
    found["second dumps that are equal"] += 1
    found["lines of rows that are equal"] += len(one) - len(definitions(one))
    return found


def before_its_end(script: str) -> str:
    """Return a script without the lines at its end that drop what it has made: there would be nothing to dump."""
    lines = script.splitlines()
    while lines and CLEARS.match(lines[-1]):
        lines.pop()
    return "\n".join(lines)


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
    done = run(PG_DUMP, "-d", dsn)
    assert done.returncode == 0, done.stderr
    drawn = ("\\restrict ", "\\unrestrict ", "-- Dumped ")
    return [line for line in done.stdout.splitlines() if not line.startswith(drawn)]


def definitions(lines: list[str]) -> list[str]:
    """Return a dump's lines without rows, sequences' values and large objects, as ``pg_dump -s`` writes it."""
    kept: list[str] = []
    keeps = True
    for line, after in itertools.pairwise([*lines, ""]):
        if line == "--" and after.startswith("-- "):
            keeps = ROWS.match(after) is None
        if keeps:
            kept.append(line)
    return kept


def rows_in_order(lines: list[str]) -> list[str]:
    """Return a dump's lines, the rows of each COPY in an order of their own: a table has none."""
    made: list[str] = []
    rows: list[str] | None = None
    for line in lines:
        if rows is None:
            made.append(line)
            rows = [] if line.startswith("COPY ") and line.endswith(" FROM stdin;") else None
        elif line == "\\.":
            made += [*sorted(rows), line]
            rows = None
        else:
            rows.append(line)
    return made


def run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PGTZ": "UTC"}
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False
    )


def same(ours: list[str], theirs: list[str]) -> None:
    assert ours == theirs, "\n".join(difflib.unified_diff(theirs, ours, "theirs", "ours", n=1, lineterm=""))


def test_what_is_listed_is_there() -> None:
    assert {*SAMPLE, *DIFFERENT, *RESTORED_OTHERWISE} <= {name_of(path) for path in SCRIPTS}
