"""A wire server in a thread of its own, for tests that talk to it through blocking sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from pgwire.backend import Database
from pgwire.server import Server, ServerConfig

T = TypeVar("T")


class ServerThread:
    """Runs ``Server`` until ``stop``; a context manager."""

    def __init__(
        self, database: Database, config: ServerConfig | None = None, *, use_uvloop: bool = True
    ) -> None:
        self.loop: asyncio.AbstractEventLoop = (
            uvloop.new_event_loop() if use_uvloop else asyncio.new_event_loop()
        )
        self.server: Server
        self._database = database
        self._config = config or ServerConfig(port=0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._start())
        self._started.set()
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    async def _start(self) -> None:
        self.server = Server(self._database, self._config)
        await self.server.start()

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on the loop and return its result."""

        async def work() -> T:
            return function()

        return self.run(work())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    @property
    def port(self) -> int:
        return self.server.port

    def __enter__(self) -> ServerThread:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *exc: object) -> None:
        self.run(self.server.drain(0))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
