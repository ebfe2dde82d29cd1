"""Hashes of long texts are known before anything is put in a set or dict: computed in a thread, and the same as Python's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine.base.eager import LaidAside, call_on_strand
from engine.base.loop import strands
from pgwire import give_way as way
from pgwire.give_way import openly
from pgwire.long import hashes as long_hash
from pgwire.long.hashes import LONG, hashed
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

UNITS = ("a", "\xe9", "\u20ac", "\U0001f600", b"b")


async def on_strand(work: Callable[[], Any]) -> Any:
    way.install(strands.lay_aside, None, strands.beside)
    found = call_on_strand(lambda: openly(work))
    return await found if isinstance(found, LaidAside) else found


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_value_is_hashed_in_a_thread_as_python_does(unit: str | bytes) -> None:
    value, same = unit * LONG, unit * LONG
    threads: list[int] = []
    computed = long_hash._computed

    def noted(*args: Any) -> int:
        threads.append(threading.get_ident())
        return computed(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_hash, "_computed", noted)
        assert asyncio.run(on_strand(lambda: hashed(value))) is value
        assert asyncio.run(on_strand(lambda: hashed(value))) is value
    assert len(threads) == 1, "once"
    assert threads[0] != threading.get_ident()
    assert long_hash._kept(value).value == hash(same)
    assert hash(value) == hash(same)
    assert {value: 1}[same] == 1


def test_what_nothing_can_wait_for_is_left_to_python() -> None:
    way.install(strands.lay_aside, None, strands.beside)
    value = "a" * LONG
    assert hashed(value) is value
    assert long_hash._kept(value).value == -1
    short = "b" * (LONG - 1)
    asyncio.run(on_strand(lambda: hashed(short)))
    assert long_hash._kept(short).value == -1
    for other in (1, None, ("a" * LONG,)):
        assert asyncio.run(on_strand(lambda other=other: hashed(other))) is other


STATEMENTS = {
    "GROUP BY": "SELECT count(*) FROM t GROUP BY s ORDER BY 1",
    "GROUP BY of two": "SELECT count(*) FROM t GROUP BY s, id ORDER BY 1",
    "GROUP BY of padded ones": "SELECT count(*) FROM t GROUP BY s::char(200) ORDER BY 1",
    "DISTINCT": "SELECT count(*) FROM (SELECT DISTINCT s FROM t) x",
    "DISTINCT in an aggregate": "SELECT count(DISTINCT s) FROM t",
    "UNION": "SELECT count(*) FROM (SELECT s FROM t UNION SELECT s FROM t) x",
    "a join": "SELECT count(*) FROM t a JOIN t b ON a.s = b.s",
    "a join of two": "SELECT count(*) FROM t a JOIN t b ON a.s = b.s AND a.id % 9 = b.id % 9",
    "IN": "SELECT count(*) FROM t WHERE s IN (SELECT s FROM t WHERE id < 3)",
}
ANSWERS = [
    [("2",), ("2",)], [("1",)] * 4, [("2",), ("2",)], [("2",)], [("2",)], [("2",)], [("8",)], [("4",)], [("4",)],
]  # fmt: skip


def test_keys_of_the_row_executor_are_hashed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead: list[str] = []

    def noted(value: Any) -> Any:
        ahead.append(value)
        return value

    for name in ("nodes", "joins", "subplan"):
        monkeypatch.setattr(f"engine.executors.index.{name}.hashed", noted)
        monkeypatch.setattr(f"engine.executors.index.{name}.LONG", 50, raising=False)

    async def whole() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("SET executor = index; CREATE TABLE t (id int PRIMARY KEY, s text)")
        await session.run("INSERT INTO t SELECT i, repeat('x', 100) || i % 2 FROM generate_series(1, 4) i")
        for (name, sql), answer in zip(STATEMENTS.items(), ANSWERS, strict=True):
            ahead.clear()
            assert await session.run(sql) == answer, name
            assert len(ahead) >= 4, name
        await database.close()

    asyncio.run(whole())
