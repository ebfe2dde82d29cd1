"""MERGE as a Query tree: what the source outputs, and what actions are left with."""

from __future__ import annotations

from planner.query import ROW_ID, FuncExpr, Join, JoinKind, Merge, OpExpr, Param, SubLink, Var
from planner.query.walk import walk
from planner.statements import StatementClass
from tests.planner.tables import bind, make_catalog

CATALOG = make_catalog()


def merge(sql: str) -> Merge:
    statement = bind(sql, CATALOG).statement
    assert isinstance(statement, Merge)
    return statement


def joined(made: Merge) -> Join:
    [join] = made.source.from_
    assert isinstance(join, Join)
    return join


def test_the_source_gives_the_row_its_columns_and_what_actions_ask_for() -> None:
    made = merge(
        "MERGE INTO t USING s ON t.a = s.id WHEN MATCHED AND t.b <> '' THEN UPDATE SET b = s.y "
        "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.id, s.y)"
    )
    first = made.source.targets[0].expr
    assert isinstance(first, Var)
    assert (first.range, first.attnum) == (0, ROW_ID)
    live = len(CATALOG.by_name["public", "t"].live)
    extras = [target.expr for target in made.source.targets[1 + live :]]
    assert [(e.range, e.name) for e in extras if isinstance(e, Var)] == [(1, "y"), (1, "id")]
    update, insert = made.actions
    assert [(v.range, v.attnum) for e in update.values for v in walk(e) if isinstance(v, Var)] == [(1, 1)]
    assert [(v.range, v.attnum) for e in insert.values for v in walk(e) if isinstance(v, Var)][:2] == [
        (1, 2),
        (1, 1),
    ]
    assert joined(made).kind is JoinKind.LEFT


def test_without_not_matched_the_join_is_an_inner_one() -> None:
    made = merge("MERGE INTO t USING s ON t.a = s.id WHEN MATCHED THEN DELETE")
    assert joined(made).kind is JoinKind.INNER
    assert (
        bind("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", CATALOG).class_
        is StatementClass.READ_THEN_WRITE
    )


def test_correlated_sub_selects_stay_with_the_action_and_those_over_with_do_not() -> None:
    made = merge(
        "WITH w AS (SELECT max(id) AS m FROM s) MERGE INTO t USING s ON t.a = s.id "
        "WHEN MATCHED AND EXISTS (SELECT FROM s x WHERE x.y = s.y AND x.id = t.a) THEN DELETE "
        "WHEN MATCHED AND (SELECT m FROM w) = t.a THEN DELETE"
    )
    stays, moved = made.actions
    [link] = [node for node in walk(stays.condition) if isinstance(node, SubLink)]
    outer = {(v.range, v.attnum) for v in walk(link) if isinstance(v, Var) and v.level == 1}
    assert outer == {(1, 1), (0, 1)}
    assert not any(isinstance(node, SubLink) for node in walk(moved.condition))
    assert any(isinstance(target.expr, SubLink) for target in made.source.targets)


def test_a_value_that_could_fail_waits_for_a_row_that_takes_the_action() -> None:
    """Values that are fixed for a statement are computed when it starts, unless that could raise an error."""
    bound = bind(
        "MERGE INTO t USING s ON t.a = s.id WHEN MATCHED AND now() > 'epoch' THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (a) VALUES (current_setting('no.such')::int)",
        CATALOG,
    )
    assert isinstance(bound.statement, Merge)
    condition, insert = bound.statement.actions[0].condition, bound.statement.actions[1].values
    assert any(isinstance(node, Param) for node in walk(condition))
    assert isinstance(condition, OpExpr | Param)
    assert any(isinstance(node, FuncExpr) for value in insert for node in walk(value))
