r"""Log lines on their way out of the event loop: whoever reads standard error slowly, or not at all, holds up nobody.

    loop, threads ──put──> queue of at most ``MOST`` lines ──thread──> standard error

What does not fit is counted, and the count is written once there is room again.

A record is what one call wrote, whatever text of clients is in it: its further lines begin with a tab, as in
PostgreSQL's log, and other control characters are written as ``\x1b``. So nobody can write a line that looks
like another record, or speaks to a terminal.
"""

from __future__ import annotations

import logging
import queue
from logging.handlers import QueueHandler, QueueListener
from typing import Final, TextIO

from pgwire.long.values import mapped

_PIECE: Final = 1 << 14
"""Characters of a record that one call changes: the thread keeps the interpreter for as long."""
MOST: Final = 10_000
_BREAKS: Final = (0x2028, 0x2029)  # lines end there for some who read
_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
} | {code: f"\\u{code:04x}" for code in _BREAKS}
_SAFE: Final = str.maketrans({**_CONTROLS, ord("\n"): "\n\t"})


class OneRecord(logging.Formatter):
    """Formats records so that each can be told from the next."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record's text: no line of it but the first begins without a tab."""
        return mapped(super().format(record), lambda piece: piece.translate(_SAFE), _PIECE)


class QueuedLog(QueueHandler):
    """Writes log records to a stream from a thread of its own; ``close`` (``logging.shutdown``) writes what is left."""

    def __init__(self, stream: TextIO, form: str) -> None:
        """Start the thread; ``form``: of a line, as ``logging.Formatter`` takes it."""
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(MOST)
        super().__init__(self._lines)
        target = logging.StreamHandler(stream)
        target.setFormatter(OneRecord(form))
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
