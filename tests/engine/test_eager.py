"""What is given up half-way: its generators end, too."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

from engine.base.eager import Started, eager


def test_a_generator_in_a_coroutine_given_up_has_ended() -> None:
    seen: list[str] = []

    async def rows() -> AsyncIterator[int]:
        try:
            await asyncio.get_running_loop().create_future()
            yield 1
        finally:
            seen.append("ended")

    async def reads() -> int:
        return await anext(rows())

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: seen.append(context["message"]))
        started: Any = eager(reads())
        assert isinstance(started, Started)
        started.close()
        started.close()
        assert seen == ["ended"]
        del started
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()  # the task that the loop would have closed the generator with

    asyncio.run(main())
    assert seen == ["ended"]


def test_one_that_waits_again_when_it_is_given_up_is_closed() -> None:
    ended: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            try:
                await asyncio.sleep(0)
            finally:
                ended.append("closed")

    async def main() -> None:
        started: Any = eager(stubborn())
        started.close()

    asyncio.run(main())
    assert ended == ["closed"]
