"""The server as floors know it that may know which executors there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from engine.session.server import SessionServer

if TYPE_CHECKING:
    from engine.executors.spark.calibration import Calibration
    from engine.executors.spark.executor import SparkExecutor
    from engine.executors.statistics.keeper import Statistics
    from engine.session.session import Session


class ExecutingServer(SessionServer, Protocol):
    """A server with Spark, what has been measured of it, and what counts in tables; None where there is none."""

    spark: SparkExecutor | None
    calibration: Calibration | None

    @property
    def statistics(self) -> Statistics | None:
        """What counts in tables, and what it has found."""


def executing(session: Session) -> ExecutingServer:
    """Return the server of a session: every one is such a server (``engine.server.database``)."""
    return cast("ExecutingServer", session.db)
