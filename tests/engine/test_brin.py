"""Indexes of bounds: that every type which may have one has its bounds in parts, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest

from planner.opclass import BOUNDED
from planner.typefacts import format_type
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    yield made
    made.run("DROP TABLE IF EXISTS bounded")
    made.close()


def test_every_type_that_may_have_one_has_bounds_in_parts(
    client: FieldsClient, server: ServerProcess
) -> None:
    names = [format_type(oid).replace("numeric", "numeric(10,2)") for oid in sorted(BOUNDED)]
    columns = [f"c{number}" for number in range(len(names))]
    client.run(f"CREATE TABLE bounded ({', '.join(map(' '.join, zip(columns, names, strict=True)))})")
    moment = ("date", "time", "timestamp")
    values = ["'2026-01-02 03:04:05'" if name.startswith(moment) else "'7'" for name in names]
    client.run(f"INSERT INTO bounded VALUES ({', '.join(values)})")
    client.run(f"CREATE INDEX bounded_all ON bounded USING brin ({', '.join(columns)})")
    client.run("VACUUM bounded")
    oid = client.run("SELECT 'bounded'::regclass::oid").rows[0][0]
    parts = list((server.data_dir / "blobs").rglob(f"{oid}/*.parquet"))
    assert len(parts) == 1
    group = pq.read_metadata(parts[0]).row_group(0)
    bounds = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
    for number, name in enumerate(names, 1):
        found = bounds[f"c{number}"]
        assert found is not None, name
        assert found.has_min_max, name


def test_what_has_no_bounds_is_named(client: FieldsClient) -> None:
    client.run("CREATE TABLE bounded (n numeric, u uuid, r int4range, ip inet, i int)")
    for key, named in (
        ("n", "a brin index over numeric"),
        ("u", "a brin index over uuid"),
        ("r", "a brin index over int4range"),
        ("ip", "a brin index over inet"),
        ("u uuid_bloom_ops", "a brin index over uuid"),
        ("ip inet_inclusion_ops", "a brin index over inet"),
        ("(i + 1)", "an expression or partial index with brin"),
        ("i) WHERE (i > 1", "an expression or partial index with brin"),
    ):
        error = client.fails(f"CREATE INDEX ON bounded USING brin ({key})")
        assert error["sqlstate"] == "0A000"
        assert named in error["message"]


def test_a_column_keeps_a_type_with_bounds(client: FieldsClient) -> None:
    client.run("CREATE TABLE bounded (price numeric(10,2))")
    client.run("CREATE INDEX ON bounded USING brin (price)")
    client.run("ALTER TABLE bounded ALTER price TYPE numeric(12,4)")
    error = client.fails("ALTER TABLE bounded ALTER price TYPE numeric")
    assert (error["sqlstate"], error["message"]) == ("0A000", "a brin index over numeric is not supported")
