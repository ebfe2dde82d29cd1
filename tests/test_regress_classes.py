"""The classes that ``tools/regress_classes.py`` gives to statements of PostgreSQL's scripts whose output differs."""

from __future__ import annotations

import json
from pathlib import Path

from tools.regress_classes import classified

SETUP = "CREATE AGGREGATE mine(int) (sfunc = f, stype = int);\nCREATE VIEW from_mine AS SELECT mine(1);\n"
SCRIPT = """\
CREATE TABLE parent (a int);
CREATE TABLE child () INHERITS (parent);
SELECT count(*) FROM child;
SELECT count(*) FROM parent;
DROP TABLE child;
CREATE TABLE other (a int);
SELECT * FROM other;
SELECT * FROM from_mine;
CREATE TABLE child (a int);
SELECT * FROM child;
EXPLAIN SELECT 1;
SELECT a FROM plain;
SELECT b FROM plain;
"""


def failure(line: int, actual: str, verdict: str = "differs", kind: str = "loud") -> dict[str, object]:
    return {
        "line": line, "sql": SCRIPT.splitlines()[line - 1], "expected": "a row", "actual": actual, "verdict": verdict, "kind": kind,
    }  # fmt: skip


def test_classes_of_statements_that_differ(tmp_path: Path) -> None:
    for folder, name, text in (("support", "test_setup", SETUP), ("sql", "script", SCRIPT)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.sql").write_text(text)
    (tmp_path / "suite.json").write_text(json.dumps({"deps": {}}))
    failures = [
        failure(2, "ERROR:  inheritance is not supported"),
        failure(3, 'ERROR:  relation "child" does not exist'),
        failure(4, "another row"),  # the parent has the rows of its children in PostgreSQL
        failure(7, "another row"),
        failure(8, "another row"),  # made of an aggregate of the set-up
        failure(10, "another row"),  # made anew: its own
        failure(11, "another plan", kind="explain"),
        failure(12, "another order", verdict="rows"),
        failure(13, "another row"),
    ]
    reasons = {("script", "13"): "is meant"}
    found = classified({"name": "script", "failures": failures}, tmp_path, reasons)
    assert [(kind, item["line"]) for kind, item in found] == [
        ("refused", 2), ("follows", 3), ("follows", 4), ("open", 7), ("follows", 8), ("open", 10), ("plan", 11), ("order", 12),
        ("listed", 13),
    ]  # fmt: skip
