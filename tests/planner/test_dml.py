"""INSERT, UPDATE and DELETE as Query trees: what executors are promised about their shape."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.base.errors import SqlError
from planner.query import (
    ROW_ID,
    CoerceTypmod,
    Const,
    CteRange,
    Delete,
    FieldSelect,
    Insert,
    OpExpr,
    Param,
    RelationRange,
    Select,
    SubLink,
    SubqueryRange,
    Update,
    Values,
    Var,
)
from planner.query.walk import walk
from planner.statements import StatementClass, WithChanges
from planner.types import SqlType
from tests.planner.tables import bind, make_catalog

CATALOG = make_catalog()


def insert(sql: str, params: tuple[int, ...] = ()) -> Insert:
    statement = bind(sql, CATALOG, params).statement
    assert isinstance(statement, Insert)
    return statement


def update(sql: str) -> Update:
    statement = bind(sql, CATALOG).statement
    assert isinstance(statement, Update)
    return statement


def delete(sql: str) -> Delete:
    statement = bind(sql, CATALOG).statement
    assert isinstance(statement, Delete)
    return statement


# --- INSERT -----------------------------------------------------------------------------------------


def test_values_have_exactly_their_columns_types() -> None:
    made = insert("INSERT INTO t (a, c, f, bp) VALUES (1, 1.5, 'x', 'y'), ('2', '3', 4::text, NULL)")
    assert made.attnums == (1, 3, 6, 9)
    assert isinstance(made.source, Values)
    types = [column.type for column in made.source.columns]
    for row in made.source.rows:
        assert [cell.type for cell in row] == types
    first = [cell.value for cell in made.source.rows[0] if isinstance(cell, Const)]
    assert first == [1, Decimal("1.50"), "x", "y  "]


def test_quick_constants_are_what_the_slow_road_gives() -> None:
    # a parenthesised constant is a constant; a cast one takes the ordinary way through binding and folding
    texts = ["1", "'1'", "-1", "1.5", "true", "'t'", "NULL", "99999999999", "1e3", "'1e3'", "' 1'", "''"]
    for column in ("a", "b", "c", "f", "g", "bp", "d"):
        for text in texts:
            outcomes = []
            for shown in (text, f"CASE WHEN true THEN {text} END"):
                try:
                    made = insert(f"INSERT INTO t ({column}) VALUES ({shown})")
                    assert isinstance(made.source, Values)
                    outcomes.append(made.source.rows[0][0].type)
                except SqlError as error:
                    outcomes.append(error.sqlstate)
            if text not in ("'1'", "'t'", "'1e3'", "' 1'", "''", "NULL"):  # typed inside CASE: same verdict
                assert outcomes[0] == outcomes[1], (column, text)


def test_value_too_long_is_left_to_run_time() -> None:
    made = insert("INSERT INTO t (f) VALUES ('longer than ten')")
    assert isinstance(made.source, Values)
    assert isinstance(made.source.rows[0][0], CoerceTypmod)


def test_defaults_come_for_columns_left_out_and_for_the_word() -> None:
    made = insert("INSERT INTO t (a) VALUES (1)")
    assert [(attnum, expr.value) for attnum, expr in made.defaults if isinstance(expr, Const)] == [(2, "x")]
    worded = insert("INSERT INTO t (a, b, c) VALUES (1, DEFAULT, DEFAULT)")
    assert isinstance(worded.source, Values)
    assert worded.source.rows[0][1] == Const(type=SqlType(25), value="x")
    assert worded.source.rows[0][2] == Const(type=SqlType(1700, 655366), value=None)
    assert worded.defaults == ()


def test_default_values_has_no_source() -> None:
    made = insert("INSERT INTO t DEFAULT VALUES")
    assert (made.source, made.attnums) == (None, ())
    assert [attnum for attnum, _ in made.defaults] == [2]


def test_parameters_take_their_columns_types() -> None:
    assert bind("INSERT INTO t (a, c, d) VALUES ($1, $2, $3)", CATALOG).params == (23, 1700, 1114)
    assert bind("INSERT INTO t (a, b) SELECT $1, $2", CATALOG).params == (23, 25)


def test_a_select_is_converted_in_place_or_from_outside() -> None:
    plain = insert("INSERT INTO t (a, c) SELECT id, z FROM s")
    assert isinstance(plain.source, Select)
    assert isinstance(plain.source.ranges[0], RelationRange)
    assert [column.type for column in plain.source.columns] == [SqlType(23), SqlType(1700, 655366)]
    sorted_ = insert("INSERT INTO t (a, c) SELECT id, z FROM s ORDER BY z LIMIT 3")
    assert isinstance(sorted_.source, Select)
    assert isinstance(sorted_.source.ranges[0], SubqueryRange)
    assert sorted_.source.order == ()  # the inner query sorts by the unconverted value
    assert sorted_.source.ranges[0].query.order


def test_a_single_row_may_return_a_set() -> None:
    made = insert("INSERT INTO t (a) VALUES (generate_series(1, 3))")
    assert isinstance(made.source, Select)
    with pytest.raises(SqlError, match="not allowed in VALUES"):
        insert("INSERT INTO t (a) VALUES (generate_series(1, 3)), (4)")


def test_with_belongs_to_the_source_unless_something_else_reads_it() -> None:
    made = insert("WITH q AS (SELECT 1 AS x) INSERT INTO t (a) SELECT x FROM q")
    assert isinstance(made.source, Select)
    assert [cte.name for cte in made.source.ctes] == ["q"]
    both = insert("WITH q AS (SELECT 1 AS x) INSERT INTO t (a) WITH r AS (SELECT x FROM q) SELECT x FROM r")
    assert both.source is not None
    assert [cte.name for cte in both.source.ctes] == ["q", "r"]
    cell = insert("WITH q AS (SELECT 1 AS x) INSERT INTO t (a) VALUES ((SELECT x FROM q))")
    assert cell.source is not None
    assert [r.level for r in walk(cell.source) if isinstance(r, CteRange)] == [1]
    parts = bind(
        "WITH q AS (SELECT 1) INSERT INTO t (a) SELECT 1 RETURNING (SELECT * FROM q)", CATALOG
    ).statement
    assert isinstance(parts, WithChanges)
    assert [step.name for step in parts.steps] == ["q"]
    assert parts.needs == {0}
    assert isinstance(parts.body, Insert)
    assert parts.body.source is not None
    assert parts.body.source.ctes == ()


def test_conflict_arbiters_are_found_by_columns_or_name() -> None:
    by_columns = insert("INSERT INTO t (a) VALUES (1) ON CONFLICT (f) DO NOTHING").on_conflict
    by_name = insert("INSERT INTO t (a) VALUES (1) ON CONFLICT ON CONSTRAINT t_f_key DO NOTHING").on_conflict
    anything = insert("INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING").on_conflict
    assert by_columns is not None
    assert by_name is not None
    assert anything is not None
    assert by_columns.arbiters == by_name.arbiters
    assert len(by_columns.arbiters) == 1
    assert anything.arbiters == ()


def test_conflict_updates_see_the_old_row_and_the_proposed_one() -> None:
    made = insert(
        "INSERT INTO t AS x (a) VALUES (1) ON CONFLICT (a) "
        "DO UPDATE SET b = x.b || excluded.b WHERE excluded.a > 1"
    ).on_conflict
    assert made is not None
    [(attnum, value)] = made.assignments
    assert attnum == 2
    assert [v.range for v in walk(value) if isinstance(v, Var)] == [0, 1]
    assert made.where is not None
    assert [v.range for v in walk(made.where) if isinstance(v, Var)] == [1]


# --- UPDATE, DELETE ---------------------------------------------------------------------------------


def test_update_source_finds_rows_and_computes_values() -> None:
    made = update("UPDATE t SET c = s.z, b = DEFAULT FROM s WHERE s.id = t.a RETURNING t.b, s.y, s.z + 1")
    names = [column.name for column in made.source.columns]
    live = ["a", "b", "c", "d", "e", "f", "j", "g", "bp"]
    assert names == ["row_id", *live, "new_3", "new_2", "extra_1", "extra_2"]
    first = made.source.targets[0].expr
    assert isinstance(first, Var)
    assert first.attnum == ROW_ID
    assert made.assigned == (3, 2)
    assert made.source.columns[10].type == SqlType(1700, 655366)
    target = made.source.ranges[0]
    assert isinstance(target, RelationRange)
    assert target.used >= {ROW_ID, *range(1, 10)}
    places = [(v.range, v.attnum) for t in made.returning for v in walk(t) if isinstance(v, Var)]
    assert places == [(0, 2), (1, 1), (1, 2)]


def test_delete_source_finds_rows_and_computes_sub_selects() -> None:
    made = delete(
        "DELETE FROM t USING s WHERE s.id = t.a RETURNING t.b, (SELECT max(v.a) FROM v WHERE v.b = s.y) + 1"
    )
    assert [column.name for column in made.source.columns][-1] == "extra_1"
    assert isinstance(made.source.targets[-1].expr, SubLink)
    places = [(v.range, v.attnum) for t in made.returning for v in walk(t) if isinstance(v, Var)]
    assert places == [(0, 2), (1, 1)]


def test_sub_selects_in_returning_see_assigned_values() -> None:
    made = update("UPDATE t SET a = a + 1 RETURNING (SELECT y FROM s WHERE s.id = t.a AND s.y = t.b)")
    sub = made.source.targets[-1].expr
    assert isinstance(sub, SubLink)
    outer = sorted((v.name, v.level) for v in walk(sub) if isinstance(v, Var) and v.level == 1)
    assert outer == [("a", 1), ("b", 1)]
    assert any(isinstance(node, OpExpr) and node.op == 551 for node in walk(sub))  # a + 1
    kept = update("UPDATE t SET c = random() RETURNING (SELECT y FROM s WHERE s.z = t.c)")
    assert isinstance(kept.returning[0].expr, SubLink)


def test_multiple_assignment_takes_fields_of_one_row() -> None:
    made = update("UPDATE t SET (a, b) = (SELECT id, y FROM s WHERE s.id = t.a)")
    values = [target.expr for target in made.source.targets[-2:]]
    assert all(isinstance(value, FieldSelect) and isinstance(value.arg, SubLink) for value in values)
    [free] = {v.level for v in walk(values[0]) if isinstance(v, Var) and v.name == "a"}
    assert free == 2  # through the row query that stands around the sub-select
    row = update("UPDATE t SET (a, b) = (1, DEFAULT)")
    assert [t.expr for t in row.source.targets[-2:]] == [
        Const(type=SqlType(23), value=1), Const(type=SqlType(25), value="x")
    ]  # fmt: skip


def test_update_parameters_take_types_from_assignment_and_condition() -> None:
    bound = bind("UPDATE t SET c = $1 WHERE a = $2", CATALOG)
    assert bound.params == (1700, 23)
    assert isinstance(bound.statement, Update)
    assert any(isinstance(node, Param) for node in walk(bound.statement.source))


def test_stored_types_are_assignment_casts() -> None:
    with pytest.raises(SqlError) as caught:
        update("UPDATE t SET a = b")
    assert caught.value.sqlstate == "42804"
    assert caught.value.hint == "You will need to rewrite or cast the expression."


# --- classes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO t (a) VALUES (1)", StatementClass.WRITE_ONLY),
        ("INSERT INTO t (a) VALUES ((SELECT max(a) FROM t))", StatementClass.READ_THEN_WRITE),
        ("INSERT INTO t (a) SELECT id FROM s", StatementClass.READ_THEN_WRITE),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING", StatementClass.READ_THEN_WRITE),
        ("UPDATE t SET a = 1", StatementClass.READ_THEN_WRITE),
        ("DELETE FROM t", StatementClass.READ_THEN_WRITE),
        ("SELECT 1", StatementClass.READ_ONLY),
        ("COPY t FROM STDIN", StatementClass.WRITE_ONLY),
        ("COPY t TO STDOUT", StatementClass.READ_ONLY),
        ("CREATE TABLE n (a int)", StatementClass.DDL),
        ("BEGIN", StatementClass.TRANSACTION_CONTROL),
        ("SET a.b = 1", StatementClass.UTILITY),
    ],
)
def test_statement_classes(sql: str, expected: StatementClass) -> None:
    assert bind(sql, CATALOG).class_ is expected


def test_reads_and_writes_are_base_tables() -> None:
    t, s = CATALOG.by_name["public", "t"].oid, CATALOG.by_name["public", "s"].oid
    plain = bind("INSERT INTO t (a) VALUES (1)", CATALOG)
    assert (plain.reads, plain.writes) == (frozenset(), {t})
    assert bind("INSERT INTO t (a) SELECT id FROM s", CATALOG).reads == {s}
    joined = bind("DELETE FROM s USING v WHERE v.a = s.id", CATALOG)
    assert (joined.reads, joined.writes) == ({t, s}, {s})
