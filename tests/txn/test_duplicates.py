"""Duplicate keys over sidecars, against counting, with windows of a few keys."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txn.base.types import IndexId, PhysicalType, ShardColumn, ShardIndex
from txn.persist.checksum import write_blocks
from txn.persist.parts.sidecar import KeySidecar, build_key_sidecar
from txn.transaction import duplicates
from txn.transaction.duplicates import Run, first_duplicate
from txn.values.columns import column_arrays
from txn.values.keycodec import KeyCodec

INT = PhysicalType(kind="int64")
TEXT = PhysicalType(kind="text")
KEYS = {
    "int": ((INT,), st.tuples(st.none() | st.integers(0, 40))),
    "text": ((TEXT,), st.tuples(st.none() | st.text("ab", max_size=4))),
    "both": ((TEXT, INT), st.tuples(st.none() | st.text("ab", max_size=2), st.none() | st.integers(0, 9))),
}


def run_of(path: Path, types: tuple[PhysicalType, ...], keys: list[Any], dead: list[int], by: str) -> Run:
    columns = [
        column_arrays([key[i] for key in keys], ShardColumn(attnum=i + 1, type=t))[0]
        for i, t in enumerate(types)
    ]
    with path.open("wb") as file:
        write_blocks(file, build_key_sidecar(KeyCodec(types), columns, [None] * len(types)))
    sorted_keys = KeySidecar(str(path)).arrays()
    if by == "ended":
        return Run(sorted_keys, pa.array(dead, pa.int64()))
    return Run(sorted_keys, None, dead)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_lowest_key_of_two_live_rows_is_found(data: st.DataObject, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("sidecars")
    types, keys = KEYS[data.draw(st.sampled_from(sorted(KEYS)))]
    nulls_distinct = data.draw(st.booleans())
    guarded = len(types) > 1 and data.draw(st.booleans())
    runs, live = [], Counter[Any]()
    for number in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(keys, min_size=1, max_size=12))
        dead = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True, max_size=len(rows)))
        by = data.draw(st.sampled_from(["ended", "replaced"]))
        runs.append(run_of(folder / str(number), types, rows, dead, by))
        live.update(row for at, row in enumerate(rows) if at not in dead)
    index = ShardIndex(
        index=IndexId(1), attnums=tuple(range(1, len(types) + 1)), unique=True, nulls_distinct=nulls_distinct,
        guarded=guarded,
    )  # fmt: skip
    several = (lambda k: k[-1] is None) if guarded else (lambda k: nulls_distinct and None in k)
    twice = [k for k, n in live.items() if n > 1 and not several(k)]
    expected = min(twice, key=KeyCodec(types).encode, default=None)
    for window in (1, 7, 1000):
        assert first_duplicate(runs, index, window) == expected
    if types != (INT,):
        assert duplicates._first_long(runs, index, lambda: False) == expected


def test_long_keys_are_not_copied(tmp_path: Path) -> None:
    """A key of a value of many megabytes is read where it lies, and so are many of a megabyte together."""
    size = 1 << 20
    keys = [(str(number) * size,) for number in range(8)]
    runs = [
        run_of(tmp_path / str(n), (TEXT,), [*keys, (f"own{n}" * size,)], [0, 1], "ended") for n in range(2)
    ]
    index = ShardIndex(index=IndexId(1), attnums=(1,), unique=True, nulls_distinct=True)
    before = pa.total_allocated_bytes()
    peak = 0

    def stopped() -> bool:
        nonlocal peak
        peak = max(peak, pa.total_allocated_bytes() - before)
        return False

    assert first_duplicate(runs, index, stopped=stopped) == keys[2]
    assert peak < size // 2
    assert first_duplicate([runs[0]], index) is None


def test_windows_are_bounded_in_bytes(tmp_path: Path) -> None:
    keys = [(f"{number:08}" * 1000,) for number in range(3000)]
    runs = [run_of(tmp_path / str(n), (TEXT,), keys[n::2], [], "ended") for n in range(2)]
    assert keys[0][0].isascii()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duplicates, "WINDOW_BYTES", 1 << 20)
        sizes = [
            window.nbytes
            for window in duplicates._windows(runs, duplicates.WINDOW_KEYS)
            if window is not None
        ]
    assert max(sizes) < 3 << 20
    assert sum(sizes) >= 3000 * 8000


class NoItems:
    """Keys no single one of which is asked for: that would be a copy."""

    def __init__(self, keys: Any) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def slice(self, *bounds: int) -> Any:
        return self._keys.slice(*bounds)


def test_ranges_of_keys_meet_without_a_copy_of_a_key(tmp_path: Path) -> None:
    ranges = {"ac": True, "ab": True, "ce": True, "de": False, "": False, "bb": True}
    base = run_of(tmp_path / "base", (TEXT,), [("b",), ("c",)], [], "ended").sorted
    for number, (letters, meet) in enumerate(ranges.items()):
        keys = [(letter,) for letter in letters] or [("x",)]
        other = run_of(tmp_path / str(number), (TEXT,), keys, [], "ended").sorted
        other = replace(other, keys=NoItems(other.keys if letters else other.keys.slice(0, 0)))
        one = replace(base, keys=NoItems(base.keys))
        assert duplicates.ranges_meet(one, other) is duplicates.ranges_meet(other, one) is meet, letters


def test_a_search_is_stopped_within_a_key(tmp_path: Path) -> None:
    run = run_of(tmp_path / "0", (TEXT,), [("x" * (8 * duplicates._PIECE),)], [], "ended")
    index = ShardIndex(index=IndexId(1), attnums=(1,), unique=True)
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked == 5

    assert first_duplicate([run], index, stopped=stopped) is None
    assert asked == 5
