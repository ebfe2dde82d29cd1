"""Random nested queries beside PostgreSQL 15, on the row executor and on DuckDB, whose own way to unnest is not trusted (``planner.lower.kit.correlations``).

``HOLDFAST_DIFF=50000`` asks that many, ``HOLDFAST_SEEDS`` as in ``test_generated``; figures are added to ``HOLDFAST_EVIDENCE``. A sub-select of two
rows may be met by one side alone.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.differential.compare_generated import ask, same
from tests.differential.generated_nested import SCHEMA, Generator
from tests.differential.test_generated import seeds_of, spark
from tests.support.evidence import add_run
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres", "spark"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "60"))
SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1"))
EVIDENCE = os.environ.get("HOLDFAST_EVIDENCE", "")
EVERY = 500
TOO_SLOW = "57014"
TWO_ROWS = "21000"


@pytest.mark.timeout(0 if COUNT > 100 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_nested_queries_have_the_same_answers(seed: int, postgres: str, server: ServerProcess) -> None:
    check(server, postgres, seed, COUNT, ("index", "local"))


@pytest.mark.spark
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", SEEDS)
def test_nested_queries_have_the_same_answers_on_spark(
    seed: int, postgres: str, spark: ServerProcess
) -> None:
    """Spark takes a second and more for each."""
    check(spark, postgres, seed, COUNT, ("spark",))


def check(
    server: ServerProcess, postgres: str, seed: int, count: int, executors: tuple[str, ...]
) -> Counter[str]:
    """Ask both servers on the executors in turn; fail with what differs, and where so many are refused that little is compared."""
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with (
        psycopg.connect(ours_at, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        theirs.execute("SET jit = off")
        for connection in (ours, theirs):
            connection.execute(SCHEMA)
            connection.execute("SET statement_timeout = '60s'")
        try:
            ends, differences = _ask(ours, theirs, Generator(seed), count, executors)
        finally:
            for connection in (ours, theirs):
                connection.execute("DROP TABLE gn_o, gn_i, gn_k")
    print(f"seed {seed}: {dict(ends)}")
    if EVIDENCE:
        what = "random nested queries beside PostgreSQL 15, on the executors in turn (tests/differential/test_nested.py)"
        run = {
            "seeds": str(seed), "kind": ", ".join(executors), "statements": count, **dict(ends.most_common()),
            "different": differences,
        }  # fmt: skip
        add_run(Path(EVIDENCE), what, run)
    assert not differences, "\n\n".join(differences[:10])
    assert ends["equal"] > count * 8 // 10, ends
    return ends


def _ask(
    ours: psycopg.Connection[Any],
    theirs: psycopg.Connection[Any],
    generator: Generator,
    count: int,
    executors: tuple[str, ...],
) -> tuple[Counter[str], list[str]]:
    ends: Counter[str] = Counter()
    differences = []
    for number in range(count):
        sql = generator.statement()
        executor = executors[number % len(executors)]
        ours.execute(f"SET executor = {executor}")
        mine, other = ask(ours, sql), ask(theirs, sql)
        states = {mine.state, other.state}
        if same(mine, other):
            ends[other.state or "equal"] += 1
        elif mine.state == "0A000" or states & {TOO_SLOW, TWO_ROWS}:
            ends["refused" if mine.state == "0A000" else f"{other.state} here {mine.state}"] += 1
        else:
            differences.append(f"{executor}: {sql}\n  ours   {mine}\n  theirs {other}"[:4000])
        if count >= EVERY and (number + 1) % EVERY == 0:
            print(f"{number + 1} of {count}: {dict(ends)}, {len(differences)} different", flush=True)
    return ends, differences
