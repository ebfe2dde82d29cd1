"""Random queries answer as PostgreSQL's do; ``HOLDFAST_SEEDS=1,2,3`` and ``HOLDFAST_QUERIES`` run more."""

from __future__ import annotations

import os

import pytest

from tests.engine.index.compare import connect, ours, same, theirs
from tests.engine.index.random_queries import Generator
from tests.engine.index.tables import make
from tests.support.postgres import postgres

__all__ = ["postgres"]

SEEDS = [int(s) for s in os.environ.get("HOLDFAST_SEEDS", "1").split(",")]
QUERIES = int(os.environ.get("HOLDFAST_QUERIES", "120"))
# Data errors: in parts that need not be evaluated (PostgreSQL manual 4.2.14) one side may see them alone.
DATA_ERRORS = ("21", "22")
MAX_ROWS = 5000  # an accidental cross join of everything is not compared


@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_answer_as_postgresql_does(postgres: str, seed: int) -> None:
    generator, database = Generator(seed), make()
    connection = connect(postgres, database)
    connection.execute("SET statement_timeout = '2s'")
    compared = 0
    wrong = []
    try:
        for number in range(QUERIES):
            sql = generator.query()
            want = theirs(connection, sql)
            if isinstance(want, tuple) and not want[0].startswith(DATA_ERRORS):
                continue  # not a valid query, or too slow
            if isinstance(want, list) and len(want) > MAX_ROWS:
                continue
            got = ours(database, sql, cold=number % 3 == 0)
            if any(isinstance(a, tuple) and a[0].startswith(DATA_ERRORS) for a in (want, got)):
                continue
            compared += 1
            if not same(sql, got, want):
                wrong.append(f"{sql}\n    PostgreSQL: {want}\n    Holdfast:   {got}")
    finally:
        connection.close()
    assert compared > QUERIES // 2
    assert not wrong, f"{len(wrong)} of {compared}:\n" + "\n".join(w[:2000] for w in wrong[:10])
