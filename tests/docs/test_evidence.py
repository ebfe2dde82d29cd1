"""Each data file of docs/evidence is told of in the index and, where it has a table, on a page of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import gen_evidence_doc as generator


def test_each_data_file_has_a_row_with_its_latest_result() -> None:
    index = generator.index()
    for name in generator.FILES:
        row = re.search(rf"^\|.*\[data\]\({re.escape(name)}\) \|$", index, re.MULTILINE)
        assert row is not None, name
        assert len(row[0].split(" | ")[3]) > 5


def test_a_data_file_without_a_row_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in generator.FOLDER.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "new.json").write_text("{}")
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"new\.json"):
        generator.index()


def test_pages_tell_no_commit_and_tables_are_whole() -> None:
    for page, text in generator.pages().items():
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert rows, page
        if page.name not in {"index.md", "proofs.md"}:
            assert len({len(re.split(r"(?<!\\)\|", row)) for row in rows}) == 1, page
        commits = re.findall(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8}\b", text)
        assert not commits, page


def test_pages_show_the_last_runs() -> None:
    data = {"runs": [{"day": str(day), "statements": day} for day in range(30)]}
    head, *rows = generator._records("runs", "day", "statements", latest=10)(data)
    assert head == ["day", "statements"]
    assert rows == [[str(day), day] for day in range(20, 30)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234, "1,234"),
        ("a|b\nc", r"a\|b c"),
        ([], "0"),
        (["x", "y"], "2"),
        ([1, 2], "1, 2"),
        ({"a": 1}, "a: 1"),
        (None, ""),
        ("<a>", "&lt;a>"),
    ],
)
def test_values_are_cells(value: object, shown: str) -> None:
    assert generator._cell(value) == shown
