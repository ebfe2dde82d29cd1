"""pg_snapshot and txid_snapshot: which transactions count as ended, ``xmin:xmax:xip,xip,...``.

    below xmin   all have ended        xmax and above   none had begun        between   all but those of xip have ended

The value is the canonical text: numbers in decimal, those of xip in ascending order, each once. Both types
have one form; numbers are unsigned, of 64 bits. There is no order and no equality.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import invalid_syntax
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.kept import kept
from pgwire.long.arrays import PIECE, tupled
from pgwire.long.values import concatenated, field, joined_bytes_up, joined_up, split
from pgwire.release import mind_long

_BITS: Final = (1 << 64) - 1
_NORMAL: Final = (1 << 32) - 1
_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?)([0-9]+)")
_HEAD: Final = struct.Struct(">IQQ")


class Snapshot(NamedTuple):
    """A snapshot taken apart; ``xip``: ascending, from ``xmin`` to below ``xmax``."""

    xmin: int
    xmax: int
    xip: tuple[int, ...]

    def sees(self, number: int) -> bool:
        """Tell whether the transaction ``number`` counts as ended."""
        if self.xmin <= number < self.xmax:
            at = bisect_left(self.xip, number)
            return at == len(self.xip) or self.xip[at] != number
        return number < self.xmin


def parse(text: str) -> str:
    """Read a snapshot; 22P02. Numbers as C's strtoull reads them: blanks and a sign before, too large ones
    are the largest.
    """
    try:
        xmin, at = _number(text, 0)
        xmax, at = _number(text, _after(text, at, ":"))
        at = _after(text, at, ":")
        xip: list[int] = []
        while at < len(text):
            give_way()
            number, at = _number(text, at)
            xip.append(number)
            if at < len(text):
                at = _after(text, at, ",")
        return _checked(xmin, xmax, mind_long(xip), xmax - 1)
    except ValueError:
        raise invalid_syntax("pg_snapshot", text) from None


def _number(text: str, at: int) -> tuple[int, int]:
    found = _NUMBER.match(text, at)
    if found is None:
        raise ValueError("no number")
    digits = found[2].lstrip("0")
    value = _BITS if len(digits) > 20 else int(digits or "0")
    if value > _BITS:
        value = _BITS
    elif found[1] == "-":
        value = -value & _BITS
    return value, found.end()


def _after(text: str, at: int, sign: str) -> int:
    if not text.startswith(sign, at):
        raise ValueError(f"no {sign}")
    return at + 1


def _checked(xmin: int, xmax: int, xip: Iterable[int], last_allowed: int) -> str:
    """Return the value; ValueError. The lower 32 bits of bounds are never 0: no transaction has such a number."""
    if not (xmin & _NORMAL and xmax & _NORMAL and xmin <= xmax):
        raise ValueError("bounds")
    kept: list[int] = []
    last = 0
    for number in paced_iter(xip):
        if not xmin <= number <= last_allowed or number < last:
            raise ValueError("order")
        if number != last:
            kept.append(number)
        last = number
    return compose(xmin, xmax, mind_long(kept))


def compose(xmin: int, xmax: int, xip: Sequence[int]) -> str:
    """Return the value of a snapshot whose ``xip`` is in order."""
    return concatenated(f"{xmin}:{xmax}:", joined_up([str(number) for number in paced(xip)], ","))


def bounds(value: str) -> tuple[int, int]:
    """Return ``xmin`` and ``xmax`` of a value."""
    return int(field(value, ":", 0)), int(field(value, ":", 1))


@kept(16)
def take_apart(value: str) -> Snapshot:
    """Return what a value says."""
    xip = field(value, ":", 2)
    numbers = [int(number) for number in paced(split(xip, ","))] if xip else []
    return Snapshot(*bounds(value), tupled(mind_long(numbers)))


def show(value: str) -> str:
    """Print a snapshot."""
    return value


def recv(data: bytes) -> str:
    """Read the number of xip (4 bytes), xmin, xmax and xip (8 each), big-endian; 08P01 too short, 22P03 anything else.

    As PostgreSQL does it takes xmax itself among xip, which changes nothing and which ``parse`` refuses.
    """
    if len(data) < 4:
        raise DataError("08P01", "insufficient data left in message")
    count = int.from_bytes(data[:4], "big")
    if count > _MOST:
        raise DataError("22P03", _INVALID)
    if len(data) < _HEAD.size:
        raise DataError("08P01", "insufficient data left in message")
    _count, xmin, xmax = _HEAD.unpack_from(data)
    rest = data[_HEAD.size :]
    try:
        there = min(count, len(rest) // 8)
        value = _checked(xmin, xmax, mind_long(struct.unpack_from(f">{there}Q", rest)), xmax)
    except ValueError:
        raise DataError("22P03", _INVALID) from None
    if len(rest) < count * 8:
        raise DataError("08P01", "insufficient data left in message")
    if len(rest) > count * 8:
        raise DataError("22P03", "incorrect binary data format")
    return value


_INVALID: Final = "invalid external pg_snapshot data"
_MOST: Final = (0x3FFFFFFF - 24) // 8
"""Numbers of xip in the largest value that PostgreSQL can hold."""


def send(value: str) -> bytes:
    """Write what ``recv`` reads."""
    xmin, xmax, xip = take_apart(value)
    parts = [_HEAD.pack(len(xip), xmin, xmax)]
    for at in paced(range(0, len(xip), PIECE), 1):
        some = xip[at : at + PIECE]
        parts.append(struct.pack(f">{len(some)}Q", *some))
    return joined_bytes_up(parts)
