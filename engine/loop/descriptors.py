"""File descriptors: as many as connections may need are asked of the system when the server starts, not when one is missing.

    max_connections + sockets that have not proved who they are + files of the server  <=  limit of the process

The soft limit is raised to the hard one, ``MOST`` at most; where that is too low the server says so and does not start. Sidecars keep
no descriptor while they are mapped (``txn.persist.mapping``), and parts are opened for one read, so that the number of tables, indexes and parts
does not count.
"""

from __future__ import annotations

import resource
from typing import Final

from pgwire.lobby import STAY

FILES: Final = 256
"""Of the server itself: log, parts and sidecars being read or written, pipes to Spark, DuckDB's own."""

MOST: Final = 1 << 20
"""So many are asked for at most: some systems allow a thousand times that, and programs that close all they may have take their time."""


def needed(max_connections: int) -> int:
    """Return how many descriptors a server needs."""
    return max_connections + STAY + FILES


def shortage(max_connections: int) -> str | None:
    """Raise the soft limit to the hard one. Return what to tell where that is too low, else None."""
    want = needed(max_connections)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= max(want, MOST):
        return None
    if hard != resource.RLIM_INFINITY and hard < want:
        return (
            f"max_connections = {max_connections} needs {want} file descriptors, and this process may have {hard}: "
            f"raise the limit (ulimit -n {want}; LimitNOFILE={want} of a systemd unit) or lower max_connections"
        )
    most = max(want, MOST) if hard == resource.RLIM_INFINITY else min(hard, max(want, MOST))
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return None
