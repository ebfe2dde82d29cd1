"""Random statements under random grants beside PostgreSQL 15.

``make rights`` runs 5,000 (``HOLDFAST_STATEMENTS``) of each seed (``HOLDFAST_SEEDS=11,14-16``, without it ten) and adds the run to docs/evidence.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.differential.test_generated import seeds_of
from tests.engine.conftest import server
from tests.rights.random_walk import Server, walk
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres", "server"]

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "evidence" / "rights.json"
SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1-10"))
STATEMENTS = int(os.environ.get("HOLDFAST_STATEMENTS", "5000"))


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
    found = [walk(_ours(server), Server(postgres), seed=seed, statements=STATEMENTS) for seed in SEEDS]
    assert [(one.seed, one.different) for one in found if one.different] == []
    states = sum((one.states for one in found), start=type(found[0].states)())
    run = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": subprocess.check_output(
            ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True
        ).strip(),
        "seeds": [one.seed for one in found],
        "statements": sum(one.statements for one in found),
        "changes of rights": sum(one.changes for one in found),
        "different": sum(len(one.different) for one in found),
        "SQLSTATEs": dict(states.most_common()),
    }
    told = json.loads(FIGURES.read_text(encoding="utf-8"))
    told["runs"].append(run)
    FIGURES.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
