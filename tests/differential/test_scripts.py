"""Statements beside PostgreSQL 15: the same rows, tags and errors with all their fields.

Each script below ``scripts/`` runs in a schema of its own on both servers, statement by statement. What PostgreSQL decides
by the order in which it happens to meet rows is not in them (docs/sql.md). A script with the line ``-- also: local`` runs once more
pinned to that executor, which may refuse statements: the router then chooses again.
"""

from __future__ import annotations

import re
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
RUNS = [(path, executor) for path in SCRIPTS for executor in ("auto", *ALSO.findall(path.read_text()))]
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
    """Return a script's statements; one line may hold several, and what stands between $$ and $$ is kept together."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    found = re.findall(r"(?:\$\$.*?\$\$|[^;])+", "\n".join(lines), re.DOTALL)
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


def run_pinned(client: FieldsClient, sql: str, executor: str) -> object:
    """Run a statement on an executor, and by the router's choice where that refuses it."""
    pin(client, executor)
    answer = run_ours(client, sql)
    refused = isinstance(answer, dict) and answer["sqlstate"] == "0A000"
    pin(client, "auto")
    return run_ours(client, sql) if refused else answer


def name_of(value: object) -> str:
    return f"{value.parent.name}-{value.stem}" if isinstance(value, Path) else str(value)


@pytest.mark.parametrize(("path", "executor"), RUNS, ids=name_of)
def test_script(path: Path, executor: str, postgres: str, server: ServerProcess) -> None:
    client = connect(server.port)
    with psycopg.connect(postgres, autocommit=True) as theirs:
        for setup in ("DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public", "SET timezone = 'UTC'"):
            run_theirs(theirs, setup)
            run_ours(client, setup)
        for sql in statements(path):
            mine = run_ours(client, sql) if executor == "auto" else run_pinned(client, sql, executor)
            assert mine == run_theirs(theirs, sql), sql
    client.close()
