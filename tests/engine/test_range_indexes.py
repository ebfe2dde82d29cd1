"""Indexes of ranges (gist, spgist): what they serve, that they read few rows for it, when the table is read instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from engine.executors.index.access.candidates import FEW_ROWS
from tests.support.durable import run
from tests.support.engine import Session, open_database
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk
from txn.transaction.transaction import StoreTransaction


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE TABLE stays (id int PRIMARY KEY, during daterange, gone boolean DEFAULT false)")
    yield made
    made.run("DROP TABLE stays")
    made.close()


def plan(client: FieldsClient, sql: str) -> str:
    return "\n".join(str(row[0]) for row in client.run("EXPLAIN " + sql).rows)


WEEK = "daterange('2024-01-01', '2024-01-08')"


@pytest.mark.parametrize("method", ["gist", "spgist"])
def test_what_an_index_serves(client: FieldsClient, method: str) -> None:
    client.run(f"CREATE INDEX stays_during ON stays USING {method} (during) WHERE NOT gone")
    for condition in (
        f"during && {WEEK}", f"{WEEK} && during", f"during @> {WEEK}", f"{WEEK} <@ during", f"during <@ {WEEK}",
        f"{WEEK} @> during", f"during = {WEEK}", "during @> DATE '2024-01-01'", "DATE '2024-01-01' <@ during",
        "during @> (SELECT max(id) + DATE '2024-01-01' FROM stays)",
    ):  # fmt: skip
        for sql in (
            f"SELECT id FROM stays WHERE {condition} AND NOT gone",
            f"DELETE FROM stays WHERE {condition} AND NOT gone",
        ):
            assert "Index Scan using stays_during on stays" in plan(client, sql), sql
        assert "stays_during" not in plan(client, f"SELECT id FROM stays WHERE {condition}")
    for condition in (
        f"during << {WEEK}",
        f"during -|- {WEEK}",
        f"during < {WEEK}",
        "during @> CURRENT_DATE + id",
    ):
        assert "stays_during" not in plan(client, f"SELECT id FROM stays WHERE {condition} AND NOT gone"), (
            condition
        )


def test_a_wide_range_is_left_to_whoever_reads_whole_tables(client: FieldsClient) -> None:
    rows = FEW_ROWS * 3
    client.run(
        f"INSERT INTO stays SELECT i, daterange(DATE '2000-01-01' + i, DATE '2000-01-01' + i + 2) FROM generate_series(1, {rows}) i"
    )
    client.run("CREATE INDEX ON stays USING gist (during)")
    narrow, wide = (
        f"SELECT count(*) FROM stays WHERE during && daterange('2001-01-01', '{end}')"
        for end in ("2001-01-05", "2100-01-01")
    )
    assert "Route: index" in plan(client, narrow)
    assert "Route: local" in plan(client, wide)
    assert client.run(narrow).rows == [("5",)]
    counted = client.run(wide).rows
    for route in ("index", "local"):
        client.run(f"SET executor = {route}")
        assert client.run(narrow).rows == [("5",)]
        assert client.run(wide).rows == counted
    client.run("RESET executor")
    joined = "SELECT count(*) FROM stays a JOIN stays b ON a.during && b.during WHERE b.id IN (10, 20)"
    assert "Index Scan using stays_during_idx on stays a" in plan(client, joined)
    assert client.run(joined).rows == [("6",)]


def test_two_that_look_for_a_free_room_do_not_both_take_it(
    client: FieldsClient, server: ServerProcess
) -> None:
    client.run("CREATE INDEX ON stays USING gist (during)")
    other = connect(server.port)
    for one in (client, other):
        one.run("BEGIN")
        assert one.run(f"SELECT count(*) FROM stays WHERE during && {WEEK}").rows == [("0",)]
    client.run("INSERT INTO stays VALUES (1, '[2024-01-05,2024-03-01)')")
    client.run("COMMIT")
    assert other.fails("INSERT INTO stays VALUES (2, '[2023-01-01,2024-01-06)')")["sqlstate"] == "40001"
    other.run("ROLLBACK")
    other.close()


def test_indexes_serve_tables_of_other_timelines(client: FieldsClient) -> None:
    client.run("CREATE TIMELINE range_lookups")
    client.run(
        "CREATE TABLE elsewhere (id int PRIMARY KEY, r int4range, tags int[]) WITH (timeline = range_lookups)"
    )
    client.run("CREATE INDEX elsewhere_r ON elsewhere USING gist (r)")
    client.run("CREATE INDEX elsewhere_tags ON elsewhere USING gin (tags)")
    client.run("INSERT INTO elsewhere VALUES (1, '[1,5)', '{1}'), (2, '[7,9)', '{2}')")
    for condition, name in (("r && int4range(4, 6)", "elsewhere_r"), ("tags && '{1, 3}'", "elsewhere_tags")):
        sql = f"SELECT id FROM elsewhere WHERE {condition}"
        assert name in plan(client, sql)
        assert client.run(sql).rows == [("1",)]
    client.run("DROP TABLE elsewhere")
    client.run("DROP TIMELINE range_lookups")


def test_what_is_not_supported_is_named(client: FieldsClient) -> None:
    client.run("ALTER TABLE stays ADD n numrange, ADD m datemultirange, ADD ip inet")
    for key, named in (
        ("gist (n)", "a gist index over numrange"),
        ("gist (m)", "a gist index over datemultirange"),
        ("spgist (ip)", "a spgist index over inet"),
        ("gist (ip inet_ops)", "a gist index over inet"),
        ("gist (during, n)", "a gist index over numrange"),
    ):
        error = client.fails(f"CREATE INDEX ON stays USING {key}")
        assert error["sqlstate"] == "0A000"
        assert named in error["message"]


def test_a_look_up_reads_few_rows_hot_and_cold() -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TABLE t (id int PRIMARY KEY, r int4range)")
        await session.run(
            "INSERT INTO t SELECT i, int4range(i * 3, i * 3 + 2) FROM generate_series(1, 3000) i"
        )
        await session.run("CREATE INDEX i ON t USING gist (r)")
        seen: list[int] = []

        def counted(plain: Any) -> Any:
            def ask(self: Any, *arguments: Any, **how: Any) -> Any:
                found = plain(self, *arguments, **how)
                if isinstance(found, list):
                    seen.append(len(found))
                    return found

                async def later() -> Any:
                    rows = await found
                    seen.append(len(rows))
                    return rows

                return later()

            return ask

        for _cold in (False, True):
            for condition, count in {
                "r && int4range(300, 330)": 10, "r @> 301": 1, "r @> 302": 0, "r @> int4range(300, 302)": 1,
                "r <@ int4range(300, 330)": 10, "r = int4range(300, 302)": 1,
            }.items():  # fmt: skip
                seen.clear()
                with (
                    mock.patch.object(
                        StoreTransaction, "scan", side_effect=AssertionError("the table was scanned")
                    ),
                    mock.patch.object(StoreTransaction, "lookup", counted(StoreTransaction.lookup)),
                    mock.patch.object(StoreTransaction, "range", counted(StoreTransaction.range)),
                ):
                    assert len(await session.run(f"SELECT id FROM t WHERE {condition}")) == count
                assert count <= sum(seen) <= count + 60, condition
            await session.run("CHECKPOINT")
        await database.close()

    run(go)
