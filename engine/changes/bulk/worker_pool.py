"""Processes beside the server that read what clients COPY: started on demand, kept for the next load, ended when idle.

    prepare ──> starting ──> idle ──take──> a load ──answered──> idle ──IDLE_S──> ended
                                              └── anything else: killed

The loop only passes bytes on, so that nothing of a load holds its interpreter. A process that was killed
leaves nothing: its grant to write ends with the load (``txn.persist.jobs``), and what it has written goes.

A process takes memory of the server's ceiling before it has read a row: none is started where it does not
fit, so that the server reads the rows itself, and those that nobody uses end when memory is short
(``engine.base.loop.ceiling``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from engine.base.accounts import Statements
from engine.base.loop.processes import spawn
from engine.changes.bulk.load_task import Answer
from engine.changes.bulk.load_worker import ANSWER, BROKEN, COUNTS, DATA, END, FRAME, READY, TASK
from engine.changes.bulk.stream_task import StreamTask
from engine.session.progress import CopyProgress
from pgwire.codecs.copy import copy_context
from pgwire.errors import BackendError
from planner.base.errors import SqlError

MOST_WORKERS: Final = max(1, min(4, os.cpu_count() or 1))
IDLE_S: Final = 120.0
PROCESS_BYTES: Final = 96 << 20
"""What a process takes that has read nothing yet: libraries and modules."""
DATA_BYTES: Final = 64 << 10  # sent at once
WAITING_BYTES: Final = 4 << 20
"""What the process has not taken yet, at most: then the client waits. On busy processors it waits for long
when it has slept."""
MODULE: Final = "engine.changes.bulk.load_worker"

_log = logging.getLogger(__name__)


class WorkerEnded(Exception):
    """The process has ended by itself."""


class LoadWorker:
    """One process, from the server's side. Used from the event loop."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Use ``start`` instead."""
        self.process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> LoadWorker:
        """Start a process and wait until it can load. Raises OSError, WorkerEnded."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.to_thread(spawn, MODULE, theirs, str(sys.getrecursionlimit()))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        writer.transport.set_write_buffer_limits(WAITING_BYTES)
        worker = cls(process, reader, writer)
        try:
            kind, _body = await worker._receive()
            if kind != READY:
                raise AssertionError(f"a worker began with {kind!r}")
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    async def kill(self) -> int:
        """End the process, whatever it is at; return its exit status as ``subprocess`` has it."""
        self.process.kill()
        self._writer.close()
        if self.process.stdin is None:
            raise AssertionError("the process was started without a pipe to it")
        self.process.stdin.close()
        return await asyncio.to_thread(self.process.wait)

    async def load(self, task: StreamTask, chunks: AsyncIterator[bytes], progress: CopyProgress) -> Answer:
        """Have the process load what ``chunks`` yields; ``progress`` hears of rows.

        After an answer, and after a BackendError, the process can be used again.

        Raises:
            WorkerEnded: the process has.
            BackendError: of ``chunks``, with the line that would come next.
            Exception: what else ``chunks`` raises.
        """
        # with the users' types, one of which may be an enum of very many labels: their states are read in
        # Python, so that a thread gives way
        self._send(TASK, await asyncio.to_thread(pickle.dumps, task))
        answering = asyncio.ensure_future(self._answer(progress))
        feeding = asyncio.ensure_future(self._feed(chunks))
        try:
            await asyncio.wait((answering, feeding), return_when=asyncio.FIRST_COMPLETED)
            report = None
            if answering.done():  # the first bad row ends the load
                answering.result()
                if not feeding.done():
                    feeding.cancel()
                    await asyncio.wait((feeding,))
                self._send(END)
            else:
                try:
                    feeding.result()
                    self._send(END)
                except BackendError as error:
                    report = error.report
                    self._send(BROKEN)
            answer = await answering
            if report is not None and answer.failure is None:
                line = answer.next_line
                where = None if line is None else copy_context(task.spec.relation.name, line)
                raise BackendError(replace(report, where=where))
            return answer
        finally:
            for one in (answering, feeding):
                one.cancel()
            await asyncio.gather(answering, feeding, return_exceptions=True)

    def _send(self, kind: bytes, *body: bytes) -> None:
        self._writer.writelines((FRAME.pack(kind, sum(map(len, body))), *body))

    async def _receive(self) -> tuple[bytes, bytes]:
        try:
            kind, size = FRAME.unpack(await self._reader.readexactly(FRAME.size))
            return kind, await self._reader.readexactly(size)
        except (EOFError, ConnectionError):
            raise WorkerEnded from None

    async def _feed(self, chunks: AsyncIterator[bytes]) -> None:
        held: list[bytes] = []
        size = 0
        try:
            async for chunk in chunks:
                held.append(chunk)
                size += len(chunk)
                if size >= DATA_BYTES:
                    self._send(DATA, *held)
                    held, size = [], 0
                    await self._drain()
        finally:  # what has come before the client gave up counts, too: errors in it are told, and its lines
            if held:
                self._send(DATA, *held)

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            raise WorkerEnded from None

    async def _answer(self, progress: CopyProgress) -> Answer:
        while True:
            kind, body = await self._receive()
            if kind == ANSWER:
                answer: Answer = pickle.loads(body)
                progress.tuples, progress.excluded = answer.rows, answer.excluded
                return answer
            progress.tuples, progress.excluded = COUNTS.unpack(body)


def ended(status: int) -> SqlError:
    """Return the error of a load whose process has ended by itself."""
    if status < 0:
        how = f"was terminated by signal {-status}: {signal.strsignal(-status)}"
    else:
        how = f"exited with exit code {status}"
    return SqlError("58000", f"the process that reads the rows of COPY {how}")


class WorkerPool:
    """The processes of one server. Used from the event loop."""

    def __init__(self, statements: Statements, most: int = MOST_WORKERS, idle_s: float = IDLE_S) -> None:
        """``statements``: tell how much the server may still take. ``most``: processes at a time. ``idle_s``:
        how long one is kept that nobody uses.
        """
        self._statements = statements
        self._most = most
        self._idle_s = idle_s
        self._workers: set[LoadWorker] = set()
        self._idle: dict[LoadWorker, asyncio.TimerHandle] = {}
        self._starting: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[int]] = set()
        self._closed = False

    def prepare(self) -> None:
        """Have a process started for a load that may want one, unless one is free, there are enough, or there
        is no memory for it.
        """
        if self._idle or self._starting or len(self._workers) >= self._most or self._closed:
            return
        if self._statements.has() + PROCESS_BYTES > self._statements.ceiling:
            return
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        try:
            worker = await LoadWorker.start()
        except (OSError, WorkerEnded) as error:
            _log.warning("COPY is read by the server itself, a process for it did not start: %r", error)
        else:
            self._workers.add(worker)
            self.give(worker)
        finally:
            self._starting = None

    async def take(self) -> LoadWorker | None:
        """Return a process that is the caller's until ``give`` or ``drop``; None if none is to be had now."""
        worker = self._pop()
        if worker is None:
            self.prepare()
            if self._starting is not None:
                await asyncio.shield(self._starting)
                worker = self._pop()
        return worker

    def _pop(self) -> LoadWorker | None:
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            if worker.alive:
                return worker
            self.drop(worker)
        return None

    def give(self, worker: LoadWorker) -> None:
        """Return a process whose load has been answered."""
        if self._closed:
            self.drop(worker)
        else:
            loop = asyncio.get_running_loop()
            self._idle[worker] = loop.call_later(self._idle_s, self._expire, worker)

    def _expire(self, worker: LoadWorker) -> None:
        del self._idle[worker]
        self.drop(worker)

    def end_idle(self) -> None:
        """End the processes that nobody uses."""
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            self.drop(worker)

    def drop(self, worker: LoadWorker) -> asyncio.Task[int]:
        """End a process; the task returns its exit status."""
        self._workers.discard(worker)
        task = asyncio.get_running_loop().create_task(worker.kill())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def close(self) -> None:
        """End all processes."""
        self._closed = True
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        self.end_idle()
        for worker in tuple(self._workers):
            self.drop(worker)
        if self._ending:
            await asyncio.wait(tuple(self._ending))
