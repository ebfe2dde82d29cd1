"""Trust: everyone is who they say."""

from __future__ import annotations

from pgwire.errors import LocalProtocolError
from pgwire.messages import BackendMessage


class TrustExchange:
    """An exchange without messages."""

    done = True

    def start(self) -> list[BackendMessage]:
        """Ask nothing."""
        return []

    def step(self, answer: bytes) -> list[BackendMessage]:
        """Never called: ``done`` is true from the start."""
        raise LocalProtocolError("trust takes no answer")
