"""Seeds of the simulation: each must be strictly serializable, and repeat itself exactly."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sim.run import TRANSACTIONS, run_seed
from tests.sim.sweep import Summary, sweep

pytestmark = pytest.mark.sim


def test_a_seed_repeats_itself_exactly() -> None:
    """In this process, and in another one with other hash values."""
    seeds = (3, 3, 4, 13)  # with subscribers, too
    here = [run_seed(seed).digest for seed in seeds]
    code = f"from tests.sim.run import run_seed; print(*[run_seed(seed).digest for seed in {seeds}])"
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert here == there
    assert here[0] == here[1]


@pytest.mark.timeout(1200)
def test_seeds_are_strictly_serializable(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    first, seeds = request.config.getoption("--first-seed"), request.config.getoption("--seeds")

    def progress(summary: Summary) -> None:
        if summary.seeds % 50 == 0:
            with capsys.disabled():
                print(f"\n{summary}", end="", flush=True)

    summary = sweep(first, seeds, progress=progress)
    assert not summary.failures, "\n\n".join(summary.failures.values())
    assert summary.seeds == seeds
    assert summary.fewest_transactions >= TRANSACTIONS
    assert summary.fewest_crashes >= 1
