"""Each bug planted on purpose is found by some seed, and named as what it is."""

from __future__ import annotations

import pytest

from tests.sim.mutations import HINTS, MUTATIONS, find

pytestmark = pytest.mark.sim

SEEDS = range(1, 301)
SLOW = (
    "gap",
    "position",
    "deadlock",
    "schema check",
    "beyond",
    "key share",
    "scans in batch",
    "claim",
)  # four to twenty seconds each


@pytest.mark.parametrize(
    "name",  # every third one in make test, all in make proofs
    [
        pytest.param(name, marks=[pytest.mark.long] if number % 3 or name in SLOW else [])
        for number, name in enumerate(MUTATIONS)
    ],
)
def test_a_planted_bug_is_found(name: str) -> None:
    result = find(MUTATIONS[name], (HINTS.get(name, 1), *SEEDS))
    assert result is not None, f"{MUTATIONS[name].what}: not found in {len(SEEDS)} seeds"
    for problem in result.problems:
        assert "TypeError" not in problem, f"what is planted does not fit any more: {problem}"
    assert {a.name for a in result.anomalies} & set(MUTATIONS[name].expected) or (
        result.problems and "" in MUTATIONS[name].expected
    ), result.explain()
