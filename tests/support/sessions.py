"""Sessions of a server of this process over sockets that are none: messages in, messages out, at every step of the loop."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.base.config import add_arguments, load
from engine.server.database import Database
from pgwire import messages as m
from pgwire.client import NEED_DATA, ClientConnection
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session


class Socket:
    """Stands for the transport: keeps what is written."""

    def __init__(self) -> None:
        self.client = ClientConnection()
        self.closed = False

    def write(self, data: bytes) -> None:
        self.client.receive_data(bytes(data))

    def close(self) -> None:
        self.closed = True

    abort = close

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Client:
    """One session over a ``Socket``."""

    def __init__(self, server: Server, database: str = "postgres") -> None:
        self.socket: Any = Socket()
        self.session = Session(server, self.socket, "test")
        self.send(m.StartupMessage({"user": "postgres", "database": database}))

    def send(self, *messages: m.FrontendMessage) -> None:
        self.session.data_received(b"".join(map(encode_frontend, messages)))

    async def answers(self) -> list[Any]:
        """Wait for ReadyForQuery and return all messages up to it."""
        out: list[Any] = []
        while True:
            event = self.socket.client.next_event()
            if event is NEED_DATA:
                await asyncio.sleep(0.001)
                continue
            out.append(event)
            if isinstance(event, m.ReadyForQuery):
                return out

    async def waits(self) -> asyncio.Future[Any]:
        """Return what the session waits for, once its turn has come."""
        while self.session._task is None:
            await asyncio.sleep(0)
        return self.session._task

    async def run(self, *messages: m.FrontendMessage) -> list[Any]:
        self.send(*messages)
        return await self.answers()


@asynccontextmanager
async def opened(folder: Path, *options: str) -> AsyncIterator[tuple[Database, Server]]:
    """Open a database below ``folder``, without Spark, and a server of it that listens nowhere."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = ["--data-dir", str(folder / "data"), "--spark-start", "off", "--disk-reserve", "0", *options]
    database = await Database.open(load(parser.parse_args(arguments), {}))
    try:
        server = Server(database, ServerConfig())
        database.terminate = server.terminate
        database.interrupt = server.interrupt
        yield database, server
    finally:
        await database.close()
