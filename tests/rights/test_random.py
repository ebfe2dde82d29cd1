"""Random statements under random grants beside PostgreSQL 15; ``make rights`` runs 50,000 and keeps the figures in docs/evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.conftest import server
from tests.rights.random_walk import Server, walk
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres", "server"]

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "rights.json"


def _ours(server: ServerProcess) -> Server:
    return Server(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres")


def test_random_statements_are_answered_as_in_postgresql(server: ServerProcess, postgres: str) -> None:
    found = walk(_ours(server), Server(postgres), seed=15, statements=400)
    assert found.different == []
    assert found.states["00000"] > 50
    assert found.states["42501"] > 200


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_statements_are_answered_as_in_postgresql(server: ServerProcess, postgres: str) -> None:
    runs = [walk(_ours(server), Server(postgres), seed=seed, statements=5_000) for seed in range(1, 11)]
    assert [(found.seed, found.different) for found in runs if found.different] == []
    states = sum((found.states for found in runs), start=type(runs[0].states)())
    told = {
        "what": "random statements under random grants beside PostgreSQL 15 (tests/rights/random_walk.py)",
        "seeds": [found.seed for found in runs],
        "statements": sum(found.statements for found in runs),
        "changes of rights": sum(found.changes for found in runs),
        "different": sum(len(found.different) for found in runs),
        "SQLSTATEs": dict(states.most_common()),
    }
    FIGURES.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
