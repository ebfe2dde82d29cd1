"""Extracting literals the short way finds what looking at every token finds, or leaves the text to that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.reads.templates import Template, _extract_any, _extract_plain, extract

PIECES = st.sampled_from(
    ["a", "t1", "E", "é", "x$y", "select", "and", "-", "+", "=", "*", "/", "%", "(", ")", "[", "]", ",", ".", ":", "::", "--",
     "/*", "*/", "$", "$1", "\\", '"', '"q"', "'", "''", "'s'", "'it''s'", "0", "7", "1.5", ".5", "1e3", "2147483647",
     "2147483648", "9223372036854775808", "٣", " ", "  ", "\n", ";"]
)  # fmt: skip


def parts(template: Template | None) -> object:
    return None if template is None else (template.text, template.oids, template.values)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("a = -5")
@example("a -5")
@example("a = - 5")
@example("'a' -5")
@example("x = E'1'")
@example("1-1")
def test_the_short_way_agrees_with_the_long_one(text: str) -> None:
    short = _extract_plain(text)
    if short is not None:
        assert parts(short) == parts(_extract_any(text))


@pytest.mark.parametrize(
    ("sql", "template", "values"),
    [
        ("UPDATE t SET n = n + -5 WHERE id = 17", "UPDATE t SET n = n + $1 WHERE id = $2", ("-5", "17")),
        ("INSERT INTO t VALUES (1, 'it''s', .5)", "INSERT INTO t VALUES ($1, $2, $3)", ("1", "it's", ".5")),
    ],
)
def test_everyday_statements_take_the_short_way(sql: str, template: str, values: tuple[str, ...]) -> None:
    found = _extract_plain(sql)
    assert found is not None
    assert (found.text, found.values) == (template, values)
    assert parts(extract(sql)) == parts(found)
