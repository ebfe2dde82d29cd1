"""The server as loads know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from engine.executors.server import ExecutingServer

if TYPE_CHECKING:
    from engine.changes.bulk.worker_pool import WorkerPool
    from engine.session.session import Session


class LoadingServer(ExecutingServer, Protocol):
    """A server that may start processes for loads. ``worker_pool``: None where it may not."""

    worker_pool: WorkerPool | None


def loading(session: Session) -> LoadingServer:
    """Return the server of a session: every one is such a server (``engine.server.database``)."""
    return cast("LoadingServer", session.db)
