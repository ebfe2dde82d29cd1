"""The engine in this process, over a store in memory that can crash at any step: SQL without sockets."""

from __future__ import annotations

import argparse
import asyncio
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from engine.base.config import load
from engine.base.eager import settle
from engine.base.loop import strands
from engine.connection.backend import Connection
from engine.definitions.oids import OidSource
from engine.executors.index.executor import IndexExecutor
from engine.server.database import COMMON_SHARDS, SALVAGED_SHARDS, Database
from pgwire import give_way
from pgwire.errors import ErrorReport
from tests.support.store import open_memory_store
from txn.persist.memory import MemoryDisk
from txn.transaction.coordinator import TxnOptions

Rows = list[tuple[str | None, ...]]


class Failed(Exception):
    """A statement was answered with an error."""

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(f"{report.severity} {report.sqlstate} {report.message} {report.detail or ''}")
        self.report = report


class Recorder:
    """Takes what a connection would send (``pgwire.backend.Responder``)."""

    sync_follows = True
    lost = False

    def __init__(self) -> None:
        self.rows: Rows = []
        self.error_report: ErrorReport | None = None
        self.tag = ""

    def data_rows(self, encoded: bytes | bytearray | memoryview, count: int) -> None:
        data, at = bytes(encoded), 0
        for _ in range(count):
            (fields,) = struct.unpack_from("!h", data, at + 5)
            at += 7
            row: list[str | None] = []
            for _field in range(fields):
                (size,) = struct.unpack_from("!i", data, at)
                at += 4
                row.append(None if size < 0 else data[at : at + size].decode())
                at += max(size, 0)
            self.rows.append(tuple(row))

    async def long_message(self, kind: int, pieces: Iterator[bytes | memoryview]) -> None:
        data = b"".join(pieces)
        if kind == ord("D"):
            self.data_rows(data, 1)

    def when_complete(self, then: Callable[[], None]) -> None:
        then()

    def command_complete(self, tag: str) -> None:
        self.tag = tag

    def tcp_options(self) -> dict[str, int]:
        return {}

    def encryption(self) -> None:
        return

    def unsent(self) -> int:
        return 0

    def error(self, report: ErrorReport) -> None:
        self.error_report = report

    async def drain(self) -> None:
        return

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


class Session:
    """One connection to a ``Database`` of this process."""

    def __init__(self, database: Database, pid: int, user: str = "postgres") -> None:
        self._out = Recorder()
        connection, _status = database.connect(  # type: ignore[misc]
            {"user": user, "database": "postgres"},
            pid,
            "",
            self._out,  # type: ignore[arg-type]
        )
        self.connection: Connection = connection

    async def run(self, sql: str) -> Rows:
        """Run one Query; raises Failed, and whatever is not answered with an error."""
        out = self.connection.session.out = self._out
        out.rows, out.error_report = [], None
        work = self.connection.query(sql, out)  # type: ignore[arg-type]
        if isinstance(work, asyncio.Future):  # a commit, of which the connection wants to hear
            await asyncio.wait([work])
            self.connection.synced(work)
        else:
            await settle(work)
        if out.error_report is not None:
            raise Failed(out.error_report)
        return out.rows


_sources: list[OidSource] = []


async def open_database(
    disk: MemoryDisk, options: TxnOptions | None = None, *, own_oids: bool = True, **settings: Any
) -> Database:
    """Open a database over ``disk`` with the row executor alone; what runs long gives way, as in ``Database.open``.

    ``own_oids``: its objects get oids that no database of this process has given yet, for what types are is known by oid as long as a
    process lives.
    """
    give_way.install(strands.lay_aside, None)
    config = load(argparse.Namespace(config=None, spark_start="off", memory=1 << 28, **settings), {})
    options = replace(options or TxnOptions(), common_shards=COMMON_SHARDS, salvaged_shards=SALVAGED_SHARDS)
    database = Database(config, await open_memory_store(disk, options))
    await database.open_own_shards()
    oids = database._oids
    if own_oids:
        await oids.open(max([oids._next, *(source._end for source in _sources)]))
        _sources.append(oids)
    database.executors = {"index": IndexExecutor()}
    return database
