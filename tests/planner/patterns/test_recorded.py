"""Regular expressions answer as PostgreSQL 15 did when ``recorded.json`` was written (tests/differential/test_patterns.py)."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from planner.patterns import pattern as patterns
from planner.patterns.options import parse_flags
from tests.planner.patterns.cases import CASES
from tests.support.patterns import Case, Generator, answer

RECORDED: list[tuple[Case, str]] = [
    ((s, p, f), text) for s, p, f, text in json.loads((Path(__file__).parent / "recorded.json").read_text())
]


@pytest.mark.parametrize("by_re", [True, False])
def test_answers_are_those_recorded(monkeypatch: pytest.MonkeyPatch, by_re: bool) -> None:
    if not by_re:
        patterns.compiled.cache_clear()
        monkeypatch.setattr(patterns, "shortcut", lambda expression, groups: None)
    wrong = [
        f"{case}: PostgreSQL {text!r}, ours {ours!r}"
        for case, text in RECORDED
        if (ours := answer(case)) != text
    ]
    patterns.compiled.cache_clear()
    assert not wrong, "\n".join(wrong[:20])
    assert {case for case, _ in RECORDED} >= set(CASES)


def test_re_and_the_automata_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Generator(Random(20261128), odd=False)
    cases = [draw.case() for _ in range(200)]
    patterns.compiled.cache_clear()
    fast = [answer(case) for case in cases]
    handed_over = sum(
        patterns.compiled(p, parse_flags(f)[0]).tame
        for _, p, f in cases
        if not answer((_, p, f)).startswith("2201B")
    )
    patterns.compiled.cache_clear()
    monkeypatch.setattr(patterns, "shortcut", lambda expression, groups: None)
    slow = [answer(case) for case in cases]
    patterns.compiled.cache_clear()
    assert [c for c, a, b in zip(cases, fast, slow, strict=True) if a != b] == []
    assert handed_over > 50
