"""What sources need of the server that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.session.server import Server

if TYPE_CHECKING:
    from engine.base.server_files import Roots
    from engine.executors.spark.executor import SparkExecutor


class FeedingServer(Server, Protocol):
    """A server, with the files that may be read and what reads where nothing else can."""

    server_files: Roots

    @property
    def spark(self) -> SparkExecutor | None:
        """Spark, None where there is none."""
