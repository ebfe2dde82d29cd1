"""A reader's socket, used directly while its transport waits for the loop's next turn (``pgwire.session.turns``).

Reads and writes here share the socket with a transport of asyncio or uvloop, which finds nothing to read
then, and whose queue of output is empty. Not for TLS, whose transport alone has the keys.
"""

from __future__ import annotations

import os
from typing import Any, Final

from pgwire.session.responder import Writer

READ_BYTES: Final = 64 << 10  # taken from a reader's socket at once


class Direct:
    """Writes to the socket at once where nothing is queued before: a transport may wait for the end of the turn."""

    __slots__ = ("_fd", "_transport")

    def __init__(self, transport: Writer, fd: int) -> None:
        """``fd``: the transport's socket, not encrypted, open as long as this is written to."""
        self._transport = transport
        self._fd = fd

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Send; what the socket does not take, and what goes wrong with it, is the transport's."""
        sent = 0
        if not self._transport.get_write_buffer_size():
            try:
                sent = os.write(self._fd, data)
            except OSError:
                sent = 0  # full, or broken: the transport waits, or finds out why and ends the connection
        if sent < len(data):
            self._transport.write(memoryview(data)[sent:] if sent else data)

    def get_write_buffer_size(self) -> int:
        """See ``Writer``."""
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See ``Writer``."""
        return self._transport.get_extra_info(name, default)


def read_ahead(fd: int) -> bytes:
    """Take what has arrived at a socket before its transport does; empty if that is nothing, the end or an error."""
    try:
        return os.read(fd, READ_BYTES)
    except OSError:
        return b""  # the transport meets it, too
