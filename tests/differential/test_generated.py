"""Random queries beside PostgreSQL 15: rows, types and SQLSTATEs, on every executor in turn.

``HOLDFAST_DIFF=5000`` asks that many, ``HOLDFAST_SEEDS=1,2`` other ones.
"""

from __future__ import annotations

import os

import psycopg
import pytest

from tests.differential.compare_generated import EXECUTORS, Answer, compare, explained, same
from tests.differential.generated import Generator
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "60"))
SEEDS = [int(seed) for seed in os.environ.get("HOLDFAST_SEEDS", "1").split(",")]


@pytest.mark.timeout(0 if COUNT > 1000 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_have_the_same_answers(seed: int, postgres: str, server: ServerProcess) -> None:
    check(server, postgres, seed, EXECUTORS)


@pytest.mark.spark
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_have_the_same_answers_on_spark(
    seed: int, postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tables of a few rows on one thread: what takes time is planning, and each query has its own plan."""
    options = ("--spark-start", "lazy", "--spark-master", "local[1]")
    running = ServerProcess(tmp_path_factory.mktemp("generated") / "data", *options)
    try:
        check(running, postgres, seed, ("spark",))
    finally:
        assert running.stop() == 0


def check(server: ServerProcess, postgres: str, seed: int, executors: tuple[str, ...]) -> None:
    """Ask both servers, and fail with what differs."""
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with (
        psycopg.connect(ours_at, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        found = compare(ours, theirs, seed, COUNT, executors)
        for connection in (ours, theirs):
            connection.execute("DROP TABLE gen_a, gen_b")
    print(f"seed {seed}: {found.summary()}")
    assert not found.differences, "\n\n".join(found.differences)
    assert found.ends["equal"] > COUNT // 2


def test_a_seed_gives_the_same_queries() -> None:
    one, two = Generator(7), Generator(7)
    assert [one.query() for _ in range(50)] == [two.query() for _ in range(50)]


def test_what_counts_as_a_difference() -> None:
    row = Answer(types=(23,), rows=[("1",)])
    assert same(row, Answer(types=(23,), rows=[("1",)]))
    assert not same(row, Answer(types=(20,), rows=[("1",)]))
    assert not same(row, Answer(types=(23,), rows=[("2",)]))
    assert not same(row, Answer(types=(23,), rows=[]))
    assert not same(row, Answer(state="22012"))
    assert explained(row, Answer(state="22012"))
    assert not explained(row, Answer(state="42883"))
    assert not explained(Answer(state="0A000", message="domains are not supported"), row)
    scales = [Answer(types=(1700,), rows=[(text,)]) for text in ("0.0", "0.00", "0.1")]
    assert explained(scales[0], scales[1], "SELECT n FROM t GROUP BY n")
    assert not explained(scales[0], scales[2], "SELECT n FROM t GROUP BY n")
    assert not explained(scales[0], scales[1], "SELECT n FROM t")
    near, far = (Answer(types=(701,), rows=[(text,)]) for text in ("0.30000000000000004", "0.3001"))
    assert same(Answer(types=(701,), rows=[("0.3",)]), near)
    assert not same(near, far)
