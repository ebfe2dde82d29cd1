"""What sources need of the server that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from engine.executors.server import ExecutingServer

if TYPE_CHECKING:
    from engine.feeds.sources.registry import Sources
    from engine.session.server import SessionServer


class FeedingServer(ExecutingServer, Protocol):
    """A server that runs sources."""

    @property
    def sources(self) -> Sources:
        """All of them."""


def feeding(server: SessionServer) -> FeedingServer:
    """Return the server of a session as one of these: every one is (``engine.server.database``)."""
    return cast("FeedingServer", server)
