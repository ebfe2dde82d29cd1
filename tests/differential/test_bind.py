"""The binder against PostgreSQL 15: the same description of every query, or the same error.

Composite types of tables are compared as ``record``: they have no oids of their own here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgwire.codecs.errors import DataError
from planner.bind import bind_statement
from planner.facts import RECORD
from planner.parse import parse
from tests.support.catalog import MemoryCatalog
from tests.support.postgres import postgres  # noqa: F401

QUERIES = Path(__file__).with_name("bind_queries.sql")
FIRST_USER_OID = 16384

TABLES = {
    "emp": ("id int4 pk", "name text", "salary numeric(10,2)", "dept int4", "hired date"),
    "dept": ("id int4 pk", "name varchar(20)", "boss int4"),
    "t1": (
        "a int4", "b text", "c float8", "d bool", "e timestamptz", "f timestamp", "g interval", "h int8", "i int2",
        "j jsonb", "k json", "l uuid", "m bytea", "n char(5)", "o int4[]", "p text[]", "q float4", "r time",
        "s numeric",
    ),
    "t2": ("a int4", "b text", "z int4"),
}  # fmt: skip
VIEWS = {
    "v": ("SELECT emp.id, emp.name FROM public.emp", ("id int4", "name text")),
    "v2": (
        "SELECT e.id, d.name AS dname, count(*) AS n FROM public.emp e JOIN public.dept d ON e.dept = d.id "
        "GROUP BY e.id, d.name",
        ("id int4", "dname varchar(20)", "n int8"),
    ),
}


def _catalog() -> MemoryCatalog:
    catalog = MemoryCatalog()
    for name, columns in TABLES.items():
        catalog.table(name, *columns)
    catalog.add_schema("s2")
    catalog.table("t1", "a text", schema="s2")
    for name, (sql, columns) in VIEWS.items():
        catalog.view(name, sql, *columns)
    return catalog


CATALOG = _catalog()


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:  # noqa: F811
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name, columns in TABLES.items():
            listed = ", ".join(column.replace(" pk", " PRIMARY KEY") for column in columns)
            connection.execute(f"CREATE TABLE {name} ({listed})")
        connection.execute("CREATE SCHEMA s2")
        connection.execute("CREATE TABLE s2.t1 (a text)")
        for name, (sql, _) in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
        yield connection


def described_by_server(connection: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    raw = connection.pgconn
    result = raw.prepare(b"q", query.encode())
    if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
        fields = [(result.error_field(code) or b"").decode() for code in (67, 77, 68, 72, 80)]
        return ("error", *fields)
    result = raw.describe_prepared(b"q")
    columns = tuple(
        (
            (result.fname(i) or b"").decode(),
            RECORD if result.ftype(i) >= FIRST_USER_OID else result.ftype(i),
            result.fmod(i),
            result.ftable(i) != 0,
            result.ftablecol(i),
        )
        for i in range(result.nfields)
    )
    parameters = tuple(result.param_type(i) for i in range(result.nparams))
    raw.exec_(b"DEALLOCATE q")
    return ("ok", columns, parameters)


def described_by_us(query: str) -> tuple[Any, ...]:
    try:
        (parsed,) = parse(query)
        bound = bind_statement(
            parsed.statement, parsed.text, CATALOG, ("pg_catalog", "public"), database="postgres"
        )
    except DataError as error:
        span = getattr(error, "span", None)
        position = str(span.start + 1) if span is not None else ""
        return ("error", error.sqlstate, error.message, error.detail or "", error.hint or "", position)
    columns = tuple(
        (column.name, column.type.oid, column.type.typmod, column.table_oid != 0, column.attnum)
        for column in bound.columns or ()
    )
    return ("ok", columns, bound.params)


def test_queries_are_described_as_by_postgresql(server: psycopg.Connection[Any]):
    queries = [line for line in QUERIES.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert len(queries) > 500
    differing = []
    for query in queries:
        theirs, ours = described_by_server(server, query), described_by_us(query)
        if theirs != ours:
            differing.append(f"{query}\n  postgresql {theirs}\n  ours       {ours}")
    assert not differing, "\n".join(differing)
