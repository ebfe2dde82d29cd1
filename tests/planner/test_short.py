"""Which statements compute little: what goes without a strand, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from planner.evaluate.short import is_short
from tests.planner.tables import bind

SHORT = (
    "SELECT $1::int4::int8",
    "SELECT $1::int8::int4",
    "SELECT $1::int4::numeric(12,2)",
    "SELECT $1::text::varchar(20)",
    "SELECT $1::timestamptz + interval '1 day'",
    "SELECT $1::int4 + 1 < 7",
    "SELECT now()",
    "SELECT CURRENT_TIMESTAMP::timestamp, CURRENT_USER",
)
LONG = (
    "SELECT $1::text ~ 'x'",
    "SELECT repeat($1, 9)",
    "SELECT $1::text::jsonb",
    "SELECT $1::numeric ^ 2.0",
    "SELECT (SELECT $1::int4)",
    "SELECT * FROM generate_series(1, $1::int4)",
    "SELECT " + ", ".join(["$1::int4"] * 300),
    "SELECT $1::text[]::varchar(3)[]",
)


@pytest.mark.parametrize("sql", SHORT)
def test_what_computes_little_is_short(sql: str) -> None:
    assert is_short(bind(sql).statement)


def test_the_query_that_is_known_to_be_is_not_looked_at() -> None:
    statement: Any = bind("SELECT repeat($1, 9)").statement
    assert is_short(statement, but=statement.query)
    assert not is_short(statement, *statement.query.targets, but=statement.query)


@pytest.mark.parametrize("sql", LONG)
def test_what_may_take_long_is_not(sql: str) -> None:
    assert not is_short(bind(sql).statement)
