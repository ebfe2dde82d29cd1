"""What the documentation links to, and what code names of it, is there (tools/check_links.py, part of ``make lint``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_links

DOCS = "docs"  # so that this file itself names nothing that is not there


def test_nothing_leads_nowhere() -> None:
    assert list(check_links.faults(check_links.tracked())) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"see [a]({DOCS}/none.md)", f"{DOCS}/none.md is not there"),
        ("see [a](README.md#no-such-heading)", "has no heading #no-such-heading"),
        ("# One\n\nsee [a](#two)", "has no heading #two"),
        (f"`{DOCS}/none.md` says", f"{DOCS}/none.md is not there"),
        (f"{DOCS}/decisions/9999 says", f"{DOCS}/decisions/9999 is not there"),
        (f"![a]({DOCS}/pictures/none.svg)", "none.svg is not there"),
    ],
)
def test_a_reference_to_what_is_not_there_is_told(text: str, said: str, page: Path) -> None:
    page.write_text(text)
    assert any(said in line for line in check_links.faults([page]))


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs/status.md), [b](https://example.org/none.md), `[c](none.md)`",
        "# Of `a` and B's\n\n## Twice\n\n## Twice\n\n[a](#of-a-and-bs) [b](#twice-1)",
        "```\n[a](none.md)\n```",
        "docs/decisions/0006 and docs/decisions/ and docs/evidence/*.json",
    ],
)
def test_what_is_there_is_not_told(text: str, page: Path) -> None:
    page.write_text(text)
    assert list(check_links.faults([page])) == []


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a page in a copy of the repository's outline."""
    (tmp_path / "docs").symlink_to(check_links.ROOT / "docs")
    (tmp_path / "README.md").symlink_to(check_links.ROOT / "README.md")
    monkeypatch.setattr(check_links, "ROOT", tmp_path)
    return tmp_path / "page.md"
