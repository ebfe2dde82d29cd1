"""Sets and dicts in parts are what one of Python's would be, before, at and after the division."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.executors.index import keyed
from engine.executors.index.keyed import KeySet, KeyTable


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A division at 50 keys."""
    monkeypatch.setattr(keyed, "MANY", 50)


def _keys(rng: random.Random) -> list[Any]:
    kinds = (
        lambda: rng.randrange(400) * 256,
        lambda: str(rng.randrange(90)),
        lambda: (rng.randrange(9), None),
        lambda: None,
    )
    return [rng.choice(kinds)() for _ in range(rng.randrange(600))]


def test_sets() -> None:
    """The first row of each key, in order."""
    rng = random.Random(1)
    for _ in range(60):
        seen, known = KeySet(), set()
        for _ in range(4):
            keys = _keys(rng)
            expected = [key for key in keys if not (key in known or known.add(key))]
            if rng.randrange(2):
                assert seen.new(keys, lambda row: row) == expected
            else:
                assert [key for key in keys if seen.add_one(key)] == expected
        assert len(seen) == len(known)
        has = seen.has()
        assert all(has(key) for key in known)
        assert not has("nothing")


def test_tables() -> None:
    """Counts by key."""
    rng = random.Random(2)
    for _ in range(60):
        table, known = KeyTable(), {}
        assert not table
        for _ in range(4):
            for key in _keys(rng):
                part = table.part(key)
                part[key] = part.get(key, 0) + 1
                known[key] = known.get(key, 0) + 1
            table.grown()
        table.put("one more", 7)
        find = table.finder()
        assert {key: find(key) for key in known} == known
        assert find("nothing") is None
        assert find("one more") == 7
        assert sorted(table.values()) == sorted([*known.values(), 7])
