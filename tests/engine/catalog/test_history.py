"""The catalog of every earlier timestamp, against all catalogs kept whole."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.history import KEPT_SNAPSHOTS, CatalogHistory
from engine.catalog.history_size import AT_ONCE
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import CommentDef, Stored, key_of
from planner.catalog import FunctionDef, SchemaDef
from planner.facts import INT4, PUBLIC_OID
from tests.support.server import ServerProcess
from txn.base.errors import ReadBelowSince
from txn.base.slices import at_once
from txn.base.types import Timestamp

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


def test_what_is_kept_is_weighed_whatever_it_is() -> None:
    """Texts that were replaced or dropped count, those that the next definition has do not, and what is forgotten no more."""
    text = "x" * 100_000
    function = FunctionDef(
        oid=20_000, schema_oid=PUBLIC_OID, schema="public", name="f", modes=(), names=(), types=(), result=INT4, source=text
    )  # fmt: skip
    steps: list[tuple[Stored | None, int]] = [
        (function, 0), (replace(function, cost=7), 0), (replace(function, source=text + "y"), 100_000),
        (CommentDef(class_oid=1, object_oid=2, sub_id=0, text=text), 0), (None, 200_000),
    ]  # fmt: skip
    versions = itertools.count(1)
    current = CatalogSnapshot({}, next(versions))
    history = CatalogHistory(Timestamp(5), lambda: next(versions))
    total = 0
    for number, (item, more) in enumerate(steps, 1):
        gone = list(current.items) if item is None else []
        puts = [] if item is None else [item]
        after = current.with_changes(puts, gone, next(versions))
        history.record(Timestamp(number * 10), current, after, [*map(key_of, puts), *gone], Timestamp(0))
        current = after
        at_once(history.weighing())
        total += more
        assert total <= sum(size for _ts, size in history.kept) <= total + number * 4096
    assert history.forget(Timestamp(49))
    assert [ts for ts, _size in history.kept] == [50]
    assert history.forget(Timestamp(50))
    assert not history.kept


def test_many_small_changes_are_weighed_in_slices() -> None:
    versions = itertools.count(1)
    current = CatalogSnapshot({}, next(versions))
    history = CatalogHistory(Timestamp(5), lambda: next(versions))
    for number in range(AT_ONCE // 2 + 1):
        schema = SchemaDef(oid=20_000, name=f"s{number}")
        after = current.with_changes([schema], [], next(versions))
        history.record(Timestamp(10 + number), current, after, [key_of(schema)], Timestamp(0))
        current = after
    assert sum(1 for _ in history.weighing()) >= 1
    assert history.kept


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
