"""``python -m tests.hostile.server PAGE STACKS serve ...``: the server, its loop timed (``tests.hostile.meter``). Nothing else differs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import uvloop

from tests.hostile.meter import Meter
from tests.support.timed_loop import TimedLoop, time_sockets

SOCKET_REPORTS = ("connection_made", "data_received", "connection_lost", "pause_writing", "resume_writing")


def main() -> int:
    """Run the command line of the engine."""
    page, stacks, *words = sys.argv[1:]
    meter = Meter(Path(page), Path(stacks))
    time_sockets(meter, *SOCKET_REPORTS)

    def timed_loop() -> TimedLoop:
        loop = TimedLoop()
        loop.meter = meter
        return loop

    uvloop.run = partial(uvloop.run, loop_factory=timed_loop)
    from engine.__main__ import main as serve

    sys.argv = ["holdfast", *words]
    return serve()


if __name__ == "__main__":
    sys.exit(main())
