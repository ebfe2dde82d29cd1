"""Which access path and join a query gets."""

from __future__ import annotations

import pytest

from engine.base.explain.formats import Shown, text_lines
from engine.base.explain.texts import Texts
from engine.base.rows import ReadyRows, RowStream
from tests.engine.index.harness import Database, MemoryTxn
from tests.engine.index.tables import make


@pytest.fixture(scope="module")
def db() -> Database:
    return make()


def plan_lines(db: Database, sql: str) -> str:
    return "\n".join(text_lines(db.executor.explain(db.prepare(sql)[1], Texts(db.session, None)), Shown()))


@pytest.mark.parametrize(
    ("sql", "kind", "small"),
    [
        ("SELECT c FROM m WHERE a = 1 AND b = 2", "point", True),
        ("SELECT c FROM m WHERE b = 2 AND 1 = a", "point", True),
        ("SELECT c FROM m WHERE a = 1 AND b IN (2, 3)", "keys", True),
        ("SELECT c FROM m WHERE a = ANY ('{1,2}') AND b = 1", "keys", True),
        ("SELECT c FROM m WHERE a = 1", "prefix", True),
        ("SELECT c FROM m WHERE a = 1 AND b > 2", "prefix", True),
        ("SELECT c FROM m WHERE a BETWEEN 1 AND 2", "prefix", True),
        ("SELECT c FROM m WHERE a > 1", "prefix", False),
        ("SELECT c FROM m WHERE a BETWEEN 1 AND 1000000", "prefix", False),
        ("SELECT name FROM emp WHERE id = 1 OR 2 = id OR id = 7", "keys", True),
        ("SELECT name FROM emp WHERE id = 1 OR dept = 2", "scan", False),
        ("SELECT c FROM m WHERE b = 1", "scan", False),
        ("SELECT c FROM m WHERE a + 0 = 1 AND b = 2", "scan", False),
        ("SELECT c FROM m WHERE a = b", "scan", False),
        ("SELECT c FROM m WHERE a = random()::int AND b = 2", "scan", False),
        ("SELECT c FROM m WHERE (a = 1 OR a = 2) AND b = 2", "keys", True),
    ],
)
def test_conjuncts_on_key_columns_choose_the_access(db: Database, sql: str, kind: str, small: bool) -> None:
    plan = db.prepare(sql)[1]
    assert [a.kind for a in plan.access] == [kind]
    assert plan.is_small is small


def test_a_join_reaches_the_second_table_by_key(db: Database) -> None:
    plan = db.prepare("SELECT * FROM emp e JOIN dept d ON d.id = e.dept WHERE e.id = 2")[1]
    assert [(a.alias, a.kind) for a in plan.access] == [("e", "point"), ("d", "point")]
    assert plan.is_small


def test_the_written_order_of_a_join_does_not_matter(db: Database) -> None:
    plan = db.prepare("SELECT * FROM dept d, emp e WHERE d.id = e.dept AND e.id = 2")[1]
    assert [a.alias for a in plan.access] == ["e", "d"]


def test_equality_without_an_index_is_hashed_and_inequality_is_not(db: Database) -> None:
    assert "Hash Join" in plan_lines(db, "SELECT 1 FROM emp a JOIN emp b ON a.dept = b.dept")
    assert "Nested Loop" in plan_lines(db, "SELECT 1 FROM emp a JOIN emp b ON a.dept < b.dept")


def test_a_catalog_relation_is_looked_up_by_its_column(db: Database) -> None:
    assert "Index Cond: (oid = '11'" in plan_lines(db, "SELECT relname FROM pc WHERE oid = 11")


def test_a_point_read_looks_up_once_and_answers_at_once(db: Database) -> None:
    bound, plan = db.prepare("SELECT c FROM m WHERE a = $1 AND b = $2")
    ctx = db.context(bound, (1, 2))
    result = db.executor.run(plan, ctx)
    assert isinstance(result, ReadyRows)
    assert list(result.rows) == [("r12",)]
    assert isinstance(ctx.txn, MemoryTxn)
    assert (ctx.txn.lookups, ctx.txn.scans) == (1, 0)


def test_a_null_key_reads_nothing(db: Database) -> None:
    bound, plan = db.prepare("SELECT c FROM m WHERE a = $1 AND b = $2")
    ctx = db.context(bound, (1, None))
    result = db.executor.run(plan, ctx)
    assert isinstance(result, ReadyRows)
    assert not result.rows
    assert isinstance(ctx.txn, MemoryTxn)
    assert ctx.txn.lookups == 0


def test_a_scan_is_a_stream(db: Database) -> None:
    bound, plan = db.prepare("SELECT c FROM m")
    result = db.executor.run(plan, db.context(bound))
    assert isinstance(result, RowStream)
    result.close()


def test_a_query_without_tables_is_small_and_ready(db: Database) -> None:
    bound, plan = db.prepare("SELECT sum(x) FROM generate_series(1, 100) x")
    result = db.executor.run(plan, db.context(bound))
    assert plan.is_small
    assert isinstance(result, ReadyRows)
    assert list(result.rows) == [(5050,)]


def test_an_uncorrelated_sub_select_runs_once(db: Database) -> None:
    bound, plan = db.prepare("SELECT id FROM emp WHERE dept IN (SELECT id FROM dept)")
    ctx = db.context(bound)
    db.execute(plan, ctx)
    assert isinstance(ctx.txn, MemoryTxn)
    assert ctx.txn.scans == 2


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT id FROM emp ORDER BY id LIMIT 2", True),
        ("SELECT a, b FROM m WHERE a = 1 AND b > 2 ORDER BY b DESC LIMIT 2", True),
        ("SELECT a, b FROM m ORDER BY a DESC, b LIMIT 3", False),
        ("SELECT id FROM emp ORDER BY name LIMIT 3", False),
        ("SELECT id FROM emp ORDER BY id", False),
        ("SELECT id FROM emp WHERE name = 'ann' ORDER BY id LIMIT 1", False),
        ("SELECT DISTINCT id FROM emp ORDER BY id LIMIT 1", False),
        ("SELECT id FROM emp ORDER BY id LIMIT 1000000", None),
    ],
)
def test_order_by_with_limit_reads_an_index_in_order(db: Database, sql: str, ordered: bool | None) -> None:
    plan = db.prepare(sql)[1]
    assert ("Sort" not in plan_lines(db, sql)) is (ordered is not False)
    assert plan.is_small is (ordered is True)


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT max(id) FROM emp", ["prefix"]),
        ("SELECT max(b), min(b) FROM m WHERE a = 1", ["prefix", "prefix"]),
        ("SELECT max(id), count(*) FROM emp", ["scan"]),
        ("SELECT max(id) FROM emp WHERE name = 'x'", ["scan"]),
        ("SELECT max(id) FROM emp GROUP BY dept", ["scan"]),
        ("SELECT max(id + 1) FROM emp", ["scan"]),
        ("SELECT max(id) FILTER (WHERE id < 3) FROM emp", ["scan"]),
    ],
)
def test_extremes_come_from_the_ends_of_indexes(db: Database, sql: str, kinds: list[str]) -> None:
    plan = db.prepare(sql)[1]
    assert [a.kind for a in plan.access] == kinds
    assert plan.is_small is (kinds[0] == "prefix")
