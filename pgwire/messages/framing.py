"""Bytes into frames: where one message ends, and how long it may be.

    data from the socket            |--64 kB--|--64 kB--|--3 kB--|
    frames                          |B..|D.|E.|S|Q.........|d....
                                                            ^ waits until it is whole

``FrameBuffer`` keeps what has arrived and is not consumed. It never copies a byte more than twice: chunks
of an incomplete frame are only joined once the frame is complete, so a 1 MB message that trickles in
costs 1 MB of copying and not its square. A longer one is put together while it comes: to join 100 MB in
one step would hold up everybody. Until it is whole nobody looks at it (``waiting``): that would end the
putting together, and begin it anew, with all bytes, at the next chunk. COPY data need not be whole;
``take_partial`` hands out what is there.

Limits (bytes, the length word included) are checked on the length word alone, before anything is buffered.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from struct import Struct
from typing import Final

from pgwire.release import mind_huge

HEADER: Final = Struct(">Bi")
INT32: Final = Struct(">i")
UINT32: Final = Struct(">I")

# Start-up packets and messages that only carry a name are small by nature (as in PostgreSQL).
MAX_STARTUP_BYTES: Final = 10_004  # the length word included
MAX_SMALL_BYTES: Final = 10_000
MAX_AUTH_BYTES: Final = 65_535
# Default for the messages that carry text or values: Query, Parse, Bind, FunctionCall, CopyData.
DEFAULT_MAX_MESSAGE_BYTES: Final = 256 << 20

GROWING_BYTES: Final = 1 << 20  # longer frames are put together while they come
HELD_BYTES: Final = GROWING_BYTES
"""Messages that are longer count, from their first bytes until they have been read (``Room``)."""
_GROWING: Final = [b""]  # stands for chunks that are in a long frame already

# Frontend message types by how long they may be; a type in none of them does not exist.
LARGE: Final = frozenset(b"QPBFd")
SMALL: Final = frozenset(b"XCDEHScf")
AUTH: Final = frozenset(b"p")


def frame_limits(max_message_bytes: int) -> dict[int, int]:
    """Return the largest legal length word of every frontend message type."""
    limits = dict.fromkeys(LARGE, max_message_bytes)
    limits.update(dict.fromkeys(SMALL, min(MAX_SMALL_BYTES, max_message_bytes)))
    limits.update(dict.fromkeys(AUTH, MAX_AUTH_BYTES))
    return limits


LITTLE: Final = 8
"""A message of less than the room divided by this comes in however much the process has."""


class Room:
    """What long messages of all clients may take together while they come in and are read, in bytes.

    A message has its whole length from the moment it is announced, so that none has to be given up half-way.
    """

    __slots__ = ("_left", "limit", "taken")

    def __init__(self, limit: int, left: Callable[[int], int] | None = None) -> None:
        """Nothing is taken. ``limit``: in bytes. ``left``: returns how many bytes the process may still take,
        of which so many are wanted; asked for more than a little.
        """
        self.limit = limit
        self.taken = 0
        self._left = left

    def take(self, size: int) -> bool:
        """Take ``size`` bytes; False, with nothing taken, where there is no room."""
        if self.taken + size > self.limit or self.crowded_out(size):
            return False
        self.taken += size
        return True

    def crowded_out(self, size: int) -> bool:
        """Tell whether the process has no room for a message, which is there twice once it is read."""
        return self._left is not None and size > self.limit // LITTLE and 2 * size > self._left(2 * size)

    def __str__(self) -> str:
        """Return what is there, as errors say it."""
        left = "" if self._left is None else f"; the server has {max(self._left(0), 0) >> 20} MB left"
        return f"all clients' messages have {self.taken >> 20} MB, and may have {self.limit >> 20} MB{left}"

    def give(self, size: int) -> None:
        """Give back what was taken."""
        self.taken -= size


class FrameBuffer:
    """Received bytes that are not consumed yet.

    ``data[pos:]`` is what can be looked at; ``more`` are chunks behind it, joined when needed. It is never empty
    while there are bytes that ``data`` does not have.
    """

    __slots__ = ("_growing", "_more_bytes", "_wanted", "data", "more", "pos")

    def __init__(self) -> None:
        """Start empty."""
        self.data = b""
        self.pos = 0
        self.more: list[bytes] = []
        self._growing: BytesIO | None = (
            None  # all unread bytes, of which the first frame is long and not whole
        )
        self._more_bytes = 0
        self._wanted = 0  # how many bytes make the long frame whole

    def feed(self, chunk: bytes) -> None:
        """Append what the socket delivered."""
        if self.pos == len(self.data) and not self.more:
            self.data = chunk
            self.pos = 0
            return
        if self._growing is not None:
            self._growing.write(chunk)
        else:
            self.more.append(chunk)
        self._more_bytes += len(chunk)

    def __len__(self) -> int:
        """Unread bytes."""
        return len(self.data) - self.pos + self._more_bytes

    @property
    def waiting(self) -> bool:
        """Whether the first frame is a long one and not whole yet: there is nothing to look at."""
        return self._growing is not None and self._more_bytes < self._wanted

    def has(self, count: int) -> bool:
        """Make ``count`` unread bytes contiguous in ``data`` if that many have arrived."""
        held = len(self.data) - self.pos
        if held >= count:
            return True
        if held + self._more_bytes < count:
            if count > GROWING_BYTES and self._growing is None:
                self._grow(count)
            return False
        if self._growing is not None:
            self.data = mind_huge(self._growing.getvalue())  # no copy: the bytes are made for it
            self._growing = None
        else:
            self.more.insert(0, self.data[self.pos :])
            self.data = b"".join(self.more)
        self.pos = 0
        self.more = []
        self._more_bytes = 0
        return True

    def _grow(self, wanted: int) -> None:
        """Put together what is there; what comes is added to it until there are ``wanted`` bytes."""
        self._wanted = wanted
        self._growing = BytesIO()
        self._growing.write(memoryview(self.data)[self.pos :])
        for chunk in self.more:
            self._growing.write(chunk)
        self.data = b""
        self.pos = 0
        self.more = _GROWING
        self._more_bytes = self._growing.tell()

    def forget_read(self) -> None:
        """Keep no bytes that have been consumed."""
        self.data = self.data[self.pos :]
        self.pos = 0

    def take(self, count: int) -> bytes:
        """Consume exactly ``count`` bytes, which ``has`` has promised."""
        start = self.pos
        self.pos = start + count
        return self.data[start : self.pos]

    def take_partial(self, limit: int) -> bytes:
        """Consume at most ``limit`` of the contiguous unread bytes (possibly none)."""
        if self.pos == len(self.data) and self.more:
            self.has(len(self))
        return self.take(min(limit, len(self.data) - self.pos))

    def clear(self) -> None:
        """Forget everything."""
        self.data = b""
        self.pos = 0
        self.more = []
        self._growing = None
        self._more_bytes = 0
        self._more_bytes = 0
