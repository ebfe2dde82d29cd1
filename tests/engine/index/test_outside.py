"""What of the queries around it a query reads: which sub-selects and WITH items are computed once."""

from __future__ import annotations

import pytest

from engine.executors.index.access.choice import outer_levels
from engine.executors.index.from_needs import needed_columns
from engine.executors.index.plan import _alone
from planner.bind import bind_statement
from planner.parse import parse_one
from planner.query import Select, SubLink
from planner.query.walk import walk
from planner.statements import QueryStatement
from tests.support.catalog import MemoryCatalog

CATALOG = MemoryCatalog()
CATALOG.table("emp", "id int4 pk", "name text", "salary int4", "dept int4")
CATALOG.table("dept", "id int4 pk", "name text")


def tree(text: str) -> Select:
    parsed = parse_one(text)
    assert parsed is not None
    statement = bind_statement(parsed.statement, parsed.text, CATALOG, ("public",)).statement
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, Select)
    return statement.query


@pytest.mark.parametrize(
    ("inner", "levels", "with_level"),
    [
        ("SELECT 1", set(), 0),
        ("SELECT d.id FROM dept d WHERE d.name = 'x'", set(), 0),
        ("SELECT d.id FROM dept d WHERE d.id = e.dept", {1}, 0),
        ("SELECT 1 FROM dept d WHERE EXISTS (SELECT 1 WHERE d.id = 1)", set(), 0),
        ("SELECT 1 FROM dept d WHERE EXISTS (SELECT 1 WHERE d.id = e.dept)", {1}, 0),
        ("SELECT (SELECT max(e.salary))", {1}, 0),
        ("SELECT c.id FROM c", set(), 1),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM c WHERE c.id = e.id)", {1}, 1),
        ("WITH b AS (SELECT 1) SELECT 1 FROM b", set(), 0),
        ("SELECT 1 FROM dept UNION SELECT e.id", {1}, 0),
    ],
)
def test_what_a_sub_select_reads_of_what_is_around_it(inner, levels, with_level):
    outer = tree(
        f"WITH c AS (SELECT 1 AS id) SELECT (SELECT count(*) FROM ({inner}) s) FROM emp e GROUP BY e.id, e.dept, e.salary"
    )
    below = next(node for target in outer.targets for node in walk(target) if isinstance(node, SubLink))
    assert outer_levels(below.query) == (levels, with_level)


def test_which_with_items_read_nothing_around_their_query():
    outer = tree(
        "SELECT (WITH RECURSIVE a AS (SELECT 1 AS n), b AS (SELECT n FROM a), r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3), "
        "c AS (SELECT e.id AS n), d AS (SELECT n FROM c), z AS (SELECT 2 AS n) SELECT sum(b.n + r.n + d.n + z.n) FROM b, r, d, z) FROM emp e"
    )
    below = next(node for target in outer.targets for node in walk(target) if isinstance(node, SubLink))
    assert _alone(below.query.ctes) == {"a", "b", "r", "z"}


def test_columns_needed_of_a_range_are_those_read_below_it_too():
    query = tree(
        "SELECT e.name FROM emp e, dept d WHERE EXISTS (SELECT 1 FROM dept x WHERE x.id = e.dept AND x.name IN (SELECT d.name WHERE e.salary > 1))"
    )
    assert needed_columns(query) == {0: {2, 3, 4}, 1: {2}}
