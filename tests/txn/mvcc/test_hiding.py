"""What of a part a reader does not see, against brute force: few ends and many, with begins, own intents and own ends."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from txn.base.types import PartRef, Timestamp
from txn.mvcc import own_ends as own_ends_module
from txn.mvcc import parts as parts_module
from txn.mvcc.own_ends import OwnEnds
from txn.mvcc.parts import PartState


def part_of(rows: int, begins: list[int]) -> PartState:
    ref = mock.Mock(
        spec=PartRef, rows=rows, min_begin=Timestamp(min(begins)), max_begin=Timestamp(max(begins))
    )
    return PartState(mock.Mock(), ref)


@pytest.mark.parametrize("at_once", [0, 5, 1 << 20], ids=["in a thread", "some", "on the loop"])
@pytest.mark.parametrize("seed", range(12))
def test_positions_are_those_that_a_reader_does_not_see(seed: int, at_once: int) -> None:
    rng = random.Random(seed)
    rows = rng.choice([1, 40, 1500])
    begins = [rng.randrange(1, 5) for _ in range(rows)]
    part = part_of(rows, begins)
    column = pa.array(begins, pa.int64())
    ended: dict[int, int] = {}
    with (
        mock.patch.object(parts_module, "AT_ONCE", at_once),
        mock.patch.object(own_ends_module, "AT_ONCE", at_once),
    ):
        for ts in range(10, 60):
            for position in rng.sample(range(rows), min(rows, rng.choice([0, 1, 3, rows // 7]))):
                part.end(position, ts)
                ended.setdefault(position, ts)
            for reader in (ts, rng.randrange(1, ts + 1), ts + 5):
                extra = rng.sample(range(rows), min(rows, rng.choice([0, 0, 2])))
                expected = {p for p, end in ended.items() if end <= reader} | set(extra)
                expected |= {p for p, begin in enumerate(begins) if begin > reader}
                hiding = part.hiding(reader, extra, column)
                assert _listed(hiding()) == sorted(expected)
            mine = [rng.random() < 0.2 for _ in range(rows)]
            own = OwnEnds(part, pa.array(mine, pa.bool_()))
            expected = ended.keys() | {p for p, one in enumerate(mine) if one}
            assert _listed(own.hidden(1 << 60, (), column)) == sorted(expected)


@pytest.mark.parametrize("before", [0, 3, 300], ids=["none", "few", "many"])
def test_many_rows_end_some_at_a_time(before: int) -> None:
    rng = random.Random(before)
    rows = 2003
    parts = [part_of(rows, [1]) for _ in range(2)]
    taken = rng.sample(range(rows), before)
    for part in parts:
        for position in taken:
            part.end(position, 5)
    left = [p for p in range(rows) if p not in taken]
    ending = sorted(rng.sample(left, 900))
    mask = pa.array([p in set(ending) for p in range(rows)], pa.bool_())
    wrong = pa.array([p in {*ending, *taken[:1]} for p in range(rows)], pa.bool_())
    with mock.patch.multiple(parts_module, _SLICE_ROWS=64, _ARRAY_ROWS=10, _MOVED=20):
        if taken:
            assert not parts[0].end_rows(wrong, 7)
            assert _listed(parts[0].hidden(7)) == sorted(taken), "nothing is noted"
        steps = 0
        for _ in parts[0].end_rows_slowly(mask, 7):
            steps += 1
            assert _listed(parts[0].hidden(6)) == sorted(taken), "a reader of before sees none of it"
        assert steps >= 2 * rows // 64
    for position in ending:
        parts[1].end(position, 7)
    for ts in (4, 5, 6, 7, 8):
        assert _listed(parts[0].hidden(ts)) == _listed(parts[1].hidden(ts))
        assert all(parts[0].visible(p, ts) == parts[1].visible(p, ts) for p in range(rows))
    assert parts[0].ended == parts[1].ended
    assert parts[0].last_end == 7


def test_what_ends_while_a_thread_looks_is_not_hidden() -> None:
    part = part_of(4000, [1])
    for position in range(0, 4000, 2):
        part.end(position, 10)
    hiding = part.hiding(10)
    for position in range(1, 4000, 2):
        part.end(position, 11)
    assert _listed(hiding()) == list(range(0, 4000, 2))
    assert _listed(part.hidden(11)) == list(range(4000))
    assert _listed(part.hidden(10)) == list(range(0, 4000, 2))


def _listed(found: Any) -> list[int]:
    return [] if found is None else found.to_pylist()
