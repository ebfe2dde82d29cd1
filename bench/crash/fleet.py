"""The servers of a crash proof: who leads, how its rule ends, who comes next.

    Fleet          one server after the other over one data directory
    SharedFleet    the log in PostgreSQL, the files in a shared directory; with ``takeover`` a standby waits in every round

All run with small limits (``tests.support.odd_server``), so that history parts, staged write sets and merges are
under way when they are killed.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import asyncpg

from tests.support.server import ServerProcess
from txn.log.durable import StorageConfig
from txn.log.lease import LeaseOptions
from txn.log.shared import SharedConfig

LEASE_MS = 1000
FLUSH_ROWS = "1000"
SMALL = {"HFTEST_SMALL": "1"}


class Fleet:
    """The servers of a run: one after the other over one data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leader(self) -> ServerProcess:
        """Return a server that accepts connections."""
        return ServerProcess(self.folder / "data", "--flush-rows", FLUSH_ROWS, odd=SMALL)

    def strike(self, server: ServerProcess, rng: random.Random) -> str:
        """End the server's rule; return how."""
        server.kill()
        return "killed"

    def storage(self) -> StorageConfig:
        """Return where the data lies, to be opened in this process once every server has ended."""
        return StorageConfig(path=self.folder / "data")

    def end(self, server: ServerProcess) -> None:
        """Stop every server in order."""
        server.stop()

    def remove(self) -> None:
        """Drop what is not in the folder."""


class SharedFleet(Fleet):
    """Servers over PostgreSQL; with ``takeover`` the next one is waiting already."""

    def __init__(self, folder: Path, url: str, takeover: bool, lease_ms: int = LEASE_MS) -> None:
        super().__init__(folder)
        self.url, self.takeover, self.lease_ms = url, takeover, lease_ms
        self.schema = f"holdfast_crash_{os.getpid()}"
        self._count = 0
        self._standby: ServerProcess | None = None

    def _start(self, *more: str, wait: bool) -> ServerProcess:
        self._count += 1
        return ServerProcess(
            self.folder / f"server{self._count % 3}", "--flush-rows", FLUSH_ROWS, "--consensus", self.url,
            "--consensus-schema", self.schema, "--blob", str(self.folder / "blob"), "--lease-ms", str(self.lease_ms),
            *more, wait=wait, odd=SMALL,
        )  # fmt: skip

    def leader(self) -> ServerProcess:
        """See Fleet; the next one starts to wait."""
        server, self._standby = self._standby, None
        if server is None:
            server = self._start(wait=True)
        if self.takeover:
            self._standby = self._start("--standby", wait=False)
        return server

    def strike(self, server: ServerProcess, rng: random.Random) -> str:
        """See Fleet; returns when the next one leads."""
        if self._standby is None or rng.random() < 0.5:
            struck = time.perf_counter()
            server.kill()
            if self._standby is not None:
                self._standby.wait_ready()
                self._standby.start_seconds = time.perf_counter() - struck
            return "killed"
        server.pause()
        struck = time.perf_counter()
        self._standby.wait_ready()
        self._standby.start_seconds = time.perf_counter() - struck
        server.resume()
        status, said = server.wait_end()
        if status != 1 or "superseded" not in said:
            raise RuntimeError(f"a deposed leader ended with {status}:\n{said}")
        return "stopped and resumed"

    def storage(self) -> StorageConfig:
        """See Fleet."""
        shared = SharedConfig(
            consensus=self.url, schema=self.schema, blob=self.folder / "blob",
            lease=LeaseOptions(holder="the crash proof", duration_ms=self.lease_ms), standby=True, waiting=None,
        )  # fmt: skip
        return StorageConfig(path=self.folder / "last", shared=shared)

    def end(self, server: ServerProcess) -> None:
        """See Fleet."""
        server.stop()
        if self._standby is not None:
            self._standby.wait_ready()
            self._standby.stop()

    def remove(self) -> None:
        """See Fleet: the schema."""
        asyncio.run(self._drop())

    async def _drop(self) -> None:
        connection = await asyncpg.connect(self.url)
        await connection.execute(f"DROP SCHEMA {self.schema} CASCADE")
        await connection.close()
