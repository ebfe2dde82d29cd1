"""What functions and types have to say beside their results is what PostgreSQL 15 says: severity, SQLSTATE and message, in order."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

STATEMENTS = [
    "SELECT to_tsquery('english', 'the'), plainto_tsquery('english', 'the a'), phraseto_tsquery('english', '!!')",
    "SELECT to_tsquery(''), plainto_tsquery(''), websearch_to_tsquery('or'), websearch_to_tsquery('')",
    "SELECT to_tsquery('english', w) FROM (VALUES ('the'), ('cat'), ('a')) v(w)",
    "SELECT ''::tsquery",
    "DO $$ DECLARE x tsquery; BEGIN x := to_tsquery('english', 'the'); x := ''; END $$",
    "SELECT timestamp(7) '2000-01-01', time(8) with time zone '10:00+0', interval(9) '1 s'",
    "SELECT current_timestamp(8) > 'epoch', localtime(7) >= '00:00', CAST('2000-01-01' AS timestamp(9))",
    "CREATE DOMAIN pg_temp.d AS timestamptz(8)",
    "CREATE TEMP TABLE t (a text); ALTER TABLE t ALTER a SET STATISTICS 20000",
    "SET client_min_messages = warning; SELECT to_tsquery('english', 'a'), now()::time(7) IS NULL",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_notices_are_postgresql_s(sql: str, postgres: str, server: ServerProcess) -> None:
    mine = heard(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", sql)
    assert mine == heard(postgres, sql)
    assert mine


def heard(dsn: str, sql: str) -> list[tuple[str | None, str | None, str | None]]:
    """Return the notices of a statement."""
    found: list[tuple[str | None, str | None, str | None]] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.add_notice_handler(
            lambda said: found.append((said.severity_nonlocalized, said.sqlstate, said.message_primary))
        )
        connection.execute(sql)
    return found
