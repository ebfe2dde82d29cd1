"""Queries with locking clauses answer as the same queries do on PostgreSQL (a single session: nothing waits)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

SETUP = """
DROP TABLE IF EXISTS fu_item, fu_shop CASCADE;
CREATE TABLE fu_shop (id int PRIMARY KEY, city text);
CREATE TABLE fu_item (id int PRIMARY KEY, shop int, price numeric, name text);
INSERT INTO fu_shop SELECT n, chr(96 + n % 5 + 1) FROM generate_series(1, 12) n;
INSERT INTO fu_item SELECT n, n % 12 + 1, n * 1.5, 'item ' || n FROM generate_series(1, 60) n;
CREATE INDEX fu_item_shop ON fu_item (shop, id);
CREATE VIEW fu_cheap AS SELECT id, name FROM fu_item WHERE price < 30;
"""

QUERIES = [
    "SELECT * FROM fu_item WHERE id = 7 FOR UPDATE",
    "SELECT * FROM fu_item WHERE id IN (3, 5, 99) ORDER BY id FOR NO KEY UPDATE",
    "SELECT id FROM fu_item WHERE shop = 3 ORDER BY id DESC LIMIT 2 FOR UPDATE",
    "SELECT id FROM fu_item WHERE shop = 3 ORDER BY id LIMIT 2 OFFSET 1 FOR UPDATE SKIP LOCKED",
    "SELECT id FROM fu_item ORDER BY price DESC FETCH FIRST 3 ROWS ONLY FOR SHARE",
    "SELECT id FROM fu_item ORDER BY shop FETCH FIRST 2 ROWS WITH TIES FOR KEY SHARE",
    "SELECT i.id, s.city FROM fu_item i JOIN fu_shop s ON s.id = i.shop WHERE s.city = 'c' ORDER BY 1 FOR UPDATE",
    "SELECT i.id, s.city FROM fu_item i JOIN fu_shop s ON s.id = i.shop WHERE i.id < 9 ORDER BY 1 FOR UPDATE OF i NOWAIT",
    "SELECT s.id, i.id FROM fu_shop s LEFT JOIN fu_item i ON i.shop = s.id AND i.id < 4 ORDER BY 1, 2 FOR UPDATE OF s",
    "SELECT s.id FROM fu_shop s WHERE EXISTS (SELECT 1 FROM fu_item i WHERE i.shop = s.id AND i.id < 5 FOR SHARE) ORDER BY 1",
    "SELECT (SELECT name FROM fu_item i WHERE i.shop = s.id ORDER BY id LIMIT 1 FOR UPDATE) FROM fu_shop s ORDER BY s.id",
    "SELECT * FROM fu_cheap WHERE id > 15 ORDER BY 1 FOR UPDATE",
    "SELECT * FROM (SELECT id, shop FROM fu_item WHERE id < 6) x, fu_shop s WHERE s.id = x.shop ORDER BY x.id FOR UPDATE",
    "WITH few AS (SELECT id FROM fu_item ORDER BY id LIMIT 4 FOR UPDATE SKIP LOCKED) SELECT sum(id) FROM few",
    "SELECT count(*) FROM (SELECT id FROM fu_item WHERE price > 20 FOR SHARE) x",
    "SELECT id, ctid IS NOT NULL, i::text FROM fu_item i WHERE id = 2 FOR UPDATE",
    "SELECT 1 FROM fu_shop FOR UPDATE LIMIT 0",
    "SELECT id FROM fu_shop ORDER BY id FOR UPDATE LIMIT 2",
    "UPDATE fu_item SET price = 0 WHERE id = (SELECT id FROM fu_item WHERE shop = 5 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, price",
    "DELETE FROM fu_item WHERE id IN (SELECT id FROM fu_item WHERE price > 80 FOR UPDATE SKIP LOCKED) RETURNING id",
    "INSERT INTO fu_shop SELECT id + 100, city FROM fu_shop WHERE id > 10 FOR UPDATE RETURNING *",
    "SELECT id FROM fu_shop WHERE id > 100 ORDER BY id FOR UPDATE SKIP LOCKED",
    "SELECT id, price FROM fu_item WHERE price = 0 FOR UPDATE NOWAIT",
]  # fmt: skip


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    server = ServerProcess(tmp_path_factory.mktemp("locking"))
    with psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres", autocommit=True) as connection:
        yield connection
    assert server.stop() == 0


def answers(connection: psycopg.Connection, *, flush: bool) -> list[object]:
    """Run all in one block, so that later queries meet locks and rows of earlier ones."""
    for statement in SETUP.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    if flush:
        connection.execute("VACUUM fu_item")
    found: list[object] = []
    with connection.transaction(force_rollback=True):
        for query in QUERIES:
            found.append(sorted(map(str, connection.execute(query).fetchall())))
    return found


@pytest.mark.parametrize("flush", [False, True], ids=["hot", "parts"])
def test_locking_queries_answer_as_postgresql(ours: psycopg.Connection, postgres: str, flush: bool) -> None:
    with psycopg.connect(postgres, autocommit=True) as theirs:
        expected = answers(theirs, flush=flush)
        theirs.execute("DROP TABLE fu_item, fu_shop CASCADE")
    actual = answers(ours, flush=flush)
    wrong = [(q, e, a) for q, e, a in zip(QUERIES, expected, actual, strict=True) if e != a]
    assert not wrong
