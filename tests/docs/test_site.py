"""The site's navigation (mkdocs.yml) names every page of the documentation, and only pages that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"([\w/-]+\.md)$", text, re.MULTILINE)
    there = {
        str(page.relative_to(ROOT / "docs"))
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name != "decisions"
    }
    assert sorted(named) == sorted({*there, "changelog.md", "contributing.md"})
