"""Long calls of C, run in processes beside the server that can be ended (``pgwire.give_way.outside``).

    statement's strand              loop                              worker process
      parse(60 MB) ────► waits ──► worker ──► name, arguments ──────► parse(60 MB)
      goes on      ◄──── wakes ◄─────────◄─── value, or error  ◄──────
      is cancelled ────► the worker is killed; another one is started when one is wanted

Workers are started when they are first wanted, ``MOST`` at a time; one that nobody has wanted for ``IDLE_S``
ends. Who finds none free waits in line. In a thread the thread waits. Where nothing can wait, in a turn that
has to be whole, the function is called on the spot: its argument came in through code that can.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from typing import Any, Final

from engine.base import accounts
from engine.base.accounts import Statements
from engine.base.loop import strands
from engine.base.loop.outside_wire import FRAME, Unpacking, pack
from engine.base.loop.outside_worker import DONE, NO_MEMORY
from engine.base.loop.processes import spawn
from pgwire.codecs.errors import DataError
from pgwire.give_way import OUTSIDE, give_way, in_loop
from pgwire.release import mind_huge
from planner.base.errors import Span, SqlError

MOST: Final = 2
IDLE_S: Final = 60.0
MODULE: Final = "engine.base.loop.outside_worker"
_LOOKS_S: Final = 0.05
"""How often a thread that waits looks whether its statement has been cancelled."""
_BUFFER: Final = 1 << 20
_ANSWER_BYTES: Final = 4 << 20
"""What an answer may have without a look at the ceiling."""
_NEARLY: Final = 2
"""What asks for twice what it has is refused where half of what it may take is left."""
_ROOM_S: Final = 0.01
"""How often a process is looked at while it works."""
_COPIES: Final = 2
"""How often an answer is there at once: its pieces, and the value that is put together."""


class _Ended(Exception):
    """The process has ended by itself."""


def _took_too_much(lent: int) -> SqlError:
    return SqlError(
        "53200",
        "out of memory",
        detail=f"A call took more than {accounts.megabytes(lent)} of memory in a process of its own.",
        hint=accounts.HINT,
    )


class _Worker:
    """One process, from the server's side."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> _Worker:
        """Start one. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.to_thread(spawn, MODULE, theirs, str(sys.getrecursionlimit()))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        writer.transport.set_write_buffer_limits(_BUFFER)
        return cls(process, reader, writer)

    async def call(self, name: str, args: tuple[Any, ...], bytes_: int, statements: Statements) -> Unpacking:
        """Run a function, which may take so many bytes; return the answer. Raises _Ended; SqlError 53200
        where the server has no room for the answer.
        """
        try:
            head, pieces = pack(name, (bytes_, *args))
            self._writer.writelines((FRAME.pack(len(head)), head))
            for piece in pieces:
                self._writer.writelines((FRAME.pack(len(piece)), piece))
                await self._writer.drain()
                await asyncio.sleep(0)
            answer = Unpacking(await self._frame())
            if answer.bytes > _ANSWER_BYTES:
                statements.check_ceiling(_COPIES * answer.bytes)
            while answer.left:
                answer.add(await self._frame())
                await asyncio.sleep(0)
            return answer
        except (EOFError, ConnectionError):
            raise _Ended from None

    async def _frame(self) -> bytes:
        (size,) = FRAME.unpack(await self._reader.readexactly(FRAME.size))
        return await self._reader.readexactly(size)

    def kill(self) -> None:
        """End it, whatever it is at."""
        self.process.kill()
        self._writer.close()
        if self.process.stdin is None:
            raise AssertionError("the process was started without a pipe to it")
        self.process.stdin.close()


class _Room:
    """How much memory a process might still have taken, at the least: of one that has ended nobody can tell
    any more.
    """

    def __init__(self, pid: int) -> None:
        """Look until ``close``."""
        self._pid = pid
        self.least = 1 << 62
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_ROOM_S, self._look)

    def _look(self) -> None:
        try:
            with open(f"/proc/{self._pid}/statm", "rb") as file:
                taken = int(file.read().split()[0]) * resource.getpagesize()
            most, hard = resource.prlimit(self._pid, resource.RLIMIT_AS)
        except (OSError, ValueError, IndexError):
            return  # it has ended
        if taken and most != hard:  # while a function runs
            self.least = min(self.least, most - taken)
        self._timer = self._loop.call_later(_ROOM_S, self._look)

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()


class Outside:
    """The processes of one server, and what runs functions in them."""

    def __init__(self, statements: Statements, most: int = MOST, idle_s: float = IDLE_S) -> None:
        """``statements``: lend what a call may take. ``most``: processes at a time. ``idle_s``: how long one
        is kept that nobody wants.
        """
        self._statements = statements
        self._idle_s = idle_s
        self._free = asyncio.Semaphore(most)
        self._idle: dict[_Worker, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[int]] = set()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self.started = 0  # processes, ever
        self.running: set[int] = set()  # pids of those that work

    @property
    def pids(self) -> set[int]:
        """The processes that there are."""
        return self.running | {worker.process.pid for worker in self._idle}

    def run(self, name: str, args: tuple[Any, ...]) -> Any:
        """Run a function that is declared ``outside``; what ``pgwire.give_way.install`` takes."""
        if self._closed:
            return OUTSIDE[name](*args)
        if strands.may_wait():
            return self._value(strands.wait(self._asked(name, args)))
        if in_loop():
            return OUTSIDE[name](*args)
        return self._from_thread(name, args)

    def _from_thread(self, name: str, args: tuple[Any, ...]) -> Any:
        future = asyncio.run_coroutine_threadsafe(self._asked(name, args), self._loop)
        try:
            while True:
                try:
                    return self._value(future.result(_LOOKS_S))
                except TimeoutError:
                    give_way()  # raises when the statement is cancelled
        except BaseException:
            future.cancel()
            raise

    async def call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Run a function in a process and return its value.

        Raises DataError and SqlError as the function does; SqlError 53200 where it takes more memory than is
        allowed, 58000 where the process ends by itself.
        """
        return self._value(await self._asked(name, args))

    async def _asked(self, name: str, args: tuple[Any, ...]) -> Unpacking:
        """Return what a process answers, in place of the statement whose slice begins it. SqlError 53200
        where it takes more than it was lent.
        """
        account = accounts.running()
        async with self._free:
            lent = self._statements.lend(account, self._statements.each)
            try:
                answer = None
                while answer is None:
                    answer = await self._answer(name, args, lent)
            finally:
                self._statements.returned(lent)
        if answer.tag == NO_MEMORY:
            raise _took_too_much(lent)
        return answer

    def _value(self, answer: Unpacking) -> Any:
        """Return the value of an answer, or raise its error. A long one is put together by whoever asked, who
        may give way.
        """
        values = answer.values
        if answer.tag == DONE:
            return mind_huge(values[0]) if type(values[0]) in (str, bytes) else values[0]
        kind, sqlstate, message, detail, hint, where, place = values
        if kind == "DataError":
            raise DataError(sqlstate, message, detail=detail, hint=hint, where=where)
        span = None if place is None else Span(*place)
        raise SqlError(sqlstate, message, detail=detail, hint=hint, where=where, span=span)

    async def _answer(self, name: str, args: tuple[Any, ...], lent: int) -> Unpacking | None:
        """Return the answer of one process; None if it had ended while nobody wanted it."""
        worker = self._kept()
        kept = worker is not None
        if worker is None:
            self.started += 1
            worker = await _Worker.start()
        pid = worker.process.pid
        self.running.add(pid)
        room = _Room(pid)
        try:
            answer = await worker.call(name, args, lent, self._statements)
        except _Ended:
            self._drop(worker)
            if kept:
                return None
            if lent < self._statements.each or room.least * _NEARLY < lent:
                # C code that gets no memory may end its process
                raise _took_too_much(lent) from None
            raise SqlError("58000", "the process that computes a long expression has ended") from None
        except BaseException:
            self._drop(worker)
            raise
        finally:
            room.close()
            self.running.discard(pid)
        self._give(worker)
        return answer

    def _kept(self) -> _Worker | None:
        if not self._idle:
            return None
        worker, timer = self._idle.popitem()
        timer.cancel()
        return worker

    def _give(self, worker: _Worker) -> None:
        if self._closed or self._idle:
            self._drop(worker)
        else:
            self._idle[worker] = self._loop.call_later(self._idle_s, self._expire, worker)

    def _expire(self, worker: _Worker) -> None:
        del self._idle[worker]
        self._drop(worker)

    def end_idle(self) -> None:
        """End the processes that nobody wants."""
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        task = self._loop.create_task(asyncio.to_thread(worker.process.wait))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all processes; what is asked for from now on is called on the spot. Idempotent."""
        self._closed = True
        self.end_idle()
        while self._ending:
            await asyncio.wait(self._ending)
