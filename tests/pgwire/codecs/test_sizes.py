"""What values take in memory, counted piece by piece."""

from __future__ import annotations

from sys import getsizeof
from typing import Any

import pytest

from pgwire.bounded import bounded
from pgwire.codecs import sizes
from pgwire.codecs.sizes import row_bytes


def counted(value: Any) -> int:
    if isinstance(value, tuple | list | set | frozenset):
        return getsizeof(value) + sum(map(counted, value))
    if isinstance(value, dict):
        return getsizeof(value) + sum(map(counted, value.values()))
    return getsizeof(value)


def test_what_is_within_a_value_counts_and_a_long_one_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    gave_way = 0

    def give_way() -> None:
        nonlocal gave_way
        gave_way += 1

    monkeypatch.setattr(sizes, "give_way", give_way)
    pairs = tuple((n, f"{n}") for n in range(1000))
    row = (
        1, None, "x" * 100, (1, 2, (3, "y")), pairs, bounded(pairs, (0, 1)), {"a": [1.5]}, {7, 8}, frozenset(range(200)),
    )  # fmt: skip
    assert row_bytes(row[:4]) == sum(map(counted, row[:4]))
    assert gave_way == 0
    assert row_bytes(row) == sum(map(counted, row))
    assert gave_way >= 2 * (1000 // sizes.PACE)
