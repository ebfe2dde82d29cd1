"""Parsing: spans, statement splitting, error positions, refusals, limits."""

from __future__ import annotations

import pglast.ast
import pytest

from planner import ast
from planner import parse as parse_module
from planner.base.errors import Span, SqlError
from planner.parse import parse, parse_expression, parse_one, scanner
from planner.parse.reader import expr as raw_expr
from planner.parse.reader.statement import _STATEMENTS
from planner.parse.reader.tables import REFUSED


def one(text: str) -> ast.Node:
    parsed = parse_one(text)
    assert parsed is not None
    return parsed.statement


def failure(text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        parse(text)
    return caught.value


def test_statements_of_a_string_keep_their_place_in_it():
    text = "  -- é\nSELECT 'é'; /* x */ ;\nSELECT 2 ;"
    first, second = parse(text)
    assert first.text == "SELECT 'é'"
    assert text[first.span.start : first.span.end].endswith("SELECT 'é'")
    assert second.text == "SELECT 2"
    assert text[second.span.start : second.span.end] == "SELECT 2"


def test_empty_statements_vanish():
    assert parse("") == []
    assert parse(" ;; -- nothing\n;") == []
    assert parse_one("") is None


def test_several_statements_are_not_one():
    with pytest.raises(SqlError) as caught:
        parse_one("SELECT 1; SELECT 2")
    assert caught.value.sqlstate == "42601"


def test_spans_count_characters_not_bytes():
    text = "SELECT '日本', naïve FROM t"
    statement = one(text)
    assert isinstance(statement, ast.Select)
    span = statement.targets[1].expr.span
    assert span is not None
    assert text[span.start : span.end] == "naïve"


def test_spans_of_a_second_statement_count_from_the_start_of_the_string():
    text = "SELECT é; SELECT x"
    second = parse(text)[1].statement
    assert isinstance(second, ast.Select)
    assert second.targets[0].expr.span == Span(17, 18)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("SELECT a FROM FROM", "FROM"),
        ("SELECT é FROM FROM", "FROM"),
        ("SELECT ééé FROM FROM t", "FROM"),
        ("SELECT '日本' FROM FROM WHERE", "FROM"),
        ("SELECT 日本 é é FROM x", "é"),
        ("SELECT 1; SELECT é; SELECT FROM FROM", "FROM"),
        ("SELECT 😀😀 a b", "b"),
    ],
)
def test_a_syntax_error_points_at_its_token_also_after_other_scripts(text: str, near: str):
    error = failure(text)
    assert error.sqlstate == "42601"
    assert error.message == f'syntax error at or near "{near}"'
    assert error.span is not None
    assert text[error.span.start : error.span.end] == near
    # the last occurrence is the one that is wrong, in all of these
    assert error.span.start == text.rindex(near)


def test_a_syntax_error_at_the_end_points_behind_the_text():
    for text in ("SELECT é FROM", "SELECT (1", "INSERT INTO"):
        error = failure(text)
        assert (error.sqlstate, error.message) == ("42601", "syntax error at end of input")
        assert error.span == Span(len(text), len(text))


def test_a_string_of_broken_utf8_is_not_a_syntax_error():
    assert failure(r"SELECT E'\xff'").sqlstate == "22021"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 'é' , 'abc", 'unterminated quoted string at or near "\'abc"'),
        ('SELECT "é', 'unterminated quoted identifier at or near ""é"'),
        ("SELECT /* é ", 'unterminated /* comment at or near "/* é "'),
        ("SELECT 1a", 'trailing junk after numeric literal at or near "1a"'),
    ],
)
def test_scanner_errors_keep_postgresqls_words(text: str, message: str):
    error = failure(text)
    assert (error.sqlstate, error.message) == ("42601", message)


@pytest.mark.parametrize(
    "text",
    ["SELECT 0x1F", "SELECT 1_000", "SELECT 0b1 + 1", "SELECT x AT LOCAL FROM t"],
)
def test_grammar_newer_than_fifteen_is_a_syntax_error(text: str):
    assert failure(text).sqlstate == "42601"


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("CREATE EVENT TRIGGER x ON ddl_command_end EXECUTE FUNCTION f()", "CREATE EVENT TRIGGER"),
        ("SELECT x IS JSON FROM t", "IS JSON"),
        ("SELECT xmlelement(NAME foo)", "XML"),
        ("CREATE CAST (int AS text) WITH INOUT", "CREATE CAST"),
        ("CREATE OPERATOR === (function = f, leftarg = int, rightarg = int)", "CREATE OPERATOR"),
        ("CREATE RULE r AS ON INSERT TO t DO NOTHING", "CREATE RULE"),
        ("CREATE TEXT SEARCH TEMPLATE c (lexize = f)", "CREATE TEXT SEARCH TEMPLATE"),
    ],
)
def test_what_is_refused_is_named(text: str, construct: str):
    error = failure(text)
    assert (error.sqlstate, error.message) == ("0A000", f"{construct} is not supported")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT " + "NOT " * 20_000 + "true",
        "SELECT " + "f(" * 5_000 + "1" + ")" * 5_000,
        "SELECT " + "(SELECT " * 3_000 + "1" + ")" * 3_000,
        "SELECT " + "CASE WHEN true THEN " * 5_000 + "1" + " END" * 5_000,
    ],
)
def test_nesting_too_deep_is_reported_not_crashed(text: str):
    error = failure(text)
    assert error.sqlstate == "54001"
    assert error.hint is not None


def test_a_nul_character_is_refused():
    assert failure("SELECT '\0'").sqlstate == "22021"


