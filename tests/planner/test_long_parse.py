"""The tree of a long text is the library's own, and an error's place counts characters."""

from __future__ import annotations

import pytest
from pglast import parser

from planner import long_parse
from planner import parse as parse_module
from planner.errors import Span, SqlError


@pytest.mark.parametrize(
    "text",
    ["", ";;", "SELECT 1; SELECT 2", "SELECT 'é€𝄞' AS \"ü\", 'abc' FROM t", "SELECT " + ",".join("é" * 50)],
)
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_tree_is_read_in_pieces(text: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_parse, "PIECE", piece)
    assert long_parse.tree_of(text) == parser.parse_sql_json(text)


def test_a_tree_of_many_pieces() -> None:
    for item in ("'x{}'", "'é{}'"):
        text = "SELECT " + ",".join(item.format(i) for i in range(20_000))
        assert long_parse.tree_of(text) == parser.parse_sql_json(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("SELECT a a a", "a"),
        ("SELECT 'é€' frm x y", "x"),
        ("SELECT 'é' + ) é", ")"),
        ("SELECT '𝄞𝄞", "'𝄞𝄞"),
        ("SELECT (", ""),
        ("SELECT 'é' FROM (", ""),
    ],
)
def test_an_error_tells_its_place(text: str, near: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_module, "PARSED_HERE", 0)
    with pytest.raises(SqlError) as raised:
        parse_module.parse(text)
    assert raised.value.sqlstate == "42601"
    start = text.rindex(near) if near else len(text)
    assert raised.value.span == Span(start, start + len(near))


def test_what_is_no_utf8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_module, "PARSED_HERE", 0)
    with pytest.raises(SqlError) as raised:
        parse_module.parse("SELECT '\ud800'")
    assert raised.value.sqlstate == "22021"
