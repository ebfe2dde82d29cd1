"""What a bound statement says about itself, and tree facts executors rely on."""

from __future__ import annotations

import dataclasses

import pytest

from pgwire.codecs.settings import CodecSettings
from planner import ast
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.bind.expression import expr
from planner.bind.expression.expr import check_total
from planner.facts import INT4, INT8, NUMERIC, TEXT
from planner.parse import parse, parse_one
from planner.query import (
    Const,
    CteRange,
    OpExpr,
    Param,
    RelationRange,
    Select,
    SetOp,
    SubLink,
    SubqueryRange,
    Var,
)
from planner.query.rewrite import replace_children, shift_levels
from planner.query.walk import walk
from planner.statements import BoundStatement, QueryStatement, StatementClass
from tests.support.catalog import MemoryCatalog

CATALOG = MemoryCatalog()
EMP = CATALOG.table("emp", "id int4 pk", "name text", "salary numeric(10,2)", "dept int4")
DEPT = CATALOG.table("dept", "id int4 pk", "name text")
VIEW = CATALOG.view("rich", "SELECT emp.id FROM public.emp WHERE emp.salary > 100", "id int4")
CLASS = CATALOG.table("pg_class", "oid oid", "relname name", schema="pg_catalog", virtual=True)


def bind(text: str, **options: object) -> BoundStatement:
    parsed = parse_one(text)
    assert parsed is not None
    return bind_statement(parsed.statement, parsed.text, CATALOG, ("public",), **options)  # type: ignore[arg-type]


def tree(text: str) -> Select:
    statement = bind(text).statement
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, Select)
    return statement.query


def test_a_query_tells_what_it_reads_and_under_which_versions():
    bound = bind("SELECT * FROM rich JOIN dept USING (id)")
    assert bound.reads == {EMP.oid, DEPT.oid}
    assert dict(bound.versions) == {VIEW.oid: 0, EMP.oid: 0, DEPT.oid: 0}
    assert (bound.class_, bound.tag) == (StatementClass.READ_ONLY, "SELECT")
    assert not bound.volatile
    assert not bound.uses_virtual


def test_what_is_run_has_no_collate():
    query = tree(
        'SELECT upper(name COLLATE "C") FROM emp WHERE name < (\'x\' COLLATE "C") ORDER BY name COLLATE "POSIX"'
    )
    assert query == tree("SELECT upper(name) FROM emp WHERE name < 'x' ORDER BY name")
    with pytest.raises(SqlError) as error:
        bind('SELECT name COLLATE "C" < name COLLATE "POSIX" FROM emp')
    assert error.value.sqlstate == "42P21"


def test_virtual_relations_and_volatile_functions_are_noticed():
    assert bind("SELECT relname FROM pg_class").uses_virtual
    assert bind("SELECT 1 WHERE random() < 0.5").volatile
    assert not bind("SELECT now()").volatile


def test_pg_catalog_is_searched_first_unless_the_path_says_otherwise():
    CATALOG.table("pg_class", "mine int4")
    try:
        assert [column.name for column in bind("SELECT * FROM pg_class").columns or ()] == ["oid", "relname"]
        parsed = parse("SELECT * FROM pg_class")[0]
        bound = bind_statement(parsed.statement, parsed.text, CATALOG, ("public", "pg_catalog"))
        assert [column.name for column in bound.columns or ()] == ["mine"]
    finally:
        del CATALOG.by_name["public", "pg_class"]


def test_only_named_columns_are_used():
    (range_,) = tree("SELECT name FROM emp WHERE id = 1 ORDER BY salary").ranges
    assert isinstance(range_, RelationRange)
    assert range_.used == {1, 2, 3}
    assert len(range_.columns) == 4


def test_a_column_named_by_a_sub_select_counts_as_used_outside():
    (range_,) = tree("SELECT (SELECT e.name) FROM emp e").ranges
    assert isinstance(range_, RelationRange)
    assert range_.used == {2}


def test_joins_do_not_use_columns_by_joining():
    ranges = tree("SELECT emp.id FROM emp JOIN dept ON emp.dept = dept.id").ranges
    assert [sorted(r.used) for r in ranges if isinstance(r, RelationRange)] == [[1, 4], [1]]


def test_declared_parameter_types_are_kept_and_others_deduced():
    assert bind("SELECT $1, $2 + id FROM emp", param_types=(INT8, 0)).params == (INT8, INT4)
    with pytest.raises(SqlError) as caught:
        bind("SELECT $2::int")
    assert caught.value.sqlstate == "42P18"


def test_an_untyped_parameter_as_output_is_text():
    assert bind("SELECT $1").params == (TEXT,)


def test_a_point_query_compares_the_key_with_the_parameter_itself():
    query = tree("SELECT name FROM emp WHERE id = $1")
    where = query.where
    assert isinstance(where, OpExpr)
    left, right = where.args
    assert isinstance(left, Var)
    assert (left.range, left.attnum, left.level) == (0, 1, 0)
    assert right == Param(type=left.type, number=1)


