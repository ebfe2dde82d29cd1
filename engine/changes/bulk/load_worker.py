"""The process beside the server that reads what clients COPY: ``python -m engine.changes.bulk.load_worker``.

    socket   T task, D data ..., E end ──>│ one load after the other │──> R ready, P rows so far ..., A answer
    stdin    nothing ever; its end is the server's

The server alone starts it, by ``engine.changes.bulk.worker_pool``. Both ends of the socket are the server and
its own child, inherited and never named, so what crosses may be pickled. The process asks for long time
slices, so that the server and its clients go first (``engine.base.loop.threads``).
"""

from __future__ import annotations

import gc
import pickle
import signal
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.changes.bulk.stream_task import StreamTask

FRAME: Final = struct.Struct("=cI")
"""Before each message: what it is, and how many bytes follow."""
COUNTS: Final = struct.Struct("=qq")
"""Of PROGRESS: rows so far, and those that WHERE has left out."""
READY: Final = b"R"
TASK: Final = b"T"
DATA: Final = b"D"
END: Final = b"E"
BROKEN: Final = b"B"
PROGRESS: Final = b"P"
ANSWER: Final = b"A"
BUFFER_BYTES: Final = 256 << 10
TELL_S: Final = 0.1


class Frames:
    """The socket, from the worker's side."""

    def __init__(self, sock: socket.socket) -> None:
        """Read from and write to ``sock``."""
        self._sock = sock
        self._file = sock.makefile("rb", buffering=BUFFER_BYTES)

    def next(self) -> tuple[bytes, bytes]:
        """Return the next message. Raises EOFError when the server has closed the socket."""
        head = self._file.read(FRAME.size)
        if len(head) < FRAME.size:
            raise EOFError
        kind, size = FRAME.unpack(head)
        body = self._file.read(size)
        if len(body) < size:
            raise EOFError
        return kind, body

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Send a message."""
        self._sock.sendall(FRAME.pack(kind, len(body)) + body)


class Stream:
    """The data of one load, read as a file is."""

    def __init__(self, frames: Frames, broken: type[Exception]) -> None:
        """Read from ``frames`` until the load's end; ``broken``: raised where the client ends it otherwise."""
        self._frames = frames
        self._broken = broken
        self._left = b""
        self._end = b""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        while not self._left and not self._end:
            kind, body = self._frames.next()
            if kind == DATA:
                self._left = body
            else:
                self._end = kind
        if not self._left and self._end == BROKEN:
            raise self._broken
        data, self._left = self._left[:size], self._left[size:]
        return data

    def pass_over(self) -> None:
        """Drop what is left."""
        self._left = b""
        while not self._end:
            kind, _body = self._frames.next()
            if kind != DATA:
                self._end = kind


def serve(sock: socket.socket) -> None:
    """Load what the server sends, until it closes the socket."""
    gc.disable()  # loading makes many objects, none of them garbage
    import pyarrow as pa

    from engine.changes.bulk.read_split import Broken
    from engine.changes.bulk.stream_task import StreamTask  # noqa: F401 - so that tasks are read at once

    gc.freeze()
    gc.enable()
    frames = Frames(sock)
    frames.send(READY)
    while True:
        try:
            kind, body = frames.next()
        except EOFError:
            return
        if kind != TASK:
            raise AssertionError(f"a message {kind!r} between two loads")
        stream = Stream(frames, Broken)
        _load(frames, pickle.loads(body), stream)
        stream.pass_over()
        gc.collect()
        pa.default_memory_pool().release_unused()


def _load(frames: Frames, task: StreamTask, stream: Stream) -> None:
    told = time.monotonic()

    def tell(rows: int, excluded: int) -> None:
        nonlocal told
        if (now := time.monotonic()) - told >= TELL_S:
            told = now
            frames.send(PROGRESS, COUNTS.pack(rows, excluded))

    frames.send(ANSWER, pickle.dumps(task.run(stream, tell)))


def main() -> None:
    """Run the process. Arguments: the socket's descriptor, and how deep the server may call."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from engine.base.loop.processes import end_with_server  # behind this, as loading them takes a while
    from engine.base.loop.threads import stand_back

    threading.Thread(target=end_with_server, daemon=True).start()

    stand_back()
    sys.setrecursionlimit(int(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
