"""Asks PostgreSQL and the row executor the same thing, in texts."""

from __future__ import annotations

from typing import Any

import psycopg

from pgwire.codecs.errors import DataError
from tests.engine.index.harness import Database

Answer = Any


def connect(dsn: str, database: Database) -> psycopg.Connection[Any]:
    """Connect and create the tables."""
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public; SET timezone = 'UTC'")
    for statement in database.ddl:
        connection.pgconn.exec_(statement.encode())
    return connection


def theirs(connection: psycopg.Connection[Any], sql: str) -> Answer:
    """Return PostgreSQL's rows, or its (SQLSTATE, message)."""
    result = connection.pgconn.exec_(sql.encode())
    if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
        fields = psycopg.pq.DiagnosticField
        state, message = result.error_field(fields.SQLSTATE), result.error_field(fields.MESSAGE_PRIMARY)
        return ((state or b"").decode(), (message or b"").decode())
    cells = [[result.get_value(i, j) for j in range(result.nfields)] for i in range(result.ntuples)]
    return [tuple(None if c is None else bytes(c).decode() for c in row) for row in cells]


def ours(database: Database, sql: str, *, cold: bool = False) -> Answer:
    """Return the row executor's rows, or its (SQLSTATE, message)."""
    try:
        return database.run(sql, cold=cold)
    except DataError as error:
        return (error.sqlstate, error.message)


def same(sql: str, mine: Answer, other: Answer) -> bool:
    """Tell whether the answers agree; as multisets unless the query orders its rows."""
    if isinstance(mine, tuple) or isinstance(other, tuple):
        return bool(mine == other)
    ordered = "order by" in sql.lower().rsplit(")", 1)[-1]
    return bool(mine == other if ordered else sorted(mine, key=repr) == sorted(other, key=repr))


def differences(dsn: str, database: Database, queries: list[str], *, cold: bool = False) -> list[str]:
    """Return a description of every query whose answers differ."""
    out = []
    connection = connect(dsn, database)
    try:
        for sql in queries:
            want, got = theirs(connection, sql), ours(database, sql, cold=cold)
            if not same(sql, got, want):
                out.append(f"{sql}\n    PostgreSQL: {want}\n    Holdfast:   {got}")
    finally:
        connection.close()
    return out
