"""The process that appends to the log, from the server's side (``txn.persist.logs.process``).

    start ──> READY ──> append ──> DONE: durable      ──> the next
                           ├─────> REFUSED: not done  ──> the next
                           └─────> anything else, the socket's end, or no answer: killed; once it is gone, Indeterminate

A thread of the server's would have to get the interpreter before it can begin, and again after each of
SQLite's calls. The loop, which has answers to write, gives it up for moments only and takes it again before
the thread has woken, so that an append began half a millisecond late. The process needs a processor and
nothing else.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from txn.persist.location import Indeterminate
from txn.persist.logs.process import DONE, HEAD, READY, REFUSED

LARGEST: Final = 64 << 10
"""Bytes of an entry that the socket takes at once. Of larger ones the disk is what takes time."""
MODULE: Final = "txn.persist.logs.process"
SILENT_S: Final = 30.0
"""So long an append may take: a disk that stalls comes back by then, a process that somebody has stopped may never."""
_END_S: Final = 10.0  # for the checkpoint that it may be at


class LogAppender:
    """One process. Used from the event loop."""

    def __init__(self, process: subprocess.Popen[bytes], sock: socket.socket) -> None:
        """``process`` as ``spawn`` has made it, with the other end of ``sock``. Use ``ready`` before anything else."""
        self.process = process
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[bool] | None = None
        self._ending: asyncio.Task[None] | None = None
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._answered)

    async def ready(self) -> bool:
        """Wait until it can append; False: it has ended."""
        try:
            await self._asked()
        except Indeterminate:
            return False
        return True

    def _asked(self) -> asyncio.Future[bool]:
        self._answer = self._loop.create_future()
        return self._answer

    def takes(self, payload: bytes) -> bool:
        """Tell whether ``append`` may be called."""
        return self._ending is None and self._answer is None and len(payload) <= LARGEST

    async def append(self, epoch: int, seq: int, payload: bytes) -> bool:
        """Append; False: it has not happened, and whoever tries again is told why. Raises Indeterminate."""
        answer = self._asked()
        silent = self._loop.call_later(SILENT_S, self._end)
        try:
            sent = self._sock.send(HEAD.pack(len(payload), epoch, seq) + payload)
        except OSError:
            sent = 0
        if sent != HEAD.size + len(payload):
            self._end()
        try:
            return await answer
        finally:
            silent.cancel()

    def _answered(self) -> None:
        try:
            found = self._sock.recv(1)
        except BlockingIOError:
            return
        except OSError:
            found = b""
        if found not in (READY, DONE, REFUSED):
            self._end()
            return
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_result(found != REFUSED)

    def _end(self) -> None:
        if self._ending is None:
            self._loop.remove_reader(self._sock.fileno())
            self.process.kill()
            self._ending = self._loop.create_task(self._gone())

    async def _gone(self) -> None:
        """Wait for its end: what it was at has happened by then, or never will."""
        self._sock.close()
        await asyncio.to_thread(_wait, self.process)
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(Indeterminate("the process that writes the log has ended"))

    async def close(self) -> None:
        """Let it end. Idempotent."""
        if self._ending is None:
            self._loop.remove_reader(self._sock.fileno())
            self._ending = self._loop.create_task(self._gone())
        await asyncio.wait([self._ending])


def spawn(url: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process for the SQLite file at ``url``. Blocks; time slices of the calling thread are the
    process's. Raises OSError.
    """
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(theirs.fileno()), url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=(theirs.fileno(),),
            process_group=0,  # the terminal's signals are not for it; a session of its own would be scheduled as a group of its own
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
