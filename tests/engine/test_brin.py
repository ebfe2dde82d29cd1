"""Indexes of bounds: that the types which docs/reference/sql/indexes.md names have their bounds in parts, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

INTEGERS = ("smallint", "integer", "bigint", "oid")
MOMENTS = ("date", "time", "timestamp", "timestamptz")


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    yield made
    made.run("DROP TABLE IF EXISTS bounded")
    made.close()


def test_the_types_that_are_said_to_have_bounds_have_them_in_parts(
    client: FieldsClient, server: ServerProcess
) -> None:
    names = (*INTEGERS, "real", "double precision", "numeric(10,2)", "text", "varchar", *MOMENTS)
    columns = [f"c{number}" for number in range(len(names))]
    client.run(f"CREATE TABLE bounded ({', '.join(map(' '.join, zip(columns, names, strict=True)))})")
    values = ["'2026-01-02 03:04:05'" if name in MOMENTS else "'7'" for name in names]
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


def test_what_is_not_supported_is_named(client: FieldsClient) -> None:
    client.run("CREATE TABLE bounded (i int)")
    for key, named in (("i int4_bloom_ops (n_distinct_per_range = 10)", "an operator class parameter"),):
        error = client.fails(f"CREATE INDEX ON bounded USING brin ({key})")
        assert error["sqlstate"] == "0A000"
        assert named in error["message"]
