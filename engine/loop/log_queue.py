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
        super().__init__(queue.Queue(MOST))
        target = logging.StreamHandler(stream)
        target.setFormatter(logging.Formatter(form))
        self._dropped = 0
        self._listener = QueueListener(self.queue, target)
        self._listener.start()

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
                self.queue.put_nowait(self.prepare(lost))
            except queue.Full:
                self._dropped += 1
                return
            self._dropped = 0
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what is left and end the thread. Not where nobody reads: the process is about to end."""
        if self._listener._thread is not None and not self.queue.full():  # type: ignore[attr-defined]
            self._listener.stop()
        super().close()
