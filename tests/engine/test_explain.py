"""EXPLAIN in PostgreSQL's formats, with an estimate where other planners look for it."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from engine.reads.estimate import Estimate
from engine.reads.explain_formats import document, plan_tree
from tests.support.server import ServerProcess

LINES = ["Project a", "  Inner join", "    Scan t", "    Scan u <&>"]
NAMESPACE = {"e": "http://www.postgresql.org/2009/explain"}
COSTS = re.compile(r"\(cost=(\d+\.\d\d)\.\.(\d+\.\d\d) rows=(\d+) width=(\d+)\)$")


def test_lines_nest_as_they_are_indented() -> None:
    tree = plan_tree(LINES, "Query", Estimate(rows=3, width=8, cost=0.5), nested=True)
    join = {"Node Type": "Inner join", "Plans": [{"Node Type": "Scan t"}, {"Node Type": "Scan u <&>"}]}
    assert tree == {
        "Node Type": "Query",
        "Startup Cost": 0.0,
        "Total Cost": 0.5,
        "Plan Rows": 3,
        "Plan Width": 8,
        "Plans": [{"Node Type": "Project a", "Plans": [join]}],
    }
    assert json.loads(document("json", tree, {"Route": "index"})) == [{"Plan": tree, "Route": "index"}]


def test_xml_is_well_formed_and_yaml_is_indented() -> None:
    tree = plan_tree(LINES, "Query", None, nested=True)
    root = ElementTree.fromstring(document("xml", tree, {"Actual Rows": 2}))
    assert root.findtext("e:Query/e:Actual-Rows", namespaces=NAMESPACE) == "2"
    names = [node.text for node in root.iter(f"{{{NAMESPACE['e']}}}Node-Type")]
    assert names == ["Query", "Project a", "Inner join", "Scan t", "Scan u <&>"]
    assert document("yaml", plan_tree(LINES[:2], "Query", None, nested=True), {"Route": "index"}) == (
        '- Plan:\n    Node Type: "Query"\n    Plans:\n      - Node Type: "Project a"\n        Plans:\n'
        '          - Node Type: "Inner join"\n  Route: "index"'
    )


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
