"""File descriptors: as many as connections may need are asked of the system when the server starts, not when one is missing.

    max_connections + sockets that have not proved who they are + files of the server  <=  limit of the process

The soft limit is raised as far as the hard one allows; beyond it the server says so and does not start.
"""

from __future__ import annotations

import resource
from typing import Final

from pgwire.lobby import STAY

FILES: Final = 256
"""Of the server itself: log, parts and sidecars being read or written, pipes to Spark, DuckDB's own."""


def needed(max_connections: int) -> int:
    """Return how many descriptors a server needs."""
    return max_connections + STAY + FILES


def shortage(max_connections: int) -> str | None:
    """Raise the soft limit as far as needed. Return what to tell where the hard limit is too low, else None."""
    want = needed(max_connections)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= want:
        return None
    if hard != resource.RLIM_INFINITY and hard < want:
        return (
            f"max_connections = {max_connections} needs {want} file descriptors, and this process may have {hard}: "
            f"raise the limit (ulimit -n {want}; LimitNOFILE={want} of a systemd unit) or lower max_connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))
    return None
