"""Random definitions beside PostgreSQL 15: the end of each statement, then the catalogs and what relations hold. ``make definitions`` keeps figures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.differential.random_definitions import ANOTHER_ERROR, BEFORE_ERROR, keep_figures, walk
from tests.differential.test_generated import seeds_of
from tests.support.postgres import postgres
from tests.support.random_ddl import RandomDdl
from tests.support.server import ServerProcess

__all__ = ["postgres"]

CHOSEN = os.environ.get("HOLDFAST_SEEDS", "")
SEEDS = seeds_of(CHOSEN or "1,3")
STATEMENTS, EVERY = (100, 50) if CHOSEN else (50, 25)
EVIDENCE = os.environ.get("HOLDFAST_EVIDENCE", "")


@pytest.mark.timeout(300 if len(SEEDS) < 10 else 0)
def test_random_definitions_end_as_in_postgresql(postgres: str, server: ServerProcess) -> None:
    found = walk(
        f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", postgres, SEEDS, STATEMENTS, EVERY
    )
    if EVIDENCE:
        keep_figures(Path(EVIDENCE), found, SEEDS)
    wrong = {kind: n for kind, n in found.kinds.items() if kind not in (ANOTHER_ERROR, BEFORE_ERROR)}
    assert not wrong, f"{wrong} of {found.statements}\n" + "\n".join(found.different[:20])
    assert found.succeeded > found.statements // 3, found.states
    assert found.compared >= len(SEEDS)
    assert sum(found.refused.values()) < found.statements // 20, found.refused


def test_a_seed_gives_the_same_definitions() -> None:
    streams = [RandomDdl(7), RandomDdl(7)]
    assert [streams[0].statement() for _ in range(50)] == [streams[1].statement() for _ in range(50)]
