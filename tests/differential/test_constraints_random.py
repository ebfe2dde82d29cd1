"""Random tables that refer to each other, random statements: the same rows and SQLSTATEs as PostgreSQL 15.

Statements name one row each (cascades spread from there), because PostgreSQL's answer to statements over several
rows may depend on their order (docs/reference/sql/constraints.md).
"""

from __future__ import annotations

import os
import random

import psycopg
import pytest

from tests.differential.test_scripts import run_ours, run_theirs
from tests.support.fields import connect
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

SEEDS = [int(s) for s in os.environ.get("HOLDFAST_SEEDS", "1,2,3,4,5,6").split(",")]
STATEMENTS = int(os.environ.get("HOLDFAST_QUERIES", "120"))
TABLES = ("a", "b", "c")
ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT")
KEYS = 5


def definitions(choose: random.Random) -> list[str]:
    """Return tables with a key each, and foreign keys among them (rings and self-references too)."""
    made = [f"CREATE TABLE {t} (id int PRIMARY KEY, x int DEFAULT 1, y int DEFAULT 2, n int)" for t in TABLES]
    for number in range(choose.randint(2, 4)):
        child, parent = choose.choice(TABLES), choose.choice(TABLES)
        timing = choose.choice(("", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"))
        made.append(
            f"ALTER TABLE {child} ADD CONSTRAINT f{number} FOREIGN KEY ({choose.choice('xy')}) REFERENCES {parent} "
            f"ON DELETE {choose.choice(ACTIONS)} ON UPDATE {choose.choice(ACTIONS)}{timing}"
        )
    for table in TABLES:
        if choose.random() < 0.5:
            made.append(f"CREATE INDEX ON {table} ({choose.choice(('x', 'y', 'x, y', 'y, id'))})")
        if choose.random() < 0.3:
            made.append(f"ALTER TABLE {table} ADD CONSTRAINT k CHECK (x IS NULL OR x <> 3)")
    return made


def statement(choose: random.Random) -> str:
    table, row = choose.choice(TABLES), choose.randint(1, KEYS)

    def value() -> str:
        return choose.choice(("NULL", *map(str, range(1, KEYS + 1))))

    kind = choose.random()
    if kind < 0.35:
        return f"INSERT INTO {table} VALUES ({row}, {value()}, {value()}, 0)"
    if kind < 0.45:
        return f"INSERT INTO {table} VALUES ({row}, {value()}, {value()}, 0) ON CONFLICT (id) DO UPDATE SET x = excluded.x"
    if kind < 0.6:
        return f"DELETE FROM {table} WHERE id = {row}"
    if kind < 0.7:
        return f"UPDATE {table} SET id = {choose.randint(1, KEYS)} WHERE id = {row}"
    if kind < 0.85:
        return f"UPDATE {table} SET {choose.choice('xy')} = {value()} WHERE id = {row}"
    return choose.choice(
        ("BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "SET CONSTRAINTS ALL DEFERRED",
         "SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS f1 DEFERRED", "SET CONSTRAINTS f0 IMMEDIATE")
    )  # fmt: skip


def outcome(answer: object) -> object:
    """Return an error's SQLSTATE, or the tag and rows: of several constraints that break, either is named."""
    return answer["sqlstate"] if isinstance(answer, dict) else answer


@pytest.mark.parametrize("seed", SEEDS)
def test_random_statements(postgres: str, server: ServerProcess, seed: int) -> None:
    choose = random.Random(seed)
    client = connect(server.port)
    with psycopg.connect(postgres, autocommit=True) as theirs:
        setup = ["DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public", *definitions(choose)]
        for sql in setup:
            assert outcome(run_ours(client, sql)) == outcome(run_theirs(theirs, sql)), sql
        said: list[str] = []
        for _ in range(STATEMENTS):
            sql = statement(choose)
            said.append(sql)
            mine, other = outcome(run_ours(client, sql)), outcome(run_theirs(theirs, sql))
            assert mine == other, (setup[2:], said)
            if choose.random() < 0.2:
                for table in TABLES:
                    look = f"SELECT * FROM {table} order by id"
                    mine, other = run_ours(client, look), run_theirs(theirs, look)
                    assert outcome(mine) == outcome(other), (setup[2:], said, table)
    client.run("ROLLBACK")
    client.close()
