"""Prose of the documentation ends at 120 characters (tools/wrap_docs.py, part of ``make lint``), and filling it changes no word."""

from __future__ import annotations

import pytest

from tools.wrap_docs import GENERATED, ROOT, WIDTH, blocks, long_lines, pages, wrapped

LONG = " ".join(["word"] * 40)


def test_no_line_is_too_long() -> None:
    wide = {str(page): list(long_lines(page.read_text("utf-8"))) for page in pages()}
    assert {page: lines for page, lines in wide.items() if lines} == {}


def test_pages_that_are_not_looked_at_are_written_by_tools() -> None:
    for name in GENERATED:
        assert "enerated by" in (ROOT / name).read_text("utf-8")[:300]


def test_a_paragraph_is_filled_and_what_is_short_stays() -> None:
    text = f"short\nlines\n\n{LONG}\nmore\n"
    short, filled = wrapped(text).split("\n\n")
    assert short == "short\nlines"
    assert max(map(len, filled.splitlines())) in range(WIDTH - 5, WIDTH + 1)
    assert filled.split() == [*LONG.split(), "more"]
    assert wrapped(wrapped(text)) == wrapped(text)


def test_items_keep_their_indent() -> None:
    first, *rest = wrapped(f"  - {LONG}\n").splitlines()
    assert first.startswith("  - word")
    assert rest
    assert all(line.startswith("    word") for line in rest)


@pytest.mark.parametrize(
    "text",
    [f"| {LONG} | b |\n| --- | --- |\n", f"```\n{LONG}\n```\n", f"## {LONG}\n", f"<!-- {LONG}\n{LONG} -->\n"],
)
def test_tables_code_headings_and_comments_are_left(text: str) -> None:
    assert wrapped(text) == text


def test_code_is_told_of_and_tables_are_not() -> None:
    assert list(long_lines(f"| {LONG} |\n```\n{LONG}\n```\n{LONG}\n")) == [3, 5]


@pytest.mark.parametrize("mark", ["-", "+", "#", ">", "12.", "|", "---"])
def test_no_line_begins_with_what_would_be_a_mark(mark: str) -> None:
    for length in range(100, 125):
        text = f"{'x' * length} {mark} {LONG}\n"
        assert not any(line.startswith(mark) for line in wrapped(text).splitlines())
        assert wrapped(text).split() == text.split()


def test_no_line_ends_within_a_code_span() -> None:
    for length in range(90, 121):
        assert "`SELECT a FROM b`" in wrapped(f"{'x' * length} (`SELECT a FROM b`) {LONG}\n")


def test_blocks_are_the_page() -> None:
    for page in pages():
        text = page.read_text("utf-8")
        assert [line for block in blocks(text) for line in block.lines] == text.splitlines()
