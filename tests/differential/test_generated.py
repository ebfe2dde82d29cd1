"""Random queries beside PostgreSQL 15: rows, types and SQLSTATEs, on every executor in turn.

``HOLDFAST_DIFF=5000`` asks that many, ``HOLDFAST_SEEDS=1,2`` or ``1-10`` other ones, so many of each. A run over several seeds that
was cut off goes on with the seeds that are left.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from tests.differential.compare_generated import EXECUTORS, Answer, Found, compare, explained, same
from tests.differential.generated import Generator
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

COUNT = int(os.environ.get("HOLDFAST_DIFF", "60"))
EVERY = 50


def seeds_of(text: str) -> list[int]:
    """Return the seeds that ``1,4-6`` names."""
    ends = [part.split("-") for part in text.split(",")]
    return [seed for end in ends for seed in range(int(end[0]), int(end[-1]) + 1)]


SEEDS = seeds_of(os.environ.get("HOLDFAST_SEEDS", "1"))


@pytest.mark.timeout(0 if COUNT > 100 else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_have_the_same_answers(seed: int, postgres: str, server: ServerProcess) -> None:
    check(server, postgres, seed, EXECUTORS)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Tables of a few rows on one thread: what takes time is planning, and each query has its own plan."""
    options = ("--spark-start", "lazy", "--spark-master", "local[1]", "--spark-nice", "0")
    running = ServerProcess(tmp_path_factory.mktemp("generated") / "data", *options)
    yield running
    assert running.stop() == 0


@pytest.mark.spark
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_have_the_same_answers_on_spark(
    seed: int, postgres: str, spark: ServerProcess
) -> None:
    """No answer may differ, and all are Spark's own.

    A refusal is no wrong answer, since the router goes elsewhere by itself; it is counted by message and another query drawn, or most of
    the run would be about other executors, which ``make diff`` asks.
    """
    check(spark, postgres, seed, ("spark",), insist=True)


def check(
    server: ServerProcess, postgres: str, seed: int, executors: tuple[str, ...], *, insist: bool = False
) -> None:
    """Ask both servers, and fail with what differs."""
    ours_at = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with (
        psycopg.connect(ours_at, autocommit=True) as ours,
        psycopg.connect(postgres, autocommit=True) as theirs,
    ):
        every = EVERY if COUNT > 100 else 0
        found = compare(ours, theirs, seed, COUNT, executors, insist=insist, every=every)
    print(f"seed {seed}: {found.summary()}")
    for message, count in found.refused.most_common():
        print(f"  refused {count:4} times: {message}")
    assert not found.differences, "\n\n".join(found.differences)
    assert not found.too_little(COUNT)


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


@pytest.mark.parametrize(
    ("equal", "alike", "explained", "refused", "reason"),
    [
        (60, 35, 5, 900, ""),
        (50, 50, 0, 0, "only 50 of 100 gave rows"),
        (60, 34, 6, 0, "6 of 100 differ"),
        (60, 40, 0, 901, "901 were refused for 100"),
    ],
)
def test_a_run_has_to_show_something(
    equal: int, alike: int, explained: int, refused: int, reason: str
) -> None:
    ends = Counter({"equal": equal, "error 22012": alike, "the order of equal numerics": explained})
    found = Found(ends=ends, explained=explained, refused=Counter({"EXCLUDE": refused}))
    assert found.too_little(100).startswith(reason)
    assert bool(found.too_little(100)) == bool(reason)


def test_seeds_are_lists_of_numbers_and_ranges() -> None:
    assert seeds_of("1") == [1]
    assert seeds_of("2,5-7,11") == [2, 5, 6, 7, 11]
