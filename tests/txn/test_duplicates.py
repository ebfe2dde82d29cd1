"""Duplicate keys over sidecars, against counting, with windows of a few keys."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from txn.columns import column_arrays
from txn.duplicates import Run, first_duplicate
from txn.keycodec import KeyCodec
from txn.persist.checksum import write_blocks
from txn.persist.sidecar import KeySidecar, build_key_sidecar
from txn.types import IndexId, PhysicalType, ShardColumn, ShardIndex

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
    runs, live = [], Counter[Any]()
    for number in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(keys, min_size=1, max_size=12))
        dead = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True, max_size=len(rows)))
        by = data.draw(st.sampled_from(["ended", "replaced"]))
        runs.append(run_of(folder / str(number), types, rows, dead, by))
        live.update(row for at, row in enumerate(rows) if at not in dead)
    index = ShardIndex(
        index=IndexId(1), attnums=tuple(range(1, len(types) + 1)), unique=True, nulls_distinct=nulls_distinct
    )
    twice = [k for k, n in live.items() if n > 1 and not (nulls_distinct and None in k)]
    expected = min(twice, key=KeyCodec(types).encode, default=None)
    for window in (1, 7, 1000):
        assert first_duplicate(runs, index, window) == expected
