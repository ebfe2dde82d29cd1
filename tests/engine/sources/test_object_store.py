"""A source whose rows go to an object store that refuses: it says so, and goes on once the store takes them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.engine.sources.support import connect, rows, value, wait_for
from tests.support.objects import ObjectProxy, ObjectStoreServer, object_store, proxy  # noqa: F401 - fixtures
from tests.support.postgres import fresh_schema, postgres, url_of  # noqa: F401 - a fixture
from tests.support.server import ServerProcess

pytestmark = pytest.mark.long


def test_a_snapshot_waits_for_an_object_store_that_refuses(
    object_store: ObjectStoreServer,  # noqa: F811
    proxy: ObjectProxy,  # noqa: F811
    postgres: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    name = fresh_schema()
    bucket = object_store.new_bucket()
    server = ServerProcess(tmp_path / "data", "--blob", object_store.url(bucket, port=proxy.port))
    with psycopg.connect(postgres, autocommit=True) as up, connect(server) as here:
        up.execute(f"CREATE SCHEMA {name}")
        up.execute(
            f"CREATE TABLE {name}.much AS SELECT g AS id, 'row ' || g AS v FROM generate_series(1, 30000) g"
        )
        up.execute(f"ALTER TABLE {name}.much ADD PRIMARY KEY (id)")
        up.execute(f"CREATE PUBLICATION {name} FOR TABLE {name}.much")
        here.execute("CREATE TABLE beside (n int)")
        proxy.fault = lambda method, path: (403, "AccessDenied")
        here.execute(
            f"CREATE SOURCE much FROM POSTGRES (connection = '{url_of(postgres)}', publication = {name}, slot = {name})"
        )
        wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'much'", "retrying")
        error = str(value(here, "SELECT last_error FROM holdfast_sources WHERE name = 'much'"))
        assert error.startswith(f"58030: could not access the data files in s3://{bucket}/db")
        assert "ACCESS_DENIED" in error
        assert value(here, "SELECT count(*) FROM much") == 0
        here.execute("INSERT INTO beside VALUES (1)")  # everything else runs on
        proxy.fault = lambda method, path: None
        wait_for(here, "SELECT count(*) FROM much", 30_000)
        assert rows(here, "SELECT count(DISTINCT v), sum(id) FROM much") == [(30_000, 30_000 * 30_001 // 2)]
        here.execute("DROP SOURCE much")
        up.execute(f"DROP PUBLICATION {name}")
        up.execute(f"DROP SCHEMA {name} CASCADE")
    assert server.stop() == 0
