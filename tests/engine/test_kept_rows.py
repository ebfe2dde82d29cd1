"""What a cursor has read, in memory and in a file: any part of it, in either shape, as if it were one list."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base import kept_rows
from engine.base.kept_rows import KeptRows
from engine.base.rows import RowBatch
from tests.support.server import ServerProcess


def to_rows(batch: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def arrow(first: int, count: int) -> RowBatch:
    numbers = list(range(first, first + count))
    return RowBatch(arrow=pa.record_batch({"n": numbers, "t": [f"t{n}" for n in numbers]}))


def plain(first: int, count: int) -> RowBatch:
    return RowBatch(rows=[(n, f"t{n}") for n in range(first, first + count)])


def expected(start: int, end: int) -> list[tuple[int, str]]:
    return [(n, f"t{n}") for n in range(start, end)]


@given(
    batches=st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=12),
    limit=st.integers(1, 4000),
    data=st.data(),
)
def test_any_part_can_be_read_again(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[bool, int]], limit: int, data: st.DataObject
) -> None:
    async def body(folder: Path) -> None:
        kept = KeptRows(folder, to_rows)
        count = forgotten = 0
        try:
            for is_arrow, size in batches:
                await kept.add((arrow if is_arrow else plain)(count, size))
                count += size
                assert len(kept) == count
                start = data.draw(st.integers(forgotten, count + 3))
                end = data.draw(st.integers(start, count + 6))
                assert await kept.rows(start, end) == expected(start, min(end, count))
                back = [list(batch.rows or ()) async for batch in kept.batches_back(start, end)]
                assert [row for rows in back for row in rows] == expected(start, min(end, count))[::-1]
                if data.draw(st.booleans()):
                    forgotten = data.draw(st.integers(forgotten, count))
                    kept.forget(forgotten)
        finally:  # also when an example is given up
            kept.close()
        assert list(folder.iterdir()) == []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.base.kept_rows.KEPT_BYTES", limit)
        asyncio.run(body(tmp_path_factory.mktemp("kept")))


def test_memory_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.base.kept_rows.KEPT_BYTES", 10_000)

    async def body() -> None:
        kept = KeptRows(tmp_path, to_rows)
        for i in range(100):
            await kept.add(arrow(100 * i, 100))
            held = [chunk for chunk in kept._chunks if chunk.batch is not None]
            assert sum(chunk.size for chunk in held) <= 10_000 + held[-1].size
        assert len(held) < 10
        assert await kept.rows(0, 10_000) == expected(0, 10_000)
        kept.forget(9_950)
        assert len(kept._chunks) == 1
        kept.close()

    asyncio.run(body())


def test_values_survive_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.base.kept_rows.KEPT_BYTES", 1)
    rows = [(Decimal("1.50"), b"\x00", None, (1, 2, 3), ["a", None], True, 1.5, "é")]

    async def body() -> None:
        kept = KeptRows(tmp_path, to_rows)
        for _ in range(3):
            await kept.add(RowBatch(rows=rows))
        assert kept._chunks[0].batch is None
        assert await kept.rows(0, 1) == rows
        kept.close()

    asyncio.run(body())


# PostgreSQL 15's answers; a number moves by more rows than are handed on at a time.
STEPS: list[tuple[str, int | list[int]]] = [
    ("MOVE 12000 FROM c", 12_000),
    ("FETCH 1 FROM c", [12_001]),
    ("MOVE FORWARD 11999 FROM c", 11_999),
    ("FETCH 2 FROM c", [24_001, 24_002]),
    ("MOVE ALL FROM c", 998),
    ("FETCH 1 FROM c", []),
    ("FETCH BACKWARD 1 FROM c", [25_000]),
    ("MOVE BACKWARD ALL FROM c", 24_999),
    ("FETCH 20000 FROM c", list(range(1, 20_001))),
    ("FETCH 1 FROM c", [20_001]),
    ("FETCH ALL FROM c", list(range(20_002, 25_001))),
    ("FETCH PRIOR FROM c", [25_000]),
    ("FETCH ABSOLUTE 5 FROM c", [5]),
    ("MOVE BACKWARD -10001 FROM c", 10_001),
    ("FETCH 1 FROM c", [10_007]),
    ("MOVE 30000 FROM c", 14_993),
    ("FETCH ABSOLUTE -1 FROM c", [25_000]),
    ("FETCH BACKWARD 3 FROM c", [24_999, 24_998, 24_997]),
    ("FETCH FORWARD -2 FROM c", [24_996, 24_995]),
    ("FETCH BACKWARD 12000 FROM c", list(range(24_994, 12_994, -1))),
    ("FETCH 2 FROM c", [12_996, 12_997]),
    ("FETCH BACKWARD ALL FROM c", list(range(12_996, 0, -1))),
    ("FETCH BACKWARD 5 FROM c", []),
    ("FETCH BACKWARD -2 FROM c", [1, 2]),
    ("FETCH BACKWARD 5 FROM c", [1]),
    ("FETCH 1 FROM c", [1]),
]


def test_cursors_move_by_many_rows_as_in_postgresql(server: ServerProcess) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("DECLARE c SCROLL CURSOR FOR SELECT g FROM generate_series(1, 25000) g")
        for statement, wanted in STEPS:
            done = connection.execute(statement)
            found = done.rowcount if statement.startswith("MOVE") else [row[0] for row in done]
            assert found == wanted, statement


def test_a_cursor_that_cannot_scroll_goes_on_after_commit(server: ServerProcess) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute(
            "DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT g FROM generate_series(1, 25000) g"
        )
        assert connection.execute("MOVE 11000 FROM c").rowcount == 11_000
        connection.commit()
        assert connection.execute("FETCH 1 FROM c").fetchall() == [(11_001,)]
        assert connection.execute("MOVE ALL FROM c").rowcount == 13_999
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute("FETCH PRIOR FROM c")


@pytest.mark.parametrize("then", ["read", "close"])
def test_a_write_that_was_given_up_ends_before_the_file_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """A FETCH that is cancelled leaves its thread at the file."""
    begun, may_end = threading.Event(), threading.Event()
    write = KeptRows._write

    def slow(self: KeptRows, chunks: Sequence[Any]) -> None:
        begun.set()
        assert may_end.wait(60)
        write(self, chunks)

    async def body() -> None:
        monkeypatch.setattr(kept_rows, "KEPT_BYTES", 20_000)
        kept = KeptRows(tmp_path, to_rows)
        for first in range(0, 200, 50):
            await kept.add(plain(first, 50))
        assert kept._file is not None  # something has been moved out before
        monkeypatch.setattr(KeptRows, "_write", slow)
        adding = asyncio.ensure_future(kept.add(plain(200, 200)))
        assert await asyncio.to_thread(begun.wait, 60)
        adding.cancel()
        await asyncio.wait((adding,))
        assert adding.cancelled()
        reading = asyncio.ensure_future(kept.rows(0, 400))
        await asyncio.sleep(0.05)
        assert not reading.done()
        if then == "close":
            reading.cancel()
            kept.close()
        may_end.set()
        if then == "read":
            assert await reading == expected(0, 400)
            kept.close()
        await asyncio.wait((reading,))
        while kept._file is not None:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(body(), 60))
