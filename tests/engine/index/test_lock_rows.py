"""LockRows: which rows are locked, in which order, and what happens when they are not as they were read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from engine.base.executor import RowsChanged
from engine.executors.index.sources import MOST_ROWS
from tests.engine.index.harness import Database, MemoryTxn
from txn.base.types import StoredRow


class LockingTxn(MemoryTxn):
    """Remembers what is locked and how tables are read; ``before_lock`` may change rows, ``held`` are others' locks."""

    def __init__(self, db: Database) -> None:
        super().__init__(db.tables, db.catalog)
        self.held: set[int] = set()
        self.locked: list[int] = []
        self.reads: list[str] = []
        self.before_lock: Callable[[], None] = lambda: None

    def lookup(self, shard: int, index: int, keys: Sequence[Any], **how: Any) -> Any:
        self.reads.append(f"lookup {how}")
        return super().lookup(shard, index, keys)

    def range(self, shard: int, index: int, key_range: Any, **how: Any) -> Any:
        self.reads.append(f"range to {how.get('limit')}")
        reading = {name: how[name] for name in ("reverse", "limit") if name in how}
        return super().range(shard, index, key_range, **reading)

    async def scan(self, shard: int, *, peek: bool = False, **how: Any) -> AsyncIterator[list[StoredRow]]:
        self.reads.append("scan past locks" if peek else "scan")
        async for rows in super().scan(shard):
            yield rows

    def lock_rows(self, shard: int, row_ids: Sequence[int], mode: str, wait: str) -> list[StoredRow | None]:
        self.before_lock()
        rows = {row.row_id: row for row in self.tables[shard]}
        out: list[StoredRow | None] = []
        for row_id in row_ids:
            if wait == "skip" and row_id in self.held:
                out.append(None)
                continue
            self.locked.append(row_id)
            out.append(rows.get(row_id))  # type: ignore[call-overload]
        return out

    def changed_within(self, shard: int, row_id: int) -> bool:
        """Others alone change rows."""
        return False


@pytest.fixture
def db() -> Database:
    made = Database()
    made.table("t", "id int4 pk", "n int4", rows=[(str(i), str(i % 3)) for i in range(1, 101)])
    return made


def run(db: Database, sql: str, txn: LockingTxn) -> list[tuple[Any, ...]]:
    bound, plan = db.prepare(sql)
    context = db.context(bound)
    context.txn = txn  # type: ignore[assignment]
    return db.execute(plan, context)


def change(db: Database, row_id: int, n: int) -> None:
    """Commit a change of a row's column n."""
    [oid] = db.tables
    rows = db.tables[oid]
    old = rows[row_id - 1]
    rows[row_id - 1] = StoredRow(old.row_id, (old.values[0], n), old.begin + 1)  # type: ignore[arg-type]


def test_rows_are_locked_in_the_order_of_the_result_and_none_beyond_the_limit(db: Database) -> None:
    txn = LockingTxn(db)
    found = run(db, "SELECT id FROM t WHERE n = 1 ORDER BY id DESC LIMIT 2 OFFSET 1 FOR SHARE", txn)
    assert found == [(97,), (94,)]
    assert txn.locked[-3:] == [100, 97, 94]  # the row that OFFSET passes over is locked, as in PostgreSQL
    assert set(txn.locked) == {100, 97, 94}


def test_a_row_that_changed_before_it_was_locked_makes_the_statement_run_again(db: Database) -> None:
    txn = LockingTxn(db)
    txn.before_lock = lambda: change(db, 5, 7)
    with pytest.raises(RowsChanged):
        run(db, "SELECT n FROM t WHERE id = 5 FOR UPDATE", txn)


def test_a_row_that_is_gone_makes_the_statement_run_again(db: Database) -> None:
    txn = LockingTxn(db)
    [oid] = db.tables
    txn.before_lock = lambda: db.tables[oid].__setitem__(slice(4, 5), [])
    with pytest.raises(RowsChanged):
        run(db, "SELECT n FROM t WHERE id = 5 FOR KEY SHARE", txn)


