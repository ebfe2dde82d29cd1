"""Bound trees as they print. A line is one statement, or one of

table NAME(column definition, ...)      view NAME(columns) AS QUERY     (see tests.support.catalog)
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgwire.codecs.errors import DataError
from planner.bind import bind_statement
from planner.deparse.explain import explain_expr, explain_statement
from planner.parse import parse
from tests.golden.harness import check
from tests.support.catalog import MemoryCatalog

SCRIPTS = sorted(Path(__file__).parent.glob("*.plan"))


class Session:
    """Runs the commands of one script over one catalog."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()

    def run(self, commands: list[str]) -> list[str]:
        return [line for command in commands for line in self.command(command)]

    def command(self, text: str) -> list[str]:
        table = re.fullmatch(r"table (\w+)\((.*)\)", text)
        if table:
            self.catalog.table(table[1], *re.split(r", (?![^(]*\))", table[2]))
            return []
        view = re.fullmatch(r"view (\w+)\((.*?)\) AS (.*)", text)
        if view:
            self.catalog.view(view[1], view[3], *view[2].split(", "))
            return []
        try:
            (parsed,) = parse(text)
            bound = bind_statement(parsed.statement, parsed.text, self.catalog, ("pg_catalog", "public"))
        except DataError as error:
            return self.failure(text, error)
        lines = explain_statement(bound.statement)
        first = len(bound.params) + 1
        lines += [f"stable ${first + i}: {explain_expr(expr)}" for i, expr in enumerate(bound.stable)]
        return lines

    def failure(self, text: str, error: DataError) -> list[str]:
        lines = [f"ERROR {error.sqlstate}: {error.message}"]
        span = getattr(error, "span", None)
        if span is not None:
            lines.append(f"  at {text[span.start : span.end]!r} ({span.start + 1})")
        lines += [
            f"  {word}: {part}" for word, part in (("detail", error.detail), ("hint", error.hint)) if part
        ]
        return lines


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_trees_print_as_recorded(script: Path, rewrite: bool):
    check(script, Session().run, rewrite=rewrite)


def test_there_are_scripts():
    assert len(SCRIPTS) > 5
