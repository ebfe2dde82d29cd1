"""What hangs on temporary objects goes with them, as on PostgreSQL: at the end of a session, and when a killed server starts again.

``temporaries.json`` has what PostgreSQL 15 answers and leaves, by script; ``--rewrite`` asks it anew.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.differential.temporaries import LEFT, Life, lives
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

RECORDED = Path(__file__).with_name("temporaries.json")
PARTS = 8
DIFFERENT = {
    ("sequence", "nextval"): "CHECKs and policies name sequences by name, as written: they are left",
    (
        "domain",
        "GENERATED ALWAYS AS (CASE WHEN NULL::pg_temp.rd[]",
    ): "42P17: an array of a domain is no constant",
}
"""Scripts that end otherwise: of which temporary object, what is in them, why."""

Left = dict[str, list[list[str]]]


def _is_different(life: Life, statements: tuple[str, ...]) -> bool:
    text = "; ".join(statements)
    kept = "CHECK" in text or "POLICY" in text
    return any(name == life.name and part in text and (part != "nextval" or kept) for name, part in DIFFERENT)


def live(dsn: str, life: Life) -> tuple[psycopg.Connection[Any], dict[str, list[str]]]:
    """Return an open session that has lived through ``life``, and what was answered to each script: "" or an SQLSTATE for each statement."""
    connection = psycopg.connect(dsn, autocommit=True)
    for statement in life.make:
        connection.execute(statement.encode())
    answers: dict[str, list[str]] = {}
    for script in life.scripts:
        answers[script.schema] = []
        for statement in script.statements:
            try:
                connection.execute(statement.encode())
                answers[script.schema].append("")
            except psycopg.Error as error:
                answers[script.schema].append(error.sqlstate or repr(error))
    return connection, answers


def left(dsn: str, prefix: str) -> Left:
    """Return what is left in the schemas, once temporary schemas are gone or empty."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(3000):
            rows = connection.execute(
                "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname LIKE 'pg_temp_%'"
            ).fetchall()
            more = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            )
            if rows == [(0,)] and more.fetchall() == [(1,)]:
                break
            time.sleep(0.02)
        found: Left = {}
        for schema, *row in connection.execute(LEFT.format(prefix).encode()).fetchall():
            found.setdefault(schema, []).append(row)
        return found


def _compare(prefix: str, chosen: list[Life], answers: dict[str, list[str]], now: Left) -> None:
    recorded = json.loads(RECORDED.read_text())
    wrong = []
    for life in chosen:
        for script in life.scripts:
            number = script.schema.removeprefix(prefix)
            theirs, remains = recorded[number]
            ours = answers[script.schema]
            mine = now.get(script.schema, [])
            if _is_different(life, script.statements):
                continue
            if "0A000" in ours:  # less was made, and less is left
                good = all(row in remains for row in mine)
            else:
                good = ours == theirs and mine == remains
            if not good:
                wrong.append((life.name, script.statements[2:], ours, theirs, mine, remains))
    assert wrong == []


def test_what_hangs_on_temporary_objects_goes_with_them(tmp_path: Path) -> None:
    _walk(tmp_path, [*lives("w", 0, PARTS)], [*lives("k", 1, PARTS)])


@pytest.mark.long
def test_all_that_hangs_on_temporary_objects_goes_with_them(tmp_path: Path) -> None:
    _walk(tmp_path, [*lives("w")], [*lives("k")])


def _walk(folder: Path, ended: list[Life], killed: list[Life]) -> None:
    """Let sessions of ``ended`` end, kill the server while those of ``killed`` are there, then start it twice more."""
    server = ServerProcess(folder)
    answers: dict[str, list[str]] = {}
    for life in ended:
        connection, said = live(server.url, life)
        answers |= said
        connection.close()
    _compare("w", ended, answers, left(server.url, "w"))
    held = []
    for life in killed:
        connection, said = live(server.url, life)
        answers |= said
        held.append(connection)
    server.kill()
    for connection in held:
        connection.close()
    for last in (False, True):
        server = ServerProcess(folder)
        _compare("w", ended, answers, left(server.url, "w"))
        _compare("k", killed, answers, left(server.url, "k"))
        assert server.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp_%'") == [("0",)]
        assert "dropped without what hangs on them" not in server.log()
        server.sql("CHECKPOINT")
        if last:
            server.stop()
        else:
            server.kill()


def test_what_postgresql_says_is_what_is_recorded(postgres: str, rewrite: bool) -> None:
    chosen = [*lives("w")] if rewrite else [*lives("w", 0, 40)]
    answers: dict[str, list[str]] = {}
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE temporaries")
    dsn = postgres.replace("dbname=postgres", "dbname=temporaries")
    for life in chosen:
        session, said = live(dsn, life)
        answers |= said
        session.close()
    now = left(dsn, "w")
    found = {schema[1:]: [said, now.get(schema, [])] for schema, said in answers.items()}
    if rewrite:
        lines = [f'"{number}": {json.dumps(entry)}' for number, entry in found.items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    recorded = json.loads(RECORDED.read_text())
    assert {number: recorded[number] for number in found} == found


def test_domains_over_the_rows_of_a_temporary_table_keep_no_server_from_starting(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE rt (a int)")
        connection.execute("CREATE DOMAIN pd AS rt[]")
        connection.execute("CREATE DOMAIN pe AS rt")
    server.stop()
    server = ServerProcess(tmp_path)
    assert server.sql("SELECT typname FROM pg_type WHERE typname IN ('pd', 'pe')") == []
    server.stop()
