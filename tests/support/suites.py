"""The public test suites, which lie beside the repository and not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SQLLOGICTEST = ROOT.parent / "shared" / "suites" / "sqllogictest"


def sqllogictest_file(name: str) -> Path:
    """Return SQLite's file ``name``.test; the calling test is skipped where the suites are absent."""
    path = SQLLOGICTEST / f"{name}.test"
    if not path.exists():
        pytest.skip(f"no suites at {SQLLOGICTEST}: {name}.test is not run")
    return path