def test_every_query_is_a_level():
    query = tree(
        "WITH w AS (SELECT 1 AS x) SELECT (SELECT x FROM w WHERE x = emp.id UNION SELECT emp.dept) FROM emp"
    )
    sublink = query.targets[0].expr
    assert isinstance(sublink, SubLink)
    body = sublink.query
    assert isinstance(body, SetOp)
    left, right = body.left, body.right
    assert isinstance(left, Select)
    assert isinstance(right, Select)
    (reference,) = left.ranges
    assert isinstance(reference, CteRange)
    assert reference.level == 2
    outer = right.targets[0].expr
    assert isinstance(outer, Var)
    assert outer.level == 2


def test_wrapping_a_query_shifts_what_it_reads_from_outside():
    query = tree("SELECT (VALUES (emp.id), (2) ORDER BY column1 + 1 LIMIT 1) FROM emp")
    sublink = query.targets[0].expr
    assert isinstance(sublink, SubLink)
    (wrapped,) = sublink.query.ranges  # type: ignore[union-attr]
    assert isinstance(wrapped, SubqueryRange)
    levels = {node.level for node in walk(wrapped.query) if isinstance(node, Var)}
    assert levels == {2}


def test_shifting_moves_free_columns_only():
    query = tree("SELECT EXISTS (SELECT 1 FROM dept d WHERE d.id = emp.dept) FROM emp")
    expr = query.targets[0].expr
    moved = shift_levels(expr, 3)
    levels = sorted(node.level for node in walk(moved) if isinstance(node, Var))
    assert levels == [0, 4]
    assert shift_levels(expr, 0) is expr


def test_replacing_nothing_returns_the_same_tree():
    query = tree("SELECT id + 1, (SELECT max(id) FROM dept) FROM emp WHERE id > 3 ORDER BY 1")
    assert replace_children(query, lambda node: node) is query


def test_a_set_operation_gives_both_sides_the_common_types():
    statement = bind("SELECT 1, 'a' UNION ALL (SELECT DISTINCT salary, name FROM emp ORDER BY 1)").statement
    assert isinstance(statement, QueryStatement)
    query = statement.query
    assert isinstance(query, SetOp)
    assert [column.type.oid for column in query.columns] == [NUMERIC, TEXT]
    for side in (query.left, query.right):
        assert [column.type.oid for column in side.columns] == [NUMERIC, TEXT]


def test_columns_know_the_table_column_they_come_from_through_views_and_sub_selects():
    bound = bind("SELECT r.id, s.name, s.n FROM rich r, (SELECT name, 1 AS n FROM dept) s")
    assert [(c.table_oid, c.attnum) for c in bound.columns or ()] == [(VIEW.oid, 1), (DEPT.oid, 2), (0, 0)]


def test_literals_read_under_a_setting_are_recorded():
    settings = CodecSettings(date_order="DMY")
    bound = bind("SELECT '01/02/2020'::date", settings=settings)
    assert "datestyle" in bound.settings
    assert isinstance(bound.statement, QueryStatement)
    value = next(node for node in walk(bound.statement.query) if isinstance(node, Const))
    assert value.value == 18293  # 1 February
    assert bind("SELECT 1").settings == frozenset()


def test_stable_parameters_are_numbered_above_the_clients():
    bound = bind("SELECT $1::int, now(), now(), current_user")
    assert bound.params == (INT4,)
    assert len(bound.stable) == 2
    numbers = sorted(node.number for node in walk(bound.statement) if isinstance(node, Param))
    assert numbers == [1, 2, 2, 3]


def test_a_column_default_is_not_frozen_when_its_table_is_made():
    bound = bind("CREATE TABLE fresh (id int, at timestamptz DEFAULT now())")
    assert bound.stable == ()


def test_a_view_over_itself_is_an_error_not_a_crash():
    catalog = MemoryCatalog()
    catalog.view("loop", "SELECT x FROM public.loop", "x int4")
    parsed = parse("SELECT * FROM loop")[0]
    with pytest.raises(SqlError) as caught:
        bind_statement(parsed.statement, parsed.text, catalog, ("public",))
    assert caught.value.sqlstate in ("42P17", "54001")


def test_deep_nesting_is_54001():
    with pytest.raises(SqlError) as caught:
        bind("SELECT " + "abs(" * 2_000 + "1" + ")" * 2_000)
    assert caught.value.sqlstate == "54001"


def test_a_dropped_column_leaves_no_trace():
    columns = list(EMP.columns)
    columns[1] = dataclasses.replace(columns[1], dropped=True)
    catalog = MemoryCatalog()
    catalog.add(dataclasses.replace(EMP, columns=tuple(columns)))
    parsed = parse("SELECT * FROM emp")[0]
    bound = bind_statement(parsed.statement, parsed.text, catalog, ("public",))
    assert [(c.name, c.attnum) for c in bound.columns or ()] == [("id", 1), ("salary", 3), ("dept", 4)]


def test_each_class_of_expressions_has_a_binder(monkeypatch: pytest.MonkeyPatch) -> None:
    check_total()
    monkeypatch.delitem(expr._BINDERS, ast.OfParts)
    with pytest.raises(RuntimeError, match="nobody binds OfParts"):
        check_total()
