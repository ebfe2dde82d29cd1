"""Scripts of statements with what they give; the README of their format is ``read_script``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Case:
    """One case: ``text`` (a statement or expression), what it gives, and whether PostgreSQL gives the same."""

    text: str
    expected: str
    ours: bool = False


def read_script(name: str) -> list[Case]:
    """Read ``<name>.txt``: a case's text at the left margin, its result indented below, blank line between.

    ``#`` lines are comments. A text that begins with ``!`` gives something else on PostgreSQL, on purpose.
    """
    cases: list[Case] = []
    text: str | None = None
    expected: list[str] = []

    def finish() -> None:
        if text is not None:
            ours = text.startswith("!")
            cases.append(Case(text.removeprefix("! "), "\n".join(expected), ours))

    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("    "):
            expected.append(line[4:])
        elif line.strip():
            finish()
            text, expected = line, []
    finish()
    return cases


def write_script(name: str, cases: list[Case], heading: str) -> None:
    """Write a script (``pytest --rewrite``)."""
    lines = [f"# {line}".rstrip() for line in heading.splitlines()]
    for case in cases:
        lines.append("")
        lines.append(("! " if case.ours else "") + case.text)
        lines.extend(f"    {line}" for line in case.expected.split("\n"))
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
