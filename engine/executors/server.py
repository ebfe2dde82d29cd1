"""The server as floors know it that may know which executors there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from engine.session.server import SessionServer

if TYPE_CHECKING:
    from engine.executors.spark.calibration import Calibration
    from engine.executors.spark.executor import SparkExecutor
    from engine.executors.statistics.keeper import Statistics


class ExecutingServer(SessionServer, Protocol):
    """A server with Spark, what has been measured of it, and what counts in tables; None where there is none."""

    spark: SparkExecutor | None
    calibration: Calibration | None

    @property
    def statistics(self) -> Statistics | None:
        """What counts in tables, and what it has found."""


def executing(server: SessionServer) -> ExecutingServer:
    """Return the server of a session as one of these: every one is (``engine.server.database``)."""
    return cast("ExecutingServer", server)
