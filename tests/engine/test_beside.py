"""What a thread has made for a statement that nobody waits for any more is let go of in slices, and so is what its error holds."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine.base.loop.threads import beside
from pgwire import release

MANY = 100_000


class Made(list[Any]):
    """Something large of which one can tell whether it was queued."""


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("early", [False, True])  # done before it is cancelled, or behind
def test_what_nobody_waits_for_is_queued(monkeypatch: pytest.MonkeyPatch, fails: bool, early: bool) -> None:
    queued: list[type] = []
    add = release._queue.add

    def noted(container: Any) -> None:
        queued.extend(type(entry) for entry in container)
        add(container)

    monkeypatch.setattr(release._queue, "add", noted)
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> Any:
        made = Made((n, n) for n in range(MANY))
        begun.set()
        goes_on.wait(30)
        try:
            if fails:
                raise ValueError
            return made
        finally:
            ended.set()

    async def run() -> None:
        task = asyncio.ensure_future(beside(work))
        await asyncio.to_thread(begun.wait, 30)
        if early:
            goes_on.set()
            ended.wait(30)  # the loop has not heard of it
        task.cancel()
        await asyncio.wait([task])
        goes_on.set()
        await asyncio.to_thread(ended.wait, 30)
        for _ in range(10_000):
            await asyncio.sleep(0.001)
            if Made in queued and not release.freeing():
                return
        raise AssertionError(queued)

    asyncio.run(run())


def test_its_error_is_raised_by_whoever_waits() -> None:
    def work() -> None:
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        asyncio.run(beside(work))
    assert asyncio.run(beside(lambda: 7)) == 7
