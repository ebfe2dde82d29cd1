"""What policies make of statements: guards, row checks, and which executors take them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from planner import query as q
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.bind.context import RowSecurity
from planner.catalog import RoleDef, SystemCatalog
from planner.catalog.policy import PolicyDef
from planner.lower.kit.duckdb import DuckDialect
from planner.lower.kit.spark import SparkDialect
from planner.lower.query.lowering import lower_query
from planner.parse import parse
from planner.query.walk import walk
from planner.statements import BoundStatement, QueryStatement
from tests.planner.tables import make_catalog
from tests.support.catalog import MemoryCatalog

READER = RoleDef(oid=20, name="reader")


class Catalog(MemoryCatalog):
    """One role that owns nothing, and a database of somebody else's."""

    database = 5

    def role_by_oid(self, oid: int) -> RoleDef | None:
        return READER if oid == READER.oid else self.roles["postgres"] if oid == 10 else None

    def database_by_oid(self, oid: int) -> None:
        return None


def secured(sql: str, *policies: PolicyDef, role: RoleDef = READER, enforced: bool = True) -> BoundStatement:
    catalog = Catalog()
    catalog.__dict__.update(make_catalog().__dict__)
    table = catalog.relation("public", "t")
    assert table is not None
    catalog.add(replace(table, row_security=True, policies=policies, owner=10))
    security = RowSecurity(role, enforced, cast(SystemCatalog, catalog))
    [parsed] = parse(sql)
    return bind_statement(parsed.statement, parsed.text, catalog, ("public",), security=security)


OWN = PolicyDef(oid=1, name="own", using_sql="(b = CURRENT_USER)")
FEW = PolicyDef(oid=2, name="few", permissive=False, using_sql="(a < 5)", check_sql="(a < 4)")


def guards(bound: BoundStatement) -> list[q.Select]:
    return [n.guard for n in walk(bound.statement) if isinstance(n, q.RelationRange) and n.guard is not None]


def checks(bound: BoundStatement) -> list[tuple[str, str]]:
    statement: Any = bound.statement
    return [(check.kind, check.policy) for check in statement.row_checks]


def test_every_range_is_guarded_wherever_it_stands() -> None:
    sql = (
        "WITH w AS (SELECT * FROM t) SELECT (SELECT max(a) FROM t), x.a FROM t x, w, LATERAL (SELECT y.a FROM t y WHERE y.a = x.a) l"
        " WHERE EXISTS (SELECT FROM t z WHERE z.a = x.a) AND x.a IN (SELECT a FROM v)"
    )
    assert len(guards(secured(sql, OWN))) == 5  # that of the view is its owner's, who is a superuser
    assert secured(sql, OWN).row_security == (20, True, 0)


def test_without_policies_nothing_is_seen() -> None:
    [guard] = guards(secured("SELECT a FROM t"))
    assert isinstance(guard.where, q.Const)
    assert guard.where.value is False


def test_restrictive_policies_alone_let_nothing_through() -> None:
    [guard] = guards(secured("SELECT a FROM t", FEW))
    assert isinstance(guard.where, q.Const)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("INSERT INTO t (a) VALUES (1)", [("insert", ""), ("insert", "few")]),
        ("UPDATE t SET a = 1", [("update", ""), ("update", "few")]),
        ("DELETE FROM t", None),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 'x'",
            ["insert", "insert", "insert", "conflict", "conflict", "update", "update", "update"],
        ),
    ],
)
def test_new_rows_are_checked(sql: str, found: list[Any] | None) -> None:
    bound = secured(sql, OWN, FEW)
    if found is None:
        assert len(guards(bound)) == 1
    elif isinstance(found[0], str):
        assert sorted({kind for kind, _ in checks(bound)}) == sorted(set(found))
    else:
        assert checks(bound) == found


def test_who_is_exempt_is_not_guarded_but_the_plan_is_for_that_role() -> None:
    bound = secured("SELECT a FROM t", OWN, role=replace(READER, bypass_rls=True))
    assert guards(bound) == []
    assert bound.row_security == (20, True, 0)


def test_turned_off_it_is_an_error() -> None:
    with pytest.raises(SqlError) as caught:
        secured("SELECT a FROM t", OWN, enforced=False)
    assert caught.value.sqlstate == "42501"


def test_nobody_binds_such_a_table_for_nobody() -> None:
    catalog = make_catalog()
    table = catalog.relation("public", "t")
    assert table is not None
    catalog.add(replace(table, row_security=True))
    [parsed] = parse("SELECT 1 FROM s WHERE EXISTS (SELECT FROM t)")
    with pytest.raises(RuntimeError):
        bind_statement(parsed.statement, parsed.text, catalog, ("public",))


def test_duckdb_gets_a_border_and_spark_nothing() -> None:
    statement = secured("SELECT a FROM t WHERE 1 / a > 0", OWN).statement
    assert isinstance(statement, QueryStatement)
    assert "OFFSET CAST('0' AS BIGINT)" in lower_query(statement.query, DuckDialect()).text
    with pytest.raises(SqlError) as caught:
        lower_query(statement.query, SparkDialect())
    assert caught.value.sqlstate == "0A000"


def test_so_do_they_of_a_view_that_is_a_barrier() -> None:
    for inner in (
        "SELECT a FROM t",
        "SELECT a FROM t OFFSET NULL",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
        "VALUES (1)",
    ):
        [parsed] = parse(f"SELECT * FROM ({inner}) v (x) WHERE 1 / x > 0")
        statement = bind_statement(parsed.statement, parsed.text, make_catalog(), ("public",)).statement
        assert isinstance(statement, QueryStatement)
        query = statement.query
        assert isinstance(query, q.Select)
        [view] = query.ranges
        assert isinstance(view, q.SubqueryRange)
        barred = replace(query, ranges=(replace(view, barrier=True),))
        assert "OFFSET CAST('0' AS BIGINT)" not in lower_query(query, DuckDialect()).text
        assert "OFFSET CAST('0' AS BIGINT)" in lower_query(barred, DuckDialect()).text
        with pytest.raises(SqlError) as caught:
            lower_query(barred, SparkDialect())
        assert caught.value.sqlstate == "0A000"
