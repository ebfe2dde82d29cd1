"""Random DDL: nothing that is committed refers to what is not there, nothing is XX000, and a restart finds what was there.

The long form, with real servers, ``kill -9`` and pg_dump, is in ``make restart``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _found(seed: int, statements: int) -> str:
    """Return what a process finds; one for each seed, as a server is: some caches are the process's."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.random_ddl_run", "--seed", str(seed), "--statements", str(statements)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout if done.returncode in (0, 1) else f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("seed", [3, 9])
def test_random_ddl_leaves_a_catalog_that_can_be_read(seed: int) -> None:
    assert _found(seed, 250) == ""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_much_random_ddl_leaves_a_catalog_that_can_be_read(seed: int) -> None:
    assert _found(seed, 600) == ""
