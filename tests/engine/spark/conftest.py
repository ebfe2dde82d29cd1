"""One JVM and one event loop for all tests of the Spark executor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from engine.executors.spark.executor import SparkExecutor
from tests.support.lowered import World, sample_world


@dataclass
class Spark:
    """The executor over the sample tables, driven from synchronous tests."""

    world: World
    executor: SparkExecutor
    runner: asyncio.Runner

    def rows(self, sql: str, params: tuple[Any, ...] = (), types: tuple[int, ...] = ()) -> Any:
        """Return a query's rows as PostgreSQL's texts."""
        return self.runner.run(self.world.answer(self.executor, sql, params, types))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    world = sample_world(tmp_path_factory.mktemp("spark"))
    with asyncio.Runner() as runner:
        executor = SparkExecutor(master="local[2]", mode="lazy", data_dir=world.folder)
        yield Spark(world, executor, runner)
        runner.run(executor.close())
