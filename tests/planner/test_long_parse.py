"""The tree of a long text is the library's own, and an error's place counts characters."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from pglast import parser

from pgwire.long import values as long_values
from planner import parse as parse_module
from planner.base import long_search as search
from planner.base.errors import Span, SqlError
from planner.parse import long_texts as long_parse


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


@pytest.mark.parametrize("stretch", [16, 32, 64])
def test_long_strings_are_taken_out_of_a_tree(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_parse, "STRETCH", stretch)
    draw = random.Random(stretch)
    parts = ("a", '"', "\\", "{", "}", ":", "\n", "é", ",", "\x01", '":"', '{"')
    for _ in range(300):
        sizes = [draw.choice((0, 1, 5, 30, 100, 300)) for _ in range(draw.randint(1, 6))]
        texts = ["".join(draw.choices(parts, k=size)) for size in sizes]
        tree = {"stmts": [{"A_Const": {"sval": {"sval": text}}} for text in texts]}
        shown = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
        rest, strings = long_parse.without_long_strings(shown)
        assert len(strings) >= sum(size >= 3 * stretch for size in map(len, texts))

        def put_back(found: dict[str, Any], strings: list[str] = strings) -> dict[str, Any]:
            return {
                key: strings[int(value[1:])] if str(value).startswith(long_parse.STAND_IN) else value
                for key, value in found.items()
            }

        assert json.loads(rest, object_hook=put_back) == tree


@pytest.mark.parametrize("step", [4, 5, 7])
def test_a_long_token_ends_where_a_short_one_does(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "STEP", step)
    monkeypatch.setattr(search, "_NEAR", step)
    monkeypatch.setattr(long_values, "PIECE", 8 * step)
    for token in (
        "'a''b'''",
        "''",
        '"a""b"',
        "abcdefghijk",
        "12345678901",
        "1.2345678901",
        ".123456789012",
        "-+-+-+-+-+-+-",
        "$12",
    ):
        for before, behind in ((" ", " "), ("(", ")"), ("", ",'x'"), ("", "")):
            assert search.token_end(before + token + behind, len(before)) == len(before + token)
    assert search.token_end("'abcdefgh''ijklmn", 0) == 1
