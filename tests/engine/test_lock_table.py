"""LOCK TABLE's eight modes on five: nothing that PostgreSQL keeps apart may go together, and little else waits. Views."""

from __future__ import annotations

from contextlib import closing

from engine.statements.lock_table import LOCKS
from tests.support.fields import connect
from tests.support.server import ServerProcess
from txn.locks.mode import COMPATIBLE, MODES

NAMES = (
    "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE", "ACCESS EXCLUSIVE",
)  # fmt: skip
CONFLICTS = (  # the manual's table 13.2: mode -> numbers of the modes it conflicts with
    {8},
    {7, 8},
    {5, 6, 7, 8},
    {4, 5, 6, 7, 8},
    {3, 4, 6, 7, 8},
    {3, 4, 5, 6, 7, 8},
    {2, 3, 4, 5, 6, 7, 8},
    {1, 2, 3, 4, 5, 6, 7, 8},
)
STRONGER = {
    ("ACCESS SHARE", "EXCLUSIVE"),  # a transaction that only reads takes no lock at all
    ("ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE"),
}


def test_the_modes_conflict_at_least_as_postgres_does() -> None:
    stronger = set()
    for a, conflicts in enumerate(CONFLICTS, 1):
        for b in range(1, 9):
            apart = not COMPATIBLE[MODES[LOCKS[a]]][MODES[LOCKS[b]]]
            if b in conflicts:
                assert apart, (NAMES[a - 1], NAMES[b - 1])
            elif apart:
                stronger.add((NAMES[min(a, b) - 1], NAMES[max(a, b) - 1]))
    assert stronger == STRONGER


def test_a_view_locks_what_it_reads(server: ServerProcess) -> None:
    with closing(connect(server.port)) as one, closing(connect(server.port)) as two:
        for sql in (
            "CREATE SCHEMA lv",
            "SET search_path = lv",
            "CREATE TABLE t (a int)",
            "CREATE TABLE p (k int) PARTITION BY LIST (k)",
            "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
            "CREATE VIEW inner_view AS SELECT a FROM t UNION SELECT k FROM p",
            "CREATE VIEW outer_view AS SELECT * FROM inner_view",
            "BEGIN",
            "LOCK outer_view IN SHARE ROW EXCLUSIVE MODE",
        ):
            one.run(sql)
        for table in ("t", "p", "p1"):
            two.run("BEGIN")
            assert two.fails(f"LOCK lv.{table} IN SHARE MODE NOWAIT")["sqlstate"] == "55P03"
            two.run("ROLLBACK")
        one.run("COMMIT")
        two.run("BEGIN")
        two.run("LOCK lv.t IN SHARE MODE NOWAIT")
        one.run("BEGIN")
        assert one.fails("LOCK outer_view NOWAIT")["sqlstate"] == "55P03"
        one.run("ROLLBACK")
        two.run("ROLLBACK")
        one.run("DROP SCHEMA lv CASCADE")
