"""Inverted indexes: what they serve, that they read few rows for it, what they lock, how they are built and survive."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess
from tests.support.store import tear_away, tiny_limits
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions
from txn.transaction.transaction import StoreTransaction


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE EXTENSION IF NOT EXISTS btree_gin")
    made.run("CREATE TABLE papers (id int PRIMARY KEY, tags text[], doc jsonb, gone boolean DEFAULT false)")
    yield made
    made.run("DROP TABLE papers")
    made.close()


def plan(client: FieldsClient, sql: str) -> str:
    return "\n".join(str(row[0]) for row in client.run("EXPLAIN " + sql).rows)


@pytest.mark.parametrize(
    ("index", "served", "not_served"),
    [
        (
            "(tags)",
            [
                "tags @> '{a}'",
                "tags && '{a}'",
                "tags <@ '{a}'",
                "'{a}' <@ tags",
                "tags = '{a}'",
                "'a' = ANY (tags)",
            ],
            [
                "tags <> '{a}'",
                "tags < '{a}'",
                "'a' = ALL (tags)",
                "'a' <> ANY (tags)",
                "tags @> ARRAY[doc ->> 'a']",
            ],
        ),
        (
            "(doc)",
            ["doc @> '{\"a\": 1}'", "'{\"a\": 1}' <@ doc", "doc ? 'a'", "doc ?| '{a,b}'", "doc ?& '{a,b}'"],
            ["doc <@ '{\"a\": 1}'", "doc -> 'a' ? 'b'", "doc = '{}'"],
        ),
        ("(doc jsonb_path_ops)", ["doc @> '{\"a\": 1}'"], ["doc ? 'a'", "doc ?| '{a}'", "doc ?& '{a}'"]),
        (
            "((doc -> 'k')) WHERE NOT gone",
            ["doc -> 'k' ? 'a' AND NOT gone", "doc->'k' @> '1' AND gone = false"],
            ["doc -> 'k' ? 'a'", "doc -> 'l' ? 'a' AND NOT gone", "doc ? 'a' AND NOT gone"],
        ),
    ],
)
def test_what_an_index_serves(
    client: FieldsClient, index: str, served: list[str], not_served: list[str]
) -> None:
    client.run(f"CREATE INDEX papers_gin ON papers USING gin {index}")
    for condition in served:
        for sql in (f"SELECT id FROM papers WHERE {condition}", f"DELETE FROM papers WHERE {condition}"):
            assert "Index Scan using papers_gin on papers" in plan(client, sql), sql
    for condition in not_served:
        assert "papers_gin" not in plan(client, f"SELECT id FROM papers WHERE {condition}"), condition


def test_of_several_conditions_the_one_that_says_most_is_looked_up(client: FieldsClient) -> None:
    client.run("CREATE INDEX papers_doc ON papers USING gin (doc)")
    client.run("CREATE INDEX papers_tags ON papers USING gin (tags)")
    shown = plan(client, "SELECT id FROM papers WHERE doc ? 'a' AND tags @> '{a}' AND doc ?| '{b}'")
    assert "using papers_tags" in shown


def test_an_index_over_several_columns_serves_each_of_them(client: FieldsClient) -> None:
    client.run("CREATE INDEX papers_all ON papers USING gin (tags, doc jsonb_path_ops, id) WHERE NOT gone")
    served = {
        "tags @> '{a}'": "Index Scan using papers_all on papers",
        "doc @> '{\"a\": 1}'": "Index Scan using papers_all on papers",
        "abs(id) = 7": "",
        "doc ? 'a'": "",
    }
    for condition, shown in served.items():
        found = plan(client, f"SELECT id FROM papers WHERE {condition} AND NOT gone")
        assert (shown or "papers_all") in found if shown else "papers_all" not in found, condition
        assert "papers_all" not in plan(client, f"SELECT id FROM papers WHERE {condition}")
    client.run("CREATE TABLE notes (n int, tags text[])")
    try:
        client.run("CREATE INDEX notes_both ON notes USING gin (n, tags)")
        for condition in ("n = 7", "n IN (7, 8)", "n > 7 AND n < 9", "tags @> '{a}'"):
            assert "notes_both" in plan(client, f"SELECT * FROM notes WHERE {condition}"), condition
        assert "notes_both" not in plan(client, "SELECT * FROM notes ORDER BY n LIMIT 1")
    finally:
        client.run("DROP TABLE notes")


def test_every_route_gives_the_same_rows(client: FieldsClient) -> None:
    client.run(
        "INSERT INTO papers SELECT i, CASE WHEN i % 5 > 0 THEN ARRAY['t' || i % 30, 'u' || i % 7] END FROM generate_series(1, 400) i"
    )
    client.run("CREATE INDEX ON papers USING gin (tags)")
    asked = "SELECT id FROM papers WHERE 't3' = ANY (tags) ORDER BY id"
    assert "Index Scan" in plan(client, asked)
    found = client.run(asked).rows
    assert len(found) == 14
    for route in ("index", "local"):
        client.run(f"SET executor = {route}")
        assert client.run(asked).rows == found
    client.run("RESET executor")
    client.run("SET verify_executors = on")
    assert client.run(asked).rows == found


def test_rows_are_locked_by_what_was_looked_for(client: FieldsClient, server: ServerProcess) -> None:
    client.run("CREATE INDEX ON papers USING gin (tags)")
    client.run("INSERT INTO papers VALUES (1, '{a}'), (2, '{b}')")
    other = connect(server.port)
    client.run("BEGIN")
    client.run("SELECT id FROM papers WHERE tags @> '{a}' FOR UPDATE")
    assert other.run("SELECT id FROM papers WHERE tags @> '{b}' FOR UPDATE").rows == [("2",)]
    assert other.run("INSERT INTO papers VALUES (3, '{c}')").tag == "INSERT 0 1"
    assert other.fails("SELECT id FROM papers WHERE tags && '{a,b}' FOR UPDATE NOWAIT")["sqlstate"] == "55P03"
    assert other.run("SELECT id FROM papers WHERE tags && '{a,b}' FOR UPDATE SKIP LOCKED").rows == [("2",)]
    client.run("COMMIT")
    other.close()


def test_two_that_count_an_entry_and_add_one_do_not_both_commit(
    client: FieldsClient, server: ServerProcess
) -> None:
    client.run("CREATE INDEX ON papers USING gin (tags)")
    other = connect(server.port)
    for one in (client, other):
        one.run("BEGIN")
        assert one.run("SELECT count(*) FROM papers WHERE tags @> '{free}'").rows == [("0",)]
    client.run("INSERT INTO papers VALUES (1, '{free,x}')")
    client.run("COMMIT")
    assert other.fails("INSERT INTO papers VALUES (2, '{y,free}')")["sqlstate"] == "40001"
    other.run("ROLLBACK")
    other.close()


@pytest.mark.parametrize(
    ("key", "looked_for", "added", "shown"),
    [
        ("gin (tags)", "tags @> '{red}'", "(2, '{blue,red}')", "(tags = red)"),
        ("gin (tags)", "tags <@ '{}'", "(2, '{}')", "(tags = null)"),
        ("gin (doc)", "doc ? 'a'", "(2, NULL, '{\"a\": 1}')", "(doc = "),
        ("gin (gone, tags)", "tags @> '{red}'", "(2, '{blue,red}')", "(tags = red)"),
        ("gist (int4range(id, id + 5))", "int4range(id, id + 5) @> 4", "(2)", "int4range"),
    ],
)
def test_who_waits_for_what_was_looked_for_is_told_so(
    client: FieldsClient, server: ServerProcess, key: str, looked_for: str, added: str, shown: str
) -> None:
    client.run(f"CREATE INDEX papers_key ON papers USING {key}")
    other = connect(server.port)
    client.run("BEGIN")
    client.run("INSERT INTO papers VALUES (100)")
    client.run(f"SELECT id FROM papers WHERE {looked_for}")
    other.run("SET lock_timeout = 20")
    error = other.fails(f"INSERT INTO papers VALUES {added}")
    assert error["sqlstate"] == "55P03"
    assert shown in error["detail"]
    assert "papers_key" in error["detail"]
    other.close()
    client.run("COMMIT")


# --- within one process -----------------------------------------------------------------------------


def test_a_look_up_reads_few_rows_hot_and_cold() -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int PRIMARY KEY, tags int[], doc jsonb)")
        await session.run(
            "INSERT INTO t SELECT i, ARRAY[i % 100, 1000 + i % 3], jsonb_build_object('k', i % 100, 'c', 'x') "
            "FROM generate_series(1, 3000) i"
        )
        await session.run("CREATE INDEX a ON t USING gin (tags)")
        await session.run("CREATE INDEX b ON t USING gin (doc)")
        await session.run("CREATE INDEX c ON t USING gin (doc jsonb_path_ops)")
        seen: list[int] = []
        plain = StoreTransaction.lookup

        def counted(self: Any, *arguments: Any, **how: Any) -> Any:
            found = plain(self, *arguments, **how)
            if isinstance(found, list):
                seen.append(len(found))
                return found

            async def later() -> Any:
                rows = await found
                seen.append(len(rows))
                return rows

            return later()

        asked = {
            "tags @> '{1000, 7}'": 10,
            "tags && '{7, 8}'": 60,
            "tags <@ '{7, 1001}'": 10,
            "7 = ANY (tags)": 30,
            'doc @> \'{"c": "x", "k": 7}\'': 30,
        }
        for _cold in (False, True):
            for condition, count in asked.items():
                with (
                    mock.patch.object(
                        StoreTransaction, "scan", side_effect=AssertionError("the table was scanned")
                    ),
                    mock.patch.object(StoreTransaction, "lookup", counted),
                ):
                    rows = await session.run(f"SELECT id FROM t WHERE {condition}")
                assert len(rows) == count, condition
                least = {"tags @> '{1000, 7}'": 30, "tags <@ '{7, 1001}'": 1020}.get(condition, count)
                assert seen.pop() == least
            await session.run("CHECKPOINT")
        # what most rows have is left to a scan
        await session.run("SET executor = 'index'")
        assert await session.run("SELECT count(*) FROM t WHERE doc ? 'c'") == [("3000",)]
        assert not seen
        await database.close()

    run(go)


@pytest.mark.parametrize("seed", range(6))
def test_an_index_is_there_as_a_whole_after_a_crash_or_not_at_all(seed: int) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk = MemoryDisk()
        database = await open_database(disk)
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int PRIMARY KEY, tags text[], doc jsonb)")
        await session.run(
            "INSERT INTO t SELECT i, ARRAY['a', 'b' || i], '{\"a\": 1}' FROM generate_series(1, 9) i"
        )
        if seed % 2:
            await session.run("CHECKPOINT")
        disk.crash_at_step = disk.steps + rng.randrange(1, 30)
        done = 0
        try:
            await session.run("CREATE INDEX ta ON t USING gin (tags)")
            done = 1
            await session.run("CREATE INDEX td ON t USING gin ((doc -> 'a'), tags) WHERE id > 2")
            done = 2
            await session.run("UPDATE t SET tags = '{c}' WHERE id = 5")
            done = 3
        except Failed:
            pass
        await tear_away(database.store, disk)
        database = await open_database(disk, TxnOptions())
        database.store.validate()
        session = Session(database, 2)
        named = [
            n
            for (n,) in await session.run("SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1")
        ]
        assert "ta" in named or done < 1
        assert "td" in named or done < 2
        [(changed,)] = await session.run("SELECT count(*) FROM t WHERE tags || '{}' = '{c}'")
        assert changed == "1" or done < 3
        for condition, count in (
            ("tags @> '{a}'", 9 - int(str(changed))),
            ("doc -> 'a' @> '1' AND id > 2", 7),
        ):
            assert await session.run(f"SELECT count(*) FROM t WHERE {condition}") == [(str(count),)]
        if "ta" in named:
            shown = await session.run("EXPLAIN SELECT id FROM t WHERE tags @> '{a}'")
            assert any("using ta" in str(line) for line in shown)
        await database.close()

    with tiny_limits(), mock.patch("txn.wal.txns._RETRY_S", 0.0001):
        run(go)
