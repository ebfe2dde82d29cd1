"""Loads whose tasks run elsewhere, without a JVM: each task and its answer are pickled, tasks end in any order."""

from __future__ import annotations

import argparse
import asyncio
import pickle
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.base.config import load
from engine.server.database import Database
from planner.base.errors import SqlError
from tests.support.engine import Failed, Session


class Tasks:
    """Stands in for ``engine.executors.spark.tasks.SparkTasks``."""

    parallelism, wave = 2, 5

    def __init__(self) -> None:
        self.calls = 0
        self.fail_at: int | None = None
        self.before: Callable[[], Awaitable[None]] | None = None
        """Awaited before each call."""

    async def map(
        self,
        function: Callable[[Any, str], Any],
        items: Sequence[Any],
        done: Callable[[int], None] | None = None,
    ) -> list[Any]:
        order = list(range(len(items)))
        random.Random(len(items)).shuffle(order)
        sent = pickle.dumps(function)
        answers: dict[int, Any] = {}
        for at in order:
            self.calls += 1
            if self.before is not None:
                await self.before()
            if self.calls == self.fail_at:
                raise SqlError("58000", "a worker is gone")
            call = pickle.loads(sent)
            item = pickle.loads(pickle.dumps(items[at]))
            answer = await asyncio.to_thread(call, item, str(self.calls))
            answers[at] = pickle.loads(pickle.dumps(answer))
            if done is not None:
                done(len(answers))
        return [answers[at] for at in range(len(items))]


class Spark:
    """Stands in for ``SparkExecutor``, as far as loads and index builds ask it."""

    ready = True
    runtime = SimpleNamespace(off=False)

    def __init__(self) -> None:
        self.running = Tasks()

    async def tasks(self, ctx: Any) -> Tasks:
        return self.running

    async def own_tasks(self, client: int) -> Tasks:
        return self.running


@asynccontextmanager
async def opened(tmp_path: Path, server_files: str = "") -> AsyncIterator[tuple[Database, Session, Tasks]]:
    """Open a database of a process whose loads run on ``Tasks``; ``server_files``: else the path."""
    data = tmp_path / "data"
    config = load(
        argparse.Namespace(
            config=None,
            spark_start="off",
            memory=1 << 28,
            data_dir=str(data),
            server_files=server_files or str(tmp_path),
        ),
        {},
    )
    database = await Database.open(config)
    real = database.spark
    try:
        spark = Spark()
        database.spark = spark  # type: ignore[assignment]
        session = Session(database, 1)
        await session.run("SET copy_spark_min_bytes = 0")
        yield database, session, spark.running
    finally:
        database.spark = real
        await database.close()


async def refused(session: Session, sql: str) -> Failed:
    with pytest.raises(Failed) as caught:
        await session.run(sql)
    return caught.value
