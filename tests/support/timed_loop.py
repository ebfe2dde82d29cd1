"""uvloop with every piece of its work handed to somebody who times it: callbacks, steps of tasks, what sockets report.

    class Meter:
        def run(self, name, work, args): ...      # calls work(*args); name() says what it is

    loop = TimedLoop(); loop.meter = Meter(); time_sockets(loop.meter)

A piece is what one callback does without giving the loop back: while it runs nobody else is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import uvloop

from pgwire.server import WireProtocol


class Meter(Protocol):
    """Runs pieces of the loop's work."""

    def run(self, name: Callable[[], str], work: Callable[..., object], args: Sequence[object]) -> None:
        """Call ``work(*args)``; pieces may be nested (a socket reports in the middle of a callback)."""


def name_of(work: Any) -> str:
    """Name a callback; of a task: its coroutine and where that stood."""
    owner = getattr(work, "__self__", None)
    if isinstance(owner, asyncio.Task):
        at: Any = owner.get_coro()
        outer = at.__qualname__
        while (inner := getattr(at, "cr_await", None)) is not None and hasattr(inner, "cr_code"):
            at = inner
        return f"task {outer} at {at.__qualname__}"
    inner_work = getattr(work, "func", work)
    return str(getattr(inner_work, "__qualname__", inner_work))


class TimedLoop(uvloop.Loop):  # type: ignore[misc, unused-ignore]
    """uvloop, with every callback run by ``meter``."""

    meter: Meter

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return super().call_soon(self._timed, callback, args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return super().call_soon_threadsafe(self._timed, callback, args, context=context)

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return super().call_later(delay, self._timed, callback, args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return super().call_at(when, self._timed, callback, args, context=context)

    def _timed(self, callback: Any, args: Sequence[object]) -> None:
        self.meter.run(lambda: name_of(callback), callback, args)


def time_sockets(meter: Meter, *reports: str) -> None:
    """Have ``meter`` run what sockets of clients report, too: methods of ``WireProtocol``, which uvloop calls by itself."""
    for report in reports:
        original = getattr(WireProtocol, report)
        setattr(WireProtocol, report, _timed_report(meter, report, original))


def _timed_report(meter: Meter, report: str, original: Callable[..., object]) -> Callable[..., None]:
    def timed(self: WireProtocol, *args: object) -> None:
        meter.run(lambda: report, original, (self, *args))

    return timed
