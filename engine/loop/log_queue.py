"""Log lines on their way out of the event loop: whoever reads standard error slowly, or not at all, holds up nobody.

    loop, threads ──put──> queue of at most ``MOST`` lines ──thread──> standard error

What does not fit is counted, and the count is written once there is room again.
"""

from __future__ import annotations

import logging
import queue
from logging.handlers import QueueHandler, QueueListener
from typing import Final, TextIO

MOST: Final = 10_000


class QueuedLog(QueueHandler):
    """Writes log records to a stream from a thread of its own; ``close`` (``logging.shutdown``) writes what is left."""

    def __init__(self, stream: TextIO, form: str) -> None:
        """Start the thread; ``form``: of a line, as ``logging.Formatter`` takes it."""
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(MOST)
        super().__init__(self._lines)
        target = logging.StreamHandler(stream)
        target.setFormatter(logging.Formatter(form))
        self._dropped = 0
        self._listener = QueueListener(self._lines, target)
        self._listener.start()
        self._open = True

    def enqueue(self, record: logging.LogRecord) -> None:
        """Hand a record to the thread, or count it where there is no room."""
        if self._dropped:
            lost = logging.LogRecord(
                "holdfast",
                logging.WARNING,
                __file__,
                0,
                "%d lines of the log were dropped",
                (self._dropped,),
                None,
            )
            try:
                self._lines.put_nowait(self.prepare(lost))
            except queue.Full:
                self._dropped += 1
                return
            self._dropped = 0
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what is left and end the thread. Not where nobody reads: the process is about to end."""
        if self._open and not self._lines.full():
            self._listener.stop()
        self._open = False
        super().close()
