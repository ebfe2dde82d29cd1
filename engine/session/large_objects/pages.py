"""What writing and cutting a large object does to its pages. Pure functions over ``{page number: bytes}``.

    page      0                1                2                3
              |2048 bytes      |(none)          |907 bytes|      |(none)
    reads as  the bytes        zeros            bytes            the end: no page behind it

A page holds at most ``PAGE_BYTES``; one that is missing, or the rest of one that is shorter, reads as zeros
as long as a page follows. An object ends where its last page does. Pages are kept as PostgreSQL keeps them,
so that pg_largeobject shows the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

PAGE_BYTES: Final = 2048
MAX_BYTES: Final = (2**31 - 1) * PAGE_BYTES
"""The size that no object exceeds."""


def written(pages: Mapping[int, bytes], offset: int, data: bytes) -> dict[int, bytes]:
    """Return the pages that differ once ``data`` stands at ``offset`` (bytes). ``pages``: those there are in
    that range.
    """
    changed: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        number, within = divmod(offset + at, PAGE_BYTES)
        piece = data[at : at + PAGE_BYTES - within]
        old = pages.get(number, b"")
        head = old[:within].ljust(within, b"\0")
        changed[number] = head + piece + old[within + len(piece) :]
        at += len(piece)
    return changed


def cut(page: bytes | None, within: int) -> bytes:
    """Return the page in which an object ends after ``within`` bytes; ``page`` None: there is none yet."""
    return (page or b"")[:within].ljust(within, b"\0")


def read(pages: Iterable[tuple[int, bytes]], offset: int, count: int) -> bytes:
    """Return up to ``count`` bytes from ``offset`` on.

    ``pages``: those there are from that offset on, in order, up to the first that lies behind what is read:
    it tells that the object goes on.
    """
    out = bytearray()
    for number, data in pages:
        hole = number * PAGE_BYTES - offset - len(out)
        if hole > 0:
            out += bytes(min(hole, count - len(out)))
        if len(out) == count:
            break
        start = max(-hole, 0)
        out += data[start : start + count - len(out)]
    return bytes(out)
