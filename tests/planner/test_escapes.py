r"""Plain literals with escapes made into standard ones: values, places, what is no literal, what is wrong."""

from __future__ import annotations

import random

import pytest

from planner import ast
from planner.base.errors import SqlError
from planner.parse import parse_one
from planner.parse.escapes import to_standard


def strings(text: str) -> list[object]:
    parsed = parse_one(text)
    assert parsed is not None
    assert isinstance(parsed.statement, ast.Select)
    return [item.expr.value for item in parsed.statement.targets if isinstance(item.expr, ast.Constant)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (r"SELECT 'a\\b', 'it\'s', 'x\ty', '\101\x42\u0043\U00000044'", ["a\\b", "it's", "x\ty", "ABCD"]),
        ("SELECT 'a\\n'\n  'b\\n', 'c'", ["a\nb\n", "c"]),
        ("SELECT 'a\\n' -- '\\n\n\t'b', 1", ["a\nb", 1]),
        (r"SELECT E'\\', $$'\n'$$, $a$ '\n $$ $a$, '\\'", ["\\", r"'\n'", r" '\n $$ ", "\\"]),
        (r"SELECT 'a''\\''b', '', '\''''", ["a'\\'b", "", "''"]),
        (r"""SELECT /* '\n /* ' */ \' */ '\n' AS "a'\n", 2""", ["\n", 2]),
        (r"SELECT b'01', '\\' AS e, X'1f'", ["b01", "\\", "x1f"]),
        (r"SELECT N'a\\b'", []),
    ],
)
def test_values_are_those_of_escapes(text: str, values: list[object]) -> None:
    standard, _ = to_standard(text)
    assert len(standard) == len(text)
    assert strings(standard) == values


def test_places_hold_and_each_literal_is_told_once() -> None:
    text = r"SELECT 'é\n\\' AS a, E'\n', '\'' AS b, '\\' AS c, 'd' AS d"
    standard, escapes = to_standard(text)
    assert [standard.index(f" AS {name}") for name in "abcd"] == [
        text.index(f" AS {name}") for name in "abcd"
    ]
    assert [(text[e.at :][:3], e.message.split(" in a ")[0]) for e in escapes] == [
        ("'é\\", "nonstandard use of escape"),
        ("'\\'", "nonstandard use of \\'"),
        ("'\\\\", "nonstandard use of \\\\"),
    ]


def test_what_is_no_plain_literal_is_kept() -> None:
    for text in (
        r"""SELECT E'a\nb', e'\'', B'01', x'1F', $q$\$q$, "\'" """,
        "SELECT 1 -- it's \\\n/* \\' /* */ ' */, $1",
        "SELECT a$b$ FROM t /* open \\ ",
        "DO $$ BEGIN x := 'a\\b'; ",
    ):
        assert to_standard(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "sqlstate", "at"),
    [
        (r"SELECT 1, 'abc\'", "42601", 10),
        (r"SELECT 'ab\u12'", "22025", 10),
        (r"SELECT 'ab\ud800'", "42601", 16),
        (r"SELECT 'a', U&'b'", "0A000", 12),
    ],
)
def test_errors_have_their_place(text: str, sqlstate: str, at: int) -> None:
    with pytest.raises(SqlError) as caught:
        to_standard(text)
    assert (caught.value.sqlstate, caught.value.span and caught.value.span.start) == (sqlstate, at)


def test_random_texts_mean_what_they_mean_with_e() -> None:
    """A text is written twice: as it is, and with E before each plain literal."""
    rng = random.Random(20261129)
    parts = ("a", "é", "''", r"\\", r"\'", r"\n", r"\x41", r"\u00e9", '"', "--", "/*", "$$", "\n", "E", " ")
    between = (", ", "\n,", " /* ' */, ", " -- '\n, ", ", $$ '\\$$, ", ', 1 AS "\'\\", ')
    for _ in range(400):
        plain = escaped = "SELECT 0"
        for _ in range(rng.randrange(1, 5)):
            gap = rng.choice(between)
            literal = "'" + "".join(rng.choices(parts, k=rng.randrange(6))) + "'"
            plain += gap + literal
            escaped += gap + "E" + literal
        standard, _ = to_standard(plain)
        assert len(standard) == len(plain)
        assert strings(standard) == strings(escaped), plain
