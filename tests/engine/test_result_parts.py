"""Rows that are all there are encoded and sent in parts, however many there are: none holds the loop for all of them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from engine.base.pieces import PART_ROWS, cut_rows
from engine.statements import output
from planner.facts import INT4, TEXT
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk


class Sink:
    """A client that takes everything."""

    def __init__(self) -> None:
        self.parts: list[tuple[bytes, int]] = []

    def data_rows(self, data: Any, count: int) -> None:
        self.parts.append((bytes(data), count))

    async def drain(self) -> None:
        pass


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("count", [0, 1, PART_ROWS, PART_ROWS + 1, 5 * PART_ROWS])
def test_many_rows_are_sent_in_parts(texts: bool, count: int) -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        rows = [(n, f"x{n}" if texts else n + 1) for n in range(count)]
        encode = output.Encoder((INT4, TEXT if texts else INT4), (0, 0), session.connection.session)
        sink = Sink()
        plan = cast("Any", type("Plan", (), {"short": False}))
        await output.send_ready(rows, encode, cast("Any", sink), plan)
        whole, _count = encode.rows(rows)
        assert b"".join(data for data, _ in sink.parts) == bytes(whole)
        assert sum(number for _, number in sink.parts) == count
        assert all(number <= PART_ROWS for _, number in sink.parts)
        await database.close()

    asyncio.run(go())


def test_parts_are_all_rows_in_their_order() -> None:
    rows = [(n,) for n in range(3 * PART_ROWS + 5)]
    parts = [part for part, _long in cut_rows(rows, None)]
    assert [row for part in parts for row in part] == rows
    assert [len(part) for part in parts] == [PART_ROWS] * 3 + [5]
