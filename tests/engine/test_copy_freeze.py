"""COPY FREEZE keeps PostgreSQL's rules, subtransactions included, though it changes nothing; and is refused behind CopyInResponse."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.server import ServerProcess

OLD = "the table was not created or truncated in the current subtransaction"
CASES = {
    "an old table": (["BEGIN"], "55000"),
    "outside a block": ([], "55000"),
    "truncated": (["BEGIN", "TRUNCATE frozen"], None),
    "created": (["BEGIN", "DROP TABLE frozen", "CREATE TABLE frozen (a int)"], None),
    "truncated before a savepoint": (["BEGIN", "TRUNCATE frozen", "SAVEPOINT s"], "55000"),
    "truncated in a savepoint": (["BEGIN", "SAVEPOINT s", "TRUNCATE frozen"], None),
    "truncated in one that was released": (["BEGIN", "SAVEPOINT s", "TRUNCATE frozen", "RELEASE s"], None),
    "released, and another savepoint": (["BEGIN", "SAVEPOINT s", "TRUNCATE frozen", "RELEASE s", "SAVEPOINT t"], "55000"),
    "truncation undone": (["BEGIN", "SAVEPOINT s", "TRUNCATE frozen", "ROLLBACK TO s"], "55000"),
    "undone, but truncated before": (["BEGIN", "TRUNCATE frozen", "SAVEPOINT s", "TRUNCATE frozen", "ROLLBACK TO s", "RELEASE s"], None),
    "in the transaction before": (["BEGIN", "TRUNCATE frozen", "COMMIT", "BEGIN"], "55000"),
    "an open cursor": (["BEGIN", "TRUNCATE frozen", "DECLARE c CURSOR FOR SELECT 1"], "25000"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("data", ["1\n", ""])
def test_freeze_is_refused_where_postgresql_refuses_it(server: ServerProcess, name: str, data: str) -> None:
    before, sqlstate = CASES[name]
    server.sql("CREATE TABLE frozen (a int); INSERT INTO frozen VALUES (1)")
    found = said = None
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for sql in before:
                connection.execute(sql)
            try:
                with connection.cursor().copy("COPY frozen FROM STDIN (FREEZE)") as copy:  # it answers
                    if data:
                        copy.write(data)
            except psycopg.Error as error:
                found, said = error.sqlstate, str(error)
    finally:
        server.sql("DROP TABLE frozen")
    assert found == sqlstate
    assert found != "55000" or OLD in str(said)
