"""What indexes keep in tables: places are used again when an index has gone, which no reader of earlier rows notices."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from sqllogictest.client import Client, ServerError
from tests.support.durable import run
from tests.support.engine import Session, open_database
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk

NUMBERS = (
    "SELECT attname, attnum FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0 ORDER BY attnum"
)
TABLES = ("hot", "flushed")


def test_an_index_after_another_keeps_values_of_another_type(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    client = server.connect()
    before = {table: _change(client, table) for table in TABLES}
    _look(client)
    for table, then in before.items():
        past = f"FROM {table} AS OF SYSTEM TIME {then}"
        assert client.run(f"SELECT count(*) {past}").rows == [("9",)]
        assert client.run(f"SELECT id, a {past} WHERE lower(a) = 'b3'").rows == [("3", "B3")]
    client.close()
    server.kill()
    server = ServerProcess(tmp_path)
    try:
        with closing(server.connect()) as client:
            _look(client)
    finally:
        server.stop()


def _change(client: Client, table: str) -> str:
    """Put an index over numbers in the place of one over texts; return the timestamp before that."""
    client.run(f"CREATE TABLE {table} (id int PRIMARY KEY, a text)")
    client.run(f"INSERT INTO {table} SELECT i, 'A' || i FROM generate_series(1, 9) i")
    client.run(f"CREATE INDEX ON {table} (lower(a))")
    client.run(f"UPDATE {table} SET a = 'B3' WHERE id = 3")
    if table == "flushed":
        client.run(f"VACUUM {table}")
    [(then,)] = client.run("SELECT read_ts FROM holdfast_oracle").rows
    client.run(f"DROP INDEX {table}_lower_idx")
    client.run(f"INSERT INTO {table} VALUES (10, 'A10')")
    for sql in (
        "BEGIN", f"CREATE INDEX ON {table} ((id * 2)) WHERE a > 'A5'", "ROLLBACK",
        f"ALTER TABLE {table} ADD c int DEFAULT 7",
    ):  # fmt: skip
        client.run(sql)
    with pytest.raises(ServerError, match="could not create unique index"):
        client.run(f"CREATE UNIQUE INDEX ON {table} ((id / 2))")
    client.run(f"CREATE INDEX {table}_n ON {table} ((id * 2))")
    client.run(f"UPDATE {table} SET c = 8 WHERE id = 4")
    if table == "flushed":
        client.run(f"VACUUM {table}")
    return str(then)


def _look(client: Client) -> None:
    for table in TABLES:
        assert client.run(NUMBERS.format(table)).rows == [("id", "1"), ("a", "2"), ("c", "3")]
        found = client.run(f"SELECT id, a, c FROM {table} WHERE id * 2 = 8").rows
        assert found == [("4", "A4", "8")]
        plan = client.run(f"EXPLAIN SELECT id FROM {table} WHERE id * 2 = 8").rows
        assert any(f"using {table}_n" in str(line) for line in plan)


def test_places_are_used_again() -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int, a text)")
        for _ in range(30):
            await session.run("CREATE INDEX ti ON t (lower(a), (id + 1)) WHERE id > 0")
            await session.run("DROP INDEX ti")
        await session.run("ALTER TABLE t ADD c int")
        assert await session.run(NUMBERS.format("t")) == [("id", "1"), ("a", "2"), ("c", "3")]
        [table] = [item for item in session.connection.session.catalog.user_relations() if item.name == "t"]
        assert len(table.columns) == 5  # of three of its own, and two of the index

    run(go)
