"""Check that what the documentation links to is there: ``python tools/check_links.py [FILE …]``.

Three kinds of references are followed, in all files that git knows:

    [text](path#anchor)    in Markdown: the file exists, and has a heading whose anchor that is
    [text](#anchor)        the same within the page
    docs/…                 in code, comments, Makefile, settings and code spans: the file or folder exists;
                           ``docs/decisions/0006`` is the record of that number

Links to other machines (``https:``, ``mailto:``) are not followed. Figures under docs/evidence, and the pages made of them, are
records of what was printed when they were taken, and may name pages of then; links of these pages are followed. The process ends with
1 and prints a line for each reference that leads nowhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
IMAGE = re.compile(r"<img[^>]* src=\"([^\"]+)\"")
NAMED = re.compile(r"(?<![\w./-])docs/[\w./*-]*\w(?:#[\w-]+)?")
FENCE = re.compile(r"^\s*(```|~~~)")
CODE_SPAN = re.compile(r"(`+)(?:(?!\1).)*?\1")
TEXTS = {".py", ".md", ".toml", ".sh", ".yml", ".yaml", ".txt", ".cfg", ".sql", ".lock", ""}
NOT_SOURCES = {"build", "data", "dist", "site"}
RECORDS = ("docs/evidence/", "sqllogictest/suites/")


def slug(heading: str) -> str:
    """Return the anchor of a heading, by GitHub's rule: lower case, no punctuation, a dash for each blank."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line outside of fenced code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif not fence:
            yield number, line


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: those of its headings (``-1`` and so on behind repeated ones), and what ``id`` says."""
    found: set[str] = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    seen: Counter[str] = Counter()
    for _, line in prose(text):
        if heading := re.match(r"#{1,6} +(.*?)(?: +#+)?$", line):
            name = slug(heading[1])
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return found


@cache
def anchors_of(path: Path) -> frozenset[str]:
    """Return the anchors of the Markdown file at ``path``."""
    return frozenset(anchors(path.read_text("utf-8")))


def _fault(path: Path, anchor: str) -> str:
    """Return what is wrong with a reference to ``path``, "" where nothing is."""
    if not path.exists():
        return "is not there"
    if anchor and path.suffix == ".md" and anchor not in anchors_of(path):
        return f"has no heading #{anchor}"
    return ""


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Yield a line for each link of a Markdown page that leads nowhere."""
    for number, line in prose(text):
        bare = CODE_SPAN.sub("", line)
        for target in (*LINK.findall(bare), *IMAGE.findall(bare)):
            if re.match(r"[a-z][a-z+.-]*:", target):
                continue
            name, _, anchor = target.partition("#")
            if fault := _fault((page.parent / name).resolve() if name else page, anchor):
                yield f"{page.relative_to(ROOT)}:{number}: {target} {fault}"


def broken_names(file: Path, text: str) -> Iterator[str]:
    """Yield a line for each path below docs/ that a file names and that is not there."""
    for number, line in enumerate(text.splitlines(), 1):
        for named in NAMED.findall(line):
            name, _, anchor = named.partition("#")
            if "*" in name or re.fullmatch(r"docs/decisions/\d{4}", name):
                fault = "" if any(ROOT.glob(name if "*" in name else f"{name}-*.md")) else "is not there"
            else:
                fault = _fault(ROOT / name, anchor)
            if fault:
                yield f"{file.relative_to(ROOT)}:{number}: {named} {fault}"


def faults(files: list[Path]) -> Iterator[str]:
    """Yield a line for each reference in ``files`` that leads nowhere."""
    for file in files:
        name = str(file.relative_to(ROOT))
        record = name.startswith(RECORDS)
        if file.suffix not in TEXTS or (record and file.suffix != ".md"):
            continue
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if file.suffix == ".md" and not name.startswith("sqllogictest/suites/"):
            yield from broken_links(file, text)
        if not record:
            yield from broken_names(file, text)


def tracked() -> list[Path]:
    """Return the files of the repository that git knows or would add, as they are in the work tree; without git all that are there."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):  # an archive of the sources
        parts = {path: path.relative_to(ROOT).parts for path in ROOT.rglob("*")}
        hidden = {".", "_"}
        return sorted(
            path
            for path, names in parts.items()
            if path.is_file()
            and not (names[0] in NOT_SOURCES or any(name[0] in hidden for name in names[:-1]))
        )
    return [path for path in (ROOT / line for line in sorted(set(listed))) if path.is_file()]


def main() -> int:
    found = list(faults([Path(name).resolve() for name in sys.argv[1:]] or tracked()))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
