"""Hidden rows as bits: which row of which file is found, without a JVM."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from engine.executors.spark import hidden
from engine.executors.spark.hidden import HoledPart, is_hidden, slots_for, words_of
from engine.executors.spark.relations import _apart

SQL = "coalesce(shiftright(get(W, CAST(shiftright((get(B, CAST(S % 7 AS INT)) + P), 6) AS INT)), CAST((get(B, CAST(S % 7 AS INT)) + P) & 63 AS INT)) & 1, 0) = 1"


def part(path: str, rows: int, positions: list[int]) -> HoledPart:
    return HoledPart(path, rows, pa.array(positions, pa.int64()))


def found(arrays: tuple[list[int], list[int]], slots: int, size: int, position: int) -> bool:
    """What Spark evaluates, by its rules: ``get`` is NULL outside the array."""
    bases, words = arrays

    def get(index: int) -> int | None:
        return words[index] if 0 <= index < len(words) else None

    base = bases[size % slots]
    bit = base + position
    assert -(2**31) <= bit >> 6 < 2**31  # the cast to INT does not overflow
    word = get(bit >> 6)
    return word is not None and (word >> (bit & 63)) & 1 == 1


def test_the_expression_is_the_one_that_is_imitated_here() -> None:
    assert is_hidden(("B", "W"), 7, "S", "P") == SQL


@pytest.mark.parametrize("seed", range(20))
def test_exactly_the_hidden_rows_are_found(seed: int) -> None:
    rng = random.Random(seed)
    sizes = rng.sample(range(500, 100_000), 12)
    parts = []
    for number in range(6):
        rows = rng.choice((1, 63, 64, 65, 1000))
        positions = sorted(rng.sample(range(rows), rng.randint(1, rows)))
        parts.append(part(f"p{number}", rows, positions))
    slots = slots_for(sizes[:6], sizes[6:])
    assert slots is not None
    bases, words = words_of(parts, sizes[:6], slots)
    arrays = bases.to_pylist(), words.to_pylist()
    for item, size in zip(parts, sizes, strict=False):
        gone = set(item.positions.to_pylist())
        assert {p for p in range(item.rows) if found(arrays, slots, size, p)} == gone
    for size in sizes[6:]:
        assert not any(found(arrays, slots, size, p) for p in (0, 1, 63, 64, 5000, 2**31))


def test_files_of_one_size_share_no_slot_that_matters() -> None:
    assert slots_for([10, 10], []) is None
    assert slots_for([10], [10]) is None
    assert slots_for([10], [11, 11, 13]) == 2
    assert slots_for([10, 12], [11]) == 3
    assert slots_for([], [5, 5]) == 1


def test_parts_of_equal_size_are_read_apart() -> None:
    parts = [part(name, 10, [1]) for name in "abc"]
    sets = list(_apart(parts, [100, 100, 200], {"w": 300, "x": 100}))
    assert [([p.path for p in own], sizes, beside) for own, sizes, beside in sets] == [
        (["a", "c"], [100, 200], {"w": 300}),
        (["b"], [100], {}),
    ]  # and "x" by itself


class Session:
    """What ``HiddenViews`` asks of a session."""

    def __init__(self) -> None:
        self.views: dict[str, Any] = {}
        self.catalog = self
        self._table: Any = None

    def createDataFrame(self, table: Any, schema: Any) -> Session:
        self._table = table
        return self

    def createOrReplaceTempView(self, name: str) -> None:
        self.views[name] = self._table

    def dropTempView(self, name: str) -> None:
        del self.views[name]


def test_what_has_not_changed_is_handed_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden, "_parsed", lambda ddl: ddl)
    session = Session()
    views = hidden.HiddenViews(session, "v")
    first = part("p", 10, [1])

    def ask(item: HoledPart) -> str:
        with views.arrays_sql((item,), (100,), 1) as (bases, words):
            assert bases.replace(" b ", " w ") == words
            return words

    assert ask(first) == ask(HoledPart("p", 10, first.positions)) == "(SELECT w FROM v_1)"
    assert ask(part("p", 10, [1, 2])) == "(SELECT w FROM v_2)"
    for number in range(hidden.KEPT_VIEWS):
        ask(part(f"q{number}", 10, [1]))
    assert session.views["v_18"].to_pydict() == {"b": [[0]], "w": [[2]]}
    assert len(session.views) == hidden.KEPT_VIEWS
    assert "v_1" not in session.views
    monkeypatch.setattr(hidden, "KEPT_BYTES", 3 * 16)  # two words here
    ask(part("r", 10, [1]))
    assert len(session.views) == 3
    monkeypatch.setattr(hidden, "KEPT_BYTES", 1)
    assert ask(part("s", 10, [1])) == f"(SELECT w FROM {next(iter(session.views))})"
    assert len(session.views) == 1
    assert ask(first) == f"(SELECT w FROM v_{hidden.KEPT_VIEWS + 5})"
