"""TABLESAMPLE chooses the same rows whoever reads: the row executor, DuckDB, an index, the past; and about as many as it was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from planner.query.sampling import PRIME, SHIFT, picker, sample_key, start_of
from tests.support.server import ServerProcess

ROWS = 70_000
SAMPLES = (
    "BERNOULLI (12.5) REPEATABLE (7)",
    "BERNOULLI (0.02) REPEATABLE (-1e300)",
    "SYSTEM (50) REPEATABLE (1)",
    "SYSTEM (50) REPEATABLE (2)",
)


@pytest.fixture
def client(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    """A connection that commits each statement, with a table of some blocks, in parts and hot rows, and a partitioned one."""
    with psycopg.connect(
        host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", autocommit=True
    ) as made:
        made.execute("CREATE TABLE sampled (a int PRIMARY KEY, b int)")
        made.execute(f"INSERT INTO sampled SELECT g, g % 10 FROM generate_series(1, {ROWS}) g")
        made.execute("CHECKPOINT")
        made.execute("UPDATE sampled SET b = -b WHERE a % 500 = 0")
        made.execute("CREATE TABLE divided (a int, k int) PARTITION BY LIST (k)")
        for key in range(3):
            made.execute(f"CREATE TABLE divided_{key} PARTITION OF divided FOR VALUES IN ({key})")
        made.execute("INSERT INTO divided SELECT a, a % 3 FROM sampled WHERE a <= 3000")
        yield made
        made.execute("RESET executor")
        made.execute("DROP TABLE sampled, divided")


def _ids(client: psycopg.Connection[Any], text: str) -> list[int]:
    return [row[0] for row in client.execute(f"SELECT a FROM {text} ORDER BY a")]


def test_a_sample_is_one_whoever_reads(client: psycopg.Connection[Any]) -> None:
    """Row executor and DuckDB, with a condition by key and at an earlier time, after others were changed: one sample."""
    found: dict[str, list[list[int]]] = {}
    for executor in ("index", "local"):
        client.execute(f"SET executor = {executor}")
        for sample in SAMPLES:
            found.setdefault(sample, []).append(_ids(client, f"sampled TABLESAMPLE {sample}"))
        divided = _ids(client, f"divided TABLESAMPLE {SAMPLES[0]}")
        found.setdefault("divided", []).append(divided)
        one = _ids(client, f"divided TABLESAMPLE {SAMPLES[0]} WHERE k = 1")
        assert one == [a for a in divided if a % 3 == 1]
    for sample, (index, local) in found.items():
        assert index == local, sample
    whole = found[SAMPLES[0]][0]
    assert abs(len(whole) - ROWS / 8) < ROWS / 100
    assert abs(len(found["divided"][0]) - 3000 / 8) < 150
    assert 0 < len(found[SAMPLES[1]][0]) < 60
    client.execute("SET executor = index")
    listed = ", ".join(map(str, range(1, 200)))
    by_key = _ids(client, f"sampled TABLESAMPLE {SAMPLES[0]} WHERE a IN ({listed})")
    assert by_key == [a for a in whole if a < 200]
    [(then,)] = client.execute("SELECT now()").fetchall()
    client.execute("DELETE FROM sampled WHERE a % 2 = 0")
    assert _ids(client, f"sampled TABLESAMPLE {SAMPLES[0]}") == [a for a in whole if a % 2]
    past = f"sampled TABLESAMPLE {SAMPLES[0]} AS OF SYSTEM TIME '{then.isoformat()}'"
    assert [row[0] for row in client.execute(f"SELECT a FROM {past} ORDER BY a")] == whole


def test_blocks_are_whole() -> None:
    """SYSTEM takes all rows of a block or none, and in the end each block for some seeds."""

    class Row:
        def __init__(self, row_id: int) -> None:
            self.row_id = row_id

    rows = [Row(block * 32768 + place) for block in range(40) for place in (1, 17, 32768)]
    seen = set()
    for seed in range(20):
        pick = picker("system", sample_key(30.0, start_of(seed)))
        assert pick is not None
        taken = [row.row_id for row in pick(rows)]
        blocks = {(row_id - 1) // 32768 for row_id in taken}
        assert len(taken) == 3 * len(blocks)
        assert len(blocks) < 30
        seen |= blocks
    assert seen == set(range(40))


def test_all_and_nothing() -> None:
    """0 takes no row and 100 every one, whatever the seed; what is between takes more the more it is, of the same rows."""
    assert sample_key(100.0, 5) == PRIME * SHIFT + 5 < 1 << 62
    assert picker("bernoulli", sample_key(100.0, 5)) is None

    class Row:
        def __init__(self, row_id: int) -> None:
            self.row_id = row_id

    rows = [Row(row_id) for row_id in range(1, 3001)]
    before: set[int] = set()
    for percent in (0.0, 1.0, 20.0, 99.9):
        pick = picker("bernoulli", sample_key(percent, start_of(3.5)))
        assert pick is not None
        taken = {row.row_id for row in pick(rows)}
        assert before <= taken
        assert abs(len(taken) - 30 * percent) < 120
        before = taken
    nothing = picker("bernoulli", sample_key(0.0, 0))
    assert nothing is not None
    assert not nothing(rows)
