"""Starting the processes beside the server: its own modules, each with one end of a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final
from weakref import WeakSet

from txn.base.resident import private_bytes_of

_started: Final[WeakSet[subprocess.Popen[bytes]]] = WeakSet()


def spawn(module: str, theirs: socket.socket, *arguments: str) -> subprocess.Popen[bytes]:
    """Start ``python -m module <descriptor of theirs> <arguments>``. Blocks; raises OSError.

    Its standard input is a lifeline: nothing ever comes, and its end is the server's.
    """
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(theirs.fileno()), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        pass_fds=(theirs.fileno(),),
        process_group=0,  # the terminal's signals are not for it; a session of its own would be scheduled as a group of its own
    )
    _started.add(process)
    return process


def private_bytes() -> int:
    """Return the bytes in memory that are those processes' own, of all that run."""
    return sum(private_bytes_of(process.pid) for process in list(_started) if process.returncode is None)


def end_with_server(lifeline: int = 0) -> None:
    """End this process, whatever it is at, when the server has ended; for a thread of its own."""
    while os.read(lifeline, 1):
        pass
    os._exit(0)
