"""A database of this process, without Spark."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.base.config import load
from engine.executors.statistics.keeper import Statistics
from engine.server.database import Database
from tests.support.engine import Session


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Database, Session, Statistics]]:
    config = load(
        argparse.Namespace(config=None, spark_start="off", memory=1 << 28, data_dir=str(folder)), {}
    )
    database = await Database.open(config)
    try:
        assert database.statistics is not None
        yield database, Session(database, 1), database.statistics
    finally:
        await database.close()
