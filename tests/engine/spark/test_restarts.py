"""A JVM that ends: another one starts by itself, later and later if it keeps ending; nobody else notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.executors.spark import restarts
from engine.executors.spark.executor import SparkExecutor
from engine.executors.spark.gateway import GatewayError
from engine.executors.spark.restarts import LONGEST_S, STEADY_S, Restarts
from planner.base.errors import SqlError
from tests.support.lowered import World, sample_world


def test_waits_grow_while_it_keeps_ending_and_are_forgotten_once_it_lives() -> None:
    counted = Restarts()
    now, waits = 100.0, []
    for _ in range(9):
        counted.came_up(now)
        now += 5
        counted.ended(now)
        waits.append(counted.wait_s(now))
        now += waits[-1]
        assert counted.wait_s(now) == 0
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_S, LONGEST_S, LONGEST_S]
    counted.came_up(now)
    counted.ended(now + STEADY_S)
    assert counted.wait_s(now + STEADY_S) == 0
    counted.came_up(now + STEADY_S)
    counted.ended(now + STEADY_S + 1)
    assert counted.wait_s(now + STEADY_S + 1) == 1


class Jvms:
    """Stands for the JVMs: each is alive until the test ends it."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.broken = False

    def open(self) -> Any:
        if self.broken:
            raise GatewayError("it is broken")
        gateway = SimpleNamespace(alive=True, stop=lambda: None)
        self.started.append(SimpleNamespace(gateway=gateway))
        return self.started[-1]


@pytest.fixture
def jvms(monkeypatch: pytest.MonkeyPatch) -> Jvms:
    made = Jvms()
    monkeypatch.setattr("engine.executors.spark.runtime.SparkRuntime._open", lambda _self: made.open())
    monkeypatch.setattr("engine.executors.spark.runtime._discard", lambda _live: None)
    monkeypatch.setattr("engine.executors.spark.runtime.WATCH_S", 0.001)
    monkeypatch.setattr(restarts, "FIRST_S", 0.001)
    return made


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def run(folder: Path, mode: str, body: Callable[[SparkExecutor], Any]) -> None:
    async def all_of_it() -> None:
        spark = SparkExecutor(master="local[1]", mode=mode, data_dir=folder)
        try:
            await body(spark)
        finally:
            await spark.close()

    asyncio.run(asyncio.wait_for(all_of_it(), 20))


def test_it_starts_again_in_the_background_though_nobody_asks(tmp_path: Path, jvms: Jvms) -> None:
    async def body(spark: SparkExecutor) -> None:
        spark.start_background()
        for count in (1, 2, 3):
            await until(lambda: spark.ready)
            assert len(jvms.started) == count
            jvms.started[-1].gateway.alive = False

    run(tmp_path, "background", body)


def test_a_start_that_fails_after_a_crash_is_tried_again(tmp_path: Path, jvms: Jvms) -> None:
    async def body(spark: SparkExecutor) -> None:
        spark.start_background()
        await until(lambda: spark.ready)
        jvms.broken = True
        jvms.started[-1].gateway.alive = False
        await until(lambda: spark.runtime.restarts.wait_s(0) > 0 and not spark.ready)
        jvms.broken = False
        await until(lambda: spark.ready)
        assert len(jvms.started) == 2

    run(tmp_path, "background", body)


def test_a_lazy_one_waits_for_a_query(tmp_path: Path, jvms: Jvms) -> None:
    async def body(spark: SparkExecutor) -> None:
        await spark.runtime.live()
        jvms.started[-1].gateway.alive = False
        await until(lambda: spark.runtime._live is None)
        assert spark.runtime._starting is None
        await spark.runtime.live()
        assert len(jvms.started) == 2

    run(tmp_path, "lazy", body)


def query(spark: SparkExecutor, world: World, start_ms: int) -> asyncio.Future[Any]:
    plan = spark.prepare(world.bind("SELECT a FROM t"), world.catalog)
    context = world.context()
    context.spark_start_ms = start_ms
    return asyncio.ensure_future(spark.run(plan, context))


def test_a_query_waits_for_the_start_no_longer_than_its_setting(
    tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "FIRST_S", 3600.0)
    monkeypatch.setattr(restarts, "LONGEST_S", 3600.0)
    world = sample_world(tmp_path)

    async def body(spark: SparkExecutor) -> None:
        await spark.runtime.live()
        jvms.started[-1].gateway.alive = False
        await until(lambda: spark.runtime._live is None)
        with pytest.raises(SqlError) as caught:
            await query(spark, world, 60_000)  # at once: the next start is an hour away
        assert (caught.value.sqlstate, caught.value.message) == ("57P03", "the Spark executor is starting up")
        patient = query(spark, world, 0)
        await asyncio.sleep(0.1)
        assert not patient.done()
        patient.cancel()

    run(tmp_path, "lazy", body)


def test_closing_does_not_wait_for_the_next_start(
    tmp_path: Path, jvms: Jvms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "FIRST_S", 3600.0)
    monkeypatch.setattr(restarts, "LONGEST_S", 3600.0)

    async def body(spark: SparkExecutor) -> None:
        spark.start_background()
        await until(lambda: spark.ready)
        jvms.started[-1].gateway.alive = False
        await until(lambda: spark.runtime._starting is not None)

    run(tmp_path, "background", body)
    assert len(jvms.started) == 1
