"""The net effect of a batch is the effect of its changes one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as strategies

from engine.feeds.sources.changes import UNCHANGED, TableChanges, stage
from planner.base.errors import SqlError
from planner.catalog import ColumnDef, IndexDef, RelationDef
from planner.types import SqlType
from txn.base.types import RowId, StoredRow, Timestamp

RELATION = RelationDef(
    oid=20000,
    schema_oid=2200,
    schema="public",
    name="t",
    kind="r",
    columns=tuple(ColumnDef(attnum=n, name=name, type=SqlType(23)) for n, name in enumerate("kab", 1)),
    indexes=(IndexDef(oid=20001, name="t_pkey", attnums=(1,), unique=True, primary=True),),
)


class Table:
    """What ``stage`` asks of a transaction, over a dictionary: unique keys are checked as rows come."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.rows = dict(enumerate(rows))

    def lookup(self, shard: int, index: int, keys: Any, *, for_update: bool) -> list[StoredRow]:
        wanted = {key[0] for key in keys}
        return [
            StoredRow(row_id=RowId(i), values=row, begin=Timestamp(1))
            for i, row in self.rows.items()
            if row[0] in wanted
        ]

    def insert(self, shard: int, rows: Any) -> list[RowId]:
        for row in rows:
            assert row[0] not in {r[0] for r in self.rows.values()}, "a key twice"
            self.rows[max(self.rows, default=0) + 1] = row
        return []

    def update(self, shard: int, changes: Any) -> list[bool]:
        for row_id, row in changes:
            assert self.rows[row_id][0] == row[0], "a key is moved by deleting and inserting"
            self.rows[row_id] = row
        return []

    def delete(self, shard: int, row_ids: Any) -> list[bool]:
        for row_id in row_ids:
            del self.rows[row_id]
        return []

    def truncate(self, shard: int) -> None:
        self.rows.clear()

    def next_statement(self) -> int:
        return 1


KEYS = strategies.integers(0, 3)
CELL = strategies.one_of(strategies.integers(0, 9), strategies.just(UNCHANGED))
CHANGE = strategies.one_of(
    strategies.tuples(strategies.just("insert"), KEYS, strategies.integers(0, 9), strategies.integers(0, 9)),
    strategies.tuples(strategies.just("update"), KEYS, KEYS, CELL, CELL),
    strategies.tuples(strategies.just("delete"), KEYS),
    strategies.tuples(strategies.just("truncate")),
)


@given(strategies.sets(KEYS), strategies.lists(CHANGE, max_size=12))
def test_net_effect(there: set[int], script: list[tuple[Any, ...]]) -> None:
    before = [(key, 100 + key, 200 + key) for key in there]
    model = {row[0]: row for row in before}
    changes = TableChanges(oid=RELATION.oid)
    for what, *given_ in script:
        if what == "insert" and given_[0] not in model:
            model[given_[0]] = tuple(given_)
            changes.put((given_[0],), tuple(given_))
        elif what == "delete" and given_[0] in model:
            del model[given_[0]]
            changes.delete((given_[0],))
        elif what == "truncate":
            model.clear()
            changes.truncate()
        elif what == "update":
            old, new, *cells = given_
            if old not in model or (new != old and new in model):
                continue
            was = model.pop(old)
            model[new] = (new, *(w if c is UNCHANGED else c for w, c in zip(was[1:], cells, strict=True)))
            changes.put((new,), (new, *cells), (old,) if new != old else None)
    table = Table(before)
    asyncio.run(stage(table, RELATION, changes))  # type: ignore[arg-type]
    assert sorted(table.rows.values()) == sorted(model.values())


def test_a_row_that_should_be_there_is_not() -> None:
    changes = TableChanges(oid=RELATION.oid)
    changes.put((5,), (5, UNCHANGED, 1))
    with pytest.raises(SqlError) as error:
        asyncio.run(stage(Table([]), RELATION, changes))  # type: ignore[arg-type]
    assert error.value.sqlstate == "55000"
