"""Indexes of intervals: each under one node of a tree that nobody stores (Kriegel, Pötke, Seidl: Managing
Intervals Efficiently in Object-Relational Databases, VLDB 2000).

    places     0 1 2 3 4 5 6 7 8        the node of an interval is the place in it with the highest level:
    level      - 0 1 0 2 0 1 0 3        [1, 3] -> 2     [3, 6] -> 4     [5, 5] -> 5     [5, 8] -> 8

An interval that holds a place p stands on the way from the root to p: at one node of each level
(``nodes_of``). So those that overlap with [a, b] stand at a node within [a, b], or on the ways to a and to b:
some hundred look-ups, however many intervals there are. Values are bytes (``pgwire.codecs.users.ranges``
makes them):

    00                     empty, under the key of no bytes
    01 lower upper         two places of ten bytes, both of which belong to it

The keys are the nodes' places, in a sorted index like others.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

PLACE_BYTES: Final = 10
_BITS: Final = 8 * PLACE_BYTES
_END: Final = 1 << _BITS

EMPTY: Final = b""
"""The key of empty intervals."""


def node(value: bytes) -> bytes:
    """Return the key of an interval. ValueError for bytes that are none of ten-byte places."""
    if value == b"\x00":
        return EMPTY
    if len(value) != 1 + 2 * PLACE_BYTES:
        raise ValueError(f"an interval of {len(value)} bytes")
    lower = int.from_bytes(value[1 : 1 + PLACE_BYTES], "big")
    upper = int.from_bytes(value[1 + PLACE_BYTES :], "big")
    level = max((lower ^ upper).bit_length() - 1, 0)
    return (upper >> level << level).to_bytes(PLACE_BYTES, "big")


def nodes_of(place: bytes) -> list[bytes]:
    """Return the keys that an interval which holds a place may stand under, ascending."""
    at = int.from_bytes(place, "big")
    found = {at}
    for level in range(_BITS):
        below = at >> level << level
        found.add(below)
        if below + (1 << level) < _END:
            found.add(below + (1 << level))
    return [one.to_bytes(PLACE_BYTES, "big") for one in sorted(found)]


def node_array(column: Any) -> Any:
    """Return the keys of a part's column of values as an Arrow array. Runs in a thread."""
    return pa.array([node(v.as_py()) if v.is_valid else None for v in column], pa.binary())
