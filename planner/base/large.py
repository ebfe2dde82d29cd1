"""Large values of functions: who makes them says so, whoever counts memory hears of it.

    generated code     a text or bytea of LARGE_BYTES or more is made ──made──┐
    repeat, lpad …     so many bytes are about to be made ──────────foresee──┴──> METER.charge(bytes) ──> may raise 53200

Functions are pure and know no statement; the engine sets ``METER.charge``, which charges the one that runs.
What is below ``LARGE_BYTES`` is nobody's business: a batch of rows has a thousand of them at most.
``foresee`` is for results that may be many times as large as the arguments; others are looked at once they
are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from typing import Any, Final

from pgwire.give_way import give_way
from pgwire.long import arrays as long_arrays
from pgwire.long import values as long_values
from planner.base.errors import SqlError

LARGE_BYTES: Final = 8 << 10
ITEM_BYTES: Final = 58
"""What a short text takes as an item of an array or a set."""
_POINTER_BYTES: Final = 8
_COUNTED: Final = 4096
"""Texts whose lengths are added up between two looks at the clock."""
MAX_BYTES: Final = (1 << 30) - 1
"""No value is longer, as in PostgreSQL."""


class Meter:
    """Counts the bytes of large values.

    Attributes:
        made: of all values so far; the difference tells what came in between. charge: told of each (bytes,
        False), and asked before one is made (bytes, True); raises SqlError 53200 where it is
            too much.
        each: bytes that one statement may have, 0 where nobody has said so. room: tells how many bytes more a
        statement may take now, as far as the server has them; what takes more is not begun in its process.
    """

    __slots__ = ("charge", "each", "made", "room")

    def __init__(self) -> None:
        """Nobody wants to know."""
        self.made = 0
        self.charge: Callable[[int, bool], None] | None = None
        self.each = 0
        self.room: Callable[[], int] = lambda: MAX_BYTES


METER: Final = Meter()


def made(value: Any) -> Any:
    """Count a large value, and return it."""
    size = getsizeof(value)
    METER.made += size
    if METER.charge is not None:
        METER.charge(size, False)
    return value


def chained(parts: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Return arrays' items one part after the other, as one array that was foreseen."""
    foresee(_POINTER_BYTES * sum(map(len, parts)))
    return long_arrays.chained(parts)


def joined(pieces: Sequence[str], separator: str = "") -> str:
    """Join texts, of which the result was foreseen."""
    size = len(separator) * len(pieces)
    for at in range(0, len(pieces), _COUNTED):
        size += sum(map(len, pieces[at : at + _COUNTED]))
        give_way()
    foresee(size)
    return long_values.joined(pieces, separator)


def concatenated(a: str, b: str) -> str:
    """Return SQL's ``a || b``. Raises as ``foresee``."""
    size = len(a) + len(b)
    if size < LARGE_BYTES:
        return a + b
    foresee(size)
    return long_values.concatenated(a, b)


def foresee(size: int) -> None:
    """Say that a value of ``size`` bytes is about to be made.

    Raises SqlError 54000 where no value may be so long, 53200 where the statement may not have so much.
    """
    if size > MAX_BYTES:
        raise SqlError("54000", "requested length too large")
    if size >= LARGE_BYTES and METER.charge is not None:
        METER.charge(size, True)
