"""hstore on the wire and on executors, and what its gin index serves; what statements give is beside PostgreSQL's in extensions/hstore.sql."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types import TypeInfo
from psycopg.types.hstore import register_hstore

from pgwire.codecs.json import hstore
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def things(server: ServerProcess) -> Iterator[FieldsClient]:
    client = connect(server.port)
    client.run("CREATE EXTENSION IF NOT EXISTS hstore")
    client.run("CREATE TABLE things (id int PRIMARY KEY, h hstore)")
    client.run(
        "INSERT INTO things SELECT g, hstore(ARRAY['k' || g % 100, 'same'], ARRAY[(g % 5)::text, NULL]) FROM generate_series(1, 3000) g"
    )
    yield client
    client.run("DROP TABLE things")
    client.run("DROP EXTENSION hstore CASCADE")
    client.close()


def test_a_gin_index_serves_keys_and_pairs(things: FieldsClient) -> None:
    things.run("CREATE INDEX things_h ON things USING gin (h)")
    for condition, count in (
        ("h ? 'k7'", 30),
        ("h @> 'k7=>2'", 30),
        ("'k7=>2'::hstore <@ h", 30),
        ("h ?& ARRAY['k7', 'same']", 30),
        ("h ?| ARRAY['k7', 'k8']", 60),
    ):
        shown = str(things.run(f"EXPLAIN SELECT id FROM things WHERE {condition}").rows)
        assert "Index Scan using things_h on things" in shown, condition
        assert len(things.run(f"SELECT id FROM things WHERE {condition}").rows) == count, condition
    for condition in ("h -> 'k7' = '2'", "h = 'k7=>2'", "h <@ 'k7=>2'"):
        assert "things_h" not in str(things.run(f"EXPLAIN SELECT id FROM things WHERE {condition}").rows)
    things.run("DROP INDEX things_h")


def test_executors_group_and_compare_alike(things: FieldsClient) -> None:
    asked = "SELECT h, count(*) FROM things WHERE h #># 'k5=>1, same=>NULL' GROUP BY h ORDER BY h"
    found = []
    for route in ("index", "local"):
        things.run(f"SET executor = {route}")
        found.append(things.run(asked).rows)
    things.run("RESET executor")
    assert found[0]
    assert found[0] == found[1]


def test_psycopg_reads_and_writes_it(things: FieldsClient, server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        info = TypeInfo.fetch(connection, "hstore")
        assert info is not None
        register_hstore(info, connection)
        value = {"a": "1", "b c": None, "ä": 'x"y\\z'}
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            assert cursor.execute("SELECT %s::hstore, %s::hstore -> 'a'", (value, value)).fetchone() == (
                value,
                "1",
            )
        assert connection.execute("SELECT id FROM things WHERE h @> %s", ({"k7": "2"},)).fetchone() == (7,)
        with connection.cursor().copy("COPY (SELECT 'a=>NULL'::hstore) TO STDOUT (FORMAT binary)") as copy:
            data = b"".join(copy)
        connection.execute("CREATE TEMP TABLE kept (h hstore)")
        with connection.cursor().copy("COPY kept FROM STDIN (FORMAT binary)") as copy:
            copy.write(data)
        assert connection.execute("SELECT h FROM kept").fetchone() == ({"a": None},)


@pytest.mark.parametrize(
    "pairs", [{}, {"": ""}, {"b": None, "aa": "1", "a": "x" * 300}, {"ä": "\U0001f600", "k": ""}]
)
def test_a_value_is_its_pairs(pairs: dict[str, str | None]) -> None:
    value = hstore.pack(pairs.items())
    assert hstore.unpack(value) == pairs
    assert hstore.parse(hstore.show(value)) == value
    assert hstore.receive(hstore.send(value)) == value
