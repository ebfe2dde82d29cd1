"""A few rounds of the crash proof (``make crash`` runs many): servers killed while clients do all there is to do.

Data, DDL, online index builds, loads, staged write sets, deferred constraints and history, over small limits.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.crash.__main__ import run
from bench.crash.fleet import Fleet, SharedFleet
from tests.support.postgres import postgres, url_of  # noqa: F401 - a fixture


def test_what_was_acknowledged_survives_kill_and_everything_agrees(tmp_path: Path) -> None:
    assert run(2, 11, Fleet(tmp_path), run_s=2.0) == []


@pytest.mark.long
def test_the_same_with_the_log_in_postgresql(tmp_path: Path, postgres: str) -> None:  # noqa: F811
    fleet = SharedFleet(tmp_path, url_of(postgres), takeover=False, lease_ms=4000)
    try:
        assert run(1, 12, fleet, run_s=2.0) == []
    finally:
        fleet.remove()
