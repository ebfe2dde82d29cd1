"""``python -m tests.support.odd_server serve ...``: the server, with a wall clock or limits of a test's choosing.

    HFTEST_CLOCK=file     the file holds seconds (a number, may be negative) by which the wall clock is off; read anew
                          every time the clock is asked, so that a test sets the clock of a running server
    HFTEST_WRONG=1        DuckDB leaves out the first row of every batch
    HFTEST_KAFKA=1        topics of Kafka are folders, read by a stand-in for Spark's connector (tests/support/kafka)
    HFTEST_PAUSE=0.02     seconds, at most, before a statement that lost a race runs again
    HFTEST_LOCKS=1        scans lock their tables from a statement's first try on, not only after it lost races
    HFTEST_BESIDE=file    the file holds the bytes that processes beside the server seem to have, read anew at every look, of which there
                          are many; where it holds no number the look fails, as where the system has no more files. What is given
                          back is noted in file.given
    HFTEST_IMPORTS=file   the modules that the loop's thread imports, once another has begun to load what statements need, a line for each
    HFTEST_SMALL=1        history parts, staged write sets, merges, trimming begin at a few hundred rows

Nothing else differs from ``python -m engine``.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from engine.session.catalog.virtual import VirtualCatalog


def _set_clock(path: Path) -> None:
    """Make ``time.time`` and ``time.time_ns`` show what the file says."""
    true_ns = time.time_ns

    def time_ns() -> int:
        return true_ns() + int(float(path.read_text()) * 1e9)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def _small_limits() -> None:
    import engine.changes.writes.dml
    import engine.changes.writes.update_delete
    import txn.log.group_commit
    import txn.mvcc.compaction
    import txn.transaction.coordinator
    import txn.transaction.journal
    import txn.transaction.writes

    txn.transaction.writes.PREPARE_ROWS = txn.transaction.journal.UNDO_ROWS = 200
    txn.mvcc.compaction.FANOUT = 3
    txn.log.group_commit.SPILL_BYTES = 64 << 10
    engine.changes.writes.dml.BULK_ROWS = engine.changes.writes.update_delete.BULK_ROWS = 2_000
    options = txn.transaction.coordinator.TxnOptions
    small = {"history_versions": 300, "hot_rows_total": 6_000, "log_bytes": 256 << 10, "part_bytes": 4 << 20}
    original = options.__init__

    def init(self: object, **given: object) -> None:
        original(self, **(small | {k: v for k, v in given.items() if k not in small}))  # type: ignore[arg-type]

    options.__init__ = init  # type: ignore[assignment,method-assign]


def _planted_beside(told: Path) -> None:
    import engine.base.loop.ceiling
    import engine.base.loop.processes

    def beside() -> int:
        text = told.read_text()
        if not text.isdigit():
            raise OSError(errno.EMFILE, text)
        return int(text)

    engine.base.loop.processes.private_bytes = beside
    engine.base.loop.ceiling.give_back = told.with_suffix(".given").touch  # type: ignore[assignment]
    engine.base.loop.ceiling.LOOKS_S = 0.02  # type: ignore[misc]


def _wrong_answers() -> None:
    from collections.abc import AsyncIterator

    from engine.base.rows import RowBatch
    from engine.executors.local.executor import LocalExecutor

    true_run = LocalExecutor.run

    async def less(batches: AsyncIterator[RowBatch]) -> AsyncIterator[RowBatch]:
        async for batch in batches:
            if batch.rows is None:
                yield RowBatch(arrow=batch.arrow.slice(1))
            else:
                yield RowBatch(rows=batch.rows[1:])

    async def run(self: LocalExecutor, plan: object, ctx: object) -> object:
        result = await true_run(self, plan, ctx)  # type: ignore[arg-type]
        result.batches = less(result.batches)
        return result

    LocalExecutor.run = run  # type: ignore[method-assign,assignment]


class _Importing:
    """What Python asks for each module that it has not got: notes those of the loop's thread, and finds none."""

    def __init__(self, path: Path) -> None:
        import engine.server.database

        self._notes: TextIO | None = None
        true_preload = engine.server.database.preload

        def preload(virtual: VirtualCatalog) -> None:
            self._notes = path.open("a", buffering=1)
            true_preload(virtual)

        engine.server.database.preload = preload  # type: ignore[attr-defined]

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if self._notes is not None and threading.current_thread() is threading.main_thread():
            print(name, file=self._notes)


def main() -> int:
    """Run the command line of the engine."""
    if clock := os.environ.get("HFTEST_CLOCK"):
        _set_clock(Path(clock))
    if imports := os.environ.get("HFTEST_IMPORTS"):
        sys.meta_path.insert(0, _Importing(Path(imports)))  # type: ignore[arg-type]
    if os.environ.get("HFTEST_WRONG"):
        _wrong_answers()
    if os.environ.get("HFTEST_SMALL"):
        _small_limits()
    if os.environ.get("HFTEST_LOCKS"):
        import engine.statements.retry

        engine.statements.retry.OPTIMISTIC_TRIES = 0
    if pause := os.environ.get("HFTEST_PAUSE"):
        import engine.statements.retry

        engine.statements.retry.LONGEST_RETRY_PAUSE_S = float(pause)
    if beside := os.environ.get("HFTEST_BESIDE"):
        _planted_beside(Path(beside))
    if os.environ.get("HFTEST_KAFKA"):
        from tests.support.kafka import stand_in

        stand_in()
    from engine.__main__ import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
