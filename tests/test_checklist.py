"""docs/internals/checklist.md: no number is missing, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NUMBERS = {
    *(f"A{i}" for i in range(1, 49)),
    *(f"B{i}" for i in range(1, 37)),
    "B30a",
    *(f"C{i}" for i in range(1, 48)),
    *(f"D{i}" for i in range(1, 88)),
    *(f"U{i}" for i in range(1, 19)),
}
RECORD = "0007-protocols-not-taken.md"


def rows() -> dict[str, tuple[str, str]]:
    """Return number -> (module cell, proof cell)."""
    found: dict[str, tuple[str, str]] = {}
    for line in (DOCS / "internals" / "checklist.md").read_text().splitlines():
        match = re.match(r"\| ([ABCDU]\d+a?) \|[^|]*\|([^|]*)\|([^|]*)\|$", line)
        if match:
            number, module, proof = match.groups()
            assert number not in found, f"{number} stands twice"
            found[number] = (module.strip(), proof.strip())
    return found


def recorded() -> set[str]:
    """Return the numbers that the decision record answers; ``A1-A3`` is written with a dash or a comma."""
    found: set[str] = set()
    for line in (DOCS / "decisions" / RECORD).read_text().splitlines():
        match = re.match(r"\| ([ABCDU]\d[^|]*) \|", line)
        for item in match.group(1).split(", ") if match else ():
            first, _, last = item.partition("–")
            if not last:
                found.add(first)
                continue
            letter = first[0]
            found.update(f"{letter}{i}" for i in range(int(first[1:]), int(last.lstrip(letter)) + 1))
    return found


def test_every_number_is_answered() -> None:
    assert rows().keys() == NUMBERS


def test_what_the_rows_name_exists() -> None:
    missing = []
    for number, (module, proof) in rows().items():
        if module == "0007":
            continue
        names = re.findall(r"`([a-z_/.\d]+)(?:::(\w+))?`", f"{module} {proof}")
        if len(names) < 2:
            missing.append(f"{number}: a module and a proof are needed")
        for path, test in names:
            if "/" not in path:
                continue
            if not (ROOT / path).exists():
                missing.append(f"{number}: {path}")
            elif test and f"def {test}(" not in (ROOT / path).read_text():
                missing.append(f"{number}: {path}::{test}")
    assert not missing


def test_the_record_answers_what_points_to_it() -> None:
    pointing = {number for number, (module, _) in rows().items() if module == "0007"}
    assert pointing - recorded() == set()
