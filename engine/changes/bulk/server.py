"""The server as loads know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from engine.executors.server import ExecutingServer

if TYPE_CHECKING:
    from engine.changes.bulk.worker_pool import WorkerPool
    from engine.session.server import SessionServer


class LoadingServer(ExecutingServer, Protocol):
    """A server that may start processes for loads. ``worker_pool``: None where it may not."""

    worker_pool: WorkerPool | None


def loading(server: SessionServer) -> LoadingServer:
    """Return the server of a session as one of these: every one is (``engine.server.database``)."""
    return cast("LoadingServer", server)