def test_a_scan_looks_and_locks_until_nothing_changes_and_then_reads(db: Database) -> None:
    txn = LockingTxn(db)
    changes = iter([5, 8])

    def somebody_commits() -> None:
        row_id = next(changes, None)
        if row_id is not None:
            change(db, row_id, 9)

    change(db, 5, 9)
    txn.before_lock = somebody_commits
    found = run(db, "SELECT id FROM t WHERE n = 9 ORDER BY id FOR UPDATE", txn)
    assert found == [(5,), (8,)]
    assert txn.reads == ["scan past locks", "scan past locks", "scan"]


def test_skip_locked_reads_on_where_the_rows_to_the_limit_are_locked(db: Database) -> None:
    txn = LockingTxn(db)
    txn.held = set(range(1, 41))
    found = run(db, "SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED", txn)
    assert found == [(41,), (42,)]
    assert txn.locked == [41, 42]
    limits = [int(read.removeprefix("range to ")) for read in txn.reads]
    assert limits == sorted(limits)
    assert limits[0] < 42 <= limits[-1]


def test_skip_locked_ends_where_the_table_ends(db: Database) -> None:
    txn = LockingTxn(db)
    txn.held = set(range(1, 100))
    assert run(db, "SELECT id FROM t ORDER BY id LIMIT 5 FOR UPDATE SKIP LOCKED", txn) == [(100,)]
    assert run(db, "SELECT id FROM t ORDER BY id LIMIT 0 FOR UPDATE SKIP LOCKED", txn) == []


def test_rows_to_be_updated_are_locked_as_they_are_read(db: Database) -> None:
    for clause, how in (
        ("FOR UPDATE", {"for_update": "update"}),
        ("FOR NO KEY UPDATE", {"for_update": "no key update"}),
        ("FOR SHARE", {}),
        ("FOR UPDATE SKIP LOCKED", {"peek": True}),
    ):
        txn = LockingTxn(db)
        assert run(db, f"SELECT n FROM t WHERE id = 4 {clause}", txn) == [(1,)]
        assert txn.reads == [f"lookup {how}"]
        assert txn.locked == [4]


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        (
            "SELECT k FROM u WHERE k = 1 LIMIT 3",
            MOST_ROWS + 1,
        ),  # few rows all come, in the order of the table
        ("SELECT k FROM u WHERE k = 1 LIMIT 5000 OFFSET 10", 5010),
        ("SELECT k FROM u WHERE k = 1 LIMIT NULL", None),
        ("SELECT k FROM u WHERE k = 1 LIMIT 3 FOR UPDATE", MOST_ROWS + 1),
        ("SELECT k FROM u WHERE k = 1 LIMIT 3 FOR UPDATE SKIP LOCKED", None),
        ("SELECT k FROM u WHERE k = 1 AND n > 0 LIMIT 3", None),
        ("SELECT count(*) FROM u WHERE k = 1 LIMIT 3", None),
        ("SELECT DISTINCT n FROM u WHERE k = 1 LIMIT 3", None),
        ("SELECT generate_series(1, 2) FROM u WHERE k = 1 LIMIT 3", None),
        ("SELECT t.n FROM (SELECT n FROM u WHERE k = 1 LIMIT 3) t", MOST_ROWS + 1),
    ],
)
def test_a_range_is_read_as_far_as_a_limit_without_an_order_needs(
    db: Database, sql: str, limit: int | None
) -> None:
    rows = [("1", f"{i}.5", str(i % 3)) for i in range(8)]
    db.table("u", "k int4", "s numeric", "n int4", primary=("k", "s"), rows=rows)
    txn = LockingTxn(db)
    run(db, sql, txn)
    assert txn.reads == [f"range to {limit}"]
