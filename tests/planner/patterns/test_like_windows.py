"""Long LIKE patterns are read some characters at a time, and mean what they mean as a whole."""

from __future__ import annotations

import random

import pytest

from planner.functions.text import regex
from planner.patterns import like


def test_a_pattern_read_in_pieces_is_the_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(15)
    patterns = ["".join(draw.choices("ab%_\\é#", k=draw.randint(0, 16))) for _ in range(2000)]
    whole = [(like._read(pattern), regex.like_escape(pattern, "#")) for pattern in patterns]
    monkeypatch.setattr(like, "_WINDOW", 3)
    monkeypatch.setattr(regex, "_WINDOW", 3)
    assert [(like._read(pattern), regex.like_escape(pattern, "#")) for pattern in patterns] == whole
