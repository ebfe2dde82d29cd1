"""The catalog of every earlier timestamp, against all catalogs kept whole."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.history import KEPT_SNAPSHOTS, CatalogHistory
from engine.catalog.state import CatalogSnapshot
from engine.catalog.stored import Stored, key_of
from planner.catalog import SchemaDef
from tests.support.server import ServerProcess
from txn.errors import ReadBelowSince
from txn.types import Timestamp

CHANGES = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(1, 6), st.sampled_from("abc"))), st.lists(st.integers(1, 6))),
    max_size=12,
)


@given(CHANGES, st.integers(0, 13))
def test_the_past_is_what_it_was(
    changes: list[tuple[list[tuple[int, str]], list[int]]], since_at: int
) -> None:
    versions = itertools.count(1)
    current = CatalogSnapshot({}, next(versions))
    history = CatalogHistory(Timestamp(5), lambda: next(versions))
    kept = [(5, current)]
    for number, (puts, deletes) in enumerate(changes, 1):
        items: list[Stored] = [SchemaDef(oid=oid, name=f"{name}{oid}") for oid, name in dict(puts).items()]
        put = {key_of(item) for item in items}
        gone = [("schema", oid, 0) for oid in deletes if ("schema", oid, 0) not in put]
        after = current.with_changes(items, gone, next(versions))
        ts = Timestamp(number * 10)
        history.record(
            ts, current, after, [*put, *gone], Timestamp(since_at * 10 if number > since_at else 0)
        )
        current = after
        kept.append((ts, current))
    for begin, catalog in kept:
        if len(changes) > since_at and begin < since_at * 10:
            continue  # nobody may read there any more
        for ts in (begin, begin + 3):
            found = history.at(Timestamp(ts), current)
            assert found.items == catalog.items
            assert history.at(Timestamp(ts), current) is found
    assert len(history._made) <= KEPT_SNAPSHOTS
    with pytest.raises(ReadBelowSince):
        history.at(Timestamp(4), current)


def test_the_past_survives_a_restart(tmp_path: Path) -> None:
    def token(server: ServerProcess) -> str:
        [(value,)] = server.sql("SELECT read_ts FROM holdfast_oracle")
        return str(value)

    server = ServerProcess(tmp_path / "data")
    try:
        server.sql("CREATE TABLE gone (a int PRIMARY KEY)")
        server.sql("INSERT INTO gone VALUES (1), (2)")
        first = token(server)
        server.sql("ALTER TABLE gone ADD COLUMN b int DEFAULT 5")
        server.sql("ALTER TABLE gone RENAME TO away")
        second = token(server)
        server.sql("DROP TABLE away")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        assert server.sql(f"SELECT * FROM gone AS OF SYSTEM TIME {first} ORDER BY a") == [("1",), ("2",)]
        assert server.sql(f"SELECT * FROM away AS OF SYSTEM TIME {second} ORDER BY a") == [
            ("1", "5"),
            ("2", "5"),
        ]
        assert server.sql("SELECT count(*) FROM pg_class WHERE relname IN ('gone', 'away')") == [("0",)]
    finally:
        server.stop()
