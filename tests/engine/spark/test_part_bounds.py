"""Parts left out by the bounds of their columns: none that a query finds something in, and most of the others."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.executors.spark import relations
from engine.executors.spark.part_bounds import Bounds, Comparison, bounds_in, conditions_of, pruned
from engine.executors.spark.relations import FileInput, HoledPart, Inputs
from tests.support.lowered import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("bounds"))
    made.table("t", "id bigint pk", "day date", "name text", "amount numeric(10,2)")
    made.table("u", "id int pk", "day date")
    return made


def conditions(world: World, sql: str, types: tuple[int, ...] = ()) -> dict[str, Any]:
    found = conditions_of(world.bind(sql, types))
    names = {r.oid: r.name for r in world.catalog.by_oid.values()}
    return {names[oid]: tests for oid, tests in found.items()}


DAY = (datetime.date(2026, 11, 1) - datetime.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1 FROM t WHERE id < 5", {"t": ((Comparison(1, "<", 5),),)}),
        ("SELECT 1 FROM t WHERE 5 < id AND name = 'x'", {"t": ((Comparison(1, ">", 5),),)}),
        ("SELECT 1 FROM t WHERE day = '2026-11-01'", {"t": ((Comparison(2, "=", DAY),),)}),
        ("SELECT 1 FROM t WHERE id = $1", {"t": ((Comparison(1, "=", None, 1),),)}),
        ("SELECT 1 FROM t WHERE id < 5 OR day = '2026-11-01'", {"t": ()}),
        ("SELECT 1 FROM t WHERE amount < 5 AND id + 1 < 5", {"t": ()}),
        ("SELECT 1 FROM t WHERE id < day - date '2026-11-01'", {"t": ()}),
        ("SELECT 1 FROM t", {"t": ()}),
        ("SELECT 1 FROM t JOIN u ON u.id = t.id AND u.day > '2026-11-01' WHERE t.id = 3",
         {"t": ((Comparison(1, "=", 3),),), "u": ((Comparison(2, ">", DAY),),)}),
        ("SELECT 1 FROM t LEFT JOIN u ON u.id = t.id AND t.id < 3 WHERE u.day IS NULL", {"t": (), "u": ()}),
        ("SELECT 1 FROM t a, t b WHERE a.id = 1 AND b.id = 9",
         {"t": ((Comparison(1, "=", 1),), (Comparison(1, "=", 9),))}),
        ("SELECT 1 FROM t a, t b WHERE a.id = 1", {"t": ()}),
        ("SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND t.id > 7)",
         {"u": (), "t": ((Comparison(1, ">", 7),),)}),
    ],
)  # fmt: skip
def test_what_is_looked_at(world: World, sql: str, expected: dict[str, Any]) -> None:
    types = (20,) if "$1" in sql else ()
    assert conditions(world, sql, types) == expected


@pytest.mark.parametrize("seed", range(30))
def test_no_value_that_satisfies_is_excluded(seed: int) -> None:
    rng = random.Random(seed)
    truth = {
        "=": lambda a, b: a == b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }  # fmt: skip
    values = [rng.randint(-5, 5) for _ in range(rng.randint(1, 4))]
    full = range(min(values), max(values) + 1)
    for operator, holds in truth.items():
        for value in range(-7, 8):
            excluded = Comparison(1, operator, value).excludes(min(values), max(values), ())  # type: ignore[arg-type]
            assert excluded == (not any(holds(v, value) for v in full))
    assert Comparison(1, "=", None).excludes(0, 9, ())
    assert Comparison(1, "=", None, 2).excludes(0, 9, (5, None))
    assert not Comparison(1, "=", None, 1).excludes(0, 9, (5, None))


def write(path: Path, column: Any, row_group: int = 2) -> Any:
    pq.write_table(
        pa.table({"c1": column, "s_row_id": pa.array(range(len(column)))}), path, row_group_size=row_group
    )
    return pq.read_metadata(path)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([5, None, 3, 9], pa.int64()), (3, 9)),
        (pa.array([None, None, 3, 9], pa.int16()), (3, 9)),
        (pa.array([-1, 18262], pa.date32()), (-1, 18262)),
        (pa.array([None, None], pa.int64()), None),
        (pa.array([2**31 - 1, 5], pa.int32()).cast(pa.date32()), None),  # infinity
        (pa.array(["a", "b"]), None),
        (pa.array([True, False]), None),
    ],
)
def test_the_bounds_of_a_file(tmp_path: Path, column: Any, expected: tuple[int, int] | None) -> None:
    metadata = write(tmp_path / "p.parquet", column)
    assert bounds_in(metadata, "c1") == expected
    assert bounds_in(metadata, "c7") is None


def test_a_footer_is_read_once_and_a_file_without_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.parquet"
    write(path, pa.array([1, 2], pa.int64()))
    bounds = Bounds()
    test = ((Comparison(1, ">", 5),),)
    assert pruned({"a": str(path)}, bounds, test, ()) == {"a"}
    monkeypatch.setattr(pq, "read_metadata", lambda p: pytest.fail("read again"))
    assert not bounds.needed(str(path), test, ())
    assert bounds.needed(str(path), (*test, (Comparison(1, "<", 5),)), ())  # another reading needs it
    monkeypatch.undo()
    assert bounds.needed(str(tmp_path / "none"), test, ())
    assert pruned({"b": "s3://bucket/p.parquet"}, bounds, test, ()) == set()
    assert pruned({"a": str(path)}, bounds, (), ()) == set()


def test_a_scan_loses_the_parts_it_does_not_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for number in range(4):
        path = tmp_path / f"p{number}.parquet"
        write(path, pa.array(range(number * 10, number * 10 + 10), pa.int64()))
        paths.append(str(path))
    read: list[str] = []

    class Frame:
        def selectExpr(self, *words: str) -> Frame:
            assert words == ("*", "false AS s_gone")
            return self

    def reading(session: Any, ddl: str, given: Any) -> Frame:
        read[:] = list(given)
        return Frame()

    monkeypatch.setattr(relations, "_read", reading)

    def scan(*tests: Comparison) -> list[str]:
        holed = [HoledPart(paths[3], 10, pa.array([0], pa.int64()))]
        item = FileInput("v", "", dict.fromkeys(paths[:3], 1), holed, [1], oid=7, marked=True)
        item.paths = {path: path for path in paths}
        inputs = Inputs("x", tmp_path, conditions={7: (tests,)})
        inputs._leave_out(item)
        inputs._scan(None, None, item, "v")  # type: ignore[arg-type]
        return read

    assert scan(Comparison(1, ">=", 8), Comparison(1, "<", 20)) == paths[:2]
    assert scan(Comparison(1, "=", 25)) == [paths[2]]
    assert scan(Comparison(1, "=", 99)) == [paths[0]]  # one file stays: a scan needs one