def test_text_that_is_not_unicode_is_refused():
    assert failure("SELECT '\ud800'").sqlstate == "22021"


def test_the_statement_inside_prepare_keeps_its_text():
    prepared = one("PREPARE \"as\" (int) AS SELECT 'é', $1")
    assert isinstance(prepared, ast.Prepare)
    assert prepared.text == "SELECT 'é', $1"
    cursor = one("DECLARE c SCROLL CURSOR FOR SELECT 1 AS for_x")
    assert isinstance(cursor, ast.DeclareCursor)
    assert (cursor.scroll, cursor.hold) == (True, False)


def test_multiple_assignment_is_one_assignment():
    update = one("UPDATE t SET (a, b) = (SELECT 1, 2), c = DEFAULT")
    assert isinstance(update, ast.Update)
    first, second = update.assignments
    assert ([column.name for column in first.columns], first.multiple) == (["a", "b"], True)
    assert isinstance(second.value, ast.Default)


def test_stored_expressions_parse_alone():
    expr = parse_expression("a + 1 -- why")
    assert isinstance(expr, ast.Operator)
    for bad in ("1, 2", "1) FROM t --", "1 AS x"):
        with pytest.raises(SqlError):
            parse_expression(bad)


def test_spans_take_no_part_in_equality():
    assert one("SELECT a+1") == one("SELECT   a  +  1")
    assert one("SELECT a+1") != one("SELECT a+2")


def test_a_long_chain_of_operators_or_unions_is_no_nesting():
    assert isinstance(one("SELECT " + "1 + " * 150 + "1"), ast.Select)
    assert isinstance(one("SELECT 1" + " UNION ALL SELECT 1" * 150), ast.SetOp)


def test_every_statement_of_the_grammar_is_read_or_refused_by_name():
    every = {name for name in dir(pglast.ast) if name.endswith("Stmt")}
    # what other readers know, and nodes that are no statements of their own
    elsewhere = {"DefineStmt", "SelectStmt", "RawStmt", "ReturnStmt", "SetOperationStmt", "PLAssignStmt"}
    assert every - set(_STATEMENTS) - set(REFUSED) == elsewhere


class Ended(Exception):
    """What ``give_way`` raises here."""


@pytest.mark.parametrize("at", ["decoding", "reading"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {}",
        "SELECT 1 WHERE 1 IN ({})",
        "SELECT CASE {} END",
        "VALUES {}",
        "INSERT INTO t VALUES {}",
        "SELECT 1 GROUP BY {}",
        "SELECT 1 ORDER BY {}",
        "SELECT f({})",
        "SELECT ARRAY[{}]",
        "SELECT 1 FROM {}",
    ],
)
def test_what_was_read_of_a_statement_that_is_cancelled_stays_with_its_error(
    text: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The locals of the error's frames hold it, and are let go of in slices (``pgwire.release``); else it would go at once."""
    many = 3000
    item = (
        "WHEN true THEN 1 "
        if "CASE" in text
        else "(1)"
        if "VALUES" in text
        else "f(1)"
        if "FROM" in text
        else "1"
    )
    text = text.format((" " if "CASE" in text else ",").join([item] * many))
    monkeypatch.setattr(parse_module, "LARGE_JSON", 1000)
    calls = 0

    def ends() -> None:
        nonlocal calls
        calls += 1
        if calls == (many if at == "decoding" else many * 4 // 5):
            raise Ended

    monkeypatch.setattr(parse_module if at == "decoding" else raw_expr, "give_way", ends)
    with pytest.raises(Ended) as raised:
        parse_module.parse(text)
    held = []
    trace = raised.value.__traceback__
    while trace is not None:
        for value in trace.tb_frame.f_locals.values():
            if isinstance(value, list) and value and isinstance(value[0], dict) == (at == "decoding"):
                held.append(len(value))
        trace = trace.tb_next
    assert max(held) >= many // 3


def test_a_tree_takes_no_more_than_a_statement_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_module, "LARGE_JSON", 1000)
    monkeypatch.setattr(parse_module.METER, "each", 1000 * parse_module.OBJECT_BYTES)
    assert parse_module.parse("SELECT " + ",".join(["1"] * 150))
    with pytest.raises(SqlError) as raised:
        parse_module.parse("SELECT " + ",".join(["1"] * 1000))
    assert raised.value.sqlstate == "53200"


@pytest.mark.parametrize("step", [1, 5, 16, 2048])
def test_tokens_are_the_same_one_after_the_other(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "STEP", step)
    for text in (
        "PREPARE p (int,int, text) AS SELECT $1::int,'AS' /* AS /* AS */ */ -- AS\n, 1.5e3..2",
        "SELECT 'a' -- c\n 'b', 'c'\n'd' , 'e' - 1",
        "SELECT $t$ AS $t$, E'\\'', U&'d\\0061', x'1f' <> \"é Q\" := a=>b",
        "SELECT 'é" + "z" * 100 + "' (((,,;[1]",
        "",
    ):
        wanted = [t for t in scanner.scan(text) if t.name not in scanner.COMMENTS]
        assert list(scanner.each(text)) == wanted


def test_of_a_long_text_no_more_tokens_are_made_than_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    scan = scanner.scan

    def counting(text: str, told: bool = True) -> list[scanner.Token]:
        nonlocal made
        made += len(text)
        return scan(text, told)

    monkeypatch.setattr(scanner, "scan", counting)
    found = parse_module.parse("PREPARE p (int) AS SELECT " + ",".join(["1"] * 10_000))[0].statement
    assert isinstance(found, ast.Prepare)
    assert found.text.startswith("SELECT 1,1")
    assert made <= 2 * scanner.STEP
