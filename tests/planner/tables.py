"""The tables that the planner's DML, DDL and printing tests share, for our binder and for PostgreSQL."""

from __future__ import annotations

from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.parse import parse
from planner.statements import BoundStatement
from tests.support.catalog import MemoryCatalog

POSTGRES_DDL = """
CREATE TABLE t (a int4 PRIMARY KEY, b text DEFAULT 'x'::text, c numeric(10,2), d timestamp(3), e int4[],
                f varchar(10) UNIQUE, j jsonb, g bool, bp char(3));
CREATE TABLE s (id int4 PRIMARY KEY, y text, z int8);
CREATE VIEW v AS SELECT a, b FROM public.t;
"""


def make_catalog() -> MemoryCatalog:
    """Return the catalog with tables t and s and view v, as POSTGRES_DDL makes them."""
    catalog = MemoryCatalog()
    catalog.table(
        "t", "a int4 pk", "b text default 'x'::text", "c numeric(10,2)", "d timestamp(3)", "e int4[]",
        "f varchar(10) unique", "j jsonb", "g bool", "bp char(3)",
    )  # fmt: skip
    catalog.table("s", "id int4 pk", "y text", "z int8")
    catalog.view("v", "SELECT a, b FROM public.t", "a int4", "b text")
    return catalog


def bind(sql: str, catalog: MemoryCatalog | None = None, params: tuple[int, ...] = ()) -> BoundStatement:
    """Parse and bind one statement over the shared tables."""
    [parsed] = parse(sql)
    return bind_statement(
        parsed.statement, parsed.text, catalog or make_catalog(), ("public",), param_types=params
    )


def report(error: SqlError) -> str:
    """Return an error as the scripts show it: SQLSTATE, message, position, detail, hint."""
    lines = [f"{error.sqlstate} {error.message}"]
    if error.span is not None:
        lines[0] += f" @{error.span.start + 1}"
    if error.detail:
        lines.append(f"DETAIL: {error.detail}")
    if error.hint:
        lines.append(f"HINT: {error.hint}")
    return "\n".join(lines)
