"""A few rounds of the damage proof (``python -m bench.damage`` runs many): bytes flip anywhere in a data directory.

Every answer is right or XX001 with the name of a file; a refused start names one and changes nothing.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.server import ROOT


def test_a_damaged_copy_answers_right_or_names_the_file() -> None:
    done = subprocess.run(  # a process of its own, for it forks
        [sys.executable, "-m", "bench.damage", "--flips", "4", "--seed", "4"],
        cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 damaged copies, seed 4" in done.stdout
    assert " 0 problems" in done.stdout
