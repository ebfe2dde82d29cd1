"""A Spark result as Arrow batches, pulled from the JVM one by one.

    client asks -> 1 -->  JVM runs the job of the next partition
                <-- 1     length, batch, length, batch, ..., -1
    client asks -> 1 -->  ...
                <-- 0     no partition is left       (or -1: it failed, the JVM tells why)

The batches travel as Spark's executors made them: no Python worker is involved. This serves results that are
estimated to be small (large ones: ``engine.executors.spark.spool``); ``Collected`` takes one over at once,
whatever its size turns out to be, so that no job has to wait for the client. Closing the socket ends the
rest.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

KEPT_BYTES: Final = 16 << 20

_INT = struct.Struct("!i")
_PARTITION, _END, _FAILED = 1, 0, -1
_PARTITION_END = -1


class BatchStream:
    """The batches of one result. Used by one thread at a time; ``shut`` from any."""

    def __init__(self, sc: Any, jdf: Any, schema: Any) -> None:
        """Start serving ``jdf`` (a Java Dataset). The thread's job tags stay with all its jobs."""
        from pyspark.util import local_connect_and_auth

        rdd = jdf.toArrowBatchRdd()
        port, secret, self._server = sc._jvm.PythonRDD.toLocalIteratorAndServe(rdd, False)
        self._file, self._socket = local_connect_and_auth(port, secret)
        self._socket.settimeout(None)
        self._schema = schema
        self._inside = False

    def next(self) -> Any:
        """Return the next batch that has rows, or None at the end.

        Raises:
            Exception: what the JVM raised; an EOFError or OSError when it is gone or ``shut`` was called.
        """
        while True:
            if not self._inside:
                self._file.write(_INT.pack(_PARTITION))
                self._file.flush()
                status = self._int()
                if status == _END:
                    return None
                if status == _FAILED:
                    self._server.getResult()
                    raise EOFError("the JVM gave no reason")
                self._inside = True
            size = self._int()
            if size == _PARTITION_END:
                self._inside = False
                continue
            data = self._file.read(size)
            if len(data) < size:
                raise EOFError("the JVM closed the stream")
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)
            if batch.num_rows:
                return batch

    def _int(self) -> int:
        data = self._file.read(4)
        if len(data) < 4:
            raise EOFError("the JVM closed the stream")
        return int(_INT.unpack(data)[0])

    def shut(self) -> None:
        """Break the connection: a thread that waits in ``next`` wakes up, the JVM stops writing."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back; no thread may be in ``next``."""
        self.shut()
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._socket.close()
        self._server = None


class Collected:
    """A whole result: batches in memory up to ``KEPT_BYTES``, the rest in a file. Used by one thread at a time."""

    def __init__(self, stream: BatchStream, schema: Any, path: Path) -> None:
        """Read ``stream`` to its end; ``path``: the file, made if it is needed. Raises what the stream raises."""
        self._kept: deque[Any] = deque()
        self._path = path
        self._rest: Any = None
        size = 0
        writer = None
        try:
            while (batch := stream.next()) is not None:
                size += batch.nbytes
                if size <= KEPT_BYTES:
                    self._kept.append(batch)
                    continue
                if writer is None:
                    writer = pa.ipc.new_stream(path, schema)
                writer.write_batch(batch)
        except BaseException:
            if writer is not None:
                writer.close()
                path.unlink()
            raise
        if writer is not None:
            writer.close()
            self._rest = pa.ipc.open_stream(pa.OSFile(str(path)))

    def next(self) -> Any:
        """Return the next batch, or None at the end."""
        if self._kept:
            return self._kept.popleft()
        if self._rest is None:
            return None
        try:
            return self._rest.read_next_batch()
        except StopIteration:
            return None

    def discard(self) -> None:
        """Forget what is left and delete the file."""
        self._kept.clear()
        if self._rest is not None:
            self._rest.close()
            self._path.unlink(missing_ok=True)
