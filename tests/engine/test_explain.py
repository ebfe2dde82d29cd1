"""EXPLAIN in PostgreSQL's form: nodes with estimates, conditions and what was measured, in four formats."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Any
from xml.etree import ElementTree

import pytest

from engine.base.explain.formats import Shown, as_object, document, text_lines
from engine.base.explain.tree import Measured, PlanNode
from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

NAMESPACE = {"e": "http://www.postgresql.org/2009/explain"}
COSTS = re.compile(r"\(cost=(\d+\.\d\d)\.\.(\d+\.\d\d) rows=(\d+) width=(\d+)\)$")


def tree() -> PlanNode:
    scan = PlanNode(
        "Seq Scan",
        "Seq Scan on t",
        {"Relation Name": "t"},
        {"Filter": "(a > 1)"},
        rows=3.0,
        width=8,
        cost=0.25,
    )
    scan.actual, scan.removed = Measured(loops=2, rows=8, first_s=0.002, total_s=0.004), 4
    never = PlanNode("Index Scan", "Index Scan using u_pkey on u <&>", {"Relation Name": "u <&>"})
    never.actual = Measured()
    join = PlanNode("Hash Join", "Hash Left Join", {"Join Type": "Left"}, {"Hash Cond": "(t.a = u.b)"})
    join.add(scan, "Outer")
    join.add(never, "Inner")
    item = PlanNode("Result", "Result")
    top = PlanNode("Sort", "Sort", details={"Sort Key": ["a", "b DESC"]}, rows=3.0, width=8, cost=0.5)
    top.add(item, "InitPlan", "CTE c")
    top.add(join, "Outer")
    return top


def test_text_is_laid_out_as_postgresql_does() -> None:
    assert text_lines(tree(), Shown()) == [
        "Sort  (cost=0.00..0.50 rows=3 width=8)",
        "  Sort Key: a, b DESC",
        "  CTE c",
        "    ->  Result",
        "  ->  Hash Left Join",
        "        Hash Cond: (t.a = u.b)",
        "        ->  Seq Scan on t  (cost=0.00..0.25 rows=3 width=8) (actual time=1.000..2.000 rows=4 loops=2)",
        "              Filter: (a > 1)",
        "              Rows Removed by Filter: 2",
        "        ->  Index Scan using u_pkey on u <&> (never executed)",
    ]
    bare = text_lines(tree(), Shown(costs=False, timing=False))
    assert bare[0] == "Sort"
    assert bare[6] == "        ->  Seq Scan on t (actual rows=4 loops=2)"


def test_structured_formats_have_postgresqls_names() -> None:
    made = as_object(tree(), Shown(buffers=True))
    assert [made["Node Type"], made["Sort Key"], made["Plan Rows"], made["Total Cost"]] == [
        "Sort",
        ["a", "b DESC"],
        3,
        0.5,
    ]
    item, join = made["Plans"]
    assert (item["Parent Relationship"], item["Subplan Name"]) == ("InitPlan", "CTE c")
    scan, never = join["Plans"]
    measured = {"Actual Startup Time": 1.0, "Actual Total Time": 2.0, "Actual Rows": 4, "Actual Loops": 2}
    assert measured.items() <= scan.items()
    assert (scan["Rows Removed by Filter"], scan["Shared Hit Blocks"], never["Actual Loops"]) == (2, 0, 0)
    assert json.loads(document("json", made, {"Route": "index"})) == [{"Plan": made, "Route": "index"}]


def test_xml_is_well_formed_and_yaml_is_indented() -> None:
    made = as_object(tree(), Shown())
    root = ElementTree.fromstring(document("xml", made, {"Route": "index"}))
    assert root.findtext("e:Query/e:Route", namespaces=NAMESPACE) == "index"
    names = [node.text for node in root.iter(f"{{{NAMESPACE['e']}}}Node-Type")]
    assert names == ["Sort", "Result", "Hash Join", "Seq Scan", "Index Scan"]
    assert root.findtext(".//e:Relation-Name", namespaces=NAMESPACE) == "t"
    assert root.findtext(".//e:Parallel-Aware", namespaces=NAMESPACE) == "false"
    small = as_object(PlanNode("Limit", "Limit", inputs=[PlanNode("Result", "Result")]), Shown())
    assert document("yaml", small, {"Route": "index"}) == (
        '- Plan:\n    Node Type: "Limit"\n    Parallel Aware: false\n    Async Capable: false\n    Plans:\n      - Node Type: "Result"\n'
        '        Parallel Aware: false\n        Async Capable: false\n  Route: "index"'
    )


@pytest.fixture(scope="module")
def staff(server: ServerProcess) -> ServerProcess:
    server.sql("CREATE TABLE dept (id int PRIMARY KEY, name text)")
    server.sql("CREATE TABLE emp (id int PRIMARY KEY, name text, dept int, salary numeric(9,2), marks int[])")
    server.sql("CREATE INDEX emp_dept ON emp (dept)")
    server.sql("INSERT INTO dept SELECT g, 'd' || g FROM generate_series(1, 4) g")
    server.sql(
        "INSERT INTO emp (id, name, dept, salary) SELECT g, 'n' || g, g % 4 + 1, g FROM generate_series(1, 40) g"
    )
    return server


PLANS = [
    ("SELECT * FROM emp WHERE id = 3 AND name > 'a'", ["Index Scan using emp_pkey on emp", "  Index Cond: (id = 3)", "  Filter: (name > 'a'::text)"]),
    (
        "SELECT d.name, count(*) FROM emp e JOIN dept d ON d.id = e.dept WHERE salary > 5 GROUP BY d.name HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 2",
        [
            "Limit",
            "  ->  Sort",
            "        Sort Key: (count(*)) DESC",
            "        ->  HashAggregate",
            "              Group Key: d.name",
            "              Filter: (count(*) > 1)",
            "              ->  Nested Loop",
            "                    ->  Seq Scan on emp e",
            "                          Filter: (e.salary > '5'::numeric)",
            "                    ->  Index Scan using dept_pkey on dept d",
            "                          Index Cond: (d.id = e.dept)",
        ],
    ),
    (
        "SELECT a.id FROM emp a FULL JOIN emp b ON a.salary = b.salary",
        [
            "Hash Full Join",
            "  Hash Cond: (a.salary = b.salary)",
            "  ->  Seq Scan on emp a",
            "  ->  Hash",
            "        ->  Seq Scan on emp b",
        ],
    ),
    (
        "SELECT id FROM emp e WHERE EXISTS (SELECT 1 FROM dept d WHERE d.id = e.dept) AND dept IN (1, 2)",
        [
            "Index Scan using emp_dept on emp e",
            "  Index Cond: (e.dept = ANY (ARRAY[1, 2]))",
            "  Filter: (SubPlan 1)",
            "  SubPlan 1",
            "    ->  Index Scan using dept_pkey on dept d",
            "          Index Cond: (d.id = e.dept)",
        ],
    ),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r UNION ALL VALUES (1), (2)",
        [
            "Append",
            "  CTE r",
            "    ->  Recursive Union",
            "          ->  Result",
            "          ->  WorkTable Scan on r",
            "                Filter: (r.n < 3)",
            "  ->  CTE Scan on r",
            '  ->  Values Scan on "*VALUES*"',
        ],
    ),
    ("UPDATE emp SET name = 'x' WHERE id = 1", ["Update on emp", "  ->  Index Scan using emp_pkey on emp", "        Index Cond: (id = 1)"]),
    (
        "INSERT INTO dept VALUES (9, 'x') ON CONFLICT DO NOTHING",
        ["Insert on dept", "  Conflict Resolution: NOTHING", "  ->  Result"],
    ),
    (
        "WITH gone AS (DELETE FROM emp WHERE id = 1 RETURNING id) SELECT * FROM gone",
        [
            "CTE Scan on gone",
            "  CTE gone",
            "    ->  Delete on emp",
            "          Route: index, every table is reached by key",
            "          ->  Index Scan using emp_pkey on emp",
            "                Index Cond: (id = 1)",
        ],
    ),
    (
        "UPDATE emp SET marks[2] = 5 WHERE id = 1",
        ["Update on emp", "  ->  Index Scan using emp_pkey on emp", "        Index Cond: (id = 1)"],
    ),
    ("SELECT row_number() OVER (ORDER BY id) FROM emp WHERE id < 3", ["WindowAgg", "  ->  Index Scan using emp_pkey on emp", "        Index Cond: (id < 3)"]),
    ("SELECT id FROM emp WHERE id = 3 FOR UPDATE", ["LockRows", "  ->  Index Scan using emp_pkey on emp", "        Index Cond: (id = 3)"]),
    ("SELECT id FROM emp WHERE name = now()::text AND id = 1", ["Index Scan using emp_pkey on emp", "  Index Cond: (id = 1)", "  Filter: (name = (now())::text)"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "plan"), PLANS)
def test_the_row_executors_plans(staff: ServerProcess, sql: str, plan: list[str]) -> None:
    lines = [str(row[0]) for row in staff.sql(f"EXPLAIN (COSTS OFF) {sql}")]
    assert lines[: len(plan)] == plan
    assert lines[len(plan)].startswith("Statement Class: ")


def test_what_an_engine_is_asked_for_is_shown_and_its_sql_with_verbose(staff: ServerProcess) -> None:
    sql = "SELECT d.name, sum(salary) FROM emp e LEFT JOIN dept d ON d.id = e.dept WHERE e.id > 5 AND d.name IS NULL GROUP BY d.name"
    with closing(staff.connect()) as client:
        client.run("SET executor = local")
        lines = [str(row[0]) for row in client.run(f"EXPLAIN (COSTS OFF) {sql}").rows]
        assert lines[:9] == [
            "Custom Scan (DuckDB)",
            "  ->  Aggregate",
            "        Group Key: d.name",
            "        ->  Left Join",
            "              Join Cond: (d.id = e.dept)",
            "              Filter: (d.name IS NULL)",
            "              ->  Seq Scan on emp e",
            "                    Filter: (e.id > 5)",
            "              ->  Seq Scan on dept d",
        ]
        verbose = [str(row[0]) for row in client.run(f"EXPLAIN (VERBOSE) {sql}").rows]
        assert any(line.startswith("  Remote SQL: SELECT ") for line in verbose)


def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(below for child in node.get("Plans", ()) for below in nodes(child))]


def test_analyze_measures_every_node_of_the_row_executor(staff: ServerProcess) -> None:
    sql = "SELECT d.name FROM emp e JOIN dept d ON d.id = e.dept WHERE e.salary > 30 AND d.name <> 'd1'"
    [(answer,)] = staff.sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {sql}")
    [query] = json.loads(str(answer))
    join, emp, dept = nodes(query["Plan"])
    assert [node["Actual Loops"] for node in (join, emp, dept)] == [1, 1, 10]
    assert (emp["Actual Rows"], emp["Rows Removed by Filter"]) == (10, 30)
    assert join["Actual Rows"] == sum(1 for g in range(31, 41) if g % 4 + 1 != 1)
    assert join["Actual Total Time"] >= emp["Actual Total Time"] >= 0
    assert query["Execution Time"] > 0
    assert "Planning Time" in query
    [(answer,)] = staff.sql(f"EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT json) {sql}")
    [query] = json.loads(str(answer))
    assert "Actual Total Time" not in query["Plan"]
    assert "Execution Time" not in query


def test_analyze_of_a_change_makes_it_and_of_a_prepared_statement_leaves_its_plan_alone(
    staff: ServerProcess,
) -> None:
    with closing(staff.connect()) as client:
        client.run("BEGIN")
        lines = [
            str(row[0])
            for row in client.run("EXPLAIN (ANALYZE, TIMING OFF) DELETE FROM emp WHERE id <= 2").rows
        ]
        assert lines[0].startswith("Delete on emp ")
        assert lines[1].endswith("(actual rows=2 loops=1)")
        assert "Result: DELETE 2" in lines
        assert client.run("SELECT count(*) FROM emp").rows == [("38",)]
        client.run("ROLLBACK")
        client.run("PREPARE q (int) AS SELECT name FROM emp WHERE id = $1")
        for _ in range(2):
            lines = [
                str(row[0])
                for row in client.run("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) EXECUTE q (7)").rows
            ]
            assert lines[:2] == [
                "Index Scan using emp_pkey on emp (actual rows=1 loops=1)",
                "  Index Cond: (id = $1)",
            ]
        assert client.run("EXECUTE q (7)").rows == [("n7",)]


def test_what_runs_without_its_plan_is_not_said_to_be_never_executed(staff: ServerProcess) -> None:
    with closing(staff.connect()) as client:
        client.run("BEGIN")
        for sql in (
            "INSERT INTO dept VALUES (90, 'x')",
            "UPDATE emp SET name = 'x' WHERE id = 3",
            "WITH u AS (UPDATE emp SET name = 'y' WHERE id = 5 RETURNING id) SELECT * FROM u",
        ):
            lines = [
                str(row[0]) for row in client.run(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}").rows
            ]
            assert "loops=1)" in lines[0]
            assert not any("never executed" in line for line in lines), sql
        assert client.run("SELECT name FROM emp WHERE id IN (3, 5) ORDER BY id").rows == [("x",), ("y",)]
        client.run("ROLLBACK")
        lines = [
            str(row[0])
            for row in client.run(
                "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM dept d JOIN emp e ON e.id = d.id WHERE d.id = -1"
            ).rows
        ]
        assert any("never executed" in line for line in lines)


def test_a_long_statement_is_explained_as_a_short_one(staff: ServerProcess) -> None:
    """It is planned and written in a thread."""
    listed = ", ".join(map(str, range(10_000)))
    for analyze in ("", "ANALYZE, TIMING OFF, SUMMARY OFF, "):
        lines = [
            str(row[0])
            for row in staff.sql(f"EXPLAIN ({analyze}COSTS OFF) SELECT id FROM emp WHERE id IN ({listed})")
        ]
        assert lines[0].startswith("Index Scan using emp_pkey on emp")
        assert lines[1].startswith("  Index Cond: (id = ANY (ARRAY[0, 1, 2,")
        assert lines[2] == "Statement Class: read only"
    with pytest.raises(ServerError, match="does not exist"):
        staff.sql(f"EXPLAIN SELECT id FROM emp WHERE nosuch IN ({listed})")


def test_settings_that_choose_a_plan_are_told(staff: ServerProcess) -> None:
    with closing(staff.connect()) as client:
        client.run("SET executor = index")
        assert "Settings: executor = 'index'" in [
            row[0] for row in client.run("EXPLAIN (SETTINGS) SELECT 1").rows
        ]


def test_the_first_line_has_the_estimate_that_postgres_fdw_reads(server: ServerProcess) -> None:
    server.sql("CREATE TABLE guessed (id int PRIMARY KEY, k int, v text)")
    server.sql("INSERT INTO guessed SELECT g, g % 5, 'x' FROM generate_series(1, 1000) g")

    def first(sql: str) -> tuple[float, int, int]:
        line = str(server.sql(sql)[0][0])
        found = COSTS.search(line)
        assert found is not None, line
        return float(found[2]), int(found[3]), int(found[4])

    assert first("EXPLAIN SELECT * FROM guessed") == (20.0, 1000, 40)
    assert first("EXPLAIN SELECT id FROM guessed WHERE id = 5")[1:] == (1, 4)
    assert first("EXPLAIN SELECT a.id FROM guessed a JOIN guessed b ON a.id = b.id")[1:] == (1000, 4)
    assert first("EXPLAIN SELECT count(*) FROM guessed")[1:] == (1, 8)
    assert first("EXPLAIN SELECT id FROM guessed LIMIT 7")[1] == 7
    assert first("EXPLAIN DELETE FROM guessed")[1:] == (0, 0)
    assert COSTS.search(str(server.sql("EXPLAIN (COSTS OFF) SELECT * FROM guessed")[0][0])) is None
    for form in ("xml", "yaml", "json"):
        [(answer,)] = server.sql(f"EXPLAIN (FORMAT {form}) SELECT * FROM guessed")
        assert "1000" in str(answer)


def test_what_a_node_gives_is_named_as_in_postgresql(staff: ServerProcess) -> None:
    with closing(staff.connect()) as client:
        client.run("CREATE TABLE given (a int, b text)")

        def outputs(sql: str) -> list[str]:
            rows = client.run(f"EXPLAIN (VERBOSE, COSTS OFF) {sql}").rows
            return [str(row[0]).strip() for row in rows if "Output:" in str(row[0])]

        assert outputs("SELECT a, upper(b) FROM given WHERE a > 1") == ["Output: a, upper(b)"]
        assert "Output: x.a, y.b" in outputs("SELECT x.a, y.b FROM given x, given y")
