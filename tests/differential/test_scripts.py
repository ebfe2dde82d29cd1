"""Statements beside PostgreSQL 15: the same rows, tags and errors with all their fields.

Each script below ``scripts/`` runs in a schema of its own on both servers, statement by statement. What PostgreSQL decides
by the order in which it happens to meet rows is not in them (docs/reference/differences.md). A script with the line ``-- also: local`` runs once more
pinned to that executor, which may refuse statements: the router then chooses again (each sixth of them in ``make test``). ``make diff`` runs all
scripts so.
A script with the line ``-- as of: 15.20`` holds what a minor release of PostgreSQL has mended; beside an older one it is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.fields import FieldsClient, connect, fields_of
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*/*.sql"))
ALSO = re.compile(r"^-- also: (\w+)$", re.MULTILINE)
STATEMENT = re.compile(
    r"(?:\$\$.*?\$\$|\bbegin atomic\b.*?\bend(?=;(?:\n|$))|[^;])+", re.DOTALL | re.IGNORECASE
)
AS_OF = re.compile(r"^-- as of: (\d+)\.(\d+)$", re.MULTILINE)
PINNED = [(path, executor) for path in SCRIPTS for executor in ALSO.findall(path.read_text())]
RUNS = [
    *((path, "auto") for path in SCRIPTS),
    *PINNED[::6],  # in make test; the others in make diff
    *(pytest.param(*run, marks=pytest.mark.long) for number, run in enumerate(PINNED) if number % 6),
]
DIFFERENT = {
    "statements-unread_columns": ("with s as (select id, (select v from nokey)", "with s as materialized (select id, (select v"),
    "types-equal_extremes": ("select min(iv)", "select g, min(iv) over w, max(iv) over w, max(n)", "select g, min(iv) over w, max(iv) over w, min(n)"),
    "triggers-rows": ("select what from log order by n",),
}  # fmt: skip
"""Beginnings of the statements with another answer where DuckDB is pinned, by script (docs/reference/differences.md): columns that nobody reads, the order
in which MERGE meets rows, which of equal values min and max give."""
CONTROL = re.compile(
    r"(begin|start|commit|end|rollback|abort|savepoint|release|set|prepare)\b|select set_config\('transaction_",
    re.IGNORECASE,
)
"""What stands alone: a savepoint around it would end it, or what it sets ends with that."""
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
Field = psycopg.pq.DiagnosticField
FIELDS = {
    "sqlstate": Field.SQLSTATE,
    "message": Field.MESSAGE_PRIMARY,
    "detail": Field.MESSAGE_DETAIL,
    "hint": Field.MESSAGE_HINT,
    "position": Field.STATEMENT_POSITION,
    "schema": Field.SCHEMA_NAME,
    "table": Field.TABLE_NAME,
    "column": Field.COLUMN_NAME,
    "constraint": Field.CONSTRAINT_NAME,
    "datatype": Field.DATATYPE_NAME,
    "where": Field.CONTEXT,
}


def statements(path: Path) -> list[str]:
    """Return a script's statements; one line may hold several, and what stands between $$ and $$, or BEGIN ATOMIC and END at a line's end, is kept together."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    found = STATEMENT.findall("\n".join(lines))
    return [s.strip() for s in found if s.strip()]


def run_ours(client: FieldsClient, sql: str) -> object:
    client._bodies = []
    try:
        result = client.run(sql)
    except ServerError:
        fields = fields_of(client._bodies[0])
        return {name: fields.get(name) for name in FIELDS}
    rows = [list(row) for row in result.rows]
    return result.tag, rows if "order by" in sql else sorted(rows, key=repr)


def run_theirs(theirs: psycopg.Connection[tuple[object, ...]], sql: str) -> object:
    done = theirs.pgconn.exec_(sql.encode())
    if done.status == psycopg.pq.ExecStatus.FATAL_ERROR:
        found = {name: done.error_field(code) for name, code in FIELDS.items()}
        return {name: None if value is None else value.decode() for name, value in found.items()}
    rows = [
        [None if (v := done.get_value(r, c)) is None else v.decode() for c in range(done.nfields)]
        for r in range(done.ntuples)
    ]
    return (done.command_status or b"").decode(), rows if "order by" in sql else sorted(rows, key=repr)


def pin(client: FieldsClient, executor: str) -> None:
    """Set the executor; a transaction that has failed takes no settings, and runs nothing."""
    try:
        client.run(f"SET executor = {executor}")
    except ServerError as error:
        if error.sqlstate != "25P02":
            raise


def done(client: FieldsClient, sql: str) -> bool:
    """Return whether a statement succeeds."""
    try:
        client.run(sql)
    except ServerError:
        return False
    return True


def run_pinned(client: FieldsClient, sql: str, executor: str) -> object:
    """Run a statement on an executor, and by the router's choice where that refuses it, which costs a block nothing."""
    if CONTROL.match(sql) is not None:
        return run_ours(client, sql)
    pin(client, executor)
    inside = done(client, "SAVEPOINT pinned")
    answer = run_ours(client, sql)
    refused = isinstance(answer, dict) and answer["sqlstate"] == "0A000"
    if inside and refused:
        client.run("ROLLBACK TO pinned")
    elif inside and not isinstance(answer, dict):
        client.run("RELEASE pinned")
    pin(client, "auto")
    return run_ours(client, sql) if refused else answer


def name_of(value: object) -> str:
    return f"{value.parent.name}-{value.stem}" if isinstance(value, Path) else str(value)


def skip_on_older(path: Path, version: int) -> None:
    """Skip a script that is as of a later minor release than the server's."""
    needs = AS_OF.search(path.read_text())
    least = 0 if needs is None else 10_000 * int(needs[1]) + int(needs[2])
    if version < least:
        pytest.skip(f"this is PostgreSQL {version}, the script is as of {least}")


@pytest.mark.parametrize(("path", "executor"), RUNS, ids=name_of)
def test_script(path: Path, executor: str, postgres: str, server: ServerProcess) -> None:
    for sql, mine, other in answers(path, executor, postgres, server):
        assert mine == other, sql


@pytest.mark.long
@pytest.mark.parametrize("path", [p for p in SCRIPTS if (p, "local") not in PINNED], ids=name_of)
def test_script_on_duckdb(path: Path, postgres: str, server: ServerProcess) -> None:
    """What differs where DuckDB is pinned is known, statement by statement: the list can only shrink."""
    known = DIFFERENT.get(name_of(path), ())
    found = [sql for sql, mine, other in answers(path, "local", postgres, server) if mine != other]
    assert len(found) == len(known), found
    assert all(sql.startswith(start) for sql, start in zip(found, known, strict=True)), found


def answers(
    path: Path, executor: str, postgres: str, server: ServerProcess
) -> Iterator[tuple[str, object, object]]:
    """Yield the statements of a script, each with our answer and PostgreSQL's."""
    with closing(connect(server.port)) as client, psycopg.connect(postgres, autocommit=True) as theirs:
        skip_on_older(path, theirs.info.server_version)
        # What other scripts have left: a catalog query by name would meet it, and counts of rows differ by design.
        left = theirs.execute(SCHEMAS).fetchall()
        drops = [f'DROP SCHEMA IF EXISTS "{name}" CASCADE' for (name,) in left]
        for setup in (*drops, "CREATE SCHEMA public", "SET timezone = 'UTC'"):
            run_theirs(theirs, setup)
            run_ours(client, setup)
        for sql in statements(path):
            mine = run_ours(client, sql) if executor == "auto" else run_pinned(client, sql, executor)
            yield sql, mine, run_theirs(theirs, sql)
