"""AS OF SYSTEM TIME is cut out of a text without moving anything else."""

from __future__ import annotations

import pytest

from planner import ast
from planner.base.errors import SqlError
from planner.parse import parse


def clause_of(text: str) -> tuple[str | None, str]:
    [parsed] = parse(text)
    assert parsed.text == text.strip()
    clause = parsed.as_of
    if clause is not None:
        assert text[clause.span.start : clause.span.end] == clause.text
    return (None if clause is None else clause.text), type(parsed.statement).__name__


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("SELECT 1 FROM t AS OF SYSTEM TIME '-5s'", "'-5s'", "Select"),
        ("SELECT 1 FROM t as of /* , */ system -- )\n time '-5s' WHERE a = 1", "'-5s'", "Select"),
        (
            "SELECT 1 FROM t AS OF SYSTEM TIME now() - interval '1 s' GROUP BY a",
            "now() - interval '1 s'",
            "Select",
        ),
        ("SELECT 1 FROM t AS OF SYSTEM TIME (f('a', (2))) LIMIT 1", "(f('a', (2)))", "Select"),
        ("SELECT 1 FROM t AS OF SYSTEM TIME '1' UNION SELECT 2", "'1'", "SetOp"),
        ("EXPLAIN SELECT 1 FROM t AS OF SYSTEM TIME 5", "5", "Explain"),
        ("COPY (SELECT 1 FROM t AS OF SYSTEM TIME 5) TO STDOUT", "5", "Copy"),
        ("DECLARE c CURSOR FOR SELECT 1 FROM t AS OF SYSTEM TIME 5", "5", "DeclareCursor"),
        ("BEGIN AS OF SYSTEM TIME '-5s', ISOLATION LEVEL SERIALIZABLE", "'-5s'", "Transaction"),
        ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE, AS OF SYSTEM TIME 5 READ ONLY", "5", "Transaction"),
        ("SET TRANSACTION AS OF SYSTEM TIME '-5s'", "'-5s'", "SetVariable"),
        ("SELECT 'Ä' FROM t AS OF SYSTEM TIME 'é' WHERE 'ö' = b", "'é'", "Select"),
        ("SELECT 'as of system time 5'", None, "Select"),
        ("SELECT 1 AS of FROM system", None, "Select"),
        ('SELECT 1 FROM t AS "of system time"', None, "Select"),
    ],
)
def test_the_clause_is_found_where_it_belongs(text: str, value: str | None, kind: str) -> None:
    assert clause_of(text) == (value, kind)


def test_each_statement_of_a_text_has_its_own() -> None:
    text = (
        "SELECT 1; SELECT 2 FROM t AS OF SYSTEM TIME 'é;' WHERE true; SELECT 'ü'; BEGIN AS OF SYSTEM TIME 7;"
    )
    found = parse(text)
    assert [p.as_of and p.as_of.text for p in found] == [None, "'é;'", None, "7"]
    assert [text[p.span.start : p.span.end] for p in found] == [p.text for p in found]
    begin = found[-1].statement
    assert isinstance(begin, ast.Transaction)
    assert [option.name for option in begin.options] == ["transaction_read_only"]


def test_positions_of_later_errors_stay() -> None:
    text = "SELECT 1 FROM t AS OF SYSTEM TIME 'é' WHERE b = = 1"
    with pytest.raises(SqlError) as error:
        parse(text)
    assert error.value.span is not None
    assert error.value.span.start == text.index("= 1")


@pytest.mark.parametrize(
    ("text", "state", "at"),
    [
        ("SELECT 1 FROM (SELECT 2 FROM t AS OF SYSTEM TIME 5) x", "0A000", "AS OF"),
        ("SELECT 1 FROM t AS OF SYSTEM TIME", "42601", "AS OF"),
        ("SELECT 1 FROM t AS OF SYSTEM TIME WHERE true", "42601", "AS OF"),
        (
            "SELECT 1 FROM t AS OF SYSTEM TIME 5 UNION SELECT 2 FROM t AS OF SYSTEM TIME 6",
            "42601",
            "AS OF SYSTEM TIME 6",
        ),
    ],
)
def test_misplaced_clauses_are_refused(text: str, state: str, at: str) -> None:
    with pytest.raises(SqlError) as error:
        parse(text)
    assert error.value.sqlstate == state
    assert error.value.span is not None
    assert error.value.span.start == text.index(at)
