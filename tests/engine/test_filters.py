"""What a query asks of each table alone: never a condition that a row may fail and still matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.base.executor import ExecContext
from engine.executors.filters import TableFilters
from tests.support.lowered import World
from txn.base.types import Row, ShardId


class Writer:
    """The part of a transaction that matters here."""

    keeps_reads = True


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(Path(tmp_path_factory.mktemp("filters")))
    made.table("a", "id int pk", "v int")
    made.table("b", "id int pk", "v int")
    return made


ROWS = [(i, v) for i in (1, 2) for v in (0, 1, 2, None)]


def matching(world: World, sql: str, table: str, params: tuple[object, ...] = ()) -> set[Row] | None:
    """Return the rows of ROWS that can matter to the query, None if no test is made."""
    relation = world.catalog.relation("public", table)
    assert relation is not None
    nothing: object = None
    ctx = ExecContext(txn=Writer(), session=nothing, virtual=nothing, params=params)  # type: ignore[arg-type]
    filters = TableFilters(world.bind(sql, (23,) * len(params)), world.catalog)
    shard = ShardId(relation.oid)
    predicate = filters.predicate(shard, ctx)
    assert (predicate is not None) == filters.narrows(shard)
    return None if predicate is None else {row for row in ROWS if predicate(row)}


def rows(*values: int | None) -> set[Row]:
    return {row for row in ROWS if row[1] in values}


@pytest.mark.parametrize(
    ("sql", "of_a", "of_b"),
    [
        ("SELECT 1 FROM a WHERE v = 1", rows(1), None),
        ("SELECT 1 FROM a WHERE v = 1 AND id = 2", {(2, 1)}, None),
        ("SELECT 1 FROM a WHERE v IS NULL", rows(None), None),
        ("SELECT 1 FROM a", None, None),
        ("SELECT 1 FROM a WHERE v = 1 OR random() < 2", None, None),
        ("SELECT 1 FROM a WHERE v = (SELECT max(v) FROM b)", None, None),
        ("SELECT 1 FROM a, b WHERE a.v = 1 AND b.v = 2 AND a.id = b.id", rows(1), rows(2)),
        ("SELECT 1 FROM a JOIN b ON a.id = b.id AND b.v = 2 AND a.v = 0", rows(0), rows(2)),
        # the row of b may be missing, and WHERE may like that
        ("SELECT 1 FROM a LEFT JOIN b ON a.id = b.id WHERE b.v IS NULL AND a.v = 1", rows(1), None),
        ("SELECT 1 FROM a LEFT JOIN b ON a.id = b.id AND b.v = 1 AND a.v = 2", None, rows(1)),
        ("SELECT 1 FROM a RIGHT JOIN b ON a.id = b.id AND b.v = 1 AND a.v = 2", rows(2), None),
        ("SELECT 1 FROM a RIGHT JOIN b ON a.id = b.id WHERE b.v = 1 AND a.v IS NULL", None, rows(1)),
        ("SELECT 1 FROM a FULL JOIN b ON a.id = b.id WHERE b.v = 1 AND a.v = 2", None, None),
        ("SELECT 1 FROM (a LEFT JOIN b ON a.id = b.id) JOIN a c ON b.v IS NULL AND c.v = 1", None, None),
        # read twice: what either wants matters; unfiltered once, all of it does
        ("SELECT 1 FROM a, a c WHERE a.v = 1 AND c.v = 2", rows(1, 2), None),
        ("SELECT 1 FROM a, a c WHERE a.v = 1", None, None),
        ("SELECT 1 FROM a WHERE v = 1 UNION SELECT 2 FROM a WHERE v = 0", rows(0, 1), None),
        ("WITH w AS (SELECT * FROM b WHERE v = 2) SELECT 1 FROM w, a WHERE a.v = 0", rows(0), rows(2)),
        ("SELECT 1 FROM (SELECT * FROM a WHERE v = 1) s WHERE s.id = 1", rows(1), None),
        # a condition of a sub-select on the row outside it is not one on its own table
        ("SELECT 1 FROM a WHERE v = 1 AND EXISTS (SELECT 1 FROM b WHERE a.v = 1 AND b.v = 2)", rows(1), rows(2)),
        ("SELECT (SELECT count(*) FROM b WHERE b.v = a.v) FROM a WHERE a.v = 1", rows(1), None),
        ("SELECT 1 FROM a WHERE v = 1 AND a.ctid IS NOT NULL", rows(1), None),
        ("SELECT count(*) FROM a WHERE v = 1 GROUP BY id HAVING count(*) > 1", rows(1), None),
    ],
)  # fmt: skip
def test_the_rows_that_can_matter(
    world: World, sql: str, of_a: set[Row] | None, of_b: set[Row] | None
) -> None:
    assert matching(world, sql, "a") == of_a
    assert matching(world, sql, "b") == of_b


def test_parameters_count_as_they_were_bound(world: World) -> None:
    assert matching(world, "SELECT 1 FROM a WHERE v = $1", "a", (2,)) == rows(2)
