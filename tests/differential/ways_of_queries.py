"""A query of a script in the ways in which it can be asked: all of them give the rows that it gives by itself.

    extended     prepared without a name, run by the extended protocol
    cursor       DECLARE, FETCH ALL
    WITH         as the only item of a query
    table        CREATE TABLE AS
    materialized CREATE MATERIALIZED VIEW
    COPY         COPY (query) TO STDOUT
    SQL          a function that returns rows of a view of it
    PL/pgSQL     RETURN QUERY

What a way refuses, PostgreSQL refuses with the same SQLSTATE. The view ``kept_view`` is there, which names the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from tests.differential.compare_generated import Answer, answer_of, ask

Connection = psycopg.Connection[Any]
Rows = tuple[str, list[str]]
UNSUPPORTED = "0A000"


def shown(answer: Answer) -> Rows:
    """Return an answer as what is compared: its SQLSTATE, its rows in any order."""
    return answer.state, sorted(map(repr, answer.rows))


def _extended(connection: Connection, sql: str, names: str) -> Rows:
    made = answer_of(connection.pgconn.prepare(b"", sql.encode()))
    return shown(made if made.state else answer_of(connection.pgconn.exec_prepared(b"", None)))


def _after(first: str, second: str) -> Callable[[Connection, str, str], Rows]:
    """Return the way that runs one statement and then asks another; ``{0}`` is the query, ``{1}`` the names of its columns."""

    def way(connection: Connection, sql: str, names: str) -> Rows:
        made = ask(connection, first.replace("{1}", names).replace("{0}", sql)) if first else Answer()
        return shown(
            made if made.state else ask(connection, second.replace("{1}", names).replace("{0}", sql))
        )

    return way


def _copied(connection: Connection, sql: str, names: str) -> Rows:
    try:
        with connection.cursor().copy(f"COPY ({sql}) TO STDOUT".encode()) as copy:
            return "", sorted(map(repr, copy.rows()))
    except psycopg.Error as error:
        return error.sqlstate or "?", []


WAYS = {
    "extended": _extended,
    "cursor": _after("DECLARE kept_cursor CURSOR FOR {0}", "FETCH ALL FROM kept_cursor"),
    "WITH": _after("", "WITH kept_rows {1} AS ({0}) SELECT * FROM kept_rows"),
    "table": _after("CREATE TABLE kept_table {1} AS {0}", "SELECT * FROM kept_table"),
    "materialized": _after("CREATE MATERIALIZED VIEW kept_rows {1} AS {0}", "SELECT * FROM kept_rows"),
    "COPY": _copied,
    "SQL": _after(
        "CREATE FUNCTION kept_rows() RETURNS SETOF kept_view LANGUAGE sql AS $kept${0}$kept$",
        "SELECT * FROM kept_rows()",
    ),
    "PL/pgSQL": _after(
        "CREATE FUNCTION kept_rows() RETURNS SETOF kept_view LANGUAGE plpgsql AS $kept$ BEGIN RETURN QUERY {0}; END $kept$",
        "SELECT * FROM kept_rows()",
    ),
}


def asked_in_all_ways(
    ours: Connection, theirs: Connection, sql: str, names: str, rows: Rows, ends: Counter[str]
) -> Iterator[tuple[str, str]]:
    """Yield the ways in which a query gives something else than ``rows``, each with what was said; PostgreSQL is asked about these."""
    for name, way in WAYS.items():
        mine = _spared(ours, way, sql, names)
        if mine == rows:
            ends[f"{name}: equal"] += 1
            continue
        other = _spared(theirs, way, sql, names)
        if mine[0] == other[0] and (mine[0] or mine == other):
            ends[f"{name}: as PostgreSQL"] += 1
        elif mine[0] == UNSUPPORTED:
            ends[f"{name}: refused"] += 1
        else:
            yield f"way {name}", f"{rows}\n{mine}\n{other}"


def _spared(
    connection: Connection, way: Callable[[Connection, str, str], Rows], sql: str, names: str
) -> Rows:
    ask(connection, "SAVEPOINT way")
    found = way(connection, sql, names)
    ask(connection, "ROLLBACK TO way")
    ask(connection, "RELEASE way")
    return found
