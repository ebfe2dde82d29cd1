"""Keep the documentation's prose within 120 characters: ``python tools/wrap_docs.py [--check] [FILE …]``.

Without ``--check`` each paragraph and list item with a line that is too long is filled again; all others stay as they are. With
it, lines that are too long are printed, and the process ends with 1 where there are some (part of ``make lint``).

    paragraph, list item     filled; no line is broken within a code span, and none begins with what Markdown takes for a mark
    table, heading, HTML     a row is one line whatever its length; not looked at
    fenced code              never touched; --check tells of lines that are too long, but of transcripts (``psql``), which
                             are what the server prints
    GENERATED                pages that tools write; not looked at

Filling twice changes nothing more, and what the page shows stays the same: only blanks and line ends are exchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.check_links import tracked  # noqa: E402

WIDTH = 120
GENERATED = frozenset(
    {
        "docs/evidence/calls.md",
        "docs/evidence/crash.md",
        "docs/evidence/definitions.md",
        "docs/evidence/dumps.md",
        "docs/evidence/fuzz.md",
        "docs/evidence/hostile.md",
        "docs/evidence/index.md",
        "docs/evidence/instructions.md",
        "docs/evidence/kinds.md",
        "docs/evidence/memory-values.md",
        "docs/evidence/nested.md",
        "docs/evidence/plpgsql.md",
        "docs/evidence/proofs.md",
        "docs/evidence/restart.md",
        "docs/evidence/rights.md",
        "docs/evidence/simulation.md",
        "docs/evidence/smith.md",
        "docs/evidence/speed.md",
        "docs/evidence/views.md",
        "docs/evidence/browsing.md",
        "docs/evidence/expressions.md",
        "docs/evidence/readers.md",
        "docs/evidence/soak.md",
        "docs/evidence/sources.md",
        "docs/reference/builtins.md",
        "docs/reference/settings.md",
    }
)

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
_ALONE = re.compile(r"^\s*(\||#{1,6} |<|>|\[[^\]]+\]: |(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$)")
_TOKEN = re.compile(r"(?:`+[^`]*`+|[^\s`])+|`+")
_MARK = re.compile(r"^(?:[-+*>|]|#{1,6}|\d+[.)]|=+|-+|\|.*|```.*)$")


@dataclass(slots=True)
class Block:
    """Lines that belong together; ``filled`` ones may be broken elsewhere."""

    filled: bool
    lines: list[str] = field(default_factory=list)
    code: bool = False


def blocks(text: str) -> Iterator[Block]:
    """Yield a page's blocks; their lines, one after the other, are the page's."""
    fence = ""
    comment = False
    block = Block(False)
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence or mark:
            if not block.code:
                yield block
                block = Block(False, code=True)
            block.lines.append(line)
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1] == fence:
                fence = ""
                yield block
                block = Block(False)
            continue
        comment = comment or line.lstrip().startswith("<!--")
        if comment or not line.strip() or _ALONE.match(line):
            kind = "alone"
            comment = comment and "-->" not in line
        elif _ITEM.match(line):
            kind = "item"
        else:
            kind = "more"
        if kind == "alone" or kind == "item" or not block.filled:
            yield block
            block = Block(kind != "alone")
        block.lines.append(line)
        if line.endswith(("  ", "\\")):  # a line break that is shown
            block.filled = False
    yield block


def fill(lines: list[str]) -> list[str]:
    """Return a paragraph or list item with no line over WIDTH, where its words allow it."""
    item = _ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    rest = " " * len(first) if item else first
    words: list[str] = []
    for word in _TOKEN.findall(" ".join(line.strip() for line in [lines[0][len(first) :], *lines[1:]])):
        if words and _MARK.match(word):
            words[-1] += f" {word}"  # at the beginning of a line it would be a mark
        else:
            words.append(word)
    out = [first]
    empty = True
    for word in words:
        if not empty and len(out[-1]) + 1 + len(word) > WIDTH:
            out.append(rest)
            empty = True
        out[-1] += word if empty else f" {word}"
        empty = False
    return out


def wrapped(text: str) -> str:
    """Return a page with its paragraphs and list items within WIDTH."""
    out: list[str] = []
    for block in blocks(text):
        too_long = any(len(line) > WIDTH for line in block.lines)
        out += fill(block.lines) if block.filled and too_long else block.lines
    return "\n".join(out) + "\n"


def long_lines(text: str) -> Iterator[int]:
    """Yield the numbers of lines that are too long, those of tables, headings and HTML apart."""
    number = 0
    for block in blocks(text):
        for line in block.lines:
            number += 1
            transcript = block.code and block.lines[0].startswith("```psql")
            if len(line) > WIDTH and not transcript and (block.code or not _ALONE.match(line)):
                yield number


def pages() -> list[Path]:
    """Return the pages that people write."""
    names = {page: str(page.relative_to(ROOT)) for page in tracked() if page.suffix == ".md"}
    return [
        page for page, name in names.items() if name not in GENERATED and not name.startswith("sqllogictest/")
    ]


def main() -> int:
    names = [name for name in sys.argv[1:] if name != "--check"]
    found = False
    for page in [Path(name).resolve() for name in names] or pages():
        text = page.read_text("utf-8")
        if "--check" not in sys.argv:
            if (filled := wrapped(text)) != text:
                page.write_text(filled, "utf-8")
            continue
        for number in long_lines(text):
            found = True
            print(f"{page.relative_to(ROOT)}:{number}: longer than {WIDTH} characters")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
